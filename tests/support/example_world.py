"""A service that was used for a while, in which the examples of the API document are true."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx

from rayapp.admin.ports import ApiKey, Deed
from rayapp.admin.webhooks.records import Delivery, Webhook
from rayapp.admin.webhooks.rules import new_secret
from rayapp.api.app import create_api
from rayapp.api.auth import HOLDS
from rayapp.api.openapi import examples
from rayapp.api.route import Route
from rayapp.assistant.completions.service import CompletionsService
from rayapp.bulk.model import JobState
from rayapp.core.settings.model import RetentionSettings
from rayapp.documents.reading import ReadLimits
from rayapp.documents.records import Block, BlockKind, Extracted
from rayapp.documents.service import CLAIM_S
from rayapp.inference.backends.chat_model import ChatEndpoint
from rayapp.memory.item import Quality, derived_id
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import Tier
from rayapp.understanding.derived.ports import DerivedRows
from rayapp.understanding.derived.records import DerivedKind, State
from rayapp.understanding.ports import SourceText
from rayapp.understanding.statements.requests import NewMerge
from tests.support.builders import an_item
from tests.support.derived_contract import a_row
from tests.support.harness import Harness, local_settings
from tests.support.jobs import a_job

EVENTS = "text/event-stream"
A_TEMPLATE = "identity: {name: Noa}\ncommunication: {tone: warm}\n"
GARDEN = (
    "# Garden\n\nThe garden is watered on Monday and Thursday. "
    "את הגינה משקים ביום שני וביום חמישי.\n"
)
WAITING = b"A text that waits."
TALK = "conv-7"
# What is understood of which memory.
KNOWN = {
    "mem-1": "Dana lives in Haifa.",
    "mem-2": "Dana works at Intel.",
    "mem-3": "Avi lives in Oslo.",
    "mem-4": "Ronit lives in Acre.",
    "mem-5": "Rona lives in Acre.",
}
FACT = "Dana lives in Haifa with Omri; דנה גרה בחיפה עם עמרי"
TURNS = (
    "Dana parks on the second floor of the office; דנה חונה בקומה השנייה",
    "Restarting the cache fixed the timeout of the payment service",
    "Raising the timeout of the payment service did not help",
)
AN_EXCHANGE = {
    "conversation_id": "conv-8",
    "message_id": "msg-1",
    "model": "dicta-7b",
    "tool_runs": [{"name": "garden_calendar", "run_id": "run-1", "ok": True, "latency_ms": 120}],
    "messages": [
        {"role": "user", "content": "How do I water the garden? איך משקים את הגינה?"},
        {"role": "assistant", "content": "On Monday and Thursday; ביום שני וביום חמישי, בבוקר."},
    ],
}
KEY_ID = "3f9c2a51b07de846"
A_DEED = Deed(
    principal="shop",
    key_id=KEY_ID,
    user_id="admin",
    source="203.0.113.7",
    method="DELETE",
    route="/api/memory/items/{memory_id}",
    ids={"memory_id": "mem-9"},
    status=200,
    request_id="4f6c1c0de5b94a1f",
)
JOBS = ("/api/memory/jobs", "/api/memory/ops/reindex")


def needs_a_job(path: str) -> bool:
    """Operators' routes act on a job that runs."""
    return path.startswith(JOBS[0]) or path.endswith(("/pause", "/resume", "/cancel"))


async def example_world() -> Harness:
    """`mem-1` is a fact that helped and was changed, `mem-hidden` is hidden; a few turns are kept,
    searched and judged, and the graphs know them."""
    limits = RetentionSettings(history_days=365, conversations_days=730)
    shipped = local_settings()
    at_once = shipped.understanding.model_copy(update={"settle_s": 0.0})
    own = {"retention": limits, "understanding": at_once}
    world = Harness.ready(shipped.model_copy(update=own))
    fact = an_item(
        user_id="admin",
        memory_id="mem-1",
        tier=Tier.MEMORY_BANK,
        text=FACT,
        tags=("family", "goal", "value"),
        entities=("Dana", "Omri"),
        quality=Quality(importance=0.9, confidence=0.8),
        always_inject=True,
    )
    await world.items.insert(fact)
    await world.items.insert(
        an_item(user_id="admin", memory_id="mem-hidden", text="Dana lived in Akko")
    )
    await world.services.user_data.hide(WriteScope("admin"), "mem-hidden", "user_action")
    await world.services.personality.save(
        WriteScope("admin"), A_TEMPLATE, name="mine", description=None, activate=False
    )
    async with client_of(world) as http:
        for number, text in enumerate(TURNS, 1):
            turn = {"text": text, "tier": "patterns", "memory_id": f"mem-{number + 1}"}
            await _done(http, "POST", "/api/memory/store", turn)
        await world.indexed()
        for query, outcome in (("Where does Dana live?", "worked"), ("payment timeout", "failed")):
            for _ in range(3):
                asked = {"query": query, "limit": 1, "conversation_id": TALK}
                found = await _done(http, "POST", "/api/memory/search", asked)
                judged = {"outcome": outcome, "receipt_id": found["receipt_id"]}
                await _done(http, "POST", "/api/memory/outcomes", judged)
        await _done(http, "POST", "/api/hooks/exchange", AN_EXCHANGE)
        window = {"tokens": 8192}
        await _done(http, "POST", "/api/model/context/qwen3:8b", window)
        changed = {"tags": ["family", "goal", "value", "משפחה"], "reason": "a Hebrew tag"}
        await _done(http, "PATCH", "/api/memory/items/mem-1", changed)
        await world.indexed()
        await world.settle()
        await world.container.understanding.run_once()
    said_at = world.clock.now()
    for memory_id, text in KNOWN.items():
        known = SourceText("admin", memory_id, text, said_at, None, None, None, ())
        await world.container.understander.understand([known])
    await add_derived(world)
    kept, gone = (derived_id("admin", "Person", name, "") for name in ("ronit", "rona"))
    await world.services.merges.merge(WriteScope("admin"), NewMerge(kept_id=kept, gone_id=gone))
    await add_books(world)
    await add_key(world)
    await world.services.audit.note(A_DEED)
    await add_webhook(world)
    complete_with_endpoint(world)
    await world.services.storage_report.roll_up()
    return world


async def add_derived(world: Harness) -> None:
    """A thought that waits, one that is accepted, and an episode."""
    (said,) = a_row(0).sources
    said = replace(said, source_id="mem-1", said_at=world.clock.now(), happened_at=said.said_at)
    waits = a_row(0, derived_id="thought-1", sources=(said,))
    stands = replace(waits, derived_id="thought-2", state=State.ACCEPTED)
    scene = replace(stands, derived_id="episode-1", kind=DerivedKind.EPISODE, pattern=None)

    async def work(rows: DerivedRows) -> None:
        await rows.put([waits, stands, scene])

    await world.derived.change(WriteScope("admin"), work)


async def add_key(world: Harness) -> None:
    """`KEY_ID`, of the tenant acme."""
    row = ApiKey(
        key_hash=f"{KEY_ID:0<64}",
        principal="shop",
        user_id=None,
        scopes=frozenset({"admin"}),
        created_at=world.clock.now(),
        org_id="acme",
        name="The shop's assistant",
    )
    await world.services.api_keys.add(row)


async def add_webhook(world: Harness) -> None:
    """`hook-1`, whose program did not take the event `event-1`."""
    now = world.clock.now()
    hook = Webhook(
        user_id="admin",
        webhook_id="hook-1",
        url="https://garden.example/events",
        kinds=("stored", "archived"),
        secret=new_secret(b"k" * 24),
        since="00000000",
        principal="local",
        created_at=now,
        description="Tells the garden",
    )
    await world.webhooks.add(hook, 1)
    told = Delivery(
        user_id="admin",
        delivery_id="event-1",
        webhook_id="hook-1",
        kind="stored",
        at=now,
        data={"memory_id": "mem-1", "tier": "memory_bank"},
        expires_at=now + timedelta(days=30),
        tries=1,
        tried_at=now,
        status=503,
        took_ms=41.5,
    )
    await world.webhooks.queue([told])
    (claim,) = await world.webhooks.deliveries.claim("test", 1, 60.0)
    await world.webhooks.deliveries.bury(claim, "The program answered with status 503.")


class Endpoint(ChatEndpoint):
    """A model that knows where Dana lives."""

    def __init__(self) -> None:
        self.model = "gpt-oss-20b"

    async def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        said = {"role": "assistant", "content": "Dana lives in Haifa with Omri."}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1767225600,
            "model": self.model,
            "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 212, "completion_tokens": 8, "total_tokens": 220},
        }

    async def models(self) -> list[dict[str, Any]]:
        return [{"id": self.model, "object": "model"}]


def complete_with_endpoint(world: Harness) -> None:
    """Let the world's completions ask an `Endpoint`."""
    completions = CompletionsService(
        world.services.hooks,
        Endpoint(),
        world.services.models,
        table=world.services.tools.table,
        runtime=world.runtime,
    )
    world.services = replace(world.services, completions=completions)


async def add_books(world: Harness) -> None:
    """One document that can be asked about, and one that waits."""
    books, scope = world.services.books, WriteScope("admin")
    await books.upload(scope, GARDEN.encode(), "garden.md", author="Dana")
    work = world.reading(garden)
    await work.run_once()
    await world.indexed()
    await world.clock.elapse(CLAIM_S)
    await work.run_once()
    await books.upload(scope, WAITING, "waits.txt")


async def garden(data: bytes, name: str, limits: ReadLimits) -> Extracted:
    """What a reader finds in it."""
    title, text = GARDEN.removeprefix("# ").strip().split("\n\n")
    blocks = (Block(BlockKind.HEADING, title, 1), Block(BlockKind.PARAGRAPH, text))
    return Extracted("md", title, None, "mixed", blocks)


@asynccontextmanager
async def client_of(world: Harness) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=create_api(world.services))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


async def answered(world: Harness, route: Route) -> httpx.Response:
    """What the example request of the route is answered in this world."""
    row = examples()[f"{route.method} {route.path}"]
    if needs_a_job(route.path):
        await a_job(world.jobs, JobState.RUNNING)
    if route.path == HOLDS:
        await world.services.holds.place("omer", "case 2026-16", "operator")
    async with client_of(world) as http:
        path = route.path.format(**row.get("path", {}))
        query, form = row.get("query"), dict(row.get("form", {}))
        if form:
            files = {"file": tuple(form.pop("file"))}
            return await http.request(route.method, path, params=query, data=form, files=files)
        return await http.request(route.method, path, params=query, json=row.get("body"))


def shown(media: str, example: Any) -> Any:
    """The value that an answer holds: of a stream, the data of its first event."""
    if media != EVENTS:
        return example
    return next(
        json.loads(line.removeprefix("data: "))
        for line in example.splitlines()
        if line.startswith("data: ")
    )


async def _done(
    http: httpx.AsyncClient, method: str, path: str, body: Mapping[str, Any]
) -> dict[str, Any]:
    answer = await http.request(method, path, json=body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found
