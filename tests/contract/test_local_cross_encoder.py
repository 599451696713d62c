"""Which runtime and device a local cross-encoder gets; no GPU and no torch are needed to know."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from rayapp.core.errors import ConfigError
from rayapp.inference.backends import local, torch_model
from rayapp.inference.backends.local import LocalRerankBackend
from rayapp.inference.backends.onnx_model import usable_providers


def test_a_gpu_is_used_before_the_cpu() -> None:
    offered = ["TensorrtExecutionProvider", "CPUExecutionProvider", "CUDAExecutionProvider"]
    assert usable_providers(offered) == ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert usable_providers(["CPUExecutionProvider"]) == ["CPUExecutionProvider"]


class FakeTensor(np.ndarray[Any, Any]):
    """An array with the methods of a tensor that are used; it goes nowhere."""

    def to(self, device: str, *, non_blocking: bool) -> FakeTensor:
        return self

    def float(self) -> FakeTensor:
        return self

    cpu = numpy = float


class FakeCrossEncoder:
    """The part of `sentence_transformers.CrossEncoder` that is used: a score per shared word.

    Its token ids are places in the list of words it has seen; 0 ends the question.
    """

    max_seq_length = 128
    prompts: ClassVar[dict[str, str]] = {}
    default_prompt_name = None

    def __init__(self, folder: str, *, device: str) -> None:
        self.moves = [device]
        self.words = ["/"]

    def to(self, device: str | None = None, *, dtype: str | None = None) -> FakeCrossEncoder:
        self.moves.append(device or dtype or "")
        return self

    def eval(self) -> FakeCrossEncoder:
        return self

    def preprocess(self, pairs: Sequence[tuple[str, str]], *, prompt: None) -> dict[str, Any]:
        rows = [[self.place(w) for w in f"{one} / {two}".split()] for one, two in pairs]
        ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
        mask = ids.copy()
        for at, row in enumerate(rows):
            ids[at, : len(row)], mask[at, : len(row)] = row, 1
        tensors = {"input_ids": ids, "attention_mask": mask}
        return {name: array.view(FakeTensor) for name, array in tensors.items()}

    def place(self, word: str) -> int:
        self.words += [] if word in self.words else [word]
        return self.words.index(word)

    def __call__(self, features: dict[str, Any]) -> dict[str, Any]:
        scores = []
        for ids, mask in zip(features["input_ids"], features["attention_mask"], strict=True):
            words = [int(number) for number in ids[: mask.sum()]]
            middle = words.index(0)
            scores.append([len(set(words[:middle]) & set(words[middle + 1 :])) - 1.0])
        return {"scores": np.array(scores).view(FakeTensor)}


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch and sentence-transformers as far as they are used, without a GPU."""
    modules = {
        "torch": {
            "Tensor": FakeTensor,
            "cat": lambda parts: np.concatenate(parts).view(FakeTensor),
            "inference_mode": nullcontext,
            "float16": "float16",
            "float32": "float32",
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

    async def test_documents_of_many_lengths_keep_their_order(
        self, folder: Path, package: Any
    ) -> None:
        backend = LocalRerankBackend(folder)
        documents = ["cat " + "word " * extra for extra in (90, 0, 40, 1, 90)] + ["none", "cat dog"]
        wanted = [0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 1.0]
        assert await backend.logits("cat dog", documents) == wanted
        await backend.close()

    async def test_a_visible_gpu_is_taken_in_half_precision(
        self, folder: Path, package: Any
    ) -> None:
        package.cuda.is_available = lambda: True
        backend = LocalRerankBackend(folder)
        assert backend.name == "local-sentence-transformers-cuda"
        # The weights are made smaller before they go to the GPU.
        assert backend.model.model.module.moves == ["cpu", "float16", "cuda"]  # type: ignore[attr-defined]
        await backend.close()

    async def test_the_cpu_keeps_full_precision(self, folder: Path, package: Any) -> None:
        backend = LocalRerankBackend(folder)
        assert backend.model.model.module.moves == ["cpu", "float32", "cpu"]  # type: ignore[attr-defined]
        await backend.close()

    def test_a_missing_package_is_named(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(torch_model.importlib.util, "find_spec", lambda _name: None)
        with pytest.raises(ConfigError, match="Install"):
            LocalRerankBackend(folder)


def test_two_labels_are_one_score() -> None:
    assert local._relevance(np.array([[1.0, 3.0]], dtype=np.float32)) == [2.0]
