"""Near-duplicates are shown once: the better-scored one carries the ids of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rayapp.memory.item import MemoryItem

MayCollapse = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Kept:
    """Index into the input order, with the ids it stands for."""

    index: int
    collapsed_ids: tuple[str, ...]


@dataclass(slots=True)
class _Face:
    index: int
    content_hash: str
    tokens: frozenset[str]
    text: str
    collapsed: list[str]


def collapse(
    items: Sequence[MemoryItem], *, similarity: float, wanted: int, may_collapse: MayCollapse
) -> list[Kept]:
    """Walk best first until `wanted` distinct items are found.

    Two items are the same when their normalised text is equal, or when their token sets overlap by
    `similarity` (Jaccard) and `may_collapse` sees equal numbers, entities and polarity.
    """
    faces: list[_Face] = []
    for index, item in enumerate(items):
        tokens = frozenset(item.text.casefold().split())
        twin = next((f for f in faces if _same(f, item, tokens, similarity, may_collapse)), None)
        if twin is not None:
            twin.collapsed.append(item.memory_id)
        elif len(faces) < wanted:
            faces.append(_Face(index, item.content_hash, tokens, item.text, []))
        else:
            break
    return [Kept(face.index, tuple(face.collapsed)) for face in faces]


def _same(
    face: _Face,
    item: MemoryItem,
    tokens: frozenset[str],
    similarity: float,
    may_collapse: MayCollapse,
) -> bool:
    if face.content_hash == item.content_hash:
        return True
    small, large = sorted((len(face.tokens), len(tokens)))
    if large == 0 or small / large < similarity:
        return False  # the overlap cannot reach the threshold: skip the set work
    shared = len(face.tokens & tokens)
    if shared / (len(face.tokens) + len(tokens) - shared) < similarity:
        return False
    return may_collapse(face.text, item.text)
