"""Bodies and answers of the route that remembers what tools answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rayapp.assistant.tool_results.rules import ToolResult, as_text
from rayapp.wire.bases import (
    Answer,
    Flag,
    IdempotencyKey,
    Label,
    Labels,
    MemoryId,
    Name,
    OneOrMore,
    Strict,
    UtcTime,
)

RESULT_ALIASES = {
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


class ToolResultItem(Strict):
    """What one call of a tool answered."""

    tool_name: ToolName = Field(description="Name of the tool.")
    output: Annotated[Any, BeforeValidator(_no_null)] = Field(
        description="The answer: a text, content blocks of MCP, or any JSON. Control characters, "
        "markup and binary data are taken out."
    )
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

    def result(self) -> ToolResult:
        return ToolResult(
            tool_name=self.tool_name,
            text=as_text(self.output),
            query=self.query,
            category=self.tool_category,
            conversation_id=self.conversation_id,
            message_id=self.message_id,
            tool_run_id=self.tool_run_id,
            entities=self.entities,
            linked_docs=self.linked_docs,
            language=self.language,
            failed=self.is_error,
            created_at=self.created_at,
        )


class ToolResultsBody(Strict):
    """One result, its fields at the top, or several under `results`."""

    results: Annotated[list[dict[str, Any]], Field(min_length=1)] | None = Field(
        None,
        description="Results, each with the fields of one.",
        json_schema_extra={"items": {"type": "object"}},
    )
    tool_name: ToolName | None = Field(None, description="Name of the tool.")
    output: Any = Field(None, description="The answer of one tool: a text, MCP blocks or JSON.")
    query: str = Field("", description="What the tool was asked.")
    tool_category: str | None = Field(None, description="Kind of the tool.")
    conversation_id: ConversationId | None = Field(None, description="Conversation.")
    message_id: Name | None = Field(None, description="Message that called the tool.")
    tool_run_id: Name | None = Field(None, description="This call of the tool.")
    entities: Labels = Field((), description="Names it is about.")
    linked_docs: Annotated[tuple[Label, ...], OneOrMore, Field(max_length=20)] = Field(
        (), description="Documents it is about."
    )
    language: Literal["he", "en"] | None = Field(None, description="Of the conversation.")
    is_error: Flag = Field(False, description="The tool failed; nothing is kept.")
    created_at: UtcTime | None = Field(None, description="When it answered; naive is UTC.")
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
    indexed: Literal[False]
    redacted: dict[str, int]
    truncated: bool
    original_chars: int
    kept_chars: int
    archived: list[str]


class ToolResultsAnswer(Answer):
    """One entry per result, in order. `memory_id` is that of the first one that is remembered."""

    success: Literal[True]
    memory_id: str | None
    results: list[ToolResultView]
    stored: int
    duplicates: int
    skipped: int
    duplicate: bool
    degraded: list[str]
