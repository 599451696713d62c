"""Tasks that are ended for certain."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

# Seconds until a cancel is said again. The MongoDB driver swallows one that comes while it checks
# out a connection (measured: 118 of 1,500; `wait_for` of Python 3.11), and a loop then goes on as
# if nothing had been asked. Long enough for what a task has to give back.
AGAIN_S = 5.0
T = TypeVar("T")


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel `tasks` until they have ended; results and errors stay with them.

    One who is cancelled while waiting here leaves none of them behind, and is cancelled then.
    """
    asked: asyncio.CancelledError | None = None
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        try:
            await asyncio.wait(running, timeout=AGAIN_S)
        except asyncio.CancelledError as error:
            asked = error
    if asked is not None:
        raise asked


async def ahead(values: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """The same values, each made while its reader works on the one before it. Who leaves it early
    closes it (`aclosing`): no value is made any more then, and `values` is closed."""

    async def following() -> tuple[T] | None:
        async for value in values:
            return (value,)
        return None

    task = asyncio.create_task(following())
    try:
        while (made := await task) is not None:
            task = asyncio.create_task(following())
            yield made[0]
    finally:
        await end(task)
        if not task.cancelled():
            task.exception()  # looked at: it has no reader any more who would be told
        await values.aclose()
