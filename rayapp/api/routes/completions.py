"""The completions protocol of OpenAI: memory for programs that know nothing of this service."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import orjson
from starlette.responses import Response, StreamingResponse

from rayapp.api.call import Call
from rayapp.api.errors import error_body, in_protocol
from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, router
from rayapp.api.routes.jobs import EVENT_STREAM, STREAM_HEADERS
from rayapp.assistant.completions.rules import Asked, asked_of
from rayapp.assistant.completions.service import Begun
from rayapp.core.errors import InvalidInput, ModelDown, RateLimited, RayappError
from rayapp.inference.ports import Message
from rayapp.inference.rules import estimate_tokens
from rayapp.wire import completions as wire

routes = router("completions")
CONVERSATION = b"x-conversation-id"
# One server-sent event, as readers of streams split it; its data is a chunk of the protocol.
EVENT = {"type": "object", "properties": {"data": {"type": "string"}}}
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": {EVENT_STREAM: {"schema": EVENT, "example": "data: [DONE]\n\n"}}}
}


@routes.post(
    "/v1/chat/completions",
    summary="A chat with memory",
    response_model=wire.ChatCompletion,
    responses={**STREAMED, **raises(ModelDown, RateLimited)},
)
async def chat(call: CurrentCall, body: wire.ChatCompletionBody) -> Response:
    """For programs with a client of OpenAI: what is known stands in the system message, tools that
    memory makes needless are left out, the model of `models.base_url` answers, streamed or whole,
    and the turn is learned from. The conversation is named by the header `X-Conversation-Id`, by
    `user`, or by what it began with. Headers of the answer name the conversation, the message, the
    receipt of what was shown, whether memory was there (`X-Memory`; where it is away the model is
    asked without it), and what the answer is no advice of (`X-Disclaimers`: medical, financial,
    legal)."""
    asked = _asked(call, body)
    service = call.services.completions
    begun = await service.begin(call.writes, asked, call.recorder)
    call.notes["memory"] = begun.memory
    if not asked.streamed:
        found = await service.complete(call.writes, begun, call.recorder)
        return Response(orjson.dumps(found), media_type="application/json", headers=_headers(begun))
    chunks = service.stream(call.writes, begun, call.recorder)
    # The first chunk is waited for: a model that refuses does so as an error, not as a stream.
    first = await anext(chunks, None)
    return StreamingResponse(
        _events(first, chunks),
        media_type=EVENT_STREAM,
        headers={**STREAM_HEADERS, **_headers(begun)},
    )


@routes.get("/v1/models", summary="Models of the endpoint", responses=raises(ModelDown))
async def models(call: CurrentCall) -> wire.ModelCards:
    found = await call.services.completions.models()
    return wire.ModelCards(data=tuple(wire.ModelCard.model_validate(one) for one in found))


@routes.post("/v1/embeddings", summary="Vectors of texts")
async def embeddings(call: CurrentCall, body: wire.EmbeddingsBody) -> wire.EmbeddingsAnswer:
    """The vectors that search compares, of length one."""
    embedder, settings = call.services.embedder, call.services.settings.embedding
    limit_s, info = settings.batch_timeout_s, await embedder.info()
    # Of OpenAI's protocol; in no document, because which number is right the embedder says.
    if call.data.get("dimensions") not in (None, info.dims):
        raise InvalidInput(
            f"dimensions: the vectors of {info.model} have {info.dims} numbers; leave it out.",
            details={"field": "dimensions"},
        )
    vectors = await embedder.embed(body.input, body.input_type, timeout_s=limit_s)
    tokens = sum(map(estimate_tokens, body.input))
    return wire.EmbeddingsAnswer(
        data=tuple(
            wire.EmbeddingRow.of_vector(index, one, encoded=body.encoding_format == "base64")
            for index, one in enumerate(vectors)
        ),
        model=info.model,
        usage=wire.TokenCount(prompt_tokens=tokens, total_tokens=tokens),
    )


def _asked(call: Call, body: wire.ChatCompletionBody) -> Asked:
    named = dict(call.scope["headers"]).get(CONVERSATION, b"").decode("latin-1")
    messages = tuple(Message(one.role, one.content) for one in body.messages)
    return asked_of(call.data, messages, named or None)


def _headers(begun: Begun) -> dict[str, str]:
    asked = begun.asked
    topics = ", ".join(one.topic for one in begun.intents.disclaimers)
    return {
        "X-Conversation-Id": asked.conversation_id,
        "X-Message-Id": asked.message_id,
        "X-Memory": begun.memory,
        **({"X-Receipt-Id": begun.receipt_id} if begun.receipt_id else {}),
        **({"X-Disclaimers": topics} if topics else {}),
    }


async def _events(
    first: dict[str, Any] | None, chunks: AsyncGenerator[dict[str, Any]]
) -> AsyncIterator[bytes]:
    try:
        async with aclosing(chunks):
            if first is not None:
                yield _event(first)
            async for chunk in chunks:
                yield _event(chunk)
    except RayappError as error:
        yield _event(in_protocol(error_body(error)))
        return
    yield b"data: [DONE]\n\n"


def _event(data: dict[str, Any]) -> bytes:
    return b"data: %s\n\n" % orjson.dumps(data)
