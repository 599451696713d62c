"""Tools over HTTP and MCP: their schemas, calls of them, and what other tools answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rayapp.wire.bases import (
    Absent,
    Answer,
    Camel,
    Flag,
    IdempotencyKey,
    Label,
    Labels,
    Lenient,
    MemoryId,
    Name,
    OneOrMore,
    Repeated,
    Strict,
    Success,
    UtcTime,
)

if TYPE_CHECKING:
    from rayapp.assistant.tool_results.rules import Ingested, ToolResult


class ToolsQuery(Lenient):
    """Which flavour of function schema."""

    strict: bool = Field(
        True, description="Schemas for strict function calling; false: optional arguments may miss."
    )


class ToolBody(Lenient):
    """A call of a tool. Without `arguments`, all other fields are the arguments."""

    aliases: ClassVar = {"conversationId": "conversation_id", "turnId": "turn_id"}
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


class ToolHints(Camel):
    """What a program may know of a tool before it asks a person."""

    read_only_hint: bool
    destructive_hint: bool
    idempotent_hint: bool
    open_world_hint: bool


class ToolView(Answer):
    """One tool, for programs that are no chat model."""

    name: str
    title: str
    description: str
    description_he: str
    scope: Literal["read", "write"]
    parameters: dict[str, Any]
    annotations: ToolHints


class ToolsAnswer(Success):
    """`tools` is ready for a chat completion; `definitions` has the JSON Schemas."""

    tools: tuple[dict[str, Any], ...]
    definitions: tuple[ToolView, ...]


class ToolAnswerView(Success):
    """What a tool answered: `text` for the model, `data` for the program around it."""

    tool: str
    text: str
    data: dict[str, Any]
    duplicate: Repeated = None


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
    data: Any = Absent


class McpAnswer(Answer):
    """The answer of one JSON-RPC request: `result`, or `error`."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: int | str | None
    result: dict[str, Any] | None = Absent
    error: McpError | None = Absent


# What other tools answered.

# With its prefix it is a tag, which has 200 characters.
ConversationId = Annotated[str, Field(min_length=1, max_length=128)]


def _word(value: str) -> str:
    if not value.isprintable() or not value.strip():
        raise ValueError("must hold printable characters only")
    return value.strip()


def _no_null(value: Any) -> Any:
    if value is None:
        raise ValueError("must not be null; leave out a tool that answered nothing")
    return value


ToolName = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_word)]


class _ResultFields(Strict):
    """What may be said of the call of a tool beside its answer."""

    aliases: ClassVar = {
        "toolName": "tool_name",
        "tool": "tool_name",
        "text": "output",
        "content": "output",
        "result": "output",
        "prompt": "query",
        "toolCategory": "tool_category",
        "category": "tool_category",
        "conversationId": "conversation_id",
        "messageId": "message_id",
        "toolRunId": "tool_run_id",
        "tool_call_id": "tool_run_id",
        "toolCallId": "tool_run_id",
        "linkedDocs": "linked_docs",
        "linked_doc": "linked_docs",
        "isError": "is_error",
        "createdAt": "created_at",
    }
    query: str = Field("", description="What the tool was asked.")
    tool_category: Annotated[str, Field(max_length=60), AfterValidator(_word)] | None = Field(
        None, description="Kind of the tool; else the words of its name say it."
    )
    conversation_id: ConversationId | None = Field(None, description="Conversation.")
    message_id: Name | None = Field(None, description="Message that called the tool.")
    tool_run_id: Name | None = Field(None, description="This call of the tool.")
    entities: Labels = Field((), description="Names it is about.")
    linked_docs: Annotated[tuple[Label, ...], OneOrMore, Field(max_length=20)] = Field(
        (), description="Documents it is about."
    )
    language: Literal["he", "en"] | None = Field(
        None, description="Of the conversation; else that of the query, else that of the output."
    )
    is_error: Flag = Field(False, description="The tool failed; nothing is kept.")
    created_at: UtcTime | None = Field(None, description="When it answered; naive is UTC.")


class ToolResultItem(_ResultFields):
    """What one call of a tool answered."""

    tool_name: ToolName = Field(description="Name of the tool.")
    output: Annotated[Any, BeforeValidator(_no_null)] = Field(
        description="The answer: a text, content blocks of MCP, or any JSON. Control characters, "
        "markup and binary data are taken out."
    )


class ToolResultsBody(_ResultFields):
    """One result, its fields at the top, or several under `results`."""

    results: Annotated[list[dict[str, Any]], Field(min_length=1)] | None = Field(
        None,
        description="Results, each with the fields of one.",
        json_schema_extra={"items": {"type": "object"}},
    )
    tool_name: ToolName | None = Field(None, description="Name of the tool.")
    output: Any = Field(None, description="The answer of one tool: a text, MCP blocks or JSON.")
    idempotency_key: IdempotencyKey = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        single = self.model_fields_set - {"results", "idempotency_key"}
        if (self.results is None) == (not single):
            raise ValueError("send the fields of one result, or several under `results`")
        return self


class ToolResultView(Answer):
    """What became of one result.

    `redacted` counts what was taken out, by kind; `original_chars` is the length after cleaning.
    """

    tool_name: str
    status: Literal["stored", "duplicate", "skipped"]
    memory_id: MemoryId | None
    reason: Literal["failed", "memory_tool", "too_short"] | None
    indexed: Literal[False] = False
    redacted: dict[str, int]
    truncated: bool
    original_chars: int
    kept_chars: int
    archived: tuple[str, ...]

    @classmethod
    def from_ingested(cls, result: ToolResult, done: Ingested) -> Self:
        return cls.of(
            done.prepared,
            tool_name=result.tool_name,
            status=done.status,
            memory_id=done.memory_id,
            reason=done.prepared.skipped,
            archived=done.archived,
        )


class ToolResultsAnswer(Success):
    """One entry per result, in order. `memory_id` is that of the first one that is remembered."""

    memory_id: str | None
    results: tuple[ToolResultView, ...]
    stored: int
    duplicates: int
    skipped: int
    duplicate: bool
