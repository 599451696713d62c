"""Tests on real torch. They need `rayapp[gpu]`, which the lock is without."""

import importlib.util

GPU_EXTRA = ("torch", "sentence_transformers")


def missing_packages() -> list[str]:
    """What these tests need and is not installed; while there is any, none of them is collected."""
    return [name for name in GPU_EXTRA if importlib.util.find_spec(name) is None]
