"""An export on a real stack whose reader takes longer than any limit of a request."""

import base64
import io
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient

from rayapp.portability.archive import open_zip
from tests.running import RunningService

# It sleeps most of its time: beside others, and not after them.
pytestmark = [pytest.mark.ray, pytest.mark.engine]
USER = "slow-reader"
VERSIONS, VERSION_BYTES = 5_000, 9_000  # more than all buffers on the way hold
READ_S = 64.0  # a request's limit is 60
PIECE_BYTES = 1 << 16


@pytest.fixture
def expected(service: RunningService) -> Iterator[int]:
    """Versions of the reader, which others of this stack do not have to carry afterwards."""
    yield plant_versions(service, USER)
    mongo = service.settings.mongo
    with MongoClient[dict[str, Any]](mongo.uri) as client:
        client[mongo.database]["memory_versions"].delete_many({"user_id": USER})


def test_a_slow_reader_gets_the_whole_of_an_export(service: RunningService, expected: int) -> None:
    with service.client(USER) as http:
        # What is random packs to what it was before base64.
        pause_s = READ_S / (VERSIONS * VERSION_BYTES / PIECE_BYTES)
        found, begun = io.BytesIO(), time.monotonic()
        with http.stream("GET", "/api/memory/backup/export?format=zip") as answer:
            assert answer.status_code == 200
            for piece in answer.iter_raw(PIECE_BYTES):
                found.write(piece)
                time.sleep(pause_s)
    took_s = time.monotonic() - begun
    print(f"{found.tell():,} bytes in {took_s:.1f} s")
    assert took_s > READ_S - 1
    archive = open_zip(found, max_bytes=1 << 30)
    counts = {one.name: sum(1 for _ in archive.lines(one.name)) for one in archive.collections()}
    assert counts["memory_versions"] == expected


def plant_versions(service: RunningService, user: str) -> int:
    """Versions of one memory, written beside the service; how many there are."""
    with service.client(user) as http:
        made = http.post("/api/memory/store", json={"text": "Dana reads slowly", "memory_id": "s"})
        assert made.is_success, made.text
        changed = {"text": "Dana reads very slowly", "reason": "seen"}
        assert http.patch("/api/memory/items/s", json=changed).is_success
    mongo = service.settings.mongo
    with MongoClient[dict[str, Any]](mongo.uri) as client:
        versions = client[mongo.database]["memory_versions"]
        first = versions.find_one({"user_id": user})
        assert first is not None
        versions.insert_many(
            first
            | {
                "_id": f"{first['_id']}-{number}",
                "version": 1_000 + number,
                "text": base64.b64encode(os.urandom(VERSION_BYTES)).decode(),
            }
            for number in range(VERSIONS)
        )
        return versions.count_documents({"user_id": user})
