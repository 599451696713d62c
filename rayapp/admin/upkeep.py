"""Work of an administrator on the whole store: sizes, free space, old session users, a reset."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta
from typing import Protocol

from rayapp.admin import ports
from rayapp.admin.legacy_bank import LegacyMove
from rayapp.admin.retention import LegalHolds
from rayapp.admin.sanitizing import Sanitizing
from rayapp.bulk.params import KINDS, REINDEX
from rayapp.bulk.ports import JobStore
from rayapp.core.errors import Conflict, IndexDown
from rayapp.core.ids import owner_id
from rayapp.core.runtime import Runtime
from rayapp.index.ports import ItemScan, VectorIndex
from rayapp.index.records import Projection
from rayapp.index.rules.points import collections_of
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import CORE_TIERS
from rayapp.memory.user_data import UserDataService
from rayapp.portability.files import ArchiveFiles
from rayapp.portability.rules.collections import ITEMS, KEPT_IN_RESET, LEGACY_BANK

# Free bytes below which a file is not worth compacting: the server itself gives up below 10 %.
WORTH_BYTES = 1 << 20
# Memories of one page of a reset, and points of one look at what the index still holds.
RESET_PAGE = 500
INDEX = "vector_index"


class UpkeepStores(Protocol):
    """What upkeep reads and removes."""

    housekeeping: ports.Housekeeping
    scan: ItemScan
    jobs: JobStore
    api_keys: ports.ApiKeyStore


@dataclass(eq=False)
class UpkeepService:
    """Work of an administrator on the store. Raises InvalidInput, Conflict, StoreDown.

    moving: of the old memory bank. sanitizing: of texts that hold encoded files.
    """

    stores: UpkeepStores
    index: VectorIndex
    data: UserDataService
    moving: LegacyMove
    sanitizing: Sanitizing
    holds: LegalHolds
    files: ArchiveFiles
    _: KW_ONLY
    runtime: Runtime

    # --- sizes

    async def sizes(self) -> ports.Sizes:
        found, index = await asyncio.gather(
            self.stores.housekeeping.sizes(), self._index_size(), return_exceptions=False
        )
        return ports.Sizes(collections=found, index=index, degraded=() if index else (INDEX,))

    async def compact(self) -> tuple[list[ports.Compaction], bool]:
        """Largest first, one at a time: a compaction reads and writes its whole file."""
        until = self.runtime.clock.monotonic() + self.runtime.budget_s
        sizes = await self.stores.housekeeping.sizes()
        worth = [size for size in sizes if size.free_bytes >= WORTH_BYTES]
        done: list[ports.Compaction] = []
        for size in sorted(worth, key=lambda one: one.free_bytes, reverse=True):
            left_s = until - self.runtime.clock.monotonic()
            if left_s <= 0:
                return done, False
            done.append(await self.stores.housekeeping.compact(size.name, left_s))
        return done, True

    async def _index_size(self) -> ports.IndexSize | None:
        try:
            health = await self.index.health()
        except IndexDown:
            return None
        return ports.IndexSize(
            collection=health.collection, points=health.points, facts=health.facts
        )

    # --- users that were browser sessions

    async def cleanup(self, *, dry_run: bool, quiet_days: int) -> ports.Cleanup:
        """Users that were browser sessions: nobody's key is bound to them, and nothing of theirs
        changed for `quiet_days`."""
        found, keys, held = await asyncio.gather(
            self.stores.housekeeping.session_users(), self.stores.api_keys.all(), self.holds.users()
        )
        named = held | {
            owner_id(key.org_id, key.user_id)
            for key in keys
            if key.user_id is not None and key.revoked_at is None
        }
        quiet_since = self.runtime.clock.now() - timedelta(days=quiet_days)
        orphans = [
            user for user in found if user.user_id not in named and user.last_change < quiet_since
        ]
        report = ports.Cleanup(session_users=len(found), orphans=orphans, dry_run=dry_run)
        return report if dry_run else await self._remove(report)

    async def _remove(self, report: ports.Cleanup) -> ports.Cleanup:
        until = self.runtime.clock.monotonic() + self.runtime.budget_s
        users = memories = rows = 0
        for user in report.orphans:
            left_s = until - self.runtime.clock.monotonic()
            if left_s <= 0:
                break
            scope = WriteScope(user.user_id, "cleanup")
            deleted, kept = await self.data.clear_tiers(scope, CORE_TIERS, left_s)
            memories += deleted
            if kept:
                break
            # As in an erasure: an archive that is kept holds all that just went.
            await self.files.erase(user.user_id)
            rows += await self.stores.housekeeping.forget_rows(user.user_id)
            users += 1
        return replace(
            report,
            users_removed=users,
            memories_removed=memories,
            rows_removed=rows,
            remaining=len(report.orphans) - users,
        )

    # --- reset

    async def reset_preview(self) -> ports.ResetPreview:
        sizes = await self.sizes()
        removed = [one for one in sizes.collections if one.name not in KEPT_IN_RESET]
        legacy = await self.moving.bank.everybody()
        if legacy:
            removed.append(
                ports.CollectionSize(name=LEGACY_BANK, count=legacy, size_bytes=0, storage_bytes=0)
            )
        return ports.ResetPreview(
            collections=removed,
            kept=KEPT_IN_RESET,
            index=sizes.index,
            old_indexes=await self._old_indexes() if sizes.index else (),
        )

    async def reset(self) -> ports.ResetReport:
        """Memories page by page with their points, then the other rows, then what the index still
        holds of memories that are gone: an indexer may have written while they went. Last the
        collections that a rollback could bring back, with texts of memories that are gone.

        Collections are emptied, not dropped: indexes stay, and running processes go on. Archives
        that are kept of users go first: each would bring its user back.
        """
        await self.holds.check_nobody()
        await self._refuse_while_jobs_run()
        await self._refuse_without_index()
        await self.files.erase_all()
        until = self.runtime.clock.monotonic() + self.runtime.budget_s
        removed: dict[str, int] = {ITEMS: 0}
        removed[ITEMS], points, ended = await self._remove_items(until)
        if not ended:
            return ports.ResetReport(removed=removed, points=points, complete=False)
        for size in await self.stores.housekeeping.sizes():
            if size.name in KEPT_IN_RESET:
                continue
            gone = await self.stores.housekeeping.empty(size.name)
            removed[size.name] = removed.get(size.name, 0) + gone
        if legacy := await self.moving.bank.empty():  # a move would bring them back
            removed[LEGACY_BANK] = legacy
        swept, ended = await self._sweep_index(until)
        dropped = await self._drop_old_indexes() if ended else []
        return ports.ResetReport(
            removed=removed,
            points=points + swept,
            complete=ended and not await self._old_indexes(),
            dropped=dropped,
        )

    async def _refuse_while_jobs_run(self) -> None:
        for kind in KINDS:
            unfinished = await self.stores.jobs.unfinished(kind)
            if unfinished:
                raise Conflict(
                    f"The job {unfinished[0].job_id} ({kind}) is not finished; wait for it, or "
                    "cancel it at /api/memory/jobs, before a reset.",
                    code="busy",
                    details={"job_id": unfinished[0].job_id, "kind": kind},
                )

    async def _refuse_without_index(self) -> None:
        """Points that stay behind would be shown to nobody, but a person wants them gone."""
        health = await self.index.health()
        if not health.ready:
            raise IndexDown(
                "The vector index is away, so its part of the data would stay; nothing was "
                "removed. Try again when /api/memory/health says that it is back."
            )

    async def _remove_items(self, until: float) -> tuple[int, int, bool]:
        items, points, after = 0, 0, None
        while self.runtime.clock.monotonic() < until:
            page, after = await self.stores.scan.page(after=after, until=None, limit=RESET_PAGE)
            ids = [item.point_id for item in page]
            # Rows first: a point without a row is shown to nobody, a row without one would be.
            items += await self.stores.housekeeping.remove_points(ids)
            await self._delete_points(ids)
            points += len(ids)
            if after is None:
                return items, points, True
        return items, points, False

    async def _sweep_index(self, until: float) -> tuple[int, bool]:
        gone, after, ids_alone = 0, None, Projection(())
        while self.runtime.clock.monotonic() < until:
            page, after = await self.index.scroll(after=after, limit=RESET_PAGE, read=ids_alone)
            ids = [point.point_id for point in page]
            kept = await self.stores.scan.existing(ids)
            orphans = [point_id for point_id in ids if point_id not in kept]
            await self._delete_points(orphans)
            gone += len(orphans)
            if after is None:
                return gone, True
        return gone, False

    async def _old_indexes(self) -> list[str]:
        names = collections_of(self.runtime.settings.qdrant.alias, await self.index.collections())
        target = (await self.index.health()).collection
        return [name for name in names if name != target]

    async def _drop_old_indexes(self) -> list[str]:
        """Those too that wait for a service to be restarted: they hold what is removed. What a job
        fills since the reset began stays, and asking again is refused until that job ends."""
        filled = {job.facts.get("collection") for job in await self.stores.jobs.unfinished(REINDEX)}
        dropped = []
        for name in await self._old_indexes():
            if name in filled:
                continue
            with suppress(Conflict):  # a rollback moved the alias to it a moment ago
                await self.index.drop_collection(name)
                dropped.append(name)
        return dropped

    async def _delete_points(self, ids: Sequence[str]) -> None:
        if ids:
            await self.index.delete(ids)
