"""Rules of upkeep: blobs, legacy facts, resets, sessions of guests, retention. Pure."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import log2
from typing import Any

from rayapp.admin.ports import LegacyFact, RetentionKind, RetentionLimit
from rayapp.core.errors import InvalidInput
from rayapp.core.ids import MEMORY_ID_PATTERN
from rayapp.memory.item import Source, SourceType
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules.creation import DEFAULT_CONFIDENCE, MAX_LABEL_CHARS, MAX_TAGS
from rayapp.memory.scope import EVERYTHING
from rayapp.memory.tiers import CORE_TIERS, Tier
from rayapp.text.normalize import shows_nothing

# Finds encoded files (base64) in texts, and takes them out.
#
# A file that was pasted or uploaded as text is no memory: it cannot be found by its words, and it
# fills prompts. A long run of base64 characters is one when it looks like none of the long things
# that people do write: paths, addresses, hashes, words without spaces.

# Characters of the shortest run looked at: longer than a SHA-512 in hexadecimal (128) and than an
# address that somebody typed.
MIN_BLOB_CHARS = 200
# Bits per character. Base64 of compressed data has about 5.9, of plain text 4.9 and more; long
# hexadecimal has 4, Hebrew and English words without spaces about 4.2.
MIN_ENTROPY = 4.6
# Characters looked at for that: enough for a stable value.
ENTROPY_SAMPLE = 4_096

_DATA_URI = r"(?:data:[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,80}(?:;[a-z0-9=.+-]{1,40}){0,3};base64,)?"
_CHAR = r"[A-Za-z0-9+/_-]"
# Encoders break lines at 64 or 76 characters; a shorter last line is known by its padding only,
# because a line of prose may be one word.
_RUN = rf"{_CHAR}{{40,}}(?:\r?\n{_CHAR}{{40,}})*(?:\r?\n{_CHAR}+={{1,2}}|={{0,2}})"
_BLOB = re.compile(f"{_DATA_URI}{_RUN}", re.IGNORECASE)
_PADDING = "="


@dataclass(frozen=True, slots=True)
class Blob:
    """A place in a text: characters from `start` up to `end`."""

    start: int
    end: int

    @property
    def chars(self) -> int:
        return self.end - self.start


def blobs(text: str) -> tuple[Blob, ...]:
    """The encoded files in `text`, in order."""
    return tuple(
        Blob(found.start(), found.end())
        for found in _BLOB.finditer(text)
        if found.end() - found.start() >= MIN_BLOB_CHARS and _encoded(found.group())
    )


def without_blobs(text: str, found: tuple[Blob, ...]) -> str:
    """`text` with a short note where each file stood; empty when it said nothing else."""
    parts: list[str] = []
    at = 0
    for blob in found:
        parts += [text[at : blob.start], f"[encoded file removed: {blob.chars} characters]"]
        at = blob.end
    rest = "".join([*parts[::2], text[at:]])
    if not any(char.isalnum() for char in rest):
        return ""
    return "".join([*parts, text[at:]]).strip()


def _encoded(run: str) -> bool:
    """Mixed case and digits in about the measure of chance."""
    body = run.rpartition(",")[2][:ENTROPY_SAMPLE].rstrip(_PADDING)
    lower = any(char.islower() for char in body)
    upper = any(char.isupper() for char in body)
    digit = any(char.isdigit() for char in body)
    return lower and upper and digit and _entropy(body) >= MIN_ENTROPY


def _entropy(text: str) -> float:
    size = len(text)
    return -sum(n / size * log2(n / size) for n in Counter(text).values()) if size else 0.0


LEGACY_TAG = "legacy"
IMPORTANCE = 0.8  # client contract: what the old bank gave a fact without one
# Control characters but tab and line ends: the old bank never looked.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
ARCHIVED = "archived"
DELETED = "deleted"


def status_of(fact: LegacyFact) -> str:
    return str(fact.fields.get("status"))


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
        # The old id stays: what links to it goes on working, and a second move finds it there.
        memory_id=fact.raw_id,
        tags=_tags(fields.get("tags")),
        importance=_share(fields.get("importance"), IMPORTANCE),
        confidence=_share(fields.get("confidence"), DEFAULT_CONFIDENCE),
        created_at=_time(fields, now),
        source=Source(type=SourceType.IMPORT, tool_name="legacy_memory_bank"),
    )


def _tags(value: Any) -> tuple[str, ...]:
    found = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    clean = (
        _CONTROL.sub(" ", one).strip()[:MAX_LABEL_CHARS] for one in found if isinstance(one, str)
    )
    tags = tuple(dict.fromkeys(tag for tag in clean if not shows_nothing(tag)))[:MAX_TAGS]
    return tags or (LEGACY_TAG,)


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


# Anchored at both ends; as text, because a database matches it too.
SESSION_USER = "^[0-9a-f]{64}$"
# Days without a change after which nobody comes back to such a session.
QUIET_DAYS = 30

# What goes by itself. Chunks of documents are not among them: they go with their document.
_FILTERS = {
    **{
        RetentionKind(tier.value): replace(EVERYTHING, tiers=(tier,))
        for tier in CORE_TIERS
        if tier is not Tier.BOOKS
    },
    RetentionKind.TOOL_RESULTS: replace(
        EVERYTHING,
        tiers=(Tier.WORKING, Tier.HISTORY, Tier.PATTERNS),
        source_types=(SourceType.TOOL.value,),
    ),
}


def retention_limits(
    days: Mapping[str, float], *, pinned: bool, now: datetime
) -> tuple[RetentionLimit, ...]:
    """The limits that hold now. `days`: by kind, above 0. A memory is as old as its last change,
    whatever time it tells of; one that is pinned stays unless `pinned`, and one of the memory bank
    goes by the limit of that tier alone."""
    found = []
    for kind in RetentionKind:
        if kind.value not in days:
            continue
        before, where = now - timedelta(days=days[kind.value]), _FILTERS.get(kind)
        if where is not None:
            shown = None if pinned else False
            where = replace(where, updated_to=before, always_inject=shown)
        found.append(RetentionLimit(kind=kind, before=before, memories=where))
    return tuple(found)


# Without a schedule somebody should make one by hand so often, hours; with one, twice its pause is
# late: one that failed was not made up for.
BACKUP_H = 7 * 24.0


def backup_is_late(newest_at: datetime | None, every_h: float, now: datetime) -> bool:
    """Whether the last whole backup is older than it should be, or there is none."""
    allowed = timedelta(hours=2 * every_h or BACKUP_H)
    return newest_at is None or now - newest_at > allowed


def differences_left(sweep: Mapping[str, Any]) -> dict[str, int]:
    """What a sweep found and nobody repaired, by kind, from its kept report."""
    if "left" in sweep:
        return dict(sweep["left"])
    repaired = sweep["repaired"]
    return {kind: number - repaired.get(kind, 0) for kind, number in sweep["found"].items()}
