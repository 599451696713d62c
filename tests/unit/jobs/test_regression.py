"""The evaluation command end to end: ablation, committed results, the gate, ParaShoot."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.evaluate import main
from jobs.suites.kinds import KINDS
from jobs.suites.parashoot import load_parashoot
from rayapp.core.errors import ConfigError
from rayapp.search.rules.recipes import FEATURES, ablated_name
from tests.unit.fake_service import FakeService, serving

TEXTS = [f"פסקה {number} על נושא{number} מקום{number}" for number in range(12)]


def parashoot() -> dict[str, Any]:
    rows = [
        {"id": f"q{number}-{kind}", "title": "t", "context": text + end, "question": asked}
        for number, text in enumerate(TEXTS)
        for kind, asked, end in (("a", f"נושא{number}", ""), ("b", f"מקום{number}", " "))
    ]
    return {"version": "v1.1", "data": rows}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "parashoot").mkdir()
    (tmp_path / "parashoot" / "dev.json").write_text(json.dumps(parashoot()))
    return tmp_path


@pytest.fixture
def service() -> Iterator[FakeService]:
    names = {ablated_name("default", [feature]) for feature in FEATURES}
    with serving(FakeService(recipes=frozenset({None, "default", *names}))) as started:
        yield started


def run(data: Path, service: FakeService, *more: str) -> int:
    given = ["--suite", "parashoot", "--data", str(data), "--url", service.url]
    return main([*given, "--out", str(data / "report.json"), *more])


def report(data: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data / "report.json").read_text())
    return found


def last_first(recipe: str | None, ids: Sequence[str]) -> Sequence[str]:
    """What the service does when a feature that matters is off: the best hit is lost."""
    return ids[1:] if recipe == "default-without-dense" else ids


def test_parashoot_paragraphs_are_stored_once(data: Path) -> None:
    corpus = load_parashoot(data).corpora[0]
    assert len(corpus.documents) == 12
    assert len(corpus.questions) == 24
    assert corpus.questions[0].gold == corpus.questions[1].gold
    assert {question.lang for question in corpus.questions} == {"he"}
    (data / "parashoot" / "dev.json").write_text(json.dumps({"data": [{"id": "x"}]}))
    with pytest.raises(ConfigError, match=r"no rows of ParaShoot \(KeyError: 'context'\)"):
        load_parashoot(data)


def test_an_ablation_stores_once_and_compares_the_same_questions(
    data: Path, service: FakeService
) -> None:
    service.order = last_first
    text, drawn = data / "report.md", data / "report.svg"
    more = ["--ablate", "--without", "dense", "--without", "turns"]
    assert run(data, service, *more, "--markdown", str(text), "--picture", str(drawn)) == 0
    assert len(service.users) == 1
    found = report(data)
    assert found["suites"][0]["headline"][0]["service"]["mean"] == 1.0
    assert found["ablation"]["idle"] == ["turns"]
    dense, turns = found["ablation"]["without"]
    assert (
        dense["differences"][0] | {"metric": "R@1", "change": -1.0, "n": 24}
        == dense["differences"][0]
    )
    assert {one["change"] for one in turns["differences"]} == {0.0}
    assert "### without dense" in text.read_text()
    assert "Search p50" in text.read_text()
    assert drawn.read_text().startswith("<svg")
    for name in ("report.json", "report.md", "report.svg"):
        assert not re.search("נושא|מקום", (data / name).read_text(encoding="utf-8"))


def test_ablate_alone_tries_every_feature(data: Path, service: FakeService) -> None:
    assert run(data, service, "--ablate", "--limit-questions", "2") == 0
    assert [one["feature"] for one in report(data)["ablation"]["without"]] == list(FEATURES)


def test_without_alone_runs_the_service_as_it_would_be(data: Path, service: FakeService) -> None:
    both = ablated_name("default", ["dense", "rerank"])
    service.recipes |= {both}
    assert run(data, service, "--without", "dense", "--without", "rerank") == 0
    assert report(data)["recipe"] == both
    asked = {search["recipe"] for search in service.searches if "probe" not in search["user"]}
    assert asked == {both}
    assert report(data)["ablation"] is None


def test_an_unknown_feature_names_the_known_ones(
    data: Path, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(data, service, "--without", "magic") == 2
    assert "'dense', 'sparse'" in capsys.readouterr().err
    service.recipes = frozenset({None})
    assert run(data, service, "--without", "dense") == 2  # a server of an older version
    assert service.users == {}


def test_a_run_is_held_to_what_is_committed(
    data: Path, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = data / "golden"
    assert run(data, service, "--golden", str(folder)) == 0
    assert run(data, service, "--against", str(folder)) == 0
    (passed,) = report(data)["against"]
    assert not passed["closed"]
    assert passed["worse"] == []
    service.order = lambda _recipe, ids: ids[1:]
    assert run(data, service, "--against", str(folder), "--limit-questions", "8") == 3
    (closed,) = report(data)["against"]
    assert closed["closed"]
    assert len(closed["worse"]) == 8
    out = capsys.readouterr().out
    assert "parashoot: BELOW the committed results" in out
    assert "worse: all q0-a: rank 1 -> not found" in out


def test_other_data_ends_before_anything_is_stored(
    data: Path, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = data / "golden"
    assert run(data, service, "--golden", str(folder)) == 0
    service.users.clear()
    (data / "parashoot" / "dev.json").write_text(json.dumps(parashoot()) + "\n")
    assert run(data, service, "--against", str(folder)) == 2
    assert "its sha256 differs" in capsys.readouterr().err
    assert run(data, service, "--against", str(data / "nowhere")) == 2
    assert service.users == {}


def test_a_part_of_a_suite_is_never_committed(
    data: Path, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = data / "golden"
    assert run(data, service, "--golden", str(folder), "--limit-questions", "2") == 2
    assert run(data, service, "--golden", str(folder), "--without", "dense") == 2
    assert run(data, service, "--tolerance", "1.5") == 2
    service.reject_text = "פסקה 3"
    assert run(data, service, "--golden", str(folder)) == 3
    assert "left as it is" in capsys.readouterr().out
    assert not folder.exists()


def test_every_suite_names_its_files() -> None:
    for name, kind in KINDS.items():
        assert any(kind.files.values()) or kind.ours, name
