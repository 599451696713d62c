"""Documents of a user: upload, read, cut, store as a whole, find again, delete.

A request only keeps the file and its row. The owner (maintenance) reads it in a process of its own,
and stores its chunks in pages: a document ends whole or not at all. A kill at any point leaves a
row that is due again when its claim ends.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from rayapp.core.cancelling import end
from rayapp.core.errors import Conflict, DependencyDown, InvalidInput, NotFound
from rayapp.core.runtime import Runtime
from rayapp.core.settings.model import DocumentSettings
from rayapp.documents.ports import (
    HELD,
    Book,
    BookQuery,
    BookStage,
    BookState,
    BookStore,
    TitleTaken,
    alike,
)
from rayapp.documents.reading import ReadLimits
from rayapp.documents.records import Extracted
from rayapp.documents.rules import library
from rayapp.documents.rules.chunks import chunks_of
from rayapp.documents.rules.kinds import kind_of
from rayapp.documents.rules.order import index_of, is_shown, joined
from rayapp.memory.item import MemoryItem, point_id_of
from rayapp.memory.ports import MemoryStore
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.text.normalize import spellings

log = logging.getLogger("rayapp.documents")
# A document whose worker died is taken over after this, seconds; it is held again at each third.
CLAIM_S = 10.0
# Pause before a document that is stored is looked at again: the indexer takes up some hundred
# chunks a second.
INDEX_POLL_S = 0.5
# Tries that an error of ours may take, and the pause between them, seconds.
TRIES = 3
PAUSE_S = 10.0
# Pause while something is away, seconds: as long as a breaker stays open.
AWAY_S = 30.0
# Chunks read at once when a document is written out.
PAGE = 500
# Documents of one conversation, far more than somebody attaches.
MOST_ATTACHED = 1_000
# Documents that a refusal names.
NAMED = 3

Reader = Callable[[bytes, str, ReadLimits], Awaitable[Extracted]]


class Duplicate(Conflict):
    """The user has this document, or one of this title, already."""

    default_code = "duplicate"


def limits_of(settings: DocumentSettings) -> ReadLimits:
    return ReadLimits(
        seconds=settings.read_s,
        memory_mb=settings.read_memory_mb,
        pages=settings.max_pages,
        characters=settings.max_characters,
        bytes=settings.max_bytes,
    )


class BooksService:
    """What a user asks of documents. Raises InvalidInput, TooLarge, NotFound, Duplicate, StoreDown.

    It never waits for a file to be read.
    """

    def __init__(self, store: BookStore, items: MemoryStore, *, runtime: Runtime) -> None:
        self._store = store
        self._items = items
        self._clock = runtime.clock
        self._settings = runtime.settings.documents
        self._new_id = runtime.new_id

    def check_size(self, size: int) -> None:
        """Of a file of so many bytes, before it is read. Raises InvalidInput, TooLarge."""
        library.checked_size(size, self._settings.max_bytes)

    async def upload(
        self,
        scope: WriteScope,
        data: bytes,
        file_name: str,
        *,
        title: str | None = None,
        author: str | None = None,
        replaces: bool = False,
        attached_to: str | None = None,
    ) -> Book:
        """Keep a file to be read; its row. Durable when this returns.

        Args:
            attached_to: the conversation that alone sees it; None: it is a book.
            replaces: takes the place of what it would be taken for, if there is one.
        """
        by = library.author_of(author)
        self.check_size(len(data))
        kind_of(data, file_name)
        # 50 MB take a while.
        file_hash = await asyncio.to_thread(library.sha256_of, data)
        now = self._clock.now()
        book = Book(
            user_id=scope.user_id,
            book_id=library.book_id_of(file_hash, attached_to),
            attached_to=attached_to,
            upload_id=self._new_id(),
            principal=scope.principal,
            title=library.title_of(title, file_name),
            titled=bool(title and title.strip()),
            author=by,
            file_name=library.name_of(file_name),
            file_hash=file_hash,
            file_bytes=len(data),
            state=BookState.PENDING,
            stage=BookStage.QUEUED,
            uploaded_at=now,
            updated_at=now,
            replaces=replaces,
        )
        book = await self._named(book)
        await self._store.put_upload(scope, book.upload_id, data)
        in_the_way = await self._store.add(book)
        if in_the_way is not None:
            await self._store.drop_upload(scope, book.upload_id)
            raise _duplicate(book, in_the_way)
        return book

    async def _named(self, book: Book) -> Book:
        """`book` under a title that it may have. Raises Duplicate; Conflict: it would replace what
        others rest on."""
        reads = ReadScope(book.user_id)
        known = await self._store.get(reads, book.book_id)
        if known is None or known.state not in HELD:
            # A book that was attached before has another id.
            known = await self._store.hashed(reads, book.file_hash, attached_to=book.attached_to)
        if known is not None:
            raise _duplicate(book, known)
        others = await self._store.alike(book)
        if others and not book.titled and all(one.file_name != book.file_name for one in others):
            # Files that differ in their ending alone are two documents.
            book = replace(book, title=book.file_name)
            others = await self._store.alike(book)
        if others and not book.replaces:
            raise _duplicate(book, others[0])
        for one in others:
            await self._raise_on_linked(reads, one)
        return book

    async def get(self, scope: ReadScope, book_id: str) -> Book:
        """Of whatever conversation: for who has its id and does something to it."""
        book = await self._store.get(scope, book_id)
        if book is None:
            raise _no_book(book_id)
        return book

    async def seen(self, scope: ReadScope, book_id: str, conversation: str | None) -> Book:
        """The document, for who reads it in this conversation. Raises NotFound."""
        book = await self.get(scope, book_id)
        if not book.is_seen(conversation):
            raise _no_book(book_id)
        return book

    async def attached(self, scope: ReadScope, conversation: str) -> list[Book]:
        """What is attached to a conversation."""
        query = BookQuery(limit=MOST_ATTACHED, attached_to=conversation, books=False)
        found, _ = await self._store.page(scope, query)
        return found

    async def publish(self, scope: WriteScope, book_id: str) -> Book:
        """A document of a conversation becomes a book; its row, which is worked on until all of it
        is seen. Raises Conflict: it is not completed; Duplicate: there is such a book."""
        reads = ReadScope(scope.user_id)
        book = await self.get(reads, book_id)
        if book.attached_to is None:
            return book
        known = await self._store.hashed(reads, book.file_hash)
        if known is not None:
            raise _duplicate(book, known)
        if book.linked_to is not None:
            rests_on = await self.get(reads, book.linked_to)
            if rests_on.attached_to is not None:
                raise Conflict(
                    f"It says the same as {rests_on.title}; publish that one first.",
                    details={"book_id": rests_on.book_id},
                )
        opened = replace(
            book,
            attached_to=None,
            state=BookState.PROCESSING,
            stage=BookStage.INGESTING,
            updated_at=self._clock.now(),
        )
        for one in await self._store.alike(opened):
            if one.title == book.title:
                raise _duplicate(opened, one)
        if book.state is not BookState.COMPLETED or not await self._store.publish(opened):
            raise Conflict(
                f"The document {book.title} is {book.state.value}; publish it when it is completed."
            )
        return opened

    async def page(self, scope: ReadScope, query: BookQuery) -> tuple[list[Book], int]:
        return await self._store.page(scope, query)

    async def indexed(self, book: Book) -> int:
        """How many of its chunks a search finds by their vectors."""
        if book.stage is not BookStage.INGESTING:
            return book.chunks
        return max(0, book.chunks - await self._store.unindexed(book))

    async def recognised(
        self, scope: ReadScope, sha256: str, conversation: str | None = None
    ) -> Book | None:
        """The user's document whose file or text has this hash, as the conversation sees it; of
        files that say the same, the one with the passages."""
        sha256 = sha256.lower()
        if not library.SHA256.fullmatch(sha256):
            raise InvalidInput(
                "documentHash: is the SHA-256 of the file or of its text, 64 hex digits.",
                code="bad_hash",
                details={"field": "documentHash"},
            )
        return await self._store.hashed(scope, sha256, attached_to=conversation)

    async def recognised_text(
        self, scope: ReadScope, text: str, conversation: str | None = None
    ) -> Book | None:
        """The user's document that says this, however its lines are broken."""
        hashes = library.sha256_of(text.encode("utf-8")), library.words_hash(text)
        return await self._store.hashed(scope, *hashes, attached_to=conversation)

    async def named(
        self, scope: ReadScope, names: Sequence[str], conversation: str | None
    ) -> list[str]:
        """The ids of documents by their ids or titles. Raises NotFound: none is called so."""
        titles = tuple(one for name in names for one in spellings(name))
        titled, _ = await self._store.page(
            scope, BookQuery(titles=titles, attached_to=conversation)
        )
        found = [one for one in names if library.BOOK_ID.fullmatch(one)]
        found += [book.book_id for book in titled]
        if not found:
            raise NotFound(
                "No document is called that; leave the name out to search all of them.",
                code="book_not_found",
            )
        return found

    async def with_passages(self, scope: ReadScope, book_ids: Sequence[str]) -> tuple[str, ...]:
        """The ids of the documents whose passages these documents have."""
        books = await asyncio.gather(*(self._store.get(scope, one) for one in book_ids))
        ids = (book.linked_to or book.book_id for book in books if book is not None)
        return tuple(dict.fromkeys(ids))

    async def cancel(self, scope: WriteScope, book_id: str) -> Book:
        """Stop the work on it; what was stored of it is gone. Conflict: it has ended already."""
        reads = ReadScope(scope.user_id)
        book = await self.get(reads, book_id)
        await self._raise_on_linked(reads, book)
        gone = library.ended(book, BookState.CANCELLED, self._clock.now())
        if not await self._store.end(gone):
            raise Conflict(
                f"The document {book.title} is {book.state.value} already; delete it if you mean "
                "that."
            )
        await self._store.drop_upload(scope, book.upload_id)
        return gone

    async def delete(self, scope: WriteScope, book_id: str) -> int:
        """It is gone everywhere when this returns, but for points that the indexer takes; how many
        chunks it had. Conflict: other documents rest on its text."""
        reads = ReadScope(scope.user_id)
        await self._raise_on_linked(reads, await self.get(reads, book_id))
        return await self._store.delete(scope, book_id, self._clock.now()) or 0

    async def _raise_on_linked(self, scope: ReadScope, book: Book) -> None:
        """Two files of one text have its chunks once: none may take them from the other."""
        others = await self._store.linked(scope, book.book_id)
        if others:
            names = ", ".join(one.title for one in others[:NAMED])
            raise Conflict(
                f"{len(others)} more of your documents rest on the text of {book.title}: delete "
                f"them first ({names}).",
                code="document_linked",
                details={"book_ids": [one.book_id for one in others]},
            )

    async def chunks(self, scope: ReadScope, book: Book, first: int, last: int) -> list[MemoryItem]:
        """Its chunks of these places, both included, in reading order; of a document that says the
        same as another one those of that."""
        own, of = ReadScope(scope.user_id), book.linked_to or book.book_id
        points = [
            point_id_of(scope.user_id, library.chunk_id(of, index))
            for index in range(max(0, first), last + 1)
        ]
        found = await self._items.by_points(own, points)
        return sorted((item for item in found if is_shown(item)), key=index_of)

    async def surrounding(
        self, scope: ReadScope, book: Book, chunk_id: str, radius: int
    ) -> list[MemoryItem]:
        """A chunk and those around it. NotFound: the document has no such chunk."""
        book_id = book.book_id
        chunk_id = chunk_id.removeprefix(f"{book.linked_to or book_id}:")
        if not library.CHUNK_INDEX.fullmatch(chunk_id):
            raise _no_chunk(book_id, chunk_id)
        at = int(chunk_id)
        found = await self.chunks(scope, book, at - radius, at + radius)
        if not any(index_of(item) == at for item in found):
            raise _no_chunk(book_id, chunk_id)
        return found

    async def text(self, scope: ReadScope, book: Book, most: int) -> str:
        """The document written out from its chunks, up to `most` characters; "" until it is
        completed, so that whoever waits for that costs little."""
        if book.state is not BookState.COMPLETED:
            return ""
        if book.linked_to is not None:
            book = await self.get(scope, book.linked_to)
        found: list[MemoryItem] = []
        size = 0
        for first in range(0, library.last_index(book), PAGE):
            page = await self.chunks(scope, book, first, first + PAGE - 1)
            found += page
            size += sum(len(item.text) for item in page)
            if size >= most:
                break
        return joined(found)[:most]


def _duplicate(book: Book, known: Book) -> Duplicate:
    said = f"This document is here already: {known.title}."
    if known.file_hash != book.file_hash:
        said = (
            f"A document with the title {known.title} is here already; give this one another "
            "title, or ask that it replaces that one."
        )
    return Duplicate(
        said,
        details={
            "existing_book_id": known.book_id,
            "processing_status": "duplicate",
            "file_hash": known.file_hash,
        },
    )


def _no_book(book_id: str) -> NotFound:
    return NotFound(
        "There is no such document; it may have been deleted.",
        code="book_not_found",
        details={"book_id": book_id},
    )


def _no_chunk(book_id: str, chunk_id: str) -> NotFound:
    return NotFound(f"The document {book_id} has no chunk {chunk_id}.", code="chunk_not_found")


class _LetGo(Exception):
    """Another process holds the document, or nobody is to work on it any more."""


@dataclass(eq=False)
class BookWork:
    """The owner's work on what was uploaded. Any number may run at once: a claim gives each
    document to one of them.

    Args:
        read: reads a file in a process of its own.
    """

    store: BookStore
    memories: MemoriesService
    read: Reader
    _: KW_ONLY
    runtime: Runtime

    async def run_once(self, only: Book | None = None) -> int:
        """Work on the next document that is due, or on this one if it is and nobody else does; how
        many there were, 0 or 1."""
        token = self.runtime.new_id()
        book = await self.store.claim(token=token, claim_s=CLAIM_S, only=only)
        if book is None:
            return 0
        work = asyncio.create_task(self._one(book, token))
        beat = asyncio.create_task(self._hold(book, token))
        try:
            await asyncio.wait({work, beat}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _stopped(work, beat)
        return 1

    async def _hold(self, book: Book, token: str) -> None:
        """Ends when the document is not ours any more."""
        while True:
            await asyncio.sleep(CLAIM_S / 3)
            try:
                if not await self.store.hold(book, token, CLAIM_S):
                    return
            except DependencyDown as error:
                log.warning("a document is held by its claim alone: %s", error.message)

    async def _one(self, book: Book, token: str) -> None:
        try:
            if book.stage is BookStage.INGESTING:
                await self._follow(book, token)
            else:
                await self._ingest(book, token)
        except _LetGo:
            return
        except DependencyDown as error:
            log.warning("a document waits: %s", error.message)
            await self._again(book, token, AWAY_S)
        except (InvalidInput, Conflict) as error:
            await self._fail(book, token, error.message, error.code)
        except Exception:  # a bug met by one document must not stop those of others
            log.exception("a document failed")
            # What is stored stays: others may rest on it.
            if book.tries + 1 >= TRIES and book.stage is not BookStage.INGESTING:
                said = "The document could not be taken in; send it in another format."
                await self._fail(book, token, said, "document_failed")
            else:
                await self._again(replace(book, tries=book.tries + 1), token, PAUSE_S)

    async def _ingest(self, book: Book, token: str) -> None:
        """Read, recognise, cut, store."""
        scope = ReadScope(book.user_id)
        data = await self.store.upload(scope, book.upload_id)
        if data is None:
            raise InvalidInput("The uploaded file is gone; upload it again.", code="upload_gone")
        book = replace(book, stage=BookStage.READING, updated_at=self.runtime.clock.now())
        await self._write(book, token)
        found = await self.read(data, book.file_name, limits_of(self.runtime.settings.documents))
        del data
        book = await asyncio.to_thread(library.read_book, book, found, self.runtime.clock.now())
        book = await self._titled(book, token, found)
        known = await self._same_text(book)
        if known is not None:
            await self._recognised(book, token, known)
            return
        # A book of a thousand pages takes a second of processor time.
        stored, items = await asyncio.to_thread(self._cut, book, found)
        if not await self.store.store(stored, token, items):
            raise _LetGo
        self.runtime.metrics.count("documents", result="stored")
        await self._follow(stored, token)

    async def _titled(self, book: Book, token: str, found: Extracted) -> Book:
        """Its row under the first title that is free. Raises TitleTaken."""
        *others, last = library.titles_of(book, found)
        for title in others:
            with contextlib.suppress(TitleTaken):
                await self._write(named := replace(book, title=title), token)
                return named
        await self._write(named := replace(book, title=last), token)
        return named

    async def _same_text(self, book: Book) -> Book | None:
        """The document with chunks that says the same, unless this one takes its place."""
        known = await self.store.hashed(
            ReadScope(book.user_id), book.text_hash or "", attached_to=book.attached_to
        )
        if known is not None and known.linked_to is not None:
            known = await self.store.get(ReadScope(book.user_id), known.linked_to)
        if known is None or known.book_id == book.book_id or (book.replaces and alike(book, known)):
            return None
        return known

    def _cut(self, book: Book, found: Extracted) -> tuple[Book, list[MemoryItem]]:
        cut, new = library.cut_book(book, chunks_of(found.blocks), self.runtime.clock.now())
        if not new:
            raise InvalidInput("The file holds no text; send one with text.", code="document_empty")
        return cut, self.memories.made(WriteScope(book.user_id, book.principal), new)

    async def _follow(self, book: Book, token: str) -> None:
        """What is stored is completed when the index has it, and then takes its place. Of what was
        published the chunks follow first."""
        if await self.store.unindexed(book):
            await self._again(book, token, INDEX_POLL_S)
            return
        if book.attached_to is None and not await self.store.open_chunks(book, token):
            raise _LetGo
        if await self.store.unindexed(book):  # what was opened follows
            await self._again(book, token, INDEX_POLL_S)
            return
        # Here and not where it was stored: whoever stored it may have died since.
        await self._settle_upload(book)
        await self._take_place(book)
        done = library.ended(book, BookState.COMPLETED, self.runtime.clock.now())
        await self.store.end(done, token)
        self.runtime.metrics.count("documents", result="completed")

    async def _take_place(self, book: Book) -> None:
        """Delete what it replaces: what would be taken for it and is older, unless others rest on
        the text of that."""
        if not book.replaces:
            return
        for one in await self.store.alike(book):
            older = (one.uploaded_at, one.book_id) < (book.uploaded_at, book.book_id)
            if older and not await self.store.linked(ReadScope(book.user_id), one.book_id):
                scope = WriteScope(book.user_id, book.principal)
                await self.store.delete(scope, one.book_id, self.runtime.clock.now())

    async def _recognised(self, book: Book, token: str, known: Book) -> None:
        """Another file says the same: nothing is stored twice."""
        await self._take_place(book)
        linked = replace(book, linked_to=known.book_id, summary=known.summary)
        linked = replace(linked, text_hash=None, words_hash=None)
        await self.store.end(
            library.ended(linked, BookState.COMPLETED, self.runtime.clock.now()), token
        )
        await self._settle_upload(book, keep=False)
        self.runtime.metrics.count("documents", result="recognised")

    async def _settle_upload(self, book: Book, *, keep: bool = True) -> None:
        scope = WriteScope(book.user_id, book.principal)
        if keep and self.runtime.settings.documents.keep_original:
            await self.store.keep_upload(scope, book.upload_id)
        else:
            await self.store.drop_upload(scope, book.upload_id)

    async def _fail(self, book: Book, token: str, message: str, code: str) -> None:
        error = InvalidInput(message, code=code)
        failed = library.ended(book, BookState.FAILED, self.runtime.clock.now(), error)
        if await self.store.end(failed, token):
            await self._settle_upload(book, keep=False)
            self.runtime.metrics.count("documents", result="failed")

    async def _again(self, book: Book, token: str, delay_s: float) -> None:
        with contextlib.suppress(DependencyDown):  # then it is due when its claim ends
            await self.store.again(book, token, delay_s)

    async def _write(self, book: Book, token: str) -> None:
        if not await self.store.update(book, token):
            raise _LetGo


async def _stopped(*tasks: asyncio.Task[Any]) -> None:
    await end(*tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()
