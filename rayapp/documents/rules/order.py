"""Chunks of a document in reading order. Pure, and light: the client reads it too."""

from collections.abc import Iterable

from rayapp.memory.item import MemoryItem, Status


def joined(chunks: Iterable[MemoryItem]) -> str:
    """The text of chunks that follow each other, without what each repeats of the one before.
    Where one of the two was edited, or one between them is gone, nothing is left out."""
    parts: list[str] = []
    before = ""
    for item in chunks:
        overlap = (item.source.book or {}).get("overlap", 0)
        repeated = item.text[:overlap].rstrip()
        repeats = repeated and before.rstrip().endswith(repeated)
        parts.append(item.text[overlap:].lstrip() if repeats else item.text)
        before = item.text
    return "\n\n".join(parts)


def is_shown(item: MemoryItem) -> bool:
    """Whether a document shows this chunk: none that was archived, hidden or superseded."""
    return item.status is Status.ACTIVE and item.superseded_by is None


def index_of(item: MemoryItem) -> int:
    """The place of a chunk in its document; 0 where the row does not say."""
    index = (item.source.book or {}).get("chunk_index", 0)
    return index if isinstance(index, int) else 0
