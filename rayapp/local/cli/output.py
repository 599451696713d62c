"""What the commands print with: text is data, tables fold, a start says what it waits for."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

# Names, paths and error texts come from people and servers: brackets and colons mean themselves.
console = Console(markup=False, emoji=False, highlight=False)

# Wider than any report: a file or a pipe has no edge at which to cut a column's name.
WIDE = 1_000


def report_console() -> Console:
    """For tables of numbers: as wide as the terminal, or as the table where there is none."""
    made = Console(markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = WIDE
    return made


def table_of(*columns: str, title: str | None = None) -> Table:
    """An empty table whose cells wrap when the terminal is narrow."""
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def number_table(
    title: str, columns: Iterable[str], rows: Iterable[Sequence[str]] = (), *, words: int = 1
) -> Table:
    """The first `words` columns hold words, the others numbers."""
    table = Table(title=title, title_justify="left")
    for at, name in enumerate(columns):
        table.add_column(name, justify="left" if at < words else "right")
    for row in rows:
        table.add_row(*row)
    return table


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1
) -> list[str]:
    """The same as lines of Markdown."""
    ruler = "|" + "---|" * words + "---:|" * (len(columns) - words)
    head, *lines = (f"| {' | '.join(row)} |" for row in (columns, *rows))
    return [head, ruler, *lines]


LINE_EVERY_S = 5.0  # of silence at most, where the output is no terminal
LOOKS = 10  # of the ticker in that time


class StartProgress:
    """A live line on a terminal; elsewhere a line per change, and one every few seconds.

    `with StartProgress(console) as progress: progress.waiting("ray: starting")`. The seconds count
    from the first word on the same part, which is what stands before the colon.
    """

    def __init__(
        self,
        console: Console,
        *,
        now: Callable[[], float] = time.monotonic,
        every_s: float = LINE_EVERY_S,
    ) -> None:
        self._console, self._now, self._every_s = console, now, every_s
        self._what, self._since, self._printed = "starting", now(), now()
        self._ended = threading.Event()
        self._live: Status | None = None
        self._ticker: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = self._console.status(self)
            self._live.start()
        else:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._live is not None:
            self._live.stop()
        if self._ticker is not None:
            self._ticker.join()

    def __rich__(self) -> Text:
        return Text(self.line())

    def waiting(self, what: str) -> None:
        """From now on this is waited for."""
        if what.partition(":")[0] != self._what.partition(":")[0]:
            self._since = self._now()
        self._what = what
        if self._live is None:
            self._print()

    def line(self) -> str:
        return f"{self._what} … {self._now() - self._since:.0f} s"

    def _tick(self) -> None:
        while not self._ended.wait(self._every_s / LOOKS):
            if self._now() - self._printed >= self._every_s:
                self._print()

    def _print(self) -> None:
        self._printed = self._now()
        self._console.print(self.line(), soft_wrap=True)


def shown(text: str) -> str:
    """What a terminal takes: of a name that is not UTF-8, the bytes that are none written out."""
    return text.encode(errors="backslashreplace").decode()
