"""Store-then-embed: claim pending items, embed, write to the index, set `synced`.

Truth leads: the claim and its result live in MongoDB, so an indexer may die at any step. A claim
that expires is taken over, and the rev guard of the index makes a repeated write harmless.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rayapp.domain.index import IndexPoint, IndexSchema, Vector
from rayapp.domain.memory import IndexOp, MemoryItem
from rayapp.domain.points import payload_update_of, point_of, vector_hash_of
from rayapp.domain.text.analyser import Analyser
from rayapp.errors import (
    BadVector,
    DeadlineExceeded,
    DependencyDown,
    InvalidInput,
    Overloaded,
    RayappError,
    SchemaMismatch,
)
from rayapp.protocols import (
    Embedder,
    IndexResult,
    LeaseStore,
    MemoryStore,
    VectorIndex,
)
from rayapp.resilience.retry import RetryPolicy, backoff_s
from rayapp.services.runtime import Runtime

log = logging.getLogger("rayapp.indexing")
REBUILD_LEASE = "index_rebuild"
REBUILD_LEASE_S = 60.0
# After an outage the backlog must drain soon, so its items never earn the ten minutes of a bad one.
OUTAGE_PAUSE_S = 5.0
# What says nothing about the item itself (decision 0005).
OUTAGES = (DependencyDown, Overloaded, DeadlineExceeded, SchemaMismatch)


def _unusable(item: MemoryItem, error: Exception) -> InvalidInput:
    """The item as it is stored cannot become a point."""
    log.error("item %s cannot be indexed", item.memory_id, exc_info=error)
    return InvalidInput(f"The item cannot become a point ({type(error).__name__}): edit it.")


@dataclass(frozen=True, slots=True)
class _Failure:
    item: MemoryItem
    error: RayappError


class IndexingService:
    """One owner loop calls `run_once` again and again.

    `outage` is True after a batch in which nothing could be done, so that the loop may pause.
    """

    def __init__(
        self,
        store: MemoryStore,
        index: VectorIndex,
        embedder: Embedder,
        analyser: Analyser,
        leases: LeaseStore,
        *,
        schema: IndexSchema,
        runtime: Runtime,
    ) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._analyser = analyser
        self._leases = leases
        self._schema = schema
        self._clock = runtime.clock
        self._metrics = runtime.metrics
        self._settings = runtime.settings.indexer
        self._embed_timeout_s = runtime.settings.embedding.batch_timeout_s
        self._token = runtime.process
        self._jitter = runtime.random
        self._rebuild: tuple[str | None, float] | None = None
        self.outage = False

    async def run_once(self) -> int:
        """Index one claimed batch; the number of items worked on, 0 when nothing is due."""
        items = await self._store.claim(
            token=self._token,
            limit=self._settings.batch_size,
            claim_s=self._settings.claim_s,
        )
        if not items:
            return 0
        results = [
            *await self._upsert([i for i in items if i.index.op is IndexOp.VECTOR]),
            *await self._set_payload([i for i in items if i.index.op is IndexOp.PAYLOAD]),
            *await self._delete([i for i in items if i.index.op is IndexOp.DELETE]),
        ]
        await self._store.finish(self._token, results, self._schema)
        self.outage = all(result.error is not None and not result.blamed for result in results)
        self._report(items, results)
        return len(items)

    async def rebuild_if_lost(self) -> bool:
        """One look at the index: when it lost its data, ask for every item again.

        `needs_rebuild` is cleared only once everything that was asked for is back, or gave up by
        its own fault: search reads the truth until then. True while a rebuild goes on.
        """
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
        if not items:
            return []
        vectors, failures = await self._embed(items)
        points: list[tuple[MemoryItem, IndexPoint]] = []
        for item in items:
            vector = vectors.get(item.point_id)
            if vector is None:
                continue
            try:
                points.append((item, self._point(item, vector)))
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                # One malformed item must never stop the items of others: it fails alone.
                failures.append(_Failure(item, _unusable(item, error)))
        written, refused = await self._written(points)
        return [*map(self._synced, written), *map(self._failed, [*failures, *refused])]

    async def _written(
        self, points: Sequence[tuple[MemoryItem, IndexPoint]]
    ) -> tuple[list[MemoryItem], list[_Failure]]:
        """Upsert; a batch that the index refuses is halved until the bad point stands alone."""
        if not points:
            return [], []
        try:
            await self._index.upsert([point for _, point in points])
        except (BadVector, InvalidInput) as error:
            if len(points) == 1:
                return [], [_Failure(points[0][0], error)]
            half = len(points) // 2
            left, left_failures = await self._written(points[:half])
            right, right_failures = await self._written(points[half:])
            return left + right, left_failures + right_failures
        except RayappError as error:
            return [], [_Failure(item, error) for item, _ in points]
        return [item for item, _ in points], []

    async def _embed(self, items: Sequence[MemoryItem]) -> tuple[dict[str, Vector], list[_Failure]]:
        try:
            vectors = await self._embedder.embed(
                [item.text for item in items], "passage", timeout_s=self._embed_timeout_s
            )
        except (BadVector, InvalidInput) as error:
            if len(items) == 1:
                return {}, [_Failure(items[0], error)]
            # One text spoils the batch: halve until it stands alone.
            half = len(items) // 2
            left, left_failures = await self._embed(items[:half])
            right, right_failures = await self._embed(items[half:])
            return {**left, **right}, left_failures + right_failures
        except RayappError as error:
            return {}, [_Failure(item, error) for item in items]
        return {i.point_id: v for i, v in zip(items, vectors, strict=True)}, []

    def _point(self, item: MemoryItem, dense: Vector) -> IndexPoint:
        sparse = self._analyser.document(item.text)
        return point_of(item, dense, sparse, self._schema)

    async def _set_payload(self, items: Sequence[MemoryItem]) -> list[IndexResult]:
        updates = [payload_update_of(item) for item in items]
        return await self._write(items, lambda: self._index.set_payload(updates))

    async def _delete(self, items: Sequence[MemoryItem]) -> list[IndexResult]:
        revs = {item.point_id: item.index.rev for item in items}
        return await self._write(items, lambda: self._index.delete(list(revs), revs=revs))

    async def _write(
        self, items: Sequence[MemoryItem], call: Callable[[], Awaitable[None]]
    ) -> list[IndexResult]:
        if not items:
            return []
        try:
            await call()
        except RayappError as error:
            return [self._failed(_Failure(item, error)) for item in items]
        return [self._synced(item) for item in items]

    def _synced(self, item: MemoryItem) -> IndexResult:
        state = item.index
        hashed = (
            vector_hash_of(item.content_hash, self._schema)
            if state.op is IndexOp.VECTOR
            else state.vector_hash
        )
        return IndexResult(point_id=item.point_id, rev=state.rev, op=state.op, vector_hash=hashed)

    def _failed(self, failure: _Failure) -> IndexResult:
        item, error = failure.item, failure.error
        outage = isinstance(error, OUTAGES)
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
            point_id=item.point_id,
            rev=item.index.rev,
            op=item.index.op,
            error=f"{error.code}: {error.message}",
            next_attempt_at=self._clock.now() + timedelta(seconds=pause_s),
            # An outage is not the item's fault: it never turns an item into `failed`.
            blamed=not outage,
            failed=not outage and attempt >= self._settings.max_attempts,
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
