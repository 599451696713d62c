"""Counts of a user's data, and clearing it."""

from typing import Any

import httpx
import pytest

from rayapp.core.errors import StoreDown
from rayapp.memory.item import Status
from rayapp.memory.requests import CLEARED_TIERS, ClearTarget
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with
from tests.unit.api.test_ghost import NOA, stored

SURE = {"confirm": "DELETE"}
ADMIN = ReadScope("admin", include_shared=False)


async def stats(api: httpx.AsyncClient, **headers: Any) -> dict[str, Any]:
    response = await api.get("/api/data/stats", headers=headers)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def clear(api: httpx.AsyncClient, target: str) -> dict[str, Any]:
    response = await api.post(f"/api/data/clear/{target}", json=SURE)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_an_empty_store_counts_nothing_without_a_wrapper(api: httpx.AsyncClient) -> None:
    none = {"count": 0, "active": 0, "archived": 0, "hidden": 0}
    assert await stats(api) == {
        **{target.value: none for target in CLEARED_TIERS},
        "sessions": {"count": 0},
        "knowledge_graph": {"nodes": 0, "edges": 0, "learned": 0},
        "degraded": [],
    }


async def test_archived_memories_count_and_others_users_do_not(api: httpx.AsyncClient) -> None:
    kept = await stored(api, "tea", tier="history")
    await stored(api, "תה", tier="history")
    await api.post(f"/api/memory/items/{kept}/archive")
    await api.post("/api/memory/store", json={"text": "hers", "tier": "history"}, headers=NOA)
    counts = {"count": 2, "active": 1, "archived": 1, "hidden": 0}
    assert (await stats(api))["history"] == counts


@pytest.mark.parametrize("target", [one.value for one in CLEARED_TIERS])
async def test_clearing_deletes_all_of_one_tier_of_one_user(
    api: httpx.AsyncClient, world: Harness, target: str
) -> None:
    tier = CLEARED_TIERS[next(one for one in CLEARED_TIERS if one.value == target)]
    other = "working" if target != "working" else "history"
    for n in range(3):
        item = an_item(user_id="admin", tier=tier, text=f"note {n} פתק")
        await world.items.insert(item)
    await world.items.insert(
        an_item(user_id="admin", tier=tier, text="old", status=Status.ARCHIVED)
    )
    await world.items.insert(an_item(user_id="noa", tier=tier))
    await stored(api, "kept", tier=other)
    answer = await clear(api, target)
    assert (answer["success"], answer["target"]) == (True, target)
    assert (answer["deleted_count"], answer["remaining"]) == (4, 0)
    assert answer["timestamp"].endswith("Z")
    body = await stats(api)
    assert (body[target]["count"], body[other]["count"]) == (0, 1)
    assert (await stats(api, **NOA))[target]["count"] == 1
    assert (await clear(api, target))["deleted_count"] == 0


async def test_what_is_cleared_is_queued_for_the_index_with_its_versions_gone(
    api: httpx.AsyncClient, world: Harness
) -> None:
    memory_id = await stored(api, "tea")
    await api.patch(f"/api/memory/items/{memory_id}", json={"text": "green tea"})
    await clear(api, "working")
    (gone,) = [row.item for row in world.items._rows.values()]
    assert (gone.status, gone.index.op.value) == (Status.DELETED, "delete")
    assert await world.items.versions(ADMIN, memory_id, 9) == []


async def test_more_than_a_page_is_cleared_in_one_call(
    api: httpx.AsyncClient, world: Harness
) -> None:
    for n in range(230):
        await world.items.insert(an_item(user_id="admin", text=f"note {n}"))
    assert (await clear(api, "working"))["deleted_count"] == 230


async def test_shared_open_data_is_not_cleared(api: httpx.AsyncClient, world: Harness) -> None:
    await world.items.insert(an_item(user_id="system", tier=Tier.DATAGOV_SCHEMA))
    for target in CLEARED_TIERS:
        await clear(api, target.value)
    where = ItemFilter(tiers=(Tier.DATAGOV_SCHEMA,))
    assert await world.items.count(ReadScope("admin"), where) == 1


@pytest.mark.parametrize("name", ["books", "documents"])
async def test_books_have_two_names(api: httpx.AsyncClient, name: str) -> None:
    await stored(api, "a page", tier="books")
    answer = await clear(api, name)
    assert (answer["target"], answer["deleted_count"]) == ("documents", 1)


@pytest.mark.parametrize("name", ["knowledge-graph", "knowledge_graph"])
async def test_the_graph_is_cleared_and_memories_stay(
    api: httpx.AsyncClient, world: Harness, name: str
) -> None:
    await stored(api, "tea")
    answer = await clear(api, name)
    assert answer["target"] == "knowledge-graph"
    assert (await stats(api))["working"]["count"] == 1


@pytest.mark.parametrize("target", ["datagov_schema", "users", "%20"])
async def test_nothing_else_can_be_cleared(api: httpx.AsyncClient, target: str) -> None:
    answer = await api.post(f"/api/data/clear/{target}", json=SURE)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_target")


async def test_the_same_key_clears_once(api: httpx.AsyncClient) -> None:
    await stored(api, "tea")
    body = {"idempotency_key": "k-1", **SURE}
    first = (await api.post("/api/data/clear/working", json=body)).json()
    await stored(api, "coffee")
    again = (await api.post("/api/data/clear/working", json=body)).json()
    assert (first["deleted_count"], again["deleted_count"], again["duplicate"]) == (1, 1, True)
    assert (await stats(api))["working"]["count"] == 1


@pytest.mark.parametrize("target", [*ClearTarget, "all", "books"])
@pytest.mark.parametrize("body", [None, {}, {"confirm": "delete"}, {"confirm": "מחק"}])
async def test_nothing_is_cleared_without_the_word(
    api: httpx.AsyncClient, world: Harness, target: str, body: Any
) -> None:
    await stored(api, "tea")
    refused = await api.post(f"/api/data/clear/{target}", json=body)
    assert (refused.status_code, refused.json()["code"]) == (400, "confirm_needed")
    assert (await stats(api))["working"]["count"] == 1


async def test_the_first_client_clears_as_it_did() -> None:
    world = Harness.ready(settings_with(compat={"first_client": True}))
    async with client_of(world.services) as api:
        await stored(api, "tea")
        await api.post("/api/memory/conversations/switch", json={"conversation_id": "c-1"})
        for target in ("working", "sessions"):
            assert (await api.post(f"/api/data/clear/{target}")).status_code == 200
        assert (await stats(api))["working"]["count"] == 0
        assert (await api.post("/api/memory/cleanup", json={"dryRun": False})).status_code == 200
        reset = "/api/memory/ops/reset"
        assert (await api.post(reset, json={})).status_code == 400
        assert (await api.post(reset, json={"confirm": True})).status_code == 200


async def test_sessions_are_not_cleared_under_the_open_conversation(
    api: httpx.AsyncClient, world: Harness
) -> None:
    said = [
        {"role": "user", "content": "I moved to Acre; עברתי לעכו"},
        {"role": "assistant", "content": "Noted."},
    ]
    turn = {"conversation_id": "c-1", "message_id": "m-1", "messages": said}
    assert (await api.post("/api/hooks/exchange", json=turn)).is_success
    switch = "/api/memory/conversations/switch"
    await api.post(switch, json={"conversation_id": "c-1"})
    for target in ("sessions", "all"):
        refused = await api.post(f"/api/data/clear/{target}", json=SURE)
        assert refused.json()["code"] == "conversation_active"
    assert (await stats(api))["sessions"]["count"] == 1
    await api.post(switch, json={})
    assert (await clear(api, "sessions"))["deleted_count"] == 1


async def test_of_all_each_part_is_told_also_when_one_fails(
    api: httpx.AsyncClient, world: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(api, "tea")
    await stored(api, "תה", tier="history")

    async def away(scope: WriteScope) -> int:
        raise StoreDown("MongoDB does not answer.")

    monkeypatch.setattr(world.data.rows, "clear_sessions", away)
    found = await clear(api, "all")
    parts = {one["target"]: one for one in found["parts"]}
    assert parts.keys() == {*ClearTarget} - {"books"}
    assert parts["sessions"]["error"] == "MongoDB does not answer."
    assert [parts[name]["deleted_count"] for name in ("working", "history")] == [1, 1]
    assert (found["degraded"], found["deleted_count"]) == (["sessions"], 2)
    assert "Not cleared: sessions" in found["message"]
    monkeypatch.undo()
    found = await clear(api, "all")
    assert (found["degraded"], found["deleted_count"]) == ([], 0)


async def test_hidden_is_kept_and_deleted_is_gone(api: httpx.AsyncClient, world: Harness) -> None:
    hidden, gone = await stored(api, "tea"), await stored(api, "coffee")
    told = (await api.post("/api/memory/ghost", json={"memory_id": hidden})).json()
    assert told["message"] == "Memory hidden; it is kept, and can be shown again."
    told = (await api.delete(f"/api/memory/items/{gone}")).json()
    assert told["message"] == "Memory deleted for good."
    counts = {"count": 1, "active": 0, "archived": 0, "hidden": 1}
    assert (await stats(api))["working"] == counts
