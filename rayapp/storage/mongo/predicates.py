"""The only place where scopes and filters become MongoDB predicates. Pure."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import Status
from rayapp.memory.requests import SORT_KEYS, SortKey, SortValue
from rayapp.memory.rules.filtering import OwnedTiers, bare_words, checked_user, readable
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import SURVIVES_EXPIRY_SCORE, Tier
from rayapp.portability.rules.collections import Collection
from rayapp.storage.mongo.indexes import ACTIVE_ONLY, HIDDEN_ONLY
from rayapp.text.normalize import spellings

Predicate = dict[str, Any]

# What no conversation has for itself; rows of before lack the field.
UNATTACHED: Predicate = {"attached_to": None}
NOT_DELETED: Predicate = {"status": {"$ne": Status.DELETED.value}}

# `$text` reads the posting list of every term: more of them cost time and find little
# (measured: 41 ms p95 for a heavy user at 3 terms).
MAX_TEXT_TERMS = 32
# The server cuts a word at a plain quotation mark, but not at gershayim and geresh.
_JOINED = re.compile("(?<![א-ת])[א-ת]++(?:[\"'\u05f3\u05f4][א-ת]++)+")

ANY_OF: tuple[tuple[str, str], ...] = (
    ("tags_any", "tags"),
    ("entities_any", "entities"),
    ("source_types", "source.type"),
    ("conversation_ids", "source.conversation_id"),
    ("tool_names", "source.tool_name"),
    ("doc_ids", "source.doc_id"),
    ("subject_ids", "subject_id"),
    ("perspective_owner_ids", "perspective_owner_id"),
    ("topics", "topics"),
    ("categories", "source.datagov.category"),
    ("formats", "source.datagov.format"),
    ("organizations", "source.datagov.organization"),
    ("flags", "flags"),
    ("langs", "lang"),
    ("authors", "source.book.author"),
    ("sections", "source.book.headings"),
)
# The type is what lets the server use the partial index.
PARTIAL: dict[str, Predicate] = {"source.conversation_id": {"$type": "string"}}


def own(scope: WriteScope) -> Predicate:
    """Items that the scope may change."""
    return {"user_id": checked_user(scope.user_id)}


def text_is(value: str) -> Predicate:
    """Equal to a text. The type is what lets the server use an index of the rows with one."""
    return {"$eq": value, "$type": "string"}


def active_text(user_id: str, tier: Tier, dedup_scope: str, content_hash: object) -> Predicate:
    """Active items with this text, as the unique index on active texts tells them apart."""
    return {
        "user_id": checked_user(user_id),
        "tier": tier.value,
        "dedup_scope": dedup_scope,
        "content_hash": content_hash,
        **ACTIVE_ONLY,
    }


def naming(collection: Collection, user: object) -> Predicate:
    """Rows that name a user, in each of the fields that may."""
    names: list[Predicate] = [{name: user} for name in collection.owner_fields]
    return names[0] if len(names) == 1 else {"$or": names}


def owned_by(user_ids: Iterable[str]) -> Predicate:
    """Rows of several users, for work that a background owner does for all of them."""
    return {"user_id": {"$in": sorted({checked_user(user_id) for user_id in user_ids})}}


def chosen(scope: WriteScope, where: ItemFilter) -> Predicate:
    """Items of the scope's user alone that meet a filter, for who changes them."""
    return {**own(scope), **_of_tiers(where.tiers), **_conditions(where)}


def others(users: Iterable[str]) -> Predicate:
    """All users but these, and but the one whose memories are shared."""
    return {"$nin": sorted({SYSTEM_USER, *users})}


def of_everybody(where: ItemFilter, but: Iterable[str] = ()) -> Predicate:
    """Items of all users but these that meet a filter, for work over all that is stored."""
    return {"user_id": others(but), **_of_tiers(where.tiers), **_conditions(where)}


def mine(scope: ReadScope) -> Predicate:
    """Rows of the reader's own collections (receipts, events, versions)."""
    return {"user_id": checked_user(scope.user_id)}


def visible(scope: ReadScope, tiers: tuple[Tier, ...] | None = None) -> Predicate:
    """Items that the scope may read."""
    branches = [_owned(owner) for owner in readable(scope, tiers)]
    return branches[0] if len(branches) == 1 else {"$or": branches}


def selected(scope: ReadScope, where: ItemFilter) -> list[Predicate]:
    """One predicate per owner, each with equality on user_id, so that each can use an index.

    Empty when the filter matches nothing.
    """
    if where.matches_nothing:
        return []
    conditions = _conditions(where)
    return [{**_owned(owner), **conditions} for owner in readable(scope, where.tiers)]


def after(sort: SortKey, values: tuple[SortValue, ...]) -> Predicate:
    """Items that come after `values` in the descending order `sort`."""
    paths = [path for path, _ in SORT_KEYS[sort]]
    steps = []
    for depth, path in enumerate(paths):
        same = zip(paths[:depth], values[:depth], strict=True)
        steps.append({**dict(same), path: {"$lt": values[depth]}})
    return {"$or": steps}


def text_terms(query: str) -> str:
    """`query` as bare words: no quotes, minus or other operator of `$text` survives."""
    whole = (one.replace('"', "\u05f4").replace("'", "\u05f3") for one in _JOINED.findall(query))
    return " ".join([*bare_words(query), *dict.fromkeys(whole)][:MAX_TEXT_TERMS])


def text(terms: str) -> Predicate:
    """`terms` come from `text_terms`."""
    return {"$text": {"$search": terms, "$language": "none"}}


def veiled(terms: str) -> Predicate:
    """The same of what the index of texts does not see."""
    return {"veiled_words": {"$in": terms.split(), "$type": "string"}}


def worded(user_id: str, terms: str) -> Predicate:
    """Both. The server uses either index only with the user in each branch."""
    return {"$or": [{"user_id": user_id, **one} for one in (text(terms), veiled(terms))]}


# Times of rows, by the clock of the server.


def due(path: str) -> Predicate:
    """The time of the row has come."""
    return {"$expr": {"$lte": [f"${path}", "$$NOW"]}}


def later(path: str) -> Predicate:
    """The time of the row is still to come. The TTL monitor runs once a minute: a row that has
    expired counts as gone at once."""
    return {"$expr": {"$gt": [f"${path}", "$$NOW"]}}


def younger(path: str, seconds: float) -> Predicate:
    """The row is not as old as that; the same of rows that expire by their age."""
    return {"$expr": {"$gt": [f"${path}", in_seconds(-seconds)]}}


def in_seconds(seconds: float) -> Predicate:
    """The time that comes so much later, as an expression."""
    return {"$add": ["$$NOW", round(seconds * 1000)]}


def _owned(owner: OwnedTiers) -> Predicate:
    return {"user_id": owner.user_id, **_of_tiers(owner.tiers)}


def _of_tiers(tiers: tuple[Tier, ...] | None) -> Predicate:
    return {} if tiers is None else {"tier": {"$in": [tier.value for tier in tiers]}}


def _conditions(where: ItemFilter) -> Predicate:
    predicate: Predicate = {"status": _status(where)}
    if not where.include_hidden:
        predicate["$nor"] = [dict(HIDDEN_ONLY)]
    for name, path in ANY_OF:
        values = getattr(where, name)
        if values is not None:
            predicate[path] = {"$in": [str(value) for value in values], **PARTIAL.get(path, {})}
    if where.tags_all:
        predicate["$and"] = [{"tags": {"$in": list(spellings(tag))}} for tag in where.tags_all]
    if where.always_inject is not None:
        predicate["always_inject"] = where.always_inject
    if where.instruction is not None:
        predicate["instruction"] = {"$type": "string"} if where.instruction else None
    if not where.include_superseded:
        predicate["superseded_by"] = None
    # Of documents alone, so that lists of other tiers are answered as before.
    if not where.include_attached and (where.tiers is None or Tier.BOOKS in where.tiers):
        predicate |= _seen_by(where.attached_to)
    predicate |= _place(where)
    predicate |= _times(where)
    alternatives = _open_ended(where)
    if alternatives:
        predicate.setdefault("$and", []).extend(alternatives)
    return predicate


def _seen_by(conversation: str | None) -> Predicate:
    return UNATTACHED if conversation is None else {"attached_to": {"$in": [None, conversation]}}


def _place(where: ItemFilter) -> Predicate:
    """Where in a document a passage stands."""
    found = (
        ("source.book.has_code", "$eq", where.has_code),
        ("source.book.pages.1", "$gte", where.page_from),
        ("source.book.pages.0", "$lte", where.page_to),
    )
    return {path: {op: wanted} for path, op, wanted in found if wanted is not None}


def _status(where: ItemFilter) -> Predicate:
    if where.statuses is None:
        return {"$ne": Status.DELETED.value}
    return {"$in": [status.value for status in where.statuses]}


def _times(where: ItemFilter) -> Predicate:
    bounds: dict[str, datetime | None] = {"$gte": where.created_from, "$lt": where.created_to}
    created = {op: at for op, at in bounds.items() if at is not None}
    changed = {} if where.updated_to is None else {"$lt": where.updated_to}
    ranges = {"created_at": created, "updated_at": changed}
    return {path: found for path, found in ranges.items() if found}


def _open_ended(where: ItemFilter) -> list[Predicate]:
    """Conditions on times that may be absent."""
    alternatives: list[Predicate] = []
    if where.now is not None:
        survives = {"stats.score": {"$gte": SURVIVES_EXPIRY_SCORE}}
        alternatives.append(
            {"$or": [{"expires_at": None}, {"expires_at": {"$gt": where.now}}, survives]}
        )
    if where.valid_at is not None:
        at = where.valid_at
        alternatives.append({"$or": [{"valid_from": None}, {"valid_from": {"$lte": at}}]})
        alternatives.append({"$or": [{"valid_to": None}, {"valid_to": {"$gt": at}}]})
    return alternatives
