"""Who may see an item and which items a filter keeps, as pure functions of values.

Stores translate the same meaning into their own predicate; the contract suite compares both.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rayapp.domain.memory import USER_ID_PATTERN, MemoryItem, Source, Status
from rayapp.domain.scope import ItemFilter, ReadScope
from rayapp.domain.tiers import DATAGOV_TIERS, SURVIVES_EXPIRY_SCORE, SYSTEM_USER, Tier
from rayapp.errors import InvalidInput

# Label of items that no tool stored, in growth charts.
MANUAL_SOURCE = "manual"


@dataclass(frozen=True, slots=True)
class OwnedTiers:
    """Items of one owner; `tiers` None means all of them."""

    user_id: str
    tiers: tuple[Tier, ...] | None


def checked_user(user_id: str) -> str:
    """`user_id` when it is well formed; raises InvalidInput otherwise, so scopes fail closed."""
    if not isinstance(user_id, str) or not USER_ID_PATTERN.fullmatch(user_id):
        raise InvalidInput("The user id must be 1 to 128 characters of A-Z a-z 0-9 . _ : @ -.")
    return user_id


def readable(scope: ReadScope, tiers: tuple[Tier, ...] | None = None) -> list[OwnedTiers]:
    """The owners that `scope` may read within `tiers`: me, and the system user's shared tiers."""
    mine = OwnedTiers(checked_user(scope.user_id), tiers)
    if not scope.include_shared or scope.user_id == SYSTEM_USER:
        return [mine]
    shared = tuple(tier for tier in DATAGOV_TIERS if tiers is None or tier in tiers)
    return [mine, OwnedTiers(SYSTEM_USER, shared)] if shared else [mine]


def may_read(scope: ReadScope, item: MemoryItem) -> bool:
    """Whether `item` is inside `scope`."""
    return any(
        item.user_id == owner.user_id and (owner.tiers is None or item.tier in owner.tiers)
        for owner in readable(scope)
    )


def flag_names(source: Source) -> tuple[str, ...]:
    """Names of the DataGov feature flags that are set, sorted."""
    flags: Any = (source.datagov or {}).get("flags") or {}
    if isinstance(flags, Mapping):
        return tuple(sorted(str(name) for name, value in flags.items() if value))
    if isinstance(flags, list | tuple | set):
        return tuple(sorted(str(name) for name in flags))
    return ()  # a stored value of another shape names nothing


def bare_words(text: str) -> list[str]:
    """Distinct lower-case words of `text` in order, without marks, quotes or signs."""
    plain = unicodedata.normalize("NFKD", text)
    kept = "".join(c for c in plain if not unicodedata.combining(c))
    return list(dict.fromkeys(re.findall(r"\w+", kept.lower())))


def expired(item: MemoryItem, now: datetime) -> bool:
    """Whether the time of `item` is over; a high score outlives it (decision 10)."""
    over = item.expires_at is not None and item.expires_at <= now
    return over and item.stats.score < SURVIVES_EXPIRY_SCORE


def matches(item: MemoryItem, where: ItemFilter) -> bool:
    """Whether `item` meets every condition of `where`.

    `statuses` None keeps every status but deleted: a tombstone is seen only by who names it.
    Time ranges are half open: created_from <= created_at < created_to.
    """
    return (
        not where.matches_nothing
        and _status_matches(item, where)
        and _values_match(item, where)
        and _times_match(item, where)
    )


def _status_matches(item: MemoryItem, where: ItemFilter) -> bool:
    if where.statuses is None:
        return item.status is not Status.DELETED
    return item.status in where.statuses


def _values_match(item: MemoryItem, where: ItemFilter) -> bool:
    source, datagov = item.source, item.source.datagov or {}
    pairs: tuple[tuple[tuple[Any, ...] | None, tuple[Any, ...]], ...] = (
        (where.tiers, (item.tier,)),
        (where.tags_any, item.tags),
        (where.entities_any, item.entities),
        (where.source_types, (source.type,)),
        (where.conversation_ids, (source.conversation_id,)),
        (where.tool_names, (source.tool_name,)),
        (where.doc_ids, (source.doc_id,)),
        (where.subject_ids, (item.subject_id,)),
        (where.categories, (datagov.get("category"),)),
        (where.formats, (datagov.get("format"),)),
        (where.organizations, (datagov.get("organization"),)),
        (where.flags, flag_names(source)),
        (where.langs, (item.lang,)),
    )
    return (
        all(wanted is None or any(v in wanted for v in have) for wanted, have in pairs)
        and set(where.tags_all or ()) <= set(item.tags)
        and (where.always_inject is None or item.always_inject == where.always_inject)
        and (where.include_superseded or item.superseded_by is None)
    )


def _times_match(item: MemoryItem, where: ItemFilter) -> bool:
    at = where.valid_at
    return (
        (where.created_from is None or item.created_at >= where.created_from)
        and (where.created_to is None or item.created_at < where.created_to)
        and (where.now is None or not expired(item, where.now))
        and (at is None or item.valid_from is None or item.valid_from <= at)
        and (at is None or item.valid_to is None or item.valid_to > at)
    )
