"""`python -m tests.check PATH`: which tests belong to what was changed."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests import check
from tests.check import ROOT, Step, failed, find_tests, lanes, left_out, module_of, surroundings
from tests.running import until
from tests.support.examples import QUICK, examples

CASES = {
    "rayapp/core/deadline.py": "tests/unit/core/test_timing.py",
    "rayapp/text": "tests/unit/text/test_normalize.py",
    "rayapp/serve/deployments": "tests/with_ray/test_search_stop.py",
    "jobs/frame.py": "tests/unit/jobs/test_frame.py",
    "tests/unit/core": "tests/unit/core/test_timing.py",
    "tests/unit/core/test_timing.py": "tests/unit/core/test_timing.py",
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
    assert module_of(Path("rayapp/text/__init__.py")) == "rayapp.text"
    assert module_of(Path("jobs/frame.py")) == "jobs.frame"


@pytest.mark.process
@pytest.mark.parametrize("path", ["no/such.py", "/", "."])
def test_a_path_that_is_none_of_the_project_is_one_sentence(path: str) -> None:
    command = [sys.executable, "-m", "tests.check", path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{path} is no file or folder of this project" in done.stderr


def python(name: str, code: str) -> Step:
    return Step(name, [sys.executable, "-c", code])


@pytest.mark.process
def test_the_step_that_fails_ends_those_that_still_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the processes that it has started."""
    mark = tmp_path / "mark"
    forks = f"import os\nif pid := os.fork(): open({str(mark)!r}, 'w').write(str(pid))"
    forever = python("tests", f"{forks}\nimport time; time.sleep(600)")
    forked = f"import os\nwhile not os.path.exists({str(mark)!r}): pass"
    wrong = python("types", f"{forked}\nprint('wrong'); exit(1)")
    bad = failed([[forever], [wrong]], {})
    until(lambda: has_ended(int(mark.read_text())))
    assert bad is not None
    assert bad.name == "types"
    assert "== tests" in (text := capfd.readouterr().out)
    assert re.search(r"== types: .*\nwrong\n== types: [\d.]+ s", text, re.DOTALL)


@pytest.mark.process
def test_a_step_that_runs_alone_waits_for_the_other_lanes(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    slow = python("types", f"import time; time.sleep(0.5); open({str(mark)!r}, 'w')")
    last = Step("faults", [sys.executable, "-c", f"open({str(mark)!r})"], alone=True)
    assert failed([[python("tests", ""), last], [slow, python("more", "")]], {}) is None


def has_ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.process
def test_what_runs_beside_is_waited_for(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    late = python("types", f"import time; time.sleep(0.5); open({str(mark)!r}, 'w')")
    assert failed([[python("lint", "pass")], [late]], {}) is None
    assert mark.exists()


@pytest.mark.process
def test_a_step_begins_when_that_before_it_in_its_lane_has_ended(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    late = python("lint", f"import time; time.sleep(0.5); open({str(mark)!r}, 'w')")
    after = python("tests", f"open({str(mark)!r})")
    assert failed([[late, after], [python("types", "pass")]], {}) is None


def test_every_test_is_in_one_step_of_all() -> None:
    chosen = [step.command[step.command.index("-m", 3) + 1] for step in lanes(True)[0][-5:]]
    marks = ["process", "engine", "ray", "fault"]
    for taken in itertools.product([False, True], repeat=len(marks)):
        names = dict(zip(marks, taken, strict=True)) | {"realdata": False, "cluster": False}
        assert sum(eval(one, {}, names) for one in chosen) == 1, names


def test_fewer_examples_only_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(QUICK, raising=False)
    assert [examples(count) for count in (4, 12, 300)] == [4, 12, 300]
    for everything, tried in ((False, [4, 10, 60]), (True, [4, 10, 100])):
        monkeypatch.setenv(QUICK, surroundings(everything)[QUICK])
        assert [examples(count) for count in (4, 12, 300)] == tried


@pytest.mark.parametrize(("room", "in_memory"), [(0, True), (1 << 60, False)])
def test_files_of_tests_are_in_memory_where_it_has_room(
    room: int, in_memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "MEMORY_DISK", tmp_path)
    monkeypatch.setattr(check, "ROOM", room)
    monkeypatch.delenv("TMPDIR", raising=False)
    with check.scratch() as environment:
        assert list(map(str, tmp_path.iterdir())) == [*environment.values()]
        assert ("TMPDIR" in environment) == in_memory
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("TMPDIR", "mine")
    with check.scratch() as environment:
        assert not environment


@pytest.mark.process
@pytest.mark.parametrize(("module", "code"), [("ray", 2), ("json", 5)])
def test_a_unit_test_that_imports_ray_is_not_collected(
    module: str, code: int, tmp_path: Path
) -> None:
    unit = ROOT / "tests" / "unit" / "conftest.py"
    (tmp_path / "conftest.py").write_text(unit.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "ray.py").write_text("")
    (tmp_path / "test_one.py").write_text(f"import {module}\n")
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ("test_one.py imports ray" in done.stdout) == (module == "ray"), done.stdout
    assert done.returncode == code


def test_without_a_browser_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.browser.chromium", lambda: None)
    (line,) = (one for one in left_out([]) if "tests/browser" in one)
    assert "chromium missing" in line
    assert line.endswith("apt-get install chromium.")
