"""Process up, and able to serve: both answer without a key and before the services exist."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rayapp.api.json_answer import answer
from rayapp.service_protocols import Services, Starting


def probe_routes(services: Callable[[], Services | None], starting: Starting | None) -> list[Route]:
    """GET /healthz and GET /readyz; `/` leads a browser to the reference."""

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

    async def root(_: Request) -> Response:
        return RedirectResponse("/docs")

    return [
        Route("/", root, methods=["GET"]),
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
    ]
