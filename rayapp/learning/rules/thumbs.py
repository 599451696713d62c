"""The thumbs of people on one answer: which citations each one judged, and its key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rayapp.learning.records import OutcomeEvent, Skipped, SkipReason
from rayapp.learning.requests import Recorder
from rayapp.memory.item import Outcome

# Limits of a principal that does not own the memories: such a thumb judged nothing, so it must not
# stand in the way of the next one.
REFUSALS: frozenset[SkipReason] = frozenset({"not_shown", "already_scored", "rate"})
NUMBER_DIGITS = 8  # fixed, so that keys sort by number


@dataclass(frozen=True, slots=True)
class Thumb:
    """The newest thumb on a citation; `skipped` when it is of no memory that can be scored."""

    outcome: Outcome
    skipped: Skipped | None


def key_prefix(conversation_id: str | None, message_id: str) -> str:
    """What the keys of an answer's thumbs start with. The space is in no key of a caller.

    Message ids may be unique in their conversation only. The colon is in no prefix of old rows.
    """
    answer = json.dumps([conversation_id, message_id])
    return f"feedback :{hashlib.sha256(answer.encode()).hexdigest()} "


def old_key_prefix(message_id: str) -> str:
    """The prefix of rows written before conversations were part of it."""
    return f"feedback {hashlib.sha256(message_id.encode()).hexdigest()} "


def of_conversation(
    events: Sequence[OutcomeEvent], conversation_id: str | None
) -> list[OutcomeEvent]:
    """Of the rows under an old prefix, those of this conversation."""
    return [event for event in events if event.conversation_id == conversation_id]


def next_key(prefix: str, events: Sequence[OutcomeEvent]) -> str:
    """The key of the next thumb. `events`: those under `prefix`, newest first."""
    number = int(events[0].idempotency_key.removeprefix(prefix)) + 1 if events else 1
    return f"{prefix}{number:0{NUMBER_DIGITS}d}"


def newest_thumbs(events: Sequence[OutcomeEvent]) -> dict[str, Thumb]:
    """The thumb in effect, by citation. `events`: those of the answer, newest first."""
    found: dict[str, Thumb] = {}
    for event in events:
        skipped = {one.memory_id: one for one in event.skipped}
        for memory_id in event.memory_ids:
            why = skipped.get(memory_id)
            if why is None or why.reason not in REFUSALS:
                found.setdefault(memory_id, Thumb(event.outcome, why))
    return found


def replaced_by(
    events: Sequence[OutcomeEvent], citations: Collection[str], recorder: Recorder
) -> tuple[str, ...]:
    """Keys of the thumbs that a new one on `citations` may replace.

    Only an owner replaces what somebody else recorded (decision 0013).
    """
    named = frozenset(citations)
    return tuple(
        event.idempotency_key
        for event in events
        if (recorder.owner or event.principal == recorder.principal)
        and not named.isdisjoint(event.memory_ids)
    )
