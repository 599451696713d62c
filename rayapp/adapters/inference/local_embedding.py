"""Embedding backend over a model folder, in ONNX or as sentence-transformers; GPU when present."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from rayapp.adapters.inference.gpu import torch_device
from rayapp.adapters.inference.model_thread import ModelThread
from rayapp.adapters.inference.onnx_model import DEFAULT_MAX_TOKENS, OnnxModel, read_json
from rayapp.domain.index import Vector
from rayapp.errors import ConfigError, EmbedderDown
from rayapp.protocols import EmbedderInfo, TextKind

Pooling = Literal["mean", "cls"]


class TextEncoder(Protocol):
    """A loaded model; blocking."""

    name: str
    backend: str
    text_tokens: int

    def encode(self, texts: Sequence[str]) -> Vector:
        """float32 `[n, dims]`; texts are cut at `text_tokens`."""
        ...


class OnnxEncoder:
    """Token vectors pooled as the folder's `1_Pooling/config.json` says, the mean without one."""

    def __init__(self, folder: Path) -> None:
        self._model = OnnxModel(folder)
        self._pooling = read_pooling(folder)
        self.name = folder.name
        self.backend = f"local-onnx-{self._model.device}"
        self.text_tokens = self._model.text_tokens

    def encode(self, texts: Sequence[str]) -> Vector:
        output, mask = self._model.run(texts)
        # Exports with a pooling layer of their own give [n, dims] at once.
        return output if output.ndim == 2 else pool(output, mask, self._pooling)


class SentenceTransformersEncoder:
    """A sentence-transformers folder; the package does pooling and truncation."""

    def __init__(self, folder: Path) -> None:
        package = importlib.import_module("sentence_transformers")
        device = torch_device()
        self._model = package.SentenceTransformer(str(folder), device=device)
        self.name = folder.name
        self.backend = f"local-sentence-transformers-{device}"
        self.text_tokens = int(self._model.max_seq_length or DEFAULT_MAX_TOKENS)

    def encode(self, texts: Sequence[str]) -> Vector:
        return np.asarray(
            self._model.encode(list(texts), batch_size=len(texts), show_progress_bar=False),
            dtype=np.float32,
        )


class LocalEmbeddingBackend:
    """`EmbeddingBackend` over a `TextEncoder`, one call at a time."""

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self._thread = ModelThread(encoder.name, EmbedderDown)
        self._dims = 0

    async def info(self) -> EmbedderInfo:
        if self._dims == 0:
            (vector,) = await self.encode(["dimensions"], "query")
            self._dims = int(vector.size)
        encoder = self._encoder
        return EmbedderInfo(backend=encoder.backend, model=encoder.name, dims=self._dims)

    async def encode(self, texts: Sequence[str], kind: TextKind) -> list[Vector]:
        """EmbedderDown, with code `out_of_memory` when the batch did not fit."""
        return list(await self._thread.run(lambda: self._encoder.encode(texts)))

    async def close(self) -> None:
        self._thread.close()


def open_encoder(folder: Path) -> TextEncoder:
    """ONNX when the folder has `model.onnx`, else sentence-transformers. ConfigError."""
    if not folder.is_dir():
        raise ConfigError(f"embedding.model is {str(folder)!r}: set it to a model folder.")
    if (folder / "model.onnx").is_file() or (folder / "onnx" / "model.onnx").is_file():
        return OnnxEncoder(folder)
    if not (folder / "modules.json").is_file():
        raise ConfigError(f"The folder {folder.name} has neither model.onnx nor modules.json.")
    if importlib.util.find_spec("sentence_transformers") is None:
        raise ConfigError("Install rayapp[gpu]: the model is a sentence-transformers folder.")
    return SentenceTransformersEncoder(folder)


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
