"""Clearing a user's data ends with nothing left, also of memories that became part of others."""

from dataclasses import replace
from datetime import UTC, datetime

from rayapp.assistant.ports import InjectedContext
from rayapp.learning.records import OutcomeRequest
from rayapp.memory.item import Outcome, Status
from rayapp.memory.requests import ClearTarget
from rayapp.memory.rules.creation import archived
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT, an_item
from tests.support.harness import Harness

DANA, DANA_WRITES = ReadScope("dana"), WriteScope("dana")


async def test_a_cleared_tier_has_nothing_left_of_what_was_merged() -> None:
    world = await Harness.open()
    patterns = an_item(memory_id="w", tier=Tier.PATTERNS)
    inner = an_item(memory_id="i", text="Dana drinks green tea")
    losers = [
        replace(archived(an_item(memory_id=name, text=name), "merged", STORED_AT), merged_into=into)
        for name, into in (("to-patterns", "w"), ("to-working", "i"))
    ]
    other = replace(losers[1], memory_id="o", point_id=an_item(memory_id="o").point_id)
    other = replace(other, tier=Tier.HISTORY)
    for item in (patterns, inner, *losers, other):
        assert (await world.items.insert(item)).inserted
    done = await world.services.user_data.clear(DANA_WRITES, ClearTarget.WORKING)
    assert (done.deleted, done.left) == (4, 0)
    living = [row.item for row in world.items._rows.values() if row.item.status != Status.DELETED]
    assert [item.memory_id for item in living] == ["w"]
    await world.drain()
    assert len(world.items._rows) == 1


async def test_conversations_of_the_whole_service_are_counted_and_cleared() -> None:
    world = await Harness.open()
    at = datetime(2025, 5, 4, tzinfo=UTC)
    await world.sessions.log_injected(DANA_WRITES, InjectedContext("c-1", "f", at))
    assert (await world.services.user_data.counts(DANA)).rows.sessions == 1
    done = await world.services.user_data.clear(DANA_WRITES, ClearTarget.SESSIONS)
    assert (done.deleted, (await world.services.user_data.counts(DANA)).rows.sessions) == (1, 0)


async def test_the_counts_of_the_graph_are_what_clearing_it_deletes() -> None:
    service = await Harness.open()
    for text in ("Dana runs the docker gateway in Haifa", "דנה גרה בחיפה"):
        await service.store(text, tier=Tier.HISTORY)
    await service.drain()
    shown = await service.search("where is the docker gateway of Dana", conversation_id="c-1")
    await service.services.outcomes.record(
        WriteScope("dana"), OutcomeRequest(receipt_id=shown.receipt_id, outcome=Outcome.WORKED)
    )
    await service.settle()
    user_data = service.services.user_data
    rows = (await user_data.counts(DANA)).rows
    assert rows.learned > 0
    cleared = await user_data.clear(WriteScope("dana"), ClearTarget.KNOWLEDGE_GRAPH)
    assert cleared.deleted == rows.nodes + rows.edges + rows.learned
    assert (await user_data.counts(DANA)).rows.learned == 0
