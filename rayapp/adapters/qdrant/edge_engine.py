"""The embedded vector engine: synchronous, one process per folder, called from one thread.

The engine never releases the GIL, so this lives in a process of its own; `QdrantEdgeIndex`
reaches it through a transport. Any engine error closes the shard; the next call opens it again
(the write-ahead log is replayed) or, when it does not open, sets it aside and starts empty.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import qdrant_edge as edge

from rayapp.adapters.qdrant import edge_convert as convert
from rayapp.adapters.qdrant.edge_state import (
    CollectionState,
    EdgeState,
    FolderLock,
    load_state,
    save_state,
    set_aside,
)
from rayapp.adapters.qdrant.predicate import (
    Predicate,
    count_predicate,
    predicate_of,
)
from rayapp.domain.index import (
    Arm,
    IndexHealth,
    IndexPoint,
    IndexSchema,
    PayloadUpdate,
    StoredPoint,
)
from rayapp.domain.points import (
    check_moved,
    check_schema,
    checked_arms,
    checked_collection,
    checked_ids,
    checked_points,
    checked_updates,
    collection_name,
    page_of,
)
from rayapp.domain.scope import ItemFilter, ReadScope
from rayapp.errors import Conflict, IndexDown, InvalidInput, NotFound

ENGINE_NAME = "qdrant-edge"
RETRY_AFTER_S = 1.0
# What a transport may call.
OPERATIONS = frozenset(
    {
        "open",
        "upsert",
        "set_payload",
        "delete",
        "query",
        "retrieve",
        "scroll",
        "count",
        "create_collection",
        "drop_collection",
        "collections",
        "schema_of",
        "switch_alias",
        "rebuilt",
        "health",
    }
)

# Operations on many points, and the methods that do them in pieces.
IN_PIECES = {"upsert": "upserted", "retrieve": "retrieved"}
PIECE_POINTS = 32  # 6 ms of writing at 256 dimensions

Result = TypeVar("Result")
Part = TypeVar("Part")
Pieces = Generator[None, None, Result]


class EdgeEngine:
    """`VectorIndex` without the await: same operations, same errors.

    Args:
        folder: everything the engine keeps; made when missing.
        alias: the name that reads and writes without a collection go to.
    """

    def __init__(self, folder: Path, alias: str) -> None:
        self._folder = folder
        self._alias = alias
        self._lock: FolderLock | None = None
        self._known = EdgeState()
        self._shards: dict[str, edge.EdgeShard] = {}
        self._dirty: set[str] = set()
        self._last_failure = ""

    def call(self, operation: str, args: tuple[Any, ...]) -> Any:
        """One operation by name: the door of every transport."""
        return _exhaust(self.pieces(operation, args))

    def pieces(self, operation: str, args: tuple[Any, ...]) -> Pieces[Any]:
        """`call` that stops after each piece of long work, so that a search need not wait for
        all of it: 256 points are written in 50 ms, a search takes 2 (our benchmark)."""
        if operation not in OPERATIONS:
            raise InvalidInput(f"The vector engine has no operation {operation!r}.")
        if operation in IN_PIECES:
            return (yield from getattr(self, IN_PIECES[operation])(*args))
        return getattr(self, operation)(*args)

    def open(self, schema: IndexSchema) -> None:
        state = self._state()
        target = state.aliases.get(self._alias)
        if target is None:
            first = collection_name(self._alias, schema, None)
            if first not in state.collections:
                self._create(first, CollectionState(schema, needs_rebuild=True))
            self.switch_alias(first)
            target = first
        check_schema(target, state.collections[target].schema, schema)
        self._target(None)

    def upsert(self, points: Sequence[IndexPoint], collection: str | None = None) -> None:
        _exhaust(self.upserted(points, collection))

    def upserted(self, points: Sequence[IndexPoint], collection: str | None = None) -> Pieces[None]:
        """`upsert` in pieces. Another call may come between two of them."""
        name = self._target(collection)
        batch = checked_points(points, self._state().collections[name].schema)
        # Built whole before the engine is asked: a value that it cannot take writes nothing.
        pieces = []
        for part in _parts(batch):
            pieces.append((part, convert.points_of(part)))
            yield
        for part, rows in pieces:
            self._write_fresh(self._target(name), part, rows)
            yield

    def _write_fresh(
        self, name: str, part: Sequence[IndexPoint], rows: Sequence[edge.Point]
    ) -> None:
        with self._engine(name) as shard:
            known = shard.retrieve([p.point_id for p in part], ["rev"], False)
            revs = {str(record.id): (record.payload or {}).get("rev", 0) for record in known}
            fresh = [
                row for p, row in zip(part, rows, strict=True) if p.rev >= revs.get(p.point_id, 0)
            ]
            if fresh:
                self._dirty.add(name)
                shard.update(edge.UpdateOperation.upsert_points(fresh))

    def set_payload(self, updates: Sequence[PayloadUpdate]) -> None:
        name = self._target(None)
        batch = checked_updates(updates)
        operations = convert.payload_operations(batch)
        with self._engine(name) as shard:
            for operation in operations:
                self._dirty.add(name)
                shard.update(operation)

    def delete(
        self,
        point_ids: Sequence[str],
        revs: Mapping[str, int] | None = None,
        collection: str | None = None,
    ) -> None:
        name = self._target(collection)
        ids: list[str] = checked_ids(point_ids)
        if not ids:
            return
        with self._engine(name) as shard:
            if revs is not None:
                # One thread runs all calls: nothing comes between this look and the delete.
                known = shard.retrieve([*ids], ["rev"], False)
                ids = [
                    str(record.id)
                    for record in known
                    if (record.payload or {}).get("rev", 0) <= revs[str(record.id)]
                ]
            if ids:
                self._dirty.add(name)
                shard.update(edge.UpdateOperation.delete_points(list(ids)))

    def query(
        self,
        scope: ReadScope,
        where: ItemFilter,
        arms: Sequence[Arm],
        collection: str | None = None,
    ) -> list[convert.ArmHits]:
        """One (ids, scores) pair per arm, best first, from one engine call."""
        name = self._target(collection)
        checked_arms(arms, self._state().collections[name].schema)
        predicates = {t: predicate_of(scope, where, t) for t in {arm.tiers for arm in arms}}
        filters = {
            tiers: convert.filter_of(predicate)
            for tiers, predicate in predicates.items()
            if not predicate.matches_nothing
        }
        answers: list[convert.ArmHits] = [([], []) for _ in arms]
        asked = [i for i, arm in enumerate(arms) if arm.tiers in filters]
        if not asked:
            return answers
        with self._engine(name) as shard:
            requests = [convert.query_of(arms[i], filters[arms[i].tiers]) for i in asked]
            batches = shard.query_batch(edge.QueryBatchRequest(requests))
            for i, scored in zip(asked, batches, strict=True):
                answers[i] = convert.hits_of(scored)
        return answers

    def retrieve(
        self, point_ids: Sequence[str], with_vectors: bool, collection: str | None = None
    ) -> list[StoredPoint]:
        return _exhaust(self.retrieved(point_ids, with_vectors, collection))

    def retrieved(
        self, point_ids: Sequence[str], with_vectors: bool, collection: str | None = None
    ) -> Pieces[list[StoredPoint]]:
        """`retrieve` in pieces. Another call may come between two of them."""
        ids, name = checked_ids(point_ids), self._target(collection)
        found: list[StoredPoint] = []
        for part in _parts(ids):
            with self._engine(self._target(name)) as shard:
                records = shard.retrieve(list(part), True, with_vectors)
            found += map(convert.stored_point_of, records)
            yield
        return found

    def scroll(
        self,
        after: str | None,
        until: str | None,
        limit: int,
        with_vectors: bool,
        collection: str | None,
    ) -> tuple[list[StoredPoint], str | None]:
        start = checked_ids([after])[0] if after is not None else None
        end = checked_ids([until])[0] if until is not None else None
        # The engine's offset is inclusive and `after` is not: ask for one more and skip it.
        request = edge.ScrollRequest(
            offset=start,
            limit=limit + (start is not None),
            with_payload=True,
            with_vector=with_vectors,
        )
        with self._engine(self._target(collection)) as shard:
            records, following = shard.scroll(request)
        points = [convert.stored_point_of(r) for r in records if str(r.id) != start]
        more = following is not None or len(points) > limit
        return page_of(points, limit, end, more=more)

    def count(
        self, scope: ReadScope | None, where: ItemFilter | None, collection: str | None
    ) -> int:
        return self._count(self._target(collection), count_predicate(scope, where))

    def create_collection(
        self, name: str, schema: IndexSchema, needs_rebuild: bool = False
    ) -> None:
        known = self._state().collections.get(checked_collection(name))
        if known is None:
            self._create(name, CollectionState(schema, needs_rebuild=needs_rebuild))
        elif known.schema != schema:
            raise Conflict(f"Collection {name} exists with another schema: use a new name.")

    def drop_collection(self, name: str) -> None:
        state = self._state()
        if checked_collection(name) in state.aliases.values():
            raise Conflict(f"Collection {name} is behind the alias: switch the alias first.")
        if state.collections.pop(name, None) is None:
            return
        save_state(self._folder, state)
        self._close(name)
        shutil.rmtree(self._folder / name, ignore_errors=True)

    def collections(self) -> list[str]:
        return sorted(self._state().collections)

    def schema_of(self, collection: str) -> IndexSchema:
        known = self._state().collections.get(collection)
        if known is None:
            raise NotFound(f"There is no collection {collection}: create it first.")
        return known.schema

    def switch_alias(self, name: str, expected: str | None = None) -> None:
        state = self._state()
        if name not in state.collections:
            raise NotFound(f"There is no collection {name}: create it before switching to it.")
        # One thread runs all calls: nothing comes between this look and the move.
        check_moved(state.aliases.get(self._alias), name, expected)
        state.aliases[self._alias] = name
        save_state(self._folder, state)

    def rebuilt(self) -> None:
        name = self._target(None)
        state = self._state()
        state.mark_rebuild(name, False)
        save_state(self._folder, state)

    def flush_dirty(self) -> None:
        """Make acknowledged writes durable against power loss (the log alone survives a kill)."""
        for name in list(self._dirty):
            self._dirty.discard(name)
            with self._engine(name) as shard:
                shard.flush()

    def health(self) -> IndexHealth:
        state = self._state()
        if self._alias not in state.aliases:
            return IndexHealth(
                ready=False,
                engine=ENGINE_NAME,
                collection=None,
                points=0,
                needs_rebuild=True,
                detail="no collection yet",
            )
        target = self._target(None)
        points = self._count(target, None)
        return IndexHealth(
            ready=True,
            engine=ENGINE_NAME,
            collection=target,
            points=points,
            needs_rebuild=state.collections[target].needs_rebuild,
            detail=self._last_failure,
            facts={"folder": str(self._folder), "dirty": len(self._dirty)},
        )

    def close(self) -> None:
        """Flush, close every shard and give the folder back; a later call opens it again."""
        if self._lock is None:
            return
        try:
            self.flush_dirty()
        finally:
            for name in list(self._shards):
                self._close(name)
            self._lock.release()
            self._lock = None

    def _state(self) -> EdgeState:
        if self._lock is None:
            self._lock = FolderLock(self._folder)
            self._known = load_state(self._folder)
        return self._known

    def _target(self, collection: str | None) -> str:
        """The collection meant, open; a broken one is set aside (and replaced behind the alias)."""
        state = self._state()
        name = state.aliases.get(self._alias) if collection is None else collection
        if name is None:
            raise IndexDown("The vector index is empty: open it with a schema first.")
        if name not in state.collections:
            raise NotFound(f"There is no collection {name}: create it first.")
        if name in self._shards or self._load(name):
            return name
        self._replace_broken(name)
        return self._target(collection)

    def _load(self, name: str) -> bool:
        try:
            shard = edge.EdgeShard.load(str(self._folder / name))
        except BaseException as error:  # noqa: BLE001 - the engine raises bare errors and panics
            _pass_on_exits(error)
            self._last_failure = f"{name} did not open and was set aside: {error}"
            return False
        self._shards[name] = shard
        # What the log replayed is not on disk yet.
        self._dirty.add(name)
        return True

    def _replace_broken(self, name: str) -> None:
        state = self._state()
        lost = state.collections.pop(name)
        set_aside(self._folder / name)
        if state.aliases.get(self._alias) == name:
            fresh = collection_name(self._alias, lost.schema, datetime.now(UTC))
            state.aliases[self._alias] = fresh
            self._create(fresh, CollectionState(lost.schema, needs_rebuild=True))
        else:
            save_state(self._folder, state)

    def _create(self, name: str, row: CollectionState) -> None:
        path = self._folder / checked_collection(name)
        # A folder that the state does not know is left from a crash or a lost state file.
        set_aside(path)
        try:
            path.mkdir(parents=True)
            shard = edge.EdgeShard.create(str(path), convert.shard_config(row.schema))
            for operation in convert.field_indexes():
                shard.update(operation)
            shard.flush()
        except BaseException as error:
            raise _down("create", error) from error
        self._shards[name] = shard
        state = self._state()
        state.collections[name] = row
        save_state(self._folder, state)

    def _count(self, name: str, predicate: Predicate | None) -> int:
        if predicate is not None and predicate.matches_nothing:
            return 0
        kept = None if predicate is None else convert.filter_of(predicate)
        with self._engine(name) as shard:
            return shard.count(edge.CountRequest(exact=True, filter=kept))

    @contextmanager
    def _engine(self, name: str) -> Iterator[edge.EdgeShard]:
        """The shard; on an engine error it is closed, so that the next call opens it again."""
        try:
            yield self._shards[name]
        except BaseException as error:
            _pass_on_exits(error)
            self._last_failure = f"{name}: {error}"
            self._close(name)
            raise _down("answer", error) from error

    def _close(self, name: str) -> None:
        self._dirty.discard(name)
        shard: Any = self._shards.pop(name, None)
        if shard is None:
            return
        try:
            shard.close()
        except BaseException as error:  # noqa: BLE001 - a shard that fails to close is gone anyway
            _pass_on_exits(error)


class InProcessTransport:
    """The engine in this process, for tests and one-process tools: calls block the event loop."""

    def __init__(self, engine: EdgeEngine) -> None:
        self._engine = engine

    async def call(self, method: str, *args: Any, timeout_s: float) -> Any:
        return self._engine.call(method, args)

    async def close(self) -> None:
        self._engine.close()


def _parts(whole: Sequence[Part]) -> Iterator[Sequence[Part]]:
    for start in range(0, len(whole), PIECE_POINTS):
        yield whole[start : start + PIECE_POINTS]


def _exhaust(pieces: Pieces[Result]) -> Result:
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            result: Result = done.value
            return result


def _pass_on_exits(error: BaseException) -> None:
    """Panics of the engine are BaseExceptions too; only real exits go on."""
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error


def _down(what: str, error: BaseException) -> IndexDown:
    _pass_on_exits(error)
    return IndexDown(
        f"The embedded vector engine could not {what}: it is opened again on the next call.",
        details={"error": str(error)},
        retry_after_s=RETRY_AFTER_S,
    )
