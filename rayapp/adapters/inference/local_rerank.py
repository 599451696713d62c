"""Reranking backend over a cross-encoder in ONNX; GPU when the replica has one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rayapp.adapters.inference.model_thread import ModelThread
from rayapp.adapters.inference.onnx_model import OnnxModel
from rayapp.domain.index import Vector
from rayapp.errors import ConfigError, RerankerDown


class LocalRerankBackend:
    """`RerankBackend`, one call at a time."""

    def __init__(self, folder: Path) -> None:
        """Loads the model. ConfigError when the folder is not there or has no ONNX model."""
        if not folder.is_dir():
            raise ConfigError(f"reranker.model is {str(folder)!r}: set it to a model folder.")
        self._model = OnnxModel(folder)
        self._thread = ModelThread(folder.name, RerankerDown)
        self.text_tokens = self._model.text_tokens
        self.name = f"local-onnx-{self._model.device}"

    async def logits(self, query: str, documents: Sequence[str]) -> list[float]:
        """RerankerDown, with code `out_of_memory` when the batch did not fit."""
        pairs = [(query, document) for document in documents]
        return await self._thread.run(lambda: _relevance(self._model.run(pairs)[0]))

    async def close(self) -> None:
        self._thread.close()


def _relevance(output: Vector) -> list[float]:
    """One label: its logit. Two: the log-odds of "relevant" (the second) against "not"."""
    if output.ndim == 2 and output.shape[1] == 2:
        output = output[:, 1] - output[:, 0]
    if output.ndim > 2 or (output.ndim == 2 and output.shape[1] != 1):
        raise ConfigError(
            f"The cross-encoder gives {output.shape[1:]} scores per pair: one or two."
        )
    return [float(logit) for logit in output.reshape(-1)]
