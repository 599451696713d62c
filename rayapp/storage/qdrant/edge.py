"""`VectorIndex` over the embedded engine, which lives behind a transport."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rayapp.core.settings.model import QdrantSettings
from rayapp.core.vectors import IndexSchema
from rayapp.index import records
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

    def __init__(self, transport: Transport, settings: QdrantSettings) -> None:
        self._transport = transport
        self._read_s = settings.timeout_s
        self._write_s = settings.write_timeout_s

    async def open(self, schema: IndexSchema) -> None:
        await self._write("open", schema)

    async def upsert(
        self, points: Sequence[records.IndexPoint], *, collection: str | None = None
    ) -> None:
        await self._write("upsert", list(points), collection)

    async def copy(
        self, points: Sequence[records.PointCopy], *, source: str, collection: str | None = None
    ) -> list[str]:
        left: list[str] = await self._write("copy", list(points), source, collection)
        return left

    async def set_payload(self, updates: Sequence[records.PayloadUpdate]) -> None:
        await self._write("set_payload", list(updates))

    async def delete(
        self,
        point_ids: Sequence[str],
        *,
        revs: Mapping[str, int] | None = None,
        collection: str | None = None,
    ) -> None:
        known = None if revs is None else dict(revs)
        await self._write("delete", list(point_ids), known, collection)

    async def query(
        self,
        scope: ReadScope,
        where: ItemFilter,
        sub_queries: Sequence[records.SubQuery],
        *,
        collection: str | None = None,
    ) -> list[list[records.ScoredPoint]]:
        answers: list[tuple[list[str], list[float]]] = await self._read(
            "query", scope, where, list(sub_queries), collection
        )
        return [list(map(records.ScoredPoint, ids, scores)) for ids, scores in answers]

    async def retrieve(
        self,
        point_ids: Sequence[str],
        *,
        with_vectors: bool = False,
        keys: Sequence[str] | None = None,
        collection: str | None = None,
    ) -> list[records.StoredPoint]:
        # Whole or many points are read by jobs, which may wait as long as a write does.
        bulk = with_vectors or len(point_ids) > PIECE_POINTS
        call = self._write if bulk else self._read
        found: list[records.StoredPoint] = await call(
            "retrieve", list(point_ids), with_vectors, keys, collection
        )
        return found

    async def scroll(
        self,
        *,
        after: str | None,
        limit: int,
        until: str | None = None,
        keys: Sequence[str] | None = None,
        with_vectors: bool = False,
        collection: str | None = None,
    ) -> tuple[list[records.StoredPoint], str | None]:
        page: tuple[list[records.StoredPoint], str | None] = await self._write(
            "scroll", after, until, limit, with_vectors, keys, collection
        )
        return page

    async def count(
        self,
        scope: ReadScope | None = None,
        where: ItemFilter | None = None,
        *,
        collection: str | None = None,
    ) -> int:
        # Bulk work in the engine's order of calls: it may wait as long as a write.
        return int(await self._write("count", scope, where, collection))

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
        return await self._transport.call(method, *args, timeout_s=self._read_s)

    async def _write(self, method: str, *args: Any) -> Any:
        return await self._transport.call(method, *args, timeout_s=self._write_s)
