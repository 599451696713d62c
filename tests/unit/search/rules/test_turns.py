"""Turns: neighbours, answers to questions, and who speaks."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.memory.item import MemoryItem, Source
from rayapp.memory.tiers import Tier
from rayapp.search.rules import turns
from rayapp.search.rules.candidates import Candidate, Candidates
from rayapp.search.rules.fusion import DenseRetriever
from rayapp.search.rules.ranking import rank
from rayapp.search.rules.recipes import Recipe, TurnShares
from rayapp.search.rules.turns import named_speaker, speaker_of
from tests.support.builders import an_item

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SHARES = TurnShares(neighbour=0.2, second=0.5, answer=2.0, speaker=0.3)
QUIET = TurnShares(neighbour=0.0, speaker=0.0)


def with_turns(items: Sequence[MemoryItem], relevance: Sequence[float], *asked: Any) -> list[float]:
    return turns.with_turns(items, np.array(relevance), *asked).tolist()


def close_turns(items: Sequence[MemoryItem]) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in turns.close_turns(items)), strict=True))


def turn(place: int, text: str = "a turn", **changes: object) -> MemoryItem:
    """The item at this place of one batch, all said at one time."""
    fields = {"tier": Tier.HISTORY, "created_at": NOW, "sequence": 1_000 + place, "text": text}
    return an_item(**{**fields, **changes})


def test_a_turn_takes_over_relevance_from_the_one_before_and_the_one_after() -> None:
    before, middle, after = with_turns([turn(1), turn(2), turn(3)], [0.5, 0.1, 0.0], "what", SHARES)
    assert middle == pytest.approx(0.1 + 0.2 * 0.5**2)
    assert after == pytest.approx(0.2 * 0.1**2 + 0.5 * 0.2 * 0.5**2)
    assert before == pytest.approx(0.5 + 0.2 * 0.1**2)


@pytest.mark.parametrize("asks", ["Where do you live?", "איפה אתה גר?"])
def test_an_answer_takes_over_more_from_the_turn_that_asks(asks: str) -> None:
    _, answer = with_turns([turn(1, asks), turn(2)], [0.5, 0.1], "", SHARES)
    assert answer == pytest.approx(0.1 + 0.2 * (1 + 2.0) * 0.5**2)


def test_a_question_takes_no_more_from_its_answer_than_from_any_turn() -> None:
    asks, _ = with_turns([turn(1, "Where?"), turn(2)], [0.1, 0.5], "", SHARES)
    assert asks == pytest.approx(0.1 + 0.2 * 0.5**2)


@pytest.mark.parametrize(
    "change",
    [
        {"created_at": NOW + timedelta(days=1)},
        {"user_id": "noa"},
        {"source": Source(conversation_id="other")},
        {"sequence": 1_900},
        {"tier": Tier.MEMORY_BANK},
        {"sequence": 0},
    ],
)
def test_what_is_not_of_one_conversation_gives_nothing(change: dict[str, object]) -> None:
    items = [turn(1), turn(2, **change)]
    assert with_turns(items, [0.5, 0.1], "", SHARES) == [0.5, 0.1]


def test_a_turn_in_the_other_script_gives_nothing() -> None:
    items = [turn(1, lang="en"), turn(2, lang="en"), turn(3, lang="he"), turn(4, lang="he")]
    found = with_turns(items, [0.5, 0.1, 0.1, 0.5], "", SHARES, "he")
    assert found[1] == pytest.approx(0.1 + 0.2 * 0.1**2 + 0.5 * 0.2 * 0.5**2)  # of the Hebrew ones
    assert found[2] == pytest.approx(0.1 + 0.2 * 0.5**2)
    assert with_turns(items, [0.5, 0.1, 0.1, 0.5], "", SHARES)[1] > found[1]


def test_a_live_chat_counts_turns_by_the_time_between_them() -> None:
    first = turn(0, sequence=5_000_000)
    said = {
        seconds: turn(
            0, sequence=5_000_000 + seconds * 1_000_000, created_at=NOW + timedelta(seconds=seconds)
        )
        for seconds in (20, 60, 61, 3_601)
    }
    apart = {seconds: close_turns([first, item]) for seconds, item in said.items()}
    assert apart == {20: [(0, 1, 1)], 60: [(0, 1, 1)], 61: [(0, 1, 2)], 3_601: []}


def test_a_turn_never_follows_itself_or_a_later_one() -> None:
    assert close_turns([turn(1), turn(1)]) == []
    assert close_turns([turn(2), turn(1)]) == []
    assert close_turns([turn(1), turn(2)]) == [(0, 1, 1)]


def test_conversations_held_at_once_do_not_hide_each_others_neighbours() -> None:
    mine, theirs = Source(conversation_id="mine"), Source(conversation_id="theirs")
    items = [
        turn(0, source=mine if n % 4 == 0 else theirs, sequence=1_000_000 * (n + 1))
        for n in range(9)
    ]
    items = [replace(i, created_at=NOW + timedelta(seconds=n)) for n, i in enumerate(items)]
    found = with_turns(items, [0.5, *[0.0] * 8], "", SHARES)
    assert found[4] == pytest.approx(0.2 * 0.5**2)
    assert found[1] == 0.0


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Dana: I moved to Haifa", "dana"),
        ("דנה: עברתי לחיפה", "דנה"),
        ("  Dana Levi: hello", "dana levi"),
        ("no label here", None),
        ("Meet at 10:30", None),
        ("http://example.com is down", None),
        ("Is it true? Dana: yes", None),
        ("", None),
    ],
)
def test_the_speaker_is_the_label_at_the_start(text: str, speaker: str | None) -> None:
    assert speaker_of(text) == speaker


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Where did Dana move?", "dana"),
        ("What is Dana's job?", "dana"),
        ("מה קרה לדנה בעבודה?", "דנה"),
        ("דנה עברה דירה?", "דנה"),
        ("Did Dana meet Gal?", None),
        ("Where is the office?", None),
    ],
)
def test_the_question_names_one_speaker_or_none(question: str, named: str | None) -> None:
    assert named_speaker(question, {"dana", "gal", "דנה", "נועה"}) == named


def test_what_the_named_speaker_says_is_nearer() -> None:
    items = [turn(10, "Dana: the blue one"), turn(20, "Gal: the blue one")]
    dana, gal = with_turns(items, [0.5, 0.5], "Which one does Dana like?", SHARES)
    assert (dana, gal) == (pytest.approx(0.5 * 1.3), 0.5)


def test_a_name_tells_nothing_where_only_one_speaks() -> None:
    items = [turn(10, "Dana: the blue one"), turn(20, "a note")]
    assert with_turns(items, [0.5, 0.5], "Which one does Dana like?", SHARES) == [0.5, 0.5]


relevances = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(relevances)
def test_relevance_stays_in_bounds_and_switched_off_changes_nothing(values: list[float]) -> None:
    items = [turn(n, "Dana: why?" if n % 2 else "Gal: so") for n in range(len(values))]
    found = with_turns(items, values, "what did Dana say", SHARES)
    assert all(0.0 <= value <= 1.0 for value in found)
    assert with_turns(items, values, "what did Dana say", QUIET) == values


@given(relevances)
def test_items_without_turns_keep_their_relevance(values: list[float]) -> None:
    items = [turn(n, "Dana: why?", tier=Tier.BOOKS) for n in range(len(values))]
    assert with_turns(items, values, "what did Dana say", SHARES) == values


@given(relevances, st.randoms())
def test_the_order_in_which_candidates_come_does_not_count(values: list[float], random) -> None:  # type: ignore[no-untyped-def]
    items = [turn(n, "why?" if n % 3 == 0 else "so") for n in range(len(values))]
    found = dict(
        zip([i.memory_id for i in items], with_turns(items, values, "", SHARES), strict=True)
    )
    mixed = list(zip(items, values, strict=True))
    random.shuffle(mixed)
    again = with_turns([i for i, _ in mixed], [v for _, v in mixed], "", SHARES)
    for (item, _), value in zip(mixed, again, strict=True):
        assert value == pytest.approx(found[item.memory_id])


def test_rank_finds_the_answer_behind_the_question_that_shares_its_words() -> None:
    """The answer has few of the words; beside it stands the turn that has them all."""
    asks = turn(1, "Gal: where did you go on holiday?", memory_id="asks")
    answer = turn(2, "Dana: the Alps, it was lovely", memory_id="answer")
    other = turn(9, "Gal: a holiday is lovely", memory_id="other")
    candidates = [
        Candidate(item=asks, sparse=9.0, sparse_rank=1),
        Candidate(item=other, sparse=4.0, sparse_rank=2),
        Candidate(item=answer, sparse=1.0, sparse_rank=3),
    ]
    recipe = Recipe(name="test")

    def order(recipe: Recipe) -> list[str]:
        ranked = rank(
            Candidates.of(candidates),
            query_lang="en",
            recipe=recipe,
            retriever=DenseRetriever(used=False),
            question="Where did Dana go on holiday?",
        )
        return [one.item.memory_id for one in ranked]

    assert order(recipe) == ["asks", "answer", "other"]
    assert order(recipe.model_copy(update={"turns": QUIET})) == ["asks", "other", "answer"]


def test_only_the_beginning_of_a_text_is_looked_at_for_a_speaker() -> None:
    assert speaker_of("\n  Dana: hi") == "dana"
    assert speaker_of("x" * 40 + ": hi") == "x" * 40
    assert speaker_of("x" * 41 + ": hi") is None
