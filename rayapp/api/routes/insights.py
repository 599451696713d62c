"""Statistics, growth, health of the components, diagnostics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from starlette.responses import Response

from rayapp.admin.ports import Component, TierStats
from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.graphs.records import ActionRow
from rayapp.graphs.rules.routing import action_success_rate
from rayapp.graphs.rules.views import action_totals, examples_of
from rayapp.memory.tiers import Tier, tier_name
from rayapp.wire import client_answers as client
from rayapp.wire.graphs import DiagnosticsQuery, GrowthQuery, HealthQuery

# Client contract: the window its rates are taken over.
RATE_WINDOW_MS = 300_000
# Tiers that items are promoted and demoted from.
MOVING_TIERS = (Tier.WORKING, Tier.HISTORY)
# Actions in the statistics, and the rows per tier that they are made of.
MAX_EXAMPLES = 5
MAX_ACTIONS = 50
ACTION_ROWS = MAX_ACTIONS * len(Tier)


def elapsed_ms(started: float) -> float:
    """Milliseconds since `started`, a `perf_counter` value."""
    return round((time.perf_counter() - started) * 1000, 3)


def effectiveness_views(rows: Sequence[ActionRow]) -> list[dict[str, Any]]:
    """Actions over all tiers with their newest examples, for the statistics."""
    grouped: dict[tuple[str, str], list[ActionRow]] = {}
    for row in rows:
        grouped.setdefault((row.context_type, row.action), []).append(row)
    return [
        {
            "context_type": one.context_type,
            "action_type": one.action,
            "success_rate": action_success_rate(one.counters),
            "total_uses": one.counters.uses,
            "examples": [
                {"timestamp": e.at, "outcome": e.outcome.value, "doc_id": e.memory_id}
                for e in examples_of(grouped[one.context_type, one.action])[:MAX_EXAMPLES]
            ],
        }
        for one in action_totals(rows)
    ]


async def stats(call: Call) -> Response:
    started = time.perf_counter()
    documents = call.documents
    statistics = call.services.statistics
    rows, actions = await asyncio.gather(
        statistics.tiers(call.reads),
        call.services.graphs.actions(call.reads, context_type=None, limit=ACTION_ROWS),
    )
    active = sum(row.active for row in rows if row.tier in MOVING_TIERS)
    rates = await statistics.rates(call.reads, active, timedelta(milliseconds=RATE_WINDOW_MS))
    return answer(
        {
            "success": True,
            "stats": {
                "user_id": call.user_id,
                "as_of": call.services.clock.now(),
                "cache_hit_rate": rates.cache_hit,
                "promotion_rate": rates.promotion,
                "demotion_rate": rates.demotion,
                "derived_window_ms": RATE_WINDOW_MS,
                "tiers": _tier_views(rows, documents),
                "action_effectiveness": effectiveness_views(actions)[:MAX_ACTIONS],
            },
            "meta": {"built_ms": elapsed_ms(started)},
            "degraded": [],
        }
    )


def _tier_views(rows: Sequence[TierStats], documents: bool) -> dict[str, dict[str, Any]]:
    views: dict[str, dict[str, Any]] = {
        tier_name(row.tier, documents): {
            "active_count": row.active,
            "archived_count": row.archived,
            "deleted_count": row.deleted,
            "uses_total": row.uses_total,
            "success_rate": row.success_rate,
        }
        for row in rows
    }
    # What older releases of the first client kept elsewhere; this service has no such store.
    views[Tier.MEMORY_BANK.value]["memoryBank"] = 0
    return views


async def growth(call: Call) -> Response:
    days = call.query_as(GrowthQuery).days
    rows = await call.services.statistics.growth(call.reads, days)
    return answer(
        [{"date": row.date, "totalMemories": row.total, "bySource": row.by_source} for row in rows]
    )


def overall(components: list[Component]) -> str:
    """healthy, degraded, or unhealthy when a critical component is away."""
    if any(component.critical and not component.healthy for component in components):
        return "unhealthy"
    return "healthy" if all(component.healthy for component in components) else "degraded"


async def health(call: Call) -> Response:
    query = call.query_as(HealthQuery)
    started = time.perf_counter()
    components = await call.services.health.components()
    status = overall(components)
    healthy = sum(component.healthy for component in components)
    body: dict[str, Any] = {
        "status": status,
        "timestamp": call.services.clock.now(),
        "components": [
            {
                "name": component.name,
                "healthy": component.healthy,
                "latencyMs": component.latency_ms,
                "message": component.message,
                "details": component.details,
            }
            for component in components
        ],
        "summary": {
            "total": len(components),
            "healthy": healthy,
            "unhealthy": len(components) - healthy,
        },
    }
    if query.full:
        diagnosed = await call.services.health.diagnostics(metrics=True)
        body["metrics"] = diagnosed.get("metrics")
    body["checkDurationMs"] = elapsed_ms(started)
    return answer(body, status=503 if status == "unhealthy" else 200)


async def diagnostics(call: Call) -> Response:
    query = call.query_as(DiagnosticsQuery)
    body = await call.services.health.diagnostics(metrics=query.metrics)
    if "by_tier" in body:
        rows = [row | {"tier": tier_name(row["tier"], call.documents)} for row in body["by_tier"]]
        body = body | {"by_tier": rows}
    return answer({"success": True} | body)


_TAG = "insights"
_COUNTS = {
    "active_count": 12,
    "archived_count": 1,
    "deleted_count": 0,
    "uses_total": 30,
    "success_rate": 0.9,
}
_NO_COUNTS = {
    "active_count": 0,
    "archived_count": 0,
    "deleted_count": 0,
    "uses_total": 0,
    "success_rate": 0.5,
}
_HEALTH_EXAMPLE = {
    "status": "healthy",
    "timestamp": "2025-05-07T10:00:00Z",
    "components": [
        {"name": "mongodb", "healthy": True, "latencyMs": 0.4, "message": "ok", "details": {}}
    ],
    "summary": {"total": 1, "healthy": 1, "unhealthy": 0},
    "checkDurationMs": 0.7,
}

OPERATIONS = (
    Operation(
        method="GET",
        path="/api/memory/stats",
        tag=_TAG,
        summary="Counts per tier",
        handler=stats,
        answer=client.StatsAnswer,
        example={
            "success": True,
            "stats": {
                "user_id": "admin",
                "as_of": "2025-05-07T10:00:00Z",
                "cache_hit_rate": 0.8,
                "promotion_rate": 0.02,
                "demotion_rate": 0.0,
                "derived_window_ms": RATE_WINDOW_MS,
                "tiers": {
                    tier_name(tier, True): _COUNTS if tier is Tier.WORKING else _NO_COUNTS
                    for tier in Tier
                },
                "action_effectiveness": [
                    {
                        "context_type": "general",
                        "action_type": "search_memory",
                        "success_rate": 0.75,
                        "total_uses": 4,
                        "examples": [
                            {
                                "timestamp": "2025-05-06T08:00:00Z",
                                "outcome": "worked",
                                "doc_id": "mem-1",
                            }
                        ],
                    }
                ],
            },
            "meta": {"built_ms": 1.2},
            "degraded": [],
        },
    ),
    Operation(
        method="GET",
        path="/api/memory/growth",
        tag=_TAG,
        summary="Memories per day",
        description="A bare array: one row per UTC day, gaps filled, oldest first.",
        handler=growth,
        query=GrowthQuery,
        example_query={"days": "7"},
        answer=client.GrowthAnswer,
        example=[{"date": "2025-05-07", "totalMemories": 13, "bySource": {"manual": 2}}],
    ),
    Operation(
        method="GET",
        path="/api/memory/health",
        tag=_TAG,
        summary="Health of the components",
        handler=health,
        query=HealthQuery,
        example_query={"full": "false"},
        answer=client.HealthAnswer,
        example=_HEALTH_EXAMPLE,
        also={503: "A component without which nothing works is away; same body."},
    ),
    Operation(
        method="GET",
        path="/api/memory/diagnostics",
        tag=_TAG,
        summary="Counts, backlog and issues over all users",
        handler=diagnostics,
        query=DiagnosticsQuery,
        example_query={"metrics": "false"},
        answer=client.DiagnosticsAnswer,
        example={
            "success": True,
            "index": {"pending": 0, "synced": 13, "failed": 0, "oldest_pending_s": 0.0},
        },
    ),
)
