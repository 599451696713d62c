"""No list of the first client is narrower than its own server made it."""

from typing import Any

import httpx
import pytest

from rayapp.wire.books import BooksQuery
from rayapp.wire.context import MAX_BUDGET, MAX_MESSAGES, PrefetchBody

WHOLE = [
    "memory-bank?limit=1000",
    "kg?limit=5000",
    "kg/action-rollups?limit=200",
    "growth?days=3650",
    "ghost",
    "search?limit=200",
    "books?limit=1000",
]


@pytest.mark.parametrize("path", WHOLE)
async def test_a_whole_list_is_given(api: httpx.AsyncClient, path: str) -> None:
    answer = await api.get(f"/api/memory/{path}")
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(("kind", "said"), [("goals", "goal"), ("values", "value")])
async def test_more_than_a_page_of_facts_stands_in_one_list(
    api: httpx.AsyncClient, kind: str, said: str
) -> None:
    for number in range(201):
        await api.post(f"/api/memory/memory-bank/{kind}", json={"text": f"{said} {number}"})
    found = (await api.get(f"/api/memory/memory-bank/{kind}?limit=500")).json()
    assert len(found[kind]) == found["total"] == 201


async def test_more_than_a_page_of_hidden_memories_is_listed(api: httpx.AsyncClient) -> None:
    for number in range(101):
        said = {"text": f"fact {number}", "memory_id": f"m{number}"}
        await api.post("/api/memory/store", json=said)
        await api.post("/api/memory/ghost", json={"memoryId": f"m{number}"})
    assert len((await api.get("/api/memory/ghost")).json()["memories"]) == 101
    one = (await api.get("/api/memory/ghost?limit=1")).json()
    assert (len(one["memories"]), one["total"]) == (1, 101)


def test_all_books_are_listed_when_nobody_asks_for_a_page() -> None:
    assert BooksQuery().limit == 1_000


def test_a_long_conversation_and_a_large_budget_are_no_errors() -> None:
    said: list[Any] = [{"role": "user", "content": str(number)} for number in range(500)]
    body = PrefetchBody.model_validate(
        {"query": "x", "recent_messages": said, "token_budget": 10**6}
    )
    assert [one.content for one in body.recent_messages] == [
        str(number) for number in range(500 - MAX_MESSAGES, 500)
    ]
    assert body.token_budget == MAX_BUDGET


async def test_a_reason_may_be_a_sentence(api: httpx.AsyncClient) -> None:
    await api.post("/api/memory/store", json={"text": "Tea", "memory_id": "m"})
    change = {"status": "archived", "archived_reason": "because " * 40}
    answer = await api.put("/api/memory/memory-bank/m", json=change)
    assert answer.status_code == 200, answer.text
