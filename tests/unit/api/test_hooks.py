"""The hooks over HTTP: the messages enriched, the turn kept once, its score waited for."""

from typing import Any

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.memory.item import MemoryItem, SourceType
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with

CONTEXT = "/api/hooks/context"
EXCHANGE = "/api/hooks/exchange"
SCORE = "/api/hooks/score"
ADMIN = ReadScope("admin")
QUESTION = "Where does Dana live these days, and since when? איפה דנה גרה?"
ANSWER = "Dana moved to Haifa in May, near the port, and she is happy there. דנה גרה בחיפה."

# What answers the question so well that an indexed search trusts it.
CERTAIN = "Dana lives in Haifa these days since May; דנה גרה בחיפה"


async def keep(
    world: Harness,
    memory_id: str = "mem-1",
    text: str = "Dana live in Haifa; דנה גרה בחיפה",
    **fields: Any,
) -> None:
    now = world.clock.now()
    item = an_item(user_id="admin", memory_id=memory_id, text=text, stored_at=now, **fields)
    await world.items.insert(item)


def turn(*messages: tuple[str, str], message_id: str = "m-1", **fields: Any) -> dict[str, Any]:
    return {
        "conversationId": "c-1",
        "messageId": message_id,
        "messages": [{"role": role, "content": content} for role, content in messages],
        **fields,
    }


ASKED = turn(("system", "Be kind."), ("user", QUESTION))
FINISHED = turn(("system", "Be kind."), ("user", QUESTION), ("assistant", ANSWER))


async def posted(api: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = await api.post(path, json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def kept_turns(world: Harness, user: str = "admin") -> list[MemoryItem]:
    where = ItemFilter(tags_any=("exchange",))
    page = await world.services.memories.page(ReadScope(user), where, ItemQuery())
    return list(page.items)


class TestContext:
    async def test_it_answers_what_the_first_client_reads(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await keep(world)
        found = await posted(api, CONTEXT, {"query": "Dana live", "sortBy": "recency"})
        assert set(found) >= {
            "contexts", "total", "query", "tiersSearched", "latencyMs", "confidence",
        }  # fmt: skip
        assert "success" not in found
        (hit,) = found["contexts"]
        assert hit["memoryId"] == "mem-1"
        assert set(hit) == {
            "tier", "content", "score", "memoryId", "docId", "chunkId", "preview", "createdAt",
        }  # fmt: skip
        assert found["scoring_required"] is False

    async def test_a_url_names_tiers_by_commas(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await keep(world)
        await keep(world, "mem-2", "Dana live in the north", tier=Tier.HISTORY)
        query = {"query": "Dana live", "tiers": "history,documents", "limit": "5"}
        response = await api.get(CONTEXT, params=query)
        assert response.status_code == 200
        found = response.json()
        assert [hit["memoryId"] for hit in found["contexts"]] == ["mem-2"]
        assert found["tiersSearched"] == ["history", "documents"]

    async def test_the_limit_is_capped(self, world: Harness, api: httpx.AsyncClient) -> None:
        for n in range(12):
            await keep(world, f"mem-{n}", f"Dana live in house {n}")
        assert len((await posted(api, CONTEXT, {"query": "Dana live"}))["contexts"]) == 10
        found = await posted(api, CONTEXT, {"query": "Dana live", "limit": 5_000})
        assert len(found["contexts"]) == 12

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"query": "x"},
            {"query": "  x "},
            {"query": "Dana", "tiers": ["datagov_schema"]},
            {"query": "Dana", "tiers": ["nothing"]},
            {"query": "Dana", "limit": 0},
            {"query": "Dana", "sortBy": "beauty"},
            {"query": "a" * 4_001},
        ],
    )
    async def test_bad_input_is_named(self, api: httpx.AsyncClient, body: dict[str, Any]) -> None:
        response = await api.post(CONTEXT, json=body)
        assert response.status_code == 422
        assert response.json()["error"] == response.json()["message"] != ""


class TestEnriching:
    async def test_the_context_stands_in_the_first_system_message(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await keep(world, text=CERTAIN)
        await world.drain()
        found = await posted(api, EXCHANGE, ASKED)
        first, second = found["messages"]
        assert first["content"].startswith("Be kind.\n\n<memory_context>\n")
        assert first["content"].endswith("\n</memory_context>")
        assert "[working:mem-1]" in first["content"]
        assert second == ASKED["messages"][1]
        assert found["stored"] is None
        meta = found["memoryMeta"]
        assert (meta["schema_version"], meta["conversation_id"]) == ("v1", "c-1")
        assert meta["assistant_message_id"] == "m-1"
        assert [one["memory_id"] for one in meta["citations"]] == ["mem-1"]

    async def test_twice_replaces_the_block(self, world: Harness, api: httpx.AsyncClient) -> None:
        await keep(world)
        once = await posted(api, EXCHANGE, ASKED)
        twice = await posted(api, EXCHANGE, {**ASKED, "messages": once["messages"]})
        text = twice["messages"][0]["content"]
        assert (text.count("<memory_context>"), text.count("Be kind.")) == (1, 1)

    async def test_a_new_system_message_keeps_the_fields_of_the_others(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await keep(world)
        messages = [{"role": "user", "content": QUESTION, "name": "dana", "id": 7}]
        found = await posted(api, EXCHANGE, {**ASKED, "messages": messages})
        assert found["messages"][0]["role"] == "system"
        assert found["messages"][1:] == messages

    async def test_parts_and_calls_of_messages_come_back(self, api: httpx.AsyncClient) -> None:
        messages = [
            {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            {"role": "tool", "content": "{}", "tool_call_id": "1"},
        ]
        found = await posted(api, EXCHANGE, {**ASKED, "messages": messages})
        assert found["messages"] == messages

    async def test_an_old_block_goes_and_the_fields_of_the_others_stay(
        self, api: httpx.AsyncClient
    ) -> None:
        old = {"role": "system", "content": "<memory_context>\n[1] old\n</memory_context>"}
        rest = [
            {"role": "user", "content": QUESTION, "name": "dana"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            {"role": "tool", "content": "{}", "tool_call_id": "1"},
        ]
        kind = {"role": "system", "content": f"Be kind.\n\n{old['content']}", "name": "s"}
        found = await posted(api, EXCHANGE, {**ASKED, "messages": [old, kind, *rest]})
        assert found["messages"] == [{**kind, "content": "Be kind."}, *rest]

    async def test_nothing_known_adds_nothing(self, api: httpx.AsyncClient) -> None:
        found = await posted(api, EXCHANGE, ASKED)
        assert found["messages"] == ASKED["messages"]

    @pytest.mark.parametrize(("rounds", "left"), [(2, ["web_search"]), (3, [])])
    async def test_a_model_that_called_tools_so_often_must_answer(
        self, api: httpx.AsyncClient, rounds: int, left: list[str]
    ) -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
        for number in range(rounds):
            function = {"name": "web_search", "arguments": "{}"}
            call = {"id": f"c{number}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            result = {"role": "tool", "tool_call_id": f"c{number}", "content": "x" * 20_000}
            messages.append(result)
        body = {**turn(), "messages": messages, "tools": ["web_search"], "includePrompt": True}
        found = await posted(api, EXCHANGE, body)
        assert found["gating"]["allowed_tools"] == left
        assert (found["gating"]["reason_code"] == "CHAIN_DEPTH_REACHED") == (not left)
        named = [one["name"] for one in found["prompt"]["parts"]]
        assert ("tool_rules" in named) == bool(left)
        # What is too long for the model is cut, and says so.
        results = [one for one in found["messages"] if one["role"] == "tool"]
        assert len(results) == rounds
        for one in results:
            assert len(one["content"]) < 12_001
            assert "נחתך כאן" in one["content"] or "Cut here" in one["content"]
        asked_anew = [*messages, {"role": "user", "content": "And Omri?"}]
        found = await posted(api, EXCHANGE, {**body, "messages": asked_anew})
        assert found["gating"]["allowed_tools"] == ["web_search"]

    async def test_tools_are_gated(self, world: Harness, api: httpx.AsyncClient) -> None:
        for n in range(6):
            await keep(world, f"mem-{n}", f"Dana live in house {n}")
        await world.drain()
        tools = ["web_search", {"type": "function", "function": {"name": "search_memory"}}]
        body = turn(("user", "Dana live"), tools=tools)
        found = (await posted(api, EXCHANGE, body))["gating"]
        assert found["reason_code"] == "HIGH_CONFIDENCE_REDUCTION"
        assert (found["allowed_tools"], found["reduced_count"]) == (["search_memory"], 1)
        found = (await posted(api, EXCHANGE, {**body, "tools": []}))["gating"]
        assert (found["allowed_tools"], found["reduced_count"]) == (None, 0)
        found = (await posted(api, EXCHANGE, {**body, "tools": ["web_search"]}))["gating"]
        assert (found["allowed_tools"], found["reduced_count"]) == ([], 1)

    @pytest.mark.parametrize(
        "change",
        [
            {"conversationId": None},
            {"conversationId": ""},
            {"messageId": None},
            {"messages": []},
            {"messages": None},
            {"messages": [{"role": "assistant", "content": ANSWER}]},
            {"messages": [{"role": "user", "content": " "}]},
            {"messages": [{"role": "user", "content": "\u200b\u200f"}]},
            {"messages": [{"role": "user", "content": 7}]},
            {"limit": 0},
        ],
    )
    async def test_bad_input_is_named(self, api: httpx.AsyncClient, change: dict[str, Any]) -> None:
        response = await api.post(EXCHANGE, json={**FINISHED, **change})
        assert response.status_code == 422
        assert response.json()["error"] == response.json()["message"] != ""


class TestKeepingATurn:
    async def test_it_is_one_working_memory_with_its_provenance(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        found = await posted(api, EXCHANGE, FINISHED)
        (item,) = await kept_turns(world)
        assert item.text == f"User: {QUESTION}\nAssistant: {ANSWER}"
        assert (item.tier, item.memory_id) == (Tier.WORKING, found["stored"]["memory_id"])
        assert item.source.type is SourceType.ASSISTANT
        assert (item.source.conversation_id, item.source.message_id) == ("c-1", "m-1")
        assert item.stored_by == "local"
        assert (found["stored"]["scoring_required"], found["scoring_required"]) == (True, True)
        assert found["scoring"]["messageId"] == "m-1"

    async def test_the_same_call_again_changes_nothing(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        first = await posted(api, EXCHANGE, FINISHED)
        again = await posted(api, EXCHANGE, FINISHED)
        assert again["stored"] == {**first["stored"], "duplicate": True}
        assert again["scoring"] == first["scoring"]
        (item,) = await kept_turns(world)
        assert item.quality.mentioned_count == 1
        session = await world.sessions.get(ADMIN, "c-1")
        assert session is not None
        assert session.exchanges == 1
        assert await world.exchanges.waiting() == 1

    @pytest.mark.parametrize("said_by", ["flag", "finish_reason"])
    async def test_an_answer_that_was_cut_is_kept_and_not_learned(
        self, world: Harness, api: httpx.AsyncClient, said_by: str
    ) -> None:
        *before, last = FINISHED["messages"]
        body = {**FINISHED, "interrupted": True}
        if said_by == "finish_reason":
            body = {**FINISHED, "messages": [*before, {**last, "finish_reason": "length"}]}
        found = await posted(api, EXCHANGE, body)
        assert found["messages"][-1]["content"] == ANSWER
        assert not found["stored"]["scoring_required"]
        (item,) = await kept_turns(world)
        assert item.text == f"User: {QUESTION}"
        learned = world.exchanges.inner._rows.values()
        assert [row.exchange.answer for row in learned] == [""]

    async def test_another_text_of_the_same_message_takes_its_place(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await posted(api, EXCHANGE, FINISHED)
        other = turn(("user", QUESTION), ("assistant", f"Another answer. {ANSWER}"))
        found = await posted(api, EXCHANGE, other)
        assert found["stored"]["replaced"]
        (item,) = await kept_turns(world)
        assert item.text.endswith(f"Assistant: Another answer. {ANSWER}")

    async def test_injected_text_marks_and_thoughts_are_left_out(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await keep(world, text="Dana live in Haifa since the month of May")
        await posted(api, EXCHANGE, ASKED)
        answer = (
            "<think>hmm</think>Dana live in Haifa since the month of May. "
            "היא קנתה סירה קטנה ולבנה בנמל של חיפה. <!-- MEM: 9👍 -->"
        )
        found = await posted(api, EXCHANGE, turn(("user", QUESTION), ("assistant", answer)))
        (item,) = await kept_turns(world)
        assert item.text == (f"User: {QUESTION}\nAssistant: היא קנתה סירה קטנה ולבנה בנמל של חיפה.")
        assert found["stored"]["skipped_positions"] == [9]
        assert item.tags == ("exchange", "memory_assisted")

    async def test_it_waits_to_be_learned_from(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await keep(world)
        await posted(api, EXCHANGE, ASKED)
        found = await posted(api, EXCHANGE, FINISHED)
        (claimed,) = await world.exchanges.claim(token="t", limit=5, claim_s=9.0)
        exchange = claimed.exchange
        assert (exchange.user_text, exchange.answer) == (QUESTION, ANSWER)
        assert exchange.memory_id == found["stored"]["memory_id"]
        assert exchange.shown == ("mem-1",)
        assert exchange.injected
        assert exchange.receipt_id is not None

    @pytest.mark.parametrize(
        "role", ["User", "system", "tool", "function", "developer", "assistant", "human", "model"]
    )
    async def test_every_role_of_real_programs_is_taken(
        self, api: httpx.AsyncClient, role: str
    ) -> None:
        body = turn(("user", QUESTION), (role, "x"), ("assistant", ANSWER))
        assert (await posted(api, EXCHANGE, body))["stored"] is not None

    async def test_tools_of_the_turn_are_tagged(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        calls = [{"function": {"name": "web_search"}}]
        messages = [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "content": "{}"},
            {"role": "assistant", "content": ANSWER},
        ]
        body = {**FINISHED, "messages": messages, "toolsCalled": ["calculator"]}
        await posted(api, EXCHANGE, body)
        (item,) = await kept_turns(world)
        assert set(item.tags) == {
            "exchange", "tool_assisted", "tool:calculator", "tool:web_search",
        }  # fmt: skip

    @pytest.mark.parametrize(("user", "assistant"), [("human", "ai"), ("USER", "model")])
    async def test_calls_of_the_turn_before_are_not_of_this_one(
        self, world: Harness, api: httpx.AsyncClient, user: str, assistant: str
    ) -> None:
        calls = [{"function": {"name": "web_search"}}]
        messages = [
            {"role": user, "content": "What is new in Haifa?"},
            {"role": assistant, "content": "I looked.", "tool_calls": calls},
            {"role": user, "content": QUESTION},
            {"role": assistant, "content": ANSWER},
        ]
        await posted(api, EXCHANGE, {**FINISHED, "messages": messages})
        (item,) = await kept_turns(world)
        assert item.tags == ("exchange",)

    async def test_a_very_long_turn_is_cut_and_says_so(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        long = turn(("user", QUESTION), ("assistant", "word " * 30_000))
        found = await posted(api, EXCHANGE, long)
        assert found["stored"]["truncated"]
        (item,) = await kept_turns(world)
        assert len(item.text) <= 100_000

    async def test_a_deleted_turn_does_not_come_back(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        found = await posted(api, EXCHANGE, FINISHED)
        memory_id = found["stored"]["memory_id"]
        await api.delete(f"/api/memory/items/{memory_id}")
        again = await posted(api, EXCHANGE, FINISHED)
        assert again["stored"]["memory_id"] == memory_id
        assert (await api.get(f"/api/memory/items/{memory_id}")).status_code == 404


class TestAttribution:
    async def test_marks_move_what_the_answer_was_given_with(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await keep(world)
        asked = await posted(api, EXCHANGE, ASKED)
        assert "MEM:" in asked["messages"][0]["content"]
        body = turn(("user", QUESTION), ("assistant", f"{ANSWER} <!-- MEM: 1👍 5👎 -->"))
        found = await posted(api, EXCHANGE, body)
        assert (found["stored"]["attributed"], found["stored"]["skipped_positions"]) == (1, [5])
        assert found["stored"]["reason"] == "scored"
        assert found["scoring_required"] is False
        again = await posted(api, EXCHANGE, body)
        assert again["stored"]["duplicate"]
        item = await world.items.get(ADMIN, "mem-1")
        assert item is not None
        assert (item.stats.uses, item.stats.worked_count) == (1, 1)

    async def test_each_mark_is_its_own_outcome(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        for n in range(3):
            await keep(world, f"mem-{n}", f"Dana live in house {n}")
        asked = await posted(api, EXCHANGE, turn(("user", "Dana live where? איפה?")))
        shown = {
            line["position"]: line["memory_id"]
            for line in asked["memoryMeta"]["retrieval"]["search_position_map"]["by_position"]
        }
        marks = "<!-- MEM: 1👍 2👎 3➖ -->"
        await posted(
            api, EXCHANGE, turn(("user", "Dana live where? איפה?"), ("assistant", ANSWER + marks))
        )
        stats = {}
        for position, memory_id in shown.items():
            item = await world.items.get(ADMIN, memory_id)
            assert item is not None
            stats[position] = (
                item.stats.worked_count, item.stats.failed_count, item.stats.unknown_count,
            )  # fmt: skip
        assert stats == {1: (1, 0, 0), 2: (0, 1, 0), 3: (0, 0, 1)}

    async def test_without_a_context_no_mark_means_anything(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await keep(world)
        body = turn(("user", QUESTION), ("assistant", f"{ANSWER} <!-- MEM: 1👍 -->"))
        found = await posted(api, EXCHANGE, body)
        assert (found["stored"]["attributed"], found["stored"]["skipped_positions"]) == (0, [1])
        assert found["scoring_required"] is True

    async def test_it_can_be_switched_off(self) -> None:
        world = Harness.ready(settings_with(hooks={"attribution": False}))
        await keep(world)
        async with client_of(world.services) as api:
            found = await posted(api, EXCHANGE, ASKED)
        assert "MEM:" not in found["messages"][0]["content"]


class TestOwedScores:
    async def owed(self, api: httpx.AsyncClient) -> bool:
        found = await posted(api, CONTEXT, {"query": "Dana live", "conversationId": "c-1"})
        scoring = found["scoring"]
        assert found["scoring_required"] is (scoring["messageId"] is not None)
        return bool(found["scoring_required"])

    async def test_a_turn_owes_until_it_is_scored(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await keep(world)
        await posted(api, EXCHANGE, ASKED)
        await posted(api, EXCHANGE, FINISHED)
        assert await self.owed(api)
        next_turn = turn(("user", "And her brother, where is he?"), message_id="m-2")
        found = await posted(api, EXCHANGE, {**next_turn, "tools": ["record_response"]})
        assert found["scoring"]["messageId"] == "m-1"
        assert (found["required_scoring"], found["current_state"]) == (True, "unscored")
        assert "record_response" in found["messages"][0]["content"]
        score = {"messageId": "m-1", "conversationId": "c-1", "score": 1, "memoryIds": ["mem-1"]}
        scored = await posted(api, SCORE, score)
        assert (scored["success"], scored["updated"]) == (True, 1)
        assert set(scored) >= {"updated", "success", "messageId", "timestamp"}
        assert not await self.owed(api)

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            (
                "/api/memory/record_response",
                {"key_takeaway": "Dana likes Haifa", "outcome": "worked", "conversation_id": "c-1"},
            ),
            (
                "/api/memory/feedback",
                {"messageId": "m-1", "conversationId": "c-1", "score": -1, "citations": ["mem-1"]},
            ),
            ("/api/memory/feedback", {"messageId": "m-1", "score": 0}),
            ("/api/memory/score", {"scores": {"1": "worked"}, "conversation_id": "c-1"}),
            ("/api/memory/outcomes", {"outcome": "worked", "conversation_id": "c-1"}),
            (SCORE, {"messageId": "m-1", "score": 0}),
        ],
    )
    async def test_every_way_to_score_pays(
        self, world: Harness, api: httpx.AsyncClient, path: str, body: dict[str, Any]
    ) -> None:
        await keep(world)
        await posted(api, EXCHANGE, ASKED)
        await posted(api, EXCHANGE, FINISHED)
        await posted(api, path, body)
        assert not await self.owed(api)
        state = (await api.get(SCORE, params={"messageId": "m-1"})).json()
        assert (state["scored"], state["required"]) == (True, False)

    async def test_a_weak_signal_does_not_pay(self, world: Harness, api: httpx.AsyncClient) -> None:
        await keep(world)
        await posted(api, EXCHANGE, ASKED)
        await posted(api, EXCHANGE, FINISHED)
        guess = {"source": "detector", "confidence": 0.9}
        body = {"outcome": "worked", "conversation_id": "c-1", "signal": guess}
        await posted(api, "/api/memory/outcomes", body)
        assert await self.owed(api)

    async def test_a_turn_that_scored_itself_owes_nothing(self, api: httpx.AsyncClient) -> None:
        named = {"toolsCalled": ["mcp__m__record_response"]}
        found = await posted(api, EXCHANGE, {**FINISHED, **named})
        assert found["stored"]["reason"] == "scored"
        assert not await self.owed(api)

    async def test_one_call_that_is_told_twice_is_one_call(self, api: httpx.AsyncClient) -> None:
        await posted(api, EXCHANGE, FINISHED)
        score = {"function": {"name": "record_response"}}
        messages = [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": None, "tool_calls": [score]},
            {"role": "tool", "content": "{}"},
            {"role": "assistant", "content": f"{ANSWER} Indeed."},
        ]
        named = {"toolsCalled": ["mcp__m__record_response"]}
        body = {**FINISHED, "messageId": "m-2", "messages": messages, **named}
        found = await posted(api, EXCHANGE, body)
        assert found["stored"]["reason"] == "not_scored"
        assert found["scoring"]["messageId"] == "m-2"
        messages[1]["tool_calls"] = [score, score]
        found = await posted(api, EXCHANGE, {**body, "messageId": "m-3"})
        assert found["stored"]["reason"] == "scored"
        assert not await self.owed(api)

    async def test_a_trivial_turn_is_kept_and_owes_nothing(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        found = await posted(api, EXCHANGE, turn(("user", "שמי דנה"), ("assistant", "שלום דנה")))
        assert (found["stored"]["scoring_required"], found["stored"]["reason"]) == (
            False, "trivial",
        )  # fmt: skip
        assert [item.text for item in await kept_turns(world)] == [
            "User: שמי דנה\nAssistant: שלום דנה"
        ]


class TestScores:
    async def state(self, api: httpx.AsyncClient, **query: str) -> dict[str, Any]:
        response = await api.get(SCORE, params={"messageId": "m-1", **query})
        assert response.status_code == 200
        found: dict[str, Any] = response.json()
        return found

    async def test_the_state_is_the_real_one(self, world: Harness, api: httpx.AsyncClient) -> None:
        unknown = await self.state(api)
        assert (unknown["scored"], unknown["timestamp"], unknown["conversationId"]) == (
            False, None, None,
        )  # fmt: skip
        found = await posted(api, EXCHANGE, FINISHED)
        waiting = await self.state(api)
        assert (waiting["scored"], waiting["required"], waiting["conversationId"]) == (
            False, True, "c-1",
        )  # fmt: skip
        assert waiting["memoryId"] == found["stored"]["memory_id"]
        await posted(api, SCORE, {"messageId": "m-1", "conversationId": "c-1", "score": -1})
        scored = await self.state(api, conversationId="c-1")
        assert (scored["scored"], scored["required"], scored["score"]) == (True, False, -1)
        assert scored["timestamp"] is not None
        assert not (await self.state(api, conversationId="c-2"))["scored"]

    async def test_the_same_score_again_counts_once(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await keep(world)
        body = {"messageId": "m-1", "conversationId": "c-1", "score": 1, "memoryIds": ["mem-1"]}
        first = await posted(api, SCORE, body)
        again = await posted(api, SCORE, body)
        assert (first["updated"], again["updated"], again["duplicate"]) == (1, 0, True)
        item = await world.items.get(ADMIN, "mem-1")
        assert item is not None
        assert item.stats.uses == 1

    async def test_without_ids_it_is_about_what_the_answer_was_given_with(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        await keep(world, text=CERTAIN)
        await world.drain()
        await posted(api, EXCHANGE, ASKED)
        await posted(api, EXCHANGE, FINISHED)
        found = await posted(api, SCORE, {"messageId": "m-1", "score": -1, "memoryIds": []})
        assert found["updated"] == 1
        item = await world.items.get(ADMIN, "mem-1")
        assert item is not None
        assert item.stats.failed_count == 1

    async def test_unknown_memories_are_skipped(self, api: httpx.AsyncClient) -> None:
        body = {"messageId": "m-1", "conversationId": "c-1", "score": 1, "memoryIds": ["gone"]}
        found = await posted(api, SCORE, body)
        assert (found["updated"], found["skipped"]) == (
            0, [{"memory_id": "gone", "reason": "gone"}],
        )  # fmt: skip

    @pytest.mark.parametrize(
        "change",
        [
            {"score": 2},
            {"score": True},
            {"score": 1.0},
            {"score": None},
            {"messageId": ""},
            {"messageId": None},
            {"memoryIds": ["bad id"]},
        ],
    )
    async def test_bad_input_is_named(self, api: httpx.AsyncClient, change: dict[str, Any]) -> None:
        body = {"messageId": "m-1", "score": 1, "memoryIds": [], **change}
        response = await api.post(SCORE, json=body)
        assert response.status_code == 422
        assert response.json()["error"] == response.json()["message"] != ""
        assert (await api.get(SCORE)).status_code == 422


class TestTenancy:
    async def test_users_do_not_meet(self, world: Harness, api: httpx.AsyncClient) -> None:
        await posted(api, EXCHANGE, FINISHED)
        headers = {"X-User-Id": "noa"}
        state = (await api.get(SCORE, params={"messageId": "m-1"}, headers=headers)).json()
        assert state["conversationId"] is None
        response = await api.post(EXCHANGE, json=FINISHED, headers=headers)
        assert not response.json()["stored"]["duplicate"]
        assert len(await kept_turns(world, "noa")) == 1

    async def test_a_guest_scores_only_what_it_was_shown(self) -> None:
        world = Harness.ready(settings_with(auth={"mode": "keys"}))
        keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
        key, _ = await keys.create("guest", user_id="admin", scopes=("read", "write"))
        await keep(world)
        async with client_of(world.services, {"Authorization": f"Bearer {key}"}) as api:
            body = {"messageId": "m-1", "score": 1, "memoryIds": ["mem-1"]}
            found = await posted(api, SCORE, body)
            assert [one["reason"] for one in found["skipped"]] == ["not_shown"]
