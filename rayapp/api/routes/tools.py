"""The tools of an assistant: their schemas, and calls of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from rayapp.api.auth import TOOL
from rayapp.api.call import Call
from rayapp.api.idempotency import key_of
from rayapp.api.json_answer import answer
from rayapp.api.json_body import fold_aliases, refuse_forbidden, validated
from rayapp.api.operation import Operation
from rayapp.assistant.tools.records import ToolCall, ToolDefinition
from rayapp.assistant.tools.rules.definitions import (
    SEARCH,
    json_schema,
    openai_function,
    tools_named,
)
from rayapp.core.errors import Conflict, NotFound
from rayapp.wire.tools import TOOL_ALIASES, ToolAnswerView, ToolBody, ToolsAnswer, ToolsQuery

# A call of a tool, however it came: by HTTP or by MCP.

# Who a program is cannot be told by the model, so the program may say it in headers.
CONVERSATION_HEADER = b"x-conversation-id"
TURN_HEADER = b"x-turn-id"
ARGUMENTS = "arguments"
# Fields that belong to the call and never to the tool.
OWN_FIELDS = frozenset(ToolBody.model_fields) | TOOL_ALIASES.keys()


def tool_call(
    call: Call, name: str, body: Mapping[str, Any], *, idempotency_key: str | None = None
) -> ToolCall:
    """`body` is `{arguments, conversation_id, turn_id}`, or the arguments themselves.

    Raises:
        InvalidInput: a field of the call breaks a rule; arguments are read by the tool.
    """
    own = {field: value for field, value in body.items() if field in OWN_FIELDS}
    arguments = own.pop(ARGUMENTS, None)
    if ARGUMENTS not in body:
        arguments = {field: value for field, value in body.items() if field not in OWN_FIELDS}
    refuse_forbidden(own)
    headers = _headers(call)
    read = validated(ToolBody, headers | fold_aliases(own, TOOL_ALIASES))
    return ToolCall(
        name=name,
        arguments=arguments,
        conversation_id=read.conversation_id,
        turn_id=read.turn_id,
        may_write=call.may_write,
        recorder=call.recorder,
        idempotency_key=idempotency_key,
    )


def offered(call: Call) -> list[ToolDefinition]:
    """The tools that this key may call: a model must not be offered what will be refused."""
    return [one for one in call.services.tools.listed() if call.may_write or not one.writes]


def hints(tool: ToolDefinition) -> dict[str, bool]:
    """The annotations of MCP."""
    return {
        "readOnlyHint": not tool.writes,
        "destructiveHint": tool.destructive,
        "idempotentHint": tool.idempotent,
        "openWorldHint": False,
    }


def _headers(call: Call) -> dict[str, str]:
    sent = dict(call.scope["headers"])
    named = (("conversation_id", CONVERSATION_HEADER), ("turn_id", TURN_HEADER))
    return {field: sent[name].decode("latin-1") for field, name in named if sent.get(name)}


def definition_view(tool: ToolDefinition) -> dict[str, Any]:
    """One tool with its JSON Schema."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "description_he": tool.text_he,
        "scope": "write" if tool.writes else "read",
        "parameters": json_schema(tool),
        "annotations": hints(tool),
    }


def listing_view(tools: list[ToolDefinition], *, strict: bool) -> dict[str, Any]:
    return {
        "success": True,
        "tools": [openai_function(one, strict=strict) for one in tools],
        "definitions": [definition_view(one) for one in tools],
        "degraded": [],
    }


async def list_tools(call: Call) -> Response:
    query = call.query_as(ToolsQuery)
    return answer(listing_view(offered(call), strict=query.strict))


async def call_tool(call: Call) -> Response:
    name: str = call.scope["path_params"]["tool_name"]
    asked = tool_call(call, name, call.data if call.body else {}, idempotency_key=key_of(call))
    found = await call.services.tools.call(call.writes, asked)
    call.notes["tool"] = found.tool
    return answer(
        {
            "success": True,
            "tool": found.tool,
            "text": found.text,
            "data": found.data,
            "degraded": found.degraded,
        }
    )


_TAG = "tools"
_SEARCH = next(one for one in tools_named(True) if one.name == SEARCH.name)

OPERATIONS = (
    Operation(
        method="GET",
        path="/api/memory/tools",
        tag=_TAG,
        summary="The tools and their schemas",
        description="`tools` goes into a chat completion as it is. A key without the scope `write` "
        "sees only the tools that read. MCP serves the same tools at `/mcp`.",
        handler=list_tools,
        query=ToolsQuery,
        example_query={"strict": "true"},
        answer=ToolsAnswer,
        example=listing_view([_SEARCH], strict=True),
    ),
    Operation(
        method="POST",
        path=TOOL,
        tag=_TAG,
        summary="Call a tool",
        description="Arguments are read as models send them: other names, numbers as text, one "
        "value for a list. Tools that write need the scope `write`. With a conversation and a turn "
        "`search_memory` searches once per turn; `more: true` allows another one.",
        handler=call_tool,
        body=ToolBody,
        body_required=False,
        example_body={
            "arguments": {"query": "Where does Dana live?", "limit": 3},
            "conversation_id": "conv-7",
            "turn_id": "msg-7",
        },
        aliases=TOOL_ALIASES,
        answer=ToolAnswerView,
        example={
            "success": True,
            "tool": "search_memory",
            "text": 'Found 1 relevant memory for "Where does Dana live?" (confidence: high).\n'
            "[1] [memory_bank:mem-1] Dana lives in Haifa\n"
            "    Score: 1.00 | Age: 3 d | Uses: 0 | Wilson: 0.50 (0.00 to 1.00) | "
            "Last outcome: none\n"
            "After you answered, call record_response with the numbers of the results you used; "
            "receipt_id: 0192f1c8-7a2e-7c1b-9d57-3c2f6f0b8a11.",
            "data": {
                "query": "Where does Dana live?",
                "receipt_id": "0192f1c8-7a2e-7c1b-9d57-3c2f6f0b8a11",
                "confidence": "high",
                "total": 1,
                "limited": False,
                "results": [
                    {
                        "position": 1,
                        "score": 1.0,
                        "memory_id": "mem-1",
                        "tier": "memory_bank",
                        "content": "Dana lives in Haifa",
                        "tags": [],
                        "created_at": "2025-05-04T09:30:00Z",
                        "age": "3 d",
                        "uses": 0,
                        "wilson_score": 0.5,
                        "last_outcome": None,
                    }
                ],
            },
            "degraded": [],
        },
        errors=(NotFound, Conflict),
        writes=True,
    ),
)
