"""What every `SharedItems` must do. A test class gives `world`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from rayapp.core.errors import Forbidden
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.vectors import IndexSchema
from rayapp.datagov.ports import PutCounts, SharedItems
from rayapp.datagov.rules.changes import graph_of
from rayapp.datagov.rules.items import items_of
from rayapp.datagov.rules.prepare import prepared
from rayapp.graphs.ports import GraphStore
from rayapp.memory.item import ChangeType, IndexOp, MemoryItem, Stats, Status, SyncState
from rayapp.memory.ports import IndexResult, MemoryStore
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT, an_item
from tests.support.catalogue import VEHICLES, WELLS, a_catalogue, many_datasets

SCHEMA = IndexSchema(model="m", dims=3, analyser="a")
LATER = STORED_AT + timedelta(days=1)
SYSTEM = ReadScope(SYSTEM_USER)
DANA = ReadScope("dana")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWorld:
    """Empty stores of one implementation. `judge` sets the stats of an item, as outcomes would."""

    shared: SharedItems
    memories: MemoryStore
    graphs: GraphStore
    judge: Callable[[str, Stats], Awaitable[None]]


def made(*datasets: Any, at: Any = STORED_AT) -> list[MemoryItem]:
    """Items of these datasets (of two when none are given), as the job makes them."""
    entries = [("water", ["מים"], ["water"]), ("transportation", ["רכב"], ["car"])]
    return items_of(prepared(a_catalogue(*datasets))[0], entries, at)


def by_id(items: list[MemoryItem]) -> dict[str, MemoryItem]:
    return {item.memory_id: item for item in items}


async def index_all(memories: MemoryStore) -> int:
    """What the indexer does, without an index."""
    done = 0
    while claimed := await memories.claim(token="t", limit=500, claim_s=60):
        results = [
            IndexResult(
                user_id=item.user_id,
                point_id=item.point_id,
                rev=item.index.rev,
                op=item.index.op,
                vector_hash="h",
            )
            for item in claimed
        ]
        done += await memories.finish("t", results, SCHEMA)
    return done


class PutContract:
    async def test_new_items_are_stored_pending_and_every_user_reads_them(
        self, world: SharedWorld
    ) -> None:
        items = made()
        counts = await world.shared.put(items)
        assert counts == PutCounts(inserted=len(items), updated=0)
        for item in items:
            stored = await world.memories.get(DANA, item.memory_id)
            assert stored is not None
            assert (stored.text, stored.tags, stored.source) == (item.text, item.tags, item.source)
            assert stored.version == 1
            assert stored.index.sync_state is SyncState.PENDING
            assert stored.index.op is IndexOp.VECTOR
        assert await index_all(world.memories) == len(items)

    async def test_a_second_put_writes_nothing(self, world: SharedWorld) -> None:
        items = made()
        await world.shared.put(items)
        await index_all(world.memories)
        assert await world.shared.put(made(at=LATER)) == PutCounts()
        assert not await world.memories.claim(token="t", limit=10, claim_s=60)
        for item in items:
            stored = await world.memories.get(SYSTEM, item.memory_id)
            assert stored is not None
            assert (stored.version, stored.updated_at) == (1, STORED_AT)

    async def test_hashes_are_those_of_the_items_with_their_status(
        self, world: SharedWorld
    ) -> None:
        items = made()
        await world.shared.put(items)
        wanted = {
            item.memory_id: ((item.source.datagov or {})["record_hash"], Status.ACTIVE)
            for item in items
        }
        assert await world.shared.record_hashes() == wanted
        some = [items[0].memory_id, items[-1].memory_id, "datagov_resource_none"]
        found = await world.shared.record_hashes(some)
        assert found == {memory_id: wanted[memory_id] for memory_id in some[:2]}
        assert await world.shared.record_hashes([]) == {}

    async def test_hashes_are_of_the_shared_tiers_of_the_shared_tenant_alone(
        self, world: SharedWorld
    ) -> None:
        await world.memories.insert(an_item(tier=Tier.WORKING))
        await world.memories.insert(an_item(user_id=SYSTEM_USER, tier=Tier.WORKING))
        await world.memories.insert(an_item(tier=Tier.DATAGOV_SCHEMA))
        assert await world.shared.record_hashes() == {}

    async def test_a_changed_record_keeps_its_stats_and_times_and_is_indexed_again(
        self, world: SharedWorld
    ) -> None:
        await world.shared.put(made())
        await index_all(world.memories)
        resource = VEHICLES.resources[0]
        memory_id = f"datagov_resource_{resource.resource_id}"
        stats = Stats(uses=3, worked_count=2)
        await world.judge(memory_id, stats)
        other = replace(VEHICLES, resources=(replace(resource, name="שם חדש"),))
        changed = by_id(made(other, WELLS, at=LATER))[memory_id]
        assert await world.shared.put([changed]) == PutCounts(updated=1)
        stored = await world.memories.get(SYSTEM, memory_id)
        assert stored is not None
        assert stored.text == changed.text
        assert stored.content_hash == changed.content_hash
        assert (stored.stats.uses, stored.stats.worked_count) == (3, 2)
        assert (stored.created_at, stored.stored_at) == (STORED_AT, STORED_AT)
        assert stored.updated_at == LATER
        assert stored.version == 2
        assert (stored.index.sync_state, stored.index.op) == (SyncState.PENDING, IndexOp.VECTOR)
        assert stored.index.rev == 2
        (row,) = await world.memories.versions(SYSTEM, memory_id, 5)
        assert (row.version, row.change_type) == (1, ChangeType.UPDATE)
        assert "שם חדש" not in row.text

    async def test_a_change_while_the_indexer_works_is_indexed_afterwards(
        self, world: SharedWorld
    ) -> None:
        items = made()
        await world.shared.put(items)
        claimed = await world.memories.claim(token="t", limit=500, claim_s=60)
        assert len(claimed) == len(items)
        other = replace(WELLS, title="Water levels, renamed")
        await world.shared.put(made(VEHICLES, other, at=LATER))
        results = [
            IndexResult(user_id=i.user_id, point_id=i.point_id, rev=i.index.rev, op=i.index.op)
            for i in claimed
        ]
        done = await world.memories.finish("t", results, SCHEMA)
        assert 0 < done < len(items)
        again = await world.memories.claim(token="u", limit=500, claim_s=60)
        assert len(again) == len(items) - done
        assert f"datagov_dataset_{WELLS.dataset_id}" in {item.memory_id for item in again}

    async def test_records_that_say_the_same_are_both_stored(self, world: SharedWorld) -> None:
        one, two = many_datasets(2)
        twin = replace(
            one,
            dataset_id="twin",
            resources=(replace(one.resources[0], resource_id="twin-resource"),),
        )
        items = made(one, twin, two)
        counts = await world.shared.put(items)
        assert counts.inserted == len(items) == len({item.memory_id for item in items})

    async def test_more_than_one_batch_and_a_repeated_item(self, world: SharedWorld) -> None:
        items = made(*many_datasets(300))
        counts = await world.shared.put([*items, items[0]])
        assert counts.inserted == len(items)
        assert len(await world.shared.record_hashes()) == len(items)

    async def test_items_of_users_and_of_other_tiers_are_refused_before_any_write(
        self, world: SharedWorld
    ) -> None:
        good = made()[0]
        for bad in (
            an_item(tier=Tier.DATAGOV_SCHEMA),
            an_item(user_id=SYSTEM_USER, tier=Tier.MEMORY_BANK),
        ):
            with pytest.raises(Forbidden):
                await world.shared.put([good, bad])
        assert await world.shared.record_hashes() == {}

    async def test_an_item_of_a_user_with_the_same_id_is_left_alone(
        self, world: SharedWorld
    ) -> None:
        items = made()
        mine = an_item(memory_id=items[0].memory_id, text="my own note")
        await world.memories.insert(mine)
        await world.shared.put(items)
        await world.shared.retire([mine.memory_id], "gone", LATER)
        kept = await world.memories.get(ReadScope("dana", include_shared=False), mine.memory_id)
        assert kept is not None
        assert (kept.text, kept.status, kept.version) == ("my own note", Status.ACTIVE, 1)


class RetireContract:
    async def test_a_retired_item_is_archived_and_leaves_the_index(
        self, world: SharedWorld
    ) -> None:
        items = made()
        await world.shared.put(items)
        await index_all(world.memories)
        gone = items[0].memory_id
        assert await world.shared.retire([gone, gone, "datagov_dataset_none"], "left", LATER) == 1
        stored = await world.memories.get(SYSTEM, gone)
        assert stored is not None
        assert (stored.status, stored.archived_reason) == (Status.ARCHIVED, "left")
        assert (stored.archived_at, stored.version) == (LATER, 2)
        assert (stored.index.op, stored.index.sync_state) == (IndexOp.DELETE, SyncState.PENDING)
        (row,) = await world.memories.versions(SYSTEM, gone, 5)
        assert row.change_type is ChangeType.ARCHIVE
        assert (await world.shared.record_hashes([gone]))[gone][1] is Status.ARCHIVED
        assert await world.shared.retire([gone], "left", LATER) == 0
        assert await world.shared.retire([], "left", LATER) == 0

    async def test_a_record_that_comes_back_is_restored_even_when_it_did_not_change(
        self, world: SharedWorld
    ) -> None:
        items = made()
        await world.shared.put(items)
        gone = items[0].memory_id
        await world.shared.retire([gone], "left", LATER)
        back = LATER + timedelta(days=1)
        assert await world.shared.put(made(at=back)) == PutCounts(updated=1)
        stored = await world.memories.get(SYSTEM, gone)
        assert stored is not None
        assert (stored.status, stored.archived_at, stored.archived_reason) == (
            Status.ACTIVE,
            None,
            None,
        )
        assert (stored.version, stored.index.op) == (3, IndexOp.VECTOR)
        assert stored.tier_entered_at == back
        rows = await world.memories.versions(SYSTEM, gone, 5)
        assert [row.change_type for row in rows] == [ChangeType.RESTORE, ChangeType.ARCHIVE]


class SharedGraphContract:
    async def test_the_graph_is_drawn_once_and_read_back(self, world: SharedWorld) -> None:
        catalogue = prepared(a_catalogue())[0]
        nodes, edges = graph_of(catalogue, STORED_AT, datasets=5, nodes=150)
        assert await world.shared.put_graph(nodes, edges) == len(nodes) + len(edges)
        found = await world.graphs.nodes(SYSTEM, [node.node_id for node in nodes])
        assert sorted(found, key=_id) == sorted(nodes, key=_id)
        linked = await world.graphs.edges_of(SYSTEM, [nodes[0].node_id], 100)
        assert {edge.target for edge in linked} == {
            edge.target for edge in edges if edge.source == nodes[0].node_id
        }
        again = graph_of(catalogue, LATER, datasets=5, nodes=150)
        assert await world.shared.put_graph(*again) == 0
        assert await world.graphs.top_nodes(DANA, 10) == []

    async def test_what_changed_is_written_and_what_left_is_removed(
        self, world: SharedWorld
    ) -> None:
        catalogue = prepared(a_catalogue())[0]
        await world.shared.put_graph(*graph_of(catalogue, STORED_AT, datasets=5, nodes=150))
        renamed = prepared(a_catalogue(replace(VEHICLES, title="שם אחר")))[0]
        nodes, edges = graph_of(renamed, LATER, datasets=5, nodes=150)
        # The dataset's name, the root and `water` got smaller; one node and its edge are gone.
        # The edge to `water` keeps its least weight.
        assert await world.shared.put_graph(nodes, edges) == 4
        gone = f"datagov_dataset_{WELLS.dataset_id}"
        assert await world.graphs.nodes(SYSTEM, [gone]) == []
        assert await world.graphs.edges_of(SYSTEM, [gone], 10) == []
        (node,) = await world.graphs.nodes(SYSTEM, [f"datagov_dataset_{VEHICLES.dataset_id}"])
        assert (node.label, node.first_seen_at, node.last_seen_at) == ("שם אחר", STORED_AT, LATER)


def _id(node: Any) -> str:
    return str(node.node_id)
