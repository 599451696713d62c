"""Statistics, growth, health of the components, diagnostics."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from starlette.responses import Response

from rayapp.admin.ports import Component
from rayapp.api.json_answer import answer
from rayapp.api.route import CurrentCall, InQuery, router
from rayapp.graphs.rules.views import action_totals
from rayapp.memory.tiers import Tier, tier_name
from rayapp.wire import insights as wire
from rayapp.wire.bases import BuiltIn

routes = router("insights")
MEMORY = "/api/memory"
# Client contract: the window its rates are taken over.
RATE_WINDOW_MS = 300_000
# Tiers that items are promoted and demoted from.
MOVING_TIERS = (Tier.WORKING, Tier.HISTORY)
# Actions in the statistics, and the rows per tier that they are made of.
MAX_ACTIONS = 50
ACTION_ROWS = MAX_ACTIONS * len(Tier)


@routes.get(f"{MEMORY}/stats", summary="Counts per tier")
async def stats(call: CurrentCall) -> wire.StatsAnswer:
    statistics = call.services.statistics
    rows, actions = await asyncio.gather(
        statistics.tiers(call.reads),
        call.services.graphs.actions(call.reads, context_type=None, limit=ACTION_ROWS),
    )
    active = sum(row.active for row in rows if row.tier in MOVING_TIERS)
    rates = await statistics.rates(call.reads, active, timedelta(milliseconds=RATE_WINDOW_MS))
    body = wire.StatsBody(
        user_id=call.who.user_id,
        as_of=call.services.clock.now(),
        cache_hit_rate=rates.cache_hit,
        promotion_rate=rates.promotion,
        demotion_rate=rates.demotion,
        derived_window_ms=RATE_WINDOW_MS,
        tiers={
            tier_name(row.tier, call.documents): wire.TierStatsView.from_stats(row) for row in rows
        },
        action_effectiveness=tuple(
            wire.ActionStatsView.from_total(one, actions)
            for one in action_totals(actions)[:MAX_ACTIONS]
        ),
    )
    return wire.StatsAnswer(stats=body, meta=BuiltIn(built_ms=call.built_ms))


@routes.get(f"{MEMORY}/growth", summary="Memories per day")
async def growth(call: CurrentCall, query: InQuery[wire.GrowthQuery]) -> wire.GrowthAnswer:
    """A bare array: one row per UTC day, gaps filled, oldest first."""
    rows = await call.services.statistics.growth(call.reads, query.days)
    return wire.GrowthAnswer.model_validate(rows)


def overall(components: Sequence[Component]) -> Literal["healthy", "degraded", "unhealthy"]:
    """healthy, degraded, or unhealthy when a critical component is away."""
    if any(component.critical and not component.healthy for component in components):
        return "unhealthy"
    return "healthy" if all(component.healthy for component in components) else "degraded"


@routes.get(
    f"{MEMORY}/health",
    summary="Health of the components",
    responses={
        503: {
            "model": wire.HealthAnswer,
            "description": "A component without which nothing works is away; same body.",
        }
    },
)
async def health(call: CurrentCall, query: InQuery[wire.HealthQuery]) -> wire.HealthAnswer:
    service = call.services.health
    components = await service.components()
    well = sum(component.healthy for component in components)
    found = wire.HealthAnswer(
        status=overall(components),
        timestamp=call.services.clock.now(),
        components=components,
        summary=wire.HealthSummary(
            total=len(components), healthy=well, unhealthy=len(components) - well
        ),
        metrics=service.metrics(await service.breakers()) if query.full else None,
        check_duration_ms=call.built_ms,
    )
    call.status = 503 if found.status == "unhealthy" else 200
    return found


@routes.get(
    f"{MEMORY}/diagnostics",
    summary="Counts, backlog and issues over all users",
    response_model=wire.DiagnosticsAnswer,
)
async def diagnostics(call: CurrentCall, query: InQuery[wire.DiagnosticsQuery]) -> Response:
    body = await call.services.health.diagnostics(metrics=query.metrics)
    if "by_tier" in body:
        rows = [row | {"tier": tier_name(row["tier"], call.documents)} for row in body["by_tier"]]
        body = body | {"by_tier": rows}
    return answer({"success": True} | body)
