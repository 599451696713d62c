"""The memory item and the values around it. Pure data; rules live beside it in this package."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from rayapp.core.ids import user_of
from rayapp.memory.tiers import Tier

# Our own uuid5 namespace: point ids must not collide with ids other programs derive.
POINT_NAMESPACE = uuid.UUID("6f1f0c52-6c0e-5b43-9a53-0d2f5f6f2b11")
SCORE_DECIMALS = 4
# What a model read out of a conversation carries it.
LEARNED_TAG = "learned"
NEUTRAL_SCORE = 0.5
# Why raw data is put away from the beginning. It has no expiry when it comes back.
UNIMPORTANT = "importance"


class Status(StrEnum):
    ACTIVE = "active"
    ARCHIVED = "archived"
    DELETED = "deleted"


class SyncState(StrEnum):
    PENDING = "pending"
    SYNCED = "synced"
    FAILED = "failed"


class IndexOp(StrEnum):
    """What the indexer must do for a pending item."""

    VECTOR = "vector"
    PAYLOAD = "payload"
    DELETE = "delete"


class Outcome(StrEnum):
    WORKED = "worked"
    PARTIAL = "partial"
    UNKNOWN = "unknown"
    FAILED = "failed"


class SourceType(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    DOCUMENT = "document"
    SYSTEM = "system"
    DATAGOV = "datagov"
    IMPORT = "import"


class ChangeType(StrEnum):
    UPDATE = "update"
    PROMOTE = "promote"
    DEMOTE = "demote"
    ARCHIVE = "archive"
    RESTORE = "restore"
    MERGE = "merge"


# Trust by source class, 0..1 (decision 0002): what a person said outweighs what a tool returned.
SOURCE_TRUST: dict[SourceType, float] = {
    SourceType.USER: 0.9,
    SourceType.SYSTEM: 1.0,
    SourceType.DOCUMENT: 0.8,
    SourceType.DATAGOV: 0.8,
    SourceType.ASSISTANT: 0.7,
    SourceType.TOOL: 0.6,
    SourceType.IMPORT: 0.6,
}


# The `vector_hash` of an item whose text was changed since: its words may be the same as before, by
# the content hash, but written or spaced otherwise, so that they are cut elsewhere.
REWRITTEN = ""
# Conversations that are named beside the first: a fact that more said is known to be the person's.
MOST_ALSO = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where an item came from. `book` and `datagov` hold the tier-specific fields as plain JSON;
    `url`, the descriptions and `conversation_title` are what a tool said of it, shown to people;
    `also`: other conversations that said the same, at most `MOST_ALSO`; empty = outside of any."""

    type: SourceType = SourceType.USER
    conversation_id: str | None = None
    message_id: str | None = None
    tool_name: str | None = None
    tool_run_id: str | None = None
    doc_id: str | None = None
    chunk_id: str | None = None
    book: dict[str, Any] | None = None
    datagov: dict[str, Any] | None = None
    also: tuple[str, ...] = ()
    url: str | None = None
    description: str | None = None
    description_he: str | None = None
    conversation_title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """importance and confidence in 0..1; quality_score is their product."""

    importance: float = 0.5
    confidence: float = 0.5
    mentioned_count: int = 1

    @property
    def quality_score(self) -> float:
        return round(self.importance * self.confidence, SCORE_DECIMALS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Outcome counters. A new tier resets the tier-local ones, never the lifetime ones."""

    uses: int = 0
    success_count: float = 0.0
    worked_count: int = 0
    partial_count: int = 0
    unknown_count: int = 0
    failed_count: int = 0
    success_rate: float = NEUTRAL_SCORE
    wilson_score: float = NEUTRAL_SCORE
    score: float = NEUTRAL_SCORE
    last_outcome: Outcome | None = None
    last_outcome_at: datetime | None = None
    tier_uses: int = 0
    tier_success: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """Where the item stands between truth and index; `rev` guards the index write."""

    op: IndexOp = IndexOp.VECTOR
    rev: int = 1
    sync_state: SyncState = SyncState.PENDING
    attempts: int = 0
    next_attempt_at: datetime | None = None
    claim: str | None = None
    last_error: str | None = None
    model: str | None = None
    dims: int | None = None
    analyser: str | None = None
    vector_hash: str | None = None
    indexed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """One document of `memory_items`. `memory_id` never changes; `tier` may.

    `stored_by`: the principal (key) that stored it; its outcomes about it count in full.
    `sequence`: the order in which memories came: microseconds since 1970, one more for each place
    in a batch, so that what stood side by side differs by 1. 0 = not known.
    `context_prefix`: what a model said of the surroundings of the text; it is embedded before the
    text and never shown. Only the indexer writes it.
    `instruction`: what the text asks of every answer, or says to be preferred, in the person's own
    words (`rules/instructions.py`); it follows the text. None = nothing.
    `attached_to`: the one conversation that sees it, of a chunk of a document that was attached to
    it; None = all of them.
    `perspective_owner_id`: whose view it is, who told it; `subject_id`: whom it is about; `topics`:
    what it is about, in the words of whoever stored it.
    """

    memory_id: str
    point_id: str
    user_id: str
    tier: Tier
    text: str
    content_hash: str
    created_at: datetime
    stored_at: datetime
    updated_at: datetime
    tier_entered_at: datetime
    org_id: str | None = None
    status: Status = Status.ACTIVE
    summary: str | None = None
    dedup_scope: str = ""
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    always_inject: bool = False
    lang: str = "other"
    source: Source = field(default_factory=Source)
    stored_by: str = ""
    perspective_owner_id: str | None = None
    subject_id: str | None = None
    topics: tuple[str, ...] = ()
    trust: float = 0.9
    quality: Quality = field(default_factory=Quality)
    stats: Stats = field(default_factory=Stats)
    archived_at: datetime | None = None
    archived_reason: str | None = None
    expires_at: datetime | None = None
    merged_into: str | None = None
    index: IndexState = field(default_factory=IndexState)
    version: int = 1
    supersedes: str | None = None
    superseded_by: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    sequence: int = 0
    context_prefix: str = ""
    instruction: str | None = None
    attached_to: str | None = None


def subject_of(item: MemoryItem) -> str | None:
    """Somebody else whom the memory is about; None: the user, whom it belongs to."""
    return other_person(item.subject_id, item.user_id)


def teller_of(item: MemoryItem) -> str | None:
    """Somebody else whose view it is; None: the user's own."""
    return other_person(item.perspective_owner_id, item.user_id)


def other_person(name: str | None, user_id: str) -> str | None:
    """Whom a text is about, or whose view it is, where that is not the user."""
    return None if name in (None, user_of(user_id), user_id) else name


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryVersion:
    """The state a change replaced: the row of `memory_versions`. The last three are the change."""

    user_id: str
    memory_id: str
    version: int
    text: str
    tags: tuple[str, ...]
    quality: Quality
    stats: Stats
    change_type: ChangeType
    reason: str | None
    at: datetime


def point_id_of(user_id: str, memory_id: str) -> str:
    """The id of an item in the index, made of user and memory id, so two users may share ids."""
    return derived_id(user_id, memory_id)


def derived_id(*parts: str) -> str:
    """An id made of what it stands for: who makes it again makes the same."""
    return str(uuid.uuid5(POINT_NAMESPACE, "\x00".join(parts)))
