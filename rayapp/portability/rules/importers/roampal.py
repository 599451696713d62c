"""Backups of Roampal: `chromadb/chroma.sqlite3` with its memories, `sessions/*.jsonl`."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import orjson

from rayapp.memory.tiers import Tier
from rayapp.portability.rules.archive import BadArchive
from rayapp.portability.rules.foreign import (
    NO_WORDS,
    Files,
    ForeignMemory,
    ForeignMessage,
    Found,
    LeftOut,
    Role,
    conversation,
    key_of,
    labels_of,
    share_of,
    text_of,
    time_of,
)

DATABASE = "chroma.sqlite3"
PREFIX = "roampal_"
# A database is opened in memory. Vectors stand in it while they wait for their index.
MAX_DATABASE_BYTES = 256 << 20
# A view in a hostile one may count for ever: 100,000 memories take a tenth of these steps.
CHUNK_STEPS, MAX_CHUNKS = 1_000_000, 300
TIERS: Mapping[str, Tier] = {
    tier.value: tier for tier in (Tier.WORKING, Tier.HISTORY, Tier.PATTERNS, Tier.MEMORY_BANK)
}
ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant"}
# Values of one memory, in the order in which memories were stored.
ROWS = """
SELECT c.name, e.embedding_id, m.key, m.string_value, m.int_value, m.float_value, m.bool_value
FROM embeddings e JOIN segments s ON s.id = e.segment_id
JOIN collections c ON c.id = s.collection JOIN embedding_metadata m ON m.id = e.id
ORDER BY e.id
"""
# It does not come over: said of the files that hold it.
OTHERS = {
    "knowledge_graph.json": "graphs are learned anew from the memories",
    "memory_relationships.json": "graphs are learned anew from the memories",
    "outcomes.db": "what it counted stands in the scores of the memories",
}


def read(files: Files) -> Iterator[Found]:
    databases, sessions = list(files.named(DATABASE)), list(files.named("sessions/*.jsonl"))
    if not (databases or sessions):
        raise BadArchive("It is no backup of Roampal: it has neither chromadb nor sessions.")
    for name, why in OTHERS.items():
        if count := len(list(files.named(name))):
            yield LeftOut(what=name, why=why, count=count)
    for name in databases:
        with files.open(name) as file:
            yield from _memories(file.read(MAX_DATABASE_BYTES + 1))
    for name in sessions:
        yield from _session(files, name)


# --- memories


def _memories(data: bytes) -> Iterator[Found]:
    if len(data) > MAX_DATABASE_BYTES:
        raise BadArchive(f"{DATABASE} has more than {MAX_DATABASE_BYTES >> 20} MB; it is not read.")
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.deserialize(_readable(data))
            database.execute("PRAGMA trusted_schema = OFF")
            patience = iter(range(MAX_CHUNKS))
            database.set_progress_handler(lambda: next(patience, None) is None, CHUNK_STEPS)
            rows = database.execute(ROWS)
            at: tuple[str, str] | None = None
            values: dict[str, Any] = {}
            for name, key, field, *kinds in rows:
                if at is not None and at != (name, key):
                    yield _memory(*at, values)
                    values = {}
                at = (str(name), str(key))
                values[str(field)] = next((one for one in kinds if one is not None), None)
            if at is not None:
                yield _memory(*at, values)
        except sqlite3.Error:
            raise BadArchive(f"{DATABASE} cannot be read; make the backup again.") from None


def _readable(data: bytes) -> bytes:
    """A database with a write-ahead log says so in two bytes, and then it is none in memory."""
    return data[:18] + b"\x01\x01" + data[20:] if data[18:20] == b"\x02\x02" else data


def _memory(collection: str, key: str, values: Mapping[str, Any]) -> Found:
    tier = TIERS.get(collection.removeprefix(PREFIX))
    if tier is None:
        return LeftOut(what=collection[:50], why="books come again as documents")
    said = (values.get(one) for one in ("content", "text", "chroma:document", "original_text"))
    text = next((clean for one in said if (clean := text_of(one))), "")
    if not text:
        return LeftOut(what="memory", why=NO_WORDS)
    at = time_of(values.get("created_at")) or time_of(values.get("timestamp"))
    return ForeignMemory(
        key=key_of(key, text),
        text=text,
        tier=tier,
        at=at,
        changed_at=time_of(values.get("updated_at")),
        tags=labels_of(values.get("tags")),
        importance=share_of(values.get("importance")),
        confidence=share_of(values.get("confidence")),
        score=share_of(values.get("score")),
        archived=values.get("status") == "archived",
    )


# --- conversations


def _session(files: Files, name: str) -> Iterator[Found]:
    data = files.whole(name)
    if data is None:
        yield LeftOut(what="conversation", why="too long")
        return
    messages: list[ForeignMessage] = []
    title: Any = None
    broken = 0
    for line in data.splitlines():
        try:
            row = orjson.loads(line) if line.strip() else {}
        except orjson.JSONDecodeError:
            row, broken = {}, broken + 1
        row = row if isinstance(row, dict) else {}
        extra = row.get("metadata")
        extra = extra if isinstance(extra, dict) else {}
        title = title or row.get("title") or extra.get("title")
        role, text = ROLES.get(str(row.get("role"))), text_of(row.get("content"))
        if role and text:
            at = time_of(row.get("timestamp"))
            model = text_of(extra.get("model_name"))[:100] or None
            key = key_of(row.get("id"), len(messages), text)
            messages.append(ForeignMessage(key=key, role=role, text=text, at=at, model=model))
    if broken:
        yield LeftOut(what="message", why="no JSON", count=broken)
    session = name.rpartition("/")[2].removesuffix(".jsonl")
    yield conversation(session, title, None, messages)
