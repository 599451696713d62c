"""Which runtime and device a local cross-encoder gets; no GPU and no torch are needed to know."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rayapp.adapters.inference import local_rerank
from rayapp.adapters.inference.local_rerank import LocalRerankBackend
from rayapp.adapters.inference.onnx_model import usable_providers
from rayapp.errors import ConfigError


def test_a_gpu_is_used_before_the_cpu() -> None:
    offered = ["TensorrtExecutionProvider", "CPUExecutionProvider", "CUDAExecutionProvider"]
    assert usable_providers(offered) == ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert usable_providers(["CPUExecutionProvider"]) == ["CPUExecutionProvider"]


class FakeCrossEncoder:
    """The part of `sentence_transformers.CrossEncoder` that is used: a score per shared word."""

    max_length = 128

    def __init__(self, folder: str, *, device: str) -> None:
        self.device = device

    def predict(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        batch_size: int,
        activation_fn: Any,
        show_progress_bar: bool,
    ) -> list[float]:
        scores = [len(set(one.split()) & set(two.split())) - 1.0 for one, two in pairs]
        return [activation_fn(score) for score in scores]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch and sentence-transformers as far as they are used, without a GPU."""
    modules = {
        "torch": {
            "nn": SimpleNamespace(Identity=lambda: float),
            "cuda": SimpleNamespace(is_available=lambda: False),
        },
        "sentence_transformers": {"CrossEncoder": FakeCrossEncoder},
    }
    for name, members in modules.items():
        module = ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        for member, value in members.items():
            setattr(module, member, value)
        monkeypatch.setitem(sys.modules, name, module)
    return sys.modules["torch"]


class TestSentenceTransformers:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "model.safetensors").write_bytes(b"weights")
        return tmp_path

    async def test_raw_scores_on_the_cpu(self, folder: Path, package: Any) -> None:
        backend = LocalRerankBackend(folder)
        assert (backend.name, backend.text_tokens) == ("local-sentence-transformers-cpu", 128)
        assert await backend.logits("חתול dog", ["חתול and dog", "nothing"]) == [1.0, -1.0]
        await backend.close()

    async def test_a_visible_gpu_is_taken(self, folder: Path, package: Any) -> None:
        package.cuda.is_available = lambda: True
        backend = LocalRerankBackend(folder)
        assert backend.name == "local-sentence-transformers-cuda"
        await backend.close()

    def test_a_missing_package_is_named(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(local_rerank.importlib.util, "find_spec", lambda _name: None)
        with pytest.raises(ConfigError, match="Install"):
            LocalRerankBackend(folder)


def test_two_labels_are_one_score() -> None:
    assert local_rerank._relevance(np.array([[1.0, 3.0]], dtype=np.float32)) == [2.0]
