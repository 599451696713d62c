"""Tasks that swallow a cancel are ended all the same."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from rayapp.bulk.lease import beside
from rayapp.core import cancelling
from rayapp.core.cancelling import ahead, end


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancelling, "AGAIN_S", 0.01)


async def deaf(times: int) -> None:
    """Goes on after each of so many cancels, as a call of the driver that had just ended."""
    for _ in range(times):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    await asyncio.Event().wait()


async def started(times: int) -> asyncio.Task[None]:
    task = asyncio.create_task(deaf(times))
    await asyncio.sleep(0)
    return task


@pytest.mark.parametrize("times", [0, 1, 3])
async def test_it_is_said_until_they_end(times: int) -> None:
    tasks = [await started(times), await started(0)]
    async with asyncio.timeout(5):
        await end(*tasks)
    assert all(task.cancelled() for task in tasks)


async def test_nothing_is_left_by_one_who_is_cancelled_while_waiting() -> None:
    task = await started(3)
    ending = asyncio.create_task(end(task))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert task.cancelled()


async def test_an_error_stays_with_its_task() -> None:
    async def fails() -> None:
        raise ValueError("own")

    task = asyncio.create_task(fails())
    await asyncio.sleep(0)
    await end(task)
    with pytest.raises(ValueError, match="own"):
        task.result()


async def test_work_ends_beside_a_watcher_that_swallows_a_cancel() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    async with asyncio.timeout(5):
        assert await beside(work(), deaf(2)) == 7


async def test_values_are_made_one_ahead_in_order_and_no_more_after_the_end() -> None:
    made: list[int] = []
    closed = asyncio.Event()

    async def values() -> AsyncGenerator[int]:
        try:
            for number in range(5):
                made.append(number)
                yield number
        finally:
            closed.set()

    async with aclosing(ahead(values())) as few:
        assert await anext(few) == 0
        await asyncio.sleep(0.01)
        assert made == [0, 1]
        assert await anext(few) == 1
    assert closed.is_set()
    assert made[-1] < 3
    assert [one async for one in ahead(values())] == [0, 1, 2, 3, 4]


async def test_what_fails_ahead_is_raised_in_its_turn() -> None:
    async def values() -> AsyncGenerator[int]:
        yield 1
        raise ValueError("away")

    found = ahead(values())
    assert await anext(found) == 1
    with pytest.raises(ValueError, match="away"):
        await anext(found)


async def test_what_fails_ahead_of_who_left_is_no_error_of_the_loop() -> None:
    said: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: said.append(what["message"]))

    async def values() -> AsyncGenerator[int]:
        yield 1
        raise ValueError("away")

    async with aclosing(ahead(values())) as few:
        await anext(few)
        await asyncio.sleep(0)
    gc.collect()
    assert said == []
