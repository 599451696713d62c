"""What answers without a key: the front page, the probes, and a browser that asks for its page."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rayapp.api.idempotency import HEADERS
from rayapp.api.json_answer import answer, model_answer
from rayapp.api.routes.system import package_version
from rayapp.api.services import Services, Starting
from rayapp.wire.system import AliveAnswer, ReadyAnswer

WHAT = "Long-term memory for AI assistants, in Hebrew and English."
# Name of a way, where it leads, and what is there.
WAYS: Mapping[str, tuple[str, str]] = {
    "console": ("/console", "The console: see, ask, correct and delete what is remembered."),
    "docs": ("/docs", "The reference: every call, to read and to try."),
    "openapi": ("/openapi.json", "The same for programs that write clients."),
    "ready": ("/readyz", "Whether requests can be served, for load balancers."),
    "health": (
        "/api/memory/health",
        "How each part of the service is; asks for a key, if keys are on.",
    ),
    "mcp": ("/mcp", "The tools for assistants, by the Model Context Protocol (POST)."),
}
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rayapp: {status}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; }}
body {{ color: #1f2328; background: #fff; padding: 0 1rem; }}
a {{ color: #0550ae; }}
dt {{ margin-top: .75rem; }}
dd {{ margin: 0; color: #57606a; }}
@media (prefers-color-scheme: dark) {{
  body {{ color: #e6edf3; background: #0d1117; }}
  a {{ color: #79c0ff; }}
  dd {{ color: #9198a1; }}
}}
</style>
</head>
<body>
<h1>rayapp</h1>
<p>{what}</p>
<p><strong>{status}</strong>{reasons} · version {version}</p>
<dl>
{ways}
</dl>
</body>
</html>
"""


def front(status: str, reasons: Sequence[str]) -> dict[str, Any]:
    """What `/` answers: `status` is ready, degraded, starting or not ready."""
    return {
        "service": "rayapp",
        "what": WHAT,
        "version": package_version(),
        "status": status,
        "reasons": list(reasons),
        "links": {name: path for name, (path, _) in WAYS.items()},
    }


def page(found: Mapping[str, Any]) -> str:
    """The same for people."""
    ways = "\n".join(
        f'<dt><a href="{path}">{path}</a></dt><dd>{escape(text)}</dd>'
        for path, text in WAYS.values()
    )
    reasons = f": {escape(', '.join(found['reasons']))}" if found["reasons"] else ""
    return PAGE.format(
        status=escape(found["status"]),
        what=escape(found["what"]),
        version=escape(found["version"]),
        reasons=reasons,
        ways=ways,
    )


def probe_routes(services: Callable[[], Services | None], starting: Starting | None) -> list[Route]:
    """GET /healthz, GET /readyz, and `/`: a page for people, the same as JSON for programs."""

    async def healthz(_: Request) -> Response:
        return model_answer(AliveAnswer(ok=True))

    async def readyz(_: Request) -> Response:
        ready = services()
        if ready is not None:
            reasons = await ready.health.not_ready()
        else:
            reasons = list(starting.problems if starting else ()) or ["starting"]
        if reasons:
            blocked = starting is not None and starting.blocked
            body = ReadyAnswer(ready=False, reasons=tuple(reasons), blocked=blocked)
            return model_answer(body, status=503)
        return model_answer(ReadyAnswer(ready=True))

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


# --- pages of other origins: none unless `http.allowed_origins` names them

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Beside those that any page may send.
SENT = (
    *("Authorization", "X-User-Id", "X-Request-Id", "X-Conversation-Id", "X-Turn-Id"),
    *("Last-Event-ID", "MCP-Protocol-Version"),
)
SHOWN = (
    *("X-Request-Id", "X-Auth-Notice", "Retry-After", "Content-Disposition", "Location", "ETag"),
    *("X-Conversation-Id", "X-Message-Id", "X-Memory", "X-Receipt-Id", "X-Disclaimers"),
)
# Seconds that a browser need not ask again.
REMEMBERED_S = 600


class CrossOrigin:
    """Outside of the gate, so that a preflight, which never has a key, is answered before it, and
    refusals can be read by the page. Keys are in a header, so no credentials of the browser."""

    def __init__(self, app: ASGIApp, *, services: Callable[[], Services | None]) -> None:
        self._app = app
        self._services = services
        self._made: tuple[list[str], ASGIApp] = ([], app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = self._services()
        origins = [] if services is None else services.settings.http.allowed_origins
        if origins != self._made[0]:
            self._made = origins, self._around(origins)
        await self._made[1](scope, receive, send)

    def _around(self, origins: list[str]) -> ASGIApp:
        if not origins:
            return self._app
        return CORSMiddleware(
            self._app,
            allow_origins=origins,
            allow_methods=METHODS,
            allow_headers=[*SENT, *(name.decode() for name in HEADERS)],
            expose_headers=SHOWN,
            max_age=REMEMBERED_S,
        )
