"""A small service with the fixed HTTP shapes, on a real socket: BM25 over what was stored."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jobs.suites.bm25 import PlainBm25
from jobs.suites.suite import Document
from rayapp.api.openapi import examples
from rayapp.client import StoreAnswer
from tests.support.replies import a_hit, a_reply


@dataclass
class FakeService:
    """State of the service; tests read it and set the knobs."""

    url: str = ""
    users: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    keys: dict[str, list[str]] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    shed: dict[str, int] = field(default_factory=dict)
    pending_reads: int = 0
    unencoded: list[int | None] = field(default_factory=list)  # what the next looks find
    reject_text: str = "\0"
    same: Callable[[str], str] = str  # texts with the same result are duplicates
    stuck: bool = False
    needs_key: bool = False
    notice: str = ""  # `X-Auth-Notice` of every search
    recipes: frozenset[str | None] = frozenset({None, "default"})
    order: Callable[[str | None, Sequence[str]], Sequence[str]] = lambda _recipe, ids: ids
    answers: list[dict[str, Any]] = field(default_factory=list)  # of /readyz; the last one repeats
    degraded: list[str] = field(default_factory=list)  # of every search
    searches: list[dict[str, Any]] = field(default_factory=list)
    rankers: dict[str, PlainBm25] = field(default_factory=dict)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/api/memory/store", self.store, methods=["POST"]),
                Route("/api/memory/store/batch", self.store_batch, methods=["POST"]),
                Route("/api/memory/items/{memory_id}", self.item),
                Route("/api/memory/search", self.search, methods=["POST"]),
                Route("/api/memory/diagnostics", self.diagnostics),
                Route("/readyz", self.readyz),
            ]
        )

    def refused(self, request: Request) -> Response | None:
        if self.needs_key and "Authorization" not in request.headers:
            body = {"success": False, "error": "Send a bearer key.", "code": "unauthorized"}
            return JSONResponse(body, status_code=401)
        left = self.shed.get(request.url.path, 0)
        key = request.headers.get("Idempotency-Key")
        if key is not None:
            self.keys.setdefault(request.url.path, []).append(key)
        if left == 0:
            return None
        self.shed[request.url.path] = left - 1
        body = {"success": False, "error": "The queue is full.", "code": "overloaded"}
        return JSONResponse(body, status_code=503, headers={"Retry-After": "0"})

    def put(self, user: str, item: dict[str, Any]) -> dict[str, Any]:
        if self.reject_text in item["text"]:
            return {"memory_id": None, "status": "rejected", "code": "invalid_input", "error": "no"}
        mine = self.users.setdefault(user, {})
        memory_id = item.get("memory_id") or f"m{len(mine)}"
        text = self.same(item["text"])
        same = next((k for k, v in mine.items() if self.same(v["text"]) == text), None)
        if same is not None or memory_id in mine:
            return {"memory_id": same or memory_id, "status": "duplicate"}
        mine[memory_id] = item
        self.rankers.pop(user, None)
        self.pending_reads = 2
        return {"memory_id": memory_id, "status": "stored"}

    async def store(self, request: Request) -> Response:
        if (refusal := self.refused(request)) is not None:
            return refusal
        answer = self.put(request.headers.get("X-User-Id", "admin"), await request.json())
        if answer["status"] == "rejected":
            body = {"success": False, "error": answer["error"], "code": answer["code"]}
            return JSONResponse(body, status_code=400)
        duplicate = answer["status"] == "duplicate"
        body = StoreAnswer(memory_id=answer["memory_id"], duplicate=duplicate, archived=())
        return JSONResponse(body.model_dump(mode="json"), 201)

    async def item(self, request: Request) -> Response:
        """The books tier has the first client's name."""
        mine = self.users[request.headers.get("X-User-Id", "admin")]
        found = mine[request.path_params["memory_id"]]
        tier = found.get("tier", "working").replace("books", "documents")
        shape = examples()["GET /api/memory/items/{memory_id}"]["answer"]["memory"]
        return JSONResponse({"success": True, "memory": shape | found | {"tier": tier}})

    async def store_batch(self, request: Request) -> Response:
        if (refusal := self.refused(request)) is not None:
            return refusal
        user = request.headers.get("X-User-Id", "admin")
        items = (await request.json())["items"]
        return JSONResponse({"success": True, "results": [self.put(user, item) for item in items]})

    async def search(self, request: Request) -> Response:
        if (refusal := self.refused(request)) is not None:
            return refusal
        body = await request.json()
        if body.get("recipe") not in self.recipes:
            refused = {"success": False, "error": "No such recipe.", "code": "unknown_recipe"}
            return JSONResponse(refused, status_code=400)
        user = request.headers.get("X-User-Id", "admin")
        self.searches.append(body | {"user": user})
        mine = self.users.get(user, {})
        if mine and user not in self.rankers:
            self.rankers[user] = PlainBm25([Document(k, v["text"]) for k, v in mine.items()])
        ids = self.rankers[user].rank(body["query"], body.get("limit", 10)) if mine else ()
        ids = self.order(body.get("recipe"), ids)
        hits = [
            a_hit(
                position=position,
                memory_id=name,
                tier=mine[name].get("tier", "working"),
                content=mine[name]["text"],
                score=1.0 / position,
            )
            for position, name in enumerate(ids, 1)
        ]
        timings = {"dense_ms": 0.5, "hydrate_ms": 0.25}
        reply = a_reply(hits, timings_ms=timings, receipt_id="r1", degraded=self.degraded)
        return JSONResponse(
            reply.model_dump(mode="json", by_alias=True),
            headers={"X-Auth-Notice": self.notice} if self.notice else None,
        )

    async def diagnostics(self, request: Request) -> Response:
        if (refusal := self.refused(request)) is not None:
            return refusal
        stored = sum(len(mine) for mine in self.users.values())
        pending = 7 if self.stuck else min(self.pending_reads, stored)
        self.pending_reads = max(0, self.pending_reads - 1)
        index = {
            "pending": pending,
            "synced": stored,
            "failed": 0,
            "oldest_pending_s": 0.0,
            "unencoded": self.unencoded.pop(0) if self.unencoded else 0,
        }
        return JSONResponse({"success": True, "index": index})

    async def readyz(self, request: Request) -> Response:
        body = {"ready": False, "reasons": ["warming"]}
        if self.answers:
            body = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        return JSONResponse(body, status_code=200 if body["ready"] else 503)


@contextmanager
def serving(service: FakeService) -> Iterator[FakeService]:
    """The service on a free loopback port, in a thread of its own."""
    # With the protocol named, asyncio turns Nagle's delay off (40 ms per answer otherwise).
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(service.app(), log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        service.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.listen(128)
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True
        )
        thread.start()
        try:
            yield service
        finally:
            server.should_exit = True
            thread.join(timeout=10)
