"""What the commands print with: text is data, never markup, and tables fold instead of cutting."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

# Names, paths and error texts come from people and servers: brackets and colons mean themselves.
console = Console(markup=False, emoji=False, highlight=False)


def table_of(*columns: str) -> Table:
    """An empty table whose cells wrap when the terminal is narrow."""
    table = Table()
    for name in columns:
        table.add_column(name, overflow="fold")
    return table
