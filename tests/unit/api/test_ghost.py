"""Hiding memories and showing them again."""

from typing import Any

import httpx
import pytest

GHOST = "/api/memory/ghost"
NOA = {"X-User-Id": "noa"}


async def stored(api: httpx.AsyncClient, text: str, **fields: Any) -> str:
    response = await api.post("/api/memory/store", json={"text": text, **fields})
    assert response.status_code == 201, response.text
    return str(response.json()["memory_id"])


async def hide(api: httpx.AsyncClient, memory_id: str, **fields: Any) -> httpx.Response:
    return await api.post(GHOST, json={"memoryId": memory_id, "tier": "working", **fields})


async def show(api: httpx.AsyncClient, memory_id: str) -> httpx.Response:
    return await api.request("DELETE", GHOST, json={"memoryId": memory_id})


async def found(api: httpx.AsyncClient, query: str) -> list[str]:
    response = await api.post("/api/memory/search", json={"query": query})
    return [hit["memory_id"] for hit in response.json()["results"]]


async def listed(api: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    response = await api.get(GHOST, params=query)
    assert response.status_code == 200, response.text
    rows: list[dict[str, Any]] = response.json()["memories"]
    return rows


@pytest.mark.parametrize("text", ["Dana drinks tea", "דנה שותה תה"])
@pytest.mark.parametrize("tier", ["working", "history", "patterns", "books"])
async def test_a_hidden_memory_is_not_found_until_it_is_shown_again(
    api: httpx.AsyncClient, text: str, tier: str
) -> None:
    memory_id = await stored(api, text, tier=tier)
    answer = await hide(api, memory_id, tier=tier, reason="מביך")
    assert (answer.status_code, answer.json()["success"]) == (200, True)
    assert await found(api, text) == []
    (row,) = await listed(api)
    shown_tier = "documents" if tier == "books" else tier
    assert (row["memoryId"], row["tier"], row["reason"]) == (memory_id, shown_tier, "מביך")
    assert row["ghostedAt"]
    assert row["expiresAt"] is None
    assert (await show(api, memory_id)).status_code == 200
    assert await found(api, text) == [memory_id]
    assert await listed(api) == []


async def test_hiding_twice_is_harmless_and_keeps_the_first_reason(api: httpx.AsyncClient) -> None:
    memory_id = await stored(api, "tea")
    await hide(api, memory_id, reason="first")
    again = await hide(api, memory_id, reason="second")
    assert (again.status_code, again.json()["reason"]) == (200, "first")
    assert [row["reason"] for row in await listed(api)] == ["first"]


async def test_a_reason_is_not_needed(api: httpx.AsyncClient) -> None:
    memory_id = await stored(api, "tea")
    answer = await api.post(GHOST, json={"memory_id": memory_id})
    assert (answer.status_code, answer.json()["reason"]) == (200, "user_action")


async def test_what_is_archived_for_another_reason_is_no_ghost(api: httpx.AsyncClient) -> None:
    memory_id = await stored(api, "tea")
    await api.post(f"/api/memory/items/{memory_id}/archive", json={"reason": "old"})
    refused = await hide(api, memory_id)
    assert (refused.status_code, refused.json()["code"]) == (409, "archived_already")
    gone = await show(api, memory_id)
    assert (gone.status_code, gone.json()["code"]) == (404, "not_hidden")
    item = (await api.get(f"/api/memory/items/{memory_id}")).json()
    assert "archived" in str(item)


async def test_showing_what_was_never_hidden_is_404(api: httpx.AsyncClient) -> None:
    memory_id = await stored(api, "tea")
    for wanted in (memory_id, "no-such-memory"):
        answer = await show(api, wanted)
        assert answer.status_code == 404
        assert answer.json()["error"] == answer.json()["message"]


async def test_the_memory_may_be_named_in_the_query(api: httpx.AsyncClient) -> None:
    memory_id = await stored(api, "tea")
    await hide(api, memory_id)
    assert (await api.delete(GHOST, params={"memoryId": memory_id})).status_code == 200
    assert (await api.delete(GHOST)).status_code == 422


async def test_another_user_neither_hides_nor_shows_nor_sees(api: httpx.AsyncClient) -> None:
    memory_id = await stored(api, "tea")
    theirs = await api.post(GHOST, json={"memoryId": memory_id}, headers=NOA)
    assert theirs.status_code == 404
    await hide(api, memory_id)
    assert (await api.get(GHOST, headers=NOA)).json()["memories"] == []
    gone = await api.request("DELETE", GHOST, json={"memoryId": memory_id}, headers=NOA)
    assert gone.status_code == 404
    assert len(await listed(api)) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"memoryId": ""},
        {"memoryId": "a]b"},
        {"memoryId": "m", "memory_id": "n"},
        {"memoryId": "m", "tier": "nowhere"},
        {"memoryId": "m", "reason": ""},
        {"memoryId": "m", "reason": "x" * 495},
    ],
)
async def test_bad_input_is_422(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    assert (await api.post(GHOST, json=body)).status_code == 422


async def test_the_newest_come_first_and_the_limit_holds(api: httpx.AsyncClient) -> None:
    ids = [await stored(api, f"note {n}") for n in range(3)]
    for memory_id in ids:
        await hide(api, memory_id)
    assert len(await listed(api, limit=2)) == 2
    assert {row["memoryId"] for row in await listed(api)} == set(ids)


async def test_what_is_hidden_is_counted_and_listed_as_hidden_alone(api: httpx.AsyncClient) -> None:
    """The screens of the bank, the statistics and the data page say the same."""
    bank = "/api/memory/memory-bank"
    for name in ("kept", "archived", "hidden"):
        await api.post("/api/memory/store", json=fact(name))
    await api.put(f"{bank}/archived", json={"status": "archived"})
    await api.post(GHOST, json={"memoryId": "hidden"})
    found = (await api.get(f"{bank}/stats")).json()
    assert (found["total_memories"], found["active"], found["archived"]) == (2, 1, 1)
    page = (await api.get(f"{bank}?status=archived")).json()
    assert ([one["id"] for one in page["memories"]], page["total"]) == (["archived"], 1)
    tier = (await api.get("/api/memory/stats")).json()["stats"]["tiers"]["memory_bank"]
    assert [tier[f"{name}_count"] for name in ("active", "archived", "hidden")] == [1, 1, 1]
    counts = (await api.get("/api/data/stats")).json()["memory_bank"]
    assert counts == {"count": 3, "active": 1, "archived": 1, "hidden": 1}
    assert (await api.get(GHOST)).json()["total"] == 1


def fact(name: str) -> dict[str, Any]:
    said = {"text": f"Dana {name} the key", "memory_id": name, "tier": "memory_bank"}
    return said | {"tags": ["home"], "importance": 0.8, "confidence": 0.8}
