"""What every `GraphStore` must do when a verdict takes the place of one that it counted or not."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from rayapp.graphs.records import Counters, OutcomeChanges
from rayapp.learning.records import OutcomeEvent
from rayapp.learning.rules.graph_effects import outcome_changes
from rayapp.memory.item import MemoryItem, Outcome
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT, an_item
from tests.support.graph_contract import LIMITS, ONE_FAILED, ONE_WORKED, GraphStores, read
from tests.support.store_contract import DANA, stored

QUERY = "How do I restart the docker daemon when the build hangs?"
LATE = STORED_AT + timedelta(days=1)


async def verdict(
    stores: GraphStores, outcome: Outcome, *items: MemoryItem, instead_of: tuple[str, ...] = ()
) -> OutcomeEvent:
    """A thumb about these items, of which the graphs know nothing yet."""
    number = len(instead_of)
    event = OutcomeEvent(
        user_id="dana",
        idempotency_key=f"thumb {number}",
        principal="local",
        outcome=outcome,
        at=STORED_AT + timedelta(minutes=number),
        memory_ids=tuple(item.memory_id for item in items),
        query=QUERY,
        concepts=("docker",),
        context_type="docker",
        replaces=instead_of,
    )
    done, known = await stores.outcomes.record(event, LIMITS, strict=True)
    assert not known
    return done


async def settle(stores: GraphStores) -> list[OutcomeEvent]:
    """What a drain of the outbox does; the events that it settled."""
    due = await stores.outcomes.due("graph", 100, before=LATE)
    assert await stores.graphs.settle_outcomes(due, outcome_changes(due))
    return due


class VerdictSettlementContract:
    """Totals as those of the last verdict alone, whenever the outbox was drained."""

    @pytest.mark.parametrize("drained", [True, False])
    @pytest.mark.parametrize("last", [Outcome.FAILED, Outcome.WORKED])
    async def test_the_totals_are_those_of_the_last_verdict(
        self, stores: GraphStores, drained: bool, last: Outcome
    ) -> None:
        item = await stored(stores.memories, an_item())
        keys: tuple[str, ...] = ()
        for outcome in (Outcome.WORKED, Outcome.PARTIAL, Outcome.FAILED, last):
            event = await verdict(stores, outcome, item, instead_of=keys)
            keys = (*keys, event.idempotency_key)
            if drained:
                await settle(stores)
        if not drained:
            await settle(stores)
        only = ONE_WORKED if last is Outcome.WORKED else ONE_FAILED
        (change,) = outcome_changes([event]).routing
        priors = await read(stores.graphs, problem=None)
        assert priors.routing[0].tiers == {Tier.WORKING: only}
        assert priors.routing[0].examples == change.examples
        (action,) = await stores.graphs.actions(DANA, context_type="docker", limit=9)
        assert (action.counters, action.examples) == (only, change.examples)
        assert await stores.outcomes.due("graph", 100, before=LATE) == []

    async def test_a_known_solution_that_failed_after_all_goes(self, stores: GraphStores) -> None:
        item = await stored(stores.memories, an_item())
        old = await verdict(stores, Outcome.WORKED, item)
        (solution,) = outcome_changes([old]).solutions
        await settle(stores)
        assert (await read(stores.graphs, problem=solution.problem_hash)).solutions
        await verdict(stores, Outcome.FAILED, item, instead_of=(old.idempotency_key,))
        await settle(stores)
        assert (await read(stores.graphs, problem=solution.problem_hash)).solutions == ()

    async def test_a_tier_without_a_verdict_left_is_no_row(self, stores: GraphStores) -> None:
        item = await stored(stores.memories, an_item())
        old = await verdict(stores, Outcome.WORKED, item)
        await settle(stores)
        other = await stored(stores.memories, an_item(tier=Tier.HISTORY))
        await verdict(stores, Outcome.FAILED, item, other, instead_of=(old.idempotency_key,))
        due = await stores.outcomes.due("graph", 100, before=LATE)
        back = [event for event in due if event.idempotency_key == old.idempotency_key]
        assert await stores.graphs.settle_outcomes(back, outcome_changes(back))
        assert (await read(stores.graphs)).is_empty
        await settle(stores)
        (row,) = (await read(stores.graphs, problem=None)).routing
        assert row.tiers == {Tier.WORKING: ONE_FAILED, Tier.HISTORY: ONE_FAILED}

    async def test_what_is_left_of_a_verdict_keeps_its_count(self, stores: GraphStores) -> None:
        one = await stored(stores.memories, an_item())
        other = await stored(stores.memories, an_item())
        old = await verdict(stores, Outcome.WORKED, one, other)
        await settle(stores)
        await verdict(stores, Outcome.FAILED, one, instead_of=(old.idempotency_key,))
        await settle(stores)
        (row,) = (await read(stores.graphs, problem=None)).routing
        assert row.tiers == {Tier.WORKING: Counters(uses=2, worked=1, failed=1)}
        told = {example.memory_id: example.outcome for example in row.examples}
        assert told == {one.memory_id: Outcome.FAILED, other.memory_id: Outcome.WORKED}

    async def test_an_event_read_before_more_was_withdrawn_is_not_settled(
        self, stores: GraphStores
    ) -> None:
        one = await stored(stores.memories, an_item())
        other = await stored(stores.memories, an_item())
        old = await verdict(stores, Outcome.WORKED, one, other)
        await verdict(stores, Outcome.FAILED, one, instead_of=(old.idempotency_key,))
        assert not await stores.graphs.settle_outcomes([old], outcome_changes([old]))
        assert (await read(stores.graphs)).is_empty
        assert len(await settle(stores)) == 2

    async def test_taking_back_at_once_takes_back_once(self, stores: GraphStores) -> None:
        item = await stored(stores.memories, an_item())
        old = await verdict(stores, Outcome.WORKED, item)
        await settle(stores)
        await verdict(stores, Outcome.FAILED, item, instead_of=(old.idempotency_key,))
        due = await stores.outcomes.due("graph", 100, before=LATE)
        done = await asyncio.gather(
            *(stores.graphs.settle_outcomes(due, outcome_changes(due)) for _ in range(4))
        )
        assert sorted(done) == [False, False, False, True]
        (row,) = (await read(stores.graphs, problem=None)).routing
        assert row.tiers == {Tier.WORKING: ONE_FAILED}

    async def test_a_row_that_lost_its_count_elsewhere_goes_below_nothing(
        self, stores: GraphStores
    ) -> None:
        """The graphs may have been cleared since, or have had no room for the concept."""
        item = await stored(stores.memories, an_item())
        old = await verdict(stores, Outcome.WORKED, item)
        assert await stores.graphs.settle_outcomes([old], OutcomeChanges())
        new = await verdict(stores, Outcome.FAILED, item, instead_of=(old.idempotency_key,))
        due = await stores.outcomes.due("graph", 100, before=LATE)
        back = [event for event in due if event.idempotency_key == old.idempotency_key]
        assert await stores.graphs.settle_outcomes(back, outcome_changes(back))
        assert (await read(stores.graphs)).is_empty
        assert await stores.graphs.settle_outcomes([new], outcome_changes([new]))
        (row,) = (await read(stores.graphs, problem=None)).routing
        assert row.tiers == {Tier.WORKING: ONE_FAILED}

    async def test_taking_back_makes_no_room_for_itself(self, stores: GraphStores) -> None:
        graphs = stores.capped(max_concepts=1)
        item = await stored(stores.memories, an_item())
        old = await verdict(stores, Outcome.WORKED, item)
        (gained,) = outcome_changes([old]).routing
        taken = replace(gained, counters=Counters(uses=-1, worked=-1))
        car = replace(gained, concept=replace(gained.concept, key="רכב"))
        changes = OutcomeChanges(routing=(taken, car))
        assert await graphs.settle_outcomes([old], changes)
        (row,) = (await read(graphs, problem=None)).routing
        assert (row.concept, row.tiers) == ("רכב", {Tier.WORKING: ONE_WORKED})
