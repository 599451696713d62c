"""Which refusals are held, and for how long."""

import asyncio

from rayapp.api.middleware import AT_ONCE_PER_S, HOLD_S, Refusals, room_of
from rayapp.core.settings.model import Settings

PLENTY = 1_000


class Time:
    """Stands still; whoever sleeps waits until `pass_by`."""

    def __init__(self) -> None:
        self.at = 0.0
        self.slept: list[float] = []
        self._over = asyncio.Event()

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self._over.wait()

    def pass_by(self) -> None:
        self._over.set()


async def started(refusals: Refusals, count: int, room: int = PLENTY) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(refusals.due(room)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_a_few_are_refused_at_once_and_a_flood_after_its_pause() -> None:
    time = Time()
    refusals = Refusals(time.sleep, time.now)
    tasks = await started(refusals, int(AT_ONCE_PER_S) + 3)
    await asyncio.sleep(0)
    assert sum(task.done() for task in tasks) == AT_ONCE_PER_S
    assert (refusals.held, time.slept) == (3, [HOLD_S] * 3)
    time.pass_by()
    await asyncio.gather(*tasks)
    assert refusals.held == 0


async def test_a_second_later_some_are_refused_at_once_again() -> None:
    time = Time()
    refusals = Refusals(time.sleep, time.now)
    await started(refusals, int(AT_ONCE_PER_S))
    time.at += 1.0
    await started(refusals, int(AT_ONCE_PER_S))
    assert refusals.held == 0


async def test_no_more_are_held_than_there_is_room_for() -> None:
    time = Time()
    refusals = Refusals(time.sleep, time.now)
    tasks = await started(refusals, int(AT_ONCE_PER_S) + 5, room=2)
    assert refusals.held == 2
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert refusals.held == 0


def test_serve_admits_more_than_is_held() -> None:
    settings = Settings()
    room = room_of(settings)
    assert room >= 500
    assert settings.http.max_in_flight + room < settings.serve.search.max_ongoing_requests
