"""The MongoDB implementation of `OutcomeStore`."""

import asyncio
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import pymongo
from pymongo import ASCENDING, DESCENDING, ReturnDocument
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError, PyMongoError
from pymongo.read_concern import ReadConcern

from rayapp.core.deadline import Deadline
from rayapp.core.errors import Overloaded, RayappError, StoreDown
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.retry import RetryPolicy, retry
from rayapp.learning.ports import OutcomeLimits, OutcomesOf
from rayapp.learning.records import AppliedOutcome, Effect, OutcomeEvent
from rayapp.learning.rules import outcomes, verdicts
from rayapp.memory.item import Status
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import DATAGOV_TIERS
from rayapp.storage.mongo import indexes, outcome_convert
from rayapp.storage.mongo.changes import MongoChangeLog
from rayapp.storage.mongo.convert import from_document, to_document
from rayapp.storage.mongo.database import DURABLE, MongoDatabase, aggregated, first, listed
from rayapp.storage.mongo.errors import translate, translated
from rayapp.storage.mongo.predicates import NOT_DELETED, mine, own, text_is

Document = dict[str, Any]

# A transaction that meets another one on the same item fails at once and is tried again. Eight
# processes on one item: 105 outcomes a second with these pauses, 82 with 3 to 100 ms (measured on
# one node, 2 cores). The time limit stays below that of an HTTP request (30 s).
RETRY = RetryPolicy(attempts=10_000, base_s=0.02, max_s=0.1)
RETRY_LIMIT_S = 20.0
RETRY_LABELS = ("TransientTransactionError", "UnknownTransactionCommitResult")
# Outcomes of one user in this process follow one another: they would only make each other try
# again. Users share a turn when their hashes meet.
TURNS = 256
OWING: dict[Effect, indexes.IndexSpec] = {
    "graph": indexes.OWES_GRAPH,
    "promotion": indexes.OWES_PROMOTION,
}
# The first result of a key counts once it can no longer be rolled back.
DECIDED = ReadConcern("majority")
LAST_CHARACTER = "\U0010ffff"


class _Again(Exception):
    """Try again: nothing was written, or the next try finds it. `error` is the last answer."""

    def __init__(self, error: RayappError) -> None:
        super().__init__()
        self.error = error


class MongoOutcomeStore:
    """Implements `OutcomeStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._client = database.client
        self._timeout_s = database.settings.timeout_s
        self._items = database.collection(indexes.ITEMS)
        self._receipts = database.collection(indexes.RECEIPTS)
        self._events = database.collection(indexes.OUTCOMES)
        self._changes = MongoChangeLog(database)
        self._decided = self._events.with_options(read_concern=DECIDED)
        self._turns = tuple(asyncio.Lock() for _ in range(TURNS))

    async def record(
        self, event: OutcomeEvent, limits: OutcomeLimits, *, strict: bool
    ) -> tuple[OutcomeEvent, bool]:
        """The first read stands before the turn: an absent server is not waited for in line."""
        token = uuid.uuid4().hex
        deadline = Deadline(RETRY_LIMIT_S, time.monotonic)
        known = await self._known(event, token)
        if known is not None:
            return known
        async with self._turns[hash(event.user_id) % TURNS]:
            if deadline.expired:
                raise _busy()
            try:
                return await retry(
                    lambda: self._try(event, limits, strict, token),
                    policy=RETRY,
                    deadline=deadline,
                    retryable=(_Again,),
                    sleep=asyncio.sleep,
                    random=random.random,
                )
            except _Again as again:
                raise again.error from None

    async def find(self, scope: ReadScope, idempotency_key: str) -> OutcomeEvent | None:
        where = {**mine(scope), "idempotency_key": idempotency_key}
        return await first(self._decided, where, outcome_convert.event_from_document)

    async def latest(self, scope: ReadScope, prefix: str, limit: int) -> list[OutcomeEvent]:
        if limit < 1:
            return []
        keys = {"$gte": prefix, "$lt": prefix + LAST_CHARACTER}
        with translated():
            cursor = self._decided.find({**mine(scope), "idempotency_key": keys}, limit=limit)
            cursor = cursor.sort([("idempotency_key", DESCENDING)])
            return [outcome_convert.event_from_document(doc) async for doc in cursor]

    async def due(self, effect: Effect, limit: int, *, before: datetime) -> list[OutcomeEvent]:
        where = {f"effects.{effect}": True, "at": {"$lt": before}}
        how = {"sort": [("at", ASCENDING)], "hint": OWING[effect].name}
        return await listed(
            self._events, where, outcome_convert.event_from_document, limit=limit, **how
        )

    async def settle(self, effect: Effect, events: Sequence[OutcomeEvent]) -> int:
        keys: dict[str, list[str]] = {}
        for event in events:
            keys.setdefault(event.user_id, []).append(event.idempotency_key)
        flag = f"effects.{effect}"
        settled = 0
        with translated():
            for user_id, group in keys.items():
                where = {**own(WriteScope(user_id)), "idempotency_key": {"$in": group}, flag: True}
                done = await self._events.update_many(where, {"$set": {flag: False}})
                settled += done.modified_count
        return settled

    async def withdraw(self, scope: WriteScope, of: OutcomesOf, at: datetime) -> list[OutcomeEvent]:
        owner, about = own(scope), _about(of)
        with translated():
            found = self._decided.find({**owner, **about, **NOT_TAKEN}, {"_id": 1})
            ids = [doc["_id"] for doc in await found.sort("at", DESCENDING).to_list()]
        for _id in ids:
            await self._database.transaction(partial(self._take_back, owner, _id, at))
        if of.receipt_id is not None:
            with translated():
                await self._receipts.update_one(
                    {**owner, "receipt_id": of.receipt_id},
                    {"$set": {"scored_at": None, "judged": []}},
                )
        owing = {**owner, **about, "effects.graph": True}
        return await listed(self._decided, owing, outcome_convert.event_from_document)

    async def forget(self, scope: WriteScope, of: OutcomesOf) -> int:
        where = {**own(scope), **_about(of)}
        with translated():
            await self._events.delete_many({**where, "effects.graph": {"$ne": True}})
            return await self._events.count_documents(where)

    async def backlog(self) -> int:
        """Every event is counted once, though it may owe both effects."""
        with translated():
            graph = await self._events.count_documents(
                {"effects.graph": True}, hint=indexes.OWES_GRAPH.name
            )
            other = await self._events.count_documents(
                {"effects.promotion": True, "effects.graph": False},
                hint=indexes.OWES_PROMOTION.name,
            )
        return graph + other

    async def failures(self, scope: ReadScope, point_ids: Sequence[str]) -> list[OutcomeEvent]:
        points = list(dict.fromkeys(point_ids))
        if not points:
            return []
        first, *rest = [_newest_failure(scope, point) for point in points]
        unions = [{"$unionWith": {"coll": indexes.OUTCOMES, "pipeline": stages}} for stages in rest]
        rows = await aggregated(self._events, first + unions)
        docs = {doc["idempotency_key"]: doc for doc in rows}
        events = [outcome_convert.event_from_document(doc) for doc in docs.values()]
        return sorted(events, key=lambda event: (event.at, event.idempotency_key), reverse=True)

    # --- taking back

    async def _take_back(
        self, owner: Document, event_id: Any, at: datetime, session: AsyncClientSession
    ) -> None:
        """One event as a whole. Another one may have withdrawn of it since it was found."""
        row = await self._events.find_one({"_id": event_id, **NOT_TAKEN}, session=session)
        if row is None:
            return
        event = outcome_convert.event_from_document(row)
        takings, whole = verdicts.everything(event)
        changed, owes = verdicts.withdrawing(event, whole, owes=bool(row["effects"]["graph"]))
        values = {**outcome_convert.withdrawal_document(changed), "effects.graph": owes}
        values["taken"] = event.idempotency_key
        values["idempotency_key"] = verdicts.withdrawn_key(event.idempotency_key, uuid.uuid4().hex)
        await self._events.update_one({"_id": event_id}, {"$set": values}, session=session)
        for taking in sorted(takings, key=lambda one: one.applied.point_id):
            await self._one_gives_back(owner, taking, at, session)

    async def _one_gives_back(
        self, owner: Document, taking: verdicts.Taking, at: datetime, session: AsyncClientSession
    ) -> None:
        doc = await self._items.find_one(
            {**owner, "point_id": taking.applied.point_id}, session=session
        )
        if doc is None:
            return
        await self._without(owner, doc, taking, at, session)
        if doc["merged_into"] is not None:
            # Its own row as well: that is what it is again, should it be set free.
            winner = {**owner, "memory_id": doc["merged_into"]}
            into = await self._items.find_one(winner, session=session)
            if into is not None:
                await self._without(owner, into, taking, at, session)

    async def _without(
        self,
        owner: Document,
        doc: Document,
        taking: verdicts.Taking,
        at: datetime,
        session: AsyncClientSession,
    ) -> None:
        if doc["status"] == Status.DELETED.value:
            return
        before = await self._last(owner, doc, session)
        document = to_document(verdicts.given_back(from_document(doc), (taking,), before, at))
        values = {name: {"$literal": document[name]} for name in ("stats", "expires_at")}
        await self._changes.note([(owner["user_id"], doc["point_id"])], session)
        await self._items.update_one(
            {"_id": doc["_id"]},
            [{"$set": {**values, "index": outcome_convert.followed_index()}}],
            session=session,
        )

    async def _last(
        self, owner: Document, doc: Document, session: AsyncClientSession
    ) -> OutcomeEvent | None:
        """The newest outcome that counts for this item, or for what was merged into it."""
        parts = self._items.find(
            {**owner, "merged_into": text_is(doc["memory_id"]), **NOT_DELETED},
            ("point_id", "stored_at"),
            session=session,
        )
        stored = [(one["point_id"], one["stored_at"]) for one in (doc, *await parts.to_list())]
        about = [
            {"applied.point_id": point, "withdrawn.points": {"$ne": point}, "at": {"$gte": since}}
            for point, since in verdicts.counted_since(stored).items()
        ]
        newest = await self._events.find_one(
            {**owner, "$or": about}, sort=[("at", DESCENDING)], session=session
        )
        return outcome_convert.event_from_document(newest) if newest else None

    # --- one try

    async def _try(
        self, event: OutcomeEvent, limits: OutcomeLimits, strict: bool, token: str
    ) -> tuple[OutcomeEvent, bool]:
        """What fails may have been recorded all the same, by this call or by another one."""
        try:
            return await self._transact(event, limits, strict, token), False
        except _Again:
            known = await self._known(event, token)
            if known is None:
                raise
            return known

    async def _known(self, event: OutcomeEvent, token: str) -> tuple[OutcomeEvent, bool] | None:
        """The event recorded with this key, and whether another call than `token` recorded it."""
        key = {**own(WriteScope(event.user_id)), "idempotency_key": event.idempotency_key}
        found = await first(
            self._decided,
            key,
            lambda doc: (outcome_convert.event_from_document(doc), doc["token"] != token),
        )
        if found is not None:
            outcomes.check_same(found[0], event)
        return found

    async def _transact(
        self, event: OutcomeEvent, limits: OutcomeLimits, strict: bool, token: str
    ) -> OutcomeEvent:
        """Read the items, then write all of it in one transaction. A hot item is held only while it
        is written; what changed since the read makes the transaction start over."""
        found = await self._targets(event)
        try:
            with translated(passing=PyMongoError):
                async with self._client.start_session() as session:
                    # The session ends outside this limit, so that a late transaction is still
                    # aborted and does not hold its items until the server gives up on it.
                    with pymongo.timeout(self._timeout_s):
                        await session.start_transaction(ReadConcern("snapshot"), DURABLE)
                        done = await self._write(session, event, limits, found, strict, token)
                        await session.commit_transaction()
                    return done
        except DuplicateKeyError as error:
            raise _Again(translate(error)) from None
        except PyMongoError as error:
            if any(error.has_error_label(label) for label in RETRY_LABELS):
                raise _Again(translate(error)) from None
            raise translate(error) from None

    async def _targets(self, event: OutcomeEvent) -> dict[str, outcomes.Target]:
        names = list(event.memory_ids)
        if not names:
            return {}
        owned = own(WriteScope(event.user_id))
        shared = {"user_id": SYSTEM_USER, "tier": {"$in": [tier.value for tier in DATAGOV_TIERS]}}
        docs = await self._named({"$or": [owned, shared]}, names)
        winners = [doc["merged_into"] for doc in docs if doc["merged_into"] is not None]
        missing = sorted(set(winners) - {doc["memory_id"] for doc in docs})
        if missing:
            docs += await self._named(owned, missing)
        return outcome_convert.targets_of(names, docs)

    async def _named(self, where: Document, names: Sequence[str]) -> list[Document]:
        with translated():
            query = {**where, "memory_id": {"$in": list(names)}}
            return await self._items.find(query, outcome_convert.TARGET_FIELDS).to_list()

    async def _write(
        self,
        session: AsyncClientSession,
        event: OutcomeEvent,
        limits: OutcomeLimits,
        found: Mapping[str, outcomes.Target],
        strict: bool,
        token: str,
    ) -> OutcomeEvent:
        guest = None if event.owner else await self._guest(session, event, limits)
        plan = outcomes.plan_outcome(event, found, guest=guest, strict=strict)
        if plan.closes_turn and event.receipt_id is not None:
            await self._close_turn(session, event, limits, plan)
        moved = ((event.user_id, target.point_id) for target in plan.targets)
        await self._changes.note(moved, session)
        await self._replace(session, event, found, plan)
        applied = await self._apply(session, event, plan)
        done = outcomes.recorded(event, plan, applied)
        await self._events.insert_one(outcome_convert.event_document(done, token), session=session)
        return done

    async def _guest(
        self, session: AsyncClientSession, event: OutcomeEvent, limits: OutcomeLimits
    ) -> outcomes.GuestLimits:
        """Writing to the receipt makes two outcomes about it follow one another."""
        owned = own(WriteScope(event.user_id))
        receipt = await self._receipts.find_one_and_update(
            {**owned, "receipt_id": event.receipt_id, "principal": event.principal},
            {"$inc": {"judgements": 1}},
            projection=("shown.memory_id", "judged"),
            session=session,
        )
        if receipt is None:
            return outcomes.GuestLimits()
        since = {"$gt": event.at - outcomes.GUEST_MEMORY_WINDOW}
        docs = await self._events.find(
            {**owned, "principal": event.principal, "at": since, "applied.0": {"$exists": True}},
            ("at", "applied.point_id"),
            session=session,
        ).to_list()
        past = [(doc["at"], tuple(one["point_id"] for one in doc["applied"])) for doc in docs]
        return outcomes.guest_limits(
            (row["memory_id"] for row in receipt["shown"]),
            receipt.get("judged", ()),
            past,
            event.at,
            limits.guest_per_hour,
        )

    async def _close_turn(
        self,
        session: AsyncClientSession,
        event: OutcomeEvent,
        limits: OutcomeLimits,
        plan: outcomes.OutcomePlan,
    ) -> None:
        change: Document = {
            "$set": {"scored_at": event.at},
            "$max": {"expires_at": limits.keep_receipt_until},
        }
        if not event.owner:
            change["$addToSet"] = {"judged": {"$each": list(plan.points)}}
        where = {**own(WriteScope(event.user_id)), "receipt_id": event.receipt_id}
        if not event.owner:
            where["principal"] = event.principal
        await self._receipts.update_one(where, change, session=session)

    async def _replace(
        self,
        session: AsyncClientSession,
        event: OutcomeEvent,
        found: Mapping[str, outcomes.Target],
        plan: outcomes.OutcomePlan,
    ) -> None:
        """Take back what the verdicts before this one did."""
        if not event.replaces:
            return
        owned = own(WriteScope(event.user_id))
        wanted = {**owned, "idempotency_key": {"$in": list(event.replaces)}}
        docs = await self._events.find(wanted, session=session).to_list()
        owing = {doc["idempotency_key"]: bool(doc["effects"]["graph"]) for doc in docs}
        earlier = {doc["idempotency_key"]: outcome_convert.event_from_document(doc) for doc in docs}
        change = verdicts.replacement(earlier.values(), event, found, plan)
        await self._give_back(session, event, change)
        for key, taken in change.withdrawn.items():
            changed, owes = verdicts.withdrawing(earlier[key], taken, owes=owing[key])
            values = {**outcome_convert.withdrawal_document(changed), "effects.graph": owes}
            where = {**owned, "idempotency_key": key}
            await self._events.update_one(where, {"$set": values}, session=session)

    async def _give_back(
        self, session: AsyncClientSession, event: OutcomeEvent, change: verdicts.Replacement
    ) -> None:
        """The new verdict queues the index."""
        owned = own(WriteScope(event.user_id))
        points = sorted(change.takings)
        where = {**owned, "point_id": {"$in": points}, **NOT_DELETED}
        read = self._items.find(where, session=session)
        items = {doc["point_id"]: from_document(doc) async for doc in read}
        for point_id in sorted(items):
            item = verdicts.taken_back(items[point_id], change.takings[point_id], event.at)
            document = to_document(item)
            values = {name: document[name] for name in ("stats", "expires_at")}
            where = {**owned, "point_id": point_id}
            await self._items.update_one(where, {"$set": values}, session=session)

    async def _apply(
        self, session: AsyncClientSession, event: OutcomeEvent, plan: outcomes.OutcomePlan
    ) -> dict[str, AppliedOutcome]:
        """One atomic update per item, in one order for everybody. The answer is reckoned from the
        item as the update found it, by the rule that the update follows."""
        pipeline = outcome_convert.outcome_pipeline(event.outcome, event.at)
        applied: dict[str, AppliedOutcome] = {}
        for target in sorted(plan.targets, key=lambda target: target.point_id):
            doc = await self._items.find_one_and_update(
                {
                    **own(WriteScope(event.user_id)),
                    "point_id": target.point_id,
                    "merged_into": None,
                    **NOT_DELETED,
                },
                pipeline,
                return_document=ReturnDocument.BEFORE,
                session=session,
            )
            if doc is None:
                raise _Again(_moving())
            applied[target.point_id] = outcomes.applied_to(from_document(doc), event)
        return applied


# A withdrawn event has another key.
NOT_TAKEN: Document = {"taken": None}


def _about(of: OutcomesOf) -> Document:
    within: Document = {"conversation_id": text_is(of.conversation_id)}
    if of.whole:
        return within
    keys: list[Document] = [{"$in": list(of.keys)}]
    keys += [{"$gte": one, "$lt": one + LAST_CHARACTER} for one in of.prefixes]
    either: list[Document] = [{name: key} for name in ("idempotency_key", "taken") for key in keys]
    if of.receipt_id is not None:
        either.append({"receipt_id": of.receipt_id})
    return {**within, "$or": either}


def _newest_failure(scope: ReadScope, point_id: str) -> list[Document]:
    where = {**mine(scope), "applied.point_id": point_id, "outcome": "failed"}
    where["withdrawn.points"] = {"$ne": point_id}
    return [{"$match": where}, {"$sort": {"at": DESCENDING}}, {"$limit": 1}]


def _moving() -> StoreDown:
    return StoreDown(
        "The memories kept changing while the outcome was recorded: send it again.",
        retry_after_s=0.1,
    )


def _busy() -> Overloaded:
    return Overloaded("Too many outcomes of this user at once: send it again.", retry_after_s=1.0)
