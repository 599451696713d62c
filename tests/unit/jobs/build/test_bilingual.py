"""A bilingual model built from a tiny corpus: what its Hebrew rows promise."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.build.bilingual import write_artefact
from jobs.build.bilingual_fit import EnglishRows, FitRecipe, HebrewRows, Sources, fit
from jobs.build.pair_files import read_dictionary, read_pairs
from jobs.build.static import build
from rayapp.core.errors import ConfigError
from rayapp.inference.backends.static_model import StaticModel, load_static_model
from tests.unit.jobs.build.tiny import DIMS, write_english, write_sources

FILES = ("metadata.json", "pieces.txt", "tokenizer.json", "vectors.npz", "words.txt")


def made(folder: Path, english: EnglishRows) -> HebrewRows:
    sources = Sources(
        sentences=read_pairs(folder / "pairs"),
        phrases=read_dictionary(folder / "expansions"),
        names=read_pairs(folder / "names"),
    )
    return fit(english, sources, FitRecipe())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_english(folder / "english")
    write_sources(folder)
    english = EnglishRows(folder / "english")
    write_artefact(english, made(folder, english), folder / "model", name="tiny", origin="a test")
    return folder


@pytest.fixture(scope="module")
def model(corpus: Path) -> StaticModel:
    return load_static_model(corpus / "model")


def vector(model: StaticModel, text: str) -> np.ndarray:
    return model.sums([text])[0]


def cosine(model: StaticModel, one: str, other: str) -> float:
    first, second = model.sums([one, other])
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


class TestBuild:
    @pytest.mark.process
    def test_two_builds_are_equal_byte_for_byte(self, corpus: Path, tmp_path: Path) -> None:
        """The second one in a process of its own, by the command."""
        folders = [f"--{name}={corpus / name}" for name in ("pairs", "names", "expansions")]
        subprocess.run(
            [sys.executable, "-m", "jobs.build.bilingual", *folders, "--name=tiny",
             "--origin=a test", f"--english={corpus / 'english'}", f"--out={tmp_path}"],
            check=True, capture_output=True,
        )  # fmt: skip
        for file in FILES:
            assert (tmp_path / file).read_bytes() == (corpus / "model" / file).read_bytes()

    def test_it_builds_from_its_own_artefact(self, corpus: Path, tmp_path: Path) -> None:
        english = EnglishRows(corpus / "model")
        write_artefact(english, made(corpus, english), tmp_path, name="tiny", origin="a test")
        for file in FILES:
            assert (tmp_path / file).read_bytes() == (corpus / "model" / file).read_bytes()

    def test_the_int8_rows_are_near_the_solution(self, corpus: Path, model: StaticModel) -> None:
        english = EnglishRows(corpus / "english")
        rows = made(corpus, english)
        for word, row in zip(rows.words, rows.word_rows, strict=True):
            at = len(english.vectors) + rows.words.index(word)
            stored = model.vectors[at] * model.scales[at]
            assert stored == pytest.approx(row, abs=float(np.abs(row).max()) / 120)

    def test_no_row_is_a_nan(self, model: StaticModel) -> None:
        assert np.isfinite(model.scales).all()

    def test_every_text_of_the_fit_finds_its_translation(
        self, corpus: Path, model: StaticModel
    ) -> None:
        pairs = read_pairs(corpus / "pairs")
        hebrew = model.sums([pair.hebrew for pair in pairs])
        english = model.sums([pair.english for pair in pairs])
        hebrew /= np.linalg.norm(hebrew, axis=1, keepdims=True)
        english /= np.linalg.norm(english, axis=1, keepdims=True)
        assert (hebrew @ english.T).argmax(axis=1).tolist() == list(range(len(pairs)))


class TestReading:
    @pytest.mark.parametrize("form", ["הכלב", "לכלב", "וכלב", "כלבים", "שהכלב", "כְּלָב"])
    def test_prefixes_inflections_and_points_stay_at_the_word(
        self, model: StaticModel, form: str
    ) -> None:
        assert cosine(model, "כלב", form) == pytest.approx(1.0)

    def test_a_translation_is_nearer_than_another_word(self, model: StaticModel) -> None:
        assert cosine(model, "כלב", "dog") > cosine(model, "כלב", "book") + 0.3

    def test_an_unknown_name_is_near_the_names_it_resembles(self, model: StaticModel) -> None:
        assert cosine(model, "לונדוני", "london") > 0.3

    @pytest.mark.parametrize("text", ["ץץץ", "😀", "", "日本語", "ץץץ 😀", '"', "\u05b0"])
    def test_unknown_text_is_the_unknown_token(self, model: StaticModel, text: str) -> None:
        unknown = model.vectors[model.unknown_id] * model.scales[model.unknown_id]
        assert vector(model, text) == pytest.approx(unknown)

    def test_a_mixed_text_is_the_sum_of_its_parts(self, model: StaticModel) -> None:
        mixed = vector(model, "הכלב dog 2 קניתי")
        assert mixed == pytest.approx(
            vector(model, "dog 2") + vector(model, "הכלב קניתי"), abs=1e-3
        )

    def test_english_is_read_as_in_the_english_model(
        self, corpus: Path, model: StaticModel, tmp_path: Path
    ) -> None:
        build(corpus / "english", tmp_path, name="en", origin="a test", langs=["en"])
        english = load_static_model(tmp_path)
        texts = ["The dog barked.", "a new book, and the garden", ""]
        assert np.array_equal(english.sums(texts), model.sums(texts))
        assert english.hebrew is None

    @given(texts=st.lists(st.text(alphabet="כלב הגינה'\"dog 2😀-\u05be\u05b0", max_size=20)))
    def test_every_text_has_a_finite_vector_alone_as_in_a_batch(
        self, model: StaticModel, texts: list[str]
    ) -> None:
        batch = model.sums(texts)
        assert batch.shape == (len(texts), DIMS)
        assert np.isfinite(batch).all()
        for text, expected in zip(texts, batch, strict=True):
            assert np.array_equal(vector(model, text), expected)

    @given(words=st.lists(st.sampled_from(["כלב", "חתול", "ספר", "dog", "לונדוני"]), min_size=1))
    def test_the_order_of_words_does_not_matter(self, model: StaticModel, words: list[str]) -> None:
        one, other = " ".join(words), " ".join(reversed(words))
        assert vector(model, one) == pytest.approx(vector(model, other), rel=1e-4, abs=1e-3)


class TestBroken:
    def test_other_rules_are_refused(self, corpus: Path, tmp_path: Path) -> None:
        for file in FILES:
            (tmp_path / file).write_bytes((corpus / "model" / file).read_bytes())
        text = (tmp_path / "metadata.json").read_text(encoding="utf-8")
        (tmp_path / "metadata.json").write_text(text.replace('"rules": 1', '"rules": 99'))
        with pytest.raises(ConfigError, match="build it again"):
            load_static_model(tmp_path)

    def test_a_missing_row_is_refused(self, corpus: Path, tmp_path: Path) -> None:
        for file in FILES:
            (tmp_path / file).write_bytes((corpus / "model" / file).read_bytes())
        with (tmp_path / "pieces.txt").open("a", encoding="utf-8") as file:
            file.write("זזז\n")
        with pytest.raises(ConfigError, match="do not fit"):
            load_static_model(tmp_path)

    @pytest.mark.parametrize(
        ("line", "message"),
        [("one half", "one tab"), ("a\tב\tג", "one tab"), ("ב\ta", "English comes first"),
         ("a\tb", "English comes first"), ("The Dog\tכלב\nthe dog\tכלב", "line 1 already")],
    )  # fmt: skip
    def test_a_wrong_line_is_named(self, tmp_path: Path, line: str, message: str) -> None:
        (tmp_path / "x.tsv").write_text(line, encoding="utf-8")
        with pytest.raises(ConfigError, match=message):
            read_pairs(tmp_path)

    def test_a_folder_without_pairs_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="No"):
            read_pairs(tmp_path)
