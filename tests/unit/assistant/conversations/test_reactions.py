"""The answer before a question is judged by it, at once, once, and only by who may write."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from rayapp.assistant.records import ContextRequest, ExchangeRequest
from rayapp.core.errors import StoreDown
from rayapp.inference.ports import Message
from rayapp.learning.records import Recorder
from rayapp.memory.item import Outcome
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.harness import Harness
from tests.unit.assistant.extraction.world import ScriptedAnswers, judgement

ME, READ = WriteScope("dana"), ReadScope("dana")
FIX, SAID = "Restarting the router fixes the slow network", "that did not work, still slow"
QUESTION = "how do I fix the slow network?"


@pytest.fixture
async def service() -> Harness:
    """A question was answered with a memory."""
    made = await Harness.open()
    script = ScriptedAnswers()
    script.answers["outcome_detection"] = lambda variables: judgement("failed", 0.9)
    made.container.policies.models = script
    await made.store(FIX, memory_id="fix")
    await made.drain()
    await ask(made, QUESTION)
    await turn(made, QUESTION, f"{FIX}; try that and tell me.", "m-1")
    return made


async def ask(service: Harness, query: str, **fields: Any) -> None:
    service.clock.advance(60)
    asked = {"conversation_id": "c", "recorder": Recorder(), **fields}
    await service.services.context.prefetch(READ, ContextRequest(query=query, **asked))


async def turn(service: Harness, user: str, assistant: str, message_id: str) -> None:
    service.clock.advance(60)
    said = (Message("user", user), Message("assistant", assistant))
    request = ExchangeRequest(conversation_id="c", message_id=message_id, messages=said)
    await service.services.hooks.exchange(ME, request)


def script_of(service: Harness) -> ScriptedAnswers:
    found = service.container.policies.models
    assert isinstance(found, ScriptedAnswers)
    return found


async def outcome(service: Harness) -> tuple[int, Outcome | None]:
    stats = (await service.services.memories.get(READ, "fix")).stats
    return stats.uses, stats.last_outcome


async def test_the_model_reads_the_answer_before(service: Harness) -> None:
    await ask(service, SAID)
    (asked,) = script_of(service).questions("outcome_detection")
    assert (asked["question"], asked["next_message"]) == (QUESTION, SAID)
    assert await outcome(service) == (1, Outcome.FAILED)


async def test_it_is_asked_once_however_often_it_is_heard(service: Harness) -> None:
    await ask(service, SAID)
    await ask(service, SAID)
    await turn(service, SAID, "Then the cable may be broken, look at it.", "m-2")
    while await service.container.learning.run_once():
        pass
    assert len(script_of(service).questions("outcome_detection")) == 1
    assert await outcome(service) == (1, Outcome.FAILED)


@pytest.mark.parametrize(
    "fields", [{"recorder": None}, {"conversation_id": None}, {"conversation_id": "other"}]
)
async def test_nothing_is_judged(service: Harness, fields: dict[str, Any]) -> None:
    await ask(service, SAID, **fields)
    assert await outcome(service) == (0, None)


@pytest.mark.parametrize(
    ("query", "message_id"), [(QUESTION, None), (SAID, "m-1"), ("?!", None), ("..", None)]
)
async def test_an_answer_anew_is_no_reaction(
    service: Harness, query: str, message_id: str | None
) -> None:
    await ask(service, query, message_id=message_id)
    assert script_of(service).questions("outcome_detection") == []


async def test_a_model_that_is_late_holds_nobody_up(service: Harness) -> None:
    policies, reactions = service.container.policies, service.container.context.reactions
    settings = reactions.runtime.settings
    hooks = settings.hooks.model_copy(update={"reaction_timeout_s": 0.01})
    settings = settings.model_copy(update={"hooks": hooks})
    reactions.runtime = replace(reactions.runtime, settings=settings)

    async def late(*_: Any) -> Any:
        await asyncio.sleep(5)

    policies.judgement = late  # type: ignore[method-assign]
    await ask(service, SAID)
    assert service.metrics.counters["reactions", (("result", "late"),)] == 1


async def test_a_store_that_is_away_is_no_reason_to_fail(service: Harness) -> None:
    service.exchanges.error = StoreDown("away")
    await ask(service, SAID)
    assert await outcome(service) == (0, None)


async def test_without_a_model_nothing_is_read(service: Harness) -> None:
    script_of(service).off.add("outcome_detection")
    service.exchanges.calls.clear()
    await ask(service, SAID)
    assert service.exchanges.calls == []
