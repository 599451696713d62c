"""An outcome is in the graphs when it is answered, and never lost when that does not work."""

import asyncio
from collections.abc import Sequence

import pytest

from rayapp.core.errors import RayappError, StoreDown
from rayapp.graphs.records import ContextInsights, Counters, InsightsRequest, OutcomeChanges
from rayapp.learning import outbox as graph_settling
from rayapp.learning.records import FeedbackRequest, OutcomeEvent, OutcomeRequest
from rayapp.memory.item import Outcome
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.harness import Harness

DANA = WriteScope("dana")
TEXT = "When the printer jams, open the rear tray"


class Holding:
    """Settles when it is let go; counts how many were begun."""

    def __init__(self, harness: Harness) -> None:
        self._settle = harness.graphs.inner.settle_outcomes
        self.go, self.over = asyncio.Event(), asyncio.Event()
        self.begun = 0

    async def settle_outcomes(
        self, events: Sequence[OutcomeEvent], changes: OutcomeChanges
    ) -> bool:
        self.begun += 1
        await self.go.wait()
        done: bool = await self._settle(events, changes)
        self.over.set()
        return done


async def asked(harness: Harness) -> ContextInsights:
    request = InsightsRequest(query="the printer jams")
    return await harness.services.insights.insights(ReadScope("dana"), request)


async def judged(harness: Harness, outcome: Outcome = Outcome.WORKED) -> str:
    memory_id = await harness.store(TEXT, tier=Tier.HISTORY)
    found = await harness.search("the printer jams", conversation_id="c1")
    assert found.receipt_id is not None
    request = OutcomeRequest(receipt_id=found.receipt_id, positions=(1,), outcome=outcome)
    await harness.services.outcomes.record(DANA, request)
    return memory_id


async def test_the_next_question_knows_what_worked() -> None:
    harness = await Harness.open()
    memory_id = await judged(harness)
    assert [one.item.memory_id for one in (await asked(harness)).patterns] == [memory_id]
    assert await harness.outcomes.backlog() == 1  # the look at its tier, which takes its time


@pytest.mark.parametrize("drained", [True, False])
async def test_the_graphs_count_a_changed_thumb_as_its_last(drained: bool) -> None:
    harness = await Harness.open()
    memory_id = await harness.store(TEXT, tier=Tier.HISTORY)
    await harness.search("the printer jams", conversation_id="c1")
    for score in (1, -1, 0, -1):
        thumb = FeedbackRequest(
            message_id="m-1", score=score, citations=(memory_id,), conversation_id="c1"
        )
        assert (await harness.services.outcomes.feedback(DANA, thumb)).updated
        harness.clock.advance(1)
        if drained:
            await harness.settle()
    await harness.settle()
    once = Counters(uses=1, failed=1)
    rows = await harness.graphs.inner.top_routing(ReadScope("dana"), 20)
    assert [row.tiers for row in rows] == [{Tier.HISTORY: once}] * len(rows)
    (action,) = await harness.graphs.inner.actions(ReadScope("dana"), context_type=None, limit=9)
    assert (len(rows) > 0, action.counters) == (True, once)


@pytest.mark.parametrize("error", [StoreDown("away"), RayappError("bad row")])
async def test_what_fails_is_left_to_the_outbox(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = await Harness.open()

    async def fails(*_: object) -> bool:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(harness.graphs.inner, "settle_outcomes", fails)
        memory_id = await judged(harness)
    assert (await asked(harness)).patterns == ()
    await harness.settle()
    assert [one.item.memory_id for one in (await asked(harness)).patterns] == [memory_id]


async def test_a_late_store_delays_no_answer_and_one_user_has_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graph_settling, "AT_ONCE_S", 0.0)
    harness = await Harness.open()
    held = Holding(harness)
    monkeypatch.setattr(harness.graphs.inner, "settle_outcomes", held.settle_outcomes)
    memory_id = await judged(harness)
    again = OutcomeRequest(memory_ids=(memory_id,), outcome=Outcome.WORKED)
    await harness.services.outcomes.record(DANA, again)
    await asyncio.sleep(0)
    assert held.begun == 1
    assert (await asked(harness)).patterns == ()
    held.go.set()
    async with asyncio.timeout(5):
        await held.over.wait()
    assert len((await asked(harness)).patterns) == 1
