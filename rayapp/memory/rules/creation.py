"""From a request to a memory item: validation, the memory_bank write guard, defaults.

`now` and limits are passed in; nothing here reads a clock.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from rayapp.core.errors import Forbidden, InvalidInput, TooLarge
from rayapp.core.ids import MEMORY_ID_PATTERN, OWNER_ID_PATTERN, SYSTEM_USER, org_of, user_of
from rayapp.memory.item import (
    NEUTRAL_SCORE,
    SOURCE_TRUST,
    UNIMPORTANT,
    IndexOp,
    IndexState,
    MemoryItem,
    Quality,
    Source,
    Stats,
    Status,
    other_person,
    point_id_of,
    subject_of,
    teller_of,
)
from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.rules.instructions import instruction_of
from rayapp.memory.rules.revision import touch
from rayapp.memory.tiers import GARBAGE_SCORE, TIER_POLICY, Tier, expiry_in
from rayapp.text.language import detect_language
from rayapp.text.normalize import content_hash, find_forbidden, label_form, shows_nothing

DEFAULT_IMPORTANCE = 0.5
DEFAULT_CONFIDENCE = 0.8
MAX_TAGS = 64
MAX_LABEL_CHARS = 200
# Names of fields that begin so are operators and references of a database, and marks of times and
# bytes in an archive: they come back as something else, or not at all.
RESERVED_SIGN = "$"
# Objects and lists within each other; the row of an archive and a body that holds one add six to
# them, and both end at 32.
MAX_FIELD_DEPTH = 24
_ASKS = re.compile(r"^[^\S\n]*(?:User|ה?משתמשת?):", re.MULTILINE)
_ANSWERS = re.compile(r"^[^\S\n]*(?:Assistant|ה?עוזרת?):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Characters."""

    text: int
    memory_bank: int


def check_user(user_id: str) -> None:
    """Refuse ids outside the pattern and the shared tenant, which nobody writes."""
    if user_id == SYSTEM_USER:
        raise Forbidden("The user 'system' is shared and read-only; name another user.")
    if not OWNER_ID_PATTERN.fullmatch(user_id):
        raise InvalidInput(
            "The user id must be 1 to 128 characters of letters, digits and . _ : @ -.",
            code="bad_user_id",
        )


def check_new(new: NewMemory, limits: TextLimits) -> None:
    """Raise InvalidInput or TooLarge with one sentence; return when `new` may be stored."""
    if TIER_POLICY[new.tier].shared:
        raise InvalidInput(
            f"Tier {new.tier.value} is filled by the DataGov job; choose a core tier.",
            code="read_only_tier",
        )
    check_text(new.text, limits.memory_bank if new.tier is Tier.MEMORY_BANK else limits.text)
    check_labels(new.tags, "tag")
    check_labels(new.entities, "entity")
    check_labels(new.topics, "topic")
    check_fields(new.source)
    if new.memory_id in (".", ".."):
        raise InvalidInput(
            "memory_id must not be . or .., which programs take out of an address.",
            code="bad_memory_id",
        )
    if new.memory_id is not None and not MEMORY_ID_PATTERN.fullmatch(new.memory_id):
        raise InvalidInput(
            "memory_id must be 1 to 128 characters of letters, digits and . _ : @ -.",
            code="bad_memory_id",
        )
    if new.supersedes is not None and not MEMORY_ID_PATTERN.fullmatch(new.supersedes):
        raise InvalidInput(
            "supersedes must be the id of a memory: 1 to 128 characters of letters, digits and "
            ". _ : @ -.",
            code="bad_supersedes",
        )
    for name, value in (("importance", new.importance), ("confidence", new.confidence)):
        if value is not None and not 0.0 <= value <= 1.0:
            raise InvalidInput(f"{name} must be between 0 and 1.", code=f"bad_{name}")
    check_validity(new.valid_from, new.valid_to)
    _guard_tier(new.tier, new.text, new.tags, new.always_inject)
    if new.tier is Tier.MEMORY_BANK and (new.importance is None or new.confidence is None):
        raise InvalidInput(
            "The memory bank needs importance and confidence, each 0 to 1.", code="bank_no_quality"
        )


def check_item(item: MemoryItem, limits: TextLimits) -> None:
    """The same rules for an item after an edit."""
    check_validity(item.valid_from, item.valid_to)
    check_text(item.text, limits.memory_bank if item.tier is Tier.MEMORY_BANK else limits.text)
    _guard_tier(item.tier, item.text, item.tags, item.always_inject)


def check_validity(valid_from: datetime | None, valid_to: datetime | None) -> None:
    if valid_from and valid_to and valid_from > valid_to:
        raise InvalidInput("valid_from must not be after valid_to.", code="bad_validity")


def check_text(text: str, limit: int) -> None:
    """Not empty, not above `limit` characters, no control characters."""
    if len(text) > limit:
        raise TooLarge(f"The text has {len(text)} characters; at most {limit} are stored.")
    forbidden = find_forbidden(text)
    if forbidden:
        raise InvalidInput(f"The text holds {forbidden}; remove it.", code="control_character")
    if not text.strip():
        raise InvalidInput("The text is empty; send some.", code="empty_text")
    if shows_nothing(text):
        raise InvalidInput(
            "The text holds no visible character; send some words.", code="empty_text"
        )


def check_labels(labels: tuple[str, ...], noun: str) -> None:
    """Tags and entities: any script, trimmed, not empty, bounded in number and length."""
    if len(labels) > MAX_TAGS:
        raise InvalidInput(f"At most {MAX_TAGS} of {noun} are stored.", code=f"too_many_{noun}")
    for one in labels:
        kept = label_form(one)
        if shows_nothing(kept) or len(kept) > MAX_LABEL_CHARS or find_forbidden(one):
            raise InvalidInput(
                f"Each {noun} needs 1 to {MAX_LABEL_CHARS} printable characters.",
                code=f"bad_{noun}",
            )


def check_fields(source: Source) -> None:
    """What a caller adds to a source in names of its own: none is reserved, and an archive that
    holds it can be read."""
    for place, free in (("source.book", source.book), ("source.datagov", source.datagov)):
        for depth, names in _levels(free):
            reserved = next((one for one in names if one.startswith(RESERVED_SIGN)), None)
            if reserved is not None:
                raise InvalidInput(
                    f"{place} has a field with the name {reserved[:MAX_LABEL_CHARS]!r}; no name "
                    f"may begin with {RESERVED_SIGN}, write it without.",
                    code="reserved_name",
                    details={"field": place},
                )
            if depth > MAX_FIELD_DEPTH:
                raise InvalidInput(
                    f"{place} is nested more than {MAX_FIELD_DEPTH} deep; flatten it.",
                    details={"field": place},
                )


def _levels(free: Mapping[str, Any] | None) -> Iterator[tuple[int, Iterable[str]]]:
    """The depth of every object and list within, and the names in it."""
    todo: list[tuple[int, Any]] = [(1, free)]
    while todo:
        depth, value = todo.pop()
        if isinstance(value, Mapping):
            yield depth, value.keys()
            todo.extend((depth + 1, one) for one in value.values())
        elif isinstance(value, list | tuple):
            yield depth, ()
            todo.extend((depth + 1, one) for one in value)


def _guard_tier(tier: Tier, text: str, tags: tuple[str, ...], always_inject: bool) -> None:
    """memory_bank keeps distilled facts: what cannot be ranked or found later is refused."""
    if tier is not Tier.MEMORY_BANK:
        if always_inject:
            raise InvalidInput(
                "always_inject is for tier memory_bank only; change the tier or drop it.",
                code="bad_always_inject",
            )
        return
    if not tags:
        raise InvalidInput("The memory bank needs at least one tag; add one.", code="bank_no_tags")
    if is_raw_exchange(text):
        raise InvalidInput(
            "The memory bank keeps facts, not whole exchanges; store the fact itself.",
            code="bank_raw_exchange",
        )


def is_raw_exchange(text: str) -> bool:
    """A turn of a conversation as it was stored, not a fact."""
    halves = halves_of(text)
    return halves is not None and halves[1] is not None


def halves_of(text: str) -> tuple[str, str | None] | None:
    """What was asked and what was answered, of a turn as it was stored; None: it is no turn, or
    nothing of its answer is kept."""
    asks = _ASKS.search(text)
    if asks is None:
        return None
    answers = _ANSWERS.search(text, asks.end())
    if answers is None:
        return text[asks.end() :].strip(), None
    return text[asks.end() : answers.start()].strip(), text[answers.end() :].strip()


def new_item(
    new: NewMemory, *, user_id: str, memory_id: str, now: datetime, stored_by: str = ""
) -> MemoryItem:
    """The item that `new` becomes: `pending`, version 1, times from the server's clock."""
    instruction = _instruction_of(new.text, new.tier, new.source)
    subject = label_form(new.subject_id or "")
    teller = label_form(new.perspective_owner_id or "")
    item = MemoryItem(
        memory_id=memory_id,
        point_id=point_id_of(user_id, memory_id),
        user_id=user_id,
        org_id=org_of(user_id),
        tier=new.tier,
        text=new.text,
        summary=new.summary,
        content_hash=content_hash(new.text),
        dedup_scope=dedup_scope(
            new.tier,
            new.source,
            _others(other_person(subject or None, user_id), other_person(teller or None, user_id)),
        ),
        tags=_distinct(new.tags),
        entities=_distinct(new.entities),
        always_inject=new.always_inject,
        lang=detect_language(new.text),
        source=new.source,
        stored_by=stored_by,
        perspective_owner_id=teller or user_of(user_id),
        subject_id=subject or user_of(user_id),
        topics=_distinct(new.topics),
        trust=_trust(new),
        quality=Quality(
            importance=DEFAULT_IMPORTANCE if new.importance is None else new.importance,
            confidence=DEFAULT_CONFIDENCE if new.confidence is None else new.confidence,
        ),
        stats=Stats(score=NEUTRAL_SCORE if new.score is None else new.score),
        created_at=new.created_at or now,
        stored_at=now,
        updated_at=now,
        tier_entered_at=now,
        expires_at=None if new.lasting else lifetime(new.tier, instruction, now),
        valid_from=new.valid_from,
        valid_to=new.valid_to,
        supersedes=new.supersedes,
        sequence=sequence_at(now),
        instruction=instruction,
        attached_to=new.attached_to,
        index=IndexState(next_attempt_at=now),
    )
    return item if new.archived_reason is None else _put_away(item, new.archived_reason, now)


def _put_away(item: MemoryItem, reason: str, now: datetime) -> MemoryItem:
    """As `archived`, of what the index never held."""
    index = replace(item.index, op=IndexOp.DELETE)
    return replace(
        item, status=Status.ARCHIVED, archived_at=now, archived_reason=reason, index=index
    )


def _instruction_of(text: str, tier: Tier, source: Source) -> str | None:
    return instruction_of(text, tier, source.type, is_turn=source.message_id is not None)


def _trust(new: NewMemory) -> float:
    """Of its source class; a derived memory is trusted no more than its parents."""
    own = SOURCE_TRUST[new.source.type]
    return own if new.trust is None else min(own, new.trust)


def lifetime(tier: Tier, instruction: str | None, now: datetime) -> datetime | None:
    """When what enters the tier now ends. What is asked of all answers holds until it is taken
    back: replaced, archived or deleted."""
    return None if instruction else expiry_in(tier, now)


def sequence_at(now: datetime) -> int:
    """The `sequence` of a memory that is stored now: microseconds since 1970."""
    return round(now.timestamp() * 1_000_000)


def dedup_scope(tier: Tier, source: Source, whom: str | None = None) -> str:
    """Equal texts are duplicates within one book, one DataGov resource or, when they are turns, one
    conversation, which may be deleted without the others, wherever they rise; else within the tier.
    `whom`: others whom the text is about, or who told it: what two people share is two facts."""
    if tier is Tier.BOOKS:
        return source.doc_id or str((source.book or {}).get("book_id", ""))
    if tier in (Tier.DATAGOV_SCHEMA, Tier.DATAGOV_EXPANSION):
        return str((source.datagov or {}).get("resource_id", ""))
    is_turn = tier is Tier.WORKING and source.message_id is not None
    scope = (source.conversation_id or "") if is_turn else ""
    return scope if whom is None else f"{scope} {whom}"


# Between what a text is told apart by and its period, where the same is said of another one.
_PERIOD = " @period "


def period_scope(item: MemoryItem) -> str:
    """The scope of a text that is said of a later time, too."""
    ends = (item.valid_from, item.valid_to)
    named = "/".join("" if at is None else at.isoformat(timespec="milliseconds") for at in ends)
    return f"{open_scope(item)}{_PERIOD}{named}"


def open_scope(item: MemoryItem) -> str:
    """The scope of the text whatever its period."""
    return item.dedup_scope.partition(_PERIOD)[0]


def is_period(scope: str) -> bool:
    """Whether it is the scope of one of several periods."""
    return _PERIOD in scope


def _edited_scope(before: MemoryItem, after: MemoryItem) -> str:
    """A text about another person, or of a period with another end, is another fact. The scope of a
    part of a document is its document."""
    if before.tier is Tier.BOOKS:
        return before.dedup_scope
    scope, was, whom = open_scope(before), _others_of(before), _others_of(after)
    if was != whom:
        scope = scope if was is None else scope.removesuffix(f" {was}")
        scope = scope if whom is None else f"{scope} {whom}"
    return (
        period_scope(replace(after, dedup_scope=scope)) if is_period(before.dedup_scope) else scope
    )


def _others_of(item: MemoryItem) -> str | None:
    return _others(subject_of(item), teller_of(item))


def _others(subject: str | None, teller: str | None) -> str | None:
    """Who, beside the user, makes a text another one than the same words of somebody else."""
    return subject if teller is None else f"{subject or ''} @by {teller}"


def apply_edit(item: MemoryItem, edit: MemoryEdit, now: datetime) -> MemoryItem:
    """The item after `edit`; the same object when nothing changes."""
    given = _given(edit, "text", "summary", "always_inject", "valid_to")
    if edit.subject_id is not None:
        given["subject_id"] = edit.subject_id or user_of(item.user_id)
    if edit.perspective_owner_id is not None:
        given["perspective_owner_id"] = edit.perspective_owner_id or user_of(item.user_id)
    labels = _given(edit, "tags", "entities", "topics")
    given |= {name: _distinct(found) for name, found in labels.items()}
    quality = replace(item.quality, **_given(edit, "importance", "confidence"))
    changed = replace(item, **given, quality=quality)
    text = changed.text
    if changed == item:
        return item
    changed = replace(changed, dedup_scope=_edited_scope(item, changed))
    op = IndexOp.VECTOR if text != item.text else IndexOp.PAYLOAD
    instruction = _instruction_of(text, item.tier, item.source)
    if bool(instruction) != bool(item.instruction):
        changed = replace(changed, expires_at=lifetime(item.tier, instruction, now))
    hashed, lang = content_hash(text), detect_language(text)
    return touch(changed, op, now, content_hash=hashed, lang=lang, instruction=instruction)


def _given(edit: MemoryEdit, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(edit, name)) is not None}


def archived(item: MemoryItem, reason: str | None, now: datetime) -> MemoryItem:
    gone: dict[str, Any] = {"archived_at": now, "archived_reason": reason}
    return touch(item, IndexOp.DELETE, now, status=Status.ARCHIVED, **gone)


def restored(item: MemoryItem, now: datetime) -> MemoryItem:
    """Back to active, with a fresh lifetime in its tier: what it has shown there counts anew.

    What was archived is no garbage from now on, or the next cycle would put it away again.
    """
    stats = replace(item.stats, tier_uses=0, tier_success=0.0)
    if item.status is Status.ARCHIVED:
        stats = replace(stats, score=max(stats.score, GARBAGE_SCORE))
    return touch(
        item,
        IndexOp.VECTOR,
        now,
        status=Status.ACTIVE,
        stats=stats,
        archived_at=None,
        archived_reason=None,
        tier_entered_at=now,
        expires_at=None
        if item.archived_reason == UNIMPORTANT
        else lifetime(item.tier, item.instruction, now),
    )


def deleted(item: MemoryItem, now: datetime) -> MemoryItem:
    """A tombstone: the row stays until its point is gone."""
    return touch(item, IndexOp.DELETE, now, status=Status.DELETED)


def _distinct(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(label_form, labels)))
