"""Embedding and reranking over a model folder, in ONNX or torch; GPU when present."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from rayapp.core.errors import ConfigError, EmbedderDown, RerankerDown
from rayapp.core.vectors import Vector
from rayapp.inference.backends.model_thread import ModelThread, Pass, Precision
from rayapp.inference.backends.onnx_model import Feed, OnnxModel, read_json
from rayapp.inference.backends.torch_model import TorchModel
from rayapp.inference.ports import EmbedderInfo, TextKind

# Embedding backend over a model folder, in ONNX or as sentence-transformers; GPU when present.

Pooling = Literal["mean", "cls"]


class TextEncoder(Protocol):
    """A loaded model; blocking. `compute` takes what `prepare` gives."""

    name: str
    backend: str
    text_tokens: int

    def prepare(self, texts: Sequence[str]) -> Any:
        """Tokens of the texts, cut at `text_tokens`."""
        ...

    def compute(self, batch: Any) -> Vector:
        """float32 `[n, dims]`."""
        ...


class OnnxEncoder:
    """Token vectors pooled as the folder's `1_Pooling/config.json` says, the mean without one."""

    def __init__(self, folder: Path) -> None:
        self._model = OnnxModel(folder)
        self._pooling = read_pooling(folder)
        self.name = folder.name
        self.backend = f"local-onnx-{self._model.device}"
        self.text_tokens = self._model.text_tokens
        self.prepare = self._model.prepare

    def compute(self, batch: Sequence[Pass[Feed]]) -> Vector:
        return self._model.compute(batch, self._pooled)

    def _pooled(self, output: Vector, feed: Feed) -> Vector:
        # Exports with a pooling layer of their own give [n, dims] at once.
        return output if output.ndim == 2 else pool(output, feed["attention_mask"], self._pooling)


class SentenceTransformersEncoder:
    """A sentence-transformers folder; the package does pooling and truncation."""

    def __init__(self, folder: Path, precision: Precision) -> None:
        self.model = TorchModel("SentenceTransformer", folder, precision)
        self.name = folder.name
        self.backend = f"local-sentence-transformers-{self.model.device}"
        self.text_tokens = self.model.text_tokens
        self.prepare = self.model.prepare
        self.compute = self.model.compute


class LocalEmbeddingBackend:
    """`EmbeddingBackend` over a `TextEncoder`, one forward pass at a time."""

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder
        self._thread = ModelThread(encoder.name, EmbedderDown)
        self._dims = 0

    async def info(self) -> EmbedderInfo:
        if self._dims == 0:
            (vector,) = await self.encode(["dimensions"], "query")
            self._dims = int(vector.size)
        encoder = self.encoder
        return EmbedderInfo(backend=encoder.backend, model=encoder.name, dims=self._dims)

    async def encode(self, texts: Sequence[str], kind: TextKind) -> list[Vector]:
        """EmbedderDown, with code `out_of_memory` when the batch did not fit."""
        # A question does not wait for the batches of a bulk load that are in line already.
        vectors = await self._thread.batch(
            lambda: self.encoder.prepare(texts), self.encoder.compute, urgent=kind == "query"
        )
        return list(vectors)

    async def close(self) -> None:
        self._thread.close()


def open_encoder(folder: Path, precision: Precision = "auto") -> TextEncoder:
    """ONNX when the folder has `model.onnx`, else sentence-transformers. ConfigError."""
    if not folder.is_dir():
        raise ConfigError(f"embedding.model is {str(folder)!r}: set it to a model folder.")
    if (folder / "model.onnx").is_file() or (folder / "onnx" / "model.onnx").is_file():
        return OnnxEncoder(folder)
    if not (folder / "modules.json").is_file():
        raise ConfigError(f"The folder {folder.name} has neither model.onnx nor modules.json.")
    return SentenceTransformersEncoder(folder, precision)


def read_pooling(folder: Path) -> Pooling:
    """ConfigError for a pooling other than mean and CLS."""
    config = read_json(folder / "1_Pooling" / "config.json")
    modes = {name for name, on in config.items() if name.startswith("pooling_mode_") and on is True}
    if not modes or modes == {"pooling_mode_mean_tokens"}:
        return "mean"
    if modes == {"pooling_mode_cls_token"}:
        return "cls"
    raise ConfigError(f"Pooling {sorted(modes)} of {folder.name} is not supported: mean or CLS.")


def pool(tokens: Vector, mask: npt.NDArray[np.int64], pooling: Pooling) -> Vector:
    """`[n, length, dims]` and its mask to `[n, dims]`; padding takes no part."""
    if pooling == "cls":
        return tokens[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    total: Vector = (tokens * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0)
    return total


# Reranking backend over a cross-encoder in a folder; GPU when the replica has one.


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
