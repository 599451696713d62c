"""Local backends over small real ONNX models and tokenizers, and the artefact builder."""

import asyncio
import json
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from jobs.build.static import build
from rayapp.container.inference import open_embedding_backend, open_rerank_backend
from rayapp.core.batching import OUT_OF_MEMORY
from rayapp.core.errors import ConfigError, EmbedderDown
from rayapp.core.settings.model import EmbeddingSettings, RerankerSettings
from rayapp.inference.backends.local import pool
from rayapp.inference.backends.model_thread import ModelThread
from rayapp.inference.backends.static_model import load_static_model

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "חתול", "כלב", "house"]
DIMS = 4
TABLE = np.random.default_rng(7).standard_normal((len(WORDS), DIMS)).astype(np.float32)
Floats = npt.NDArray[np.float32]


def write_tokenizer(folder: Path) -> None:
    tokenizer = Tokenizer(
        models.WordLevel({word: row for row, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))


def write_model(folder: Path, table: Floats, *, labels: bool, inputs: list[str]) -> None:
    """`table[input_ids]`, `[n, length, d]`; with `labels` its masked sum over tokens, `[n, d]`."""
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["tokens"])]
    if labels:
        nodes += [
            helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["mask", "axis2"], ["mask3"]),
            helper.make_node("Mul", ["tokens", "mask3"], ["masked"]),
            helper.make_node("ReduceSum", ["masked", "axis1"], ["out"], keepdims=0),
        ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "l"]) for name in inputs],
        [helper.make_tensor_value_info("out" if labels else "tokens", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([1], dtype=np.int64), "axis1"),
            numpy_helper.from_array(np.array([2], dtype=np.int64), "axis2"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    write_tokenizer(tmp_path)
    write_model(tmp_path, TABLE, labels=False, inputs=["input_ids", "attention_mask"])
    return tmp_path


def opened(folder: Path) -> EmbeddingSettings:
    return EmbeddingSettings(backend="local", model=str(folder))


class TestLocalEmbedding:
    async def test_mean_pooling_leaves_padding_out(self, encoder: Path) -> None:
        backend, _ = open_embedding_backend(opened(encoder))
        vectors = await backend.encode(["cat", "חתול dog house unknown"], "passage")
        expected = [TABLE[[2, 4, 3]].mean(0), TABLE[[2, 6, 5, 8, 1, 3]].mean(0)]
        for vector, wanted in zip(vectors, expected, strict=True):
            assert vector == pytest.approx(wanted, abs=1e-6)
        info = await backend.info()
        assert (info.backend, info.model, info.dims) == ("local-onnx-cpu", encoder.name, DIMS)
        await backend.close()

    async def test_cls_pooling_when_the_folder_says_so(self, encoder: Path) -> None:
        (encoder / "1_Pooling").mkdir()
        (encoder / "1_Pooling/config.json").write_text(
            json.dumps({"word_embedding_dimension": 4, "pooling_mode_cls_token": True,
                        "pooling_mode_mean_tokens": False})
        )  # fmt: skip
        backend, _ = open_embedding_backend(opened(encoder))
        (vector,) = await backend.encode(["cat dog"], "query")
        assert vector == pytest.approx(TABLE[2], abs=1e-6)

    async def test_texts_are_cut_where_the_model_ends(self, encoder: Path) -> None:
        (encoder / "config.json").write_text('{"max_position_embeddings": 8}')
        backend, traits = open_embedding_backend(opened(encoder))
        assert traits.text_tokens == 6
        (vector,) = await backend.encode(["cat " * 50], "query")
        assert vector == pytest.approx(TABLE[[2, 4, 4, 4, 4, 3]].mean(0), abs=1e-6)

    async def test_token_types_are_given_to_models_that_want_them(self, tmp_path: Path) -> None:
        write_tokenizer(tmp_path)
        inputs = ["input_ids", "attention_mask", "token_type_ids"]
        write_model(tmp_path, TABLE, labels=False, inputs=inputs)
        backend, _ = open_embedding_backend(opened(tmp_path))
        assert len(await backend.encode(["cat"], "query")) == 1

    async def test_the_loop_stays_free_and_calls_queue(self, encoder: Path) -> None:
        backend, _ = open_embedding_backend(opened(encoder))
        results = await asyncio.gather(
            *(backend.encode(["cat dog " * 100] * 8, "passage") for _ in range(10))
        )
        assert [len(vectors) for vectors in results] == [8] * 10

    @pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
    def test_incomplete_folder(self, encoder: Path, missing: str) -> None:
        (encoder / missing).unlink()
        with pytest.raises(ConfigError, match=r"needs|neither"):
            open_embedding_backend(opened(encoder))

    @pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json", "config.json"])
    def test_broken_folder(self, encoder: Path, broken: str) -> None:
        (encoder / broken).write_bytes(b"not this")
        with pytest.raises(ConfigError, match="fetch it again"):
            open_embedding_backend(opened(encoder))

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="set it to a model folder"):
            open_embedding_backend(opened(tmp_path / "none"))

    def test_unknown_pooling(self, encoder: Path) -> None:
        (encoder / "1_Pooling").mkdir()
        (encoder / "1_Pooling/config.json").write_text('{"pooling_mode_max_tokens": true}')
        with pytest.raises(ConfigError, match="Pooling"):
            open_embedding_backend(opened(encoder))


def test_pool_of_an_empty_mask_is_no_nan() -> None:
    tokens = np.ones((1, 2, 3), dtype=np.float32)
    assert not np.isnan(pool(tokens, np.zeros((1, 2), dtype=np.int64), "mean")).any()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 20 MiB"), OUT_OF_MEMORY),
        (RuntimeError("Failed to allocate memory for requested buffer of size 1"), OUT_OF_MEMORY),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"), OUT_OF_MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), OUT_OF_MEMORY),
        (type("OutOfMemoryError", (RuntimeError,), {})("any words"), OUT_OF_MEMORY),
        (MemoryError("std::bad_alloc"), OUT_OF_MEMORY),
        (ValueError("bad shape"), "embedder_down"),
    ],
)
async def test_what_a_runtime_raises(error: Exception, code: str) -> None:
    def call() -> None:
        raise error

    thread = ModelThread("m", EmbedderDown)
    with pytest.raises(EmbedderDown) as caught:
        await thread.run(call)
    assert caught.value.code == code
    thread.close()


class TestLocalRerank:
    @pytest.mark.parametrize("labels", [1, 2])
    async def test_logits(self, tmp_path: Path, labels: int) -> None:
        write_tokenizer(tmp_path)
        table = TABLE[:, :labels].copy()
        write_model(tmp_path, table, labels=True, inputs=["input_ids", "attention_mask"])
        backend, _ = open_rerank_backend(RerankerSettings(backend="local", model=str(tmp_path)))
        assert backend is not None
        logits = await backend.logits("cat", ["dog", "כלב house dog"])
        rows = [[2, 4, 3, 5, 3], [2, 4, 3, 7, 8, 5, 3]]
        sums = [table[row].sum(0) for row in rows]
        wanted = [s[0] if labels == 1 else s[1] - s[0] for s in sums]
        assert logits == pytest.approx([float(w) for w in wanted], abs=1e-5)
        await backend.close()

    async def test_a_classifier_of_many_labels_is_refused(self, tmp_path: Path) -> None:
        write_tokenizer(tmp_path)
        write_model(tmp_path, TABLE, labels=True, inputs=["input_ids", "attention_mask"])
        backend, _ = open_rerank_backend(RerankerSettings(backend="local", model=str(tmp_path)))
        assert backend is not None
        with pytest.raises(ConfigError, match="scores per pair"):
            await backend.logits("cat", ["dog"])


class TestArtefact:
    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        folder = tmp_path / "source"
        folder.mkdir()
        write_tokenizer(folder)
        header = json.dumps(
            {"embeddings": {"dtype": "F32", "shape": list(TABLE.shape),
                            "data_offsets": [0, TABLE.nbytes]}}
        ).encode()  # fmt: skip
        raw = struct.pack("<Q", len(header)) + header + TABLE.tobytes()
        (folder / "model.safetensors").write_bytes(raw)
        return folder

    def make(self, source: Path, out: Path) -> Path:
        build(source, out, name="tiny", origin="test/tiny", langs=["en", "he"])
        return out

    def test_two_builds_are_equal_byte_for_byte(self, source: Path, tmp_path: Path) -> None:
        first, second = self.make(source, tmp_path / "a"), self.make(source, tmp_path / "b")
        names = sorted(path.name for path in first.iterdir())
        assert names == ["metadata.json", "tokenizer.json", "vectors.npz"]
        for name in names:
            assert (first / name).read_bytes() == (second / name).read_bytes()

    def test_int8_keeps_the_direction(self, source: Path, tmp_path: Path) -> None:
        model = load_static_model(self.make(source, tmp_path / "a"))
        assert (model.name, model.langs) == ("tiny", ("en", "he"))
        found = model.sums(["cat dog", "חתול unknown"])
        wanted = np.stack([TABLE[[4, 5]].sum(0), TABLE[6]])
        assert found == pytest.approx(wanted, abs=0.03)

    def test_nothing_known_is_the_unknown_token(self, source: Path, tmp_path: Path) -> None:
        model = load_static_model(self.make(source, tmp_path / "a"))
        assert model.sums(["zebra 😀", "cat zebra"]) == pytest.approx(TABLE[[1, 4]], abs=0.03)

    @pytest.mark.parametrize(
        ("key", "value"),
        [("format", 2), ("dims", 5), ("vocabulary", 3), ("unknown_token", "<unk>"),
         ("tokenizer", {"kind": "words", "file": "tokenizer.json"})],
    )  # fmt: skip
    def test_parts_that_do_not_fit(
        self, source: Path, tmp_path: Path, key: str, value: object
    ) -> None:
        folder = self.make(source, tmp_path / "a")
        metadata = json.loads((folder / "metadata.json").read_text())
        (folder / "metadata.json").write_text(json.dumps({**metadata, key: value}))
        with pytest.raises(ConfigError, match="build it again"):
            load_static_model(folder)

    @pytest.mark.parametrize("name", ["vectors.npz", "tokenizer.json", "metadata.json"])
    def test_broken_files(self, source: Path, tmp_path: Path, name: str) -> None:
        folder = self.make(source, tmp_path / "a")
        (folder / name).write_bytes(b"not this")
        with pytest.raises(ConfigError, match="build it again"):
            load_static_model(folder)
