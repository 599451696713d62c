"""What a server hands an application, for tests and benches without a server."""

from collections.abc import Sequence
from typing import Any


def posted(path: str, length: int, headers: Sequence[tuple[bytes, bytes]] = ()) -> dict[str, Any]:
    """The scope of a POST from this machine with so many bytes of JSON."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [
            (b"host", b"127.0.0.1"),
            (b"content-type", b"application/json"),
            (b"content-length", str(length).encode()),
            *headers,
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
