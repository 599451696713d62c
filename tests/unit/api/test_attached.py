"""What is attached to a conversation leaks to no other one, until it is published."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from rayapp.core.errors import IndexDown
from rayapp.documents.rules.library import book_id_of, sha256_of
from rayapp.documents.service import CLAIM_S
from rayapp.memory.tiers import Tier
from tests.support.example_world import GARDEN, garden
from tests.support.harness import Harness
from tests.unit.api.serving import client_of

BOOKS, UPLOAD = "/api/memory/books", "/api/book-upload"
QUERY, SAID = "מתי משקים את הגינה?", "את הגינה משקים"
HERE = "conv-1"
SHA = sha256_of(GARDEN.encode())
BOOK_ID = book_id_of(SHA, HERE)
Ask = Callable[[httpx.AsyncClient, dict[str, Any], dict[str, str]], Awaitable[httpx.Response]]


def post(path: str, **body: Any) -> Ask:
    async def ask(
        api: httpx.AsyncClient, place: dict[str, Any], who: dict[str, str]
    ) -> httpx.Response:
        return await api.post(path, json=body | place, headers=who)

    return ask


def get(path: str, **params: Any) -> Ask:
    async def ask(
        api: httpx.AsyncClient, place: dict[str, Any], who: dict[str, str]
    ) -> httpx.Response:
        return await api.get(path, params=params | place, headers=who)

    return ask


# Every way to what a conversation sees; all of them show the document to its own one.
SEEING: dict[str, Ask] = {
    "search": post("/api/memory/search", query=QUERY),
    "search of books": get(f"{UPLOAD}/search", query=QUERY),
    "context": post("/api/memory/context", query=QUERY),
    "prefetch": post("/api/memory/prefetch", query=QUERY),
    "prompt": post("/api/memory/prompt", query=QUERY),
    "hook": post("/api/hooks/context", query=QUERY),
    "tool search_memory": post(
        "/api/memory/tools/search_memory", arguments={"query": QUERY, "more": True}
    ),
    "tool search_books": post(
        "/api/memory/tools/search_books", arguments={"query": QUERY, "more": True}
    ),
    "document": get(f"{BOOKS}/{BOOK_ID}"),
    "opened": get(f"/api/documents/{BOOK_ID}"),
    "passage": get(f"{BOOKS}/{BOOK_ID}/chunks/0/surrounding"),
    "list": get(BOOKS),
    "library": get("/api/documents"),
    "recognised": get(f"{BOOKS}/recognize", documentHash=SHA),
    "recognised by text": post(f"{BOOKS}/recognize", content=GARDEN),
}
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}
# Ways that know of no conversation.
ELSEWHERE: dict[str, Ask] = {
    "items": get("/api/memory/items", tiers="all"),
    "full text": get("/api/memory/search", query="הגינה", sort_by="recent"),
    "statistics": get("/api/memory/stats"),
    "counts": get("/api/data/stats"),
    "growth": get("/api/memory/growth"),
    "insights": post("/api/memory/context/insights", query=QUERY),
    "graph": get("/api/memory/kg"),
    "cold start": post("/api/memory/context/cold-start"),
    "hidden": get("/api/memory/ghost"),
    "MCP": post("/mcp", jsonrpc="2.0", id=1, method="resources/list", params={}),
}


async def attach(world: Harness, api: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    files = {"file": ("garden.md", GARDEN.encode())}
    answer = await api.post(BOOKS, files=files, data={"conversation_id": HERE} | fields)
    await worked(world)
    return answer


async def worked(world: Harness) -> None:
    work = world.reading(garden)
    for _ in range(3):
        await work.run_once()
        await world.indexed()
        await world.clock.elapse(CLAIM_S)
    await world.settle()


def tells(answer: httpx.Response) -> bool:
    text = json.dumps(answer.json(), ensure_ascii=False)
    return answer.is_success and any(word in text for word in (SAID, "Garden", BOOK_ID))


@pytest.fixture(params=["view", "index", "no index"])
async def place(request: pytest.FixtureRequest) -> Any:
    """A document of a conversation of the user admin: searched in a held view, in the index, or
    while the index is away."""
    search = {"resident_bytes": 0} if request.param != "view" else {}
    world = await Harness.open(search=search)
    async with client_of(world.services) as api:
        assert (await attach(world, api)).json()["book_id"] == BOOK_ID
        if request.param == "no index":
            world.index.failure = IndexDown("away")
        yield world, api


@pytest.mark.parametrize("way", SEEING)
async def test_only_its_conversation_sees_it(place: Any, way: str) -> None:
    _, api = place
    ask = SEEING[way]
    assert tells(await ask(api, {"conversation_id": HERE}, {})), "its own conversation"
    elsewhere: list[dict[str, Any]] = [{}, {"conversation_id": "conv-2"}]
    for where in elsewhere:
        assert not tells(await ask(api, where, {})), where
    assert not tells(await ask(api, {"conversation_id": HERE}, {"X-User-Id": "noa"}))


@pytest.mark.parametrize("way", ELSEWHERE)
async def test_nothing_else_tells_of_it(way: str) -> None:
    world = await Harness.open()
    async with client_of(world.services) as api:
        bare = await ELSEWHERE[way](api, {}, MCP_HEADERS)
        assert bare.status_code == 200, bare.text
        await attach(world, api)
        found = await ELSEWHERE[way](api, {}, MCP_HEADERS)
        assert not tells(found)
        assert _steady(found.json()) == _steady(bare.json())


# What every request changes in its answer.
UNSTEADY = ("as_of", "built_ms", "processingTimeMs", "timings_ms", "timestamp", "receipt_id")


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(one) for key, one in value.items() if key not in UNSTEADY}
    return [_steady(one) for one in value] if isinstance(value, list) else value


async def test_published_it_is_a_book_without_a_second_copy() -> None:
    world = await Harness.open()
    async with client_of(world.services) as api:
        await attach(world, api)
        assert (await api.post(f"{BOOKS}/doc_none/publish")).status_code == 404
        noa = {"X-User-Id": "noa"}
        assert (await api.post(f"{BOOKS}/{BOOK_ID}/publish", headers=noa)).status_code == 404
        for _ in range(2):
            answer = await api.post(f"{BOOKS}/{BOOK_ID}/publish")
            assert answer.status_code == 200, answer.text
        await worked(world)
        items = [row.item for row in world.items.inner._rows.values()]
        assert [(one.memory_id, one.attached_to) for one in items] == [(f"{BOOK_ID}:0", None)]
        for place in ({}, {"conversation_id": "conv-2"}):
            for way, ask in SEEING.items():
                assert tells(await ask(api, place, {})), way
        (row,) = (await api.get(BOOKS)).json()["books"]
        assert (row["status"], row["conversation_id"]) == ("completed", None)
        counted = (await api.get("/api/data/stats")).json()["documents"]["count"]
        assert counted == 1
        assert (await attach(world, api)).status_code == 409
        again = await attach(world, api, conversation_id="")
        assert (again.status_code, again.json()["existing_book_id"]) == (409, BOOK_ID)


async def test_the_same_file_is_each_conversations_own() -> None:
    world = await Harness.open()
    async with client_of(world.services) as api:
        first = (await attach(world, api)).json()["book_id"]
        other = (await attach(world, api, conversation_id="conv-2")).json()["book_id"]
        book = (await attach(world, api, conversation_id="")).json()["book_id"]
        assert len({first, other, book}) == 3
        refused = await api.post(f"{BOOKS}/{first}/publish")
        assert (refused.status_code, refused.json()["code"]) == (409, "duplicate")
        assert refused.json()["details"]["existing_book_id"] == book
        await api.delete(f"{BOOKS}/{book}")
        await worked(world)
        assert (await api.post(f"{BOOKS}/{first}/publish")).status_code == 200
        seen = (await api.get(BOOKS, params={"conversation_id": "conv-2"})).json()["books"]
        assert {one["book_id"] for one in seen} == {first, other}


async def test_what_waits_is_not_published() -> None:
    world = await Harness.open()
    async with client_of(world.services) as api:
        files = {"file": ("garden.md", GARDEN.encode())}
        await api.post(BOOKS, files=files, data={"conversation_id": HERE})
        answer = await api.post(f"{BOOKS}/{BOOK_ID}/publish")
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
        assert "when it is completed" in answer.json()["message"]


async def test_the_graphs_hear_of_it_when_it_is_a_book() -> None:
    world = await Harness.open()
    async with client_of(world.services) as api:
        await attach(world, api)
        owed = [row.follow_up_at for row in world.items.inner._rows.values()]
        assert owed == [None]
        await api.post(f"{BOOKS}/{BOOK_ID}/publish")
        await worked(world)
        (item,) = [row.item for row in world.items.inner._rows.values()]
        assert item.tier is Tier.BOOKS
        assert any(row.contributed for row in world.items.inner._rows.values())
