"""Forked test processes tell the same as one process."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.check import FORKS, ROOT

pytestmark = pytest.mark.process

MIXED = """
import os, warnings
import pytest

@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open(os.environ["STARTED"], "a") as file:
        file.write("x")

def test_passes(shared, tmp_path):
    (tmp_path / "file").write_text("")

def test_fails(shared):
    print("said before")
    assert [1, 2] == [1, 3]

def test_is_skipped():
    pytest.skip("not here")

def test_warns():
    warnings.warn("look at this")

@pytest.fixture
def breaks():
    yield
    raise ValueError("at the end")

def test_ends_badly(breaks):
    pass
"""
DIES = "import os\ndef test_first(): pass\ndef test_dies(): os._exit(7)\n"


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(folder)]
    return subprocess.run(
        [*command, *options, str(folder)],
        cwd=ROOT,
        env={"PATH": "", "STARTED": str(folder / "started")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_outcomes_output_and_warnings_are_those_of_one_process(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / f"test_{name}.py").write_text(MIXED)
    alone, forked = run(tmp_path), run(tmp_path, *FORKS, "2")
    for done in (alone, forked):
        assert done.returncode == 1
        counts = re.findall(r"(\d+) (\w+)", done.stdout.splitlines()[-1].split(" in ")[0])
        assert sorted(counts) == [
            ("3", "errors"), ("3", "failed"), ("3", "skipped"), ("3", "warnings"), ("9", "passed")
        ]  # fmt: skip
        assert done.stdout.count("E       assert [1, 2] == [1, 3]") == 3
        assert done.stdout.count("Captured stdout call") == 3
        assert done.stdout.count("E       ValueError: at the end") == 3
        assert "UserWarning: look at this" in done.stdout
    assert (tmp_path / "started").read_text() == "x" * 6


def test_a_process_that_dies_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "test_dies.py").write_text(DIES)
    done = run(tmp_path, *FORKS, "2")
    assert done.returncode == 1
    assert "a process ended (7) after" in done.stdout
    assert "test_dies.py::test_first" in done.stdout


def test_it_stops_at_the_first_failure_where_asked(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(MIXED)
    done = run(tmp_path, *FORKS, "2", "-x")
    assert done.returncode == 1
    assert "1 failed" in done.stdout
    assert "stopping after 1 failures" in done.stdout
