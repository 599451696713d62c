"""MemoryItem and MemoryVersion to documents and back; the server keeps milliseconds."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

import bson
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from rayapp.core.errors import InvalidInput
from rayapp.memory.item import (
    ChangeType,
    IndexOp,
    IndexState,
    MemoryItem,
    MemoryVersion,
    Outcome,
    Quality,
    Source,
    SourceType,
    Stats,
    Status,
    SyncState,
)
from rayapp.memory.rules.filtering import flag_names
from rayapp.memory.tiers import FOLLOWED_TIERS, Tier

Document = dict[str, Any]
T = TypeVar("T")
log = logging.getLogger("rayapp.mongo")
# What a conversion says of a row with a field too few, one too many, or an unknown value.
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)

# Reads times without a zone. The driver gives each time its zone with two calls of its own, which
# is half of what it takes to decode a row; a search decodes dozens (measured: 0.35 ms of 0.74).
PLAIN: CodecOptions[Document] = CodecOptions()
ITEM_TIMES = (
    "created_at",
    "stored_at",
    "updated_at",
    "archived_at",
    "expires_at",
    "tier_entered_at",
    "valid_from",
    "valid_to",
)
STATS_TIMES = ("last_outcome_at",)
INDEX_TIMES = ("next_attempt_at", "indexed_at")

# Looking a member up in a dict is several times faster than calling the enum.
_TIERS = {t.value: t for t in Tier}
_STATUSES = {s.value: s for s in Status}
_SOURCES = {s.value: s for s in SourceType}
_OUTCOMES: dict[str | None, Outcome | None] = {None: None, **{o.value: o for o in Outcome}}
_OPS = {o.value: o for o in IndexOp}
_SYNC = {s.value: s for s in SyncState}


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


def utc(at: datetime | None) -> datetime | None:
    """`at`, refused when it has no time zone: the driver would take local time for UTC."""
    if at is not None and at.tzinfo is None:
        raise InvalidInput("A time has no zone: send it with an offset, such as 2026-01-01T00:00Z.")
    return at


def to_document(item: MemoryItem) -> Document:
    """The document of a new item. `quality_score` and the DataGov flags are denormalised.

    `follow_up_at` and `contribution` belong to the graphs and are not part of the item.
    """
    return {
        "memory_id": item.memory_id,
        "point_id": item.point_id,
        "user_id": item.user_id,
        "org_id": item.org_id,
        "tier": item.tier.value,
        "status": item.status.value,
        "text": item.text,
        "summary": item.summary,
        "content_hash": item.content_hash,
        "dedup_scope": item.dedup_scope,
        "tags": list(item.tags),
        "entities": list(item.entities),
        "always_inject": item.always_inject,
        "lang": item.lang,
        "source": _source_document(item.source),
        "flags": list(flag_names(item.source)),
        "stored_by": item.stored_by,
        "perspective_owner_id": item.perspective_owner_id,
        "subject_id": item.subject_id,
        "trust": item.trust,
        "quality": _quality_document(item.quality),
        "stats": _stats_document(item.stats),
        "created_at": utc(item.created_at),
        "stored_at": utc(item.stored_at),
        "updated_at": utc(item.updated_at),
        "archived_at": utc(item.archived_at),
        "archived_reason": item.archived_reason,
        "expires_at": utc(item.expires_at),
        "tier_entered_at": utc(item.tier_entered_at),
        "merged_into": item.merged_into,
        "index": index_document(item.index, pending_since=item.stored_at),
        "version": item.version,
        "supersedes": item.supersedes,
        "superseded_by": item.superseded_by,
        "valid_from": utc(item.valid_from),
        "valid_to": utc(item.valid_to),
        "sequence": item.sequence,
        "context_prefix": item.context_prefix,
        "follow_up_at": item.stored_at if item.tier in FOLLOWED_TIERS else None,
        "contribution": None,
    }


def index_document(state: IndexState, *, pending_since: datetime | None) -> Document:
    pending = state.sync_state is SyncState.PENDING
    return {
        "op": state.op.value,
        "rev": state.rev,
        "sync_state": state.sync_state.value,
        "pending_since": pending_since if pending else None,
        "attempts": state.attempts,
        "next_attempt_at": utc(state.next_attempt_at),
        "claim": state.claim,
        "last_error": state.last_error,
        "model": state.model,
        "dims": state.dims,
        "analyser": state.analyser,
        "vector_hash": state.vector_hash,
        "indexed_at": utc(state.indexed_at),
    }


def from_document(doc: Document) -> MemoryItem:
    return MemoryItem(
        memory_id=doc["memory_id"],
        point_id=doc["point_id"],
        user_id=doc["user_id"],
        org_id=doc["org_id"],
        tier=_TIERS[doc["tier"]],
        status=_STATUSES[doc["status"]],
        text=doc["text"],
        summary=doc["summary"],
        content_hash=doc["content_hash"],
        dedup_scope=doc["dedup_scope"],
        tags=tuple(doc["tags"]),
        entities=tuple(doc["entities"]),
        always_inject=doc["always_inject"],
        lang=doc["lang"],
        source=_source(doc["source"]),
        stored_by=doc.get("stored_by", ""),
        perspective_owner_id=doc["perspective_owner_id"],
        subject_id=doc["subject_id"],
        trust=doc["trust"],
        quality=_quality(doc["quality"]),
        stats=_stats(doc["stats"]),
        created_at=doc["created_at"],
        stored_at=doc["stored_at"],
        updated_at=doc["updated_at"],
        archived_at=doc["archived_at"],
        archived_reason=doc["archived_reason"],
        expires_at=doc["expires_at"],
        tier_entered_at=doc["tier_entered_at"],
        merged_into=doc["merged_into"],
        index=_index(doc["index"]),
        version=doc["version"],
        supersedes=doc["supersedes"],
        superseded_by=doc["superseded_by"],
        valid_from=doc["valid_from"],
        valid_to=doc["valid_to"],
        sequence=doc.get("sequence", 0),
        context_prefix=doc.get("context_prefix", ""),
    )


def from_plain(doc: Document) -> MemoryItem:
    """`from_document` of a row that was read with `PLAIN`; changes `doc`."""
    _give_zones(doc, ITEM_TIMES)
    _give_zones(doc["stats"], STATS_TIMES)
    _give_zones(doc["index"], INDEX_TIMES)
    source = doc["source"]
    if source["datagov"] is not None:
        source["datagov"] = _zoned(source["datagov"])
    return from_document(doc)


def _give_zones(doc: Document, names: tuple[str, ...]) -> None:
    for name in names:
        at = doc[name]
        if at is not None:
            doc[name] = at.replace(tzinfo=UTC)


def _zoned(value: Any) -> Any:
    """Times anywhere inside a value that a source of open data gave."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    if isinstance(value, dict):
        return {key: _zoned(inner) for key, inner in value.items()}
    return [_zoned(inner) for inner in value] if isinstance(value, list) else value


def version_document(row: MemoryVersion) -> Document:
    return {
        "user_id": row.user_id,
        "memory_id": row.memory_id,
        "version": row.version,
        "text": row.text,
        "tags": list(row.tags),
        "quality": _quality_document(row.quality),
        "stats": _stats_document(row.stats),
        "change_type": row.change_type.value,
        "reason": row.reason,
        "at": utc(row.at),
    }


def version_from_document(doc: Document) -> MemoryVersion:
    return MemoryVersion(
        user_id=doc["user_id"],
        memory_id=doc["memory_id"],
        version=doc["version"],
        text=doc["text"],
        tags=tuple(doc["tags"]),
        quality=_quality(doc["quality"]),
        stats=_stats(doc["stats"]),
        change_type=ChangeType(doc["change_type"]),
        reason=doc["reason"],
        at=doc["at"],
    )


def _source_document(source: Source) -> Document:
    return {
        "type": source.type.value,
        "conversation_id": source.conversation_id,
        "message_id": source.message_id,
        "tool_name": source.tool_name,
        "tool_run_id": source.tool_run_id,
        "doc_id": source.doc_id,
        "chunk_id": source.chunk_id,
        "book": source.book,
        "datagov": source.datagov,
    }


def _source(doc: Document) -> Source:
    return Source(
        type=_SOURCES[doc["type"]],
        conversation_id=doc["conversation_id"],
        message_id=doc["message_id"],
        tool_name=doc["tool_name"],
        tool_run_id=doc["tool_run_id"],
        doc_id=doc["doc_id"],
        chunk_id=doc["chunk_id"],
        book=doc["book"],
        datagov=doc["datagov"],
    )


def _quality_document(quality: Quality) -> Document:
    return {
        "importance": quality.importance,
        "confidence": quality.confidence,
        "mentioned_count": quality.mentioned_count,
        "quality_score": quality.quality_score,
    }


def _quality(doc: Document) -> Quality:
    return Quality(
        importance=doc["importance"],
        confidence=doc["confidence"],
        mentioned_count=doc["mentioned_count"],
    )


def _stats_document(stats: Stats) -> Document:
    return {
        "uses": stats.uses,
        "success_count": stats.success_count,
        "worked_count": stats.worked_count,
        "partial_count": stats.partial_count,
        "unknown_count": stats.unknown_count,
        "failed_count": stats.failed_count,
        "success_rate": stats.success_rate,
        "wilson_score": stats.wilson_score,
        "score": stats.score,
        "last_outcome": stats.last_outcome.value if stats.last_outcome else None,
        "last_outcome_at": utc(stats.last_outcome_at),
        "tier_uses": stats.tier_uses,
        "tier_success": stats.tier_success,
    }


def _stats(doc: Document) -> Stats:
    return Stats(
        uses=doc["uses"],
        success_count=doc["success_count"],
        worked_count=doc["worked_count"],
        partial_count=doc["partial_count"],
        unknown_count=doc["unknown_count"],
        failed_count=doc["failed_count"],
        success_rate=doc["success_rate"],
        wilson_score=doc["wilson_score"],
        score=doc["score"],
        last_outcome=_OUTCOMES[doc["last_outcome"]],
        last_outcome_at=doc["last_outcome_at"],
        tier_uses=doc["tier_uses"],
        tier_success=doc["tier_success"],
    )


def _index(doc: Document) -> IndexState:
    return IndexState(
        op=_OPS[doc["op"]],
        rev=doc["rev"],
        sync_state=_SYNC[doc["sync_state"]],
        attempts=doc["attempts"],
        next_attempt_at=doc["next_attempt_at"],
        claim=doc["claim"],
        last_error=doc["last_error"],
        model=doc["model"],
        dims=doc["dims"],
        analyser=doc["analyser"],
        vector_hash=doc["vector_hash"],
        indexed_at=doc["indexed_at"],
    )


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
