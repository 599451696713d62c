"""What a model was paid for is kept while something of ours is away."""

from typing import Any

import pytest

from rayapp.assistant.extraction.service import TRIES
from rayapp.core.errors import EmbedderDown, IndexDown
from rayapp.inference.chat.rules.answers import ProfileFindings
from tests.unit.assistant.extraction.world import World, judgement

ROUNDS = 20


async def reacted(world: World) -> tuple[Any, Any]:
    """(a turn, the reaction to it), of which the second one is still to be learned from."""
    world.script.answers["outcome_detection"] = lambda asked: judgement("worked", 0.95)
    world.script.answers["fact_extraction"] = lambda asked: "המשתמש גר בחיפה"
    judged = await world.say("how do I renew a passport?", "online, with two photos")
    await world.learn()
    return judged, await world.say("תודה, זה עבד. אני גר בחיפה", "יופי")


async def rounds(world: World) -> None:
    for _ in range(ROUNDS):
        await world.learn()
        world.clock.advance(200)


@pytest.mark.parametrize("down", ["index", "embedder"])
async def test_while_index_or_embedder_is_away_no_question_is_repeated(
    down: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await World.open()
    judged, reaction = await reacted(world)

    async def away(*args: Any, **kwargs: Any) -> Any:
        raise EmbedderDown("away")

    if down == "index":
        world.index.error = IndexDown("away")
    else:
        monkeypatch.setattr(world.embedder, "embed", away)
    await rounds(world)
    assert len(world.script.questions("outcome_detection")) == 1
    # What was decided is done, whatever else has to wait.
    assert await world.uses(judged.memory_id) == [1]
    assert world.state(reaction) == "waiting"
    world.index.error = None
    monkeypatch.undo()
    await world.learn()
    assert (await world.texts(), world.state(reaction)) == (["המשתמש גר בחיפה"], "done")
    assert len(world.script.questions("outcome_detection")) == 1


@pytest.mark.parametrize("helper", ["profile_detection", "fact_extraction"])
async def test_an_answer_that_cannot_be_compared_is_asked_for_a_few_times_only(
    helper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await World.open()
    world.script.answers["profile_detection"] = lambda asked: ProfileFindings.model_validate(
        {"items": [{"field": "name", "value": "דנה לוי", "confidence": "high", "quote": ""}]}
        if helper == "profile_detection"
        else {"items": []}
    )
    world.script.answers["fact_extraction"] = lambda asked: "המשתמש גר בחיפה"
    known = world.learning.policies.known

    async def unseen(user_id: str, line: str) -> Any:
        raise IndexDown("away")

    monkeypatch.setattr(known, "says", unseen)
    exchange = await world.say("קוראים לי דנה לוי ואני גר בחיפה", "נעים מאוד")
    for _ in range(ROUNDS):
        await world.learn()
        world.clock.advance(2_000)
    assert len(world.script.questions(helper)) == TRIES
    assert world.state(exchange) == "failed"


async def test_a_bug_in_one_task_repeats_no_other_question() -> None:
    world = await World.open()

    def bug(asked: dict[str, Any]) -> str:
        raise ValueError("a bug")

    await reacted(world)
    world.script.answers["fact_extraction"] = bug
    await rounds(world)
    assert len(world.script.questions("outcome_detection")) == 1


async def test_a_ledger_that_is_away_for_long_ends_no_learning() -> None:
    world = await World.open()
    world.script.answers["fact_extraction"] = lambda asked: "The user lives in Haifa"
    world.script.why["fact_extraction"] = "ledger"
    exchange = await world.say("I live in Haifa", "ok")
    await rounds(world)
    assert world.state(exchange) == "waiting"
    del world.script.why["fact_extraction"]
    await world.learn()
    assert (await world.texts(), world.state(exchange)) == (["The user lives in Haifa"], "done")
