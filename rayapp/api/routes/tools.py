"""The tools of an assistant: their schemas and calls; and what surrounds a language model."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from rayapp.api.auth import TOOL
from rayapp.api.call import Call
from rayapp.api.idempotency import key_of
from rayapp.api.json_body import fold_aliases, refuse_forbidden, validate_body
from rayapp.api.paths import ToolName
from rayapp.api.responses import raises
from rayapp.api.route import IDEMPOTENT, CurrentCall, InQuery, router, unread_body
from rayapp.assistant.records import ToolCall
from rayapp.assistant.safety.rules import disclaimers_of
from rayapp.assistant.tools.rules.definitions import Tool, json_schema, openai_function
from rayapp.assistant.tools.rules.table import row_of
from rayapp.core.errors import Conflict, NotFound
from rayapp.inference.chat.rules.answers import day_start
from rayapp.inference.chat.rules.hijack import fallback_of
from rayapp.inference.chat.rules.integrity import check_response
from rayapp.wire import tools as wire

routes, model_routes = router("tools"), router("models")

# Who a program is cannot be told by the model, so the program may say it in headers.
CONVERSATION_HEADER = b"x-conversation-id"
TURN_HEADER = b"x-turn-id"
ARGUMENTS = "arguments"
# Fields that belong to the call and never to the tool.
OWN_FIELDS = frozenset(wire.ToolBody.model_fields) | wire.ToolBody.aliases.keys()


def tool_call(
    call: Call, name: str, body: Mapping[str, Any], *, idempotency_key: str | None = None
) -> ToolCall:
    """`body` is `{arguments, conversation_id, turn_id}`, or the arguments themselves.

    Raises InvalidInput: a field of the call breaks a rule; arguments are read by the tool.
    """
    own = {field: value for field, value in body.items() if field in OWN_FIELDS}
    arguments = own.pop(ARGUMENTS, None)
    if ARGUMENTS not in body:
        arguments = {field: value for field, value in body.items() if field not in OWN_FIELDS}
    refuse_forbidden(own)
    headers = _headers(call)
    read = validate_body(wire.ToolBody, headers | fold_aliases(own, wire.ToolBody.aliases))
    return read.fill(
        ToolCall,
        name=name,
        arguments=arguments,
        may_write=call.who.may_write,
        recorder=call.recorder,
        idempotency_key=idempotency_key,
    )


def offered(call: Call) -> list[type[Tool]]:
    """The tools that this key may call: a model must not be offered what will be refused."""
    return [one for one in call.services.tools.listed if call.who.may_write or not one.writes]


def hints(tool: type[Tool]) -> wire.ToolHints:
    """The annotations of MCP."""
    return wire.ToolHints(
        read_only_hint=not tool.writes,
        destructive_hint=tool.destructive,
        idempotent_hint=tool.idempotent,
        open_world_hint=False,
    )


def _headers(call: Call) -> dict[str, str]:
    sent = dict(call.scope["headers"])
    named = (("conversation_id", CONVERSATION_HEADER), ("turn_id", TURN_HEADER))
    return {field: sent[name].decode("latin-1") for field, name in named if sent.get(name)}


@routes.get("/api/memory/tools", summary="The tools and their schemas")
async def list_tools(call: CurrentCall, query: InQuery[wire.ToolsQuery]) -> wire.ToolsAnswer:
    """`tools` goes into a chat completion as it is. A key without the scope `write` sees only the
    tools that read. MCP serves the same tools at `/mcp`."""
    found = offered(call)
    return wire.ToolsAnswer(
        tools=tuple(openai_function(one, strict=query.strict) for one in found),
        definitions=tuple(
            wire.ToolView.of(
                one,
                description_he=one.text_he,
                scope="write" if one.writes else "read",
                parameters=json_schema(one),
                annotations=hints(one),
            )
            for one in found
        ),
    )


@routes.get("/api/memory/tools/table", summary="What to show of a tool while it runs")
async def tool_table(call: CurrentCall, query: InQuery[wire.TableQuery]) -> wire.ToolTableAnswer:
    """`configs/tools.yaml`: labels, progress and failure sentences in both languages, priority, how
    long to wait, and the tokens of an answer; for tools of others too."""
    table = call.services.tools.table
    names = query.tools if query.tools is not None else tuple(table)
    rows = tuple(wire.ToolRowView.of(row_of(name, table), name=name) for name in names)
    return wire.ToolTableAnswer(tools=rows)


@routes.post(
    TOOL,
    summary="Call a tool",
    responses=raises(NotFound, Conflict),
    dependencies=[IDEMPOTENT, unread_body(wire.ToolBody, required=False)],
)
async def call_tool(call: CurrentCall, tool_name: ToolName) -> wire.ToolAnswerView:
    """Arguments are read as models send them: other names, numbers as text, one value for a list.
    Tools that write need the scope `write`. With a conversation and a turn `search_memory` searches
    once per turn; `more: true` allows another one."""
    sent = call.data if call.body else {}
    asked = tool_call(call, tool_name, sent, idempotency_key=key_of(call))
    found = await call.services.tools.call(call.writes, asked)
    call.notes["tool"] = found.tool
    return wire.ToolAnswerView.of(found)


@model_routes.post("/api/memory/response/check", summary="Check a model's answer")
async def check(call: CurrentCall, body: wire.ResponseCheckBody) -> wire.ResponseCheckAnswer:
    """Closes `<think>`, moves JSON `tool_calls` out of the text, repairs JSON, takes out echoes of
    memory marks, and names what looks like an injected command. For an answer that obeys
    somebody else there is a sentence to show instead (`fallback`), for one that advises there are
    `disclaimers`. For gateways; nothing is stored."""
    found = check_response(
        body.text, body.tool_calls, expect_json=body.expect_json, question=body.question
    )
    hijacked = any(one.kind == "hijack" for one in found.findings)
    return wire.ResponseCheckAnswer.of(
        found,
        fallback=fallback_of(body.question, found.answer) if hijacked else None,
        disclaimers=disclaimers_of(body.question, found.answer),
    )


@model_routes.get("/api/memory/models/usage", summary="What helpers asked of the language model")
async def usage(call: CurrentCall, query: InQuery[wire.UsageQuery]) -> wire.UsageAnswer:
    """For the acting user."""
    ledger, settings = call.services.models, call.services.settings.models
    midnight = day_start(call.services.clock.now())
    total = await ledger.usage(call.reads, midnight - timedelta(days=query.days - 1))
    today = await ledger.usage(call.reads, midnight)
    return wire.UsageAnswer.of(
        total,
        enabled=settings.on,
        days=query.days,
        by_helper=tuple(
            wire.HelperUsage(helper=helper, calls=calls, tokens=tokens, cost=cost)
            for helper, (calls, tokens, cost) in total.by_helper.items()
        ),
        today=wire.HelperUsage.of(today, helper="all"),
        limits={
            "calls": settings.calls_per_day,
            "tokens": settings.tokens_per_day,
            "cost": settings.cost_per_day,
        },
    )


routes.routes.extend(model_routes.routes)
