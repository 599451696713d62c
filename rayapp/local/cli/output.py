"""What the commands print with: text is data, never markup, and tables fold instead of cutting."""

from __future__ import annotations

import os

from rich.console import Console
from rich.table import Table

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


def table_of(*columns: str) -> Table:
    """An empty table whose cells wrap when the terminal is narrow."""
    table = Table()
    for name in columns:
        table.add_column(name, overflow="fold")
    return table
