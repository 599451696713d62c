"""Routes that do not work yet say so."""

import httpx


async def test_a_route_of_a_later_version_answers_501(api: httpx.AsyncClient) -> None:
    answer = await api.post("/api/documents")
    body = answer.json()
    assert (answer.status_code, body["success"], body["code"]) == (501, False, "not_implemented")
    assert body["error"] == body["message"]
    assert "Retry-After" not in answer.headers


async def test_it_says_so_whatever_is_sent(api: httpx.AsyncClient) -> None:
    files = {"file": ("book.txt", b"x" * 2_000_000)}
    answer = await api.post("/api/documents", files=files, data={"title": "ספר"})
    assert (answer.status_code, answer.json()["code"]) == (501, "not_implemented")
