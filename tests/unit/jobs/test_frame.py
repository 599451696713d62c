"""What every job does around its work: arguments, exit codes, report. No Ray, no servers."""

import asyncio
import faulthandler
import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs import frame
from jobs.job_arguments import parser_of
from rayapp.bulk.lease import JobRate, PartitionSteps
from rayapp.bulk.model import Job, JobState
from rayapp.bulk.ports import JobWork
from rayapp.bulk.rules import result_of
from rayapp.client.progress import Bar
from rayapp.container import bootstrap
from rayapp.core.errors import ConfigError, InvalidInput, StoreDown
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.model import Settings
from tests.integration.toys import toy_job
from tests.support.stores.jobs import InMemoryJobStore
from tests.support.stores.stores import InMemoryLeaseStore

CLOCK = SystemClock()


class Stores:
    def __init__(self) -> None:
        self.jobs = InMemoryJobStore(CLOCK)
        self.leases = InMemoryLeaseStore(CLOCK)


class OneWorker:
    """`Workers` in this process."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def work_on(self, job: Job, row: Any) -> bool:
        work: JobWork = toy_job.Toy(job.params)
        return await PartitionSteps(self._stores.jobs, work, JobRate(None, CLOCK), CLOCK).run(
            row, job.fence
        )

    def stop(self) -> None:
        """Nothing runs beside the driver."""

    async def close(self) -> None:
        """Holds nothing."""


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> Stores:
    made = Stores()
    monkeypatch.setattr(frame, "attached", lambda _folder: Settings())
    monkeypatch.setattr(frame, "connect", lambda _settings, _name: None)
    monkeypatch.setattr(bootstrap, "Stores", lambda _settings: made)
    monkeypatch.setattr(frame._Run, "_workers", lambda _self: OneWorker(made))
    return made


Run = Callable[..., int]


@pytest.fixture
def run(stores: Stores, tmp_path: Path) -> Run:
    def call(*arguments: str) -> int:
        return toy_job.main(["--folder", str(tmp_path), "--parts", "2", *arguments])

    return call


def test_a_driver_says_where_it_stands_when_asked(
    run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    os.kill(os.getpid(), signal.SIGUSR1)
    faulthandler.unregister(signal.SIGUSR1)
    assert "test_a_driver_says_where_it_stands" in capfd.readouterr().err


async def test_a_driver_says_what_each_task_waits_for(capfd: pytest.CaptureFixture[str]) -> None:
    async def inner() -> None:
        await asyncio.Event().wait()

    async def outer() -> None:
        await inner()

    task = asyncio.create_task(outer(), name="catalogue")
    await asyncio.sleep(0)
    frame.print_awaits()
    task.cancel()
    said = capfd.readouterr().err.split("Task catalogue waits in:")[1].splitlines()[1:4]
    assert [line.split()[-1].split(".")[-1] for line in said] == ["outer", "inner", "wait"]


def test_a_good_run_answers_0_and_writes_its_report(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    assert run("--out", str(out)) == 0
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["state"] == "completed"
    assert (report["done"], report["failed"], report["exit_code"]) == (40, 0, 0)
    assert report["report"] == {"numbers": 40, "complete": True}
    assert report["counts"] == {"even": 20}
    assert report["params"]["parts"] == 2


def test_a_report_that_cannot_be_written_is_refused_before_the_job(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    assert run("--out", str(tmp_path / "report.json")) == 2
    said = capsys.readouterr().out
    assert "choose another --out" in said
    assert "Job " not in said


def test_a_report_that_cannot_be_written_afterwards_changes_no_exit_code(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert run("--out", str(tmp_path / "report.json")) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert "(No space left on device): choose another --out." in last


def test_a_run_elsewhere_than_on_a_terminal_prints_json_lines_and_a_sentence(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    *lines, last = capsys.readouterr().out.strip().splitlines()
    assert json.loads(lines[-1])["done"] == 40
    assert last.startswith("Job ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--concurrency", "0"], "whole number"),
        (["--concurrency", "many"], "whole number"),
        (["--rate", "-1"], "above 0"),
        (["--rate", "nan"], "above 0"),
        (["--parts", "x"], "int"),
        (["--parts", "0"], "--parts must be 1 or more"),
        (["--colour", "red"], "--colour"),
        (["--job-id", "nobody"], "No job nobody"),
        (["--out", "/no/such/folder/x.json"], "choose another --out"),
    ],
)
def test_bad_arguments_are_one_sentence_and_2(
    run: Run, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert says in captured.out
    assert "usage:" not in captured.out + captured.err
    assert "Traceback" not in captured.out + captured.err


async def test_a_bad_out_is_refused_before_anything_is_done(run: Run, stores: Stores) -> None:
    # In a thread, because `run` has its own event loop.
    assert await asyncio.to_thread(run, "--out", "/no/such/folder/x.json") == 2
    assert await stores.jobs.recent(None, 10) == []


async def test_a_dry_run_prints_the_plan_and_writes_nothing(
    run: Run, stores: Stores, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan.json"
    assert await asyncio.to_thread(run, "--dry-run", "--out", str(out)) == 0
    assert "40 records in 2 partitions" in capsys.readouterr().out
    assert json.loads(out.read_text(encoding="utf-8"))["facts"] == {"made": "once"}
    assert await stores.jobs.recent(None, 10) == []
    assert not (tmp_path / "0.log").exists()


def test_a_broken_step_answers_3(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--breaks") == 3
    assert "ValueError: this partition is broken" in capsys.readouterr().out


def test_the_progress_is_never_beyond_its_end() -> None:
    """A plan estimates how much there is; a sweep also looks at what was stored meanwhile."""

    class Shown(Bar):
        at_: tuple[int, int | None] = (0, None)

        def advance(self, count: int = 1) -> None:
            raise AssertionError

        def at(self, done: int, total: int | None = None, stage: str = "") -> None:
            self.at_ = (done, total)

    bar = Shown()
    job = Job(job_id="j", kind="toy", params={}, created_at=CLOCK.now(), total=3_369, done=3_370)
    frame._shown_on(bar)(job)
    assert bar.at_ == (3_370, 3_370)
    assert "after 3370 of 3370" in result_of(replace(job, state=JobState.PAUSED)).sentence
    frame._shown_on(bar)(replace(job, total=3_369, done=5))
    assert bar.at_ == (5, 3_369)


def test_a_dependency_that_is_away_answers_4(
    run: Run, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreDown("MongoDB is away: start it.")

    monkeypatch.setattr(stores.leases, "acquire", away)
    assert run() == 4


def test_without_a_stack_the_sentence_says_what_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert toy_job.main(["--data-dir", str(tmp_path)]) == 2
    assert "rayapp up" in capsys.readouterr().out


def test_a_cluster_without_a_local_stack_is_known_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAYAPP_DATA__DIR", str(tmp_path))
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    monkeypatch.setenv("MONGODB_URI", "mongodb://10.0.0.2:27017")
    monkeypatch.setenv("QDRANT_URL", "http://10.0.0.3:6333")
    assert frame.attached(None).mongo.uri == "mongodb://10.0.0.2:27017"
    with pytest.raises(ConfigError, match="rayapp up"):
        frame.attached(tmp_path)
    monkeypatch.delenv("MONGODB_URI")
    with pytest.raises(ConfigError, match="rayapp up"):
        frame.attached(None)


@pytest.mark.parametrize(("number", "pause"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
async def test_a_person_pauses_a_job_and_a_node_that_goes_down_hands_it_on(
    number: signal.Signals, pause: bool
) -> None:
    asked: list[bool] = []
    stopped = asyncio.Event()

    class Runner:
        def stop(self, *, pause: bool = False) -> None:
            asked.append(pause)
            stopped.set()

    with frame._signals(Runner()):  # type: ignore[arg-type]
        os.kill(os.getpid(), number)
        await stopped.wait()
    assert asked == [pause]


def test_resume_is_on_and_dry_run_is_only_for_jobs_that_write() -> None:
    from dataclasses import replace

    assert parser_of(toy_job.SPEC).parse_args([]).resume is True
    assert parser_of(toy_job.SPEC).parse_args(["--no-resume"]).resume is False
    reading = parser_of(replace(toy_job.SPEC, writes=False))
    assert reading.parse_args([]).dry_run is False
    assert "--dry-run" not in reading.format_help()


def test_an_option_of_another_command_is_not_taken_for_one_that_begins_like_it() -> None:
    with pytest.raises(InvalidInput, match="--data"):
        parser_of(toy_job.SPEC).parse_args(["--data", "folder"])
