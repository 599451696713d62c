"""Answers about single memories and the memory bank: the documented fields, others kept."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import AliasChoices, Field

from rayapp.client.models import Answer, SuccessEstimate


class MemoryRecord(Answer):
    """One memory as it stands now; `stats` holds its counters."""

    memory_id: str
    tier: str
    status: str
    text: str
    tags: tuple[str, ...] = ()
    always_inject: bool = False
    version: int
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None
    stats: dict[str, Any] = Field(default_factory=dict)
    source: dict[str, Any] = Field(default_factory=dict)


class ItemReply(Answer):
    memory: MemoryRecord


class ItemPage(Answer):
    """`next_cursor` None: this was the last page."""

    items: tuple[MemoryRecord, ...]
    next_cursor: str | None = None
    total: int | None = None


class Version(Answer):
    """What a memory was before a change."""

    version: int
    text: str
    change_type: str
    at: datetime
    reason: str | None = None


class VersionsReply(Answer):
    memory_id: str
    versions: tuple[Version, ...]


class Stage(Answer):
    """One stage of a search, and whether the memory was still there after it."""

    stage: str
    kept: bool
    detail: str


class ExplainReply(Answer):
    """`lost_at` names the stage where it fell out, None when it was shown."""

    found: bool
    position: int | None = None
    lost_at: str | None = None
    stages: tuple[Stage, ...] = ()


class Done(Answer):
    """A change was made; the message is for people."""

    message: str = ""


class BulkRow(Answer):
    """What became of one id; `not_in_bank`: a memory of another tier, which stays as it is;
    `not_found`: there is none of that id."""

    memory_id: str
    status: str


class BulkReply(Answer):
    """How many of the named memories there were and how many changed, or were removed.

    `success` is false when nothing changed, unless every one was archived already.
    """

    success: bool = True
    matched: int | None = None
    modified: int | None = None
    deleted: int | None = None
    results: tuple[BulkRow, ...] = ()


class RecentMemory(Answer):
    """A row of the list of recent memories."""

    memory_id: str
    content: str
    tier: str
    created_at: datetime
    success_estimate: SuccessEstimate
    tags: tuple[str, ...] = ()
    outcomes: dict[str, int] = Field(default_factory=dict)


class RecentReply(Answer):
    memories: tuple[RecentMemory, ...]


class BankEntry(Answer):
    """A memory as the bank shows it."""

    id: str
    text: str
    status: str
    score: float
    created_at: datetime
    tags: tuple[str, ...] = ()
    archived_at: datetime | None = None
    archived_reason: str | None = None


class BankItemReply(Answer):
    memory: BankEntry


class BankPage(Answer):
    memories: tuple[BankEntry, ...]
    total: int


class BankStats(Answer):
    total_memories: int
    active: int
    archived: int
    unique_tags: int
    tags: tuple[str, ...] = ()


class Listed(Answer):
    """A goal or a value of the user."""

    id: str
    text: str
    created_at: datetime
    importance: float
    status: str


class ListedPage(Answer):
    """The list of goals or of values, whichever was asked for."""

    entries: tuple[Listed, ...] = Field(validation_alias=AliasChoices("goals", "values"))
