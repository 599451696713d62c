"""A caller hears one name of the books tier: every route is asked, and both settings."""

import json
import random
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from rayapp.admin.ports import StreamKind
from rayapp.api.app import ROUTES, create_api
from rayapp.api.openapi import examples
from rayapp.api.route import Route
from rayapp.memory.item import Source, SourceType
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import Tier
from tests.support.example_world import add_books
from tests.support.harness import Harness

QUERY = "Where does Dana live?"
TEXT = "Dana lives in Haifa near the port"
BLOB = b64encode(random.Random(7).randbytes(900)).decode()
# What a memory line, a sentence or a row of an action calls it within a text.
IN_TEXT = re.compile(r"\[(books|documents):|[Tt]ier (books|documents)\b|->(books|documents)\b")
# Here it is the name of a collection of the database, or of the list that a client reads.
COLLECTIONS = {
    "GET /api/memory/books",
    "GET /api/documents",
    "GET /api/memory/ops/reset",
    "POST /api/memory/ops/reset",
    "GET /api/system/data-sizes",
    "GET /api/memory/backup/estimate",
    "GET /api/memory/backup/export",
    "POST /api/memory/backup/restore",
    "DELETE /api/memory/user",
    "DELETE /api/memory/user/part",
}
UNSERVED = {("POST", "/api/documents")}

# Requests that meet a memory of the tier where the example of the document does not.
BODIES: dict[str, Any] = {
    "POST /api/memory/search": {"query": QUERY, "tiers": ["documents"]},
    "POST /api/memory/tools/{tool_name}": {"query": QUERY, "tiers": ["books"]},
    "POST /api/memory/ghost": {"memoryId": "book"},
    "POST /api/memory/ops/sanitize": {"tier": "books", "dry_run": True},
    "POST /api/memory/ops/migrate": {},
}
QUERIES: dict[str, dict[str, str]] = {
    "GET /api/memory/search": {"tier": "documents"},
    "GET /api/memory/items": {"tiers": "books"},
    "GET /api/memory/ops/sanitize": {"tier": "documents"},
    "GET /api/memory/events": {"follow": "false", "types": "stored"},
    "GET /api/hooks/context": {"query": QUERY, "tiers": "books"},
}
# Routes whose answer names the tier here; more may.
NAMING = {
    "POST /api/memory/search",
    "GET /api/memory/search",
    "GET /api/memory/items",
    "GET /api/memory/items/{memory_id}",
    "PATCH /api/memory/items/{memory_id}",
    "GET /api/memory/memory-bank/{memory_id}",
    "POST /api/memory/context",
    "POST /api/memory/prefetch",
    "GET /api/memory/context/insights",
    "POST /api/memory/context/insights",
    "GET /api/hooks/context",
    "POST /api/hooks/context",
    "POST /api/hooks/exchange",
    "GET /api/memory/tools",
    "POST /api/memory/tools/{tool_name}",
    "POST /mcp",
    "GET /api/memory/graph",
    "GET /api/memory/kg",
    "GET /api/memory/kg/concept/{concept_id}/definition",
    "GET /api/memory/stats",
    "GET /api/memory/diagnostics",
    "GET /api/memory/events",
    "GET /api/memory/ghost",
    "GET /api/memory/ops/sanitize",
    "POST /api/memory/ops/sanitize",
    "GET /api/memory/jobs",
    "GET /api/memory/jobs/{job_id}",
    "GET /api/memory/jobs/{job_id}/events",
    "GET /api/data/stats",
    "POST /api/data/clear/{target}",
}
PATHS = {"memory_id": "book", "tool_name": "search_memory", "target": "documents", "org_id": "acme"}
PATHS |= {"node_id": "none", "webhook_id": "none", "key_id": "none", "derived_id": "none"}
PATHS |= {"kind": "thought", "merge_id": "none"}
PATHS |= {"conversation_id": "c-1", "model_name": "llama3"}
PATHS |= {"concept_id": "content_dana", "template_id": "friendly"}
# The document of the example world.
PATHS |= dict.fromkeys(("book_id", "task_id", "document_id"), "doc_51b6763155d7deb9") | {
    "chunk_id": "0"
}


async def a_world(documents: bool) -> Harness:
    """Books that were found and helped, one of them hidden, one with a file in it."""
    world = await Harness.open(compat={"tier_documents": documents})
    source = Source(type=SourceType.DOCUMENT, doc_id="doc-1")
    await world.store(TEXT, user="admin", tier=Tier.BOOKS, memory_id="book", source=source)
    await world.store(f"A picture {BLOB}", user="admin", tier=Tier.BOOKS, memory_id="file")
    await world.store("Dana left Akko", user="admin", tier=Tier.BOOKS, memory_id="hidden")
    await world.services.user_data.hide(WriteScope("admin"), "hidden", "user_action")
    await world.drain()
    async with client_of(world) as api:
        for _ in range(2):
            found = await api.post("/api/memory/search", json={"query": QUERY})
            body = {"receipt_id": found.json()["receipt_id"], "outcome": "worked"}
            judged = await api.post("/api/memory/outcomes", json=body | {"action": "web_search"})
            assert judged.status_code == 200, judged.text
    await world.settle()
    await add_books(world)
    return world


def client_of(world: Harness) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=create_api(world.services))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


async def asked(world: Harness, operation: Route) -> list[Any]:
    """The JSON values of one answer."""
    name = f"{operation.method} {operation.path}"
    body = BODIES.get(name, examples()[name].get("body"))
    query = QUERIES.get(name, examples()[name].get("query", {}))
    parts, headers = dict(PATHS), {}
    async with client_of(world) as api:
        if "/jobs" in name:
            job = (await api.post("/api/memory/ops/reindex", json={"tier": "books"})).json()
            parts["job_id"] = job["result"]["jobId"]
        if name == "GET /api/memory/events":
            headers["Last-Event-ID"] = await told(world, api)
        path = operation.path.format(**parts)
        answer = await api.request(operation.method, path, params=query, json=body, headers=headers)
    return list(values(answer.text))


async def told(world: Harness, api: httpx.AsyncClient) -> str:
    """An event about the tier, and the place before it."""
    look = await api.get("/api/memory/events", params={"follow": "false"})
    place = re.search(r"^id: (.*)$", look.text, re.MULTILINE)
    assert place is not None
    data = {"memory_id": "book", "tier": "books", "from": "books"}
    await world.stream.tell("admin", StreamKind.STORED, data)
    return place[1]


def values(text: str) -> Iterator[Any]:
    """The JSON of an answer, or of each event of a stream."""
    lines = [one[6:] for one in text.splitlines() if one.startswith("data: ")] or [text]
    for line in lines:
        if line:
            yield json.loads(line)


def names_in(value: Any) -> Iterator[str]:
    """Every place where the tier is named."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from names_in(key)
            yield from names_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from names_in(one)
    elif value in {"books", "documents"}:
        yield value
    elif isinstance(value, str):
        for found in IN_TEXT.finditer(value):
            yield next(one for one in found.groups() if one)


@pytest.mark.parametrize(("documents", "name"), [(True, "documents"), (False, "books")])
async def test_a_caller_hears_one_name_on_every_route(documents: bool, name: str) -> None:
    heard: dict[str, set[str]] = {}
    shared = await a_world(documents)
    for operation in ROUTES:
        route = f"{operation.method} {operation.path}"
        if route in COLLECTIONS or (operation.method, operation.path) in UNSERVED:
            continue
        # What only reads leaves it as it is for the next one; a job is stored to be read.
        reads = operation.method == "GET" and "/jobs" not in route
        world = shared if reads else await a_world(documents)
        heard[route] = {one for value in await asked(world, operation) for one in names_in(value)}
    assert {route: said for route, said in heard.items() if said - {name}} == {}
    assert {route for route in NAMING if not heard.get(route)} == set()
