"""The MongoDB implementation of `LifecycleStore`."""

from __future__ import annotations

from rayapp.adapters.mongo.database import MongoDatabase
from rayapp.learning_protocols import LifecycleStore


class MongoLifecycleStore(LifecycleStore):
    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
