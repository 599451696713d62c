"""A call of a tool, however it came: by HTTP or by MCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rayapp.api.call import Call
from rayapp.api.json_body import fold_aliases, refuse_forbidden, validated
from rayapp.assistant.tools.records import ToolCall, ToolDefinition
from rayapp.wire.tools import TOOL_ALIASES, ToolBody

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
