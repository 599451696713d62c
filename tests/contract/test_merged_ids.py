"""What was merged into a memory goes with it, on the fake and on a real MongoDB."""

from dataclasses import replace
from typing import Any

import pytest

from rayapp.memory.item import IndexOp, MemoryItem, Status, SyncState
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import ItemQuery, NewMemory
from rayapp.memory.rules import creation
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from tests.support.builders import a_version, an_item
from tests.support.clock import FakeClock
from tests.support.stores import InMemoryMemoryStore

ALL = ItemFilter(statuses=(Status.ACTIVE, Status.ARCHIVED), include_superseded=True)
DANA, OMER = ReadScope("dana"), ReadScope("omer")


@pytest.fixture(params=["fake", pytest.param("mongo", marks=pytest.mark.engine)])
def store(request: pytest.FixtureRequest) -> MemoryStore:
    if request.param == "fake":
        return InMemoryMemoryStore(FakeClock())
    return MongoMemoryStore(request.getfixturevalue("database"))


async def deleted(store: MemoryStore, item: MemoryItem) -> None:
    gone = creation.deleted(item, item.updated_at)
    await store.replace(gone, expected_version=item.version, row=a_version(item))


async def test_a_deletion_erases_the_merged_items_and_their_versions(store: MemoryStore) -> None:
    winner, loser, other = an_item(), an_item(), an_item()
    await store.insert_many([winner, loser, other])
    merged = replace(
        creation.archived(loser, "merged", loser.updated_at), merged_into=winner.memory_id
    )
    await store.replace(merged, expected_version=1, row=a_version(loser))
    his = an_item(user_id="omer", status=Status.ARCHIVED, merged_into=winner.memory_id)
    await store.insert(his)

    await deleted(store, winner)

    page = await store.page(DANA, ALL, ItemQuery(limit=10))
    assert [item.memory_id for item in page.items] == [other.memory_id]
    assert await store.get(DANA, loser.memory_id) is None
    assert await store.versions(DANA, loser.memory_id, 5) == []
    assert await store.count(OMER, ALL) == 1
    # The tombstone stays until the indexer has removed the point.
    claimed = await store.claim(token="t", limit=10, claim_s=60)
    ops: dict[str, Any] = {i.memory_id: (i.index.op, i.index.sync_state) for i in claimed}
    assert ops[loser.memory_id] == (IndexOp.DELETE, SyncState.PENDING)


async def test_the_id_of_an_erased_item_is_free_again(store: MemoryStore) -> None:
    winner = an_item()
    loser = an_item(status=Status.ARCHIVED, merged_into=winner.memory_id)
    await store.insert_many([winner, loser])
    await deleted(store, winner)
    new = creation.new_item(
        NewMemory(text="said anew"), user_id="dana", memory_id=loser.memory_id, now=loser.updated_at
    )
    assert (await store.insert(new)).inserted
    found = await store.get(DANA, loser.memory_id)
    assert found is not None
    assert (found.text, found.merged_into) == ("said anew", None)
