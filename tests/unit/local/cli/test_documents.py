"""`rayapp documents` against the real API on in-memory stores."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.console import Console
from starlette.applications import Starlette
from typer.testing import CliRunner

from rayapp.api.app import create_api
from rayapp.client import SyncMemoryClient
from rayapp.documents.reading import read_document
from rayapp.documents.rules.library import book_id_of, sha256_of
from rayapp.documents.service import CLAIM_S
from rayapp.local.cli import documents
from rayapp.local.cli.app import app
from rayapp.local.stack import stack
from tests.support.harness import Harness
from tests.unit.fake_service import FakeService, serving


@dataclass
class RealApi(FakeService):
    """The real application on a socket, and an owner of documents that works while `works` is
    set."""

    world: Harness = field(default_factory=Harness.ready)
    stopped: threading.Event = field(default_factory=threading.Event)
    works: threading.Event = field(default_factory=threading.Event)

    def app(self) -> Starlette:
        return create_api(self.world.services)

    async def own(self) -> None:
        work = self.world.reading(read_document)
        while not self.stopped.is_set():
            if self.works.is_set():
                await work.run_once()
            await self.world.indexed()
            await self.world.clock.elapse(CLAIM_S)
            await asyncio.sleep(0.02)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[RealApi]:
    found = RealApi()
    found.works.set()
    with serving(found):
        monkeypatch.setattr(stack, "url_of", lambda folder: found.url)
        owner = threading.Thread(target=asyncio.run, args=(found.own(),))
        owner.start()
        yield found
        found.stopped.set()
        owner.join()


class Ran(NamedTuple):
    code: int
    said: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """`rayapp documents …`."""

    def invoke(*arguments: str) -> Ran:
        said = StringIO()
        monkeypatch.setattr(documents, "console", Console(file=said, width=200, markup=False))
        result = CliRunner().invoke(app, ["documents", *arguments])
        return Ran(result.exit_code, " ".join(said.getvalue().split()))

    return invoke


def test_files_of_a_folder_are_added_and_listed(
    service: RealApi, tmp_path: Path, run: Callable[..., Ran]
) -> None:
    (tmp_path / "גינה.md").write_text("# Garden\n\nאת הגינה משקים ביום שני.", encoding="utf-8")
    (tmp_path / "note.txt").write_text("The contract ends in May.", encoding="utf-8")
    code, said = run("add", str(tmp_path))
    assert code == 0, said
    assert "1 passage of Garden (doc_" in said
    (tmp_path / "again.txt").write_text("The contract ends in May. ", encoding="utf-8")
    code, said = run("add", str(tmp_path / "again.txt"))
    assert code == 0
    assert "Was here already, under another file. It is doc_" in said
    code, said = run("list")
    assert code == 0
    assert "Garden" in said
    assert "completed" in said
    code, said = run("add", str(tmp_path / "note.txt"))
    assert code == 0
    assert "1 passage of note (doc_" in said


def test_what_cannot_be_read_is_said_and_the_rest_goes_on(
    service: RealApi, tmp_path: Path, run: Callable[..., Ran]
) -> None:
    (tmp_path / "a.exe").write_bytes(b"x")
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7 broken")
    (tmp_path / "c.txt").write_text("words", encoding="utf-8")
    code, said = run("add", str(tmp_path), "--author", "Dana")
    assert code == 3
    assert "cannot be read" in said
    assert "b.pdf: " in said
    assert "1 passage of c" in said


def test_a_file_whose_name_is_not_utf_8_is_left_out(
    service: RealApi, tmp_path: Path, run: Callable[..., Ran]
) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("coffee")
    (tmp_path / "tea.txt").write_text("tea")
    code, said = run("add", str(tmp_path))
    assert code == 3
    assert r"The file name 'caf\udce9.txt' is not UTF-8: rename the file." in said
    assert "1 passage of tea (doc_" in said


def test_a_document_that_was_kept_before_is_waited_for(
    service: RealApi, tmp_path: Path, run: Callable[..., Ran]
) -> None:
    """As after a connection that broke when the service had taken the form."""
    file = tmp_path / "b.pdf"
    file.write_bytes(b"%PDF-1.7 broken")
    service.works.clear()
    with SyncMemoryClient(service.url) as client:
        kept_book = client.upload(file, wait=False)
    assert kept_book.status == "pending"
    threading.Timer(0.5, service.works.set).start()
    code, said = run("add", str(file))
    assert code == 3, said
    assert "is here already" not in said
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "b.txt").write_text("other words")
    (tmp_path / "b.txt").write_text("words")
    assert run("add", str(tmp_path / "b.txt")).code == 0
    code, said = run("add", str(tmp_path / "b" / "b.txt"))
    assert (code, "another title" in said) == (3, True), "other bytes are another document"


def test_files_of_one_name_are_called_by_their_folders(
    service: RealApi, tmp_path: Path, run: Callable[..., Ran]
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "plan.txt").write_text(f"A plan for {folder}.", encoding="utf-8")
    code, said = run("add", str(tmp_path))
    assert code == 0, said
    assert "1 passage of plan (doc_" in said
    assert "1 passage of b/plan (doc_" in said
    missing = tmp_path / "missing.txt"
    code, said = run("add", str(missing))
    assert (code, said.count(str(missing))) == (3, 1)


def test_documents_are_searched_and_deleted(
    service: RealApi, tmp_path: Path, run: Callable[..., Ran]
) -> None:
    file = tmp_path / "garden.md"
    file.write_text("# Garden\n\n## Water\n\nThe garden is watered on Monday.", encoding="utf-8")
    assert run("add", str(file)).code == 0
    code, said = run("search", "When is the garden watered?", "--section", "Water")
    assert code == 0
    assert "Garden, Garden > Water" in said
    assert "watered on Monday" in said
    for option in (("--section", "Fire"), ("--page", "3"), ("--author", "Noa")):
        assert "Nothing was found" in run("search", "garden", *option).said
    book_id = book_id_of(sha256_of(file.read_bytes()))
    assert run("delete", book_id) == (0, f"{book_id}: deleted, 1 passages.")
    assert "Nothing was found" in run("search", "garden", "--document", book_id).said


def test_one_title_is_for_one_file(service: RealApi, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    result = CliRunner().invoke(app, ["documents", "add", str(tmp_path), "--title", "x"])
    assert result.exit_code != 0
    assert "--title names one document" in str(result.exception)


def test_a_document_of_a_conversation_is_published(
    service: RealApi, tmp_path: Path, run: Callable[..., Ran]
) -> None:
    (tmp_path / "lease.txt").write_text("The lease ends in May.")
    code, said = run("add", str(tmp_path / "lease.txt"), "--conversation", "c1")
    assert code == 0, said
    book_id = book_id_of(sha256_of(b"The lease ends in May."), "c1")
    assert book_id in said
    assert book_id not in run("list").said
    assert book_id in run("list", "--conversation", "c1").said
    assert run("publish", book_id) == (0, f"{book_id}: The document is a book.")
    assert book_id in run("list").said
