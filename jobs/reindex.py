"""`python -m jobs.reindex`: fill a new collection with the configured model and analyser.

The alias moves to the new collection first; until it is full, searches are answered from the truth
and say `index_rebuilding`. Older collections stay until `--drop-old`.

Exit codes: 0 done, 2 bad arguments, 3 some items failed, 4 a dependency is away.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from jobs.waiting import until_full
from rayapp import bootstrap
from rayapp.adapters.local_stack import stack
from rayapp.client.discovery import data_dir_of
from rayapp.client.progress import Progress
from rayapp.domain.index import IndexSchema
from rayapp.domain.points import collection_name
from rayapp.errors import ConfigError, DependencyDown, RayappError
from rayapp.observability.metrics import InMemoryMetrics
from rayapp.protocols import MemoryStore, VectorIndex
from rayapp.settings import Settings


async def reindex(
    store: MemoryStore,
    index: VectorIndex,
    schema: IndexSchema,
    *,
    alias: str,
    drop_old: bool,
    console: Console,
) -> int:
    """New collection, alias, then wait while the service's indexer fills it."""
    before = (await index.health()).collection
    name = collection_name(alias, schema, datetime.now(UTC))
    await index.create_collection(name, schema, needs_rebuild=True)
    await index.switch_alias(name)
    console.print(f"{before} -> {name}; reads come from the truth until it is full.")
    total = max(1, (await store.backlog()).synced)

    async def left() -> int:
        if not (await index.health()).needs_rebuild:
            return 0
        return max(1, total - await index.count())

    with Progress(console) as progress, progress.step("index", total) as bar:
        await until_full(left, total, bar)
    backlog = await store.backlog()
    if drop_old and not backlog.failed:
        for dropped in await drop_others(index, alias):
            console.print(f"{dropped} dropped.")
    console.print(f"{await index.count()} points in {name}; {backlog.failed} items failed.")
    return 3 if backlog.failed else 0


async def drop_others(index: VectorIndex, alias: str) -> list[str]:
    """Drop every collection made for this alias but its target; returns their names.

    Earlier runs without `--drop-old`, or cut short, leave more than one.
    """
    target = (await index.health()).collection
    made = re.compile(rf"{re.escape(alias)}_[^_]+_\d+_\d+")  # the form of `collection_name`
    found = [name for name in await index.collections() if made.fullmatch(name)]
    others = [name for name in found if name != target]
    for name in others:
        await index.drop_collection(name)
    return others


async def schema_of(settings: Settings) -> IndexSchema:
    """What the configured embedder and analyser would build."""
    service = bootstrap.embedding_service(settings, InMemoryMetrics())
    try:
        return bootstrap.schema_of(await service.info(), bootstrap.load_texts().analyser)
    finally:
        await service.close()


async def run(settings: Settings, *, drop_old: bool, console: Console) -> int:
    # Imported after the stack's environment is set: Ray reads it at import.
    import ray

    from rayapp.deployments.process import vector_index

    if not settings.qdrant.url:
        ray.init(address=settings.ray.address, log_to_driver=False, configure_logging=False)
    return await reindex(
        bootstrap.mongo_stores(settings).items,
        vector_index(settings),
        await schema_of(settings),
        alias=settings.qdrant.alias,
        drop_old=drop_old,
        console=console,
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="reindex", description=__doc__)
    parser.add_argument("--data-dir", type=Path, default=None, help="Stack to attach to.")
    parser.add_argument(
        "--drop-old", action="store_true", help="Delete all older collections of the alias."
    )
    options = parser.parse_args(argv)
    console = Console(markup=False, emoji=False)
    try:
        settings = stack.attach(data_dir_of(options.data_dir))
        return asyncio.run(run(settings, drop_old=options.drop_old, console=console))
    except DependencyDown as error:
        console.print(error.message)
        return 4
    except (ConfigError, RayappError) as error:
        console.print(error.message)
        return 2


if __name__ == "__main__":
    sys.exit(main())
