"""A sentence-transformers model on its device: tokens and forward pass apart, and its numbers."""

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rayapp.core.batching import parts_by_length
from rayapp.core.errors import ConfigError
from rayapp.core.vectors import Vector
from rayapp.inference.backends import model_thread
from rayapp.inference.backends.onnx_model import DEFAULT_MAX_TOKENS
from rayapp.inference.backends.recorded_passes import RecordedPasses, Replay

Kind = Literal["SentenceTransformer", "CrossEncoder"]
# What the forward pass of each kind calls its answer.
OUTPUTS: dict[Kind, str] = {"SentenceTransformer": "sentence_embedding", "CrossEncoder": "scores"}
Features = Mapping[str, Any]


class TorchModel:
    """Blocking calls; the backends run them in threads of their own.

    The package's own `encode` and `predict` do both steps in one thread, one after the other.

    Attributes:
        module: the torch module, for whoever measures it.
        device: `cuda` or `cpu`.
        text_tokens: where the model cuts a text.
        padding: the id behind a text that is shorter than others of its pass.
    """

    def __init__(self, kind: Kind, folder: Path, precision: model_thread.Precision) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise ConfigError("Install rayapp[gpu]: the model is a sentence-transformers folder.")
        package = importlib.import_module("sentence_transformers")
        self._torch = importlib.import_module("torch")
        self.device = model_thread.torch_device()
        dtype = getattr(self._torch, model_thread.number_format(precision, self.device))
        # Changed before it moves: the weights never stand on the GPU in full precision.
        model: Any = getattr(package, kind)(str(folder), device="cpu")
        self.module = model.to(dtype=dtype).to(self.device).eval()
        self.text_tokens = int(self.module.max_seq_length or DEFAULT_MAX_TOKENS)
        self._output = OUTPUTS[kind]
        self._prompt = self.module.prompts.get(self.module.default_prompt_name) or None
        self.padding: int = (
            getattr(getattr(self.module, "tokenizer", None), "pad_token_id", None) or 0
        )
        self._recorded = RecordedPasses(self._launch, self._record, {"input_ids": self.padding})
        self._graphs_memory: Any = None  # one for all: no two passes run at once

    def prepare(
        self, texts: Sequence[str] | Sequence[tuple[str, str]]
    ) -> list[model_thread.Pass[Features]]:
        """Token ids and masks on the CPU, each pass padded to its longest text."""
        features: Features = self.module.preprocess(list(texts), prompt=self._prompt)
        lengths = self._lengths(features)
        if lengths is None:
            return [model_thread.Pass(range(len(texts)), features)]
        return [
            model_thread.Pass(
                rows,
                {
                    name: value[rows, : lengths[rows[-1]]] if self._is_tensor(value) else value
                    for name, value in features.items()
                },
            )
            for rows in parts_by_length(lengths, model_thread.PASS_TOKENS[self.device])
        ]

    def compute(self, passes: Sequence[model_thread.Pass[Features]]) -> Vector:
        """float32, a row per text; copied from the device once."""
        with self._torch.inference_mode():
            joined = self._torch.cat([self._output_of(one.feed) for one in passes])
            outputs = joined.float().cpu().numpy()
        return model_thread.in_order(passes, np.asarray(outputs, dtype=np.float32))

    def _output_of(self, features: Features) -> Any:
        if self.device == "cpu" or self._lengths(features) is None:
            return self._launch(features)
        return self._recorded(self.arrays(features))

    def arrays(self, features: Features) -> dict[str, Any]:
        """Tensors as arrays over the same memory, settings as they are."""
        return {
            name: value.numpy() if self._is_tensor(value) else value
            for name, value in features.items()
        }

    def _launch(self, features: Features) -> Any:
        return self.module(self._move(features))[self._output]

    def _record(self, features: Features) -> Replay:
        """A CUDA graph of this pass. Raises what torch says of a step that cannot be in one."""
        torch = self._torch
        inputs = self._move(features)
        self._graphs_memory = self._graphs_memory or torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        # Of this thread alone: another model of this process may be computing.
        with torch.cuda.graph(graph, self._graphs_memory, capture_error_mode="thread_local"):
            # In a copy: modules write what they made into it.
            output = self.module(dict(inputs))[self._output]

        def replay(feed: Features) -> Any:
            for name, value in self._tensors(feed).items():
                inputs[name].copy_(value, non_blocking=True)
            graph.replay()
            return output

        return replay

    def _lengths(self, features: Features) -> list[int] | None:
        """True lengths; None for inputs that are not one padded row per text, padded behind."""
        tensors = [value for value in features.values() if self._is_tensor(value)]
        mask = features.get("attention_mask")
        if mask is None or any(value.shape != mask.shape for value in tensors):
            return None
        lengths: list[int] = mask.sum(1).tolist()
        return lengths if bool(mask[:, 0].all()) and min(lengths) > 0 else None

    def _is_tensor(self, value: object) -> bool:
        return isinstance(value, self._torch.Tensor)

    def _move(self, features: Features) -> dict[str, Any]:
        moved = {
            name: value.to(self.device, non_blocking=True)
            for name, value in self._tensors(features).items()
        }
        return {**features, **moved}

    def _tensors(self, features: Features) -> dict[str, Any]:
        """Those of the features that are numbers."""
        return {
            name: value if self._is_tensor(value) else self._torch.from_numpy(value)
            for name, value in features.items()
            if self._is_tensor(value) or isinstance(value, np.ndarray)
        }
