"""Whatever dies in between: each exchange is learned from once, and its turn is judged once."""

import asyncio
import itertools
from collections import Counter
from typing import Any

import pytest

from rayapp.assistant.extraction.service import CLAIM_S, ExchangeLearning
from rayapp.inference.chat.rules.answers import OutcomeJudgement
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter
from tests.unit.assistant.extraction.world import DANA, READS, World, judgement

WRITES = ("keep", "finish", "store", "record", "add")


class Killed(BaseException):
    """The process ends: no handler of errors runs."""


class Mortal:
    """Stands before the parts that write; the process dies around write number `at`.

    `after`: the write was done, and nobody heard of it.
    """

    def __init__(self, at: int, *, after: bool) -> None:
        self.at = at
        self.after = after
        self.writes = 0

    def before(self, inner: Any) -> Any:
        return _Guarded(inner, self)


class _Guarded:
    def __init__(self, inner: Any, mortal: Mortal) -> None:
        self._inner = inner
        self._mortal = mortal

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in WRITES:
            return found

        async def write(*args: Any, **kwargs: Any) -> Any:
            mortal = self._mortal
            mortal.writes += 1
            dies = mortal.writes == mortal.at
            if dies and not mortal.after:
                raise Killed
            result = await found(*args, **kwargs)
            if dies:
                raise Killed
            return result

        return write


def mortal_worker(world: World, mortal: Mortal) -> ExchangeLearning:
    return world.worker(
        queue=mortal.before(world.queue),
        memories=mortal.before(world.memories),
        outcomes=mortal.before(world.outcomes),
        events=mortal.before(world.events),
    )


async def conversation() -> World:
    """Two turns: a fact in each, and the second one is the reaction to the first.

    The model never says the same twice, so that a repeated question would show.
    """
    world = await World.open()
    numbers = itertools.count()
    words = ("boats", "cars", "trains", "planes", "bikes", "horses", "trams", "kites")
    verdicts = itertools.cycle(("worked", "failed", "partial"))

    def fact(asked: dict[str, Any]) -> str:
        return f"The user likes {words[next(numbers) % len(words)]}"

    def verdict(asked: dict[str, Any]) -> OutcomeJudgement:
        return judgement(next(verdicts), 0.9)

    world.script.answers["fact_extraction"] = fact
    world.script.answers["outcome_detection"] = verdict
    shown = await world.store("restart the server")
    receipt = await world.receipt(shown)
    said = "I like " + " and ".join(words)
    await world.say(said, "noted", receipt_id=receipt, shown=[shown])
    await world.say(f"great! {said}", "good")
    return world


async def result_of(world: World) -> dict[str, Any]:
    events = await world.events.recent(READS, None, 100)
    judged = await world.outcome_rows.latest(READS, "detected", 100)
    listed = await world.memories.page(READS, ItemFilter(), ItemQuery(limit=100))
    return {
        "facts": len(await world.texts()),
        "events": Counter(event.kind for event in events),
        "judged": len(judged),
        "one verdict": len({event.outcome for event in judged}),
        "uses": sum(item.stats.uses for item in listed.items),
        "waiting": await world.queue.waiting(),
    }


async def undisturbed() -> tuple[dict[str, Any], int]:
    """(what is learned, how many writes that takes)."""
    world, counter = await conversation(), Mortal(0, after=False)
    await world.learn(mortal_worker(world, counter))
    return await result_of(world), counter.writes


async def test_the_undisturbed_course() -> None:
    expected, writes = await undisturbed()
    assert expected == {
        "facts": 2,
        "events": Counter({"learned": 2, "outcome_detected": 2}),
        "judged": 2,
        "one verdict": 1,
        "uses": 2,
        "waiting": 0,
    }
    assert writes > 10


@pytest.mark.parametrize("after", [False, True])
async def test_a_death_around_any_write_loses_nothing_and_repeats_nothing(after: bool) -> None:
    expected, writes = await undisturbed()
    for at in range(1, writes + 1):
        world, mortal = await conversation(), Mortal(at, after=after)
        with pytest.raises(Killed):
            await world.learn(mortal_worker(world, mortal))
        world.clock.advance(CLAIM_S + 1)
        await world.learn()
        assert await result_of(world) == expected, f"died at write {at}"


async def test_dying_again_and_again_still_ends_well() -> None:
    expected, writes = await undisturbed()
    for first in range(1, writes + 1, 3):
        world = await conversation()
        for at in (first, 1, 2, 3):
            try:
                await world.learn(mortal_worker(world, Mortal(at, after=True)))
            except Killed:
                world.clock.advance(CLAIM_S + 1)
        await world.learn()
        assert await result_of(world) == expected


async def test_workers_at_once_share_the_work() -> None:
    expected, _ = await undisturbed()
    world = await conversation()
    await asyncio.gather(*(world.learn(world.worker()) for _ in range(4)))
    assert await result_of(world) == expected
    assert len(world.script.questions("fact_extraction")) == 2


async def test_who_was_too_slow_leaves_it_to_the_other() -> None:
    expected, _ = await undisturbed()
    world = await conversation()
    ask, other = world.script.ask, world.worker()
    overtaken = False

    async def slow(user_id: str, question: Any) -> Any:
        nonlocal overtaken
        if question.helper == "fact_extraction" and not overtaken:
            overtaken = True
            world.clock.advance(CLAIM_S + 1)
            await world.learn(other)
        return await ask(user_id, question)

    world.script.ask = slow  # type: ignore[method-assign]
    await world.learn()
    assert overtaken
    assert await result_of(world) == expected


async def test_an_exchange_offered_again_is_not_learned_from_again() -> None:
    world = await conversation()
    await world.learn()
    before = await result_of(world)
    for kept in list(world.queue._rows.values()):
        assert not await world.queue.offer(DANA, kept.exchange)
    await world.learn()
    assert await result_of(world) == before
