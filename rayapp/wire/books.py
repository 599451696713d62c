"""Documents over HTTP, in the names of the first client; our own additions are in snake case."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError

from rayapp.documents.ports import MAX_TITLE_CHARS, Book, BookState
from rayapp.documents.rules.order import index_of, joined
from rayapp.memory.item import MemoryItem
from rayapp.wire import bases
from rayapp.wire.search import PlaceFilters

# What each stage tells a person.
STAGES = {
    "queued": "Waits to be read.",
    "reading": "Is being read.",
    "chunking": "Is being cut into passages.",
    "ingesting": "Its passages are stored; the index takes them up.",
    "completed": "Can be asked about.",
    "failed": "Could not be taken in.",
    "cancelled": "Was cancelled.",
}
MAX_RADIUS = 20
ALONE = "The conversation that alone sees it; null: it is a book."
Conversation = Annotated[str, Field(min_length=1, max_length=bases.MAX_ID_CHARS)]
ASKS = bases.optional("The conversation that asks; it sees what is attached to it.")
TEXT = "Its text, up to 200,000 characters; empty until it is completed."


class ProcessingStats(bases.Answer):
    """`chunks_processed`: how many the index has."""

    total_chunks: int = bases.path("chunks")
    chunks_processed: int


class _Failure(bases.Answer):
    """Why it failed and what to do: in the language of the reader, and in both. Null of others."""

    error: str | None
    error_code: str | None
    error_en: str | None
    error_he: str | None


class _LibraryFailure(bases.Answer):
    """The same in the spelling of the library."""

    error: str | None
    errorCode: str | None = bases.path("error_code")
    errorEn: str | None
    errorHe: str | None


class _HowFar(_Failure):
    """How far its reading came."""

    processing_stats: ProcessingStats
    status: str = bases.path("state")
    processingStage: str = bases.path("stage")
    processingMessage: str
    doclingStatus: str | None = None

    @classmethod
    def of_book(cls, book: Book, indexed: int, **others: Any) -> Self:
        """`others`: among them why it failed (`_Failure`)."""
        stats = ProcessingStats.of(book, chunks_processed=indexed)
        message = others["error"] or message_of(book)
        return cls.of(book, processing_stats=stats, processingMessage=message, **others)


class BookView(_HowFar):
    """A document in a list. `linkedToBookId`: the one that says the same."""

    book_id: str
    title: str
    author: str | None
    upload_timestamp: datetime = bases.path("uploaded_at")
    recognizedFromPreviousChat: bool
    linkedToBookId: str | None = bases.path("linked_to")
    documentHash: str | None = bases.path(
        "text_hash", description="SHA-256 of what was read; null before."
    )
    conversation_id: str | None = bases.path("attached_to", description=ALONE)

    @classmethod
    def from_book(cls, book: Book, indexed: int, **why: Any) -> Self:
        known = book.linked_to is not None
        return cls.of_book(book, indexed, recognizedFromPreviousChat=known, **why)


class SeenFrom(bases.Lenient):
    """Where a document is read from."""

    aliases: ClassVar = bases.camel("conversation_id")
    conversation_id: Conversation | None = ASKS


class BooksQuery(SeenFrom):
    """Which page of the list."""

    limit: Annotated[int, Field(ge=1, le=bases.MAX_LIST)] = Field(
        bases.MAX_LIST, description="Most."
    )
    offset: Annotated[int, Field(ge=0, le=bases.MAX_OFFSET)] = Field(0, description="To skip.")
    failed: bool = Field(True, description="Also those that could not be taken in.")


class BooksAnswer(bases.Success):
    """The newest first."""

    books: tuple[BookView, ...]
    total: int


class QuoteView(bases.Answer):
    """A sentence of a document, word for word."""

    text: str
    chunk_index: int
    page: int | None


class BookDetail(_HowFar):
    """A document. `pages_without_text`: scans, which nobody could read. `keyPoints`: its themes,
    and `quotes`, where a language model has read it."""

    id: str = bases.path("book_id")
    title: str
    author: str | None
    uploadTimestamp: datetime = bases.path("uploaded_at")
    doclingTaskId: str | None = None
    sourceUrl: str | None = None
    sourceType: str = "upload"
    language: str | None
    summary: str
    keyPoints: tuple[str, ...] = bases.path("digest.themes")
    quotes: tuple[QuoteView, ...] = bases.path("digest.quotes")
    parsedMarkdown: str = Field(description=TEXT)
    numPages: int | None = bases.path("pages")
    fileType: str | None = bases.path("kind")
    file_name: str
    file_bytes: int
    documentHash: str | None = bases.path("text_hash")
    linkedToBookId: str | None = bases.path("linked_to")
    pages_without_text: tuple[int, ...]
    characters: int
    conversation_id: str | None = bases.path("attached_to", description=ALONE)


class BookAnswer(bases.Success):
    """One document."""

    book: BookDetail


class BooksMoved(bases.Success):
    """Ask there instead; the header `Location` says the same."""

    location: str


class UploadAnswer(bases.Success):
    """A file was kept and will be read; `task_id` is what progress and cancel are asked with."""

    book_id: str
    task_id: str
    message: str


class BookPublished(bases.Written):
    """A document that was attached is a book now; its passages are seen everywhere when it is
    `completed` again."""

    book_id: str
    status: str
    message: str


class BookInTheWay(bases.Answer):
    """The same document, or one of the same title, is here already."""

    success: Literal[False] = False
    processing_status: Literal["duplicate"] = "duplicate"
    error: str
    message: str
    code: str
    existing_book_id: str
    details: dict[str, str]


class BookGone(bases.Written):
    """What was deleted or cancelled."""

    message: str
    book_id: str
    deleted_chunks: int


# Said in the document alone: the service's own sentence tells what to send.
HEX: dict[str, Any] = {"pattern": "^[0-9a-fA-F]{64}$"}


class RecognizeQuery(SeenFrom):
    """Which document."""

    aliases: ClassVar = SeenFrom.aliases | {"hash": "documentHash"}
    documentHash: str = Field(
        description="SHA-256 of the file or of its text, in hex.", json_schema_extra=HEX
    )


class RecognizeBody(SeenFrom):
    """Which document: one of the two fields."""

    aliases: ClassVar = SeenFrom.aliases | {"hash": "documentHash"}
    documentHash: str | None = Field(
        None, description="SHA-256 of the file or of its text, in hex.", json_schema_extra=HEX
    )
    content: str | None = bases.optional("The text itself.")


class RecognizedBook(bases.Answer):
    """A document that is here already."""

    bookId: str = bases.path("book_id")
    title: str
    author: str | None
    chunkCount: int = bases.path("chunks")
    preview: str = bases.path("summary")
    processedAt: datetime = bases.path("updated_at")


class RecognizeAnswer(bases.Success):
    """Whether the document is here already."""

    recognized: bool
    document: RecognizedBook | None = bases.Absent
    message: str
    messageHe: str

    @classmethod
    def from_book(cls, book: Book | None) -> Self:
        if book is None:
            said = ("The document is not here yet.", "המסמך עדיין לא נמצא כאן.")
            return cls(recognized=False, message=said[0], messageHe=said[1])
        title = book.title
        said = (f"{title} is here already.", f"המסמך {title} כבר נמצא כאן.")
        return cls(recognized=True, document=book, message=said[0], messageHe=said[1])


class BookProgress(_HowFar):
    """An event of the progress of an upload."""

    type: Literal["progress", "error"]
    message: str | None = bases.absent("Of an error: what went wrong.")
    taskId: str = bases.path("book_id")
    bookId: str = bases.path("book_id")
    doclingTaskId: str | None = None

    @classmethod
    def from_book(cls, book: Book, indexed: int, **why: Any) -> Self:
        kind = "error" if book.state is BookState.FAILED else "progress"
        wrong = (why["error"] or message_of(book)) if kind == "error" else None
        return cls.of_book(book, indexed, type=kind, message=wrong, **why)


class BookSearchQuery(PlaceFilters):
    """A question to the documents."""

    aliases: ClassVar = SeenFrom.aliases | {"author": "authors", "section": "sections"}

    query: str = Field(min_length=1, description="The question, in any language.")
    book_id: tuple[str, ...] | None = Field(
        None, max_length=bases.MAX_FILTER_VALUES, description="Only these documents; repeat it."
    )
    has_code: bool | None = bases.optional("Passages with code, or without.")
    limit: Annotated[int, Field(ge=1, le=100)] = Field(10, description="Hits.")
    conversation_id: Conversation | None = ASKS


class SurroundingQuery(bases.Strict):
    """How much around a chunk."""

    aliases: ClassVar = SeenFrom.aliases
    conversation_id: Conversation | None = ASKS
    radius: Annotated[int, Field(ge=0, le=MAX_RADIUS)] = Field(
        2, description="Chunks on each side."
    )


class ChunkView(bases.Answer):
    """A part of a document. `overlap`: characters at its beginning that end the one before;
    `previous`, `next`: the places of those around it."""

    chunk_id: str
    memory_id: str
    chunk_index: int
    previous: int | None
    next: int | None
    text: str
    section: str
    pages: tuple[int, int] | None
    position: float
    has_code: bool
    token_count: int
    overlap: int

    @classmethod
    def from_item(cls, item: MemoryItem) -> Self:
        said: dict[str, Any] = {"section": "", "pages": None, "position": 0.0, "has_code": False}
        said |= {"token_count": 0, "overlap": 0, "previous": None, "next": None}
        index = index_of(item)
        own = {"chunk_id": str(index), "chunk_index": index}
        own |= {"memory_id": item.memory_id, "text": item.text}
        try:
            return cls.model_validate(said | (item.source.book or {}) | own)
        except ValidationError:
            # Whoever stores a memory under the id of a chunk may say anything of a book in it.
            return cls.model_validate(said | own)


class ChunksAnswer(bases.Success):
    """Chunks that follow each other, and their text without repetitions."""

    book_id: str
    chunks: tuple[ChunkView, ...]
    text: str

    @classmethod
    def from_items(cls, book_id: str, items: Iterable[MemoryItem]) -> Self:
        found = list(items)
        chunks = tuple(ChunkView.from_item(item) for item in found)
        return cls(book_id=book_id, chunks=chunks, text=joined(found))


class DocumentsQuery(BooksQuery):
    """Which page of the library."""

    aliases: ClassVar = SeenFrom.aliases | {"skip": "offset"}
    limit: Annotated[int, Field(ge=1, le=bases.MAX_LIST)] = Field(50, description="Most.")
    language: str | None = Field(None, max_length=20, description="Only of this language.")
    sourceType: str | None = Field(
        None, max_length=20, description="Only of this source; all are `upload`."
    )


class DocumentView(_LibraryFailure):
    """A document of the library."""

    id: str = bases.path("book_id")
    title: str
    author: str | None
    description: str = bases.path("summary")
    sourceType: str = "upload"
    sourceUrl: str | None = None
    language: str | None
    status: str = bases.path("state")
    uploadTimestamp: datetime = bases.path("uploaded_at")
    numPages: int | None = bases.path("pages")
    fileType: str | None = bases.path("kind")
    accessCount: int = 0
    lastAccessedAt: datetime | None = None


class DocumentsAnswer(bases.Success):
    """The newest first."""

    documents: tuple[DocumentView, ...]
    total: int
    hasMore: bool


class DocumentDetail(_LibraryFailure):
    """A document, as the first client opens it."""

    id: str = bases.path("book_id")
    title: str
    author: str | None
    sourceUrl: str | None = None
    sourceType: str = "upload"
    language: str | None
    parsedMarkdown: str = Field(description=TEXT)
    summary: str
    keyPoints: tuple[str, ...] = bases.path("digest.themes")
    numPages: int | None = bases.path("pages")
    fileType: str | None = bases.path("kind")
    uploadTimestamp: datetime = bases.path("uploaded_at")
    status: str = bases.path("state")


class UploadForm(bases.Lenient):
    """The fields of an upload beside its file."""

    aliases: ClassVar = SeenFrom.aliases
    conversation_id: Conversation | None = bases.optional(
        "Attach it: this conversation alone sees it, until it is published."
    )
    title: str | None = Field(
        None, max_length=MAX_TITLE_CHARS, description="What it is called; else as the file says."
    )
    author: str | None = Field(None, max_length=MAX_TITLE_CHARS, description="Who wrote it.")
    replace: bool = Field(False, description="Take the place of the document with this title.")


def message_of(book: Book) -> str:
    if book.linked_to is not None:
        return "Was here already, under another file."
    return book.error or STAGES[book.stage.value]
