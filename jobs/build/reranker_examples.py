"""What the feature reranker learns from: texts we wrote, HeQ, and our questions about open data.

The text files under `reranker_texts` hold one corpus each: `@` starts a session and gives its date,
a line is a memory, and `?` after it asks for it. A memory of a dialogue carries its date, as a
client stores it. The files under `chats` are chats with an assistant: a message is a memory. HeQ
(Cohen et al. 2023) is CC BY 4.0.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from jobs.suites.datagov_set import load_datagov
from jobs.suites.heq import load_heq
from jobs.suites.mixed import together
from jobs.suites.suite import Corpus, Document, Question, rows_of
from rayapp.core.errors import ConfigError
from rayapp.text.language import detect_language

TEXTS = Path(__file__).with_name("reranker_texts")
CHATS = "chats"
DIALOGUE = "dialogue"
OPEN_DATA = "datagov"
HEBREW = "heq"
ALL = "all"  # the store of all personal sources


def load_examples(data: Path, texts: Path = TEXTS) -> tuple[Corpus, ...]:
    """All corpora with their questions; every question has an answer. ConfigError: no texts."""
    files = sorted(texts.glob("*.txt"))
    if not files:
        raise ConfigError(f"No example texts in {texts.name}: restore them from the repository.")
    own = [read_corpus(path.stem, path.read_text(encoding="utf-8")) for path in files]
    own += [read_chat(path) for path in sorted((texts / CHATS).glob("*.yaml"))]
    catalogue = load_datagov(data)
    asked = catalogue.questions.corpora[0].questions
    heq = load_heq(data).corpora[0]
    answered = tuple(question for question in heq.questions if question.gold)
    return (
        *own,
        Corpus(OPEN_DATA, catalogue.documents, asked),
        Corpus(HEBREW, heq.documents, answered),
    )


def mixed_store(corpora: Sequence[Corpus]) -> Corpus:
    """All but the open data in one store. A set that is asked alone never shows what it is to stand
    beside texts of another kind and script (decision 0054)."""
    return together(ALL, ((one.name, one) for one in corpora if one.name != OPEN_DATA))


def read_chat(path: Path) -> Corpus:
    """One chat. ConfigError: a row lacks a field, or a question names no message."""
    chat = yaml.safe_load(path.read_text(encoding="utf-8"))
    name = f"{CHATS}-{path.stem}"
    with rows_of(path, "messages"):
        documents = [
            Document(f"{name}#{number}", str(message["text"]).strip())
            for number, message in enumerate(chat["messages"])
        ]
        questions = [
            Question(
                f"{name}:{number}",
                str(asked["ask"]),
                tuple(documents[gold].doc_id for gold in asked["gold"]),
                name,
                detect_language(str(asked["ask"])),
            )
            for number, asked in enumerate(chat["questions"])
        ]
    return Corpus(name, tuple(documents), tuple(questions))


def read_corpus(name: str, text: str) -> Corpus:
    """One file. ConfigError: a question stands before the first memory."""
    documents: list[Document] = []
    questions: list[Question] = []
    date = ""
    for kind, line in _lines(text):
        if kind == "@":
            date = line
        elif kind == "?":
            if not documents:
                raise ConfigError(f"{name}: put the memory before its question {line!r}.")
            number = f"{name}:{len(questions)}"
            gold = (documents[-1].doc_id,)
            questions.append(Question(number, line, gold, name, detect_language(line)))
        else:
            dated = f"{line} ({date})" if name.startswith(DIALOGUE) else line
            documents.append(Document(f"{name}#{len(documents)}", dated))
    return Corpus(name, tuple(documents), tuple(questions))


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in map(str.strip, text.splitlines()):
        if line and not line.startswith("#"):
            kind = line[0] if line[0] in "@?" else ""
            yield kind, line[len(kind) :].strip()
