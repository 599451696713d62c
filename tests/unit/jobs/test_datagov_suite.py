"""The DataGov suite against a service that knows a small catalogue and nothing else."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jobs.evaluate import main
from jobs.suites.bm25 import PlainBm25
from jobs.suites.datagov import dataset_of, datasets_of, is_catalogue, leaks
from jobs.suites.datagov_set import load_datagov, load_questions
from jobs.suites.suite import Document, Question
from rayapp.client import HitView
from rayapp.core.errors import ConfigError
from rayapp.search.rules.evaluation import Judged, summarise
from tests.support.replies import a_hit, a_reply
from tests.unit.fake_service import FakeService, serving

IDS = tuple(f"0000000{n}-aaaa-bbbb-cccc-000000000000" for n in range(6))
TITLES = ("תחנות דלק", "מפלס כנרת", "רשימת מוהלים", "Public Companies", "בתי מרקחת", "מקלטים")
LONG = "נתונים יומיים על גובה פני המים כפי שנמדדו בתחנה שבצפון האגם משנת אלף תשע מאות"
NOTES = ("איפה אפשר לתדלק", "", LONG, "english only", "בתי מרקחת", "מרחבים מוגנים")
ASKED = [
    {"id": "he-001", "lang": "he", "category": "water", "text": "כנרת", "relevant": [IDS[1]]},
    {
        "id": "en-001",
        "lang": "en",
        "category": "economy",
        "text": "Public data",
        "relevant": [IDS[3], IDS[5]],
    },
]
CONTROLS = [{"id": "he-c01", "lang": "he", "text": "מה שם הכלב שלי"}]


def hit(memory_id: str, tier: str = "datagov_schema", **extra: Any) -> HitView:
    return a_hit(memory_id=memory_id, tier=tier, **extra)


def of_dataset(memory_id: str, dataset_id: str | None) -> HitView:
    return hit(memory_id, source={"datagov": {"dataset_id": dataset_id}})


@dataclass
class CatalogueService(FakeService):
    """Answers from the catalogue when asked for it; `texts` are what it has indexed."""

    texts: dict[str, str] = field(default_factory=dict)
    resources: int = 2  # each dataset comes back that many times, as its resources would
    unprompted: frozenset[str] = frozenset()  # questions that turn to the catalogue unasked
    broken: str | None = None  # a question that the service refuses

    async def search(self, request: Request) -> Response:
        body = await request.json()
        user = request.headers.get("X-User-Id", "admin")
        self.searches.append(body | {"user": user})
        if body["query"] == self.broken:
            refused = {"success": False, "error": "No.", "code": "invalid_input"}
            return JSONResponse(refused, status_code=422)
        wanted = bool(body.get("include_datagov")) or body["query"] in self.unprompted
        ranker = PlainBm25([Document(name, text) for name, text in self.texts.items()] or [EMPTY])
        found = ranker.rank(body["query"], body["limit"]) if wanted else ()
        copies = [(name, copy) for name in found for copy in range(self.resources)]
        hits = [
            a_hit(
                position=place,
                memory_id=f"datagov_resource_{place}",
                tier="datagov_schema",
                content=self.texts[name],
                source={"datagov": {"dataset_id": name}},
            )
            for place, (name, _) in enumerate(copies[: body["limit"]], 1)
        ]
        tiers = ["history", "datagov_schema"] if wanted else ["history"]
        reply = a_reply(hits, tiers=tiers, timings_ms={"total_ms": 4.0})
        return JSONResponse(reply.model_dump(mode="json", by_alias=True))


EMPTY = Document("none", "nothing")


def write(data: Path, notes: tuple[str, ...] = NOTES) -> None:
    folder = data / "datagov"
    folder.mkdir(exist_ok=True)
    datasets = [
        {
            "dataset_id": name,
            "title": title,
            "organization": "משרד",
            "tags": [],
            "keywords": [],
            "categories": ["water"],
            "resources": [{"title": None, "fields": []}],
        }
        for name, title in zip(IDS, TITLES, strict=True)
    ]
    described = [{"id": name, "notes": note} for name, note in zip(IDS, notes, strict=True)]
    described.append({"id": "elsewhere", "notes": "מאגר שאינו בקטלוג"})
    schemas, snapshot = {"datasets": datasets}, {"datasets": described[::-1]}
    (folder / "enterprise_schemas.json").write_text(json.dumps(schemas), encoding="utf-8")
    (folder / "catalog.snapshot.json").write_text(json.dumps(snapshot), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path)
    questions = tmp_path / "questions.yaml"
    questions.write_text(yaml.safe_dump({"questions": ASKED, "controls": CONTROLS}))
    monkeypatch.setattr("jobs.suites.datagov_set.QUESTIONS", questions)
    return tmp_path


@pytest.fixture
def service() -> Iterator[CatalogueService]:
    texts = {name: f"{title} משרד" for name, title in zip(IDS, TITLES, strict=True)}
    started = CatalogueService(texts=texts)
    with serving(started):
        yield started


def run(data: Path, service: FakeService, *more: str) -> tuple[int, dict[str, Any]]:
    out = data / "report.json"
    arguments = ["--suite", "datagov", "--data", str(data), "--url", service.url]
    code = main([*arguments, "--out", str(out), *more])
    return code, json.loads(out.read_text())["suites"][0] if out.exists() else {}


def test_every_second_shared_id_is_asked_by_its_hebrew_description(data: Path) -> None:
    loaded = load_datagov(data, data / "questions.yaml")
    asked = loaded.descriptions.corpora[0].questions
    assert [question.question_id for question in asked] == [IDS[0], IDS[2], IDS[4]]
    assert [question.gold for question in asked] == [(IDS[0],), (IDS[2],), (IDS[4],)]
    assert loaded.descriptions.excluded == 0
    write(data, ("", *NOTES[1:4], "english", NOTES[5]))
    again = load_datagov(data, data / "questions.yaml").descriptions
    assert [question.question_id for question in again.corpora[0].questions] == [IDS[2]]
    assert again.excluded == 2


def test_the_floor_does_not_know_the_descriptions(data: Path) -> None:
    texts = {one.doc_id: one.text for one in load_datagov(data, data / "questions.yaml").documents}
    assert texts[IDS[0]] == "תחנות דלק משרד"
    assert not any(LONG[:20] in text for text in texts.values())


def test_a_dataset_ranks_where_its_best_hit_ranks() -> None:
    hits = [
        hit("datagov_category_water"),
        of_dataset("datagov_resource_x", IDS[2]),
        of_dataset("datagov_dataset_x", IDS[1]),
        of_dataset("datagov_dataset_y", IDS[2]),
        hit("note-1", tier="history"),
        hit(f"datagov_dataset_{IDS[0]}"),
    ]
    assert datasets_of(hits, frozenset(IDS)) == (IDS[2], IDS[1], IDS[0])


def test_a_hit_outside_the_catalogue_belongs_to_no_dataset() -> None:
    known = frozenset(IDS[:1])
    assert dataset_of(of_dataset("a", IDS[3]), known) is None
    assert dataset_of(hit(f"datagov_dataset_{IDS[3]}"), known) is None
    assert dataset_of(of_dataset("a", None), known) is None
    assert dataset_of(hit("a", source=None), known) is None
    assert dataset_of(hit(f"x_{IDS[0]}", source={"datagov": None}), known) == IDS[0]


def test_the_searched_tiers_tell_whether_it_was_the_catalogue() -> None:
    assert not is_catalogue(a_reply([], tiers=["history"]))
    assert is_catalogue(a_reply([], tiers=["history", "datagov_expansion"]))
    assert is_catalogue(a_reply([hit("a")]))
    assert not is_catalogue(a_reply([hit("a", tier="history")]))


def test_a_description_in_an_answer_is_a_leak() -> None:
    question = Question("q", LONG, ("q",), "description", "he")
    assert leaks(question, [hit("a", content=f"מאגר: {LONG.replace(' ', '  ')}!")], "כותרת")
    assert not leaks(question, [hit("a", content="מאגר: כותרת")], "כותרת")
    assert not leaks(question, [hit("a", content=LONG)], f"כותרת {LONG}")
    short = Question("q", LONG[:30], ("q",), "description", "he")
    assert not leaks(short, [hit("a", content=LONG)], "כותרת")


def test_a_bm25_service_scores_exactly_the_floor_and_its_intervals(
    data: Path, service: CatalogueService
) -> None:
    code, section = run(data, service, "--markdown", str(data / "report.md"))
    assert code == 0
    assert (section["datasets"], section["descriptions_indexed"]) == (6, 0)
    descriptions, questions = section["parts"]
    for part in (descriptions, questions):
        rows = {(row["set"], row["system"]): row["metrics"] for row in part["summaries"]}
        for name, system in rows:
            assert rows[(name, system)] == rows[(name, "BM25")]
    assert [one["ranks"] for one in descriptions["per_question"]] == [[None], [None], [1]]
    assert [one["ranks"] for one in questions["per_question"]] == [[1, None], [1]]
    judged = [
        Judged(question_id=one["id"], gold=tuple(one["gold"]), ranked=tuple(one["top"]))
        for one in descriptions["per_question"]
    ]
    expected = summarise(judged)["MRR"]
    shown = descriptions["summaries"][0]["metrics"]["MRR"]
    assert shown == {
        "mean": round(expected.mean, 4),
        "low": round(expected.low, 4),
        "high": round(expected.high, 4),
        "n": 3,
    }
    assert shown["low"] < shown["mean"] < shown["high"]
    assert {row["set"] for row in questions["summaries"]} >= {"all", "lang he", "lang en"}
    text = (data / "report.md").read_text()
    assert "| all | service | 3 |" in text
    assert "תדלק" not in text
    assert "תדלק" not in (data / "report.json").read_text()


def test_the_time_inside_the_service_and_every_search_are_counted(
    data: Path, service: CatalogueService
) -> None:
    _, section = run(data, service)
    for part in section["parts"]:
        assert part["search_ms"]["server_p50"] == 4.0
    # Three descriptions, two questions, and these once more without the flag with the control.
    assert section["answers"] == {"answers": 8, "degraded": 0, "names": {}}


def test_nothing_is_stored_and_one_user_asks(data: Path, service: CatalogueService) -> None:
    assert run(data, service)[0] == 0
    assert service.users == {}
    asking = {one["user"] for one in service.searches if "probe" not in one["user"]}
    assert len(asking) == 1
    assert next(iter(asking)).startswith("eval-datagov-")


def test_intent_is_measured_without_asking_for_the_catalogue(
    data: Path, service: CatalogueService
) -> None:
    service.unprompted = frozenset({"כנרת"})
    _, section = run(data, service)
    shares = {name: (row["turned"], row["asked"]) for name, row in section["intent"].items()}
    assert shares == {"question he": (1, 1), "question en": (0, 1), "control he": (0, 1)}
    flags = [one.get("include_datagov") for one in service.searches if one["query"] == "כנרת"]
    assert sorted(flags, key=str) == [None, True]


def test_parts_and_languages_have_headlines_of_their_own(
    data: Path, service: CatalogueService
) -> None:
    _, section = run(data, service)
    parts = {(one["set"], one["metric"]) for one in section["headline"]}
    assert {name for name, _ in parts} == {
        "descriptions he",
        "questions he",
        "questions en",
        "intent",
        "controls",
    }
    right = {one["set"]: one["service"] for one in section["headline"] if one["metric"] == "right"}
    assert right["controls"]["mean"] == 1.0  # nothing turns to the catalogue unasked here
    assert right["intent"]["mean"] == 0.0


def test_indexed_descriptions_fail_the_run(
    data: Path, service: CatalogueService, capsys: pytest.CaptureFixture[str]
) -> None:
    service.texts[IDS[2]] += f" {LONG}"
    code, section = run(data, service)
    assert code == 3
    assert section["leaked"] == [IDS[2]]
    assert "1 descriptions were in the index" in " ".join(capsys.readouterr().out.split())


def test_a_service_without_the_catalogue_is_one_sentence(
    data: Path, service: CatalogueService, capsys: pytest.CaptureFixture[str]
) -> None:
    service.texts = {}
    code, section = run(data, service)
    assert (code, section) == (2, {})
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert "rayapp job datagov_ingest --source DIR" in error[0]


def test_a_refused_question_is_a_failure_of_the_run(data: Path, service: CatalogueService) -> None:
    service.broken = "כנרת"
    code, section = run(data, service)
    assert code == 3
    assert section["parts"][1]["errors"] == {"invalid_input": 1}
    assert section["intent_errors"] == 1


def test_a_limit_spreads_over_each_part(data: Path, service: CatalogueService) -> None:
    _, section = run(data, service, "--limit-questions", "1")
    assert [part["questions"] for part in section["parts"]] == [1, 1]
    assert section["intent"].keys() == {"question he", "control he"}


def test_unreadable_questions_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "q.yaml"
    for text in ("questions: [", "questions: [{id: x}]\ncontrols: []", "[]", ""):
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"q\.yaml"):
            load_questions(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_questions(tmp_path / "none.yaml")
