"""The encoder's vectors: after the point, fresh ones first, whatever lacks one, and never a wrong
text's."""

from typing import Any

import numpy as np
import pytest

from rayapp.bulk.ports import Lease
from rayapp.core.errors import EmbedderDown
from rayapp.index.encoding import AT_ONCE, REST_S, WALK_LEASE, WALK_LEASE_S
from rayapp.index.records import WHOLE
from rayapp.index.rules.prefix import embedded_texts
from rayapp.index.write_barrier import SWITCH_LEASE
from rayapp.memory.item import point_id_of
from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.wire.insights import BacklogView
from tests.support.harness import Harness

ME = WriteScope("dana")
ON: dict[str, Any] = {"embedding": {"encoder": {"enabled": True}}}
LONG = " ".join(f"Sentence {n} tells of the harbour and its ships." for n in range(60))


@pytest.fixture
async def service() -> Harness:
    return await Harness.open(**ON)


async def lacking(service: Harness) -> set[str]:
    page, _ = await service.index.scroll(after=None, limit=10_000, unencoded=True)
    return {str(point.payload["memory_id"]) for point in page}


async def test_off_nothing_of_it_is_there() -> None:
    service = await Harness.open()
    assert service.container.encoding is None
    assert service.schema.encoder == ""
    await service.store("My sister lives in Haifa.")
    await service.drain()
    (point,) = await service.index.retrieve([point_id_of("dana", await only(service))], WHOLE)
    assert point.encoder is None


async def test_diagnostics_count_what_waits_for_it(service: Harness) -> None:
    for number in range(3):
        await service.store(f"note of number {number}")
    await service.drain()
    body = await service.services.health.diagnostics()
    assert body["index"]["unencoded"] == 3
    assert BacklogView.model_validate(body["index"]).waiting(encoded=True) == 3
    await service.encoded()
    body = await service.services.health.diagnostics()
    assert BacklogView.model_validate(body["index"]).waiting(encoded=True) == 0


async def only(service: Harness) -> str:
    page, _ = await service.index.scroll(after=None, limit=2)
    (point,) = page
    return str(point.payload["memory_id"])


async def test_a_memory_is_indexed_first_and_encoded_then(service: Harness) -> None:
    memory_id = await service.store("My sister lives in Haifa.")
    await service.drain()
    assert await lacking(service) == {memory_id}
    assert await service.found("sister Haifa") == [memory_id]
    await service.encoded()
    assert await lacking(service) == set()
    (point,) = await service.index.retrieve([point_id_of("dana", memory_id)], WHOLE)
    (read,) = await service.encoder.inner.read(
        ["My sister lives in Haifa."], "passage", timeout_s=1
    )
    np.testing.assert_allclose(point.encoder, read.search, atol=1e-3)


async def test_each_passage_is_read_as_it_is_embedded(service: Harness) -> None:
    memory_id = await service.store(LONG)
    await service.drain()
    await service.encoded()
    item = await service.items.get(ReadScope("dana"), memory_id)
    assert len(embedded_texts(item)) > 1
    assert service.encoder.inner.read_texts == embedded_texts(item)


async def test_the_newest_write_is_read_before_the_backlog(service: Harness) -> None:
    for number in range(3 * AT_ONCE):
        await service.store(f"an older note of number {number}")
    await service.drain()
    await service.container.encoding.run_once()
    newest = await service.store("the one that was written just now")
    await service.drain()
    await service.container.encoding.run_once()
    assert newest not in await lacking(service)
    assert len(await lacking(service)) > AT_ONCE


async def test_a_process_that_starts_finds_what_is_missing(service: Harness) -> None:
    for number in range(2 * AT_ONCE + 1):
        await service.store(f"note of number {number}")
    await service.drain()
    service.container.encoding._fresh.clear()
    await service.encoded()
    assert await lacking(service) == set()


async def test_an_edit_renews_it_and_a_deletion_takes_it_along(service: Harness) -> None:
    memory_id = await service.store("My sister lives in Haifa.")
    await service.drain()
    await service.encoded()
    await service.services.memories.edit(ME, memory_id, MemoryEdit(text="She moved to Eilat."))
    await service.drain()
    assert await lacking(service) == {memory_id}
    await service.encoded()
    assert service.encoder.inner.read_texts[-1] == "She moved to Eilat."
    await service.services.memories.delete(ME, memory_id)
    await service.drain()
    assert await service.index.count() == 0


async def test_what_was_edited_meanwhile_keeps_no_vector_of_its_old_text(service: Harness) -> None:
    memory_id = await service.store("My sister lives in Haifa.")
    await service.drain()
    await service.services.memories.edit(ME, memory_id, MemoryEdit(text="She moved to Eilat."))
    await service.container.encoding.run_once()
    assert service.encoder.inner.read_texts == []
    assert await lacking(service) == {memory_id}


async def test_a_text_that_cannot_be_read_stops_no_other(service: Harness) -> None:
    service.encoder.inner.bad = "poison"
    ids = [await service.store(text) for text in ("first note", "poison note", "third note")]
    await service.drain()
    await service.encoded()
    assert await lacking(service) == {ids[1]}
    assert sorted(await service.found("note")) == sorted(ids)


async def test_it_rests_when_nothing_lacks_one(service: Harness) -> None:
    await service.encoded()
    service.index.calls.clear()
    assert await service.container.encoding.run_once() == 0
    assert "scroll" not in service.index.calls
    service.clock.advance(REST_S + 1)
    assert await service.container.encoding.run_once() == 0
    assert "scroll" in service.index.calls


async def test_an_outage_is_told_and_nothing_is_forgotten(service: Harness) -> None:
    memory_id = await service.store("My sister lives in Haifa.")
    await service.drain()
    service.encoder.error = EmbedderDown("away")
    with pytest.raises(EmbedderDown):
        await service.container.encoding.run_once()
    service.encoder.error = None
    assert await lacking(service) == {memory_id}
    await service.container.encoding.run_once()
    assert await lacking(service) == set()


async def test_another_process_walks(service: Harness) -> None:
    await service.leases.acquire(WALK_LEASE, "another", WALK_LEASE_S)
    await service.store("note")
    await service.drain()
    service.container.encoding._fresh.clear()
    assert await service.encoded() == 0
    service.clock.advance(WALK_LEASE_S + REST_S)
    await service.encoded()
    assert await lacking(service) == set()


async def test_it_waits_while_the_alias_moves(service: Harness) -> None:
    await service.store("note")
    await service.drain()
    lease = await service.leases.acquire(SWITCH_LEASE, "reindex", 60.0)
    assert isinstance(lease, Lease)
    assert await service.encoded() == 0
    await service.leases.release(lease)
    assert await service.encoded() > 0


async def test_a_sweep_says_how_many_lack_it_and_calls_it_no_drift(service: Harness) -> None:
    for number in range(3):
        await service.store(f"note of number {number}")
    await service.drain()
    comparison = service.container.comparison
    assert await comparison.unencoded() == 3
    report = await service.container.consistency.check(sample=10, repair=False)
    assert dict(report.found) == {}
    await service.encoded()
    assert await comparison.unencoded() == 0
