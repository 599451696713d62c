"""A local model: calls queue in threads of their own, in passes of like lengths."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from rayapp.core.batching import OUT_OF_MEMORY
from rayapp.core.errors import DependencyDown, RayappError
from rayapp.core.vectors import Vector

F = TypeVar("F")

# What a forward pass costs of its own, in tokens at full speed. On a CPU the weights are read once
# a pass: 32 to 40 (measured, 6 layers of 384 on one core). On a GPU 1.5 ms at 670 tokens per ms for
# a recorded pass of 24 layers of 1024 (measured, H200).
PASS_TOKENS = {"cpu": 32, "cuda": 1_024}


@dataclass(frozen=True, slots=True)
class Pass(Generic[F]):
    """`rows` of the batch, and what the model reads of them."""

    rows: Sequence[int]
    feed: F


def in_order(passes: Sequence[Pass[F]], joined: Vector) -> Vector:
    """`joined` has the rows of one pass after another; the result has those of the batch."""
    placed = np.empty_like(joined)
    placed[[row for one in passes for row in one.rows]] = joined
    return placed


Precision = Literal["auto", "float32", "float16", "bfloat16"]

# What runtimes say when memory is short: torch and ONNX Runtime on a GPU, the libraries below
# them, torch and ONNX Runtime on a CPU, C++.
OUT_OF_MEMORY_WORDS = (
    "out of memory",
    "failed to allocate memory",
    "can't allocate memory",
    "status_alloc_failed",
    "bad_alloc",
)


def _cuda() -> Any | None:
    """`torch.cuda`, or None without torch or without a visible GPU."""
    if importlib.util.find_spec("torch") is None:
        return None
    cuda = importlib.import_module("torch").cuda
    return cuda if cuda.is_available() else None


def free_gpu_bytes() -> int | None:
    """Free memory of the first visible GPU (Ray shows a replica its own), None without one."""
    cuda = _cuda()
    return None if cuda is None else int(cuda.mem_get_info(0)[0])


def torch_device() -> str:
    return "cpu" if _cuda() is None else "cuda"


def number_format(precision: Precision, device: str) -> str:
    """The torch type of weights and activations.

    `auto` is float16 on a GPU: half the memory, the speed of its tensor cores, and eight times
    finer than bfloat16, so that vectors agree with those made on a CPU.
    """
    if precision != "auto":
        return precision
    return "float32" if device == "cpu" else "float16"


def is_out_of_memory(error: BaseException) -> bool:
    """Torch, CUDA and ONNX Runtime have no common class; their messages agree."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return any(words in text for words in OUT_OF_MEMORY_WORDS)


def release(error: BaseException) -> None:
    """Give back the memory of a call that did not fit, so that a smaller one does.

    The frames of an error keep every activation of the failed call alive, as long as anybody
    holds the error; and freed blocks of its shapes stay with the allocator.
    """
    traceback.clear_frames(error.__traceback__)
    cuda = _cuda()
    if cuda is not None:
        cuda.empty_cache()


T = TypeVar("T")
B = TypeVar("B")


class ModelThread:
    """`down` is the error class of a model that breaks.

    Two threads: while one computes a batch, the other turns the next one into tokens, so that a
    GPU does not wait for the tokenizer.
    """

    def __init__(self, name: str, down: type[DependencyDown]) -> None:
        self._name = name
        self._down = down
        self._tokens = _Worker(f"tokens-{name}")
        self._model = _Worker(f"model-{name}")

    async def run(self, call: Callable[[], T], *, urgent: bool = False) -> T:
        """Run a blocking call in the model's thread; an urgent one overtakes those that wait.

        Raises DependencyDown: as `down`; with code `out_of_memory` when the batch did not fit.
        """
        return await self._guard(self._model, call, urgent)

    async def batch(
        self, prepare: Callable[[], B], compute: Callable[[B], T], *, urgent: bool = False
    ) -> T:
        """`compute(prepare())`, each in its own thread. Raises as `run` does."""
        prepared = await self._guard(self._tokens, prepare, urgent)
        return await self._guard(self._model, lambda: compute(prepared), urgent)

    async def _guard(self, worker: _Worker, call: Callable[[], T], urgent: bool) -> T:
        try:
            return await worker.run(call, urgent)
        except RayappError:
            raise
        # Broad: model runtimes raise RuntimeError, ValueError and classes of their own.
        except Exception as error:
            code = OUT_OF_MEMORY if is_out_of_memory(error) else None
            raise self._down(
                f"The model {self._name} failed ({error!r}): check the model folder.", code=code
            ) from error

    def close(self) -> None:
        """Does not wait: a call in a model cannot be interrupted."""
        self._tokens.close()
        self._model.close()


class _Worker:
    """One thread and its waiting calls, urgent ones before the others."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._urgent: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._others: deque[tuple[Callable[[], Any], Future[Any]]] = deque()

    async def run(self, call: Callable[[], T], urgent: bool) -> T:
        done: Future[T] = Future()
        (self._urgent if urgent else self._others).append((call, done))
        # As many submissions as calls, but each runs the most urgent call that waits then.
        self._pool.submit(self._next)
        return await asyncio.wrap_future(done)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for _, done in (*self._urgent, *self._others):
            done.cancel()

    def _next(self) -> None:
        call, done = (self._urgent or self._others).popleft()
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(call())
        # Broad: whatever a model raises belongs to the caller who waits.
        except BaseException as error:  # noqa: BLE001
            try:
                if is_out_of_memory(error):
                    # Here, before the next call of this thread needs the memory.
                    release(error)
            finally:
                # A device that cannot even be tidied must not leave the caller waiting.
                done.set_exception(error)
