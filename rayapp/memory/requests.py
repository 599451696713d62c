"""What callers ask about memories and what they get back: plain values, no HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from rayapp.memory.item import MemoryItem, Source
from rayapp.memory.paging import SortKey
from rayapp.memory.tiers import Tier

StoreStatus = Literal["stored", "duplicate", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory to store. None = the default of its tier; `memory_id` None = we make a UUIDv7.

    `score` is what an outcome known at birth gives it, 0..1. `supersedes` is the id of the memory
    that this one replaces. `trust` is that of what it was derived from: it is never trusted more
    than its source class.
    """

    text: str
    tier: Tier = Tier.WORKING
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    importance: float | None = None
    confidence: float | None = None
    always_inject: bool = False
    memory_id: str | None = None
    created_at: datetime | None = None
    source: Source = field(default_factory=Source)
    summary: str | None = None
    subject_id: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    supersedes: str | None = None
    score: float | None = None
    trust: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreResult:
    """One answer per memory; `code` and `error` are set when it was rejected.

    `archived` names what capacity archived to make room.
    """

    memory_id: str | None
    status: StoreStatus
    code: str | None = None
    error: str | None = None
    archived: tuple[str, ...] = ()


# What a bulk action of the memory bank did with an id. `not_in_bank`: a memory of another tier,
# which it never touches; `merged`: the id lives on in another memory; `not_found`: no such id.
BulkStatus = Literal[
    "archived", "already_archived", "deleted", "not_in_bank", "merged", "not_found"
]


@dataclass(frozen=True, slots=True)
class BulkResult:
    memory_id: str
    status: BulkStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEdit:
    """Fields to change; None = leave. `expected_version` makes it conditional."""

    text: str | None = None
    tags: tuple[str, ...] | None = None
    entities: tuple[str, ...] | None = None
    summary: str | None = None
    importance: float | None = None
    confidence: float | None = None
    always_inject: bool | None = None
    valid_to: datetime | None = None
    expected_version: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemQuery:
    """Which page of a list: `cursor` continues one, `offset` is for the lists of the contract."""

    sort: SortKey = "recent"
    limit: int = 50
    cursor: str | None = None
    offset: int = 0
    text_query: str | None = None
    with_total: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemList:
    items: tuple[MemoryItem, ...]
    next_cursor: str | None
    total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BankStats:
    total: int
    active: int
    archived: int
    tags: tuple[str, ...]
