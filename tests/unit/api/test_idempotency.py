"""Writes with an idempotency key."""

import asyncio
from typing import Any

import httpx
import pytest

from rayapp.core.errors import StoreDown
from rayapp.memory.requests import NewMemory, StoreResult
from rayapp.memory.scope import WriteScope
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, short_time_limit

STORE = "/api/memory/store"
KEY = {"Idempotency-Key": "k-1"}


class Gated:
    """`Memories.store` that waits for `open`, then fails `failures` times, then stores."""

    def __init__(self, failures: int = 0) -> None:
        self.open = asyncio.Event()
        self.began = asyncio.Event()
        self.failures = failures
        self.calls = 0

    async def store(self, scope: WriteScope, new: NewMemory) -> StoreResult:
        self.calls += 1
        self.began.set()
        await self.open.wait()
        if self.failures:
            self.failures -= 1
            raise StoreDown("MongoDB is away; try again.")
        return StoreResult(memory_id=f"m-{self.calls}", status="stored")


@pytest.mark.parametrize(
    ("headers", "extra"),
    [(KEY, {}), ({"X-Idempotency-Key": "k-1"}, {}), ({}, {"idempotency_key": "k-1"})],
)
async def test_the_same_request_again_gets_the_first_answer(
    api: httpx.AsyncClient, headers: dict[str, str], extra: dict[str, str]
) -> None:
    body = {"text": "tea", **extra}
    first = await api.post(STORE, json=body, headers=headers)
    again = await api.post(STORE, json=body, headers=headers)
    assert (first.status_code, first.json()["duplicate"]) == (201, False)
    assert again.status_code == 201
    assert again.json() == {**first.json(), "duplicate": True}


async def test_without_a_key_a_request_runs_again(api: httpx.AsyncClient) -> None:
    await api.post(STORE, json={"text": "tea", "memory_id": "m-1"})
    assert (await api.delete("/api/memory/items/m-1")).status_code == 200
    assert (await api.delete("/api/memory/items/m-1")).status_code == 404


async def test_a_delete_again_gets_the_first_answer(api: httpx.AsyncClient) -> None:
    await api.post(STORE, json={"text": "tea", "memory_id": "m-1"})
    assert (await api.delete("/api/memory/items/m-1", headers=KEY)).status_code == 200
    again = await api.delete("/api/memory/items/m-1", headers=KEY)
    assert (again.status_code, again.json()["duplicate"]) == (200, True)


async def test_another_body_is_a_conflict(api: httpx.AsyncClient) -> None:
    await api.post(STORE, json={"text": "tea"}, headers=KEY)
    response = await api.post(STORE, json={"text": "coffee"}, headers=KEY)
    assert (response.status_code, response.json()["code"]) == (409, "idempotency_conflict")


async def test_another_query_is_a_conflict(api: httpx.AsyncClient) -> None:
    cleanup = "/api/memory/backup/cleanup"
    assert (await api.delete(cleanup, params={"keep": 3}, headers=KEY)).status_code == 200
    again = await api.delete(cleanup, params={"keep": 3}, headers=KEY)
    assert again.json()["duplicate"] is True
    other = await api.delete(cleanup, params={"keep": 1}, headers=KEY)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")


async def test_the_key_of_the_body_wins(api: httpx.AsyncClient) -> None:
    body = {"text": "tea", "idempotency_key": "k-body"}
    await api.post(STORE, json={"text": "coffee"}, headers=KEY)
    assert (await api.post(STORE, json=body, headers=KEY)).json()["duplicate"] is False
    assert (await api.post(STORE, json=body, headers=KEY)).json()["duplicate"] is True


async def test_keys_are_of_one_user_and_one_route(api: httpx.AsyncClient) -> None:
    await api.post(STORE, json={"text": "tea"}, headers=KEY)
    other = await api.post(STORE, json={"text": "coffee"}, headers={**KEY, "X-User-Id": "noa"})
    bank = await api.post("/api/memory/memory-bank", json={"text": "milk"}, headers=KEY)
    assert (other.status_code, bank.status_code) == (201, 200)


async def test_a_refusal_is_an_answer_too(api: httpx.AsyncClient) -> None:
    first = await api.post(STORE, json={"text": ""}, headers=KEY)
    again = await api.post(STORE, json={"text": ""}, headers=KEY)
    assert (first.status_code, again.status_code) == (422, 422)
    assert again.json() == {**first.json(), "duplicate": True}


async def test_in_progress_is_a_conflict_with_a_time_to_return() -> None:
    gated = Gated()
    world = Harness.ready(memories=gated)
    async with client_of(world.services) as api:
        first = asyncio.create_task(api.post(STORE, json={"text": "tea"}, headers=KEY))
        await gated.began.wait()
        response = await api.post(STORE, json={"text": "tea"}, headers=KEY)
        assert (response.status_code, response.json()["code"]) == (409, "idempotency_conflict")
        assert response.headers["Retry-After"] == "1"
        gated.open.set()
        assert (await first).status_code == 201
    assert gated.calls == 1


async def test_a_failed_request_may_run_again() -> None:
    gated = Gated(failures=1)
    gated.open.set()
    async with client_of(Harness.ready(memories=gated).services) as api:
        first = await api.post(STORE, json={"text": "tea"}, headers=KEY)
        again = await api.post(STORE, json={"text": "tea"}, headers=KEY)
    assert (first.status_code, again.status_code) == (503, 201)
    assert again.json()["duplicate"] is False


async def test_a_request_out_of_time_may_run_again() -> None:
    gated = Gated()
    settings = short_time_limit()
    async with client_of(Harness.ready(settings, memories=gated).services) as api:
        first = await api.post(STORE, json={"text": "tea"}, headers=KEY)
        gated.open.set()
        again = await api.post(STORE, json={"text": "tea"}, headers=KEY)
    assert (first.status_code, again.status_code) == (504, 201)


async def test_a_request_whose_replica_died_is_taken_over(world: Harness) -> None:
    gated = Gated()
    world = Harness.ready(memories=gated)
    dead = client_of(world.services)
    first = asyncio.create_task(dead.post(STORE, json={"text": "tea"}, headers=KEY))
    await gated.began.wait()
    world.clock.advance(world.services.settings.serve.request_timeout_s + 1)
    gated.open.set()
    async with client_of(world.services) as api:
        again = await api.post(STORE, json={"text": "tea"}, headers=KEY)
    assert again.status_code == 201
    assert gated.calls == 2
    await first
    await dead.aclose()


BAD_KEYS: list[Any] = ["", " ", "a b", "x" * 256, "é", 7, ["k"], {"k": 1}]


@pytest.mark.parametrize("key", BAD_KEYS)
async def test_an_unusable_key_is_422(api: httpx.AsyncClient, key: Any) -> None:
    response = await api.post(STORE, json={"text": "tea", "idempotency_key": key})
    assert (response.status_code, response.json()["code"]) == (422, "bad_idempotency_key")
