"""What a process is built from: its stores, and its parts once the dependencies are known."""

from __future__ import annotations

from dataclasses import dataclass

from rayapp.context_protocols import EventStream, SessionStore, UsageStore
from rayapp.data_protocols import DataStores
from rayapp.domain.index import IndexSchema
from rayapp.extraction_protocols import ExchangeQueue
from rayapp.job_protocols import ItemScan, JobStore, QuarantineStore, SharedItems
from rayapp.learning_protocols import GraphStore, LifecycleStore, OutcomeStore
from rayapp.protocols import (
    ApiKeyStore,
    Embedder,
    EventStore,
    IdempotencyStore,
    LeaseStore,
    MemoryStore,
    ReceiptStore,
    VectorIndex,
)
from rayapp.services.index_watch import IndexWatch
from rayapp.services.runtime import Runtime, Texts


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
