"""Retention and legal holds over HTTP, and what honours them."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from rayapp.api.app import create_api
from rayapp.api.auth import HOLDS, RETENTION, RULES, Mark
from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.scope import EVERYTHING, ReadScope
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.harness import Harness

DAYS = {"history_days": 30, "tool_results_days": 2, "conversations_days": 60, "documents_days": 90}
SURE = {"confirm": "DELETE"}
ADMIN = {"X-User-Id": "admin"}
DESTROYING = {key for key, rule in RULES.items() if Mark.DESTROYS in rule.marks}
# DELETE routes after which nothing is lost, and one that looks at each of its users itself.
KEEPS = {
    ("DELETE", "/api/auth/session"),
    ("DELETE", "/api/auth/console"),
    ("DELETE", "/api/webhooks/{webhook_id}"),
    ("DELETE", "/api/admin/keys/{key_id}"),
    ("DELETE", "/api/memory/ops/tenants/{org_id}"),
    ("DELETE", "/api/memory/ghost"),
    ("DELETE", "/api/model/context/{model_name}"),
    ("DELETE", HOLDS),
}


@pytest.fixture
async def world() -> Harness:
    return await Harness.open(retention=DAYS)


@pytest.fixture
async def api(world: Harness) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=create_api(world.services))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


async def asked(
    api: httpx.AsyncClient, method: str, path: str, body: Any = None, *, user: str = "admin"
) -> Any:
    answer = await api.request(method, path, json=body, headers={"X-User-Id": user})
    assert answer.is_success, answer.text
    return answer.json()


async def hold(api: httpx.AsyncClient, user: str) -> None:
    await asked(api, "POST", HOLDS, {"user_id": user, "reason": "case 17"})


async def kept(world: Harness, user: str) -> int:
    return int(await world.items.count(ReadScope(user, include_shared=False), EVERYTHING))


async def aged(world: Harness, user: str, days: float, **fields: Any) -> str:
    at = world.clock.now() - timedelta(days=days)
    item = an_item(user_id=user, **{"tier": Tier.HISTORY, "stored_at": at, **fields})
    await world.items.insert(item)
    return item.memory_id


async def test_a_dry_run_says_what_would_go_and_removes_nothing(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await aged(world, "dana", 31)
    await aged(world, "dana", 29)
    await aged(world, "noa", 40, always_inject=True)
    found = await asked(api, "GET", RETENTION)
    due = {one["kind"]: (one["due"], one["removed"]) for one in found["limits"]}
    assert (found["dry_run"], found["users"], due["history"]) == (True, 1, (1, 0))
    assert set(due) == {"history", "tool_results", "conversations", "documents"}
    assert (await kept(world, "dana"), await kept(world, "noa")) == (2, 1)


async def test_a_run_deletes_as_a_route_does_and_says_so(
    api: httpx.AsyncClient, world: Harness
) -> None:
    old = await aged(world, "dana", 31, text="The boiler was mended; הדוד תוקן")
    young = await aged(world, "dana", 29, text="The garden has a tap; בגינה יש ברז")
    await world.indexed()
    found = await asked(api, "POST", RETENTION, SURE)
    assert {one["kind"]: one["removed"] for one in found["limits"]}["history"] == 1
    assert (await world.found("boiler", user="dana"), await kept(world, "dana")) == ([young], 1)
    await world.indexed()
    assert await world.index.count(ReadScope("dana", include_shared=False)) == 1
    assert (await api.get(f"/api/memory/items/{old}", headers={"X-User-Id": "dana"})).is_error
    (event,) = await world.events.recent(ReadScope("dana"), "retention", 9)
    assert event.data == {"what": "history", "rows": 1}
    assert world.metrics.counters["retention_removed", (("kind", "history"),)] == 1
    assert (await asked(api, "POST", RETENTION, SURE))["limits"][0]["removed"] == 0


async def test_a_run_asks_for_the_word(api: httpx.AsyncClient, world: Harness) -> None:
    await aged(world, "dana", 31)
    for body in ({}, {"confirm": "delete"}, {"confirm": "yes"}):
        refused = await api.post(RETENTION, json=body)
        assert refused.json()["code"] == "confirm_needed"
    assert await kept(world, "dana") == 1


async def test_conversations_and_documents_go_whole(api: httpx.AsyncClient, world: Harness) -> None:
    for conversation in ("old", "open", "new"):
        if conversation == "new":
            await world.clock.elapse(timedelta(days=100).total_seconds())
        turn = {
            "conversation_id": conversation,
            "message_id": "m-1",
            "messages": [
                {"role": "user", "content": f"I moved to Acre {conversation}; עברתי לעכו"},
                {"role": "assistant", "content": "Noted."},
            ],
        }
        await asked(api, "POST", "/api/hooks/exchange", turn, user="dana")
    switched = {"conversation_id": "open"}
    await asked(api, "POST", "/api/memory/conversations/switch", switched, user="dana")
    files = {"file": ("guide.md", b"# Guide\n\nWater the garden.")}
    for user in ("dana", "noa"):
        done = await api.post("/api/memory/books", files=files, headers={"X-User-Id": user})
        assert done.is_success
    await hold(api, "noa")
    await world.clock.elapse(timedelta(days=50).total_seconds())
    assert (await asked(api, "GET", RETENTION))["limits"][-1]["due"] == 0
    await world.clock.elapse(timedelta(days=9).total_seconds())
    found = await asked(api, "POST", RETENTION, SURE)
    removed = {one["kind"]: one["removed"] for one in found["limits"]}
    # The one that its user is in stays; the new one is 59 days old.
    assert (removed["conversations"], found["skipped"], found["held"]) == (1, 1, ["noa"])
    rows = (await asked(api, "GET", "/api/memory/conversations", user="dana"))["conversations"]
    assert {one["conversation_id"] for one in rows} == {"open", "new"}
    await world.clock.elapse(timedelta(days=40).total_seconds())
    found = await asked(api, "POST", RETENTION, SURE)
    assert {one["kind"]: one["removed"] for one in found["limits"]}["documents"] == 1
    for user, left in (("dana", 0), ("noa", 1)):
        assert (await asked(api, "GET", "/api/memory/books", user=user))["total"] == left


async def test_nothing_of_a_held_user_goes(api: httpx.AsyncClient, world: Harness) -> None:
    name = await aged(world, "dana", 31, tier=Tier.MEMORY_BANK, memory_id="f-1", tags=("goal",))
    await aged(world, "dana", 31)
    await hold(api, "dana")
    assert (await asked(api, "GET", HOLDS))["holds"][0]["user_id"] == "dana"
    assert (await asked(api, "POST", RETENTION, SURE))["limits"][0]["removed"] == 0
    for method, path in DESTROYING:
        template = path.replace("{target}", "history")
        url = template.format_map(
            dict.fromkeys(("memory_id", "conversation_id", "book_id", "task_id", "node_id"), name)
        )
        refused = await api.request(method, url, headers={"X-User-Id": "dana"})
        assert (refused.status_code, refused.json()["code"]) == (409, "legal_hold"), url
    replaced = {"payload": {"collections": {}}, "mergeStrategy": "replace"}
    for sent, code in ((replaced, "confirm_needed"), (replaced | SURE, "legal_hold")):
        headers = {"X-User-Id": "dana"}
        refused = await api.post("/api/memory/backup/import", json=sent, headers=headers)
        assert refused.json()["code"] == code
    reset = await api.post("/api/memory/ops/reset", json=SURE)
    assert reset.json()["code"] == "legal_hold"
    assert await kept(world, "dana") == 2
    # What is not deleted may be changed, and others may delete.
    await asked(api, "PATCH", f"/api/memory/items/{name}", {"tags": ["goal", "home"]}, user="dana")
    other = await aged(world, "noa", 1)
    await asked(api, "DELETE", f"/api/memory/items/{other}", user="noa")


@pytest.mark.parametrize("reason", ["", "  ", "\u200b\u200f"])
async def test_a_hold_says_why(api: httpx.AsyncClient, reason: str) -> None:
    answer = await api.post(HOLDS, json={"user_id": "dana", "reason": reason})
    assert (answer.status_code, answer.json()["details"]["field"]) == (422, "reason")


async def test_a_hold_is_kept_until_it_is_released(api: httpx.AsyncClient, world: Harness) -> None:
    first = await asked(api, "POST", HOLDS, {"user_id": "dana", "reason": "case 17"})
    again = await asked(api, "POST", HOLDS, {"user_id": "dana", "reason": "case 18"})
    assert (first["hold"], again["hold"]["reason"]) == (again["hold"], "case 17")
    await asked(api, "DELETE", f"{HOLDS}?user_id=dana")
    gone = await api.delete(HOLDS, params={"user_id": "dana"})
    assert (gone.status_code, gone.json()["code"]) == (404, "not_held")
    name = await aged(world, "dana", 1)
    await asked(api, "DELETE", f"/api/memory/items/{name}", user="dana")
    events = await world.events.recent(ReadScope(SYSTEM_USER), None, 9)
    assert [one.kind for one in events] == ["hold_released", "hold_placed"]
    assert "dana" not in str([one.data for one in events])


async def test_a_held_session_user_is_not_cleaned_up(
    api: httpx.AsyncClient, world: Harness
) -> None:
    session = "ab" * 32
    await aged(world, session, 90)
    await hold(api, session)
    stats = await asked(api, "POST", "/api/memory/cleanup", {"dryRun": False, **SURE})
    assert (stats["result"]["users_removed"], await kept(world, session)) == (0, 1)


def test_every_route_that_deletes_is_known_to_holds() -> None:
    deletes = {key for key in RULES if key[0] == "DELETE"}
    assert deletes - KEEPS <= DESTROYING
