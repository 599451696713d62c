"""What calls a tool and what it answers: plain values, no HTTP and no protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rayapp.learning.records import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call as it came: `arguments` is an object, or the JSON of one.

    Attributes:
        conversation_id, turn_id: of the chat that calls; None = not known.
        may_write: the caller's key covers tools that write.
        idempotency_key: of the request; None = a repeat counts again.
    """

    name: str
    arguments: Mapping[str, Any] | str | None = None
    conversation_id: str | None = None
    turn_id: str | None = None
    may_write: bool = True
    recorder: Recorder = field(default_factory=Recorder)
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """`text` is for the model; `data` holds the same as plain JSON values."""

    tool: str
    text: str
    data: dict[str, Any]
    degraded: tuple[str, ...] = ()
