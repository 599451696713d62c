"""Who is served when by the one thread of the embedded engine: searches first, bulk in chunks."""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from rayapp.core.errors import IndexDown

PIECE_POINTS = 32  # 7 ms of writing at 256 dimensions (our benchmark)

Result = TypeVar("Result")
Part = TypeVar("Part")
Pieces = Generator[None, None, Result]


def parts(whole: Sequence[Part]) -> Iterator[Sequence[Part]]:
    for start in range(0, len(whole), PIECE_POINTS):
        yield whole[start : start + PIECE_POINTS]


def exhaust(pieces: Pieces[Result]) -> Result:
    """All pieces, one after the other."""
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            result: Result = done.value
            return result


logger = logging.getLogger(__name__)

# After a search people may search again for so long, seconds.
LIVE_S = 1.0
# The pause after a piece of bulk work while people search, in lengths of the piece: bulk work then
# has a third of the engine's time.
LIVE_PAUSE = 2.0
# Long enough for the threads of the transport to get the GIL and hand in the calls that wait.
GIL_PAUSE_S = 0.0005
# While nobody searches, bulk work only lets the event loop go round: its bytes arrive, its frame is
# whole, its task is made, it runs. A timed pause would be a millisecond at least, because the loop
# rounds up: a fifth of the length of a piece.
ROUNDS = 4
# Between two flushes of collections that are not behind the alias, seconds: what they lose with
# the power is filled again, and each flush stops the engine for 50 to 100 ms (our benchmark).
OTHERS_FLUSH_S = 30.0

# Of any size: they read or write what no search asked for.
ALWAYS_BULK = frozenset({"copy", "scroll", "count", "unencoded"})
# Bulk when their first argument is longer than one piece.
BY_SIZE = frozenset({"upsert", "retrieve", "delete", "set_payload", "set_encoder"})


class Engine(Protocol):
    def pieces(self, operation: str, args: tuple[Any, ...]) -> Pieces[Any]: ...
    def dirty(self) -> tuple[list[str], list[str]]: ...
    def flush(self, name: str) -> None: ...


class PriorityScheduler:
    """Calls of one engine on one event loop."""

    def __init__(
        self,
        engine: Engine,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._engine = engine
        self._monotonic, self._sleep = monotonic, sleep
        self._gate = asyncio.Lock()
        self._searched_at = -LIVE_S
        self._others_flushed_at = monotonic()

    async def call(self, operation: str, args: tuple[Any, ...], timeout_s: float = math.inf) -> Any:
        """`timeout_s`: how long its caller waits. Bulk work that nobody waits for any more stops
        before its next piece: a later call may have undone what it is about to write."""
        until = self._monotonic() + timeout_s
        if operation == "query":
            self._searched_at = self._monotonic()
        pieces = self._engine.pieces(operation, args)
        bulk = is_bulk(operation, args)
        async with self._gate if bulk else contextlib.nullcontext():
            while True:
                began = self._monotonic()
                if bulk and began > until:
                    pieces.close()
                    raise IndexDown("The engine was asked for too much at once; try again.")
                try:
                    next(pieces)
                except StopIteration as done:
                    if bulk:
                        await self._pause(began)
                    return done.value
                if bulk:
                    await self._pause(began)
                else:
                    await self._sleep(GIL_PAUSE_S)

    async def flush(self) -> None:
        """What is behind the alias now, the other collections now and then; one after the other,
        with a pause after each."""
        used, others = self._engine.dirty()
        if self._monotonic() - self._others_flushed_at >= OTHERS_FLUSH_S:
            self._others_flushed_at = self._monotonic()
            used += others
        for name in used:
            async with self._turn():
                try:
                    self._engine.flush(name)
                except IndexDown as error:
                    logger.warning("vector flush failed, the log is replayed: %s", error.details)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with self._gate:
            began = self._monotonic()
            yield
            await self._pause(began)

    async def _pause(self, began: float) -> None:
        """After a piece that began then. The clock is asked now: a search may have come since."""
        spent = self._monotonic() - began
        for _ in range(ROUNDS):
            await self._sleep(0.0)
        if self._monotonic() - self._searched_at < LIVE_S:
            await self._sleep(max(GIL_PAUSE_S, LIVE_PAUSE * spent))


def is_bulk(operation: str, args: tuple[Any, ...]) -> bool:
    if operation in ALWAYS_BULK:
        return True
    return operation in BY_SIZE and bool(args) and len(args[0]) > PIECE_POINTS
