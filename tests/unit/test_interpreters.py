"""Which interpreters `tests.check --all` runs on."""

import platform
import tomllib
from pathlib import Path

import pytest

from tests.check import ROOT, lanes
from tests.interpreters import (
    SUPPORTED,
    SYSTEM_PYTHON,
    Interpreter,
    choose_interpreters,
    missing_versions,
)

SYSTEM = Interpreter(SYSTEM_PYTHON, "3.11.2")
OTHERS = [
    Interpreter(Path(f"{version}/bin/python3"), version)
    for version in ("3.11.7", "3.12.1", "3.12.10", "3.13.0")
]


@pytest.mark.parametrize(
    ("running", "chosen"),
    [
        ("3.11.7", ["3.11.2", "3.12.10", "3.13.0"]),
        ("3.11.2", ["3.12.10", "3.13.0"]),
        ("3.13.0", ["3.11.2", "3.12.10"]),
        ("3.12.1", ["3.11.2", "3.13.0"]),
    ],
)
def test_one_of_each_minor_version_and_the_systems_own(running: str, chosen: list[str]) -> None:
    found = choose_interpreters([SYSTEM, *OTHERS], running=running)
    assert [each.version for each in found] == chosen


def test_a_minor_version_that_is_not_here_is_named() -> None:
    found = choose_interpreters([SYSTEM], running="3.12.1")
    assert missing_versions(found, running="3.12.1") == ["3.13"]


def test_each_interpreter_is_installed_before_its_types_and_its_tests() -> None:
    """Types once for each minor version: the running one has them checked anyway."""
    running = platform.python_version().rpartition(".")[0]
    names = [step.name for step in lanes(True, [SYSTEM, *OTHERS[2:]])[1]]
    for each in (SYSTEM, *OTHERS[2:]):
        parts = ("install", "tests") if each.minor == running else ("install", "types", "tests")
        first = names.index(f"install {each.version}")
        assert names[first : first + len(parts)] == [f"{part} {each.version}" for part in parts]


def test_what_is_supported_is_what_the_project_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    last = int(SUPPORTED[-1].split(".")[1])
    assert project["requires-python"] == f">={SUPPORTED[0]},<3.{last + 1}"
    prefix = "Programming Language :: Python :: "
    assert project["classifiers"] == [prefix + minor for minor in SUPPORTED]
    listed = ", ".join(SUPPORTED[:-1])
    assert f"Python {listed} or {SUPPORTED[-1]}" in (ROOT / "README.md").read_text(encoding="utf-8")
