"""What is installed: the service and its jobs, and nothing that only tests need."""

import ast
import subprocess
import tomllib
from pathlib import Path

from jobs.build.client import REQUIRED, needed

ROOT = Path(__file__).resolve().parents[2]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"][
    "build"
]["targets"]["wheel"]
ONLY_IN_TESTS = {"tests", "pytest", "hypothesis", "schemathesis", "conftest"}


def packaged() -> list[Path]:
    """The tracked files of the packages in the wheel."""
    command = ["git", "ls-files", "--", *WHEEL["packages"], *WHEEL["force-include"]]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(line) for line in listed.stdout.splitlines()]


def imported(path: Path) -> set[str]:
    """The first names of all modules that a file imports."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def test_the_wheel_is_the_service_and_its_jobs() -> None:
    assert WHEEL["packages"] == ["rayapp", "jobs"]
    assert set(WHEEL["force-include"]) == {"configs"}


def test_no_file_of_the_wheel_is_a_test_or_imports_one() -> None:
    files = packaged()
    assert Path("rayapp/__main__.py") in files
    names = [path for path in files if path.name.startswith(("test_", "conftest"))]
    folders = [path for path in files if {"tests", "testing"} & set(path.parts)]
    importing = [path for path in files if path.suffix == ".py" and imported(path) & ONLY_IN_TESTS]
    assert (names, folders, importing) == ([], [], [])


def test_the_client_needs_nothing_that_only_the_service_needs() -> None:
    files, others = needed()
    assert others == set(REQUIRED)
    folders = {path.relative_to(ROOT / "rayapp").parts[0] for path in files}
    assert {"client", "wire", "core"} <= folders
    assert folders.isdisjoint({"api", "storage", "serve", "container", "local"})
