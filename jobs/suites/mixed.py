"""A person's store as it is: a dialogue, a long chat with an assistant and paragraphs, together.

One user has a conversation of LoCoMo, a chat of BEAM, 120 paragraphs of HeQ and the advice of the
outcome scenarios; the questions are those of each set, under its name as their category.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from jobs.suites.beam import load_beam
from jobs.suites.heq import load_heq
from jobs.suites.locomo import load_locomo
from jobs.suites.scenarios import load_adversarial
from jobs.suites.suite import Corpus, Document, Question, Suite

NAME = "mixed"
PARAGRAPHS = 120  # of one user; the next one has the others


def load_mixed(data: Path, load_paragraphs: Callable[[Path], Suite] = load_heq) -> Suite:
    """As many users as there are conversations. ConfigError: a set is missing or is another."""
    locomo = load_locomo(data)
    advice = _advice(data)
    paragraphs = load_paragraphs(data).corpora[0]
    corpora = [
        together(
            f"{NAME}-{number}",
            {
                "locomo": _answer(dialogue, locomo.headline),
                "beam": chat,
                paragraphs.name: _half(paragraphs, number),
                "advice": advice,
            }.items(),
        )
        for number, (dialogue, chat) in enumerate(
            zip(locomo.corpora, load_beam(data).corpora, strict=False)
        )
    ]
    return Suite(name=NAME, corpora=tuple(corpora))


def _answer(corpus: Corpus, categories: frozenset[str] | None) -> Corpus:
    kept = (one for one in corpus.questions if categories is None or one.category in categories)
    return Corpus(corpus.name, corpus.documents, tuple(kept))


def _half(corpus: Corpus, number: int) -> Corpus:
    """The first `PARAGRAPHS` and the last ones take turns."""
    half = corpus.documents[:PARAGRAPHS] if number % 2 == 0 else corpus.documents[-PARAGRAPHS:]
    there = {document.doc_id for document in half}
    questions = tuple(one for one in corpus.questions if one.gold and one.gold[0] in there)
    return Corpus(corpus.name, half, questions)


def _advice(data: Path) -> Corpus:
    pairs = load_adversarial(data)
    texts = dict.fromkeys(text for one in pairs for text in (one.good, one.bad))
    documents = (Document(str(number), text) for number, text in enumerate(texts))
    return Corpus("advice", tuple(documents), ())


def together(name: str, sets: Iterable[tuple[str, Corpus]]) -> Corpus:
    """One user's memories of several sets: ids begin with the name of their set, which is the
    category of its questions. A question that nothing answers is left out."""
    documents: list[Document] = []
    questions: list[Question] = []
    for category, corpus in sets:
        documents += [
            Document(f"{category}:{one.doc_id}", one.text, one.created_at)
            for one in corpus.documents
        ]
        questions += [
            Question(
                f"{name}:{one.question_id}",
                one.text,
                tuple(f"{category}:{gold}" for gold in one.gold),
                category,
                one.lang,
            )
            for one in corpus.questions
            if one.gold
        ]
    return Corpus(name, tuple(documents), tuple(questions))
