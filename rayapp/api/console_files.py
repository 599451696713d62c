"""The console at `/console`: built pages, served as they lie in `rayapp/api/console`.

Their source is `console/` of the repository (decision 0099). Nothing of a user is in them: they ask
the API, as every other client does.
"""

import gzip
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rayapp.api.auth import CONSOLE, CONSOLE_FILE
from rayapp.core.errors import NotFound

FOLDER = Path(__file__).parent / "console"
PAGE = "index.html"
# Of files whose name holds a hash of what is in them, and of all others.
HASHED, A_YEAR, ASK_AGAIN = "assets/", "public, max-age=31536000, immutable", "no-cache"
# What a page may load: our own files, and nothing that stands in the page itself.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
GUARDS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Vary": "Accept-Encoding",
}
# What is compressed already.
PACKED = frozenset({".woff2", ".png"})


@dataclass(frozen=True, slots=True)
class BuiltFile:
    """One file; `packed` is empty where that would save nothing."""

    body: bytes
    packed: bytes
    headers: Mapping[str, str]


@cache
def built_files() -> Mapping[str, BuiltFile]:
    """All of them by their path in the folder, read once per process."""
    return {
        path.relative_to(FOLDER).as_posix(): _read(path)
        for path in sorted(FOLDER.rglob("*"))
        if path.is_file()
    }


def _read(path: Path) -> BuiltFile:
    body = path.read_bytes()
    hashed = path.relative_to(FOLDER).as_posix().startswith(HASHED)
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    text = kind.startswith("text/") or kind.endswith(("javascript", "xml"))
    headers = {
        **GUARDS,
        "Content-Type": f"{kind}; charset=utf-8" if text else kind,
        "Cache-Control": A_YEAR if hashed else ASK_AGAIN,
        # Weak: the same for both encodings.
        "ETag": f'W/"{sha256(body).hexdigest()[:20]}"',
    }
    packed = b"" if path.suffix in PACKED else gzip.compress(body, mtime=0)
    return BuiltFile(body, packed, headers)


async def show(request: Request) -> Response:
    """A file of the console; of any other address its page, which knows what to show there."""
    name = request.path_params.get("path", "")
    files = built_files()
    found = files.get(name)
    if found is None:
        if name.startswith(HASHED):
            raise NotFound(f"No file /console/{name}; load the page again.", code="route_not_found")
        found = files[PAGE]
    headers = dict(found.headers)
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    body = found.body
    if found.packed and "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = found.packed, "gzip"
    return Response(body, headers=headers)


ROUTES = (Route(CONSOLE, show, methods=["GET"]), Route(CONSOLE_FILE, show, methods=["GET"]))
