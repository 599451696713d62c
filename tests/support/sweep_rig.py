"""A real MongoDB, the real embedded engine and an indexer in one process, to break and to sweep."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rayapp.bulk.model import Finish
from rayapp.container.services import Container
from rayapp.container.understanding import orphans_of
from rayapp.index.consistency.comparison import Repairs
from rayapp.index.consistency.rules import Drift
from rayapp.index.consistency.service import SweepLog, SweepStores, SweepWork
from rayapp.index.service import IndexingService
from rayapp.memory.item import IndexOp, IndexState, MemoryItem, Source, Status, SyncState
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.drift import inject
from tests.support.engine_container import engine_container
from tests.support.work_by_hand import run_by_hand

BATCH = 1_000
USERS = 50
TIERS = (Tier.WORKING, Tier.HISTORY, Tier.PATTERNS, Tier.MEMORY_BANK, Tier.BOOKS)
TEXTS = (
    "note {n}: the budget of the project was approved",
    "הערה {n}: התקציב של הפרויקט אושר",
    "note {n}: Dana moved from Haifa to Tel Aviv",
    "הערה {n}: דנה עברה מחיפה לתל אביב",
)
# Of 100 items, so many are archived and so many gave up on the index.
ARCHIVED, FAILED = 3, 1
INDEXER_POLL_S = 0.02


@dataclass(slots=True)
class SweepRig:
    """`async with SweepRig.opened(folder) as rig`."""

    container: Container

    @classmethod
    @asynccontextmanager
    async def opened(cls, folder: Path, **overrides: Any) -> AsyncIterator[SweepRig]:
        """Servers that end with the block; `overrides` are settings."""
        async with engine_container(folder, **overrides) as container:
            yield cls(container)

    async def fill(self, count: int) -> None:
        """Store `count` items of many users and write them to the index."""
        for start in range(0, count, BATCH):
            numbers = range(start, min(count, start + BATCH))
            await self.container.stores.items.insert_many([_item(number) for number in numbers])
        await drained(self.container.indexing)

    async def items(self) -> list[MemoryItem]:
        found: list[MemoryItem] = []
        after: str | None = None
        while True:
            page, after = await self.container.stores.scan.page(
                after=after, until=None, limit=BATCH
            )
            found += page
            if after is None:
                return found

    async def break_share(self, share: float, seed: int = 1) -> dict[Drift, list[str]]:
        """Break that share of all items once per kind; the broken points."""
        items = await self.items()
        wanted = max(2, round(len(items) * share))
        chosen = random.Random(seed).sample(items, len(items))
        active = [
            item
            for item in chosen
            if item.status is Status.ACTIVE and item.index.sync_state is SyncState.SYNCED
        ]
        archived = [item for item in chosen if item.status is Status.ARCHIVED]
        broken: dict[Drift, list[str]] = {}
        for kind in Drift:
            some = [active.pop() for _ in range(wanted)]
            if kind is Drift.NOT_ACTIVE:
                some[: wanted // 2] = archived[: wanted // 2]
            broken[kind] = await inject(self.container.index, kind, some, self.container.schema)
        return broken

    async def sweep(self, *, repair: bool, quarantine: bool = False, workers: int = 2) -> Finish:
        """The job without its frame, beside the indexer."""
        async with self.indexer():
            return await run_by_hand(lambda: self.work(repair, quarantine), workers=workers)

    def work(self, repair: bool, quarantine: bool = False) -> SweepWork:
        stores, runtime = self.container.stores, self.container.runtime
        return SweepWork(
            self.container.comparison,
            SweepStores(
                items=stores.items, graphs=stores.graphs, derived=orphans_of(stores, runtime)
            ),
            SweepLog(stores.events, "a sweep by hand", runtime),
            sample=None,
            repairs=Repairs(repair=repair, quarantine=quarantine),
            runtime=runtime,
        )

    @asynccontextmanager
    async def indexer(self) -> AsyncIterator[None]:
        """The indexer's loop while the block runs; the batch in work ends, no claim is left."""
        service, stopping = self.container.indexing, asyncio.Event()

        async def loop() -> None:
            while not stopping.is_set():
                if not await service.run_once():
                    await asyncio.sleep(INDEXER_POLL_S)

        task = asyncio.create_task(loop())
        try:
            yield
        finally:
            stopping.set()
            await task


async def drained(service: IndexingService) -> None:
    """Run the indexer until nothing is due."""
    while await service.run_once():
        pass


def kinds_of(broken: Mapping[Drift, Sequence[str]]) -> dict[str, int]:
    """How many there are of each kind, as reports say it."""
    return {kind.value: len(ids) for kind, ids in broken.items()}


def _item(number: int) -> MemoryItem:
    place = number % 100
    state, status = IndexState(), Status.ACTIVE
    if place < ARCHIVED:
        state = IndexState(op=IndexOp.DELETE, rev=2, sync_state=SyncState.SYNCED)
        status = Status.ARCHIVED
    elif place < ARCHIVED + FAILED:
        state = IndexState(sync_state=SyncState.FAILED, attempts=20, last_error="bad_vector")
    return an_item(
        user_id=f"user-{number % USERS}",
        memory_id=f"m-{number}",
        text=TEXTS[number % len(TEXTS)].format(n=number),
        tier=TIERS[number % len(TIERS)],
        tags=(f"tag-{number % 7}", "תקציב"),
        source=Source(conversation_id=f"c-{number % 30}"),
        status=status,
        index=state,
    )
