"""`VectorIndex` over a Qdrant server; each process has its own client."""

import contextlib
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

from qdrant_client import AsyncQdrantClient, models

from rayapp.core.errors import Conflict, IndexDown, NotFound
from rayapp.core.settings.model import QdrantSettings
from rayapp.core.vectors import IndexSchema
from rayapp.index.records import (
    IndexHealth,
    IndexPoint,
    PayloadUpdate,
    PointCopy,
    ScoredPoint,
    StoredPoint,
    SubQuery,
)
from rayapp.index.rules import points as checks
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.storage.qdrant import server_convert as convert
from rayapp.storage.qdrant.errors import qdrant_errors
from rayapp.storage.qdrant.points import asked, no_collection, payload_keys
from rayapp.storage.qdrant.predicate import count_predicate, not_newer_than

ENGINE_NAME = "qdrant-server"


class QdrantServerIndex:
    """Writes wait until they are applied, so that a read after a write sees it."""

    def __init__(self, settings: QdrantSettings) -> None:
        self._settings = settings
        self._alias = settings.alias
        self._schema: IndexSchema | None = None
        self._schemas: dict[str, IndexSchema] = {}
        self._client = _client_of(settings)

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
        self._schema = schema

    async def upsert(self, points: Sequence[IndexPoint], *, collection: str | None = None) -> None:
        batch = checks.checked_points(points, await self._schema_of(collection))
        name = collection or self._alias
        named = collection is not None
        async with qdrant_errors(self._settings.write_timeout_s, named=named):
            # One conditional write per rev: the guard of the engine knows one number at a time.
            ordered = sorted(batch, key=lambda p: p.rev)
            for rev, group in groupby(ordered, key=lambda p: p.rev):
                rows = [convert.point_of(p) for p in group]
                guard = convert.filter_of(not_newer_than(rev))
                step = self._settings.upsert_batch
                for at in range(0, len(rows), step):
                    part = rows[at : at + step]
                    await self._client.upsert(name, part, wait=True, update_filter=guard)

    async def copy(
        self, points: Sequence[PointCopy], *, source: str, collection: str | None = None
    ) -> list[str]:
        batch = checks.checked_copies(points)
        if await self._schema_of(source) != await self._schema_of(collection):
            return [point.point_id for point in batch]
        stored = await self.retrieve(
            [point.point_id for point in batch],
            with_vectors=True,
            keys=[checks.VECTOR_HASH],
            collection=source,
        )
        old = {point.point_id: point for point in stored}
        found, left = list[IndexPoint](), list[str]()
        for point in batch:
            copied = convert.copied_point(point, old.get(point.point_id))
            if copied is None:
                left.append(point.point_id)
            else:
                found.append(copied)
        await self.upsert(found, collection=collection)
        return left

    async def set_payload(self, updates: Sequence[PayloadUpdate]) -> None:
        operations = [
            convert.payload_operation(update) for update in checks.checked_updates(updates)
        ]
        if not operations:
            return
        async with qdrant_errors(self._settings.write_timeout_s):
            await self._client.batch_update_points(self._alias, operations, wait=True)

    async def delete(
        self,
        point_ids: Sequence[str],
        *,
        revs: Mapping[str, int] | None = None,
        collection: str | None = None,
    ) -> None:
        ids = checks.checked_ids(point_ids)
        if not ids:
            return
        named = collection is not None
        async with qdrant_errors(self._settings.write_timeout_s, named=named):
            for selector in convert.delete_selectors(ids, revs):
                await self._client.delete(collection or self._alias, selector, wait=True)

    async def query(
        self,
        scope: ReadScope,
        where: ItemFilter,
        sub_queries: Sequence[SubQuery],
        *,
        collection: str | None = None,
    ) -> list[list[ScoredPoint]]:
        checks.checked_sub_queries(sub_queries, await self._schema_of(collection))
        answers: list[list[ScoredPoint]] = [[] for _ in sub_queries]
        wanted = asked(scope, where, sub_queries, convert.filter_of)
        if not wanted:
            return answers
        requests = [convert.query_of(sub_queries[at], predicate) for at, predicate in wanted]
        named = collection is not None
        async with qdrant_errors(self._settings.timeout_s, named=named):
            batches = await self._client.query_batch_points(collection or self._alias, requests)
        for (at, _), batch in zip(wanted, batches, strict=True):
            answers[at] = [ScoredPoint(str(hit.id), hit.score) for hit in batch.points]
        return answers

    async def retrieve(
        self,
        point_ids: Sequence[str],
        *,
        with_vectors: bool = False,
        keys: Sequence[str] | None = None,
        collection: str | None = None,
    ) -> list[StoredPoint]:
        ids = checks.checked_ids(point_ids)
        # Whole points are read in bulk by jobs, which may wait as long as a write does.
        rules = self._settings
        limit_s = rules.write_timeout_s if with_vectors else rules.timeout_s
        async with qdrant_errors(limit_s, named=collection is not None):
            records = await self._client.retrieve(
                collection or self._alias,
                list(ids),
                with_payload=payload_keys(keys),
                with_vectors=with_vectors,
            )
        return [convert.stored_point_of(record) for record in records]

    async def scroll(
        self,
        *,
        after: str | None,
        limit: int,
        until: str | None = None,
        keys: Sequence[str] | None = None,
        with_vectors: bool = False,
        collection: str | None = None,
    ) -> tuple[list[StoredPoint], str | None]:
        start = checks.checked_ids([after])[0] if after is not None else None
        end = checks.checked_ids([until])[0] if until is not None else None
        # The engine's offset is inclusive and `after` is not: ask for one more and skip it.
        named = collection is not None
        async with qdrant_errors(self._settings.write_timeout_s, named=named):
            records, following = await self._client.scroll(
                collection or self._alias,
                offset=start,
                limit=limit + (start is not None),
                with_payload=payload_keys(keys),
                with_vectors=with_vectors,
            )
        points = [convert.stored_point_of(r) for r in records if str(r.id) != start]
        more = following is not None or len(points) > limit
        return checks.page_of(points, limit, end, more=more)

    async def count(
        self,
        scope: ReadScope | None = None,
        where: ItemFilter | None = None,
        *,
        collection: str | None = None,
    ) -> int:
        predicate = count_predicate(scope, where)
        if predicate.matches_nothing:
            return 0
        kept = convert.filter_of(predicate)
        named = collection is not None
        async with qdrant_errors(self._settings.timeout_s, named=named):
            answer = await self._client.count(
                collection or self._alias, count_filter=kept, exact=True
            )
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
        self._schema = None

    async def rebuilt(self) -> None:
        schema = await self._schema_of(None)
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

    async def _schema_of(self, collection: str | None) -> IndexSchema:
        known = self._schema if collection is None else self._schemas.get(collection)
        if known is not None:
            return known
        named = collection is not None
        async with qdrant_errors(self._settings.timeout_s, named=named):
            info = await self._client.get_collection(collection or self._alias)
        schema = convert.stored_schema(info.config)
        if collection is None:
            self._schema = schema
        else:
            self._schemas[collection] = schema
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
        # Would block the event loop in the constructor; `rayapp doctor` shows the version.
        check_compatibility=False,
    )
