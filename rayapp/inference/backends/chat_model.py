"""Chat models behind any endpoint that speaks the completions protocol of OpenAI."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson

from rayapp.core.errors import DeadlineExceeded, InvalidInput, ModelDown, TooLarge
from rayapp.core.event_lines import event_lines
from rayapp.inference.backends.http import JsonServer
from rayapp.inference.chat.rules.integrity import split_thinking
from rayapp.inference.ports import ChatAnswer, ChatRequest, ChatUsage, Message
from rayapp.inference.rules import estimate_tokens

PATH = "/chat/completions"
# Answers of helpers have a few kilobytes; a reasoning model may think through 200.
REPLY_BYTES = 1 << 20
# No window is larger; a count beyond it would break the ledger of a user.
MOST_TOKENS = 100_000_000
# Each call brings its own limit; this one only bounds a wait that nobody limits.
LONGEST_WAIT_S = 120.0
# An answer to a chat program: a long text, and sounds or pictures beside it.
ANSWER_BYTES = 16 << 20
ADDRESS = "models.base_url"
OTHER_SHAPE = f"The language model's reply has another shape: check {ADDRESS}."


class HttpChatModel:
    """Implements `ChatModel`. What a model thinks aloud is no part of its answer."""

    def __init__(self, base_url: str, *, model: str, api_key: str = "") -> None:
        """`base_url` as the endpoint's documentation gives it, usually ending in `/v1`."""
        self._model = model
        # Endpoints that refuse `response_format` do so for every request: ask without it then.
        self._json_mode = True
        self._server = _server(base_url, api_key, LONGEST_WAIT_S)

    @property
    def model(self) -> str:
        return self._model

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """One answer; a second request only where the endpoint refuses `response_format`."""
        body = {
            "model": self._model,
            "messages": [{"role": one.role, "content": one.content} for one in request.messages],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
        }
        try:
            async with asyncio.timeout(request.timeout_s):
                reply = await self._post(body, request.json_schema)
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"The language model did not answer within {request.timeout_s:g} s: raise "
                "models.timeout_s or use a faster model."
            ) from error
        return self._answer(reply, request.messages)

    async def close(self) -> None:
        await self._server.close()

    async def _post(self, body: dict[str, Any], json_schema: dict[str, Any] | None) -> Any:
        if json_schema is None or not self._json_mode:
            return await self._server.post(PATH, body, max_bytes=REPLY_BYTES)
        schema = {"name": "answer", "schema": json_schema, "strict": False}
        asked = body | {"response_format": {"type": "json_schema", "json_schema": schema}}
        try:
            return await self._server.post(PATH, asked, max_bytes=REPLY_BYTES)
        except TooLarge:
            raise
        except InvalidInput:
            reply = await self._server.post(PATH, body, max_bytes=REPLY_BYTES)
            # It takes the request without the field, so it was the field.
            self._json_mode = False
            return reply

    def _answer(self, reply: Any, messages: Sequence[Message]) -> ChatAnswer:
        try:
            choice = reply["choices"][0]
            # A model that calls a tool instead says nothing: no tool was offered.
            content = choice["message"].get("content") or ""
            finish = str(choice.get("finish_reason") or "stop")
            if not isinstance(content, str):
                content = "".join(str(part.get("text", "")) for part in content)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ModelDown(OTHER_SHAPE) from error
        text, _ = split_thinking(content)
        return ChatAnswer(
            text=text,
            finish=finish,
            usage=usage_of(reply.get("usage"), messages, content),
            model=self._model,
        )


def _server(base_url: str, api_key: str, timeout_s: float, *, quotes: bool = False) -> JsonServer:
    return JsonServer(
        base_url,
        api_key=api_key,
        timeout_s=timeout_s,
        down=ModelDown,
        setting="models",
        address=ADDRESS,
        quotes=quotes,
    )


class ChatEndpoint:
    """The same endpoint for chat programs: what they ask goes there as it is, and comes back so."""

    def __init__(self, base_url: str, *, model: str, api_key: str, timeout_s: float) -> None:
        """`model`: for whoever names none. `timeout_s` bounds each wait for bytes."""
        self.model = model
        self._server = _server(base_url, api_key, timeout_s, quotes=True)

    async def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """A whole answer. Raises as `JsonServer.post`."""
        found = await self._server.post(PATH, body, max_bytes=ANSWER_BYTES)
        if not isinstance(found, dict) or not isinstance(found.get("choices"), list):
            raise ModelDown(OTHER_SHAPE)
        return found

    @asynccontextmanager
    async def stream(self, body: dict[str, Any]) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The chunks of an answer as they come. Raises as `JsonServer.post`."""
        async with self._server.opened("POST", PATH, body | {"stream": True}) as response:
            yield _chunks(event_lines(response.aiter_bytes()))

    async def models(self) -> list[dict[str, Any]]:
        """What the endpoint offers. Raises as `JsonServer.post`."""
        found = await self._server.get("/models", max_bytes=REPLY_BYTES)
        rows = found.get("data") if isinstance(found, dict) else None
        return [one for one in rows or () if isinstance(one, dict)]

    async def close(self) -> None:
        await self._server.close()


async def _chunks(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """The data of server-sent events, until the last one says so. Raises ModelDown: there is none,
    as where a server knows no streams and answers with one object, or with an error in it; or they
    ended before the answer did."""
    told = ended = False
    async for line in lines:
        data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if data == "[DONE]":
            return
        if not data:
            continue
        told = True
        try:
            chunk = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise ModelDown(OTHER_SHAPE) from error
        if isinstance(chunk, dict):
            ended = ended or _ends_answer(chunk)
            yield chunk
    if not told:
        raise ModelDown(OTHER_SHAPE)
    if not ended:
        raise ModelDown("The language model's answer broke off: ask again.")


def _ends_answer(chunk: dict[str, Any]) -> bool:
    """Some servers end a stream with the reason alone; an error is an end too."""
    rows = chunk.get("choices")
    choices = rows if isinstance(rows, list) else ()
    reasons = (one.get("finish_reason") for one in choices if isinstance(one, dict))
    return bool(chunk.get("error")) or any(reasons)


def usage_of(said: Any, messages: Sequence[Message], content: str) -> ChatUsage:
    """Tokens as the endpoint counts them; what it leaves out is estimated."""
    prompt, completion = _count(said, "prompt_tokens"), _count(said, "completion_tokens")
    if prompt is not None and completion is not None:
        return ChatUsage(prompt_tokens=prompt, completion_tokens=completion)
    asked = sum(estimate_tokens(one.content) for one in messages)
    return ChatUsage(
        prompt_tokens=asked, completion_tokens=estimate_tokens(content), estimated=True
    )


def _count(said: Any, name: str) -> int | None:
    count = said.get(name) if isinstance(said, dict) else None
    usable = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_TOKENS
    return count if usable else None
