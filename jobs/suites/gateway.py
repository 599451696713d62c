"""The configured embedder as a service has it, for a lab, which waits for every answer."""

import asyncio
from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from rayapp.container import bootstrap
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import EmbeddingSettings, Settings
from rayapp.inference.ports import EmbedderInfo, TextKind

# Limit of one batch, seconds, our choice: nobody waits for a search meanwhile.
PATIENCE_S = 60.0


class Gateway:
    """Static, local and HTTP models alike, with the prefixes and checks of the settings.

    Use it in a `with` statement, in a thread without an event loop.
    """

    def __init__(self, settings: Settings) -> None:
        """Loads a static or local model. ConfigError."""
        self._settings = _patient(settings.embedding)
        patient = settings.model_copy(update={"embedding": self._settings})
        self._service = bootstrap.embedding_service(patient, InMemoryMetrics())
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._runner as runner:
            runner.run(self._service.close())

    def info(self) -> EmbedderInfo:
        """Name, size and languages, as they go into the index. ConfigError, EmbedderDown."""
        return self._runner.run(self._service.info())

    def passages(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """float32 `[n, dims]` of texts to be found. EmbedderDown, BadVector, InvalidInput."""
        return self._runner.run(self._embed(texts, "passage"))

    def queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The same of questions."""
        return self._runner.run(self._embed(texts, "query"))

    async def _embed(self, texts: Sequence[str], kind: TextKind) -> npt.NDArray[np.float32]:
        size, limit_s = self._settings.batch.max_size, self._settings.batch_timeout_s
        rows = np.zeros((len(texts), (await self._service.info()).dims), dtype=np.float32)
        for begin in range(0, len(texts), size):
            part = texts[begin : begin + size]
            rows[begin : begin + size] = await self._service.embed(part, kind, timeout_s=limit_s)
        return rows


def _patient(settings: EmbeddingSettings) -> EmbeddingSettings:
    limit_s = max(PATIENCE_S, settings.batch_timeout_s)
    return settings.model_copy(update={"query_timeout_s": limit_s, "batch_timeout_s": limit_s})
