"""The MongoDB implementation of `MemoryStore`: reads, writes, queue and counts in one object."""

from __future__ import annotations

from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.index_queue import IndexQueue
from rayapp.storage.mongo.item_counts import ItemCounts
from rayapp.storage.mongo.item_reads import ItemReads
from rayapp.storage.mongo.item_writes import ItemWrites


class MongoMemoryStore(ItemReads, ItemWrites, IndexQueue, ItemCounts):
    """`memory_items` and `memory_versions` of one database."""

    def __init__(self, database: MongoDatabase) -> None:
        ItemReads.__init__(self, database)
        ItemWrites.__init__(self, database)
        IndexQueue.__init__(self, database)
        ItemCounts.__init__(self, database)
        self._database = database

    async def ensure_schema(self) -> None:
        await self._database.ensure_schema()

    async def ping(self) -> float:
        return await self._database.ping()
