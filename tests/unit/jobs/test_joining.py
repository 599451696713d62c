"""How a driver joins a cluster: its submission, and the limit of its wait. No Ray."""

import subprocess
import sys

import pytest

from jobs import joining

WAITS = """
import time
from jobs.joining import _limited
with _limited("ray.example:6379", {limit_s}):
    time.sleep({wait_s})
print("joined")
"""


def waiting(limit_s: float, wait_s: float) -> subprocess.CompletedProcess[str]:
    code = WAITS.format(limit_s=limit_s, wait_s=wait_s)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_driver_of_a_submitted_job_knows_its_submission(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(joining.RAY_JOB_CONFIG, raising=False)
    assert joining.submission_id() is None
    monkeypatch.setenv(joining.RAY_JOB_CONFIG, '{"metadata": {"job_submission_id": "toy-1"}}')
    assert joining.submission_id() == "toy-1"
    monkeypatch.setenv(joining.RAY_JOB_CONFIG, "[]")
    assert joining.submission_id() is None


@pytest.mark.process
def test_a_driver_that_cannot_join_ends_and_says_what_to_do() -> None:
    ended = waiting(0.1, 60)
    assert ended.returncode == 4
    assert ended.stdout == (
        "The Ray cluster at ray.example:6379 did not let this job in within 0.1 s: run it again, "
        "and see `rayapp status` if it stays so.\n"
    )
    assert "most recent call first" in ended.stderr


@pytest.mark.process
def test_one_that_joins_in_time_goes_on() -> None:
    ended = waiting(60, 0)
    assert (ended.returncode, ended.stdout) == (0, "joined\n")
