"""Store, duplicates, write guard, capacity, edits: what the truth ends up holding."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from rayapp.core.errors import (
    DuplicateMemory,
    Forbidden,
    InvalidInput,
    NotFound,
    TooLarge,
    VersionConflict,
)
from rayapp.memory.item import ChangeType, Status
from rayapp.memory.requests import BulkResult, ItemQuery, MemoryEdit, NewMemory, StoreResult
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.harness import Harness

ME = WriteScope("dana")
READ = ReadScope("dana")
FACT: dict[str, Any] = {"tags": ("fact",), "importance": 0.9, "confidence": 0.9}


async def test_stored_items_are_pending_with_the_lifetime_of_their_tier(service: Harness) -> None:
    one = await service.store("tea at five", tier=Tier.WORKING)
    item = await service.services.memories.get(READ, one)
    assert item.index.sync_state.value == "pending"
    assert item.expires_at is not None
    assert (item.expires_at - item.stored_at).total_seconds() == 24 * 3600


@pytest.mark.parametrize(
    ("text", "other"), [("Tea at five", "tea  at FIVE"), ("שלום  לכולם", "שלום לכולם ")]
)
async def test_equal_text_is_a_duplicate_and_counts_a_mention(
    service: Harness, text: str, other: str
) -> None:
    first = await service.store(text)
    again = await service.services.memories.store(ME, NewMemory(text=other))
    assert (again.status, again.memory_id) == ("duplicate", first)
    item = await service.services.memories.get(READ, first)
    assert item.quality.mentioned_count == 2


async def test_same_id_and_text_is_a_duplicate_another_text_a_conflict(service: Harness) -> None:
    await service.store("one", memory_id="m")
    again = await service.services.memories.store(ME, NewMemory(text="one", memory_id="m"))
    assert again.status == "duplicate"
    with pytest.raises(DuplicateMemory, match="another text") as caught:
        await service.store("two", memory_id="m")
    assert caught.value.details == {"memory_id": "m"}


async def test_archived_text_may_be_stored_again(service: Harness) -> None:
    first = await service.store("tea at five")
    await service.services.memories.archive(ME, first)
    second = await service.store("tea at five")
    assert second != first
    with pytest.raises(DuplicateMemory):
        await service.services.memories.restore(ME, first)


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"text": "   "}, InvalidInput, "empty"),
        ({"text": "x" * 100_001}, TooLarge, "at most 100000"),
        ({"text": "bell \x07"}, InvalidInput, "remove it"),
        ({"text": "x", "tags": ("",)}, InvalidInput, "tag"),
        ({"text": "x", "importance": 1.5}, InvalidInput, "importance"),
        ({"text": "x", "memory_id": "a]b"}, InvalidInput, "memory_id"),
        ({"text": "x", "tier": Tier.DATAGOV_SCHEMA}, InvalidInput, "DataGov"),
        ({"text": "x", "always_inject": True}, InvalidInput, "memory_bank"),
        ({"text": "x", "tier": Tier.MEMORY_BANK}, InvalidInput, "tag"),
        ({"text": "x", "tier": Tier.MEMORY_BANK, "tags": ("t",)}, InvalidInput, "importance"),
        ({"text": "x" * 5_001, "tier": Tier.MEMORY_BANK, **FACT}, TooLarge, "at most 5000"),
        (
            {"text": "User: hi\nAssistant: hello", "tier": Tier.MEMORY_BANK, **FACT},
            InvalidInput,
            "whole exchanges",
        ),
    ],
)
async def test_bad_input_is_refused_with_a_sentence_and_stores_nothing(
    service: Harness, fields: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await service.services.memories.store(ME, NewMemory(**fields))
    assert (await service.services.memories.page(READ, ItemFilter(), ItemQuery())).items == ()


@pytest.mark.parametrize("user", ["system", "a b", ""])
async def test_nobody_writes_for_the_shared_or_a_malformed_user(
    service: Harness, user: str
) -> None:
    with pytest.raises((Forbidden, InvalidInput)):
        await service.services.memories.store(WriteScope(user), NewMemory(text="x"))


async def test_a_batch_keeps_its_order_and_an_edit_its_place(service: Harness) -> None:
    """What stood side by side differs by one; what was stored before comes before."""
    await service.store("earlier", memory_id="before")
    service.clock.advance(0.5)
    await service.services.memories.store_batch(
        ME, [NewMemory(text=name, memory_id=name) for name in ("a", "b", "c")]
    )
    await service.services.memories.edit(ME, "b", MemoryEdit(text="changed"))
    found = {
        name: (await service.services.memories.get(READ, name)).sequence
        for name in ("before", "a", "b", "c")
    }
    assert (found["b"] - found["a"], found["c"] - found["b"]) == (1, 1)
    assert found["a"] - found["before"] == 500_000


async def test_a_bad_item_of_a_batch_rejects_itself_only(service: Harness) -> None:
    rejected = StoreResult(memory_id=None, status="rejected", code="shape", error="no text")
    results = await service.services.memories.store_batch(
        ME,
        [
            NewMemory(text="one", memory_id="a"),
            rejected,
            NewMemory(text="", memory_id="b"),
            NewMemory(text="one", memory_id="c"),
            NewMemory(text="other", memory_id="a"),
            NewMemory(text="two", memory_id="d"),
        ],
    )
    assert [r.status for r in results] == [
        "stored",
        "rejected",
        "rejected",
        "duplicate",
        "rejected",
        "stored",
    ]
    assert results[3].memory_id == "a"
    assert results[2].code == "empty_text"


async def test_capacity_archives_the_lowest(service: Harness) -> None:
    service = await Harness.open(memory_bank={"capacity": 2})
    low = {"tags": ("f",), "importance": 0.1, "confidence": 0.1}
    await service.store("minor fact", memory_id="low", tier=Tier.MEMORY_BANK, **low)
    await service.store("fact one", memory_id="one", tier=Tier.MEMORY_BANK, **FACT)
    result = await service.services.memories.store(
        ME, NewMemory(text="fact two", memory_id="two", tier=Tier.MEMORY_BANK, **FACT)
    )
    assert result.archived == ("low",)
    item = await service.services.memories.get(READ, "low")
    assert (item.status, item.archived_reason) == (Status.ARCHIVED, "capacity")


async def test_an_edit_keeps_the_id_and_the_old_text_in_versions(service: Harness) -> None:
    one = await service.store("the code is 1")
    edit = MemoryEdit(text="the code is 2", reason="changed")
    item = await service.services.memories.edit(ME, one, edit)
    assert (item.memory_id, item.version, item.text) == (one, 2, "the code is 2")
    rows = await service.services.memories.versions(READ, one)
    assert [(r.version, r.text, r.change_type) for r in rows] == [
        (1, "the code is 1", ChangeType.UPDATE)
    ]


async def test_a_stale_version_is_refused(service: Harness) -> None:
    one = await service.store("v1")
    await service.services.memories.edit(ME, one, MemoryEdit(text="v2"))
    with pytest.raises(VersionConflict, match="version 2, not 1"):
        await service.services.memories.edit(ME, one, MemoryEdit(text="v3", expected_version=1))


async def test_an_edit_without_change_writes_nothing(service: Harness) -> None:
    one = await service.store("same", tags=("a",))
    item = await service.services.memories.edit(ME, one, MemoryEdit(text="same", tags=("a",)))
    assert item.version == 1


async def test_concurrent_edits_all_land(service: Harness) -> None:
    one = await service.store("base")
    edits = [service.services.memories.edit(ME, one, MemoryEdit(tags=(f"t{n}",))) for n in range(4)]
    await asyncio.gather(*edits)
    assert (await service.services.memories.get(READ, one)).version == 5


async def test_other_users_cannot_touch_an_item(service: Harness) -> None:
    one = await service.store("mine")
    other = WriteScope("omer")
    memories = service.services.memories
    for call in (
        memories.edit(other, one, MemoryEdit(text="stolen")),
        memories.archive(other, one),
        memories.restore(other, one),
        memories.delete(other, one),
    ):
        with pytest.raises(NotFound):
            await call


async def test_bulk_archive_and_delete_report_what_they_did(service: Harness) -> None:
    for name in ("a", "b"):
        await service.store(f"fact {name}", memory_id=name, tier=Tier.MEMORY_BANK, **FACT)
    bank = service.services.bank
    assert await bank.archive_many(ME, ["a", "a", "nope"], "old") == [
        BulkResult("a", "archived"),
        BulkResult("nope", "not_found"),
    ]
    assert await bank.archive_many(ME, ["a"], "old") == [BulkResult("a", "already_archived")]
    stats = await bank.stats(READ)
    assert (stats.total, stats.active, stats.archived, stats.tags) == (2, 1, 1, ("fact",))
    other_tier = await service.store("not a fact", tier=Tier.HISTORY)
    assert await bank.delete_many(ME, ["a", "nope", other_tier]) == [
        BulkResult("a", "deleted"),
        BulkResult("nope", "not_found"),
        BulkResult(other_tier, "deleted"),
    ]


async def test_growth_fills_gaps(service: Harness) -> None:
    await service.store("day one")
    service.clock.advance(2 * 86_400)
    await service.store("day three")
    rows = await service.services.statistics.growth(READ, 4)
    assert [row.total for row in rows] == [0, 1, 1, 2]
    assert sum(sum(row.by_source.values()) for row in rows) == 2


async def test_an_edit_cannot_bypass_the_write_guard(service: Harness) -> None:
    one = await service.store("a fact", tier=Tier.MEMORY_BANK, **FACT)
    edit = service.services.memories.edit
    for change in (MemoryEdit(tags=()), MemoryEdit(text="User: hi\nAssistant: hello")):
        with pytest.raises(InvalidInput):
            await edit(ME, one, change)
    assert (await service.services.memories.get(READ, one)).version == 1


async def test_restoring_keeps_the_capacity(service: Harness) -> None:
    service = await Harness.open(memory_bank={"capacity": 1})
    await service.store("fact a", memory_id="a", tier=Tier.MEMORY_BANK, **FACT)
    await service.store("fact b", memory_id="b", tier=Tier.MEMORY_BANK, **FACT)
    await service.services.memories.restore(ME, "a")
    stats = await service.services.bank.stats(READ)
    assert (stats.active, stats.archived) == (1, 1)


async def test_storing_an_archived_memory_again_says_so(service: Harness) -> None:
    await service.store("one", memory_id="m")
    await service.services.memories.archive(ME, "m")
    with pytest.raises(DuplicateMemory, match="archived; restore it"):
        await service.store("one", memory_id="m")


async def test_saying_an_expired_memory_again_renews_it(service: Harness) -> None:
    one = await service.store("the gate code is 7")
    await service.drain()
    service.clock.advance(25 * 3600)
    assert await service.found("gate code") == []
    again = await service.services.memories.store(ME, NewMemory(text="the gate code is 7"))
    assert (again.status, again.memory_id) == ("duplicate", one)
    assert await service.found("gate code") == [one]


async def test_an_edit_cannot_turn_the_validity_around(service: Harness) -> None:
    now = service.clock.now()
    one = await service.store("lives in Haifa", tier=Tier.HISTORY, valid_from=now)
    early = MemoryEdit(valid_to=now - timedelta(days=1))
    with pytest.raises(InvalidInput, match="valid_from"):
        await service.services.memories.edit(ME, one, early)


async def test_a_conflict_of_one_item_does_not_lose_the_answer_of_a_batch(
    service: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.store("the gate code is 7")
    service.clock.advance(25 * 3600)

    async def changing(*_: object, **__: object) -> None:
        raise VersionConflict("It keeps changing.")

    monkeypatch.setattr(service.items.inner, "replace", changing)
    batch = [NewMemory(text="the gate code is 7"), NewMemory(text="fine")]
    results = await service.services.memories.store_batch(ME, batch)
    assert [(r.status, r.code) for r in results] == [("rejected", "conflict"), ("stored", None)]


async def test_what_had_ended_is_current_when_it_is_said_again(service: Harness) -> None:
    await service.store("the user is vegan", memory_id="a", tier=Tier.MEMORY_BANK, **FACT)
    await service.services.memories.edit(ME, "a", MemoryEdit(valid_to=service.clock.now()))
    service.clock.advance(86_400)
    await service.drain()
    assert await service.found("vegan") == []
    again = NewMemory(text="the user is vegan", tier=Tier.MEMORY_BANK, **FACT)
    stored = await service.services.memories.store(ME, again)
    assert stored.status == "stored"
    await service.drain()
    assert await service.found("vegan") == [stored.memory_id]


async def test_the_past_is_said_again_as_the_past(service: Harness) -> None:
    ended = service.clock.now() - timedelta(days=300)
    past = NewMemory(text="works at Intel", tier=Tier.MEMORY_BANK, valid_to=ended, **FACT)
    first = await service.services.memories.store(ME, past)
    assert (await service.services.memories.store(ME, past)).status == "duplicate"
    assert first.memory_id is not None
    assert (await service.services.memories.get(READ, first.memory_id)).valid_to == ended


async def test_an_archived_memory_that_was_replaced_is_found_when_it_is_restored(
    service: Harness,
) -> None:
    memories = service.services.memories
    await service.store("I live in Haifa", memory_id="old", tier=Tier.MEMORY_BANK, **FACT)
    await service.store(
        "I live in Acre", memory_id="new", tier=Tier.MEMORY_BANK, supersedes="old", **FACT
    )
    await memories.delete(ME, "new")
    await memories.archive(ME, "old")
    await memories.restore(ME, "old")
    await service.drain()
    assert await service.found("Haifa") == ["old"]


async def test_a_restored_memory_of_a_time_keeps_it(service: Harness) -> None:
    ended = service.clock.now() - timedelta(days=300)
    fact = {"tier": Tier.MEMORY_BANK, "valid_to": ended, **FACT}
    await service.store("works at Intel", memory_id="a", **fact)
    await service.services.memories.archive(ME, "a")
    assert (await service.services.memories.restore(ME, "a")).valid_to == ended
    assert (await service.services.memories.restore(ME, "a")).valid_to is None


async def test_the_same_of_two_people_is_two_facts(service: Harness) -> None:
    memories = service.services.memories
    fact = {"text": "allergic to nuts", "tier": Tier.MEMORY_BANK, **FACT}
    for subject in ("dan", "ron", "dan", None, "dana"):
        await memories.store(ME, NewMemory(subject_id=subject, **fact))
    page = await memories.page(READ, ItemFilter(), ItemQuery())
    assert sorted(item.subject_id for item in page.items) == ["dan", "dana", "ron"]


async def test_an_id_that_lives_in_an_archived_memory_is_refused(service: Harness) -> None:
    texts = {"a": "The user prefers dark mode", "b": "User prefers dark mode."}
    memories = service.services.memories
    for name, text in texts.items():
        await service.store(text, memory_id=name, tier=Tier.MEMORY_BANK, **FACT)
        service.clock.advance(3)
    for _ in range(4):
        await service.drain()
        await service.settle()
        service.clock.advance(3)
    winner = (await memories.get(READ, "a")).memory_id
    assert winner == (await memories.get(READ, "b")).memory_id
    (loser,) = texts.keys() - {winner}
    await memories.archive(ME, winner)
    again = NewMemory(text=texts[loser], memory_id=loser, tier=Tier.MEMORY_BANK, **FACT)
    with pytest.raises(DuplicateMemory):
        await memories.store(ME, again)


async def test_what_a_current_memory_replaced_comes_back_as_the_past(service: Harness) -> None:
    memories = service.services.memories
    fact = {"tier": Tier.MEMORY_BANK, **FACT}
    await service.store("I live in Haifa", memory_id="old", **fact)
    await service.store("I live in Acre", memory_id="new", supersedes="old", **fact)
    await memories.archive(ME, "old")
    assert (await memories.restore(ME, "old")).superseded_by == "new"
    await service.drain()
    assert await service.found("live") == ["new"]
