"""MongoDB, the truth: one database object and one class per store protocol."""

from rayapp.adapters.mongo.api_keys import MongoApiKeyStore
from rayapp.adapters.mongo.database import MongoDatabase, redacted
from rayapp.adapters.mongo.events import MongoEventStore
from rayapp.adapters.mongo.idempotency import MongoIdempotencyStore
from rayapp.adapters.mongo.leases import MongoLeaseStore
from rayapp.adapters.mongo.memory_store import MongoMemoryStore
from rayapp.adapters.mongo.receipts import MongoReceiptStore

__all__ = [
    "MongoApiKeyStore",
    "MongoDatabase",
    "MongoEventStore",
    "MongoIdempotencyStore",
    "MongoLeaseStore",
    "MongoMemoryStore",
    "MongoReceiptStore",
    "redacted",
]
