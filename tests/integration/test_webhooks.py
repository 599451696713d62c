"""Webhooks of the running service, received by a program that checks them as any other would."""

import base64
import hashlib
import hmac
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import orjson
import pytest

from tests.running import RunningService, until

pytestmark = [pytest.mark.ray, pytest.mark.engine]
USER, OTHER = "int-webhooks", "int-webhooks-other"
# What a verifier allows between the time of a request and its own.
TOLERANCE_S = 300
FACT = "דנה עברה לחיפה; Dana moved to Haifa"


class Receiver(ThreadingHTTPServer):
    """Keeps what was sent; `refusals`: so many requests are answered 503 first."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[dict[str, str], bytes]] = []
        self.refusals = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/events"

    def bodies(self) -> list[dict[str, Any]]:
        return [orjson.loads(body) for _, body in self.seen]


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append(({k.lower(): v for k, v in self.headers.items()}, body))
        refused, self.server.refusals = self.server.refusals > 0, self.server.refusals - 1
        self.send_response(503 if refused else 204)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def verified(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As Standard Webhooks describes it."""
    assert abs(time.time() - int(headers["webhook-timestamp"])) < TOLERANCE_S
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    made = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return f"v1,{made}" in headers["webhook-signature"].split(" ")


def store(http: httpx.Client, text: str) -> str:
    answer = http.post("/api/memory/store", json={"text": text})
    assert answer.status_code == 201, answer.text
    memory_id: str = answer.json()["memory_id"]
    return memory_id


def test_what_happens_is_told_signed_without_its_text(
    service: RunningService, receiver: Receiver
) -> None:
    receiver.refusals = 1
    with service.client(USER) as http, service.client(OTHER) as other:
        wanted = {"url": receiver.url, "events": ["stored", "archived"]}
        made = http.post("/api/webhooks", json=wanted)
        assert made.status_code == 200, made.text
        secret, webhook_id = made.json()["secret"], made.json()["webhook"]["webhook_id"]
        path = f"/api/webhooks/{webhook_id}"
        store(other, "of somebody else")
        memory_id = store(http, FACT)
        assert http.post(f"/api/memory/items/{memory_id}/archive", json={}).status_code == 200
        until(lambda: {body["type"] for body in receiver.bodies()} >= {"stored", "archived"})
        until(lambda: len(http.get(f"{path}/deliveries?state=done").json()["deliveries"]) == 2)
        assert all(verified(secret, headers, body) for headers, body in receiver.seen)
        assert {body["data"]["memory_id"] for body in receiver.bodies()} == {memory_id}
        assert not any("Haifa" in body.decode() for _, body in receiver.seen)
        assert len({headers["webhook-id"] for headers, _ in receiver.seen}) == 2
        assert len(receiver.seen) == 3  # one was refused first

        assert other.get(path).status_code == 404
        tried = http.post(f"{path}/test").json()
        assert (tried["delivered"], tried["status"]) == (True, 204)
        assert receiver.bodies()[-1]["type"] == "test"

        gone = http.delete("/api/memory/user?confirm=DELETE")
        assert gone.status_code == 200, gone.text
        assert gone.json()["complete"], gone.text
        assert http.get(path).status_code == 404


def test_an_address_that_leads_nowhere_is_refused(service: RunningService) -> None:
    with service.client(USER) as http:
        for url in ("ftp://a.example/", "http://no-such-host.invalid/"):
            answer = http.post("/api/webhooks", json={"url": url})
            assert answer.status_code == 422, answer.text
            assert answer.json()["details"] == {"field": "url"}
