"""The caller's own data as a whole: hidden memories, counts, clearing."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.memory.requests import CLEARED_TIERS, ClearTarget, HiddenItem, TierTotal
from rayapp.memory.tiers import tier_name
from rayapp.wire import data as shapes
from rayapp.wire.memories import preview

GHOST = "/api/memory/ghost"
CLEAR = "/api/data/clear/{target}"


async def hide(call: Call) -> Response:
    body = call.body_as(shapes.GhostBody, shapes.GHOST_ALIASES)
    hidden = await call.services.user_data.hide(call.writes, body.memory_id, body.reason)
    return _done(body.memory_id, "Memory hidden.", "archived", hidden.reason)


async def unhide(call: Call) -> Response:
    """The first client sends a body with DELETE; others may name the memory in the query."""
    if call.body:
        wanted = call.body_as(shapes.UnhideBody, shapes.GHOST_ALIASES)
    else:
        wanted = call.query_as(shapes.UnhideBody, shapes.GHOST_ALIASES)
    item = await call.services.user_data.unhide(call.writes, wanted.memory_id)
    return _done(wanted.memory_id, "Memory shown again.", item.status.value, None)


async def hidden(call: Call) -> Response:
    query = call.query_as(shapes.GhostQuery)
    found = await call.services.user_data.hidden(call.reads, query.limit)
    rows = [_ghost_view(call, one) for one in found]
    return answer({"success": True, "memories": rows, "total": len(rows), "degraded": []})


def _ghost_view(call: Call, hidden: HiddenItem) -> dict[str, Any]:
    item = hidden.item
    return {
        "memoryId": item.memory_id,
        "memory_id": item.memory_id,
        "tier": tier_name(item.tier, call.documents),
        "ghostedAt": item.archived_at or item.updated_at,
        "reason": hidden.reason,
        "expiresAt": None,
        "preview": preview(item.text),
    }


def _done(memory_id: str, message: str, status: str, reason: str | None) -> Response:
    return answer(
        {
            "success": True,
            "message": message,
            "memory_id": memory_id,
            "memoryId": memory_id,
            "status": status,
            "reason": reason,
            "degraded": [],
        }
    )


async def stats(call: Call) -> Response:
    counts = await call.services.user_data.counts(call.reads)
    body: dict[str, Any] = {
        tier_name(tier, call.documents): _tier_view(counts.tiers[tier])
        for tier in CLEARED_TIERS.values()
    }
    body["sessions"] = {"count": counts.rows.sessions}
    body["knowledge_graph"] = {
        "nodes": counts.rows.nodes,
        "edges": counts.rows.edges,
        "learned": counts.rows.learned,
    }
    return answer({**body, "degraded": []})


def _tier_view(total: TierTotal) -> dict[str, int]:
    return {"count": total.count, "active": total.active, "archived": total.archived}


async def clear(call: Call) -> Response:
    target = _target(call.scope["path_params"]["target"])
    if call.body:
        call.body_as(shapes.ClearBody)
    cleared = await call.services.user_data.clear(call.writes, target)
    message = f"Deleted {cleared.deleted}."
    if cleared.left:
        message = f"{message} {cleared.left} are left; ask again to go on."
    return answer(
        {
            "success": True,
            "deleted_count": cleared.deleted,
            "target": _target_name(cleared.target, call.documents),
            "timestamp": cleared.at,
            "remaining": cleared.left,
            "message": message,
            "degraded": [],
        }
    )


def _target_name(target: ClearTarget, documents: bool) -> str:
    """A tier by the caller's name; what is none keeps its own."""
    tier = CLEARED_TIERS.get(target)
    return target.value if tier is None else tier_name(tier, documents)


def _target(name: str) -> ClearTarget:
    try:
        return shapes.TARGET_ALIASES.get(name) or ClearTarget(name)
    except ValueError:
        raise InvalidInput(
            f"Nothing of this name can be cleared; use one of {', '.join(ClearTarget)}.",
            code="bad_target",
            details={"field": "target"},
        ) from None


_GHOST_TAG, _DATA_TAG = "hidden memories", "data"
_GHOST_EXAMPLE = {
    "success": True,
    "message": "Memory hidden.",
    "memory_id": "mem-1",
    "memoryId": "mem-1",
    "status": "archived",
    "reason": "user_action",
    "degraded": [],
}
_TIER_EXAMPLE = {"count": 3, "active": 2, "archived": 1}

OPERATIONS = (
    Operation(
        method="POST",
        path=GHOST,
        tag=_GHOST_TAG,
        summary="Hide a memory",
        description="It is archived with this reason: no search, no context shows it, its source "
        "stays, and it can be shown again.",
        handler=hide,
        body=shapes.GhostBody,
        example_body={"memoryId": "mem-1", "tier": "memory_bank", "reason": "user_action"},
        aliases=shapes.GHOST_ALIASES,
        answer=shapes.GhostDone,
        example=_GHOST_EXAMPLE,
        errors=(NotFound, Conflict),
        writes=True,
    ),
    Operation(
        method="GET",
        path=GHOST,
        tag=_GHOST_TAG,
        summary="List the hidden memories",
        handler=hidden,
        query=shapes.GhostQuery,
        example_query={"limit": "100"},
        answer=shapes.GhostsAnswer,
        example={
            "success": True,
            "memories": [
                {
                    "memoryId": "mem-hidden",
                    "memory_id": "mem-hidden",
                    "tier": "working",
                    "ghostedAt": "2025-05-04T09:30:00Z",
                    "reason": "user_action",
                    "expiresAt": None,
                    "preview": "Dana lives in Haifa; דנה גרה בחיפה",
                }
            ],
            "total": 1,
            "degraded": [],
        },
    ),
    Operation(
        method="DELETE",
        path=GHOST,
        tag=_GHOST_TAG,
        summary="Show a hidden memory again",
        description="The memory is named in the body or in the query.",
        handler=unhide,
        body=shapes.UnhideBody,
        body_required=False,
        example_body={"memoryId": "mem-hidden"},
        aliases=shapes.GHOST_ALIASES,
        answer=shapes.GhostDone,
        example={
            **_GHOST_EXAMPLE,
            "message": "Memory shown again.",
            "memory_id": "mem-hidden",
            "memoryId": "mem-hidden",
            "status": "active",
            "reason": None,
        },
        errors=(NotFound, Conflict),
        writes=True,
    ),
    Operation(
        method="GET",
        path="/api/data/stats",
        tag=_DATA_TAG,
        summary="What there is of the user",
        description="Archived memories are counted, deleted ones are not.",
        handler=stats,
        answer=shapes.DataStatsAnswer,
        example={
            **{target.value: _TIER_EXAMPLE for target in CLEARED_TIERS},
            "sessions": {"count": 4},
            "knowledge_graph": {"nodes": 12, "edges": 20, "learned": 7},
            "degraded": [],
        },
    ),
    Operation(
        method="POST",
        path=CLEAR,
        tag=_DATA_TAG,
        summary="Delete all of one kind",
        description="Of the caller's user, for good: memories with their versions, and the "
        "indexer takes their points. It ends within the time of a request; `remaining` says what "
        "is left, and asking again goes on. Clearing the graph keeps the memories; "
        "`POST /api/memory/content-graph/backfill` builds the content graph anew.",
        handler=clear,
        body=shapes.ClearBody,
        body_required=False,
        example_body={"idempotency_key": "clear-working-1"},
        answer=shapes.ClearAnswer,
        example={
            "success": True,
            "deleted_count": 3,
            "target": "working",
            "timestamp": "2025-05-04T09:30:00Z",
            "remaining": 0,
            "message": "Deleted 3.",
            "degraded": [],
        },
        writes=True,
    ),
)
