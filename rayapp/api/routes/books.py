"""Documents: upload, list, read, follow, cancel, delete, search."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import IO, Any, TypeVar

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import Response, StreamingResponse

from rayapp.api.auth import BOOKS, DOCUMENTS, UPLOAD
from rayapp.api.call import Call
from rayapp.api.errors import error_answer
from rayapp.api.hebrew_errors import SENTENCES, wants_hebrew
from rayapp.api.json_answer import answer, model_answer
from rayapp.api.json_body import read_model
from rayapp.api.paths import BookId, ChunkId, DocumentId, TaskId
from rayapp.api.responses import JSON, EventStream, file_form, raises, raises_code
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.api.routes.jobs import EVENT_STREAM, RETRY_MS, STREAM_HEADERS, sse_event
from rayapp.api.routes.memories import check_query
from rayapp.core.errors import Conflict, InvalidInput, NotFound, Overloaded, RayappError, TooLarge
from rayapp.documents.ports import OPEN, Book, BookQuery
from rayapp.documents.service import Duplicate
from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import Tier
from rayapp.search.requests import SearchQuery
from rayapp.wire import books as wire
from rayapp.wire.bases import Body, ErrorAnswer
from rayapp.wire.search import SearchAnswerView, search_body

BodyT = TypeVar("BodyT", bound=Body)
routes, later_routes = router("books"), router("not yet")
# Routes that take a form with a file.
FORM_PATHS = frozenset({BOOKS, f"{UPLOAD}/upload"})
# What is sent to them is not read.
UNREAD_PATHS = frozenset(
    {f"{UPLOAD}/books", f"{UPLOAD}/cancel/{{task_id}}", f"{BOOKS}/{{book_id}}/publish", DOCUMENTS}
)
URLS_LATER = (
    "This version reads no addresses; download the document and send it to POST /api/memory/books."
)
MAX_FIELDS, MAX_FIELD_BYTES = 20, 4_096
# Of a form that is parsed in one turn of the event loop: some .1 ms.
FORM_PIECE_BYTES = 1 << 18
# Characters of a document that one answer holds.
MAX_TEXT_CHARS = 200_000
# Between two looks at a document that is followed, seconds.
FOLLOW_S = 0.5
# Looks without a change until a comment says that the stream lives.
ALIVE_EVERY = 30

FORM = file_form(wire.UploadForm, {"file": "(the bytes of guide.md)", "title": "Guide"})
SAID = "This document is here already: Garden."
IN_THE_WAY = wire.BookInTheWay(
    error=SAID,
    message=SAID,
    code="duplicate",
    existing_book_id="doc_51b6763155d7deb9",
    details={
        "existing_book_id": "doc_51b6763155d7deb9",
        "processing_status": "duplicate",
        "file_hash": "51b6763155d7deb9" * 4,
    },
).model_dump()
UPLOADS: dict[str, Any] = {
    "openapi_extra": FORM,
    "responses": {
        **raises(TooLarge, Overloaded),
        **raises_code("document_type"),
        409: {
            "model": wire.BookInTheWay,
            "description": "It is here already, or one of its title, or others rest on that.",
            "content": {JSON: {"examples": {"duplicate": {"value": IN_THE_WAY}}}},
        },
    },
}


@routes.get(BOOKS, summary="List the documents")
async def listed(call: CurrentCall, query: InQuery[wire.BooksQuery]) -> wire.BooksAnswer:
    """Documents of every state, the newest first; with a conversation also what is attached to
    it."""
    books = call.services.books
    found, total = await books.page(
        call.reads,
        BookQuery(
            limit=query.limit,
            offset=query.offset,
            attached_to=query.conversation_id,
            failed=query.failed,
        ),
    )
    counts = await asyncio.gather(*(books.indexed(book) for book in found))
    rows = [
        wire.BookView.from_book(book, indexed, **describe_failure(book))
        for book, indexed in zip(found, counts, strict=True)
    ]
    return wire.BooksAnswer(books=tuple(rows), total=total)


@routes.post(BOOKS, summary="Upload a document", response_model=wire.UploadAnswer, **UPLOADS)
async def upload(call: CurrentCall) -> Response:
    """The file is kept when this is answered, and read in the background: pdf, docx, pptx, xlsx,
    xls, ods, csv, tsv, html, rtf, odt, epub, txt, md or eml. The same file, or another with the
    same title, is answered with 409; `replace=true` puts it in the place of the one with its
    title, unless other documents rest on that (409 `document_linked`). With `conversation_id` it
    is attached to that conversation, which alone sees it until it is published. Follow it at
    `/api/book-upload/ws/progress/{task_id}`."""
    return await _upload(call)


@routes.post(
    f"{UPLOAD}/upload",
    summary="Upload a document by its other path",
    response_model=wire.UploadAnswer,
    **UPLOADS,
)
async def upload_there(call: CurrentCall) -> Response:
    """As `POST /api/memory/books`."""
    return await _upload(call)


@routes.get(f"{BOOKS}/recognize", summary="Look a document up by its hash")
async def recognized(
    call: CurrentCall, query: InQuery[wire.RecognizeQuery]
) -> wire.RecognizeAnswer:
    """Whether this file or text is among the user's documents."""
    found = await call.services.books.recognised(
        call.reads, query.documentHash, query.conversation_id
    )
    return wire.RecognizeAnswer.from_book(found)


@routes.post(f"{BOOKS}/recognize", summary="Recognise a document")
async def recognize(call: CurrentCall, body: wire.RecognizeBody) -> wire.RecognizeAnswer:
    """By its hash, or by its text."""
    books = call.services.books
    if body.documentHash is not None:
        found = await books.recognised(call.reads, body.documentHash, body.conversation_id)
    elif body.content is not None:
        found = await books.recognised_text(call.reads, body.content, body.conversation_id)
    else:
        raise InvalidInput(
            "documentHash: send it, or the text as `content`.", details={"field": "documentHash"}
        )
    return wire.RecognizeAnswer.from_book(found)


@routes.get(f"{BOOKS}/{{book_id}}", summary="Read a document", responses=raises(NotFound))
async def one(call: CurrentCall, book_id: BookId, query: InQuery[wire.SeenFrom]) -> wire.BookAnswer:
    """With its text, once it is completed. One that is attached is found from its conversation
    alone."""
    book = await call.services.books.seen(call.reads, book_id, query.conversation_id)
    indexed = await call.services.books.indexed(book)
    text = await call.services.books.text(call.reads, book, MAX_TEXT_CHARS)
    return wire.BookAnswer(
        book=wire.BookDetail.of_book(book, indexed, parsedMarkdown=text, **describe_failure(book))
    )


@routes.delete(f"{BOOKS}/{{book_id}}", summary="Delete a document", **writes(NotFound, Conflict))
async def delete(call: CurrentCall, book_id: BookId) -> wire.BookGone:
    """The document, its file and all its passages; the index lets go of their points right after.
    A repeat finishes what was cut short. While other documents rest on its text (another file that
    says the same) it is answered with 409 `document_linked`, which names them: delete them
    first."""
    gone = await call.services.books.delete(call.writes, book_id)
    return wire.BookGone(message="Document deleted.", book_id=book_id, deleted_chunks=gone)


@routes.get(
    f"{BOOKS}/{{book_id}}/chunks/{{chunk_id}}/surrounding",
    summary="Read what stands around a passage",
    responses=raises(NotFound),
)
async def surrounding(
    call: CurrentCall, book_id: BookId, chunk_id: ChunkId, query: InQuery[wire.SurroundingQuery]
) -> wire.ChunksAnswer:
    """Chunks in reading order, and their text without what they repeat."""
    books = call.services.books
    book = await books.seen(call.reads, book_id, query.conversation_id)
    found = await books.surrounding(call.reads, book, chunk_id, query.radius)
    return wire.ChunksAnswer.from_items(book_id, found)


@routes.post(
    f"{BOOKS}/{{book_id}}/publish",
    summary="Publish a document of a conversation",
    **writes(NotFound, Conflict),
)
async def publish(call: CurrentCall, book_id: BookId) -> wire.BookPublished:
    """What is attached to a conversation becomes a book of all of them, without a second copy. 409
    while it is not completed, or where a book is the same or has its title. A book stays as it
    is."""
    book = await call.services.books.publish(call.writes, book_id)
    return wire.BookPublished(
        book_id=book.book_id, status=book.state.value, message="The document is a book."
    )


@routes.post(
    f"{UPLOAD}/cancel/{{task_id}}", summary="Cancel an upload", **writes(NotFound, Conflict)
)
async def cancel(call: CurrentCall, task_id: TaskId) -> wire.BookGone:
    """Nothing is left of it but its row, which says so."""
    book = await call.services.books.cancel(call.writes, task_id)
    return wire.BookGone(message="Upload cancelled.", book_id=book.book_id, deleted_chunks=0)


@routes.get(
    f"{UPLOAD}/ws/progress/{{task_id}}",
    summary="Follow an upload",
    response_class=EventStream,
    response_model=None,
    responses={200: {"model": wire.BookProgress}, **raises(NotFound)},
)
async def progress(call: CurrentCall, task_id: TaskId) -> Response:
    """Server-sent events: `progress` on every change, and `error` for a document that failed. The
    stream ends with the work, or after `events.stream_s` with the event `unfinished`: then follow
    it again."""
    book = await call.services.books.get(call.reads, task_id)
    seconds = call.services.settings.events.stream_s
    stream = _followed(call, book, max(1, int(seconds / FOLLOW_S)))
    return StreamingResponse(stream, media_type=EVENT_STREAM, headers=STREAM_HEADERS)


def _add_moved(method: str, summary: str) -> None:
    @routes.api_route(
        f"{UPLOAD}/books",
        methods=[method],
        summary=summary,
        description=f"See `{method} {BOOKS}`.",
        status_code=307,
        response_model=wire.BooksMoved,
    )
    async def moved(call: CurrentCall) -> Response:
        found = wire.BooksMoved(location=BOOKS)
        return model_answer(found, status=307, headers={"Location": BOOKS})


_add_moved("GET", "List the documents by their old path")
_add_moved("POST", "Upload a document by its old path")


@routes.get(f"{UPLOAD}/search", summary="Search the documents", response_model=SearchAnswerView)
async def search(call: CurrentCall, query: InQuery[wire.BookSearchQuery]) -> Response:
    """As `POST /api/memory/search`, in one document, several or all of them."""
    check_query(call, query.query)
    ids = query.book_id
    if ids is not None:
        ids = await call.services.books.with_passages(call.reads, ids)
    wanted = SearchQuery(
        query=query.query,
        limit=query.limit,
        tiers=(Tier.BOOKS,),
        where=query.fill(ItemFilter, doc_ids=ids),
        include_datagov=False,
        conversation_id=query.conversation_id,
        principal=call.who.principal,
    )
    found = await call.services.search.search(call.reads, wanted)
    return answer(search_body(found, call.services.clock.now(), call.documents))


@routes.get(DOCUMENTS, summary="List the library")
async def library(call: CurrentCall, query: InQuery[wire.DocumentsQuery]) -> wire.DocumentsAnswer:
    """The same documents, as the first client shows its library."""
    if query.sourceType not in (None, "upload"):
        return wire.DocumentsAnswer(documents=(), total=0, hasMore=False)
    asked = BookQuery(
        limit=query.limit,
        offset=query.offset,
        language=query.language,
        attached_to=query.conversation_id,
        failed=query.failed,
    )
    found, total = await call.services.books.page(call.reads, asked)
    more = query.offset + len(found) < total
    shown = tuple(wire.DocumentView.of(book, **describe_library_failure(book)) for book in found)
    return wire.DocumentsAnswer(documents=shown, total=total, hasMore=more)


@later_routes.post(
    DOCUMENTS,
    status_code=501,
    summary="Register a document by its address",
    description="Not implemented yet: always 501.",
    response_model=ErrorAnswer,
)
async def register(call: CurrentCall) -> Response:
    return error_answer(RayappError(URLS_LATER, code="not_implemented"))


@routes.get(f"{DOCUMENTS}/{{document_id}}", summary="Open a document", responses=raises(NotFound))
async def opened(
    call: CurrentCall, document_id: DocumentId, query: InQuery[wire.SeenFrom]
) -> wire.DocumentDetail:
    """As the first client shows one; `GET /api/memory/books/{book_id}` says more."""
    book = await call.services.books.seen(call.reads, document_id, query.conversation_id)
    text = await call.services.books.text(call.reads, book, MAX_TEXT_CHARS)
    return wire.DocumentDetail.of(book, parsedMarkdown=text, **describe_library_failure(book))


async def _upload(call: Call) -> Response:
    async with form_of(call, wire.UploadForm) as (file, name, form):
        if form.replace:
            await call.services.holds.check(call.who.user_id)
        data = await asyncio.to_thread(file.read)
    try:
        book = await call.services.books.upload(
            call.writes,
            data,
            name,
            title=form.title,
            author=form.author,
            replaces=form.replace,
            attached_to=form.conversation_id,
        )
    except Duplicate as error:
        known = error.details["existing_book_id"]
        shown = wire.BookInTheWay.of(error, error=error.message, existing_book_id=known)
        return model_answer(shown, status=409)
    said = "The file is kept and is being read; follow it by its task_id."
    done = wire.UploadAnswer(book_id=book.book_id, task_id=book.book_id, message=said)
    return model_answer(done, status=200)


@asynccontextmanager
async def form_of(call: Call, kind: type[BodyT]) -> AsyncIterator[tuple[IO[bytes], str, BodyT]]:
    """The file of a form, its name and the other fields. Raises InvalidInput."""

    async def stream() -> AsyncIterator[bytes]:
        # A file of many megabytes at once would hold up the searches of this process.
        for start in range(0, len(call.body), FORM_PIECE_BYTES):
            yield call.body[start : start + FORM_PIECE_BYTES]
            await asyncio.sleep(0)

    parser = MultiPartParser(
        Headers(scope=call.scope),
        stream(),  # type: ignore[arg-type]  # any async iterator will do
        max_files=1,
        max_fields=MAX_FIELDS,
        max_part_size=MAX_FIELD_BYTES,
    )
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        said = getattr(error, "message", "") or "it has no boundary"
        if "maximum size" in said:
            said = f"a field beside the file has more than {MAX_FIELD_BYTES:,} bytes"
        raise InvalidInput(
            f"The form cannot be read ({said}); send multipart/form-data with one file.",
            code="malformed_form",
        ) from None
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise InvalidInput(
                'file: send it as a file of this name, its own name in `filename="…"`.',
                details={"field": "file"},
            )
        fields = {name: one for name, one in form.items() if isinstance(one, str) and one}
        names = {*kind.model_fields, *kind.aliases}
        known = {name: fields[name] for name in fields if name in names}
        yield file.file, file.filename, read_model(kind, known)
    finally:
        await form.close()


def describe_failure(book: Book) -> dict[str, str | None]:
    """Why it failed and what to do: in the language of who asks, and in both."""
    english, hebrew = book.error, None
    if english is not None:
        hebrew = SENTENCES.get(book.error_code or "", SENTENCES["document_failed"])
    told = hebrew if wants_hebrew.get() else english
    return {"error": told, "error_en": english, "error_he": hebrew}


def describe_library_failure(book: Book) -> dict[str, str | None]:
    why = describe_failure(book)
    return {"error": why["error"], "errorEn": why["error_en"], "errorHe": why["error_he"]}


async def _followed(call: Call, book: Book, rounds: int) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MS}\n\n".encode()
    last = b""
    books = call.services.books
    for look in range(rounds + 1):
        event = wire.BookProgress.from_book(
            book, await books.indexed(book), **describe_failure(book)
        )
        said = event.model_dump_json().encode()
        if look == rounds and book.state in OPEN:
            yield sse_event("unfinished", str(look), said)
            return
        if said != last:
            last = said
            yield sse_event(event.type, str(look), said)
        elif look % ALIVE_EVERY == 0:
            yield b": alive\n\n"
        if book.state not in OPEN:
            return
        await asyncio.sleep(FOLLOW_S)
        try:
            book = await books.get(call.reads, book.book_id)
        except NotFound:
            return


routes.routes.extend(later_routes.routes)
