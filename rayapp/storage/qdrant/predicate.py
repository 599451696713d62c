"""ReadScope and ItemFilter as one predicate that both engines render. Pure.

The only place of this package that knows who may read a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rayapp.core.ids import SYSTEM_USER
from rayapp.index.records import ENCODER
from rayapp.index.rules.points import PASSAGE, epoch_s
from rayapp.memory.scope import EVERYTHING, ItemFilter, ReadScope
from rayapp.memory.tiers import SURVIVES_EXPIRY_SCORE, TIER_POLICY, Tier
from rayapp.text.normalize import spellings

# Payload keys that filters and guards read: both engines index exactly these.

# First in every predicate and the unit of data locality: the engine's tenant index.
TENANT_FIELD: Final = "user_id"
# The others, by how the engines call what they hold.
FIELD_KINDS: Final = {
    **dict.fromkeys(("tier", "status", "lang", "tags", "entities", "flags"), "keyword"),
    **dict.fromkeys(("conversation_id", "source_type", "tool_name", "doc_id"), "keyword"),
    **dict.fromkeys(("subject_id", "perspective_owner_id", "topics"), "keyword"),
    **dict.fromkeys(("category", "format", "organization"), "keyword"),
    **dict.fromkeys(("author", "headings", "attached_to"), "keyword"),
    **dict.fromkeys(("created_at", "expires_at", "valid_from", "valid_to", "score"), "float"),
    **dict.fromkeys(("superseded", "always_inject", "has_code", "attached"), "bool"),
    **dict.fromkeys(("rev", PASSAGE, "first_page", "last_page"), "integer"),
}

SHARED_TIERS: frozenset[Tier] = frozenset(t for t, p in TIER_POLICY.items() if p.shared)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The value, or one value of the list, is among `values`; none of them matches nothing."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    key: str
    value: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Numbers only; a point without the key is outside every range."""

    key: str
    gt: float | None = None
    gte: float | None = None
    lt: float | None = None
    lte: float | None = None


@dataclass(frozen=True, slots=True)
class HasIds:
    point_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """At least one of the predicates holds."""

    options: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class HasVector:
    """The point has the vector of that name."""

    name: str


Clause = AnyOf | Flag | Range | HasIds | HasVector | OneOf


@dataclass(frozen=True, slots=True)
class Predicate:
    """All of `must` and none of `must_not`."""

    must: tuple[Clause, ...]
    must_not: tuple[Clause, ...] = ()

    @property
    def matches_nothing(self) -> bool:
        return any(isinstance(clause, AnyOf) and not clause.values for clause in self.must)


# `ItemFilter` field -> payload key, for conditions of the form "any of these values".
ANY_OF_FIELDS: tuple[tuple[str, str], ...] = (
    ("statuses", "status"),
    ("tags_any", "tags"),
    ("entities_any", "entities"),
    ("source_types", "source_type"),
    ("conversation_ids", "conversation_id"),
    ("tool_names", "tool_name"),
    ("doc_ids", "doc_id"),
    ("subject_ids", "subject_id"),
    ("perspective_owner_ids", "perspective_owner_id"),
    ("topics", "topics"),
    ("categories", "category"),
    ("formats", "format"),
    ("organizations", "organization"),
    ("flags", "flags"),
    ("langs", "lang"),
    ("authors", "author"),
    ("sections", "headings"),
)


def predicate_of(
    scope: ReadScope, where: ItemFilter, tiers: tuple[Tier, ...] | None = None
) -> Predicate:
    """Points that `scope` may read and `where` keeps, in `tiers` too when given."""
    wanted = _both(where.tiers, tiers)
    owner: tuple[Clause, ...] = (_readable(scope, wanted),)
    return Predicate(owner + _conditions(where, wanted), _exclusions(where, wanted))


def count_predicate(scope: ReadScope | None, where: ItemFilter | None) -> Predicate:
    """Of items, for counts only: scope None counts those of all users."""
    where = where if where is not None else EVERYTHING
    owner: tuple[Clause, ...] = ()
    if scope is not None:
        owner = (_readable(scope, where.tiers),)
    others = Range(key=PASSAGE, gte=1.0)
    return Predicate(
        owner + _conditions(where, where.tiers), (*_exclusions(where, where.tiers), others)
    )


# Points of first passages that lack the encoder's vector.
UNENCODED = Predicate((), (HasVector(ENCODER), Range(key=PASSAGE, gte=1.0)))


def not_newer_than(rev: int, point_ids: tuple[str, ...] | None = None) -> Predicate:
    """The rev guard of a write: stored points whose rev is at most `rev`, or that have none.

    Written as an exclusion: no range holds a point without the key, which nothing could replace.
    """
    ids: tuple[Clause, ...] = () if point_ids is None else (HasIds(point_ids),)
    return Predicate(ids, (Range(key="rev", gt=float(rev)),))


def _both(left: tuple[Tier, ...] | None, right: tuple[Tier, ...] | None) -> tuple[Tier, ...] | None:
    if left is None or right is None:
        return right if left is None else left
    return tuple(tier for tier in left if tier in right)


def _readable(scope: ReadScope, tiers: tuple[Tier, ...] | None) -> Clause:
    """Mine, or the system's in a shared tier; one equality whenever the tiers allow it."""
    mine = AnyOf("user_id", (scope.user_id,))
    asked = SHARED_TIERS if tiers is None else SHARED_TIERS.intersection(tiers)
    if not scope.include_shared or not asked:
        return mine
    if tiers is not None and SHARED_TIERS.issuperset(tiers):
        return AnyOf("user_id", (scope.user_id, SYSTEM_USER))
    shared = AnyOf("tier", tuple(sorted(tier.value for tier in SHARED_TIERS)))
    system = Predicate((AnyOf("user_id", (SYSTEM_USER,)), shared))
    return OneOf((Predicate((mine,)), system))


def _conditions(where: ItemFilter, tiers: tuple[Tier, ...] | None) -> tuple[Clause, ...]:
    clauses: list[Clause] = []
    if tiers is not None:
        clauses.append(AnyOf("tier", tuple(tier.value for tier in tiers)))
    for field, key in ANY_OF_FIELDS:
        values = getattr(where, field)
        if values is not None:
            clauses.append(AnyOf(key, tuple(str(value) for value in values)))
    clauses += [AnyOf("tags", spellings(tag)) for tag in where.tags_all or ()]
    if where.created_from is not None or where.created_to is not None:
        clauses.append(
            Range(key="created_at", gte=epoch_s(where.created_from), lt=epoch_s(where.created_to))
        )
    if where.always_inject is not None:
        clauses.append(Flag("always_inject", where.always_inject))
    if where.has_code is not None:
        clauses.append(Flag("has_code", where.has_code))
    if where.page_from is not None:
        clauses.append(Range(key="last_page", gte=float(where.page_from)))
    if where.page_to is not None:
        clauses.append(Range(key="first_page", lte=float(where.page_to)))
    return tuple(clauses)


def _exclusions(where: ItemFilter, tiers: tuple[Tier, ...] | None) -> tuple[Clause, ...]:
    """Written as exclusions so that a point without the key passes."""
    clauses: list[Clause] = []
    if not where.include_superseded:
        clauses.append(Flag("superseded", True))
    # Of documents alone, so that the other tiers are asked as before.
    if not where.include_attached and (tiers is None or Tier.BOOKS in tiers):
        own = () if where.attached_to is None else (AnyOf("attached_to", (where.attached_to,)),)
        clauses.append(OneOf((Predicate((Flag("attached", True),), own),)))
    if where.now is not None:
        over = Range(key="expires_at", lte=epoch_s(where.now))
        survives = Range(key="score", gte=SURVIVES_EXPIRY_SCORE)
        clauses.append(OneOf((Predicate((over,), (survives,)),)))
    if where.valid_at is not None:
        at = epoch_s(where.valid_at)
        clauses.append(Range(key="valid_from", gt=at))
        clauses.append(Range(key="valid_to", lte=at))
    return tuple(clauses)
