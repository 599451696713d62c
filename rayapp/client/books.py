"""Client calls about documents."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypedDict, Unpack

from rayapp.client.calls import Pause, Reader, Talk, Writer, asked, at, call, form, given, read_file
from rayapp.client.core import Core, parse
from rayapp.core.errors import Conflict, InvalidInput
from rayapp.wire import books as wire
from rayapp.wire.search import SearchAnswerView

BOOKS, UPLOAD = "/api/memory/books", "/api/book-upload"
# Between two looks at a document that is taken in, seconds.
POLL_S = 0.5
ENDED = frozenset({"completed", "failed", "cancelled"})

OnProgress = Callable[[wire.BookDetail], None]


class Described(TypedDict, total=False):
    """What is said of an upload.

    title, author: else as the file says. replace: put it in the place of the document with the
    same title. conversation_id: attach it to this conversation, which alone sees it until it is
    published.
    """

    title: str | None
    author: str | None
    replace: bool
    conversation_id: str | None


class SeenFrom(Reader, total=False):
    """`conversation_id`: the conversation that asks; it sees what is attached to it."""

    conversation_id: str | None


class BookCalls(Core):
    """The calls."""

    @call
    def upload(
        self,
        path: str | Path,
        *,
        wait: bool = True,
        on_progress: OnProgress | None = None,
        user_id: str | None = None,
        **described: Unpack[Described],
    ) -> Talk[wire.BookDetail]:
        """Send a file, and wait until it can be asked about. The same bytes are a document once:
        one that is here already, or was kept before the connection broke, is waited for as well.

        Args:
            wait: False: only until it is kept.
            on_progress: is told of the document again and again while it is worked on.

        Raises:
            Conflict: another one has this title; `details` has the `existing_book_id`.
            InvalidInput, TooLarge: it cannot be read; the message says what to do.
        """
        conversation_id = described.get("conversation_id")
        replace = "true" if described.get("replace") else None
        fields = given({**described, "replace": replace})
        path = Path(path)
        data = read_file(path)
        request = form(BOOKS, path.name, data, fields, self.headers_of(user_id))
        try:
            book_id = parse(wire.UploadAnswer, (yield from self.asking(request))).book_id
        except Conflict as known:
            book_id = str(known.details.get("existing_book_id") or "")
            if not book_id or known.details.get("file_hash") != sha256(data).hexdigest():
                raise
        who = Reader(user_id=user_id)
        while True:
            book = yield from self._book(book_id, conversation_id, **who)
            if on_progress is not None:
                on_progress(book)
            if book.status == "failed":
                raise InvalidInput(book.error or book.processingMessage)
            if book.status in ENDED or not wait:
                return book
            yield Pause(POLL_S)

    @call
    def books(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        conversation_id: str | None = None,
        **who: Unpack[Reader],
    ) -> Talk[wire.BooksAnswer]:
        """The documents, newest first; with a conversation what is attached to it too."""
        path = asked(BOOKS, limit=limit, offset=offset, conversation_id=conversation_id)
        return self.reading(wire.BooksAnswer, path, **who)

    @call
    def book(
        self, book_id: str, *, conversation_id: str | None = None, **who: Unpack[Reader]
    ) -> Talk[wire.BookDetail]:
        """One document with its text. Raises NotFound."""
        return self._book(book_id, conversation_id, **who)

    @call
    def publish_book(self, book_id: str, **who: Unpack[Writer]) -> Talk[wire.BookPublished]:
        """What is attached to a conversation becomes a book. Raises NotFound, Conflict."""
        return self.writing(wire.BookPublished, at(BOOKS, book_id, "publish"), **who)

    @call
    def delete_book(self, book_id: str, **who: Unpack[Writer]) -> Talk[wire.BookGone]:
        """The document and all its passages. Raises NotFound."""
        return self.writing(wire.BookGone, at(BOOKS, book_id), method="DELETE", **who)

    @call
    def cancel_upload(self, task_id: str, **who: Unpack[Writer]) -> Talk[wire.BookGone]:
        """Stop taking a document in. Raises NotFound, Conflict."""
        return self.writing(wire.BookGone, at(UPLOAD, "cancel", task_id), **who)

    @call
    def recognize(
        self, sha256: str, *, conversation_id: str | None = None, **who: Unpack[Reader]
    ) -> Talk[wire.RecognizeAnswer]:
        """Whether a file, or what it says, is here already."""
        path = asked(f"{BOOKS}/recognize", documentHash=sha256, conversation_id=conversation_id)
        return self.reading(wire.RecognizeAnswer, path, **who)

    @call
    def surrounding(
        self,
        book_id: str,
        chunk_id: str,
        *,
        radius: int | None = None,
        conversation_id: str | None = None,
        **who: Unpack[Reader],
    ) -> Talk[wire.ChunksAnswer]:
        """What stands around a passage, in reading order. Raises NotFound."""
        path = at(BOOKS, book_id, "chunks", chunk_id, "surrounding")
        path = asked(path, radius=radius, conversation_id=conversation_id)
        return self.reading(wire.ChunksAnswer, path, **who)

    @call
    def search_books(
        self,
        query: str,
        *,
        book_ids: Sequence[str] | None = None,
        authors: Sequence[str] | None = None,
        sections: Sequence[str] | None = None,
        pages: tuple[int, int] | None = None,
        has_code: bool | None = None,
        limit: int | None = None,
        **whence: Unpack[SeenFrom],
    ) -> Talk[SearchAnswerView]:
        """Passages of all documents, or of these.

        Args:
            sections: headings that a passage stands under, as they are written.
            pages: the first and the last one.
        """
        first, last = pages if pages is not None else (None, None)
        path = asked(
            f"{UPLOAD}/search",
            query=query,
            book_id=book_ids,
            authors=authors,
            sections=sections,
            page_from=first,
            page_to=last,
            has_code=has_code,
            limit=limit,
            conversation_id=whence.get("conversation_id"),
        )
        return self.reading(SearchAnswerView, path, user_id=whence.get("user_id"))

    def _book(
        self, book_id: str, conversation_id: str | None, **who: Unpack[Reader]
    ) -> Talk[wire.BookDetail]:
        path = asked(at(BOOKS, book_id), conversation_id=conversation_id)
        return (yield from self.reading(wire.BookAnswer, path, **who)).book
