"""The worker as a process builds it, without an endpoint and with a scripted model."""

from dataclasses import replace
from datetime import timedelta

from rayapp.assistant.extraction.rules.facts import LearnedExchange
from rayapp.core.errors import StoreDown
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.harness import Harness
from tests.unit.assistant.extraction.world import READS, ScriptedAnswers

DANA = WriteScope("dana")


async def said(harness: Harness, user: str) -> LearnedExchange:
    memory_id = await harness.store(f"User: {user}\nAssistant: ok")
    exchange = LearnedExchange(
        user_id="dana",
        conversation_id="c-1",
        message_id="m-1",
        user_text=user,
        answer="ok",
        memory_id=memory_id,
        at=harness.clock.now() - timedelta(seconds=1),
    )
    await harness.exchanges.offer(DANA, exchange)
    return exchange


async def test_without_an_endpoint_maintenance_ends_what_waits() -> None:
    harness = await Harness.open()
    exchange = await said(harness, "אני גר בחיפה")
    assert await harness.maintenance.learn() == 1
    assert harness.exchanges.inner.result_of(exchange) == ("skipped", {"all": "off"})
    assert await harness.maintenance.learn() == 0


async def test_a_built_worker_learns_under_the_version_of_the_prompt() -> None:
    harness = await Harness.open()
    models = ScriptedAnswers()
    models.answers["fact_extraction"] = lambda asked: "המשתמש גר בחיפה"
    await said(harness, "אני גר בחיפה")
    harness.container.policies.models = models  # a script in its place
    assert await harness.container.learning.run_once() == 1
    where = ItemFilter(tiers=(Tier.MEMORY_BANK,))
    (item,) = (await harness.services.memories.page(READS, where, ItemQuery())).items
    assert item.text == "המשתמש גר בחיפה"
    assert item.source.tool_name is not None
    assert item.source.tool_name.startswith("fact_extraction@he")


async def test_the_indexer_erases_the_turn_of_a_deleted_memory() -> None:
    harness = await Harness.open()
    exchange = await said(harness, "אני גר בחיפה")
    assert exchange.memory_id is not None
    await harness.drain()
    await harness.services.memories.delete(DANA, exchange.memory_id)
    harness.exchanges.error = StoreDown("away")
    await harness.drain()
    harness.exchanges.error = None
    later = replace(exchange, message_id="m-2", at=harness.clock.now())
    (kept,) = await harness.exchanges.earlier(READS, later, 9)
    assert not kept.erased
    # Its delete is tried again until that is gone too.
    harness.clock.advance(60)
    await harness.drain()
    (kept,) = await harness.exchanges.earlier(READS, later, 9)
    assert (kept.erased, kept.user_text) == (True, "")
