"""A service with something of every kind of one user, over stores in memory or on MongoDB."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from rayapp.api.app import create_api
from rayapp.container import bootstrap
from rayapp.container.bootstrap import Stores
from rayapp.container.services import Container
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.index.passages import PassageIndex
from rayapp.index.ports import VectorIndex
from rayapp.inference.ports import opened
from rayapp.memory.item import derived_id
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.portability.ports import ExportRequest, RowsWanted
from rayapp.portability.rules.collections import BY_NAME, ITEMS
from rayapp.understanding.ports import SourceText
from rayapp.understanding.statements.requests import NewMerge
from tests.support.harness import AT_ONCE, ModelEmbedder
from tests.support.jobs import FakeLauncher
from tests.support.stores.index import InMemoryIndex

LOCAL = "http://127.0.0.1:8000"
DANA = "dana-7f"
# A busy machine may take as long for what is owed, and between two looks at it, seconds.
PATIENCE_S, LOOK_S = 120.0, 0.1
# Outcomes ask for a look at the tiers a minute later. Whether a test takes that long must not show
# in its rows: in no test are they so old.
PROMOTION = {"settle_s": 86_400.0}
UNDERSTANDING = {"settle_s": 0.0}


@dataclass
class ArchiveWorld:
    """Everything of a process but Ray; `container` has its services."""

    container: Container
    user: str = DANA

    @property
    def stores(self) -> Stores:
        return self.container.stores

    @property
    def reads(self) -> ReadScope:
        return ReadScope(self.user).own

    @property
    def writes(self) -> WriteScope:
        return WriteScope(self.user, "local")

    @asynccontextmanager
    async def http(self, user: str = "") -> AsyncIterator[httpx.AsyncClient]:
        transport = httpx.ASGITransport(app=create_api(self.container.services()))
        headers = {"X-User-Id": user or self.user}
        async with httpx.AsyncClient(
            transport=transport, base_url=LOCAL, headers=headers
        ) as client:
            yield client

    async def work(self) -> None:
        """What the background owners do, until nothing is owed: what was put off is waited for."""
        indexing, outbox = self.container.indexing, self.container.outbox
        elapse = getattr(self.container.runtime.clock, "elapse", asyncio.sleep)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                while await indexing.run_once() or await outbox.run_once():
                    pass
                if not await self._waits():
                    return
                await elapse(LOOK_S)

    async def _waits(self) -> bool:
        """Whether an outage, or an index that is late, has put something off."""
        outbox = self.container.outbox
        failed = (outbox._content._pauses, *outbox._pauses.values())
        if any(map(len, failed)) or (await self.stores.items.backlog()).pending:
            return True
        async with self.stores.archive.snapshot(self.reads) as reader:
            pages = reader.pages(BY_NAME[ITEMS], RowsWanted())
            return any([row["follow_up_at"] async for page in pages for row in page])

    async def exported(self, user: str = "", **how: Any) -> bytes:
        """An archive."""
        scope = ReadScope(user or self.user).own
        stream = self.container.exports.stream(scope, ExportRequest(**how))
        return b"".join([chunk async for chunk in stream])


async def on_stores(
    stores: Stores, settings: Settings, index: VectorIndex | None = None
) -> ArchiveWorld:
    """A world over these stores; without an `index`, with one in memory."""
    embedder, index = ModelEmbedder(), index or PassageIndex(InMemoryIndex())
    container = Container(
        bootstrap.runtime_of(settings, InMemoryMetrics()),
        stores,
        index=index,
        embedder=await opened(embedder),
        launcher=FakeLauncher(),
    )
    await index.open(container.schema)
    await index.rebuilt()
    return ArchiveWorld(container)


def settings_in(folder: Path, **overrides: Any) -> Settings:
    return load_settings(
        "local",
        env={},
        overrides={
            "data": {"dir": folder},
            "search": AT_ONCE,
            "promotion": PROMOTION,
            "understanding": UNDERSTANDING,
            **overrides,
        },
    )


async def ask(
    http: httpx.AsyncClient, method: str, path: str, body: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    answer = await http.request(method, path, json=body)
    assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
    found: dict[str, Any] = answer.json()
    return found


async def fill(world: ArchiveWorld, word: str = "Haifa") -> None:
    """Something of every kind, each with `word` in it, for the user of the world."""
    memory = "/api/memory"
    async with world.http() as http:
        for number, tier in enumerate(("working", "history", "patterns", "working"), 1):
            text = f"Dana parks near the port of {word} on day {number}; דנה חונה ליד הנמל"
            body = {"text": text, "tier": tier, "memory_id": f"m-{number}", "tags": ["home"]}
            await ask(http, "POST", f"{memory}/store", body)
        fact = {"text": f"The home of Dana is in {word}", "tags": ["home"], "importance": 0.9}
        bank = await ask(http, "POST", f"{memory}/memory-bank", fact)
        goal = {"text": f"Dana wants to learn Arabic in {word}"}
        await ask(http, "POST", f"{memory}/memory-bank/goals", goal)
        await world.work()
        for outcome in ("worked", "failed"):
            query = {"query": f"Where is the home of Dana in {word}?", "conversation_id": "c-1"}
            found = await ask(http, "POST", f"{memory}/search", query)
            judged = {"receipt_id": found["receipt_id"], "outcome": outcome}
            await ask(http, "POST", f"{memory}/outcomes", judged)
        changed = {"text": f"The home of Dana is on the hill of {word}", "reason": "moved"}
        await ask(http, "PATCH", f"{memory}/items/{bank['id']}", changed)
        await ask(http, "POST", f"{memory}/items/m-2/archive", {"reason": "old"})
        await ask(http, "DELETE", f"{memory}/items/m-4")
        turn = {
            "conversation_id": "c-1",
            "message_id": "t-1",
            "tool_runs": [{"name": "map"}, {"name": "camera", "ok": False, "error_type": "off"}],
            "messages": [
                {"role": "user", "content": f"Where did Dana park in {word} yesterday evening?"},
                {"role": "assistant", "content": f"On the second floor near the port of {word}."},
            ],
        }
        await ask(http, "POST", "/api/hooks/exchange", turn)
        thumb = {"conversation_id": "c-1", "message_id": "t-1", "score": 1}
        await ask(http, "POST", "/api/hooks/score", thumb)
        template = f"identity:\n  name: Noa of {word}\ncommunication: {{tone: warm}}\n"
        await ask(http, "POST", f"{memory}/personality", {"content": template, "name": "mine"})
        await ask(http, "POST", "/api/model/context/llama3.1", {"tokens": 4096})
        files = {"file": ("guide.md", f"# Guide to {word}\n\nThe port opens at eight.".encode())}
        assert (await http.post(f"{memory}/books", files=files)).is_success
        await world.work()
        now, user_id = world.container.runtime.clock.now(), world.writes.user_id
        text = f"Dana lives in {word}. Dorit lives in {word}."
        source = SourceText(user_id, "m-1", text, now, None, None, None, ("home",))
        await world.container.understander.understand([source])
        dana, dorit = (derived_id(user_id, "Person", name, "") for name in ("dana", "dorit"))
        new = NewMerge(kept_id=dana, gone_id=dorit)
        await world.container.merges.merge(world.writes, new)
