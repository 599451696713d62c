"""Tests on real torch, collected where `rayapp[gpu]` is installed; the lock is without it."""

from __future__ import annotations

import importlib.util

GPU_EXTRA = ("torch", "sentence_transformers")
collect_ignore_glob = (
    [] if all(importlib.util.find_spec(name) for name in GPU_EXTRA) else ["test_*.py"]
)
