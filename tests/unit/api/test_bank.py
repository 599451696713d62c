"""The memory bank as the first client uses it."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import Source, SourceType, Status
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with

BANK = "/api/memory/memory-bank"


async def keep(api: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await api.post(BANK, json={"text": "Dana prefers tea", **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_a_pin_needs_only_content(api: httpx.AsyncClient) -> None:
    pin = {"memory_id": "other-tier-id", "content": "Dana prefers tea", "tags": []}
    kept = (await api.post(BANK, json=pin)).json()
    assert kept["id"] == kept["memory_id"] != "other-tier-id"
    memory = (await api.get(f"{BANK}/{kept['id']}")).json()["memory"]
    assert (memory["text"], memory["tags"], memory["tier"]) == (
        "Dana prefers tea",
        ["pinned"],
        "memory_bank",
    )


async def test_list_has_the_clients_fields_and_a_total(api: httpx.AsyncClient) -> None:
    await keep(api, tags=["taste"], importance=0.9, unknown="ignored")
    await keep(api, text="Dana has a dog", tags=["pets"])
    page = (await api.get(BANK, params={"limit": 1, "tag": "taste"})).json()
    assert page["total"] == 1
    memory = page["memories"][0]
    assert (memory["text"], memory["status"], memory["score"]) == (
        "Dana prefers tea",
        "active",
        0.72,
    )
    assert memory["source"]["toolName"] == "conversation"
    assert (await api.get(BANK, params={"skip": 1})).json()["total"] == 2


async def test_the_source_of_a_tool_fact_is_shown(api: httpx.AsyncClient, world: Harness) -> None:
    source = Source(type=SourceType.TOOL, tool_name="web_search")
    await world.items.insert(
        an_item(user_id="admin", memory_id="m-1", tier=Tier.MEMORY_BANK, source=source)
    )
    memory = (await api.get(f"{BANK}/m-1")).json()["memory"]
    assert memory["source"]["toolName"] == "web_search"


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (SourceType.USER, "conversation"),
        (SourceType.ASSISTANT, "conversation"),
        (SourceType.DOCUMENT, "upload"),
        (SourceType.IMPORT, "upload"),
        (SourceType.TOOL, "unknown"),
    ],
)
async def test_every_card_has_a_source(
    api: httpx.AsyncClient, world: Harness, kind: SourceType, shown: str
) -> None:
    """The client shows its badge and the score beside it only where there is one."""
    item = an_item(
        user_id="admin", memory_id="m-1", tier=Tier.MEMORY_BANK, source=Source(type=kind)
    )
    await world.items.insert(item)
    source = (await api.get(BANK)).json()["memories"][0]["source"]
    assert (source["toolName"], source["url"]) == (shown, None)


async def test_what_a_tool_said_of_its_source_comes_back(api: httpx.AsyncClient) -> None:
    source = {
        "type": "tool",
        "tool_name": "tavily_search",
        "url": "https://example.org/tea?a=1",
        "description": "A page about tea",
        "description_he": "דף על תה",
        "conversation_title": "תה וקפה",
    }
    fact = {"text": "Tea is grown in Assam", "tier": "memory_bank", "tags": ["tea"]}
    sure = {"importance": 0.8, "confidence": 0.8}
    stored = await api.post("/api/memory/store", json={**fact, **sure, "source": source})
    assert stored.status_code == 201, stored.text
    memory_id = stored.json()["memory_id"]
    card = (await api.get(f"{BANK}/{memory_id}")).json()["memory"]["source"]
    assert card["url"] == source["url"]
    assert (card["description"], card["descriptionHe"]) == ("A page about tea", "דף על תה")
    assert card["conversationTitle"] == "תה וקפה"
    item = (await api.get(f"/api/memory/items/{memory_id}")).json()["memory"]["source"]
    assert {name: item[name] for name in source} == source
    for bad in ("javascript:alert(1)", "data:text/html,x", "not an address"):
        refused = await api.post(
            "/api/memory/store", json={**fact, **sure, "source": {**source, "url": bad}}
        )
        assert refused.status_code == 422, bad


async def test_put_archives_and_restores_as_often_as_asked(api: httpx.AsyncClient) -> None:
    memory_id = (await keep(api))["id"]
    for status in ("archived", "archived", "active", "active"):
        body = {"status": status, "archived_reason": "old"}
        assert (await api.put(f"{BANK}/{memory_id}", json=body)).status_code == 200
        memory = (await api.get(f"{BANK}/{memory_id}")).json()["memory"]
        assert memory["status"] == status


async def test_put_restores_before_it_edits_and_archives_after(api: httpx.AsyncClient) -> None:
    memory_id = (await keep(api))["id"]
    body = {"status": "archived", "content": "Dana prefers coffee", "tags": ["taste"]}
    assert (await api.put(f"{BANK}/{memory_id}", json=body)).status_code == 200
    memory = (await api.get(f"{BANK}/{memory_id}")).json()["memory"]
    assert (memory["text"], memory["tags"], memory["status"]) == (
        "Dana prefers coffee",
        ["taste"],
        "archived",
    )


async def test_stats_before_ids(api: httpx.AsyncClient) -> None:
    memory_id = (await keep(api, tags=["taste"]))["id"]
    await keep(api, text="Dana has a dog", tags=["pets", "taste"])
    await api.put(f"{BANK}/{memory_id}", json={"status": "archived"})
    stats = (await api.get(f"{BANK}/stats")).json()
    assert (stats["total_memories"], stats["active"], stats["archived"]) == (2, 1, 1)
    assert stats["unique_tags"] == len(stats["tags"])


async def test_tags_of_archived_facts_are_counted_as_their_facts_are(
    api: httpx.AsyncClient,
) -> None:
    memory_id = (await keep(api, tags=["taste"]))["id"]
    await keep(api, text="לדנה יש כלב", tags=["pets"])
    await api.put(f"{BANK}/{memory_id}", json={"status": "archived"})
    stats = (await api.get(f"{BANK}/stats")).json()
    assert (stats["total_memories"], stats["unique_tags"]) == (2, 2)
    assert stats["tags"] == ["pets", "taste"]


async def test_bulk_archive_and_delete_count(api: httpx.AsyncClient) -> None:
    ids = [(await keep(api, text=f"fact {n}"))["id"] for n in range(3)]
    archived = await api.post(
        "/api/memory/bulk/archive", json={"ids": [*ids[:2], "gone"], "archived_reason": "old"}
    )
    assert (archived.json()["matched"], archived.json()["modified"]) == (2, 2)
    again = await api.post("/api/memory/bulk/archive", json={"ids": ids})
    assert (again.json()["matched"], again.json()["modified"]) == (3, 1)
    deleted = await api.post("/api/memory/bulk/delete", json={"ids": [*ids, "gone"]})
    assert deleted.json()["deleted"] == 3


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("bulk/archive", {"ids": []}),
        ("bulk/archive", {"ids": ["a b"]}),
        ("bulk/archive", {"ids": ["m"] * 501}),
        ("bulk/archive", {"ids": ["m"], "archived_reason": ""}),
        ("bulk/archive", {"ids": ["m"], "archived_reason": "x" * 501}),
        ("bulk/delete", {"ids": "m"}),
        ("bulk/delete", {}),
        ("memory-bank", {"tags": ["a"]}),
        ("memory-bank", {"text": "a", "importance": 2}),
        ("memory-bank", {"text": "User: hi\nAssistant: hello"}),
    ],
)
async def test_a_bad_body_is_422(api: httpx.AsyncClient, path: str, body: dict[str, Any]) -> None:
    assert (await api.post(f"/api/memory/{path}", json=body)).status_code == 422


@pytest.mark.parametrize("query", ["status=deleted", "limit=0", "limit=1001", "offset=-1"])
async def test_a_bad_query_is_422(api: httpx.AsyncClient, query: str) -> None:
    assert (await api.get(f"{BANK}?{query}")).status_code == 422


async def test_what_is_not_there_is_404(api: httpx.AsyncClient) -> None:
    assert (await api.get(f"{BANK}/gone")).status_code == 404
    assert (await api.delete(f"{BANK}/gone")).status_code == 404
    response = await api.put(f"{BANK}/gone", json={"status": "archived"})
    assert (response.status_code, response.json()["success"]) == (404, False)


async def test_a_pin_of_a_known_memory_takes_over_its_source(
    api: httpx.AsyncClient, world: Harness
) -> None:
    source = Source(type=SourceType.TOOL, tool_name="web_search")
    await world.items.insert(
        an_item(user_id="admin", memory_id="w-1", text="Dana lives in Haifa", source=source)
    )
    pin = {"memory_id": "w-1", "content": "Dana lives in Haifa", "tags": ["home"]}
    first, again = [(await api.post(BANK, json=pin)).json() for _ in range(2)]
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert first["id"] == again["id"] != "w-1"
    memory = (await api.get(f"{BANK}/{first['id']}")).json()["memory"]
    assert (memory["source"]["toolName"], memory["tags"]) == ("web_search", ["home"])
    assert (await api.get("/api/memory/items/w-1")).json()["memory"]["tier"] == "working"


async def test_an_id_alone_pins_and_an_unknown_one_alone_is_404(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await world.items.insert(an_item(user_id="admin", memory_id="w-1", text="דנה גרה בחיפה"))
    kept = await api.post(BANK, json={"memoryId": "w-1"})
    memory = (await api.get(f"{BANK}/{kept.json()['id']}")).json()["memory"]
    assert (memory["text"], memory["tags"]) == ("דנה גרה בחיפה", ["pinned"])
    assert (await api.post(BANK, json={"memory_id": "gone"})).status_code == 404


async def test_always_inject_is_set_by_post_and_put(api: httpx.AsyncClient) -> None:
    memory_id = (await keep(api, always_inject=True))["id"]

    async def pinned() -> bool:
        item = (await api.get(f"/api/memory/items/{memory_id}")).json()["memory"]
        flag: bool = item["always_inject"]
        return flag

    assert await pinned()
    for wanted in (False, True):
        body = {"always_inject": wanted}
        assert (await api.put(f"{BANK}/{memory_id}", json=body)).status_code == 200
        assert await pinned() is wanted
    bad = await api.put(f"{BANK}/{memory_id}", json={"always_inject": "yes"})
    assert bad.status_code == 422


@pytest.mark.parametrize("tier", [Tier.WORKING, Tier.HISTORY, Tier.PATTERNS, Tier.BOOKS])
async def test_a_memory_of_another_tier_is_changed_by_the_same_route(
    api: httpx.AsyncClient, world: Harness, tier: Tier
) -> None:
    await world.items.insert(an_item(user_id="admin", memory_id="w-1", tier=tier))
    item = "/api/memory/items/w-1"

    async def put(**body: Any) -> dict[str, Any]:
        answer = await api.put(f"{BANK}/w-1", json=body)
        assert answer.status_code == 200, answer.text
        memory: dict[str, Any] = (await api.get(item)).json()["memory"]
        return memory

    assert (await put(status="archived", archived_reason="old"))["status"] == "archived"
    after = await put(status="active", content="Dana prefers coffee", tags=["taste"])
    assert (after["status"], after["text"], after["tags"]) == (
        "active",
        "Dana prefers coffee",
        ["taste"],
    )
    assert (await api.delete(f"{BANK}/w-1")).status_code == 200
    assert (await api.get(item)).status_code == 404


async def test_open_data_is_nobodys_and_stays(api: httpx.AsyncClient, world: Harness) -> None:
    await world.items.insert(
        an_item(user_id=SYSTEM_USER, memory_id="d-1", tier=Tier.DATAGOV_SCHEMA)
    )
    assert (await api.put(f"{BANK}/d-1", json={"status": "archived"})).status_code == 404
    assert (await api.delete(f"{BANK}/d-1")).status_code == 404
    for path in ("archive", "delete"):
        told = (await api.post(f"/api/memory/bulk/{path}", json={"ids": ["d-1"]})).json()
        assert told["results"] == [{"memory_id": "d-1", "status": "not_found"}]


async def test_a_merged_memory_is_409_and_names_its_winner(
    api: httpx.AsyncClient, world: Harness
) -> None:
    winner = an_item(user_id="admin", memory_id="w", tier=Tier.MEMORY_BANK, tags=("t",))
    loser = an_item(
        user_id="admin",
        memory_id="l",
        tier=Tier.MEMORY_BANK,
        status=Status.ARCHIVED,
        merged_into="w",
    )
    await world.items.insert_many([winner, loser])
    for answer in (
        await api.put(f"{BANK}/l", json={"status": "active"}),
        await api.put(f"{BANK}/l", json={"status": "archived"}),
        await api.delete(f"{BANK}/l"),
        await api.post("/api/memory/items/l/restore"),
    ):
        body = answer.json()
        assert (answer.status_code, body["code"]) == (409, "merged")
        assert body["details"] == {"memory_id": "w"}
    edited = await api.put(f"{BANK}/l", json={"tags": ["new"]})
    assert edited.status_code == 200
    assert (await api.get(f"{BANK}/w")).json()["memory"]["tags"] == ["new"]


@pytest.fixture
async def full() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a bank of two facts with two facts in it."""
    async with client_of(Harness.ready(settings_with(memory_bank={"capacity": 2})).services) as api:
        for text in ("Dana has a dog", "לדנה יש חתול"):
            await keep(api, text=text, importance=0.8, confidence=0.8)
        yield api


async def shown(api: httpx.AsyncClient, status: str = "active") -> list[str]:
    page = (await api.get(BANK, params={"status": status})).json()
    return sorted(memory["text"] for memory in page["memories"])


@pytest.mark.parametrize(
    ("path", "extra"),
    [
        (BANK, {"tags": ["taste"]}),
        ("/api/memory/store", {"tier": "memory_bank", "tags": ["taste"]}),
    ],
)
async def test_a_full_bank_refuses_what_is_less_useful_and_keeps_nothing_of_it(
    full: httpx.AsyncClient, path: str, extra: dict[str, Any]
) -> None:
    before = await shown(full)
    weak = {"text": "Dana prefers tea", "importance": 0.1, "confidence": 0.1, **extra}
    for _ in range(3):
        refused = await full.post(path, json=weak)
        assert refused.status_code == 409, refused.text
        told = refused.json()
        assert (told["success"], told["code"]) == (False, "bank_full")
        assert told["details"]["reason"] == "less_useful"
        assert "was not kept" in told["error"]
    assert (await shown(full), await shown(full, "archived")) == (before, [])


async def test_a_goal_takes_a_place_and_the_answer_names_who_left(full: httpx.AsyncClient) -> None:
    body = {"text": "לרוץ מרתון", "importance": 0.1}
    kept = (await full.post(f"{BANK}/goals", json=body)).json()
    assert len(kept["archived"]) == 1
    assert kept["message"] == (
        "Kept in the memory bank; 1 less useful fact was archived to make room."
    )
    goals = (await full.get(f"{BANK}/goals")).json()["goals"]
    assert [goal["id"] for goal in goals] == [kept["id"]]
    assert len(await shown(full, "archived")) == 1
    await full.post(f"{BANK}/values", json={"text": "be kind"})
    refused = await full.post(f"{BANK}/goals", json={"text": "learn Spanish"})
    assert (refused.status_code, refused.json()["details"]["reason"]) == (409, "all_pinned")
    assert (await full.get(f"{BANK}/goals")).json()["total"] == 1


async def test_an_item_of_a_batch_without_room_is_rejected_alone(full: httpx.AsyncClient) -> None:
    fact = {"tier": "memory_bank", "tags": ["t"], "confidence": 0.9}
    batch = [
        {**fact, "text": "weak", "importance": 0.1},
        {**fact, "text": "strong", "importance": 0.9},
        {"text": "a note"},
    ]
    rows = (await full.post("/api/memory/store/batch", json={"items": batch})).json()["results"]
    assert [(row["status"], row.get("code")) for row in rows] == [
        ("rejected", "bank_full"),
        ("stored", None),
        ("stored", None),
    ]
    assert rows[0]["memory_id"] is None
    assert len(rows[1]["archived"]) == 1
    assert "strong" in await shown(full)


@pytest.mark.parametrize(
    ("path", "done", "counted"),
    [("archive", "archived", "modified"), ("delete", "deleted", "deleted")],
)
async def test_a_bulk_action_says_what_became_of_each_id(
    api: httpx.AsyncClient, path: str, done: str, counted: str
) -> None:
    fact = (await keep(api))["id"]
    note = (await api.post("/api/memory/store", json={"text": "a note"})).json()["memory_id"]
    bulk = f"/api/memory/bulk/{path}"
    told = (await api.post(bulk, json={"ids": [fact, note, "nope"]})).json()
    assert (told["success"], told[counted]) == (True, 2)
    assert [row["status"] for row in told["results"]] == [done, done, "not_found"]


@pytest.mark.parametrize(
    ("path", "again"), [("archive", True), ("delete", False)], ids=["archive", "delete"]
)
async def test_a_bulk_action_succeeds_when_something_changed_or_was_so_already(
    api: httpx.AsyncClient, path: str, again: bool
) -> None:
    fact = (await keep(api))["id"]
    note = (await api.post("/api/memory/store", json={"text": "a note"})).json()["memory_id"]

    async def succeeds(*ids: str) -> bool:
        told = (await api.post(f"/api/memory/bulk/{path}", json={"ids": ids})).json()
        success: bool = told["success"]
        return success

    assert not await succeeds("nope")
    assert await succeeds(note, "nope")
    assert await succeeds(fact, note, "nope")
    assert await succeeds(fact, note) is again
    assert not await succeeds(fact, "nope")
