"""Answers about what an assistant is told, its tools, and the hooks around a turn."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from rayapp.client.models import Answer


class Gating(Answer):
    """Which of the offered tools may be called, and why; None: no tools were offered."""

    allowed_tools: tuple[str, ...] | None
    reduced_count: int
    reason_code: str
    trace_explanation: dict[str, str] = Field(default_factory=dict)


class ContextReply(Answer):
    """`text` is the block for a prompt: `stable` first, which changes only with its memories."""

    stable: str | None = Field(None, alias="stable_text")
    volatile: str | None = Field(None, alias="volatile_text")
    etag: str = ""
    confidence: str
    receipt_id: str | None = None
    tokens: int = 0
    gating: Gating
    meta: dict[str, Any] = Field(default_factory=dict, alias="memory_meta")
    degraded: tuple[str, ...] = ()

    @property
    def text(self) -> str | None:
        """None when nothing is known, or when the text was not asked for."""
        return (self.stable or "") + (self.volatile or "") or None


class ColdStartReply(Answer):
    """What is known before the first question; an empty `text`: nothing."""

    text: str
    count: int
    memories: tuple[dict[str, Any], ...] = ()
    receipt_id: str | None = None
    degraded: tuple[str, ...] = ()


class HookHit(Answer):
    """One memory as the hooks show it."""

    tier: str
    content: str
    score: float
    memory_id: str = Field(alias="memoryId")


class HookContextReply(Answer):
    contexts: tuple[HookHit, ...]
    total: int
    confidence: str


class StoredTurn(Answer):
    """The turn that was kept. `attributed`: memories that the marks in the answer scored."""

    memory_id: str
    duplicate: bool = False
    scoring_required: bool = False
    attributed: int = 0


class ExchangeReply(Answer):
    """The messages with the context in the first system message, and what was kept of the turn.

    `scoring_required`: an answer of the conversation still waits for `record_response`.
    """

    messages: tuple[dict[str, Any], ...]
    meta: dict[str, Any] = Field(alias="memoryMeta")
    gating: Gating
    stored: StoredTurn | None = None
    scoring_required: bool = False
    receipt_id: str | None = None
    degraded: tuple[str, ...] = ()


class HookScoreReply(Answer):
    updated: int
    message_id: str = Field(alias="messageId")
    timestamp: datetime


class HookScoreState(Answer):
    """Whether an answer was scored, and when."""

    message_id: str = Field(alias="messageId")
    conversation_id: str | None = Field(None, alias="conversationId")
    scored: bool
    timestamp: datetime | None = None


class ToolsReply(Answer):
    """`tools` goes into a chat completion as it is; `definitions` have the JSON Schemas."""

    tools: tuple[dict[str, Any], ...]
    definitions: tuple[dict[str, Any], ...] = ()


class ToolReply(Answer):
    """What a tool answered: `text` for the model, `data` for the program around it."""

    tool: str
    text: str
    data: dict[str, Any] = Field(default_factory=dict)


class ToolResultReply(Answer):
    """What was kept of one answer of a tool."""

    tool_name: str
    status: str
    memory_id: str | None = None
    reason: str | None = None


class ToolResultsReply(Answer):
    results: tuple[ToolResultReply, ...]
    stored: int
    duplicates: int
    skipped: int


class CheckedResponse(Answer):
    """`answer` is the text without what the model thought aloud; `findings` what was repaired."""

    text: str
    answer: str
    thinking: str = ""
    changed: bool
    tool_calls: tuple[dict[str, Any], ...] = ()
    findings: tuple[dict[str, Any], ...] = ()


class ModelUsage(Answer):
    """`enabled`: there is a model."""

    enabled: bool
    calls: int
    tokens: int
    cost: float
