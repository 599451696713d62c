"""Store-then-embed: claim, embed, write to the index, set `synced`; who serves a model."""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta

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
from rayapp.memory.rules.lifecycle import hidden_reason
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


class IndexingService:
    """One owner loop calls `run_once` again and again.

    `outage` is True after a batch in which nothing could be done, so that the loop may pause.

    Args:
        on_deleted, on_hidden: forget what is kept elsewhere of memories that were deleted, and of
            those that a person hid; when one fails, the delete of their points is tried again.
    """

    def __init__(
        self,
        store: MemoryStore,
        index: VectorIndex,
        maker: PointBuilder,
        leases: LeaseStore,
        *,
        on_deleted: OnDeleted | None = None,
        on_hidden: OnDeleted | None = None,
        runtime: Runtime,
    ) -> None:
        self._store = store
        self._index = index
        self._maker = maker
        self._leases = leases
        self._schema = maker.schema
        self._on_deleted = on_deleted
        self._on_hidden = on_hidden
        self._clock = runtime.clock
        self._metrics = runtime.metrics
        self._settings = runtime.settings.indexer
        self._alias = runtime.settings.qdrant.alias
        self._token = runtime.process
        self._jitter = runtime.random
        self._disk = runtime.disk
        self._rebuild: tuple[str | None, float] | None = None
        self.outage = False

    async def close(self) -> None:
        """End the connections of whoever prefixes; nothing is indexed afterwards."""
        await self._maker.close()

    async def run_once(self) -> int:
        """Index one claimed batch; the number of items worked on, 0 when nothing is due.

        Nothing is claimed while a job moves the alias: the wait is seconds, and is the queue's.
        Nor on a full disk, where the index would take what MongoDB needs to stay up.
        """
        if self._disk.full or await held(self._leases):
            return 0
        items = await self._store.claim(
            token=self._token,
            limit=self._maker.batch(self._settings.batch_size),
            claim_s=self._settings.claim_s,
        )
        if not items:
            return 0
        results = [
            *await self._upsert([i for i in items if _op_of(i) is IndexOp.VECTOR]),
            *await self._set_payload([i for i in items if _op_of(i) is IndexOp.PAYLOAD]),
            *await self._delete([i for i in items if _op_of(i) is IndexOp.DELETE]),
        ]
        matched = await self._store.finish(self._token, results, self._schema)
        if matched < len(results):
            await self._take_back([i for i in items if _op_of(i) is IndexOp.VECTOR])
        self.outage = all(result.error is not None and not result.blamed for result in results)
        self._report(items, results)
        return len(items)

    async def rebuild_if_lost(self) -> bool:
        """One look at the index: when it lost its data, ask for every item again.

        `needs_rebuild` is cleared only once everything that was asked for is back, or gave up by
        its own fault: search reads the truth until then. True while a rebuild goes on.
        """
        await beat(self._leases, self._schema, self._token)
        health = await self._index.health()
        if health.collection is None:
            await self._index.open(self._schema)
            health = await self._index.health()
        if not health.needs_rebuild:
            self._rebuild = None
            return False
        lease = await self._leases.acquire(REBUILD_LEASE, self._token, REBUILD_LEASE_S)
        if lease is None:
            return True
        began = await self._rebuild_began(health.collection)
        backlog = await self._store.backlog()
        untried = backlog.oldest_untried_s
        if untried is not None and untried >= self._clock.monotonic() - began:
            return True
        await self._index.rebuilt()
        await self._leases.release(lease)
        self._rebuild = None
        log.info("the index is complete")
        return False

    async def _rebuild_began(self, collection: str | None) -> float:
        """When this rebuild began; a collection that was lost again begins another one."""
        if self._rebuild is None or self._rebuild[0] != collection:
            count = await self._store.mark_all_pending()
            self._rebuild = (collection, self._clock.monotonic())
            if count:
                log.warning("the index is to be filled: %d items will be indexed again", count)
        return self._rebuild[1]

    async def _upsert(self, items: Sequence[MemoryItem]) -> list[IndexResult]:
        points, failures = await self._maker.made(items)
        stored, refused = await written(self._index, points)
        return [*map(self._synced, stored), *map(self._failed, [*failures, *refused])]

    async def _set_payload(self, items: Sequence[MemoryItem]) -> list[IndexResult]:
        updates = [payload_update_of(item) for item in items]
        return await self._write(items, lambda: self._index.set_payload(updates))

    async def _delete(self, items: Sequence[MemoryItem]) -> list[IndexResult]:
        revs = {item.point_id: item.index.rev for item in items}
        deleted = [item.point_id for item in items if item.status is Status.DELETED]
        hidden = [item.point_id for item in items if hidden_reason(item) is not None]

        async def delete() -> None:
            await self._delete_everywhere(revs)
            for gone, forget in ((deleted, self._on_deleted), (hidden, self._on_hidden)):
                if gone and forget is not None:
                    await forget(gone)

        return await self._write(items, delete)

    async def _delete_everywhere(self, revs: Mapping[str, int]) -> None:
        """From every collection of the alias: what a reindex fills, and what a rollback may bring
        back, must not hold a memory that was deleted."""
        await self._index.delete(list(revs), revs=revs)
        for name in collections_of(self._alias, await self._index.collections()):
            with suppress(NotFound):  # dropped meanwhile
                await self._index.delete(list(revs), revs=revs, collection=name)

    async def _take_back(self, items: Sequence[MemoryItem]) -> None:
        """Delete the points of items that were deleted or archived while they were written: another
        indexer's delete may have come before this write, and must win."""
        for user_id in {item.user_id for item in items}:
            mine = {item.point_id: item.index.rev for item in items if item.user_id == user_id}
            scope = ReadScope(user_id, include_shared=False)
            found = await self._store.by_points(scope, list(mine))
            living = {item.point_id for item in found if item.status is Status.ACTIVE}
            gone = {point_id: rev for point_id, rev in mine.items() if point_id not in living}
            if gone:
                await self._delete_everywhere(gone)

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
        state, op = item.index, _op_of(item)
        hashed = (
            vector_hash_of(item.content_hash, self._schema, item.context_prefix)
            if op is IndexOp.VECTOR
            else state.vector_hash
        )
        return IndexResult(
            user_id=item.user_id,
            point_id=item.point_id,
            rev=state.rev,
            op=op,
            vector_hash=hashed,
            context_prefix=item.context_prefix,
        )

    def _failed(self, failure: PointFailure) -> IndexResult:
        item, error = failure.item, failure.error
        outage = failure.outage
        attempt = item.index.attempts + 1
        policy = RetryPolicy(
            attempts=self._settings.max_attempts,
            base_s=self._settings.backoff_min_s,
            max_s=self._settings.backoff_max_s,
        )
        # Half of the pause is certain: full jitter could retry at once, again and again.
        share = 0.5 + self._jitter() / 2
        pause_s = share * OUTAGE_PAUSE_S if outage else backoff_s(attempt, policy, share)
        return IndexResult(
            user_id=item.user_id,
            point_id=item.point_id,
            rev=item.index.rev,
            op=_op_of(item),
            error=f"{error.code}: {error.message}",
            next_attempt_at=self._clock.now() + timedelta(seconds=pause_s),
            # An outage is not the item's fault: it never turns an item into `failed`.
            blamed=not outage,
            failed=not outage and attempt >= self._settings.max_attempts,
            context_prefix=item.context_prefix,
        )

    def _report(self, items: Sequence[MemoryItem], results: Sequence[IndexResult]) -> None:
        now = self._clock.now()
        stored = {item.point_id: item.updated_at for item in items}
        for result in results:
            ok = result.error is None
            self._metrics.count("indexed", op=result.op.value, result="synced" if ok else "retry")
            if ok:
                age = (now - stored[result.point_id]).total_seconds()
                self._metrics.observe("index_delay_s", max(0.0, age))
        errors = {result.error for result in results if result.error}
        if errors:
            log.warning("indexing will retry: %s", "; ".join(sorted(errors)[:3]))
