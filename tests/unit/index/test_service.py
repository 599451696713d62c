"""The indexer: back-off, blame, takeover, rebuild, and truth that wins."""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rayapp.container import bootstrap
from rayapp.core.errors import BadVector, EmbedderDown, IndexDown
from rayapp.core.vectors import Vector
from rayapp.index.passages import PassageIndex
from rayapp.index.records import WHOLE, IndexPoint
from rayapp.index.rules.points import point_of
from rayapp.index.service import REBUILD_LEASE, IndexingService
from rayapp.inference.ports import TextKind
from rayapp.memory.item import MemoryItem, Source, SourceType, point_id_of
from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.search.requests import SearchQuery
from tests.support.harness import Harness, ModelEmbedder
from tests.support.stores.index import InMemoryIndex

COUNTER = itertools.count(1)
ME = WriteScope("dana")
READ = ReadScope("dana")


class Poisoned(ModelEmbedder):
    """A real model that cannot embed one text."""

    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        if any("poison" in text for text in texts):
            raise BadVector("The model gave NaN.")
        return await super().embed(texts, kind, timeout_s=timeout_s)


class Slow(ModelEmbedder):
    """Ends eight texts a second, as a small transformer on a busy CPU does."""

    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        if len(texts) / 8 > timeout_s:
            raise EmbedderDown(f"No embedding within {timeout_s} s.")
        return await super().embed(texts, kind, timeout_s=timeout_s)


async def test_a_slow_embedder_is_asked_in_parts_that_it_ends_in_time(service: Harness) -> None:
    service.embedder.inner = Slow()
    for number in range(200):
        await service.store(f"note {number}")
    await service.indexing.run_once()
    assert (await service.items.backlog()).synced == 200


async def test_everything_pending_becomes_synced(service: Harness) -> None:
    for number in range(10):
        await service.store(f"note {number}")
    assert await service.drain() == 10
    backlog = await service.items.backlog()
    assert (backlog.pending, backlog.synced, backlog.failed) == (0, 10, 0)
    assert await service.index.count() == 10


async def test_an_outage_backs_off_and_never_gives_up_an_item(service: Harness) -> None:
    await service.store("waits")
    service.embedder.error = EmbedderDown("The embedder is away.")
    for _ in range(30):
        await service.indexing.run_once()
        service.clock.advance(31)
    backlog = await service.items.backlog()
    assert (backlog.pending, backlog.failed) == (1, 0)
    service.embedder.error = None
    await service.drain()
    assert (await service.items.backlog()).synced == 1


async def test_a_failing_item_is_not_tried_before_its_time(service: Harness) -> None:
    await service.store("waits")
    service.index.error = IndexDown("The index is away.")
    assert await service.indexing.run_once() == 1
    assert service.indexing.outage
    assert await service.indexing.run_once() == 0
    service.clock.advance(6)
    assert await service.indexing.run_once() == 1


async def test_a_text_that_cannot_be_embedded_fails_alone_and_visibly() -> None:
    service = await Harness.open(indexer={"max_attempts": 3})
    service.embedder.inner = Poisoned()
    bad = await service.store("poison")
    for number in range(8):
        await service.store(f"fine {number}")
    for _ in range(4):
        await service.drain()
        service.clock.advance(1_000)
    backlog = await service.items.backlog()
    assert (backlog.synced, backlog.failed) == (8, 1)
    item = await service.services.memories.get(READ, bad)
    assert item.index.last_error == "bad_vector: The model gave NaN."
    diagnostics = await service.services.health.diagnostics()
    assert diagnostics["index"]["failed"] == 1
    assert "rayapp job deferred" in diagnostics["recommendations"][0]


async def test_an_edit_during_indexing_is_indexed_again(service: Harness) -> None:
    one = await service.store("old words")
    claimed = await service.items.claim(token="slow", limit=10, claim_s=60)
    assert len(claimed) == 1
    await service.services.memories.edit(ME, one, MemoryEdit(text="new words"))
    await service.drain()
    item = await service.services.memories.get(READ, one)
    point = (await service.index.retrieve([item.point_id]))[0]
    assert point.payload["rev"] == item.index.rev == 2


async def test_a_claim_that_expires_is_taken_over(service: Harness) -> None:
    await service.store("orphaned")
    await service.items.claim(token="dead", limit=10, claim_s=60)
    assert await service.indexing.run_once() == 0
    service.clock.advance(61)
    assert await service.indexing.run_once() == 1
    assert (await service.items.backlog()).synced == 1


async def test_a_tag_edit_updates_the_payload_without_embedding(service: Harness) -> None:
    one = await service.store("tagged")
    await service.drain()
    service.embedder.error = EmbedderDown("must not be called")
    await service.services.memories.edit(ME, one, MemoryEdit(tags=("new",)))
    await service.drain()
    item = await service.services.memories.get(READ, one)
    assert item.index.sync_state.value == "synced"
    point = (await service.index.retrieve([item.point_id]))[0]
    assert point.payload["tags"] == ["new"]


async def test_a_deleted_row_goes_once_its_point_is_gone(service: Harness) -> None:
    one = await service.store("short lived")
    await service.drain()
    await service.services.memories.delete(ME, one)
    assert await service.index.count() == 1
    await service.drain()
    assert await service.index.count() == 0
    backlog = await service.items.backlog()
    assert (backlog.pending, backlog.synced) == (0, 0)


async def test_a_lost_index_is_rebuilt_from_the_truth(service: Harness) -> None:
    for number in range(5):
        await service.store(f"note {number}")
    await service.drain()
    lost = PassageIndex(InMemoryIndex())
    await lost.open(service.schema)
    service.index.inner = lost
    assert await service.index.count() == 0
    assert await service.indexing.rebuild_if_lost()
    await service.watch.look(service.index, service.items)
    answer = await service.services.search.search(READ, SearchQuery(query="note"))
    assert len(answer.hits) == 5
    assert answer.degraded == ("index_rebuilding",)
    await service.drain()
    assert await service.index.count() == 5
    assert not await service.indexing.rebuild_if_lost()
    await service.watch.look(service.index, service.items)
    answer = await service.services.search.search(READ, SearchQuery(query="note"))
    assert answer.degraded == ()


async def test_vectors_in_the_index_are_the_models(service: Harness) -> None:
    one = await service.store("compare me")
    await service.drain()
    item = await service.services.memories.get(READ, one)
    point = (await service.index.retrieve([item.point_id], WHOLE))[0]
    wanted = (await service.model.embed(["compare me"], "passage", timeout_s=1))[0]
    assert np.allclose(point.dense, wanted, atol=1e-5)


async def lose_index(service: Harness) -> None:
    """The engine comes back with a new, empty collection."""
    lost = InMemoryIndex(f"memories{next(COUNTER)}")
    await lost.open(service.schema)
    service.index.inner = lost


async def test_an_index_lost_again_during_its_rebuild_has_no_hole(service: Harness) -> None:
    for number in range(6):
        await service.store(f"note {number}")
    await service.drain()
    await lose_index(service)
    assert await service.indexing.rebuild_if_lost()
    await service.drain()
    await lose_index(service)
    assert await service.indexing.rebuild_if_lost()
    await service.drain()
    assert not await service.indexing.rebuild_if_lost()
    assert await service.index.count() == 6


async def test_a_rebuild_that_is_long_to_begin_stays_in_one_hand(
    service: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of millions of items the store takes minutes to ask for them again, the lease is one."""
    monkeypatch.setattr("rayapp.index.service.REBUILD_LEASE_S", 0.3)
    await service.store("note")
    await service.drain()
    await lose_index(service)
    mark = service.items.mark_all_pending

    async def slow() -> int:
        held = await service.leases.current(REBUILD_LEASE)
        assert held is not None
        async with asyncio.timeout(10):
            while (now := await service.leases.current(REBUILD_LEASE)) == held:
                service.clock.advance(0.001)
                await asyncio.sleep(0.01)
        assert now is not None
        assert (now.holder, now.fence) == (held.holder, held.fence)
        return await mark()

    monkeypatch.setattr(service.items, "mark_all_pending", slow)
    assert await service.indexing.rebuild_if_lost()
    assert (await service.items.backlog()).pending == 1


async def test_an_index_without_any_collection_is_opened_and_filled(service: Harness) -> None:
    await service.store("note")
    await service.drain()
    service.index.inner = InMemoryIndex()
    assert await service.indexing.rebuild_if_lost()
    await service.drain()
    assert not await service.indexing.rebuild_if_lost()
    assert await service.index.count() == 1


async def test_one_bad_item_does_not_hold_back_a_rebuild(service: Harness) -> None:
    await service.store("fine")
    await service.store("poison")
    await service.drain()
    service.embedder.inner = Poisoned()
    await lose_index(service)
    assert await service.indexing.rebuild_if_lost()
    await service.drain()
    service.clock.advance(1)
    assert not await service.indexing.rebuild_if_lost()
    assert await service.index.count() == 1


async def test_what_gave_up_is_still_found_by_its_words() -> None:
    service = await Harness.open(indexer={"max_attempts": 1})
    service.embedder.inner = Poisoned()
    bad = await service.store("poison is in the cellar")
    await service.drain()
    assert (await service.items.backlog()).failed == 1
    await service.watch.look(service.index, service.items)
    assert await service.found("cellar") == [bad]


async def test_a_lost_index_is_noticed_by_the_very_next_search(service: Harness) -> None:
    one = await service.store("the cellar is damp")
    await service.drain()
    await lose_index(service)
    answer = await service.search("cellar")
    assert [hit.item.memory_id for hit in answer.hits] == [one]
    assert answer.degraded == ("index_rebuilding",)


async def test_an_item_that_cannot_become_a_point_fails_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = await Harness.open(indexer={"max_attempts": 1})
    await service.store("broken", user="anna")
    for number in range(5):
        await service.store(f"fine {number}", user="bob")

    def point(item: MemoryItem, *rest: Any) -> IndexPoint:
        if item.text == "broken":
            raise AttributeError("no such thing")
        return point_of(item, *rest)

    monkeypatch.setattr("rayapp.index.point_builder.point_of", point)
    await service.drain()
    backlog = await service.items.backlog()
    assert (backlog.pending, backlog.synced, backlog.failed) == (0, 5, 1)


@pytest.mark.parametrize("flags", [["has_geo"], {"has_geo": True, "has_phone": False}])
async def test_flags_come_as_a_list_or_as_a_mapping(service: Harness, flags: object) -> None:
    source = Source(type=SourceType.DATAGOV, datagov={"flags": flags})
    one = await service.store("bus stops", source=source)
    await service.drain()
    assert await service.found("bus stops", where=ItemFilter(flags=("has_geo",))) == [one]
    assert await service.found("bus stops", where=ItemFilter(flags=("has_phone",))) == []


async def test_a_point_that_the_index_refuses_fails_alone() -> None:
    service = await Harness.open(indexer={"max_attempts": 1})

    class Twisted(ModelEmbedder):
        async def embed(
            self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
        ) -> list[Vector]:
            vectors = await super().embed(texts, kind, timeout_s=timeout_s)
            return [
                v * np.nan if "twisted" in t else v for t, v in zip(texts, vectors, strict=True)
            ]

    service.embedder.inner = Twisted()
    await service.store("twisted")
    for number in range(4):
        await service.store(f"fine {number}")
    await service.drain()
    backlog = await service.items.backlog()
    assert (backlog.synced, backlog.failed) == (4, 1)


async def test_an_edit_of_an_archived_item_makes_no_point(service: Harness) -> None:
    one = await service.store("kept for later")
    await service.drain()
    await service.services.memories.archive(ME, one)
    await service.services.memories.edit(ME, one, MemoryEdit(text="נערך בארכיון"))
    await service.drain()
    assert await service.index.count() == 0
    await service.services.memories.restore(ME, one)
    await service.drain()
    assert await service.found("נערך בארכיון") == [one]


async def test_a_late_write_does_not_bring_a_deleted_memory_back(service: Harness) -> None:
    """The slow indexer's write lands after the delete of another one."""
    one = await service.store("gone soon")
    other = IndexingService(
        service.items,
        service.index,
        service.indexing.maker,
        service.leases,
        runtime=bootstrap.runtime_of(service.settings, service.metrics, service.clock),
    )
    written = service.index.inner.upsert

    async def late(points: Sequence[IndexPoint]) -> None:
        service.index.inner.upsert = written
        await service.services.memories.delete(ME, one)
        assert await other.run_once() == 1
        await written(points)

    service.index.inner.upsert = late
    await service.indexing.run_once()
    assert await service.index.count() == 0
    assert (await service.items.backlog()).pending == 0


@pytest.mark.parametrize("back", [True, False])
async def test_nothing_is_forgotten_of_a_memory_that_came_back_during_its_delete(
    service: Harness, back: bool
) -> None:
    """An import puts turns and memories back while the indexer still works on the deletes."""
    one, two = await service.store("deleted", memory_id="a"), await service.store("away")
    await service.drain()
    await service.services.memories.delete(ME, one)
    await service.services.memories.archive(ME, two, reason="ghost:wrong")
    forgotten: dict[str, list[str]] = {"deleted": [], "hidden": []}
    indexing, engine = service.indexing, service.index.inner
    points = {point_id_of("dana", name) for name in (one, two)}

    async def forget_deleted(point_ids: Sequence[str]) -> None:
        forgotten["deleted"] += point_ids

    async def forget_hidden(point_ids: Sequence[str]) -> None:
        forgotten["hidden"] += point_ids

    indexing.on_deleted, indexing.on_hidden = forget_deleted, forget_hidden
    delete = engine.delete

    async def slow(*how: Any) -> None:
        engine.delete = delete
        await delete(*how)
        if back:
            await service.store("deleted", memory_id="a")
            await service.services.memories.restore(ME, two)

    engine.delete = slow
    assert await indexing.run_once() == 2
    assert {one for ids in forgotten.values() for one in ids} == (set() if back else points)
