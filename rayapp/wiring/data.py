"""Personalities and the data pages of a process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rayapp.adapters.mongo import MongoDatabase
from rayapp.adapters.mongo.housekeeping import MongoHousekeeping
from rayapp.adapters.mongo.legacy_bank import MongoLegacyBank
from rayapp.adapters.mongo.personality import MongoPersonalityStore
from rayapp.adapters.mongo.user_rows import MongoUserRows
from rayapp.adapters.personality_files import load_presets
from rayapp.data_protocols import DataStores
from rayapp.data_service_protocols import Personalities, Upkeep, UserData
from rayapp.domain.personality.records import Template
from rayapp.parts import Parts
from rayapp.protocols import MemoryStore
from rayapp.service_protocols import Memories
from rayapp.services.legacy_bank import LegacyMove
from rayapp.services.personality import PersonalityService
from rayapp.services.runtime import Runtime
from rayapp.services.sanitizing import Sanitizing
from rayapp.services.upkeep import UpkeepService, UpkeepStores
from rayapp.services.user_data import UserDataService
from rayapp.settings import CONFIG_DIR


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
