"""Personalities and the data pages over in-memory stores."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from rayapp.adapters.in_memory import InMemoryMemoryStore
from rayapp.adapters.in_memory_graphs import InMemoryGraphStore
from rayapp.adapters.in_memory_housekeeping import InMemoryHousekeeping, InMemoryLegacyBank
from rayapp.adapters.in_memory_jobs import InMemoryItemScan
from rayapp.adapters.in_memory_personality import InMemoryPersonalityStore
from rayapp.adapters.in_memory_stores import InMemoryReceiptStore
from rayapp.adapters.in_memory_user_rows import InMemoryUserRows
from rayapp.data_protocols import DataStores
from rayapp.protocols import ApiKeyStore
from rayapp.service_protocols import Memories
from rayapp.services.runtime import Runtime
from rayapp.services.upkeep import UpkeepStores
from rayapp.testing.fake_jobs import JobParts
from rayapp.wiring.data import DataServices, data_services

Sessions = MutableMapping[tuple[str, str], Any]
Exchanges = MutableMapping[tuple[str, str, str], Any]


def data_stores(
    items: InMemoryMemoryStore,
    graphs: InMemoryGraphStore,
    receipts: InMemoryReceiptStore,
    sessions: Sessions | None = None,
    exchanges: Exchanges | None = None,
) -> DataStores:
    """`sessions`: rows by (user, conversation); `exchanges`: by (user, conversation, message)."""
    sessions = {} if sessions is None else sessions
    exchanges = {} if exchanges is None else exchanges
    personality = InMemoryPersonalityStore()
    tables: dict[str, MutableMapping[Any, Any]] = {
        "memory_versions": items._versions,
        "receipts": receipts._receipts,
        "kg_nodes": graphs._rows.nodes,
        "kg_edges": graphs._rows.edges,
        "kg_routing": graphs._rows.routing,
        "kg_actions": graphs._rows.actions,
        "known_solutions": graphs._rows.solutions,
        "books": graphs._rows.documents,
        "personality": personality._shelves,
        "sessions": sessions,
        "exchanges": exchanges,
        "api_keys": {},
    }
    return DataStores(
        rows=InMemoryUserRows(items, graphs, receipts, sessions, exchanges),
        housekeeping=InMemoryHousekeeping(items, tables),
        legacy=InMemoryLegacyBank(),
        personality=personality,
    )


def fake_data_services(
    stores: DataStores,
    items: InMemoryMemoryStore,
    jobs: JobParts,
    api_keys: ApiKeyStore,
    memories: Memories,
    runtime: Runtime,
) -> DataServices:
    others = UpkeepStores(
        housekeeping=stores.housekeeping,
        scan=InMemoryItemScan(items),
        jobs=jobs.store,
        api_keys=api_keys,
        index=jobs.index,
    )
    return data_services(stores, others, items, memories, runtime)
