"""MemoryItem and MemoryVersion to documents and back; the server keeps milliseconds."""

import hashlib
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

import bson
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from rayapp.memory.item import (
    IndexState,
    MemoryItem,
    MemoryVersion,
    Quality,
    Source,
    Stats,
    SyncState,
)
from rayapp.memory.rules.filtering import flag_names, is_followed, is_understood, veiled_words
from rayapp.storage.mongo.rows import may_lack, reader, share, times_of, to_row

Document = dict[str, Any]
T = TypeVar("T")
log = logging.getLogger("rayapp.mongo")
# What a conversion says of a row with a field too few, one too many, or an unknown value.
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)

# Reads times without a zone. The driver gives each time its zone with two calls of its own, which
# is half of what it takes to decode a row; a search decodes dozens (measured: 0.35 ms of 0.74).
PLAIN: CodecOptions[Document] = CodecOptions()
# Names that the items of a user have alike.
ALIKE = ("user_id", "perspective_owner_id", "subject_id", "stored_by", "lang", "dedup_scope")
INDEX_ALIKE = ("model", "analyser")
ITEM_TIMES, STATS_TIMES, INDEX_TIMES = map(times_of, (MemoryItem, Stats, IndexState))

may_lack(
    MemoryItem, *("stored_by", "sequence", "context_prefix", "instruction", "attached_to", "topics")
)
may_lack(Source, "also", "url", "description", "description_he", "conversation_title")
share(Source, Quality, Stats)
from_document = reader(MemoryItem)
version_from_document = reader(MemoryVersion)


def readable(docs: Iterable[Document], convert: Callable[[Document], T]) -> list[T]:
    """What `convert` makes of each row; a row that it cannot read is left out.

    One malformed row must never stop a list or a loop for all users. Only the row's id is logged:
    the text of an error may hold what a user stored.
    """
    found: list[T] = []
    for doc in docs:
        try:
            found.append(convert(doc))
        except UNREADABLE as error:
            log.error("row %s is left out (%s): repair it", doc.get("_id"), type(error).__name__)
    return found


def to_document(item: MemoryItem) -> Document:
    """The document of a new item. `quality_score` and the DataGov flags are denormalised.

    `follow_up_at` and `contribution` belong to the graphs, `understand_at` to what is derived from
    it; they are not part of the item.
    """
    return to_row(item) | {
        "quality": quality_document(item.quality),
        "index": index_document(item.index, pending_since=item.stored_at),
        "flags": list(flag_names(item.source)),
        "follow_up_at": item.stored_at if is_followed(item) else None,
        "contribution": None,
        "understand_at": item.stored_at if is_understood(item) else None,
        **veiled(item.text, item.summary, item.tags),
    }


def veiled(text: str, summary: str | None, tags: Iterable[str]) -> Document:
    """What a row has beside its texts to be found by all of their words; mostly nothing."""
    words = veiled_words(text, summary or "", *tags)
    return {"veiled_words": words} if words else {}


def quality_document(quality: Quality) -> Document:
    return to_row(quality) | {"quality_score": quality.quality_score}


def index_document(state: IndexState, *, pending_since: datetime | None) -> Document:
    pending = state.sync_state is SyncState.PENDING
    return to_row(state) | {"pending_since": pending_since if pending else None}


def from_plain(doc: Document) -> MemoryItem:
    """`from_document` of a row that was read with `PLAIN`; changes `doc`.

    Items are held by the hundred thousand, and what many have alike is one object: 1.2 kB each
    instead of 2.3 (measured).
    """
    _give_zones(doc, ITEM_TIMES)
    _give_zones(doc["stats"], STATS_TIMES)
    _give_zones(doc["index"], INDEX_TIMES)
    for row, names in ((doc, ALIKE), (doc["index"], INDEX_ALIKE)):
        for name in names:
            if row.get(name) is not None:
                row[name] = sys.intern(row[name])
    source = doc["source"]
    if source["datagov"] is not None:
        source["datagov"] = _zoned(source["datagov"])
    return from_document(doc)


def _give_zones(doc: Document, names: tuple[str, ...]) -> None:
    """Equal times become one object."""
    zoned: dict[datetime, datetime] = {}
    for name in names:
        at = doc[name]
        if at is not None:
            doc[name] = zoned.get(at) or zoned.setdefault(at, at.replace(tzinfo=UTC))


def _zoned(value: Any) -> Any:
    """Times anywhere inside a value that a source of open data gave."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    if isinstance(value, dict):
        return {key: _zoned(inner) for key, inner in value.items()}
    return [_zoned(inner) for inner in value] if isinstance(value, list) else value


def version_document(row: MemoryVersion) -> Document:
    return to_row(row) | {"quality": quality_document(row.quality)}


# Memory items by the hash of their rows: a row that did not change is not parsed again.
#
# The truth is still read for every search, and any change of a row changes its bytes: nothing here
# can be out of date. Parsing a row costs 40 to 55 us, looking it up 3 us (our benchmark).

# Rows as the server sent them.
RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
# What a thousand users look through again and again: 50,000 rows of the usual 1.6 KB, whose items
# take about as much again.
MAX_BYTES = 80_000_000
# A row above this is a document; parsing it is little beside reading it.
MAX_ROW_BYTES = 16_384
# Of the hash of a row: two different ones do not meet by chance.
DIGEST_BYTES = 16


class ParsedRows:
    """An LRU from hashes of rows to items, which nobody changes."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        # Items with the size of their rows.
        self._items: OrderedDict[bytes, tuple[MemoryItem, int]] = OrderedDict()

    def items(self, rows: Iterable[RawBSONDocument]) -> list[MemoryItem]:
        """The items of the rows that can be read, in order."""
        found: list[MemoryItem] = []
        for row in rows:
            digest = hashlib.blake2b(row.raw, digest_size=DIGEST_BYTES).digest()
            known = self._items.get(digest)
            if known is not None:
                self._items.move_to_end(digest)
                found.append(known[0])
                continue
            for item in readable([bson.decode(row.raw, PLAIN)], from_plain):
                self._keep(digest, item, len(row.raw))
                found.append(item)
        return found

    def _keep(self, digest: bytes, item: MemoryItem, size: int) -> None:
        if size > MAX_ROW_BYTES:
            return
        self._items[digest] = (item, size)
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, (_, dropped) = self._items.popitem(last=False)
            self._bytes -= dropped
