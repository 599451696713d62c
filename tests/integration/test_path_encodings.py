"""Spellings of paths over real HTTP: through the proxy and the server, none gets past the guard."""

import http.client
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from tests.running import RunningService
from tests.spelling import SPELLINGS

pytestmark = [pytest.mark.ray, pytest.mark.engine]

ASKED = (
    ("GET", "/api/memory/diagnostics", None),
    ("GET", "/api/memory/items/int-spelled", None),
    ("POST", "/api/memory/search", b'{"query": "tea"}'),
)
REFUSED = {400, 403, 404, 405, 422}


def status_of(service: RunningService, method: str, target: str, body: bytes | None) -> int:
    """Of a request line with `target` as it stands, as the user that the guard serves to nobody."""
    address = urlsplit(service.url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
    headers = {"X-User-Id": "system"} | ({"Content-Type": "application/json"} if body else {})
    try:
        connection.request(method, target, body=body, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_no_spelling_gets_past_the_guard(
    service: RunningService, spell: Callable[[str], str]
) -> None:
    for method, path, body in ASKED:
        assert status_of(service, method, path, body) == 403
        status = status_of(service, method, spell(path), body)
        assert status in REFUSED, f"{method} {spell(path)} answers {status}"
