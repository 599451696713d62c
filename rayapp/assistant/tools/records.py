"""What a tool is, what calls it and what it answers: plain values, no HTTP and no protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rayapp.assistant.tools.rules.parameters import Parameter
from rayapp.learning.records import Recorder

ToolName = Literal[
    "get_context_insights",
    "search_memory",
    "record_response",
    "add_to_memory_bank",
    "update_memory",
    "archive_memory",
    "score_memories",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """One tool. Every schema and every reading of arguments is made from this.

    Attributes:
        text, text_he: what a model reads before it chooses the tool, in both languages.
        writes: changes memories, so that a key needs the scope `write`.
        destructive: what it changes is not only added to.
        idempotent: the same call again changes nothing more.
    """

    name: ToolName
    title: str
    text: str
    text_he: str
    parameters: tuple[Parameter, ...]
    writes: bool = False
    destructive: bool = False
    idempotent: bool = False

    @property
    def description(self) -> str:
        """English for the model, then one line of Hebrew."""
        return f"{self.text}\n{self.text_he}"


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
