"""What every chat model must do. `chat` answers with `ANSWER` to anything."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from rayapp.core.errors import DeadlineExceeded, DependencyDown
from rayapp.inference.ports import ChatModel, ChatRequest, Message

ANSWER = "דנה גרה בחיפה. Dana lives in Haifa."
ASKED = ChatRequest(
    messages=(Message("system", "Answer."), Message("user", "איפה דנה גרה?")),
    max_tokens=50,
    temperature=0.0,
    timeout_s=5,
)
IN_HASTE = replace(ASKED, timeout_s=0.5)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}

# Makes a chat model that does as its name says: good, thinking, cut, silent, away, slow.
ChatOf = Callable[[str], ChatModel]


class ChatContract:
    """The fixture `chat_of` makes models by name."""

    async def test_an_answer_with_its_cost(self, chat_of: ChatOf) -> None:
        chat = chat_of("good")
        found = await chat.complete(ASKED)
        assert (found.text, found.finish, found.model) == (ANSWER, "stop", chat.model)
        assert found.usage.prompt_tokens > 0
        assert found.usage.completion_tokens > 0

    async def test_json_may_be_asked_for(self, chat_of: ChatOf) -> None:
        found = await chat_of("good").complete(replace(ASKED, json_schema=SCHEMA))
        assert found.text == ANSWER

    async def test_what_is_thought_aloud_is_no_answer(self, chat_of: ChatOf) -> None:
        found = await chat_of("thinking").complete(ASKED)
        assert found.text == ANSWER

    async def test_the_end_at_the_limit_is_said(self, chat_of: ChatOf) -> None:
        found = await chat_of("cut").complete(ASKED)
        assert (found.text, found.finish) == (ANSWER, "length")

    async def test_silence_is_an_empty_answer(self, chat_of: ChatOf) -> None:
        found = await chat_of("silent").complete(ASKED)
        assert found.text == ""

    async def test_a_model_that_is_away(self, chat_of: ChatOf) -> None:
        with pytest.raises(DependencyDown):
            await chat_of("away").complete(IN_HASTE)

    async def test_a_model_that_is_too_slow(self, chat_of: ChatOf) -> None:
        with pytest.raises(DeadlineExceeded):
            await chat_of("slow").complete(IN_HASTE)
