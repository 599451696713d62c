"""What an evaluation leaves behind when something goes wrong: before, between and after suites."""

import errno
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jobs.evaluate import main
from jobs.suites.kinds import KINDS
from jobs.suites.outputs import check_files, put
from jobs.suites.report import METRICS
from rayapp.core.errors import ConfigError
from tests.shell import typed
from tests.unit.fake_service import FakeService, serving

ROOT = Path(__file__).resolve().parents[3]

TEXTS = [f"פסקה {number} על נושא{number}" for number in range(6)]


@dataclass
class HurtService(FakeService):
    """Refuses who asks as a user of `refused_user`; `lacking` is missing from every answer."""

    refused_user: str = "\0"
    lacking: tuple[str, ...] = ()

    async def search(self, request: Request) -> Response:
        if self.refused_user in request.headers.get("X-User-Id", ""):
            body = {"success": False, "error": "Ask the owner of the key.", "code": "forbidden"}
            return JSONResponse(body, status_code=403)
        answer = await super().search(request)
        found = json.loads(bytes(answer.body))
        if "results" in found:
            found["degraded"] = list(self.lacking)
        return JSONResponse(found, status_code=answer.status_code)


@pytest.fixture
def service() -> Iterator[HurtService]:
    with serving(HurtService()) as started:
        yield started


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        {"id": f"q{number}", "context": text, "question": f"נושא{number}"}
        for number, text in enumerate(TEXTS)
    ]
    questions = [{"id": "h1", "question": "נושא1", "is_impossible": False}]
    paragraphs = [{"context": TEXTS[1], "qas": questions}]
    write(tmp_path / "parashoot" / "dev.json", {"data": rows})
    write(tmp_path / "heq" / "heq-v1.1-val.json", {"data": [{"paragraphs": paragraphs}]})
    return tmp_path


def write(path: Path, tree: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(tree), encoding="utf-8")


def run(data: Path, service: FakeService, *more: str) -> int:
    return main(["--suite", "parashoot", "--data", str(data), "--url", service.url, *more])


def report(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """The only line that was said on the error stream."""
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


@pytest.mark.parametrize("option", ["--out", "--markdown", "--picture"])
@pytest.mark.parametrize(
    ("place", "said"), [("", "is a folder: name a file in it"), ("file/r", "has to be a folder")]
)
def test_a_report_without_a_place_ends_before_anything_is_stored(
    data: Path,
    service: HurtService,
    capsys: pytest.CaptureFixture[str],
    option: str,
    place: str,
    said: str,
) -> None:
    (data / "file").write_text("x")
    assert run(data, service, option, str(data / place)) == 2
    assert said in sentence(capsys)
    assert service.users == {}
    assert (data / "file").read_text() == "x"


def test_reports_and_results_need_places_of_their_own(
    data: Path, service: HurtService, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "file").write_text("x")
    both = str(data / "r.json")
    assert run(data, service, "--out", both, "--markdown", both) == 2
    assert "given for two reports" in sentence(capsys)
    assert run(data, service, "--golden", str(data / "file")) == 2
    assert "has to be a folder" in sentence(capsys)
    assert service.users == {}


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file" / "r.json", tmp_path):
        with pytest.raises(ConfigError, match="cannot be written"):
            put(path, b"x")


def test_a_full_disk_leaves_the_report_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    put(path, b"the suites that ended")

    def full(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ConfigError, match="make room"):
        put(path, b"one more")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [
        ("r.json", b"the suites that ended")
    ]


def test_a_name_that_is_too_long_is_a_bad_argument(tmp_path: Path) -> None:
    for path in (tmp_path / ("x" * 300), tmp_path / ("x" * 300) / "r.json"):
        with pytest.raises(ConfigError, match="name another path"):
            check_files(path)


def test_any_other_refusal_of_the_machine_is_one_sentence(
    data: Path,
    service: HurtService,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", "state.json")

    monkeypatch.setattr("jobs.evaluate.service_url", refuse)
    assert run(data, service) == 2
    assert sentence(capsys).startswith("state.json cannot be used (Permission denied)")


def test_a_failure_in_a_later_suite_keeps_the_earlier_ones(
    data: Path, service: HurtService, capsys: pytest.CaptureFixture[str]
) -> None:
    service.refused_user = "eval-heq"
    out, text = data / "r" / "report.json", data / "r" / "report.md"
    more = ["--suite", "heq", "--out", str(out), "--markdown", str(text)]
    assert run(data, service, *more) == 2
    said = capsys.readouterr()
    assert "parashoot: mean ±" in said.out
    assert "This is a part of a run: heq did not end." in said.out
    found = report(out)
    assert [one["suite"] for one in found["suites"]] == ["parashoot"]
    assert found["missing"] == ["heq"]
    assert found["at"]
    assert "heq did not end" in text.read_text()
    service.refused_user = "\0"
    assert run(data, service, *more) == 0
    assert report(out)["missing"] == []
    assert "did not end" not in text.read_text() + capsys.readouterr().out


def test_results_that_cannot_be_compared_are_still_written(
    data: Path, service: HurtService, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = data / "golden", data / "report.json"
    assert run(data, service, "--suite", "heq", "--golden", str(folder)) == 0
    committed = folder / "parashoot.json"
    committed.write_text(committed.read_text().replace('"q', '"other-'))
    capsys.readouterr()
    more = ["--suite", "heq", "--against", str(folder), "--out", str(out)]
    assert run(data, service, *more) == 2
    said = capsys.readouterr()
    assert "No committed result of parashoot is about a question" in said.err
    assert "parashoot: mean ±" in said.out
    found = report(out)
    assert [one["suite"] for one in found["suites"]] == ["parashoot", "heq"]
    assert [one["suite"] for one in found["against"]] == ["heq"]


def test_results_that_cannot_be_committed_are_still_reported(
    data: Path, service: HurtService, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = data / "golden", data / "report.json"
    (folder / "parashoot.json").mkdir(parents=True)
    assert run(data, service, "--golden", str(folder), "--out", str(out)) == 2
    assert "cannot be written" in sentence(capsys)
    assert report(out)["suites"][0]["questions"] == len(TEXTS)


def test_answers_in_part_are_counted_and_never_committed(
    data: Path, service: HurtService, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out, text = data / "golden", data / "report.json", data / "report.md"
    service.lacking = ("dense",)
    more = ["--out", str(out), "--markdown", str(text)]
    assert run(data, service, "--golden", str(folder), *more) == 3
    line = f"{len(TEXTS)} of {len(TEXTS)} answers were degraded (dense {len(TEXTS)})."
    said = " ".join(capsys.readouterr().out.split())
    assert f"{folder} is left as it is, because in parashoot {line[:-1]}, more than 2%" in said
    assert not folder.exists()
    assert line in text.read_text()
    assert report(out)["suites"][0]["answers"]["degraded"] == len(TEXTS)
    service.lacking = ()
    assert run(data, service, "--golden", str(folder), *more) == 0
    assert f"0 of {len(TEXTS)} answers were degraded." in capsys.readouterr().out
    service.lacking = ("dense",)
    assert run(data, service, "--against", str(folder), *more) == 0
    assert line in " ".join(capsys.readouterr().out.split("against the committed results")[-1:])


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--concurrency", "abc", "'abc' is not a whole number from 1"),
        ("--limit-questions", "0", "'0' is not a whole number from 1"),
        ("--limit-questions", "1.5", "'1.5' is not a whole number from 1"),
        ("--tolerance", "abc", "'abc' is not a share, a number from 0 up to 1"),
        ("--tolerance", "nan", "'nan' is not a share"),
        ("--tolerance", "1", "'1' is not a share"),
    ],
)
def test_a_number_that_is_none_says_what_to_give(
    data: Path,
    service: HurtService,
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: str,
    said: str,
) -> None:
    assert run(data, service, option, value) == 2
    assert f"Argument {option}: {said}" in sentence(capsys)


# A tree of every kind, and the first level of some set's own.
SHAPES = [
    *(None, 1, "text", [], {}, [1], ["text"], [[]], [{}]),
    *({"data": 1}, {"data": []}, {"data": [{}]}, {"data": [{"paragraphs": [{"qas": 1}]}]}),
    *({"datasets": None}, {"datasets": []}, {"datasets": [{"dataset_id": "a", "title": "t"}]}),
    [{"sample_id": "c", "conversation": {"session_1": [], "session_2": [{}]}, "qa": []}],
    [{"sample_id": "c", "conversation": {}, "qa": [{"evidence": None}]}],
    [{"sample_id": "c", "conversation": {}, "qa": []}],
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.files])
def test_a_set_of_another_shape_is_one_sentence(tmp_path: Path, name: str, shape: Any) -> None:
    files = [path for paths in KINDS[name].files.values() for path in paths]
    for path in files:
        write(tmp_path / path, shape)
    with pytest.raises(ConfigError, match=r"has no rows of .*take the file as the set has it"):
        KINDS[name].load(tmp_path)


def test_every_set_is_read_before_the_first_one_runs(
    data: Path, service: HurtService, capsys: pytest.CaptureFixture[str]
) -> None:
    write(data / "heq" / "heq-v1.1-val.json", {"data": [{"paragraphs": [{"context": "x"}]}]})
    assert run(data, service, "--suite", "heq") == 2
    assert "has no rows of HeQ (KeyError: 'qas')" in sentence(capsys)
    assert service.users == {}


def test_our_own_question_files_are_part_of_the_data() -> None:
    ours = {path.name for kind in KINDS.values() for path in kind.ours}
    assert ours == {
        "datagov_questions.yaml",
        "contradictions.yaml",
        "everyday.yaml",
        "facts_words.yaml",
    }
    assert all(path.is_file() for kind in KINDS.values() for path in kind.ours)


@pytest.mark.process
def test_no_name_of_a_column_is_cut_where_the_output_is_no_terminal(
    service: HurtService, data: Path
) -> None:
    line = f"{sys.executable} -m jobs.evaluate --suite heq --data {data} --url {service.url}"
    done = typed(line, ROOT)
    head = next(line for line in done.stdout.splitlines() if "system" in line)
    cells = [cell.strip() for cell in re.split("[┃│]", head)[1:-1]]
    assert cells == ["set", "system", "n", *METRICS], done.stdout
