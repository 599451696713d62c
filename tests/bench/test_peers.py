"""The comparison with other systems: what is asked, how it is judged, and the run as a whole."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from jobs.suites.suite import Corpus, Document, Question
from tests.bench.peer_env import PINS
from tests.bench.peer_protocol import (
    Answer,
    Part,
    PartRun,
    Plan,
    Row,
    Shape,
    Stored,
    SystemRun,
    read_job,
    read_run,
    rows_of,
    same_texts,
    speed_part,
    write_job,
)
from tests.bench.peer_report import COLUMNS, cell, judged, notes, paired, ratios, systems_report
from tests.bench.peer_systems import Embedder, mem0_payload
from tests.bench.peer_worker import Worker, batches
from tests.bench.peer_worker import main as worker_main
from tests.bench.peers import main, model_folder, parser
from tests.support.ports import free_port
from tests.unit.fake_service import FakeService, serving


def corpus(name: str, texts: dict[str, str], asked: Sequence[Question] = ()) -> Corpus:
    documents = tuple(Document(doc_id, text) for doc_id, text in texts.items())
    return Corpus(name, documents, tuple(asked))


def about(name: str, *gold: str, category: str = "1") -> Question:
    return Question(name, f"text of {name}", gold, category, "en")


def answered(part: Part, *ranked: tuple[str, ...], ms: float = 1.0) -> PartRun:
    names = [question.question_id for _, question in part.questions]
    return PartRun(answers=[Answer(name, ids, ms) for name, ids in zip(names, ranked, strict=True)])


def test_timed_questions_are_of_a_memory_of_their_user_and_follow_the_seed() -> None:
    shape = Shape(memories=205, users=10, questions=30, warm=5, limit=7)
    part = speed_part("speed", shape, 3)
    assert part == speed_part("speed", shape, 3)
    assert part != speed_part("speed", shape, 4)
    assert (part.limit, part.warm, part.documents) == (7, 5, 205)
    assert {len(one.documents) for one in part.corpora} == {20, 21}
    own = {one.name: {document.doc_id for document in one.documents} for one in part.corpora}
    assert len(part.questions) == 35
    assert all(set(question.gold) <= own[user] for user, question in part.questions)


def test_parts_of_one_seed_share_memories_and_not_questions() -> None:
    shape = Shape(memories=500, users=5, questions=20, warm=0, limit=10)
    one, other = speed_part("speed", shape, 3), speed_part("bare-http", shape, 3)
    assert [c.documents for c in one.corpora] == [c.documents for c in other.corpora]
    texts = [{question.text for _, question in part.questions} for part in (one, other)]
    assert len(texts[0] & texts[1]) < 5


def test_more_questions_than_memories_ask_some_again() -> None:
    part = speed_part("speed", Shape(memories=3, users=2, questions=9, warm=1, limit=1), 3)
    assert len(part.questions) == 10


def test_a_job_reaches_the_peer_without_evidence(tmp_path: Path) -> None:
    part = Part("p", 4, (corpus("u", {"a": "שלום", "b": "x\ny"}, [about("q", "a"), about("n")]),))
    plan = Plan("chroma", "/model", "/folder", 9, "127.0.0.1", 6333)
    write_job(tmp_path / "job", plan, [part])
    got, jobs = read_job(tmp_path / "job")
    assert got == plan
    assert [(job.name, job.limit) for job in jobs] == [("p", 4)]
    assert jobs[0].documents == [Row("u", "a", "שלום"), Row("u", "b", "x\ny")]
    assert jobs[0].questions == [Row("u", "q", "text of q")]  # one without evidence is not asked
    assert b"gold" not in (tmp_path / "job").read_bytes()


def test_a_job_without_a_plan_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job").write_bytes(b'{"kind":"part","name":"p","limit":1}\n')
    with pytest.raises(ValueError, match="no plan"):
        read_job(tmp_path / "job")


def test_a_half_written_line_is_left_for_the_next_look() -> None:
    assert list(rows_of(b'{"kind":"end"}\n{"kind":"an')) == [{"kind": "end"}]
    assert list(rows_of(b"")) == []


ABOUT: dict[str, Any] = {"kind": "about", "versions": {"x": "1"}, "note": "n"}
STORED: dict[str, Any] = {"kind": "stored", "part": "p", "items": 9, "timed": 4, "seconds": 2.0}
ANSWER: dict[str, Any] = {"kind": "answer", "part": "p", "name": "q", "ranked": ["a"], "ms": 1.5}


def test_what_a_peer_wrote_is_read_back() -> None:
    run = read_run("s", [ABOUT, {"kind": "done", "rows": 9}, STORED, ANSWER, {"kind": "end"}])
    assert (run.failed, run.versions, run.note) == (None, {"x": "1"}, "n")
    assert run.parts["p"].stored == Stored(9, 4, 2.0)
    assert run.parts["p"].stored.per_s == 2.0
    assert run.parts["p"].answers == [Answer("q", ("a",), 1.5)]


def test_a_peer_that_stopped_early_has_failed_with_its_reason() -> None:
    assert "ended before" in str(read_run("s", [ABOUT, STORED, ANSWER]).failed)
    reason = {"kind": "failed", "reason": "ImportError: no x"}
    assert read_run("s", [ABOUT, reason]).failed == "ImportError: no x"
    assert read_run("s", []).failed is not None


def test_equal_texts_of_one_user_are_one_document() -> None:
    texts = {"a": "one", "b": " one ", "c": "two"}
    part = Part("p", 1, (corpus("u", texts), corpus("v", {"b": "one"})))
    assert same_texts(part) == {("u", "a"): "a", ("u", "b"): "a", ("u", "c"): "c", ("v", "b"): "b"}


def test_a_copy_is_as_good_as_its_first_and_takes_no_place() -> None:
    texts = {"a": "one", "b": "one", "c": "two"}
    part = Part("p", 9, (corpus("u", texts, [about("q", "c", "b")]),))
    one = judged(part, answered(part, ("b", "a", "c")))[0]
    assert one.ranked == ("a", "c")
    assert one.gold == ("c", "a")


def test_names_of_the_system_itself_come_first() -> None:
    part = Part("p", 9, (corpus("u", {"a": "One!", "b": "one"}, [about("q", "b")]),))
    run = answered(part, ("a",))
    run.same = {("u", "a"): "a", ("u", "b"): "a"}
    assert judged(part, run)[0].first_rank == 1


def test_warm_up_and_adversarial_questions_are_not_counted() -> None:
    asked = [about(f"q{i}", "a", category=str(i)) for i in range(1, 6)]
    five = Part("locomo", 9, (corpus("u", {"a": "x"}, asked),))
    run = answered(five, *[("a",)] * 5)
    assert {one.category for one in judged(five, run)} == {"1", "2", "3", "4"}
    warm = Part("speed", 9, five.corpora, warm=2)
    assert len(judged(warm, run)) == 3


def test_missing_or_foreign_answers_are_an_error() -> None:
    part = Part("p", 9, (corpus("u", {"a": "x"}, [about("q", "a")]),))
    with pytest.raises(ValueError, match="zip"):
        judged(part, PartRun())
    with pytest.raises(ValueError, match="not of question q"):
        judged(part, PartRun(answers=[Answer("other", (), 1.0)]))


def speed_run(system: str, part: Part, *, rank: int, ms: float, per_s: float) -> SystemRun:
    ranked = (*(f"x{i}" for i in range(rank - 1)), "a")
    run = answered(part, *[ranked] * len(part.questions), ms=ms)
    run.stored = Stored(100, 100, 100 / per_s)
    return SystemRun(system, {part.name: run})


def test_ratios_and_paired_differences_are_to_ours() -> None:
    part = Part("locomo", 9, (corpus("u", {"a": "x"}, [about(f"q{i}", "a") for i in range(8)]),))
    speed = Part("speed", 9, part.corpora)
    ours = speed_run("ours", part, rank=1, ms=4.0, per_s=50)
    ours.parts |= speed_run("ours", speed, rank=1, ms=4.0, per_s=50).parts
    other = speed_run("chroma", part, rank=2, ms=10.0, per_s=25)
    other.parts |= speed_run("chroma", speed, rank=2, ms=10.0, per_s=25).parts
    broken = SystemRun("mem0", failed="ImportError: no mem0")
    entries = systems_report([part, speed], [ours, other, broken])
    assert "ratio_to_ours" not in entries[0]
    assert entries[1]["ratio_to_ours"] == {
        "LoCoMo R@1": 0.0,
        "LoCoMo hit@10": 1.0,
        "LoCoMo MRR": 0.5,
        "ingest items/s": 0.5,
        "search p50 ms": 2.5,
        "search p95 ms": 2.5,
    }
    difference = entries[1]["ours_minus_this"]["locomo"]["MRR"]
    assert (difference["mean"], difference["low"], difference["high"]) == (0.5, 0.5, 0.5)
    columns = {column.title: column for column in COLUMNS}
    assert cell(entries[1], columns["LoCoMo MRR"]) == "0.500\n[0.500, 0.500]\n×0.50"
    assert cell(entries[0], columns["search p50 ms"]) == "4.00"
    assert cell(entries[1], columns["HeQ R@1"]) == "–"
    assert cell(entries[2], columns["HeQ R@1"]) == "not runnable"
    assert "mem0: not runnable here: ImportError: no mem0" in list(notes(entries))


def test_a_ratio_to_nothing_is_left_out() -> None:
    speed = {"speed": {"p50_ms": 3.0, "items_per_s": 0.0}}
    assert ratios(speed, {}) == {}
    assert ratios(speed, {"speed": {"p50_ms": 0.0, "items_per_s": 5.0}}) == {"ingest items/s": 0.0}


def test_a_partial_ingest_says_so() -> None:
    part = Part("speed", 9, (corpus("u", {"a": "x"}, [about("q", "a")]),))
    run = speed_run("mem0", part, rank=1, ms=1.0, per_s=10)
    run.parts["speed"].stored = Stored(5_000, 2_000, 20.0)
    entry = systems_report([part], [run])[0]
    assert entry["parts"]["speed"]["items_per_s"] == 100.0
    assert any("first 2,000 of 5,000 items" in line for line in notes([entry]))


def test_paired_needs_the_same_questions() -> None:
    part = Part("p", 9, (corpus("u", {"a": "x"}, [about("q", "a")]),))
    difference = paired(part, answered(part, ("a",)), answered(part, ("b",)))
    assert difference["R@1"]["mean"] == 1.0


class Counting:
    """A system that counts what it is given."""

    note, waits = "n", False
    packages: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def open(self, part: str) -> None:
        self.calls.append((f"open {part}", 0))

    def add(self, rows: Sequence[Row]) -> None:
        self.calls.append(("add", len(rows)))

    def fill(self, rows: Sequence[Row]) -> None:
        self.calls.append(("fill", len(rows)))

    def settle(self) -> None:
        self.calls.append(("settle", 0))

    def search(self, user: str, text: str, limit: int) -> Sequence[str]:
        return (user, text)[:limit]


@pytest.mark.parametrize(
    ("system", "expected"),
    [("mem0", [("add", 50), ("add", 10), ("fill", 40)]), ("chroma", [("add", 100)])],
)
def test_only_one_by_one_stores_are_filled_after_the_timed_adds(
    system: str, expected: list[tuple[str, int]], tmp_path: Path
) -> None:
    texts = {f"m{i}": f"t{i}" for i in range(100)}
    part = Part("p", 1, (corpus("u", texts, [about("q", "m1")]),))
    write_job(tmp_path / "job", Plan(system, "", "", 60), [part])
    plan, jobs = read_job(tmp_path / "job")
    counting = Counting()
    with (tmp_path / "out").open("wb", buffering=0) as out:
        Worker(plan, counting, out).run(jobs)
    assert counting.calls == [("open p", 0), *expected, ("settle", 0)]
    run = read_run(system, rows_of((tmp_path / "out").read_bytes()))
    assert run.failed is None
    stored = run.parts["p"].stored
    assert stored is not None
    assert (stored.items, stored.timed) == (100, sum(n for name, n in expected if name == "add"))
    assert run.parts["p"].answers[0].ranked == ("u",)


def test_batches_hold_every_row_once() -> None:
    rows = [Row("u", str(i), "t") for i in range(7)]
    assert [len(batch) for batch in batches(rows, 3)] == [3, 3, 1]
    assert [row for batch in batches(rows, 3) for row in batch] == rows
    assert batches([], 3) == []


def test_filled_memories_look_like_added_ones() -> None:
    payload = mem0_payload(Row("u", "n", "text"))
    assert payload["hash"] == "1cb251ec0d568de6a929b520c4aed8d1"
    assert {"user_id", "role", "data", "created_at", "updated_at"} < payload.keys()
    assert (payload["user_id"], payload["data"], payload["name"]) == ("u", "text", "n")


def test_a_peer_that_is_not_installed_says_why(tmp_path: Path) -> None:
    part = Part("p", 1, (corpus("u", {"a": "x"}, [about("q", "a")]),))
    model = str(model_folder(parser().parse_args(["--data", "."])))
    write_job(tmp_path / "job", Plan("chroma", model, str(tmp_path / "s"), 1), [part])
    assert worker_main([str(tmp_path / "job"), str(tmp_path / "out")]) == 1
    run = read_run("chroma", rows_of((tmp_path / "out").read_bytes()))
    assert run.failed == "ModuleNotFoundError: No module named 'chromadb'"


LOCOMO = [
    {
        "sample_id": f"conv-{number}",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Noa", "dia_id": "D1:1", "text": "I adopted a beagle."},
                {"speaker": "Tom", "dia_id": "D1:2", "text": "I moved to Haifa."},
            ],
        },
        "qa": [{"question": "Who adopted a beagle?", "evidence": ["D1:1"], "category": 4}],
    }
    for number in (1, 2)
]
HEQ = {
    "data": [
        {
            "paragraphs": [
                {"context": text, "qas": [{"id": name, "question": asked, "is_impossible": False}]}
                for name, asked, text in (
                    ("q1", "מהי בירת ישראל", "ירושלים היא בירת ישראל"),
                    ("q2", "איזה אגם הוא מים מתוקים", "הכנרת היא אגם מים מתוקים"),
                )
            ]
        }
    ]
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name, rows in (("locomo/locomo-open5.json", LOCOMO), ("heq/heq-v1.1-val.json", HEQ)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(json.dumps(rows))
    return tmp_path


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving(FakeService()) as started:
        yield started


@pytest.mark.process
def test_the_whole_run_compares_systems_with_the_service(
    data: Path, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    out = data / "peers.json"
    sizes = ["--memories", "60", "--users", "3", "--questions", "20", "--conversations", "1"]
    sizes += ["--sets", "locomo", "heq"]
    where = ["--data", str(data), "--url", service.url, "--out", str(out)]
    assert main([*where, *sizes, "--systems", "ours", "bm25", "dense"]) == 0
    report = json.loads(out.read_text())
    assert report["questions"] == {"locomo": 1, "heq": 2, "speed": 20}
    ours, bm25, dense = report["systems"]
    # The stand-in service ranks by the same BM25 over the same texts.
    for part in ("locomo", "heq", "speed"):
        assert bm25["ours_minus_this"][part]["MRR"]["mean"] == 0.0
        assert bm25["parts"][part]["items"] == ours["parts"][part]["items"]
    assert ours["parts"]["speed"]["items"] == 60
    assert ours["parts"]["speed"]["hit@10"]["mean"] > 0.9
    assert dense["parts"]["speed"]["hit@10"]["mean"] > 0.5
    assert ours["parts"]["bare-http"]["questions"] == 20
    assert bm25["ratio_to_ours"]["LoCoMo R@1"] == 1.0
    assert {search["limit"] for search in service.searches} == {10, 50}
    assert len({search["user"] for search in service.searches}) == 5
    assert "search p95 ms" in capsys.readouterr().out


@pytest.mark.process
def test_a_peer_that_cannot_run_is_listed_with_its_reason(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "env" / "bin").mkdir(parents=True)
    python = data / "env" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    sizes = ["--sets", "heq", "--memories", "20", "--users", "2", "--questions", "5"]
    where = ["--data", str(data), "--env", str(data / "env"), "--out", str(data / "o.json")]
    assert main([*where, *sizes, "--systems", "chroma", "bm25"]) == 3
    chroma, bm25 = orjson.loads((data / "o.json").read_bytes())["systems"]
    assert "No module named 'chromadb'" in chroma["failed"]
    assert bm25["failed"] is None
    assert "chroma: not runnable here: ModuleNotFoundError" in capsys.readouterr().out


def test_an_absent_service_or_environment_ends_the_run_at_once(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--data", str(data), "--url", f"http://127.0.0.1:{free_port()}"]
    assert main([*where, "--systems", "ours"]) == 4
    assert "No service answers at" in capsys.readouterr().err
    assert main([*where, "--env", str(data / "none"), "--systems", "chroma"]) == 2
    assert "add --make-env" in capsys.readouterr().err


def test_a_service_that_goes_away_while_it_stores_ends_the_run(
    data: Path, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    service.shed["/api/memory/store/batch"] = 10_000
    where = ["--data", str(data), "--url", service.url, "--sets", "heq"]
    assert main([*where, "--memories", "20", "--users", "2", "--systems", "ours"]) == 4
    assert "The queue is full." in capsys.readouterr().err


def test_the_pinned_versions_are_the_documented_ones() -> None:
    documented = parser().description or ""
    pinned = [pin for pin in PINS if "==" in pin]
    assert pinned
    assert all(pin in documented for pin in pinned)


def test_the_embedder_of_the_peers_has_unit_rows() -> None:
    embed = Embedder(str(model_folder(parser().parse_args(["--data", "."]))))
    rows = embed(["the beagle", "הכלב של נועה", ""])
    assert rows.shape == (3, embed.dims)
    assert np.linalg.norm(rows[:2], axis=1) == pytest.approx([1.0, 1.0], abs=1e-5)
