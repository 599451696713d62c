"""A toy job on the real cluster and the real store: everything that may die, dies."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from rayapp.bulk.model import DesiredState, Job, JobState, PartitionState
from rayapp.bulk.ports import JobStore
from rayapp.container import bootstrap
from rayapp.core.settings.model import Settings
from rayapp.local.stack.paths import StackPaths, write_private
from tests.running import RunningService, until
from tests.support.ports import free_port

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.fault]

TOY = "tests.integration.toys.toy_job"
# Shorter than the default, so that a killed driver's lease is soon over.
LEASE_S = 6.0
# A driver imports Ray and starts actors: seconds on a quiet machine, a minute on a full one.
LIMIT_S = 180.0


@dataclass
class Toys:
    """Drivers of the toy job, attached to the shared stack through a folder of their own."""

    service: RunningService
    folder: Path
    logs: Path
    compiled: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", TOY, "--data-dir", str(self.folder)]
        process = subprocess.Popen(
            [*command, "--folder", str(self.logs), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment(),
        )
        self.started.append(process)
        return process

    def environment(self) -> dict[str, str]:
        """Modules compiled by one driver serve the next ones, outside the checkout."""
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return env | {"PYTHONPYCACHEPREFIX": str(self.compiled)}

    def go(self) -> None:
        """No more pauses in steps."""
        (self.logs / "go").touch()

    def run(self, *arguments: str) -> tuple[int, str]:
        return ended(self.start(*arguments))

    def steps(self) -> list[tuple[str, str, int]]:
        """(from, to, pid) of every step that was made."""
        found = []
        for path in self.logs.glob("*.log"):
            for line in path.read_text(encoding="utf-8").splitlines():
                start, end, pid = line.split()
                found.append((start, end, int(pid)))
        return found

    def working(self, steps: int) -> None:
        """Wait until so many steps were made."""
        until(lambda: len(self.steps()) >= steps, LIMIT_S)

    @property
    def settings(self) -> Settings:
        text = StackPaths.of(self.folder).settings.read_text(encoding="utf-8")
        return Settings.model_validate_json(text)

    @property
    def store(self) -> JobStore:
        return bootstrap.Stores(self.settings).jobs

    async def lease(self) -> Any:
        return await bootstrap.Stores(self.settings).leases.current("job:toy_job")

    def driving(self, runs: list[subprocess.Popen[str]]) -> subprocess.Popen[str] | None:
        """Which of them has the lease now."""
        lease = asyncio.run(self.lease())
        found = (run for run in runs if lease and f":{run.pid}:" in lease.holder)
        return next(found, None)

    def job(self) -> Job:
        """The last one of this test."""

        async def find() -> Job:
            jobs = await self.store.recent("toy_job", 20)
            return next(job for job in jobs if job.params.get("folder") == str(self.logs))

        return asyncio.run(find())

    def rows(self) -> list[Any]:
        job = self.job()
        return asyncio.run(self._rows(job.job_id))

    async def _rows(self, job_id: str) -> list[Any]:
        return await self.store.partitions(job_id)

    def set_desired_state(self, wish: DesiredState) -> None:
        job = self.job()

        async def ask() -> None:
            await self.store.set_desired_state(job.job_id, wish)

        asyncio.run(ask())


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=LIMIT_S)
    return process.returncode, output


@pytest.fixture
def toys(
    service: RunningService, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Toys]:
    folder, logs = tmp_path / "stack", tmp_path / "logs"
    logs.mkdir()
    view(service, folder, {"jobs": {"lease_s": LEASE_S}})
    made = Toys(service, folder, logs, tmp_path_factory.getbasetemp() / "compiled")
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def view(service: RunningService, folder: Path, changes: dict[str, dict[str, Any]]) -> None:
    """A folder that names the shared stack, with other settings."""
    theirs, ours = StackPaths.of(service.folder), StackPaths.of(folder)
    ours.run.mkdir(parents=True)
    settings = json.loads(theirs.settings.read_text(encoding="utf-8"))
    for group, values in changes.items():
        settings[group] |= values
    write_private(ours.settings, json.dumps(settings))
    write_private(ours.state, theirs.state.read_text(encoding="utf-8"))


def assert_all_worked_once(toys: Toys, job: Job, *, repeated: int) -> None:
    """Every number was worked on and counted once; `repeated` steps at most were made again."""
    made = Counter((int(start), int(end)) for start, end, _ in toys.steps())
    numbers = {n for start, end in made for n in range(start, end)}
    assert numbers == set(range(job.total))
    assert made.total() - len(made) <= repeated
    assert (job.done, job.failed, job.state) == (job.total, 0, JobState.COMPLETED)
    assert job.counts == {"even": job.total // 2}


def assert_not_redone(toys: Toys, finished: list[Any], before: int) -> None:
    """No step of a partition that was done before was made after."""
    ranges = [(row.payload["from"], row.payload["to"]) for row in finished]
    late = sorted(toys.steps(), key=lambda step: step[2])
    assert len(late) > before
    made = Counter((int(start), int(end)) for start, end, _ in late)
    for (start, _), times in made.items():
        if any(low <= start < high for low, high in ranges):
            assert times == 1


def test_a_killed_worker_is_replaced_while_a_second_driver_is_refused(toys: Toys) -> None:
    out = toys.logs / "report.json"
    first = toys.start("--parts", "30", "--pause-s", "0.5", "--concurrency", "1", "--out", str(out))
    toys.working(2)
    second, preview = toys.start("--no-resume"), toys.start("--dry-run")
    killed = toys.steps()[-1][2]
    psutil.Process(killed).kill()
    until(lambda: any(step[2] != killed for step in toys.steps()), LIMIT_S)
    code, text = ended(second)
    toys.go()
    assert code == 2, text
    assert toys.job().job_id in text
    code, text = ended(preview)
    assert code == 0, text
    assert "nothing was written" in text
    code, text = ended(first)
    assert code == 0, text
    job = toys.job()
    assert_all_worked_once(toys, job, repeated=1)
    assert job.attempts == 1
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["report"] == {"numbers": 600, "complete": True}


def test_paused_then_killed_then_resumed_it_does_everything_once(toys: Toys) -> None:
    arguments = ("--parts", "8", "--pause-s", "0.2", "--concurrency", "2")
    first = toys.start(*arguments)
    toys.working(3)
    toys.set_desired_state(DesiredState.PAUSE)
    code, text = ended(first)
    assert code == 3, text
    paused = toys.job()
    assert paused.state is JobState.PAUSED
    assert 0 < paused.done < paused.total
    made = len(toys.steps())
    second = toys.start(*arguments)
    toys.working(made + random.randint(2, 8))
    second.kill()
    second.communicate()
    # Its workers die with it: when nothing moves any more, the checkpoints are final.
    still(lambda: len(toys.steps()))
    finished = [row for row in toys.rows() if row.state is PartitionState.DONE]
    before = len(toys.steps())
    toys.go()
    code, text = toys.run(*arguments)
    assert code == 0, text
    job = toys.job()
    assert job.job_id == paused.job_id
    assert job.attempts == 2  # the one that was paused left in order
    assert_not_redone(toys, finished, before)
    assert_all_worked_once(toys, job, repeated=2)


def test_a_driver_that_stood_still_takes_its_lease_back_and_goes_on(toys: Toys) -> None:
    first = toys.start("--parts", "30", "--pause-s", "0.5", "--concurrency", "2")
    toys.working(3)
    before = toys.job()
    first.send_signal(signal.SIGSTOP)
    until(lambda: asyncio.run(toys.lease()) is None, LIMIT_S)
    first.send_signal(signal.SIGCONT)
    until(lambda: toys.job().fence > before.fence, LIMIT_S)
    toys.go()
    code, text = ended(first)
    assert code == 0, text
    job = toys.job()
    assert (job.job_id, job.attempts) == (before.job_id, 1)
    assert_all_worked_once(toys, job, repeated=2)


def test_a_second_run_follows_takes_over_and_is_followed_in_its_turn(toys: Toys) -> None:
    # Long enough that it goes on when the second command has started, whatever that takes.
    arguments = ("--parts", "90", "--pause-s", "0.5", "--concurrency", "2")
    runs = [toys.start(*arguments)]
    toys.working(3)
    runs.append(toys.start(*arguments))
    assert runs[1].stdout is not None
    assert runs[1].stdout.readline()  # it is there, and follows
    # On a full machine the second one may have taken over by itself.
    until(lambda: toys.driving(runs) is not None, LIMIT_S)
    stopped = toys.driving(runs)
    assert stopped is not None
    stopped.send_signal(signal.SIGSTOP)
    until(lambda: toys.driving(runs) not in (None, stopped), LIMIT_S)
    stopped.send_signal(signal.SIGCONT)
    toys.go()
    ends = [ended(run) for run in runs]
    job = toys.job()
    for code, text in ends:
        assert code == 0, text
        assert f"Job {job.job_id} is done: {job.total} records." in text
    assert_all_worked_once(toys, job, repeated=4)


@pytest.mark.parametrize(
    ("number", "state"), [(signal.SIGTERM, JobState.SUBMITTED), (signal.SIGINT, JobState.PAUSED)]
)
def test_a_stopped_driver_leaves_a_job_that_is_cancelled_at_once(
    toys: Toys, number: signal.Signals, state: JobState
) -> None:
    first = toys.start("--parts", "40", "--pause-s", "0.3", "--concurrency", "1")
    toys.working(2)
    first.send_signal(number)
    code, text = ended(first)
    assert code == 3, text
    paused = toys.job()
    assert paused.job_id in text
    assert paused.state is state
    assert 0 < paused.done < paused.total
    assert asyncio.run(toys.lease()) is None
    toys.set_desired_state(DesiredState.CANCEL)
    assert toys.job().state is JobState.CANCELLED


def test_exit_codes_of_a_bug_of_a_store_that_is_away_and_of_bad_arguments(
    service: RunningService, toys: Toys, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    view(service, away, {"mongo": {"uri": f"mongodb://127.0.0.1:{free_port()}"}})
    broken = toys.start("--breaks", "--parts", "2", "--concurrency", "1")
    alone = toys.start("--data-dir", str(away))
    wrong = toys.start("--parts", "0")
    code, text = ended(wrong)
    assert code == 2, text
    assert text.strip() == "--parts must be 1 or more."
    code, text = ended(alone)
    assert code == 4, text
    assert "Traceback" not in text
    code, text = ended(broken)
    assert code == 3, text
    job = toys.job()
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert "ValueError: this partition is broken" in job.error
    assert job.error in text


def test_the_launcher_runs_a_stored_job_that_ray_lists(toys: Toys) -> None:
    params = {"folder": str(toys.logs), "parts": 2, "size": 20, "batch": 5}
    params |= {"pause_s": 0.0, "breaks": False}

    async def stored() -> Job:
        job = Job(
            job_id=bootstrap.new_id(),
            kind="toy_job",
            params=params,
            created_at=await bootstrap.Stores(toys.settings).scan.now(),
        )
        await toys.store.create(job)
        return job

    job = asyncio.run(stored())
    command = [sys.executable, "-m", "tests.integration.toys.submit", str(toys.folder), job.job_id]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=toys.environment(),
    )
    assert done.returncode == 0, done.stderr
    known = json.loads(done.stdout.splitlines()[-1])
    assert known["status"] == "SUCCEEDED", known["log"]
    assert known["metadata"]["job_name"] == "toy_job"
    assert known["env"] == {"RAYAPP_DATA__DIR": str(toys.folder)}
    after = toys.job()
    assert after.job_id == job.job_id
    assert after.submission_id == known["submission_id"]
    assert_all_worked_once(toys, after, repeated=0)


def still(value: Callable[[], int], quiet_s: float = 1.5) -> None:
    """Wait until `value` has not changed for some time."""
    last, since = value(), time.monotonic()
    while time.monotonic() - since < quiet_s:
        time.sleep(0.1)
        if (now := value()) != last:
            last, since = now, time.monotonic()
