"""Documents in process memory. It passes the contract suite of MongoDB's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rayapp.core.errors import DuplicateMemory
from rayapp.core.runtime import Clock
from rayapp.documents.ports import (
    HELD,
    OPEN,
    Book,
    BookQuery,
    BookStage,
    BookState,
    TitleTaken,
    alike,
    title_key,
)
from rayapp.memory.item import IndexOp, MemoryItem, Status, SyncState
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.rules.revision import touch
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.rows import stored_form, to_ms


@dataclass
class _Row:
    book: Book
    due_at: datetime | None
    claim: str | None = None
    title_key: str | None = None
    digest_due_at: datetime | None = None
    digest_claim: str | None = None


class InMemoryBookStore:
    def __init__(self, items: InMemoryMemoryStore, clock: Clock) -> None:
        self._items = items
        self._clock = clock
        self.rows: dict[tuple[str, str], _Row] = {}
        self.uploads: dict[tuple[str, str], bytes] = {}

    async def put_upload(self, scope: WriteScope, upload_id: str, data: bytes) -> None:
        self.uploads[checked_user(scope.user_id), upload_id] = data

    async def upload(self, scope: ReadScope, upload_id: str) -> bytes | None:
        return self.uploads.get((checked_user(scope.user_id), upload_id))

    async def keep_upload(self, scope: WriteScope, upload_id: str) -> None:
        checked_user(scope.user_id)

    async def drop_upload(self, scope: WriteScope, upload_id: str) -> None:
        self.uploads.pop((checked_user(scope.user_id), upload_id), None)

    async def add(self, book: Book) -> Book | None:
        key = checked_user(book.user_id), book.book_id
        known = self.rows.get(key)
        if known is not None and known.book.state in HELD:
            return known.book
        if self._title_taken(book):
            return next(one for one in self._of(book) if title_key(one) == title_key(book))
        self.rows[key] = _Row(_stored(book), self._clock.now(), title_key=title_key(book))
        return None

    async def get(self, scope: ReadScope, book_id: str) -> Book | None:
        row = self.rows.get((checked_user(scope.user_id), book_id))
        return row.book if row is not None else None

    async def page(self, scope: ReadScope, query: BookQuery) -> tuple[list[Book], int]:
        found = [
            book
            for book in self._of(scope)
            if query.kind in (None, book.kind)
            and query.language in (None, book.language)
            and (query.titles is None or book.title in query.titles)
            and book.attached_to in ((None, query.attached_to)[not query.books :])
            and (query.failed or book.state is not BookState.FAILED)
        ]
        found.sort(key=lambda book: (book.uploaded_at, book.book_id), reverse=True)
        return found[query.offset :][: max(0, query.limit)], len(found)

    async def alike(self, book: Book) -> list[Book]:
        return sorted((one for one in self._of(book) if alike(book, one)), key=_age)

    async def hashed(
        self, scope: ReadScope, *hashes: str, attached_to: str | None = None
    ) -> Book | None:
        found = [
            book
            for book in self._of(scope)
            if {book.text_hash, book.file_hash, book.words_hash} & set(hashes)
            and (book.chunks or book.linked_to)
            and book.state in HELD
            and book.is_seen(attached_to)
        ]
        return min(found, key=lambda book: (book.linked_to or "", _age(book)), default=None)

    async def claim(self, *, token: str, claim_s: float, only: Book | None = None) -> Book | None:
        now, rows = self._clock.now(), self.rows
        key = None if only is None else (only.user_id, only.book_id)
        due = [row for at, row in rows.items() if key in (None, at) and row.due_at is not None]
        due = [row for row in due if row.due_at is not None and row.due_at <= now]
        if only is None:
            read = (row for row in rows.values() if _waits(row) and _is_held(row, now))
            busy = {row.book.user_id for row in read}
            due = [row for row in due if not (_waits(row) and row.book.user_id in busy)]
        if not due:
            return None
        row = min(due, key=lambda one: one.due_at or now)
        row.book = replace(row.book, state=BookState.PROCESSING)
        row.claim, row.due_at = token, now + timedelta(seconds=claim_s)
        return row.book

    async def hold(self, book: Book, token: str, claim_s: float) -> bool:
        row = self._held(book, token)
        if row is not None:
            row.due_at = self._clock.now() + timedelta(seconds=claim_s)
        return row is not None

    async def update(self, book: Book, token: str) -> bool:
        row = self._held(book, token)
        if row is not None:
            if self._title_taken(book):
                raise TitleTaken("A document with this title is here already.")
            row.book, row.title_key = _stored(book), title_key(book)
        return row is not None

    async def again(self, book: Book, token: str, delay_s: float) -> bool:
        row = self._held(book, token)
        if row is not None:
            row.book, row.claim = replace(row.book, stage=book.stage, tries=book.tries), None
            row.due_at = self._clock.now() + timedelta(seconds=delay_s)
        return row is not None

    async def store(self, book: Book, token: str, items: Sequence[MemoryItem]) -> bool:
        row = self._held(book, token)
        if row is None:
            return False
        there = (self._items._rows.get(item.point_id) for item in items)
        others = (one.item for one in there if one and one.item.dedup_scope != book.book_id)
        if any(item.status is not Status.DELETED for item in others):
            raise DuplicateMemory("A memory has an id of a chunk.")
        self._delete_chunks(book.user_id, book.book_id, book.updated_at)
        row.book = _stored(book)
        await self._items.insert_many(items)
        return True

    async def end(self, book: Book, token: str | None = None) -> bool:
        row = self.rows.get((book.user_id, book.book_id))
        if token is not None:
            row = self._held(book, token)
        elif row is not None and row.book.state not in OPEN:
            row = None
        if row is None:
            return False
        row.book, row.claim, row.due_at = _stored(book), None, None
        row.title_key = None if self._title_taken(book) else title_key(book)
        if book.state is BookState.COMPLETED and book.chunks and not book.digest.done:
            row.digest_due_at = book.updated_at
        if book.state is not BookState.COMPLETED:
            self._delete_chunks(book.user_id, book.book_id, book.updated_at)
        return True

    async def claim_digest(self, *, token: str, claim_s: float) -> Book | None:
        now = self._clock.now()
        rows = [row for row in self.rows.values() if row.book.state is BookState.COMPLETED]
        due = [(row.digest_due_at, row) for row in rows if row.digest_due_at is not None]
        due = [(at, row) for at, row in due if at <= now]
        if not due:
            return None
        _, row = min(due, key=lambda one: one[0])
        row.digest_claim, row.digest_due_at = token, now + timedelta(seconds=claim_s)
        return row.book

    async def keep_digest(self, book: Book, token: str, delay_s: float) -> bool:
        row = self.rows.get((book.user_id, book.book_id))
        if row is None or row.digest_claim != token or row.book.state is not BookState.COMPLETED:
            return False
        row.book = replace(row.book, summary=book.summary, digest=book.digest)
        later = self._clock.now() + timedelta(seconds=delay_s)
        row.digest_due_at, row.digest_claim = None if book.digest.done else later, None
        return True

    async def publish(self, book: Book) -> bool:
        row = self.rows.get((book.user_id, book.book_id))
        if row is None or row.book.upload_id != book.upload_id:
            return False
        if row.book.state is not BookState.COMPLETED:
            return False
        if self._title_taken(book):
            raise TitleTaken("A document with this title is here already.")
        row.book, row.claim, row.due_at = _stored(book), None, self._clock.now()
        row.title_key = title_key(book)
        return True

    async def open_chunks(self, book: Book, token: str) -> bool:
        if self._held(book, token) is None:
            return False
        for item in self._chunks(book.user_id, book.book_id):
            if item.attached_to is not None:
                seen = touch(item, IndexOp.PAYLOAD, to_ms(book.updated_at), attached_to=None)
                new = stored_form(replace(seen, version=item.version + 1))
                self._items._rows[item.point_id].revise(new)
        return True

    async def linked(self, scope: ReadScope, book_id: str) -> list[Book]:
        found = [book for book in self._of(scope) if book.linked_to == book_id]
        return sorted(found, key=_age)

    async def unindexed(self, book: Book) -> int:
        chunks = self._chunks(book.user_id, book.book_id)
        return sum(item.index.sync_state is SyncState.PENDING for item in chunks)

    async def delete(self, scope: WriteScope, book_id: str, at: datetime) -> int | None:
        user_id = checked_user(scope.user_id)
        row = self.rows.pop((user_id, book_id), None)
        if row is None:
            return None
        for key in [k for k, one in self.rows.items() if one.book.linked_to == book_id]:
            if key[0] == user_id:
                del self.rows[key]
        await self.drop_upload(scope, row.book.upload_id)
        return self._delete_chunks(user_id, book_id, at)

    def _of(self, scope: ReadScope | Book) -> list[Book]:
        user_id = checked_user(scope.user_id)
        return [row.book for key, row in self.rows.items() if key[0] == user_id]

    def _title_taken(self, book: Book) -> bool:
        key = title_key(book)
        others = (row for at, row in self.rows.items() if at != (book.user_id, book.book_id))
        return key is not None and any(
            (row.book.user_id, row.title_key) == (book.user_id, key) for row in others
        )

    def _held(self, book: Book, token: str) -> _Row | None:
        row = self.rows.get((book.user_id, book.book_id))
        if row is None or row.claim != token or row.book.state not in OPEN:
            return None
        return row if row.book.upload_id == book.upload_id else None

    def _chunks(self, user_id: str, book_id: str) -> list[MemoryItem]:
        living = self._items.living(user_id)
        return [item for item in living if (item.tier, item.dedup_scope) == (Tier.BOOKS, book_id)]

    def _delete_chunks(self, user_id: str, book_id: str, at: datetime) -> int:
        found = self._chunks(user_id, book_id)
        for item in found:
            self._items.delete(item, at)
        return len(found)


def _age(book: Book) -> tuple[datetime, str]:
    return book.uploaded_at, book.book_id


def _waits(row: _Row) -> bool:
    """It is to be read, or being read."""
    return row.book.state in OPEN and row.book.stage is not BookStage.INGESTING


def _is_held(row: _Row, now: datetime) -> bool:
    return row.claim is not None and row.due_at is not None and row.due_at > now


def _stored(book: Book) -> Book:
    """The server keeps milliseconds."""
    return replace(book, uploaded_at=to_ms(book.uploaded_at), updated_at=to_ms(book.updated_at))
