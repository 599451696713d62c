"""Standing pages: what is known, a facet a line."""

from dataclasses import replace
from datetime import timedelta

import pytest
import yaml

from rayapp.core.errors import InvalidInput, NotFound
from rayapp.core.scope import ReadScope
from rayapp.understanding.statements.pages import PagesService
from rayapp.understanding.statements.rules.pages import Page, Trend, markdown, trend_of
from tests.support.knowledge_world import NOW, USER, KnowledgeWorld

READ = ReadScope(USER)


@pytest.fixture
def world() -> KnowledgeWorld:
    return KnowledgeWorld()


def pages_of(world: KnowledgeWorld) -> PagesService:
    return PagesService(world.store, world.knowledge, world.clock)


async def page_of(world: KnowledgeWorld, name: str, language: str = "en") -> Page:
    found = await pages_of(world).pages(READ, "Person", 20, language)
    return next(one for one in found if one.node.name == name)


@pytest.mark.parametrize(
    ("days_ago", "trend"),
    [
        ([5], Trend.NEW),
        ([5, 10, 15, 60], Trend.STRENGTHENING),
        ([5, 40, 60, 100], Trend.STEADY),
        ([5, *range(40, 110, 7)], Trend.WEAKENING),
        ([40], Trend.WEAKENING),
        ([200], Trend.STALE),
        ([5, 300], Trend.STRENGTHENING),
    ],
)
def test_the_trend_compares_the_last_days_with_those_before(
    days_ago: list[int], trend: Trend
) -> None:
    assert trend_of([NOW - timedelta(days=one) for one in days_ago], NOW) is trend


async def test_a_page_says_what_is_known_and_nothing_that_ended(world: KnowledgeWorld) -> None:
    await world.say("m1", "Dana lives in Haifa.")
    await world.say("m2", "Dana moved to Oslo.", days=100)
    await world.say("m3", "Dana works at Intel.", days=290)
    page = await page_of(world, "Dana")
    assert [one.text for one in page.facets] == ["Dana works at Intel", "Dana lives in Oslo"]
    assert [one.memory_ids for one in page.facets] == [("m3",), ("m2",)]
    assert [one.trend for one in page.facets] == [Trend.NEW, Trend.STALE]
    assert page.checked_on == page.facets[0].checked_on


async def test_a_deleted_memory_leaves_the_page(world: KnowledgeWorld) -> None:
    await world.say("m1", "Dana lives in Haifa.")
    await world.say("m2", "Dana works at Intel.", days=1)
    await world.understander.take_back(USER, ["m2"])
    assert [one.text for one in (await page_of(world, "Dana")).facets] == ["Dana lives in Haifa"]


async def test_hebrew_joins_the_preposition(world: KnowledgeWorld) -> None:
    await world.say("m1", "דנה גרה בחיפה.")
    (facet,) = (await page_of(world, "דנה", "he")).facets
    assert facet.text == "דנה גר בחיפה"


async def test_the_markdown_has_sources_and_dates_and_takes_names_as_words(
    world: KnowledgeWorld,
) -> None:
    await world.say("m1", "Dana lives in Haifa.")
    page = await page_of(world, "Dana")
    text = markdown(page)
    _, head, body = text.split("---\n", 2)
    said = yaml.safe_load(head)
    assert (said["okf"], said["title"], said["sources"]) == ("0.2", "Dana", ["m1"])
    assert (said["stale_after"] - said["verified"]).days == 180
    assert body.count("\n- ") == 1

    hostile = replace(page.node, name='x"\n---\n# [a](b)')
    head, title = markdown(replace(page, node=hostile)).split("---\n")[1:3]
    assert yaml.safe_load(head)["title"] == 'x" --- # [a](b)'
    assert '# x" --- \\# \\[a\\](b)' in title


async def test_what_is_not_there_is_refused(world: KnowledgeWorld) -> None:
    with pytest.raises(NotFound):
        await pages_of(world).page(READ, "nobody", "en")
    with pytest.raises(InvalidInput):
        await pages_of(world).pages(READ, "Dragon", 5, "en")
