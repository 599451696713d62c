"""Whose verdict over the tools of a turn counts, and under which keys. Pure."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from rayapp.learning.records import OutcomeEvent
from rayapp.learning.rules.verdicts import standing
from rayapp.memory.item import Outcome

# Who judged an answer: a person or a program for them, what their next words say, the assistant
# itself. A verdict takes the place of one that counts as much or less.
EXPLICIT, DETECTED, RESPONSE = "explicit", "detected", "response"
_AUTHORITY: Mapping[str, int] = {RESPONSE: 1, DETECTED: 2, EXPLICIT: 3}


def verdict_prefix(conversation_id: str, message_id: str) -> str:
    """What the keys of verdicts over one turn's tools start with. The space is in no key of a
    caller."""
    return f"tools :{_digest(conversation_id, message_id)} "


def failure_key(conversation_id: str, message_id: str) -> str:
    """The key of the tools of a turn that gave no answer: whatever became of the turn."""
    return f"tools failed :{_digest(conversation_id, message_id)}"


def in_effect(events: Sequence[OutcomeEvent]) -> OutcomeEvent | None:
    """The verdict that counts. `events`: those of the turn, newest first."""
    return next((one for one in events if standing(one, one.withdrawn).tools), None)


def takes_effect(before: OutcomeEvent | None, outcome: Outcome, source: str) -> bool:
    """Whether a verdict is to be recorded after the one in effect: not when it says nothing, says
    the same again, or somebody whose word counts more has spoken."""
    if outcome is Outcome.UNKNOWN:
        return False
    if before is None:
        return True
    mine, theirs = _AUTHORITY.get(source, 0), _AUTHORITY.get(before.signal.source, 0)
    return mine > theirs or (mine == theirs and outcome is not before.outcome)


def _digest(conversation_id: str, message_id: str) -> str:
    """Message ids may be unique in their conversation only."""
    return hashlib.sha256(json.dumps([conversation_id, message_id]).encode()).hexdigest()
