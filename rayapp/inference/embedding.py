"""Embedding gateway: cache, one flight per text, batch, breaker, backend, check."""

import asyncio
import hashlib
import logging
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, TypeVar

import numpy as np

from rayapp.core import errors
from rayapp.core.batching import estimate_tokens
from rayapp.core.breaker import Breaker, BreakerSnapshot, BreakerState
from rayapp.core.runtime import Metrics
from rayapp.core.settings.model import EmbeddingSettings
from rayapp.core.vectors import Vector
from rayapp.inference.batch_queue import BatchQueue, Entry, Splitter
from rayapp.inference.gateway import ModelGateway
from rayapp.inference.ports import (
    Cache,
    Embedder,
    EmbedderInfo,
    EmbeddingBackend,
    TextKind,
    TextVectors,
)

T = TypeVar("T")

# Below this norm a float32 direction is rounding noise.
MIN_NORM = 1e-6
KINDS: tuple[TextKind, ...] = ("query", "passage")


def prepare(text: str, kind: TextKind, settings: EmbeddingSettings) -> str:
    """What the model reads: NFKC, single spaces, cut to `max_text_chars`, prefix in front.

    Applying it to its own result without the prefix changes nothing. Lone surrogates, which no
    tokenizer accepts, become `?`.
    """
    clean = " ".join(unicodedata.normalize("NFKC", text).split())
    clean = clean[: settings.max_text_chars].strip()
    prefix = settings.query_prefix if kind == "query" else settings.passage_prefix
    return (prefix + clean).encode("utf-8", "replace").decode() if clean else ""


def unit_vector(vector: Vector, dims: int) -> Vector | errors.BadVector:
    """The vector at unit length, float32 `[dims]`, or why it must not be stored."""
    if vector.ndim != 1 or vector.shape[0] != dims:
        return errors.BadVector(
            f"The model gave a vector of {vector.size} values instead of {dims}."
        )
    # float64: squares of large float32 values overflow.
    norm = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(norm):
        return errors.BadVector("The model gave NaN or infinity; check the model.")
    if norm < MIN_NORM:
        return errors.BadVector("The model gave a zero vector: it knows nothing of this text.")
    return np.asarray(vector / norm, dtype=np.float32)


class EmbeddingService(ModelGateway[EmbeddingBackend, EmbeddingSettings]):
    """Implements `Embedder` over one backend. One event loop owns it.

    Queries and passages have a lane each, so that a bulk load never stands before a question.
    Errors are kept to the texts that caused them: a bad text of one caller does not fail another
    caller in the same batch. BadVector and InvalidInput carry `details["positions"]`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._lanes = {
            kind: BatchQueue(
                partial(self._run, kind),
                self._cap,
                wait_s=self.settings.batch.wait_s if self.traits.gathers else 0.0,
                concurrency=self.traits.concurrency,
            )
            for kind in KINDS
        }

    async def info(self) -> EmbedderInfo:
        """The backend's facts. ConfigError when `embedding.dims` says otherwise; EmbedderDown."""
        info = await self.backend.info()
        if self.settings.dims not in (0, info.dims):
            raise errors.ConfigError(
                f"embedding.dims is {self.settings.dims} but {info.model} gives {info.dims}: "
                "correct the setting or the model."
            )
        return info

    async def warm_up(self) -> None:
        """One call through the model, so that the first request does not pay for it."""
        await self.info()
        await self.embed(["warm up"], "query", timeout_s=self.settings.batch_timeout_s)

    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        """One unit float32 vector `[dims]` per text, in order.

        Raises:
            DeadlineExceeded: `timeout_s` is not above 0.
            Overloaded: too many texts wait already.
            InvalidInput: an empty text. BadVector: no usable vector for a text.
            EmbedderDown: backend away, breaker open, or no answer within `timeout_s`.
        """
        if timeout_s <= 0:
            raise errors.DeadlineExceeded("No time is left for the embedding; retry later.")
        if not texts:
            return []
        prepared = [prepare(text, kind, self.settings) for text in texts]
        empty = [position for position, text in enumerate(prepared) if not text]
        if empty:
            raise errors.InvalidInput(
                "A text without any character cannot be embedded: leave it out.",
                details={"positions": empty},
            )
        if len(prepared) == 1 and not self.traits.gathers and self._lanes[kind].idle:
            return [await self._alone(prepared[0], kind, timeout_s)]
        futures = [entry.done for entry in self._enqueue(prepared, kind)]
        try:
            _, late = await asyncio.wait(futures, timeout=timeout_s)
        finally:
            # Nobody waits any more: entries that were not sent yet are dropped from the queue.
            for future in futures:
                future.cancel()
        if late:
            raise _late(timeout_s)
        return vectors_or_raise([future.result() for future in futures])

    async def _alone(self, text: str, kind: TextKind, timeout_s: float) -> Vector:
        """One text for a backend that gains nothing from company. The lane costs three turns of the
        event loop, each behind the work of other requests (measured: 3 ms of waiting for 0.1 ms of
        work)."""
        (tokens,) = estimate_tokens([text], self.traits.text_tokens)
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._lanes[kind].alone(text, tokens)
        except TimeoutError:
            raise _late(timeout_s) from None
        return vectors_or_raise([answer])[0]

    async def reset_breakers(self) -> list[str]:
        limit_s = self.settings.query_timeout_s
        return await self._reset(self.embed(["reset"], "query", timeout_s=limit_s))

    async def health(self) -> dict[str, Any]:
        """Never raises; `healthy` is False when the breaker is open or the backend is away."""
        snapshot = self._snapshot()
        report: dict[str, Any] = {
            "healthy": snapshot.state is not BreakerState.OPEN,
            "breaker": asdict(snapshot),
            "queued": {kind: lane.depth for kind, lane in self._lanes.items()},
            "max_tokens": self._cap.max_tokens,
        }
        try:
            report |= asdict(await self.info())
        except errors.RayappError as error:
            report |= {"healthy": False, "message": error.message}
        return report

    async def close(self) -> None:
        for lane in self._lanes.values():
            await lane.close()
        await self.backend.close()

    def _enqueue(self, texts: Sequence[str], kind: TextKind) -> list[Entry]:
        try:
            return self._lanes[kind].put(texts, estimate_tokens(texts, self.traits.text_tokens))
        except errors.Overloaded:
            self.metrics.count("embed_overloaded", kind=kind)
            raise

    async def _run(self, kind: TextKind, batch: list[Entry]) -> None:
        splitter: Splitter[Entry, Vector] = Splitter(
            call=partial(self._call, kind),
            tokens=lambda entry: entry.tokens,
            cap=self._cap,
            metrics=self.metrics,
            oom_metric="embed_oom",
        )
        try:
            results = await splitter.run(batch)
            # Failed calls are answered without the size, which the backend may not know yet.
            some = any(not isinstance(result, errors.RayappError) for result in results)
            dims = (await self.info()).dims if some else 0
            for entry, result in zip(batch, results, strict=True):
                checked = (
                    result if isinstance(result, errors.RayappError) else unit_vector(result, dims)
                )
                if isinstance(checked, errors.BadVector):
                    self.metrics.count("embed_bad_vectors")
                entry.answer(checked)
        except errors.RayappError as error:
            for entry in batch:
                entry.answer(error)
        finally:
            self._gauge_breaker()

    async def _call(self, kind: TextKind, entries: Sequence[Entry]) -> list[Vector]:
        # The backend's own limit, not the caller's: impatient callers must not open the breaker.
        limit_s = _limit_s(self.settings, kind)

        async def encode() -> list[Vector]:
            try:
                async with asyncio.timeout(limit_s):
                    vectors = await self.backend.encode([entry.text for entry in entries], kind)
            except TimeoutError:
                raise errors.EmbedderDown(
                    f"The embedding backend gave no answer in {limit_s:.1f} s.",
                    code="embedder_timeout",
                ) from None
            if len(vectors) != len(entries):
                raise errors.BadVector(
                    f"The backend gave {len(vectors)} vectors for {len(entries)} texts."
                )
            return vectors

        self.metrics.observe("embed_batch_size", len(entries))
        start = monotonic()
        vectors = await self.breaker.call(encode, monotonic, errors.EmbedderDown)
        self.metrics.observe("embed_latency_s", monotonic() - start)
        return vectors


def _limit_s(settings: EmbeddingSettings, kind: TextKind) -> float:
    return settings.query_timeout_s if kind == "query" else settings.batch_timeout_s


def _late(timeout_s: float) -> errors.EmbedderDown:
    return errors.EmbedderDown(
        f"No embedding within {timeout_s:.2f} s; retry later.", code="embedder_timeout"
    )


def vectors_or_raise(results: Sequence[Vector | errors.RayappError]) -> list[Vector]:
    """The vectors, or the one error that stands for all.

    An error of the dependency wins over errors of single texts, because a retry may cure it;
    those of single texts are raised with `details["positions"]`.
    """
    blamed: dict[int, errors.RayappError] = {}
    for position, result in enumerate(results):
        if isinstance(result, (errors.BadVector, errors.InvalidInput)):
            blamed[position] = result
        elif isinstance(result, errors.RayappError):
            raise result
    for error in blamed.values():
        raise type(error)(error.message, code=error.code, details={"positions": list(blamed)})
    return [result for result in results if not isinstance(result, errors.RayappError)]


# Vectors by text: cache layers in front of an embedder, and equal texts in flight asked once.

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

    async def guarded(self, call: Callable[[], Awaitable[T]]) -> T:
        """One call of its cache. CacheDown."""
        if self.breaker is None:
            return await call()
        return await self.breaker.call(call, monotonic, errors.CacheDown)


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


@dataclass(eq=False)
class CachedEmbedder:
    """Implements `Embedder`. A layer that fails is bypassed and counted, never an error.

    `layers` go from the nearest to the farthest; a hit is copied into the nearer ones.
    """

    inner: Embedder
    layers: Sequence[CacheLayer]
    settings: EmbeddingSettings
    _: KW_ONLY
    metrics: Metrics

    def __post_init__(self) -> None:
        self._info: EmbedderInfo | None = None
        self._in_flight: dict[str, asyncio.Future[Vector | errors.RayappError]] = {}
        self._fills: set[asyncio.Task[None]] = set()

    async def info(self) -> EmbedderInfo:
        if self._info is None:
            self._info = await self.inner.info()
        return self._info

    async def health(self) -> dict[str, Any]:
        return await self.inner.health()

    async def breakers(self) -> list[BreakerSnapshot]:
        """Those of the layers and of the embedder behind them."""
        now = monotonic()
        own = [layer.breaker.snapshot(now) for layer in self.layers if layer.breaker]
        return own + await self.inner.breakers()

    async def reset_breakers(self) -> list[str]:
        own = [layer.breaker for layer in self.layers if layer.breaker and layer.breaker.reset()]
        return [breaker.name for breaker in own] + await self.inner.reset_breakers()

    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        """As `EmbeddingService.embed`; vectors may be read-only views.

        A caller who gives up does not stop a model call that others may join: its vectors still
        reach the cache, within the gateway's own limit.
        """
        if timeout_s <= 0:
            raise errors.DeadlineExceeded("No time is left for the embedding; retry later.")
        if not texts:
            return []
        try:
            async with asyncio.timeout(timeout_s):
                return await self._embed(texts, kind, timeout_s)
        except TimeoutError:
            raise _late(timeout_s) from None

    async def _embed(self, texts: Sequence[str], kind: TextKind, timeout_s: float) -> list[Vector]:
        info = await self.info()
        prepared = [prepare(text, kind, self.settings) for text in texts]
        keys = [cache_key(info.model, text) for text in prepared]
        found = await self._lookup(list(dict.fromkeys(keys)), info.dims)
        missing = {
            key: text
            for key, text in zip(keys, texts, strict=True)
            if key not in found and key not in self._in_flight
        }
        joined = len(set(keys) - found.keys() - missing.keys())
        if joined:
            self.metrics.count("embed_coalesced", joined)
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
        cap_s = _limit_s(self.settings, kind)
        task = loop.create_task(self._fill(missing, kind, max(timeout_s, cap_s)))
        self._fills.add(task)
        task.add_done_callback(self._fills.discard)

    async def _fill(self, missing: dict[str, str], kind: TextKind, timeout_s: float) -> None:
        answers: dict[str, Vector | errors.RayappError] = {}
        try:
            answers = await self._ask(missing, kind, timeout_s)
        except Exception as error:  # callers wait on futures: a bug must reach them
            log.exception("an embedding call broke")
            broken = errors.EmbedderDown(f"The embedding gateway broke: {error!r}; see the logs.")
            answers = dict.fromkeys(missing, broken)
        finally:
            stopped = errors.EmbedderDown("The embedding gateway is stopping; retry later.")
            for key in missing:
                self._in_flight.pop(key).set_result(answers.get(key, stopped))
        good = {key: pack(a) for key, a in answers.items() if not isinstance(a, errors.RayappError)}
        await self._store(good, self.layers)

    async def _ask(
        self, missing: dict[str, str], kind: TextKind, timeout_s: float
    ) -> dict[str, Vector | errors.RayappError]:
        """One call to the embedder; texts it blames are left out of a second one."""
        answers: dict[str, Vector | errors.RayappError] = {}
        left = dict(missing)
        while left:
            keys = list(left)
            try:
                vectors = await self.inner.embed(list(left.values()), kind, timeout_s=timeout_s)
            except (errors.BadVector, errors.InvalidInput) as error:
                blamed = {keys[position] for position in error.details.get("positions", [])}
                blamed = blamed or set(keys)
                answers |= dict.fromkeys(blamed, error)
                left = {key: text for key, text in left.items() if key not in blamed}
            except errors.RayappError as error:
                return answers | dict.fromkeys(keys, error)
            else:
                return answers | dict(zip(keys, vectors, strict=True))
        return answers

    async def _lookup(self, keys: list[str], dims: int) -> dict[str, Vector]:
        found: dict[str, Vector] = {}
        for depth, layer in enumerate(self.layers):
            absent = [key for key in keys if key not in found]
            if not absent:
                break
            hits = await self._read(layer, absent, dims)
            if hits:
                self.metrics.count("embed_cache_hits", len(hits), layer=layer.name)
                nearer = {key: pack(vector) for key, vector in hits.items()}
                await self._store(nearer, self.layers[:depth])
                found |= hits
        if len(found) < len(keys):
            self.metrics.count("embed_cache_misses", len(keys) - len(found))
        return found

    async def _read(self, layer: CacheLayer, keys: list[str], dims: int) -> dict[str, Vector]:
        try:
            values = await layer.guarded(partial(layer.cache.get_many, keys))
        except errors.CacheDown:
            self.metrics.count("embed_cache_errors")
            return {}
        pairs = zip(keys, values, strict=True)
        read = {key: unpack(value, dims) for key, value in pairs if value is not None}
        return {key: vector for key, vector in read.items() if vector is not None}

    async def _store(self, values: dict[str, bytes], layers: Sequence[CacheLayer]) -> None:
        for layer in layers if values else ():
            try:
                ttl_s = self.settings.cache_ttl_s
                await layer.guarded(partial(layer.cache.set_many, values, ttl_s))
            except errors.CacheDown:
                self.metrics.count("embed_cache_errors")


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """Implements `Encoder` over an embedder whose vectors are joint: both halves of equal length,
    so that batches, caches, breaker and checks are those of any model."""

    joint: Embedder

    async def info(self) -> EmbedderInfo:
        info = await self.joint.info()
        return replace(info, dims=info.dims // 2)

    async def read(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[TextVectors]:
        vectors = await self.joint.embed(texts, kind, timeout_s=timeout_s)
        return [TextVectors(*np.split(vector * np.float32(2**0.5), 2)) for vector in vectors]

    async def health(self) -> dict[str, Any]:
        return await self.joint.health()

    async def breakers(self) -> list[BreakerSnapshot]:
        return await self.joint.breakers()

    async def reset_breakers(self) -> list[str]:
        return await self.joint.reset_breakers()
