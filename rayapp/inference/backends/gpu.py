"""What the replica's GPU has to offer, asked of torch when it is installed."""

from __future__ import annotations

import importlib
import importlib.util
import traceback
from typing import Any, Literal

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
