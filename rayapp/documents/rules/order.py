"""Chunks of a document in reading order. Pure, and light: the client reads it too."""

from collections.abc import Iterable, Sequence

from rayapp.memory.item import MemoryItem, Status


def joined(chunks: Iterable[MemoryItem]) -> str:
    """The text of chunks that follow each other, without what each repeats of the one before.
    Where one of the two was edited, or one between them is gone, nothing is left out."""
    parts: list[str] = []
    before = ""
    for item in chunks:
        overlap = _overlap_of(item)
        repeated = item.text[:overlap].rstrip()
        repeats = repeated and before.rstrip().endswith(repeated)
        parts.append(item.text[overlap:].lstrip() if repeats else item.text)
        before = item.text
    return "\n\n".join(parts)


def runs(items: Sequence[MemoryItem]) -> list[list[int]]:
    """Places in `items` of chunks that are shown together: those of one document that follow each
    other, in reading order. Runs, and what is no chunk, keep the place of their first."""
    keys = [_key_of(item) for item in items]
    at = {key: place for place, key in enumerate(keys) if key is not None}
    seen: set[int] = set()
    found: list[list[int]] = []
    for place, key in enumerate(keys):
        if place in seen:
            continue
        run = [place]
        if key is not None:
            doc_id, index = key
            first = last = index
            while (doc_id, first - 1) in at:
                first -= 1
            while (doc_id, last + 1) in at:
                last += 1
            run = [at[doc_id, one] for one in range(first, last + 1)]
        seen.update(run)
        found.append(run)
    return found


def _key_of(item: MemoryItem) -> tuple[str, int] | None:
    index = (item.source.book or {}).get("chunk_index")
    if item.source.doc_id is None or not isinstance(index, int):
        return None
    return item.source.doc_id, index


def _overlap_of(item: MemoryItem) -> int:
    """Characters that a chunk repeats of the one before; 0 where the row, which a caller may have
    stored under the id of a chunk, says no such number."""
    overlap = (item.source.book or {}).get("overlap")
    return overlap if isinstance(overlap, int) and overlap > 0 else 0


def is_shown(item: MemoryItem) -> bool:
    """Whether a document shows this chunk: none that was archived, hidden or superseded."""
    return item.status is Status.ACTIVE and item.superseded_by is None


def index_of(item: MemoryItem) -> int:
    """The place of a chunk in its document; 0 where the row does not say."""
    index = (item.source.book or {}).get("chunk_index", 0)
    return index if isinstance(index, int) else 0
