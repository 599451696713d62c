"""The MongoDB implementation of `GraphStore`."""

from __future__ import annotations

from rayapp.adapters.mongo.database import MongoDatabase
from rayapp.learning_protocols import GraphStore
from rayapp.settings import GraphSettings


class MongoGraphStore(GraphStore):
    def __init__(self, database: MongoDatabase, settings: GraphSettings) -> None:
        self._database = database
        self._settings = settings
