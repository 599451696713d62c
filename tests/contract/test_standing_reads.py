"""What stands before every question, read from a real MongoDB: the same memories, by an index."""

from datetime import timedelta
from typing import Any

import pytest

from rayapp.assistant.context.rules.prompt_block import STABLE_SECTIONS
from rayapp.assistant.context.service import CHOSEN_FROM, CoreMemories
from rayapp.core.settings.model import ContextSettings
from rayapp.memory.item import MemoryItem
from rayapp.memory.requests import SORT_KEYS
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import Tier
from rayapp.search.newest import NewestMemories
from rayapp.storage.mongo.convert import to_document
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import ITEMS
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.predicates import selected
from tests.support.builders import STORED_AT, an_item
from tests.support.clock import FakeClock
from tests.support.stores import InMemoryMemoryStore

pytestmark = pytest.mark.engine
READ = ReadScope("dana")
NOW = STORED_AT + timedelta(days=1)
TIERS = (Tier.PATTERNS, Tier.WORKING, Tier.HISTORY)


def memories() -> list[MemoryItem]:
    """Many of every kind, and some of another user."""
    found = [
        an_item(tier=TIERS[n % 3], stored_at=STORED_AT - timedelta(minutes=n)) for n in range(900)
    ]
    for number in range(30):
        found.append(
            an_item(
                tier=Tier.MEMORY_BANK,
                tags=(("identity",), ("העדפה",), ("project",))[number % 3],
                always_inject=number % 5 == 0,
                superseded_by="later" if number % 7 == 0 else None,
            )
        )
    for number in range(30):
        found.append(an_item(instruction=f"always {number}" if number % 3 else None))
    found.append(an_item(user_id="omer", tier=Tier.PATTERNS, tags=("identity",)))
    return found


async def test_the_same_memories_as_in_memory(database: MongoDatabase) -> None:
    items = memories()
    fake = InMemoryMemoryStore(FakeClock())
    await fake.insert_many(items)
    await database.collection(ITEMS).insert_many([to_document(item) for item in items])
    read = [
        await CoreMemories(NewestMemories(store), ContextSettings()).read(READ, NOW)
        for store in (fake, MongoMemoryStore(database))
    ]
    shown = [[(one.section, one.item.memory_id) for one in found] for found in read]
    assert shown[0] == shown[1]
    assert {section for section, _ in shown[0]} == set(STABLE_SECTIONS)
    assert {one.item.user_id for one in read[1]} == {"dana"}


@pytest.mark.parametrize(
    ("where", "most"),
    [
        (ItemFilter(tiers=(Tier.PATTERNS,), now=NOW, valid_at=NOW), CHOSEN_FROM),
        (ItemFilter(always_inject=True, now=NOW, valid_at=NOW), 6),
        (ItemFilter(instruction=True, now=NOW, valid_at=NOW), 20),
        (ItemFilter(tiers=(Tier.MEMORY_BANK,), tags_any=("identity",), now=NOW, valid_at=NOW), 10),
    ],
)
async def test_no_more_is_read_than_may_stand(
    database: MongoDatabase, where: ItemFilter, most: int
) -> None:
    """Of some 900 memories, 300 of them patterns."""
    await database.collection(ITEMS).insert_many([to_document(item) for item in memories()])
    wanted: dict[str, Any] = selected(ReadScope("dana", include_shared=False), where)[0]
    order = [(path, -1) for path, _ in SORT_KEYS["recent"]]
    found = database.collection(ITEMS).find(wanted, sort=order, limit=CHOSEN_FROM)
    assert (await found.explain())["executionStats"]["totalDocsExamined"] <= most
