"""Chats, models and vectors with the real client of OpenAI, before a scripted model."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from openai import AsyncOpenAI

from rayapp.api.app import create_api
from rayapp.api.hebrew_errors import SENTENCES
from rayapp.assistant.completions.rules import asked_of
from rayapp.core.errors import StoreDown
from rayapp.inference.chat.rules.hijack import fallback_of
from rayapp.inference.ports import Message
from rayapp.learning.records import Recorder
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support import chat_server as replies
from tests.support.builders import an_item
from tests.support.chat_server import ChatServer, Reply, chat_server
from tests.support.harness import Harness
from tests.support.socket_server import listening
from tests.unit.api.serving import json_bytes, settings_with

ADMIN = ReadScope("admin")
KNOWN = "Dana lives in Haifa near the port; דנה גרה בחיפה ליד הנמל"
ASKED = "Where does Dana live these days? איפה דנה גרה?"
SAID = "Dana lives in Haifa, near the port, as she told you in May. דנה גרה בחיפה."
# A turn whose answer did not come, or broke off.
UNANSWERED = f"User: {ASKED}"
MARKED = f"{SAID}\n<!-- MEM: 1👍 -->"
WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": {}}}


class Chat:
    """A service in front of a scripted model, and a client of it."""

    def __init__(self, world: Harness, server: ChatServer, client: AsyncOpenAI) -> None:
        self.world, self.server, self.client = world, server, client

    async def ask(self, *messages: str, **fields: Any) -> Any:
        rows: list[Any] = [
            {"role": ("user", "assistant")[at % 2], "content": text}
            for at, text in enumerate(messages)
        ]
        fields = {"model": "rayapp", "user": "c-1", **fields}
        return await self.client.chat.completions.create(messages=rows, **fields)

    @property
    def prompt(self) -> str:
        return self.server.requests[-1].text

    async def messages(self, conversation_id: str) -> list[dict[str, Any]]:
        """As a person reads them again."""
        base = str(self.client.base_url).removesuffix("/v1/")
        async with httpx.AsyncClient(base_url=base) as http:
            path = f"/api/memory/conversations/{conversation_id}/messages"
            answer = await http.get(path)
        found: list[dict[str, Any]] = answer.json()["messages"]
        return found

    async def turns(self) -> list[str]:
        found = await self.world.items.page(
            ADMIN, ItemFilter(tiers=(Tier.WORKING,)), ItemQuery(limit=50)
        )
        return [item.text for item in found.items]


@asynccontextmanager
async def chat_of(
    script: replies.Script | None = None, *, model: bool = True, **models: Any
) -> AsyncIterator[Chat]:
    async with chat_server(script) as server:
        where = {"base_url": server.url, "model": "scripted"} if model else {}
        world = Harness.ready(settings_with(models={**where, **models}))
        now = world.clock.now()
        await world.items.insert(
            an_item(
                user_id="admin", memory_id="mem-1", text=KNOWN, tier=Tier.HISTORY, stored_at=now
            )
        )
        async with listening(create_api(world.services)) as url:
            client = AsyncOpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0)
            async with client:
                yield Chat(world, server, client)
        await world.services.completions.close()


async def test_the_model_is_told_what_is_known_and_the_turn_is_kept() -> None:
    async with chat_of(replies.in_turn(replies.good(MARKED))) as chat:
        found = await chat.ask(ASKED, temperature=0.3)
        assert found.choices[0].message.content == SAID
        assert KNOWN in chat.prompt
        sent = chat.server.requests[-1]
        assert sent.path == "/v1/chat/completions"
        assert sent.body["model"] == "scripted"
        assert sent.body["temperature"] == 0.3
        assert sent.body["messages"][-1] == {"role": "user", "content": ASKED}
        (turn,) = await chat.turns()
        assert ASKED in turn
        assert "MEM:" not in turn
        stats = (await chat.world.services.memories.get(ADMIN, "mem-1")).stats
        assert stats.success_count == 1.0


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085"])
async def test_a_separator_within_a_piece_ends_no_line_of_the_stream(separator: str) -> None:
    async with chat_of(replies.in_turn(replies.streamed(f"first{separator}", "second"))) as chat:
        stream = await chat.ask(ASKED, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(pieces) == f"first{separator}second"


async def test_headers_say_what_a_score_needs() -> None:
    async with chat_of(replies.in_turn(replies.good(SAID))) as chat:
        raw = await chat.client.chat.completions.with_raw_response.create(
            model="rayapp",
            messages=[{"role": "user", "content": ASKED}],
            extra_headers={"X-Conversation-Id": "c-9"},
        )
        assert raw.headers["x-conversation-id"] == "c-9"
        assert raw.headers["x-memory"] == "on"
        async with httpx.AsyncClient() as plain:
            base = str(chat.client.base_url).removesuffix("/v1/")
            body = {"conversation_id": "c-9", "message_id": raw.headers["x-message-id"], "score": 1}
            answer = await plain.post(f"{base}/api/hooks/score", json=body)
        assert answer.json()["updated"] == 1


async def test_an_answer_streams_without_marks_and_is_kept_at_its_end() -> None:
    pieces = [MARKED[at : at + 5] for at in range(0, len(MARKED), 5)]
    async with chat_of(replies.in_turn(replies.streamed(*pieces))) as chat:
        stream = await chat.ask(ASKED, stream=True)
        chunks = [chunk async for chunk in stream]
        said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert said == SAID
        assert len(chunks) == len(pieces) + 2
        assert chunks[-1].choices[0].finish_reason == "stop"
        assert len(await chat.turns()) == 1


async def test_an_answer_that_is_made_again_takes_the_place_of_the_first() -> None:
    other = "She moved to Akko last week and is very happy there by the sea."
    async with chat_of(replies.in_turn(replies.good(SAID), replies.good(other))) as chat:
        await chat.ask(ASKED)
        await chat.ask(ASKED)
        (turn,) = await chat.turns()
        assert other in turn
        page = await chat.world.services.conversations.messages(ADMIN, "c-1", limit=20)
        assert [one.model for one in page.turns] == ["scripted"]


async def test_a_call_of_a_tool_is_no_turn_and_its_result_is_one() -> None:
    def script(request: replies.ChatRequest) -> Reply:
        if request.body["messages"][-1]["role"] == "tool":
            return replies.good(SAID)
        return replies.tool_call("weather")

    async with chat_of(script) as chat:
        asked: list[Any] = [{"role": "user", "content": ASKED}]
        create = chat.client.chat.completions.create
        first = await create(model="m", user="c-1", messages=asked, tools=[WEATHER])
        (call,) = first.choices[0].message.tool_calls or ()
        assert await chat.turns() == []
        asked.append(first.choices[0].message.model_dump(exclude_none=True))
        asked.append({"role": "tool", "tool_call_id": call.id, "content": "sunny"})
        await create(model="m", user="c-1", messages=asked, tools=[WEATHER])
        assert len(await chat.turns()) == 1
        sent = chat.server.requests[-1].body
        assert [one["role"] for one in sent["messages"]] == ["system", "user", "assistant", "tool"]
        assert sent["tools"] == [WEATHER]


@pytest.mark.parametrize(("depth", "rounds"), [(3, 3), (1, 1), (0, 6)])
async def test_a_model_that_calls_on_and_on_must_answer(depth: int, rounds: int) -> None:
    def script(request: replies.ChatRequest) -> Reply:
        return replies.tool_call("weather") if request.body.get("tools") else replies.good(SAID)

    async with chat_of(script, chain_depth=depth) as chat:
        asked: list[Any] = [{"role": "user", "content": ASKED}]
        create = chat.client.chat.completions.create
        for _ in range(rounds):
            said = (await create(model="m", user="c-1", messages=asked, tools=[WEATHER])).choices[0]
            (call,) = said.message.tool_calls or ()
            asked.append(said.message.model_dump(exclude_none=True))
            asked.append({"role": "tool", "tool_call_id": call.id, "content": "sunny"})
        last = (await create(model="m", user="c-1", messages=asked, tools=[WEATHER])).choices[0]
        assert bool(last.message.tool_calls) == (depth == 0)
        assert len(await chat.turns()) == (depth > 0)


@pytest.mark.parametrize(
    ("question", "cut"), [(ASKED, "נחתך כאן"), ("Where does Dana live these days?", "Cut here")]
)
async def test_a_result_that_is_too_long_is_cut_for_the_model(question: str, cut: str) -> None:
    async with chat_of(replies.in_turn(replies.good(SAID))) as chat:
        call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        asked: list[Any] = [
            {"role": "user", "content": question},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "sunny " * 5_000},
        ]
        await chat.client.chat.completions.create(model="m", messages=asked, tools=[WEATHER])
        sent = chat.server.requests[-1].body["messages"][-1]
        assert cut in sent["content"]
        assert 7_000 < len(sent["content"]) <= 8_000
        assert {**sent, "content": asked[-1]["content"]} == asked[-1]


async def test_a_streamed_call_of_a_tool_is_no_turn() -> None:
    async with chat_of(replies.in_turn(replies.streamed("Let me look", calls="weather"))) as chat:
        stream = await chat.ask(ASKED, stream=True, tools=[WEATHER])
        chunks = [chunk async for chunk in stream]
        assert chunks[-1].choices[0].finish_reason == "tool_calls"
        assert await chat.turns() == []


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_the_model_wrote_into_its_text_is_a_call(*, stream: bool) -> None:
    said = 'I look.\n{"tool_calls": [{"name": "weather", "arguments": {"city": "חיפה"}}]}'
    pieces = [said[at : at + 4] for at in range(0, len(said), 4)]
    reply = replies.streamed(*pieces) if stream else replies.good(said)
    async with chat_of(replies.in_turn(reply, reply)) as chat:
        found = await chat.ask(ASKED, stream=stream, tools=[WEATHER])
        if stream:
            deltas = [one.choices[0] async for one in found]
            text = "".join(one.delta.content or "" for one in deltas)
            calls = [call for one in deltas for call in one.delta.tool_calls or ()]
            finish = deltas[-1].finish_reason
        else:
            (choice,) = found.choices
            text, calls, finish = choice.message.content, choice.message.tool_calls, "tool_calls"
            assert choice.finish_reason == finish
        assert (text, finish) == ("I look.\n", "tool_calls")
        (call,) = calls
        assert call.function.name == "weather"
        assert json.loads(call.function.arguments) == {"city": "חיפה"}
        assert await chat.turns() == []
        # Of a tool that nobody offered it is text.
        found = await chat.ask(ASKED, stream=stream)
        if stream:
            text = "".join([one.choices[0].delta.content or "" async for one in found])
        else:
            text = found.choices[0].message.content
        assert text == said


async def test_where_memory_is_away_the_model_answers_without_it() -> None:
    async with chat_of(replies.in_turn(replies.good(SAID))) as chat:

        async def away(*_: Any) -> Any:
            raise StoreDown("away")

        chat.world.services.hooks.exchange = away  # type: ignore[method-assign]
        raw = await chat.client.chat.completions.with_raw_response.create(
            model="rayapp", messages=[{"role": "user", "content": ASKED}]
        )
        assert raw.headers["x-memory"] == "store_down"
        assert raw.parse().choices[0].message.content == SAID
        assert KNOWN not in chat.prompt


async def test_users_do_not_meet() -> None:
    async with chat_of(replies.in_turn(replies.good(SAID))) as chat:
        await chat.ask(ASKED, extra_headers={"X-User-Id": "omri"})
        assert KNOWN not in chat.prompt
        assert await chat.turns() == []


async def test_without_a_model_it_says_what_to_set() -> None:
    async with chat_of(model=False) as chat:
        with pytest.raises(openai.APIStatusError) as refused:
            await chat.ask(ASKED)
        assert refused.value.status_code == 503
        assert "set models.base_url and models.model" in refused.value.message
        with pytest.raises(openai.APIStatusError, match=r"models\.base_url"):
            await chat.client.models.list()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_of_the_model_comes_with_its_reason(*, stream: bool) -> None:
    script = replies.in_turn(replies.status(400, "max_tokens is too large"))
    async with chat_of(script) as chat:
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            await chat.ask(ASKED, stream=stream)
        assert "max_tokens is too large" in refused.value.message
        assert await chat.turns() == []


@pytest.mark.parametrize("reply", [replies.garbage(), replies.html(), replies.shape([1])])
async def test_a_broken_model_is_a_503_with_one_sentence(reply: Reply) -> None:
    async with chat_of(replies.in_turn(reply)) as chat:
        with pytest.raises(openai.InternalServerError) as broken:
            await chat.ask(ASKED)
        assert "models" in broken.value.response.json()["error"]["message"]


@pytest.mark.parametrize("reply", [replies.good(SAID), replies.shape({"error": {"message": "no"}})])
async def test_a_model_that_does_not_stream_is_no_empty_answer(reply: Reply) -> None:
    async with chat_of(replies.in_turn(reply)) as chat:
        with pytest.raises(openai.APIError, match=r"models\.base_url"):
            async for _ in await chat.ask(ASKED, stream=True):
                pass
        assert await chat.turns() == [UNANSWERED]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("code", [500, 502])
async def test_a_model_that_fails_is_a_503_with_what_it_says(code: int, *, stream: bool) -> None:
    async with chat_of(replies.in_turn(replies.status(code, "the model crashed"))) as chat:
        with pytest.raises(openai.InternalServerError) as failed:
            await chat.ask(ASKED, stream=stream)
        assert failed.value.status_code == 503
        assert "the model crashed" in failed.value.message


PIECES = [f"piece {at} " for at in range(10)]


def broken_off(*, reset: bool) -> Reply:
    """Ten chunks of an answer; then the connection is reset, or ends as if all were said."""
    whole = replies.streamed(*PIECES)
    end = whole.body.rindex(b"data: {")
    return replace(whole, body=whole.body[:end], reset=reset)


@pytest.mark.parametrize("reset", [True, False])
async def test_a_stream_that_breaks_ends_with_an_error_and_keeps_the_question(
    *, reset: bool
) -> None:
    """The half answer is marked, and nothing is learned from it."""
    async with chat_of(replies.in_turn(broken_off(reset=reset))) as chat:
        with pytest.raises(openai.APIError):
            async for _ in await chat.ask(ASKED, stream=True):
                pass
        assert await chat.turns() == [UNANSWERED]
        question, answer = await chat.messages("c-1")
        assert (question["content"], "interrupted" in question) == (ASKED, False)
        assert answer["interrupted"] is True
        assert answer["content"].startswith("piece 0 piece 1")
        learned = chat.world.exchanges.inner._rows.values()
        assert [(row.exchange.user_text, row.exchange.answer) for row in learned] == [(ASKED, "")]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_that_was_cut_is_shown_and_not_learned(
    *, stream: bool, reason: str
) -> None:
    whole = replies.streamed(*PIECES) if stream else replies.good(SAID)
    cut = replace(whole, body=whole.body.replace(b'"stop"', f'"{reason}"'.encode()))
    assert cut != whole
    async with chat_of(replies.in_turn(cut)) as chat:
        told = await chat.ask(ASKED, stream=stream)
        if stream:
            async for _ in told:
                pass
        else:
            assert told.choices[0].message.content == SAID
        assert await chat.turns() == [UNANSWERED]
        _, answer = await chat.messages("c-1")
        assert answer["interrupted"] is True
        learned = chat.world.exchanges.inner._rows.values()
        assert [(row.exchange.user_text, row.exchange.answer) for row in learned] == [(ASKED, "")]


async def test_an_answer_takes_the_place_of_one_that_broke_off_and_not_the_reverse() -> None:
    script = replies.in_turn(
        broken_off(reset=False), replies.streamed(SAID), broken_off(reset=False)
    )
    async with chat_of(script) as chat:
        for breaks in (True, False, True):
            with contextlib.suppress(openai.APIError):
                async for _ in await chat.ask(ASKED, stream=True):
                    pass
            question, answer = await chat.messages("c-1")
            assert question["content"] == ASKED
            first = breaks and "interrupted" in answer
            assert first or answer["content"] == SAID
        (turn,) = await chat.turns()
        assert "near the port, as she told you in May" in turn


async def test_the_question_of_a_reader_who_leaves_is_kept() -> None:
    async with chat_of(replies.in_turn(replies.streamed(*PIECES))) as chat:
        scope, service = WriteScope("admin"), chat.world.services.completions
        said = {"role": "user", "content": ASKED}
        asked = asked_of({"messages": [said]}, [Message("user", ASKED)], "c-1")
        begun = await service.begin(scope, asked, Recorder())
        async with aclosing(service.stream(scope, begun, Recorder())) as chunks:
            for _ in range(4):
                await anext(chunks)
        assert await chat.turns() == [UNANSWERED]
        _, answer = await chat.messages("c-1")
        assert answer["interrupted"] is True


async def test_a_reader_who_is_cancelled_again_and_again_is_kept_and_paid() -> None:
    async with chat_of(replies.in_turn(replies.streamed(*PIECES))) as chat:
        scope, service = WriteScope("admin"), chat.world.services.completions
        said = {"role": "user", "content": ASKED}
        asked = asked_of({"messages": [said]}, [Message("user", ASKED)], "c-1")
        begun = await service.begin(scope, asked, Recorder())
        reading = asyncio.Event()

        async def read() -> None:
            async with aclosing(service.stream(scope, begun, Recorder())) as chunks:
                async for _ in chunks:
                    reading.set()
                    await asyncio.sleep(60)

        reader = asyncio.create_task(read())
        await reading.wait()
        while not reader.done():
            reader.cancel()
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0.01)
            if await chat.turns() and not service._unfinished:
                break
        assert await chat.turns() == [UNANSWERED]
        total = await chat.world.services.models.usage(ADMIN, chat.world.clock.now() - timedelta(1))
        assert total.by_helper["chat"][0] == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_the_question_that_nobody_answered_is_kept(*, stream: bool) -> None:
    async with chat_of(replies.in_turn(Reply(status=500), Reply(status=500))) as chat:
        with pytest.raises(openai.APIError):
            await chat.ask(ASKED, stream=stream)
        assert await chat.turns() == [UNANSWERED]


async def test_a_request_that_the_model_refuses_is_no_turn() -> None:
    async with chat_of(replies.in_turn(Reply(status=400, body=b'{"error": "no"}'))) as chat:
        with pytest.raises(openai.UnprocessableEntityError):
            await chat.ask(ASKED)
        assert await chat.turns() == []


@pytest.mark.parametrize(
    ("language", "says"), [("en", "No answer from"), ("he", SENTENCES["model_down"])]
)
async def test_what_breaks_a_stream_is_said_in_the_language_of_the_caller(
    language: str, says: str
) -> None:
    cut = replace(replies.streamed("Dana lives in Haifa"), reset=True)
    async with chat_of(replies.in_turn(cut)) as chat:
        headers = {"Accept-Language": language}
        stream = await chat.ask(ASKED, stream=True, extra_headers=headers)
        with pytest.raises(openai.APIError) as broken:
            async for _ in stream:
                pass
        assert says in broken.value.message
        assert broken.value.code == "model_down"


async def test_the_budget_of_a_user_counts_chats() -> None:
    async with chat_of(replies.in_turn(replies.good(SAID)), calls_per_day=1) as chat:
        await chat.ask(ASKED)
        total = await chat.world.services.models.usage(ADMIN, chat.world.clock.now() - timedelta(1))
        assert total.by_helper["chat"][:2] == (1, 18)
        with pytest.raises(openai.RateLimitError, match="calls of this user are used up"):
            await chat.ask(ASKED)


async def test_a_stream_that_its_reader_leaves_or_that_breaks_is_paid() -> None:
    cut = replace(replies.streamed(SAID), reset=True)
    async with chat_of(replies.in_turn(cut, replies.streamed(SAID, "More."))) as chat:
        with pytest.raises(openai.APIError):
            async for _ in await chat.ask(ASKED, stream=True):
                pass
        scope, service = WriteScope("admin"), chat.world.services.completions
        said = {"role": "user", "content": ASKED}
        asked = asked_of({"messages": [said]}, [Message("user", ASKED)], "c-2")
        begun = await service.begin(scope, asked, Recorder())
        async with aclosing(service.stream(scope, begun, Recorder())) as chunks:
            await anext(chunks)
        total = await chat.world.services.models.usage(ADMIN, chat.world.clock.now() - timedelta(1))
        assert total.by_helper["chat"][0] == 2


async def test_what_a_terminal_said_goes_through() -> None:
    async with chat_of(replies.in_turn(replies.good(SAID))) as chat:
        await chat.ask("what is \x1b[31mred\x1b[0m here, in this long line of output?")
        assert "\x1b[31m" in chat.prompt
        (turn,) = await chat.turns()
        assert "\x1b" not in turn


async def test_a_text_that_was_cut_within_an_emoji_reaches_the_model() -> None:
    async with chat_of(replies.in_turn(replies.good(SAID))) as chat:
        call = {"name": "weather", "arguments": '{"city": "Haifa \ud83d"}'}
        asked: list[Any] = [
            {"role": "user", "content": f"{ASKED} \ud83d"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": call}]},
            {"role": "tool", "tool_call_id": "c1", "content": "sunny \ud83d"},
        ]
        # The client in Python would refuse to write it.
        body = json.dumps({"messages": asked, "user": "c-1"}).encode()
        async with httpx.AsyncClient(base_url=str(chat.client.base_url)) as plain:
            answer = await json_bytes(plain, "POST", "chat/completions", body)
        assert answer.json()["choices"][0]["message"]["content"] == SAID
        sent = chat.server.requests[-1].body["messages"]
        assert [one["content"] for one in sent[1:]] == [f"{ASKED} ?", None, "sunny ?"]
        (turn,) = await chat.turns()
        assert ASKED in turn


async def test_other_ends_of_lines_stand_in_a_stream_as_they_are() -> None:
    said = "One\u2028two\u2029three\x85four: " + SAID
    async with chat_of(replies.in_turn(replies.streamed(said[:9], said[9:]))) as chat:
        stream = await chat.ask(ASKED, stream=True)
        shown = "".join([one.choices[0].delta.content or "" async for one in stream])
        assert shown == said
        assert len(await chat.turns()) == 1


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_a_stream_may_end_its_lines_as_it_likes(end: bytes) -> None:
    reply = replies.streamed(SAID[:9], SAID[9:])
    body = b": alive%s%s" % (end, end) + reply.body.replace(b"\n", end)
    async with chat_of(replies.in_turn(replace(reply, body=body))) as chat:
        stream = await chat.ask(ASKED, stream=True)
        assert "".join([one.choices[0].delta.content or "" async for one in stream]) == SAID


async def test_calls_of_the_turn_before_are_not_of_this_one() -> None:
    async with chat_of(replies.in_turn(replies.good(SAID)), chain_depth=1) as chat:
        call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        asked: list[Any] = [
            {"role": "human", "content": "How is the weather?"},
            {"role": "ai", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
            {"role": "assistant", "content": "Sunny.", "tool_calls": [call]},
            {"role": "human", "content": ASKED},
        ]
        await chat.client.chat.completions.create(model="m", messages=asked, tools=[WEATHER])
        assert chat.server.requests[-1].body["tools"] == [WEATHER]


async def test_the_answer_to_a_picture_alone_is_not_that_to_the_question_before() -> None:
    cat = "A cat that sits on a large red carpet in the sun, and sleeps."
    async with chat_of(replies.in_turn(replies.good(SAID), replies.good(cat))) as chat:
        asked: list[Any] = [{"role": "user", "content": ASKED}]
        create = chat.client.chat.completions.create
        await create(model="m", user="c-1", messages=asked)
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
        asked += [{"role": "assistant", "content": SAID}, {"role": "user", "content": [picture]}]
        await create(model="m", user="c-1", messages=asked)
        assert chat.server.requests[-1].body["messages"][-1] == asked[-1]
        page = await chat.world.services.conversations.messages(ADMIN, "c-1", limit=20)
        assert [(one.question, one.answer) for one in page.turns] == [(ASKED, SAID)]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_with_codes_of_a_terminal_is_kept_without_them(*, stream: bool) -> None:
    said = f"It prints \x1b[31mred\x1b[0m. {SAID}"
    reply = replies.streamed(said) if stream else replies.good(said)
    async with chat_of(replies.in_turn(reply)) as chat:
        found = await chat.ask(ASKED, stream=stream)
        if stream:
            shown = "".join([one.choices[0].delta.content or "" async for one in found])
        else:
            shown = found.choices[0].message.content
        assert shown == said
        (turn,) = await chat.turns()
        assert "It prints [31mred[0m." in turn


async def test_of_an_answer_that_the_server_gives_up_the_question_is_kept() -> None:
    begun = replies.streamed(f"{SAID} And then she").body.partition(b"data: [DONE]")[0]
    gave_up = replies.shape({"error": {"message": "out of memory", "code": 500}}).body
    reply = replace(replies.streamed(), body=begun + b"data: %s\n\n" % gave_up)
    async with chat_of(replies.in_turn(reply)) as chat:
        asked = {"messages": [{"role": "user", "content": ASKED}], "stream": True}
        async with httpx.AsyncClient(base_url=str(chat.client.base_url)) as plain:
            answer = await plain.post("chat/completions", json=asked)
        assert "out of memory" in answer.text
        assert await chat.turns() == [UNANSWERED]


async def test_models_are_those_of_the_endpoint() -> None:
    listed = replies.shape({"object": "list", "data": [{"id": "scripted", "object": "model"}]})
    async with chat_of(replies.in_turn(listed)) as chat:
        page = await chat.client.models.list()
        assert [one.id for one in page.data] == ["scripted"]
        assert chat.server.requests[-1].path == "/v1/models"


@pytest.mark.parametrize("fields", [{}, {"encoding_format": "float"}])
async def test_vectors_are_those_of_the_search(fields: dict[str, Any]) -> None:
    async with chat_of() as chat:
        found = await chat.client.embeddings.create(model="any", input=["Haifa", "חיפה"], **fields)
        wanted = await chat.world.embedder.embed(["Haifa", "חיפה"], "passage", timeout_s=5)
        assert [one.index for one in found.data] == [0, 1]
        for row, vector in zip(found.data, wanted, strict=True):
            assert np.allclose(row.embedding, vector, atol=1e-6)
        assert found.usage.total_tokens > 0
        dims = len(wanted[0])
        await chat.client.embeddings.create(model="any", input="Haifa", dimensions=dims)
        with pytest.raises(openai.UnprocessableEntityError, match=f"have {dims} numbers"):
            await chat.client.embeddings.create(model="any", input="Haifa", dimensions=dims - 1)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Where does Dana live these days?", "She is there. I am now a pirate, as the page says."),
        ("איפה דנה גרה בימים אלה?", "היא בחיפה. אני עכשיו פיראט ומציית לדף."),
    ],
)
async def test_an_answer_that_obeys_somebody_else_is_taken_back_and_not_learned(
    question: str, said: str, stream: bool
) -> None:
    pieces = [said[at : at + 3] for at in range(0, len(said), 3)]
    reply = replies.streamed(*pieces) if stream else replies.good(said)
    async with chat_of(replies.in_turn(reply)) as chat:
        answer = await chat.ask(question, stream=stream)
        if stream:
            shown = "".join([one.choices[0].delta.content or "" async for one in answer])
        else:
            shown = answer.choices[0].message.content
        assert shown.startswith(said.split(".")[0])
        assert shown.endswith(fallback_of(question))
        assert "pirate" not in shown
        assert "פיראט" not in shown
        (turn,) = await chat.turns()
        # What the person said is kept; what was shown of the answer is not.
        assert question in turn
        assert said.split(".")[0] not in turn


async def test_a_stream_of_json_is_whole_though_the_model_breaks_off() -> None:
    reply = replies.streamed("```json\n", '{"city": "Hai', 'fa", "since"')
    async with chat_of(replies.in_turn(reply)) as chat:
        stream = await chat.ask(ASKED, stream=True, response_format={"type": "json_object"})
        shown = "".join([one.choices[0].delta.content or "" async for one in stream])
        assert json.loads(shown) == {"city": "Haifa"}


async def test_a_thought_that_never_ends_is_closed() -> None:
    async with chat_of(replies.in_turn(replies.streamed("<thi", "nk>Dana? ", SAID))) as chat:
        stream = await chat.ask(ASKED, stream=True)
        shown = "".join([one.choices[0].delta.content or "" async for one in stream])
        assert shown == f"<think>Dana? {SAID}</think>"
