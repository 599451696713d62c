"""Personalities and the data pages of a process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rayapp.admin.legacy_bank import LegacyMove
from rayapp.admin.ports import Upkeep
from rayapp.admin.sanitizing import Sanitizing
from rayapp.admin.upkeep import UpkeepService, UpkeepStores
from rayapp.assistant.personality.records import Template
from rayapp.assistant.personality.service import PersonalityService
from rayapp.assistant.ports import Personalities
from rayapp.container.parts import DataStores, Parts
from rayapp.core.runtime import Runtime
from rayapp.core.settings.model import CONFIG_DIR
from rayapp.memory.ports import Memories, MemoryStore, UserData
from rayapp.memory.user_data import UserDataService
from rayapp.storage.files.personalities import load_presets
from rayapp.storage.mongo import MongoDatabase
from rayapp.storage.mongo.housekeeping import MongoHousekeeping
from rayapp.storage.mongo.legacy_bank import MongoLegacyBank
from rayapp.storage.mongo.personality import MongoPersonalityStore
from rayapp.storage.mongo.user_rows import MongoUserRows


def mongo_data_stores(database: MongoDatabase) -> DataStores:
    return DataStores(
        rows=MongoUserRows(database),
        housekeeping=MongoHousekeeping(database),
        legacy=MongoLegacyBank(database),
        personality=MongoPersonalityStore(database),
    )


@lru_cache(maxsize=1)
def presets() -> dict[str, Template]:
    """The shipped personalities; read once per process."""
    return load_presets(CONFIG_DIR / "personality")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataServices:
    """Personalities and the data pages."""

    personality: Personalities
    user_data: UserData
    upkeep: Upkeep


def build_data(parts: Parts, memories: Memories) -> DataServices:
    """What the data pages ask for."""
    stores = parts.stores
    others = UpkeepStores(
        housekeeping=stores.data.housekeeping,
        scan=stores.scan,
        jobs=stores.jobs,
        api_keys=stores.api_keys,
        index=parts.index,
    )
    return data_services(stores.data, others, stores.items, memories, parts.runtime)


def data_services(
    stores: DataStores,
    others: UpkeepStores,
    items: MemoryStore,
    memories: Memories,
    runtime: Runtime,
) -> DataServices:
    """The same from its pieces, for tests without an embedder."""
    user_data = UserDataService(memories, items, stores.rows, runtime=runtime)
    return DataServices(
        personality=PersonalityService(stores.personality, presets(), clock=runtime.clock),
        user_data=user_data,
        upkeep=UpkeepService(
            others,
            user_data,
            LegacyMove(stores.legacy, memories, items, runtime=runtime),
            Sanitizing(memories, items, runtime=runtime),
            runtime=runtime,
        ),
    )
