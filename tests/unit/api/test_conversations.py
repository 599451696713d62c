"""Conversations over HTTP: kept lazily, listed, found, read again, switched, renamed, deleted."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest

from rayapp.core.errors import NotFound
from rayapp.memory.item import LEARNED_TAG, Source, SourceType, Status, point_id_of
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules.creation import archived
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.support.stores import sessions
from tests.unit.api.serving import client_of

LIST = "/api/memory/conversations"
ADMIN, WRITES = ReadScope("admin"), WriteScope("admin")


async def said(
    api: httpx.AsyncClient,
    conversation: str,
    message: str,
    question: str = "Where does Dana live these days? איפה דנה גרה?",
    answer: str = "Dana lives in Haifa, near the port, since May. דנה גרה בחיפה.",
    **fields: Any,
) -> dict[str, Any]:
    body = {
        "conversationId": conversation,
        "messageId": message,
        "messages": [
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer},
        ],
        **fields,
    }
    response = await api.post("/api/hooks/exchange", json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def got(api: httpx.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    response = await api.get(path, params=query)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


@pytest.fixture
async def world() -> Harness:
    return Harness.ready()


async def test_a_conversation_begins_with_its_first_turn(world: Harness) -> None:
    async with client_of(world.services) as api:
        await api.post("/api/memory/prefetch", json={"query": "hi there", "conversationId": "c-1"})
        assert (await got(api, LIST))["conversations"] == []
        await said(api, "c-1", "m-1", "How do I water the plants on the balcony in summer time?")
        world.clock.advance(60)
        await said(api, "c-1", "m-2", "And in winter?")
        (one,) = (await got(api, LIST))["conversations"]
    assert one["title"] == "How do I water the plants on the…"
    assert one["titled_by"] == "words"
    assert (one["turns"], one["message_count"], one["active"]) == (2, 4, False)
    assert one["created_at"] < one["updated_at"]


async def test_messages_tell_how_they_were_answered(world: Harness) -> None:
    await world.store("Dana lives in Haifa since May; דנה גרה בחיפה", user="admin")
    await world.drain()
    async with client_of(world.services) as api:
        ask = {"query": "Where does Dana live?", "conversationId": "c-1"}
        receipt = (await api.post("/api/memory/context", json=ask)).json()["receipt_id"]
        await said(api, "c-1", "m-1", model="dicta-7b", toolsCalled=["search_memory"])
        thumb = {"messageId": "m-1", "score": 1, "feedback": "קצר ולעניין"}
        assert (await api.post("/api/hooks/score", json=thumb)).status_code == 200
        found = await got(api, f"{LIST}/c-1/messages")
    asked, answered = found["messages"]
    assert (asked["role"], asked["message_id"]) == ("user", "m-1")
    assert "citations" not in asked
    assert answered["content"].startswith("Dana lives in Haifa")
    assert (answered["model"], answered["tools"]) == ("dicta-7b", ["search_memory"])
    assert answered["receipt_id"] == receipt
    assert [one["tier"] for one in answered["citations"]] == ["working"]
    assert (answered["score"], answered["feedback"]) == (1, "קצר ולעניין")


async def test_a_turn_tells_what_its_tools_did_and_they_learn_from_it(world: Harness) -> None:
    runs = [
        {"name": "mcp__gov__search_datagov", "runId": "r-1", "latencyMs": 812.5},
        {"name": "read_page", "run_id": "r-2", "ok": False, "error_type": "blocked"},
    ]
    async with client_of(world.services) as api:
        await said(api, "c-1", "m-1", toolsCalled=["search_datagov"], toolRuns=runs)
        _, answered = (await got(api, f"{LIST}/c-1/messages"))["messages"]
        for _ in range(2):
            thumb = {"messageId": "m-1", "conversationId": "c-1", "score": 1}
            assert (await api.post("/api/hooks/score", json=thumb)).status_code == 200
        found = (await got(api, "/api/memory/kg/action-rollups", include_tiers=True))["rollups"]
    assert answered["tools"] == ["search_datagov", "read_page"]
    assert answered["tool_runs"][0] == {
        "name": "mcp__gov__search_datagov",
        "run_id": "r-1",
        "ok": True,
        "timeout": False,
        "error_type": None,
        "latency_ms": 812.5,
    }
    counted = {one["action"]: (one["uses"], one["worked"], one["failed"]) for one in found}
    assert counted == {"search_datagov": (1, 1, 0), "read_page": (1, 0, 1)}


@pytest.mark.parametrize(
    ("ask", "outcome"),
    [
        (
            "/api/memory/record_response",
            {"key_takeaway": "Dana lives in Haifa", "outcome": "failed"},
        ),
        ("/api/memory/feedback", {"messageId": "m-1", "score": -1}),
        ("/api/hooks/score", {"messageId": "m-1", "score": -1}),
    ],
)
async def test_each_word_on_an_answer_reaches_its_tools_without_a_memory_too(
    world: Harness, ask: str, outcome: dict[str, Any]
) -> None:
    async with client_of(world.services) as api:
        await said(api, "c-1", "m-1", toolsCalled=["weather", "search_memory"])
        response = await api.post(ask, json={"conversationId": "c-1", **outcome})
        assert response.status_code == 200, response.text
        found = (await got(api, "/api/memory/kg/action-rollups"))["rollups"]
    assert [(one["action"], one["uses"], one["failed"]) for one in found] == [("weather", 1, 1)]


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ({}, "name"),
        ({"name": "t", "latency_ms": -1}, "latency_ms"),
        ({"name": "t", "ok": "?"}, "ok"),
    ],
)
async def test_a_run_that_cannot_be_read_is_named(
    world: Harness, run: dict[str, Any], says: str
) -> None:
    async with client_of(world.services) as api:
        talk = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
        body = {"conversationId": "c", "messageId": "m", "messages": talk, "toolRuns": [run]}
        response = await api.post("/api/hooks/exchange", json=body)
    assert response.status_code == 422
    assert says in response.json()["message"]


async def test_messages_come_in_pages_of_whole_turns(world: Harness) -> None:
    async with client_of(world.services) as api:
        for n in range(15):
            world.clock.advance(60)
            await said(api, "c-1", f"m-{n}", f"question number {n}")
        newest = await got(api, f"{LIST}/c-1/messages")
        assert len(newest["messages"]) == 20
        assert newest["messages"][-1]["message_id"] == "m-14"
        older = await got(api, f"{LIST}/c-1/messages", cursor=newest["next_cursor"])
        assert [one["content"] for one in older["messages"][::2]] == [
            f"question number {n}" for n in range(5)
        ]
        assert older["next_cursor"] is None
        bad = await api.get(f"{LIST}/c-1/messages", params={"cursor": "x"})
        assert bad.status_code == 422


async def test_a_list_goes_on_and_is_of_its_user(world: Harness) -> None:
    async with (
        client_of(world.services) as api,
        client_of(world.services, {"X-User-Id": "noa"}) as noa,
    ):
        for n in range(5):
            world.clock.advance(60)
            await said(api, f"c-{n}", "m-1")
        first = await got(api, LIST, limit=3)
        rest = await got(api, LIST, limit=3, cursor=first["next_cursor"])
        names = [
            one["conversation_id"] for one in (*first["conversations"], *rest["conversations"])
        ]
        assert names == ["c-4", "c-3", "c-2", "c-1", "c-0"]
        assert rest["next_cursor"] is None
        assert (await got(noa, LIST))["conversations"] == []
        assert (await noa.get(f"{LIST}/c-1")).status_code == 404


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("gardens watering", ["c-garden"]),
        ("לגינה", ["c-garden"]),
        ("הרכב", ["c-car"]),
        ("moon", []),
        ("car garden", []),
    ],
)
async def test_they_are_found_by_words_in_both_languages(
    world: Harness, query: str, names: list[str]
) -> None:
    async with client_of(world.services) as api:
        await said(api, "c-garden", "m-1", "When do I water the garden? מתי משקים את הגינה?")
        await said(api, "c-car", "m-1", "My car is red. הרכב שלי אדום.", "Noted, it is red.")
        found = await got(api, LIST, query=query)
    assert [one["conversation_id"] for one in found["conversations"]] == names
    assert all(one["match"] for one in found["conversations"])


async def test_a_switch_brings_the_last_messages_and_promotes(world: Harness) -> None:
    async with client_of(world.services) as api:
        await said(api, "c-1", "m-1")
        await said(api, "c-2", "m-1")
        first = (await api.post(f"{LIST}/switch", json={"conversationId": "c-1"})).json()
        assert (first["previous"], first["exists"], len(first["messages"])) == (None, True, 2)
        world.lifecycle.calls.clear()
        second = (await api.post(f"{LIST}/switch", json={"conversation_id": "c-2"})).json()
        assert second["previous"] == "c-1"
        for _ in range(20):
            await asyncio.sleep(0)
        assert "candidates" in world.lifecycle.calls
        assert (await got(api, LIST))["active"] == "c-2"
        new = (await api.post(f"{LIST}/switch", json={"conversation_id": "c-new"})).json()
        assert (new["previous"], new["exists"], new["messages"]) == ("c-2", False, [])
        assert (await got(api, LIST))["active"] is None
        await api.post(f"{LIST}/switch", json={"conversation_id": "c-2"})
        left = (await api.post(f"{LIST}/switch", json={})).json()
        assert (left["previous"], left["conversation_id"]) == ("c-2", None)


async def test_a_title_of_ones_own(world: Harness) -> None:
    async with client_of(world.services) as api:
        await said(api, "שיחה/1", "m-1")
        path = f"{LIST}/{'שיחה%2F1'}"
        renamed = await api.patch(path, json={"title": "  הגינה   שלי "})
        assert renamed.json()["conversation"]["title"] == "הגינה שלי"
        assert (await got(api, path))["conversation"]["titled_by"] == "person"
        for bad in ("", "   ", "\u200b\u200f", "x" * 201):
            assert (await api.patch(path, json={"title": bad})).status_code == 422
        assert (await api.patch(f"{LIST}/none", json={"title": "t"})).status_code == 404
        assert (await api.get(f"{LIST}/{'x' * 513}")).status_code == 422
        assert (await api.get(f"{LIST}/a%00b")).status_code == 422


async def test_an_export_holds_messages_and_what_was_learned(world: Harness) -> None:
    async with client_of(world.services) as api:
        await said(api, "c-1", "m-1")
        fact = {
            "text": "Dana likes the sea; דנה אוהבת את הים",
            "tier": "memory_bank",
            "tags": ["fact"],
            "importance": 0.8,
            "confidence": 0.8,
            "source": {"type": "assistant", "conversation_id": "c-1"},
        }
        await api.post("/api/memory/store", json=fact)
        found = await got(api, f"{LIST}/c-1/export")
        assert (await api.get(f"{LIST}/none/export")).status_code == 404
    assert [one["role"] for one in found["messages"]] == ["user", "assistant"]
    assert [one["text"] for one in found["memories"]] == [fact["text"]]
    assert found["complete"] is True


async def test_the_active_one_is_not_deleted(world: Harness) -> None:
    async with client_of(world.services) as api:
        await said(api, "c-1", "m-1")
        await api.post(f"{LIST}/switch", json={"conversation_id": "c-1"})
        refused = await api.delete(f"{LIST}/c-1")
        assert (refused.status_code, refused.json()["code"]) == (400, "conversation_active")
        await api.post(f"{LIST}/switch", json={})
        assert (await api.delete(f"{LIST}/c-1")).status_code == 200
        assert (await api.delete(f"{LIST}/c-1")).status_code == 404


async def test_deleting_takes_what_was_learned_and_nothing_else(world: Harness) -> None:
    await world.store("Dana lives in Haifa; דנה גרה בחיפה", user="admin", memory_id="fact")
    await world.drain()
    async with client_of(world.services) as api:
        for name in ("c-1", "c-2"):
            ask = {"query": "Where does Dana live?", "conversationId": name}
            receipt = (await api.post("/api/memory/context", json=ask)).json()["receipt_id"]
            await said(api, name, "m-1", f"Where does Dana live, {name}?")
            judged = {"receipt_id": receipt, "outcome": "worked"}
            assert (await api.post("/api/memory/outcomes", json=judged)).status_code == 200
        assert (await world.items.get(ADMIN, "fact")).stats.uses == 2
        removed = (await api.delete(f"{LIST}/c-1")).json()["removed"]
        assert (removed["turns"], removed["conversation"], removed["memories"]) == (1, 1, 1)
        await world.drain()
        left = (await got(api, LIST))["conversations"]
        assert [one["conversation_id"] for one in left] == ["c-2"]
        assert len((await got(api, f"{LIST}/c-2/messages"))["messages"]) == 2
    fact = await world.items.get(ADMIN, "fact")
    assert (fact.stats.uses, fact.stats.worked_count) == (1, 1)
    where = ItemFilter(conversation_ids=("c-1",), statuses=None, include_superseded=True)
    assert await world.items.count(ADMIN.own, where) == 0
    where = ItemFilter(conversation_ids=("c-2",), statuses=None, include_superseded=True)
    assert await world.items.count(ADMIN.own, where) == 1


async def test_words_of_a_deleted_memory_are_not_read_again(world: Harness) -> None:
    async with client_of(world.services) as api:
        stored = await said(api, "c-1", "m-1")
        memory_id = stored["stored"]["memory_id"]
        assert (await api.delete(f"/api/memory/items/{memory_id}")).status_code == 200
        await world.drain()
        messages = (await got(api, f"{LIST}/c-1/messages"))["messages"]
        assert [one["content"] for one in messages] == [None, None]
        assert (await got(api, LIST, query="haifa"))["conversations"] == []


ANSWER = "Dana lives in Haifa, near the port, since May. <!-- MEM: 1👍 -->"


async def asked_and_answered(
    world: Harness, api: httpx.AsyncClient, answer: str = ANSWER, **words: str
) -> dict[str, Any]:
    """The context of a question, then its turn m-1 with a mark for the first line."""
    ask = {"query": "Where does Dana live?", "conversationId": "c-1", "messageId": "m-1"}
    await api.post("/api/memory/context", json=ask)
    question = words.get("question", "Where does Dana live?")
    stored: dict[str, Any] = (await said(api, "c-1", "m-1", question, answer))["stored"]
    await world.drain()
    return stored


async def stats_of(world: Harness, memory_id: str) -> tuple[int, int, int]:
    found = (await world.items.get(ADMIN, memory_id)).stats
    return found.uses, found.worked_count, found.failed_count


@pytest.fixture
async def knowing(world: Harness) -> Harness:
    await world.store("Dana lives in Haifa; דנה גרה בחיפה", user="admin", memory_id="fact")
    await world.drain()
    return world


async def test_a_regenerated_answer_takes_the_place_of_its_turn(knowing: Harness) -> None:
    async with client_of(knowing.services) as api:
        first = await asked_and_answered(knowing, api)
        assert await stats_of(knowing, "fact") == (1, 1, 0)
        thumb = {"messageId": "m-1", "conversationId": "c-1", "score": 1, "memoryIds": ["fact"]}
        await api.post("/api/hooks/score", json=thumb)
        assert await stats_of(knowing, "fact") == (2, 2, 0)
        again = await asked_and_answered(
            knowing, api, "She moved to Eilat last month, they say. <!-- MEM: 1👎 -->"
        )
        assert (again["replaced"], again["duplicate"]) == (True, False)
        assert again["memory_id"] == first["memory_id"]
        assert await stats_of(knowing, "fact") == (1, 0, 1)
        found = await got(api, f"{LIST}/c-1/messages")
        assert [one["content"] for one in found["messages"]] == [
            "Where does Dana live?",
            "She moved to Eilat last month, they say.",
        ]
        assert "edited_at" in found["messages"][1]
        assert (await got(api, LIST))["conversations"][0]["turns"] == 1
        kept = await knowing.services.memories.get(ADMIN, first["memory_id"])
        assert "Eilat" in kept.text
        versions = await knowing.services.memories.versions(ADMIN, first["memory_id"])
        assert "since May" in versions[0].text


@pytest.mark.parametrize("cycle", [True, False])
async def test_an_answer_that_is_given_anew_days_later_is_found(
    knowing: Harness, cycle: bool
) -> None:
    async with client_of(knowing.services) as api:
        first = await asked_and_answered(knowing, api)
        knowing.clock.advance(2 * 86_400)
        if cycle:
            await api.post("/api/memory/ops/promote", json={})
        again = await asked_and_answered(knowing, api, "She moved to Eilat last month, they say.")
        assert (again["memory_id"], again["replaced"]) == (first["memory_id"], True)
        assert first["memory_id"] in await knowing.found("Who moved to Eilat?", user="admin")


async def test_a_thumb_on_an_answer_that_was_given_anew_is_about_what_it_was_given_with(
    world: Harness,
) -> None:
    fact = await world.store("Dana lives in Haifa, near the port", user="admin")
    for number in range(8):
        await world.store(f"lunch number {number} was pasta", user="admin")
    await world.drain()
    async with client_of(world.services) as api:
        for answer in ("In Haifa, near the port.", "She lives in Haifa; the port is near."):
            await asked_and_answered(world, api, answer)
        thumb = {"messageId": "m-1", "conversationId": "c-1", "score": 1}
        assert (await api.post("/api/hooks/score", json=thumb)).json()["updated"] == 1
    assert await stats_of(world, fact) == (1, 1, 0)


async def test_an_answer_whose_memory_a_person_put_away_stays_away(knowing: Harness) -> None:
    async with client_of(knowing.services) as api:
        first = await asked_and_answered(knowing, api)
        await api.post("/api/memory/ghost", json={"memoryId": first["memory_id"]})
        knowing.clock.advance(2 * 86_400)
        await asked_and_answered(knowing, api, "She moved to Eilat last month, they say.")
        kept = await knowing.services.memories.get(ADMIN, first["memory_id"])
        assert kept.status is Status.ARCHIVED


@pytest.mark.parametrize(
    ("path", "memories"), [("hooks/score", "memoryIds"), ("memory/feedback", "citations")]
)
async def test_a_thumb_that_names_the_message_alone_is_one_of_its_conversation(
    world: Harness, path: str, memories: str
) -> None:
    await world.store("Dana lives in Haifa", user="admin", memory_id="fact")
    thumb = {"messageId": "m-1", "score": 1, memories: ["fact"]}
    async with client_of(world.services) as api:
        await said(api, "c-1", "m-1")
        for body in (thumb, {**thumb, "conversationId": "c-1"}, thumb):
            assert (await api.post(f"/api/{path}", json=body)).status_code == 200
        assert await stats_of(world, "fact") == (1, 1, 0)
        await api.post(f"/api/{path}", json={**thumb, "score": -1})
        assert await stats_of(world, "fact") == (1, 0, 1)
        assert (await api.delete(f"{LIST}/c-1")).status_code == 200
        assert await stats_of(world, "fact") == (0, 0, 0)
        # No kept answer: as it is sent.
        assert (await api.post(f"/api/{path}", json=thumb)).status_code == 200
    assert await stats_of(world, "fact") == (1, 1, 0)


async def test_an_answer_anew_of_a_turn_that_another_one_had_said_is_a_memory(
    world: Harness,
) -> None:
    async with client_of(world.services) as api:
        shared = [(await said(api, "c-1", name))["stored"]["memory_id"] for name in ("m-1", "m-2")]
        assert shared[0] == shared[1]
        again = (await said(api, "c-1", "m-2", answer="She moved to Eilat last month."))["stored"]
        assert (again["replaced"], again["duplicate"]) == (True, False)
        kept = await world.services.memories.get(ADMIN, again["memory_id"])
        assert "Eilat" in kept.text
        assert "Eilat" not in (await world.services.memories.get(ADMIN, shared[0])).text


async def test_a_fact_that_two_conversations_told_stays_with_the_other_one(world: Harness) -> None:
    async def told(conversation: str | None) -> str:
        new = NewMemory(
            text="Dana is allergic to nuts", source=Source(conversation_id=conversation)
        )
        return str((await world.services.memories.store(WRITES, new)).memory_id)

    async with client_of(world.services) as api:
        ids = {await told(name) for name in ("c-1", "c-2", "c-3")}
        for name in ("c-1", "c-2", "c-3"):
            await said(api, name, "m-9")
            assert len(ids) == 1
            assert (await world.services.memories.get(ADMIN, *ids)).status is Status.ACTIVE
            assert (await api.delete(f"{LIST}/{name}")).status_code == 200
        with pytest.raises(NotFound):
            await world.services.memories.get(ADMIN, *ids)
        await told("c-4")
        (kept,) = {await told(None)}
        await said(api, "c-4", "m-9")
        await api.delete(f"{LIST}/c-4")
    source = (await world.services.memories.get(ADMIN, kept)).source
    assert (source.conversation_id, source.also) == (None, ())


async def test_a_turn_that_two_conversations_said_stays_with_the_other_one(world: Harness) -> None:
    async with client_of(world.services) as api:
        ids = [(await said(api, name, "m-1"))["stored"]["memory_id"] for name in ("c-1", "c-2")]
        assert (await api.delete(f"{LIST}/c-1")).status_code == 200
    assert (await world.services.memories.get(ADMIN, ids[1])).status is Status.ACTIVE
    with pytest.raises(NotFound):
        await world.services.memories.get(ADMIN, ids[0])


@pytest.mark.parametrize(("reason", "current"), [("capacity", True), ("user_action", False)])
async def test_what_a_deleted_fact_had_replaced_is_current_unless_a_person_put_it_away(
    world: Harness, reason: str, current: bool
) -> None:
    await world.store("Dana lives in Haifa", user="admin", memory_id="old")
    source = Source(conversation_id="c-1")
    new = NewMemory(text="Dana lives in Eilat", memory_id="new", supersedes="old", source=source)
    await world.services.memories.store(WRITES, new)
    await world.services.memories.archive(WRITES, "old", reason=reason)
    async with client_of(world.services) as api:
        await said(api, "c-1", "m-1")
        assert (await api.delete(f"{LIST}/c-1")).status_code == 200
    old = await world.services.memories.get(ADMIN, "old")
    assert (old.status is Status.ACTIVE, old.superseded_by is None) == (current, current)


async def test_a_turn_that_its_session_forgot_is_known_by_its_words(
    world: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long conversation that a program sends again from its beginning."""
    monkeypatch.setattr(sessions, "MAX_TURNS", 2)
    async with client_of(world.services) as api:
        first = (await said(api, "c-1", "m-1"))["stored"]
        for name in ("m-2", "m-3", "m-4"):
            await said(api, "c-1", name, question=f"And what of {name}, where is that one?")
        again = (await said(api, "c-1", "m-1"))["stored"]
        assert (again["memory_id"], again["duplicate"]) == (first["memory_id"], True)
        other = (await said(api, "c-1", "m-1", answer="She moved to Eilat last month."))["stored"]
        assert (other["memory_id"], other["replaced"]) == (first["memory_id"], True)
        assert (await got(api, LIST))["conversations"][0]["turns"] == 4


async def test_the_same_words_again_change_nothing(knowing: Harness) -> None:
    async with client_of(knowing.services) as api:
        await asked_and_answered(knowing, api)
        again = await asked_and_answered(knowing, api)
        assert (again["replaced"], again["duplicate"]) == (False, True)
        assert await stats_of(knowing, "fact") == (1, 1, 0)


async def test_an_edited_question_is_learned_from_again(knowing: Harness) -> None:
    async with client_of(knowing.services) as api:
        await asked_and_answered(knowing, api)
        (claimed,) = await knowing.exchanges.claim(token="t", limit=5, claim_s=60)
        await knowing.exchanges.finish(claimed.exchange, "t", "done", {})
        again = await asked_and_answered(knowing, api, question="Where does Dana live now?")
        assert again["replaced"] is True
        (claimed,) = await knowing.exchanges.claim(token="t", limit=5, claim_s=60)
        assert claimed.exchange.user_text == "Where does Dana live now?"
        assert await stats_of(knowing, "fact") == (1, 1, 0)
        assert (await got(api, LIST, query="now"))["conversations"] != []


@pytest.mark.parametrize("named", [None, "Where does Dana live?"])
async def test_a_title_follows_the_question_that_it_was_made_of(
    world: Harness, named: str | None
) -> None:
    async with client_of(world.services) as api:
        await said(api, "c-1", "m-1", "Where does Dana live?")
        if named is not None:
            await api.patch(f"{LIST}/c-1", json={"title": named})
        await said(api, "c-1", "m-2", "And where did she live before that?")
        await said(api, "c-1", "m-2", "And where did she live two years ago?")
        await said(api, "c-1", "m-1", "Where does Noa live?")
        (row,) = (await got(api, LIST))["conversations"]
        assert row["title"] == (named or "Where does Noa live?")


async def test_what_a_model_said_of_other_words_goes_with_them(world: Harness) -> None:
    me, store = WriteScope("admin"), world.conversations
    async with client_of(world.services) as api:
        await said(api, "c-1", "m-1", "Where does Dana live?")
        await said(api, "c-1", "m-2", "And where did she live before that?")
        await store.name(me, "c-1", "Where Dana lives", "model")
        await store.sum_up(me, "c-1", ["Dana moved to Haifa"], 2)
        await said(api, "c-1", "m-2", "And what does she eat?")
        row = await store.get(me.own, "c-1")
        assert row is not None
        assert (row.title, row.bullets) == ("Where Dana lives", ())
        await said(api, "c-1", "m-1", "Where does Noa live?")
        row = await store.get(me.own, "c-1")
        assert row is not None
        assert (row.title, row.titled_by) == ("Where does Noa live?", "words")


async def test_what_a_model_said_of_earlier_turns_stays_when_a_later_one_changes(
    world: Harness,
) -> None:
    me, store = WriteScope("admin"), world.conversations
    async with client_of(world.services) as api:
        for number in range(3):
            await said(api, "c-1", f"m-{number}", f"Where did Dana live {number} years ago?")
        await store.sum_up(me, "c-1", ["Dana moved to Haifa"], 2)
        for changed, left in (("m-2", ("Dana moved to Haifa",)), ("m-1", ())):
            await said(api, "c-1", changed, answer="She moved to Eilat in May, near the sea.")
            row = await store.get(me.own, "c-1")
            assert row is not None
            assert row.bullets == left


async def test_an_edited_message_takes_no_memory_of_elsewhere_with_what_it_had_taught(
    world: Harness,
) -> None:
    """Dedup had merged all of them into what the old words of m-1 taught."""
    read_out = Source(
        type=SourceType.ASSISTANT, conversation_id="c-1", message_id="m-1", tool_run_id="facts"
    )
    taught = {"user_id": "admin", "tags": (LEARNED_TAG,)}
    where = {
        "winner": read_out,
        "same-turn": read_out,
        "other-turn": replace(read_out, message_id="m-2"),
        "elsewhere": replace(read_out, conversation_id="c-2"),
        "told-twice": replace(read_out, also=("c-2",)),
        "by-hand": Source(),
    }
    made = [
        an_item(memory_id=name, text=f"Dana drinks {name}", source=source, **taught)
        for name, source in where.items()
    ]
    losers = [
        replace(archived(one, "merged", one.updated_at), merged_into="winner") for one in made[1:]
    ]
    await world.items.insert_many([made[0], *losers])
    async with client_of(world.services) as api:
        await said(api, "c-1", "m-1", question="I drink a lot of tea.")
        edited = await said(api, "c-1", "m-1", question="I drink a lot of coffee.")
        assert edited["stored"]["replaced"] is True
    for name in ("winner", "same-turn"):
        with pytest.raises(NotFound):
            await world.services.memories.get(ADMIN, name)
    for name in ("other-turn", "elsewhere", "told-twice", "by-hand"):
        alone = await world.services.memories.get(ADMIN, name)
        assert (alone.memory_id, alone.status) == (name, Status.ACTIVE), name


@pytest.mark.parametrize("name", ["c-1", "c-2"])
async def test_the_same_turn_of_two_conversations_stays_two_memories(
    world: Harness, name: str
) -> None:
    async with client_of(world.services) as api:
        kept = {one: (await said(api, one, "m-1"))["stored"]["memory_id"] for one in ("c-1", "c-2")}
        for _ in range(2):
            body = {"memory_ids": list(kept.values()), "outcome": "worked"}
            assert (await api.post("/api/memory/outcomes", json=body)).is_success
        await world.drain()
        promoted = (await api.post("/api/memory/ops/promote", json={})).json()["stats"]
        assert (promoted["promoted"], promoted["merged"]) == (2, 0)
        await said(api, name, "m-1", answer="She moved to Eilat last month, they say.")
        for one, memory_id in kept.items():
            found = await world.services.memories.get(ADMIN, memory_id)
            assert (found.memory_id, found.tier) == (memory_id, Tier.HISTORY)
            assert ("Eilat" in found.text) is (one == name)


async def test_a_turn_that_was_merged_does_not_overwrite_the_one_that_stays(world: Harness) -> None:
    async with client_of(world.services) as api:
        one, two = [
            (await said(api, "c-1", name, answer=f"Dana lives in Haifa, near the port {name}."))
            for name in ("m-1", "m-2")
        ]
        winner = await world.services.memories.get(ADMIN, one["stored"]["memory_id"])
        row = world.items.inner._rows[point_id_of("admin", two["stored"]["memory_id"])]
        loser = archived(row.item, "merged", row.item.updated_at)
        row.hold(replace(loser, merged_into=winner.memory_id), loser.updated_at)
        again = await said(api, "c-1", "m-2", answer="She moved to Eilat last month, they say.")
        found = await world.services.memories.get(ADMIN, winner.memory_id)
        assert found.text == winner.text
        assert again["stored"]["memory_id"] == two["stored"]["memory_id"]
        alone = await world.services.memories.get(ADMIN, two["stored"]["memory_id"])
        assert (alone.memory_id, alone.status) == (two["stored"]["memory_id"], Status.ACTIVE)
        assert "Eilat" in alone.text


async def test_an_answer_that_was_deleted_is_not_brought_back(knowing: Harness) -> None:
    async with client_of(knowing.services) as api:
        stored = await asked_and_answered(knowing, api)
        await api.delete(f"/api/memory/items/{stored['memory_id']}")
        await knowing.drain()
        again = await asked_and_answered(knowing, api, "Other words of the answer to it, anyway.")
        assert (again["replaced"], again["duplicate"]) == (False, True)
