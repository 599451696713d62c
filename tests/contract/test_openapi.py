"""The API document keeps its promises: examples work, answers fit, every route is complete."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rayapp.api.app import ROUTES, create_api
from rayapp.api.auth import CONSOLE, CONSOLE_FILE, DOCS_FILES, RULES
from rayapp.api.errors import CODES, ERRORS
from rayapp.api.openapi import examples
from rayapp.wire.bases import ErrorAnswer
from rayapp.wire.completions import ProtocolError
from tests.record_examples import WITH_KEYS, recordable, shape
from tests.support.example_world import (
    EVENTS,
    answered,
    client_of,
    example_world,
    needs_a_job,
    shown,
)
from tests.support.harness import Harness
from tests.support.shapes import check_shape

UNDOCUMENTED = {
    *("/", "/docs", "/docs/oauth2-redirect", "/openapi.json"),
    *(DOCS_FILES, CONSOLE, CONSOLE_FILE),
}
BY_NAME = {f"{one.method} {one.path}": one for one in ROUTES}


@pytest.fixture
async def world() -> Harness:
    return await example_world()


@pytest.fixture(scope="module")
async def read_world() -> Harness:
    """For requests that leave it as it is."""
    return await example_world()


@pytest.fixture
async def api(world: Harness) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(world) as client:
        yield client


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    document: dict[str, Any] = create_api(None).openapi()
    return document


def described(spec: dict[str, Any], name: str) -> dict[str, Any]:
    method, path = name.split(" ")
    found: dict[str, Any] = spec["paths"][path][method.lower()]
    return found


def test_every_route_is_documented(spec: dict[str, Any]) -> None:
    documented = {(method.upper(), path) for path, item in spec["paths"].items() for method in item}
    assert documented == {key for key in RULES if key[1] not in UNDOCUMENTED}


def test_every_reference_resolves(spec: dict[str, Any]) -> None:
    def references(node: Any) -> set[str]:
        if isinstance(node, dict):
            own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
            return own.union(*(references(value) for value in node.values()), set())
        if isinstance(node, list):
            return set().union(*(references(value) for value in node), set())
        return set()

    schemas = {f"#/components/schemas/{name}" for name in spec["components"]["schemas"]}
    assert references(spec) <= schemas
    assert references(spec)


def test_operation_ids_are_unique(spec: dict[str, Any]) -> None:
    ids = [one["operationId"] for item in spec["paths"].values() for one in item.values()]
    assert len(ids) == len(set(ids))


def test_every_error_code_is_listed(spec: dict[str, Any]) -> None:
    text = spec["info"]["description"]
    codes = {kind.default_code for kind in ERRORS} | CODES.keys()
    assert [code for code in codes if f"`{code}`" not in text] == []


@pytest.mark.parametrize("name", BY_NAME)
def test_every_route_shows_examples_errors_and_described_fields(
    spec: dict[str, Any], name: str
) -> None:
    found = described(spec, name)
    assert found["summary"]
    assert {"401", "403", "422", "429", "500", "503"} <= found["responses"].keys()
    for status, response in found["responses"].items():
        if "content" not in response:
            assert status in {"202", "204"}
            continue
        media, content = next(iter(response["content"].items()))
        if media == "text/plain":
            assert content["example"]
        elif status.startswith(("4", "5")) and "examples" in content:
            for example in content["examples"].values():
                kind = ProtocolError if " /v1/" in name else ErrorAnswer
                kind.model_validate(example["value"])
        else:
            check_shape(BY_NAME[name].answer, shown(media, content["example"]))
    if "requestBody" in found:
        assert all(one["example"] for one in found["requestBody"]["content"].values())
    assert all(parameter["description"] for parameter in found["parameters"])


@pytest.mark.parametrize(
    "name", [name for name, one in BY_NAME.items() if one.path not in WITH_KEYS]
)
async def test_the_example_request_works_and_is_answered_as_recorded(
    read_world: Harness, name: str
) -> None:
    """When it is not: `python -m tests.record_examples`."""
    route = BY_NAME[name]
    reads = route.method == "GET" and not needs_a_job(route.path)
    world = read_world if reads else await example_world()
    response = await answered(world, route)
    assert response.status_code == route.status, response.text
    assert response.headers["Content-Type"].split(";")[0] == route.media
    body = response.text if route.media == EVENTS else response.json()
    check_shape(route.answer, shown(route.media, body))
    if recordable(route) and route.media != EVENTS:
        assert shape(body) == shape(examples()[name]["answer"])


async def test_search_and_store_answers_fit_with_real_values(
    api: httpx.AsyncClient, world: Harness
) -> None:
    body = {"query": "Where in Haifa does Dana live?", "limit": 3}
    answer = (await api.post("/api/memory/search", json=body)).json()
    assert answer["results"]
    check_shape(BY_NAME["POST /api/memory/search"].answer, answer)
    edited = await api.patch(
        "/api/memory/items/mem-1", json={"text": "Dana lives in Acre", "tags": ["home"]}
    )
    assert edited.status_code == 200, edited.text
    versions = (await api.get("/api/memory/items/mem-1/versions")).json()
    assert versions["versions"]
    check_shape(BY_NAME["GET /api/memory/items/{memory_id}/versions"].answer, versions)
    listed = (await api.get("/api/memory/search?tier=memory_bank")).json()
    assert listed["memories"]
    check_shape(BY_NAME["GET /api/memory/search"].answer, listed)


@pytest.mark.parametrize(
    "name", ["POST /api/memory/store", "POST /api/memory/search", "GET /api/memory/items"]
)
def test_the_shapes_refuse_undocumented_fields(name: str) -> None:
    with pytest.raises(ValueError, match="surprise"):
        check_shape(BY_NAME[name].answer, {**examples()[name]["answer"], "surprise": 1})


def test_a_form_says_which_fields_it_needs(spec: dict[str, Any]) -> None:
    form = described(spec, "POST /api/memory/backup/import-from")["requestBody"]["content"]
    assert form["multipart/form-data"]["schema"]["required"] == ["file", "source"]


async def test_the_pages_are_served(api: httpx.AsyncClient) -> None:
    assert (await api.get("/openapi.json")).json()["openapi"].startswith("3.1")
    assert "swagger" in (await api.get("/docs")).text


async def test_both_answers_of_store_are_documented(api: httpx.AsyncClient) -> None:
    documented = create_api(None).openapi()["paths"]["/api/memory/store"]["post"]["responses"]
    for _ in range(2):
        answer = await api.post("/api/memory/store", json={"text": "said twice"})
        assert str(answer.status_code) in documented
    assert answer.status_code == 200
    assert answer.json()["duplicate"] is True


def test_every_answer_that_a_key_repeats_may_say_so(spec: dict[str, Any]) -> None:
    def shapes(node: dict[str, Any]) -> list[dict[str, Any]]:
        if "$ref" in node:
            return shapes(spec["components"]["schemas"][node["$ref"].rpartition("/")[2]])
        return (
            [one for each in node["anyOf"] for one in shapes(each)] if "anyOf" in node else [node]
        )

    silent = [
        f"{method.upper()} {path}"
        for path, item in spec["paths"].items()
        for method, found in item.items()
        if any(one["name"] == "Idempotency-Key" for one in found["parameters"])
        for code, answer in found["responses"].items()
        if code.startswith("2")
        for media in answer.get("content", {}).values()
        for shape in shapes(media["schema"])
        if shape.get("additionalProperties") is False and "duplicate" not in shape["properties"]
    ]
    assert silent == []


@pytest.mark.parametrize("name", [name for name, one in BY_NAME.items() if one.aliases])
def test_every_other_name_of_a_field_is_told(spec: dict[str, Any], name: str) -> None:
    found = described(spec, name)
    told = [found.get("requestBody", {}).get("description", "")]
    told += [one["description"] for one in found["parameters"]]
    kinds = [kind for kind in (BY_NAME[name].body, BY_NAME[name].query) if kind]
    fields = {field for kind in kinds for field in kind.model_fields}
    for alias, field in BY_NAME[name].aliases.items():
        assert field not in fields or any(f"`{alias}`" in text for text in told), alias


# Objects that the first client, or programs before it, read in both spellings.
FIRST_CLIENT = {
    "POST /api/memory/search": "hasMore and nextOffset: decision 0041",
    "GET /api/book-upload/search": "the same page",
    "GET /api/memory/memory-bank": "sourcePersonalityId beside our times",
    "GET /api/memory/memory-bank/{memory_id}": "sourcePersonalityId beside our times",
    "GET /api/memory/graph": "connectionCount of a node",
    "POST /api/memory/prefetch": "its route",
    "POST /api/hooks/context": "its route",
    "GET /api/hooks/context": "its route",
    "POST /api/hooks/exchange": "its route",
    "GET /api/memory/stats": "memoryBank, its collection",
    "GET /api/memory/personality": "isDefault",
    "POST /api/memory/ghost": "it sends one spelling and reads the other",
    "GET /api/memory/ghost": "it sends one spelling and reads the other",
    "DELETE /api/memory/ghost": "it sends one spelling and reads the other",
    "GET /api/memory/books": "its shelf",
    "GET /api/memory/books/{book_id}": "its shelf",
    "POST /api/memory/backup/restore": "size_bytes of what is kept before",
    "DELETE /api/memory/user": "memoryBank, its collection",
}


def mixes(node: Any) -> bool:
    """Whether an object within has names of both spellings."""
    if isinstance(node, list):
        return any(map(mixes, node))
    if not isinstance(node, dict):
        return False
    words = [name for name in node if name.isidentifier()]
    snake = any("_" in name for name in words)
    camel = any(name[0].islower() and name != name.lower() for name in words)
    return (snake and camel) or any(map(mixes, node.values()))


def test_one_object_has_one_spelling() -> None:
    mixed = {name for name, told in examples().items() if mixes(told.get("answer"))}
    assert mixed == FIRST_CLIENT.keys()
