"""Features of question and text, in both languages, over word vectors made of letters."""

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.core.vectors import Vector
from rayapp.search.rules import rerank_words
from rayapp.search.rules.rerank_features import FEATURES, Features
from rayapp.search.rules.rerank_words import WordTable
from tests.support.examples import examples

DIMS = 16


def letters(words: Sequence[str]) -> Vector:
    """A word's vector is drawn from its own letters: equal words are equal, others unrelated."""
    seeds = [sum(ord(c) * 31**at for at, c in enumerate(word.lower())) % 2**32 for word in words]
    return np.array(
        [np.random.default_rng(seed).normal(size=DIMS) for seed in seeds], dtype=np.float32
    ).reshape(len(words), DIMS)


def rows(question: str, *texts: str) -> list[dict[str, float]]:
    found = Features(WordTable(letters)).of(question, texts)
    return [dict(zip(FEATURES, map(float, row), strict=True)) for row in found]


TEXT = st.text(alphabet="abcאבגדה 12.?!:'\"\n-", max_size=60)


class TestProperties:
    @settings(max_examples=examples(60), deadline=None)
    @given(TEXT, st.lists(TEXT, max_size=6))
    def test_finite_and_one_row_per_text(self, question: str, texts: list[str]) -> None:
        found = Features(WordTable(letters)).of(question, texts)
        assert found.shape == (len(texts), len(FEATURES))
        assert np.isfinite(found).all()

    @settings(max_examples=examples(40), deadline=None)
    @given(TEXT, st.lists(TEXT, min_size=2, max_size=6, unique=True), st.randoms())
    def test_the_order_of_the_texts_does_not_matter(
        self, question: str, texts: list[str], random: object
    ) -> None:
        other = list(reversed(texts))
        features = Features(WordTable(letters))
        forward, backward = features.of(question, texts), features.of(question, other)
        assert forward == pytest.approx(backward[::-1], abs=1e-4)

    @settings(max_examples=examples(40), deadline=None)
    @given(TEXT, st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=4))
    def test_what_was_read_before_changes_nothing(
        self, question: str, texts: list[str], before: list[str]
    ) -> None:
        used = Features(WordTable(letters))
        used.of("something else", before)
        fresh = Features(WordTable(letters))
        assert used.of(question, texts) == pytest.approx(fresh.of(question, texts), abs=1e-4)

    @settings(max_examples=examples(40), deadline=None)
    @given(TEXT, st.lists(TEXT, min_size=1, max_size=4))
    def test_shares_stay_within_one(self, question: str, texts: list[str]) -> None:
        for row in rows(question, *texts):
            for name in ("soft_static", "sentence_soft_list", "names", "numbers", "bigrams"):
                assert -1e-5 <= row[name] <= 1 + 1e-5

    @settings(max_examples=examples(40), deadline=None)
    @given(TEXT, st.lists(TEXT, min_size=1, max_size=4))
    def test_a_whole_text_holds_what_its_best_sentence_holds(
        self, question: str, texts: list[str]
    ) -> None:
        for row in rows(question, *texts):
            for how in ("exact", "near", "soft"):
                best, pair = row[f"sentence_{how}_static"], row[f"pair_{how}_static"]
                assert best - 1e-5 <= pair <= row[f"{how}_static"] + 1e-5


PAIRS = [
    ("Where did Dana buy the piano?", "Dana bought the piano in Haifa.", "It rained all day."),
    ("איפה קנתה דנה את הפסנתר?", "דנה קנתה את הפסנתר בחיפה.", "ירד גשם כל היום."),
]


@pytest.mark.parametrize(("question", "answer", "other"), PAIRS)
def test_an_answer_is_nearer_in_every_way(question: str, answer: str, other: str) -> None:
    good, bad = rows(question, answer, other)
    for name in ("exact_static", "near_list", "soft_static", "bm25_list", "cosine", "topic_soft"):
        assert good[name] > bad[name], name


@pytest.mark.parametrize(
    ("question", "near"), [("the houses", "a house"), ("הילדים בגינה", "ילד בגינה")]
)
def test_a_lemma_meets_its_word_though_not_in_full(question: str, near: str) -> None:
    same, lemma = rows(question, question, near)
    assert same["exact_static"] > lemma["exact_static"] > 0


@pytest.mark.parametrize(
    ("question", "column", "answer", "other"),
    [
        ("When did she leave?", "when_time", "She left in May 2019", "She left with a smile"),
        ("מתי היא עזבה?", "when_time", "היא עזבה בשנת 2019", "היא עזבה בחיוך"),
        ("How many cups are there?", "count_number", "There are six", "There are plenty"),
        ("כמה ספלים יש?", "count_number", "יש שישה", "יש הרבה"),
        ("Who bought it?", "who_name", "I think Farah bought it", "I think they bought it"),
        ("מי קנה את זה?", "who_name", "נדמה לי שזה תומר", "נדמה לי שהם"),
        ("Why is it closed?", "why_cause", "Closed because of rain", "Closed as we saw"),
        ("למה זה סגור?", "why_cause", "סגור בגלל הגשם", "סגור כמו שראינו"),
    ],
)  # fmt: skip
def test_the_kind_of_answer(question: str, column: str, answer: str, other: str) -> None:
    good, bad = rows(question, answer, other)
    assert (good[column], bad[column]) == (1.0, 0.0)
    assert good[f"sentence_{column}"] == 1.0


def test_what_the_question_says_itself_is_no_answer() -> None:
    (row,) = rows("Who lives with Farah?", "He said Farah is here")
    assert row["who_name"] == 0.0


@pytest.mark.parametrize(
    ("question", "dana", "other"),
    [
        ("What does Dana like?", "Dana: I like tea", "Tom: I like tea"),
        ("מה דנה אוהבת?", "דנה: אני אוהבת תה", "תומר: אני אוהב תה"),
    ],
)
def test_who_speaks(question: str, dana: str, other: str) -> None:
    named, stranger = rows(question, dana, other)
    assert (named["speaker_named"], named["speaker_other"]) == (1.0, 0.0)
    assert (stranger["speaker_named"], stranger["speaker_other"]) == (0.0, 1.0)


def test_neighbours_count_in_their_order() -> None:
    inorder, apart, reversed_ = rows(
        "green bicycle shop", "a green bicycle shop", "a green and old bicycle, no shop",
        "a shop, bicycle, green",
    )  # fmt: skip
    assert inorder["bigrams"] == pytest.approx(1.0)
    assert apart["bigrams"] == 0.0 < apart["bigrams_loose"]
    assert reversed_["bigrams"] == 0.0 < reversed_["bigrams_loose"]


def test_words_of_two_texts_are_no_neighbours() -> None:
    both = rows("green bicycle", "it is green", "bicycle of mine")
    assert [row["bigrams_loose"] for row in both] == [0.0, 0.0]


def test_a_long_text_is_judged_by_its_best_sentence() -> None:
    filler = " ".join(f"Sentence {n} says nothing." for n in range(40))
    alone, inside = rows("Where is the spare key?", "The spare key is here.",
                         f"{filler} The spare key is here. {filler}")  # fmt: skip
    assert inside["sentence_near_static"] == pytest.approx(alone["sentence_near_static"])
    assert inside["length"] > alone["length"]


def test_pointed_and_plain_spelling_are_one() -> None:
    (row,) = rows("שלום", "שָׁלוֹם")
    assert row["exact_static"] == pytest.approx(1.0)


def test_the_table_starts_anew_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank_words, "MAX_WORDS", 50)
    monkeypatch.setattr(rerank_words, "MAX_TEXT_BYTES", 2_000)
    features = Features(WordTable(letters))
    first = features.of("green bicycle", ["a green bicycle"])
    for number in range(40):
        features.of(f"question {number}", [f"text {number} of {n}" for n in range(5)])
    assert features.of("green bicycle", ["a green bicycle"]) == pytest.approx(first, abs=1e-4)


def test_texts_that_were_written_since_are_let_go_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # Python keeps what was written of a Hebrew text, so its size grows behind the cache's back.
    monkeypatch.setattr(rerank_words, "MAX_TEXT_BYTES", 20_000)
    table = WordTable(letters)
    for number in range(400):
        text = f"המפתח הרזרבי של דירה מספר {number} נמצא אצל השכנה"
        table.read([text])
        pickle.dumps(text)
    assert len(table._texts) < 30
