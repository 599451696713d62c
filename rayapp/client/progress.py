"""Progress of a long run: a bar on a terminal, one JSON line per 5 s elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, Self

import orjson
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress

from rayapp.client.http import MemoryClient
from rayapp.wire.insights import BacklogView

LINE_INTERVAL_S = 5.0  # between two JSON lines: readable in a job log, fresh enough to follow


class Bar(Protocol):
    """Where a step reports to."""

    def advance(self, count: int = 1) -> None: ...

    def at(self, done: int, total: int | None = None, stage: str = "") -> None: ...


class _TerminalBar:
    def __init__(self, progress: RichProgress, name: str, total: int) -> None:
        self._progress, self._name = progress, name
        self._task = progress.add_task(name, total=total)

    def advance(self, count: int = 1) -> None:
        self._progress.advance(self._task, count)

    def at(self, done: int, total: int | None = None, stage: str = "") -> None:
        name = f"{self._name}: {stage}" if stage else self._name
        self._progress.update(self._task, description=name, completed=done, total=total)


class _LineBar:
    def __init__(self, console: Console, name: str, total: int, now: Callable[[], float]) -> None:
        self._console, self._name, self._total, self._now = console, name, total, now
        self._done, self._stage = 0, ""
        self._last: tuple[int, int] | None = None
        self._started = self._printed = now()

    def advance(self, count: int = 1) -> None:
        self.at(self._done + count)

    def at(self, done: int, total: int | None = None, stage: str = "") -> None:
        self._done, self._stage = done, stage
        self._total = self._total if total is None else total
        if self._now() - self._printed >= LINE_INTERVAL_S:
            self.line()

    def end(self) -> None:
        """The last state, unless it was just printed."""
        if self._last != (self._done, self._total):
            self.line()

    def line(self) -> None:
        self._printed, self._last = self._now(), (self._done, self._total)
        row = {
            "step": self._name,
            **({"stage": self._stage} if self._stage else {}),
            "done": self._done,
            "total": self._total,
            "elapsed_s": round(self._printed - self._started, 1),
        }
        self._console.file.write(orjson.dumps(row).decode() + "\n")
        self._console.file.flush()


class Progress:
    """`with Progress(console) as progress: with progress.step("store", 100) as bar: …`"""

    def __init__(self, console: Console, *, now: Callable[[], float] = time.monotonic) -> None:
        self._console, self._now = console, now
        self._rich: RichProgress | None = None
        if console.is_terminal:
            self._rich = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=console,
            )

    def __enter__(self) -> Self:
        if self._rich is not None:
            self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._rich is not None:
            self._rich.stop()

    @contextmanager
    def step(self, name: str, total: int) -> Iterator[Bar]:
        """One step; elsewhere than on a terminal its last state is always printed."""
        if self._rich is not None:
            yield _TerminalBar(self._rich, name, total)
            return
        bar = _LineBar(self._console, name, total, self._now)
        try:
            yield bar
        finally:
            bar.end()


async def wait_indexed(
    client: MemoryClient, progress: Progress, name: str, *, encoded: bool = False
) -> None:
    """Wait until nothing is pending; the bar's total is the backlog at its highest.

    Raises: as `MemoryClient.wait_indexed`.
    """
    highest = 0
    with progress.step(name, 0) as bar:

        def show(backlog: BacklogView) -> None:
            nonlocal highest
            waiting = backlog.waiting(encoded=encoded) or 0
            highest = max(highest, waiting)
            bar.at(highest - waiting, highest)

        await client.wait_indexed(on_progress=show, encoded=encoded)
