"""What a reindex cannot be faster than: the embedder alone, and the engine's upsert alone."""

import asyncio
import time
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jobs.frame import attached
from rayapp.container import bootstrap
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.vectors import IndexSchema, Vector
from rayapp.index.records import IndexPoint
from rayapp.index.rules.points import point_of
from rayapp.inference.ports import Embedder
from rayapp.memory.item import MemoryItem
from rayapp.storage.qdrant.edge_engine import EdgeEngine
from rayapp.storage.qdrant.edge_scheduler import exhaust
from tests.bench.texts import facts
from tests.support.builders import an_item

# Enough for a second of each; batches are those of a step of the job.
TEXTS = 5_000
BATCH = 256
TIMEOUT_S = 60.0
USERS = 100


async def limits(data_dir: Path, seed: int) -> dict[str, Any]:
    """Items per second of each alone, in this process: the model of the running stack over texts
    like those of the fill, and the embedded engine on a new folder with the points of them."""
    settings = await asyncio.to_thread(attached, data_dir)
    texts = [fact.text for fact in islice(facts(seed), TEXTS)]
    embedder = bootstrap.embedding_service(settings, InMemoryMetrics())
    try:
        analyser = bootstrap.load_texts().analyser
        schema = bootstrap.schema_of(await embedder.info(), analyser)
        vectors, embed_s = await _embedded(embedder, texts)
    finally:
        await embedder.close()
    points = [
        point_of(item, [(vector, analyser.document(item.text))], schema)
        for item, vector in zip(map(_item, count(), texts), vectors, strict=True)
    ]
    upsert_s = await asyncio.to_thread(_upserted, points, schema)
    rates = {"embedder": TEXTS / embed_s, "engine_upsert": TEXTS / upsert_s}
    return {name: round(rate, 1) for name, rate in rates.items()} | {"dims": schema.dims}


def share_of(items_per_s: float | None, alone: dict[str, Any]) -> float | None:
    """The job's rate over that of the slower of the two."""
    least = min(alone["embedder"], alone["engine_upsert"])
    return round(items_per_s / least, 3) if items_per_s and least else None


async def _embedded(embedder: Embedder, texts: Sequence[str]) -> tuple[list[Vector], float]:
    await embedder.embed(texts[:BATCH], "passage", timeout_s=TIMEOUT_S)  # warm
    began, vectors = time.perf_counter(), list[Vector]()
    for at in range(0, len(texts), BATCH):
        vectors += await embedder.embed(texts[at : at + BATCH], "passage", timeout_s=TIMEOUT_S)
    return vectors, time.perf_counter() - began


def _item(number: int, text: str) -> MemoryItem:
    return an_item(text=text, user_id=f"u-{number % USERS}", subject_id=f"u-{number % USERS}")


def _upserted(points: Sequence[IndexPoint], schema: IndexSchema) -> float:
    """Seconds that the upserts took."""
    with TemporaryDirectory(prefix="rayapp-bench-") as folder:
        engine = EdgeEngine(Path(folder), "alone")
        engine.open(schema)
        exhaust(engine.upsert(points[:BATCH]))  # warm
        began = time.perf_counter()
        for at in range(0, len(points), BATCH):
            exhaust(engine.upsert(points[at : at + BATCH]))
        spent_s = time.perf_counter() - began
        engine.close()
        return spent_s
