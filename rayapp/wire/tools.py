"""Tools over HTTP and MCP: schemas, calls, what other tools answered; and language models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rayapp.inference.chat.rules.integrity import FindingKind
from rayapp.inference.chat.rules.tolerant_json import MAX_CHARS
from rayapp.wire import bases
from rayapp.wire.context import DisclaimerView

if TYPE_CHECKING:
    from rayapp.assistant.tool_results.rules import Ingested, ToolResult


# Tools that one question about the table names.
MAX_TOOLS = 200


class ToolsQuery(bases.Lenient):
    """Which flavour of function schema."""

    strict: bool = Field(
        True, description="Schemas for strict function calling; false: optional arguments may miss."
    )


class ToolBody(bases.Lenient, bases.Keyed):
    """A call of a tool. Without `arguments`, all other fields are the arguments."""

    aliases: ClassVar = bases.camel("conversation_id", "turn_id")
    arguments: dict[str, Any] | str | None = bases.optional(
        "Arguments by name, or the JSON text that a model sent."
    )
    conversation_id: bases.Name | None = bases.optional(
        "The conversation; also the header `X-Conversation-Id`."
    )
    turn_id: bases.Name | None = bases.optional(
        "The user's turn, in which one search is made; also the header `X-Turn-Id`."
    )


class ToolHints(bases.Camel):
    """What a program may know of a tool before it asks a person."""

    read_only_hint: bool
    destructive_hint: bool
    idempotent_hint: bool
    open_world_hint: bool


class ToolView(bases.Answer):
    """One tool, for programs that are no chat model."""

    name: str
    title: str
    description: str
    description_he: str
    scope: Literal["read", "write"]
    parameters: dict[str, Any]
    annotations: ToolHints


class ToolsAnswer(bases.Success):
    """`tools` is ready for a chat completion; `definitions` has the JSON Schemas."""

    tools: tuple[dict[str, Any], ...]
    definitions: tuple[ToolView, ...]


class TableQuery(bases.Lenient):
    """Which tools."""

    tools: Annotated[tuple[str, ...], bases.OneOrMore, Field(max_length=MAX_TOOLS)] | None = Field(
        None, description="Names, with or without their server; all of the table when absent."
    )


class WordingView(bases.Answer):
    """The same in both languages."""

    en: str
    he: str


class ToolRowView(bases.Answer):
    """What a program shows of a tool while it runs."""

    name: str
    category: str
    priority: int = Field(description="0 to 100: which of several to try first.")
    latency: Literal["fast", "medium", "slow"]
    wait_s: float = Field(description="How long to wait for it.")
    tokens: int = Field(description="Of its answer; more is better cut.")
    label: WordingView
    progress: WordingView
    failure: WordingView


class ToolTableAnswer(bases.Success):
    """`*` is every tool that has no row of its own."""

    tools: tuple[ToolRowView, ...]


class ToolAnswerView(bases.Written):
    """What a tool answered: `text` for the model, `data` for the program around it."""

    tool: str
    text: str
    data: dict[str, Any]


class McpBody(bases.Lenient):
    """One JSON-RPC message of the Model Context Protocol."""

    jsonrpc: Literal["2.0"]
    method: str
    id: int | str | None = None
    params: dict[str, Any] | None = None


class McpError(bases.Answer):
    """Why a message was not understood, by the codes of JSON-RPC."""

    code: int
    message: str
    data: Any = bases.Absent


class McpAnswer(bases.Answer):
    """The answer of one JSON-RPC request: `result`, or `error`."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: int | str | None
    result: dict[str, Any] | None = bases.Absent
    error: McpError | None = bases.Absent


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


class _ResultFields(bases.Strict):
    """What may be said of the call of a tool beside its answer."""

    aliases: ClassVar = {
        "toolName": "tool_name",
        "tool": "tool_name",
        **dict.fromkeys(("text", "content", "result"), "output"),
        "prompt": "query",
        "toolCategory": "tool_category",
        "category": "tool_category",
        **bases.camel("conversation_id", "message_id"),
        **dict.fromkeys(("toolRunId", "tool_call_id", "toolCallId"), "tool_run_id"),
        **dict.fromkeys(("linkedDocs", "linked_doc"), "linked_docs"),
        **bases.camel("is_error", "created_at"),
    }
    query: str = Field("", description="What the tool was asked.")
    tool_category: Annotated[str, Field(max_length=60), AfterValidator(_word)] | None = Field(
        None, description="Kind of the tool; else the words of its name say it."
    )
    conversation_id: ConversationId | None = bases.optional("Conversation.")
    message_id: bases.Name | None = bases.optional("Message that called the tool.")
    tool_run_id: bases.Name | None = bases.optional("This call of the tool.")
    entities: bases.Labels = Field((), description="Names it is about.")
    linked_docs: Annotated[tuple[bases.Label, ...], bases.OneOrMore, Field(max_length=20)] = Field(
        (), description="Documents it is about."
    )
    language: Literal["he", "en"] | None = bases.optional(
        "Of the conversation; else that of the query, else that of the output."
    )
    is_error: bases.Flag = Field(False, description="The tool failed; nothing is kept.")
    created_at: bases.UtcTime | None = bases.optional("When it answered; naive is UTC.")


class ToolResultItem(_ResultFields):
    """What one call of a tool answered."""

    tool_name: ToolName = Field(description="Name of the tool.")
    output: Annotated[Any, BeforeValidator(_no_null)] = Field(
        description="The answer: a text, content blocks of MCP, or any JSON. Control characters, "
        "markup and binary data are taken out."
    )


class ToolResultsBody(_ResultFields, bases.Keyed):
    """One result, its fields at the top, or several under `results`."""

    results: Annotated[list[dict[str, Any]], Field(min_length=1)] | None = Field(
        None,
        description="Results, each with the fields of one.",
        json_schema_extra={"items": {"type": "object"}},
    )
    tool_name: ToolName | None = bases.optional("Name of the tool.")
    output: Any = bases.optional("The answer of one tool: a text, MCP blocks or JSON.")

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        single = self.model_fields_set - {"results", "idempotency_key"}
        if (self.results is None) == (not single):
            raise ValueError("send the fields of one result, or several under `results`")
        return self


class ToolResultView(bases.Answer):
    """What became of one result.

    `redacted` counts what was taken out, by kind; `original_chars` is the length after cleaning.
    """

    tool_name: str
    status: Literal["stored", "duplicate", "skipped"]
    memory_id: bases.MemoryId | None
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


class ToolResultsAnswer(bases.Success):
    """One entry per result, in order. `memory_id` is that of the first one that is remembered."""

    memory_id: str | None
    results: tuple[ToolResultView, ...]
    stored: int
    duplicates: int
    skipped: int
    duplicate: bool


# Calls of one answer that are read; a model in a loop writes more, and those are named.
MAX_GIVEN_CALLS = 128
MAX_USAGE_DAYS = 90


class ResponseCheckBody(bases.Strict):
    """The answer of a model as it came."""

    text: Annotated[str, Field(max_length=MAX_CHARS, description="The answer.")]
    tool_calls: Annotated[
        tuple[Any, ...],
        Field(max_length=MAX_GIVEN_CALLS, description="Its `tool_calls`, if it has any."),
    ] = ()
    expect_json: Annotated[
        bases.Flag, Field(description="The answer should be JSON; then `text` becomes that.")
    ] = False
    question: Annotated[
        str,
        Field(
            max_length=MAX_CHARS,
            description="What was asked: a role that it asks for is no hijack, and its language is "
            "that of the sentences.",
        ),
    ] = ""


class FunctionView(bases.Answer):
    """`arguments` is a JSON object as text."""

    name: str
    arguments: str


class ToolCallView(bases.Answer):
    """A call in the shape of OpenAI."""

    id: str
    type: Literal["function"]
    function: FunctionView


class FindingView(bases.Answer):
    """`detail` names the rule or the place, never a text."""

    kind: FindingKind
    detail: str


class ResponseCheckAnswer(bases.Success):
    """The same answer, safe to read on. Checked again it stays as it is."""

    text: str = Field(description="Repaired; `<think>` blocks are closed.")
    answer: str = Field(description="`text` without its `<think>` blocks.")
    thinking: str
    tool_calls: tuple[ToolCallView, ...]
    changed: bool
    findings: tuple[FindingView, ...]
    fallback: str | None = Field(
        description="What to show instead, when the answer was hijacked (finding `hijack`)."
    )
    disclaimers: tuple[DisclaimerView, ...] = Field(
        description="To be shown with it: medical, financial, legal."
    )


class UsageQuery(bases.Strict):
    """The last days, today included."""

    days: Annotated[int, Field(ge=1, le=MAX_USAGE_DAYS, description="UTC days.")] = 30


class HelperUsage(bases.Answer):
    """What one helper used."""

    helper: str
    calls: int
    tokens: int
    cost: float


class UsageAnswer(bases.Success):
    """`cost` is in the currency of the settings. Limits are per UTC day, 0 = none."""

    enabled: bool = Field(description="There is an endpoint.")
    days: int
    calls: int
    tokens: int
    cost: float
    by_helper: tuple[HelperUsage, ...]
    today: HelperUsage
    limits: dict[str, float]
