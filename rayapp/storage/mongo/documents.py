"""Documents of users: their rows, the uploads that wait, and their chunks as a whole."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

import pymongo
from pymongo import DESCENDING, ReplaceOne
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from rayapp.core.errors import DuplicateMemory
from rayapp.documents.ports import (
    HELD,
    OPEN,
    Book,
    BookDigest,
    BookQuery,
    BookStage,
    BookState,
    TitleTaken,
    title_key,
)
from rayapp.memory.item import IndexOp, MemoryItem, Status
from rayapp.memory.rules.revision import queued, revived, touch
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo import convert, indexes
from rayapp.storage.mongo.changes import MongoChangeLog
from rayapp.storage.mongo.database import MongoDatabase, changed, first, listed, updated
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.memory_store import revision_document
from rayapp.storage.mongo.predicates import NOT_DELETED, due, in_seconds, later, mine, own
from rayapp.storage.mongo.rows import may_lack, reader, to_row
from rayapp.storage.mongo.user_rows import delete_items

Document = dict[str, Any]
may_lack(Book)
may_lack(BookDigest)
_book = reader(Book)
# A row of an upload, bytes: far below the server's 16 MB.
PART_BYTES = 4 * 1024 * 1024
# An upload that no document asked for, or whose document waits in vain, goes after this, seconds.
UPLOAD_TTL_S = 7 * 86_400
# Chunks of one transaction.
CHUNK_PAGE = 100
# A file of 50 MB, in or out.
FILE_TIMEOUT_S = 50.0
# A cancelled document whose chunks are being deleted is not due, seconds.
TAKEN_S = 60.0
NEWEST = [("uploaded_at", DESCENDING), ("book_id", DESCENDING)]
OLDEST = [("uploaded_at", 1), ("book_id", 1)]
HASHES = ("text_hash", "file_hash", "words_hash")
IS_OPEN = {"state": {"$in": sorted(OPEN)}}
IS_HELD = {"state": {"$in": sorted(HELD)}}
# The type is what lets the server use the partial index.
IS_DUE = {"due_at": {"$type": "date"}, **due("due_at")}


class _NotHeldError(Exception):
    """Ends a transaction: another process holds the document."""


class MongoBookStore:
    """Implements `documents.ports.BookStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._rows = database.collection(indexes.DOCUMENTS)
        self._uploads = database.collection(indexes.UPLOADS)
        self._items = database.collection(indexes.ITEMS)
        self._changes = MongoChangeLog(database)

    async def put_upload(self, scope: WriteScope, upload_id: str, data: bytes) -> None:
        key = {**own(scope), "upload_id": upload_id}
        with translated(), pymongo.timeout(FILE_TIMEOUT_S):
            for part, start in enumerate(range(0, len(data), PART_BYTES)):
                row = {**key, "part": part, "data": data[start : start + PART_BYTES]}
                await self._uploads.update_one(
                    {**key, "part": part},
                    [{"$replaceWith": {"$mergeObjects": [{"$literal": row}, EXPIRES]}}],
                    upsert=True,
                )

    async def upload(self, scope: ReadScope, upload_id: str) -> bytes | None:
        where = {**mine(scope), "upload_id": upload_id}
        with translated(), pymongo.timeout(FILE_TIMEOUT_S):
            rows = await self._uploads.find(where, sort=[("part", 1)]).to_list()
        return b"".join(row["data"] for row in rows) if rows else None

    async def keep_upload(self, scope: WriteScope, upload_id: str) -> None:
        where = {**own(scope), "upload_id": upload_id}
        with translated():
            await self._uploads.update_many(where, {"$unset": {"expires_at": ""}})

    async def drop_upload(self, scope: WriteScope, upload_id: str) -> None:
        with translated():
            await self._uploads.delete_many({**own(scope), "upload_id": upload_id})

    async def add(self, book: Book) -> Book | None:
        key = _key(book)
        change = [{"$replaceWith": {"$mergeObjects": [{"$literal": _keyed(book)}, DUE]}}]
        try:
            with translated(passing=DuplicateKeyError):
                await self._rows.update_one(
                    {**key, "state": {"$nin": sorted(HELD)}}, change, upsert=True
                )
        except DuplicateKeyError:
            owner, title = _owned(book), title_key(book)
            for key in ({"book_id": book.book_id}, {"title_key": title}):
                known = await first(self._rows, {**owner, **key, **IS_HELD}, _book)
                if known is not None:
                    return known
            return await self.add(book)  # what was in the way is gone
        return None

    async def get(self, scope: ReadScope, book_id: str) -> Book | None:
        return await first(self._rows, {**mine(scope), "book_id": book_id}, _book)

    async def page(self, scope: ReadScope, query: BookQuery) -> tuple[list[Book], int]:
        where: Document = mine(scope)
        where |= {"kind": query.kind} if query.kind is not None else {}
        where |= {"language": query.language} if query.language is not None else {}
        where |= {"title": {"$in": list(query.titles)}} if query.titles is not None else {}
        where |= _seen_by(query.attached_to) if query.books else {"attached_to": query.attached_to}
        where |= {} if query.failed else {"state": {"$ne": BookState.FAILED.value}}
        found = await listed(
            self._rows, where, _book, sort=NEWEST, skip=query.offset, limit=query.limit
        )
        with translated():
            return found, await self._rows.count_documents(where)

    async def alike(self, book: Book) -> list[Book]:
        same: list[Document] = [{"title": book.title}]
        if not book.titled:
            same.append({"file_name": book.file_name, "titled": False})
        others = {**_owned(book), "book_id": {"$ne": book.book_id}, **IS_HELD}
        others["attached_to"] = book.attached_to
        return await listed(self._rows, {**others, "$or": same}, _book, sort=OLDEST)

    async def hashed(
        self, scope: ReadScope, *hashes: str, attached_to: str | None = None
    ) -> Book | None:
        where = {
            **mine(scope),
            **_seen_by(attached_to),
            "$or": [{name: {"$in": list(hashes)}} for name in HASHES],
            "$and": [{"$or": [{"chunks": {"$gt": 0}}, {"linked_to": {"$ne": None}}]}],
            **IS_HELD,
        }
        # Null, as those with chunks have it, comes before names.
        return await first(self._rows, where, _book, sort=[("linked_to", 1), *OLDEST])

    async def claim(self, *, token: str, claim_s: float, only: Book | None = None) -> Book | None:
        which = await self._in_turn() if only is None else _key(only)
        change: Document = {
            "claim": {"$literal": token},
            "due_at": in_seconds(claim_s),
            "state": BookState.PROCESSING.value,
        }
        where = {**which, **IS_OPEN, **IS_DUE}
        return await changed(self._rows, where, [{"$set": change}], _book, sort=[("due_at", 1)])

    async def _in_turn(self) -> Document:
        """What may be worked on next: all but what is to be read of users who have one there."""
        stored = {"stage": BookStage.INGESTING.value}
        read = {**IS_OPEN, "claim": {"$type": "string"}, "stage": {"$ne": stored["stage"]}}
        now = {"due_at": {"$type": "date"}, **later("due_at")}
        users = await listed(self._rows, {**read, **now}, lambda doc: str(doc["user_id"]))
        busy = sorted(set(users))
        return {"$or": [stored, {"user_id": {"$nin": busy}}]} if busy else {}

    async def hold(self, book: Book, token: str, claim_s: float) -> bool:
        return await self._change(book, token, {"due_at": in_seconds(claim_s)})

    async def update(self, book: Book, token: str) -> bool:
        try:
            return await self._change(
                book, token, {"$literal": _keyed(book)}, passing=DuplicateKeyError
            )
        except DuplicateKeyError:
            raise TitleTaken(f"A document with the title {book.title} is here already.") from None

    async def again(self, book: Book, token: str, delay_s: float) -> bool:
        row = {"stage": book.stage.value, "tries": book.tries}
        return await self._change(book, token, row | {"claim": None, "due_at": in_seconds(delay_s)})

    async def store(self, book: Book, token: str, items: Sequence[MemoryItem]) -> bool:
        """In pages: a transaction must fit in the server's cache, and each word of a chunk is an
        entry of the text index. The row goes with the last one."""
        await self._raise_on_others(book, items)
        await self._delete_chunks(book.user_id, book.book_id, book.updated_at)
        begun = {"$inc": {"pages_stored": 1}}
        ended = {"$set": to_row(book), "$unset": {"pages_stored": ""}}
        for start in range(0, max(1, len(items)), CHUNK_PAGE):
            page = items[start : start + CHUNK_PAGE]
            last = start + CHUNK_PAGE >= len(items)
            if not await self._store_page(_held(book, token), ended if last else begun, page):
                return False
        return True

    async def _raise_on_others(self, book: Book, items: Sequence[MemoryItem]) -> None:
        points = {"$in": [item.point_id for item in items]}
        where = {**_owned(book), "point_id": points, "dedup_scope": {"$ne": book.book_id}}
        if await first(self._items, {**where, **NOT_DELETED}, convert.from_document) is not None:
            raise DuplicateMemory(
                f"A memory has an id of a chunk of {book.book_id}: delete it, then upload again."
            )

    async def _store_page(
        self, held: Document, change: Document, items: Sequence[MemoryItem]
    ) -> bool:
        """Chunks, and a change of the row: who takes the document away meets that write."""
        owner, points = {"user_id": held["user_id"]}, [item.point_id for item in items]

        async def store(session: AsyncClientSession) -> None:
            # What a deleted document left until the index has let go of it.
            where = {**owner, "point_id": {"$in": points}, "status": Status.DELETED.value}
            gone = await self._items.find(where, session=session).to_list()
            # Of new chunks there is nothing to see before the index has them (`is_coming`).
            seen = ((doc["user_id"], doc["point_id"]) for doc in gone)
            await self._changes.note(seen, session)
            back = {doc["point_id"] for doc in gone}
            new = [convert.to_document(queued(one)) for one in items if one.point_id not in back]
            if new:
                await self._items.insert_many(new, session=session)
            await self._revive(gone, items, session)
            # Last: whoever dies in the middle holds the row of a document from the queue until the
            # server ends its transaction.
            done = await self._rows.update_one(held, change, session=session)
            if not done.matched_count:
                raise _NotHeldError

        try:
            await self._database.transaction(store, passing=_NotHeldError)
        except _NotHeldError:
            return False
        return True

    async def _revive(
        self, gone: Sequence[Document], items: Sequence[MemoryItem], session: AsyncClientSession
    ) -> None:
        """Chunks in the place of tombstones with their ids."""
        if not gone:
            return
        by_point = {item.point_id: item for item in items}
        new = []
        for doc in gone:
            item = revived(convert.from_document(doc), by_point[doc["point_id"]])
            again = {**convert.to_document(item), "contribution": doc.get("contribution")}
            new.append(ReplaceOne({"_id": doc["_id"]}, again))
        await self._items.bulk_write(new, ordered=False, session=session)

    async def end(self, book: Book, token: str | None = None) -> bool:
        if token is None:
            # Taken from whoever works on it; without what follows it is due again.
            token = str(uuid4())
            taken = {"$set": {"claim": {"$literal": token}, "due_at": in_seconds(TAKEN_S)}}
            if not await updated(self._rows, {**_key(book), **IS_OPEN}, [taken]):
                return False
        if book.state is not BookState.COMPLETED:
            await self._delete_chunks(book.user_id, book.book_id, book.updated_at)
        free = {"claim": "", "due_at": "", "pages_stored": ""}
        waits = book.state is BookState.COMPLETED and book.chunks and not book.digest.done
        read = {"digest_due_at": book.updated_at} if waits else {}
        # One that took another's place may meet its title given away in the meantime.
        for row in (_keyed(book) | read, to_row(book) | read):
            with contextlib.suppress(DuplicateKeyError), translated(passing=DuplicateKeyError):
                done = await self._rows.update_one(
                    _held(book, token), {"$set": row, "$unset": free}
                )
                return bool(done.matched_count)
        return False

    async def _delete_chunks(self, user_id: str, book_id: str, at: datetime) -> int:
        """In pages, and out of the queue of the graphs first: they write the items that they learn
        of, each of which would begin the transaction of its page anew."""
        owner = own(WriteScope(user_id))
        wanted = {**owner, "tier": Tier.BOOKS.value, "dedup_scope": book_id, **NOT_DELETED}

        async def page(session: AsyncClientSession) -> int:
            return await delete_items(self._database, wanted, at, session, CHUNK_PAGE)

        with translated():
            await self._items.update_many(
                {**wanted, **indexes.FOLLOW_UP_ONLY}, {"$set": {"follow_up_at": None}}
            )
        gone = 0
        while found := await self._database.transaction(page):
            gone += found
        return gone

    async def claim_digest(self, *, token: str, claim_s: float) -> Book | None:
        where = {"digest_due_at": {"$type": "date"}, **due("digest_due_at")}
        where["state"] = BookState.COMPLETED.value
        change = {"digest_claim": {"$literal": token}, "digest_due_at": in_seconds(claim_s)}
        order = [("digest_due_at", 1)]
        return await changed(self._rows, where, [{"$set": change}], _book, sort=order)

    async def keep_digest(self, book: Book, token: str, delay_s: float) -> bool:
        key = {**_key(book), "state": BookState.COMPLETED.value, "digest_claim": token}
        read = {"summary": book.summary, "digest": to_row(book.digest)}
        later = None if book.digest.done else in_seconds(delay_s)
        steps: list[Document] = [
            {"$set": {name: {"$literal": one} for name, one in read.items()}},
            {"$set": {"digest_due_at": later, "digest_claim": None}},
        ]
        return await updated(self._rows, key, steps)

    async def publish(self, book: Book) -> bool:
        key = {**_key(book), "upload_id": book.upload_id, "state": BookState.COMPLETED.value}
        change = [{"$replaceWith": {"$mergeObjects": ["$$ROOT", {"$literal": _keyed(book)}, DUE]}}]
        try:
            with translated(passing=DuplicateKeyError):
                done = await self._rows.update_one(key, change)
        except DuplicateKeyError:
            raise TitleTaken(f"A document with the title {book.title} is here already.") from None
        return bool(done.matched_count)

    async def open_chunks(self, book: Book, token: str) -> bool:
        """In pages, as they are stored."""
        wanted = {**_chunks(book), "attached_to": {"$type": "string"}}

        async def page(session: AsyncClientSession) -> None:
            docs = await self._items.find(wanted, limit=CHUNK_PAGE, session=session).to_list()
            await self._changes.note(((book.user_id, doc["point_id"]) for doc in docs), session)
            opened = [ReplaceOne({"_id": doc["_id"]}, _opened(doc, book)) for doc in docs]
            if opened:
                await self._items.bulk_write(opened, ordered=False, session=session)
            begun = {"$inc": {"pages_stored": 1}}
            done = await self._rows.update_one(_held(book, token), begun, session=session)
            if not done.matched_count:
                raise _NotHeldError

        try:
            while await first(self._items, wanted, convert.from_document) is not None:
                await self._database.transaction(page, passing=_NotHeldError)
        except _NotHeldError:
            return False
        return True

    async def linked(self, scope: ReadScope, book_id: str) -> list[Book]:
        where = {**mine(scope), "linked_to": book_id}
        return await listed(self._rows, where, _book, sort=OLDEST)

    async def unindexed(self, book: Book) -> int:
        active = {"status": Status.ACTIVE.value}
        with translated():
            return await self._items.count_documents(
                {**_chunks(book), **active, **indexes.PENDING_ONLY},
                hint=indexes.PENDING_BY_USER.name,
            )

    async def delete(self, scope: WriteScope, book_id: str, at: datetime) -> int | None:
        """The row goes last, so that a repeat finishes what a kill left."""
        key = {**own(scope), "book_id": book_id}
        stopped = {"state": BookState.CANCELLED.value, "stage": BookState.CANCELLED.value}
        with translated():
            doc = await self._rows.find_one_and_update(
                key, {"$set": stopped, "$unset": {"claim": "", "due_at": "", "title_key": ""}}
            )
        if doc is None:
            return None
        gone = await self._delete_chunks(scope.user_id, book_id, at)
        await self.drop_upload(scope, doc["upload_id"])
        with translated():
            await self._database.collection(indexes.BOOKS).delete_many(
                {**own(scope), "doc_id": book_id}
            )
            await self._rows.delete_many({**own(scope), "linked_to": book_id})
            await self._rows.delete_one({**key, "upload_id": doc["upload_id"]})
        return gone

    async def _change(
        self,
        book: Book,
        token: str,
        change: Document,
        *,
        passing: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> bool:
        step = [{"$replaceWith": {"$mergeObjects": ["$$ROOT", change]}}]
        with translated(passing=passing):
            done = await self._rows.update_one(_held(book, token), step)
        return bool(done.matched_count)


# Free to be claimed.
DUE: Document = {"claim": None, "due_at": "$$NOW"}
EXPIRES: Document = {"expires_at": in_seconds(UPLOAD_TTL_S)}


def _keyed(book: Book) -> Document:
    return to_row(book) | {"title_key": title_key(book)}


def _seen_by(conversation: str | None) -> Document:
    """Books, and what is attached to this conversation; rows of before lack the field."""
    return {"attached_to": {"$in": [None, conversation]} if conversation is not None else None}


def _opened(doc: Document, book: Book) -> Document:
    """The row of a chunk that all conversations see, as an edit leaves it."""
    item = convert.from_document(doc)
    seen = touch(item, IndexOp.PAYLOAD, book.updated_at, attached_to=None)
    return revision_document(replace(seen, version=item.version + 1), doc)


def _owned(book: Book) -> Document:
    return own(WriteScope(book.user_id))


def _key(book: Book) -> Document:
    return {**_owned(book), "book_id": book.book_id}


def _held(book: Book, token: str) -> Document:
    return {**_key(book), **IS_OPEN, "upload_id": book.upload_id, "claim": token}


def _chunks(book: Book) -> Document:
    scope = {"tier": Tier.BOOKS.value, "dedup_scope": book.book_id}
    return {**_owned(book), **scope, **NOT_DELETED}
