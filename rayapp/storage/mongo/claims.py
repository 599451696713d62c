"""The MongoDB implementation of `ClaimQueue`: a field `work` beside what the rows hold.

A row is due from `work.due_at`, and claiming it moves that time to the end of the claim, so one
index tells what may be taken. All comparisons use the server's time.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from pymongo import ASCENDING, UpdateOne

from rayapp.core.claims import Claim, Queued, WorkState
from rayapp.storage.mongo.convert import readable
from rayapp.storage.mongo.database import Collection, updated, upserted
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import CLAIM_DUE
from rayapp.storage.mongo.predicates import due, in_seconds
from rayapp.storage.mongo.rows import Document, reader, to_row

Row = TypeVar("Row")
# Due by any clock.
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
WAITING: Document = {"work.state": WorkState.WAITING.value}
IN_ORDER = [("work.priority", ASCENDING), ("work.due_at", ASCENDING)]


@dataclass(frozen=True)
class MongoClaimQueue(Generic[Row]):
    """`key`: the fields of `kind` that name a row, the user's first."""

    rows: Collection
    kind: type[Row]
    key: tuple[str, ...]

    async def offer(self, row: Row, *, priority: int = 0, delay_s: float = 0.0) -> None:
        change = _offered(row, priority, delay_s)
        with translated():
            await upserted(lambda: self.rows.update_one(self._one(row), change, upsert=True))

    async def offer_all(self, rows: Sequence[Row], *, priority: int = 0) -> None:
        writes = [
            UpdateOne(self._one(row), _offered(row, priority, 0.0), upsert=True) for row in rows
        ]
        if writes:
            with translated():
                await upserted(lambda: self.rows.bulk_write(writes, ordered=False))

    def new_document(self, row: Row) -> Document:
        """A row that was never queued, to be inserted: due at once."""
        work = {"state": WorkState.WAITING.value, "owner": None, "tries": 0, "error": None}
        return to_row(row) | {"work": {**work, "priority": 0, "fence": 1, "due_at": LONG_AGO}}

    async def offer_again(self, where: Mapping[str, Any]) -> int:
        """Put rows back into the queue as they are, due at once; how many."""
        fence = {"$add": [{"$ifNull": ["$work.fence", 0]}, 1]}
        work = _work(fence=fence, due_at=in_seconds(0.0))
        with translated():
            return (await self.rows.update_many(where, [{"$set": work}])).matched_count

    async def claim(self, owner: str, limit: int, claim_s: float) -> list[Claim[Row]]:
        if limit < 1:
            return []
        ready = {**WAITING, **due("work.due_at")}
        # Told apart from another claim of the same process at the same time.
        token = f"{owner} {uuid.uuid4().hex}"
        taken: Document = {
            "work.owner": {"$literal": token},
            "work.fence": {"$add": ["$work.fence", 1]},
            "work.due_at": in_seconds(claim_s),
        }
        with translated():
            cursor = self.rows.find(
                ready, {"_id": 1}, sort=IN_ORDER, limit=limit, hint=CLAIM_DUE.name
            )
            ids = [doc["_id"] async for doc in cursor]
            if not ids:
                return []
            await self.rows.update_many({"_id": {"$in": ids}, **ready}, [{"$set": taken}])
            held = {"_id": {"$in": ids}, **WAITING, "work.owner": token}
            docs = await self.rows.find(held).to_list()
        by_id = {doc["_id"]: doc for doc in docs}
        return readable([by_id[_id] for _id in ids if _id in by_id], self._claimed)

    async def beat(self, claim: Claim[Row], claim_s: float) -> bool:
        return await self._change(claim, {"work.due_at": in_seconds(claim_s)})

    async def keep(self, claim: Claim[Row], row: Row) -> bool:
        return await self._change(claim, _literal(row))

    async def finish(self, claim: Claim[Row], row: Row | None) -> bool:
        if row is None:
            with translated():
                return (await self.rows.delete_one(self._held(claim))).deleted_count > 0
        done = {"work.state": WorkState.DONE.value, "work.owner": None, "work.due_at": None}
        return await self._change(claim, _literal(row) | done | {"work.error": None})

    async def retry(self, claim: Claim[Row], *, delay_s: float, error: str, counts: bool) -> bool:
        return await self._change(
            claim,
            {
                "work.owner": None,
                "work.due_at": in_seconds(delay_s),
                "work.tries": claim.tries + counts,
                "work.error": {"$literal": error},
            },
        )

    async def bury(self, claim: Claim[Row], error: str) -> bool:
        change: Document = {
            "work.state": WorkState.DEAD.value,
            "work.owner": None,
            "work.due_at": None,
            "work.tries": claim.tries + 1,
            "work.error": {"$literal": error},
        }
        return await self._change(claim, change)

    async def count(self, state: WorkState) -> int:
        with translated():
            return await self.rows.count_documents({"work.state": state.value})

    def queued(self, doc: Document) -> Queued[Row]:
        """A row as it was read."""
        work = doc["work"]
        row: Row = self._read(doc)
        return Queued(row, WorkState(work["state"]), int(work["tries"]), work["error"])

    # --- inside

    @property
    def _read(self) -> Callable[[Document], Row]:
        return reader(self.kind)

    def _claimed(self, doc: Document) -> Claim[Row]:
        return Claim(self._read(doc), int(doc["work"]["fence"]), int(doc["work"]["tries"]))

    def _one(self, row: Row) -> Document:
        return {name: getattr(row, name) for name in self.key}

    def _held(self, claim: Claim[Row]) -> Document:
        return {**self._one(claim.row), **WAITING, "work.fence": claim.fence}

    async def _change(self, claim: Claim[Row], change: Mapping[str, Any]) -> bool:
        return await updated(self.rows, self._held(claim), [{"$set": dict(change)}])


def _offered(row: object, priority: int, delay_s: float) -> list[Document]:
    """What an update does to put a row into the queue."""
    fence = {"$add": [{"$ifNull": ["$work.fence", 0]}, 1]}
    work = _work(priority={"$literal": priority}, fence=fence, due_at=in_seconds(delay_s))
    return [{"$set": _literal(row)}, {"$set": work}]


def _literal(row: object) -> Document:
    """What a user wrote is no expression."""
    return {name: {"$literal": value} for name, value in to_row(row).items()}


def _work(**changes: Any) -> Document:
    fields: Document = {"state": WorkState.WAITING.value, "owner": None, "tries": 0, "error": None}
    return {f"work.{name}": value for name, value in (fields | changes).items()}
