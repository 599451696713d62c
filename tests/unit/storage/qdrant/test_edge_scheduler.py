"""Searches come before bulk work: a fake engine whose pieces take the time of a fake clock."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from rayapp.core.errors import IndexDown
from rayapp.storage.qdrant.edge_scheduler import (
    LIVE_PAUSE,
    LIVE_S,
    OTHERS_FLUSH_S,
    PIECE_POINTS,
    PriorityScheduler,
    is_bulk,
)

PIECE_S = 0.01
BULK = ["x"] * (PIECE_POINTS + 1)


class FakeEngine:
    """`copy` and long upserts take three pieces; everything else is done at once."""

    def __init__(self) -> None:
        self.now = 100.0
        self.said: list[str] = []
        self.pauses: list[float] = []
        self.used, self.others = list[str](), list[str]()
        self.broken = False
        self.resting: asyncio.Event | None = None

    def pieces(self, operation: str, args: tuple[Any, ...]) -> Generator[None, None, str]:
        self.said.append(f"{operation} begins")
        if operation == "copy":
            for _ in range(3):
                self.now += PIECE_S
                self.said.append("piece")
                yield
        if operation == "bad":
            raise IndexDown("The engine is away: try again.")
        self.said.append(f"{operation} ends")
        return operation

    def dirty(self) -> tuple[list[str], list[str]]:
        return list(self.used), list(self.others)

    def flush(self, name: str) -> None:
        self.now += PIECE_S
        self.said.append(f"flush {name}")
        if self.broken:
            raise IndexDown("The engine is away: try again.")

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        if self.resting is not None:
            await self.resting.wait()
        await asyncio.sleep(0)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def turns(engine: FakeEngine) -> PriorityScheduler:
    return PriorityScheduler(engine, monotonic=lambda: engine.now, sleep=engine.sleep)


async def test_bulk_work_runs_on_while_nobody_searches(
    engine: FakeEngine, turns: PriorityScheduler
) -> None:
    assert await turns.call("copy", (BULK,)) == "copy"
    # The event loop goes round after each piece, and nothing waits.
    assert engine.pauses
    assert not any(engine.pauses)


async def test_bulk_work_has_a_third_of_the_time_while_people_search(
    engine: FakeEngine, turns: PriorityScheduler
) -> None:
    await turns.call("query", ())
    assert engine.pauses == []
    await turns.call("copy", (BULK,))
    rests = [pause for pause in engine.pauses if pause]
    assert rests[:3] == pytest.approx([LIVE_PAUSE * PIECE_S] * 3)
    engine.now += LIVE_S
    engine.pauses.clear()
    await turns.call("copy", (BULK,))
    assert not any(engine.pauses)


async def test_a_search_that_comes_in_between_slows_what_is_under_way(
    engine: FakeEngine, turns: PriorityScheduler
) -> None:
    copying = asyncio.create_task(turns.call("copy", (BULK,)))
    for _ in range(20):
        if engine.said.count("piece") == 2:
            break
        await asyncio.sleep(0)
    await turns.call("query", ())
    await copying
    assert engine.pauses[0] == 0.0
    assert LIVE_PAUSE * PIECE_S in [pytest.approx(pause) for pause in engine.pauses]


async def test_searches_and_single_stores_pass_bulk_work_that_rests(
    engine: FakeEngine, turns: PriorityScheduler
) -> None:
    engine.resting = asyncio.Event()
    copying = asyncio.create_task(turns.call("copy", (BULK,)))
    waiting = asyncio.create_task(turns.call("scroll", (None,)))
    await asyncio.sleep(0)
    await turns.call("query", ())
    await turns.call("upsert", (["x"],))
    assert engine.said[-2:] == ["upsert begins", "upsert ends"]
    assert "scroll ends" not in engine.said
    engine.resting.set()
    await asyncio.gather(copying, waiting)
    # The gate: what came second began after the first had ended.
    assert engine.said.index("copy ends") < engine.said.index("scroll begins")


async def test_an_error_opens_the_gate_for_the_next(
    engine: FakeEngine, turns: PriorityScheduler
) -> None:
    engine.used = ["used"]
    engine.broken = True
    await turns.flush()
    with pytest.raises(IndexDown):
        await turns.call("bad", ())
    assert await turns.call("copy", (BULK,)) == "copy"


async def test_other_collections_are_flushed_now_and_then(
    engine: FakeEngine, turns: PriorityScheduler
) -> None:
    engine.used, engine.others = ["used"], ["filled"]
    await turns.flush()
    assert engine.said == ["flush used"]
    engine.now += OTHERS_FLUSH_S
    await turns.flush()
    assert engine.said == ["flush used"] * 2 + ["flush filled"]
    await turns.flush()
    assert engine.said[-1] == "flush used"


async def test_calls_get_through_between_two_flushes(
    engine: FakeEngine, turns: PriorityScheduler
) -> None:
    engine.used, engine.others = ["used"], ["filled"]
    engine.now += OTHERS_FLUSH_S
    engine.resting = asyncio.Event()
    flushing = asyncio.create_task(turns.flush())
    await asyncio.sleep(0)
    await turns.call("query", ())
    engine.resting.set()
    await flushing
    assert engine.said == ["flush used", "query begins", "query ends", "flush filled"]


@pytest.mark.parametrize(
    ("operation", "args", "bulk"),
    [
        ("copy", (["x"], "from"), True),
        ("scroll", (None, None, 9), True),
        ("count", (None, None, None), True),
        ("upsert", (BULK, None), True),
        ("upsert", (BULK[:-1], None), False),
        ("retrieve", (BULK, False), True),
        ("retrieve", (BULK[:3], True), False),
        ("delete", (BULK, None), True),
        ("query", (BULK,), False),
        ("health", (), False),
    ],
)
def test_what_counts_as_bulk(operation: str, args: tuple[Any, ...], bulk: bool) -> None:
    assert is_bulk(operation, args) is bulk


async def test_bulk_work_that_nobody_waits_for_any_more_stops_before_its_next_piece(
    engine: FakeEngine, turns: PriorityScheduler
) -> None:
    with pytest.raises(IndexDown):
        await turns.call("copy", (BULK,), PIECE_S * 1.5)
    assert engine.said == ["copy begins", "piece", "piece"]
    assert await turns.call("scroll", (None,), PIECE_S) == "scroll"
