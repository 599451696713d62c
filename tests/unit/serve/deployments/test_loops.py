"""The loops of a background owner end when they are told to, whatever swallows a cancel."""

import asyncio

import pytest

from rayapp.serve.deployments import loops as loops_module
from rayapp.serve.deployments.loops import LONGEST_S, QUIET_S, Loops, Pause


class Work:
    """A loop that swallows the first cancels, as the MongoDB driver does now and then."""

    def __init__(self, swallowed: int) -> None:
        self.swallowed = swallowed
        self.waiting = asyncio.Event()

    async def loop(self) -> None:
        while True:
            try:
                self.waiting.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self.swallowed == 0:
                    raise
                self.swallowed -= 1


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops_module, "CANCEL_EVERY_S", 0.01)


async def test_a_cancel_that_was_swallowed_is_repeated() -> None:
    work, loops = Work(swallowed=2), Loops()

    async def first() -> None:
        while not loops.stopping:  # noqa: ASYNC110  # as the loops look at it
            await asyncio.sleep(0)

    loops.start(first(), work.loop())
    await work.waiting.wait()
    await loops.stop()
    assert [task.done() for task in loops._tasks] == [True, True]
    loops.check()


async def test_the_first_loop_is_never_cancelled() -> None:
    loops, ended = Loops(), []

    async def first() -> None:
        while not loops.stopping:  # noqa: ASYNC110  # as the loops look at it
            await asyncio.sleep(0)
        await asyncio.sleep(0.03)  # the work in hand
        ended.append(True)

    loops.start(first(), Work(swallowed=0).loop())
    await asyncio.sleep(0)
    await loops.stop()
    assert ended == [True]
    await Loops().stop()  # never started


@pytest.mark.parametrize(
    ("pause_s", "quiet_s"), [(0.25, 1.0), (0.5, LONGEST_S), (1.0, LONGEST_S), (2.0, 2.0)]
)
async def test_pauses_grow_after_a_minute_without_work(pause_s: float, quiet_s: float) -> None:
    now = 0.0
    pause = Pause(pause_s, lambda: now)
    now = QUIET_S - 1
    assert pause.length_s == pause_s
    now = QUIET_S
    assert pause.length_s == quiet_s
    await pause.after(1)
    assert pause.length_s == pause_s
