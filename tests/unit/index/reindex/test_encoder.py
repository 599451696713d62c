"""A reindex with the encoder: workers make both vectors, and what fits is copied."""

from dataclasses import replace
from typing import Any

import numpy as np

from rayapp.index.records import WHOLE
from rayapp.index.reindex.parts import ReindexParts
from rayapp.index.service import beat
from tests.support.harness import WordEncoder
from tests.unit.index.reindex.world import OtherModel, World

ON: dict[str, Any] = {"embedding": {"encoder": {"enabled": True}}}


async def with_encoder(world: World, embedder: Any = None, **changes: Any) -> ReindexParts:
    parts = await world.parts(embedder, **changes)
    encoder = WordEncoder()
    read = await encoder.info()
    schema = replace(parts.schema, encoder=read.model, encoder_dims=read.dims)
    return replace(parts, encoder=encoder, schema=schema)


async def unencoded(world: World) -> int:
    page, _ = await world.service.index.scroll(after=None, limit=1_000, unencoded=True)
    return len(page)


async def test_it_is_added_beside_copied_vectors_while_a_service_runs(world: World) -> None:
    await world.fill(20)
    parts = await with_encoder(world)

    async def beating(seconds: float) -> None:
        world.service.clock.advance(seconds)
        await beat(world.service.leases, world.service.schema, "indexer")

    await beating(0)
    _, finish = await world.run(parts=replace(parts, sleep=beating))
    report = finish.report
    assert (report["copied"], report["embedded"], report["failed"]) == (20, 0, 0)
    # A service without the encoder is served by it too, so nobody waits for a restart.
    assert report["switched"]
    assert await world.unlike_the_truth() == []
    assert await world.service.index.schema_of(await world.target()) == parts.schema
    assert await unencoded(world) == 0
    (point,) = await world.service.index.retrieve(list(await world.points())[:1], WHOLE)
    (item,) = await world.service.scan.by_points([point.point_id])
    assert parts.encoder is not None
    (read,) = await parts.encoder.read([item.text], "passage", timeout_s=1)
    np.testing.assert_allclose(point.encoder, read.search, atol=1e-3)


async def test_another_model_is_filled_with_both(world: World) -> None:
    await world.fill(12)
    parts = await with_encoder(world, OtherModel())
    _, finish = await world.run(parts=parts)
    assert (finish.report["copied"], finish.report["embedded"]) == (0, 12)
    assert await world.unlike_the_truth() == []
    assert await unencoded(world) == 0


async def test_vectors_of_the_same_encoder_are_copied() -> None:
    world = await World.open(**ON)
    await world.fill(10)
    await world.service.encoded()
    await world.service.store("a lighthouse that was written just now")
    await world.service.drain()
    parts = await with_encoder(world)
    _, finish = await world.run(parts=parts)
    assert finish.report["copied"] == 11
    assert isinstance(parts.encoder, WordEncoder)
    # Looked at by the proof alone; what lacks one is given it by the indexer.
    assert await unencoded(world) == 1
    await world.service.encoded()
    assert await unencoded(world) == 0


async def test_a_text_that_the_encoder_cannot_read_is_brought_over(world: World) -> None:
    await world.fill(5)
    await world.service.store("a poison note")
    await world.service.drain()
    parts = await with_encoder(world)
    assert isinstance(parts.encoder, WordEncoder)
    parts.encoder.bad = "poison"
    _, finish = await world.run(parts=parts)
    assert finish.complete
    assert finish.report["copied"] == 6
    assert await world.unlike_the_truth() == []
    assert await unencoded(world) == 1
