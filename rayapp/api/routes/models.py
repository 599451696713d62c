"""Around language models: checking an answer, and what the helpers used."""

from __future__ import annotations

from datetime import timedelta

from rayapp.api.route import CurrentCall, InQuery, router
from rayapp.inference.chat.rules.answers import day_start
from rayapp.inference.chat.rules.integrity import check_response
from rayapp.wire import models as wire

routes = router("models")


@routes.post("/api/memory/response/check", summary="Check a model's answer")
async def check(call: CurrentCall, body: wire.ResponseCheckBody) -> wire.ResponseCheckAnswer:
    """Closes `<think>`, moves JSON `tool_calls` out of the text, repairs JSON, takes out echoes of
    memory marks, and names what looks like an injected command. For gateways; nothing is stored."""
    found = check_response(body.text, body.tool_calls, expect_json=body.expect_json)
    return wire.ResponseCheckAnswer.of(found)


@routes.get("/api/memory/models/usage", summary="What helpers asked of the language model")
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
