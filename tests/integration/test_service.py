"""The running service over real HTTP: mongod, the embedded engine, Ray Serve."""

import concurrent.futures
import contextlib
import time
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx
import httpx2
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from rayapp.assistant.tools.rules.definitions import TOOLS
from tests.running import RunningService, until

pytestmark = [pytest.mark.ray, pytest.mark.engine]
BANK = {"tags": ["fact"], "importance": 0.8, "confidence": 0.9}


def store(http: httpx.Client, text: str, **fields: Any) -> str:
    answer = http.post("/api/memory/store", json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["memory_id"])


def search(http: httpx.Client, query: str, **fields: Any) -> dict[str, Any]:
    answer = http.post("/api/memory/search", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def ids(body: dict[str, Any]) -> list[str]:
    return [hit["memory_id"] for hit in body["results"]]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("הרכב של דנה במוסך בירושלים", "איפה הרכבים?"),
        ("סבתא גרה ברחוב הרצל 12 בחיפה", "חיפה הרצל"),
        ("Omer's sister is allergic to peanuts", "who is allergic to peanuts"),
        ("הפגישה עם Microsoft בנושא Azure נדחתה", "Azure meeting"),
    ],
)
def test_a_memory_is_found_at_once_and_after_indexing(
    service: RunningService, text: str, query: str
) -> None:
    with service.client("int-basic") as http:
        one = store(http, text, tier="history")
        body = search(http, query)
        assert ids(body)[0] == one
        assert body["degraded"] == []
        service.indexed()
        body = search(http, query)
        assert ids(body)[0] == one
        hit = body["results"][0]
        assert hit["content"] == text
        assert hit["score_summary"]["text_rank"] == 1


def test_newly_stored_items_reach_the_index_within_a_second(service: RunningService) -> None:
    with service.client("int-delay") as http:
        store(http, "the quokka lives on Rottnest island", tier="history")
        begun = time.monotonic()

        def in_index() -> bool:
            hit = search(http, "quokka")["results"][0]
            return bool(hit["score_summary"]["text_rank"] == 1)

        until(in_index, 5)
        assert time.monotonic() - begun < 2.0  # 1 s in the steady state; a loaded CI gets two


def test_update_archive_restore_delete(service: RunningService) -> None:
    with service.client("int-life") as http:
        one = store(http, "the wifi password is hunter2", tier="history")
        service.indexed()
        path = f"/api/memory/items/{one}"
        changed = http.patch(path, json={"text": "the wifi password is correcthorse"})
        assert changed.status_code == 200, changed.text
        assert ids(search(http, "correcthorse")) == [one]
        service.indexed()
        assert search(http, "correcthorse")["results"][0]["score_summary"]["text_rank"] == 1
        versions = http.get(f"{path}/versions").json()
        assert "hunter2" in str(versions)
        assert http.post(f"{path}/archive", json={}).status_code == 200
        assert ids(search(http, "wifi password")) == []
        assert http.post(f"{path}/restore", json={}).status_code == 200
        assert ids(search(http, "wifi password")) == [one]
        assert http.delete(path).status_code == 200
        assert ids(search(http, "wifi password")) == []
        assert http.get(path).status_code == 404


def test_bad_input_gets_a_sentence_and_stores_nothing(service: RunningService) -> None:
    with service.client("int-bad") as http:
        cases: list[tuple[int, dict[str, Any]]] = [
            (422, {"text": ""}),
            (422, {"text": "x", "tier": "attic"}),
            (422, {"text": "x", "colour": "red"}),
            (422, {"text": "bell\x07"}),
            (413, {"text": "x" * 100_001}),
        ]
        for status, body in cases:
            answer = http.post("/api/memory/store", json=body)
            assert answer.status_code == status, answer.text
            error = answer.json()
            assert error["success"] is False
            assert error["error"] == error["message"]
            assert error["code"]
        assert http.get("/api/memory/items").json()["items"] == []


def test_an_address_of_up_to_64_kb_is_read_and_a_longer_one_refused_as_documented(
    service: RunningService,
) -> None:
    with service.client("int-url") as http:
        read = http.get("/api/memory/search", params={"query": "x" * 60_000})
        assert read.status_code == 422, read.text
        assert read.json()["code"]
        # httpx itself refuses this one.
        with contextlib.closing(HTTPConnection(urlsplit(service.url).netloc, timeout=10)) as raw:
            raw.request("GET", f"/api/memory/search?query={'x' * 70_000}")
            refused = raw.getresponse()
        assert refused.status == 400
        told = http.get("/openapi.json").json()["paths"]["/api/memory/search"]["get"]["responses"]
        media = refused.headers.get_content_type()
        assert media in told["400"]["content"]


def test_another_users_item_is_404_and_a_stale_version_409(service: RunningService) -> None:
    with service.client("int-a") as a, service.client("int-b") as b:
        one = store(a, "a private note")
        assert b.get(f"/api/memory/items/{one}").status_code == 404
        assert b.patch(f"/api/memory/items/{one}", json={"text": "mine"}).status_code == 404
        assert b.delete(f"/api/memory/items/{one}").status_code == 404
        path = f"/api/memory/items/{one}"
        assert a.patch(path, json={"text": "v2", "expected_version": 1}).status_code == 200
        stale = a.patch(path, json={"text": "v3", "expected_version": 1})
        assert stale.status_code == 409
        assert stale.json()["code"] == "version_conflict"


def test_idempotency_keys(service: RunningService) -> None:
    with service.client("int-idem") as http:
        headers = {"Idempotency-Key": "k1"}
        first = http.post("/api/memory/store", json={"text": "once"}, headers=headers)
        again = http.post("/api/memory/store", json={"text": "once"}, headers=headers)
        other = http.post("/api/memory/store", json={"text": "twice"}, headers=headers)
        assert again.json()["memory_id"] == first.json()["memory_id"]
        assert again.json()["duplicate"] is True
        assert other.status_code == 409
        assert len(http.get("/api/memory/items").json()["items"]) == 1


def test_equal_ids_of_two_users_stay_apart_under_concurrency(service: RunningService) -> None:
    users = [f"int-c{number}" for number in range(6)]

    def work(user: str) -> list[str]:
        with service.client(user) as http:
            for number in range(10):
                store(http, f"{user} owns object {number}", memory_id=f"same-{number}")
            return [hit["content"] for hit in search(http, "who owns which object")["results"]]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(work, users))
    for user, contents in zip(users, answers, strict=True):
        assert contents
        assert all(content.startswith(f"{user} ") for content in contents)


def test_diagnostics_and_health_tell_the_truth(service: RunningService) -> None:
    with service.client("int-diag") as http:
        store(http, "count me", tier="history")
        service.indexed()

        def agrees() -> bool:
            """Counts are kept for some seconds, and other tests' items may still be archived."""
            body = http.get("/api/memory/diagnostics").json()
            active = sum(row["mongoCount"] for row in body["by_tier"])
            return body["index"]["failed"] == 0 and bool(body["qdrant_points_total"] == active)

        until(agrees)
        body = http.get("/api/memory/diagnostics").json()
        assert body["learning"]["owner"]
        health = http.get("/api/memory/health").json()
        assert health["status"] == "healthy"
        names = {component["name"] for component in health["components"]}
        assert {"mongodb", "qdrant", "embedding", "reranking"} <= names


def test_an_acknowledged_batch_keeps_its_order(service: RunningService) -> None:
    with service.client("int-batch") as http:
        items = [{"text": f"batch note {n}", "memory_id": f"b{n}"} for n in range(500)]
        items[7] = {"text": ""}
        answer = http.post("/api/memory/store/batch", json={"items": items})
        results = answer.json()["results"]
        assert [r["status"] for r in results].count("stored") == 499
        assert results[7]["status"] == "rejected"
        assert results[499]["memory_id"] == "b499"
        service.indexed()
        assert ids(search(http, "batch note 321"))[0] == "b321"


async def test_a_client_of_the_sdk_uses_the_tools(service: RunningService) -> None:
    with service.client("int-mcp") as http:
        one = store(http, "דנה עברה לגור בעכו", tier="memory_bank", **BANK)
    headers = {"X-User-Id": "int-mcp", "X-Conversation-Id": "conv-mcp"}
    async with httpx2.AsyncClient(headers=headers) as sender:
        transport = streamable_http_client(f"{service.url}/mcp", http_client=sender)
        async with McpClient(transport) as client:
            assert len((await client.list_tools()).tools) == len(TOOLS)
            found = await client.call_tool("search_memory", {"q": "איפה דנה גרה?", "limit": "3"})
            assert found.structured_content["results"][0]["memory_id"] == one
            scored = await client.call_tool(
                "record_response", {"key_takeaway": "Dana moved.", "outcome": "👍", "related": "1"}
            )
            assert [row["memory_id"] for row in scored.structured_content["updated"]] == [one]
    with service.client("int-mcp") as http:
        assert http.get(f"/api/memory/items/{one}").json()["memory"]["stats"]["uses"] == 1
