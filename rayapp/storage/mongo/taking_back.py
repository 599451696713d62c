"""What was derived from deleted memories is taken back: said in the transaction that deletes."""

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.core.claims import WorkState
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import UNDERSTANDINGS
from rayapp.understanding.records import TAKE_BACK_FIRST

# The row is due again, and whoever works on it has lost it.
TAKEN_BACK = {
    "gone": True,
    "work.state": WorkState.WAITING.value,
    "work.priority": TAKE_BACK_FIRST,
    "work.owner": None,
    "work.fence": {"$add": ["$work.fence", 1]},
    "work.tries": 0,
    "work.error": None,
    "work.due_at": "$$NOW",
}


async def take_back_later(
    database: MongoDatabase, docs: Sequence[Mapping[str, Any]], session: AsyncClientSession
) -> None:
    """Of memories of one user, as their rows were. What was never looked at has no row."""
    if not docs:
        return
    sources = {"$in": [doc["memory_id"] for doc in docs]}
    await database.collection(UNDERSTANDINGS).update_many(
        {"user_id": docs[0]["user_id"], "memory_id": sources},
        [{"$set": TAKEN_BACK}],
        session=session,
    )
