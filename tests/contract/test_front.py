"""Where a newcomer arrives: `/` says what this is and how it is, `/docs` what to call first."""

from typing import Any

import pytest

from rayapp.api.app import create_api
from rayapp.core.errors import IndexDown
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with

PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    document: dict[str, Any] = create_api(None).openapi()
    return document


async def test_programs_get_json_and_people_a_page() -> None:
    async with client_of(Harness.ready().services) as api:
        told = await api.get("/")
        shown = await api.get("/", headers=PAGE)
    body = told.json()
    assert (body["status"], body["reasons"], body["service"]) == ("ready", [], "rayapp")
    assert {"/docs", "/openapi.json"} <= set(body["links"].values())
    assert shown.headers["Content-Type"].startswith("text/html")
    assert told.headers["Vary"] == shown.headers["Vary"] == "Accept"
    for part in (body["what"], body["version"], "ready", *body["links"].values()):
        assert part in shown.text


async def test_every_link_of_the_front_page_is_served() -> None:
    async with client_of(Harness.ready().services) as api:
        for path in (await api.get("/")).json()["links"].values():
            assert (await api.get(path)).status_code != 404, path


async def test_it_names_what_is_away() -> None:
    world = Harness.ready()
    world.index.error = IndexDown("Qdrant does not answer.")
    async with client_of(world.services) as api:
        body = (await api.get("/")).json()
        page = (await api.get("/", headers=PAGE)).text
    assert (body["status"], body["reasons"]) == ("degraded", ["qdrant"])
    assert "degraded" in page
    assert "qdrant" in page


async def test_it_answers_before_the_service_does_and_without_a_key() -> None:
    async with client_of(lambda: None) as api:
        assert (await api.get("/")).json()["status"] == "starting"
    locked = Harness.ready(settings_with(auth={"mode": "keys"}))
    async with client_of(locked.services) as api:
        assert (await api.get("/")).status_code == 200


def test_the_reference_begins_with_what_a_newcomer_calls(spec: dict[str, Any]) -> None:
    first = spec["tags"][0]["name"]
    assert first == "start here"
    calls = [
        f"{method.upper()} {path}"
        for path, item in spec["paths"].items()
        for method, one in item.items()
        if first in one["tags"]
    ]
    assert calls == [
        "POST /api/memory/store",
        "POST /api/memory/search",
        "POST /api/memory/outcomes",
        "POST /api/memory/context",
        "POST /api/hooks/exchange",
        "GET /api/memory/stats",
    ]


def test_every_group_has_a_sentence_and_every_operation_a_group(spec: dict[str, Any]) -> None:
    groups = {one["name"]: one["description"] for one in spec["tags"]}
    used = {tag for item in spec["paths"].values() for one in item.values() for tag in one["tags"]}
    assert used == groups.keys()
    assert all(text.endswith(".") and len(text) < 100 for text in groups.values())


def test_the_error_codes_come_last_and_are_folded(spec: dict[str, Any]) -> None:
    text = spec["info"]["description"]
    assert text.index("**Errors**") < text.index("<details>") < text.index("| status | code |")
    assert text.rstrip().endswith("</details>")
