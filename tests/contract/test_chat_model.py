"""The contract of `ChatModel`, on the scripted fake and over HTTP, and what HTTP alone can do."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from rayapp.core.errors import (
    ConfigError,
    DeadlineExceeded,
    DependencyDown,
    InvalidInput,
    ModelDown,
)
from rayapp.core.settings.model import ModelsSettings
from rayapp.inference.backends.chat_model import REPLY_BYTES, HttpChatModel
from rayapp.inference.ports import ChatAnswer, ChatModel, ChatUsage
from tests.support import chat_server as replies
from tests.support.chat_contract import ANSWER, ASKED, SCHEMA, ChatContract, ChatOf
from tests.support.chat_models import ScriptedChat
from tests.support.chat_server import ChatServer, Reply, chat_server

CUT = ChatAnswer(
    text=ANSWER,
    finish="length",
    usage=ChatUsage(prompt_tokens=1, completion_tokens=1),
    model="scripted",
)


class TestScripted(ChatContract):
    @pytest.fixture
    def chat_of(self) -> ChatOf:
        answers = {
            "good": ANSWER,
            "thinking": f"<think>hm</think>{ANSWER}",
            "cut": CUT,
            "silent": "",
            "away": ModelDown("gone"),
            "slow": DeadlineExceeded("late"),
        }
        return lambda name: ScriptedChat([answers[name]])


@pytest.fixture(scope="module")
async def running() -> AsyncIterator[ChatServer]:
    async with chat_server() as server:
        yield server


@pytest.fixture
def server(running: ChatServer) -> ChatServer:
    running.script, running.key = lambda request: replies.good(ANSWER), ""
    running.requests.clear()
    return running


class OverHttp:
    @pytest.fixture
    async def chat(self, server: ChatServer) -> AsyncIterator[HttpChatModel]:
        chat = HttpChatModel(server.url, model="scripted")
        yield chat
        await chat.close()


class TestHttp(OverHttp, ChatContract):
    @pytest.fixture
    def chat_of(self, server: ChatServer, chat: HttpChatModel) -> ChatOf:
        scripts = {
            "good": replies.good(ANSWER),
            "thinking": replies.thinking(ANSWER),
            "cut": replies.cut(ANSWER),
            "silent": replies.tool_call(),
            "away": replies.status(500),
            "slow": replies.late(ANSWER, 3.0),
        }

        def made(name: str) -> ChatModel:
            server.script = replies.in_turn(scripts[name])
            return chat

        return made


async def complete(
    chat: HttpChatModel, schema: dict[str, object] | None = None, timeout_s: float = 5
) -> ChatAnswer:
    asked = replace(ASKED, temperature=0.5, timeout_s=timeout_s, json_schema=schema)
    return await chat.complete(asked)


BROKEN = {
    "500": replies.status(500),
    "404": replies.status(404),
    "401": replies.status(401),
    "reset": replies.reset(),
    "garbage": replies.garbage(),
    "html": replies.html(),
    "array": replies.shape([1, 2]),
    "text": replies.shape("hello"),
    "no choices": replies.shape({"choices": []}),
    "no message": replies.shape({"choices": [{"text": "x"}]}),
    "content of numbers": replies.shape({"choices": [{"message": {"content": [1, 2]}}]}),
    "null": replies.shape(None),
    "redirect": Reply(status=302, headers={"location": "http://127.0.0.1:9/"}),
}


class TestBrokenServers(OverHttp):
    @pytest.mark.parametrize("name", BROKEN)
    async def test_trouble_is_a_model_that_is_down(
        self, server: ChatServer, chat: HttpChatModel, name: str
    ) -> None:
        server.script = replies.in_turn(BROKEN[name])
        with pytest.raises(ModelDown) as caught:
            await complete(chat)
        settings = set(re.findall(r"models\.\w+", caught.value.message))
        assert settings <= {f"models.{name}" for name in ModelsSettings.model_fields}
        assert settings

    async def test_the_pause_that_it_asks_for_is_passed_on(
        self, server: ChatServer, chat: HttpChatModel
    ) -> None:
        server.script = replies.in_turn(replies.busy(17))
        with pytest.raises(ModelDown) as caught:
            await complete(chat)
        assert caught.value.retry_after_s == 17

    async def test_an_endless_answer_is_cut_off(
        self, server: ChatServer, chat: HttpChatModel
    ) -> None:
        server.script = replies.in_turn(replies.huge())
        with pytest.raises(ModelDown, match=str(REPLY_BYTES)):
            await complete(chat)

    async def test_nobody_listens(self) -> None:
        chat = HttpChatModel("http://127.0.0.1:9/v1", model="m")
        with pytest.raises(DependencyDown, match=r"check models\.base_url and"):
            await complete(chat)
        await chat.close()

    async def test_after_trouble_it_works_again(
        self, server: ChatServer, chat: HttpChatModel
    ) -> None:
        server.script = replies.in_turn(replies.reset(), replies.huge(), replies.good(ANSWER))
        for _ in range(2):
            with pytest.raises(ModelDown):
                await complete(chat)
        assert (await complete(chat)).text == ANSWER


class TestRequests(OverHttp):
    async def test_what_is_sent(self, server: ChatServer, chat: HttpChatModel) -> None:
        await complete(chat, SCHEMA)
        (request,) = server.requests
        assert request.path == "/v1/chat/completions"
        assert request.body["messages"][1] == {"role": "user", "content": "איפה דנה גרה?"}
        assert (request.body["model"], request.body["max_tokens"]) == ("scripted", 50)
        assert request.body["temperature"] == 0.5
        assert request.body["response_format"]["json_schema"]["schema"] == SCHEMA
        assert "tools" not in request.body
        assert "authorization" not in request.headers

    async def test_a_key_is_sent_and_never_shown(self, server: ChatServer) -> None:
        server.key = "sk-secret"
        chat = HttpChatModel(server.url, model="m", api_key="sk-secret")
        assert (await complete(chat)).text == ANSWER
        server.key = "sk-other"
        with pytest.raises(ModelDown) as caught:
            await complete(chat)
        assert "sk-" not in str(caught.value)
        assert "sk-" not in repr(chat)
        await chat.close()

    @pytest.mark.parametrize("code", [400, 422])
    async def test_an_endpoint_without_json_mode_is_asked_without_it_from_then_on(
        self, server: ChatServer, chat: HttpChatModel, code: int
    ) -> None:
        server.script = replies.without_json_mode(ANSWER, code)
        assert (await complete(chat, SCHEMA)).text == ANSWER
        assert (await complete(chat, SCHEMA)).text == ANSWER
        assert [request.wants_json for request in server.requests] == [True, False, False]

    async def test_a_request_that_is_refused_either_way_says_nothing_about_json_mode(
        self, server: ChatServer, chat: HttpChatModel
    ) -> None:
        refused = replies.status(400)
        server.script = replies.in_turn(refused, refused, replies.good(ANSWER))
        with pytest.raises(InvalidInput):
            await complete(chat, SCHEMA)
        await complete(chat, SCHEMA)
        assert server.requests[-1].wants_json

    @pytest.mark.parametrize(
        "usage",
        [None, {}, {"prompt_tokens": -1, "completion_tokens": 5}, {"prompt_tokens": True}, "many",
         {"prompt_tokens": 10**18, "completion_tokens": 1}],
    )  # fmt: skip
    async def test_tokens_that_the_endpoint_does_not_say_are_estimated(
        self, server: ChatServer, chat: HttpChatModel, usage: object
    ) -> None:
        choice = {"message": {"role": "assistant", "content": "ab" * 8}, "finish_reason": "stop"}
        server.script = replies.in_turn(replies.shape({"choices": [choice], "usage": usage}))
        found = await complete(chat)
        assert found.usage == ChatUsage(prompt_tokens=7, completion_tokens=4, estimated=True)

    async def test_tokens_of_thinking_are_paid_for(
        self, server: ChatServer, chat: HttpChatModel
    ) -> None:
        text = "<think>" + "a" * 391 + "</think>ok"
        server.script = replies.in_turn(replies.good(text, usage=None))
        found = await complete(chat)
        assert (found.text, found.usage.completion_tokens) == ("ok", 102)

    async def test_a_slow_server_is_left_and_the_connection_given_back(
        self, server: ChatServer, chat: HttpChatModel
    ) -> None:
        server.script = replies.in_turn(replies.late(ANSWER, 30.0), replies.good(ANSWER))
        with pytest.raises(DeadlineExceeded):
            await complete(chat, timeout_s=0.1)
        assert (await complete(chat)).text == ANSWER

    async def test_as_many_calls_as_are_allowed_are_at_the_server_at_once(
        self, server: ChatServer, chat: HttpChatModel
    ) -> None:
        calls, all_there = 40, asyncio.Event()

        def held(_: object) -> Reply:
            if len(server.requests) == calls:
                all_there.set()
            return replies.late(ANSWER, 30.0)

        server.script = held
        asked = [asyncio.ensure_future(complete(chat, timeout_s=30)) for _ in range(calls)]
        await asyncio.wait_for(all_there.wait(), 10)
        for one in asked:
            one.cancel()
        await asyncio.gather(*asked, return_exceptions=True)

    @pytest.mark.parametrize("url", ["ftp://x/v1", "nothing", "http://[::1"])
    async def test_another_address_is_refused(self, url: str) -> None:
        with pytest.raises(ConfigError, match=r"models\.base_url must be"):
            HttpChatModel(url, model="m")
