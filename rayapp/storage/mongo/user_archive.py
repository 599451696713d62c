"""All that the truth keeps of a user, by the one table of collections."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pymongo
from pymongo import DESCENDING
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from rayapp.core.errors import Conflict, NotFound
from rayapp.core.ids import owners_of
from rayapp.memory.item import ChangeType, IndexOp, IndexState, MemoryItem, Status
from rayapp.memory.rules.creation import is_period
from rayapp.memory.rules.lifecycle import ANOTHER_PERIOD, as_periods
from rayapp.memory.rules.revision import replaced_state, requeued, revived, touch
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import FOLLOWED_TIERS
from rayapp.portability.ports import ALL_ROWS, ImportState, PutCounts, Putting, RowsSize, RowsWanted
from rayapp.portability.rules.archive import RENEWED, Row
from rayapp.portability.rules.collections import (
    EXPORTED,
    ITEMS,
    OUTCOMES,
    PARTS,
    Collection,
    Erasing,
    names_of,
    of_user,
)
from rayapp.portability.rules.kinds import Kind, Part
from rayapp.storage.mongo import convert, indexes
from rayapp.storage.mongo.changes import MongoChangeLog
from rayapp.storage.mongo.database import LONG_TIMEOUT_S, MongoDatabase, aggregated, listed
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.memory_store import ItemWrites, Known, as_open, insert_new, same_texts
from rayapp.storage.mongo.predicates import NOT_DELETED, mine, naming, own
from rayapp.storage.mongo.raw_rows import raw_pages
from rayapp.storage.mongo.rows import reader, to_row
from rayapp.storage.mongo.user_rows import delete_items

Document = dict[str, Any]
# What grows in a conversation that goes on.
GROWN = ("last_at", "exchanges")
ALL_OF_USER = of_user(*Erasing)
FOLLOWED = frozenset(tier.value for tier in FOLLOWED_TIERS)


class MongoRowReader:
    """Implements `portability.ports.RowReader`."""

    def __init__(
        self, database: MongoDatabase, scope: ReadScope, session: AsyncClientSession
    ) -> None:
        self._database, self._scope, self._session = database, scope, session

    async def pages(
        self, collection: Collection, wanted: RowsWanted
    ) -> AsyncIterator[Iterable[Row]]:
        where: Document = mine(self._scope)
        if collection.name == ITEMS:
            where |= _wanted(wanted)
        left_out = dict.fromkeys((*RENEWED, *collection.renewed), 0)
        rows = self._database.collection(collection.name)
        with translated():
            async for page, _ in raw_pages(rows, where, left_out, self._session):
                yield page


def _wanted(wanted: RowsWanted) -> Document:
    where: Document = dict(NOT_DELETED) if wanted.archived else {"status": Status.ACTIVE.value}
    if wanted.tiers is not None:
        where["tier"] = {"$in": [tier.value for tier in wanted.tiers]}
    return where


class MongoUserArchive:
    """Implements `portability.ports.UserArchive`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._items = database.collection(ITEMS)
        self._imports = database.collection(indexes.IMPORTS)
        self._changes = MongoChangeLog(database)
        self._writes = ItemWrites(database)

    @asynccontextmanager
    async def snapshot(self, scope: ReadScope) -> AsyncIterator[MongoRowReader]:
        async with self._database.client.start_session(snapshot=True) as session:
            yield MongoRowReader(self._database, scope, session)

    async def sizes(self, scope: ReadScope, wanted: RowsWanted) -> dict[str, RowsSize]:
        await self._database.ping()  # long limits are for work, not for a server that is away
        found = {}
        for one in EXPORTED:
            where = mine(scope) | (_wanted(wanted) if one.name == ITEMS else {})
            total = {"rows": {"$sum": 1}, "bytes": {"$sum": {"$bsonSize": "$$ROOT"}}}
            steps = [{"$match": where}, {"$group": {"_id": None, **total}}]
            with pymongo.timeout(LONG_TIMEOUT_S):
                rows = await aggregated(self._database.collection(one.name), steps)
            sums = rows[0] if rows else {"rows": 0, "bytes": 0}
            found[one.name] = RowsSize(sums["rows"], sums["bytes"])
        return found

    # --- writing

    async def put(
        self, scope: WriteScope, collection: Collection, rows: Sequence[Row], how: Putting
    ) -> PutCounts:
        if not rows:
            return PutCounts()
        owner = own(scope)
        if collection.name == ITEMS:
            return await self._put_items(owner, rows, how)
        docs = [{**row, **owner, **_anew(collection, row, how)} for row in rows]
        if how.dry_run:
            present = await self._present(collection, owner, docs)
            return PutCounts(added=len(docs) - present, present=present)
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            if collection.kind is Kind.GRAPHS:
                await self._changes.note_graphs(owner["user_id"])
            refused = await insert_new(self._database.collection(collection.name), docs)
            if collection.name == indexes.SESSIONS:
                await self._grow([docs[at] for at in sorted(refused)])
        return PutCounts(added=len(docs) - len(refused), present=len(refused))

    async def _grow(self, docs: Sequence[Document]) -> None:
        """Conversations that are there, but went on in the archive, or of which no turn was kept
        here: without one they would be shown to nobody, and end by themselves."""
        sessions = self._database.collection(indexes.SESSIONS)
        for doc in docs:
            known = {name: doc[name] for name in ("user_id", "conversation_id")}
            newer = {name: doc[name] for name in GROWN if doc.get(name) is not None}
            if "last_at" in newer:
                kept = {**known, "last_at": {"$lt": newer["last_at"]}}
                await sessions.update_one(kept, {"$max": newer})
                grown = {name: {"$max": [f"${name}", one]} for name, one in newer.items()}
                whole = [{"$literal": doc}, "$$ROOT", {**grown, "expires_at": None}]
                begun = [{"$replaceWith": {"$mergeObjects": whole}}]
                await sessions.update_one({**known, "last_at": None}, begun)

    async def _present(
        self, collection: Collection, owner: Document, docs: Sequence[Document]
    ) -> int:
        """How many of the rows are there; found by the first field of their key."""
        names = collection.key
        where = dict(owner)
        if names:
            where[names[0]] = {"$in": list({doc[names[0]] for doc in docs})}
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            found = self._database.collection(collection.name).find(
                where, {"_id": 0, **dict.fromkeys(names, 1)}
            )
            known = {tuple(doc.get(name) for name in names) async for doc in found}
        return sum(tuple(doc[name] for name in names) in known for doc in docs)

    async def _put_items(self, owner: Document, rows: Sequence[Row], how: Putting) -> PutCounts:
        docs = [_item_document(owner, row, how) for row in rows]
        if how.dry_run:
            return await self._clashing(docs, how)
        # One of several periods is put beside the others, where it would clash with none, too.
        plain = [doc for doc in docs if not is_period(doc["dedup_scope"])]
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            async with self._changes.around((doc["user_id"], doc["point_id"]) for doc in plain):
                refused = await insert_new(self._items, plain)
        counts = PutCounts(added=len(plain) - len(refused))
        rest = [doc for doc in docs if is_period(doc["dedup_scope"])]
        rest += [plain[at] for at in sorted(refused)]
        return counts + await self._clashing(rest, how)

    async def _clashing(self, docs: Sequence[Document], how: Putting) -> PutCounts:
        """Of memories of which some, or all, cannot be inserted."""
        if not docs:
            return PutCounts()
        items = [convert.from_document(doc) for doc in docs]
        points = {"point_id": {"$in": [item.point_id for item in items]}}
        apart = [as_open(item) for item in items if as_open(item) != item]
        stored: dict[str, Document] = {}
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            for where in (points, *same_texts([*items, *apart])):
                stored |= {doc["point_id"]: doc async for doc in self._items.find(where)}
        known = Known([convert.from_document(doc) for doc in stored.values()])
        counts, new = PutCounts(), []
        for item, doc in zip(items, docs, strict=True):
            old = stored.get(item.point_id)
            if old is None:
                new.append((item, doc))
            else:
                counts += await self._put_over(old, item, doc, how, known)
        for item, doc in new:  # after those whose newer state may give a text free
            counts += await self._put_beside(item, doc, how, known)
        return counts

    async def _put_beside(
        self, item: MemoryItem, doc: Document, how: Putting, known: Known
    ) -> PutCounts:
        """A memory that another one says, or said when it was to be inserted."""
        placed = await self._placed(item, how, known)
        if placed is None:
            return PutCounts(same_text=1)
        if not how.dry_run:
            new = {**doc, **_told_apart(placed)}
            with translated(), pymongo.timeout(LONG_TIMEOUT_S):
                await self._changes.note([(doc["user_id"], doc["point_id"])])
                if await insert_new(self._items, [new]):  # said meanwhile
                    return PutCounts(same_text=1)
        known.put(placed)
        return PutCounts(added=1)

    async def _placed(self, item: MemoryItem, how: Putting, known: Known) -> MemoryItem | None:
        """`item` as it is stored beside what says the same of another period; None: it is known.
        The stored one gives its text free first."""
        other = known.same_text(item)
        if other is None:
            return item
        beside = as_periods(item, other)
        if beside is None:
            return None
        new, changed = beside
        if changed != other:
            row = replaced_state(other, ChangeType.UPDATE, ANOTHER_PERIOD, how.at)
            changed = touch(changed, IndexOp.PAYLOAD, how.at)
            if not how.dry_run:
                try:
                    changed = await self._writes.replace(
                        changed, expected_version=other.version, row=row
                    )
                except (Conflict, NotFound):  # changed meanwhile
                    return None
            known.put(changed)
        if new.dedup_scope != item.dedup_scope:
            with translated():
                for where in same_texts([new]):
                    async for doc in self._items.find(where):
                        known.put(convert.from_document(doc))
        return new if known.same_text(new) in (None, changed) else None

    async def _put_over(
        self, old: Document, item: MemoryItem, doc: Document, how: Putting, known: Known
    ) -> PutCounts:
        """A memory in the place of its tombstone, or of an older version of itself."""
        stored = convert.from_document(old)
        dead = stored.status is Status.DELETED
        older = (stored.version, stored.updated_at) < (item.version, item.updated_at)
        if not dead and not (how.newer and older):
            return PutCounts(present=1)
        placed = await self._placed(item, how, known)
        if placed is None:
            return PutCounts(same_text=1)
        if not how.dry_run:
            if dead:
                index = replace(revived(stored, item).index, claim=None)
            else:
                op = IndexOp.DELETE if item.status is Status.ARCHIVED else IndexOp.VECTOR
                index = requeued(stored.index, op, how.at)
            new = {**doc, **_told_apart(placed)}
            new["index"] = convert.index_document(index, pending_since=how.at)
            if (
                how.derive and old.get("contribution") is not None
            ):  # what the graphs know stays, and is due
                new |= {"contribution": old["contribution"], "follow_up_at": how.at}
            guard = {"_id": old["_id"], "version": old["version"], "index.rev": stored.index.rev}
            try:
                with translated(passing=DuplicateKeyError):
                    await self._changes.note([(doc["user_id"], doc["point_id"])])
                    done = await self._items.replace_one(guard, {**new, "_id": old["_id"]})
            except DuplicateKeyError:  # said meanwhile
                return PutCounts(same_text=1)
            if not done.matched_count:  # changed meanwhile
                with translated():
                    now = await self._items.find_one({"_id": old["_id"]})
                if now is None:
                    return PutCounts(present=1)
                return await self._put_over(now, item, doc, how, known)
        known.put(placed)
        return PutCounts(added=1) if dead else PutCounts(changed=1)

    # --- clearing

    async def clear(
        self, scope: WriteScope, collection: Collection, limit: int, wanted: RowsWanted = ALL_ROWS
    ) -> int:
        owner = own(scope)
        await self._database.ping()
        if collection.erasing is Erasing.MEMORIES:
            at = await self._database.now()

            async def delete(session: AsyncClientSession) -> int:
                where = {**owner, **_wanted(wanted)}
                return await delete_items(self._database, where, at, session, limit)

            return await self._database.transaction(delete)
        where = naming(collection, owner["user_id"])
        if collection.name == indexes.NODES:  # nothing is to be taken back from it any more
            added = {**owner, "contribution": {"$ne": None}}
            with translated(), pymongo.timeout(LONG_TIMEOUT_S):
                await self._items.update_many(added, {"$set": {"contribution": None}})
        return await self._database.remove(collection.name, where)

    async def left_of(self, scope: ReadScope, part: Part, part_id: str) -> dict[str, int]:
        await self._database.ping()
        wanted = {"$in": list(names_of(part, part_id)), **indexes.IS_TEXT}
        return {
            name: await self._database.count(name, {**mine(scope), path: wanted})
            for name, path in PARTS[part].items()
        }

    async def left(self, scope: ReadScope) -> dict[str, int]:
        user_id = mine(scope)["user_id"]
        await self._database.ping()
        count = self._database.count
        return {one.name: await count(one.name, naming(one, user_id)) for one in ALL_OF_USER}

    async def owners(self, org_id: str) -> dict[str, int]:
        await self._database.ping()
        start, end = owners_of(org_id)
        found: dict[str, int] = {}
        for one, path in ((each, path) for each in ALL_OF_USER for path in each.owner_fields):
            where = {path: {"$gte": start, "$lt": end}}
            memory = {"$ne": ["$status", Status.DELETED.value]} if one.name == ITEMS else False
            count = {"_id": f"${path}", "memories": {"$sum": {"$cond": [memory, 1, 0]}}}
            steps: list[Document] = [{"$match": where}, {"$group": count}]
            with pymongo.timeout(LONG_TIMEOUT_S):
                for row in await aggregated(self._database.collection(one.name), steps):
                    found[row["_id"]] = found.get(row["_id"], 0) + row["memories"]
        return found

    # --- how far an import is

    async def last_state(self, scope: ReadScope) -> ImportState | None:
        newest = [("at", DESCENDING)]
        found = await listed(self._imports, mine(scope), reader(ImportState), sort=newest, limit=1)
        return found[0] if found else None

    async def keep_state(self, scope: WriteScope, state: ImportState) -> None:
        key = {**own(scope), "archive": state.archive}
        with translated():
            await self._imports.replace_one(key, {**to_row(state), **key}, upsert=True)


def _anew(collection: Collection, row: Mapping[str, Any], how: Putting) -> Document:
    """Fields that a row gets in the place of those that an import makes anew."""
    anew: Document = {name: None for name in collection.renewed}
    if collection.name == OUTCOMES and how.derive:
        owes = any(row.get(name) for name in ("applied", "documents", "tools"))
        anew["effects"] = {"graph": owes, "promotion": False}
    anew |= {name: how.at for name in collection.restarted if row.get(name) is not None}
    return anew


def _told_apart(item: MemoryItem) -> Document:
    """What tells a memory from one that says the same of another period."""
    return {"dedup_scope": item.dedup_scope, "valid_from": item.valid_from}


def _item_document(owner: Document, row: Row, how: Putting) -> Document:
    op = IndexOp.DELETE if row["status"] == Status.ARCHIVED.value else IndexOp.VECTOR
    state = IndexState(op=op, next_attempt_at=how.at)
    doc = {**row, **owner, "index": convert.index_document(state, pending_since=how.at)}
    doc |= convert.veiled(row["text"], row["summary"], row["tags"])
    if how.derive:
        followed = row["tier"] in FOLLOWED
        doc |= {"contribution": None, "follow_up_at": how.at if followed else None}
    doc["understand_at"] = how.at
    return doc
