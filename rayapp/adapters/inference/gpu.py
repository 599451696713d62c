"""What the replica's GPU has to offer, asked of torch when it is installed."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


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


def is_out_of_memory(error: BaseException) -> bool:
    """Torch, CUDA and ONNX Runtime have no common class; their messages agree."""
    text = str(error).lower()
    return "out of memory" in text or "failed to allocate memory" in text
