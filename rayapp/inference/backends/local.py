"""Embedding and reranking over a model folder, in ONNX or torch; GPU when present."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rayapp.core.errors import ConfigError, EmbedderDown, RerankerDown
from rayapp.core.vectors import Vector
from rayapp.inference.backends.model_thread import ModelThread, Precision
from rayapp.inference.backends.onnx_model import OnnxModel, model_file, read_json
from rayapp.inference.backends.torch_model import TorchModel
from rayapp.inference.ports import EmbedderInfo, TextKind

Pooling = Literal["mean", "cls"]


@dataclass(slots=True, kw_only=True)
class LoadedModel:
    """Blocking. `prepare` gives the tokens of texts or of pairs, cut at `text_tokens`; `compute`
    makes vectors or raw scores of them, float32, a row per text or pair."""

    name: str
    model: OnnxModel | TorchModel
    backend: str
    text_tokens: int
    prepare: Callable[[Sequence[Any]], Any]
    compute: Callable[[Any], Vector]


def _loaded(
    folder: Path, model: OnnxModel | TorchModel, compute: Callable[[Any], Vector] | None = None
) -> LoadedModel:
    kind = "onnx" if isinstance(model, OnnxModel) else "sentence-transformers"
    return LoadedModel(
        name=folder.name,
        model=model,
        backend=f"local-{kind}-{model.device}",
        text_tokens=model.text_tokens,
        prepare=model.prepare,
        compute=compute or model.compute,
    )


class LocalEmbeddingBackend:
    """`EmbeddingBackend` over a loaded model, one forward pass at a time."""

    def __init__(self, encoder: LoadedModel) -> None:
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


def open_encoder(folder: Path, precision: Precision = "auto") -> LoadedModel:
    """ONNX when the folder has `model.onnx`, else sentence-transformers. ConfigError."""
    _check_folder(folder, "embedding.model")
    if model_file(folder) is not None:
        # As `1_Pooling/config.json` says. Exports with a pooling layer give [n, dims] at once.
        pooling = read_pooling(folder)
        model = OnnxModel(folder)
        pooled = partial(
            model.compute,
            pooled=lambda out, feed: (
                out if out.ndim == 2 else pool(out, feed["attention_mask"], pooling)
            ),
        )
        return _loaded(folder, model, pooled)
    if not (folder / "modules.json").is_file():
        raise ConfigError(f"The folder {folder.name} has neither model.onnx nor modules.json.")
    return _loaded(folder, TorchModel("SentenceTransformer", folder, precision))


def _check_folder(folder: Path, setting: str) -> None:
    if not folder.is_dir():
        raise ConfigError(f"{setting} is {str(folder)!r}: set it to a model folder.")


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
    total = (tokens * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), np.float32(1.0))
    pooled: Vector = total.astype(np.float32, copy=False)
    return pooled


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


def open_cross_encoder(folder: Path, precision: Precision = "auto") -> LoadedModel:
    """ONNX unless the folder has PyTorch weights alone. ConfigError."""
    _check_folder(folder, "reranker.model")
    weights = [*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")]
    if model_file(folder) is not None or not weights:
        return _loaded(folder, OnnxModel(folder))
    # Without its sigmoid: the gateway has one.
    return _loaded(folder, TorchModel("CrossEncoder", folder, precision))


def _relevance(output: Vector) -> list[float]:
    """One label: its logit. Two: the log-odds of "relevant" (the second) against "not"."""
    if output.ndim == 2 and output.shape[1] == 2:
        output = output[:, 1] - output[:, 0]
    if output.ndim > 2 or (output.ndim == 2 and output.shape[1] != 1):
        raise ConfigError(
            f"The cross-encoder gives {output.shape[1:]} scores per pair: one or two."
        )
    return [float(logit) for logit in output.reshape(-1)]
