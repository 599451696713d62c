"""Reranking backend over a cross-encoder in a folder; GPU when the replica has one."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from rayapp.adapters.inference.gpu import torch_device
from rayapp.adapters.inference.model_thread import ModelThread
from rayapp.adapters.inference.onnx_model import DEFAULT_MAX_TOKENS, OnnxModel
from rayapp.domain.index import Vector
from rayapp.errors import ConfigError, RerankerDown


class CrossEncoder(Protocol):
    """A loaded model; blocking."""

    backend: str
    text_tokens: int

    def score(self, pairs: Sequence[tuple[str, str]]) -> Vector:
        """Raw scores, one or two per pair."""
        ...


class OnnxCrossEncoder:
    """`model.onnx` and `tokenizer.json`."""

    def __init__(self, folder: Path) -> None:
        self._model = OnnxModel(folder)
        self.backend = f"local-onnx-{self._model.device}"
        self.text_tokens = self._model.text_tokens

    def score(self, pairs: Sequence[tuple[str, str]]) -> Vector:
        return self._model.run(pairs)[0]


class SentenceTransformersCrossEncoder:
    """A folder of sentence-transformers; its own sigmoid is taken out, the gateway has one."""

    def __init__(self, folder: Path) -> None:
        package = importlib.import_module("sentence_transformers")
        identity = importlib.import_module("torch").nn.Identity()
        device = torch_device()
        self._model = package.CrossEncoder(str(folder), device=device)
        # Version 4 renamed the argument.
        known = inspect.signature(self._model.predict).parameters
        name = "activation_fn" if "activation_fn" in known else "activation_fct"
        self._options = {name: identity, "show_progress_bar": False}
        self.backend = f"local-sentence-transformers-{device}"
        self.text_tokens = int(self._model.max_length or DEFAULT_MAX_TOKENS)

    def score(self, pairs: Sequence[tuple[str, str]]) -> Vector:
        scores = self._model.predict(list(pairs), batch_size=len(pairs), **self._options)
        return np.asarray(scores, dtype=np.float32)


class LocalRerankBackend:
    """`RerankBackend`, one call at a time."""

    def __init__(self, folder: Path) -> None:
        """Loads the model. ConfigError when the folder is not there or holds no model."""
        self._model = open_cross_encoder(folder)
        self._thread = ModelThread(folder.name, RerankerDown)
        self.text_tokens = self._model.text_tokens
        self.name = self._model.backend

    async def logits(self, query: str, documents: Sequence[str]) -> list[float]:
        """RerankerDown, with code `out_of_memory` when the batch did not fit."""
        pairs = [(query, document) for document in documents]
        return await self._thread.run(lambda: _relevance(self._model.score(pairs)))

    async def close(self) -> None:
        self._thread.close()


def open_cross_encoder(folder: Path) -> CrossEncoder:
    """ONNX unless the folder has PyTorch weights alone. ConfigError."""
    if not folder.is_dir():
        raise ConfigError(f"reranker.model is {str(folder)!r}: set it to a model folder.")
    onnx = (folder / "model.onnx").is_file() or (folder / "onnx" / "model.onnx").is_file()
    weights = [*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")]
    if onnx or not weights:
        return OnnxCrossEncoder(folder)
    if importlib.util.find_spec("sentence_transformers") is None:
        raise ConfigError("Install rayapp[gpu]: the model is a sentence-transformers folder.")
    return SentenceTransformersCrossEncoder(folder)


def _relevance(output: Vector) -> list[float]:
    """One label: its logit. Two: the log-odds of "relevant" (the second) against "not"."""
    if output.ndim == 2 and output.shape[1] == 2:
        output = output[:, 1] - output[:, 0]
    if output.ndim > 2 or (output.ndim == 2 and output.shape[1] != 1):
        raise ConfigError(
            f"The cross-encoder gives {output.shape[1:]} scores per pair: one or two."
        )
    return [float(logit) for logit in output.reshape(-1)]
