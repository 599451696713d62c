"""Around language models: checking an answer, and what the helpers used."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.inference.chat.rules.answers import day_start
from rayapp.inference.chat.rules.integrity import check_response
from rayapp.wire import models as shapes


async def check(call: Call) -> Response:
    """Pure work on one text; nothing is stored and nothing is logged."""
    body = call.body_as(shapes.ResponseCheckBody)
    found = check_response(body.text, body.tool_calls, expect_json=body.expect_json)
    return answer({"success": True, **asdict(found), "degraded": []})


async def usage(call: Call) -> Response:
    query = call.query_as(shapes.UsageQuery)
    services, settings = call.services, call.services.settings.models
    midnight = day_start(services.clock.now())
    total = await services.models.usage(call.reads, midnight - timedelta(days=query.days - 1))
    today = await services.models.usage(call.reads, midnight)
    rows = [
        {"helper": helper, "calls": calls, "tokens": tokens, "cost": cost}
        for helper, (calls, tokens, cost) in total.by_helper.items()
    ]
    return answer(
        {
            "success": True,
            "enabled": settings.on,
            "days": query.days,
            "calls": total.calls,
            "tokens": total.tokens,
            "cost": total.cost,
            "by_helper": rows,
            "today": {
                "helper": "all",
                "calls": today.calls,
                "tokens": today.tokens,
                "cost": today.cost,
            },
            "limits": {
                "calls": settings.calls_per_day,
                "tokens": settings.tokens_per_day,
                "cost": settings.cost_per_day,
            },
            "degraded": [],
        }
    )


_TAG = "models"

OPERATIONS = (
    Operation(
        method="POST",
        path="/api/memory/response/check",
        tag=_TAG,
        summary="Check a model's answer",
        description="Closes `<think>`, moves JSON `tool_calls` out of the text, repairs JSON, "
        "takes out echoes of memory marks, and names what looks like an injected command. For "
        "gateways; nothing is stored.",
        handler=check,
        body=shapes.ResponseCheckBody,
        example_body={
            "text": '<think>אחפש {"tool_calls": [{"name": "search_memory", '
            '"arguments": {"query": "דנה"}}]}'
        },
        answer=shapes.ResponseCheckAnswer,
        example={
            "success": True,
            "text": "<think>אחפש </think>",
            "answer": "",
            "thinking": "אחפש",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "search_memory", "arguments": '{"query": "דנה"}'},
                }
            ],
            "changed": True,
            "findings": [
                {"kind": "think_unclosed", "detail": "the block is closed"},
                {"kind": "tool_call_in_text", "detail": "moved to tool_calls"},
            ],
            "degraded": [],
        },
    ),
    Operation(
        method="GET",
        path="/api/memory/models/usage",
        tag=_TAG,
        summary="What helpers asked of the language model",
        description="For the acting user.",
        handler=usage,
        query=shapes.UsageQuery,
        example_query={"days": "7"},
        answer=shapes.UsageAnswer,
        example={
            "success": True,
            "enabled": True,
            "days": 7,
            "calls": 12,
            "tokens": 9_310,
            "cost": 0.0021,
            "by_helper": [
                {"helper": "fact_extraction", "calls": 12, "tokens": 9_310, "cost": 0.0021}
            ],
            "today": {"helper": "all", "calls": 3, "tokens": 2_120, "cost": 0.0005},
            "limits": {"calls": 2_000, "tokens": 2_000_000, "cost": 0.0},
            "degraded": [],
        },
    ),
)
