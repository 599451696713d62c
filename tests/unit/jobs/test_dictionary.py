"""The dictionary job: counts, coverage, and a broken dictionary."""

import json
from pathlib import Path

import pytest

from jobs.dictionary import main
from rayapp.text.expansions import Expansions, coverage_of, pairs_by_domain

ENTRIES = """
domain: water
entries:
  - {he: [מים, מי שתייה], en: [water]}
  - {he: [ביוב], en: [sewage, wastewater]}
"""
CATALOGUE = {
    "datasets": [
        {
            "title": "איכות המים והביוב בישראל 2024",
            "tags": ["מים"],
            "resources": [{"fields": [{"name": "שם"}, {"name": "water"}]}],
        }
    ]
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "expansions"
    made.mkdir()
    (made / "water.yaml").write_text(ENTRIES, encoding="utf-8")
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "datagov").mkdir()
    path = tmp_path / "datagov" / "enterprise_schemas.json"
    path.write_text(json.dumps(CATALOGUE), encoding="utf-8")
    return tmp_path


def test_the_report_counts_pairs_and_known_words(folder: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert main(["--folder", str(folder), "--data", str(data), "--out", str(out)]) == 0
    report = json.loads(out.read_text())
    assert report["domains"] == {"water": {"entries": 2, "pairs": 4}}
    titles = report["coverage"]["titles"]
    assert (titles["known"], titles["words"]) == (2, 4)
    assert set(titles["missing"]) == {"איכות", "ישראל"}
    assert report["coverage"]["tags"]["share"] == 1.0
    assert report["coverage"]["fields"]["words"] == 1


def test_an_entry_counts_as_its_longer_side() -> None:
    entries = [{"he": ["חתול"], "en": ["cat", "tomcat"]}, {"he": ["כלב", "כלבלב"]}]
    dictionary = Expansions({"pets.yaml": {"domain": "pets", "entries": entries}})
    assert pairs_by_domain(dictionary) == {"pets": (2, 2)}
    assert coverage_of(dictionary, []).share == 1.0


def test_a_broken_dictionary_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text("domain: x\nentries:\n  - {he: [של], en: [of]}\n")
    assert main(["--folder", str(tmp_path)]) == 2
    assert "bad.yaml" in capsys.readouterr().err


def test_a_missing_catalogue_is_one_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--folder", str(folder), "--data", str(tmp_path / "none")]) == 2
    assert "--data" in capsys.readouterr().err
