"""Which worker gets the work, when some were started before it was known how much there is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from jobs import workers
from jobs.workers import RayWorkers, WorkerPlan


class Call:
    """A method of an actor; one that waits for room never answers."""

    def __init__(self, waits: bool = False) -> None:
        self._waits = waits

    def options(self, **_: Any) -> Call:
        return self

    def remote(self, *_: Any) -> asyncio.Future[bool]:
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if not self._waits:
            done.set_result(True)
        return done


class Actor(SimpleNamespace):
    """Ray's handle can be put into a set."""

    __hash__ = object.__hash__  # type: ignore[assignment]


@pytest.mark.parametrize("warm", [False, True])
async def test_the_worker_that_has_room_gets_the_only_partition(
    warm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Actor] = []

    def new(_: RayWorkers) -> Actor:
        # The cluster has room for the first one; the second waits for it.
        made.append(Actor(**{n: Call(bool(made)) for n in ("open", "run", "stop", "warm")}))
        return made[-1]

    monkeypatch.setattr(RayWorkers, "_new", new)
    monkeypatch.setattr(workers, "START_TIMEOUT_S", 0.2)
    monkeypatch.setattr(workers.ray, "kill", lambda actor, no_restart: None)
    plan = WorkerPlan(module="jobs.reindex", kind="reindex", settings=Any, count=2)  # type: ignore[arg-type]
    pool = RayWorkers(plan)
    if warm:
        pool.warm({})
    job: Any = SimpleNamespace(params={}, facts={}, fence=1)
    row: Any = SimpleNamespace(index=0)
    assert await pool.work_on(job, row)
    pool.stop()
    assert not await pool.work_on(job, row)
    await pool.close()
    # A driver that followed another one, and takes over, gets new ones.
    started = len(made)
    made.clear()
    assert await pool.work_on(job, row)
    assert (started > 0, len(made)) == (True, 1)
    await pool.close()
