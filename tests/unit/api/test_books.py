"""Documents over HTTP."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from starlette.formparsers import MultiPartParser

from rayapp.api.hebrew_errors import SENTENCES
from rayapp.api.routes.books import FORM_PIECE_BYTES
from rayapp.core.errors import InvalidInput
from rayapp.documents.reading import read_document
from rayapp.documents.rules import kinds
from rayapp.documents.rules.library import book_id_of, sha256_of
from rayapp.memory.scope import ReadScope
from tests.support.example_world import GARDEN, WAITING, add_books, garden
from tests.support.harness import Harness

BOOKS, UPLOAD, DOCUMENTS = "/api/memory/books", "/api/book-upload", "/api/documents"
BOOK_ID, WAITS = book_id_of(sha256_of(GARDEN.encode())), book_id_of(sha256_of(WAITING))


@pytest.fixture
async def books(world: Harness) -> None:
    """One that is completed, one that waits."""
    await add_books(world)


async def send(api: httpx.AsyncClient, data: bytes = b"A new text.", **fields: Any) -> Any:
    files = {"file": (fields.pop("name", "new.txt"), data)}
    return await api.post(fields.pop("path", BOOKS), files=files, data=fields)


@pytest.mark.parametrize("path", [BOOKS, f"{UPLOAD}/upload"])
async def test_an_upload_is_kept_and_listed(api: httpx.AsyncClient, path: str) -> None:
    answer = await send(api, path=path, title="ספר חדש", author="דנה")
    body = answer.json()
    assert (answer.status_code, body["task_id"]) == (200, body["book_id"])
    (book,) = (await api.get(BOOKS)).json()["books"]
    assert (book["title"], book["author"], book["status"]) == ("ספר חדש", "דנה", "pending")


async def test_others_have_turns_while_a_large_form_is_read(
    api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two pieces of the form that the parser is given."""
    turns, seen = 0, []
    write = MultiPartParser.on_part_data

    def noted(parser: MultiPartParser, data: bytes, start: int, end: int) -> None:
        seen.append(turns)
        write(parser, data, start, end)

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    monkeypatch.setattr(MultiPartParser, "on_part_data", noted)
    beside = asyncio.create_task(other())
    answer = await send(api, b"A line of a long text.\n" * 60_000)
    beside.cancel()
    assert answer.status_code == 200
    assert len(set(seen)) >= 23 * 60_000 // FORM_PIECE_BYTES


async def test_what_is_here_already_is_a_duplicate(api: httpx.AsyncClient, books: None) -> None:
    for data, fields in ((GARDEN.encode(), {"name": "g.md"}), (b"other", {"title": "Garden"})):
        answer = await send(api, data, **fields)
        body = answer.json()
        assert answer.status_code == 409
        assert (body["processing_status"], body["existing_book_id"]) == ("duplicate", BOOK_ID)
        assert body["message"]
    answer = await send(api, b"other", title="Garden", replace="true")
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        ({"json": {"file": "x"}}, 415, "unsupported_media_type"),
        ({"data": {"title": "x"}}, 415, "unsupported_media_type"),
        (
            {"files": {"file": ("a.txt", b"x")}, "data": {"title": "x" * 5_000}},
            400,
            "malformed_form",
        ),
        ({"files": {"other": ("a.txt", b"x")}}, 422, "invalid_input"),
        ({"files": {"file": ("a.exe", b"x")}}, 415, "document_type"),
        ({"files": {"file": ("a.txt", b"")}}, 422, "document_empty"),
        ({"files": {"file": ("a.txt", b"x"), "f2": ("b.txt", b"y")}}, 400, "malformed_form"),
        (
            {"content": b"x", "headers": {"Content-Type": "multipart/form-data"}},
            400,
            "malformed_form",
        ),
        ({"files": {"file": ("a.txt", b"x")}, "data": {"title": "x" * 201}}, 422, "invalid_input"),
        ({"files": {"file": ("a.txt", b"x")}, "data": {"replace": "maybe"}}, 422, "invalid_input"),
    ],
)
async def test_what_is_no_upload_is_refused(
    api: httpx.AsyncClient, sent: dict[str, Any], status: int, code: str
) -> None:
    answer = await api.post(BOOKS, **sent)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert (await api.get(BOOKS)).json()["total"] == 0


async def test_a_file_above_the_limit_is_refused() -> None:
    world = await Harness.open(documents={"max_bytes": 2_000})
    from tests.unit.api.serving import client_of

    async with client_of(world.services) as api:
        for size in (2_001, 200_000):
            answer = await send(api, b"x" * size)
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert (await send(api, b"x" * 2_000)).status_code == 200


async def test_a_document_is_read_searched_and_quoted(api: httpx.AsyncClient, books: None) -> None:
    book = (await api.get(f"{BOOKS}/{BOOK_ID}")).json()["book"]
    assert (book["status"], book["processing_stats"]["chunks_processed"]) == ("completed", 1)
    assert "את הגינה משקים" in book["parsedMarkdown"]
    asked = {"query": "מתי משקים את הגינה?", "book_id": BOOK_ID}
    (hit,) = (await api.get(f"{UPLOAD}/search", params=asked)).json()["results"]
    assert hit["source"]["book"]["title"] == "Garden"
    path = f"{BOOKS}/{BOOK_ID}/chunks/{hit['memory_id']}/surrounding"
    around = (await api.get(path, params={"radius": 2})).json()
    assert [one["chunk_index"] for one in around["chunks"]] == [0]
    assert around["text"] == hit["content"]
    nothing = {"query": "הגינה", "book_id": "doc_none"}
    assert (await api.get(f"{UPLOAD}/search", params=nothing)).json()["results"] == []


async def test_a_memory_that_takes_the_place_of_a_passage_breaks_no_answer(
    api: httpx.AsyncClient, books: None
) -> None:
    place = (await api.get(f"{BOOKS}/{BOOK_ID}")).json()["book"]["processing_stats"]["total_chunks"]
    said = {"chunk_index": place, "overlap": "x", "next": "y", "pages": 7}
    own = {"type": "document", "doc_id": BOOK_ID, "chunk_id": str(place), "book": said}
    body = {"text": "A line of mine", "tier": "books", "memory_id": f"{BOOK_ID}:{place}"}
    assert (await api.post("/api/memory/store", json=body | {"source": own})).status_code == 201
    for path in ("", f"/chunks/{place}/surrounding"):
        assert (await api.get(f"{BOOKS}/{BOOK_ID}{path}")).status_code == 200, path
    asked = {"query": "a line of mine in the garden"}
    assert (await api.post("/api/memory/tools/search_books", json=asked)).status_code == 200


async def test_a_document_is_recognised(api: httpx.AsyncClient, books: None) -> None:
    sha = sha256_of(GARDEN.encode())
    for answer in (
        await api.get(f"{BOOKS}/recognize", params={"hash": sha}),
        await api.post(f"{BOOKS}/recognize", json={"documentHash": sha}),
        await api.post(f"{BOOKS}/recognize", json={"content": GARDEN}),
    ):
        body = answer.json()
        assert (body["recognized"], body["document"]["bookId"]) == (True, BOOK_ID), body
    for wrong in ({}, {"documentHash": "abc"}):
        assert (await api.post(f"{BOOKS}/recognize", json=wrong)).status_code == 422


async def test_progress_is_followed_to_the_end(api: httpx.AsyncClient, books: None) -> None:
    text = (await api.get(f"{UPLOAD}/ws/progress/{BOOK_ID}")).text
    (data,) = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    assert json.loads(data)["processingStage"] == "completed"
    assert (await api.get(f"{UPLOAD}/ws/progress/none")).status_code == 404


@pytest.mark.parametrize("language", ["en", "he"])
async def test_why_a_document_failed_is_said_in_the_language_of_the_reader(
    world: Harness, api: httpx.AsyncClient, language: str
) -> None:
    async def broken(*_: Any) -> Any:
        raise InvalidInput("The file is broken; save it again.", code="document_broken")

    book = (await send(api)).json()["book_id"]
    await world.reading(broken).run_once()
    headers = {"Accept-Language": language}
    text = (await api.get(f"{UPLOAD}/ws/progress/{book}", headers=headers)).text
    assert "event: error" in text
    (data,) = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    hebrew, english = SENTENCES["document_broken"], "The file is broken; save it again."
    wanted = hebrew if language == "he" else english
    assert data["error"] == data["processingMessage"] == data["message"] == wanted


BROKEN: dict[str, Any] = {"name": "a.pdf", "data": b"%PDF-1.7\nbroken"}


@pytest.mark.process
@pytest.mark.parametrize("language", ["en", "he"])
async def test_a_broken_file_says_so_wherever_it_is_shown(
    world: Harness, api: httpx.AsyncClient, language: str
) -> None:
    book = (await send(api, **BROKEN)).json()["book_id"]
    await world.reading(read_document).run_once()
    headers = {"Accept-Language": language}
    (row,) = (await api.get(BOOKS, headers=headers)).json()["books"]
    detail = (await api.get(f"{BOOKS}/{book}", headers=headers)).json()["book"]
    (shown,) = (await api.get(DOCUMENTS, headers=headers)).json()["documents"]
    opened = (await api.get(f"{DOCUMENTS}/{book}", headers=headers)).json()
    text = (await api.get(f"{UPLOAD}/ws/progress/{book}", headers=headers)).text
    (event,) = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    for one in (shown, opened):
        one |= {f"error_{name.lower()}": one.pop(f"error{name}") for name in ("Code", "En", "He")}
    for one in (row, detail, shown, opened, event):
        assert (one["status"], one["error_code"]) == ("failed", "document_broken")
        assert "broken; open it" in one["error_en"]
        assert one["error_he"] == SENTENCES["document_broken"]
        assert one["error"] == one[f"error_{language}"]
    for one in (row, detail, event):
        assert one["processingMessage"] == one["error"]


async def test_a_list_can_leave_out_what_failed(
    world: Harness, api: httpx.AsyncClient, books: None
) -> None:
    async def broken(*_: Any) -> Any:
        raise InvalidInput("The file is broken; save it again.", code="document_broken")

    await send(api, b"bad", name="bad.txt", title="Bad")
    for _ in range(3):
        await world.reading(broken).run_once()
    for path, rows in ((BOOKS, "books"), (DOCUMENTS, "documents")):
        all_of_them = (await api.get(path)).json()
        left = (await api.get(path, params={"failed": "false"})).json()
        assert {one["status"] for one in all_of_them[rows]} >= {"failed", "completed"}
        assert "failed" not in {one["status"] for one in left[rows]}
        assert left["total"] == len(left[rows]) < all_of_them["total"] == len(all_of_them[rows])
        assert all(one["error"] is None for one in left[rows])


def test_all_that_a_document_fails_by_has_its_sentence() -> None:
    """In Hebrew with what to do, as the English ones have it."""
    codes = (kinds.WRONG_TYPE, kinds.BROKEN, kinds.ENCRYPTED, kinds.EMPTY, kinds.TOO_SLOW)
    for code in (*codes, kinds.MEMORY, "document_failed", "upload_gone", "too_large"):
        assert "יש ל" in SENTENCES[code]


async def test_a_file_that_says_the_same_is_asked_by_its_own_id(
    world: Harness, api: httpx.AsyncClient, books: None
) -> None:
    data = b"in another format"
    own = (await send(api, data, title="Second")).json()["book_id"]
    work = world.reading(garden)
    await work.run_once(await world.services.books.get(ReadScope("admin"), own))
    asked = {"query": "מתי משקים את הגינה?", "book_id": own}
    (hit,) = (await api.get(f"{UPLOAD}/search", params=asked)).json()["results"]
    assert hit["source"]["doc_id"] == BOOK_ID
    known = (await api.get(f"{BOOKS}/recognize", params={"hash": sha256_of(data)})).json()
    assert known["document"]["bookId"] == own
    shown = (await api.get(f"{BOOKS}/{own}")).json()["book"]["parsedMarkdown"]
    known = (await api.post(f"{BOOKS}/recognize", json={"content": shown})).json()
    assert known["document"]["bookId"] == BOOK_ID
    answer = await api.delete(f"{BOOKS}/{BOOK_ID}")
    assert (answer.status_code, answer.json()["code"]) == (409, "document_linked")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"author": "Dana"}, 1),
        ({"author": "Noa"}, 0),
        ({"section": "Garden"}, 1),
        ({"sections": "Other"}, 0),
        ({"has_code": "false"}, 1),
        ({"has_code": "true"}, 0),
        ({"page_from": 1}, 0),
    ],
)
async def test_a_search_is_narrowed(
    api: httpx.AsyncClient, books: None, asked: dict[str, Any], found: int
) -> None:
    params = {"query": "מתי משקים את הגינה?", **asked}
    answer = await api.get(f"{UPLOAD}/search", params=params)
    assert len(answer.json()["results"]) == found, answer.text


async def test_a_stream_that_ends_before_the_work_says_so() -> None:
    world = await Harness.open(events={"stream_s": 1})
    from tests.unit.api.serving import client_of

    await add_books(world)
    async with client_of(world.services) as api:
        text = (await api.get(f"{UPLOAD}/ws/progress/{WAITS}")).text
    names = [line[7:] for line in text.splitlines() if line.startswith("event: ")]
    assert names == ["progress", "unfinished"]


async def test_cancel_and_delete(api: httpx.AsyncClient, books: None) -> None:
    assert (await api.post(f"{UPLOAD}/cancel/{WAITS}")).status_code == 200
    assert (await api.post(f"{UPLOAD}/cancel/{WAITS}")).status_code == 409
    assert (await api.get(f"{BOOKS}/{WAITS}")).json()["book"]["status"] == "cancelled"
    assert (await api.delete(f"{BOOKS}/{BOOK_ID}")).json()["deleted_chunks"] == 1
    assert (await api.delete(f"{BOOKS}/{BOOK_ID}")).status_code == 404
    assert (await api.get(f"{UPLOAD}/search", params={"query": "הגינה"})).json()["results"] == []


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_the_old_path_leads_on(api: httpx.AsyncClient, method: str) -> None:
    answer = await api.request(method, f"{UPLOAD}/books", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, BOOKS)


async def test_the_library_has_the_same_documents(api: httpx.AsyncClient, books: None) -> None:
    body = (await api.get("/api/documents", params={"limit": 1, "skip": 1})).json()
    assert ([one["id"] for one in body["documents"]], body["total"]) == ([BOOK_ID], 2)
    assert not body["hasMore"]
    assert (await api.get(f"/api/documents/{BOOK_ID}")).json()["fileType"] == "md"
    assert (await api.get("/api/documents/none")).status_code == 404


async def test_others_see_nothing_of_it(api: httpx.AsyncClient, books: None) -> None:
    noa = {"X-User-Id": "noa"}
    assert (await api.get(BOOKS, headers=noa)).json()["total"] == 0
    assert (await api.get(f"{BOOKS}/{BOOK_ID}", headers=noa)).status_code == 404
    assert (await api.delete(f"{BOOKS}/{BOOK_ID}", headers=noa)).status_code == 404


async def test_clearing_takes_documents(api: httpx.AsyncClient, books: None) -> None:
    assert (await api.post("/api/data/clear/documents?confirm=DELETE")).status_code == 200
    assert (await api.get(BOOKS)).json()["total"] == 0
