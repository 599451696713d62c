"""A second key of the same user floods false outcomes: it moves little, and only what it saw."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.ports import Scope
from tests.support.harness import Harness
from tests.unit.api.serving import client_of

FACTS = (
    "Restart nginx with systemctl reload",
    "Nginx logs lie under var log",
    "The nginx config has a typo in the server block",
    "סבתא אוהבת תה ירוק",
    "Dana flies to Haifa on Sunday",
    "The cat sleeps on the sofa",
)


class Keys:
    """The owner's application and a plugin, both bound to dana."""

    def __init__(self, harness: Harness, app: httpx.AsyncClient, plugin: httpx.AsyncClient) -> None:
        self.harness, self.app, self.plugin = harness, app, plugin

    async def order(self, query: str) -> list[str]:
        answer = await self.app.post("/api/memory/search", json={"query": query, "limit": 50})
        return [hit["memory_id"] for hit in answer.json()["results"]]

    async def flood(self, query: str, times: int) -> list[dict[str, Any]]:
        """Failed outcomes about everything that the plugin's own searches showed."""
        answers = []
        for _ in range(times):
            found = await self.plugin.post("/api/memory/search", json={"query": query, "limit": 3})
            body = {"receipt_id": found.json()["receipt_id"], "outcome": "failed"}
            answers.append((await self.plugin.post("/api/memory/outcomes", json=body)).json())
        return answers

    async def stats(self, memory_id: str) -> dict[str, Any]:
        answer = await self.app.get(f"/api/memory/items/{memory_id}")
        found: dict[str, Any] = answer.json()["memory"]["stats"]
        return found


@pytest.fixture
async def keys() -> AsyncIterator[Keys]:
    harness = await Harness.open(auth={"mode": "keys"})
    service = ApiKeyService(harness.services.api_keys, clock=harness.clock, cache_s=0)
    scopes: list[Scope] = ["read", "write"]
    clients = []
    for principal in ("dana-app", "plugin"):
        secret, _ = await service.create(principal, user_id="dana", scopes=scopes)
        clients.append(client_of(harness.services, {"Authorization": f"Bearer {secret}"}))
    app, plugin = clients
    async with app, plugin:
        items = [
            {"memory_id": f"m-{n}", "text": text, "tier": "history"} for n, text in enumerate(FACTS)
        ]
        (await app.post("/api/memory/store/batch", json={"items": items})).raise_for_status()
        await harness.drain()
        yield Keys(harness, app, plugin)


async def test_by_id_a_guest_judges_nothing_of_others(keys: Keys) -> None:
    body = {"memory_ids": ["m-0", "m-4"], "outcome": "failed"}
    answer = (await keys.plugin.post("/api/memory/outcomes", json=body)).json()
    assert answer["updated"] == []
    assert {row["reason"] for row in answer["skipped"]} == {"not_shown"}


async def test_new_receipts_do_not_let_a_guest_judge_again(keys: Keys) -> None:
    answers = await keys.flood("nginx", 10)
    assert len(answers[0]["updated"]) == 3
    for answer in answers[1:]:
        assert answer["updated"] == []
        assert {row["reason"] for row in answer["skipped"]} == {"already_scored"}
    assert (await keys.stats("m-0"))["failed_count"] == 1
    keys.harness.clock.advance(25 * 3600)
    assert len((await keys.flood("nginx", 1))[0]["updated"]) == 3  # another day


async def test_what_a_guest_was_not_shown_keeps_its_place(keys: Keys) -> None:
    question = "who flies, and what does grandmother like? סבתא"
    before = await keys.order(question)
    untouched = [memory_id for memory_id in before if memory_id in ("m-3", "m-4", "m-5")]
    await keys.flood("nginx", 5)
    await keys.harness.settle()
    after = await keys.order(question)
    assert [one for one in after if one in ("m-3", "m-4", "m-5")] == untouched
    graph = (await keys.app.get("/api/memory/graph")).json()
    assert graph["nodes"] == []  # a guest's outcomes grow no graph


async def test_who_stored_a_memory_judges_it_in_full(keys: Keys) -> None:
    for _ in range(3):
        body = {"memory_ids": ["m-0"], "outcome": "worked"}
        answer = (await keys.app.post("/api/memory/outcomes", json=body)).json()
        assert [row["memory_id"] for row in answer["updated"]] == ["m-0"]
    assert (await keys.stats("m-0"))["worked_count"] == 3


async def test_the_hourly_limit_counts_memories(keys: Keys) -> None:
    limit = keys.harness.settings.learning.guest_outcomes_per_hour
    items = [
        {"memory_id": f"x-{n}", "text": f"lemon note number {n}", "tier": "history"}
        for n in range(limit + 60)
    ]
    (await keys.app.post("/api/memory/store/batch", json={"items": items})).raise_for_status()
    await keys.harness.drain()
    judged = 0
    for n in range(0, len(items), 40):
        found = await keys.plugin.post(
            "/api/memory/search", json={"query": f"lemon note number {n}", "limit": 50}
        )
        body = {"receipt_id": found.json()["receipt_id"], "outcome": "failed"}
        answer = (await keys.plugin.post("/api/memory/outcomes", json=body)).json()
        judged += len(answer["updated"])
    assert 0 < judged <= limit
