"""Receipts in groups: what is put is there for whoever asks, and nobody waits for it."""

import asyncio
import uuid
from typing import Any

import pytest

from rayapp.core.errors import StoreDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.memory.scope import ReadScope
from rayapp.search.receipts import MOST, GroupedReceipts
from tests.support.clock import FakeClock
from tests.support.harness import Switchable
from tests.support.side_store_contract import a_receipt
from tests.support.stores.stores import InMemoryReceiptStore

ME = ReadScope("dana")


class World:
    def __init__(self, window_s: float = 60.0) -> None:
        self.store = InMemoryReceiptStore(FakeClock())
        self.behind: Any = Switchable(self.store)
        self.metrics = InMemoryMetrics()
        self.slept: list[float] = []
        self.clock = FakeClock()
        self.receipts = GroupedReceipts(self.behind, window_s, self.clock, self.metrics, self.sleep)

    def id_of(self, age_s: float) -> str:
        """As one that was made so long ago."""
        made_ms = round((self.clock.now().timestamp() - age_s) * 1_000)
        return str(uuid.UUID(int=made_ms << 80 | 7 << 76 | 2 << 62))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def test_a_receipt_is_read_before_its_time_has_come() -> None:
    world = World()
    await world.receipts.put(a_receipt(receipt_id="r"))
    assert world.behind.calls == []
    assert await world.receipts.get(ME, "r") is not None
    assert world.slept == []


async def test_who_reads_theirs_does_not_wait_for_those_of_others() -> None:
    world = World()
    await world.receipts.put(a_receipt(receipt_id="r"))
    assert await world.receipts.latest(ReadScope("noa"), "c", 10) == []
    assert world.behind.calls == ["latest"]
    assert await world.receipts.questions(ME, "c", 10)
    assert world.behind.calls == ["latest", "put_many", "questions"]


async def test_receipts_of_one_window_are_one_write() -> None:
    world = World(window_s=0.01)
    for name in ("a", "b", "c"):
        await world.receipts.put(a_receipt(receipt_id=name))
    await asyncio.sleep(0.05)
    assert world.behind.calls == ["put_many"]
    assert len(await world.receipts.recent(10)) == 3


async def test_a_full_group_does_not_wait() -> None:
    world = World()
    for number in range(MOST):
        await world.receipts.put(a_receipt(receipt_id=f"r-{number}"))
    await asyncio.sleep(0)
    assert world.behind.calls == ["put_many"]


async def test_one_of_another_process_is_looked_for_again() -> None:
    world = World()
    assert await world.receipts.get(ME, world.id_of(age_s=0.1)) is None
    assert sum(world.slept) == pytest.approx(0.2)


async def test_nobody_waits_for_one_that_has_ended_or_never_was() -> None:
    world = World()
    for receipt_id in (world.id_of(age_s=3_600), "elsewhere"):
        assert await world.receipts.get(ME, receipt_id) is None
    assert world.slept == []


async def test_what_cannot_be_written_is_counted() -> None:
    world = World()
    world.behind.error = StoreDown("away")
    await world.receipts.put(a_receipt())
    await world.receipts.flush()
    assert world.metrics.counters["degraded", (("reason", "receipt"),)] == 1.0


async def test_without_a_window_whoever_puts_it_hears_of_it() -> None:
    world = World(window_s=0.0)
    world.behind.error = StoreDown("away")
    with pytest.raises(StoreDown):
        await world.receipts.put(a_receipt())
