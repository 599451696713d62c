"""What of a memory is a source, and whose words it holds. Pure."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from rayapp.memory.item import UNIMPORTANT, MemoryItem, SourceType, Status
from rayapp.memory.rules.creation import halves_of
from rayapp.memory.rules.filtering import is_expired, is_understood
from rayapp.memory.tiers import DATAGOV_TIERS
from rayapp.understanding.ports import SourceText
from rayapp.understanding.records import Fate, Importance, Speaker, Understanding
from rayapp.understanding.rules.importance import topics_of

# Whose words a source holds; what a tool found is nobody's own, as what an assistant says.
SPEAKERS: dict[SourceType, Speaker] = {
    SourceType.ASSISTANT: Speaker.ASSISTANT,
    SourceType.TOOL: Speaker.ASSISTANT,
    SourceType.DOCUMENT: Speaker.DOCUMENT,
}


class Side(NamedTuple):
    """The words of one speaker."""

    speaker: Speaker
    text: str


def sides_of(item: MemoryItem) -> tuple[Side, ...]:
    """One, or the two of a turn, which are scored apart."""
    halves = halves_of(item.text) if item.source.message_id is not None else None
    if halves is None:
        return (Side(SPEAKERS.get(item.source.type, Speaker.USER), item.text),)
    asked, answered = halves
    question = Side(Speaker.USER, asked)
    return (question,) if answered is None else (question, Side(Speaker.ASSISTANT, answered))


def is_source(item: MemoryItem) -> bool:
    """Whether anything may ever be derived from it."""
    return is_understood(item) and item.tier not in DATAGOV_TIERS


def stands(item: MemoryItem, now: datetime) -> bool:
    """Whether what was derived from it may stay: it is active, its time is not over, and it is no
    part of another memory."""
    active = item.status is Status.ACTIVE and item.merged_into is None
    return active and is_source(item) and not is_expired(item, now)


def is_unimportant(item: MemoryItem) -> bool:
    """Whether it was put away by its importance alone, and may come back by it."""
    return item.status is Status.ARCHIVED and item.archived_reason == UNIMPORTANT


def source_hash(item: MemoryItem) -> str:
    """Of all that is understood of it: another one is understood anew."""
    parts = (
        item.content_hash,
        item.subject_id or "",
        item.perspective_owner_id or "",
        item.source.type.value,
        *item.topics,
    )
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


def row_of(item: MemoryItem, trace_id: str) -> Understanding:
    """The row of a memory that nobody has looked at yet."""
    return Understanding(
        user_id=item.user_id,
        memory_id=item.memory_id,
        source_hash=source_hash(item),
        version=item.version,
        said_at=item.created_at,
        conversation_id=item.source.conversation_id,
        doc_id=item.source.doc_id,
        subject_id=item.subject_id,
        topics=topics_of(sides_of(item)[0].text, item.topics),
        trace_id=trace_id,
    )


def gone_row(user_id: str, memory_id: str, at: datetime) -> Understanding:
    """The row of a source that is not there, which tells the queue to take back what it gave."""
    return Understanding(
        user_id=user_id, memory_id=memory_id, source_hash="", version=0, said_at=at, gone=True
    )


def source_text(item: MemoryItem, sides: Sequence[Importance], *, whole: bool) -> SourceText:
    """What is derived from: the sides that passed; `whole`: all of them."""
    words = sides_of(item)
    passed = [side.text for side, one in zip(words, sides, strict=True) if whole or one.passed]
    return SourceText(
        user_id=item.user_id,
        source_id=item.memory_id,
        text="\n".join(passed),
        said_at=item.created_at,
        conversation_id=item.source.conversation_id,
        subject_id=item.subject_id,
        perspective_owner_id=item.perspective_owner_id,
        topics=item.topics,
        doc_id=item.source.doc_id,
    )


def fate_of(item: MemoryItem, *, derived: bool) -> Fate:
    if is_unimportant(item):
        return Fate.ARCHIVED
    return Fate.DERIVED if derived else Fate.PASSED_OVER
