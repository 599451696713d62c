"""Conversations: one session row each, and the turns that wait to be learned from."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, TypeVar

from pymongo import ASCENDING, DESCENDING, ReturnDocument
from pymongo.errors import DuplicateKeyError

from rayapp.assistant import ports
from rayapp.assistant.extraction.rules.facts import LearnedExchange, in_rounds
from rayapp.core.errors import Forbidden, InvalidInput, Overloaded
from rayapp.learning.ports import ScoreGiven
from rayapp.memory.item import point_id_of
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.storage.mongo import indexes
from rayapp.storage.mongo.convert import readable
from rayapp.storage.mongo.database import MongoDatabase, changed, listed, updated, upserted
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.predicates import due, in_seconds, later, mine, own, text_is, younger
from rayapp.storage.mongo.rows import from_row, may_lack, reader, to_row, utc

T = TypeVar("T")

# The queue of stored exchanges.
#
# A row is due from `due_at`, and claiming it moves that time to the end of the claim, so one index
# finds new, backed-off and abandoned rows alike. Each user's rows are taken in their order, and
# none while an earlier one waits or is worked on. Times of the queue are the server's.

Document = dict[str, Any]
WAITING: Document = {"state": "waiting"}
# When a turn was said that took the place of another; the row's `at` may be later.
SAID_AT = "said_at"
NOT_AGED = younger("at", ports.EXCHANGE_TTL_S)
IS_WAITING: Document = {"$eq": ["$state", "waiting"]}
# What is left of a turn whose memory is gone.
ERASED: Document = {
    "user_text": "",
    "answer": "",
    "injected": [],
    "plan": {"$literal": {}},
    "claim": None,
    "state": {"$cond": [IS_WAITING, "skipped", "$state"]},
    "notes": {"$cond": [IS_WAITING, {"$literal": {"all": "gone"}}, "$notes"]},
}
IS_DUE = due("due_at")
# In which one user's turns are learned, behind what the index sorts before it.
IN_ORDER = {"state": ASCENDING, "user_id": ASCENDING, "at": ASCENDING, "message_id": ASCENDING}


class MongoExchangeQueue:
    """Implements `assistant.ports.ExchangeQueue`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(indexes.EXCHANGES)
        self._last_user = ""

    async def offer(self, scope: WriteScope, exchange: LearnedExchange) -> bool:
        new = _waiting(scope, exchange)
        # A pipeline, so that `due_at` is the server's time; what is there already stays.
        keep: Document = {"$cond": [{"$eq": [{"$type": "$state"}, "missing"]}, new, "$$ROOT"]}
        change = [{"$replaceWith": {"$mergeObjects": ["$$ROOT", keep]}}]
        with translated():
            try:
                done = await self._rows.update_one(_one(exchange), change, upsert=True)
            except DuplicateKeyError:
                return False  # another one queued it at the same moment
        return done.upserted_id is not None

    async def replace(self, scope: WriteScope, exchange: LearnedExchange) -> None:
        new = _waiting(scope, exchange)
        # Rows expire by `at`, and the turn may be weeks old.
        new[SAID_AT] = new["at"]
        new["at"] = {"$max": [new["at"], in_seconds(ports.REPLACED_TTL_S - ports.EXCHANGE_TTL_S)]}
        change = [{"$replaceWith": {"$mergeObjects": ["$$ROOT", new]}}]
        with translated():
            await self._rows.update_one(_one(exchange), change, upsert=True)

    async def claim(
        self, *, token: str, limit: int, claim_s: float, per_user: int | None = None
    ) -> list[ports.ClaimedExchange]:
        with translated():
            ids = await self._chosen(limit, limit if per_user is None else per_user)
            if not ids:
                return []
            # Only what is still due: another one may have taken some in between.
            await self._rows.update_many(
                {"_id": {"$in": ids}, **WAITING, **IS_DUE},
                [{"$set": {"claim": {"$literal": token}, "due_at": in_seconds(claim_s)}}],
            )
            docs = await self._rows.find({"_id": {"$in": ids}, "claim": token}).to_list()
        by_id = {doc["_id"]: doc for doc in docs}
        return readable([by_id[_id] for _id in ids if _id in by_id], _claimed)

    async def _chosen(self, limit: int, per_user: int) -> list[Any]:
        """Ids of due rows: the first ones of each of the next users, the users in turn."""
        most = min(limit, per_user)
        if most < 1 or not await self._any_due():
            return []
        users = await self._next_users(limit)
        queues = [await self._first_of(user, most) for user in users]
        self._last_user = users[-1] if users else self._last_user
        return in_rounds(queues)[:limit]

    async def _any_due(self) -> bool:
        """One key is read, however many rows wait for their time."""
        found = self._rows.find({**WAITING, **IS_DUE}, {"_id": 1}, limit=1)
        return bool(await found.hint(indexes.EXCHANGES_DUE.name).to_list())

    async def _next_users(self, limit: int) -> list[str]:
        """Users whose first row is due, in the order of their ids, from behind the last one served.
        The server reads the first key of each user who waits, and none of a backlog behind it."""
        found = await self._rows.aggregate(self._heads(limit), hint=indexes.EXCHANGES_IN_ORDER.name)
        return [doc["_id"] for doc in await found.to_list()]

    def _heads(self, limit: int) -> list[Document]:
        heads: Document = {"_id": "$user_id"}
        heads |= {name: {"$first": f"${name}"} for name in ("at", "due_at")}
        # Behind an expired row, which the server removes within a minute, another one may be due.
        ready = {"$or": [IS_DUE, {"$nor": [NOT_AGED]}]}
        behind = {"$lte": ["$_id", {"$literal": self._last_user}]}
        return [
            {"$match": WAITING},
            {"$sort": IN_ORDER},
            {"$group": heads},
            {"$match": ready},
            {"$set": {"behind": behind}},
            {"$sort": {"behind": 1, "_id": 1}},
            {"$limit": limit},
        ]

    async def _first_of(self, user_id: str, most: int) -> list[Any]:
        """A user's oldest rows up to the first that is not due; none while one is worked on."""
        where = {**WAITING, "user_id": user_id}
        held = {**later("due_at"), "claim": {"$ne": None}}
        busy = self._rows.find({**where, **held}, {"_id": 1}, limit=1)
        if await busy.hint(indexes.EXCHANGES_BY_USER.name).to_list():
            return []
        fields = {"due": IS_DUE["$expr"]}
        first = self._rows.find({**where, **NOT_AGED}, fields, sort=IN_ORDER, limit=most)
        docs = await first.hint(indexes.EXCHANGES_IN_ORDER.name).to_list()
        return [doc["_id"] for doc in takewhile(lambda doc: doc["due"], docs)]

    async def keep(self, exchange: LearnedExchange, token: str, plan: Mapping[str, Any]) -> bool:
        return await self._change(exchange, token, {"plan": {"$literal": dict(plan)}})

    async def finish(
        self, exchange: LearnedExchange, token: str, end: ports.WorkEnd, notes: Mapping[str, str]
    ) -> bool:
        change: Document = {"state": end, "claim": None, "notes": {"$literal": dict(notes)}}
        change |= {"plan": {"$literal": {}}, "finished_at": "$$NOW"}
        return await self._change(exchange, token, change)

    async def again(
        self, exchange: LearnedExchange, token: str, *, delay_s: float, error: str, blamed: bool
    ) -> bool:
        change: Document = {
            "claim": None,
            "error": {"$literal": error},
            "attempts": {"$add": ["$attempts", int(blamed)]},
            "due_at": in_seconds(delay_s),
        }
        return await self._change(exchange, token, change)

    async def earlier(
        self, scope: ReadScope, exchange: LearnedExchange, limit: int
    ) -> list[LearnedExchange]:
        at = utc(exchange.at)  # equal times: by message id
        before = [{"at": {"$lt": at}}, {"at": at, "message_id": {"$lt": exchange.message_id}}]
        where = {**_conversation(scope, exchange), "$or": before}
        order = [("at", DESCENDING), ("message_id", DESCENDING)]
        return await listed(self._rows, where, _exchange, sort=order, limit=limit)

    async def erase(self, exchange: LearnedExchange) -> None:
        with translated():
            await self._rows.update_one(_one(exchange), [{"$set": ERASED}])

    async def purge(self, point_ids: Sequence[str]) -> None:
        if not point_ids:
            return
        # The type is what lets the server use the partial index.
        where = {"point_id": {"$in": list(point_ids), "$type": "string"}}
        with translated():
            await self._rows.update_many(where, [{"$set": ERASED}])

    async def skip_waiting(self, why: str, limit: int) -> int:
        if limit < 1:
            return 0
        with translated():
            found = await self._rows.find(WAITING, {"_id": 1}, limit=limit).to_list()
            change: Document = {"state": "skipped", "claim": None, "notes": {"all": why}}
            done = await self._rows.update_many(
                {"_id": {"$in": [doc["_id"] for doc in found]}, **WAITING}, {"$set": change}
            )
        return done.modified_count

    async def waiting(self) -> int:
        with translated():
            return await self._rows.count_documents(WAITING, hint=indexes.EXCHANGES_BY_USER.name)

    async def _change(self, exchange: LearnedExchange, token: str, change: Document) -> bool:
        where = {**_one(exchange), **WAITING, "claim": token}
        return await updated(self._rows, where, [{"$set": change}])


def _waiting(scope: WriteScope, exchange: LearnedExchange) -> Document:
    """The row of a turn that waits, as expressions."""
    if own(scope)["user_id"] != exchange.user_id:
        raise Forbidden("An exchange is queued by its own user: use their scope.")
    fields = to_row(exchange) | {"point_id": _point_of(exchange)}
    literal = {name: {"$literal": value} for name, value in fields.items()}
    work = {"state": "waiting", "attempts": 0, "claim": None, "due_at": "$$NOW"}
    return {**literal, **work, "plan": {"$literal": {}}, "notes": {"$literal": {}}}


def _point_of(exchange: LearnedExchange) -> str | None:
    """Names its memory among those of all users: what a delete is heard of by."""
    if exchange.memory_id is None:
        return None
    return point_id_of(exchange.user_id, exchange.memory_id)


def _one(exchange: LearnedExchange) -> Document:
    return {
        **own(WriteScope(exchange.user_id)),
        "conversation_id": exchange.conversation_id,
        "message_id": exchange.message_id,
    }


def _conversation(scope: ReadScope, exchange: LearnedExchange) -> Document:
    return {**mine(scope), "conversation_id": exchange.conversation_id, **NOT_AGED}


def _exchange(doc: Document) -> LearnedExchange:
    return from_row(LearnedExchange, {**doc, "at": doc.get(SAID_AT, doc["at"])})


def _claimed(doc: Document) -> ports.ClaimedExchange:
    return ports.ClaimedExchange(
        exchange=_exchange(doc), attempts=doc["attempts"], plan=doc["plan"]
    )


# One whose words are kept has no end.
NOT_EXPIRED: Document = {"$or": [{"expires_at": None}, later("expires_at")]}
NEWEST = [("updated_at", DESCENDING), ("conversation_id", DESCENDING)]
OWES: Document = {"$type": "string"}
# Of `$$all` contexts: all, or the newer half. A row that only grows is logged by what came to it.
COUNT = {"$size": "$$all"}
CHARS = {"$sum": {"$map": {"input": "$$all", "in": {"$strLenBytes": "$$this"}}}}
NEWER = {"$subtract": [{"$floor": {"$divide": [COUNT, 2]}}, COUNT]}
NEWER_HALF: Document = {
    "$cond": [{"$gt": [CHARS, ports.MAX_INJECTED_CHARS]}, {"$slice": ["$$all", NEWER]}, "$$all"]
}
# Each write of a session sets its own fields.
may_lack(ports.Session)
may_lack(ports.TurnRecord)


class MongoSessionStore:
    """Implements `assistant.ports.SessionStore`. `keep`: lifetime of one without a kept turn."""

    def __init__(self, database: MongoDatabase, keep: timedelta) -> None:
        self._rows = database.collection(indexes.SESSIONS)
        self._keep = keep

    async def get(self, scope: ReadScope, conversation_id: str) -> ports.Session | None:
        return await self._newest(scope, {"conversation_id": conversation_id})

    async def by_message(self, scope: ReadScope, message_id: str) -> ports.Session | None:
        return await self._newest(scope, {"turns.message_id": message_id})

    async def log_injected(self, scope: WriteScope, context: ports.InjectedContext) -> None:
        new = [context.fingerprints] if context.fingerprints else []
        # A turn asks for its context again after each round of tools.
        others = {
            "$filter": {
                "input": {"$ifNull": ["$injected", []]},
                "cond": {"$ne": ["$$this", {"$literal": context.fingerprints}]},
            }
        }
        both = {"$concatArrays": [others, {"$literal": new}]}
        change: Document = {
            "injected": {"$let": {"vars": {"all": both}, "in": NEWER_HALF}},
            "receipt_id": {"$literal": context.receipt_id},
            **self._times(context.at),
        }
        await self._change(scope, context.conversation_id, [{"$set": change}])

    async def add_turn(
        self, scope: WriteScope, conversation_id: str, turn: ports.TurnRecord
    ) -> bool:
        where = {**own(scope), "conversation_id": conversation_id}
        kept, more = {"$ifNull": ["$turns", []]}, [{"$literal": to_row(turn)}]
        change: Document = {
            "turns": {"$slice": [{"$concatArrays": [kept, more]}, -ports.MAX_TURNS]},
            "exchanges": {"$add": [{"$ifNull": ["$exchanges", 0]}, 1]},
            **self._times(turn.at),
        }
        if turn.required:
            change["owed_message"] = {"$literal": turn.message_id}
            change["owed_receipt"] = {"$literal": turn.receipt_id}
        update = [{"$set": change}]
        unknown = {**where, "turns.message_id": {"$ne": turn.message_id}}
        known = {**where, "turns.message_id": turn.message_id}

        async def add() -> bool:
            try:
                await self._rows.update_one(unknown, update, upsert=True)
            except DuplicateKeyError:
                if await self._rows.find_one(known, {"_id": 1}) is None:
                    raise
                return False
            return True

        return await _upserted(add)

    async def replace_turn(
        self, scope: WriteScope, conversation_id: str, turn: ports.TurnRecord
    ) -> None:
        message = {"$literal": turn.message_id}
        change = {"turns": _with_turn(message, {"$literal": to_row(turn)}), **_paid(message)}
        if turn.required:
            change |= {"owed_message": message, "owed_receipt": {"$literal": turn.receipt_id}}
        await self._change(scope, conversation_id, [{"$set": change}])

    async def scored(self, scope: WriteScope, given: ScoreGiven) -> bool:
        where, target = target_of(scope, given)
        score = {"score": given.score} if given.score is not None else {}
        scored = {"$mergeObjects": ["$$this", {"scored_at": utc(given.at), **score}]}
        turns = {"turns": _with_turn(target, scored)}
        change: Document = {**turns, **_paid(target), **self._times(given.at)}
        found = await changed(
            self._rows, where, [{"$set": change}], bool, projection={"_id": 1}, sort=NEWEST
        )
        return found is not None

    async def refine(
        self, scope: WriteScope, conversation_id: str, turn_id: str, at: datetime
    ) -> int:
        same = {"$eq": ["$turn_id", {"$literal": turn_id}]}
        more = {"$add": [{"$ifNull": ["$refinements", 0]}, 1]}
        change: Document = {
            "refinements": {"$cond": [same, more, 1]},
            "turn_id": {"$literal": turn_id},
            **self._times(at),
        }
        doc = await self._change(scope, conversation_id, [{"$set": change}])
        return int(doc["refinements"])

    # --- inside

    async def _newest(self, scope: ReadScope, which: Document) -> ports.Session | None:
        """None too when it cannot be read."""
        where = {**mine(scope), **which, **NOT_EXPIRED}
        found = await listed(self._rows, where, reader(ports.Session), sort=NEWEST, limit=1)
        return found[0] if found else None

    def _times(self, at: datetime) -> Document:
        """For a pipeline: a conversation whose words are kept never ends by itself."""
        ends = {"$cond": [{"$gt": ["$last_at", None]}, None, utc(at + self._keep)]}
        return {"updated_at": utc(at), "expires_at": ends}

    async def _change(
        self, scope: WriteScope, conversation_id: str, update: list[Document]
    ) -> Document:
        where = {**own(scope), "conversation_id": conversation_id}
        how: dict[str, Any] = {"upsert": True, "return_document": ReturnDocument.AFTER}
        doc = await _upserted(
            lambda: self._rows.find_one_and_update(where, update, {"refinements": 1}, **how)
        )
        return doc or {}


def target_of(scope: WriteScope, given: ScoreGiven) -> tuple[Document, Any]:
    """The row that a score is about, and its turn as an expression."""
    where = own(scope)
    if given.conversation_id is not None:
        where["conversation_id"] = given.conversation_id
    if given.message_id is not None:
        return {**where, "turns.message_id": given.message_id}, {"$literal": given.message_id}
    if given.conversation_id is None:
        if given.receipt_id is None:
            raise InvalidInput("A score names a conversation, a message or a receipt.")
        where["owed_receipt"] = text_is(given.receipt_id)
    return {**where, "owed_message": OWES}, "$owed_message"


def _with_turn(message: Any, turn: Document) -> Document:
    """The turns with `turn` in the place of the one of this message."""
    is_it = {"$eq": ["$$this.message_id", message]}
    in_place = {"$cond": [is_it, turn, "$$this"]}
    return {"$map": {"input": {"$ifNull": ["$turns", []]}, "in": in_place}}


def _paid(message: Any) -> Document:
    """What is owed for this message is owed no more."""
    paid = {"$eq": ["$owed_message", message]}
    names = ("owed_message", "owed_receipt")
    return {name: {"$cond": [paid, None, f"${name}"]} for name in names}


async def _upserted(write: Callable[[], Coroutine[Any, Any, T]]) -> T:
    try:
        with translated(passing=DuplicateKeyError):
            return await upserted(write)
    except DuplicateKeyError:
        raise Overloaded(
            "Too many writes of this conversation at once: retry.", retry_after_s=1.0
        ) from None
