"""A deleted conversation leaves no row of it in any collection and takes none of another."""

from collections import Counter
from typing import Any

import httpx
import pytest

from rayapp.inference.chat.rules.answers import OutcomeJudgement
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import AUDIT_LOG, CHANGES, DELETIONS, INDEXES, LEASES, VERSIONS
from tests.support.mongo_server import MongoServer
from tests.support.mongo_service import MongoService
from tests.unit.api.serving import client_of
from tests.unit.assistant.extraction.world import ScriptedAnswers

GONE, KEPT = "conv-gone", "conv-kept"
LIST = "/api/memory/conversations"
# Notes of what changed for an hour, counts of what was deleted, who does the work and did what;
# and that a memory which is current again was replaced for a while.
NOT_COMPARED = {AUDIT_LOG, CHANGES, DELETIONS, LEASES, VERSIONS}
WORLDS = {"dana": (GONE, KEPT), "omer": (KEPT,)}
# What is said in the conversation that is deleted, and nowhere else.
SECRETS = ("zorblax", "Eilat", "זורבלקס", GONE)


def judged(variables: dict[str, Any]) -> OutcomeJudgement:
    worked = "worked" in str(variables["next_message"])
    return OutcomeJudgement.model_validate(
        {"outcome": "worked" if worked else "unknown", "confidence": 0.9 if worked else 0.1}
    )


def fact(variables: dict[str, Any]) -> str:
    said = str(variables["user_text"])
    if "Eilat" in said:
        return "The user lives in Eilat"
    return "The user parks on the second floor" if "floor" in said else "NOTHING"


def scripted() -> ScriptedAnswers:
    script = ScriptedAnswers()
    script.answers |= {"outcome_detection": judged, "fact_extraction": fact}
    return script


async def post(api: httpx.AsyncClient, path: str, body: dict[str, Any], **how: Any) -> Any:
    response = await api.post(path, json=body, **how)
    assert response.is_success, response.text
    return response.json()


async def talk(api: httpx.AsyncClient, name: str, *turns: tuple[str, str]) -> None:
    """Each turn with its context before it, marks in it and a thumb after it."""
    messages: list[dict[str, str]] = []
    for number, (question, answer) in enumerate(turns, 1):
        ask = {"query": question, "conversationId": name, "messageId": f"m-{number}"}
        await post(api, "/api/memory/context", ask)
        messages += [
            {"role": "user", "content": question},
            {"role": "assistant", "content": f"{answer} <!-- MEM: 1👍 -->"},
        ]
        body = {"conversationId": name, "messageId": f"m-{number}", "messages": messages}
        body["toolRuns"] = [{"name": f"gardens_{name}"}, {"name": "clock", "ok": False}]
        headers = {"Idempotency-Key": f"{name}-{number}"}
        await post(api, "/api/hooks/exchange", body, headers=headers)
        thumb = {"messageId": f"m-{number}", "conversationId": name, "score": 1}
        await post(api, "/api/hooks/score", thumb)


async def live(service: MongoService, user: str) -> None:
    """Facts of elsewhere, then the conversations of this user's world."""
    async with client_of(service.services, {"X-User-Id": user}) as api:
        home = {"text": "The user lives in Haifa", "memory_id": "home", "tier": "memory_bank"}
        facts: list[dict[str, Any]] = [
            {**home, "tags": ["fact"], "importance": 0.8, "confidence": 0.8},
            {"text": "The garden is watered on Monday", "memory_id": "garden", "tier": "patterns"},
        ]
        for one in facts:
            await post(api, "/api/memory/store", one)
        await service.settle()
        await talk(
            api,
            KEPT,
            ("When is the garden watered?", "It is watered on Monday, early in the morning."),
            ("It worked. I park on the second floor", "Good, I keep that the floor is the second."),
        )
        await service.settle()
        if GONE in WORLDS[user]:
            plan = b"# Plan of zorblax\n\nWe meet on Monday."
            await service.services.books.upload(WriteScope(user), plan, "plan.md", attached_to=GONE)
            await talk(
                api,
                GONE,
                ("When is the garden watered, zorblax?", "On Monday, zorblax, at eight sharp."),
                ("It worked, and now I live in Eilat with zorblax זורבלקס", "Noted, zorblax. " * 4),
            )
            await service.settle()
            response = {"conversation_id": GONE, "outcome": "worked"}
            takeaway = {**response, "key_takeaway": "zorblax likes the garden on Monday"}
            await post(api, "/api/memory/record_response", takeaway)
            tool = {"conversation_id": GONE, "tool_name": "web", "content": "zorblax " * 20}
            await post(api, "/api/memory/tool-results", tool)


async def rows_of(database: MongoDatabase, user: str) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for name in INDEXES:
        rows = await database.collection(name).find({}).to_list()
        found[name] = [row for row in rows if user in (row.get("user_id"), row.get("owner"))]
    return found


@pytest.mark.engine
async def test_nothing_of_it_is_left_and_nothing_else_goes(
    mongo: MongoServer, database: MongoDatabase
) -> None:
    service = await MongoService.open(mongo.settings())
    service.container.policies.models = scripted()
    for user in WORLDS:
        await live(service, user)
    before = await rows_of(database, "dana")
    told = Counter(
        name for name, rows in before.items() if any(word in str(rows) for word in SECRETS)
    )
    # It is a proof only when all of these had something of it.
    assert set(told) >= {
        *("memory_items", "memory_outcomes", "receipts", "exchanges", "turns", "sessions"),
        *("events", "idempotency", "kg_routing", "documents"),
    }
    home = await service.services.memories.get(ReadScope("dana"), "home")
    assert home.superseded_by is not None
    async with client_of(service.services, {"X-User-Id": "dana"}) as api:
        assert (await api.delete(f"{LIST}/{GONE}")).status_code == 200
        await service.settle()
        after = await rows_of(database, "dana")
        for name, rows in after.items():
            # That it was deleted, and by whom, stays in the log; no word of it.
            words = SECRETS if name != AUDIT_LOG else [word for word in SECRETS if word != GONE]
            left = [row for row in rows if any(word in str(row) for word in words)]
            assert left == [], name
        assert (await api.get(f"{LIST}/{GONE}")).status_code == 404
    # What stays is what there is of a user who never had that conversation.
    other = await rows_of(database, "omer")
    counts = {name: len(rows) for name, rows in after.items() if name not in NOT_COMPARED}
    assert counts == {name: len(rows) for name, rows in other.items() if name not in NOT_COMPARED}
    for memory_id in ("home", "garden"):
        mine = await service.services.memories.get(ReadScope("dana"), memory_id)
        theirs = await service.services.memories.get(ReadScope("omer"), memory_id)
        # Not `score`: it was at its limit, and gives back what an outcome moves by rule.
        counted = ("uses", "worked_count", "success_count", "wilson_score", "last_outcome")
        assert [getattr(mine.stats, one) for one in counted] == [
            getattr(theirs.stats, one) for one in counted
        ], memory_id
        assert mine.superseded_by is None
    weights = [
        sorted((row["concept"], row["tiers"]) for row in world["kg_routing"])
        for world in (after, other)
    ]
    assert weights[0] == weights[1]


@pytest.mark.engine
async def test_what_was_said_elsewhere_too_is_a_memory_of_its_own_again(
    mongo: MongoServer, database: MongoDatabase
) -> None:
    service = await MongoService.open(mongo.settings())
    read = ReadScope("dana")
    async with client_of(service.services, {"X-User-Id": "dana"}) as api:
        for name in (GONE, KEPT):
            await talk(api, name, ("Tea or coffee?", f"Tea, as ever, said in {name}, with milk."))
            source = {"type": "assistant", "conversation_id": name}
            one = {"text": f"Dana drinks tea ({name})", "memory_id": name, "source": source}
            await post(api, "/api/memory/store", {**one, "tier": Tier.HISTORY.value})
        winner = {"status": "archived", "merged_into": GONE}
        where = {"user_id": "dana", "memory_id": KEPT}
        await database.collection("memory_items").update_one(where, {"$set": winner})
        removed = await service.services.conversations.delete(WriteScope("dana"), GONE)
        await service.settle()
    assert removed["memories"] == 2
    alone = await service.services.memories.get(read, KEPT)
    assert (alone.memory_id, alone.status.value, alone.merged_into) == (KEPT, "active", None)
