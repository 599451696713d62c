"""`VectorIndex` over the embedded engine, which lives behind a transport."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rayapp.core.settings.model import QdrantSettings
from rayapp.core.vectors import IndexSchema
from rayapp.index import records
from rayapp.index.records import PAYLOAD, Projection
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.storage.qdrant.edge_scheduler import PIECE_POINTS


class Transport(Protocol):
    """Carries one call to an `EdgeEngine`, wherever it lives."""

    async def call(self, method: str, *args: Any, timeout_s: float) -> Any:
        """The engine's answer. IndexDown when the engine is away or late; its own errors else."""

    async def close(self) -> None:
        """Let go of the connection; an engine shared with others stays up."""


class QdrantEdgeIndex:
    """One engine call per method; reads and writes have the limits of `QdrantSettings`."""

    def __init__(
        self, transport: Transport, settings: QdrantSettings, collection: str | None = None
    ) -> None:
        self._transport, self._settings, self._collection = transport, settings, collection

    def at(self, collection: str | None) -> "QdrantEdgeIndex":
        return QdrantEdgeIndex(self._transport, self._settings, collection)

    async def open(self, schema: IndexSchema) -> None:
        await self._write("open", schema)

    async def upsert(self, points: Sequence[records.IndexPoint]) -> None:
        await self._write("upsert", list(points), self._collection)

    async def copy(self, points: Sequence[records.PointCopy], source: str) -> list[str]:
        left: list[str] = await self._write("copy", list(points), source, self._collection)
        return left

    async def set_payload(self, updates: Sequence[records.PayloadUpdate]) -> None:
        await self._write("set_payload", list(updates), self._collection)

    async def set_encoder(self, updates: Sequence[records.EncoderUpdate]) -> None:
        await self._write("set_encoder", list(updates), self._collection)

    async def delete(self, point_ids: Sequence[str], revs: Mapping[str, int] | None = None) -> None:
        known = None if revs is None else dict(revs)
        await self._write("delete", list(point_ids), known, self._collection)

    async def query(
        self, scope: ReadScope, where: ItemFilter, sub_queries: Sequence[records.SubQuery]
    ) -> list[list[records.ScoredPoint]]:
        answers: list[tuple[list[str], list[float]]] = await self._read(
            "query", scope, where, list(sub_queries), self._collection
        )
        return [list(map(records.ScoredPoint, ids, scores)) for ids, scores in answers]

    async def retrieve(
        self, point_ids: Sequence[str], read: Projection = PAYLOAD
    ) -> list[records.StoredPoint]:
        # Whole or many points are read by jobs, which may wait as long as a write does.
        bulk = read.vectors or len(point_ids) > PIECE_POINTS
        call = self._write if bulk else self._read
        found: list[records.StoredPoint] = await call(
            "retrieve", list(point_ids), read, self._collection
        )
        return found

    async def scroll(
        self,
        *,
        after: str | None,
        limit: int,
        until: str | None = None,
        read: Projection = PAYLOAD,
        unencoded: bool = False,
    ) -> records.Page:
        page: records.Page = await self._write(
            "scroll", after, until, limit, read, unencoded, self._collection
        )
        return page

    async def count(self, scope: ReadScope | None = None, where: ItemFilter | None = None) -> int:
        # Bulk work in the engine's order of calls: it may wait as long as a write.
        return int(await self._write("count", scope, where, self._collection))

    async def unencoded(self) -> int:
        return int(await self._write("unencoded", self._collection))

    async def create_collection(
        self, name: str, schema: IndexSchema, *, needs_rebuild: bool = False
    ) -> None:
        await self._write("create_collection", name, schema, needs_rebuild)

    async def drop_collection(self, name: str) -> None:
        await self._write("drop_collection", name)

    async def collections(self) -> list[str]:
        names: list[str] = await self._read("collections")
        return names

    async def schema_of(self, collection: str) -> IndexSchema:
        schema: IndexSchema = await self._read("schema_of", collection)
        return schema

    async def switch_alias(self, name: str, expected: str | None = None) -> None:
        await self._write("switch_alias", name, expected)

    async def rebuilt(self) -> None:
        await self._write("rebuilt")

    async def health(self) -> records.IndexHealth:
        health: records.IndexHealth = await self._read("health")
        return health

    async def close(self) -> None:
        await self._transport.close()

    async def _read(self, method: str, *args: Any) -> Any:
        return await self._transport.call(method, *args, timeout_s=self._settings.timeout_s)

    async def _write(self, method: str, *args: Any) -> Any:
        return await self._transport.call(method, *args, timeout_s=self._settings.write_timeout_s)
