"""Resident views over a real MongoDB and the real embedded engine."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rayapp.container.services import Container
from rayapp.graphs.records import Contribution
from rayapp.memory.item import MemoryItem
from rayapp.memory.requests import NewMemory
from rayapp.memory.scope import ReadScope
from rayapp.portability.ports import Putting
from rayapp.portability.rules.collections import BY_NAME
from rayapp.search import resident
from rayapp.storage.mongo import graph_settlement
from rayapp.storage.mongo.changes import LOW_BITS, MongoChangeLog
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import CHANGE_TTL_S, CHANGES, ITEMS, NODES
from rayapp.storage.mongo.user_archive import MongoUserArchive
from tests.support.content_graph_contract import a_fact, adds, settle
from tests.support.engine_container import engine_container
from tests.support.graph_contract import CAR
from tests.support.resident_contract import (
    ME,
    MINE,
    NOT_REMEMBERED,
    QUESTIONS,
    ResidentContract,
    asked,
)

pytestmark = pytest.mark.engine


class TestOnServers(ResidentContract):
    @pytest.fixture
    async def container(self, tmp_path: Path) -> AsyncIterator[Container]:
        async with engine_container(tmp_path, graph=NOT_REMEMBERED) as container:
            yield container

    async def test_what_was_announced_is_read_again_until_it_must_be_done(
        self, container: Container, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A search between the note of a write and the write itself does not miss it for good."""
        monkeypatch.setattr(resident, "SETTLE_S", 15.0)
        stored = await container.memories.store(ME, NewMemory(text="the boiler is off"))
        item = await container.memories.get(MINE, str(stored.memory_id))
        await asked(container)
        database = MongoDatabase(container.settings.mongo)
        await MongoChangeLog(database).note([(ME.user_id, item.point_id)])
        await asked(container)
        await database.collection(ITEMS).update_one(
            {"point_id": item.point_id}, {"$set": {"tags": ["late"]}}
        )
        await database.close()
        assert [one.tags for one, _ in (await asked(container))[0]] == [("late",)]

    async def test_what_was_written_in_a_block_is_read_once_more_and_never_again(
        self, container: Container, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(resident, "SETTLE_S", 15.0)
        await container.memories.store(ME, NewMemory(text="the boiler is off"))
        item = (await asked(container))[0][0][0]
        reads = list[list[str]]()
        by_points = container.stores.items.by_points

        async def read(scope: ReadScope, points: list[str]) -> list[MemoryItem]:
            reads.append(points)
            return await by_points(scope, points)

        database = MongoDatabase(container.settings.mongo)
        changes, items = MongoChangeLog(database), database.collection(ITEMS)
        # The first store is noted as one that may be under way.
        await database.collection(CHANGES).update_many({}, {"$set": {"done": True}})
        await asked(container)
        monkeypatch.setattr(container.stores.items, "by_points", read)
        async with changes.around([(ME.user_id, item.point_id)]):
            await asked(container)
            await items.update_one({"point_id": item.point_id}, {"$set": {"tags": ["late"]}})
        begun = len(reads)
        tags = [one.tags for one, _ in (await asked(container))[0]]
        once = len(reads) - begun
        await asked(container)
        await database.close()
        assert (tags, once, len(reads) - begun) == ([("late",)], 1, 1)
        assert begun == len(QUESTIONS)

    async def test_what_was_deleted_before_the_machine_slept_is_not_shown_after_it(
        self, container: Container, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No clock of a process counts the hours in which its machine sleeps; notes end in them."""
        await container.memories.store(ME, NewMemory(text="the boiler is off", memory_id="m"))
        assert (await asked(container))[0]
        await container.memories.delete(ME, "m")
        database = MongoDatabase(container.settings.mongo)
        await database.collection(CHANGES).delete_many({})
        await database.close()
        container.views._users[ME.user_id].until -= (CHANGE_TTL_S + 60) << LOW_BITS
        assert (await asked(container))[0] == []

    @pytest.mark.parametrize("before", ["nothing was gained", "all of it went"])
    async def test_a_graph_that_gains_again_at_once_is_seen(
        self, container: Container, before: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Notes of graphs are rarer than what they note."""
        monkeypatch.setattr(graph_settlement, "NOTE_S", 600.0)
        if before == "nothing was gained":
            await settled(container, "first", Contribution())
        else:
            await settled(container, "first", adds(CAR))
            assert await container.user_data.rows.clear_graph(ME)
        await asked(container)
        assert await container.stores.graphs.is_empty(MINE)
        await settled(container, "second", adds(CAR))
        await asked(container)
        assert not container.views.is_bare(ME.user_id)

    async def test_a_graph_that_is_imported_is_seen(self, container: Container) -> None:
        await container.memories.store(ME, NewMemory(text="the boiler is off"))
        await asked(container)
        assert container.views.is_bare(ME.user_id)
        how = Putting(at=container.clock.now(), newer=False, derive=False)
        row = {"node_id": "car", "label": "car", "type": "phrase", "mentions": 1}
        database = MongoDatabase(container.settings.mongo)
        await MongoUserArchive(database).put(ME, BY_NAME[NODES], [row], how)
        await database.close()
        await asked(container)
        assert not container.views.is_bare(ME.user_id)


async def settled(container: Container, memory_id: str, after: Contribution) -> None:
    """A new fact that adds so much."""
    await container.stores.items.insert(a_fact(memory_id=memory_id, text=memory_id))
    due = await container.stores.graphs.follow_ups(9)
    (one,) = [one for one in due if one.item.memory_id == memory_id]
    assert await settle(container.stores.graphs, one, after)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[MongoDatabase]:
    async with engine_container(tmp_path) as container:
        found = MongoDatabase(container.settings.mongo)
        yield found
        await found.close()


async def test_looks_that_come_together_are_one_command(database: MongoDatabase) -> None:
    """Each hears of its own user alone, and of no more than it asked for."""
    changes = MongoChangeLog(database)
    for number in range(6):
        await changes.note([("dana", f"d{number}"), ("noa", f"n{number}")])
    alone = {user: await changes.since(user, None, 50) for user in ("dana", "noa", "omer")}
    commands: list[dict[str, Any]] = []
    read = database.read

    async def counted(command: dict[str, Any]) -> dict[str, Any]:
        commands.append(command)
        return await read(command)

    database.read = counted  # type: ignore[method-assign]
    users = ["dana", "omer", "noa", "dana"]
    together = await asyncio.gather(*(changes.since(user, None, 50) for user in users))
    assert [one.found for one in together] == [alone[user].found for user in users]
    assert len(commands) == 1
    points = [point for one in together[0].found for point in one.points]
    assert points == [f"d{number}" for number in reversed(range(6))]


async def test_who_has_many_changes_hides_nobody_elses(database: MongoDatabase) -> None:
    changes = MongoChangeLog(database)
    await changes.note([("noa", "n")])
    await changes.note([("noa", "m")])
    for number in range(9):
        await changes.note([("dana", f"d{number}")])
    dana, noa = await asyncio.gather(changes.since("dana", None, 3), changes.since("noa", None, 3))
    assert [point for one in noa.found for point in one.points] == ["m", "n"]
    assert [point for one in dana.found for point in one.points] == ["d8", "d7", "d6"]
