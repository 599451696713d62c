"""A worker of a reindex reads ahead, and rests while people search."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from rayapp.core.errors import StoreDown
from rayapp.index.reindex.copy import LIVE_S, MAX_REST_S, RESTS, PagesAhead, SearchBackoff
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.unit.index.reindex.world import World

STEP_S = 0.1


class Scan:
    """Pages of two letters each; the letters are the point ids."""

    def __init__(self, letters: str = "abcdef") -> None:
        self.letters, self.asked = letters, list[str | None]()
        self.broken = False

    async def page(
        self, *, after: str | None, until: str | None, limit: int
    ) -> tuple[list[Any], str | None]:
        self.asked.append(after)
        if self.broken:
            raise StoreDown("The store is away.")
        found = [c for c in self.letters if c > (after or "") and (until is None or c <= until)]
        page = found[:limit]
        return [an_item(text=c) for c in page], page[-1] if len(found) > limit else None


def texts(page: tuple[list[Any], str | None]) -> str:
    return "".join(item.text for item in page[0])


@pytest.fixture
def scan() -> Scan:
    return Scan()


@pytest.fixture
def pages(scan: Scan) -> PagesAhead:
    return PagesAhead(scan, 2)  # type: ignore[arg-type]


async def test_the_next_page_is_read_before_it_is_asked_for(scan: Scan, pages: PagesAhead) -> None:
    first = await pages.page(None, None)
    await asyncio.sleep(0)
    assert (texts(first), first[1], scan.asked) == ("ab", "b", [None, "b"])
    second = await pages.page("b", None)
    third = await pages.page("d", None)
    assert (texts(second), texts(third), third[1]) == ("cd", "ef", None)
    await asyncio.sleep(0)
    assert scan.asked == [None, "b", "d"]


async def test_another_place_or_range_is_read_itself(scan: Scan, pages: PagesAhead) -> None:
    await pages.page(None, None)
    assert texts(await pages.page(None, None)) == "ab"
    assert texts(await pages.page("b", "c")) == "c"
    assert texts(await pages.page("d", None)) == "ef"


async def test_reading_ahead_in_vain_is_told_when_asked_and_tried_again(
    scan: Scan, pages: PagesAhead
) -> None:
    first = await pages.page(None, None)
    assert texts(first) == "ab"
    scan.broken = True
    await asyncio.sleep(0)
    with pytest.raises(StoreDown):
        await pages.page("b", None)
    scan.broken = False
    assert texts(await pages.page("b", None)) == "cd"


async def test_nothing_is_read_after_the_close(scan: Scan, pages: PagesAhead) -> None:
    await pages.page(None, None)
    pages.close()
    await asyncio.sleep(0)
    assert scan.asked == [None]


class Steps:
    """Steps that take `STEP_S`, and the rests before them."""

    def __init__(self, service: Harness) -> None:
        self.service, self.rests = service, list[float]()
        self.courtesy = SearchBackoff(service.receipts, service.clock, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.service.clock.advance(seconds)

    async def one(self, seconds: float = STEP_S) -> None:
        async with self.courtesy.turn():
            self.service.clock.advance(seconds)


async def test_nobody_searches_and_nothing_rests(service: Harness) -> None:
    await service.store("lighthouse")
    await service.search("lighthouse")  # before the worker began
    steps = Steps(service)
    for _ in range(3):
        await steps.one()
    assert steps.rests == []


@pytest.mark.parametrize("query", ["lighthouse", "מגדלור"])
async def test_while_people_search_each_step_is_followed_by_a_rest(
    service: Harness, query: str
) -> None:
    steps = Steps(service)
    await steps.one()
    await service.search(query)
    await steps.one()
    assert steps.rests == [pytest.approx(RESTS * STEP_S)]
    await steps.one()
    service.clock.advance(LIVE_S)
    await steps.one()
    assert len(steps.rests) == 2


async def test_a_long_step_is_followed_by_a_bounded_rest(service: Harness) -> None:
    steps = Steps(service)
    await steps.one(60.0)
    await service.search("lighthouse")
    await steps.one()
    assert steps.rests == [MAX_REST_S]


async def test_a_job_beside_searches_ends_with_the_truth() -> None:
    world = await World.open()
    await world.fill(30)
    parts = await world.parts()
    rests = list[float]()

    async def sleep(seconds: float) -> None:
        rests.append(seconds)
        world.service.clock.advance(seconds)

    class Searching:
        """Each look finds that somebody searched since the last one."""

        async def recent(self, limit: int) -> list[Any]:
            await world.service.search("which lighthouse needs paint")
            return await world.service.receipts.recent(limit)

    _, finish = await world.run(parts=replace(parts, receipts=Searching(), sleep=sleep))
    assert finish.complete
    assert len(rests) >= 6
    assert await world.unlike_the_truth() == []
