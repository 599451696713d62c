"""Sessions that are told after the answer: nobody in this process sees one that was not."""

import asyncio
from functools import partial
from typing import Any

import pytest

from rayapp.assistant.conversations.sessions import DeferredSessions
from rayapp.assistant.ports import InjectedContext
from rayapp.assistant.records import ContextRequest
from rayapp.core.errors import StoreDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.pending_writes import PendingWrites
from rayapp.core.settings.load import load_settings
from rayapp.memory.requests import ClearTarget
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.clock import FakeClock
from tests.support.harness import Harness
from tests.support.stores.sessions import InMemorySessionStore

DANA, READS = WriteScope("dana"), ReadScope("dana")


class SlowSessions(InMemorySessionStore):
    """Writes no context before it is `open`."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.open, self.told = asyncio.Event(), list[str | None]()
        self.error: StoreDown | None = None

    async def log_injected(self, scope: WriteScope, context: InjectedContext) -> None:
        await self.open.wait()
        if self.error is not None:
            raise self.error
        self.told.append(context.receipt_id)
        await super().log_injected(scope, context)


class World:
    def __init__(self) -> None:
        self.clock, self.metrics = FakeClock(), InMemoryMetrics()
        self.behind = SlowSessions(self.clock)
        self.sessions = DeferredSessions(self.behind, deferring=True, metrics=self.metrics)

    async def tell(self, receipt_id: str) -> bool:
        context = InjectedContext("c-1", "f", self.clock.now(), receipt_id)
        return await self.sessions.tell_later(DANA, context)


async def waits(task: asyncio.Task[Any]) -> bool:
    await asyncio.sleep(0.01)
    return not task.done()


async def test_an_answer_does_not_wait_and_who_reads_does() -> None:
    world = World()
    assert await world.tell("r-1")
    assert await world.sessions.get(ReadScope("noa"), "c-1") is None
    reading = asyncio.create_task(world.sessions.get(READS, "c-1"))
    assert await waits(reading)
    world.behind.open.set()
    found = await reading
    assert found is not None
    assert found.receipt_id == "r-1"


async def test_the_newest_context_is_written_last() -> None:
    world = World()
    await world.tell("r-1")
    second = asyncio.create_task(world.tell("r-2"))
    assert await waits(second)
    world.behind.open.set()
    await second
    await world.sessions.flush()
    assert world.behind.told == ["r-1", "r-2"]


async def test_what_could_not_be_told_is_counted() -> None:
    world = World()
    world.behind.open.set()
    world.behind.error = StoreDown("MongoDB does not answer: retry.")
    assert await world.tell("r-1")
    await world.sessions.flush()
    assert world.metrics.counters["degraded", (("reason", "session"),)] == 1
    waited_for = DeferredSessions(world.behind, deferring=False, metrics=world.metrics)
    context = InjectedContext("c-1", "f", world.clock.now())
    assert not await waited_for.tell_later(DANA, context)


async def test_a_write_that_breaks_is_logged_and_waited_for_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken() -> None:
        raise RuntimeError("broken")

    pending = PendingWrites()
    pending.begin(broken(), ["dana"])
    await pending.of("dana")
    await pending.all()
    assert "a write beside an answer failed" in caplog.text


@pytest.mark.parametrize("erased", ["user", "conversation", "sessions"])
async def test_an_erasure_waits_for_what_answers_leave_behind(erased: str) -> None:
    world = Harness(load_settings(env={}, overrides={"search": {"receipt_window_s": 0.5}}))
    slow = SlowSessions(world.clock)
    slow.rows = world.sessions.rows
    world.sessions = slow
    await world.opened()
    services = world.services
    request = ContextRequest(query="Where does Dana live?", conversation_id="c-1")
    found = await services.context.prefetch(READS, request)
    ways = {
        "user": services.erasure.erase,
        "conversation": partial(services.conversations.erase, conversation_id="c-1"),
        "sessions": partial(services.user_data.clear, target=ClearTarget.SESSIONS),
    }
    erasing = asyncio.create_task(ways[erased](DANA))
    assert await waits(erasing)
    slow.open.set()
    await erasing
    await world.container.flush()
    assert await slow.get(READS, "c-1") is None
    assert await world.receipts.inner.get(READS, found.receipt_id) is None
