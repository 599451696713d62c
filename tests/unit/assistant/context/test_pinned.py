"""What stands before every question: the best of each kind, whatever is newer."""

from datetime import timedelta
from typing import Any

import pytest

from rayapp.assistant.context.service import CoreMemories
from rayapp.core.settings.model import ContextSettings
from rayapp.memory.item import MemoryItem, Quality
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.search.newest import NewestMemories
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


class TemplateLibrary:
    """The standing memories of dana."""

    def __init__(self) -> None:
        self.items = InMemoryMemoryStore(FakeClock())
        self.standing = CoreMemories(NewestMemories(self.items), ContextSettings())
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
    library = TemplateLibrary()
    best = await library.keep(1.0, **KINDS[section])
    same = [await library.keep(0.5, **KINDS[section]) for _ in range(PLACES[section] + 3)]
    first = [best, *same][: PLACES[section]]
    assert await library.ids(section) == [one.memory_id for one in first]


@pytest.mark.parametrize("section", KINDS)
async def test_what_stands_stays_the_same_until_something_better_comes(section: str) -> None:
    library = TemplateLibrary()
    for _ in range(PLACES[section]):
        await library.keep(0.5, **KINDS[section])
    before = await library.ids(section)
    for _ in range(5):
        await library.keep(0.4, **KINDS[section])
        assert await library.ids(section) == before
    better = await library.keep(0.9, **KINDS[section])
    assert await library.ids(section) == [better.memory_id, *before[:-1]]


async def test_a_pinned_identity_takes_no_place_of_what_else_is_pinned() -> None:
    library = TemplateLibrary()
    pinned = [await library.keep(**KINDS["always"]) for _ in range(PLACES["always"])]
    for _ in range(PLACES["always"]):
        await library.keep(always_inject=True, **KINDS["identity"])
    assert await library.ids("always") == [one.memory_id for one in pinned]
    assert len(await library.ids("identity")) == PLACES["identity"]


async def test_a_section_without_places_stands_empty() -> None:
    library = TemplateLibrary()
    await library.keep(**KINDS["pattern"])
    found = await library.standing.read(ReadScope("dana"), NOW, patterns=False)
    assert found == ()
    assert len(await library.ids("pattern")) == 1
