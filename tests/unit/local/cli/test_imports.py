"""`rayapp import` against the real API on in-memory stores."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from starlette.applications import Starlette
from typer.testing import CliRunner

from rayapp.api.app import create_api
from rayapp.core.errors import InvalidInput
from rayapp.local.cli import imports
from rayapp.local.cli.app import app
from rayapp.local.stack import stack
from tests.support.foreign_exports import SAMPLES
from tests.support.harness import Harness
from tests.unit.fake_service import FakeService, serving


@dataclass
class RealApi(FakeService):
    world: Harness = field(default_factory=Harness.ready)

    def app(self) -> Starlette:
        return create_api(self.world.services)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """`rayapp import …`: what it says."""
    found = RealApi()

    def invoke(*arguments: str) -> str:
        said = StringIO()
        monkeypatch.setattr(imports, "console", Console(file=said, width=200, markup=False))
        result = CliRunner().invoke(app, ["import", *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return " ".join(said.getvalue().split())

    with serving(found):
        monkeypatch.setattr(stack, "url_of", lambda folder: found.url)
        yield invoke


def test_a_dry_run_says_what_would_come_and_what_not(
    run: Callable[..., str], tmp_path: Path
) -> None:
    name, made = SAMPLES["chatgpt"]
    path = tmp_path / name
    path.write_bytes(made())
    said = run(str(path), "--from", "chatgpt", "--dry-run")
    assert "left out: 1 image: memories are words" in said
    assert "2 memories would be imported, 0 are here." in said
    assert '"stage":"dry run","done":5,"total":5' in said
    assert "2 memories were imported" in run(str(path), "--from", "chatgpt")
    assert "0 memories were imported, 2 are here." in run(str(path), "--from", "chatgpt")


def test_a_folder_of_notes_comes_in(run: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("המשאבה אדומה", encoding="utf-8")
    assert "1 memories were imported" in run(str(tmp_path), "--from", "markdown")


def test_a_note_whose_name_is_not_utf_8_is_named(run: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("coffee")
    with pytest.raises(InvalidInput, match=r"'caf\\udce9.md' is not UTF-8: rename the file"):
        run(str(tmp_path), "--from", "markdown")


@pytest.mark.parametrize(
    ("name", "source", "why"), [("none.zip", "mem0", "is not there"), (".", "notion", "is none of")]
)
def test_what_cannot_be_read_is_said(
    run: Callable[..., str], tmp_path: Path, name: str, source: str, why: str
) -> None:
    with pytest.raises(InvalidInput, match=why):
        run(str(tmp_path / name), "--from", source)
