"""What answers without a key: the front page and the probes."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from rayapp.api.json_answer import answer, model_answer
from rayapp.api.routes.system import package_version
from rayapp.api.services import Services, Starting
from rayapp.wire.system import AliveAnswer, ReadyAnswer

WHAT = "Long-term memory for AI assistants, in Hebrew and English."
# Name of a way, where it leads, and what is there.
WAYS: Mapping[str, tuple[str, str]] = {
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
