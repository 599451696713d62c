"""The example chat program against the running service, and what its transcript shows."""

import io

import pytest
from rich.console import Console

from examples.chat_loop import Chat, Result
from examples.scripted_model import WEB_SEARCH, load_script
from rayapp.client import SyncMemoryClient
from tests.running import RunningService

pytestmark = [pytest.mark.ray, pytest.mark.engine]


@pytest.fixture(scope="module")
def result(service: RunningService, scripted_model: str) -> Result:
    """One play of the whole script."""
    console = Console(file=io.StringIO(), width=120)
    with SyncMemoryClient(service.url, user_id="int-chat") as client:
        chat = Chat(client, scripted_model, load_script())
        try:
            return chat.play(console)
        finally:
            chat.close()


def test_thirty_turns_in_both_languages_are_played(result: Result) -> None:
    assert len(result.turns) == 30
    assert all(turn.answer for turn in result.turns)
    hebrew = [turn for turn in result.turns if any("א" <= letter <= "ת" for letter in turn.said)]
    assert len(hebrew) >= 8


def test_the_promises_hold(result: Result) -> None:
    print(result.why)
    assert len(result.promises) == 4
    assert result.kept, "\n".join(f"{name}: {why}" for name, why in result.why.items())


def test_a_fact_that_was_said_twice_is_kept_once(result: Result) -> None:
    assert result.facts["Dana's dog is called Rocky and he is a brown labrador"] == 1
    assert result.facts["נועה, אחותה של דנה, אלרגית לבוטנים"] == 1


def test_later_conversations_are_answered_from_memory_in_both_languages(result: Result) -> None:
    answers = {turn.said: turn.answer for turn in result.turns if turn.conversation != "monday"}
    assert "Dana lives in Haifa" in answers["Good morning! Where do I live?"]
    assert "אלרגית לבוטנים" in answers["למה נועה אלרגית?"]
    assert "רוקי מפחד מרעמים" in answers["ממה רוקי מפחד?"]


def test_the_solution_that_failed_is_not_the_first_one_later(result: Result) -> None:
    first, *later = [turn for turn in result.turns if turn.asks and "build" in turn.asks]
    for turn in later:
        offered = [text for text in turn.shown if text.startswith("To fix the hanging build")]
        assert offered[0] != first.used[0]
        assert turn.used[0] != first.used[0]


def test_tools_are_offered_only_where_memory_is_not_enough(result: Result) -> None:
    weather = next(turn for turn in result.turns if "weather" in turn.said)
    assert (WEB_SEARCH in weather.allowed, weather.called) == (True, [WEB_SEARCH])
    gated = [turn for turn in result.turns if turn.reason == "HIGH_CONFIDENCE_REDUCTION"]
    assert gated
    assert not any(WEB_SEARCH in turn.allowed or turn.called for turn in gated)
