"""Near-duplicates in the whole service on fakes: what merges, and what the ids say afterwards."""

from datetime import timedelta
from typing import Any

import pytest

from rayapp.container.bootstrap import runtime_of
from rayapp.core.errors import Conflict, IndexDown, NotFound, VersionConflict
from rayapp.learning.dedup import DedupService
from rayapp.learning.records import OutcomeRequest
from rayapp.memory.item import ChangeType, MemoryItem, Outcome, Status, point_id_of
from rayapp.memory.requests import BulkResult, ItemQuery, MemoryEdit, NewMemory
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.harness import Harness

ME = WriteScope("dana")
READ = ReadScope("dana", include_shared=False)
FACT: dict[str, Any] = {
    "tier": Tier.MEMORY_BANK,
    "tags": ("fact",),
    "importance": 0.8,
    "confidence": 0.8,
}
# The bundled model's cosine of two texts that differ in small words is above this.
SIMILARITY = 0.9
TWINS = ("The user prefers dark mode", "User prefers dark mode.")
HEBREW_TWINS = ("המשתמש מעדיף מצב כהה", "המשתמש מעדיף את מצב כהה")


def service_of(h: Harness, similarity: float = SIMILARITY) -> DedupService:
    runtime = runtime_of(h.settings, h.metrics, h.clock)
    return DedupService(h.lifecycle, h.items, h.index, similarity=similarity, runtime=runtime)


@pytest.fixture
async def harness() -> Harness:
    return await Harness.open()


async def kept(h: Harness, *texts: str, user: str = "dana", **fields: Any) -> list[MemoryItem]:
    """Facts stored in this order, a second apart, and indexed."""
    ids = []
    for text in texts:
        ids.append(await h.store(text, user=user, **(FACT | fields)))
        h.clock.advance(1)
    await h.drain()
    return [await raw(h, one, user) for one in ids]


async def raw(h: Harness, memory_id: str, user: str = "dana") -> MemoryItem:
    """The row itself: `get` would answer with the winner of a merged id."""
    scope = ReadScope(user, include_shared=False)
    (found,) = await h.items.by_points(scope, [point_id_of(user, memory_id)])
    item: MemoryItem = found
    return item


async def merged_pair(h: Harness) -> tuple[str, str]:
    """(winner, loser)"""
    loser, winner = await kept(h, *TWINS)
    assert await service_of(h).merge(winner)
    return winner.memory_id, loser.memory_id


@pytest.mark.parametrize("texts", [TWINS, HEBREW_TWINS])
@pytest.mark.parametrize("tier", [Tier.MEMORY_BANK, Tier.PATTERNS])
async def test_the_loser_becomes_a_version_of_the_winner(
    harness: Harness, texts: tuple[str, str], tier: Tier
) -> None:
    old, new = await kept(harness, *texts, tier=tier)
    assert await service_of(harness).merge(old)
    winner = await harness.services.memories.get(READ, old.memory_id)
    assert winner.memory_id == new.memory_id  # equal quality and Wilson: the newer stays
    assert (winner.text, winner.quality.mentioned_count) == (texts[1], 2)
    loser = await raw(harness, old.memory_id)
    assert (loser.status, loser.merged_into) == (Status.ARCHIVED, new.memory_id)
    rows = await harness.items.versions(READ, old.memory_id, 5)
    assert [(row.text, row.change_type) for row in rows] == [(texts[0], ChangeType.MERGE)]
    (event,) = await harness.events.recent(READ, "merged", 5)
    assert (event.memory_id, event.data["into"]) == (old.memory_id, new.memory_id)
    await harness.drain()
    assert await harness.found(texts[1]) == [new.memory_id]


async def test_the_better_fact_stays_and_a_pin_of_either_stays(harness: Harness) -> None:
    (good,) = await kept(harness, TWINS[0], importance=0.9)
    (pinned,) = await kept(harness, TWINS[1], importance=0.5, always_inject=True)
    assert await service_of(harness).merge(pinned)
    winner = await harness.services.memories.get(READ, pinned.memory_id)
    assert (winner.memory_id, winner.always_inject) == (good.memory_id, True)


async def test_merging_again_changes_nothing(harness: Harness) -> None:
    winner, _ = await merged_pair(harness)
    await harness.drain()
    before = await raw(harness, winner)
    assert not await service_of(harness).merge(before)
    assert await raw(harness, winner) == before


async def test_all_twins_become_one_and_every_id_leads_to_it(harness: Harness) -> None:
    texts = ("Dana likes tea", "Dana likes tea.", "Dana likes the tea", "dana likes tea!")
    items = await kept(harness, *texts)
    assert await service_of(harness).merge(items[0])
    for item in items:
        winner = await harness.services.memories.get(READ, item.memory_id)
        assert winner.memory_id == items[3].memory_id
    assert winner.quality.mentioned_count == 4
    losers = [await raw(harness, item.memory_id) for item in items[:3]]
    assert {loser.merged_into for loser in losers} == {items[3].memory_id}


async def test_neighbours_bound_the_work(harness: Harness) -> None:
    h = await Harness.open(dedup={"neighbours": 1})
    items = await kept(h, "Dana likes tea", "Dana likes tea.", "Dana likes the tea")
    assert await service_of(h).merge(items[0])
    active = [await raw(h, item.memory_id) for item in items]
    assert [item.status for item in active].count(Status.ACTIVE) == 2


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("The rent is 4500", "The rent is 4700"),
        ("Dana can drive a truck", "Dana can't drive a truck"),
        ("Dana owes Noa money", "Noa owes Dana money"),
        ("שכר הדירה הוא 4500", "שכר הדירה הוא 4700"),
        ("דנה יודעת לנהוג", "דנה לא יודעת לנהוג"),
        ("דנה חייבת לי כסף", "נועה חייבת לי כסף"),
    ],
)
async def test_near_misses_stay_apart_at_any_cosine(harness: Harness, a: str, b: str) -> None:
    one, other = await kept(harness, a, b)
    assert not await service_of(harness, similarity=0.1).merge(one)
    assert not await service_of(harness, similarity=0.1).merge(other)


async def test_off_asks_nothing_of_anyone(harness: Harness) -> None:
    item, _ = await kept(harness, *TWINS)
    harness.index.calls.clear()
    off = service_of(harness, similarity=0.0)
    assert not off.enabled
    assert not await off.merge(item)
    assert harness.index.calls == []


async def test_users_and_tiers_never_meet(harness: Harness) -> None:
    (mine,) = await kept(harness, TWINS[0])
    await kept(harness, TWINS[1], user="omer")
    await kept(harness, TWINS[1], tier=Tier.PATTERNS)
    await kept(harness, TWINS[1], tier=Tier.HISTORY)
    await kept(harness, f"{TWINS[1]}.", subject_id="noa")
    assert not await service_of(harness).merge(mine)


@pytest.mark.parametrize("gone", ["archived", "deleted", "edited"])
async def test_what_the_truth_has_changed_is_no_twin(harness: Harness, gone: str) -> None:
    """The point is still in the index with its old vector: only the truth can say so."""
    item, other = await kept(harness, *TWINS)
    memories = harness.services.memories
    if gone == "archived":
        await memories.archive(ME, other.memory_id)
    elif gone == "deleted":
        await memories.delete(ME, other.memory_id)
    else:
        await memories.edit(ME, other.memory_id, MemoryEdit(text="User prefers the dark mode"))
    assert await harness.index.retrieve([other.point_id])
    assert not await service_of(harness).merge(item)


async def test_an_item_whose_own_vector_is_old_waits(harness: Harness) -> None:
    item, _ = await kept(harness, *TWINS)
    await harness.services.memories.edit(ME, item.memory_id, MemoryEdit(text="User: dark mode"))
    assert not await service_of(harness).merge(item)


async def test_an_item_without_a_point_merges_nothing(harness: Harness) -> None:
    (item,) = await kept(harness, TWINS[0])
    await harness.index.delete([item.point_id])
    assert not await service_of(harness).merge(item)


async def test_an_index_that_is_down_is_the_callers_to_wait_for(harness: Harness) -> None:
    item, _ = await kept(harness, *TWINS)
    harness.index.error = IndexDown("away")
    with pytest.raises(IndexDown):
        await service_of(harness).merge(item)


async def test_a_change_in_between_is_read_again(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    item, other = await kept(harness, *TWINS)
    transition = harness.lifecycle.inner.transition

    async def edited_first(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        edit = MemoryEdit(tags=("new",))
        await harness.services.memories.edit(ME, other.memory_id, edit)
        return await transition(*args, **kwargs)

    monkeypatch.setattr(harness.lifecycle.inner, "transition", edited_first)
    assert await service_of(harness).merge(item)
    winner = await harness.services.memories.get(READ, item.memory_id)
    assert set(winner.tags) == {"new", "fact"}


@pytest.mark.parametrize("error", [VersionConflict("again"), NotFound("gone")])
async def test_what_keeps_changing_is_left_for_later(harness: Harness, error: Exception) -> None:
    item, other = await kept(harness, *TWINS)
    harness.lifecycle.error = error
    assert not await service_of(harness).merge(item)
    assert (await raw(harness, other.memory_id)).status is Status.ACTIVE


async def test_the_outbox_merges_what_was_stored() -> None:
    h = await Harness.open(dedup={"static_similarity": SIMILARITY})
    old, new = await kept(h, *HEBREW_TWINS)
    h.clock.advance(5)
    await h.settle()
    winner = await h.services.memories.get(READ, old.memory_id)
    assert winner.memory_id == new.memory_id


# --- what a merged id means to the other services


async def test_reads_edits_and_outcomes_of_a_merged_id_reach_the_winner(harness: Harness) -> None:
    winner, loser = await merged_pair(harness)
    memories = harness.services.memories
    edited = await memories.edit(ME, loser, MemoryEdit(tags=("theme",)))
    assert (edited.memory_id, edited.tags) == (winner, ("theme",))
    request = OutcomeRequest(outcome=Outcome.WORKED, memory_ids=(loser,))
    answer = await harness.services.outcomes.record(ME, request)
    assert [applied.memory_id for applied in answer.updated] == [winner]
    assert (await memories.get(READ, loser)).stats.uses == 1
    assert [row.text for row in await memories.versions(READ, loser)][-1] == TWINS[1]


@pytest.mark.parametrize("wish", ["restore", "archive", "delete"])
async def test_what_would_take_the_winner_away_names_it(harness: Harness, wish: str) -> None:
    winner, loser = await merged_pair(harness)
    with pytest.raises(Conflict, match="became part of another one") as caught:
        await getattr(harness.services.memories, wish)(ME, loser)
    assert (caught.value.code, caught.value.details) == ("merged", {"memory_id": winner})
    assert (await raw(harness, winner)).status is Status.ACTIVE
    assert (await raw(harness, loser)).status is Status.ARCHIVED


async def test_bulk_actions_pass_over_merged_ids(harness: Harness) -> None:
    winner, loser = await merged_pair(harness)
    bank = harness.services.bank
    merged = BulkResult(loser, "merged")
    assert await bank.archive_many(ME, [loser], "old") == [merged]
    assert await bank.delete_many(ME, [loser]) == [merged]
    assert await bank.delete_many(ME, [loser, winner]) == [merged, BulkResult(winner, "deleted")]


async def test_deleting_the_winner_erases_what_was_merged_into_it(harness: Harness) -> None:
    winner, loser = await merged_pair(harness)
    memories = harness.services.memories
    await memories.delete(ME, winner)
    where = ItemFilter(statuses=(Status.ACTIVE, Status.ARCHIVED))
    assert (await memories.page(READ, where, ItemQuery())).items == ()
    assert await harness.items.versions(READ, loser, 5) == []
    with pytest.raises(NotFound):
        await memories.get(READ, loser)
    again = await memories.store(ME, NewMemory(text=TWINS[0], memory_id=loser, **FACT))
    assert (again.status, again.memory_id) == ("stored", loser)


async def test_storing_a_merged_id_again_finds_the_winner(harness: Harness) -> None:
    winner, loser = await merged_pair(harness)
    new = NewMemory(text=TWINS[0], memory_id=loser, **FACT)
    for result in (
        await harness.services.memories.store(ME, new),
        *await harness.services.memories.store_batch(ME, [new]),
    ):
        assert (result.status, result.memory_id) == ("duplicate", winner)


async def test_saying_the_text_of_the_loser_again_merges_again(harness: Harness) -> None:
    winner, _ = await merged_pair(harness)
    await harness.drain()
    (again,) = await kept(harness, TWINS[0])
    assert await service_of(harness).merge(again)
    newest = await harness.services.memories.get(READ, winner)
    assert newest.memory_id == again.memory_id
    assert newest.quality.mentioned_count == 3
    assert newest.stored_at - again.stored_at == timedelta(0)
