"""Routes of the first client whose work does not exist yet: each says so, clearly, with 501."""

from starlette.responses import Response

from rayapp.api.auth import BACKUP, BOOKS, DOCUMENTS
from rayapp.api.errors import error_answer
from rayapp.api.paths import BookId, DocumentId, TaskId
from rayapp.api.route import CurrentCall, router
from rayapp.core.errors import RayappError
from rayapp.wire.bases import ErrorAnswer

routes = router("not yet")
NOT_IMPLEMENTED = "not_implemented"
UPLOAD = "/api/book-upload"

BOOKS_LATER = "This version keeps no books yet; store their text with POST /api/memory/store."
DOCUMENTS_LATER = "This version keeps no documents yet; store text with POST /api/memory/store."
BACKUP_LATER = (
    "This version makes no backups by HTTP yet; use mongodump on the database. The vector index "
    "is built anew from it."
)

# Method, path, what it will do, and what to do until then.
LATER: tuple[tuple[str, str, str, str], ...] = (
    ("GET", BOOKS, "List the books", BOOKS_LATER),
    ("POST", BOOKS, "Upload a book", BOOKS_LATER),
    ("GET", f"{BOOKS}/recognize", "Look a book up by its hash", BOOKS_LATER),
    ("POST", f"{BOOKS}/recognize", "Recognise a book", BOOKS_LATER),
    ("GET", f"{BOOKS}/{{book_id}}", "Read a book", BOOKS_LATER),
    ("DELETE", f"{BOOKS}/{{book_id}}", "Delete a book", BOOKS_LATER),
    ("GET", f"{UPLOAD}/books", "List the books by their old path", BOOKS_LATER),
    ("POST", f"{UPLOAD}/books", "Upload a book by its old path", BOOKS_LATER),
    ("GET", f"{UPLOAD}/ws/progress/{{task_id}}", "Progress of an upload", BOOKS_LATER),
    ("GET", DOCUMENTS, "List the documents", DOCUMENTS_LATER),
    ("POST", DOCUMENTS, "Register a document", DOCUMENTS_LATER),
    ("GET", f"{DOCUMENTS}/{{document_id}}", "Read a document", DOCUMENTS_LATER),
    ("GET", f"{BACKUP}/estimate", "Size of a backup", BACKUP_LATER),
    ("GET", f"{BACKUP}/export", "Export a backup", BACKUP_LATER),
    ("POST", f"{BACKUP}/import", "Import a backup", BACKUP_LATER),
    ("POST", f"{BACKUP}/restore", "Restore a backup", BACKUP_LATER),
)
# What is sent to them is not read: an upload is told so before its megabytes and its form count.
UNREAD_PATHS = frozenset(path for method, path, _, _ in LATER if method == "POST")


def _add_later(method: str, path: str, summary: str, instead: str) -> None:
    error = RayappError(instead, code=NOT_IMPLEMENTED)

    async def whole(call: CurrentCall) -> Response:
        return error_answer(error)

    async def book(call: CurrentCall, book_id: BookId) -> Response:
        return error_answer(error)

    async def document(call: CurrentCall, document_id: DocumentId) -> Response:
        return error_answer(error)

    async def upload(call: CurrentCall, task_id: TaskId) -> Response:
        return error_answer(error)

    by_part = {"{book_id}": book, "{document_id}": document, "{task_id}": upload}
    routes.add_api_route(
        path,
        by_part.get(path.rpartition("/")[2], whole),
        methods=[method],
        status_code=501,
        summary=summary,
        description="Not implemented yet: always 501.",
        response_model=ErrorAnswer,
    )


for row in LATER:
    _add_later(*row)
