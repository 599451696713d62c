"""The project's own Markdown documents as passages of tier `books`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from rayapp.client import Memory

PASSAGE_CHARS = 900  # about 200 English tokens: a heading with its paragraph or table
ID_DIGITS = 12  # hex digits of a content hash: an edited passage gets an id of its own
HEADING = re.compile(r"#{1,6}\s+(.*)")


def project_documents(root: Path) -> list[Memory]:
    """README.md, rayapp/ARCHITECTURE.md and rayapp/decisions/*.md, those that are there."""
    named = [root / "README.md", root / "rayapp" / "ARCHITECTURE.md"]
    paths = [*named, *sorted((root / "rayapp" / "decisions").glob("*.md"))]
    return [memory for path in paths if path.is_file() for memory in _book(path)]


def passages(text: str, limit: int = PASSAGE_CHARS) -> Iterator[tuple[str, str]]:
    """(section, passage) pairs: paragraphs of one section joined up to `limit` characters.

    A passage never crosses a heading; a paragraph longer than the limit is split at its lines.
    """
    section, held = "", ""
    for block in re.split(r"\n\s*\n", text):
        for part in _parts(block, limit):
            heading = HEADING.match(part)
            if held and (heading is not None or len(held) + len(part) + 2 > limit):
                yield section, held
                held = ""
            if heading is not None:
                section = heading[1].strip()
            held = f"{held}\n\n{part}" if held else part
    if held:
        yield section, held


def _parts(block: str, limit: int) -> Iterator[str]:
    """Headings apart from what follows them, long blocks in pieces of whole lines."""
    held = ""
    for line in block.strip("\n").splitlines():
        if held and (HEADING.match(line) or len(held) + len(line) + 1 > limit):
            yield held
            held = ""
        held = f"{held}\n{line}" if held else line
    if held.strip():
        yield held


def _book(path: Path) -> Iterator[Memory]:
    text = path.read_text(encoding="utf-8")
    book_id = f"project-{path.stem.lower()}"
    book = {
        "book_id": book_id,
        "title": path.name,
        "file_type": "md",
        "document_hash": hashlib.sha256(text.encode()).hexdigest(),
    }
    for index, (section, passage) in enumerate(passages(text)):
        digest = hashlib.sha256(passage.encode()).hexdigest()[:ID_DIGITS]
        chunk = {"chunk_index": index, "section": section}
        yield Memory(
            text=passage,
            tier="books",
            memory_id=f"{book_id}:{digest}",
            source={"type": "document", "doc_id": book_id, "book": book | chunk},
        )
