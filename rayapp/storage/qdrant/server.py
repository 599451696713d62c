"""`VectorIndex` over a Qdrant server; each process has its own client."""

import contextlib
import copy
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

from qdrant_client import AsyncQdrantClient, models

from rayapp.core.errors import Conflict, IndexDown, NotFound
from rayapp.core.settings.model import QdrantSettings
from rayapp.core.vectors import IndexSchema
from rayapp.index.records import (
    PAYLOAD,
    EncoderUpdate,
    IndexHealth,
    IndexPoint,
    Page,
    PayloadUpdate,
    PointCopy,
    Projection,
    ScoredPoint,
    StoredPoint,
    SubQuery,
)
from rayapp.index.rules import points as checks
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.storage.qdrant import server_convert as convert
from rayapp.storage.qdrant.errors import qdrant_errors
from rayapp.storage.qdrant.points import asked, no_collection, payload_keys
from rayapp.storage.qdrant.predicate import UNENCODED, count_predicate, not_newer_than

ENGINE_NAME = "qdrant-server"
# A peer whose machine died says nothing: it is asked every so often whether it is there, and left
# out when it does not answer. Where the name of the server has several addresses, calls go round.
KEEPALIVE_MS, KEEPALIVE_ANSWER_MS = 2_000, 1_000
CHANNEL = {
    "grpc.keepalive_time_ms": KEEPALIVE_MS,
    "grpc.keepalive_timeout_ms": KEEPALIVE_ANSWER_MS,
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.http2.max_pings_without_data": 0,
    "grpc.lb_policy_name": "round_robin",
}


class QdrantServerIndex:
    """Writes wait until they are applied, so that a read after a write sees it."""

    def __init__(self, settings: QdrantSettings) -> None:
        self._settings = settings
        # `_name`: what holds the points, the alias or a collection.
        self._name = self._alias = settings.alias
        self._schemas: dict[str, IndexSchema] = {}
        self._client = _client_of(settings)

    def at(self, collection: str | None) -> "QdrantServerIndex":
        view = copy.copy(self)
        view._name = self._alias if collection is None else collection
        return view

    async def open(self, schema: IndexSchema) -> None:
        async with qdrant_errors(self._settings.write_timeout_s):
            target = await self._target()
            if target is None:
                target = await self._create_first(schema)
            info = await self._client.get_collection(target)
            stored = convert.stored_schema(info.config)
            problems = convert.layout_problems(info.config)
            checks.check_schema(target, stored, schema, problems)
            await self._ensure_field_indexes(target, set(info.payload_schema))
        self._schemas[self._alias] = stored

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        batch = checks.checked_points(points, await self._schema_of(self._name))
        async with self._errors(self._settings.write_timeout_s):
            # One conditional write per rev: the guard of the engine knows one number at a time.
            ordered = sorted(batch, key=lambda p: p.rev)
            for rev, group in groupby(ordered, key=lambda p: p.rev):
                rows = [convert.point_of(p) for p in group]
                guard = convert.filter_of(not_newer_than(rev))
                step = self._settings.upsert_batch
                for at in range(0, len(rows), step):
                    part = rows[at : at + step]
                    await self._client.upsert(self._name, part, wait=True, update_filter=guard)

    async def copy(self, points: Sequence[PointCopy], source: str) -> list[str]:
        batch = checks.checked_copies(points)
        old_schema, schema = await self._schema_of(source), await self._schema_of(self._name)
        if old_schema.first != schema.first:
            return [point.point_id for point in batch]
        encoder = old_schema == schema
        stored = await self.at(source).retrieve(
            [point.point_id for point in batch], Projection([checks.VECTOR_HASH], vectors=True)
        )
        old = {point.point_id: point for point in stored}
        found, left = list[IndexPoint](), list[str]()
        for point in batch:
            copied = convert.copied_point(point, old.get(point.point_id), encoder=encoder)
            if copied is None:
                left.append(point.point_id)
            else:
                found.append(copied)
        await self.upsert(found)
        return left

    async def set_payload(self, updates: Sequence[PayloadUpdate]) -> None:
        operations = [
            convert.payload_operation(update) for update in checks.checked_updates(updates)
        ]
        if not operations:
            return
        async with self._errors(self._settings.write_timeout_s):
            await self._client.batch_update_points(self._name, operations, wait=True)

    async def set_encoder(self, updates: Sequence[EncoderUpdate]) -> None:
        batch = checks.checked_encoder_updates(updates, await self._schema_of(self._name))
        # The server refuses a batch with a point that is gone. One that goes after this look is an
        # error, after which the others are tried again.
        stored = await self.retrieve([update.point_id for update in batch], Projection(("rev",)))
        there = {point.point_id for point in stored}
        ordered = sorted((u for u in batch if u.point_id in there), key=lambda u: u.rev)
        async with self._errors(self._settings.write_timeout_s):
            for rev, group in groupby(ordered, key=lambda update: update.rev):
                guard = convert.filter_of(not_newer_than(rev))
                rows = [convert.encoder_vectors(update) for update in group]
                await self._client.update_vectors(self._name, rows, wait=True, update_filter=guard)

    async def delete(self, point_ids: Sequence[str], revs: Mapping[str, int] | None = None) -> None:
        ids = checks.checked_ids(point_ids)
        if not ids:
            return
        async with self._errors(self._settings.write_timeout_s):
            for selector in convert.delete_selectors(ids, revs):
                await self._client.delete(self._name, selector, wait=True)

    async def query(
        self, scope: ReadScope, where: ItemFilter, sub_queries: Sequence[SubQuery]
    ) -> list[list[ScoredPoint]]:
        schema = await self._schema_of(self._name)
        checks.checked_sub_queries(sub_queries, schema)
        answers: list[list[ScoredPoint]] = [[] for _ in sub_queries]
        encodes = bool(schema.encoder)
        wanted = asked(scope, where, sub_queries, convert.filter_of, encodes=encodes)
        if not wanted:
            return answers
        requests = [convert.query_of(sub_queries[at], predicate) for at, predicate in wanted]
        async with self._errors(self._settings.timeout_s):
            batches = await self._client.query_batch_points(self._name, requests)
        for (at, _), batch in zip(wanted, batches, strict=True):
            answers[at] = [ScoredPoint(str(hit.id), hit.score) for hit in batch.points]
        return answers

    async def retrieve(
        self, point_ids: Sequence[str], read: Projection = PAYLOAD
    ) -> list[StoredPoint]:
        ids = checks.checked_ids(point_ids)
        # Whole points are read in bulk by jobs, which may wait as long as a write does.
        rules = self._settings
        async with self._errors(rules.write_timeout_s if read.vectors else rules.timeout_s):
            records = await self._client.retrieve(
                self._name, ids, with_payload=payload_keys(read), with_vectors=read.vectors
            )
        return [convert.stored_point_of(record) for record in records]

    async def scroll(
        self,
        *,
        after: str | None,
        limit: int,
        until: str | None = None,
        read: Projection = PAYLOAD,
        unencoded: bool = False,
    ) -> Page:
        if unencoded and not (await self._schema_of(self._name)).encoder:
            return [], None
        start = checks.checked_ids([after])[0] if after is not None else None
        end = checks.checked_ids([until])[0] if until is not None else None
        # The engine's offset is inclusive and `after` is not: ask for one more and skip it.
        async with self._errors(self._settings.write_timeout_s):
            records, following = await self._client.scroll(
                self._name,
                offset=start,
                limit=limit + (start is not None),
                scroll_filter=convert.filter_of(UNENCODED) if unencoded else None,
                with_payload=payload_keys(read),
                with_vectors=read.vectors,
            )
        points = [convert.stored_point_of(r) for r in records if str(r.id) != start]
        more = following is not None or len(points) > limit
        return checks.page_of(points, limit, end, more=more)

    async def count(self, scope: ReadScope | None = None, where: ItemFilter | None = None) -> int:
        predicate = count_predicate(scope, where)
        if predicate.matches_nothing:
            return 0
        kept = convert.filter_of(predicate)
        # An exact count walks all points, for jobs and reports; a search counts nothing.
        async with self._errors(self._settings.write_timeout_s):
            answer = await self._client.count(self._name, count_filter=kept, exact=True)
        return answer.count

    async def unencoded(self) -> int:
        if not (await self._schema_of(self._name)).encoder:
            return 0
        lacking = convert.filter_of(UNENCODED)
        async with self._errors(self._settings.write_timeout_s):
            answer = await self._client.count(self._name, count_filter=lacking, exact=True)
        return answer.count

    async def create_collection(
        self, name: str, schema: IndexSchema, *, needs_rebuild: bool = False
    ) -> None:
        async with qdrant_errors(self._settings.write_timeout_s):
            if not await self._client.collection_exists(checks.checked_collection(name)):
                # Another process may make it at the same moment: what counts is what is there.
                with contextlib.suppress(Conflict):
                    await self._create(name, schema, needs_rebuild=needs_rebuild)
            info = await self._client.get_collection(name)
            if convert.stored_schema(info.config) != schema:
                raise Conflict(f"Collection {name} exists with another schema: use a new name.")
            await self._ensure_field_indexes(name, set(info.payload_schema))
        self._schemas[name] = schema

    async def drop_collection(self, name: str) -> None:
        async with qdrant_errors(self._settings.write_timeout_s):
            aliases = (await self._client.get_aliases()).aliases
            if checks.checked_collection(name) in {alias.collection_name for alias in aliases}:
                raise Conflict(f"Collection {name} is behind the alias: switch the alias first.")
            await self._client.delete_collection(name)
        self._schemas.pop(name, None)

    async def collections(self) -> list[str]:
        async with qdrant_errors(self._settings.timeout_s):
            found = (await self._client.get_collections()).collections
        return sorted(c.name for c in found if c.name.startswith(f"{self._alias}_"))

    async def schema_of(self, collection: str) -> IndexSchema:
        self._schemas.pop(collection, None)  # it may have been dropped by another process
        return await self._schema_of(checks.checked_collection(collection))

    async def switch_alias(self, name: str, expected: str | None = None) -> None:
        async with qdrant_errors(self._settings.write_timeout_s):
            if not await self._client.collection_exists(checks.checked_collection(name)):
                raise NotFound(f"There is no collection {name}: create it before switching to it.")
            # The server has no conditional move; the caller looks again afterwards.
            checks.check_moved(await self._target(), name, expected)
            create = models.CreateAlias(collection_name=name, alias_name=self._alias)
            await self._client.update_collection_aliases(
                [models.CreateAliasOperation(create_alias=create)]
            )
        self._schemas.pop(self._alias, None)

    async def rebuilt(self) -> None:
        schema = await self._schema_of(self._alias)
        async with qdrant_errors(self._settings.write_timeout_s):
            metadata = convert.metadata_of(schema, needs_rebuild=False)
            await self._client.update_collection(self._alias, metadata=metadata)

    async def health(self) -> IndexHealth:
        async with qdrant_errors(self._settings.timeout_s):
            target = await self._target()
            if target is None:
                return no_collection(ENGINE_NAME)
            info = await self._client.get_collection(target)
        metadata = info.config.metadata or {}
        return IndexHealth(
            ready=True,
            engine=ENGINE_NAME,
            collection=target,
            points=info.points_count or 0,
            needs_rebuild=bool(metadata.get(convert.META_NEEDS_REBUILD, False)),
            facts={"status": info.status.value, "segments": info.segments_count},
        )

    async def close(self) -> None:
        await self._client.close()

    async def _target(self) -> str | None:
        aliases = (await self._client.get_aliases()).aliases
        for alias in aliases:
            if alias.alias_name == self._alias:
                return alias.collection_name
        return None

    def _errors(self, timeout_s: float) -> contextlib.AbstractAsyncContextManager[None]:
        return qdrant_errors(timeout_s, named=self._name != self._alias)

    async def _schema_of(self, name: str) -> IndexSchema:
        if (known := self._schemas.get(name)) is not None:
            return known
        async with qdrant_errors(self._settings.timeout_s, named=name != self._alias):
            info = await self._client.get_collection(name)
        schema = self._schemas[name] = convert.stored_schema(info.config)
        return schema

    async def _create_first(self, schema: IndexSchema) -> str:
        """Idempotent, so that processes which start together end with the same collection."""
        name = checks.collection_name(self._alias, schema, None)
        if not await self._client.collection_exists(name):
            with contextlib.suppress(Conflict):
                await self._create(name, schema, needs_rebuild=True)
        create = models.CreateAlias(collection_name=name, alias_name=self._alias)
        await self._client.update_collection_aliases(
            [models.CreateAliasOperation(create_alias=create)]
        )
        return name

    async def _create(self, name: str, schema: IndexSchema, *, needs_rebuild: bool) -> None:
        async with qdrant_errors(self._settings.write_timeout_s):
            await self._client.create_collection(
                checks.checked_collection(name),
                vectors_config=convert.vectors_config(schema),
                sparse_vectors_config=convert.sparse_config(),
                hnsw_config=convert.graph_config(self._settings.hnsw_m),
                shard_number=self._settings.shards,
                replication_factor=self._settings.copies,
                write_consistency_factor=self._settings.copies_written,
                metadata=convert.metadata_of(schema, needs_rebuild=needs_rebuild),
            )

    async def _ensure_field_indexes(self, name: str, present: set[str]) -> None:
        for key, kind in convert.field_schemas().items():
            if key not in present:
                await self._client.create_payload_index(name, key, field_schema=kind, wait=True)


def _client_of(settings: QdrantSettings) -> AsyncQdrantClient:
    if not settings.url:
        raise IndexDown("There is no Qdrant server to reach: set QDRANT_URL.")
    parts: Any = urlsplit(settings.url if "://" in settings.url else f"http://{settings.url}")
    return AsyncQdrantClient(
        url=parts.geturl(),
        grpc_port=settings.grpc_port,
        prefer_grpc=settings.prefer_grpc,
        api_key=settings.api_key or None,
        grpc_options=dict(CHANNEL),  # the client adds to it
        # Would block the event loop in the constructor; `rayapp doctor` shows the version.
        check_compatibility=False,
    )
