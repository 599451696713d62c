"""The client covers the API: every call is made once against the real API and its answer fits."""

from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Match, Route

from rayapp.admin.api_keys import ApiKeyService
from rayapp.api.app import create_api
from rayapp.api.auth import RULES
from rayapp.bulk.model import JobState
from rayapp.client import Memory, MemoryClient, RawData, RetryPolicy
from rayapp.client.calls import call
from rayapp.client.http import AllCalls
from rayapp.client.ops import OpsCalls
from rayapp.documents.rules.library import book_id_of, sha256_of
from rayapp.graphs.rules.content import content_changes, contribution_of
from rayapp.memory.item import derived_id
from rayapp.memory.tiers import Tier
from rayapp.understanding.ports import SourceText
from tests.support.builders import an_item
from tests.support.example_world import (
    GARDEN,
    KEY_ID,
    WAITING,
    add_books,
    add_derived,
    add_key,
    add_webhook,
)
from tests.support.harness import Harness
from tests.support.jobs import a_job
from tests.unit.api.serving import settings_with

TEMPLATE = "identity:\n  name: נועה\ncommunication:\n  tone: warm\n"
LOCAL = "http://127.0.0.1:8000"
ONE = {"memory_id": "mem-1"}
BOOK_ID = book_id_of(sha256_of(GARDEN.encode()))
A_TALK, A_WINDOW = {"conversation_id": "conv-7"}, {"model": "llama3.1:8b", "tokens": 4_096}
A_BOOK = {"book_id": BOOK_ID}
A_HOOK = {"webhook_id": "hook-1"}
DANA = derived_id("admin", "Person", "dana", "")
A_NODE = {"node_id": DANA}
AVI = derived_id("admin", "Person", "avi", "")
A_MERGE = derived_id("admin", "merge of", *sorted((DANA, AVI)))

PAYLOAD = {
    "collections": {},
    "manifest": {
        "format": "rayapp-export",
        "version": 1,
        "exported_at": "2026-05-01T00:00:00Z",
        "user_id": "admin",
        "parts": [],
        "renewed": {},
    },
}
OF_PAGES = "for the pages of the console"
POST_FORM = "the POST form takes all that this one takes"

# Routes that no call of the client makes, and why.
LEFT_OUT: Mapping[str, str] = {
    "GET /healthz": "for supervisors of processes; a client asks `ready`",
    "GET /api/auth/console": OF_PAGES,
    "POST /api/auth/console": OF_PAGES,
    "DELETE /api/auth/console": OF_PAGES,
    "POST /api/memory/kg": "kept for the first client; it stores nothing",
    "POST /api/memory/prefetch": "`context` in the names of the first client",
    "GET /api/memory/context/insights": POST_FORM,
    "GET /api/memory/summary": POST_FORM,
    "POST /memory/summary": "a shorter path of the same",
    "GET /api/memory/context/cold-start": POST_FORM,
    "GET /api/hooks/context": POST_FORM,
    "GET /api/model/context": "the same with the name in its path",
    "POST /v1/chat/completions": "for clients of OpenAI",
    "GET /v1/models": "for clients of OpenAI",
    "POST /v1/embeddings": "for clients of OpenAI",
    "POST /api/book-upload/upload": "the other path of an upload",
    "GET /api/book-upload/books": "leads to the other path",
    "POST /api/book-upload/books": "leads to the other path",
    "GET /api/book-upload/ws/progress/{task_id}": "`upload` tells its progress",
    "POST /api/memory/books/recognize": "the GET form takes a hash",
    "GET /api/documents": "`books` in the names of the first client",
    "GET /api/documents/{document_id}": "`book` in the names of the first client",
    "POST /api/memory/backup/upload": "`import_` sends the same as JSON",
    "POST /mcp": "spoken by clients of the Model Context Protocol",
    "POST /api/documents": "not served yet: 501",
}

# Name of a call -> its arguments; the name alone when it needs none.
CALLS: Mapping[str, Mapping[str, Any]] = {
    "store": {"memory": Memory(text="Dana moved to Acre")},
    "store_batch": {"memories": [Memory(text="one"), Memory(text="שתיים")]},
    "add_raw_data": {"text": RawData(text="Dana is proud of her son")},
    "add_raw_data_batch": {"texts": [RawData(text="one"), RawData(text="שתיים")]},
    "raw_data": ONE,
    "reprocess_raw_data": {**ONE, "force": True},
    "episodes": {"limit": 5},
    "episode": {"episode_id": "episode-1"},
    "add_episode": {"narrative": "Omri learned to ride a bike", "emotion_tags": ["proud"]},
    "thoughts": {"state": "pending", "limit": 5},
    "thought": {"thought_id": "thought-1"},
    "review": {"kind": "thought", "limit": 5},
    "decide_review": {"kind": "thought", "item_id": "thought-1", "decision": "accept"},
    "memory_summary": {"query": "How do I keep running?", "recap": True},
    "items": {"limit": 5, "tiers": "memory_bank"},
    "item": ONE,
    "edit": {**ONE, "text": "Dana lives in Acre", "tags": ["home"]},
    "archive": {**ONE, "reason": "moved"},
    "restore": ONE,
    "delete": ONE,
    "versions": ONE,
    "explain": {**ONE, "query": "Where does Dana live?"},
    "search": {"query": "Where does Dana live?", "limit": 3, "tiers": ["memory_bank"]},
    "search_vector": {"vector": [1.0] * 256, "limit": 3, "tiers": ["memory_bank"]},
    "nearest": {**ONE, "limit": 3},
    "compare": {**ONE, "other_id": "mem-2"},
    "recent": {"limit": 5, "tiers": "memory_bank", "sort_by": "score"},
    "bank": {"status": "active", "limit": 5},
    "bank_add": {"text": "Noa works in Acre", "tags": ["work"], "importance": 0.9},
    "bank_entry": ONE,
    "bank_edit": {**ONE, "changes": {"tags": ["home"]}},
    "bank_delete": ONE,
    "bank_stats": {},
    "archive_many": {"ids": ["mem-1"], "reason": "old"},
    "delete_many": {"ids": ["mem-1"]},
    "goals": {},
    "add_goal": {"text": "Learn Arabic"},
    "delete_goal": ONE,
    "values": {},
    "add_value": {"text": "כנות"},
    "delete_value": ONE,
    "upload": {"path": Path(__file__).parents[2] / "README.md", "wait": False},
    "books": {"limit": 5},
    "book": A_BOOK,
    "publish_book": A_BOOK,
    "delete_book": A_BOOK,
    "cancel_upload": {"task_id": book_id_of(sha256_of(WAITING))},
    "recognize": {"sha256": "0" * 64},
    "surrounding": {**A_BOOK, "chunk_id": "0", "radius": 1},
    "search_books": {"query": "גינה", "book_ids": [BOOK_ID], "limit": 3, "conversation_id": "c"},
    "record_outcome": {"outcome": "worked", "memory_ids": ["mem-2"]},
    "record_response": {"key_takeaway": "Dana moved", "outcome": "worked", "related": ["mem-2"]},
    "score": {"scores": {"mem-2": "partial"}},
    "feedback": {"message_id": "m-1", "score": 1, "citations": ["mem-2"]},
    "force_decay": {},
    "decay_schedule": {},
    "patterns": {},
    "context": {
        "query": "Where does Dana live?",
        "conversation_id": "conv-7",
        "recent_messages": [{"role": "user", "content": "שלום"}],
        "tools": ["search_memory", "web_search"],
    },
    "prompt": {"query": "Where does Dana live?", "model": "llama3.1:8b"},
    "model_windows": {},
    "model_window": {"model": "llama3.1:8b"},
    "set_model_window": A_WINDOW,
    "unset_model_window": {"model": "llama3.1:8b"},
    "conversations": {"query": "Dana", "limit": 5},
    "conversation": A_TALK,
    "messages": {**A_TALK, "limit": 10},
    "switch_conversation": A_TALK,
    "rename_conversation": {**A_TALK, "title": "הבית של דנה"},
    "delete_conversation": A_TALK,
    "export_conversation": A_TALK,
    "cold_start": {"conversation_id": "conv-7"},
    "hook_context": {"query": "Where does Dana live?", "tiers": ["history"], "limit": 3},
    "exchange": {
        "conversation_id": "conv-7",
        "message_id": "m-1",
        "messages": [
            {"role": "user", "content": "Where does Dana live?"},
            {"role": "assistant", "content": "Dana lives in Haifa."},
        ],
        "tools": ["search_memory"],
    },
    "hook_score": {
        "conversation_id": "conv-7",
        "message_id": "m-1",
        "score": 1,
        "memory_ids": ["mem-2"],
    },
    "hook_score_state": {"message_id": "m-1"},
    "tools": {"strict": False},
    "tool_table": {"names": ["search_memory", "web_search"]},
    "call_tool": {"name": "search_memory", "arguments": {"query": "Haifa"}, "turn_id": "t-1"},
    "keep_tool_results": {
        "results": [{"tool_name": "web_search", "output": "Trains to Haifa leave " * 20}]
    },
    "check_response": {"text": "<think>דנה", "expect_json": False},
    "model_usage": {"days": 7},
    "personality": {},
    "save_personality": {"content": TEMPLATE, "name": "mine"},
    "use_personality": {"template_id": "friendly"},
    "delete_personality": {"template_id": "mine"},
    "presets": {},
    "personality_prompt": {"lang": "he"},
    "hide": {"memory_id": "mem-2"},
    "unhide": {"memory_id": "mem-2"},
    "hidden": {"limit": 5},
    "data_stats": {},
    "clear_data": {"target": "history", "confirm": "DELETE"},
    "erase_user": {"confirm": "DELETE"},
    "erase_part": {"part": "memory", "id": "mem-1", "confirm": "DELETE"},
    "webhooks": {},
    "webhook": A_HOOK,
    "add_webhook": {"url": "https://garden.example/events", "events": ["stored"]},
    "edit_webhook": {**A_HOOK, "changes": {"enabled": False}},
    "delete_webhook": A_HOOK,
    "renew_webhook_secret": A_HOOK,
    "test_webhook": A_HOOK,
    "webhook_deliveries": {**A_HOOK, "state": "dead", "limit": 5},
    "replay_webhook": {**A_HOOK, "days": 7},
    "backup_estimate": {"include": ["memories"]},
    "export": {"include": ["memories", "graphs"]},
    "import_": {"payload": PAYLOAD, "dry_run": True},
    "import_from": {
        "source": "markdown",
        "path": Path(__file__).parents[2] / "README.md",
        "dry_run": True,
    },
    "restore_export": {"payload": PAYLOAD},
    "backups": {},
    "clean_up_backups": {"keep": 3},
    "ops.promote": {"all_users": True},
    "ops.data_sizes": {},
    "ops.compact": {},
    "ops.session_users": {"quiet_days": 30},
    "ops.clean_up": {},
    "ops.migration": {},
    "ops.migrate": {"owner": "admin"},
    "ops.verify_migration": {},
    "ops.find_blobs": {"tier": "history"},
    "ops.remove_blobs": {"tier": "history"},
    "ops.integrity": {},
    "ops.daily": {"days": 7},
    "ops.retention": {},
    "ops.run_retention": {"confirm": "DELETE"},
    "session_token": {"seconds": 600, "scopes": ["read"]},
    "end_session_token": {"token": ""},
    "ops.holds": {},
    "ops.tenants": {},
    "ops.tenant_users": {"org_id": "acme"},
    "ops.keys": {},
    "ops.make_key": {"principal": "shop", "owner": "noa", "name": "The shop's assistant"},
    "ops.rotate_key": {"key_id": KEY_ID},
    "ops.revoke_key": {"key_id": KEY_ID},
    "ops.audit": {"principal": "shop", "limit": 20},
    "ops.erase_tenant": {"org_id": "acme", "confirm": "DELETE"},
    "ops.hold": {"owner": "noa", "reason": "case 2026-17"},
    "ops.release": {"owner": "noa"},
    "ops.reset_preview": {},
    "ops.reset": {"confirm": "DELETE"},
    "insights": {"query": "Where does Dana live?", "recent_messages": ["דנה עברה"]},
    "graph": {"mode": "content", "include_datagov": True},
    "kg": {"mode": "both", "limit": 5},
    "action_rollups": {"limit": 5, "include_tiers": False},
    "concept": {"concept_id": "haifa"},
    "concept_path": {"source": "haifa", "target": "dana"},
    "content_graph_stats": {},
    "knowledge_nodes": {"type": "Person", "limit": 5},
    "knowledge_node": A_NODE,
    "knowledge_relationships": {**A_NODE, "direction": "both", "limit": 5},
    "delete_knowledge_node": A_NODE,
    "add_entity": {"type": "Person", "name": "Sarah", "synonyms": ["שרה"]},
    "link_nodes": {"from_id": DANA, "to_id": DANA, "type": "RELATED_TO"},
    "query_knowledge": {"relation": "LIVES_IN", "target": {"type": "Place", "name": "חיפה"}},
    "knowledge_snapshot": {"limit": 5},
    "edit_knowledge_node": {**A_NODE, "name": "Dana", "synonyms": ["דנה"]},
    "knowledge_merges": {"limit": 5},
    "merge_nodes": {"kept_id": DANA, "gone_id": AVI},
    "decide_merge": {"merge_id": A_MERGE, "decision": "undo"},
    "split_node": {**A_NODE, "memory_ids": ["mem-2"], "dry_run": True},
    "knowledge_ontology": {},
    "propose_name": {"kind": "type", "name": "sport", "words": ["chess"], "parent": "Skill"},
    "knowledge_pages": {"type": "Person", "limit": 5, "language": "he"},
    "knowledge_page": {**A_NODE, "language": "en"},
    "content_graph_backfill": {"limit": 10, "dry_run": True},
    "ops.reindex": {"tier": "history"},
    "ops.reindex_rollback": {},
    "ops.reindex_progress": {},
    "ops.reindex_wish": {"wish": "pause"},
    "ops.deferred": {"owner": "dana"},
    "ops.run_deferred": {"owner": "dana"},
    "ops.ingest_datagov": {},
    "ops.datagov_status": {},
    "ops.consistency": {"sample": 10, "repair": False},
    "ops.sweep": {"repair": False},
    "ops.breakers": {},
    "ops.reset_breakers": {},
    "ops.set_degraded": {"enabled": True},
    "ops.jobs": {"limit": 5},
    "ops.job": {"job_id": "job-1"},
    "ops.pause_job": {"job_id": "job-1"},
    "ops.resume_job": {"job_id": "job-1"},
    "ops.cancel_job": {"job_id": "job-1"},
    "ops.wait_job": {"job_id": "job-1"},
    "diagnostics": {},
    "backlog": {},
    "ready": {},
    "wait_indexed": {},
    "stats": {},
    "growth": {"days": 7},
    "health": {"full": True},
    "version": {},
    "system_health": {},
    "disk_space": {},
}
# Arguments of further calls of the same method, for the routes that the first does not touch.
AGAIN: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("ops.reindex_wish", {"wish": "resume"}),
    ("ops.reindex_wish", {"wish": "cancel"}),
)
# Calls that make what this one needs.
BEFORE: Mapping[str, tuple[str, ...]] = {
    "restore": ("archive",),
    "unhide": ("hide",),
    "ops.release": ("ops.hold",),
    "delete_personality": ("save_personality", "use_personality"),
    "unset_model_window": ("set_model_window",),
    **dict.fromkeys(
        ("conversation", "messages", "rename_conversation", "delete_conversation"), ("exchange",)
    ),
    "export_conversation": ("exchange",),
    "decide_merge": ("merge_nodes",),
}
NEEDS_A_RUNNING_JOB = frozenset(
    {"ops.reindex_wish", "ops.job", "ops.pause_job", "ops.resume_job", "ops.cancel_job"}
)


# Keyless services have none.
NEEDS_KEYS = frozenset({"session_token", "end_session_token"})
KEYS = {"mode": "keys", "sessions": True, "session_secret": "s" * 40}


class Recording(httpx.AsyncBaseTransport):
    """The application in process, and the requests that reached it."""

    def __init__(self, world: Harness) -> None:
        self._inner = httpx.ASGITransport(app=create_api(world.services))
        self.seen: list[tuple[str, str]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append((request.method, request.url.raw_path.decode().split("?")[0]))
        return await self._inner.handle_async_request(request)


class InProcess(MemoryClient):
    """The async client without a socket."""

    def __init__(self, transport: Recording, key: str) -> None:
        super().__init__(LOCAL, user_id="admin", retry=RetryPolicy(attempts=1))
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.AsyncClient(transport=transport, base_url=LOCAL, headers=headers)


async def a_world() -> Harness:
    """Two memories, known to the content graph."""
    world = Harness.ready()
    for name, tier, text in (
        ("mem-1", Tier.MEMORY_BANK, "Dana lives in Haifa"),
        ("mem-2", Tier.HISTORY, "Dana works near Haifa"),
    ):
        item = an_item(
            user_id="admin", memory_id=name, tier=tier, text=text, tags=("goal", "value")
        )
        await world.items.insert(item)
    await add_books(world)
    await add_webhook(world)
    for memory_id, text in (
        ("mem-1", "Dana lives in Haifa."),
        ("mem-2", "Dana works at Intel."),
        ("mem-3", "Avi lives in Oslo."),
    ):
        said = ("admin", memory_id, text, world.clock.now(), None, None, None, ())
        await world.container.understander.understand([SourceText(*said)])
    await add_derived(world)
    await add_key(world)
    for due in await world.graphs.follow_ups(10):
        found = contribution_of(due.item)
        changes = content_changes(due.contributed, found, due.item.memory_id)
        assert await world.graphs.settle_content(due, found, changes)
    return world


def names_of_calls() -> set[str]:
    return {
        f"{under}{name}"
        for under, kind in (("", AllCalls), ("ops.", OpsCalls))
        for group in kind.__mro__
        for name, value in vars(group).items()
        if isinstance(value, call)
    }


async def made(name: str, arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The requests of one call in a world of its own."""
    # Nobody indexes in this world: to wait for it, nothing may wait.
    world, key = Harness.ready(), ""
    if name in NEEDS_KEYS:
        world = Harness.ready(settings_with(auth=KEYS))
        keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
        key, row = await keys.create("app", user_id="admin", scopes=["read"])
        token, _ = world.services.session_tokens.make(row, "admin", frozenset(), None)
        arguments = {one: token if one == "token" else arguments[one] for one in arguments}
    elif name != "wait_indexed":
        world = await a_world()
    if name in NEEDS_A_RUNNING_JOB:
        await a_job(world.jobs, JobState.RUNNING)
    elif name == "ops.wait_job":
        await a_job(world.jobs, JobState.PAUSED)
    transport = Recording(world)
    async with InProcess(transport, key) as client:
        for first in BEFORE.get(name, ()):
            await attrgetter(first)(client)(**CALLS[first])
        transport.seen.clear()
        await attrgetter(name)(client)(**arguments)
    return transport.seen


REQUESTS: dict[str, list[tuple[str, str]]] = {}


async def made_once(name: str) -> list[tuple[str, str]]:
    """The requests of one of CALLS, made for the first test that asks."""
    if name not in REQUESTS:
        REQUESTS[name] = await made(name, CALLS[name])
    return REQUESTS[name]


def test_every_call_of_the_client_is_tried_here() -> None:
    assert names_of_calls() == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
async def test_the_answer_of_every_call_fits(name: str) -> None:
    assert await made_once(name)


def routed(app: FastAPI, method: str, path: str) -> str | None:
    """The template of the route that answers."""
    scope = {"type": "http", "method": method, "path": path, "headers": []}
    found = (route for route in app.routes if route.matches(scope)[0] is Match.FULL)
    return next((route.path for route in found if isinstance(route, Route)), None)


async def test_the_client_covers_every_documented_route() -> None:
    app = create_api(None)
    paths: dict[str, dict[str, Any]] = app.openapi()["paths"]
    documented = {f"{method.upper()} {path}" for path, item in paths.items() for method in item}
    touched = {"GET /api/memory/events", "GET /api/memory/jobs/{job_id}/events"}  # as streams
    seen = {name: await made_once(name) for name in CALLS}
    again = [(name, await made(name, arguments)) for name, arguments in AGAIN]
    for name, requests in [*seen.items(), *again]:
        for method, path in requests:
            route = routed(app, method, path)
            assert route is not None, f"{name} asks for {method} {path}, which nobody serves"
            touched.add(f"{method} {route}")
    assert documented - touched - LEFT_OUT.keys() == set(), "give the client a call or a reason"
    assert LEFT_OUT.keys() <= documented - touched


# Calls that need the scope `admin` and are no operator's work, and why.
NOT_OPERATORS: Mapping[str, str] = {
    "import_": "a user's own archive",
    "restore_export": "a user's own archive",
    **dict.fromkeys(
        ("diagnostics", "backlog", "wait_indexed", "disk_space"),
        "how the service is, beside `ready`",
    ),
}


async def test_what_an_operator_does_stands_under_ops() -> None:
    app = create_api(None)
    asked = {
        name: {(method, routed(app, method, path)) for method, path in await made_once(name)}
        for name in CALLS
    }
    admin = {key for key, rule in RULES.items() if rule.scope == "admin"}
    flat = {name for name, routes in asked.items() if routes & admin and name[:4] != "ops."}
    assert flat == NOT_OPERATORS.keys()
