"""How well and how fast files are read.

Of every file of the corpus (RAYAPP_REALDATA/documents) and of files made here in every format from
the same known text: characters lost, Hebrew words intact, cells found with their column, seconds,
peak memory of the reader process. At the end a PDF of 500 pages in Hebrew.

    python -m tests.bench.document_readers [--pages 500] [--only docx] [--out report.json]
"""

import argparse
import asyncio
import csv
import difflib
import io
import multiprocessing
import os
import re
import resource
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from xml.sax.saxutils import escape

from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.core.errors import InvalidInput, RayappError
from rayapp.documents.reading import ReadLimits, read_document
from rayapp.documents.records import BlockKind, Extracted
from tests.bench.arguments import positive
from tests.support import office_files as files
from tests.support.pdf_files import drawn_pdf

LIMITS = ReadLimits(seconds=120)
# Files of the corpus whose text is known: that of another one.
SAME_TEXT, SAME_CELLS = "heq_utf8.txt", "datagov_300_utf8bom.csv"
ENGLISH = "test_wikipedia.html"
LINE, LINES = 80, 40  # characters of a line and lines of a page of the PDFs made here
SIZE = 10
_HEBREW = re.compile("[\u05d0-\u05ea]")
_WORD = re.compile(r"[^\W_]+(?:['\"׳״][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Case:
    """A file, and what is known of it."""

    name: str
    data: bytes
    text: str | None = None
    cells: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """Shares are of 1; None where nothing is known."""

    name: str
    lost: float | None
    hebrew_intact: float | None
    cells_found: float | None
    seconds: float
    memory_mb: int
    blocks: int
    characters: int
    note: str = ""


def read(name: str, data: bytes) -> tuple[Extracted | str, float, int]:
    """In a process of its own, whose one child is the reader: what it read or why not, seconds,
    the most memory that the reader held, MB (at least that of this process, which it starts as)."""
    begun = time.perf_counter()
    found: Extracted | str
    try:
        found = asyncio.run(read_document(data, name, LIMITS))
    except RayappError as error:
        found = error.code
    taken = time.perf_counter() - begun
    return found, taken, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024


def measured(case: Case) -> Row:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        found, seconds, memory_mb = pool.submit(read, case.name, case.data).result()
    if isinstance(found, str):
        return Row(case.name, None, None, None, seconds, memory_mb, 0, 0, found)
    lost, intact = compare(case.text, found.text) if case.text else (None, None)
    cells = share_of_cells(case.cells, found) if case.cells else None
    return Row(case.name, lost, intact, cells, seconds, memory_mb, len(found.blocks),
               len(found.text), found.language)  # fmt: skip


def compare(known: str, read_text: str) -> tuple[float, float | None]:
    """Share of the letters and signs of the known text that are lost, with those of words that
    stand elsewhere; share of its Hebrew words that are there in their order, letter by letter."""
    wanted, got = known.split(), read_text.split()
    matcher = difflib.SequenceMatcher(None, wanted, got, autojunk=False)
    lost = 0
    for kind, start, end, other, other_end in matcher.get_opcodes():
        if kind != "equal":
            lost += _lost("".join(wanted[start:end]), "".join(got[other:other_end]))
    hebrew = [word for word in _WORD.findall(known) if _HEBREW.search(word)]
    words = [word for word in _WORD.findall(read_text) if _HEBREW.search(word)]
    blocks = difflib.SequenceMatcher(None, hebrew, words, autojunk=False).get_matching_blocks()
    intact = sum(block.size for block in blocks) / len(hebrew) if hebrew else None
    return lost / sum(map(len, wanted)), intact


def _lost(wanted: str, got: str) -> int:
    blocks = difflib.SequenceMatcher(None, wanted, got, autojunk=False).get_matching_blocks()
    return len(wanted) - sum(block.size for block in blocks)


def share_of_cells(cells: Sequence[tuple[str, str]], found: Extracted) -> float:
    """Of those that stand in a row of a table behind the name of their column."""
    rows = "\n".join(b.text for b in found.blocks if b.kind is BlockKind.TABLE_ROW)
    return sum(f"{name}: {value}" in rows for name, value in cells) / len(cells)


def corpus(folder: Path) -> Iterator[Case]:
    known = (folder / "he" / SAME_TEXT).read_text(encoding="utf-8")
    cells = tuple(_cells(folder / "he" / SAME_CELLS))
    for path in sorted(folder.rglob("*.*")):
        text = known if path.name.startswith("heq") and path.suffix != ".pdf" else None
        yield Case(
            path.name, path.read_bytes(), text, cells if path.name.startswith("datagov") else ()
        )


def _cells(path: Path) -> Iterator[tuple[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            for name, value in row.items():
                if value.strip():
                    yield name, " ".join(value.split())


def made(paragraphs: Sequence[tuple[str, str]], language: str) -> Iterator[Case]:
    """Every format, of (heading, text) and a table."""
    head, *rows = files.TABLE
    cells = tuple((n, v) for row in rows for n, v in zip(head, row, strict=True) if v)
    text = "\n".join(f"{heading}\n{body}" for heading, body in paragraphs)
    word = "".join(
        files.word_paragraph(heading, "h1") + files.word_paragraph(body)
        for heading, body in paragraphs
    )
    odf = "".join(
        f'<text:h text:outline-level="1">{escape(heading)}</text:h><text:p>{escape(body)}</text:p>'
        for heading, body in paragraphs
    )
    html = "".join(f"<h1>{escape(h)}</h1><p>{escape(body)}</p>" for h, body in paragraphs)
    html += "<table>{}</table>".format(
        "".join(f"<tr>{''.join(f'<td>{v}</td>' for v in row)}</tr>" for row in files.TABLE)
    )
    markdown = "\n\n".join(f"# {heading}\n\n{escape(body)}" for heading, body in paragraphs)
    markdown += "\n\n" + "\n".join(f"|{'|'.join(row)}|" for row in (head, ["-"] * 3, *rows))
    page = f'<html><head><meta charset="utf-8"></head><body>{html}</body></html>'
    slides = [[("title", heading), ("body", body)] for heading, body in paragraphs]
    letter = b"Subject: s\nContent-Type: text/html; charset=utf-8\n\n" + page.encode()
    yield Case(f"{language}.docx", files.docx_of(word + files.word_table(files.TABLE)), text, cells)
    yield Case(f"{language}.odt", files.odt_of(odf + files.odf_table(files.TABLE)), text, cells)
    yield Case(f"{language}.pptx", files.pptx_of(slides, table=True), text, cells)
    yield Case(f"{language}.html", page.encode(), text, cells)
    yield Case(f"{language}.epub", files.epub_of([html]), text, cells)
    yield Case(f"{language}.md", markdown.encode(), text, cells)
    yield Case(f"{language}.eml", letter, text, cells)
    yield Case(f"{language}.rtf", _rtf(paragraphs).encode("ascii"), text, cells)
    yield Case(f"{language}.xlsx", files.xlsx_of({"one": files.TABLE}), cells=cells)
    yield Case(f"{language}.ods", files.ods_of("one", files.TABLE), cells=cells)
    yield Case(f"{language}.xls", files.xls_of_table(), cells=cells)
    tabs = "\n".join("\t".join(row) for row in files.TABLE)
    yield Case(f"{language}.tsv", tabs.encode("utf-16"), cells=cells)
    yield Case(f"{language}.pdf", drawn_pdf(list(pages_of(paragraphs))), text)


def _rtf(paragraphs: Sequence[tuple[str, str]]) -> str:
    def coded(text: str) -> str:
        return "".join(c if c.isascii() and c not in "\\{}" else f"\\u{ord(c)}?" for c in text)

    body = "".join(f"\\pard\\s1 {coded(h)}\\par\\pard {coded(text)}\\par" for h, text in paragraphs)
    rows = "".join(
        "\\trowd\\pard\\intbl " + "".join(f"{coded(value)}\\cell " for value in row) + "\\row"
        for row in files.TABLE
    )
    return f"{{\\rtf1\\ansi{{\\stylesheet{{\\s1 heading 1;}}}}{body}{rows}\\pard\\par}}"


def pages_of(paragraphs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, float]]]:
    """Lines of pages, headings larger."""
    lines: list[tuple[str, float]] = []
    for heading, body in paragraphs:
        lines += [(heading, 1.6 * SIZE), *((line, SIZE) for line in textwrap.wrap(body, LINE))]
    for at in range(0, len(lines), LINES):
        yield lines[at : at + LINES]


def long_pdf(paragraphs: Sequence[tuple[str, str]], pages: int) -> Case:
    one = list(pages_of(paragraphs))
    whole = [one[number % len(one)] for number in range(pages)]
    return Case(f"{pages}_pages.pdf", drawn_pdf(whole))


def paragraphs_of(text: str) -> list[tuple[str, str]]:
    """Blocks of a heading and a paragraph, as the texts of the corpus are."""
    parts = [part.strip().partition("\n") for part in text.split("\n\n") if "\n" in part.strip()]
    return [(heading, " ".join(body.split())) for heading, _, body in parts]


def english_of(page: bytes) -> Iterator[tuple[str, str]]:
    """Headings and paragraphs of a page of the corpus, as text to write files with."""
    heading = "Text"
    for block in asyncio.run(read_document(page, ENGLISH, LIMITS)).blocks:
        if block.kind is BlockKind.HEADING:
            heading = " ".join(block.text.split())
        elif block.kind is BlockKind.PARAGRAPH and block.text.isascii() and len(block.text) > LINE:
            yield heading, " ".join(block.text.split())


def real_documents() -> Path:
    """Raises InvalidInput: no folder was named, or it holds none."""
    folder = Path(os.environ.get("RAYAPP_REALDATA", "")) / "documents"
    if not (folder / "he" / SAME_TEXT).is_file():
        raise InvalidInput("Set RAYAPP_REALDATA to the folder of the evaluation sets.")
    return folder


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.document_readers", __doc__)
    made.add_argument("--pages", type=positive, default=500, help="of the long PDF")
    made.add_argument("--only", default="", help="files with this in their name")
    return made


def _run(options: argparse.Namespace) -> int:
    folder = real_documents()
    known = paragraphs_of((folder / "he" / SAME_TEXT).read_text(encoding="utf-8"))
    english = list(english_of((folder / "en" / ENGLISH).read_bytes()))
    cases = [*corpus(folder), *made(known, "he"), *made(english, "en")]
    cases.append(long_pdf(known, options.pages))
    rows = [measured(case) for case in cases if options.only in case.name]
    print_rows(rows)
    put_json(options.out, [asdict(row) for row in rows])
    return DONE


def print_rows(rows: Sequence[Row]) -> None:
    table = Table("file", "lost %", "Hebrew %", "cells %", "s", "MB", "blocks", "characters", "")
    for row in rows:
        shares = (row.lost, row.hebrew_intact, row.cells_found)
        shown = ("-" if share is None else f"{100 * share:.2f}" for share in shares)
        table.add_row(row.name, *shown, f"{row.seconds:.2f}", str(row.memory_mb), str(row.blocks),
                      str(row.characters), row.note)  # fmt: skip
    out = io.StringIO()
    Console(file=out, width=140).print(table)
    print(out.getvalue())


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
