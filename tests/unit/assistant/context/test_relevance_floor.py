"""How many hits reach the block: by how near they come to the best one, in either language."""

from __future__ import annotations

from typing import Any

import pytest

from rayapp.assistant.records import ContextRequest
from rayapp.core.errors import IndexDown
from rayapp.memory.scope import ReadScope
from rayapp.search.rules.query import DEFAULT_LIMIT
from tests.support.harness import Harness

ALIKE, QUESTION, OTHER = "alike", "question", "other"
WORLDS = [
    {
        ALIKE: "Dana keeps her garden tools in shed {}",
        QUESTION: "What does Dana keep of garden tools in her shed?",
        OTHER: "Noa keeps cat {}",
    },
    {
        ALIKE: "דנה שומרת את כלי הגינה במחסן {}",
        QUESTION: "אילו כלי גינה דנה שומרת במחסן?",
        OTHER: "נועה שומרת חתול {}",
    },
]
NAMES = (
    *("amber", "birch", "cedar", "dune", "ember", "fern", "grove", "heath", "iris", "jade"),
    *("kelp", "lotus", "moss", "north", "oak"),
)


async def shown(world: dict[str, str], *, alike: int, lost: bool = False, **fields: Any) -> int:
    """Lines of the block about the question."""
    service = await Harness.open()
    for at, name in enumerate(NAMES):
        text = world[ALIKE] if at < alike else world[OTHER]
        await service.store(text.format(name))
    await service.drain()
    if lost:
        service.index.error = IndexDown("away")
    request = ContextRequest(query=world[QUESTION], **fields)
    found = await service.services.context.prefetch(ReadScope("dana"), request)
    return len(found.block.lines)


@pytest.mark.parametrize("world", WORLDS, ids=["en", "he"])
async def test_as_many_as_are_near_the_best(world: dict[str, str]) -> None:
    assert await shown(world, alike=14) == 14
    assert await shown(world, alike=2) == 2


@pytest.mark.parametrize("world", WORLDS, ids=["en", "he"])
async def test_never_more_than_the_caller_names(world: dict[str, str]) -> None:
    assert await shown(world, alike=14, limit=6) == 6


@pytest.mark.parametrize("world", WORLDS, ids=["en", "he"])
async def test_as_many_as_the_question_asks_for_where_strength_is_no_measure(
    world: dict[str, str],
) -> None:
    assert await shown(world, alike=14, lost=True) == DEFAULT_LIMIT
