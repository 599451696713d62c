"""The services of one process on a real MongoDB and a real embedded engine, without Ray."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rayapp.container import bootstrap
from rayapp.container.services import Container
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.index.passages import PassageIndex
from rayapp.inference.ports import Embedder, opened
from rayapp.storage.qdrant.edge import QdrantEdgeIndex
from rayapp.storage.qdrant.edge_engine import EdgeEngine
from tests.support.harness import ModelEmbedder, without_encoder
from tests.support.in_process_engine import InProcessTransport
from tests.support.jobs import FakeLauncher
from tests.support.mongo_server import running_mongo
from tests.support.patience import patient


@asynccontextmanager
async def engine_container(folder: Path, **overrides: Any) -> AsyncIterator[Container]:
    """Servers that end with the block; `folder` is the engine's, `overrides` are settings."""
    with running_mongo() as server:
        mongo = {"uri": server.uri, "database": "engine-container"}
        embedding = without_encoder(overrides.get("embedding", {}))
        overrides = {"mongo": mongo, **overrides, "embedding": embedding}
        settings = patient(load_settings("local", env={}, overrides=overrides))
        engine = EdgeEngine(folder, settings.qdrant.alias)
        container = await container_on(engine, settings, ModelEmbedder(), InMemoryMetrics())
        await container.index.rebuilt()
        yield container
        await container.receipts.flush()
        await container.index.close()


async def container_on(
    engine: EdgeEngine, settings: Settings, embedder: Embedder, metrics: InMemoryMetrics
) -> Container:
    """With the schema in the MongoDB of the settings and the index open."""
    stores = bootstrap.Stores(settings)
    encoder = bootstrap.text_encoder(settings, metrics)
    await stores.items.ensure_schema()
    container = Container(
        bootstrap.runtime_of(settings, metrics),
        stores,
        index=PassageIndex(QdrantEdgeIndex(InProcessTransport(engine), settings.qdrant)),
        embedder=await opened(embedder),
        launcher=FakeLauncher(),
        encoder=None if encoder is None else await opened(encoder),
    )
    await container.index.open(container.schema)
    return container
