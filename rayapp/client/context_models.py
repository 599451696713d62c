"""Answers about what an assistant is told, its tools, and the hooks around a turn."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from rayapp.client.models import Answer


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
