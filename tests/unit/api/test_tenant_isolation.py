"""Users with one name in two tenants, and without one: nobody's answer depends on the others.

Each caller sends the same requests twice: beside the others, and alone in a service of its own.
Both times the answers must be the same, but for what is made at random and what is measured.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.admin.api_keys import ApiKeyService
from rayapp.api.app import ROUTES
from rayapp.api.auth import MCP, RULES
from rayapp.api.openapi import examples as bodies
from rayapp.api.route import Route
from rayapp.assistant.tools.rules.definitions import TOOLS_BY_NAME
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.documents.service import CLAIM_S
from rayapp.portability import erasure
from tests.support.example_world import GARDEN, WAITING, complete_with_endpoint, garden
from tests.support.examples import examples
from tests.support.harness import AT_ONCE, Harness
from tests.unit.api.serving import client_of

# What is stored under each name says so, in both languages; all are the user `dana`.
TENANTS: Mapping[str | None, str] = {None: "plain", "acme": "acmeword", "beta": "betaword"}
# They tell how the service is, not what is kept.
OF_THE_SERVICE = frozenset({"/api/memory/health", "/api/system/health"})
# What takes most away comes last.
REMOVES = ("/delete", "/clear/{target}", "/user")
TOOLS: Mapping[str, Mapping[str, Any]] = {
    "get_context_insights": {"query": "Where does Dana live? איפה דנה גרה?"},
    "search_memory": {"query": "Dana"},
    "search_books": {"query": "garden"},
    "record_response": {"key_takeaway": "Dana wants tea", "outcome": "worked"},
    "add_to_memory_bank": {"content": "דנה שותה תה", "importance": 0.9, "confidence": 0.9},
    "update_memory": {"memory_id": "mem-1", "content": "Dana lives in Akko"},
    "archive_memory": {"memory_id": "mem-1", "reason": "not true"},
    "score_memories": {"scores": {"mem-2": "worked"}},
    "memory_summary": {"query": "What matters to me? מה חשוב לי?"},
    "who_is": {"who": "Dana"},
    "timeline": {"about": "everything"},
}
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Made of ids, drawn, or measured.
VARYING = re.compile(r"(_ms|Ms|trace_id|sha256|bytes|Bytes|cursor|cache_hit_rate|hash|secret)$")
# What a route is sent: its example, or something beside it.
Call = tuple[Route, Mapping[str, Any]]
Step = tuple[str | None, Call]


class World:
    """One service with a key per tenant of `names`, each for the user dana."""

    def __init__(self) -> None:
        self.harness = Harness.ready(keys_settings())
        self.callers: dict[str | None, httpx.AsyncClient] = {}

    async def open(self, names: Sequence[str | None], stack: AsyncExitStack) -> World:
        world = self.harness
        complete_with_endpoint(world)
        keys = ApiKeyService(self.harness.services.api_keys, clock=self.harness.clock, cache_s=0)
        for org_id in names:
            secret, _ = await keys.create(
                "dana", user_id="dana", scopes=["read", "write", "admin"], org_id=org_id
            )
            client = client_of(self.harness.services, {"Authorization": f"Bearer {secret}"})
            self.callers[org_id] = await stack.enter_async_context(client)
        for org_id in names:
            await self._fill(self.callers[org_id], TENANTS[org_id])
        await self._read(len(names))
        for org_id in names:
            await self._upload(self.callers[org_id], TENANTS[org_id], "waits.txt", WAITING)
        return self

    async def send(self, step: Step) -> tuple[int, Any]:
        org_id, (route, row) = step
        path = route.path.format(**row.get("path", {}))
        query, form = row.get("query"), dict(row.get("form", {}))
        content: dict[str, Any] = {"json": row.get("body")}
        if form:
            content = {"files": {"file": tuple(form.pop("file"))}, "data": form}
        answer = await self.callers[org_id].request(route.method, path, params=query, **content)
        await self.work()
        said = answer.text
        for other, word in TENANTS.items():
            if other != org_id:
                assert word not in said, f"{route.path} shows {org_id} what belongs to {other}"
            assert other is None or f"{other}/" not in said, f"{route.path} shows the tenant"
        return answer.status_code, comparable(answer)

    async def work(self) -> None:
        """What the background owes."""
        await self.harness.indexed()
        await self.harness.settle()
        while await self.harness.container.understanding.run_once():
            pass

    async def _fill(self, caller: httpx.AsyncClient, word: str) -> None:
        items = [
            {
                "memory_id": "mem-1",
                "text": f"Dana lives in Haifa with {word}",
                "tier": "memory_bank",
            }
            | {"importance": 0.9, "confidence": 0.8, "tags": ["family"], "always_inject": True},
            {"memory_id": "mem-2", "text": f"דנה גרה בחיפה, {word}", "tier": "patterns"},
            {"memory_id": "mem-hidden", "text": f"Dana lived in Akko, {word}"},
        ]
        turn = [
            {"role": "user", "content": f"How do I water the garden of {word}?"},
            {"role": "assistant", "content": f"On Monday, {word}."},
        ]
        exchange = {"conversation_id": "conv-8", "message_id": "msg-1", "messages": turn}
        template = {
            "name": "mine",
            "content": f"identity: {{name: {word}}}\ncommunication: {{tone: warm}}\n",
        }
        for path, body in (
            ("/api/memory/store/batch", {"items": items}),
            ("/api/memory/ghost", {"memory_id": "mem-hidden"}),
            ("/api/hooks/exchange", exchange),
            ("/api/memory/personality", template),
            ("/api/memory/outcomes", {"memory_ids": ["mem-2"], "outcome": "worked"}),
            ("/api/model/context/qwen3:8b", {"tokens": 8192}),
            ("/api/knowledge/entity", {"type": "Person", "name": word}),
        ):
            (await caller.post(path, json=body)).raise_for_status()
            await self.work()
        await self._upload(caller, word, "garden.md", GARDEN.encode())

    async def _read(self, users: int) -> None:
        """Their documents, in two passes."""
        reading = self.harness.reading(garden)
        for _ in range(2):
            for _ in range(users):
                await reading.run_once()
            await self.work()
            await self.harness.clock.elapse(CLAIM_S)

    async def _upload(self, caller: httpx.AsyncClient, word: str, name: str, data: bytes) -> None:
        form = {"author": word}
        answer = await caller.post("/api/memory/books", files={"file": (name, data)}, data=form)
        answer.raise_for_status()


@pytest.fixture(autouse=True, scope="module")
def at_once() -> Iterator[None]:
    """No indexer runs beside a request, so an erasure need not wait for one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(erasure, "POLL_S", 0.0)
        yield


@cache
def keys_settings() -> Settings:
    at_once = {"search": AT_ONCE, "understanding": {"settle_s": 0.0}}
    return load_settings("local", env={}, overrides={**at_once, "auth": {"mode": "keys"}})


def comparable(answer: httpx.Response) -> Any:
    """An answer without what differs between two services that hold the same."""
    seen: dict[str, str] = {}
    text = ID.sub(lambda match: seen.setdefault(match[0], f"id-{len(seen)}"), answer.text)
    try:
        return steady(json.loads(text))
    except ValueError:
        return [line for line in text.splitlines() if not line.startswith("id:")]


def steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: steady(one) for name, one in value.items() if not VARYING.search(name)}
    return [steady(one) for one in value] if isinstance(value, list) else value


def calls() -> list[Call]:
    """Every route that is about one user, by its example, and every tool over MCP."""
    found: list[Call] = []
    for route in ROUTES:
        rule = RULES[route.method, route.path]
        if not rule.of_one_user or route.path in OF_THE_SERVICE:
            continue
        row = bodies()[f"{route.method} {route.path}"]
        whole = {"query": {"format": "json"}} if route.path.endswith("/backup/export") else {}
        found.append((route, {**row, **whole}))
        if route.path == MCP:
            found += [(route, {"body": tool_call(name, TOOLS[name])}) for name in TOOLS]
    return sorted(found, key=lambda one: (one[0].path.endswith(REMOVES), one[0].method == "DELETE"))


def tool_call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


CALLS = calls()


async def answers(steps: Sequence[Step], names: Sequence[str | None]) -> list[tuple[int, Any]]:
    async with AsyncExitStack() as stack:
        world = await World().open(names, stack)
        return [await world.send(step) for step in steps if step[0] in names]


async def compare(steps: Sequence[Step]) -> None:
    together = await answers(steps, list(TENANTS))
    for org_id in TENANTS:
        mine = [
            (step, found) for step, found in zip(steps, together, strict=True) if step[0] == org_id
        ]
        alone = await answers([step for step, _ in mine], [org_id])
        for (step, found), other in zip(mine, alone, strict=True):
            assert found == other, f"{step[1][0].method} {step[1][0].path} of {org_id}"


def test_every_tool_is_called() -> None:
    assert TOOLS.keys() == TOOLS_BY_NAME.keys()


async def test_every_route_answers_as_if_the_caller_were_alone() -> None:
    await compare([(org_id, call) for call in CALLS for org_id in TENANTS])


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(list(TENANTS)), st.sampled_from(CALLS)), min_size=4, max_size=16
    )
)
def test_in_any_order(steps: list[Step]) -> None:
    asyncio.run(compare(steps))
