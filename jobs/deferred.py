"""`python -m jobs.deferred`: try failed items again and wait until nothing waits for the index.

Exit codes: 0 done, 2 bad arguments, 3 some items failed again, 4 a dependency is away.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from rich.console import Console

from jobs.waiting import until_full
from rayapp import bootstrap
from rayapp.adapters.local_stack import stack
from rayapp.client.discovery import data_dir_of
from rayapp.client.progress import Progress
from rayapp.errors import ConfigError, DependencyDown, RayappError
from rayapp.protocols import MemoryStore


async def run(store: MemoryStore, console: Console) -> int:
    """Requeue and wait; the number of items that failed again decides the exit code."""
    asked = await store.retry_failed()
    console.print(f"{asked} failed items are tried again.")

    async def left() -> int:
        return (await store.backlog()).pending

    total = await left()
    with Progress(console) as progress, progress.step("index", total) as bar:
        await until_full(left, total, bar)
    backlog = await store.backlog()
    console.print(f"{backlog.synced} items are indexed, {backlog.failed} failed.")
    return 3 if backlog.failed else 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="deferred", description=__doc__)
    parser.add_argument("--data-dir", type=Path, default=None, help="Stack to attach to.")
    options = parser.parse_args(argv)
    console = Console(markup=False, emoji=False)
    try:
        settings = stack.attach(data_dir_of(options.data_dir))
        return asyncio.run(run(bootstrap.mongo_stores(settings).items, console))
    except DependencyDown as error:
        console.print(error.message)
        return 4
    except (ConfigError, RayappError) as error:
        console.print(error.message)
        return 2


if __name__ == "__main__":
    sys.exit(main())
