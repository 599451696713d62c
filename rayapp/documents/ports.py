"""The seams of the documents: their rows, their uploads, and the chunks that go with them.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from rayapp.core.errors import Conflict
from rayapp.memory.item import MemoryItem
from rayapp.memory.scope import ReadScope, WriteScope

MAX_TITLE_CHARS = 200


class BookState(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class BookStage(StrEnum):
    """Where the work on a document stands. `ingesting`: its chunks are stored, all at once, and the
    indexer takes them up."""

    QUEUED = "queued"
    READING = "reading"
    CHUNKING = "chunking"
    INGESTING = "ingesting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


# States in which somebody works on a document, or will.
OPEN = frozenset({BookState.PENDING, BookState.PROCESSING})
# States in which it has, or will have, chunks: the same one is not taken again.
HELD = OPEN | {BookState.COMPLETED}


@dataclass(frozen=True, slots=True, kw_only=True)
class BookQuote:
    """A sentence of a document, word for word, and where it stands."""

    text: str
    chunk_index: int
    page: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BookDigest:
    """How far a language model has read a document.

    Attributes:
        noted: it was asked about the chunks before this one; each keeps its own summary.
        joined: their summaries before this one are joined in `parts`.
        done: it is not asked any more; without `themes` nothing that it said could be kept.
    """

    noted: int = 0
    joined: int = 0
    parts: tuple[str, ...] = ()
    quotes: tuple[BookQuote, ...] = ()
    themes: tuple[str, ...] = ()
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """A document of a user.

    Attributes:
        book_id: `doc_` and 16 hex digits of `file_hash`; its chunks are `{book_id}:{index}`.
        upload_id: of this upload; a later one of the same file has another.
        principal: the key that uploaded it.
        file_hash: SHA-256 of the file; `text_hash`: of what was read out of it.
        words_hash: of the same without white space, by which what we show of it is known again.
        chunks: how many memories it became.
        summary: its first sentences, or what a model made of it (`digest`).
        error: what to do about it, where it failed.
        linked_to: the document that says the same, where another file had said it already.
        replaces: it takes the place of those with its title, once it is completed.
        tries: how often working on it met an error of ours.
        attached_to: the one conversation that sees it; None: it is a book, which all of them see.
    """

    user_id: str
    book_id: str
    upload_id: str
    principal: str
    title: str
    file_name: str
    file_hash: str
    file_bytes: int
    state: BookState
    stage: BookStage
    uploaded_at: datetime
    updated_at: datetime
    titled: bool = False
    author: str | None = None
    kind: str | None = None
    language: str | None = None
    pages: int | None = None
    pages_without_text: tuple[int, ...] = ()
    characters: int = 0
    text_hash: str | None = None
    words_hash: str | None = None
    chunks: int = 0
    summary: str = ""
    error: str | None = None
    error_code: str | None = None
    linked_to: str | None = None
    replaces: bool = False
    tries: int = 0
    attached_to: str | None = None
    digest: BookDigest = BookDigest()

    def is_seen(self, conversation: str | None) -> bool:
        """Whether this conversation sees it; None: none asks."""
        return self.attached_to in (None, conversation)


class TitleTaken(Conflict):
    """Another document of the user has this title."""

    default_code = "title_taken"


def title_key(book: Book) -> str | None:
    """The title that no other document of its user may have at the same time; None of one that
    waits to take another's place, or that is none any more. Each conversation has titles of its
    own."""
    if book.state not in HELD or book.replaces:
        return None
    return book.title if book.attached_to is None else f"{book.attached_to}\n{book.title}"


def alike(book: Book, other: Book) -> bool:
    """Whether `other` is what `book` would be taken for: it has its title, or where neither was
    given one, the name of its file; in the same place."""
    if book.book_id == other.book_id or other.state not in HELD:
        return False
    if book.attached_to != other.attached_to:
        return False
    same_file = book.file_name == other.file_name and not (book.titled or other.titled)
    return book.title == other.title or same_file


@dataclass(frozen=True, slots=True, kw_only=True)
class BookQuery:
    """Which documents of a list. None = any.

    `attached_to`: books, and what is attached to this conversation; `books` False: that alone.
    `failed` False: without those that could not be taken in.
    """

    limit: int = 50
    offset: int = 0
    kind: str | None = None
    language: str | None = None
    titles: tuple[str, ...] | None = None
    attached_to: str | None = None
    books: bool = True
    failed: bool = True


class BookStore(Protocol):
    """Documents and uploads. Whatever needs a `token` does nothing, and says False, once another
    process holds the document or nobody is to work on it any more."""

    async def put_upload(self, scope: WriteScope, upload_id: str, data: bytes) -> None:
        """Keep a file until it is read; it goes by itself if nobody asks for it."""

    async def upload(self, scope: ReadScope, upload_id: str) -> bytes | None: ...

    async def keep_upload(self, scope: WriteScope, upload_id: str) -> None:
        """It stays as long as its document."""

    async def drop_upload(self, scope: WriteScope, upload_id: str) -> None: ...

    async def add(self, book: Book) -> Book | None:
        """Queue a document; the one in the way if the user has the same one already, or one with
        its title (`title_key`)."""

    async def get(self, scope: ReadScope, book_id: str) -> Book | None: ...

    async def page(self, scope: ReadScope, query: BookQuery) -> tuple[list[Book], int]:
        """The newest first, and how many there are."""

    async def alike(self, book: Book) -> list[Book]:
        """The user's documents that this one would be taken for (`alike`), the oldest first."""

    async def hashed(
        self, scope: ReadScope, *hashes: str, attached_to: str | None = None
    ) -> Book | None:
        """The user's book with one of these hashes, of its file, its text or its words, or what is
        attached to this conversation: the first that has chunks, else the first that rests on
        one."""

    async def claim(self, *, token: str, claim_s: float, only: Book | None = None) -> Book | None:
        """The next document that is due, or this one if it is, for so many seconds; takes over
        what is left alone.

        A user's documents are read one after the other, so that nobody waits for the library of
        another: what is to be read is passed over while one of its user is being read.
        """

    async def hold(self, book: Book, token: str, claim_s: float) -> bool:
        """Go on holding it."""

    async def update(self, book: Book, token: str) -> bool:
        """Write its row. Raises TitleTaken."""

    async def again(self, book: Book, token: str, delay_s: float) -> bool:
        """Note its stage and its tries, and let it go until later."""

    async def store(self, book: Book, token: str, items: Sequence[MemoryItem]) -> bool:
        """Write its chunks in the place of those that are there, and its row with the last of them.
        False: another one holds it; what was written goes when that one stores or ends it.

        Raises DuplicateMemory: before anything is written.
        """

    async def end(self, book: Book, token: str | None = None) -> bool:
        """Write a row that nobody works on any more. Without chunks (`FAILED`, `CANCELLED`) those
        that there are go with it. Without a token: only if somebody works on it, or will."""

    async def claim_digest(self, *, token: str, claim_s: float) -> Book | None:
        """The completed document with chunks that waits longest for a language model, for so many
        seconds; each is due when it is completed."""

    async def keep_digest(self, book: Book, token: str, delay_s: float) -> bool:
        """Write its summary and how far it was read, and let it go: until later, or for good
        (`done`). False: another one has it, or it is completed no more."""

    async def publish(self, book: Book) -> bool:
        """Write the row of a completed document that becomes a book, due to be worked on: its
        chunks follow (`open_chunks`). False: it is not completed any more. Raises TitleTaken."""

    async def open_chunks(self, book: Book, token: str) -> bool:
        """Its chunks are seen by all conversations; a repeat finishes what a kill left. False:
        another one holds it."""

    async def linked(self, scope: ReadScope, book_id: str) -> list[Book]:
        """Documents that say the same as this one and have no chunks of their own, oldest first."""

    async def unindexed(self, book: Book) -> int:
        """How many of its chunks wait for the index; those that gave up do not."""

    async def delete(self, scope: WriteScope, book_id: str, at: datetime) -> int | None:
        """The document, its uploads and all its chunks: how many these were; None when there is no
        such document. Nobody works on it from the first moment on; a repeat finishes what a kill
        left."""
