"""No route without an entry in the table of scopes, and no entry without its guard."""

import httpx
import pytest
from starlette.routing import Mount
from starlette.routing import Route as PlainRoute

from rayapp.api.app import ROUTES, create_api, guarded
from rayapp.api.auth import CONSOLE, CONSOLE_FILE, DOCS_FILES, RULES
from rayapp.api.middleware import Guarded
from rayapp.api.route import Route
from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import load_settings
from tests.support.harness import Harness

# Starlette adds HEAD to every GET; the guard treats both alike.
ADDED = {"HEAD"}
GUARDED = [key for key, rule in RULES.items() if rule.scope != "public"]
PUBLIC = [key for key, rule in RULES.items() if rule.scope == "public"]


def served() -> set[tuple[str, str]]:
    found = set()
    for route in create_api(None).routes:
        if isinstance(route, Mount):
            found.add(("GET", route.path))
            continue
        assert isinstance(route, PlainRoute), f"{route} is of a kind that the table cannot describe"
        found |= {(method, route.path) for method in (route.methods or set()) - ADDED}
    return found


def test_every_route_has_a_scope_and_every_entry_a_route() -> None:
    assert served() == RULES.keys()


def test_what_is_public_is_only_this() -> None:
    documents = {"/openapi.json", "/docs", "/docs/oauth2-redirect"}
    files = {DOCS_FILES, CONSOLE, CONSOLE_FILE}
    assert {path for _, path in PUBLIC} == {"/", "/healthz", "/readyz", *documents, *files}


def test_no_route_is_served_that_has_no_rule() -> None:
    known = ROUTES[0]
    stray = Route("/api/memory/stray", known.endpoint, methods=[known.method])
    with pytest.raises(ConfigError, match="/api/memory/stray"):
        guarded(stray)
    assert all(isinstance(getattr(one, "app", None), Guarded) for one in create_api(None).routes)


def locked() -> httpx.AsyncClient:
    settings = load_settings("local", env={}, overrides={"auth": {"mode": "keys"}})
    app = create_api(Harness.ready(settings).services)
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://memory.example"
    )


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_without_a_key_a_guarded_route_is_401(method: str, path: str) -> None:
    async with locked() as client:
        response = await client.request(method, path.replace("{memory_id}", "m-1"))
    assert response.status_code == 401


@pytest.mark.parametrize(("method", "path"), PUBLIC)
async def test_without_a_key_a_public_route_answers(method: str, path: str) -> None:
    if path == DOCS_FILES:
        path = f"{path}/swagger-ui.css"
    async with locked() as client:
        assert (await client.request(method, path)).status_code in (200, 307)
