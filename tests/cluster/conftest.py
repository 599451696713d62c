"""One cluster for all tests, and the table of what each death cost."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rayapp.local.cli.output import number_table
from tests.cluster.hosts import missing
from tests.cluster.rig import Cluster

ROWS: list[dict[str, Any]] = []
HEADS = ("what", "calls", "failed", "last, s", "searches failed", "missing", "degraded", "whole, s")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if reason := missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="rayapp-c-", ignore_cleanup_errors=True) as folder:
        made = Cluster(Path(folder))
        try:
            made.start()
            yield made
        finally:
            made.stop()


def pytest_terminal_summary() -> None:
    if not ROWS:
        return
    table = number_table("What each death costs a cluster of three hosts", HEADS)
    for row in ROWS:
        table.add_row(*(str(row.get(head, "")) for head in HEADS))
    Console(width=120).print(table)
