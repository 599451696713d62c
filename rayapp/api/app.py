"""The HTTP application. No Ray in here: the ingress deployment mounts what this returns."""

from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Mount
from starlette.routing import Route as PlainRoute

from rayapp.api import console_files, mcp
from rayapp.api.auth import RULES
from rayapp.api.errors import error_answer
from rayapp.api.front import CrossOrigin, probe_routes
from rayapp.api.middleware import Guarded, RequestMiddleware
from rayapp.api.openapi import document
from rayapp.api.paths import path_pattern
from rayapp.api.route import Route, method_of
from rayapp.api.routes import (
    access,
    backup,
    bank,
    books,
    completions,
    context,
    conversations,
    derived,
    events,
    graphs,
    hooks,
    insights,
    jobs,
    knowledge,
    learning,
    memories,
    ops,
    personality,
    prompt,
    raw_data,
    search,
    session_tokens,
    system,
    tool_results,
    tools,
    upkeep,
    user_data,
    vectors,
    webhooks,
)
from rayapp.api.services import Services, Starting
from rayapp.core.errors import ConfigError, InvalidInput, NotFound, RayappError
from rayapp.core.settings.model import Settings

# Fixed paths stand before the templates that would also match them.
ROUTERS = (
    *(
        memories,
        raw_data,
        derived,
        search,
        bank,
        learning,
        graphs,
        knowledge,
        context,
        hooks,
        completions,
    ),
    *(conversations, insights, tools, mcp, tool_results, events, ops, jobs, system, personality),
    *(prompt, user_data, upkeep, session_tokens, access, vectors, webhooks, books, backup),
)
ROUTES: tuple[Route, ...] = tuple(
    route for module in ROUTERS for route in module.routes.routes if isinstance(route, Route)
)
BATCH_PATHS = backup.BATCH_PATHS | {"/api/memory/store/batch", "/api/memory/raw-data/batch"}


def _form_limits(settings: Settings) -> dict[str, int]:
    """Bytes of the file in a form, by path."""
    files = dict.fromkeys(books.FORM_PATHS, settings.documents.max_bytes)
    return files | dict.fromkeys(backup.FORM_PATHS, settings.backup.max_upload_bytes)


def create_api(
    services: Services | Callable[[], Services | None] | None, starting: Starting | None = None
) -> FastAPI:
    """The application.

    Args:
        services: what the handlers call, or a getter that answers None until they are built;
            until then only the probes and the document answer, everything else is 503.
        starting: what `/readyz` says until then.
    """
    get = services if callable(services) else lambda: services
    app = FastAPIOffline(redoc_url=None, title="rayapp", redirect_slashes=False)
    own = [*app.router.routes, *probe_routes(get, starting), *console_files.ROUTES]
    app.router.routes[:] = [*_GUARDED, *map(guarded, own)]
    app.openapi = _describe  # type: ignore[method-assign]  # FastAPI documents this as its hook
    app.add_exception_handler(HTTPException, _http_error)
    app.add_middleware(
        RequestMiddleware,
        services=get,
        starting=starting,
        batch_paths=BATCH_PATHS,
        form_limits=_form_limits,
        unread_paths=books.UNREAD_PATHS,
    )
    app.add_middleware(CrossOrigin, services=get)
    return app


@cache
def _describe() -> dict[str, Any]:
    """The API document: the same for every application of a process, and slow to make."""
    return document(ROUTES, version=system.package_version())


def guarded(route: BaseRoute) -> BaseRoute:
    """The route behind its rule, its path matched as a whole. Raises ConfigError: it has no rule,
    or is of a kind that no rule can describe."""
    route = copy(route)
    if isinstance(route, PlainRoute):
        rule = RULES.get((method_of(route), route.path))
        route.path_regex = path_pattern(route.path)
        if "GET" in (route.methods or ()):
            route.methods = {"GET", "HEAD"}
    elif isinstance(route, Mount):
        rule = RULES.get(("GET", route.path))
    else:
        rule = None
    if rule is None or not isinstance(route, PlainRoute | Mount):
        raise ConfigError(f"{route!r} has no rule; give it one in rayapp/api/auth.py.")
    route.app = Guarded(route.app, rule)
    return route


# They hold nothing of an application, so all that a process makes share them.
_GUARDED = tuple(map(guarded, ROUTES))


async def _http_error(request: Request, error: Exception) -> Response:
    """What the router refuses, in the shape of every other error."""
    assert isinstance(error, HTTPException)
    wanted = f"{request.method} {request.url.path}"
    found: RayappError
    if error.status_code == 404:
        found = NotFound(f"No route {wanted}; see /docs.", code="route_not_found")
    elif error.status_code == 405:
        found = InvalidInput(f"No route {wanted}; see /docs.", code="method_not_allowed")
    else:
        found = InvalidInput(f"{error.detail}", code="http_error")
    response = error_answer(found, request.url.path)
    response.headers.update(error.headers or {})
    if error.status_code == 405:
        response.headers["Allow"] = ", ".join(_allowed(request))
    return response


def _allowed(request: Request) -> list[str]:
    """Every method of the path: a route has one, so the one that refused knows too little."""
    routes = [one for one in request.app.routes if isinstance(one, PlainRoute)]
    path = next(one.path for one in routes if one.matches(request.scope)[0] is not Match.NONE)
    return sorted({name for one in routes if one.path == path for name in one.methods or ()})
