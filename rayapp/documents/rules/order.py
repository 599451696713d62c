"""Chunks of a document in reading order. Pure, and light: the client reads it too."""

from collections.abc import Iterable

from rayapp.memory.item import MemoryItem


def joined(chunks: Iterable[MemoryItem]) -> str:
    """The text of chunks that follow each other, without what each repeats of the one before."""
    parts: list[str] = []
    for item in chunks:
        overlap = (item.source.book or {}).get("overlap", 0) if parts else 0
        own = item.text[overlap:].lstrip() if overlap else item.text
        parts.append(own)
    return "\n\n".join(parts)


def index_of(item: MemoryItem) -> int:
    """The place of a chunk in its document; 0 where the row does not say."""
    index = (item.source.book or {}).get("chunk_index", 0)
    return index if isinstance(index, int) else 0
