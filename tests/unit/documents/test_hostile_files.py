"""Two hundred files made bad: each is read or refused within its limits, and nothing else."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.core.settings.load import load_settings
from rayapp.documents.ports import BookState
from rayapp.documents.reading import ReadLimits, read_document
from rayapp.documents.rules import kinds
from rayapp.memory.scope import ReadScope
from tests.support import office_files as files
from tests.support.harness import Harness
from tests.support.hostile_files import hostile
from tests.support.pdf_files import pdf_of
from tests.unit.api.serving import client_of
from tests.unit.documents.test_formats import HTML, RTF, html_table

pytestmark = pytest.mark.process
FILES = 200
LIMITS = ReadLimits(seconds=10)
# Starting and ending a process on a busy machine, seconds.
SPARE_S = 5
CODES = {
    *(kinds.WRONG_TYPE, kinds.BROKEN, kinds.ENCRYPTED, kinds.EMPTY, kinds.TOO_SLOW, kinds.MEMORY),
    "too_large",
}


def good_files() -> dict[str, bytes]:
    text = "# ראשי\n\nפסקה *נטויה*\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    page = f"<html><head><title>t</title></head><body>{HTML}{html_table()}</body></html>"
    body = files.word_paragraph("ראשי", "h1") + files.word_table(files.TABLE)
    return {
        "a.pdf": pdf_of([[("Heading", 24), ("some words", 11)], [("more words", 11)]], title="t"),
        "a.docx": files.docx_of(body),
        "a.pptx": files.pptx_of([[("title", "שקף"), ("body", "א\nב")]], table=True),
        "a.xlsx": files.xlsx_of({"one": files.TABLE, "two": files.TABLE}),
        "a.xls": files.xls_of_table(),
        "a.ods": files.ods_of("one", files.TABLE),
        "a.odt": files.odt_of(f"<text:p>פסקה</text:p>{files.odf_table(files.TABLE)}"),
        "a.epub": files.epub_of([HTML, html_table()]),
        "a.html": page.encode(),
        "a.rtf": RTF,
        "a.md": text.encode(),
        "a.csv": "\n".join(",".join(row) for row in files.TABLE).encode("cp1255"),
        "a.eml": b"From: a@example.org\nSubject: s\nContent-Type: text/html\n\n" + page.encode(),
        "a.txt": text.encode("utf-16"),
    }


def corpus() -> dict[str, bytes]:
    if "RAYAPP_REALDATA" not in os.environ:
        pytest.skip("RAYAPP_REALDATA names no folder")
    folder = Path(os.environ["RAYAPP_REALDATA"]) / "documents"
    return {p.name: p.read_bytes() for p in folder.rglob("*.*") if p.suffix != ".bin"}


async def reads(name: str, data: bytes) -> str:
    """What came of reading a file."""
    try:
        found = await read_document(data, name, LIMITS)
    except InvalidInput as error:
        return error.code
    assert found.blocks
    return "read"


class Sent:
    """The same over HTTP: a service that takes the files in, and its worker."""

    def __init__(self) -> None:
        settings = load_settings(env={}, overrides={"documents": {"read_s": LIMITS.seconds}})
        self._world = Harness.ready(settings)
        self._work = self._world.reading(read_document)
        self._sent = 0

    async def __call__(self, name: str, data: bytes) -> str:
        self._sent += 1
        async with client_of(self._world.services) as api:
            sent = {"file": (f"{self._sent}-{name}", data)}
            answer = await api.post("/api/memory/books", files=sent)
            body = answer.json()
            if answer.status_code != 200:
                assert 400 <= answer.status_code < 500, answer.text
                return str(body["code"])
            await self._work.run_once()
            book = await self._world.books.get(ReadScope("admin"), body["book_id"])
            # What is kept is no memory of the service.
            self._world.items.inner._rows.clear()
            self._world.books.rows.clear()
            if book is None or book.state is not BookState.FAILED:
                return "read"
            assert (book.error or "").endswith(".")
            assert book.chunks == 0
            return str(book.error_code)


@pytest.mark.parametrize(
    ("good", "make"),
    [(good_files, Sent), pytest.param(corpus, lambda: reads, marks=pytest.mark.realdata)],
    ids=("sent", "corpus"),
)
async def test_files_made_bad(
    good: Callable[[], dict[str, bytes]],
    make: Callable[[], Callable[[str, bytes], Awaitable[str]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = make()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    others, memory = children(), 0.0
    seen: dict[str, int] = {}
    for number, (name, data) in enumerate(hostile(good(), FILES, seed=1)):
        if number == FILES // 2:
            memory = resident_mb()  # all that is loaded once is there
        begun = time.monotonic()
        outcome = await tried(name, data)
        seen[outcome] = seen.get(outcome, 0) + 1
        assert time.monotonic() - begun < LIMITS.seconds + SPARE_S
    assert sum(seen.values()) == FILES
    assert set(seen) <= CODES | {"read"}
    assert {"read", kinds.BROKEN} <= set(seen), seen
    assert os.listdir(tmp_path) == []
    assert resident_mb() - memory < 50
    assert set(children()) <= set(others)


@pytest.mark.parametrize(
    "tried",
    [
        "open('x', 'w')",
        "open('x', 'a')",
        "os.open('x', os.O_CREAT)",
        "os.mkdir('x')",
        "os.remove('x')",
        "os.system('true')",
        "socket.create_connection(('127.0.0.1', 9))",
    ],
)
def test_a_reader_neither_writes_nor_calls(tried: str, tmp_path: Path) -> None:
    limits = {"memory_mb": 500, "seconds": 5}
    code = (
        "import os, socket\nfrom rayapp.documents.reader_process import limit_process\n"
        f"limit_process({limits})\n"
        f"try:\n    {tried}\nexcept PermissionError:\n    print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=tmp_path)
    assert done.stdout == b"refused\n"
    assert list(tmp_path.iterdir()) == []


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


def children() -> list[str]:
    """Processes of ours that are left."""
    task = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return task.read_text().split() if task.exists() else []
