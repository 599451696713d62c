"""The MongoDB implementation of `OutcomeStore`."""

from __future__ import annotations

from rayapp.adapters.mongo.database import MongoDatabase
from rayapp.learning_protocols import OutcomeStore


class MongoOutcomeStore(OutcomeStore):
    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
