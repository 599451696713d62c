"""A transformer in a folder: `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`."""

import importlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding, Tokenizer

from rayapp.core.batching import parts_by_length
from rayapp.core.errors import ConfigError
from rayapp.core.vectors import Vector
from rayapp.inference.backends.model_thread import PASS_TOKENS, Pass, in_order

PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")
# Context of BERT and XLM-R; taken when the folder's config.json does not say.
DEFAULT_MAX_TOKENS = 512
# XLM-R counts positions from 2, so that many of `max_position_embeddings` are not usable.
RESERVED_POSITIONS = 2
# Inputs that an export may ask for, by what the tokenizer calls them.
FIELDS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
Feed = dict[str, npt.NDArray[np.int64]]
Pooled = Callable[[Vector, Feed], Vector]


def _as_it_is(output: Vector, _feed: Feed) -> Vector:
    return output


class OnnxModel:
    """Blocking calls; the backends run them in threads of their own."""

    def __init__(self, folder: Path, *, threads: int = 0) -> None:
        """Load and check. `threads` 0: one per CPU that this process may use. Ray sets
        OMP_NUM_THREADS to 1 in its workers, so the number is given explicitly."""
        self.name = folder.name
        try:
            runtime = importlib.import_module("onnxruntime")
        except ImportError as error:
            raise ConfigError("Install onnxruntime: it runs model.onnx.") from error
        path = model_file(folder)
        if path is None or not (folder / "tokenizer.json").is_file():
            raise ConfigError(f"The folder {folder.name} needs model.onnx and tokenizer.json.")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads or _usable_cpus()
        providers = usable_providers(runtime.get_available_providers())
        try:
            self._session: Any = runtime.InferenceSession(str(path), options, providers=providers)
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        # Broad: both libraries raise classes of their own for a file that they cannot read.
        except Exception as error:
            raise ConfigError(
                f"The model in {folder.name} cannot be read ({error!r}): fetch it again."
            ) from error
        # What the session really got.
        self.device = "cuda" if PROVIDERS[0] in self._session.get_providers() else "cpu"
        self._inputs = {node.name for node in self._session.get_inputs()}
        self.text_tokens = _max_tokens(folder)
        self._tokenizer.enable_truncation(self.text_tokens)
        self._tokenizer.no_padding()

    def prepare(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[Pass[Feed]]:
        """Token ids, mask and token types, each pass padded to its longest text."""
        encoded = self._tokenizer.encode_batch(list(texts))
        lengths = [len(text.ids) for text in encoded]
        return [
            Pass(rows, _feed([encoded[row] for row in rows]))
            for rows in parts_by_length(lengths, PASS_TOKENS[self.device])
        ]

    def compute(self, passes: Sequence[Pass[Feed]], pooled: Pooled = _as_it_is) -> Vector:
        """First output of the model through `pooled`, a row per text."""
        outputs = [pooled(self._output(one.feed), one.feed) for one in passes]
        return in_order(passes, np.concatenate(outputs))

    def _output(self, feed: Feed) -> Vector:
        wanted = {name: array for name, array in feed.items() if name in self._inputs}
        output: Any = self._session.run(None, wanted)[0]
        return np.asarray(output, dtype=np.float32)


def model_file(folder: Path) -> Path | None:
    paths = (folder / "model.onnx", folder / "onnx" / "model.onnx")
    return next((path for path in paths if path.is_file()), None)


def usable_providers(offered: Sequence[str]) -> list[str]:
    """What a session may run on, the GPU first where the runtime offers one."""
    return [name for name in PROVIDERS if name in offered]


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _feed(encoded: Sequence[Encoding]) -> Feed:
    length = max(len(text.ids) for text in encoded)
    return {name: _pad(encoded, field, length) for name, field in FIELDS.items()}


def _pad(encoded: Sequence[Encoding], field: str, length: int) -> npt.NDArray[np.int64]:
    """Zero is fine as padding: the mask is zero there too."""
    array = np.zeros((len(encoded), length), dtype=np.int64)
    for row, text in enumerate(encoded):
        values = getattr(text, field)
        array[row, : len(values)] = values
    return array


def read_json(path: Path) -> dict[str, Any]:
    """The object in `path`, empty when there is no such file. ConfigError when it is broken."""
    if not path.is_file():
        return {}
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path.name} of the model is not valid JSON: fetch it again.") from error
    return loaded if isinstance(loaded, dict) else {}


def _max_tokens(folder: Path) -> int:
    sentence = read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    if isinstance(sentence, int):
        return sentence
    positions = read_json(folder / "config.json").get("max_position_embeddings")
    return positions - RESERVED_POSITIONS if isinstance(positions, int) else DEFAULT_MAX_TOKENS
