"""sentence-transformers encoders and cross-encoders on tiny models with random weights."""

import asyncio
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rayapp.container.inference import open_embedding_backend, open_rerank_backend
from rayapp.core.settings.model import EmbeddingSettings, RerankerSettings
from rayapp.inference.backends.model_thread import is_out_of_memory
from rayapp.inference.backends.recorded_passes import RecordedPasses, Replay
from rayapp.inference.backends.torch_model import Kind, TorchModel
from tests.bench.encoder_gateways import Embedding, Reranking
from tests.bench.encoder_memory import recovery
from tests.bench.encoder_model import SIZES, write_cross_encoder, write_encoder
from tests.bench.encoder_work import Bare, works

TEXTS = [
    "flat",
    "מיכל אמרה שהחוזה אושר בחיפה. " * 12,
    "Anna said that the laptop was repaired in Leeds",
    "כלב",
    "the contract of Dan was approved; the new date is 4.5 in Oslo. " * 30,
]
# Padding of another length changes only how sums are grouped in float32.
SAME = 1e-4


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("encoder"), SIZES["tiny"], 1)


@pytest.fixture
def prompted_encoder(encoder: Path, tmp_path: Path) -> Path:
    for path in encoder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "שאלה: "}, "default_prompt_name": "query"})
    )
    return tmp_path


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cross_encoder(tmp_path_factory.mktemp("cross"), SIZES["tiny"], 2)


def full_precision(folder: Path) -> EmbeddingSettings:
    return EmbeddingSettings(backend="local", model=str(folder), precision="float32")


def package() -> Any:
    return importlib.import_module("sentence_transformers")


class TestEncoder:
    async def test_vectors_are_those_of_the_package(self, encoder: Path) -> None:
        backend, traits = open_embedding_backend(full_precision(encoder))
        vectors = await backend.encode(TEXTS, "passage")
        wanted = package().SentenceTransformer(str(encoder)).encode(TEXTS)
        assert np.abs(np.stack(vectors) - wanted).max() < SAME
        assert traits.text_tokens == SIZES["tiny"].positions
        # The texts have vectors of their own: a wrong order would be seen.
        apart = [np.linalg.norm(a - b) for a in vectors for b in vectors if a is not b]
        assert min(apart) > 100 * SAME
        await backend.close()

    async def test_a_prompt_of_the_folder_goes_before_every_text(
        self, encoder: Path, prompted_encoder: Path
    ) -> None:
        plain, _ = open_embedding_backend(full_precision(encoder))
        prompted, _ = open_embedding_backend(full_precision(prompted_encoder))
        (wanted,) = await plain.encode(["שאלה: flat"], "passage")
        (found,) = await prompted.encode(["flat"], "passage")
        assert np.abs(found - wanted).max() < SAME
        await plain.close()
        await prompted.close()

    async def test_half_precision_is_close_and_arrives_as_float32(self, encoder: Path) -> None:
        settings = full_precision(encoder)
        full, _ = open_embedding_backend(settings)
        half, _ = open_embedding_backend(settings.model_copy(update={"precision": "bfloat16"}))
        for one, two in zip(
            await full.encode(TEXTS, "passage"), await half.encode(TEXTS, "passage"), strict=True
        ):
            assert two.dtype == np.float32
            assert not np.array_equal(one, two)
            assert float(one @ two) > 0.99
        await full.close()
        await half.close()

    async def test_many_callers_at_once(self, encoder: Path) -> None:
        backend, _ = open_embedding_backend(full_precision(encoder))
        alone = [(await backend.encode([text], "passage"))[0] for text in TEXTS]
        many = await asyncio.gather(*(backend.encode(TEXTS, "passage") for _ in range(8)))
        for vectors in many:
            assert np.abs(np.stack(vectors) - np.stack(alone)).max() < SAME
        await backend.close()


class TestCrossEncoder:
    async def test_logits_are_those_of_the_package_without_its_sigmoid(
        self, cross_encoder: Path
    ) -> None:
        backend, _ = open_rerank_backend(
            RerankerSettings(backend="local", model=str(cross_encoder), precision="float32")
        )
        assert backend is not None
        logits = await backend.logits("what of the flat?", TEXTS)
        identity = importlib.import_module("torch").nn.Identity()
        wanted = (
            package()
            .CrossEncoder(str(cross_encoder))
            .predict([("what of the flat?", text) for text in TEXTS], activation_fn=identity)
        )
        assert logits == pytest.approx([float(score) for score in wanted], abs=SAME)
        assert len({round(logit, 3) for logit in logits}) == len(TEXTS)
        await backend.close()


@pytest.mark.parametrize("kind", [Embedding, Reranking])
async def test_short_memory_changes_no_answer(
    kind: type[Embedding] | type[Reranking], encoder: Path, cross_encoder: Path
) -> None:
    pairs = kind is Reranking
    folder = cross_encoder if pairs else encoder
    (work,) = works(folder, ["32"], count=lambda _mean: 24, pairs=pairs, seed=3)
    report = await recovery(kind, folder, work, "float32", limit=False)
    assert report["recovered"], report
    assert report["batches"][0] == 24
    assert max(report["batches_next_time"]) < 24


async def test_the_bare_pass_reads_every_text(encoder: Path) -> None:
    product = Embedding(encoder, 8, "float32")
    work, _ = works(encoder, ["mixed", "64"], count=lambda _mean: 20, pairs=False, seed=3)
    bare = Bare(product.module)
    batches = bare.batches(product.prepare, work, 8)
    assert sum(len(batch["input_ids"]) for batch in batches) == 20
    assert sum(int(batch["attention_mask"].sum()) for batch in batches) == sum(work.tokens)
    assert bare.seconds(batches) > 0
    await product.close()


def test_an_allocation_that_fails_on_the_cpu_is_recognised() -> None:
    torch = importlib.import_module("torch")
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 50)
    assert is_out_of_memory(caught.value)
    assert is_out_of_memory(torch.OutOfMemoryError("any words"))


@pytest.mark.parametrize("kind", ["SentenceTransformer", "CrossEncoder"])
def test_a_pass_filled_up_to_the_shape_of_a_recording_answers_alike(
    kind: Kind, encoder: Path, cross_encoder: Path
) -> None:
    pairs = [("what was approved?", text) for text in TEXTS]
    folder = encoder if kind == "SentenceTransformer" else cross_encoder
    model = TorchModel(kind, folder, "float32")
    shapes: list[tuple[int, ...]] = []

    def record(feed: Mapping[str, Any]) -> Replay:
        """What a CUDA graph does, but for launching its kernels at once."""
        shapes.append(feed["input_ids"].shape)
        return model._launch

    passes = RecordedPasses(model._launch, record, {"input_ids": model.padding})
    feeds = [model.arrays(one.feed) for one in model.prepare(TEXTS if folder is encoder else pairs)]
    with importlib.import_module("torch").inference_mode():
        for feed in feeds * 3:
            wanted = model._launch(feed).numpy()
            assert np.abs(passes(feed).numpy() - wanted).max() < SAME
    assert len(shapes) == len(feeds)
    assert any(feed["input_ids"].shape not in shapes for feed in feeds)
