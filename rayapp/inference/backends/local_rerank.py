"""Reranking backend over a cross-encoder in a folder; GPU when the replica has one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from rayapp.core.errors import ConfigError, RerankerDown
from rayapp.core.vectors import Vector
from rayapp.inference.backends.gpu import Precision
from rayapp.inference.backends.model_thread import ModelThread
from rayapp.inference.backends.onnx_model import OnnxModel
from rayapp.inference.backends.torch_model import TorchModel


class CrossEncoder(Protocol):
    """A loaded model; blocking. `compute` takes what `prepare` gives."""

    backend: str
    text_tokens: int

    def prepare(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """Tokens of the pairs, cut at `text_tokens`."""
        ...

    def compute(self, batch: Any) -> Vector:
        """Raw scores, one or two per pair."""
        ...


class OnnxCrossEncoder:
    """`model.onnx` and `tokenizer.json`."""

    def __init__(self, folder: Path) -> None:
        self._model = OnnxModel(folder)
        self.backend = f"local-onnx-{self._model.device}"
        self.text_tokens = self._model.text_tokens
        self.prepare = self._model.prepare
        self.compute = self._model.compute


class SentenceTransformersCrossEncoder:
    """A folder of sentence-transformers without its sigmoid: the gateway has one."""

    def __init__(self, folder: Path, precision: Precision) -> None:
        self.model = TorchModel("CrossEncoder", folder, precision)
        self.backend = f"local-sentence-transformers-{self.model.device}"
        self.text_tokens = self.model.text_tokens
        self.prepare = self.model.prepare
        self.compute = self.model.compute


class LocalRerankBackend:
    """`RerankBackend`, one forward pass at a time."""

    def __init__(self, folder: Path, precision: Precision = "auto") -> None:
        """Loads the model. ConfigError when the folder is not there or holds no model."""
        self.model = open_cross_encoder(folder, precision)
        self._thread = ModelThread(folder.name, RerankerDown)
        self.text_tokens = self.model.text_tokens
        self.name = self.model.backend

    async def logits(self, query: str, documents: Sequence[str]) -> list[float]:
        """RerankerDown, with code `out_of_memory` when the batch did not fit."""
        pairs = [(query, document) for document in documents]
        scores = await self._thread.batch(lambda: self.model.prepare(pairs), self.model.compute)
        return _relevance(scores)

    async def close(self) -> None:
        self._thread.close()


def open_cross_encoder(folder: Path, precision: Precision = "auto") -> CrossEncoder:
    """ONNX unless the folder has PyTorch weights alone. ConfigError."""
    if not folder.is_dir():
        raise ConfigError(f"reranker.model is {str(folder)!r}: set it to a model folder.")
    onnx = (folder / "model.onnx").is_file() or (folder / "onnx" / "model.onnx").is_file()
    weights = [*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")]
    if onnx or not weights:
        return OnnxCrossEncoder(folder)
    return SentenceTransformersCrossEncoder(folder, precision)


def _relevance(output: Vector) -> list[float]:
    """One label: its logit. Two: the log-odds of "relevant" (the second) against "not"."""
    if output.ndim == 2 and output.shape[1] == 2:
        output = output[:, 1] - output[:, 0]
    if output.ndim > 2 or (output.ndim == 2 and output.shape[1] != 1):
        raise ConfigError(
            f"The cross-encoder gives {output.shape[1:]} scores per pair: one or two."
        )
    return [float(logit) for logit in output.reshape(-1)]
