"""The command of the calibration: any embedder, a file that the service finds, nothing lost."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml

from jobs import calibrate
from jobs.calibrate import Fitted, as_yaml, main, merge
from jobs.suites.gateway import Gateway
from jobs.suites.lab import Lab
from jobs.suites.suite import Corpus, Document, Question
from rayapp.container import bootstrap
from rayapp.core.settings.load import load_settings
from rayapp.search.rules.confidence import Calibration, parse_calibration
from rayapp.search.rules.recipes import ConfidenceModel, Recipe
from rayapp.storage.files import load_calibration
from tests.unit.jobs.report_data import write_heq, write_static

WEIGHTS = {"bias": -1.00004, "cosine": 1.0, "coverage": 0.5, "passage": 2.0, "words": 0.1,
           "number_missing": -1.0}  # fmt: skip
FITTED = Fitted(WEIGHTS, medium=0.40001, high=0.75, floor=0.1, measured={"auc": 0.81234})
OLD = ConfidenceModel(bias=9.0)


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The recipes that were fitted; the fit itself is left out."""
    asked: list[str] = []

    def fake(bench: object, recipe: Recipe) -> Fitted:
        asked.append(recipe.name)
        return FITTED

    monkeypatch.setattr(calibrate, "calibrate", fake)
    monkeypatch.setattr(calibrate, "open_bench", lambda corpora, gateway: None)
    return asked


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_heq(tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize("name", ["org/model", "/abs/model", "../../model", "bge m3"])
def test_the_service_finds_the_file_of_every_model_name(
    fitted: list[str], data: Path, tmp_path: Path, name: str
) -> None:
    model, out = write_static(tmp_path, name), tmp_path / "some" / "out"
    assert main(["--data", str(data), "--model", str(model), "--out", str(out)]) == 0
    assert fitted == sorted(bootstrap.load_texts().recipes)
    found = load_calibration(out, name)
    assert found is not None
    assert set(found.recipes) == set(fitted)
    assert [path.parent for path in tmp_path.rglob("*.yaml")] == [out]


def test_other_recipes_of_the_file_stay(fitted: list[str], data: Path, tmp_path: Path) -> None:
    model = write_static(tmp_path, "tiny")
    before = Calibration(recipes={"default": OLD, "rrf": OLD}, measured={"rrf": {"auc": 0.7}})
    (tmp_path / "tiny.yaml").write_text(as_yaml(before, "tiny"), encoding="utf-8")
    arguments = ["--data", str(data), "--model", str(model), "--out", str(tmp_path)]
    assert main([*arguments, "--recipe", "default"]) == 0
    after = load_calibration(tmp_path, "tiny")
    assert after is not None
    assert after.recipes["rrf"] == OLD
    assert after.recipes["default"].bias == -1.0
    assert after.measured == {"rrf": {"auc": 0.7}, "default": {"auc": 0.8123}}


def test_a_run_over_all_recipes_forgets_those_that_are_gone(
    fitted: list[str], data: Path, tmp_path: Path
) -> None:
    model = write_static(tmp_path, "tiny")
    (tmp_path / "tiny.yaml").write_text("recipes: [broken", encoding="utf-8")
    assert main(["--data", str(data), "--model", str(model), "--out", str(tmp_path)]) == 0
    after = load_calibration(tmp_path, "tiny")
    assert after is not None
    assert set(after.recipes) == set(fitted)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--recipe", "nope"], "No recipe 'nope'; use one of default, lexical, rrf."),
        (["--model", "nope"], "No static model 'nope'"),
        (["--data", "nope"], "HeQ is not at nope"),
        (["--out", "{taken}"], "is a file"),
        (["--out", "{broken}", "--recipe", "default"], "not valid UTF-8 YAML"),
    ],
)
def test_bad_arguments_are_one_sentence_before_any_work(
    fitted: list[str],
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    model = write_static(tmp_path, "tiny")
    taken, broken = tmp_path / "taken", tmp_path / "broken"
    taken.write_bytes(b"")
    broken.mkdir()
    (broken / "tiny.yaml").write_text("recipes: [broken", encoding="utf-8")
    given = [one.format(taken=taken, broken=broken) for one in arguments]
    base = ["--data", str(data), "--model", str(model), "--out", str(tmp_path / "out")]
    assert main([*base, *given]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert fitted == []
    assert shown.out == ""


def test_an_embedder_that_is_away_is_told_apart(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The settings decide which embedder it is: here a server that nobody runs."""
    monkeypatch.setenv("RAYAPP_EMBEDDING__BACKEND", "http")
    monkeypatch.setenv("RAYAPP_EMBEDDING__URL", "http://127.0.0.1:9")
    monkeypatch.setenv("RAYAPP_EMBEDDING__MODEL", "away")
    assert main(["--data", str(data), "--out", str(tmp_path)]) == 4
    assert "embed" in capsys.readouterr().err.lower()


def test_what_is_written_can_be_read_again() -> None:
    made = merge(None, {"rrf": FITTED, "default": FITTED})
    text = as_yaml(made, "org/model")
    assert "'org/model'" in text.splitlines()[0]
    assert parse_calibration("x", yaml.safe_load(text)) == made


def test_questions_and_texts_go_through_the_gateway_as_in_the_service() -> None:
    """Prefixes of the settings included, and unit vectors of the model's size."""
    settings = load_settings(env={}, overrides={"embedding": {"query_prefix": "rain: "}})
    with Gateway(settings) as gateway:
        assert gateway.info().model == settings.embedding.model
        passages = gateway.passages(["a dog barks"] * 70 + ["חתול ישן"])
        queries = gateway.queries(["a dog barks"])
        dims = gateway.info().dims
        assert gateway.passages([]).shape == (0, dims)
    assert passages.shape == (71, dims)
    assert np.linalg.norm(passages, axis=1) == pytest.approx(np.ones(71), abs=1e-5)
    assert np.array_equal(passages[0], passages[69])
    assert not np.allclose(queries[0], passages[0])


def test_a_lab_asks_questions_by_their_own_embedder() -> None:
    seen: dict[str, list[str]] = {"passage": [], "query": []}

    def embed(kind: str, texts: Sequence[str]) -> np.ndarray:
        seen[kind] += texts
        return np.eye(4, dtype=np.float32)[: len(texts)]

    corpus = Corpus(
        "c",
        (Document("d1", "the dog barks"), Document("d2", "חתול ישן")),
        (Question("q1", "which dog?", ("d1",), "one", "en"),),
    )
    lab = Lab(
        [corpus],
        bootstrap.load_texts(),
        lambda texts: embed("passage", texts),
        embed_question=lambda texts: embed("query", texts),
    )
    asked = list(lab.ask(Recipe(name="x")))
    assert seen == {"passage": ["the dog barks", "חתול ישן"], "query": ["which dog?"]}
    assert asked[0].candidates[0].item.memory_id == "d1"
