"""Tasks that are ended for certain."""

import asyncio
from typing import Any

# Seconds until a cancel is said again. The MongoDB driver swallows one that comes while it checks
# out a connection (measured: 118 of 1,500; `wait_for` of Python 3.11), and a loop then goes on as
# if nothing had been asked. Long enough for what a task has to give back.
AGAIN_S = 5.0


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
