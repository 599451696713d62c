"""What a process is built from: its stores, and its parts once the dependencies are known."""

from __future__ import annotations

from dataclasses import dataclass

from rayapp.admin.ports import ApiKeyStore, EventStream, Housekeeping, IdempotencyStore, LegacyBank
from rayapp.assistant.ports import ExchangeQueue, PersonalityStore, SessionStore
from rayapp.bulk.ports import JobStore, LeaseStore
from rayapp.core.runtime import Runtime
from rayapp.core.vectors import IndexSchema
from rayapp.datagov.ports import SharedItems
from rayapp.graphs.ports import GraphStore
from rayapp.index.ports import ItemScan, QuarantineStore, VectorIndex
from rayapp.index.write_barrier import IndexWatch
from rayapp.inference.ports import Embedder, UsageStore
from rayapp.learning.ports import LifecycleStore, OutcomeStore
from rayapp.memory.ports import EventStore, MemoryStore, UserRows
from rayapp.search.ports import ReceiptStore
from rayapp.search.rules.recipes import Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class DataStores:
    """The stores that only personalities and the data pages use."""

    rows: UserRows
    housekeeping: Housekeeping
    legacy: LegacyBank
    personality: PersonalityStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The truth, behind its protocols."""

    items: MemoryStore
    receipts: ReceiptStore
    events: EventStore
    leases: LeaseStore
    api_keys: ApiKeyStore
    idempotency: IdempotencyStore
    outcomes: OutcomeStore
    lifecycle: LifecycleStore
    graphs: GraphStore
    jobs: JobStore
    scan: ItemScan
    quarantine: QuarantineStore
    shared: SharedItems
    stream: EventStream
    data: DataStores
    exchanges: ExchangeQueue
    usage: UsageStore
    sessions: SessionStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a process has once its dependencies are known: the input of every service."""

    runtime: Runtime
    stores: Stores
    index: VectorIndex
    embedder: Embedder
    texts: Texts
    schema: IndexSchema
    watch: IndexWatch
    langs: frozenset[str] = frozenset()
