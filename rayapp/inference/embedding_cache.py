"""Vectors by text: cache layers in front of an embedder, and equal texts in flight asked once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rayapp.core.breaker import Breaker, BreakerSnapshot
from rayapp.core.errors import (
    BadVector,
    CacheDown,
    DeadlineExceeded,
    EmbedderDown,
    InvalidInput,
    RayappError,
)
from rayapp.core.ports import Clock, Metrics
from rayapp.core.settings.model import EmbeddingSettings
from rayapp.core.vectors import Vector
from rayapp.inference.embedding import prepare, vectors_or_raise
from rayapp.inference.ports import Cache, Embedder, EmbedderInfo, TextKind

log = logging.getLogger("rayapp.embedding")

KEY_VERSION = "embedding:v1"
# A cached vector whose norm is further from 1 was damaged: float32 rounding stays below 1e-6.
NORM_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class CacheLayer:
    """One cache; `breaker` None for a cache that cannot be away (the in-process LRU)."""

    name: str
    cache: Cache
    breaker: Breaker | None = None

    async def get_many(
        self, keys: Sequence[str], monotonic: Callable[[], float]
    ) -> list[bytes | None]:
        if self.breaker is None:
            return await self.cache.get_many(keys)
        return await self.breaker.call(lambda: self.cache.get_many(keys), monotonic, CacheDown)

    async def set_many(
        self, values: Mapping[str, bytes], ttl_s: int, monotonic: Callable[[], float]
    ) -> None:
        if self.breaker is None:
            return await self.cache.set_many(values, ttl_s)
        return await self.breaker.call(
            lambda: self.cache.set_many(values, ttl_s), monotonic, CacheDown
        )


def cache_key(model: str, prepared: str) -> str:
    """`embedding:v1:{model}:{sha256}` of what the model reads (prefix included)."""
    return f"{KEY_VERSION}:{model}:{hashlib.sha256(prepared.encode()).hexdigest()}"


def pack(vector: Vector) -> bytes:
    """Little-endian float32."""
    return vector.astype("<f4").tobytes()


def unpack(value: bytes, dims: int) -> Vector | None:
    """The vector, or None when the value is not a unit vector of `dims`."""
    if len(value) != dims * 4:
        return None
    vector = np.frombuffer(value, dtype="<f4")
    # NaN fails the comparison as well.
    return vector if abs(float(vector @ vector) - 1.0) < NORM_TOLERANCE else None


class CachedEmbedder:
    """Implements `Embedder`. A layer that fails is bypassed and counted, never an error.

    `layers` go from the nearest to the farthest; a hit is copied into the nearer ones.
    """

    def __init__(
        self,
        inner: Embedder,
        layers: Sequence[CacheLayer],
        settings: EmbeddingSettings,
        *,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._inner = inner
        self._layers = tuple(layers)
        self._settings = settings
        self._metrics = metrics
        self._clock = clock
        self._info: EmbedderInfo | None = None
        self._in_flight: dict[str, asyncio.Future[Vector | RayappError]] = {}
        self._fills: set[asyncio.Task[None]] = set()

    async def info(self) -> EmbedderInfo:
        if self._info is None:
            self._info = await self._inner.info()
        return self._info

    async def health(self) -> dict[str, Any]:
        return await self._inner.health()

    async def breakers(self) -> list[BreakerSnapshot]:
        """Those of the layers and of the embedder behind them."""
        now = self._clock.monotonic()
        own = [layer.breaker.snapshot(now) for layer in self._layers if layer.breaker]
        return own + await self._inner.breakers()

    async def reset_breakers(self) -> list[str]:
        own = [layer.breaker for layer in self._layers if layer.breaker and layer.breaker.reset()]
        return [breaker.name for breaker in own] + await self._inner.reset_breakers()

    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        """As `EmbeddingService.embed`; vectors may be read-only views.

        A caller who gives up does not stop a model call that others may join: its vectors still
        reach the cache, within the gateway's own limit.
        """
        if timeout_s <= 0:
            raise DeadlineExceeded("No time is left for the embedding; retry later.")
        if not texts:
            return []
        try:
            async with asyncio.timeout(timeout_s):
                return await self._embed(texts, kind, timeout_s)
        except TimeoutError:
            raise EmbedderDown(
                f"No embedding within {timeout_s:.2f} s; retry later.", code="embedder_timeout"
            ) from None

    async def _embed(self, texts: Sequence[str], kind: TextKind, timeout_s: float) -> list[Vector]:
        info = await self.info()
        prepared = [prepare(text, kind, self._settings) for text in texts]
        keys = [cache_key(info.model, text) for text in prepared]
        found = await self._lookup(list(dict.fromkeys(keys)), info.dims)
        missing = {
            key: text
            for key, text in zip(keys, texts, strict=True)
            if key not in found and key not in self._in_flight
        }
        joined = len(set(keys) - found.keys() - missing.keys())
        if joined:
            self._metrics.count("embed_coalesced", joined)
        if missing:
            self._start(missing, kind, timeout_s)
        waiting = {key: self._in_flight[key] for key in set(keys) - found.keys()}
        if waiting:
            # A bare wait: cancelling this caller must not cancel futures that others share.
            await asyncio.wait(list(waiting.values()))
        return vectors_or_raise(
            [found[key] if key in found else waiting[key].result() for key in keys]
        )

    def _start(self, missing: dict[str, str], kind: TextKind, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        for key in missing:
            self._in_flight[key] = loop.create_future()
        settings = self._settings
        cap_s = settings.query_timeout_s if kind == "query" else settings.batch_timeout_s
        task = loop.create_task(self._fill(missing, kind, max(timeout_s, cap_s)))
        self._fills.add(task)
        task.add_done_callback(self._fills.discard)

    async def _fill(self, missing: dict[str, str], kind: TextKind, timeout_s: float) -> None:
        answers: dict[str, Vector | RayappError] = {}
        try:
            answers = await self._ask(missing, kind, timeout_s)
        except Exception as error:  # callers wait on futures: a bug must reach them
            log.exception("an embedding call broke")
            broken = EmbedderDown(f"The embedding gateway broke: {error!r}; see the logs.")
            answers = dict.fromkeys(missing, broken)
        finally:
            stopped = EmbedderDown("The embedding gateway is stopping; retry later.")
            for key in missing:
                self._in_flight.pop(key).set_result(answers.get(key, stopped))
        good = {key: pack(a) for key, a in answers.items() if not isinstance(a, RayappError)}
        await self._store(good, self._layers)

    async def _ask(
        self, missing: dict[str, str], kind: TextKind, timeout_s: float
    ) -> dict[str, Vector | RayappError]:
        """One call to the embedder; texts it blames are left out of a second one."""
        answers: dict[str, Vector | RayappError] = {}
        left = dict(missing)
        while left:
            keys = list(left)
            try:
                vectors = await self._inner.embed(list(left.values()), kind, timeout_s=timeout_s)
            except (BadVector, InvalidInput) as error:
                blamed = {keys[position] for position in error.details.get("positions", [])}
                blamed = blamed or set(keys)
                answers |= dict.fromkeys(blamed, error)
                left = {key: text for key, text in left.items() if key not in blamed}
            except RayappError as error:
                return answers | dict.fromkeys(keys, error)
            else:
                return answers | dict(zip(keys, vectors, strict=True))
        return answers

    async def _lookup(self, keys: list[str], dims: int) -> dict[str, Vector]:
        found: dict[str, Vector] = {}
        for depth, layer in enumerate(self._layers):
            absent = [key for key in keys if key not in found]
            if not absent:
                break
            hits = await self._read(layer, absent, dims)
            if hits:
                self._metrics.count("embed_cache_hits", len(hits), layer=layer.name)
                nearer = {key: pack(vector) for key, vector in hits.items()}
                await self._store(nearer, self._layers[:depth])
                found |= hits
        if len(found) < len(keys):
            self._metrics.count("embed_cache_misses", len(keys) - len(found))
        return found

    async def _read(self, layer: CacheLayer, keys: list[str], dims: int) -> dict[str, Vector]:
        try:
            values = await layer.get_many(keys, self._clock.monotonic)
        except CacheDown:
            self._metrics.count("embed_cache_errors")
            return {}
        pairs = zip(keys, values, strict=True)
        read = {key: unpack(value, dims) for key, value in pairs if value is not None}
        return {key: vector for key, vector in read.items() if vector is not None}

    async def _store(self, values: dict[str, bytes], layers: Sequence[CacheLayer]) -> None:
        for layer in layers if values else ():
            try:
                await layer.set_many(values, self._settings.cache_ttl_s, self._clock.monotonic)
            except CacheDown:
                self._metrics.count("embed_cache_errors")
