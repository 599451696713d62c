"""The tool routes: schemas ready for a chat completion, calls as models and clients make them."""

import json
from typing import Any

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.ports import Scope
from rayapp.assistant.tools.rules.definitions import json_schema, openai_function, tools_named
from rayapp.memory.item import Status
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, json_bytes, settings_with

URL = "/api/memory/tools"
# The setting that a service begins with.
NAMED = tools_named(documents=True)


@pytest.fixture(autouse=True)
async def facts(world: Harness) -> None:
    for memory_id, text in (("m-1", "Dana lives in Haifa"), ("m-2", "דנה אוהבת תה ירוק")):
        await world.items.insert(
            an_item(
                user_id="admin", memory_id=memory_id, text=text, tier=Tier.MEMORY_BANK, tags=("t",)
            )
        )


async def test_the_list_goes_into_a_chat_completion_as_it_is(api: httpx.AsyncClient) -> None:
    listed = (await api.get(URL)).json()
    assert listed["tools"] == [openai_function(tool) for tool in NAMED]
    assert all(one["function"]["strict"] is True for one in listed["tools"])
    loose = (await api.get(URL, params={"strict": "false"})).json()
    assert loose["tools"][1]["function"]["parameters"] == json_schema(NAMED[1])


@pytest.mark.parametrize(("documents", "name"), [(True, "documents"), (False, "books")])
async def test_the_books_tier_has_the_name_that_answers_give_it(documents: bool, name: str) -> None:
    world = Harness.ready(settings_with(compat={"tier_documents": documents}))
    async with client_of(world.services) as api:
        listed = (await api.get(URL)).json()
        for sent in ("books", "documents"):
            body = {"arguments": {"query": "tea", "tiers": [sent]}}
            assert (await api.post(f"{URL}/search_memory", json=body)).status_code == 200
    for one in (
        listed["tools"][1]["function"]["parameters"],
        listed["definitions"][1]["parameters"],
    ):
        names = set(one["properties"]["tiers"]["items"]["enum"])
        assert names & {"books", "documents"} == {name}
        assert name in one["properties"]["tiers"]["description"]


async def test_definitions_say_what_a_program_needs(api: httpx.AsyncClient) -> None:
    for shown, tool in zip((await api.get(URL)).json()["definitions"], NAMED, strict=True):
        assert shown["parameters"] == json_schema(tool)
        assert shown["description_he"] == tool.text_he
        assert shown["scope"] == ("write" if tool.writes else "read")


@pytest.mark.parametrize(
    "body",
    [
        {"arguments": {"query": "Where in Haifa?"}},
        {"arguments": '{"query": "Where in Haifa?"}'},
        {"query": "Where in Haifa?"},
        {"q": "Where in Haifa?", "conversationId": "conv-1", "turnId": "turn-1"},
    ],
)
async def test_arguments_come_wrapped_as_text_or_bare(api: httpx.AsyncClient, body: Any) -> None:
    found = (await api.post(f"{URL}/search_memory", json=body)).json()
    assert (found["success"], found["tool"]) == (True, "search_memory")
    assert found["data"]["results"][0]["memory_id"] == "m-1"


async def test_hebrew_in_hebrew_out(api: httpx.AsyncClient) -> None:
    found = (await api.post(f"{URL}/search_memory", json={"q": "תה ירוק"})).json()
    assert "[1] [memory_bank:m-2] דנה אוהבת תה ירוק" in found["text"]


@pytest.mark.parametrize("named", ["body", "headers"])
async def test_one_search_per_turn(api: httpx.AsyncClient, named: str) -> None:
    ids = {"conversation_id": "conv-1", "turn_id": "turn-1"}
    headers = {"X-Conversation-Id": "conv-1", "X-Turn-Id": "turn-1"} if named == "headers" else {}
    body = {"arguments": {"q": "Haifa"}} | (ids if named == "body" else {})
    answers = [
        (await api.post(f"{URL}/search_memory", json=body, headers=headers)).json()
        for _ in range(2)
    ]
    assert [one["data"]["limited"] for one in answers] == [False, True]


async def test_an_unknown_tool_is_404(api: httpx.AsyncClient) -> None:
    answer = await api.post(f"{URL}/drop_all", json={})
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_tool")
    assert "search_memory" in answer.json()["message"]


@pytest.mark.parametrize(
    ("tool", "body", "field"),
    [
        ("search_memory", {}, "query"),
        ("search_memory", {"arguments": None}, "query"),
        ("search_memory", {"arguments": [1]}, "arguments"),
        ("search_memory", {"q": "x", "turn_id": ""}, "turn_id"),
        ("search_memory", {"q": "x", "conversation_id": "a\u0000b"}, "conversation_id"),
        ("search_memory", {"q": "a\u0000b"}, "query"),
        ("archive_memory", {}, "memory_id"),
        ("score_memories", {"scores": {"1": "worked"}}, "scores"),
        ("search_memory", {"query": 5}, "query"),
    ],
)
async def test_a_bad_argument_is_422_and_named(
    api: httpx.AsyncClient, tool: str, body: Any, field: str
) -> None:
    answer = await api.post(f"{URL}/{tool}", json=body)
    assert (answer.status_code, answer.json()["details"]["field"]) == (422, field)


@pytest.mark.parametrize(
    ("body", "field"),
    [({"arguments": {"q": "x", "limit": 0}}, "limit"), ({"query": "איפה דנה?", "mood": 1}, "mood")],
)
async def test_a_search_puts_right_what_it_can(
    api: httpx.AsyncClient, body: Any, field: str
) -> None:
    answer = await api.post(f"{URL}/search_memory", json=body)
    assert answer.status_code == 200
    assert answer.json()["data"]["repaired"][0].startswith(f"{field}: ")


async def test_a_key_of_a_retry_gives_the_first_answer(api: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "k-1"}
    body = {"arguments": {"scores": {"m-1": "worked"}}}
    first = await api.post(f"{URL}/score_memories", json=body, headers=headers)
    again = await api.post(f"{URL}/score_memories", json=body, headers=headers)
    assert (first.status_code, again.json()["duplicate"]) == (200, True)
    assert (await api.get("/api/memory/items/m-1")).json()["memory"]["stats"]["uses"] == 1


async def test_unknown_names_that_no_writer_can_carry_are_escaped(api: httpx.AsyncClient) -> None:
    body = json.dumps({"q": "Haifa", "\ud800": 1}).encode()
    answer = await json_bytes(api, "POST", f"{URL}/search_memory", body)
    assert answer.status_code == 200, answer.text
    [repair] = answer.json()["data"]["repaired"]
    assert repair == "\\ud800: is no argument of search_memory; it was left out."


async def test_a_key_that_reads_calls_only_what_reads() -> None:
    world = Harness.ready(settings_with(auth={"mode": "keys"}))
    service = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
    scopes: list[Scope] = ["read"]
    secret, _ = await service.create("dana", user_id="dana", scopes=scopes)
    await world.items.insert(
        an_item(user_id="dana", memory_id="m-1", text="Haifa", tier=Tier.MEMORY_BANK, tags=("t",))
    )
    async with client_of(world.services, {"Authorization": f"Bearer {secret}"}) as api:
        names = [one["name"] for one in (await api.get(URL)).json()["definitions"]]
        found = await api.post(f"{URL}/search_memory", json={"q": "Haifa"})
        refused = await api.post(f"{URL}/archive_memory", json={"memory_id": "m-1"})
    reading = ["get_context_insights", "search_memory", "search_books"]
    assert names == [*reading, "memory_summary", "who_is", "timeline"]
    assert found.status_code == 200
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    item = await world.services.memories.get(ReadScope("dana"), "m-1")
    assert item.status is Status.ACTIVE
