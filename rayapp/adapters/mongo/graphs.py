"""The MongoDB implementation of `GraphStore`."""

from __future__ import annotations

from rayapp.adapters.mongo.database import MongoDatabase
from rayapp.adapters.mongo.follow_ups import FollowUps
from rayapp.adapters.mongo.graph_reads import GraphReads
from rayapp.adapters.mongo.graph_references import GraphReferences
from rayapp.adapters.mongo.graph_settlement import GraphSettlement
from rayapp.settings import GraphSettings


class MongoGraphStore(GraphReads, GraphSettlement, FollowUps, GraphReferences):
    """Writes are increments inside transactions: two writers at once lose nothing."""

    def __init__(self, database: MongoDatabase, settings: GraphSettings) -> None:
        GraphReads.__init__(self, database)
        GraphSettlement.__init__(self, database, settings)
        FollowUps.__init__(self, database)
        GraphReferences.__init__(self, database)
