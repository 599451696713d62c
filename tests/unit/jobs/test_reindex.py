"""Which collections a re-index removes."""

from __future__ import annotations

from jobs.reindex import drop_others
from rayapp.adapters.in_memory_index import InMemoryIndex
from rayapp.domain.index import IndexSchema

SCHEMA = IndexSchema(model="tiny/model-v2", dims=8, analyser="a1")


async def test_every_older_collection_of_the_alias_goes_and_nothing_else() -> None:
    index = InMemoryIndex("memories")
    await index.open(SCHEMA)
    first = (await index.health()).collection
    assert first is not None
    target = "memories_tiny-model-v2_8_20260102"
    others = ["memories_x_tiny-model-v2_8_0", "memories2_tiny-model-v2_8_0", "notes"]
    for name in ("memories_old_16_20260101", target, *others):
        await index.create_collection(name, SCHEMA)
    await index.switch_alias(target)
    assert await drop_others(index, "memories") == sorted([first, "memories_old_16_20260101"])
    assert await index.collections() == sorted([target, *others])
    assert await drop_others(index, "memories") == []
