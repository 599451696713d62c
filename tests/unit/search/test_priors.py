"""The graphs of one request: who asks the same question shares the read."""

import asyncio
from contextlib import suppress
from typing import Any, cast

import pytest

from rayapp.core.errors import StoreDown
from rayapp.graphs.ports import GraphStore
from rayapp.graphs.records import GraphPriors, GraphQuestion
from rayapp.memory.scope import ReadScope
from rayapp.search import priors
from rayapp.search.priors import GraphsOnce
from tests.support.harness import Switchable

ME, NOA = ReadScope("dana"), ReadScope("noa")
BOILER, TEA = GraphQuestion(concepts=("boiler",)), GraphQuestion(concepts=("tea",))


class SlowGraphs:
    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def priors(self, scope: ReadScope, question: GraphQuestion) -> GraphPriors:
        await self.go.wait()
        return GraphPriors()


class World:
    def __init__(self) -> None:
        self.store = SlowGraphs()
        self.behind: Any = Switchable(self.store)
        self.graphs = GraphsOnce(cast(GraphStore, self.behind))


async def test_the_same_question_is_read_once_and_another_one_or_another_user_apart() -> None:
    world = World()
    world.store.go.set()
    asked = ((ME, BOILER), (ME, BOILER), (ME, TEA), (NOA, BOILER))
    found = await asyncio.gather(*(world.graphs.priors(*one) for one in asked))
    assert found == [GraphPriors()] * 4
    assert world.behind.calls == ["priors"] * 3


async def test_who_gives_up_does_not_end_the_read_of_the_other() -> None:
    world = World()
    first, second = (asyncio.create_task(world.graphs.priors(ME, BOILER)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    world.store.go.set()
    assert await second == GraphPriors()
    with suppress(asyncio.CancelledError):
        await first
    assert first.cancelled()


async def test_both_hear_that_the_store_is_away() -> None:
    world = World()
    world.behind.error = StoreDown("away")
    for _ in range(2):
        with pytest.raises(StoreDown):
            await world.graphs.priors(ME, BOILER)
    assert world.behind.calls == ["priors"]


async def test_insights_that_ask_slowly_are_waited_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(priors, "MOST_FOLLOWED_S", 0.01)
    world = World()
    await world.graphs.until_followed()
    waiting = asyncio.create_task(world.graphs.until_followed())
    world.graphs.followed()
    await waiting
