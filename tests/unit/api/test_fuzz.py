"""No body and no query string is answered with a 5xx."""

import asyncio
import json
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.api.app import ROUTES
from rayapp.api.auth import RULES, Mark
from rayapp.api.services import Services
from tests.support.examples import examples
from tests.support.harness import Harness
from tests.unit.api.serving import client_of

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["all", "working", "books", "m-1", "2025-01-01", "score", "\ud800", "\x00"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
WRITES = [one for one in ROUTES if one.body is not None]
# A stream goes on for as long as its clock stands still.
LISTS = [
    one
    for one in ROUTES
    if one.query is not None and Mark.STREAM not in RULES[one.method, one.path].marks
]


def bodies(names: list[str]) -> st.SearchStrategy[Any]:
    """Objects with known fields, valid now and then, and a field nobody knows."""
    plausible = st.fixed_dictionaries(
        {}, optional={name: VALUES for name in [*names, "content", "tier", "junk"]}
    )
    return VALUES | plausible | plausible.map(lambda body: {"text": "tea", "query": "tea", **body})


class Caller:
    """One application and one event loop for all examples; the data behind them is new for each."""

    def __init__(self) -> None:
        self._services: Services | None = None
        self._loop = asyncio.Runner()
        self._api = client_of(lambda: self._services)

    def exchange(self, method: str, path: str, body: bytes | None) -> int:
        return self._loop.run(self._once(method, path, body))

    async def _once(self, method: str, path: str, body: bytes | None) -> int:
        world = Harness.ready()
        self._services = world.services
        response = await self._api.request(
            method, path, content=body, headers={"Content-Type": "application/json"}
        )
        assert response.json() is not None
        return response.status_code


@cache
def caller() -> Caller:
    return Caller()


def exchange(method: str, path: str, body: bytes | None) -> int:
    return caller().exchange(method, path, body)


@pytest.mark.parametrize("operation", WRITES, ids=lambda one: f"{one.method} {one.path}")
def test_any_body(operation: Any) -> None:
    @settings(max_examples=examples(60), deadline=None)
    @given(bodies(list(operation.body.model_fields)))
    def holds(body: Any) -> None:
        path = operation.path.replace("{memory_id}", "m-1")
        # The standard writer lets NaN and lone surrogates through, as careless callers do.
        status = exchange(operation.method, path, json.dumps(body).encode())
        assert status < 500, body

    holds()


@pytest.mark.parametrize("operation", LISTS, ids=lambda one: f"{one.method} {one.path}")
def test_any_query(operation: Any) -> None:
    names = st.sampled_from([*operation.query.model_fields, *operation.aliases, "junk"])
    words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    values = words | st.integers().map(str) | st.sampled_from(["all", "0", "-1", "nan", "true"])

    @settings(max_examples=examples(60), deadline=None)
    @given(st.lists(st.tuples(names, values), max_size=4))
    def holds(pairs: list[tuple[str, str]]) -> None:
        path = operation.path.replace("{memory_id}", "m-1")
        query = "&".join(f"{quote(name)}={quote(value)}" for name, value in pairs)
        assert exchange(operation.method, f"{path}?{query}", None) < 500, query

    holds()


@settings(max_examples=examples(60), deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes(body: bytes) -> None:
    assert exchange("POST", "/api/memory/search", body) in {200, 400, 422}
