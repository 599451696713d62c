"""The circuit breakers: their state, and closing them by hand.

Degraded mode is no switch here: a breaker opens when its dependency fails, searches say `degraded`,
and a probe closes it. Forcing it by hand would drop the meaning out of every search for nothing,
so a client that asks for it is told the state and that nothing was changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.api.routes.ops import EMBEDDING, RECOVERY, no_embedder
from rayapp.api.routes.system import public_url
from rayapp.core.errors import EmbedderDown, InvalidInput
from rayapp.wire import ops as shapes
from rayapp.wire.examples.ops import BREAKER_EXAMPLE
from rayapp.wire.views.jobs import breaker_view

ALREADY = "It already answers without what is away; it comes back by itself, or send `reset`."
NOT_FORCED = (
    "Nothing was changed: every dependency answers. The service degrades by itself when one fails."
)


async def state(call: Call) -> Response:
    return answer(await _body(call))


async def act(call: Call) -> Response:
    """`reset` closes what requests meet: of this replica, of the embedder and of the reranker."""
    body = call.body_as(shapes.BreakerBody)
    if body.action not in {"reset", "degraded"}:
        raise InvalidInput(
            "action must be `reset` or `degraded`.",
            code="unknown_action",
            details={"field": "action"},
        )
    if body.action == "degraded" and body.enabled is None:
        raise InvalidInput(
            "With `degraded`, send `enabled`: true or false.", details={"field": "enabled"}
        )
    if body.enabled and body.action == "degraded":
        found = await _body(call)
        return answer(found | {"message": ALREADY if found["isDegradedMode"] else NOT_FORCED})
    reset = await call.services.health.reset_breakers()
    found = await _body(call)
    # Whatever failed since the reset, which asked once itself, is away.
    error = found["circuitBreaker"]["lastError"]
    if error or not found["embeddingServiceHealthy"]:
        return no_embedder(str(error or "it does not answer"))
    return answer(found | {"message": _reset_message(reset, found["breakers"])})


def _reset_message(reset: Sequence[str], breakers: Mapping[str, Mapping[str, Any]]) -> str:
    closed = f"Closed by hand: {', '.join(reset)}." if reset else "All breakers were closed."
    failing = [f"{name} ({row['lastError']})" for name, row in breakers.items() if row["lastError"]]
    return f"{closed} Still failing: {', '.join(failing)}." if failing else closed


async def _body(call: Call) -> dict[str, Any]:
    settings = call.services.settings
    breakers = await call.services.health.breakers()
    components = await call.services.health.components()
    found = next((one for one in components if one.name == EMBEDDING), None)
    details = {} if found is None else found.details
    healthy = found is None or found.healthy
    rules = settings.breaker
    row = breakers.get(EMBEDDING) or {}
    view = breaker_view(row, rules.embedder_failures, rules.embedder_open_s)
    if view["lastError"] is None and found is not None and not found.healthy:
        view["lastError"] = found.message
    open_ones = [name for name, row in breakers.items() if row.get("isOpen")]
    return {
        "success": True,
        "circuitBreaker": view,
        "breakers": breakers,
        "embeddingServiceHealthy": healthy,
        "endpoint": public_url(settings.embedding.url),
        "isOperational": healthy and not view["isOpen"],
        "isDegradedMode": bool(open_ones) or not healthy,
        "diagnostics": details,
        "recommendations": [] if healthy else list(RECOVERY),
        "message": None,
        "degraded": [] if healthy else [EMBEDDING],
    }


_PATH = "/api/memory/ops/circuit-breaker"
_TAG = "operations"

OPERATIONS = (
    Operation(
        method="GET",
        path=_PATH,
        tag=_TAG,
        summary="State of the breakers",
        handler=state,
        answer=shapes.BreakerAnswer,
        example=BREAKER_EXAMPLE,
    ),
    Operation(
        method="POST",
        path=_PATH,
        tag=_TAG,
        summary="Close the breakers by hand",
        description="Those of the replica that answers, and of every replica of the embedder and "
        "of a model reranker, which are then asked once. 503 while the embedder is still away. "
        "`degraded` with `enabled: true` answers the state and forces nothing.",
        handler=act,
        body=shapes.BreakerBody,
        example_body={"action": "reset"},
        answer=shapes.BreakerAnswer,
        example=BREAKER_EXAMPLE | {"message": "All breakers were closed."},
        errors=(EmbedderDown,),
        writes=True,
    ),
)
