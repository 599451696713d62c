"""`python -m tests.check PATH`: which tests belong to what was changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.check import ROOT, find_tests, module_of

CASES = {
    "rayapp/domain/timing.py": "tests/unit/domain/test_timing.py",
    "rayapp/domain/text": "tests/unit/domain/text/test_normalize.py",
    "jobs/frame.py": "tests/unit/jobs/test_frame.py",
    "tests/unit/domain": "tests/unit/domain/test_timing.py",
    "tests/unit/domain/test_timing.py": "tests/unit/domain/test_timing.py",
}


@pytest.mark.parametrize(("path", "test"), CASES.items())
def test_what_is_named_brings_its_tests(
    path: str, test: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    found = find_tests([Path(path)])
    assert Path(test) in found
    assert len(found) < 100


def test_a_module_is_imported_by_its_name() -> None:
    assert module_of(Path("rayapp/domain/text/__init__.py")) == "rayapp.domain.text"
    assert module_of(Path("jobs/frame.py")) == "jobs.frame"


@pytest.mark.parametrize("path", ["no/such.py", "/", "."])
def test_a_path_that_is_none_of_the_project_is_one_sentence(path: str) -> None:
    command = [sys.executable, "-m", "tests.check", path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{path} is no file or folder of this project" in done.stderr
