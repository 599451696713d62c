"""Who may see an item and which items a filter keeps, as pure functions of values.

Stores translate the same meaning into their own predicate; the contract suite compares both.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any

from rayapp.core.errors import InvalidInput
from rayapp.core.ids import OWNER_ID_PATTERN, SYSTEM_USER
from rayapp.memory.item import MemoryItem, Source, Status, SyncState
from rayapp.memory.rules.hiding import hidden_reason
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import DATAGOV_TIERS, FOLLOWED_TIERS, SURVIVES_EXPIRY_SCORE, Tier
from rayapp.text.normalize import VEILED, normalize, spellings

# Label of items that no tool stored, in growth charts.
MANUAL_SOURCE = "manual"


@dataclass(frozen=True, slots=True)
class OwnedTiers:
    """Items of one owner; `tiers` None means all of them."""

    user_id: str
    tiers: tuple[Tier, ...] | None


def checked_user(user_id: str) -> str:
    """`user_id` when it is well formed; raises InvalidInput otherwise, so scopes fail closed."""
    if not isinstance(user_id, str) or not OWNER_ID_PATTERN.fullmatch(user_id):
        raise InvalidInput("The user id must be 1 to 128 characters of A-Z a-z 0-9 . _ : @ -.")
    return user_id


def readable(scope: ReadScope, tiers: tuple[Tier, ...] | None = None) -> list[OwnedTiers]:
    """The owners that `scope` may read within `tiers`: me, and the system user's shared tiers."""
    mine = OwnedTiers(checked_user(scope.user_id), tiers)
    if not scope.include_shared or scope.user_id == SYSTEM_USER:
        return [mine]
    shared = tuple(tier for tier in DATAGOV_TIERS if tiers is None or tier in tiers)
    return [mine, OwnedTiers(SYSTEM_USER, shared)] if shared else [mine]


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
    plain = unicodedata.normalize("NFKD", normalize(text))
    kept = "".join(c for c in plain if not unicodedata.combining(c))
    return list(dict.fromkeys(re.findall(r"\w+", kept.lower())))


def veiled_words(*texts: str) -> list[str]:
    """Words of texts that a database does not see in them: those with a character in it that shows
    nothing, or with one for a letter and its point."""
    pieces = (piece for text in texts if not text.isascii() for piece in text.split())
    found = (word for piece in pieces if VEILED.search(piece) for word in bare_words(piece))
    return list(dict.fromkeys(found))


def is_expired(item: MemoryItem, now: datetime) -> bool:
    """Whether the time of `item` is over; a high score outlives it (decision 0015)."""
    over = item.expires_at is not None and item.expires_at <= now
    return over and item.stats.score < SURVIVES_EXPIRY_SCORE


def matches(item: MemoryItem, where: ItemFilter) -> bool:
    """Whether `item` meets every condition of `where`.

    `statuses` None keeps every status but deleted: a tombstone is seen only by who names it.
    Time ranges are half open: created_from <= created_at < created_to.
    """
    return bool(kept((item,), where))


def kept(items: Iterable[MemoryItem], where: ItemFilter) -> list[MemoryItem]:
    """Those of `items` that meet every condition of `where`, as `matches` says, in order.

    Each search asks this of all its candidates, and most filters name no values, so what depends
    on the filter alone is looked at once (measured: 0.3 ms of a search, item by item).
    """
    if where.matches_nothing:
        return []
    named = [(have, wanted) for have, wanted in _named_values(where) if wanted is not None]
    return [
        item
        for item in items
        if _status_matches(item, where)
        and (where.tiers is None or item.tier in where.tiers)
        and all(any(value in wanted for value in have(item)) for have, wanted in named)
        and _traits_match(item, where)
        and _place_matches(item, where)
        and _times_match(item, where)
        and is_seen(item, where)
    ]


def is_seen(item: MemoryItem, where: ItemFilter) -> bool:
    """Whether `item` is attached to no conversation, or to the one that asks."""
    return where.include_attached or item.attached_to in (None, where.attached_to)


def is_followed(item: MemoryItem) -> bool:
    """Whether a change of `item` is due for the graphs, which every conversation sees."""
    return item.tier in FOLLOWED_TIERS and item.attached_to is None


def is_understood(item: MemoryItem) -> bool:
    """Whether a change of `item` is looked at for what may be derived from it: whatever a user
    has, and never what is shared or seen by one conversation alone. What is deleted is told to
    what was derived in the same write."""
    living = item.status is not Status.DELETED
    return living and item.user_id != SYSTEM_USER and item.attached_to is None


def is_coming(item: MemoryItem) -> bool:
    """Whether `item` is a chunk of a document that the index is still to take up. It is searched
    with the rest of its document, not by its words before: a book has a thousand, and reading the
    words of one takes 4 ms of every search beside it."""
    state = item.index
    waits = state.sync_state is SyncState.PENDING and state.vector_hash is None
    return waits and item.source.chunk_id is not None


def _status_matches(item: MemoryItem, where: ItemFilter) -> bool:
    if not where.include_hidden and hidden_reason(item) is not None:
        return False
    if where.statuses is None:
        return item.status is not Status.DELETED
    return item.status in where.statuses


def _named_values(
    where: ItemFilter,
) -> tuple[tuple[Callable[[MemoryItem], tuple[Any, ...]], tuple[Any, ...] | None], ...]:
    """What an item has, and which of those values the filter wants; None = any."""
    return (
        (lambda item: item.tags, where.tags_any),
        (lambda item: item.entities, where.entities_any),
        (lambda item: (item.source.type,), where.source_types),
        (lambda item: (item.source.conversation_id,), where.conversation_ids),
        (lambda item: (item.source.tool_name,), where.tool_names),
        (lambda item: (item.source.doc_id,), where.doc_ids),
        (lambda item: (item.subject_id,), where.subject_ids),
        (lambda item: (item.perspective_owner_id,), where.perspective_owner_ids),
        (lambda item: item.topics, where.topics),
        (lambda item: (_datagov(item).get("category"),), where.categories),
        (lambda item: (_datagov(item).get("format"),), where.formats),
        (lambda item: (_datagov(item).get("organization"),), where.organizations),
        (lambda item: flag_names(item.source), where.flags),
        (lambda item: (item.lang,), where.langs),
        (lambda item: (_book(item).get("author"),), where.authors),
        (lambda item: tuple(headings_of(item.source)), where.sections),
    )


def _datagov(item: MemoryItem) -> Mapping[str, Any]:
    return item.source.datagov or {}


def _book(item: MemoryItem) -> Mapping[str, Any]:
    return item.source.book or {}


def headings_of(source: Source) -> list[str]:
    """The headings that a passage of a document stands under: those of its first words, the highest
    first, then those of the small sections that are joined to it."""
    found: Any = (source.book or {}).get("headings")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def heading_of(source: Source) -> str | None:
    """The one that the first words of a passage stand right under."""
    headings, section = headings_of(source), (source.book or {}).get("section")
    if not headings or section == "":
        return None
    paths = accumulate(headings, "{} > {}".format)
    found = (one for one, path in zip(headings, paths, strict=True) if path == section)
    return next(found, headings[-1])


def pages_of(source: Source) -> tuple[int, int] | None:
    """The first and the last page of a passage; None where it has none."""
    match (source.book or {}).get("pages"):
        case [int() as first, int() as last]:
            return first, last
    return None


def _place_matches(item: MemoryItem, where: ItemFilter) -> bool:
    if where.has_code is not None and _book(item).get("has_code") is not where.has_code:
        return False
    if where.page_from is None and where.page_to is None:
        return True
    pages = pages_of(item.source)
    return (
        pages is not None
        and (where.page_from is None or pages[1] >= where.page_from)
        and (where.page_to is None or pages[0] <= where.page_to)
    )


def _has_all(tags: Collection[str], wanted: Iterable[str]) -> bool:
    return all(not set(spellings(one)).isdisjoint(tags) for one in wanted)


def _traits_match(item: MemoryItem, where: ItemFilter) -> bool:
    return (
        (not where.tags_all or _has_all(item.tags, where.tags_all))
        and (where.always_inject is None or item.always_inject == where.always_inject)
        and where.instruction in (None, item.instruction is not None)
        and (where.include_superseded or item.superseded_by is None)
    )


def _times_match(item: MemoryItem, where: ItemFilter) -> bool:
    at = where.valid_at
    return (
        (where.created_from is None or item.created_at >= where.created_from)
        and (where.created_to is None or item.created_at < where.created_to)
        and (where.updated_to is None or item.updated_at < where.updated_to)
        and (where.now is None or not is_expired(item, where.now))
        and (at is None or item.valid_from is None or item.valid_from <= at)
        and (at is None or item.valid_to is None or item.valid_to > at)
    )
