"""How much a text matters, by the rules alone."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from jobs.build.importance import CORPUS, FOLDER, LEAST, Text, read_corpus, scored
from rayapp.storage.files import load_importance, load_signals
from rayapp.understanding.records import Gate, Importance, Mention, Override, Signal, Speaker
from rayapp.understanding.rules.importance import (
    MOST_ASKED,
    Circumstances,
    ImportanceParams,
    Weighing,
    importance_of,
    is_derived,
    recurs,
    topics_of,
)
from rayapp.understanding.rules.signals import SignalWords, read_sentence, sentences_of

NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
THRESHOLD = 0.44
KINDS = ("emotion", "identity", "goal", "decision", "general", "small_talk", "fact")


@cache
def words() -> SignalWords:
    return load_signals(FOLDER / "signals.yaml")


@cache
def params() -> ImportanceParams:
    return load_importance(FOLDER / "weights.yaml")


@cache
def corpus() -> list[Text]:
    return read_corpus(CORPUS)


def scored_as(text: str, speaker: Speaker = Speaker.USER, **more: Any) -> Importance:
    return importance_of(text, words(), params(), speaker=speaker, threshold=THRESHOLD, **more)


@pytest.mark.parametrize("language", ["en", "he"])
@pytest.mark.parametrize("part", ["fitting", "held_out"])
def test_the_side_of_the_threshold_is_right(part: str, language: str) -> None:
    texts = [one for one in corpus() if (one.part, one.language) == (part, language)]
    assert len(texts) >= 90
    found = scored(texts, words(), params(), None)
    assert sum(right for _, _, right in found) / len(found) >= LEAST


def weighing_of(text: str, **more: Any) -> Weighing:
    return Weighing(
        text, words(), params(), speaker=Speaker.USER, threshold=THRESHOLD, heads=True, **more
    )


def asked_of(weighing: Weighing, kinds: Mapping[str, Mapping[str, float]]) -> list[str]:
    asked = []
    while (sentence := weighing.to_ask()) is not None:
        asked.append(sentence)
        weighing.hear(sentence, kinds[sentence])
    return asked


def test_what_is_not_asked_of_the_heads_changes_no_decision() -> None:
    told = random.Random(7)
    texts = [one.text for one in corpus()]
    asked = known = passed = 0
    for number in range(300):
        text = " ".join(told.sample(texts, number % 4 + 1))
        sentences = list(dict.fromkeys(sentences_of(text)))
        kinds = {one: {told.choice(KINDS): told.random()} for one in sentences}
        whole = scored_as(text, kinds=kinds.__getitem__)
        weighing = weighing_of(text)
        asked += len(asked_of(weighing, kinds))
        known += len(sentences)
        passed += whole.passed
        assert (weighing.importance().passed, text) == (whole.passed, text)
    assert 60 < passed < 290
    assert asked < 0.8 * known


def test_the_sentence_that_promises_most_is_asked_first_and_no_more_when_it_is_sure() -> None:
    text = "The bus was late. My mother died last week. It rained. Then I went home."
    weighing = weighing_of(text)
    kinds = {one: {"emotion": 0.9} for one in sentences_of(text)}
    assert asked_of(weighing, kinds) == ["My mother died last week."]
    assert weighing.importance().passed
    nothing = {one: {"small_talk": 0.95} for one in sentences_of(text)}
    weighing = weighing_of(text)
    assert set(asked_of(weighing, nothing)) == set(sentences_of(text))
    assert not weighing.importance().passed


def test_no_heads_are_asked_where_something_else_decides() -> None:
    text = "The plumber costs 400."
    assert weighing_of(text, around=Circumstances(fact=True)).to_ask() is None
    assert weighing_of(text).to_ask() == text
    errand = weighing_of("Remind me to buy milk.")
    assert errand.to_ask() is None
    assert not errand.importance().passed


def test_so_many_sentences_of_a_text_are_asked_of() -> None:
    text = " ".join(f"The plumber of house {number} costs 400." for number in range(40))
    nothing = {one: {"fact": 0.9} for one in sentences_of(text)}
    assert len(asked_of(weighing_of(text), nothing)) == MOST_ASKED


@pytest.mark.parametrize("name", ["tables", "heads"])
def test_the_weights_are_shares_of_one(name: str) -> None:
    weights = getattr(params(), name).model_dump()
    assert set(weights) == {one.value for one in Signal}
    assert sum(weights.values()) == pytest.approx(1.0)
    assert min(weights.values()) > 0


@pytest.mark.parametrize(("score", "passed"), [(0.44, False), (0.4401, True), (0.43, False)])
def test_t1_what_stands_on_the_threshold_does_not_pass(score: float, passed: bool) -> None:
    side = Importance(
        speaker=Speaker.USER,
        score=score,
        base=score,
        signals={},
        overrides=(),
        threshold=THRESHOLD,
        factor=1.0,
        params="p",
    )
    assert side.passed is passed
    assert is_derived([side], Gate.ARCHIVE) is passed
    assert is_derived([side], Gate.OFF)


@pytest.mark.parametrize("text", ["I am an AI language model.", "אני מודל שפה גדול."])
def test_t2_an_assistant_is_no_person(text: str) -> None:
    assert scored_as(text, Speaker.ASSISTANT).overrides == ()
    assert Override.IDENTITY not in scored_as(text).overrides


@pytest.mark.parametrize("text", ["I am tired", "אני עייפה"])
def test_t3_a_mood_is_felt_and_no_identity(text: str) -> None:
    found = scored_as(text)
    assert found.signals["emotional"] > 0
    assert Override.IDENTITY not in found.overrides


@pytest.mark.parametrize(
    ("text", "override"),
    [
        ("I'm a nurse from Leeds.", Override.IDENTITY),
        ("אני מורה בגמלאות.", Override.IDENTITY),
        ("I want to become a pilot.", Override.GOAL),
        ("החלום שלי הוא לכתוב ספר.", Override.GOAL),
        ("Honesty matters most to me.", Override.GOAL),
        ("חשוב לי לעמוד במילה שלי.", Override.GOAL),
    ],
)
def test_an_override_makes_a_text_matter(text: str, override: Override) -> None:
    found = scored_as(text)
    assert override in found.overrides
    assert found.score >= 0.75
    assert override not in scored_as(text, Speaker.ASSISTANT).overrides


def test_an_assistant_counts_half_but_for_what_comes_again() -> None:
    text = "I felt so proud when my son won, we cried last week after he decided to compete."
    mine, its = scored_as(text), scored_as(text, Speaker.ASSISTANT)
    assert its.score == pytest.approx(mine.score * 0.5)
    again = scored_as("What is it?", Speaker.ASSISTANT, around=Circumstances(recurs=True))
    assert (again.score, again.passed, again.overrides) == (0.5, True, (Override.RECURRENCE,))


def test_names_that_are_known_make_a_short_text_dense() -> None:
    text = "Noa met Itay in Haifa."
    assert scored_as(text, around=Circumstances(names=2)).score == 0.75
    assert scored_as(text, around=Circumstances(names=1)).overrides == ()
    long = text + " The museum opens at nine and closes at five on each day of the week." * 3
    assert scored_as(long, around=Circumstances(names=2)).overrides == ()


def test_a_topic_of_the_test_switch_matters() -> None:
    assert scored_as("What is it?", around=Circumstances(tested=True)).score == 1.0


def heard(days: float, conversation: str | None = None, topic: str = "quantum") -> Mention:
    return Mention(topics=(topic,), at=NOW - timedelta(days=days), conversation_id=conversation)


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [
        ([], False),
        ([heard(1)], False),
        ([heard(1), heard(2)], True),
        ([heard(1), heard(1.01)], False),
        ([heard(1), heard(31)], False),
        ([heard(0, "a"), heard(0, "b")], True),
        ([heard(0, "a"), heard(0, "a")], False),
        ([heard(1, topic="other"), heard(2, topic="other")], False),
    ],
)
def test_a_topic_recurs_on_three_days_or_in_three_conversations(
    earlier: list[Mention], expected: bool
) -> None:
    assert recurs(heard(0, "c"), earlier) is expected


def test_topics_are_those_that_were_named_and_words_side_by_side() -> None:
    one = topics_of("What is quantum mechanics?", ["Science"])
    other = topics_of("Explain quantum mechanics to me again", [])
    assert set(one) & set(other)
    assert "science" in one
    assert topics_of("מה זה מכניקת הקוונטים?", []) == topics_of("תסביר מכניקת הקוונטים", [])
    assert topics_of("ok", []) == ()


def test_a_text_is_read_by_its_most_telling_sentence() -> None:
    text = "The museum opens at nine.\nMy mother died last week and I feel so alone! v1.2 is out."
    assert len(sentences_of(text)) == 3
    assert scored_as(text).base == scored_as(sentences_of(text)[1]).base


HEADS: list[tuple[str, Mapping[str, float], bool]] = [
    ("Everything feels heavy", {"emotion": 0.9}, True),
    ("Everything feels heavy", {"general": 0.95}, False),
    ("I need to print forty pages.", {"plan": 0.9}, False),
    ("Born and raised in Dublin", {"identity": 0.8}, True),
    ("My son is ill.", {"small_talk": 0.9}, False),
]


@pytest.mark.parametrize(("text", "kinds", "passes"), HEADS)
def test_the_heads_add_and_take_back(text: str, kinds: Mapping[str, float], passes: bool) -> None:
    assert scored_as(text, kinds=lambda _: kinds).passed is passes


def test_without_heads_nothing_of_them_is_named() -> None:
    assert scored_as("ok").params == params().params
    assert scored_as("ok", kinds=lambda _: {}).params == f"{params().params}+heads"


@pytest.mark.parametrize("text", ["", " ", "?", "🙂", "‏", "a" * 5_000])
def test_a_text_without_words_does_not_matter(text: str) -> None:
    assert not scored_as(text).passed
    assert read_sentence(text, words()).words <= 5_000
