"""Who asks for the latest state of something gets the newest that speaks of it among the first."""

from datetime import timedelta

import pytest

from rayapp.memory.tiers import Tier
from rayapp.search.requests import Floor
from tests.support.harness import Harness
from tests.unit.search.latest.stage import (
    PLAIN,
    START,
    BundledReranker,
    LatestSet,
    alone,
    latest_sets,
    told,
)

SETS = {f"{one.name}-{one.lang}": one for one in latest_sets()}
PLACES = 3
# Questions of a set that one share for all sets does not answer (`python -m tests.bench.latest`).
MISSED = {"version": 4}


@pytest.mark.parametrize("name", sorted(SETS))
async def test_the_answer_is_among_the_first(name: str) -> None:
    one = SETS[name]
    missed = await missed_of(one)
    assert len(missed) <= MISSED.get(one.name, 0), missed


@pytest.mark.parametrize("name", sorted(name for name, one in SETS.items() if one.name != PLAIN))
async def test_so_it_is_where_all_memories_are_of_one_thing(name: str) -> None:
    for one in alone(SETS[name]):
        assert await missed_of(one) == []


async def missed_of(one: LatestSet) -> list[str]:
    world = await told(one)
    return [
        question
        for question, answer in one.asked
        if answer not in (await world.found(question))[:PLACES]
    ]


@pytest.mark.parametrize("name", sorted(name for name, one in SETS.items() if one.name == PLAIN))
async def test_a_last_that_is_no_state_changes_no_order(name: str) -> None:
    one = SETS[name]
    world = await told(one)
    for question, _ in one.asked:
        shown = await world.found(question)
        assert shown == await world.found(question, recipe="default-without-latest"), question


@pytest.mark.parametrize(
    ("report", "last", "question"),
    [
        (
            "Status of the Falcon move: step {n} of 30, green",
            "Falcon is over; only the archive is left",
            "What is the latest status of the Falcon move?",
        ),
        (
            "סטטוס המעבר של פלקון: שלב {n} מתוך 30, ירוק",
            "פלקון נגמר; נשאר רק הארכיון",
            "מה הסטטוס האחרון של המעבר של פלקון?",
        ),
    ],
)
async def test_the_last_word_of_many_reports_reaches_lists_and_contexts(
    report: str, last: str, question: str
) -> None:
    world = await Harness.open()
    world.reranker.inner = BundledReranker()
    for number in range(1, 26):
        at = START + timedelta(days=3.2 * number)
        text = report.format(n=number)
        await world.store(text, memory_id=f"m{number}", tier=Tier.HISTORY, created_at=at)
    await world.store(last, memory_id="last", tier=Tier.HISTORY)
    await world.indexed()
    assert "last" in (await world.found(question))[:PLACES]
    floor = Floor(share=0.53, rise=0.225, expected=10, relevance=0.0)
    assert "last" in (await world.found(question, floor=floor))[:PLACES]
    ordered = await world.found(question, sort_by="relevance")
    assert ordered == await world.found(
        question, sort_by="relevance", recipe="default-without-latest"
    )
