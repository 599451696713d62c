"""A turn that its user deleted or put away: no word of it reaches a model or stays in the queue."""

from collections.abc import Sequence
from typing import Any

import pytest

from rayapp.assistant.extraction.rules.facts import LearnedExchange
from rayapp.inference.chat.rules.answers import HistorySummary
from rayapp.memory.rules.hiding import archived_reason
from tests.unit.assistant.extraction.world import DANA, World, judgement

WAYS = ("delete", "archive")
SECRET = ("the vault opens with a paperclip", "הכספת נפתחת עם אטב")


async def put_away(world: World, exchange: LearnedExchange, way: str) -> None:
    assert exchange.memory_id is not None
    await getattr(world.memories, way)(DANA, exchange.memory_id)


def told(world: World) -> str:
    """All that the model was sent."""
    return str(world.script.asked)


async def eight_turns(world: World, third: str, **changes: Any) -> list[LearnedExchange]:
    """A conversation that is long enough for a summary."""
    world.script.answers["history_summary"] = lambda asked: HistorySummary(
        bullets=["The user plans a trip to Haifa"]
    )
    said = []
    for number in range(1, 9):
        user = third if number == 3 else f"plan {number} of my trip to Haifa"
        fields = changes if number == 3 else {}
        said.append(await world.say(user, f"noted for the trip: {user}", **fields))
    return said


@pytest.mark.parametrize("secret", SECRET)
@pytest.mark.parametrize("way", WAYS)
async def test_it_is_in_no_summary(way: str, secret: str) -> None:
    world = await World.open()
    said = await eight_turns(world, secret)
    await put_away(world, said[2], way)
    await world.learn()
    (asked,) = world.script.questions("history_summary")
    assert len(asked["messages"]) == 14
    assert secret not in told(world)
    assert world.kept_texts(said[2]) == ""
    assert world.notes(said[0])["summary"] == "learned"


async def test_a_summary_of_one_turn_that_is_left_is_none() -> None:
    world = await World.open()
    said = await eight_turns(world, SECRET[0])
    for one in said[:7]:
        await put_away(world, one, "archive")
    await world.learn()
    assert world.notes(said[7])["summary"] == "gone"
    assert world.script.questions("history_summary") == []


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("way", WAYS)
async def test_a_reaction_to_it_judges_nobody(way: str, indexed: bool) -> None:
    world = await World.open()
    world.script.answers["outcome_detection"] = lambda asked: judgement("worked", 0.95)
    shown = await world.store("bring two photos")
    receipt = await world.receipt(shown)
    before = await world.say("where is the ministry?", "in Haifa", kept=True)
    judged = await world.say(SECRET[0], "nice", receipt_id=receipt, shown=[shown])
    await world.learn()
    world.script.asked.clear()
    uses = await world.uses(before.memory_id)
    await put_away(world, judged, way)
    if indexed:
        await world.index_all()
    reaction = await world.say("perfect, that worked", "good")
    await world.learn()
    assert world.notes(reaction)["outcome"] == "gone"
    assert world.script.questions("outcome_detection") == []
    # Nor is the turn before it taken for the one that the user means.
    assert await world.uses(before.memory_id, shown) == [*uses, 0]


@pytest.mark.parametrize("way", WAYS)
async def test_it_is_no_reaction_either(way: str) -> None:
    world = await World.open()
    await world.say("where is the ministry?", "in Haifa")
    await world.learn()
    world.script.asked.clear()
    reaction = await world.say(SECRET[1], "ok")
    await put_away(world, reaction, way)
    await world.learn()
    assert world.script.asked == []
    assert (world.state(reaction), world.notes(reaction)) == ("skipped", {"all": "gone"})
    assert world.kept_texts(reaction) == ""


async def test_a_delete_erases_what_was_learned_from_long_ago() -> None:
    world = await World.open()
    world.script.answers["fact_extraction"] = lambda asked: "The user lives in Haifa"
    exchange = await world.say("I live in Haifa", "ok")
    other = await world.say("I work in Acre", "ok")
    await world.learn()
    assert "Haifa" in world.kept_texts(exchange)
    await put_away(world, exchange, "delete")
    await world.index_all()
    assert world.kept_texts(exchange) == ""
    assert (world.state(exchange), world.notes(exchange)["fact"]) == ("done", "learned")
    assert "Acre" in world.kept_texts(other)


@pytest.mark.parametrize("secret", SECRET)
async def test_hiding_erases_what_was_learned_from_long_ago_and_what_still_waits(
    secret: str,
) -> None:
    world = await World.open()
    old = await world.say(secret, "ok")
    await world.learn()
    new, other = await world.say(f"{secret} today", "ok"), await world.say("archived", "ok")
    for exchange in (old, new):
        assert exchange.memory_id is not None
        reason = archived_reason("user_action")
        await world.memories.archive(DANA, exchange.memory_id, reason=reason)
    assert other.memory_id is not None
    await world.memories.archive(DANA, other.memory_id, reason="old")
    assert secret in world.kept_texts(old)
    await world.index_all()
    assert [world.kept_texts(one) for one in (old, new)] == ["", ""]
    assert (world.state(old), world.state(new)) == ("done", "skipped")
    # What is merely archived is erased when its turn comes, if it was not learned from before.
    assert "archived" in world.kept_texts(other)


async def test_a_delete_while_the_model_is_asked_ends_the_learning() -> None:
    world = await World.open()
    exchange = await world.say("I live in Haifa", "ok")
    ask = world.script.ask

    async def slow(user_id: str, question: Any) -> Any:
        if question.helper == "fact_extraction":
            await put_away(world, exchange, "delete")
            await world.index_all()
        return await ask(user_id, question)

    world.script.ask = slow  # type: ignore[method-assign]
    world.script.answers["fact_extraction"] = lambda asked: "The user lives in Haifa"
    await world.learn()
    assert await world.texts() == []
    assert world.state(exchange) == "skipped"


async def shown_texts(world: World, ids: Sequence[str]) -> list[str]:
    await world.say("how?", "like this", shown=ids)
    await world.learn()
    (asked,) = world.script.questions("fact_extraction")
    context: list[str] = asked["context"]
    return context


async def test_what_was_shown_and_put_away_since_is_not_told() -> None:
    world = await World.open()
    kept = await world.store("Deploys go through the blue gate")
    gone = await world.store(SECRET[0])
    await world.memories.archive(DANA, gone)
    assert await shown_texts(world, [kept, gone]) == ["Deploys go through the blue gate"]
