"""Exports of mem0: `get_all` of its client, an export job, or a list of memories, as JSON."""

from collections.abc import Iterator
from typing import Any

from rayapp.memory.tiers import Tier
from rayapp.portability.rules.archive import BadArchive
from rayapp.portability.rules.foreign import (
    NO_WORDS,
    Files,
    ForeignMemory,
    Found,
    LeftOut,
    key_of,
    labels_of,
    rows_of,
    shown,
    text_of,
    time_of,
)

# Where the list stands: in an answer of the client, in an export, in a page of the platform.
LISTS = ("results", "memories", "data")
TEXTS = ("memory", "text", "content", "data")


def read(files: Files) -> Iterator[Found]:
    """Facts about a person, each a memory of the bank."""
    names = list(files.named("*.json"))
    if not names:
        raise BadArchive("There is no .json file in it; send what `get_all` or an export answers.")
    for name in names:
        found = files.json(name)
        yield from _file(found, name)


def _file(found: Any, name: str) -> Iterator[Found]:
    rows = found
    if isinstance(found, dict):
        rows = next((found[one] for one in LISTS if isinstance(found.get(one), list)), None)
        if relations := rows_of(found.get("relations")):
            why = "graphs are learned anew from the memories"
            yield LeftOut(what="relation", why=why, count=len(relations))
    if not isinstance(rows, list):
        raise BadArchive(
            f"{shown(name)} holds no memories of mem0; send what `get_all` or an export answers."
        )
    if wrong := len(rows) - len(rows_of(rows)):
        yield LeftOut(what="memory", why="no JSON object", count=wrong)
    for row in rows_of(rows):
        yield _memory(row)


def _memory(row: dict[str, Any]) -> Found:
    text = next((text for one in TEXTS if (text := text_of(row.get(one)))), "")
    if not text:
        return LeftOut(what="memory", why=NO_WORDS)
    extra = row.get("metadata")
    extra = extra if isinstance(extra, dict) else {}
    tags = labels_of(row.get("categories")) + labels_of(extra.get("category"))
    return ForeignMemory(
        key=key_of(row.get("id"), text),
        text=text,
        tier=Tier.MEMORY_BANK,
        at=time_of(row.get("created_at")),
        changed_at=time_of(row.get("updated_at")),
        tags=tags,
        valid_to=time_of(row.get("expiration_date")),
    )
