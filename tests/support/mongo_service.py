"""The whole service over a real MongoDB, with the vector index in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rayapp.api.services import Services
from rayapp.container import bootstrap
from rayapp.container.bootstrap import Stores
from rayapp.container.services import Container
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import MongoSettings
from rayapp.index.passages import PassageIndex
from rayapp.inference.ports import opened
from tests.support.harness import AT_ONCE, ModelEmbedder, without_encoder
from tests.support.jobs import FakeLauncher
from tests.support.stores.index import InMemoryIndex


@dataclass
class MongoService:
    """`await MongoService.open(...)`; whatever is in the background is done by `settle`."""

    container: Container
    services: Services

    @classmethod
    async def open(cls, mongo: MongoSettings, **overrides: Any) -> MongoService:
        overrides["search"] = AT_ONCE | overrides.get("search", {})
        overrides["embedding"] = without_encoder(overrides.get("embedding", {}))
        settings = load_settings(env={}, overrides=overrides)
        settings = settings.model_copy(update={"mongo": mongo})
        model, index = ModelEmbedder(), PassageIndex(InMemoryIndex())
        container = Container(
            bootstrap.runtime_of(settings, InMemoryMetrics()),
            Stores(settings),
            index=index,
            embedder=await opened(model),
            launcher=FakeLauncher(),
        )
        await index.open(container.schema)
        await index.rebuilt()
        return cls(container, container.services())

    async def settle(self) -> None:
        """Learning, outbox and indexer, until nothing is due."""
        for _ in range(3):
            while await self.container.learning.run_once():
                pass
            while await self.container.indexing.run_once():
                pass
            while await self.container.outbox.run_once():
                pass
