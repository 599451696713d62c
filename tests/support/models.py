"""Working fakes of models for tests: vectors and scores from words, and failures on demand.

Nothing outside tests may import this: a made-up vector must never reach an index.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rayapp.core.batching import OUT_OF_MEMORY
from rayapp.core.breaker import BreakerSnapshot
from rayapp.core.errors import EmbedderDown, RerankerDown
from rayapp.core.vectors import Vector
from rayapp.inference.ports import EmbedderInfo, TextKind


def hash_vector(text: str, dims: int) -> Vector:
    """Unit float32 `[dims]`, the sum over the words' vectors: texts that share words are near."""
    total = np.zeros(dims, dtype=np.float64)
    for word in text.lower().split():
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        total += np.random.default_rng(seed).standard_normal(dims)
    norm = float(np.linalg.norm(total))
    return np.asarray(total / norm if norm else total, dtype=np.float32)


class HashBackend:
    """`EmbeddingBackend`.

    Attributes:
        failures: errors that the next calls raise, one each.
        answers: vectors given for certain texts instead of the right ones.
        memory_texts: a call with more texts runs out of memory.
        delay_s: seconds each call takes.
        calls: the texts of every call that was made.
    """

    def __init__(self, dims: int = 32, *, delay_s: float = 0.0) -> None:
        self.dims = dims
        self.delay_s = delay_s
        self.failures: list[Exception] = []
        self.answers: dict[str, Vector] = {}
        self.memory_texts: int | None = None
        self.calls: list[list[str]] = []
        self.closed = False

    async def info(self) -> EmbedderInfo:
        return EmbedderInfo(backend="hash", model="hash", dims=self.dims)

    async def encode(self, texts: Sequence[str], kind: TextKind) -> list[Vector]:
        self.calls.append(list(texts))
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.failures:
            raise self.failures.pop(0)
        if self.memory_texts is not None and len(texts) > self.memory_texts:
            raise EmbedderDown("The batch did not fit.", code=OUT_OF_MEMORY)
        return [self.answers.get(text, hash_vector(text, self.dims)) for text in texts]

    async def close(self) -> None:
        self.closed = True


class NoBreakers:
    """Implements `BreakerOwner` for fakes that have none."""

    async def breakers(self) -> list[BreakerSnapshot]:
        return []

    async def reset_breakers(self) -> list[str]:
        return []


class HashEmbedder(NoBreakers):
    """`Embedder` without a gateway; `down` makes every call an EmbedderDown."""

    def __init__(self, dims: int = 32) -> None:
        self._dims = dims
        self.down = False
        self.calls: list[list[str]] = []

    async def info(self) -> EmbedderInfo:
        return EmbedderInfo(backend="hash", model="hash", dims=self._dims)

    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        self.calls.append(list(texts))
        if self.down:
            raise EmbedderDown("The embedder of this test is down.")
        return [hash_vector(text, self._dims) for text in texts]

    async def health(self) -> dict[str, Any]:
        return {"healthy": not self.down}


class OverlapRerankBackend:
    """`RerankBackend`: the logit is the share of query words in the document, from -3 to 3."""

    name = "overlap"

    def __init__(self, *, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s
        self.failures: list[Exception] = []
        self.memory_texts: int | None = None
        self.calls: list[list[str]] = []

    async def logits(self, query: str, documents: Sequence[str]) -> list[float]:
        self.calls.append(list(documents))
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.failures:
            raise self.failures.pop(0)
        if self.memory_texts is not None and len(documents) > self.memory_texts:
            raise RerankerDown("The batch did not fit.", code=OUT_OF_MEMORY)
        words = set(query.lower().split())
        shared = [len(words & set(document.lower().split())) for document in documents]
        return [6.0 * count / max(1, len(words)) - 3.0 for count in shared]

    async def close(self) -> None:
        return None


class InlineOverlapBackend(OverlapRerankBackend):
    """`InlineRerankBackend`; texts longer than `most` characters are left to `logits`."""

    most = 100

    def at_once(self, query: str, documents: Sequence[str]) -> list[float] | None:
        if max(map(len, documents)) > self.most:
            return None
        if self.failures:
            raise self.failures.pop(0)
        return [float(len(document)) for document in documents]
