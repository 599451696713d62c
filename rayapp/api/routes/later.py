"""Routes of the first client whose work does not exist yet: each says so, clearly, with 501."""

from starlette.responses import Response

from rayapp.api.auth import DOCUMENTS
from rayapp.api.errors import error_answer
from rayapp.api.route import CurrentCall, router
from rayapp.core.errors import RayappError
from rayapp.wire.bases import ErrorAnswer

routes = router("not yet")
NOT_IMPLEMENTED = "not_implemented"

URLS_LATER = (
    "This version reads no addresses; download the document and send it to POST /api/memory/books."
)

# Method, path, what it will do, and what to do until then.
LATER: tuple[tuple[str, str, str, str], ...] = (
    ("POST", DOCUMENTS, "Register a document by its address", URLS_LATER),
)
# What is sent to them is not read: an upload is told so before its megabytes and its form count.
UNREAD_PATHS = frozenset(path for method, path, _, _ in LATER if method == "POST")


def _add_later(method: str, path: str, summary: str, instead: str) -> None:
    error = RayappError(instead, code=NOT_IMPLEMENTED)

    async def answered(call: CurrentCall) -> Response:
        return error_answer(error)

    routes.add_api_route(
        path,
        answered,
        methods=[method],
        status_code=501,
        summary=summary,
        description="Not implemented yet: always 501.",
        response_model=ErrorAnswer,
    )


for row in LATER:
    _add_later(*row)
