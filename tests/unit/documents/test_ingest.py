"""A folder of files, on in-memory stores and with the real readers."""

import os
from pathlib import Path

import pytest

from rayapp.bulk.model import PartitionRow
from rayapp.bulk.params import DOCUMENTS, KINDS, checked_params, normal_form
from rayapp.core.errors import DependencyDown, InvalidInput
from rayapp.documents.ingest import DocumentsIngest
from rayapp.documents.ports import BookQuery
from rayapp.documents.reading import read_document
from rayapp.documents.service import CLAIM_S
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.harness import Harness

DANA = ReadScope("dana")


def ingest(world: Harness, folder: Path) -> DocumentsIngest:
    return DocumentsIngest(
        world.services.books,
        world.reading(read_document),
        folder,
        "dana",
        "Omri",
        world.clock.elapse,
    )


async def ran(work: DocumentsIngest) -> tuple[dict[str, object], bool]:
    plan = await work.plan()
    await work.begin(plan.facts)
    rows = []
    for part in plan.partitions:
        step = await work.step(part, None)
        assert (step.cursor, step.done) == (None, 1)
        assert type(step.failed) is int  # the store adds it up
        rows.append(
            PartitionRow(
                job_id="j",
                index=part.index,
                payload=part.payload,
                counts=step.counts,
                samples=step.samples,
            )
        )
    finish = await work.finish(rows)
    return dict(finish.report), finish.complete


async def test_every_file_is_taken_in_once(tmp_path: Path) -> None:
    world = Harness.ready()
    (tmp_path / "below").mkdir()
    (tmp_path / "a.txt").write_text("The contract ends in May.", encoding="utf-8")
    (tmp_path / "below" / "ב.md").write_text("# גינה\n\nמשקים ביום שני.", encoding="utf-8")
    (tmp_path / "c.txt").write_text("The contract ends in May.  ", encoding="utf-8")
    (tmp_path / "below" / "a.txt").write_text("Another text of this name.", encoding="utf-8")
    (tmp_path / "d.pdf").write_bytes(b"%PDF-1.7 broken")
    (tmp_path / "e.exe").write_bytes(b"x")
    report, complete = await ran(ingest(world, tmp_path))
    assert not complete
    assert (report["files"], report["stored"], report["recognised"], report["failed"]) == (
        5,
        3,
        1,
        1,
    )
    assert "broken" in str(report["errors"])
    (tmp_path / "d.pdf").unlink()
    report, complete = await ran(ingest(world, tmp_path))
    assert complete
    assert report["here_already"] == 4
    books, _ = await world.services.books.page(DANA, BookQuery())
    assert {book.author for book in books} == {"Omri"}


async def test_a_file_whose_name_is_not_utf_8_fails_alone(tmp_path: Path) -> None:
    world = Harness.ready()
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("coffee")
    (tmp_path / "tea.txt").write_text("tea")
    plan = await ingest(world, tmp_path).plan()
    for part in plan.partitions:
        str(part.payload["file"]).encode()  # as a store does
    report, complete = await ran(ingest(world, tmp_path))
    assert not complete
    assert (report["stored"], report["failed"]) == (1, 1)
    sentence = r"The file name 'caf\udce9.txt' is not UTF-8: rename the file."
    assert report["errors"] == [{"file": r"'caf\udce9.txt'", "error": sentence}]


async def test_a_kept_file_is_taken_up_again(tmp_path: Path) -> None:
    """A worker that died between keeping a file and reading it."""
    world = Harness.ready()
    text = "The contract ends in May."
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    kept = await world.services.books.upload(WriteScope("dana"), text.encode(), "a.txt")
    report, _ = await ran(ingest(world, tmp_path))
    assert report["stored"] == 1
    assert (await world.services.books.get(DANA, kept.book_id)).chunks == 1


async def test_a_kept_file_that_cannot_be_read_has_failed(tmp_path: Path) -> None:
    world = Harness.ready()
    data = b"%PDF-1.7 broken"
    (tmp_path / "a.pdf").write_bytes(data)
    await world.services.books.upload(WriteScope("dana"), data, "a.pdf")
    report, complete = await ran(ingest(world, tmp_path))
    assert not complete
    assert report["failed"] == 1
    assert "broken" in str(report["errors"])


async def test_a_file_that_another_process_reads_is_waited_for(tmp_path: Path) -> None:
    """One that died: its claim ends."""
    world = Harness.ready()
    text = b"The contract ends in May."
    (tmp_path / "a.txt").write_bytes(text)
    kept = await world.services.books.upload(WriteScope("dana"), text, "a.txt")
    assert await world.books.claim(token="other", claim_s=CLAIM_S, only=kept)
    report, complete = await ran(ingest(world, tmp_path))
    assert complete
    assert report["stored"] == 1
    assert world.clock.monotonic() >= CLAIM_S


async def test_what_nobody_ends_is_told_as_something_away(tmp_path: Path) -> None:
    world = Harness.ready()
    text = b"The contract ends in May."
    (tmp_path / "a.txt").write_bytes(text)
    kept = await world.services.books.upload(WriteScope("dana"), text, "a.txt")
    assert await world.books.claim(token="other", claim_s=3_600, only=kept)
    with pytest.raises(DependencyDown, match="run the job again"):
        await ran(ingest(world, tmp_path))


async def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    world = Harness.ready()
    with (tmp_path / "a.txt").open("wb") as file:
        file.truncate(1 << 40)
    report, complete = await ran(ingest(world, tmp_path))
    assert not complete
    assert "cut it into" in str(report["errors"])


async def test_no_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is no folder"):
        await ingest(Harness.ready(), tmp_path / "none").plan()


def test_only_a_command_line_names_a_folder(tmp_path: Path) -> None:
    asked = {"folder": str(tmp_path), "user_id": "dana"}
    assert normal_form(KINDS[DOCUMENTS], asked) == asked
    for wrong in ({"folder": str(tmp_path)}, {"user_id": "dana"}):
        with pytest.raises(InvalidInput, match="--folder and --user"):
            normal_form(KINDS[DOCUMENTS], wrong)
    for request in (asked, {}):
        with pytest.raises(InvalidInput):
            checked_params(DOCUMENTS, request)
