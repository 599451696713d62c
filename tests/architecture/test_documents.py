"""What the documents promise is there: files, commands, settings, routes, jobs."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rayapp.api.auth import RULES
from rayapp.core.settings.load import setting_names
from rayapp.local.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "rayapp" / "ARCHITECTURE.md").read_text(encoding="utf-8")
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "rayapp").rglob("*.md")),
]
# Hosts and folders that belong to one machine, not to the project.
MACHINE = re.compile(
    r"/work/|\.\./shared|/opt/|files\.pythonhosted|registry\.npmjs|pypi\.org|/root/"
)
PATHS = re.compile(
    r"`((?:rayapp|jobs|tests|configs|admin|api|assistant|bulk|client|container|core|datagov"
    r"|documents|graphs|index|inference|learning|local|memory|search|serve|storage|text|wire)/[\w./-]+)`"
)
TRACKED = {".md", ".py", ".toml", ".yaml", ".yml", ".lock", ".env", ".json", ".txt", ""}
TOP_LEVEL = {
    "pyproject.toml",
    "rayapp",
    "jobs",
    "tests",
    "configs",
    "console",
    "cluster.yaml",
    "Dockerfile",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "requirements.lock",
    "examples",
}


def test_the_second_command_is_what_ci_runs() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    command = next(line for line in README.splitlines() if "tests.check --all" in line)
    assert command in ci.splitlines()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"rayapp (?:job )?([a-z_]+)", README))))
def test_every_command_in_the_readme_exists(name: str) -> None:
    known = {command.name or command.callback.__name__ for command in app.registered_commands
             if command.callback}  # fmt: skip
    known |= {str(group.name) for group in app.registered_groups}
    assert name in known or importlib.util.find_spec(f"jobs.{name}") is not None


def test_help_runs() -> None:
    assert CliRunner().invoke(app, ["--help"]).exit_code == 0


@pytest.mark.parametrize("name", sorted(set(re.findall(r"RAYAPP_([A-Z_]+)=", README))))
def test_every_setting_in_the_readme_exists(name: str) -> None:
    assert ".".join(name.lower().split("__")) in set(setting_names())


def test_what_curl_does_not_encode_by_itself_is_handed_to_it_for_that() -> None:
    """Curl sends a URL as it is written, and a proxy refuses raw Hebrew in it."""
    for path in DOCUMENTS:
        for line in path.read_text(encoding="utf-8").splitlines():
            for url in re.findall(r"curl[^|]*?(?:\$B|https?:)[^\s\"']*", line):
                assert url.isascii(), f"{path.name}: {line}"


def test_the_chat_part_of_the_readme_ends_the_stack_before_it_sets_a_model() -> None:
    lines = README.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("RAYAPP_MODELS__BASE_URL="))
    assert lines[start].endswith("rayapp up")
    assert lines[start - 1].endswith("rayapp down")


def test_every_route_in_the_readme_is_served() -> None:
    paths = {path for _, path in RULES}
    for method, path in re.findall(r"`(GET|POST) (/api/[^`?]+)", README):
        wanted = re.sub(r"\{[^}]+\}", "{memory_id}", path)
        assert (method, wanted) in RULES, f"{method} {wanted} not in {sorted(paths)}"


@pytest.mark.parametrize("text", [README, ARCHITECTURE], ids=["README", "ARCHITECTURE"])
def test_every_path_in_the_documents_exists(text: str) -> None:
    for path in re.findall(PATHS, text):
        assert (ROOT / path).exists() or (ROOT / "rayapp" / path).exists(), path


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = [int(p.name[:4]) for p in (ROOT / "rayapp" / "decisions").glob("*.md")]
    assert len(numbers) == len(set(numbers))


def test_the_top_level_holds_nothing_else() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = {path.partition("/")[0] for path in listed.stdout.splitlines()}
    assert {name for name in found if not name.startswith(".")} <= TOP_LEVEL


def test_nothing_names_a_machine_or_a_registry() -> None:
    own = Path(__file__).resolve()
    ci = ROOT / ".ci" / "run"  # the one file that may look for the evaluation sets beside it
    for folder in ("rayapp", "jobs", "tests", "configs", ".ci"):
        for path in (ROOT / folder).rglob("*"):
            plain = path.is_file() and path.suffix in TRACKED and path.stat().st_size < 300_000
            if plain and path not in (own, ci) and "__pycache__" not in path.parts:
                found = MACHINE.search(path.read_text(encoding="utf-8", errors="replace"))
                assert found is None, f"{path.relative_to(ROOT)} names {found and found.group()}"
    for path in (*DOCUMENTS, ROOT / "requirements.lock", ROOT / "pyproject.toml"):
        assert MACHINE.search(path.read_text(encoding="utf-8")) is None, path
