"""Windows of models over HTTP, and the whole prompt in the answer of the hooks."""

from typing import Any

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with
from tests.unit.api.test_conversations import got, said

MODEL = "/api/model/context/"
PROMPT = "/api/memory/prompt"


async def prompt(api: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await api.post(PROMPT, json={"query": "Where does Dana live?", **body})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_a_window_of_ones_own_goes_before_the_table() -> None:
    world = Harness.ready()
    async with (
        client_of(world.services) as api,
        client_of(world.services, {"X-User-Id": "noa"}) as noa,
    ):
        name = "meta-llama%2FLlama-3.1-8B"
        assert (await got(api, MODEL + name))["window"] == {
            "model": "meta-llama/Llama-3.1-8B",
            "tokens": 32768,
            "maximum": 131072,
            "source": "table",
        }
        put = await api.post(MODEL + name, json={"contextWindow": 4096})
        assert (put.json()["window"]["tokens"], put.json()["window"]["source"]) == (4096, "own")
        # The same model by another writing of its name.
        assert (await got(api, MODEL + "LLAMA3.1-8b"))["window"]["tokens"] == 4096
        assert (await got(noa, MODEL + name))["window"]["source"] == "table"
        assert (await prompt(api, model="llama3.1:8b"))["limit"] == 2048
        assert (await prompt(api, model="llama3.1:8b", window=8192))["limit"] == 4096
        assert [one["tokens"] for one in (await got(api, "/api/model/contexts"))["own"]] == [4096]
        too_much = await api.post(MODEL + "gemma2", json={"tokens": 100_000})
        assert too_much.json()["window"]["tokens"] == 8192
        gone = await api.delete(MODEL + name)
        assert gone.json()["window"]["source"] == "table"
        assert (await api.delete(MODEL + name)).status_code == 404
        for bad in ({}, {"tokens": 511}, {"tokens": "big"}, {"tokens": 4096.5}):
            assert (await api.post(MODEL + name, json=bad)).status_code == 422
        assert (await api.post(MODEL + "x" * 201, json={"tokens": 4096})).status_code == 422


async def test_an_operator_sets_one_for_all_who_have_none() -> None:
    world = Harness(settings_with(auth={"mode": "keys"}))
    await world.opened()
    keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0.0)

    async def client(user: str, *scopes: Any) -> httpx.AsyncClient:
        key, _ = await keys.create(user, user_id=user, scopes=scopes)
        return client_of(world.services, {"Authorization": f"Bearer {key}"})

    dana, root = await client("dana", "read", "write"), await client("root", "admin")
    async with dana, root:
        body = {"tokens": 16384, "everybody": True}
        assert (await dana.post(MODEL + "qwen3", json=body)).status_code == 403
        assert (await root.post(MODEL + "qwen3", json=body)).status_code == 200
        window = (await got(dana, MODEL + "qwen3"))["window"]
        assert (window["tokens"], window["source"]) == (16384, "operator")
        await dana.post(MODEL + "qwen3", json={"tokens": 8192})
        assert (await got(dana, MODEL + "qwen3"))["window"]["source"] == "own"
        query = {"everybody": "true"}
        assert (await dana.delete(MODEL + "qwen3", params=query)).status_code == 403
        assert (await root.delete(MODEL + "qwen3", params=query)).status_code == 200


@pytest.mark.parametrize("question", ["Where does Dana live now?", "איפה דנה גרה עכשיו?"])
async def test_the_hooks_answer_with_the_whole_prompt_on_request(question: str) -> None:
    world = Harness.ready()
    await world.store("Dana lives in Haifa; דנה גרה בחיפה", user="admin")
    await world.drain()
    async with client_of(world.services) as api:
        body = {
            "conversationId": "c-1",
            "messageId": "m-1",
            "messages": [{"role": "user", "content": question}],
            "model": "llama3.1:8b",
        }
        plain = (await api.post("/api/hooks/exchange", json=body)).json()
        assert "prompt" not in plain
        asked = await api.post("/api/hooks/exchange", json={**body, "includePrompt": True})
        made = asked.json()["prompt"]
        assert made["limit"] == 16384
        assert [one["name"] for one in made["parts"]][-2:] == ["context", "question"]
        assert "חיפה" in made["messages"][0]["content"]
        small = {**body, "include_prompt": True, "window": 512}
        assert (await api.post("/api/hooks/exchange", json=small)).status_code == 422
        # A turn that ended is kept in any case.
        answer = {"role": "assistant", "content": "In Haifa, since the month of May."}
        ended = {**small, "messages": [*body["messages"], answer]}
        kept = (await api.post("/api/hooks/exchange", json=ended)).json()
        assert kept["stored"]["duplicate"] is False
        assert "prompt" not in kept


async def test_a_prompt_without_messages_has_those_that_are_kept() -> None:
    world = Harness.ready()
    async with client_of(world.services) as api:
        for number in range(12):
            world.clock.advance(60)
            await said(api, "c-1", f"m-{number}", f"question number {number}", "an answer to it")
        made = await prompt(api, conversationId="c-1", messageId="m-12")
        history = next(one["text"] for one in made["parts"] if one["name"] == "history")
        assert "user: question number 11" in history
        assert "- question number 7" in history
        assert "question number 1\n" not in history
        other = await prompt(api, conversationId="c-2")
        assert "history" not in [one["name"] for one in other["parts"]]
