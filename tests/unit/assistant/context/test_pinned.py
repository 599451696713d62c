"""What stands before every question: the best of each kind, whatever is newer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rayapp.assistant.context.service import StandingMemories
from rayapp.core.settings.model import ContextSettings
from rayapp.memory.item import MemoryItem, Quality
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT, an_item
from tests.support.clock import FakeClock
from tests.support.stores import InMemoryMemoryStore

NOW = STORED_AT + timedelta(days=30)
KINDS: dict[str, dict[str, Any]] = {
    "identity": {"tier": Tier.MEMORY_BANK, "tags": ("זהות",)},
    "preference": {"tier": Tier.MEMORY_BANK, "tags": ("preference",)},
    "always": {"tier": Tier.MEMORY_BANK, "always_inject": True},
    "pattern": {"tier": Tier.PATTERNS},
}
PLACES = {"identity": 10, "preference": 10, "always": 20, "pattern": 5}


class Shelf:
    """The standing memories of dana."""

    def __init__(self) -> None:
        self.items = InMemoryMemoryStore(FakeClock())
        self.standing = StandingMemories(self.items, ContextSettings())
        self.kept = 0

    async def keep(self, worth: float = 0.5, **kind: Any) -> MemoryItem:
        """Each a minute newer than the one before."""
        self.kept += 1
        at = STORED_AT + timedelta(minutes=self.kept)
        item = an_item(
            user_id="dana", quality=Quality(importance=worth, confidence=1.0), stored_at=at, **kind
        )
        await self.items.insert(item)
        return item

    async def ids(self, section: str) -> list[str]:
        found = await self.standing.read(ReadScope("dana"), NOW)
        return [one.item.memory_id for one in found if one.section == section]


@pytest.mark.parametrize("section", KINDS)
async def test_newer_memories_of_less_worth_evict_none(section: str) -> None:
    shelf = Shelf()
    best = await shelf.keep(1.0, **KINDS[section])
    same = [await shelf.keep(0.5, **KINDS[section]) for _ in range(PLACES[section] + 3)]
    first = [best, *same][: PLACES[section]]
    assert await shelf.ids(section) == [one.memory_id for one in first]


@pytest.mark.parametrize("section", KINDS)
async def test_what_stands_stays_the_same_until_something_better_comes(section: str) -> None:
    shelf = Shelf()
    for _ in range(PLACES[section]):
        await shelf.keep(0.5, **KINDS[section])
    before = await shelf.ids(section)
    for _ in range(5):
        await shelf.keep(0.4, **KINDS[section])
        assert await shelf.ids(section) == before
    better = await shelf.keep(0.9, **KINDS[section])
    assert await shelf.ids(section) == [better.memory_id, *before[:-1]]


async def test_a_pinned_identity_takes_no_place_of_what_else_is_pinned() -> None:
    shelf = Shelf()
    pinned = [await shelf.keep(**KINDS["always"]) for _ in range(PLACES["always"])]
    for _ in range(PLACES["always"]):
        await shelf.keep(always_inject=True, **KINDS["identity"])
    assert await shelf.ids("always") == [one.memory_id for one in pinned]
    assert len(await shelf.ids("identity")) == PLACES["identity"]


async def test_a_section_without_places_stands_empty() -> None:
    shelf = Shelf()
    await shelf.keep(**KINDS["pattern"])
    found = await shelf.standing.read(ReadScope("dana"), NOW, patterns=False)
    assert found == ()
    assert len(await shelf.ids("pattern")) == 1
