"""What people read in the screens of the first client: words, no ids and no names of fields."""

import re
from typing import Any

import httpx
import pytest

from tests.support.harness import Harness

PROGRAM = re.compile(r"`|/api/|=true|=false|[a-z0-9]+_[a-z0-9]+|doc_|-77-")
BANK, GHOST = "/api/memory/memory-bank", "/api/memory/ghost"
KNOWN, GONE = "mem-77-known", "mem-77-gone"
REFUSED: list[tuple[str, str, Any]] = [
    ("PUT", f"{BANK}/{GONE}", {"status": "archived"}),
    ("DELETE", f"{BANK}/{GONE}", None),
    ("GET", f"{BANK}/{GONE}", None),
    ("POST", GHOST, {"memoryId": GONE}),
    ("POST", GHOST, {"memoryId": KNOWN}),
    ("DELETE", GHOST, {"memoryId": KNOWN}),
    ("POST", BANK, {"text": "User: hi\nAssistant: hello"}),
    ("GET", "/api/documents/doc_77", None),
    ("DELETE", "/api/memory/books/doc_77", None),
]


@pytest.mark.parametrize("language", ["en", "he"])
@pytest.mark.parametrize(("method", "path", "body"), REFUSED)
async def test_a_refusal_is_said_in_words(
    api: httpx.AsyncClient, method: str, path: str, body: Any, language: str
) -> None:
    await api.post("/api/memory/store", json={"text": "Tea", "memory_id": KNOWN})
    await api.put(f"{BANK}/{KNOWN}", json={"status": "archived"})
    told = await api.request(method, path, json=body, headers={"Accept-Language": language})
    assert told.status_code in (404, 409, 422), told.text
    said = told.json()["error"]
    assert not PROGRAM.search(said), said


async def test_a_document_that_is_here_is_named_by_its_title(
    api: httpx.AsyncClient, world: Harness
) -> None:
    async def send(data: bytes) -> httpx.Response:
        files = {"file": ("Garden.txt", data)}
        return await api.post("/api/memory/books", files=files, data={"title": "Garden"})

    assert (await send(b"Roses grow.")).status_code == 200
    for data in (b"Roses grow.", b"Tulips grow."):
        told = (await send(data)).json()
        assert told["existing_book_id"].startswith("doc_")
        assert "Garden" in told["message"]
        assert not PROGRAM.search(told["message"]), told["message"]
