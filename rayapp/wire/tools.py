"""Shapes of the tool routes and of the MCP endpoint."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rayapp.wire.bases import Answer, Flag, IdempotencyKey, Lenient, Name

TOOL_ALIASES = {"conversationId": "conversation_id", "turnId": "turn_id"}


class ToolsQuery(Lenient):
    """Which flavour of function schema."""

    strict: bool = Field(
        True, description="Schemas for strict function calling; false: optional arguments may miss."
    )


class ToolBody(Lenient):
    """A call of a tool. Without `arguments`, all other fields are the arguments."""

    arguments: dict[str, Any] | str | None = Field(
        None, description="Arguments by name, or the JSON text that a model sent."
    )
    conversation_id: Name | None = Field(
        None, description="The conversation; also the header `X-Conversation-Id`."
    )
    turn_id: Name | None = Field(
        None,
        description="The user's turn, in which one search is made; also the header `X-Turn-Id`.",
    )
    idempotency_key: IdempotencyKey = None


class ToolHints(Answer):
    """What a program may know of a tool before it asks a person."""

    readOnlyHint: bool
    destructiveHint: bool
    idempotentHint: bool
    openWorldHint: bool


class ToolView(Answer):
    """One tool, for programs that are no chat model."""

    name: str
    title: str
    description: str
    description_he: str
    scope: Literal["read", "write"]
    parameters: dict[str, Any]
    annotations: ToolHints


class ToolsAnswer(Answer):
    """`tools` is ready for a chat completion; `definitions` has the JSON Schemas."""

    success: Literal[True]
    tools: list[dict[str, Any]]
    definitions: list[ToolView]
    degraded: list[str]


class ToolAnswerView(Answer):
    """What a tool answered: `text` for the model, `data` for the program around it."""

    success: Literal[True]
    tool: str
    text: str
    data: dict[str, Any]
    degraded: list[str]
    duplicate: Flag = False


class McpBody(Lenient):
    """One JSON-RPC message of the Model Context Protocol."""

    jsonrpc: Literal["2.0"]
    method: str
    id: int | str | None = None
    params: dict[str, Any] | None = None


class McpError(Answer):
    """Why a message was not understood, by the codes of JSON-RPC."""

    code: int
    message: str
    data: Any = None


class McpAnswer(Answer):
    """The answer of one JSON-RPC request: `result`, or `error`."""

    jsonrpc: Literal["2.0"]
    id: int | str | None
    result: dict[str, Any] | None = None
    error: McpError | None = None
