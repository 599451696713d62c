"""What becomes of the tools of a turn, on every pair of an outcome and a graph store."""

import asyncio

import pytest

from rayapp.container import bootstrap
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.graphs.records import ActionRow, Counters
from rayapp.learning.ports import OutcomesOf, ScoreGiven
from rayapp.learning.records import Recorder, Signal, ToolUse
from rayapp.learning.rules.tools import DETECTED, EXPLICIT, RESPONSE, failure_key, verdict_prefix
from rayapp.learning.tools import ToolVerdicts, Verdict
from rayapp.memory.item import Outcome
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.builders import STORED_AT
from tests.support.clock import FakeClock
from tests.support.graph_contract import ONE_FAILED, ONE_WORKED, GraphStores
from tests.support.graph_verdict_contract import settle
from tests.support.store_contract import DANA

WRITES = WriteScope("dana")
GIVEN = ScoreGiven(at=STORED_AT, conversation_id="c", message_id="m")
USED = ToolUse(
    conversation_id="c",
    message_id="m",
    context_type="docker",
    answered=("search_datagov", "web_search"),
    failed=("read_page",),
)
TURN = OutcomesOf(
    conversation_id="c", keys=(failure_key("c", "m"),), prefixes=(verdict_prefix("c", "m"),)
)


class OneTurn:
    """Every score is about the same turn."""

    async def used(self, scope: ReadScope, given: ScoreGiven) -> ToolUse | None:
        return USED


def said(outcome: Outcome, source: str = EXPLICIT, *, sure: float = 1.0) -> Verdict:
    return Verdict(outcome=outcome, signal=Signal(source=source, confidence=sure), by=Recorder())


def verdicts(stores: GraphStores) -> ToolVerdicts:
    clock = FakeClock(STORED_AT)
    runtime = bootstrap.runtime_of(load_settings(env={}), InMemoryMetrics(), clock)
    return ToolVerdicts(stores.outcomes, OneTurn(), runtime=runtime)


async def rows(stores: GraphStores) -> dict[str, ActionRow]:
    found = await stores.graphs.actions(DANA, context_type="docker", limit=9)
    return {row.action: row for row in found}


async def counted(stores: GraphStores) -> dict[str, Counters]:
    return {name: row.counters for name, row in (await rows(stores)).items()}


class ToolVerdictContract:
    """A turn counts once for each of its tools, and as its last verdict alone."""

    async def test_a_verdict_counts_for_each_tool_that_answered(self, stores: GraphStores) -> None:
        await verdicts(stores).judge(WRITES, GIVEN, said(Outcome.WORKED))
        await settle(stores)
        found = await rows(stores)
        assert {name: row.counters for name, row in found.items()} == {
            "search_datagov": ONE_WORKED,
            "web_search": ONE_WORKED,
        }
        assert {(row.tier, row.examples) for row in found.values()} == {(None, ())}

    async def test_what_gave_no_answer_failed_whatever_the_turn_was_worth(
        self, stores: GraphStores
    ) -> None:
        service = verdicts(stores)
        for _ in range(2):
            await service.note_failures(WRITES, USED, Recorder())
        await service.judge(WRITES, GIVEN, said(Outcome.WORKED))
        await settle(stores)
        assert await counted(stores) == {
            "read_page": ONE_FAILED,
            "search_datagov": ONE_WORKED,
            "web_search": ONE_WORKED,
        }

    @pytest.mark.parametrize("drained", [True, False])
    async def test_the_last_verdict_alone_counts(self, stores: GraphStores, drained: bool) -> None:
        service = verdicts(stores)
        for outcome in (Outcome.WORKED, Outcome.WORKED, Outcome.PARTIAL, Outcome.FAILED):
            await service.judge(WRITES, GIVEN, said(outcome))
            if drained:
                await settle(stores)
        await settle(stores)
        assert await counted(stores) == dict.fromkeys(USED.answered, ONE_FAILED)

    @pytest.mark.parametrize(
        ("first", "second", "counts"),
        [
            (EXPLICIT, DETECTED, ONE_WORKED),
            (EXPLICIT, RESPONSE, ONE_WORKED),
            (DETECTED, RESPONSE, ONE_WORKED),
            (DETECTED, EXPLICIT, ONE_FAILED),
            (RESPONSE, DETECTED, ONE_FAILED),
            (RESPONSE, EXPLICIT, ONE_FAILED),
        ],
    )
    async def test_a_persons_word_goes_before_the_assistants(
        self, stores: GraphStores, first: str, second: str, counts: Counters
    ) -> None:
        service = verdicts(stores)
        await service.judge(WRITES, GIVEN, said(Outcome.WORKED, first))
        await service.judge(WRITES, GIVEN, said(Outcome.FAILED, second))
        await settle(stores)
        assert await counted(stores) == dict.fromkeys(USED.answered, counts)

    async def test_the_same_verdict_by_a_better_word_is_that_ones(
        self, stores: GraphStores
    ) -> None:
        service = verdicts(stores)
        await service.judge(WRITES, GIVEN, said(Outcome.WORKED, DETECTED))
        keys = await service.detected(WRITES, "c", "m")
        await service.judge(WRITES, GIVEN, said(Outcome.WORKED))
        await settle(stores)
        await stores.outcomes.withdraw(
            WRITES, OutcomesOf(conversation_id="c", keys=tuple(keys)), STORED_AT
        )
        await settle(stores)
        assert keys
        assert await counted(stores) == dict.fromkeys(USED.answered, ONE_WORKED)

    @pytest.mark.parametrize(
        "verdict",
        [
            said(Outcome.UNKNOWN),
            said(Outcome.FAILED, DETECTED, sure=0.1),
            Verdict(outcome=Outcome.FAILED, signal=Signal(), by=Recorder(owner=False)),
        ],
    )
    async def test_who_says_nothing_of_tools(self, stores: GraphStores, verdict: Verdict) -> None:
        await verdicts(stores).judge(WRITES, GIVEN, verdict)
        assert await stores.outcomes.backlog() == 0
        assert await counted(stores) == {}

    async def test_verdicts_at_once_count_once(self, stores: GraphStores) -> None:
        many = [said(one) for one in (Outcome.WORKED, Outcome.FAILED, Outcome.PARTIAL) * 2]
        await asyncio.gather(*(verdicts(stores).judge(WRITES, GIVEN, one) for one in many))
        await settle(stores)
        assert {one.uses for one in (await counted(stores)).values()} == {1}

    @pytest.mark.parametrize("drained", [True, False])
    async def test_what_is_taken_back_counts_nowhere_and_may_be_judged_anew(
        self, stores: GraphStores, drained: bool
    ) -> None:
        service = verdicts(stores)
        await service.note_failures(WRITES, USED, Recorder())
        await service.judge(WRITES, GIVEN, said(Outcome.WORKED))
        if drained:
            await settle(stores)
        for _ in range(2):
            await stores.outcomes.withdraw(WRITES, TURN, STORED_AT)
        await settle(stores)
        assert await counted(stores) == {}
        await service.judge(WRITES, GIVEN, said(Outcome.FAILED))
        await settle(stores)
        assert await counted(stores) == dict.fromkeys(USED.answered, ONE_FAILED)

    async def test_a_conversation_forgets_its_tools(self, stores: GraphStores) -> None:
        service = verdicts(stores)
        await service.note_failures(WRITES, USED, Recorder())
        await service.judge(WRITES, GIVEN, said(Outcome.WORKED))
        await settle(stores)
        whole = OutcomesOf(conversation_id="c", whole=True)
        await stores.outcomes.withdraw(WRITES, whole, STORED_AT)
        await settle(stores)
        assert await stores.outcomes.forget(WRITES, whole) == 0
        assert await counted(stores) == {}
