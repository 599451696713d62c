"""Query fields and events of the event stream."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from rayapp.admin.ports import StreamKind
from rayapp.wire.bases import Answer, Strict

EVENT_ALIASES = {"lastEventId": "last_event_id", "kinds": "types"}


def _names(value: object) -> object:
    """`types=stored,indexed` and `types=stored&types=indexed` are the same."""
    if not isinstance(value, list | tuple):
        return value
    return [name.strip() for one in value for name in str(one).split(",") if name.strip()]


EventName = Annotated[
    StreamKind, WithJsonSchema({"type": "string", "enum": [kind.value for kind in StreamKind]})
]


class EventsQuery(Strict):
    """Query fields of the event stream."""

    types: Annotated[tuple[EventName, ...], BeforeValidator(_names)] | None = Field(
        None, description="Which events, joined by commas; all that you may see when absent."
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

    type: Literal[
        "ready",
        "reset",
        "stored",
        "indexed",
        "outcome",
        "promoted",
        "demoted",
        "archived",
        "restored",
        "updated",
        "merged",
        "job",
    ]
    at: datetime
    memory_id: str | None = None
    tier: str | None = None
    from_tier: str | None = None
    rule: str | None = None
    source: str | None = None
    conversation_id: str | None = None
    outcome: str | None = None
    memory_ids: list[str] | None = None
    receipt_id: str | None = None
    job_id: str | None = None
    kind: str | None = None
    state: str | None = None
    stage: str | None = None
    total: int | None = None
    done: int | None = None
    failed: int | None = None
