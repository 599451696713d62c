"""Rows of the first client's old memory bank as new facts. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rayapp.admin.records import LegacyFact
from rayapp.core.errors import InvalidInput
from rayapp.core.ids import MEMORY_ID_PATTERN
from rayapp.memory.item import Source, SourceType
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules.creation import DEFAULT_CONFIDENCE, MAX_LABEL_CHARS, MAX_TAGS
from rayapp.memory.tiers import Tier
from rayapp.text.normalize import shows_nothing

LEGACY_TAG = "legacy"
IMPORTANCE = 0.8  # client contract: what the old bank gave a fact without one
# Control characters but tab and line ends: the old bank never looked.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
ARCHIVED = "archived"
DELETED = "deleted"


def memory_id_of(fact: LegacyFact) -> str:
    """The old id stays, so that what links to it goes on working, and so that moving a row in
    again finds it there."""
    return fact.raw_id


def is_deleted(fact: LegacyFact) -> bool:
    return str(fact.fields.get("status")) == DELETED


def is_archived(fact: LegacyFact) -> bool:
    return str(fact.fields.get("status")) == ARCHIVED


def new_memory(fact: LegacyFact, now: datetime) -> NewMemory:
    """The fact as a memory of the bank. InvalidInput: it says nothing, or its id is unusable."""
    fields = fact.fields
    text = _CONTROL.sub(" ", str(fields.get("text") or fields.get("content") or "")).strip()
    if shows_nothing(text):
        raise InvalidInput("The old row has no text; there is nothing to keep.", code="empty_text")
    if not MEMORY_ID_PATTERN.fullmatch(fact.raw_id):
        raise InvalidInput("The old row has an id that cannot be used.", code="bad_memory_id")
    return NewMemory(
        text=text,
        tier=Tier.MEMORY_BANK,
        memory_id=memory_id_of(fact),
        tags=_tags(fields.get("tags")),
        importance=_share(fields.get("importance"), IMPORTANCE),
        confidence=_share(fields.get("confidence"), DEFAULT_CONFIDENCE),
        created_at=_time(fields, now),
        source=Source(type=SourceType.IMPORT, tool_name="legacy_memory_bank"),
    )


def _tags(value: Any) -> tuple[str, ...]:
    found = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    clean = (_CONTROL.sub(" ", one).strip()[:MAX_LABEL_CHARS] for one in found if _is_text(one))
    tags = tuple(dict.fromkeys(tag for tag in clean if not shows_nothing(tag)))[:MAX_TAGS]
    return tags or (LEGACY_TAG,)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _share(value: Any, otherwise: float) -> float:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and 0 <= value <= 1 else otherwise


def _time(fields: Mapping[str, Any], now: datetime) -> datetime | None:
    """When it was made, if that is known and past."""
    for name in ("createdAt", "created_at"):
        at = fields.get(name)
        if isinstance(at, datetime):
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
            return min(at, now)
    return None
