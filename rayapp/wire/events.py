"""The event stream over HTTP: what may be asked of it, and what an event holds."""

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from rayapp.wire.bases import Absent, Answer, Strict, comma_list, optional

# Kinds of `rayapp.admin.ports.StreamKind`: those of a user, and with them that of operators.
UserEventName = Literal[
    "stored",
    "indexed",
    "outcome",
    "promoted",
    "demoted",
    "archived",
    "restored",
    "updated",
    "merged",
    "learned",
    "extended",
    "outcome_detected",
    "thought",
    "episode",
    "important",
    "ontology",
]
EventName = Literal[UserEventName, "job"]


class EventsQuery(Strict):
    """Query fields of the event stream."""

    aliases: ClassVar = {"lastEventId": "last_event_id", "kinds": "types"}
    types: Annotated[tuple[EventName, ...], BeforeValidator(comma_list)] | None = optional(
        "Which events, joined by commas; all that you may see when absent."
    )
    last_event_id: str | None = Field(
        None,
        max_length=4_096,
        description="Go on after this event; the header `Last-Event-ID` wins.",
    )
    follow: bool = Field(
        True, description="false: what came since `last_event_id`, without waiting for more."
    )


class StreamEventView(Answer):
    """The data of one event; `type` is also its name. Which further fields there are depends on it.

    `ready` begins a stream; after `reset` what happened before it was lost: read again.
    """

    type: Literal["ready", "reset", EventName]
    at: datetime
    memory_id: str | None = Absent
    tier: str | None = Absent
    from_tier: str | None = Absent
    rule: str | None = Absent
    source: str | None = Absent
    conversation_id: str | None = Absent
    outcome: str | None = Absent
    memory_ids: tuple[str, ...] | None = Absent
    receipt_id: str | None = Absent
    message_id: str | None = Absent
    confidence: float | None = Absent
    tools: tuple[str, ...] | None = Absent
    job_id: str | None = Absent
    kind: str | None = Absent
    state: str | None = Absent
    stage: str | None = Absent
    total: int | None = Absent
    done: int | None = Absent
    failed: int | None = Absent
    version: int | None = Absent
