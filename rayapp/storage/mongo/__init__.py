"""MongoDB, the truth: one database object and one class per store protocol."""

from rayapp.storage.mongo.api_keys import MongoApiKeyStore
from rayapp.storage.mongo.database import MongoDatabase, redacted
from rayapp.storage.mongo.event_stream import MongoEventStore
from rayapp.storage.mongo.jobs import MongoLeaseStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.receipts import MongoIdempotencyStore, MongoReceiptStore

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
