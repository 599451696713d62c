"""Replaced memories, the time of an answer, and precise hits, over HTTP."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.support.harness import Harness
from tests.unit.api.serving import client_of

SEARCH, STORE, ITEMS = "/api/memory/search", "/api/memory/store", "/api/memory/items"


@pytest.fixture
async def service() -> Harness:
    return await Harness.open()


@pytest.fixture
async def api(service: Harness) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(service.services) as client:
        yield client


async def store(api: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await api.post(STORE, json={"tier": "history", **body})


async def found(api: httpx.AsyncClient, **body: Any) -> list[str]:
    answer = await api.post(SEARCH, json=body)
    assert answer.status_code == 200, answer.text
    return [hit["memory_id"] for hit in answer.json()["results"]]


async def test_a_replaced_memory_over_http(api: httpx.AsyncClient, service: Harness) -> None:
    await store(api, text="דנה גרה בחיפה; Dana lives in Haifa", memory_id="old")
    before = service.clock.now()
    service.clock.advance(timedelta(days=2).total_seconds())
    done = await store(
        api, text="דנה גרה ביפו; Dana lives in Jaffa", memory_id="new", supersedes="old"
    )
    assert done.status_code == 201
    await service.drain()
    at = (before + timedelta(days=1)).isoformat()
    for query in ("where does Dana live", "איפה דנה גרה"):
        assert await found(api, query=query) == ["new"]
        assert await found(api, query=query, as_of=at) == ["old"]
        assert await found(api, query=query, asOf=at) == ["old"]
        open_filter = {"include_superseded": True, "valid_at": at}
        assert await found(api, query=query, filters=open_filter) == ["old"]
    shown = (await api.get(ITEMS)).json()["items"]
    assert [item["memory_id"] for item in shown] == ["new"]
    both = (await api.get(ITEMS, params={"include_superseded": "true"})).json()["items"]
    links = {item["memory_id"]: (item["supersedes"], item["superseded_by"]) for item in both}
    assert links == {"new": ("old", None), "old": (None, "new")}


@pytest.mark.parametrize(
    ("named", "status", "code"),
    [("never", 422, "bad_supersedes"), ("closed", 409, "already_superseded")],
)
async def test_what_cannot_be_replaced(
    api: httpx.AsyncClient, named: str, status: int, code: str
) -> None:
    await store(api, text="one", memory_id="closed")
    await store(api, text="two", memory_id="newer", supersedes="closed")
    refused = await store(api, text="three", supersedes=named)
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    batch = {"items": [{"text": "four", "supersedes": named}, {"text": "five"}]}
    results = (await api.post(f"{STORE}/batch", json=batch)).json()["results"]
    assert [row["status"] for row in results] == ["rejected", "stored"]
    assert results[0]["code"] == code


async def test_another_users_memory_is_no_memory(api: httpx.AsyncClient) -> None:
    await store(api, text="of dana", memory_id="hers")
    body = {"text": "of omer", "tier": "history", "supersedes": "hers"}
    refused = await api.post(STORE, json=body, headers={"X-User-Id": "omer"})
    missing = await api.post(
        STORE, json=body | {"supersedes": "none"}, headers={"X-User-Id": "omer"}
    )
    assert refused.status_code == missing.status_code == 422
    told = refused.json()["error"].replace("hers", "none")
    assert told == missing.json()["error"], "an answer must not say that the id exists"


async def test_precise_hits_over_http(api: httpx.AsyncClient, service: Harness) -> None:
    await store(api, text="Kubernetes runs our services", memory_id="k", entities=["k8s"])
    await store(api, text="Our services need sleep", memory_id="s")
    await service.drain()
    body = {"query": "k8s services", "named_only": True, "min_relevance": 0}
    answer = (await api.post(SEARCH, json=body)).json()
    assert [hit["memory_id"] for hit in answer["results"]] == ["k"]
    summary = answer["results"][0]["score_summary"]
    assert summary["named"] == ["k8s"]
    assert 0.0 < summary["relevance"] < 1.0
    assert await found(api, query="k8s services", namedOnly=True) == ["k"]
    assert set(await found(api, query="k8s services")) == {"k", "s"}
    none = (await api.post(SEARCH, json={"query": "our sleep", "named_only": True})).json()
    assert (none["results"], none["abstained"]) == ([], True)
    assert none["debug"]["best_rejected"] is not None


@pytest.mark.parametrize("wrong", [-0.1, 1.1, "0.5", True])
async def test_min_relevance_is_a_share(api: httpx.AsyncClient, wrong: Any) -> None:
    refused = await api.post(SEARCH, json={"query": "x", "min_relevance": wrong})
    assert refused.status_code == 422
    assert "min_relevance" in refused.json()["error"]
