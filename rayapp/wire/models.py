"""Shapes around language models: checking an answer, and what the helpers used."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rayapp.inference.chat.rules.integrity import FindingKind
from rayapp.inference.chat.rules.tolerant_json import MAX_CHARS
from rayapp.wire.bases import Answer, Flag, Strict, Success

# Calls of one answer that are read; a model in a loop writes more, and those are named.
MAX_GIVEN_CALLS = 128
MAX_USAGE_DAYS = 90


class ResponseCheckBody(Strict):
    """The answer of a model as it came."""

    text: Annotated[str, Field(max_length=MAX_CHARS, description="The answer.")]
    tool_calls: Annotated[
        tuple[Any, ...],
        Field(max_length=MAX_GIVEN_CALLS, description="Its `tool_calls`, if it has any."),
    ] = ()
    expect_json: Annotated[
        Flag, Field(description="The answer should be JSON; then `text` becomes that.")
    ] = False


class FunctionView(Answer):
    """`arguments` is a JSON object as text."""

    name: str
    arguments: str


class ToolCallView(Answer):
    """A call in the shape of OpenAI."""

    id: str
    type: Literal["function"]
    function: FunctionView


class FindingView(Answer):
    """`detail` names the rule or the place, never a text."""

    kind: FindingKind
    detail: str


class ResponseCheckAnswer(Success):
    """The same answer, safe to read on. Checked again it stays as it is."""

    text: str = Field(description="Repaired; `<think>` blocks are closed.")
    answer: str = Field(description="`text` without its `<think>` blocks.")
    thinking: str
    tool_calls: tuple[ToolCallView, ...]
    changed: bool
    findings: tuple[FindingView, ...]


class UsageQuery(Strict):
    """The last days, today included."""

    days: Annotated[int, Field(ge=1, le=MAX_USAGE_DAYS, description="UTC days.")] = 30


class HelperUsage(Answer):
    """What one helper used."""

    helper: str
    calls: int
    tokens: int
    cost: float


class UsageAnswer(Success):
    """`cost` is in the currency of the settings. Limits are per UTC day, 0 = none."""

    enabled: bool = Field(description="There is an endpoint.")
    days: int
    calls: int
    tokens: int
    cost: float
    by_helper: tuple[HelperUsage, ...]
    today: HelperUsage
    limits: dict[str, float]
