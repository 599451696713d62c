"""What the graphs remember of a memory goes to the one it was merged into, in that transaction."""

from __future__ import annotations

from typing import Any

from pymongo import DeleteOne, UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.graphs.rules.belonging import CLOCK_SKEW, inherited_at
from rayapp.memory.item import MemoryItem
from rayapp.memory.scope import WriteScope
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import ACTIONS, ROUTING, SOLUTIONS
from rayapp.storage.mongo.predicates import own

Document = dict[str, Any]


class GraphMerges:
    def __init__(self, database: MongoDatabase) -> None:
        self._of = database.collection

    async def hand_over(
        self, loser: MemoryItem, winner: MemoryItem, session: AsyncClientSession
    ) -> None:
        """Examples and known solutions of `loser` name `winner`.

        What a deleted memory with the loser's id left behind stays where it is.
        """
        owner = own(WriteScope(loser.user_id))
        since = {"$gte": loser.stored_at - CLOCK_SKEW}
        await self._solutions(
            {**owner, "point_id": loser.point_id, "last_used_at": since}, winner, session
        )
        named = {
            "point_id": winner.point_id,
            "memory_id": winner.memory_id,
            "tier": winner.tier.value,
        }
        update: Document = {
            "$set": {f"examples.$[one].{field}": value for field, value in named.items()},
            # The same as `inherited_at`.
            "$max": {"examples.$[one].at": winner.stored_at},
        }
        for name in (ROUTING, ACTIONS):
            await self._of(name).update_many(
                {**owner, "examples.point_id": loser.point_id},
                update,
                array_filters=[{"one.point_id": loser.point_id, "one.at": since}],
                session=session,
            )

    async def _solutions(
        self, of_loser: Document, winner: MemoryItem, session: AsyncClientSession
    ) -> None:
        """A problem that both solved has one row afterwards, with the successes of both."""
        writes: list[UpdateOne | DeleteOne] = []
        async for row in self._of(SOLUTIONS).find(of_loser, session=session):
            key = {"user_id": row["user_id"], "problem_hash": row["problem_hash"]}
            writes += [
                DeleteOne({"user_id": row["user_id"], "_id": row["_id"]}),
                UpdateOne(
                    {**key, "memory_id": winner.memory_id},
                    {
                        "$inc": {"success_count": row["success_count"]},
                        "$setOnInsert": {"point_id": winner.point_id},
                        "$max": {"last_used_at": inherited_at(winner, row["last_used_at"])},
                    },
                    upsert=True,
                ),
            ]
        if writes:
            await self._of(SOLUTIONS).bulk_write(writes, session=session)
