"""A model server over real HTTP that speaks every API we know, well or badly."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson

from tests.support.models import OverlapRerankBackend, hash_vector
from tests.support.socket_server import listening

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class ModelServer:
    """ASGI application.

    Attributes:
        dims: size of its vectors.
        status: answered instead of 200 when set; `headers` and `raw` go with it.
        raw: body answered instead of the right one.
        delay_s: pause before the answer.
        endless: the body never ends.
        change: edits the decoded reply before it is sent.
        key: bearer token it demands, none when empty.
        memory_texts: more texts than that are an out-of-memory 500.
        broken_paths: paths that answer 500.
        poison: a text that makes it answer 422.
        too_long: a text that makes it answer as llama.cpp does of what its batch cannot hold.
        requests: path, headers and body of every request.
    """

    def __init__(self, dims: int = 16) -> None:
        self.url = ""
        self.reset(dims)

    def reset(self, dims: int = 16) -> None:
        """Behave well again and forget the requests."""
        self.dims = dims
        self.status = 200
        self.headers: list[tuple[bytes, bytes]] = []
        self.raw: bytes | None = None
        self.delay_s = 0.0
        self.endless = False
        self.change: Callable[[Any], Any] = lambda reply: reply
        self.key = ""
        self.memory_texts: int | None = None
        self.broken_paths: set[str] = set()
        self.poison: str | None = None
        self.too_long: str | None = None
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        request = orjson.loads(body)
        self.requests.append((scope["path"], headers, request))
        await asyncio.sleep(self.delay_s)
        if self.endless:
            await self._never_end(send)
            return
        status, reply = await self._answer(scope["path"], headers, request)
        await self._send(send, status, self.raw if self.raw is not None else orjson.dumps(reply))

    async def _answer(
        self, path: str, headers: dict[str, str], request: dict[str, Any]
    ) -> tuple[int, Any]:
        if self.key and headers.get("authorization") != f"Bearer {self.key}":
            return 401, {"detail": "who are you"}
        if path in self.broken_paths:
            return 500, {"detail": "as told"}
        if self.status != 200:
            return self.status, {"detail": "as told"}
        texts = request.get("texts") or request.get("inputs") or request.get("input") or []
        if self.poison is not None and self.poison in texts:
            return 422, {"detail": "cannot read this"}
        if self.too_long is not None and self.too_long in texts:
            return 500, {"error": {"message": "input (700 tokens) is too large to process."}}
        if self.memory_texts is not None and len(texts) > self.memory_texts:
            return 500, {"detail": "CUDA out of memory. Tried to allocate 2.00 GiB"}
        return 200, self.change(await self._reply(path, request, texts))

    async def _reply(self, path: str, request: dict[str, Any], texts: list[str]) -> Any:
        vectors = [hash_vector(text, self.dims).tolist() for text in texts]
        if path == "/embeddings":
            pairs = zip(texts, vectors, strict=True)
            rows = [{"text": t, "dense": v, "sparse": None, "colbert": None} for t, v in pairs]
            return {"embeddings": rows}
        if path == "/embed":
            return vectors
        if path == "/v1/embeddings":
            # Out of order on purpose: only `index` tells which text a vector belongs to.
            rows = [{"index": n, "embedding": v} for n, v in enumerate(vectors)]
            return {"object": "list", "data": rows[::-1]}
        documents = request.get("documents") or request["texts"]
        logits = await OverlapRerankBackend().logits(request["query"], documents)
        ranked = sorted(enumerate(logits), key=lambda pair: -pair[1])
        if path == "/rerank":
            return [{"index": n, "score": s} for n, s in ranked]
        rows = [{"index": n, "relevance_score": s, "document": documents[n]} for n, s in ranked]
        return {"results": rows}

    async def _send(self, send: Send, status: int, body: bytes) -> None:
        headers = [(b"content-type", b"application/json"), *self.headers]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _never_end(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        # Bounded, so that a client without a limit fails the test instead of the machine.
        for _ in range(200):
            await send({"type": "http.response.body", "body": b" " * 65_536, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def model_server(dims: int = 16) -> AsyncIterator[ModelServer]:
    """A running server on a free loopback port, in this event loop."""
    app = ModelServer(dims)
    async with listening(app) as app.url:
        yield app
