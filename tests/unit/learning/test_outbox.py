"""The drain of the outbox: everything once, nothing blocked by a bad row."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rayapp.core.errors import Conflict, DeadlineExceeded, IndexDown, RayappError, StoreDown
from rayapp.core.settings.model import GraphSettings
from rayapp.graphs.records import (
    ContentChanges,
    Contribution,
    FollowUp,
    GraphQuestion,
    OutcomeChanges,
)
from rayapp.learning.ports import OutcomeLimits
from rayapp.learning.records import OutcomeEvent
from rayapp.memory.item import IndexState, MemoryItem, Outcome, Status, SyncState, point_id_of
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.clock import FakeClock
from tests.support.outbox_rig import OutboxRig
from tests.support.store_contract import DANA, edited, stored
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.outcomes import InMemoryOutcomeStore
from tests.support.stores.stores import InMemoryReceiptStore

SYNCED = IndexState(sync_state=SyncState.SYNCED)
MINUTE = 60.0


class BreakableGraphs(InMemoryGraphStore):
    """Raises `bad[key]` for an event or item of that id."""

    most = 1_000
    bad: dict[str, Exception]
    tried: list[str]

    async def settle_outcomes(
        self, events: Sequence[OutcomeEvent], changes: OutcomeChanges
    ) -> bool:
        self.tried += [event.idempotency_key for event in events]
        if len(events) > self.most:
            raise DeadlineExceeded("too many at once")
        for event in events:
            if event.idempotency_key in self.bad:
                raise self.bad[event.idempotency_key]
        return await super().settle_outcomes(events, changes)

    async def settle_content(
        self, done: FollowUp, contribution: Contribution, changes: ContentChanges
    ) -> bool:
        if done.item.memory_id in self.bad:
            raise self.bad[done.item.memory_id]
        return await super().settle_content(done, contribution, changes)


class World:
    def __init__(self, **overrides: Any) -> None:
        self.clock = FakeClock()
        self.items = InMemoryMemoryStore(self.clock)
        self.outcomes = InMemoryOutcomeStore(
            self.items, InMemoryReceiptStore(self.clock), self.clock
        )
        self.graphs = BreakableGraphs(self.items, self.outcomes, self.clock, GraphSettings())
        self.graphs.bad = {}
        self.graphs.tried = []
        self.overrides = overrides
        self.rig = self.another_rig()

    def another_rig(self) -> OutboxRig:
        return OutboxRig(self.outcomes, self.graphs, self.clock, **self.overrides)

    async def event(self, key: str, *, user_id: str = "dana", **fields: Any) -> OutcomeEvent:
        """An outcome of now about a new item, with the concept `docker`."""
        item = await stored(self.items, an_item(user_id=user_id))
        event = OutcomeEvent(
            user_id=user_id,
            idempotency_key=key,
            principal="local",
            outcome=Outcome.WORKED,
            at=self.clock.now(),
            memory_ids=(item.memory_id,),
            query="docker compose רכבים",
            concepts=("docker",),
        )
        limits = OutcomeLimits(keep_receipt_until=self.clock.now(), guest_per_hour=9)
        done, _ = await self.outcomes.record(replace(event, **fields), limits, strict=True)
        return done

    async def fact(self, text: str, **fields: Any) -> MemoryItem:
        now = self.clock.now()
        fields = {"tier": Tier.MEMORY_BANK, "stored_at": now, "index": SYNCED, **fields}
        return await stored(self.items, an_item(text=text, **fields))

    async def uses(self, user_id: str = "dana") -> int:
        """Outcomes that the routing graph counted for `docker`."""
        asked = GraphQuestion(concepts=("docker",))
        priors = await self.graphs.priors(ReadScope(user_id), asked)
        return sum(c.uses for row in priors.routing for c in row.tiers.values())

    async def nodes(self) -> dict[str, int]:
        return {node.node_id: node.mentions for node in await self.graphs.top_nodes(DANA, 99)}


@pytest.fixture
def world() -> World:
    return World()


class TestOutcomes:
    async def test_events_of_all_users_reach_the_graph_once(self, world: World) -> None:
        for n in range(5):
            await world.event(f"d-{n}")
        await world.event("a-0", user_id="amit")
        assert await world.rig.settle() == 6
        assert (await world.uses(), await world.uses("amit")) == (5, 1)
        assert await world.rig.settle() == 0
        assert await world.uses() == 5
        assert world.rig.counted("effects_settled", "graph") == 6

    async def test_a_small_batch_still_gets_to_the_end(self) -> None:
        world = World(learning={"effects_batch": 2})
        for n in range(7):
            await world.event(f"k-{n}")
        assert await world.rig.settle() == 7
        assert await world.uses() == 7

    async def test_two_services_at_once_count_once(self, world: World) -> None:
        events = [await world.event(f"k-{n}") for n in range(6)]
        await world.graphs.settle_outcomes(events[:2], OutcomeChanges())
        done = await asyncio.gather(world.rig.settle(), world.another_rig().settle())
        assert sum(done) == 4
        assert await world.uses() == 4

    @pytest.mark.parametrize("error", [RayappError("bad"), KeyError("tier")])
    async def test_a_poison_event_stops_no_other(self, world: World, error: Exception) -> None:
        for key in ("good-1", "poison", "good-2"):
            await world.event(key)
        await world.event("other", user_id="amit")
        world.graphs.bad = {"poison": error}
        assert await world.rig.settle() == 3
        assert (await world.uses(), await world.uses("amit")) == (2, 1)
        assert world.rig.counted("effects_failed", "graph") == 1

    async def test_a_poison_event_is_tried_ever_more_rarely(self, world: World) -> None:
        await world.event("poison")
        world.graphs.bad = {"poison": RayappError("bad")}
        for _ in range(int(60 * MINUTE)):
            await world.rig.outbox.run_once()
            world.clock.advance(1.0)
        tries = len(world.graphs.tried)
        assert 10 < tries < 20  # doubling to ten minutes, for an hour
        world.graphs.bad = {}
        world.clock.advance(10 * MINUTE)
        assert await world.rig.settle() > 0
        assert await world.uses() == 1

    async def test_poison_does_not_fill_the_batch(self) -> None:
        world = World(learning={"effects_batch": 2})
        bad = [f"poison-{n}" for n in range(6)]
        for key in bad:
            await world.event(key)
        await world.event("good")
        world.graphs.bad = {key: RayappError("bad") for key in bad}
        for _ in range(4):
            await world.rig.outbox.run_once()
        assert await world.uses() == 1

    async def test_what_looks_like_an_outage_delays_the_others_briefly(self, world: World) -> None:
        for n in range(3):
            await world.event(f"k-{n}")
        world.graphs.bad = {"k-1": StoreDown("away")}
        for _ in range(10):
            await world.rig.settle()
            world.clock.advance(5.0)
        assert await world.uses() == 2
        world.graphs.bad = {}
        assert await world.rig.settle() >= 1
        assert await world.uses() == 3

    async def test_a_batch_that_takes_too_long_is_made_smaller(self, world: World) -> None:
        for n in range(9):
            await world.event(f"k-{n}")
        world.graphs.most = 2
        for _ in range(10):
            await world.rig.settle()
            world.clock.advance(5.0)
        assert await world.uses() == 9

    async def test_the_backlog_is_shown(self, world: World) -> None:
        await world.event("k")
        await world.rig.outbox.run_once()
        gauge = ("effects_backlog", ())
        assert world.rig.metrics.gauges[gauge] == 1  # the promotion check is still owed
        world.clock.advance(61.0)
        await world.rig.outbox.run_once()
        assert world.rig.metrics.gauges[gauge] == 0


class TestPromotionChecks:
    async def test_a_check_waits_until_outcomes_settled_down(self, world: World) -> None:
        first, second = await world.event("a"), await world.event("b")
        await world.event("c", user_id="amit")
        await world.rig.settle()
        assert world.rig.promotion.checked == []
        world.clock.advance(61.0)
        assert await world.rig.settle() == 3
        ids = (*first.memory_ids, *second.memory_ids)
        assert world.rig.promotion.checked[0] == ("dana", ids)
        assert len(world.rig.promotion.checked) == 2
        assert await world.rig.settle() == 0
        assert len(world.rig.promotion.checked) == 2

    async def test_a_failed_check_is_owed_and_stops_no_other_user(self, world: World) -> None:
        await world.event("a")
        await world.event("b", user_id="amit")
        world.clock.advance(61.0)
        world.rig.promotion.bad = {"dana": Conflict("busy")}
        await world.rig.settle()
        assert [user for user, _ in world.rig.promotion.checked] == ["amit"]
        world.rig.promotion.bad = {}
        world.clock.advance(2.0)
        assert await world.rig.settle() == 1
        assert [user for user, _ in world.rig.promotion.checked] == ["amit", "dana"]


class TestFollowUps:
    async def test_facts_in_both_languages_reach_the_graph(self, world: World) -> None:
        await world.fact("Docker Compose runs the staging server", entities=("Docker",))
        await world.fact("הרכב של דנה נמצא במוסך", entities=("מוסך",))
        assert await world.rig.settle() == 2
        labels = {node.label for node in await world.graphs.top_nodes(DANA, 99)}
        assert {"Docker", "מוסך"} <= labels
        assert world.rig.counted("effects_settled", "content") == 2

    async def test_a_deleted_fact_takes_its_nodes_back(self, world: World) -> None:
        item = await world.fact("Docker Compose runs the staging server", entities=("Docker",))
        await world.rig.settle()
        assert await world.nodes()
        await edited(world.items, item, status=Status.DELETED)
        assert await world.rig.settle() == 1
        assert await world.nodes() == {}

    async def test_two_services_at_once_count_an_item_once(self, world: World) -> None:
        for n in range(4):
            await world.fact(f"Docker fact {n}", entities=("Docker",))
        done = await asyncio.gather(world.rig.settle(), world.another_rig().settle())
        assert sum(done) == 4
        assert (await world.nodes())["docker"] == 4

    async def test_an_indexed_fact_is_compared_before_it_counts(self, world: World) -> None:
        world.rig.dedup.enabled = True
        fact = await world.fact("Docker fact", entities=("Docker",))
        pattern = await world.fact("A pattern", tier=Tier.PATTERNS)
        book = await world.fact("A page of a book", tier=Tier.BOOKS)
        gone = await world.fact("An archived fact", status=Status.ARCHIVED)
        assert await world.rig.settle() == 4
        assert sorted(world.rig.dedup.asked) == sorted([fact.memory_id, pattern.memory_id])
        assert book.memory_id not in world.rig.dedup.asked
        assert gone.memory_id not in world.rig.dedup.asked

    async def test_a_merged_item_is_left_to_its_next_follow_up(self, world: World) -> None:
        world.rig.dedup.enabled = True
        item = await world.fact("Docker fact", entities=("Docker",))
        world.rig.dedup.answers = {item.memory_id: True}
        assert await world.rig.outbox.run_once() == 1
        assert await world.nodes() == {}
        world.rig.dedup.answers = {}
        assert await world.rig.outbox.run_once() == 1
        assert (await world.nodes())["docker"] == 1

    async def test_a_fact_waits_for_the_index_but_not_for_ever(self, world: World) -> None:
        world.rig.dedup.enabled = True
        item = await world.fact("Docker fact", entities=("Docker",), index=IndexState())
        assert await world.rig.settle() == 0
        world.clock.advance(5 * MINUTE)
        assert await world.rig.settle() == 0
        assert await world.nodes() == {}
        world.clock.advance(6 * MINUTE)
        assert await world.rig.settle() == 1
        assert (await world.nodes())["docker"] == 1
        assert item.memory_id not in world.rig.dedup.asked

    async def test_nobody_waits_when_nothing_is_compared(self, world: World) -> None:
        await world.fact("Docker fact", entities=("Docker",), index=IndexState())
        assert await world.rig.settle() == 1

    async def test_a_lost_index_delays_the_graph_only_for_a_while(self, world: World) -> None:
        world.rig.dedup.enabled = True
        item = await world.fact("Docker fact", entities=("Docker",))
        world.rig.dedup.answers = {item.memory_id: IndexDown("away")}
        assert await world.rig.settle() == 0
        assert await world.nodes() == {}
        world.clock.advance(11 * MINUTE)
        assert await world.rig.settle() == 1
        assert (await world.nodes())["docker"] == 1

    async def test_a_poison_item_stops_no_other(self, world: World) -> None:
        bad = await world.fact("Docker bad", entities=("Docker",))
        await world.fact("Docker good", entities=("Docker",))
        world.graphs.bad = {bad.memory_id: ValueError("malformed")}
        assert await world.rig.settle() == 1
        assert (await world.nodes())["docker"] == 1
        assert world.rig.counted("effects_failed", "content") == 1
        world.graphs.bad = {}
        assert await world.rig.settle() == 0  # it waits
        world.clock.advance(2.0)
        assert await world.rig.settle() == 1
        assert (await world.nodes())["docker"] == 2


class TestCleaning:
    async def test_references_to_dead_items_go(self, world: World) -> None:
        await world.event("stays")
        event = await world.event("goes")
        await world.event("theirs", user_id="amit")
        await world.rig.settle()
        (memory_id,) = event.memory_ids
        item = await world.items.get(DANA, memory_id)
        assert item is not None
        await edited(world.items, item, status=Status.ARCHIVED)
        cleaned = [await world.rig.outbox.clean(1) for _ in range(12)]
        assert sum(cleaned) > 0
        (row,) = await world.graphs.top_routing(DANA, 9)
        points = {example.point_id for example in row.examples}
        assert point_id_of("dana", memory_id) not in points
        assert len(points) == 1
        (theirs,) = await world.graphs.top_routing(ReadScope("amit"), 9)
        assert len(theirs.examples) == 1
        world.clock.advance(timedelta(days=1).total_seconds())
        assert sum([await world.rig.outbox.clean(100) for _ in range(3)]) == 0
