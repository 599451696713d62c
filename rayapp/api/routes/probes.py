"""What this is and whether it can serve: answered without a key and before the services exist."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from rayapp.api.front import front, page
from rayapp.api.json_answer import answer
from rayapp.api.services import Services, Starting


def probe_routes(services: Callable[[], Services | None], starting: Starting | None) -> list[Route]:
    """GET /healthz, GET /readyz, and `/`: a page for people, the same as JSON for programs."""

    async def healthz(_: Request) -> Response:
        return answer({"ok": True})

    async def readyz(_: Request) -> Response:
        ready = services()
        if ready is not None:
            reasons = await ready.health.not_ready()
        else:
            reasons = list(starting.problems if starting else ()) or ["starting"]
        if reasons:
            blocked = starting is not None and starting.blocked
            body = {"ready": False, "reasons": reasons, "blocked": blocked}
            return answer(body, status=503)
        return answer({"ready": True})

    async def root(request: Request) -> Response:
        state, reasons = await _state(services(), starting)
        found = front(state, reasons)
        if "text/html" in request.headers.get("accept", ""):
            return HTMLResponse(page(found), headers={"Vary": "Accept"})
        return answer(found, headers={"Vary": "Accept"})

    return [
        Route("/", root, methods=["GET"]),
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
    ]


async def _state(services: Services | None, starting: Starting | None) -> tuple[str, list[str]]:
    """In one word, and what is behind it: as `/readyz` says, and less than all components."""
    if services is None:
        return "starting", list(starting.problems if starting else ())
    if reasons := await services.health.not_ready():
        return "not ready", reasons
    away = [one.name for one in await services.health.components() if not one.healthy]
    return ("degraded" if away else "ready"), away
