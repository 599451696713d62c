"""A model reads whether a hit answers: a search that asks for it abstains or names the hit."""

from dataclasses import dataclass

import pytest

from rayapp.core.deadline import Deadline
from rayapp.core.errors import ModelDown
from rayapp.memory.scope import ReadScope
from rayapp.search.reader import READ_HITS, AnswerReader
from rayapp.search.requests import SearchAnswer
from rayapp.search.tracing import Trace
from tests.support.chat_models import Answer, ScriptedChat, model_calls
from tests.support.clock import FakeClock
from tests.support.harness import Harness
from tests.unit.search.pies import nine_pies


@dataclass
class Read:
    """What was found, what is left after reading, and the model that was asked."""

    before: SearchAnswer
    after: SearchAnswer
    chat: ScriptedChat
    degraded: list[str]


async def read(service: Harness, answer: Answer) -> Read:
    chat, clock = ScriptedChat([answer]), FakeClock()
    trace = Trace(clock, service.metrics)
    before = await service.search("apple pie", limit=5)
    after = await AnswerReader(model_calls(chat), timeout_s=5.0).read(
        ReadScope("dana"), "apple pie", before, Deadline(10.0, clock.monotonic), trace
    )
    return Read(before, after, chat, trace.degraded)


async def test_the_hit_that_answers_is_named() -> None:
    found = await read(await nine_pies(), '{"text": 2}')
    before, after = found.before, found.after
    assert after.answered_by == before.hits[1].position == 2
    assert (after.hits, after.confidence, after.abstained) == (before.hits, "high", False)
    asked = found.chat.requests[0][1].content
    assert all(hit.item.text in asked for hit in before.hits[:READ_HITS])


async def test_where_none_answers_the_search_abstains_and_says_what_it_refused() -> None:
    found = await read(await nine_pies(), '{"text": 0}')
    before, after = found.before, found.after
    assert (after.hits, after.abstained, after.confidence) == ((), True, "low")
    assert after.best_rejected == before.hits[0].summary.final_score
    assert after.next_offset is None


@pytest.mark.parametrize("answer", ["no idea", '{"text": 99}', '{"text": true}', ModelDown("away")])
async def test_a_reader_of_no_use_changes_nothing_and_is_named(answer: Answer) -> None:
    found = await read(await nine_pies(), answer)
    assert found.after == found.before
    assert found.degraded == ["reader"]


async def test_without_a_model_the_answer_says_that_nobody_read() -> None:
    service = await nine_pies()
    answer = await service.search("apple pie", limit=5, read=True)
    assert answer.hits
    assert answer.degraded == ("reader",)
    assert [error.stage for error in answer.errors] == ["read"]


async def test_nothing_found_costs_no_call() -> None:
    service = await Harness.open()
    answer = await service.search("apple pie", read=True)
    assert (answer.hits, answer.degraded) == ((), ())
