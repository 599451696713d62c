"""Resident views over the stores in memory."""

import asyncio
import random
from typing import Any

import pytest

from rayapp.container.services import Container
from rayapp.core.errors import IndexDown, StoreDown
from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.tiers import Tier
from rayapp.search import resident
from rayapp.search.requests import SearchQuery
from tests.support import resident_contract
from tests.support.harness import Harness
from tests.support.resident_contract import (
    ME,
    MINE,
    NOT_REMEMBERED,
    WRITES,
    ResidentContract,
    asked,
    batch,
    beside,
    counted,
    drained,
    same_hits,
    store,
    tried,
)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not let the index answer: what is tested is the view."""
    monkeypatch.setattr(resident, "WAIT_S", 30.0)


class TestInMemory(ResidentContract):
    @pytest.fixture
    async def container(self) -> Container:
        return (await Harness.open(graph=NOT_REMEMBERED)).container


@pytest.mark.parametrize("seed", range(4))
async def test_one_user_alone_is_ranked_as_the_index_ranks_it(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statistics of a user who has the collection for herself are the collection's, where every
    memory is one passage."""
    monkeypatch.setattr(resident_contract, "LONG", "")
    container = (await Harness.open()).container
    rnd, ids = random.Random(seed), list[str]()
    for _ in range(40):
        write = rnd.choices(*zip(*WRITES[:5], strict=True))[0] if ids else store
        await tried(write, container, rnd, ids)
    await drained(container)
    by_index = await beside(container, resident_bytes=0)
    same_hits(await asked(container), await asked(by_index))
    assert counted(container, "index") == 0.0


async def test_a_held_user_needs_no_index() -> None:
    world = await Harness.open()
    await batch(world.container, random.Random(1), [])
    await drained(world.container)
    before = await asked(world.container)
    world.index.error = IndexDown("away")
    assert await asked(world.container) == before


async def test_a_text_that_is_only_spaced_anew_is_shown_by_the_passage_that_answers() -> None:
    world = await Harness.open()
    told = [
        f"The {one} is what uncle Bob speaks of. " * 15 for one in ("parrot", "dentist", "piano")
    ]
    await world.store("\n\n".join(told), memory_id="m-1")
    await world.drain()
    assert "piano" in (await world.search("what about the piano?")).hits[0].text
    wide = [told[0].replace(" ", " " * 8), *told[1:]]
    await world.services.memories.edit(ME, "m-1", MemoryEdit(text="\n\n".join(wide)))
    for _ in range(2):
        assert "piano" in (await world.search("what about the piano?")).hits[0].text
        await world.drain()


async def test_nothing_is_shown_that_the_store_did_not_confirm() -> None:
    world = await Harness.open()
    await world.container.memories.store(ME, NewMemory(text="the boiler is in the cellar"))
    await asked(world.container)
    world.items.error = StoreDown("away")
    with pytest.raises(StoreDown):
        await asked(world.container)


async def test_users_make_room_for_those_that_are_asked_for_now() -> None:
    world = await Harness.open(search={"resident_bytes": 20_000})
    for user in ("dana", "noa", "omer"):
        await world.store("the boiler is in the cellar", user=user)
        assert await world.found("where is the boiler?", user=user)
    assert world.metrics.gauges["view_bytes", ()] <= 20_000
    assert [await world.found("where is the boiler?", user=u) for u in ("dana", "noa")]


async def test_a_search_that_finds_a_view_in_the_making_sees_what_was_stored_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await Harness.open()
    await world.store("the boiler is in the cellar")
    read, go_on = asyncio.Event(), asyncio.Event()
    searchable = world.items.inner.searchable

    async def slow(*args: Any) -> Any:
        found = await searchable(*args)
        read.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(world.items.inner, "searchable", slow)
    first = asyncio.create_task(world.found("where is the boiler?"))
    await read.wait()
    later = await world.store("the boiler was repaired")
    second = asyncio.create_task(world.found("where is the boiler?"))
    await asyncio.sleep(0)
    go_on.set()
    assert later in await second
    await first


@pytest.mark.parametrize("write", ["store", "delete"])
async def test_what_is_written_while_a_held_view_is_read_counts(
    write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view is searched while the store is asked whether it is still right."""
    world = await Harness.open()
    old = await world.store("the boiler is in the cellar")
    await world.indexed()
    assert await world.found("where is the boiler?") == [old]
    views, wanted = world.container.views, set[str]()
    since, last_seen, seen = views.changes.since, views.last_seen, asyncio.Event()

    def look(*args: Any) -> Any:
        seen.set()
        return last_seen(*args)

    async def late(*args: Any) -> Any:
        if not seen.is_set():
            await seen.wait()
            if write == "store":
                wanted.update((old, await world.store("the boiler was repaired")))
            else:
                await world.container.memories.delete(ME, old)
        return await since(*args)

    monkeypatch.setattr(views, "last_seen", look)
    monkeypatch.setattr(views.changes, "since", late)
    assert set(await world.found("where is the boiler?")) == wanted


async def test_much_that_was_written_at_once_is_read_beside_searches() -> None:
    """The view of the user stays: the index answers until it has caught up."""
    container = (await Harness.open()).container
    for text in ("the boiler is in the cellar", "Noa likes green"):
        await container.memories.store(ME, NewMemory(text=text))
    await drained(container)
    await asked(container)
    many = [
        NewMemory(text=f"{number} cups of tea", tier=Tier.HISTORY)
        for number in range(resident.MOST_POINTS + 1)
    ]
    for begin in range(0, len(many), 100):
        await container.memories.store_batch(ME, many[begin : begin + 100])
    await drained(container)
    answered, view = counted(container, "index"), container.views._users[ME.user_id].view
    await container.search.search(MINE, SearchQuery(query="the boiler"))
    assert counted(container, "index") == answered + 1
    behind = container.views._users[ME.user_id].behind
    if behind is not None:
        await behind
    held = await asked(container)
    assert counted(container, "index") == answered + 1
    assert container.views._users[ME.user_id].view is view
    same_hits(held, await asked(await beside(container)))


async def test_a_search_waits_for_no_reading_that_began_while_it_looked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of some thousand memories it takes seconds: the index answers meanwhile."""
    container = (await Harness.open()).container
    await container.memories.store(ME, NewMemory(text="the boiler is in the cellar"))
    await asked(container)
    await container.memories.store(ME, NewMemory(text="the boiler was repaired"))
    held, answered = container.views._users[ME.user_id], counted(container, "index")
    since = container.views.changes.since

    async def late(*args: Any) -> Any:
        look = await since(*args)
        await held.lock.acquire()
        held.behind = asyncio.create_task(asyncio.sleep(60))
        return look

    monkeypatch.setattr(container.views.changes, "since", late)
    found = await container.search.search(MINE, SearchQuery(query="the boiler"))
    assert len(found.hits) == 2
    assert counted(container, "index") == answered + 1
    assert held.behind is not None
    held.behind.cancel()
