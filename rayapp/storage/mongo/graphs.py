"""The MongoDB implementation of `GraphStore`."""

from __future__ import annotations

from rayapp.core.settings.model import GraphSettings
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.follow_ups import FollowUps
from rayapp.storage.mongo.graph_reads import GraphReads
from rayapp.storage.mongo.graph_references import GraphReferences
from rayapp.storage.mongo.graph_settlement import GraphSettlement


class MongoGraphStore(GraphReads, GraphSettlement, FollowUps, GraphReferences):
    """Writes are increments inside transactions: two writers at once lose nothing."""

    def __init__(self, database: MongoDatabase, settings: GraphSettings) -> None:
        GraphReads.__init__(self, database)
        GraphSettlement.__init__(self, database, settings)
        FollowUps.__init__(self, database)
        GraphReferences.__init__(self, database)
