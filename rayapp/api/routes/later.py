"""Routes of the first client whose work does not exist yet: each says so, clearly, with 501."""

from __future__ import annotations

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.errors import error_answer, error_body
from rayapp.api.operation import Operation
from rayapp.core.errors import RayappError
from rayapp.wire.bases import ErrorAnswer

NOT_IMPLEMENTED = "not_implemented"
BOOKS, DOCUMENTS, BACKUP = "/api/memory/books", "/api/documents", "/api/memory/backup"
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


def _operation(method: str, path: str, summary: str, instead: str) -> Operation:
    error = RayappError(instead, code=NOT_IMPLEMENTED)

    async def later(call: Call) -> Response:
        return error_answer(error)

    return Operation(
        method=method,
        path=path,
        tag="not yet",
        summary=summary,
        description="Not implemented yet: always 501.",
        handler=later,
        status=501,
        answer=ErrorAnswer,
        example=error_body(error),
    )


OPERATIONS = tuple(_operation(*row) for row in LATER)
