"""The bundled encoder: a small multilingual transformer that reads a text in milliseconds on a CPU.

Its folder holds `words.npy` and `layers.npz`, weights in blocks of 4 bits as their source has them,
`encoder.onnx`, the graph without weights, and `tokenizer.json`. The weights of the layers become
int8 when the model is loaded: a third of a second, and twice the speed of computing on 4 bits. The
rows of words stay on disk, shared by all processes, and are read as they are needed.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import importlib.util
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

import rayapp.inference.models
from rayapp.core.errors import ConfigError, EmbedderDown
from rayapp.core.vectors import Vector
from rayapp.inference.backends.model_thread import ModelThread
from rayapp.inference.ports import EmbedderInfo, TextKind

FORMAT = 1
BUNDLED = Path(rayapp.inference.models.__file__).parent
# float16 scale of a block, then its values: the first half in the low half bytes.
SCALE_BYTES, HALF_BYTE, ZERO = 2, 4, 8
# The int8 products of processors without VNNI add two of them in 16 bits: 2 x 255 x 127 does not
# fit and is cut silently, 2 x 255 x 63 does. Measured there: nearer to the source than 8 bits, by
# .0007 mean cosine (decision 0093).
INT8_MAX = 63
PRODUCTS = ("qkv", "out", "up", "down")
NORMS = ("norm.attended", "norm")
# The fused kernel of addition and norm takes a fifth longer than both apart (measured).
DISABLED = ["SkipLayerNormFusion"]
OUTPUTS = ["search", "heads"]
Arrays = Mapping[str, npt.NDArray[Any]]


def dequantised(blocks: npt.NDArray[np.uint8], block_bytes: int) -> Vector:
    """`[..., bytes of a row]` to float32 `[..., columns]`."""
    parts = blocks.reshape(*blocks.shape[:-1], -1, block_bytes)
    scales = np.ascontiguousarray(parts[..., :SCALE_BYTES]).view("<f2").astype(np.float32)
    packed = parts[..., SCALE_BYTES:]
    halves = (packed & ((1 << HALF_BYTE) - 1), packed >> HALF_BYTE)
    values: Vector = np.concatenate(halves, axis=-1).astype(np.float32)
    values -= ZERO
    values *= scales
    return values.reshape(*blocks.shape[:-1], -1)


def layer_weights(arrays: Arrays, block_bytes: int, *, int8: bool = True) -> dict[str, Any]:
    """What `encoder.onnx` asks for by name; float32 products for a graph in floating point."""
    weights: dict[str, Any] = {}
    _add_norm(weights, "embedded", arrays["embedded"])
    for layer in range(len(arrays["norm"])):
        for name in PRODUCTS:
            matrix = dequantised(arrays[name][layer], block_bytes)
            if int8:
                scale = np.abs(matrix).max(axis=1) / INT8_MAX
                weights[f"{layer}.{name}.scale"] = scale
                matrix = np.rint(matrix / scale[:, None]).astype(np.int8)
            weights[f"{layer}.{name}.weight"] = np.ascontiguousarray(matrix.T)
            weights[f"{layer}.{name}.bias"] = arrays[f"{name}.bias"][layer]
        for name in NORMS:
            _add_norm(weights, f"{layer}.{name}", arrays[name][layer])
    return weights


def _add_norm(weights: dict[str, Any], name: str, pair: npt.NDArray[Any]) -> None:
    weights[f"{name}.weight"], weights[f"{name}.bias"] = pair


class EncoderModel:
    """Blocking calls, safe in several threads at once. `dims` of the joint vector.

    It takes 90 MB while it is loaded: `read` loads what is not there, `release` lets it go.
    """

    def __init__(self, name_or_folder: str = "", *, int8: bool = True, graph: bytes = b"") -> None:
        """Looks at the bundled model or at that of a folder, and loads nothing yet. ConfigError.

        `graph` and `int8`: another graph over the same weights, for whoever compares.
        """
        self._folder = find_encoder(name_or_folder)
        if importlib.util.find_spec("onnxruntime") is None:
            raise ConfigError(
                "The encoder needs onnxruntime: install it, or set embedding.encoder.enabled to "
                "false."
            )
        with _readable(self._folder):
            metadata = json.loads((self._folder / "metadata.json").read_text(encoding="utf-8"))
        _check_format(metadata)
        self.name: str = metadata["name"]
        self.langs: tuple[str, ...] = tuple(metadata["langs"])
        self.text_tokens: int = metadata["text_pieces"]
        self.prefixes: dict[TextKind, str] = metadata["prefixes"]
        self.dims: int = metadata["dims"] * len(OUTPUTS)
        self._block_bytes: int = metadata["block_bytes"]
        self._int8, self._graph = int8, graph
        self._parts: _Parts | None = None
        self._loading = threading.Lock()

    def load(self) -> None:
        """Now and not with the first text: 0.4 s. ConfigError for files that cannot be read."""
        self._loaded()

    def release(self) -> None:
        """Give its memory back; the next text loads it again."""
        with self._loading:
            self._parts = None
        give_back_memory()

    def read(self, texts: Sequence[str]) -> Vector:
        """float32 `[texts, dims]`: both vectors of each text side by side, unit length each.

        One text after another: int8 has one scale for all that is computed together, so in company
        a text would get other vectors than alone, and company saves nothing here (above 32 pieces
        none, below a quarter at most; measured).
        """
        parts = self._loaded()
        joint = np.empty((len(texts), self.dims), dtype=np.float32)
        for row, text in enumerate(parts.tokenizer.encode_batch(list(texts))):
            rows = dequantised(parts.words[text.ids], self._block_bytes)
            rows += parts.positions[: len(rows)]
            outputs = parts.session.run(OUTPUTS, {"rows": rows[None]})
            joint[row] = np.concatenate([each[0] / np.linalg.norm(each) for each in outputs])
        return joint

    def _loaded(self) -> _Parts:
        with self._loading:
            if self._parts is None:
                with _readable(self._folder):
                    self._parts = self._read_parts()
                # The weights in floating point and the tokenizer's file: 30 MB.
                give_back_memory()
            return self._parts

    def _read_parts(self) -> _Parts:
        folder = self._folder
        words = np.load(folder / "words.npy", mmap_mode="r", allow_pickle=False)
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        with np.load(folder / "layers.npz", allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if (tokenizer.get_vocab_size(), self.dims) != (
            len(words),
            arrays["positions"].shape[1] * len(OUTPUTS),
        ):
            raise ConfigError(f"The parts of {folder.name} do not fit together: build it again.")
        tokenizer.enable_truncation(self.text_tokens)
        tokenizer.no_padding()
        weights = layer_weights(arrays, self._block_bytes, int8=self._int8)
        session = _session(self._graph or (folder / "encoder.onnx").read_bytes(), weights)
        return _Parts(words, arrays["positions"], tokenizer, session)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is in memory."""

    words: npt.NDArray[np.uint8]
    positions: Vector
    tokenizer: Tokenizer
    session: Any


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except ConfigError:
        raise
    # Broad: both libraries raise classes of their own for a file that they cannot read.
    except Exception as error:
        raise ConfigError(
            f"The encoder in {folder.name} cannot be read ({error!r}): build it again."
        ) from error


def give_back_memory() -> None:
    """What was freed goes back to the system, where the C library can do that (glibc)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _session(graph: bytes, weights: dict[str, Any]) -> Any:
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    # A question in a thread of its own beside requests: more threads fight over the same
    # processors (two made it slower, measured), and waiting ones must not spin.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The arena keeps what the longest text needed, 30 MB; without it nothing is slower (measured).
    options.enable_cpu_mem_arena = False
    values = [
        runtime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
        for array in weights.values()
    ]
    # The session copies them.
    options.add_external_initializers(list(weights), values)
    return runtime.InferenceSession(
        graph, options, providers=["CPUExecutionProvider"], disabled_optimizers=DISABLED
    )


def _check_format(metadata: dict[str, Any]) -> None:
    if metadata["format"] != FORMAT:
        raise ConfigError(
            f"Encoder format {metadata['format']} is not known here: build it for {FORMAT}."
        )


def find_encoder(name_or_folder: str) -> Path:
    """The bundled encoder for an empty name, one of its name, or a folder. ConfigError."""
    bundled = sorted(path.parent for path in BUNDLED.glob("*/encoder.onnx"))
    if not name_or_folder and bundled:
        return bundled[-1]
    for folder in (BUNDLED / name_or_folder, Path(name_or_folder)):
        if name_or_folder and (folder / "encoder.onnx").is_file():
            return folder
    names = ", ".join(folder.name for folder in bundled)
    raise ConfigError(
        f"No encoder {name_or_folder!r}: set embedding.encoder.model to a folder with "
        f"encoder.onnx or to one of {names}."
    )


class EncoderBackend:
    """`EmbeddingBackend`; a vector of it is joint, see `TextEncoder`.

    A thread for each kind, so that a question never waits for a batch of passages.
    """

    def __init__(self, model: EncoderModel, *, idle_s: float | None = None) -> None:
        """`idle_s`: so long without a text, and the model's memory is given back; None: kept."""
        self._model = model
        self._idle_s = idle_s
        self._calls = 0
        self._letting_go: asyncio.TimerHandle | None = None
        self._threads = {
            kind: ModelThread(f"{model.name}-{kind}", EmbedderDown) for kind in model.prefixes
        }

    async def info(self) -> EmbedderInfo:
        model = self._model
        return EmbedderInfo(backend="encoder", model=model.name, dims=model.dims, langs=model.langs)

    async def encode(self, texts: Sequence[str], kind: TextKind) -> list[Vector]:
        """Of texts with their prefix. EmbedderDown, code `out_of_memory` when it did not fit."""
        self._calls += 1
        try:
            return list(await self._threads[kind].run(partial(self._model.read, texts)))
        finally:
            self._calls -= 1
            self._let_go_later()

    async def close(self) -> None:
        if self._letting_go is not None:
            self._letting_go.cancel()
        for thread in self._threads.values():
            thread.close()

    def _let_go_later(self) -> None:
        if self._letting_go is not None:
            self._letting_go.cancel()
        if self._idle_s is not None:
            loop = asyncio.get_running_loop()
            self._letting_go = loop.call_later(self._idle_s, self._let_go)

    def _let_go(self) -> None:
        # Whoever reads a text just now asks for it again when it has ended.
        if not self._calls:
            asyncio.get_running_loop().run_in_executor(None, self._model.release)
