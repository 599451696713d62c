"""The evaluation job end to end against a service that ranks by plain BM25."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.evaluate import main
from jobs.suites.bm25 import PlainBm25
from jobs.suites.heq import load_heq
from jobs.suites.locomo import load_locomo
from jobs.suites.suite import Document
from tests.support.ports import free_port
from tests.unit.fake_service import FakeService, serving

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Noa",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Noa", "dia_id": "D1:1", "text": "I adopted a beagle."},
                {
                    "speaker": "Tom",
                    "dia_id": "D1:2",
                    "text": "Lovely!",
                    "blip_caption": "a dog on a sofa",
                },
            ],
            "session_10_date_time": "9:05 am on 1 June, 2023",
            "session_10": [{"speaker": "Tom", "dia_id": "D10:1", "text": "I moved to Haifa."}],
            "session_2_date_time": "12:00 am on 9 May, 2023",
            "session_2": [{"speaker": "Noa", "dia_id": "D2:1", "text": "The vet was kind."}],
        },
        "qa": [
            {"question": "Who adopted a beagle?", "evidence": ["D1:1"], "category": 4},
            {"question": "Where did Tom move, to Haifa?", "evidence": ["D10:1"], "category": 1},
            {"question": "dog and vet", "evidence": ["D1:2; D2:1"], "category": 1},
            {"question": "No evidence", "evidence": ["D", "D:11:26"], "category": 3},
            {"question": "Unknown turn", "evidence": ["D9:9"], "category": 2},
            {"question": "Did Tom adopt a beagle?", "evidence": ["D1:1"], "category": 5},
        ],
    }
]


def heq(paragraphs: dict[str, list[tuple[str, str, bool]]]) -> dict[str, Any]:
    return {
        "data": [
            {
                "title": "t",
                "paragraphs": [
                    {
                        "context": text,
                        "qas": [
                            {"id": name, "question": asked, "is_impossible": impossible}
                            for name, asked, impossible in rows
                        ],
                    }
                    for text, rows in paragraphs.items()
                ],
            }
        ]
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "locomo").mkdir()
    (tmp_path / "heq").mkdir()
    (tmp_path / "locomo" / "locomo-open5.json").write_text(json.dumps(LOCOMO))
    paragraphs = {
        "ירושלים היא בירת ישראל": [("q1", "מהי בירת ישראל", False)],
        " ירושלים היא בירת ישראל ": [("q2", "איפה ירושלים", False)],
        "הכנרת היא אגם מים מתוקים": [("q3", "איזה אגם הוא מים מתוקים", False), ("q4", "כמה", True)],
    }
    (tmp_path / "heq" / "heq-v1.1-val.json").write_text(json.dumps(heq(paragraphs)))
    return tmp_path


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving(FakeService()) as started:
        yield started


def test_locomo_turns_carry_caption_and_session_date(data: Path) -> None:
    suite = load_locomo(data)
    documents = suite.corpora[0].documents
    assert [document.doc_id for document in documents] == ["D1:1", "D1:2", "D2:1", "D10:1"]
    assert documents[1].text == "Tom: Lovely! [image: a dog on a sofa] (1:56 pm on 8 May, 2023)"
    created = [document.created_at.isoformat() for document in documents if document.created_at]
    assert created[0] == "2023-05-08T13:56:00+00:00"
    assert created[2] == "2023-05-09T00:00:00+00:00"


def test_locomo_questions_without_valid_evidence_are_excluded(data: Path) -> None:
    suite = load_locomo(data)
    gold = [question.gold for question in suite.corpora[0].questions]
    assert gold == [("D1:1",), ("D10:1",), ("D1:2", "D2:1"), ("D1:1",)]
    assert suite.excluded == 2


def test_heq_paragraphs_are_stored_once(data: Path) -> None:
    corpus = load_heq(data).corpora[0]
    assert len(corpus.documents) == 2
    assert corpus.questions[0].gold == corpus.questions[1].gold
    assert corpus.questions[3].gold == ()


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (3, 3), (4, 4), (99, 4), (None, 4)])
def test_a_sample_is_spread_and_never_larger(data: Path, limit: int | None, expected: int) -> None:
    suite = load_heq(data).sampled(limit)
    assert suite.questions == expected
    assert suite.documents == 2


def test_bm25_scores_match_the_formula() -> None:
    ranker = PlainBm25([Document("a", "cat cat dog"), Document("b", "dog"), Document("c", "fox")])
    assert ranker.rank("cat", 10) == ("a",)
    assert ranker.rank("dog", 10) == ("b", "a")
    assert ranker.rank("dog", 1) == ("b",)
    assert ranker.rank("wolf", 10) == ()


def test_a_bm25_service_scores_exactly_the_floor(
    data: Path, service: FakeService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, text = tmp_path / "r" / "report.json", tmp_path / "r" / "report.md"
    arguments = ["--suite", "locomo", "--suite", "heq", "--data", str(data), "--url", service.url]
    code = main([*arguments, "--out", str(out), "--markdown", str(text), "--recipe", "default"])
    assert code == 0
    report = json.loads(out.read_text())
    for section in report["suites"]:
        rows = {(row["set"], row["system"]): row["metrics"] for row in section["summaries"]}
        for name, system in rows:
            assert rows[(name, system)] == rows[(name, "BM25")]
    locomo, heq_section = report["suites"]
    assert {row["set"] for row in locomo["summaries"]} >= {"categories 1-4", "all", "sessions"}
    assert locomo["questions"] == 4
    assert locomo["per_question"][0]["ranks"] == [1]
    assert heq_section["abstention"]["answerable"] == 3
    assert heq_section["abstention"]["unanswerable_abstained"] == 1.0
    assert {search["recipe"] for search in service.searches} == {"default"}
    assert len(service.users) == 2
    assert all("conv-1" in user or "heq" in user for user in service.users)
    assert "beagle" not in out.read_text()
    assert "| categories 1-4 | service | 3 |" in text.read_text()
    assert "locomo: mean ± half" in capsys.readouterr().out


def test_each_run_has_users_of_its_own(data: Path, service: FakeService) -> None:
    arguments = ["--suite", "heq", "--data", str(data), "--url", service.url]
    assert main(arguments) == 0
    assert main(arguments) == 0
    assert len(service.users) == 2


def test_equal_texts_are_one_memory_for_answer_gold_and_floor(
    data: Path, service: FakeService, tmp_path: Path
) -> None:
    service.same = lambda text: " ".join(text.split())  # the service ignores spacing
    paragraphs = {
        "ירושלים היא בירת ישראל": [("q1", "מהי בירת ישראל", False)],
        "ירושלים  היא בירת ישראל": [("q2", "מהי בירת ישראל", False)],
        "הכנרת היא אגם": [("q3", "איזה אגם", False)],
    }
    (data / "heq" / "heq-v1.1-val.json").write_text(json.dumps(heq(paragraphs)))
    out = tmp_path / "report.json"
    arguments = ["--suite", "heq", "--data", str(data), "--url", service.url, "--out", str(out)]
    assert main(arguments) == 0
    section = json.loads(out.read_text())["suites"][0]
    assert (section["stored"], section["duplicates"]) == (2, 1)
    first, second, _ = section["per_question"]
    assert first["gold"] == second["gold"]
    assert first["ranks"] == second["ranks"] == second["floor_ranks"] == [1]


def test_a_rejected_memory_is_a_failure_of_the_run(data: Path, service: FakeService) -> None:
    service.reject_text = "beagle"
    assert main(["--suite", "locomo", "--data", str(data), "--url", service.url]) == 3


def test_a_refused_recipe_stores_nothing(
    data: Path, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--suite", "heq", "--data", str(data), "--url", service.url]
    assert main([*arguments, "--recipe", "nope"]) == 2
    assert "No such recipe." in capsys.readouterr().err
    assert service.users == {}


def test_bad_arguments_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--suite", "nope", "--data", str(tmp_path)]) == 2
    assert main(["--suite", "heq", "--data", str(tmp_path)]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 2
    assert "invalid choice" in lines[0]
    assert "pass the folder that holds it as --data" in lines[1]


def test_an_absent_service_is_exit_four(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert main(["--suite", "heq", "--data", str(data), "--url", url]) == 4
    assert "No service answers at" in capsys.readouterr().err
