"""What every `GraphStore` must do with changed items: follow-ups and the content graph."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

from rayapp.core.vectors import IndexSchema
from rayapp.graphs.ports import GraphStore
from rayapp.graphs.records import Contribution, FollowUp, GraphQuestion
from rayapp.graphs.rules.content import content_changes
from rayapp.memory.item import IndexOp, IndexState, MemoryItem, Status, SyncState
from rayapp.memory.ports import IndexResult
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import FOLLOWED_TIERS, Tier
from rayapp.text.concept import Concept
from tests.support.builders import STORED_AT, an_item
from tests.support.graph_contract import CAR, DOCKER, GraphStores
from tests.support.store_contract import DANA, DANA_WRITES, edited, stored

PORT = Concept("port", "port", "phrase")
SCHEMA = IndexSchema(model="model-1", dims=3, analyser="a1")
GONE = IndexState(op=IndexOp.DELETE, sync_state=SyncState.PENDING)
AMIT = ReadScope("amit")


def a_fact(**changes: Any) -> MemoryItem:
    return an_item(**{"tier": Tier.MEMORY_BANK, **changes})


def adds(*concepts: Concept, quality: float = 0.5) -> Contribution:
    return Contribution(concepts, quality)


async def due_of(stores: GraphStores, item: MemoryItem) -> FollowUp:
    """The follow-up of this item, which is due."""
    (found,) = [
        one for one in await stores.graphs.follow_ups(100) if one.item.point_id == item.point_id
    ]
    return found


async def settle(graphs: GraphStore, due: FollowUp, after: Contribution) -> bool:
    changes = content_changes(due.contributed, after, due.item.memory_id)
    return await graphs.settle_content(due, after, changes)


async def a_fact_about(
    stores: GraphStores, *concepts: Concept, quality: float = 0.5, **changes: Any
) -> MemoryItem:
    """A stored fact that adds `concepts`, settled."""
    item = await stored(stores.memories, a_fact(**changes))
    due = await due_of(stores, item)
    assert await settle(stores.graphs, due, adds(*concepts, quality=quality))
    return item


async def deleted(stores: GraphStores, item: MemoryItem) -> MemoryItem:
    return await edited(stores.memories, item, status=Status.DELETED, index=GONE)


async def point_removed(stores: GraphStores) -> int:
    """What the indexer does: claim what is due and say that it is done."""
    claimed = await stores.memories.claim(token="t", limit=100, claim_s=60)
    results = [
        IndexResult(
            user_id=item.user_id, point_id=item.point_id, rev=item.index.rev, op=item.index.op
        )
        for item in claimed
    ]
    return await stores.memories.finish("t", results, SCHEMA)


async def rows_left(stores: GraphStores) -> int:
    """Rows of dana's memory_bank, tombstones included."""
    where = ItemFilter(tiers=(Tier.MEMORY_BANK,), statuses=tuple(Status), include_superseded=True)
    page = await stores.memories.page(DANA, where, ItemQuery(limit=100))
    return len(page.items)


async def picture(
    graphs: GraphStore, scope: ReadScope = DANA
) -> tuple[dict[str, int], dict[tuple[str, str], float]]:
    """Mentions of every node and weight of every edge."""
    nodes = await graphs.top_nodes(scope, 100)
    edges = await graphs.edges_of(scope, [node.node_id for node in nodes], 100)
    return (
        {node.node_id: node.mentions for node in nodes},
        {(edge.source, edge.target): edge.weight for edge in edges},
    )


class FollowUpContract:
    async def test_a_change_of_a_followed_tier_is_due(self, stores: GraphStores) -> None:
        items = {tier: await stored(stores.memories, an_item(tier=tier)) for tier in Tier}
        due = await stores.graphs.follow_ups(100)
        assert {one.item.tier for one in due} == set(FOLLOWED_TIERS)
        assert all(one.contributed == Contribution() for one in due)
        assert all(one.item == items[one.item.tier] for one in due)

    async def test_a_settled_item_is_due_again_when_it_changes(self, stores: GraphStores) -> None:
        item = await a_fact_about(stores, CAR, DOCKER, quality=0.3)
        assert await stores.graphs.follow_ups(100) == []
        changed = await edited(stores.memories, item, status=Status.ARCHIVED)
        (due,) = await stores.graphs.follow_ups(100)
        assert due.item == changed
        assert due.contributed == adds(CAR, DOCKER, quality=0.3)

    async def test_the_longest_waiting_come_first(self, stores: GraphStores) -> None:
        for minutes in (2, 0, 1):
            at = STORED_AT + timedelta(minutes=minutes)
            await stored(stores.memories, a_fact(memory_id=f"m-{minutes}", stored_at=at))
        due = await stores.graphs.follow_ups(2)
        assert [one.item.memory_id for one in due] == ["m-0", "m-1"]
        assert await stores.graphs.follow_ups(0) == []

    async def test_a_postponed_item_waits(self, stores: GraphStores) -> None:
        item = await stored(stores.memories, a_fact())
        await stores.graphs.postpone(item.point_id, stores.now() + timedelta(seconds=0.3))
        assert await stores.graphs.follow_ups(9) == []
        await stores.elapse(0.4)
        assert len(await stores.graphs.follow_ups(9)) == 1

    async def test_postponing_does_not_wake_a_settled_item(self, stores: GraphStores) -> None:
        item = await a_fact_about(stores, CAR)
        await stores.graphs.postpone(item.point_id, STORED_AT)
        await stores.graphs.postpone("unknown", STORED_AT)
        assert await stores.graphs.follow_ups(9) == []

    async def test_an_item_that_changed_meanwhile_stays_due(self, stores: GraphStores) -> None:
        item = await stored(stores.memories, a_fact())
        due = await due_of(stores, item)
        changed = await edited(stores.memories, item, summary="s")
        assert not await settle(stores.graphs, due, adds(CAR))
        assert await picture(stores.graphs) == ({}, {})
        assert (await due_of(stores, item)).item == changed

    async def test_a_follow_up_is_settled_once(self, stores: GraphStores) -> None:
        due = await due_of(stores, await stored(stores.memories, a_fact()))
        done = await asyncio.gather(
            *(settle(stores.graphs, due, adds(CAR, DOCKER)) for _ in range(4))
        )
        assert sorted(done) == [False, False, False, True]
        assert await picture(stores.graphs) == ({"רכב": 1, "docker": 1}, {("docker", "רכב"): 1.0})

    async def test_backfill_asks_for_items_without_a_contribution(
        self, stores: GraphStores
    ) -> None:
        await a_fact_about(stores, CAR)
        silent = [await a_fact_about(stores), await a_fact_about(stores)]
        await a_fact_about(stores, user_id="amit")
        pattern = await stored(stores.memories, an_item(tier=Tier.PATTERNS))
        assert await settle(stores.graphs, await due_of(stores, pattern), Contribution())
        graphs = stores.graphs
        assert await graphs.ask_follow_up(DANA_WRITES, 9, dry_run=True) == 2
        assert await graphs.ask_follow_up(DANA_WRITES, 1, dry_run=True) == 1
        assert await graphs.follow_ups(9) == []
        assert await graphs.ask_follow_up(DANA_WRITES, 9, dry_run=False) == 2
        due = {one.item.point_id for one in await graphs.follow_ups(9)}
        assert due == {item.point_id for item in silent}
        assert await graphs.ask_follow_up(DANA_WRITES, 0, dry_run=False) == 0

    async def test_backfill_reaches_every_item_in_turn(self, stores: GraphStores) -> None:
        items = []
        for _ in range(3):
            items.append(await a_fact_about(stores))
            await stores.elapse(0.01)
        seen = set()
        for _ in range(3):
            assert await stores.graphs.ask_follow_up(DANA_WRITES, 1, dry_run=False) == 1
            (due,) = await stores.graphs.follow_ups(9)
            seen.add(due.item.point_id)
            assert await settle(stores.graphs, due, Contribution())
            await stores.elapse(0.01)
        assert seen == {item.point_id for item in items}


class ContentContract:
    async def test_every_field_of_nodes_and_edges_comes_back(self, stores: GraphStores) -> None:
        first = await a_fact_about(stores, CAR, DOCKER, quality=0.8)
        later = STORED_AT + timedelta(hours=1)
        second = await a_fact_about(stores, CAR, quality=0.4, stored_at=later)
        (car,) = await stores.graphs.nodes(DANA, ["רכב", "unknown"])
        assert (car.label, car.type, car.mentions) == ("רכבים", "phrase", 2)
        assert abs(car.avg_quality - 0.6) < 1e-9
        assert (car.first_seen_at, car.last_seen_at) == (STORED_AT, later)
        assert car.memory_ids == (second.memory_id, first.memory_id)
        (edge,) = await stores.graphs.edges_of(DANA, ["docker"], 9)
        assert (edge.source, edge.target, edge.relation) == ("docker", "רכב", "co_occurs")
        assert (edge.weight, edge.first_seen_at, edge.last_seen_at) == (1.0, STORED_AT, STORED_AT)
        stats = await stores.graphs.stats(DANA)
        assert (stats.nodes, stats.edges, stats.last_updated_at) == (2, 1, later)
        nobody = await stores.graphs.stats(AMIT)
        assert (nobody.nodes, nobody.edges, nobody.last_updated_at) == (0, 0, None)

    async def test_priors_name_the_nodes(self, stores: GraphStores) -> None:
        await a_fact_about(stores, CAR, DOCKER)
        priors = await stores.graphs.priors(DANA, GraphQuestion(concepts=("docker",)))
        assert [node.node_id for node in priors.nodes] == ["docker"]
        assert priors.routing == ()

    async def test_writers_at_once_lose_nothing(self, stores: GraphStores) -> None:
        for _ in range(12):
            await stored(stores.memories, a_fact())
        due = await stores.graphs.follow_ups(100)
        done = await asyncio.gather(*(settle(stores.graphs, one, adds(CAR, DOCKER)) for one in due))
        assert done == [True] * 12
        mentions, weights = await picture(stores.graphs)
        assert mentions == {"רכב": 12, "docker": 12}
        assert weights == {("docker", "רכב"): 12.0}

    async def test_nodes_and_edges_go_with_their_last_memory(self, stores: GraphStores) -> None:
        first = await a_fact_about(stores, CAR, DOCKER, PORT, quality=0.1)
        second = await a_fact_about(stores, CAR, DOCKER, quality=0.7)
        await edited(stores.memories, first, status=Status.ARCHIVED)
        assert await settle(stores.graphs, await due_of(stores, first), Contribution())
        assert await picture(stores.graphs) == ({"רכב": 1, "docker": 1}, {("docker", "רכב"): 1.0})
        (car,) = await stores.graphs.nodes(DANA, ["רכב"])
        assert car.memory_ids == (second.memory_id,)
        assert abs(car.avg_quality - 0.7) < 1e-9
        await edited(stores.memories, second, status=Status.ARCHIVED)
        assert await settle(stores.graphs, await due_of(stores, second), Contribution())
        assert await picture(stores.graphs) == ({}, {})

    async def test_an_edit_moves_what_the_item_adds(self, stores: GraphStores) -> None:
        item = await a_fact_about(stores, CAR, DOCKER, quality=0.2)
        await edited(stores.memories, item, text="other")
        after = adds(CAR, PORT, quality=0.9)
        assert await settle(stores.graphs, await due_of(stores, item), after)
        assert await picture(stores.graphs) == ({"רכב": 1, "port": 1}, {("port", "רכב"): 1.0})
        (car,) = await stores.graphs.nodes(DANA, ["רכב"])
        assert abs(car.avg_quality - 0.9) < 1e-9

    async def test_a_node_names_its_newest_memories(self, stores: GraphStores) -> None:
        items = [await a_fact_about(stores, CAR) for _ in range(23)]
        (car,) = await stores.graphs.nodes(DANA, ["רכב"])
        assert car.mentions == 23
        assert car.memory_ids == tuple(item.memory_id for item in reversed(items[3:]))
        assert await stores.graphs.forget(DANA_WRITES, [items[-1].point_id]) == 1
        (car,) = await stores.graphs.nodes(DANA, ["רכב"])
        assert (car.mentions, len(car.memory_ids)) == (23, 19)

    async def test_users_with_the_same_concepts_do_not_meet(self, stores: GraphStores) -> None:
        mine = await a_fact_about(stores, CAR, DOCKER, memory_id="same")
        await a_fact_about(stores, CAR, DOCKER, memory_id="same", user_id="amit")
        await edited(stores.memories, mine, status=Status.ARCHIVED)
        assert await settle(stores.graphs, await due_of(stores, mine), Contribution())
        assert await picture(stores.graphs) == ({}, {})
        assert await picture(stores.graphs, AMIT) == (
            {"רכב": 1, "docker": 1},
            {("docker", "רכב"): 1.0},
        )
        assert await stores.graphs.nodes(DANA, ["רכב"]) == []

    async def test_nodes_and_edges_are_sorted_and_bounded(self, stores: GraphStores) -> None:
        await a_fact_about(stores, CAR, DOCKER, quality=0.2)
        await a_fact_about(stores, CAR, DOCKER, quality=0.2)
        await a_fact_about(stores, PORT, CAR, quality=0.8)
        graphs = stores.graphs
        top = [node.node_id for node in await graphs.top_nodes(DANA, 9)]
        assert top == ["port", "רכב", "docker"]
        assert [node.node_id for node in await graphs.top_nodes(DANA, 1)] == ["port"]
        (heaviest,) = await graphs.edges_of(DANA, ["רכב"], 1)
        assert (heaviest.source, heaviest.weight) == ("docker", 2.0)
        assert (await graphs.is_empty(DANA), await graphs.is_empty(AMIT)) == (False, True)
        assert await graphs.edges_of(DANA, [], 9) == await graphs.edges_of(AMIT, ["רכב"], 9) == []


class CapsContract:
    async def test_at_the_cap_only_known_rows_grow(self, stores: GraphStores) -> None:
        graphs = stores.capped(max_nodes=2, max_edges=1)
        for concepts in ((CAR, DOCKER), (CAR, DOCKER, PORT)):
            item = await stored(stores.memories, a_fact())
            assert await settle(graphs, await due_of(stores, item), adds(*concepts))
        assert await picture(graphs) == ({"רכב": 2, "docker": 2}, {("docker", "רכב"): 2.0})

    async def test_what_the_cap_kept_out_is_not_taken_back(self, stores: GraphStores) -> None:
        graphs = stores.capped(max_nodes=2, max_edges=9)
        first = await stored(stores.memories, a_fact())
        assert await settle(graphs, await due_of(stores, first), adds(CAR, DOCKER))
        second = await stored(stores.memories, a_fact())
        assert await settle(graphs, await due_of(stores, second), adds(CAR, PORT))
        await edited(stores.memories, first, status=Status.ARCHIVED)
        assert await settle(graphs, await due_of(stores, first), Contribution())
        third = await stored(stores.memories, a_fact())
        assert await settle(graphs, await due_of(stores, third), adds(CAR, PORT))
        assert await picture(graphs) == ({"רכב": 2, "port": 1}, {("port", "רכב"): 1.0})
        # The second never counted for `port`: the third's mention and edge stay.
        await edited(stores.memories, second, status=Status.ARCHIVED)
        assert await settle(graphs, await due_of(stores, second), Contribution())
        assert await picture(graphs) == ({"רכב": 1, "port": 1}, {("port", "רכב"): 1.0})

    async def test_a_full_edge_list_keeps_the_nodes(self, stores: GraphStores) -> None:
        graphs = stores.capped(max_nodes=9, max_edges=1)
        item = await stored(stores.memories, a_fact())
        assert await settle(graphs, await due_of(stores, item), adds(CAR, DOCKER, PORT))
        mentions, weights = await picture(graphs)
        assert mentions == {"רכב": 1, "docker": 1, "port": 1}
        assert len(weights) == 1
        await edited(stores.memories, item, status=Status.ARCHIVED)
        assert await settle(graphs, await due_of(stores, item), Contribution())
        assert await picture(graphs) == ({}, {})


class TombstoneContract:
    """A deleted row goes when its point is gone and nothing of it counts, whichever is last."""

    async def test_point_first(self, stores: GraphStores) -> None:
        item = await a_fact_about(stores, CAR, DOCKER)
        assert await deleted(stores, item)
        assert await point_removed(stores) == 1
        assert await rows_left(stores) == 1
        assert await settle(stores.graphs, await due_of(stores, item), Contribution())
        assert await rows_left(stores) == 0
        assert await picture(stores.graphs) == ({}, {})

    async def test_graph_first(self, stores: GraphStores) -> None:
        item = await a_fact_about(stores, CAR, DOCKER)
        await deleted(stores, item)
        assert await settle(stores.graphs, await due_of(stores, item), Contribution())
        assert await rows_left(stores) == 1
        assert await stores.graphs.follow_ups(9) == []
        assert await point_removed(stores) == 1
        assert await rows_left(stores) == 0
        assert await picture(stores.graphs) == ({}, {})

    async def test_deleted_before_it_ever_counted(self, stores: GraphStores) -> None:
        item = await stored(stores.memories, a_fact())
        early = await due_of(stores, item)
        await deleted(stores, item)
        late = await due_of(stores, item)
        assert await point_removed(stores) == 1
        assert await rows_left(stores) == 0
        assert not await settle(stores.graphs, early, adds(CAR))
        assert not await settle(stores.graphs, late, Contribution())
        assert await picture(stores.graphs) == ({}, {})

    async def test_a_revived_item_takes_back_what_the_old_one_added(
        self, stores: GraphStores
    ) -> None:
        item = await a_fact_about(stores, CAR, DOCKER)
        await deleted(stores, item)
        again = await stored(stores.memories, a_fact(memory_id=item.memory_id, text="new"))
        due = await due_of(stores, again)
        assert due.contributed == adds(CAR, DOCKER)
        assert await settle(stores.graphs, due, adds(PORT))
        assert await picture(stores.graphs) == ({"port": 1}, {})

    async def test_point_and_graph_at_once(self, stores: GraphStores) -> None:
        item = await a_fact_about(stores, CAR, DOCKER)
        await deleted(stores, item)
        due = await due_of(stores, item)
        removed, done = await asyncio.gather(
            point_removed(stores), settle(stores.graphs, due, Contribution())
        )
        assert done
        if not removed:  # the row changed under the indexer: it tries again
            await point_removed(stores)
        assert await rows_left(stores) == 0
        assert await picture(stores.graphs) == ({}, {})

    async def test_an_item_of_another_user_is_never_settled(self, stores: GraphStores) -> None:
        item = await stored(stores.memories, a_fact())
        due = await due_of(stores, item)
        foreign = replace(due, item=replace(due.item, user_id="amit"))
        assert not await settle(stores.graphs, foreign, adds(CAR))
        assert await picture(stores.graphs, AMIT) == ({}, {})
        assert await stores.graphs.ask_follow_up(WriteScope("amit"), 9, dry_run=True) == 0
