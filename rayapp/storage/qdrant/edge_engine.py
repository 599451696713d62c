"""The embedded vector engine: synchronous, one process per folder, called from one thread.

The engine never releases the GIL, so this lives in a process of its own; `QdrantEdgeIndex`
reaches it through a transport.
"""

import shutil
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import qdrant_edge as edge

from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.core.vectors import IndexSchema
from rayapp.index.records import (
    EncoderUpdate,
    IndexHealth,
    IndexPoint,
    Page,
    PayloadUpdate,
    PointCopy,
    Projection,
    StoredPoint,
    SubQuery,
)
from rayapp.index.rules import points as checks
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.storage.qdrant import edge_convert as convert
from rayapp.storage.qdrant.edge_scheduler import Pieces, exhaust, parts
from rayapp.storage.qdrant.edge_shards import CollectionState, EdgeShards, save_state
from rayapp.storage.qdrant.points import asked, no_collection, payload_keys
from rayapp.storage.qdrant.predicate import UNENCODED, count_predicate

ENGINE_NAME = "qdrant-edge"
# What a transport may call.
OPERATIONS = frozenset(
    {
        *("open", "health", "rebuilt", "query", "count", "retrieve", "scroll"),
        *("upsert", "copy", "set_payload", "set_encoder", "delete", "unencoded"),
        *("collections", "create_collection", "drop_collection", "schema_of", "switch_alias"),
    }
)
SCROLL_POINTS = 256  # 6 ms of reading with whole payloads


class EdgeEngine(EdgeShards):
    """`VectorIndex` without the await: same operations, same errors.

    Operations on many points come in pieces. Another call may come between two of them.
    """

    def call(self, operation: str, args: tuple[Any, ...]) -> Any:
        """One operation by name: the door of every transport."""
        return exhaust(self.pieces(operation, args))

    def pieces(self, operation: str, args: tuple[Any, ...]) -> Pieces[Any]:
        """`call` that stops after each piece of long work, so that a search need not wait for
        all of it: 256 points are written in 50 ms, a search takes 2 (our benchmark)."""
        if operation not in OPERATIONS:
            raise InvalidInput(f"The vector engine has no operation {operation!r}.")
        done = getattr(self, operation)(*args)
        return (yield from done) if isinstance(done, Generator) else done

    def open(self, schema: IndexSchema) -> None:
        state = self._state()
        target = state.aliases.get(self._alias)
        if target is None:
            first = checks.collection_name(self._alias, schema, None)
            if first not in state.collections:
                self._create(first, CollectionState(schema, needs_rebuild=True))
            self.switch_alias(first)
            target = first
        if schema.encoder and state.collections[target].schema.first == schema.first:
            self._make_encoder_place(self._target(None), schema)
            target = self._target(None)
        checks.check_schema(target, state.collections[target].schema, schema)
        self._target(None)

    def _make_encoder_place(self, name: str, schema: IndexSchema) -> None:
        """For the vectors of another encoder, or of the first one: who serves them fills them in.

        The state is written last: a crash in between is done again."""
        state = self._state()
        row = state.collections[name]
        if row.schema == schema:
            return
        with self._engine(name) as shard:
            self._dirty.add(name)
            shard.update(convert.no_encoder_place())
            shard.update(convert.encoder_place(schema))
        self.flush(name)
        state.collections[name] = replace(row, schema=schema)
        save_state(self._folder, state)

    def upsert(self, points: Sequence[IndexPoint], collection: str | None = None) -> Pieces[None]:
        name = self._target(collection)
        batch = checks.checked_points(points, self._state().collections[name].schema)
        # Built whole before the engine is asked: a value that it cannot take writes nothing.
        pieces = []
        for part in parts(batch):
            pieces.append((part, convert.points_of(part)))
            yield
        for part, rows in pieces:
            self._write_fresh(self._target(name), part, rows)
            yield

    def copy(
        self, points: Sequence[PointCopy], source: str, collection: str | None = None
    ) -> Pieces[list[str]]:
        """Vectors go from the engine's records into its points as they are."""
        name = self._target(collection)
        batch = checks.checked_copies(points)
        known = self._state().collections
        self._target(source)
        if known[source].schema.first != known[name].schema.first:
            return [point.point_id for point in batch]
        encoder = known[source].schema == known[name].schema
        left: list[str] = []
        # Built whole before anything is written, as in `upsert`.
        pieces = []
        for part in parts(batch):
            with self._engine(self._target(source)) as shard:
                ids: list[Any] = [point.point_id for point in part]
                records = shard.retrieve(ids, [checks.VECTOR_HASH], True)
            found = convert.copies_of(part, records, encoder=encoder)
            left += [p.point_id for p, row in zip(part, found, strict=True) if row is None]
            pairs = [(p, row) for p, row in zip(part, found, strict=True) if row is not None]
            pieces.append(([p for p, _ in pairs], [row for _, row in pairs]))
            yield
        for fits, rows in pieces:
            self._write_fresh(self._target(name), fits, rows)
            yield
        return left

    def _write_fresh(
        self, name: str, part: Sequence[IndexPoint | PointCopy], rows: Sequence[edge.Point]
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

    def set_payload(self, updates: Sequence[PayloadUpdate], collection: str | None = None) -> None:
        name = self._target(collection)
        batch = checks.checked_updates(updates)
        operations = convert.payload_operations(batch)
        with self._engine(name) as shard:
            for operation in operations:
                self._dirty.add(name)
                shard.update(operation)

    def set_encoder(
        self, updates: Sequence[EncoderUpdate], collection: str | None = None
    ) -> Pieces[None]:
        name = self._target(collection)
        batch = checks.checked_encoder_updates(updates, self._state().collections[name].schema)
        for part in parts(batch):
            with self._engine(self._target(name)) as shard:
                # One thread runs all calls: nothing comes between this look and the write.
                known = shard.retrieve([update.point_id for update in part], ["rev"], False)
                revs = {str(record.id): (record.payload or {}).get("rev", 0) for record in known}
                there = [u for u in part if u.point_id in revs and u.rev >= revs[u.point_id]]
                if there:
                    self._dirty.add(name)
                    shard.update(convert.encoder_vectors(there))
            yield

    def delete(
        self,
        point_ids: Sequence[str],
        revs: Mapping[str, int] | None = None,
        collection: str | None = None,
    ) -> None:
        name = self._target(collection)
        ids: list[str] = checks.checked_ids(point_ids)
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
        sub_queries: Sequence[SubQuery],
        collection: str | None = None,
    ) -> list[convert.SubQueryHits]:
        """One (ids, scores) pair per sub-query, best first, from one engine call."""
        name = self._target(collection)
        schema = self._state().collections[name].schema
        checks.checked_sub_queries(sub_queries, schema)
        answers: list[convert.SubQueryHits] = [([], []) for _ in sub_queries]
        encodes = bool(schema.encoder)
        wanted = asked(scope, where, sub_queries, convert.filter_of, encodes=encodes)
        if not wanted:
            return answers
        with self._engine(name) as shard:
            requests = [convert.query_of(sub_queries[at], predicate) for at, predicate in wanted]
            batches = shard.query_batch(edge.QueryBatchRequest(requests))
            for (at, _), scored in zip(wanted, batches, strict=True):
                answers[at] = convert.hits_of(scored)
        return answers

    def retrieve(
        self, point_ids: Sequence[str], read: Projection, collection: str | None = None
    ) -> Pieces[list[StoredPoint]]:
        ids, name = checks.checked_ids(point_ids), self._target(collection)
        found: list[StoredPoint] = []
        for part in parts(ids):
            with self._engine(self._target(name)) as shard:
                records = shard.retrieve(list(part), payload_keys(read), read.vectors)
            found += map(convert.stored_point_of, records)
            yield
        return found

    def scroll(
        self,
        after: str | None,
        until: str | None,
        limit: int,
        read: Projection,
        unencoded: bool,
        collection: str | None = None,
    ) -> Pieces[Page]:
        start = checks.checked_ids([after])[0] if after is not None else None
        end = checks.checked_ids([until])[0] if until is not None else None
        name = self._target(collection)
        if unencoded and not self._state().collections[name].schema.encoder:
            return [], None
        wanted_alone = convert.filter_of(UNENCODED) if unencoded else None
        offset: Any = start
        points: list[StoredPoint] = []
        while True:
            # The engine's offset is inclusive and `after` is not: ask for one more and skip it.
            wanted = min(SCROLL_POINTS, limit + (start is not None) - len(points))
            request = edge.ScrollRequest(
                offset=offset,
                limit=wanted,
                filter=wanted_alone,
                with_payload=payload_keys(read),
                with_vector=read.vectors,
            )
            with self._engine(self._target(name)) as shard:
                records, offset = shard.scroll(request)
            points += [convert.stored_point_of(r) for r in records if str(r.id) != start]
            beyond = end is not None and points and points[-1].point_id > end
            if offset is None or len(points) >= limit or beyond:
                return checks.page_of(
                    points, limit, end, more=offset is not None or len(points) > limit
                )
            yield

    def count(
        self, scope: ReadScope | None, where: ItemFilter | None, collection: str | None
    ) -> int:
        name, predicate = self._target(collection), count_predicate(scope, where)
        if predicate.matches_nothing:
            return 0
        with self._engine(name) as shard:
            kept = convert.filter_of(predicate)
            return shard.count(edge.CountRequest(exact=True, filter=kept))

    def unencoded(self, collection: str | None) -> int:
        name = self._target(collection)
        if not self._state().collections[name].schema.encoder:
            return 0
        with self._engine(name) as shard:
            return shard.count(edge.CountRequest(exact=True, filter=convert.filter_of(UNENCODED)))

    def create_collection(
        self, name: str, schema: IndexSchema, needs_rebuild: bool = False
    ) -> None:
        known = self._state().collections.get(checks.checked_collection(name))
        if known is None:
            self._create(name, CollectionState(schema, needs_rebuild=needs_rebuild))
        elif known.schema != schema:
            raise Conflict(f"Collection {name} exists with another schema: use a new name.")

    def drop_collection(self, name: str) -> None:
        state = self._state()
        if checks.checked_collection(name) in state.aliases.values():
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
        checks.check_moved(state.aliases.get(self._alias), name, expected)
        # What is behind the alias counts as filled, after a power loss too.
        self.flush(name)
        state.aliases[self._alias] = name
        save_state(self._folder, state)

    def rebuilt(self) -> None:
        name = self._target(None)
        state = self._state()
        state.mark_rebuild(name, False)
        save_state(self._folder, state)

    def health(self) -> IndexHealth:
        state = self._state()
        if self._alias not in state.aliases:
            return no_collection(ENGINE_NAME)
        target = self._target(None)
        # What the segments hold by their own count. Every process looks each second, and counting
        # 136,000 points one by one kept the searches waiting for 13 ms (measured).
        with self._engine(target) as shard:
            points = shard.count(edge.CountRequest(exact=False))
        return IndexHealth(
            ready=True,
            engine=ENGINE_NAME,
            collection=target,
            points=points,
            needs_rebuild=state.collections[target].needs_rebuild,
            detail=self._last_failure,
            facts={"folder": str(self._folder), "dirty": len(self._dirty)},
        )
