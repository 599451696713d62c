"""What callers ask about memories and get back: plain values, pages and counts, no HTTP."""

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, Self

from rayapp.core.errors import InvalidInput, RayappError
from rayapp.memory.item import MemoryItem, Source
from rayapp.memory.tiers import Tier


class ClearTarget(StrEnum):
    """What a user may clear, by the client contract's names."""

    MEMORY_BANK = "memory_bank"
    WORKING = "working"
    HISTORY = "history"
    PATTERNS = "patterns"
    DOCUMENTS = "documents"
    SESSIONS = "sessions"
    KNOWLEDGE_GRAPH = "knowledge-graph"


CLEARED_TIERS: Mapping[ClearTarget, Tier] = {
    ClearTarget.MEMORY_BANK: Tier.MEMORY_BANK,
    ClearTarget.WORKING: Tier.WORKING,
    ClearTarget.HISTORY: Tier.HISTORY,
    ClearTarget.PATTERNS: Tier.PATTERNS,
    ClearTarget.DOCUMENTS: Tier.BOOKS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Rows of one user beside the memories. `nodes`, `edges`: of the content graph; `learned`: what
    outcomes taught (routing, actions, known solutions). Clearing the graph deletes all three."""

    sessions: int = 0
    nodes: int = 0
    edges: int = 0
    learned: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TierTotal:
    active: int = 0
    archived: int = 0
    hidden: int = 0

    @property
    def count(self) -> int:
        return self.active + self.archived + self.hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCounts:
    """Everything that the data page shows of a user."""

    tiers: Mapping[Tier, TierTotal]
    rows: RowCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """`left`: what the time limit of the call did not reach; asking again goes on with it.
    `error`: why this part could not be cleared, whatever became of others."""

    target: ClearTarget
    deleted: int
    left: int
    at: datetime
    error: RayappError | None = None


# Sort orders of item lists and the opaque cursor that continues them.
#
# All orders are descending and end in `point_id`, which is unique, so a page never skips or
# repeats.

SortKey = Literal["recent", "score", "updated"]
SortValue = datetime | float | str

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_CREATED: tuple[str, Callable[[MemoryItem], SortValue]] = ("created_at", lambda i: i.created_at)
_SCORE: tuple[str, Callable[[MemoryItem], SortValue]] = ("stats.score", lambda i: i.stats.score)
_UPDATED: tuple[str, Callable[[MemoryItem], SortValue]] = ("updated_at", lambda i: i.updated_at)
_POINT: tuple[str, Callable[[MemoryItem], SortValue]] = ("point_id", lambda i: i.point_id)

# Field path and getter of each key, most significant first.
SORT_KEYS: dict[SortKey, tuple[tuple[str, Callable[[MemoryItem], SortValue]], ...]] = {
    "recent": (_CREATED, _SCORE, _UPDATED, _POINT),
    "score": (_SCORE, _UPDATED, _POINT),
    "updated": (_UPDATED, _POINT),
}


def sort_values(item: MemoryItem, sort: SortKey) -> tuple[Any, ...]:
    """The values that place `item` in `sort`, most significant first."""
    return tuple(get(item) for _, get in SORT_KEYS[sort])


def encode_cursor(item: MemoryItem, sort: SortKey) -> str:
    """A cursor that continues after `item`."""
    values = [_plain(value) for value in sort_values(item, sort)]
    return pack_cursor([sort, *values])


def pack_cursor(values: list[Any]) -> str:
    """An opaque cursor that holds these values."""
    raw = json.dumps(values, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unpack_cursor(cursor: str) -> list[Any]:
    """Raises ValueError: it is no cursor of ours."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found = json.loads(raw)
    except (binascii.Error, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not isinstance(found, list):
        raise ValueError("no list")
    return found


def decode_cursor(cursor: str, sort: SortKey) -> tuple[SortValue, ...]:
    """The sort values of the last item seen; raises InvalidInput when they cannot be read."""
    try:
        made_for, *values = unpack_cursor(cursor)
    except ValueError:
        raise _bad_cursor() from None
    fields = [path for path, _ in SORT_KEYS[sort]]
    if made_for != sort or len(values) != len(fields):
        raise _bad_cursor()
    return tuple(_typed(path, value) for path, value in zip(fields, values, strict=True))


def _bad_cursor() -> InvalidInput:
    return InvalidInput("The cursor cannot be read: use `next_cursor` of a page with this sort.")


def _plain(value: SortValue) -> int | float | str:
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(milliseconds=1)
    return value


def _typed(path: str, value: Any) -> SortValue:
    if path.endswith("_at"):
        if type(value) is not int:
            raise _bad_cursor()
        try:
            return EPOCH + timedelta(milliseconds=value)
        except OverflowError:
            raise _bad_cursor() from None
    if path == "point_id":
        if not isinstance(value, str):
            raise _bad_cursor()
        return value
    try:
        if type(value) in (int, float) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise _bad_cursor()


StoreStatus = Literal["stored", "duplicate", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory to store. None = the default of its tier; `memory_id` None = we make a UUIDv7.

    `score` is what an outcome known at birth gives it, 0..1. `supersedes` is the id of the memory
    that this one replaces. `trust` is that of what it was derived from: it is never trusted more
    than its source class. `attached_to`: the one conversation that sees it. `lasting`: it has no
    expiry, whatever its tier. `archived_reason`: it is put away from the beginning.
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
    perspective_owner_id: str | None = None
    topics: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    supersedes: str | None = None
    score: float | None = None
    trust: float | None = None
    attached_to: str | None = None
    lasting: bool = False
    archived_reason: str | None = None


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

    @classmethod
    def refused(cls, memory_id: str | None, error: RayappError) -> Self:
        return cls(memory_id=memory_id, status="rejected", code=error.code, error=error.message)


# What a bulk action did with an id. `merged`: the id lives on in another memory; `not_found`: no
# such id.
BulkStatus = Literal["archived", "already_archived", "deleted", "merged", "not_found"]


@dataclass(frozen=True, slots=True)
class BulkResult:
    memory_id: str
    status: BulkStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEdit:
    """Fields to change; None = leave. `expected_version` makes it conditional. An empty
    `subject_id` or `perspective_owner_id` = the user."""

    text: str | None = None
    tags: tuple[str, ...] | None = None
    entities: tuple[str, ...] | None = None
    summary: str | None = None
    importance: float | None = None
    confidence: float | None = None
    always_inject: bool | None = None
    valid_to: datetime | None = None
    subject_id: str | None = None
    perspective_owner_id: str | None = None
    topics: tuple[str, ...] | None = None
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
