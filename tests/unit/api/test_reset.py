"""A reset takes the data of all users, wherever it stands, or says that something is left."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from rayapp.bulk.model import JobState
from rayapp.core.errors import IndexDown
from rayapp.index.rules.points import collection_name
from rayapp.memory.scope import ReadScope
from tests.support.harness import Harness
from tests.support.index_points import SCHEMA, index_point
from tests.support.jobs import a_job
from tests.unit.api.test_ghost import NOA, stored
from tests.unit.api.test_upkeep import OPS, asked, moved, old_facts, total

OLD = collection_name("memories", SCHEMA, datetime(2025, 4, 4, tzinfo=UTC))


async def test_a_reset_says_first_what_it_would_take(api: httpx.AsyncClient) -> None:
    await stored(api, "tea")
    answer = await asked(api, "GET", f"{OPS}/reset")
    names = {row["name"]: row["count"] for row in answer["preview"]["mongodb"]["collections"]}
    assert (names["memory_items"], "api_keys" in names) == (1, False)
    assert answer["confirmationRequired"] is True


@pytest.mark.parametrize(
    "body", [None, {}, {"confirm": False}, {"confirm": True}, {"confirm": "yes"}]
)
async def test_a_reset_needs_the_word(api: httpx.AsyncClient, world: Harness, body: Any) -> None:
    await stored(api, "tea")
    refused = await api.post(f"{OPS}/reset", json=body)
    assert (refused.status_code, refused.json()["code"]) == (400, "confirm_needed")
    assert await total(world, "admin") == 1


async def test_a_reset_takes_the_data_of_all_users_and_their_points(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await stored(api, "tea")
    await api.post("/api/memory/store", json={"text": "hers"}, headers=NOA)
    assert await world.drain() == 2
    await api.post("/api/memory/personality", json={"template_id": "friendly"})
    answer = await asked(api, "POST", f"{OPS}/reset", {"confirm": "DELETE"})
    assert answer["complete"] is True
    assert world.items._rows == {}
    assert (await world.index.health()).points == 0
    assert (await api.get("/api/memory/personality")).json()["template_id"] == "default"
    assert await stored(api, "tea")


async def test_a_reset_takes_the_archives_that_are_kept_of_users(
    api: httpx.AsyncClient, world: Harness
) -> None:
    for user_id in ("admin", "acme/noa"):
        await world.container.exports.safety(ReadScope(user_id))
    await asked(api, "POST", f"{OPS}/reset", {"confirm": "DELETE"})
    for user_id in ("admin", "acme/noa"):
        assert await world.container.exports.kept(ReadScope(user_id)) == []


async def test_a_reset_takes_what_a_rollback_could_bring_back(
    api: httpx.AsyncClient, world: Harness
) -> None:
    index = world.index
    target = (await index.health()).collection
    await index.create_collection(OLD, SCHEMA)
    await index.create_collection("others_static_2_1", SCHEMA)
    await index.at(OLD).upsert([index_point("m-1")])
    preview = (await asked(api, "GET", f"{OPS}/reset"))["preview"]
    assert preview["qdrant"]["oldCollections"] == [OLD]
    answer = await asked(api, "POST", f"{OPS}/reset", {"confirm": "DELETE"})
    assert (answer["complete"], answer["results"]["qdrant"]["dropped"]) == (True, [OLD])
    assert await index.collections() == sorted([str(target), "others_static_2_1"])


async def test_a_reset_is_not_complete_while_a_new_job_fills_a_collection(
    api: httpx.AsyncClient, world: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, sizes = world.index, world.data.housekeeping.sizes

    async def meanwhile() -> Any:
        await a_job(world.jobs, JobState.SUBMITTED, facts={"collection": OLD})
        await index.create_collection(OLD, SCHEMA)
        return await sizes()

    monkeypatch.setattr(world.data.housekeeping, "sizes", meanwhile)
    answer = await asked(api, "POST", f"{OPS}/reset", {"confirm": "DELETE"})
    assert (answer["complete"], answer["results"]["qdrant"]["dropped"]) == (False, [])
    assert OLD in await index.collections()


async def test_a_reset_takes_the_old_memory_bank_so_that_nothing_moves_in_again(
    api: httpx.AsyncClient, world: Harness
) -> None:
    old_facts(world)
    await moved(api)
    preview = (await asked(api, "GET", f"{OPS}/reset"))["preview"]
    rows = {row["name"]: row["count"] for row in preview["mongodb"]["collections"]}
    assert rows["memoryBank"] == 4
    answer = await asked(api, "POST", f"{OPS}/reset", {"confirm": "DELETE"})
    gone = {row["collection"]: row["removed"] for row in answer["results"]["mongodb"]}
    assert (gone["memoryBank"], gone["memory_items"]) == (4, 2)
    assert await moved(api) == (0, 0)
    assert await total(world, "admin") == 0


async def test_a_reset_waits_for_jobs(api: httpx.AsyncClient, world: Harness) -> None:
    await stored(api, "tea")
    await a_job(world.jobs, JobState.RUNNING)
    refused = await api.post(f"{OPS}/reset", json={"confirm": "DELETE"})
    assert (refused.status_code, refused.json()["code"]) == (409, "busy")
    assert await total(world, "admin") == 1


async def test_a_reset_without_an_index_removes_nothing(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await stored(api, "tea")
    world.index.error = IndexDown("Qdrant does not answer.")
    refused = await api.post(f"{OPS}/reset", json={"confirm": "DELETE"})
    assert (refused.status_code, refused.json()["code"]) == (503, "index_down")
    assert await total(world, "admin") == 1
