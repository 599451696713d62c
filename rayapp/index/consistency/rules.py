"""What drift between the truth and the index is, and what is done about it. Pure.

An item that waits for the index, or that it gave up on, is never drift: its write is known to be
missing. Only what both sides hold to be settled is compared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from rayapp.core.vectors import IndexSchema
from rayapp.index.records import StoredPoint
from rayapp.index.rules.points import home_of, owner_of, payload_of, vector_hash_of
from rayapp.memory.item import IndexOp, IndexState, MemoryItem, Status, SyncState

# Times are kept in milliseconds and scores in 4 decimals; an engine may move the last bit of a
# float (2.4e-7 for a time of this century), which is no difference.
NUMBER_TOLERANCE = 1e-5
# Not compared: the guard of the write, and the owner, who has a kind of his own.
ASIDE = frozenset({"rev", "user_id", "memory_id"})
# Names of one report line.
MAX_NAMED = 8


class Drift(StrEnum):
    """The six kinds; what is done about each is in `RULES`."""

    MISSING = "missing_in_index"
    ORPHAN = "orphan_in_index"
    NOT_ACTIVE = "inactive_in_index"  # archived, deleted, or of another tenant than its row
    PAYLOAD = "payload_mismatch"
    VECTOR = "vector_mismatch"
    DUPLICATE = "duplicate_point"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One difference. `repaired`: its repair was asked for or done."""

    kind: Drift
    point_id: str
    memory_id: str = ""
    user_id: str = ""
    details: str = ""
    repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """`found` and `repaired` count per kind; `issues` are the first ones.

    `unreadable`: points whose row is there but cannot be read, maybe as it is of a newer version.
    They are not compared and left as they are.
    """

    checked_at: datetime
    duration_s: float
    checked: int
    found: Mapping[Drift, int]
    repaired: Mapping[Drift, int]
    issues: Sequence[Issue]
    truth_count: int
    index_count: int
    quarantined: int = 0
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class Pair:
    """What both sides hold under one point id; an item here is settled."""

    item: MemoryItem | None
    point: StoredPoint | None
    schema: IndexSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of drift.

    Attributes:
        found: what is wrong with a pair, for people; None when this kind is not it.
        delete: the repair takes the point out of the index.
        write: what it then asks of the indexer, when the item is active.
    """

    kind: Drift
    found: Callable[[Pair], str | None]
    delete: bool = False
    write: IndexOp | None = None


def drift_of(
    item: MemoryItem | None, point: StoredPoint | None, schema: IndexSchema
) -> Issue | None:
    """The difference between a row and a point of one id, by the first rule that finds one.

    None also for what is in flight: an item that waits for the index or gave up on it, and a
    point of a higher rev than the row that was seen (`is_ahead`).
    """
    pair = Pair(item, point, schema)
    if (item is not None and not is_settled(item)) or is_ahead(item, point):
        return None
    for rule in RULES:
        details = rule.found(pair)
        if details is not None:
            return _issue(rule.kind, pair, details)
    return None


def lasting_drift_of(
    item: MemoryItem | None, point: StoredPoint | None, schema: IndexSchema
) -> Issue | None:
    """`drift_of` for a point that was read between two reads of a row that did not change.

    A point that is ahead of such a row stays so: its row was restored from an older copy, or its
    id was stored again while an old point was left. Writes of the row would be refused for ever.
    """
    if item is not None and is_settled(item) and is_ahead(item, point):
        return _issue(Drift.NOT_ACTIVE, Pair(item, point, schema), "newer than its row")
    return drift_of(item, point, schema)


def rule_of(kind: Drift) -> Rule:
    """How this kind is found and repaired."""
    return next(rule for rule in RULES if rule.kind is kind)


def is_settled(item: MemoryItem) -> bool:
    """The index is said to hold what this row says."""
    return item.index.sync_state is SyncState.SYNCED


def is_ahead(item: MemoryItem | None, point: StoredPoint | None) -> bool:
    """The point is newer than the row that was seen: look again."""
    return item is not None and point is not None and rev_of(point) > item.index.rev


def is_unchanged(before: MemoryItem | None, after: MemoryItem | None) -> bool:
    """Nothing asked for an index write, and none ended, between two reads of a row."""
    if before is None or after is None:
        return before is after
    old, new = before.index, after.index
    same = (old.rev, old.sync_state, before.status) == (new.rev, new.sync_state, after.status)
    return same and before.stored_at == after.stored_at


def rev_of(point: StoredPoint) -> int:
    """0 when the payload has none that can be read."""
    rev = point.payload.get("rev")
    return rev if isinstance(rev, int) else 0


# --- the rules


def _missing(pair: Pair) -> str | None:
    item = pair.item
    if pair.point is None and item is not None and item.status is Status.ACTIVE:
        return "active and indexed by its row, not in the index"
    return None


def _duplicate(pair: Pair) -> str | None:
    if pair.item is not None or pair.point is None:
        return None
    home = home_of(pair.point.payload)
    if home in (None, pair.point.point_id):
        return None
    return f"the point of this memory is {home}"


def _orphan(pair: Pair) -> str | None:
    return "no row has this point" if pair.item is None and pair.point is not None else None


def _not_active(pair: Pair) -> str | None:
    item, point = pair.item, pair.point
    if item is None or point is None:
        return None
    if item.status is not Status.ACTIVE:
        return f"its row is {item.status.value}"
    if owner_of(point.payload) != (item.user_id, item.memory_id):
        return "its payload names another memory or user than its row"
    return None


def _vector(pair: Pair) -> str | None:
    item, point = pair.item, pair.point
    if item is None or point is None:
        return None
    wanted = vector_hash_of(item.content_hash, pair.schema, item.context_prefix)
    if point.payload.get("vector_hash") != wanted:
        return "its vectors were made from another text or for another model"
    if _written_for(item.index, pair.schema) and item.index.vector_hash not in (None, wanted):
        return "its row says that it was indexed from another text"
    if point.payload.get("analyser") != pair.schema.analyser:
        return "its terms were made by another analyser"
    return None


def _payload(pair: Pair) -> str | None:
    item, point = pair.item, pair.point
    if item is None or point is None:
        return None
    wanted = payload_of(item)
    names = [
        name
        for name, value in wanted.items()
        if name not in ASIDE and not _same(value, point.payload.get(name))
    ]
    if not names:
        return None
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"differs in {', '.join(names[:MAX_NAMED])}{more}"


def _written_for(state: IndexState, schema: IndexSchema) -> bool:
    """A reindex brings points over without a word to their rows: these name the schema of the
    last write by the indexer, and their hash says nothing about another one."""
    stored, now = (state.model, state.dims, state.analyser), (schema.model, schema.dims)
    return stored in ((None, None, None), (*now, schema.analyser))


# In this order. A point without a row is first looked at as the double of another one; a point
# whose vectors are wrong is written whole, so its payload needs no look.
RULES: tuple[Rule, ...] = (
    Rule(kind=Drift.MISSING, found=_missing, write=IndexOp.VECTOR),
    Rule(kind=Drift.DUPLICATE, found=_duplicate, delete=True),
    Rule(kind=Drift.ORPHAN, found=_orphan, delete=True),
    Rule(kind=Drift.NOT_ACTIVE, found=_not_active, delete=True, write=IndexOp.VECTOR),
    Rule(kind=Drift.VECTOR, found=_vector, write=IndexOp.VECTOR),
    Rule(kind=Drift.PAYLOAD, found=_payload, write=IndexOp.PAYLOAD),
)


def _issue(kind: Drift, pair: Pair, details: str) -> Issue:
    item, point = pair.item, pair.point
    if item is not None:
        user_id, memory_id, point_id = item.user_id, item.memory_id, item.point_id
    else:
        assert point is not None
        user_id, memory_id = owner_of(point.payload) or ("", "")
        point_id = point.point_id
    return Issue(
        kind=kind, point_id=point_id, memory_id=memory_id, user_id=user_id, details=details
    )


def _same(wanted: Any, found: Any) -> bool:
    """Engines keep neither None nor the difference between an empty list and none."""
    if wanted in (None, []) or found in (None, []):
        return wanted in (None, []) and found in (None, [])
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return abs(wanted - found) <= NUMBER_TOLERANCE
    return bool(wanted == found)
