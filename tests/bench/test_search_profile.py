"""The profile of a search: what it counts is what was asked."""

import asyncio
import time

import pytest

from tests.bench.search_profile import batches, parser, tables
from tests.bench.stage_cpu import StageCpu


class Work:
    async def busy(self, seconds: float) -> str:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
        await asyncio.sleep(0.02)
        return "done"

    async def broken(self) -> None:
        await asyncio.sleep(0)
        raise ValueError("a bug")


async def test_waiting_costs_no_processor_time() -> None:
    work, meter = Work(), StageCpu()
    meter.meter(work, "busy", "busy")
    assert await work.busy(0.005) == "done"
    assert 0.005 <= meter.seconds["busy"] < meter.wall["busy"][0]


async def test_errors_and_cancellations_pass_through_the_meter() -> None:
    work, meter = Work(), StageCpu()
    meter.meter(work, "broken", "broken")
    meter.meter(work, "busy", "busy")
    with pytest.raises(ValueError, match="a bug"):
        await work.broken()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await work.busy(0.0)


def test_each_question_is_asked_for_the_user_who_has_the_fact() -> None:
    texts, calls = batches(parser().parse_args(["--memories", "60", "--users", "3"]))
    assert [len(mine) for _, mine in texts] == [20, 20, 20]
    assert {user for user, _ in calls} == {user for user, _ in texts}
    assert len(calls) == 60


def test_the_tables_name_every_stage_and_store() -> None:
    report = {
        "stages": {"hydrate": {"wall_p50_ms": 1.0, "cpu_ms": 0.5}},
        "wall_p50_ms": 5.0,
        "cpu_ms": 3.0,
        "yardstick_ms": 0.8,
        "mongo_alone_ms": {"find memory_items": 1.0},
        "mongo_calls": {"find": 2.0},
        "engine_calls": 1.0,
        "engine_alone_ms": 1.0,
        "mongod_cpu_ms": 1.5,
        "overhead": 2.5,
    }
    stages, stores = tables(report)
    assert list(stages.columns[0].cells) == ["hydrate", "request", "(yardstick)"]
    assert list(stores.columns[0].cells)[-1] == "request ÷ stores"
