"""The search over a recipe: what it saves never changes a number."""

from collections.abc import Sequence

import numpy as np
import pytest

from jobs import tune
from jobs.suites.lab import Lab, Reading
from jobs.suites.suite import Corpus, Document, Question
from jobs.suites.tuning import Scores, with_value
from jobs.tune import CATALOGUE, GRID, HEQ, LOCOMO, Bench, Judge, main, reads_of
from rayapp.container import bootstrap
from rayapp.memory.tiers import Tier
from rayapp.search.rules.fusion import DenseRetriever, fuse
from rayapp.search.rules.recipes import NO_ENCODER, Recipe

TURNS = (
    ("Dana: Where did you go?", "Gal: To the Alps, it was lovely.", "Dana: And the dog?",
     "Gal: The dog stayed with Ruth.", "Dana: אני אוהבת הרים"),
    ("Where did Gal go?", "Who kept the dog?", "הרים"),
)  # fmt: skip
PAGES = (
    ("דנה גרה בחיפה ועובדת בנמל.", "הכלב נבח כל הלילה.", "גל נסע להרים עם API חדש.", "Ruth moved."),
    ("איפה דנה גרה?", "who barked?", "מי נסע להרים?"),
)
SETS = (
    ("תקציב עיריית חיפה", "תחבורה ציבורית", "Budget of Haifa", "בתי ספר"),
    ("budget", "תחבורה", "תקציב חיפה"),
)


def embed(texts: Sequence[str]) -> np.ndarray:
    """Vectors by letters: near texts share them."""
    rows = np.full((len(texts), 64), 0.1, dtype=np.float32)
    for row, text in enumerate(texts):
        for letter in text:
            rows[row, ord(letter) % 64] += 1.0
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def bench() -> Bench:
    corpora, set_of = [], {}
    sources = ((LOCOMO, TURNS), (HEQ, PAGES), (CATALOGUE, SETS))
    for name, (texts, asked) in sources:
        documents = tuple(Document(f"{name}:{at}", text) for at, text in enumerate(texts))
        questions = tuple(
            Question(f"{name}?{at}", text, (documents[at].doc_id,), "1", "he")
            for at, text in enumerate(asked)
        )
        corpora.append(Corpus(name, documents, questions))
        kept = name if name != CATALOGUE else tune.ASKED
        set_of |= {one.question_id: kept for one in questions}
    dataset_of = {f"{CATALOGUE}:{at}": f"set-{at}" for at in range(4)}
    return Bench(tuple(corpora), set_of, dataset_of)


def recipes() -> list[Recipe]:
    """The start, one step in every direction of the grid, and all steps together."""
    start = bootstrap.load_texts().recipes["default"]
    single = [with_value(start, one.path, value) for one in GRID for value in one.values]
    far = start
    for one in GRID:
        far = with_value(far, one.path, one.values[0])
    off = [with_value(far, one.path, one.off) for one in GRID]
    return [start, *single, far, *off, start.model_copy(update={"fusion": "rrf"}), start]


def plain(scores: Scores) -> dict[str, tuple[list[float], str]]:
    return {name: (list(one.values), one.of) for name, one in scores.items()}


@pytest.mark.parametrize("langs", [frozenset(), frozenset({"en"})])
def test_what_is_not_ranked_again_would_rank_the_same(langs: frozenset[str]) -> None:
    """A judge that has seen every other recipe says what one says that has seen none."""
    texts, seen = bootstrap.load_texts(), []
    used = Judge(bench(), texts, embed, langs)
    for recipe in recipes():
        fresh = Judge(bench(), texts, embed, langs)
        assert plain(used(recipe)) == plain(fresh(recipe))
        seen.append(fresh.ranked)
    assert used.ranked < 0.6 * sum(seen)


def test_a_ranking_reads_exactly_the_weights_of_its_scripts() -> None:
    """Moving a weight that it does not read moves no share; moving one that it reads does."""
    texts = bootstrap.load_texts()
    start = texts.recipes["default"]
    lab = Lab(bench().corpora, texts, embed, tiers={CATALOGUE: Tier.DATAGOV_SCHEMA})
    retriever = DenseRetriever(used=True, langs=frozenset({"en"}))
    names = type(start.dense).model_fields
    for asked in lab.ask(start):
        reads = reads_of(asked, retriever.langs)
        assert reads.turns is (asked.corpus != CATALOGUE)
        for name in names:
            moved = with_value(start, f"dense.{name}", 0.77)
            before, after = (
                fuse(asked.candidates, asked.language, recipe, retriever)
                for recipe in (start, moved)
            )
            same = np.array_equal(before.dense_weight, after.dense_weight)
            assert same is (name not in reads.dense)


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", "²"])
def test_a_sample_has_at_least_one_question(number: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--data", "x", "--limit-questions", number])
    assert ended.value.code == 2


def test_the_encoder_is_a_third_list_of_the_lab() -> None:
    """What it alone has near takes part, and a recipe without it ranks as a lab without it."""
    texts = bootstrap.load_texts()
    start = texts.recipes["default"]
    read: list[str] = []

    def passages(wanted: Sequence[str]) -> np.ndarray:
        read.extend(wanted)
        return embed(wanted)

    with_it = Judge(bench(), texts, embed, frozenset(), Reading(passages, embed))
    without = Judge(bench(), texts, embed, frozenset())
    off = start.model_copy(update={"encoder": NO_ENCODER})
    assert read
    assert plain(with_it(off)) == plain(without(start))
    asked = next(with_it._lab.ask(start))
    assert np.count_nonzero(asked.candidates.encoder_rank) == len(asked.candidates)
    shares = [one.scored.fused.encoder_weight[one.at] for one in asked.ranked(start)]
    assert all(share > 0.0 for share in shares)
