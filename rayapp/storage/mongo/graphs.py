"""The MongoDB implementation of `GraphStore`. Every query carries equality on user_id."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from pymongo import ASCENDING, DESCENDING

from rayapp.core.settings.model import GraphSettings
from rayapp.graphs import records
from rayapp.graphs.rules.content import JUDGED_BOOKS, JUDGED_OFTEN, PRIOR_ACTIONS, PRIOR_SOLUTIONS
from rayapp.memory.scope import ReadScope
from rayapp.storage.mongo import graph_convert
from rayapp.storage.mongo.convert import readable
from rayapp.storage.mongo.database import MongoDatabase, aggregated, listed
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.graph_settlement import GraphSettlement
from rayapp.storage.mongo.graph_writes import FollowUps, GraphReferences
from rayapp.storage.mongo.indexes import ACTIONS, BOOKS, EDGES, NODES, ROUTING, SOLUTIONS
from rayapp.storage.mongo.predicates import mine

Document = dict[str, Any]
T = TypeVar("T")


class GraphReads:
    def __init__(self, database: MongoDatabase) -> None:
        self._routing = database.collection(ROUTING)
        self._nodes = database.collection(NODES)
        self._edges = database.collection(EDGES)
        self._actions = database.collection(ACTIONS)

    async def priors(
        self, scope: ReadScope, question: records.GraphQuestion
    ) -> records.GraphPriors:
        """One aggregation; every stage tags its rows with `kind`."""
        stages = _priors(mine(scope), question)
        docs = await aggregated(self._routing, stages)

        def of(kind: str, convert: Callable[[Document], T]) -> tuple[T, ...]:
            return tuple(readable([doc for doc in docs if doc["kind"] == kind], convert))

        return records.GraphPriors(
            routing=of(ROUTING, graph_convert.routing_row),
            nodes=of(NODES, graph_convert.content_node),
            actions=of(ACTIONS, graph_convert.action_row),
            solutions=of(SOLUTIONS, graph_convert.known_solution),
            documents=of(BOOKS, graph_convert.document_effect),
        )

    async def top_routing(self, scope: ReadScope, limit: int) -> list[records.RoutingRow]:
        order = [("last_seen_at", DESCENDING)]
        return await listed(
            self._routing, mine(scope), graph_convert.routing_row, sort=order, limit=limit
        )

    async def is_empty(self, scope: ReadScope) -> bool:
        asked = (rows.find_one(mine(scope), {"_id": 1}) for rows in (self._actions, self._nodes))
        with translated():
            return not any(await asyncio.gather(*asked))

    async def top_nodes(self, scope: ReadScope, limit: int) -> list[records.ContentNode]:
        if limit < 1:
            return []
        stages: list[Document] = [
            {"$match": {**mine(scope), "mentions": {"$gt": 0}}},
            {"$set": {"average": {"$divide": ["$quality_sum", "$mentions"]}}},
            {"$sort": {"average": DESCENDING, "mentions": DESCENDING, "node_id": ASCENDING}},
            {"$limit": limit},
        ]
        return readable(await aggregated(self._nodes, stages), graph_convert.content_node)

    async def nodes(self, scope: ReadScope, node_ids: Sequence[str]) -> list[records.ContentNode]:
        if not node_ids:
            return []
        where = {**mine(scope), "node_id": {"$in": list(node_ids)}}
        return await listed(self._nodes, where, graph_convert.content_node)

    async def edges_of(
        self, scope: ReadScope, node_ids: Sequence[str], limit: int
    ) -> list[records.ContentEdge]:
        if not node_ids:
            return []
        touched = {"$in": list(node_ids)}
        # Equality on user_id stands in both branches, so that each can use its own index.
        where = {"$or": [{**mine(scope), end: touched} for end in ("source", "target")]}
        order = [("weight", DESCENDING), ("source", ASCENDING), ("target", ASCENDING)]
        return await listed(self._edges, where, graph_convert.content_edge, sort=order, limit=limit)

    async def actions(
        self, scope: ReadScope, *, context_type: str | None, limit: int
    ) -> list[records.ActionRow]:
        where = {**mine(scope)}
        if context_type is not None:
            where["context_type"] = context_type
        order = [("counters.uses", DESCENDING), ("action", ASCENDING), ("tier", ASCENDING)]
        return await listed(self._actions, where, graph_convert.action_row, sort=order, limit=limit)

    async def stats(self, scope: ReadScope) -> records.ContentStats:
        """Counts of both collections in one round trip."""
        total = {"_id": None, "count": {"$sum": 1}, "last": {"$max": "$last_seen_at"}}
        counted: list[Document] = [{"$match": mine(scope)}, {"$group": total}]
        edges = [*counted, {"$set": {"kind": EDGES}}]
        stages = [*counted, {"$set": {"kind": NODES}}]
        stages.append({"$unionWith": {"coll": EDGES, "pipeline": edges}})
        found = {doc["kind"]: doc for doc in await aggregated(self._nodes, stages)}
        times: list[datetime] = [doc["last"] for doc in found.values()]
        return records.ContentStats(
            nodes=found[NODES]["count"] if NODES in found else 0,
            edges=found[EDGES]["count"] if EDGES in found else 0,
            last_updated_at=max(times, default=None),
        )


def _priors(owner: Document, question: records.GraphQuestion) -> list[Document]:
    """The pipeline on `kg_routing`; the other collections are joined to it."""
    concepts = list(question.concepts)
    unions: list[tuple[str, list[Document]]] = [
        (NODES, [{"$match": {**owner, "node_id": {"$in": concepts}}}]),
        (
            ACTIONS,
            [
                {"$match": {**owner, "context_type": question.context_type}},
                {"$sort": {"counters.uses": DESCENDING, "action": ASCENDING, "tier": ASCENDING}},
                {"$limit": PRIOR_ACTIONS},
                {"$unset": "examples"},
            ],
        ),
        (
            BOOKS,
            [
                {"$match": {**owner, "counters.uses": {"$gte": JUDGED_OFTEN}}},
                {"$sort": {"counters.uses": DESCENDING, "doc_id": ASCENDING}},
                {"$limit": JUDGED_BOOKS},
            ],
        ),
    ]
    if question.problem is not None:
        solutions: list[Document] = [
            {"$match": {**owner, "problem_hash": question.problem}},
            {"$sort": {"success_count": DESCENDING, "memory_id": ASCENDING}},
            {"$limit": PRIOR_SOLUTIONS},
        ]
        unions.append((SOLUTIONS, solutions))
    first: list[Document] = [{"$match": {**owner, "concept": {"$in": concepts}}}]
    return [
        *_tagged(ROUTING, first),
        *(
            {"$unionWith": {"coll": name, "pipeline": _tagged(name, stages)}}
            for name, stages in unions
        ),
    ]


def _tagged(kind: str, stages: list[Document]) -> list[Document]:
    return [*stages, {"$set": {"kind": kind}}]


class MongoGraphStore(GraphReads, GraphSettlement, FollowUps, GraphReferences):
    """Writes are increments inside transactions: two writers at once lose nothing."""

    def __init__(self, database: MongoDatabase, settings: GraphSettings) -> None:
        GraphReads.__init__(self, database)
        GraphSettlement.__init__(self, database, settings)
        FollowUps.__init__(self, database)
        GraphReferences.__init__(self, database)
