"""What every `GraphStore` must do with outcomes: exactly once, as increments, within the caps."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.graphs.ports import GraphStore
from rayapp.graphs.records import (
    ActionIncrement,
    Counters,
    DocumentIncrement,
    Example,
    GraphPriors,
    GraphQuestion,
    OutcomeChanges,
    RoutingIncrement,
    SolutionIncrement,
)
from rayapp.learning.ports import OutcomeLimits, OutcomeStore
from rayapp.learning.records import OutcomeEvent
from rayapp.memory.item import Outcome, Stats, Status, point_id_of
from rayapp.memory.ports import MemoryStore
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.text.concept import Concept
from tests.support.builders import STORED_AT, an_item
from tests.support.store_contract import DANA, DANA_WRITES, edited, stored

CAR = Concept("רכב", "רכבים", "phrase")
DOCKER = Concept("docker", "Docker", "entity")
LIMITS = OutcomeLimits(keep_receipt_until=STORED_AT, guest_per_hour=100)
ONE_WORKED = Counters(uses=1, worked=1)
ONE_FAILED = Counters(uses=1, failed=1)
NEVER_REACHED = 10_000
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphStores:
    """Empty stores of one implementation.

    `capped` makes a graph store with other caps; `elapse` lets time pass for all of them, and
    `now` is their time.
    """

    graphs: GraphStore
    memories: MemoryStore
    outcomes: OutcomeStore
    capped: Callable[..., GraphStore]
    elapse: Callable[[float], Awaitable[None]]
    now: Callable[[], datetime]


async def recorded(stores: GraphStores, *, user_id: str = "dana", **fields: Any) -> OutcomeEvent:
    """An accepted outcome about a new working item; it owes its effects."""
    item = await stored(stores.memories, an_item(user_id=user_id))
    event = OutcomeEvent(
        user_id=user_id,
        idempotency_key=f"k-{next(_numbers)}",
        principal="local",
        outcome=Outcome.WORKED,
        at=STORED_AT,
        memory_ids=(item.memory_id,),
    )
    done, known = await stores.outcomes.record(replace(event, **fields), LIMITS, strict=True)
    assert done.applied
    assert not known
    return done


def example(
    memory_id: str = "m", *, user_id: str = "dana", at: datetime = STORED_AT, **fields: Any
) -> Example:
    found = Example(
        memory_id=memory_id,
        point_id=point_id_of(user_id, memory_id),
        tier=Tier.WORKING,
        outcome=Outcome.WORKED,
        at=at,
    )
    return replace(found, **fields)


def routed(concept: Concept = DOCKER, **fields: Any) -> RoutingIncrement:
    change = RoutingIncrement(concept=concept, tier=Tier.WORKING, counters=ONE_WORKED, at=STORED_AT)
    return replace(change, **fields)


def acted(action: str = "search_memory", **fields: Any) -> ActionIncrement:
    change = ActionIncrement(
        context_type="docker", action=action, tier=Tier.WORKING, counters=ONE_WORKED, at=STORED_AT
    )
    return replace(change, **fields)


def solved(memory_id: str = "m", **fields: Any) -> SolutionIncrement:
    change = SolutionIncrement(
        problem_hash="p", memory_id=memory_id, point_id=point_id_of("dana", memory_id), at=STORED_AT
    )
    return replace(change, **fields)


def judged_book(doc_id: str, uses: int) -> DocumentIncrement:
    counters = Counters(uses=uses, worked=uses)
    return DocumentIncrement(doc_id=doc_id, counters=counters, at=STORED_AT)


async def settled(stores: GraphStores, changes: OutcomeChanges, **fields: Any) -> bool:
    """`changes` as what one new outcome adds."""
    return await stores.graphs.settle_outcomes([await recorded(stores, **fields)], changes)


async def read(
    graphs: GraphStore,
    concepts: Sequence[str] = ("docker", "רכב"),
    *,
    scope: ReadScope = DANA,
    problem: str | None = "p",
) -> GraphPriors:
    asked = GraphQuestion(concepts=tuple(concepts), context_type="docker", problem=problem)
    return await graphs.priors(scope, asked)


class PriorsContract:
    async def test_a_user_without_a_graph_has_empty_priors(self, stores: GraphStores) -> None:
        assert (await read(stores.graphs)).is_empty
        assert (await read(stores.graphs, ())).is_empty

    async def test_every_kind_comes_back_with_every_field(self, stores: GraphStores) -> None:
        one = example("m-1")
        routing = routed(CAR, examples=(one,), tier=Tier.BOOKS)
        changes = OutcomeChanges(
            routing=(routing,),
            actions=(acted(examples=(one,)),),
            solutions=(solved("m-1", count=2),),
            documents=(judged_book("book", 3),),
        )
        assert await settled(stores, changes)
        priors = await read(stores.graphs)
        (row,) = priors.routing
        assert (row.concept, row.label, row.aliases) == ("רכב", "רכבים", ("רכבים",))
        assert row.tiers == {Tier.BOOKS: ONE_WORKED}
        assert (row.first_seen_at, row.last_seen_at) == (STORED_AT, STORED_AT)
        assert row.examples == (one,)
        (action,) = priors.actions
        assert (action.context_type, action.action) == ("docker", "search_memory")
        assert (action.tier, action.counters) == (Tier.WORKING, ONE_WORKED)
        assert (action.first_used_at, action.last_used_at) == (STORED_AT, STORED_AT)
        assert action.examples == ()
        (whole,) = await stores.graphs.actions(DANA, context_type="docker", limit=9)
        assert whole.examples == (one,)
        (solution,) = priors.solutions
        assert (solution.problem_hash, solution.memory_id) == ("p", "m-1")
        assert (solution.point_id, solution.success_count) == (one.point_id, 2)
        assert solution.last_used_at == STORED_AT
        assert [(book.doc_id, book.counters.worked) for book in priors.documents] == [("book", 3)]
        assert priors.nodes == ()

    async def test_kinds_come_without_a_matching_concept(self, stores: GraphStores) -> None:
        changes = OutcomeChanges(actions=(acted(),), solutions=(solved(),))
        assert await settled(stores, changes)
        priors = await read(stores.graphs, ())
        assert priors.routing == ()
        assert len(priors.actions) == len(priors.solutions) == 1
        assert (await read(stores.graphs, problem=None)).solutions == ()
        assert (await read(stores.graphs, problem="other")).solutions == ()

    async def test_books_come_when_they_were_judged_three_times(self, stores: GraphStores) -> None:
        judged = [judged_book(f"b-{n:02}", 3 + n % 3) for n in range(60)]
        changes = OutcomeChanges(documents=(*judged, judged_book("rare", 2)))
        assert await settled(stores, changes)
        documents = (await read(stores.graphs)).documents
        assert len(documents) == 50
        assert [book.counters.uses for book in documents[:20]] == [5] * 20
        assert await settled(stores, OutcomeChanges(documents=(judged_book("rare", 9),)))
        assert (await read(stores.graphs)).documents[0].doc_id == "rare"

    async def test_users_with_the_same_concepts_do_not_meet(self, stores: GraphStores) -> None:
        changes = OutcomeChanges(
            routing=(routed(), routed(CAR)),
            actions=(acted(),),
            solutions=(solved(),),
            documents=(judged_book("book", 3),),
        )
        assert await settled(stores, changes)
        assert await settled(stores, OutcomeChanges(routing=(routed(),)), user_id="amit")
        theirs = await read(stores.graphs, scope=ReadScope("amit"))
        assert [row.concept for row in theirs.routing] == ["docker"]
        assert (theirs.actions, theirs.solutions, theirs.documents) == ((), (), ())
        mine = await read(stores.graphs)
        assert {row.concept: row.tiers for row in mine.routing} == {
            "docker": {Tier.WORKING: ONE_WORKED},
            "רכב": {Tier.WORKING: ONE_WORKED},
        }
        assert await stores.graphs.forget(WriteScope("amit"), [point_id_of("dana", "m")]) == 0
        assert (await read(stores.graphs)).solutions


class OutcomeSettlementContract:
    async def test_increments_add_up_by_tier(self, stores: GraphStores) -> None:
        later = STORED_AT + timedelta(hours=1)
        for change in (
            routed(at=later),
            routed(counters=ONE_FAILED),
            routed(tier=Tier.HISTORY, counters=Counters(uses=3, partial=2, unknown=1)),
        ):
            assert await settled(stores, OutcomeChanges(routing=(change,)))
        (row,) = (await read(stores.graphs)).routing
        assert row.tiers == {
            Tier.WORKING: Counters(uses=2, worked=1, failed=1),
            Tier.HISTORY: Counters(uses=3, partial=2, unknown=1),
        }
        assert (row.first_seen_at, row.last_seen_at) == (STORED_AT, later)

    async def test_an_event_is_settled_once(self, stores: GraphStores) -> None:
        event = await recorded(stores)
        changes = OutcomeChanges(routing=(routed(),), actions=(acted(),), solutions=(solved(),))
        assert await stores.graphs.settle_outcomes([event], changes)
        assert not await stores.graphs.settle_outcomes([event], changes)
        priors = await read(stores.graphs)
        assert priors.routing[0].tiers == {Tier.WORKING: ONE_WORKED}
        assert priors.actions[0].counters == ONE_WORKED
        assert priors.solutions[0].success_count == 1
        due = await stores.outcomes.due("graph", 10, before=STORED_AT + timedelta(days=1))
        assert due == []

    async def test_one_settled_event_stops_its_whole_batch(self, stores: GraphStores) -> None:
        first, second = await recorded(stores), await recorded(stores)
        nothing = OutcomeChanges()
        assert await stores.graphs.settle_outcomes([first], nothing)
        changes = OutcomeChanges(routing=(routed(),))
        assert not await stores.graphs.settle_outcomes([first, second], changes)
        assert (await read(stores.graphs)).is_empty
        due = await stores.outcomes.due("graph", 10, before=STORED_AT + timedelta(days=1))
        assert [event.idempotency_key for event in due] == [second.idempotency_key]

    async def test_settling_at_once_counts_once(self, stores: GraphStores) -> None:
        events = [await recorded(stores) for _ in range(3)]
        changes = OutcomeChanges(routing=(routed(),), actions=(acted(),))
        done = await asyncio.gather(
            *(stores.graphs.settle_outcomes(events, changes) for _ in range(4))
        )
        assert sorted(done) == [False, False, False, True]
        assert (await read(stores.graphs)).routing[0].tiers == {Tier.WORKING: ONE_WORKED}

    async def test_writers_at_once_lose_nothing(self, stores: GraphStores) -> None:
        events = [await recorded(stores) for _ in range(12)]
        changes = OutcomeChanges(
            routing=(routed(), routed(CAR)), actions=(acted(),), solutions=(solved(),)
        )
        done = await asyncio.gather(
            *(stores.graphs.settle_outcomes([event], changes) for event in events)
        )
        assert all(done)
        priors = await read(stores.graphs)
        twelve = Counters(uses=12, worked=12)
        assert [row.tiers for row in priors.routing] == [{Tier.WORKING: twelve}] * 2
        assert priors.actions[0].counters == twelve
        assert priors.solutions[0].success_count == 12

    async def test_events_of_two_users_are_refused(self, stores: GraphStores) -> None:
        mine, theirs = await recorded(stores), await recorded(stores, user_id="amit")
        with pytest.raises(InvalidInput):
            await stores.graphs.settle_outcomes([mine, theirs], OutcomeChanges())
        assert await stores.graphs.settle_outcomes([], OutcomeChanges())

    async def test_a_row_keeps_its_newest_examples(self, stores: GraphStores) -> None:
        times = [STORED_AT + timedelta(minutes=n) for n in (5, 1, 4, 2, 6, 3, 0)]
        for at in times:
            found = (example(f"m-{at.minute}", at=at),)
            changes = OutcomeChanges(
                routing=(routed(at=at, examples=found),), actions=(acted(examples=found),)
            )
            assert await settled(stores, changes)
        priors = await read(stores.graphs)
        newest = [f"m-{n}" for n in (6, 5, 4, 3, 2)]
        assert [one.memory_id for one in priors.routing[0].examples] == newest
        (action,) = await stores.graphs.actions(DANA, context_type=None, limit=9)
        assert [one.memory_id for one in action.examples] == newest

    async def test_a_concept_keeps_its_first_spellings(self, stores: GraphStores) -> None:
        labels = [f"רכב {n}" for n in range(10)]
        for label in [*labels, labels[0]]:
            changes = OutcomeChanges(routing=(routed(Concept("רכב", label)),))
            assert await settled(stores, changes)
        (row,) = (await read(stores.graphs)).routing
        assert row.label == labels[0]
        assert row.aliases == tuple(labels[:8])
        assert row.tiers[Tier.WORKING].uses == 11

    async def test_at_the_cap_only_known_concepts_learn(self, stores: GraphStores) -> None:
        graphs = stores.capped(max_concepts=2)
        full = OutcomeChanges(routing=(routed(), routed(CAR), routed(Concept("new", "new"))))
        for _ in range(2):
            assert await graphs.settle_outcomes([await recorded(stores)], full)
        rows = (await read(graphs, ("docker", "רכב", "new"))).routing
        assert {row.concept: row.tiers[Tier.WORKING].uses for row in rows} == {
            "docker": 2,
            "רכב": 2,
        }
        theirs = await recorded(stores, user_id="amit")
        assert await graphs.settle_outcomes([theirs], full)
        assert len((await read(graphs, scope=ReadScope("amit"))).routing) == 2

    async def test_lists_are_sorted_and_bounded(self, stores: GraphStores) -> None:
        for n in range(4):
            at = STORED_AT + timedelta(minutes=n)
            uses = Counters(uses=n + 1, worked=n + 1)
            changes = OutcomeChanges(
                routing=(routed(Concept(f"c-{n}", "c"), at=at),),
                actions=(acted(f"a-{n}", counters=uses), acted(context_type=f"t-{n}")),
            )
            assert await settled(stores, changes)
        graphs = stores.graphs
        assert [row.concept for row in await graphs.top_routing(DANA, 2)] == ["c-3", "c-2"]
        busy = await graphs.actions(DANA, context_type=None, limit=2)
        assert [row.action for row in busy] == ["a-3", "a-2"]
        (one,) = await graphs.actions(DANA, context_type="t-1", limit=9)
        assert one.context_type == "t-1"
        assert await graphs.top_routing(DANA, 0) == []
        assert await graphs.actions(ReadScope("amit"), context_type=None, limit=9) == []


class ReferencesContract:
    async def test_dead_references_are_found_and_forgotten(self, stores: GraphStores) -> None:
        alive = await stored(stores.memories, an_item(memory_id="alive"))
        archived = await stored(stores.memories, an_item(memory_id="archived"))
        await edited(stores.memories, archived, status=Status.ARCHIVED)
        names = (alive.memory_id, archived.memory_id, "gone")
        found = tuple(example(name) for name in names)
        changes = OutcomeChanges(
            routing=(routed(examples=found),),
            actions=(acted(examples=found),),
            solutions=tuple(solved(name) for name in names),
        )
        assert await settled(stores, changes)
        dead = {("dana", point_id_of("dana", name)) for name in ("archived", "gone")}
        assert await all_dead(stores.graphs, NEVER_REACHED) == dead
        assert await all_dead(stores.graphs, 1) == dead
        forgotten = await stores.graphs.forget(DANA_WRITES, sorted(point for _, point in dead))
        assert forgotten == 4  # two solutions, a concept and an action
        priors = await read(stores.graphs)
        assert [one.memory_id for one in priors.routing[0].examples] == ["alive"]
        (action,) = await stores.graphs.actions(DANA, context_type=None, limit=9)
        assert [one.memory_id for one in action.examples] == ["alive"]
        assert [one.memory_id for one in priors.solutions] == ["alive"]
        assert priors.routing[0].tiers == {Tier.WORKING: ONE_WORKED}
        assert await all_dead(stores.graphs, NEVER_REACHED) == set()
        assert await stores.graphs.forget(DANA_WRITES, []) == 0

    async def test_what_was_archived_for_its_failures_is_remembered(
        self, stores: GraphStores
    ) -> None:
        bad = Stats(uses=2, failed_count=2, score=0.0, last_outcome=Outcome.FAILED)
        kinds: dict[str, dict[str, Any]] = {
            "buried": {},
            "merged": {"merged_into": "buried"},
            "put-away": {"stats": replace(bad, score=0.2)},
            "worked": {"stats": replace(bad, last_outcome=Outcome.WORKED)},
        }
        found = tuple(example(name) for name in kinds)
        assert await settled(stores, OutcomeChanges(routing=(routed(examples=found),)))
        for name, changes in kinds.items():
            fields = {"status": Status.ARCHIVED, "stats": bad, **changes}
            await stored(stores.memories, an_item(memory_id=name, **fields))
        dead = {("dana", point_id_of("dana", name)) for name in kinds if name != "buried"}
        assert await all_dead(stores.graphs, NEVER_REACHED) == dead


async def all_dead(graphs: GraphStore, limit: int) -> set[tuple[str, str]]:
    """One round over all graphs."""
    dead, after = await graphs.dead_references(limit, None)
    while after is not None:
        more, after = await graphs.dead_references(limit, after)
        dead += more
    return set(dead)
