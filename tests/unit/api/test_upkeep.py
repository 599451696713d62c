"""Upkeep: sizes, compaction, cleanup, the old memory bank, encoded files."""

import base64
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from rayapp.admin.ports import ApiKey, LegacyFact
from rayapp.core.errors import StoreDown
from rayapp.memory.item import Status
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with
from tests.unit.api.test_ghost import NOA, stored

OPS = "/api/memory/ops"
CLEANUP = "/api/memory/cleanup"
SESSION = "ab" * 32
ADMIN = ReadScope("admin", include_shared=False)
BLOB = base64.b64encode(random.Random(7).randbytes(900)).decode()


async def asked(api: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    response = await api.request(method, path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def total(world: Harness, user_id: str) -> int:
    found = await world.items.tier_counts(ReadScope(user_id, include_shared=False))
    return sum(row.active + row.archived for row in found)


# --- sizes


async def test_sizes_name_collections_and_index(api: httpx.AsyncClient, world: Harness) -> None:
    await stored(api, "tea")
    answer = await asked(api, "GET", "/api/system/data-sizes")
    items = next(row for row in answer["mongo"] if row["name"] == "memory_items")
    assert items["count"] == 1
    assert answer["qdrant"]["points_count"] == 0
    assert answer["meta"]["built_ms"] >= 0


async def test_compacting_says_when_there_is_nothing_to_do(api: httpx.AsyncClient) -> None:
    answer = await asked(api, "POST", "/api/data/compact-database")
    assert (answer["collections_compacted"], answer["space_reclaimed_bytes"]) == (0, 0)
    assert answer["complete"] is True


# --- cleanup


async def a_session(world: Harness, user_id: str, days: int) -> None:
    at = world.clock.now() - timedelta(days=days)
    await world.items.insert(an_item(user_id=user_id, stored_at=at))


async def test_a_cleanup_counts_and_only_removes_when_told_to(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await a_session(world, SESSION, days=40)
    await a_session(world, "cd" * 32, days=2)
    await a_session(world, "dana", days=40)
    stats = (await asked(api, "GET", CLEANUP))["stats"]
    assert (stats["session_users"], stats["orphaned_users"], stats["orphaned_memories"]) == (
        2,
        1,
        1,
    )
    assert [row["user_id"] for row in stats["users"]] == [SESSION]
    dry = await asked(api, "POST", CLEANUP)
    assert (dry["dryRun"], dry["result"]["users_removed"]) == (True, 0)
    assert await total(world, SESSION) == 1
    sure = {"dryRun": False, "confirm": "DELETE"}
    refused = await api.post(CLEANUP, json={"dryRun": False})
    assert refused.json()["code"] == "confirm_needed"
    done = await asked(api, "POST", CLEANUP, sure)
    assert (done["result"]["users_removed"], done["result"]["memories_removed"]) == (1, 1)
    assert [await total(world, user) for user in (SESSION, "cd" * 32, "dana")] == [0, 1, 1]


async def test_a_session_that_has_a_key_is_somebody(api: httpx.AsyncClient, world: Harness) -> None:
    await a_session(world, SESSION, days=40)
    await world.services.api_keys.add(
        ApiKey(
            key_hash="h",
            principal="p",
            user_id=SESSION,
            scopes=frozenset({"read"}),
            created_at=datetime(2025, 1, 1, tzinfo=UTC),
        )
    )
    assert (await asked(api, "GET", CLEANUP))["stats"]["orphaned_users"] == 0


async def test_a_cleanup_takes_the_archives_that_are_kept(
    api: httpx.AsyncClient, world: Harness
) -> None:
    for user_id in (SESSION, "dana"):
        await a_session(world, user_id, days=40)
        await world.container.exports.safety(ReadScope(user_id))
    await asked(api, "POST", CLEANUP, {"dryRun": False, "confirm": "DELETE"})
    kept = [await world.container.exports.kept(ReadScope(one)) for one in (SESSION, "dana")]
    assert [len(one) for one in kept] == [0, 1]


async def test_the_quiet_time_can_be_chosen(api: httpx.AsyncClient, world: Harness) -> None:
    await a_session(world, SESSION, days=5)
    stats = (await asked(api, "GET", f"{CLEANUP}?quiet_days=3"))["stats"]
    assert stats["orphaned_users"] == 1
    assert (await api.get(CLEANUP, params={"quiet_days": 0})).status_code == 422


# --- the old memory bank

OLD_IDS = ("65a000000000000000000001", "65a000000000000000000002")


def old_facts(world: Harness, user_id: str = "admin") -> None:
    created = datetime(2025, 1, 2, tzinfo=UTC)
    rows: list[dict[str, Any]] = [
        {"text": "Dana drinks tea", "tags": ["taste", 5, ""], "createdAt": created},
        {"text": "דנה גרה בחיפה", "status": "archived", "importance": 2},
        {"text": "  "},
        {"text": "gone", "status": "deleted"},
    ]
    world.data.legacy.stored[user_id] = [  # type: ignore[attr-defined]
        LegacyFact(raw_id=f"65a00000000000000000000{n}", fields=row)
        for n, row in enumerate(rows, start=1)
    ]


async def test_old_facts_move_in_once_under_their_old_ids(
    api: httpx.AsyncClient, world: Harness
) -> None:
    old_facts(world)
    status = (await asked(api, "GET", f"{OPS}/migrate"))["status"]
    assert (status["legacy_total"], status["pending"], status["unusable"]) == (4, 2, 2)
    dry = await asked(api, "POST", f"{OPS}/migrate", {"dryRun": True})
    assert (dry["stats"]["migrated"], await total(world, "admin")) == (2, 0)
    done = (await asked(api, "POST", f"{OPS}/migrate"))["stats"]
    assert (done["migrated"], done["rejected"], len(done["problems"])) == (2, 2, 2)
    first = await world.items.get(ADMIN, "65a000000000000000000001")
    assert first is not None
    assert (first.tier, first.tags, first.created_at.year) == (Tier.MEMORY_BANK, ("taste",), 2025)
    second = await world.items.get(ADMIN, "65a000000000000000000002")
    assert second is not None
    assert (second.status.value, second.quality.importance) == ("archived", 0.8)
    again = (await asked(api, "POST", f"{OPS}/migrate"))["stats"]
    assert (again["migrated"], again["duplicates"]) == (0, 2)
    found = (await asked(api, "PUT", f"{OPS}/migrate"))["verification"]
    assert (found["verified"], found["present"], found["missing"]) == (True, 2, [])


async def test_verification_names_what_is_missing(api: httpx.AsyncClient, world: Harness) -> None:
    old_facts(world)
    found = (await asked(api, "PUT", f"{OPS}/migrate"))["verification"]
    assert (found["verified"], len(found["missing"])) == (False, 2)


async def test_a_fact_that_is_known_is_not_doubled(api: httpx.AsyncClient, world: Harness) -> None:
    old_facts(world)
    body = {"text": "Dana drinks tea", "tags": ["x"]}
    assert (await api.post("/api/memory/memory-bank", json=body)).status_code == 200
    done = (await asked(api, "POST", f"{OPS}/migrate"))["stats"]
    assert (done["migrated"], done["duplicates"]) == (1, 1)


async def test_facts_go_to_the_user_who_is_named(api: httpx.AsyncClient, world: Harness) -> None:
    old_facts(world, "noa")
    await asked(api, "POST", f"{OPS}/migrate", {"userId": "noa"})
    assert [await total(world, user) for user in ("admin", "noa")] == [0, 2]


async def moved(api: httpx.AsyncClient) -> tuple[int, int]:
    stats = (await asked(api, "POST", f"{OPS}/migrate"))["stats"]
    return stats["migrated"], stats["duplicates"]


@pytest.mark.parametrize("indexed", [False, True])
async def test_what_a_user_deleted_after_the_move_stays_deleted(
    api: httpx.AsyncClient, world: Harness, indexed: bool
) -> None:
    """Also once the indexer took the tombstone away."""
    old_facts(world)
    await moved(api)
    for memory_id in OLD_IDS:
        assert (await api.delete(f"/api/memory/items/{memory_id}")).status_code == 200
    if indexed:
        world.items._rows.clear()
    assert await moved(api) == (0, 2)
    assert await total(world, "admin") == 0
    found = (await asked(api, "PUT", f"{OPS}/migrate"))["verification"]
    assert (found["verified"], found["present"]) == (True, 2)


async def test_an_equal_fact_that_is_deleted_later_does_not_come_back_either(
    api: httpx.AsyncClient, world: Harness
) -> None:
    old_facts(world)
    body = {"text": "Dana drinks tea", "tags": ["x"]}
    assert (await api.post("/api/memory/memory-bank", json=body)).status_code == 200
    await moved(api)
    world.items._rows.clear()
    assert await moved(api) == (0, 2)


async def test_a_dry_run_marks_nothing(api: httpx.AsyncClient, world: Harness) -> None:
    old_facts(world)
    await asked(api, "POST", f"{OPS}/migrate", {"dryRun": True})
    assert await moved(api) == (2, 0)


async def test_a_move_that_broke_off_is_ended(
    api: httpx.AsyncClient, world: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archived fact was stored, and the process ended before it archived it."""
    old_facts(world)

    async def broken(*_: Any, **__: Any) -> Any:
        raise StoreDown("MongoDB is away.")

    with monkeypatch.context() as patched:
        patched.setattr(world.items, "replace", broken)
        assert (await api.post(f"{OPS}/migrate")).status_code == 503
    item = await world.items.get(ADMIN, OLD_IDS[1])
    assert item is not None
    assert item.status is Status.ACTIVE
    found = (await asked(api, "PUT", f"{OPS}/migrate"))["verification"]
    assert (found["verified"], found["missing"]) == (False, [OLD_IDS[1]])
    assert (await asked(api, "GET", f"{OPS}/migrate"))["status"]["needed"] is True
    assert await moved(api) == (1, 1)
    item = await world.items.get(ADMIN, OLD_IDS[1])
    assert item is not None
    assert item.status is Status.ARCHIVED
    assert (await asked(api, "PUT", f"{OPS}/migrate"))["verification"]["verified"] is True


async def test_a_fact_that_a_user_restored_stays_active(
    api: httpx.AsyncClient, world: Harness
) -> None:
    old_facts(world)
    await moved(api)
    path = f"/api/memory/items/{OLD_IDS[1]}/restore"
    assert (await api.post(path)).status_code == 200
    assert await moved(api) == (0, 2)
    item = await world.items.get(ADMIN, OLD_IDS[1])
    assert item is not None
    assert item.status is Status.ACTIVE


# --- encoded files


async def test_encoded_files_are_taken_out_of_texts(api: httpx.AsyncClient, world: Harness) -> None:
    mixed = await stored(api, f"The invoice החשבונית: {BLOB}")
    whole = await stored(api, BLOB)
    plain = await stored(api, "Dana drinks tea")
    await api.post("/api/memory/store", json={"text": f"hers {BLOB}"}, headers=NOA)
    look = await asked(api, "GET", f"{OPS}/sanitize")
    assert (look["dryRun"], look["totalScanned"], look["totalCorrupted"]) == (True, 3, 2)
    dry = await asked(api, "POST", f"{OPS}/sanitize")
    assert (dry["dryRun"], dry["totalSanitized"]) == (True, 0)
    assert len(dry["samples"]) == 2
    done = await asked(api, "POST", f"{OPS}/sanitize", {"dry_run": False})
    assert (done["totalSanitized"], done["totalFailed"], done["nextCursor"]) == (2, 0, None)
    first, second, third = [await world.items.get(ADMIN, one) for one in (mixed, whole, plain)]
    assert first is not None
    assert second is not None
    assert third is not None
    assert first.text.startswith("The invoice החשבונית: [encoded file removed")
    assert (first.version, first.index.sync_state.value) == (2, "pending")
    assert len(await world.items.versions(ADMIN, mixed, 9)) == 1
    assert second.status.value == "archived"
    assert (third.text, third.version) == ("Dana drinks tea", 1)
    assert (await asked(api, "GET", f"{OPS}/sanitize"))["totalCorrupted"] == 0


async def test_what_says_the_same_without_its_file_is_archived(
    api: httpx.AsyncClient, world: Harness
) -> None:
    note = "[encoded file removed: 1200 characters]"
    await stored(api, f"The invoice {note}")
    double = await stored(api, f"The invoice {BLOB}")
    done = await asked(api, "POST", f"{OPS}/sanitize", {"dry_run": False})
    assert done["totalSanitized"] == 1
    item = await world.items.get(ADMIN, double)
    assert item is not None
    assert item.status.value == "archived"


@pytest.mark.parametrize(
    "query", ["tier=datagov_schema", "tier=nowhere", "cursor=", "cursor=nonsense"]
)
async def test_bad_places_to_look_are_refused(api: httpx.AsyncClient, query: str) -> None:
    assert (await api.get(f"{OPS}/sanitize?{query}")).status_code == 422


@pytest.mark.parametrize("first_client", [False, True])
async def test_the_button_of_the_first_client_cleans_and_other_programs_only_look(
    first_client: bool,
) -> None:
    """It sends an empty body."""
    world = Harness.ready(settings_with(compat={"first_client": first_client}))
    async with client_of(world.services) as api:
        assert (await asked(api, "POST", f"{OPS}/sanitize", {}))["dryRun"] is not first_client
        sent = {"dry_run": not first_client}
        assert (await asked(api, "POST", f"{OPS}/sanitize", sent))["dryRun"] is not first_client
