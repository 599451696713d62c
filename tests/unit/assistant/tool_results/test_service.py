"""Ingestion of tool results over the in-memory store."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rayapp.assistant.tool_results import service as module
from rayapp.assistant.tool_results.rules import Ingested, ToolResult
from rayapp.assistant.tool_results.service import ToolResultService
from rayapp.container import bootstrap
from rayapp.core.errors import ModelDown, StoreDown
from rayapp.inference.ports import ChatAnswer, ChatRequest
from rayapp.memory.item import MemoryItem, Status, SyncState
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.chat_models import ScriptedChat, model_calls
from tests.support.harness import Harness
from tests.unit.api.serving import settings_with

DANA, NOA = WriteScope("dana", "key"), WriteScope("noa", "key")
TEXT = "The light rail between Haifa and Nazareth is being built. הרכבת הקלה נבנית בשלבים. " * 3


def saying(number: int, **fields: Any) -> ToolResult:
    fields = {"conversation_id": "conv-1", **fields}
    return ToolResult(tool_name="tavily_search", text=f"{number}: {TEXT}", **fields)


def service(world: Harness, chat: ScriptedChat | None = None) -> ToolResultService:
    runtime = bootstrap.runtime_of(world.services.settings, world.metrics, world.clock)
    models = model_calls(chat, clock=world.clock)
    return ToolResultService(world.services.memories, world.items, models, runtime=runtime)


class Waiting(ScriptedChat):
    """Answers once it may."""

    def __init__(self, answer: str) -> None:
        super().__init__([answer])
        self.may_go = asyncio.Event()

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        answer = await super().complete(request)
        await self.may_go.wait()
        return answer


@pytest.fixture
def world() -> Harness:
    return Harness.ready(settings_with(tool_results={"per_conversation": 3}))


async def one(world: Harness, result: ToolResult, scope: WriteScope = DANA) -> Ingested:
    (done,) = await service(world).ingest(scope, [result])
    world.clock.advance(1)
    return done


async def item(world: Harness, memory_id: str | None, user: str = "dana") -> MemoryItem:
    assert memory_id is not None
    return await world.services.memories.get(ReadScope(user), memory_id)


async def in_conversation(world: Harness, conversation: str = "conv-1") -> list[MemoryItem]:
    where = ItemFilter(tags_all=(f"conversation:{conversation}",))
    page = await world.items.page(ReadScope("dana"), where, ItemQuery(limit=100))
    return page.items


def texts(items: Sequence[MemoryItem]) -> set[str]:
    return {one.text.split("\n\n")[1].split(":")[0] for one in items}


async def test_a_result_is_durable_and_pending_when_the_answer_comes(world: Harness) -> None:
    done = await one(world, saying(1))
    stored = await item(world, done.memory_id)
    assert (done.status, stored.tier, stored.trust) == ("stored", Tier.WORKING, 0.6)
    assert stored.index.sync_state is SyncState.PENDING
    assert stored.stored_by == "key"


async def test_an_equal_answer_is_one_memory_that_knows_both_conversations(world: Harness) -> None:
    first = await one(world, saying(1))
    again = await one(world, saying(1, conversation_id="conv-2", query="רכבת"))
    stored = await item(world, again.memory_id)
    assert (again.status, again.memory_id) == ("duplicate", first.memory_id)
    assert {"conversation:conv-1", "conversation:conv-2"} <= set(stored.tags)
    assert stored.quality.mentioned_count == 2
    same = await one(world, saying(1))
    stored = await item(world, same.memory_id)
    assert (same.status, stored.quality.mentioned_count, stored.version) == ("duplicate", 3, 2)


@pytest.mark.parametrize(("query", "stays"), [("", True), ("רכבת", False)])
async def test_a_result_of_two_conversations_stays_with_the_one_that_is_left(
    world: Harness, query: str, stays: bool
) -> None:
    """Unless its label says what was asked in the one that goes."""
    first = await one(world, saying(1, query=query))
    await one(world, saying(1, conversation_id="conv-2"))
    await world.services.conversations.erase(DANA, "conv-1")
    found = await world.items.get(DANA.own, first.memory_id)
    assert (found is not None) == stays
    await world.services.conversations.erase(DANA, "conv-2")
    assert await world.items.get(DANA.own, first.memory_id) is None


async def test_users_do_not_share_results(world: Harness) -> None:
    hers = await one(world, saying(1))
    other = await one(world, saying(1), NOA)
    assert (hers.status, other.status) == ("stored", "stored")
    assert (await item(world, other.memory_id, "noa")).user_id == "noa"


async def test_equal_answers_at_the_same_time_are_one_memory(world: Harness) -> None:
    ingesting = service(world)
    done = await asyncio.gather(*(ingesting.ingest(DANA, [saying(1)]) for _ in range(8)))
    assert sorted(row.status for (row,) in done) == ["duplicate"] * 7 + ["stored"]
    assert len(await in_conversation(world)) == 1


@pytest.mark.parametrize("reason", [None, "no longer true", "ghost:מביך"])
async def test_what_a_person_put_away_stays_away(world: Harness, reason: str | None) -> None:
    first = await one(world, saying(1))
    assert first.memory_id is not None
    away = await world.services.memories.archive(DANA, first.memory_id, reason=reason)
    again = await one(world, saying(1, conversation_id="conv-2"))
    assert (again.status, again.memory_id) == ("duplicate", first.memory_id)
    assert await item(world, first.memory_id) == away


@pytest.mark.parametrize("reason", ["capacity", "expired"])
async def test_what_the_service_archived_comes_back_when_a_tool_says_it_again(
    world: Harness, reason: str
) -> None:
    first = await one(world, saying(1))
    assert first.memory_id is not None
    await world.services.memories.archive(DANA, first.memory_id, reason=reason)
    again = await one(world, saying(1))
    assert again.status == "duplicate"
    assert (await item(world, first.memory_id)).status is Status.ACTIVE


async def test_an_expired_result_gets_a_new_lifetime(world: Harness) -> None:
    first = await one(world, saying(1))
    world.clock.advance(30 * 3600)
    await one(world, saying(1))
    expires = (await item(world, first.memory_id)).expires_at
    assert expires is not None
    assert expires > world.clock.now()


async def test_what_was_deleted_may_be_said_again(world: Harness) -> None:
    first = await one(world, saying(1))
    assert first.memory_id is not None
    await world.services.memories.delete(DANA, first.memory_id)
    assert (await one(world, saying(1))).status == "stored"


async def test_a_full_conversation_lets_the_oldest_go(world: Harness) -> None:
    for number in range(3):
        assert (await one(world, saying(number))).archived == ()
    last = await one(world, saying(3))
    assert len(last.archived) == 1
    assert texts(await in_conversation(world)) == {"1", "2", "3"}
    left = await item(world, last.archived[0])
    assert (left.status, left.archived_reason) == (Status.ARCHIVED, "capacity")


async def test_a_result_that_helped_stays_before_a_newer_one(world: Harness) -> None:
    first = await one(world, saying(0))
    stored = await item(world, first.memory_id)
    row = world.items._rows[stored.point_id]
    row.item = replace(stored, stats=replace(stored.stats, score=0.9, uses=2))
    for number in range(1, 4):
        await one(world, saying(number))
    assert texts(await in_conversation(world)) == {"0", "2", "3"}


async def test_other_conversations_and_other_memories_do_not_count(world: Harness) -> None:
    for number in range(3):
        await one(world, saying(number))
    assert (await one(world, saying(9, conversation_id="conv-2"))).archived == ()
    assert (await one(world, saying(8, conversation_id=None))).archived == ()
    assert len(await in_conversation(world)) == 3


async def test_many_writers_never_leave_more_than_the_cap(world: Harness) -> None:
    ingesting = service(world)
    await asyncio.gather(*(ingesting.ingest(DANA, [saying(n)]) for n in range(12)))
    assert len(await in_conversation(world)) == 3


async def test_each_result_of_a_request_has_its_answer(world: Harness) -> None:
    asked = [
        saying(1),
        ToolResult(tool_name="clock", text="12:00"),
        saying(1),
        ToolResult(tool_name="search_memory", text=TEXT),
        replace(saying(2), failed=True),
    ]
    done = await service(world).ingest(DANA, asked)
    assert [row.status for row in done] == ["stored", "skipped", "duplicate", "skipped", "skipped"]
    assert [row.prepared.skipped for row in done] == [
        None,
        "too_short",
        None,
        "memory_tool",
        "failed",
    ]
    assert world.metrics.counters["tool_results", (("status", "too_short"),)] == 1


async def test_a_store_that_is_away_is_said(world: Harness) -> None:
    world.items.error = StoreDown("MongoDB is away.")
    with pytest.raises(StoreDown):
        await service(world).ingest(DANA, [saying(1)])


async def test_a_summary_comes_after_the_answer_and_without_secrets(world: Harness) -> None:
    chat = Waiting("  Rail to Nazareth; ask dana@example.com  ")
    ingesting = service(world, chat)
    long = replace(saying(1), text=TEXT * 20)
    (done,) = await ingesting.ingest(DANA, [long])
    assert (await item(world, done.memory_id)).summary is None
    chat.may_go.set()
    await ingesting.settle()
    assert (await item(world, done.memory_id)).summary == "Rail to Nazareth; ask [redacted:email]"


@pytest.mark.parametrize("answer", ["", ModelDown("no model")])
async def test_a_result_without_a_summary_stays_as_it_is(world: Harness, answer: Any) -> None:
    ingesting = service(world, ScriptedChat([answer]))
    (done,) = await ingesting.ingest(DANA, [replace(saying(1), text=TEXT * 20)])
    await ingesting.settle()
    stored = await item(world, done.memory_id)
    assert (stored.summary, stored.version) == (None, 1)


async def test_short_results_are_not_summarised_and_summaries_are_bounded(world: Harness) -> None:
    chat = Waiting("Rail to Nazareth.")
    ingesting = service(world, chat)
    await ingesting.ingest(DANA, [saying(0)])
    await ingesting.ingest(
        DANA, [replace(saying(n), text=f"{n} " + TEXT * 20) for n in range(1, 12)]
    )
    chat.may_go.set()
    await ingesting.settle()
    assert len(chat.requests) == module.MAX_SUMMARIES
