"""What is said again after it had ended: two periods, with nothing between them."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.errors import Conflict
from rayapp.memory.item import MemoryItem
from rayapp.memory.requests import MemoryEdit, NewMemory, StoreResult
from rayapp.memory.rules.filtering import matches
from rayapp.memory.rules.lifecycle import as_period, earlier_period
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.harness import Harness

ME, READ = WriteScope("dana"), ReadScope("dana")
SAID = ("Omri runs the north depot", "עומרי מנהל את המחסן הצפוני")
JANUARY, MARCH, APRIL, JUNE, SEPTEMBER = (
    datetime(2025, month, 1, tzinfo=UTC) for month in (1, 3, 4, 6, 9)
)
FEBRUARY = datetime(2025, 2, 1, tzinfo=UTC)
in_both = pytest.mark.parametrize("text", SAID)


def note(text: str, memory_id: str, **fields: Any) -> NewMemory:
    return NewMemory(text=text, memory_id=memory_id, tier=Tier.HISTORY, **fields)


async def store(service: Harness, new: NewMemory) -> StoreResult:
    return await service.services.memories.store(ME, new)


async def found(service: Harness, text: str, at: datetime | None = None) -> list[str]:
    answer = await service.search(text, as_of=at)
    return [hit.item.memory_id for hit in answer.hits]


async def periods(service: Harness, text: str) -> dict[str, list[str]]:
    now = service.clock.now()
    days = {"before": datetime(2024, 6, 1, tzinfo=UTC), "in": FEBRUARY, "between": JUNE}
    named = {name: await found(service, text, at) for name, at in days.items()}
    return {**named, "now": await found(service, text), "after": await found(service, text, now)}


TWO = {"before": [], "in": ["first"], "between": [], "now": ["again"], "after": ["again"]}


@in_both
async def test_a_fact_that_ended_and_is_said_again_is_two_periods(
    service: Harness, text: str
) -> None:
    await store(service, note(text, "first", valid_from=JANUARY, valid_to=MARCH))
    assert (await store(service, note(text, "again", created_at=SEPTEMBER))).status == "stored"
    assert await periods(service, text) == TWO
    third = await store(service, note(text, "third"))
    assert (third.memory_id, third.status) == ("again", "duplicate")
    old = await store(service, note(text, "old", valid_from=JANUARY, valid_to=MARCH))
    assert await periods(service, text) == TWO | {"in": [old.memory_id]}


@in_both
@pytest.mark.parametrize("order", list(itertools.permutations(range(2))))
async def test_a_batch_keeps_both_periods_in_any_order(
    service: Harness, text: str, order: tuple[int, int]
) -> None:
    new = (
        note(text, "first", valid_from=JANUARY, valid_to=MARCH),
        note(text, "again", valid_from=SEPTEMBER),
    )
    answers = await service.services.memories.store_batch(ME, [new[at] for at in order])
    assert [one.status for one in answers] == ["stored", "stored"]
    assert await periods(service, text) == TWO


@in_both
async def test_what_was_replaced_and_is_true_again_leaves_the_time_between(
    service: Harness, text: str
) -> None:
    await store(service, note(text, "first", valid_from=JANUARY))
    await store(service, note(f"{text} 2", "other", valid_from=MARCH, supersedes="first"))
    await store(service, note(text, "again", valid_from=SEPTEMBER, supersedes="other"))
    assert await found(service, text, FEBRUARY) == ["first"]
    assert await found(service, text, JUNE) == ["other"]
    assert await found(service, text) == ["again"]
    with pytest.raises(Conflict):
        await service.services.memories.restore(ME, "first")


async def test_the_end_of_a_past_period_may_be_put_right(service: Harness) -> None:
    text = SAID[0]
    await store(service, note(text, "first", valid_from=JANUARY, valid_to=MARCH))
    await store(service, note(text, "again", created_at=SEPTEMBER))
    await service.services.memories.edit(ME, "first", MemoryEdit(valid_to=APRIL))
    assert await found(service, text, MARCH + timedelta(days=3)) == ["first"]
    assert await periods(service, text) == TWO


DAYS = st.integers(0, 40).map(lambda day: JANUARY + timedelta(days=day))


@given(DAYS, DAYS, DAYS, st.none() | DAYS, DAYS)
def test_a_day_is_in_one_of_two_periods_exactly_when_it_was_said(
    begins: datetime, ends: datetime, again: datetime, until: datetime | None, day: datetime
) -> None:
    first = an_item(valid_from=min(begins, ends), valid_to=max(begins, ends))
    second = an_item(memory_id="again", valid_from=again, valid_to=until and max(again, until))
    apart = earlier_period(first, second)
    shown = {one.memory_id: _holds(one, day) for one in (first, second)}
    if apart is None:
        return
    beside = [as_period(one, one is apart) for one in (first, second)]
    assert {one.memory_id: _holds(one, day) for one in beside} == shown
    assert sum(shown.values()) <= 1
    assert beside[0].dedup_scope != beside[1].dedup_scope
    assert earlier_period(*beside[::-1]) is beside[[first, second].index(apart)]


def _holds(item: MemoryItem, day: datetime) -> bool:
    return matches(item, ItemFilter(valid_at=day))
