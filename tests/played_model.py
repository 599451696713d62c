"""The language model behind the shared stack: the example's script, and what a test has it say."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from examples.scripted_model import Script, reply_to
from rayapp.inference.ports import HelperName
from rayapp.inference.prompts.loader import LANGUAGES, load_prompts
from tests.support.chat_server import ChatRequest, Reply, chat_server, events, good, shape

# Helpers that only these tests play; all others are those of the example's script.
PLAYED: tuple[HelperName, ...] = (
    *("contextual_prefix", "tool_result_summary", "document_notes", "document_summary"),
)


@dataclass
class PlayedModel:
    """`url`: the endpoint, up to `/v1`.

    A text that holds a key of `says` is answered with its reply. Any other text is repeated, and a
    text that repeats is neither a prefix nor a summary: what other tests store stays as it is.
    """

    script: Script
    url: str = ""
    says: dict[str, Reply] = field(default_factory=dict)
    asked: list[tuple[HelperName, str]] = field(default_factory=list)
    _helpers: dict[str, HelperName] = field(default_factory=dict)

    def __post_init__(self) -> None:
        book = load_prompts()
        for helper in PLAYED:
            for language in LANGUAGES:
                prompt = book.get(helper, language)
                system, _ = prompt.render(dict.fromkeys(prompt.head.variables, ""))
                self._helpers[system.content] = helper

    def questions(self, part: str) -> list[HelperName]:
        """Helpers that asked about a text that holds `part`."""
        return [helper for helper, text in list(self.asked) if part in text]

    def reply(self, request: ChatRequest) -> Reply:
        if "messages" not in request.body:
            return shape({"object": "list", "data": [{"id": "played", "object": "model"}]})
        messages = request.body["messages"]
        texts = (isinstance(one.get(name), str) for one in messages for name in ("role", "content"))
        tools = ((one.get("function") or {}).get("name") for one in request.body.get("tools") or ())
        streams = bool(request.body.get("stream"))
        if not (all(texts) and all(tools)):
            return _spoken({"role": "assistant", "content": "I read text alone."}, streams=streams)
        helper = self._helpers.get(messages[0]["content"])
        if helper is None:
            return _spoken(reply_to(self.script, request.body), streams=streams)
        text = messages[1]["content"]
        self.asked.append((helper, text))
        found = next((reply for part, reply in list(self.says.items()) if part in text), None)
        return found or good(_data(text))


def _spoken(message: dict[str, Any], *, streams: bool) -> Reply:
    """Also a call of a tool, which the assistant of the example makes."""
    usage = {"prompt_tokens": 11, "completion_tokens": 7}
    choice = {"index": 0, "delta" if streams else "message": message, "finish_reason": "stop"}
    answer = {"model": "scripted", "choices": [choice], "usage": usage}
    return events(answer) if streams else shape(answer)


def _data(question: str) -> str:
    """The last text that the question fences."""
    return question.rsplit("[DATA text ", 1)[1].split("\n", 1)[1].rsplit("\n[END text ", 1)[0]


@contextmanager
def playing(script: Script) -> Iterator[PlayedModel]:
    """The model on a loopback port, in a thread of its own."""
    model = PlayedModel(script)
    ready, loop = threading.Event(), asyncio.new_event_loop()
    done = asyncio.Event()

    async def serve() -> None:
        async with chat_server(model.reply) as server:
            model.url = server.url
            ready.set()
            await done.wait()

    def run() -> None:
        loop.run_until_complete(serve())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(timeout=10)
    try:
        yield model
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(timeout=10)
