"""Replacing a memory when requests repeat, meet in one batch, or name what is gone meanwhile."""

from datetime import timedelta
from typing import Any

import pytest

from rayapp.core.errors import Conflict, InvalidInput, VersionConflict
from rayapp.memory.item import MemoryItem
from rayapp.memory.requests import ItemQuery, NewMemory, StoreResult
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.harness import Harness

ME = WriteScope("dana")
READ = ReadScope("dana")
DAY = timedelta(days=1)


def a_note(text: str, memory_id: str | None = None, **fields: Any) -> NewMemory:
    return NewMemory(text=text, memory_id=memory_id, tier=Tier.HISTORY, **fields)


async def says(service: Harness, *args: Any, **fields: Any) -> StoreResult:
    service.clock.advance(1)
    return await service.services.memories.store(ME, a_note(*args, **fields))


async def batch(service: Harness, *new: NewMemory) -> list[tuple[str, str | None]]:
    """(status, code) of each."""
    results = await service.services.memories.store_batch(ME, new)
    return [(one.status, one.code) for one in results]


async def got(service: Harness, memory_id: str) -> MemoryItem:
    return await service.services.memories.get(READ, memory_id)


async def current(service: Harness) -> set[str]:
    page = await service.services.memories.page(READ, ItemFilter(), ItemQuery())
    return {item.memory_id for item in page.items}


async def test_a_repeated_request_does_not_close_what_is_current_again(service: Harness) -> None:
    await says(service, "lives in Haifa", "e")
    await says(service, "lives in Jaffa", "a", supersedes="e")
    assert (await says(service, "lives in Haifa", "n", supersedes="a")).status == "stored"
    assert (await says(service, "lives in Haifa", supersedes="a")).memory_id == "n"
    assert (await says(service, "lives in Jaffa", "a", supersedes="e")).status == "duplicate"
    assert await current(service) == {"n"}
    assert (await got(service, "n")).superseded_by is None


async def test_a_change_in_the_future_is_refused(service: Harness) -> None:
    await says(service, "lives in Haifa", "old")
    later = {"valid_from": service.clock.now() + DAY}
    with pytest.raises(InvalidInput, match="in the future") as error:
        await says(service, "lives in Jaffa", "new", supersedes="old", **later)
    assert error.value.code == "bad_supersedes"
    assert await current(service) == {"old"}


async def test_a_client_whose_clock_is_ahead_replaces_from_now_on(service: Harness) -> None:
    await says(service, "lives in Haifa", "old")
    now = service.clock.now()
    await says(service, "lives in Jaffa", "new", supersedes="old", created_at=now + DAY)
    assert [hit.item.memory_id for hit in (await service.search("lives in")).hits] == ["new"]


async def test_an_end_before_the_change_is_refused(service: Harness) -> None:
    await says(service, "lives in Haifa", "old")
    ended = service.clock.now() - DAY
    with pytest.raises(InvalidInput, match="valid_from must not be after valid_to"):
        await says(service, "lives in Jaffa", "new", supersedes="old", valid_to=ended)
    assert await current(service) == {"old"}


async def test_a_deleted_successor_leaves_the_place_free(service: Harness) -> None:
    await says(service, "lives in Haifa", "a")
    await says(service, "lives in Jaffa", "b", supersedes="a")
    ended = (await got(service, "a")).valid_to
    await service.services.memories.delete(ME, "b")
    assert (await says(service, "lives in Eilat", "c", supersedes="a")).status == "stored"
    closed = await got(service, "a")
    assert (closed.superseded_by, closed.valid_to) == ("c", ended)
    with pytest.raises(Conflict, match="already superseded by c"):
        await says(service, "lives in Acre", "d", supersedes="a")


# --- batches


async def test_a_duplicate_in_a_batch_is_closed_under_its_real_id(service: Harness) -> None:
    await says(service, "tea at four", "known")
    answers = await batch(
        service, a_note("tea at four", "a"), a_note("tea at five", "b", supersedes="a")
    )
    assert answers == [("duplicate", None), ("stored", None)]
    assert await current(service) == {"b"}
    assert (await got(service, "known")).superseded_by == "b"


@pytest.mark.parametrize("older", ["known", "beside"])
async def test_of_two_in_a_batch_the_first_replaces(service: Harness, older: str) -> None:
    await says(service, "tea at four", "known")
    answers = await batch(
        service,
        a_note("tea at two", "beside"),
        a_note("tea at five", "b", supersedes=older),
        a_note("tea at six", "c", supersedes=older),
        a_note("tea at five", "d", supersedes=older),
    )
    assert answers == [
        ("stored", None),
        ("stored", None),
        ("rejected", "already_superseded"),
        ("duplicate", None),
    ]
    assert await current(service) == {"known", "beside", "b"} - {older}


async def test_a_conflict_while_closing_rejects_that_one_only(
    service: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await says(service, "tea at four", "busy")
    await says(service, "rice at noon", "calm")
    replace = service.items.inner.replace

    async def contended(item: MemoryItem, **more: Any) -> MemoryItem:
        if item.memory_id == "busy":
            raise VersionConflict("changed")
        stored: MemoryItem = await replace(item, **more)
        return stored

    monkeypatch.setattr("rayapp.memory.service.EDIT_PAUSE_S", 0.0)
    monkeypatch.setattr(service.items.inner, "replace", contended)
    new = a_note("tea at five", "b", supersedes="busy")
    answers = await batch(service, new, a_note("rice at two", "c", supersedes="calm"))
    assert answers == [("rejected", Conflict.default_code), ("stored", None)]
    assert await current(service) == {"busy", "b", "c"}
    monkeypatch.undo()
    assert await batch(service, new) == [("duplicate", None)]
    assert await current(service) == {"b", "c"}
