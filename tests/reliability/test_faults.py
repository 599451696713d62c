"""The doors of the service killed -9 under load: every refusal says when to come back."""

import asyncio
import socket
import time
from urllib.parse import urlsplit

import pytest

from rayapp.serve.haproxy_launch import HEADER_LIMIT_S
from tests.bench.faults import measured, misses
from tests.running import RunningService

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.fault, pytest.mark.takes(25)]
LOAD_S = 10.0
# Several times the bars of the fault table: a busy machine is no defect, half a minute without
# HAProxy is one.
GENEROUS_S = {"haproxy": 15.0, "proxy_manager": 15.0, "raylet": 170.0, "search": 20.0}


@pytest.mark.parametrize("kind", sorted(GENEROUS_S))
def test_nothing_is_lost_and_no_refusal_is_final(service: RunningService, kind: str) -> None:
    """No 404 on a route that exists, no 503 without Retry-After, no acknowledged memory gone."""
    row = asyncio.run(measured(service, kind, f"fault-{kind}", LOAD_S))
    assert row["acknowledged"] > 0
    assert list(misses(row | {"bar_s": GENEROUS_S[kind]})) == [], row
    # HAProxy says nothing of its own but "come back": 500 was its word for everything.
    assert set(row["failed"]) <= {"503", "refused", "reset", "timeout"}, row


def test_half_a_request_header_is_not_held_open(service: RunningService) -> None:
    address = urlsplit(service.url)
    begun = time.monotonic()
    with socket.create_connection((address.hostname, address.port or 80)) as slow:
        slow.settimeout(6 * HEADER_LIMIT_S)
        slow.sendall(b"POST /api/memory/search HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        answer = b"".join(iter(lambda: slow.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 408")
    assert time.monotonic() - begun < 5 * HEADER_LIMIT_S
