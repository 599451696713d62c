"""Goals and values of the user."""

from typing import Any

import httpx
import pytest

BANK = "/api/memory/memory-bank"
pytestmark = pytest.mark.parametrize(("name", "tag"), [("goals", "goal"), ("values", "value")])


async def add(api: httpx.AsyncClient, name: str, text: str, **body: Any) -> dict[str, Any]:
    response = await api.post(f"{BANK}/{name}", json={"text": text, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def listed(api: httpx.AsyncClient, name: str, **query: Any) -> dict[str, Any]:
    response = await api.get(f"{BANK}/{name}", params=query)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_an_empty_list_is_a_list(api: httpx.AsyncClient, name: str, tag: str) -> None:
    assert await listed(api, name) == {"success": True, name: [], "total": 0, "degraded": []}


@pytest.mark.parametrize("text", ["Run a marathon", "לרוץ מרתון"])
async def test_what_is_added_is_listed_once(
    api: httpx.AsyncClient, name: str, tag: str, text: str
) -> None:
    first = await add(api, name, text, importance=0.9)
    again = await add(api, name, f" {text} ")
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert first["id"] == again["id"]
    answer = await listed(api, name)
    (entry,) = answer[name]
    assert answer["total"] == 1
    assert entry.keys() == {"id", "text", "created_at", "importance", "status"}
    assert (entry["id"], entry["text"], entry["importance"], entry["status"]) == (
        first["id"],
        text,
        0.9,
        "active",
    )
    memory = (await api.get(f"{BANK}/{first['id']}")).json()["memory"]
    assert (memory["tags"], memory["tier"]) == ([tag], "memory_bank")


async def test_a_known_fact_joins_the_list(api: httpx.AsyncClient, name: str, tag: str) -> None:
    fact = (await api.post(BANK, json={"text": "Be kind", "tags": ["note"]})).json()
    assert (await add(api, name, "Be kind"))["id"] == fact["id"]
    assert [entry["id"] for entry in (await listed(api, name))[name]] == [fact["id"]]


async def test_the_other_list_stays_empty(api: httpx.AsyncClient, name: str, tag: str) -> None:
    await add(api, name, "Be kind")
    other = {"goals": "values", "values": "goals"}[name]
    assert (await listed(api, other))[other] == []


async def test_removing_archives_once(api: httpx.AsyncClient, name: str, tag: str) -> None:
    memory_id = (await add(api, name, "Be kind"))["id"]
    other = {"goals": "values", "values": "goals"}[name]
    assert (await api.delete(f"{BANK}/{other}/{memory_id}")).status_code == 404
    removed = await api.delete(f"{BANK}/{name}/{memory_id}")
    assert (removed.status_code, removed.json()["memory_id"]) == (200, memory_id)
    assert (await listed(api, name))["total"] == 0
    memory = (await api.get(f"{BANK}/{memory_id}")).json()["memory"]
    assert (memory["status"], memory["archived_reason"]) == ("archived", f"{tag} removed")
    assert (await api.delete(f"{BANK}/{name}/{memory_id}")).status_code == 404


async def test_the_limit_cuts_the_page_but_not_the_total(
    api: httpx.AsyncClient, name: str, tag: str
) -> None:
    for n in range(3):
        await add(api, name, f"entry {n}")
    answer = await listed(api, name, limit=2)
    assert (len(answer[name]), answer["total"]) == (2, 3)


@pytest.mark.parametrize(
    "body", [{}, {"text": ""}, {"text": "x" * 501}, {"text": "x", "importance": 2}, {"text": 3}]
)
async def test_a_bad_entry_is_422(
    api: httpx.AsyncClient, name: str, tag: str, body: dict[str, Any]
) -> None:
    assert (await api.post(f"{BANK}/{name}", json=body)).status_code == 422


async def test_another_user_sees_and_removes_nothing(
    api: httpx.AsyncClient, name: str, tag: str
) -> None:
    memory_id = (await add(api, name, "Be kind"))["id"]
    other = {"X-User-Id": "omer"}
    assert (await api.get(f"{BANK}/{name}", headers=other)).json()["total"] == 0
    gone = await api.delete(f"{BANK}/{name}/{memory_id}", headers=other)
    assert gone.status_code == 404


async def test_the_same_key_adds_once(api: httpx.AsyncClient, name: str, tag: str) -> None:
    body = {"text": "Be kind", "idempotency_key": "k-1"}
    first, again = [(await api.post(f"{BANK}/{name}", json=body)).json() for _ in range(2)]
    assert first["id"] == again["id"]
    assert again["duplicate"] is True
