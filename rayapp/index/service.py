"""Store-then-embed: claim, embed, write to the index, set `synced`; who serves a model."""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta

from rayapp.bulk.lease import RENEWALS, beside
from rayapp.bulk.ports import LeaseStore
from rayapp.core.errors import NotFound, RayappError
from rayapp.core.retry import RetryPolicy, backoff_s
from rayapp.core.runtime import Runtime
from rayapp.core.vectors import IndexSchema
from rayapp.index.point_builder import PointBuilder, PointFailure, written
from rayapp.index.ports import VectorIndex
from rayapp.index.rules.points import collections_of, payload_update_of, vector_hash_of
from rayapp.index.write_barrier import held
from rayapp.memory.item import IndexOp, MemoryItem, Status
from rayapp.memory.ports import IndexResult, MemoryStore
from rayapp.memory.rules.hiding import hidden_reason
from rayapp.memory.scope import ReadScope

# Which model the running service serves: its indexers keep a lease of that name alive.

# An indexer renews about every two seconds; six missed beats mean that there is none.
SERVING_S = 15.0
# Between two looks at a lease that may be a dead process's, seconds.
LOOK_S = 1.0
# Another replica takes over a lease that ended within this time, seconds.
TAKEOVER_S = 5.0

Sleep = Callable[[float], Awaitable[None]]


def serving_lease(schema: IndexSchema) -> str:
    """The lease of one schema. The analyser is part of it, so its whole name is hashed in."""
    basis = f"{schema.model}\n{schema.dims}\n{schema.analyser}"
    return f"serving:{schema.slug}:{hashlib.sha256(basis.encode()).hexdigest()[:12]}"


async def beat(leases: LeaseStore, schema: IndexSchema, process: str) -> None:
    """Called by every indexer whose index is open; one of them holds the lease."""
    await leases.acquire(serving_lease(schema), process, SERVING_S)


async def served_now(leases: LeaseStore, schema: IndexSchema) -> bool:
    """One look, for who learned from `is_served` that nobody did: a lease that is there now is of
    a process that was started since."""
    return await leases.current(serving_lease(schema)) is not None


async def is_served(leases: LeaseStore, schema: IndexSchema, sleep: Sleep) -> bool:
    """True when a service runs with `schema`. May take as long as a dead process's lease lasts.

    Only a renewed lease proves a living process; a lease that is away may just change hands.
    """
    name = serving_lease(schema)
    first = await leases.current(name)
    waited_s = missing_s = 0.0
    while waited_s <= SERVING_S + TAKEOVER_S:
        now = await leases.current(name)
        if now is None:
            if missing_s >= TAKEOVER_S:
                return False
            missing_s += LOOK_S
        elif first is None or now.expires_at > first.expires_at:
            return True
        else:
            missing_s = 0.0
        await sleep(LOOK_S)
        waited_s += LOOK_S
    return False


log = logging.getLogger("rayapp.indexing")
REBUILD_LEASE = "index_rebuild"
REBUILD_LEASE_S = 60.0
# After an outage the backlog must drain soon, so its items never earn the ten minutes of a bad one.
OUTAGE_PAUSE_S = 5.0
OnDeleted = Callable[[Sequence[str]], Awaitable[None]]


def _op_of(item: MemoryItem) -> IndexOp:
    """Only active items have a point (decision 0004), whatever an edit of the item asked for."""
    return item.index.op if item.status is Status.ACTIVE else IndexOp.DELETE


def _is_new(result: IndexResult) -> bool:
    return result.op is IndexOp.VECTOR and result.error is None


def _result_of(item: MemoryItem) -> IndexResult:
    return IndexResult(
        user_id=item.user_id,
        point_id=item.point_id,
        rev=item.index.rev,
        op=_op_of(item),
        context_prefix=item.context_prefix,
    )


@dataclass(eq=False)
class IndexingService:
    """One owner loop calls `run_once` again and again.

    `outage` is True after a batch in which nothing could be done, so that the loop may pause.

    Args:
        on_deleted, on_hidden: forget what is kept elsewhere of memories that were deleted, and of
            those that a person hid; when one fails, the delete of their points is tried again.
        on_written: told the points that were written for a text just now.
    """

    store: MemoryStore
    index: VectorIndex
    maker: PointBuilder
    leases: LeaseStore
    _: KW_ONLY
    on_deleted: OnDeleted | None = None
    on_hidden: OnDeleted | None = None
    on_written: Callable[[Sequence[str]], None] | None = None
    runtime: Runtime

    def __post_init__(self) -> None:
        self._rebuild: tuple[str | None, float] | None = None
        self.outage = False

    async def close(self) -> None:
        """End the connections of whoever prefixes; nothing is indexed afterwards."""
        await self.maker.close()

    async def run_once(self) -> int:
        """Index one claimed batch; the number of items worked on, 0 when nothing is due.

        Nothing is claimed while a job moves the alias: the wait is seconds, and is the queue's.
        Nor on a disk so full that the index would take what MongoDB needs to stay up.
        """
        if self.runtime.disk.full_for_index or await held(self.leases):
            return 0
        items = await self.store.claim(
            token=self.runtime.process,
            limit=self.maker.batch(self.runtime.settings.indexer.batch_size),
            claim_s=self.runtime.settings.indexer.claim_s,
        )
        if not items:
            return 0
        results = [
            *await self._upsert([i for i in items if _op_of(i) is IndexOp.VECTOR]),
            *await self._set_payload([i for i in items if _op_of(i) is IndexOp.PAYLOAD]),
            *await self._delete([i for i in items if _op_of(i) is IndexOp.DELETE]),
        ]
        matched = await self.store.finish(self.runtime.process, results, self.maker.schema)
        if matched < len(results):
            await self._take_back([i for i in items if _op_of(i) is IndexOp.VECTOR])
        self.outage = all(result.error is not None and not result.blamed for result in results)
        if self.on_written is not None:
            self.on_written([r.point_id for r in results if _is_new(r)])
        self._report(items, results)
        return len(items)

    async def rebuild_if_lost(self) -> bool:
        """One look at the index: when it lost its data, ask for every item again.

        `needs_rebuild` is cleared only once everything that was asked for is back, or gave up by
        its own fault: search reads the truth until then. True while a rebuild goes on.
        """
        await beat(self.leases, self.maker.schema, self.runtime.process)
        health = await self.index.health()
        if health.collection is None:
            await self.index.open(self.maker.schema)
            health = await self.index.health()
        if not health.needs_rebuild:
            self._rebuild = None
            return False
        lease = await self.leases.acquire(REBUILD_LEASE, self.runtime.process, REBUILD_LEASE_S)
        if lease is None:
            return True
        began = await self._rebuild_began(health.collection)
        backlog = await self.store.backlog()
        untried = backlog.oldest_untried_s
        if untried is not None and untried >= self.runtime.clock.monotonic() - began:
            return True
        await self.index.rebuilt()
        await self.leases.release(lease)
        self._rebuild = None
        log.info("the index is complete")
        return False

    async def _rebuild_began(self, collection: str | None) -> float:
        """When this rebuild began; a collection that was lost again begins another one."""
        if self._rebuild is None or self._rebuild[0] != collection:
            count = await beside(self.store.mark_all_pending(), self._keep_rebuild())
            self._rebuild = (collection, self.runtime.clock.monotonic())
            if count:
                log.warning("the index is to be filled: %d items will be indexed again", count)
        return self._rebuild[1]

    async def _keep_rebuild(self) -> None:
        """Of millions of items the store takes minutes: nobody else must begin meanwhile."""
        while True:
            await asyncio.sleep(REBUILD_LEASE_S / RENEWALS)
            with suppress(RayappError):  # tried again before the lease ends
                await self.leases.acquire(REBUILD_LEASE, self.runtime.process, REBUILD_LEASE_S)

    async def _upsert(self, items: Sequence[MemoryItem]) -> list[IndexResult]:
        points, failures = await self.maker.made(items)
        stored, refused = await written(self.index, points)
        return [*map(self._synced, stored), *map(self._failed, [*failures, *refused])]

    async def _set_payload(self, items: Sequence[MemoryItem]) -> list[IndexResult]:
        updates = [payload_update_of(item) for item in items]
        return await self._write(items, lambda: self.index.set_payload(updates))

    async def _delete(self, items: Sequence[MemoryItem]) -> list[IndexResult]:
        revs = {item.point_id: item.index.rev for item in items}

        async def delete() -> None:
            await self._delete_everywhere(revs)
            await self._forget(items)

        return await self._write(items, delete)

    async def _forget(self, items: Sequence[MemoryItem]) -> None:
        """Of what is still gone, or hidden: an import may have put it back since the claim, with
        all that is kept elsewhere of it."""
        deleted = [item for item in items if item.status is Status.DELETED]
        hidden = [item for item in items if hidden_reason(item) is not None]
        now = await self._as_stored([*deleted, *hidden])
        back = {one for one, item in now.items() if hidden_reason(item) is None}
        gone = [item.point_id for item in deleted if item.point_id not in now]
        away = [item.point_id for item in hidden if item.point_id not in back]
        for point_ids, forget in ((gone, self.on_deleted), (away, self.on_hidden)):
            if point_ids and forget is not None:
                await forget(point_ids)

    async def _delete_everywhere(self, revs: Mapping[str, int]) -> None:
        """From every collection of the alias: what a reindex fills, and what a rollback may bring
        back, must not hold a memory that was deleted."""
        await self.index.delete(list(revs), revs)
        for name in collections_of(
            self.runtime.settings.qdrant.alias, await self.index.collections()
        ):
            with suppress(NotFound):  # dropped meanwhile
                await self.index.at(name).delete(list(revs), revs)

    async def _take_back(self, items: Sequence[MemoryItem]) -> None:
        """Delete the points of items that were deleted or archived while they were written: another
        indexer's delete may have come before this write, and must win."""
        found = await self._as_stored(items)
        living = {one for one, item in found.items() if item.status is Status.ACTIVE}
        gone = {item.point_id: item.index.rev for item in items if item.point_id not in living}
        if gone:
            await self._delete_everywhere(gone)

    async def _as_stored(self, items: Sequence[MemoryItem]) -> dict[str, MemoryItem]:
        """The truth of now by point; without what is deleted."""
        found: list[MemoryItem] = []
        for user_id in {item.user_id for item in items}:
            mine = [item.point_id for item in items if item.user_id == user_id]
            found += await self.store.by_points(ReadScope(user_id, include_shared=False), mine)
        return {item.point_id: item for item in found}

    async def _write(
        self, items: Sequence[MemoryItem], call: Callable[[], Awaitable[None]]
    ) -> list[IndexResult]:
        if not items:
            return []
        try:
            await call()
        except RayappError as error:
            return [self._failed(PointFailure(item, error)) for item in items]
        return [self._synced(item) for item in items]

    def _synced(self, item: MemoryItem) -> IndexResult:
        hashed = (
            vector_hash_of(item.content_hash, self.maker.schema, item.context_prefix)
            if _op_of(item) is IndexOp.VECTOR
            else item.index.vector_hash
        )
        return replace(_result_of(item), vector_hash=hashed)

    def _failed(self, failure: PointFailure) -> IndexResult:
        item, error = failure.item, failure.error
        outage = failure.outage
        attempt = item.index.attempts + 1
        policy = RetryPolicy(
            attempts=self.runtime.settings.indexer.max_attempts,
            base_s=self.runtime.settings.indexer.backoff_min_s,
            max_s=self.runtime.settings.indexer.backoff_max_s,
        )
        # Half of the pause is certain: full jitter could retry at once, again and again.
        share = 0.5 + self.runtime.random() / 2
        pause_s = share * OUTAGE_PAUSE_S if outage else backoff_s(attempt, policy, share)
        return replace(
            _result_of(item),
            error=f"{error.code}: {error.message}",
            next_attempt_at=self.runtime.clock.now() + timedelta(seconds=pause_s),
            # An outage is not the item's fault: it never turns an item into `failed`.
            blamed=not outage,
            failed=not outage and attempt >= self.runtime.settings.indexer.max_attempts,
        )

    def _report(self, items: Sequence[MemoryItem], results: Sequence[IndexResult]) -> None:
        now = self.runtime.clock.now()
        stored = {item.point_id: item.updated_at for item in items}
        for result in results:
            ok = result.error is None
            self.runtime.metrics.count(
                "indexed", op=result.op.value, result="synced" if ok else "retry"
            )
            if ok:
                age = (now - stored[result.point_id]).total_seconds()
                self.runtime.metrics.observe("index_delay_s", max(0.0, age))
        errors = {result.error for result in results if result.error}
        if errors:
            log.warning("indexing will retry: %s", "; ".join(sorted(errors)[:3]))
