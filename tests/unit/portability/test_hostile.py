"""Archives made by hand: each is refused with one sentence, and nothing is written."""

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rayapp.core.errors import RayappError
from rayapp.learning.rules.outcomes import applied_to
from rayapp.memory.item import point_id_of
from rayapp.memory.scope import WriteScope
from rayapp.portability.archive import open_zip
from rayapp.portability.ports import ImportRequest
from rayapp.portability.rules.archive import FORMAT, MANIFEST, SUFFIX, BadArchive, of_line, to_line
from rayapp.portability.rules.collections import BY_NAME, OUTCOMES
from rayapp.portability.rules.kinds import Merge
from rayapp.storage.mongo import convert
from rayapp.storage.mongo.rows import to_row
from tests.support.archive_world import ArchiveWorld, ask, settings_in
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.support.outcome_contract import an_event

USER = "dana-7f"
ITEMS = "memory_items"
Rows = dict[str, list[Any]]


def a_row(**changes: Any) -> dict[str, Any]:
    doc = convert.to_document(an_item(user_id=USER, memory_id="m-1"))
    left_out = {"user_id", *BY_NAME[ITEMS].renewed}
    row = {name: doc[name] for name in doc if name not in left_out}
    return row | changes


def member(rows: list[Any]) -> bytes:
    return b"".join(row if isinstance(row, bytes) else to_line(row) for row in rows)


def manifest_of(parts: dict[str, bytes], rows: Rows, **changes: Any) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": 1,
        "exported_at": datetime(2026, 5, 1, tzinfo=UTC).isoformat(),
        "user_id": USER,
        "parts": [
            {
                "collection": name,
                "rows": len(rows.get(name, [])),
                "bytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "schema_version": 1,
            }
            for name, data in parts.items()
        ],
        "renewed": {},
    } | changes


def an_archive(
    rows: Rows | None = None,
    *,
    extra: dict[str, bytes] | None = None,
    change: Callable[[dict[str, Any]], None] = lambda manifest: None,
    **changes: Any,
) -> bytes:
    rows = {ITEMS: [a_row()]} if rows is None else rows
    parts = {name: member(many) for name, many in rows.items()}
    manifest = manifest_of(parts, rows, **changes)
    change(manifest)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in parts.items():
            made.writestr(name + SUFFIX, data)
        for name, data in (extra or {}).items():
            made.writestr(name, data)
        made.writestr(MANIFEST, json.dumps(manifest))
    return out.getvalue()


def row_with(**changes: Any) -> bytes:
    return an_archive({ITEMS: [a_row(**changes)]})


def a_line(text: bytes) -> bytes:
    return an_archive({ITEMS: [text + b"\n"]})


def declared(**parts: Any) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest["parts"][0].update(parts)


def sized(data: bytes, size: int) -> bytes:
    """With another unpacked size in the directory."""
    at = data.index(b"PK\x01\x02")
    return data[: at + 24] + size.to_bytes(4, "little") + data[at + 28 :]


def broken(data: bytes) -> bytes:
    at = data.index(b"PK\x01\x02") - 200
    return data[:at] + bytes(8) + data[at + 8 :]


AT = datetime(2026, 5, 1, tzinfo=UTC)
# It was kept, but has no title.
A_CONVERSATION = {
    "conversation_id": "c-1",
    "created_at": AT,
    "updated_at": AT,
    "last_at": AT,
    "titled_by": "words",
}


def an_outcome(moved_ms: int) -> dict[str, Any]:
    event = an_event("m-1", user_id=USER)
    applied = applied_to(an_item(user_id=USER, memory_id="m-1"), event)
    row = to_row(replace(event, applied=(replace(applied, lifetime_moved_ms=moved_ms),)))
    del row["user_id"]
    return row


DEEP = b'{"memory_id":' + b"[" * 60 + b"]" * 60 + b"}"
HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "is no zip"),
    "text": (b"not a zip", "is no zip"),
    "cut": (an_archive()[:-40], "is no zip"),
    "slip": (an_archive(extra={"../../etc/passwd": b"x"}), "passwd"),
    "absolute": (an_archive(extra={"/tmp/x": b"x"}), "/tmp/x"),
    "windows": (an_archive(extra={"C:\\x": b"x"}), "no export writes"),
    "strange": (an_archive(extra={"run.py": b"x"}), "run.py"),
    "unnamed": (an_archive(extra={"kg_nodes.jsonl": b""}), "than its manifest names"),
    "bomb": (an_archive({ITEMS: [b" " * 50_000_000]}), "too much for its size"),
    "huge": (sized(an_archive(), 4_000_000_000), "unpacks to"),
    "short": (sized(an_archive(), 10), "another size"),
    "hash": (an_archive(change=declared(sha256="0" * 64)), "not what its manifest says"),
    "count": (an_archive(change=declared(rows=2)), "not what its manifest says"),
    "fewer": (
        an_archive({ITEMS: [a_row(), a_row(memory_id="m-2")]}, change=declared(rows=1)),
        "not what its manifest says",
    ),
    "newer": (an_archive(version=2), "newer"),
    "newer rows": (an_archive(change=declared(schema_version=2)), "newer"),
    "format": (an_archive(format="other"), "manifest"),
    "keys": (an_archive({"api_keys": []}), "no export writes|no import takes"),
    "twice": (
        an_archive(change=lambda m: m["parts"].append(m["parts"][0])),
        "names a collection twice",
    ),
    "user": (an_archive(user_id="noa"), "another user"),
    "tenant": (an_archive(org_id="acme"), "another user"),
    "tenant of a row": (row_with(org_id="acme"), "org_id"),
    "no json": (a_line(b"{"), "is no JSON"),
    "list": (a_line(b"[]"), "no JSON object"),
    "deep": (a_line(DEEP), "nested"),
    "operator": (row_with(**{"$where": 1, "x": 1}), "which cannot be stored"),
    "nul": (row_with(tags=[{"a\0b": 1}]), "which cannot be stored"),
    "infinite": (a_line(b'{"version": 1e999}'), "JSON"),
    "large": (a_line(b'{"version": 9300000000000000000}'), "too large"),
    "unknown field": (row_with(password="x"), "unknown field 'password'"),
    "other owner": (row_with(user_id="noa"), "unknown field 'user_id'"),
    "index state": (row_with(index={"rev": 9}), "unknown field 'index'"),
    "point": (row_with(point_id=point_id_of("noa", "m-1")), "point_id"),
    "id": (row_with(memory_id="a b"), "characters that are not allowed"),
    "shared tier": (row_with(tier="datagov_schema"), "no memory that a user keeps"),
    "tombstone": (row_with(status="deleted"), "no memory that a user keeps"),
    "changed text": (row_with(text="other"), "content_hash"),
    "type": (row_with(version="1"), "wrong type"),
    "time": (row_with(created_at="2026-01-01T00:00:00Z"), "wrong type"),
    "naive time": (row_with(created_at={"$date": "2026-01-01T00:00:00"}), "time that cannot"),
    "missing": (an_archive({ITEMS: [{"memory_id": "m-1"}]}), "wrong value"),
    "tier": (row_with(tier="nonsense"), "wrong value in tier"),
    "trust": (row_with(trust=7.0), "between 0 and 1"),
    "contribution": (row_with(contribution={"quality": 0.5}), "wrong value"),
    "concept": (
        row_with(contribution={"quality": 0.5, "concepts": [{"key": "tea", "label": "tea"}]}),
        "wrong value",
    ),
    "conversation": (an_archive({"sessions": [A_CONVERSATION]}), "wrong value in title"),
    "endless": (row_with(expires_at=datetime(9999, 12, 31, tzinfo=UTC)), "null is never"),
    "lifetime": (an_archive({OUTCOMES: [an_outcome(2**62)]}), "moved a lifetime"),
    "broken": (broken(an_archive({ITEMS: [a_row(memory_id=f"m-{n}") for n in range(20)]})), "."),
}


@pytest.fixture
def world(tmp_path: Path) -> ArchiveWorld:
    return ArchiveWorld(Harness.ready(settings_in(tmp_path)).container, USER)


async def take(world: ArchiveWorld, data: bytes, **how: Any) -> Any:
    found = open_zip(io.BytesIO(data), max_bytes=1 << 30)
    scope = WriteScope(world.user, "local")
    return await world.container.imports.run(scope, found, ImportRequest(**how))


async def test_the_archive_that_the_others_are_made_of_is_taken(world: ArchiveWorld) -> None:
    report = await take(world, an_archive())
    assert report.counts[ITEMS].added == 1


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_archive_is_refused_and_nothing_is_written(
    world: ArchiveWorld, name: str
) -> None:
    data, said = HOSTILE[name]
    async with world.http() as http:
        await ask(http, "POST", "/api/memory/store", {"text": "Stays", "memory_id": "s"})
    before = await world.stores.archive.left(world.reads)
    with pytest.raises(BadArchive, match=said) as raised:
        await take(world, data, merge=Merge.REPLACE)
    sentence = raised.value.message
    assert sentence.count(". ") == 0
    assert sentence.endswith(".")
    assert await world.stores.archive.left(world.reads) == before


async def test_a_row_at_the_end_is_found_before_anything_is_written(world: ArchiveWorld) -> None:
    good = [a_row(memory_id=f"m-{n}", point_id=point_id_of(USER, f"m-{n}")) for n in range(700)]
    with pytest.raises(BadArchive, match="Row 701 of memory_items"):
        await take(world, an_archive({ITEMS: [*good, a_row(trust=2.0)]}))
    assert not any((await world.stores.archive.left(world.reads)).values())


@pytest.mark.parametrize("at", range(40, 400, 12))
def test_a_changed_byte_never_passes_unseen(at: int) -> None:
    data = bytearray(an_archive())
    data[at] ^= 0xFF
    try:
        found = open_zip(io.BytesIO(bytes(data)), max_bytes=1 << 30)
        rows = [of_line(line) for line in found.checked_lines(ITEMS)]
    except RayappError:
        return
    except zlib.error as error:  # pragma: no cover
        raise AssertionError("a driver's error came through") from error
    assert rows == [of_line(to_line(a_row()))]
