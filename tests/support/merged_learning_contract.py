"""What the graphs say after a merge, on every pair of graph and lifecycle stores.

Subclass the contract and give a `stores` and a `lifecycle` fixture over the same truth.
"""

from datetime import timedelta

import pytest

from rayapp.graphs.records import ActionRow, GraphPriors, OutcomeChanges
from rayapp.learning.ports import LifecycleStore
from rayapp.learning.rules.dedup import merge_moves
from rayapp.learning.rules.graph_effects import outcome_changes
from rayapp.memory.item import MemoryItem, Outcome, point_id_of
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.text.concept import Concept
from tests.support.builders import STORED_AT, an_item
from tests.support.graph_contract import GraphStores, acted, example, read, routed, settled, solved
from tests.support.graph_verdict_contract import settle, verdict
from tests.support.store_contract import DANA, stored

HOUR = timedelta(hours=1)
HEBREW = Concept("רכב", "הרכב")


async def merged(
    stores: GraphStores, lifecycle: LifecycleStore, winner_id: str, loser_id: str
) -> None:
    winner, loser = [await _held(stores, one) for one in (winner_id, loser_id)]
    moves = merge_moves(winner, loser, now=STORED_AT + 5 * HOUR, reason="same")
    await lifecycle.transition(moves, [])


async def _held(stores: GraphStores, memory_id: str) -> MemoryItem:
    found = await stores.memories.get(DANA, memory_id)
    assert found is not None
    return found


async def _actions(stores: GraphStores) -> list[ActionRow]:
    return await stores.graphs.actions(DANA, context_type="docker", limit=5)


def solutions_in(priors: GraphPriors) -> list[tuple[str, str, int]]:
    return [(one.memory_id, one.point_id, one.success_count) for one in priors.solutions]


class MergedLearningContract:
    @pytest.fixture(autouse=True)
    async def memories(self, stores: GraphStores) -> None:
        await stored(stores.memories, an_item(memory_id="winner", tier=Tier.HISTORY))
        await stored(stores.memories, an_item(memory_id="loser", tier=Tier.HISTORY))

    async def test_the_known_solution_is_the_winner(
        self, stores: GraphStores, lifecycle: LifecycleStore
    ) -> None:
        await settled(stores, OutcomeChanges(solutions=(solved("loser", at=STORED_AT + HOUR),)))
        await merged(stores, lifecycle, "winner", "loser")
        priors = await read(stores.graphs)
        assert solutions_in(priors) == [("winner", point_id_of("dana", "winner"), 1)]
        assert priors.solutions[0].last_used_at == STORED_AT + HOUR

    async def test_a_problem_that_both_solved_has_one_row_with_both_counts(
        self, stores: GraphStores, lifecycle: LifecycleStore
    ) -> None:
        both = (
            solved("loser", count=2, at=STORED_AT + 2 * HOUR),
            solved("winner", count=3, at=STORED_AT + HOUR),
            solved("loser", problem_hash="q"),
        )
        await settled(stores, OutcomeChanges(solutions=both))
        await merged(stores, lifecycle, "winner", "loser")
        priors = await read(stores.graphs)
        assert solutions_in(priors) == [("winner", point_id_of("dana", "winner"), 5)]
        assert priors.solutions[0].last_used_at == STORED_AT + 2 * HOUR
        other = await read(stores.graphs, problem="q")
        assert solutions_in(other) == [("winner", point_id_of("dana", "winner"), 1)]

    async def test_examples_name_the_winner_and_its_tier(
        self, stores: GraphStores, lifecycle: LifecycleStore
    ) -> None:
        told = (example("loser", at=STORED_AT + HOUR), example("other", at=STORED_AT + 2 * HOUR))
        changes = OutcomeChanges(
            routing=(routed(examples=told), routed(HEBREW, examples=told)),
            actions=(acted(examples=told),),
        )
        await settled(stores, changes)
        await merged(stores, lifecycle, "winner", "loser")
        mine = example("winner", at=STORED_AT + HOUR, tier=Tier.HISTORY)
        routing, actions = (await read(stores.graphs)).routing, await _actions(stores)
        found = [row.examples for row in routing] + [row.examples for row in actions]
        assert found == [(told[1], mine)] * 3

    @pytest.mark.parametrize("settled_before", [True, False])
    async def test_a_changed_verdict_takes_back_what_the_winner_inherited(
        self, stores: GraphStores, lifecycle: LifecycleStore, settled_before: bool
    ) -> None:
        loser = await _held(stores, "loser")
        old = await verdict(stores, Outcome.WORKED, loser)
        (solution,) = outcome_changes([old]).solutions
        if settled_before:
            await settle(stores)
        await merged(stores, lifecycle, "winner", "loser")
        await settle(stores)
        found = await read(stores.graphs, problem=solution.problem_hash)
        assert solutions_in(found) == [("winner", point_id_of("dana", "winner"), 1)]
        await verdict(stores, Outcome.FAILED, loser, instead_of=(old.idempotency_key,))
        await settle(stores)
        found = await read(stores.graphs, problem=solution.problem_hash)
        assert found.solutions == ()
        (row,) = found.routing
        assert [(one.memory_id, one.outcome) for one in row.examples] == [
            ("winner", Outcome.FAILED)
        ]

    async def test_what_a_later_copy_inherits_counts_for_it(
        self, stores: GraphStores, lifecycle: LifecycleStore
    ) -> None:
        later = STORED_AT + 3 * HOUR
        await stored(stores.memories, an_item(memory_id="later", stored_at=later))
        changes = OutcomeChanges(
            routing=(routed(examples=(example("loser"),)),), solutions=(solved("loser"),)
        )
        await settled(stores, changes)
        await merged(stores, lifecycle, "later", "loser")
        priors = await read(stores.graphs)
        (told,) = priors.routing[0].examples
        assert (told.memory_id, told.at) == ("later", later)
        assert [one.last_used_at for one in priors.solutions] == [later]

    async def test_what_a_deleted_memory_left_under_the_losers_id_is_not_handed_over(
        self, stores: GraphStores, lifecycle: LifecycleStore
    ) -> None:
        before = STORED_AT - HOUR
        left = example("loser", at=before)
        changes = OutcomeChanges(
            routing=(routed(examples=(left,)),), solutions=(solved("loser", at=before),)
        )
        await settled(stores, changes)
        await merged(stores, lifecycle, "winner", "loser")
        priors = await read(stores.graphs)
        assert priors.routing[0].examples == (left,)
        assert [one.memory_id for one in priors.solutions] == ["loser"]

    async def test_rows_of_another_user_stay(
        self, stores: GraphStores, lifecycle: LifecycleStore
    ) -> None:
        told = example("loser", user_id="noa")
        theirs = OutcomeChanges(
            routing=(routed(examples=(told,)),),
            solutions=(solved("loser", point_id=told.point_id),),
        )
        await settled(stores, theirs, user_id="noa")
        await merged(stores, lifecycle, "winner", "loser")
        priors = await read(stores.graphs, scope=ReadScope("noa"))
        assert priors.routing[0].examples == (told,)
        assert [one.memory_id for one in priors.solutions] == ["loser"]
