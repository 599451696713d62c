"""Every kind of error has its sentence in both languages, and English is what it was."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.api.errors import CODES, ERRORS
from rayapp.api.hebrew_errors import SENTENCES, prefers_hebrew

HEBREW = {"Accept-Language": "he-IL,he;q=0.9,en;q=0.8"}
STORE = "/api/memory/store"


def test_every_kind_of_error_has_its_sentence_in_both_languages() -> None:
    english = {kind.default_code: row.when for kind, row in ERRORS.items()}
    english |= {code: row.when for code, row in CODES.items()}
    assert SENTENCES.keys() == english.keys()
    for code, sentence in SENTENCES.items():
        assert any("א" <= letter <= "ת" for letter in sentence), code
        assert sentence.endswith("."), code
        assert not any("א" <= letter <= "ת" for letter in english[code]), code
    assert len(set(SENTENCES.values())) == len(SENTENCES)


@pytest.mark.parametrize(
    ("accepted", "hebrew"),
    [
        ("he", True),
        ("he-IL,he;q=0.9,en;q=0.8", True),
        ("iw", True),
        ("HE; Q=0.4", True),
        ("en-US,en;q=0.9,he;q=0.5", False),
        ("en,he", False),
        ("he;q=0", False),
        ("he;q=x", False),
        ("her", False),
        ("*", False),
        ("", False),
    ],
)
def test_what_a_header_asks_for(accepted: str, hebrew: bool) -> None:
    assert prefers_hebrew(accepted) is hebrew


@given(st.text(max_size=60))
def test_any_header_is_read(accepted: str) -> None:
    assert prefers_hebrew(accepted) in (True, False)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", STORE, {"text": "  "}),
        ("POST", STORE, {"text": "x", "importance": 7}),
        ("POST", STORE, ["no object"]),
        ("GET", "/api/memory/items/nobody", None),
        ("GET", "/api/nowhere", None),
        ("DELETE", STORE, None),
    ],
)
async def test_the_same_error_in_either_language(
    api: httpx.AsyncClient, method: str, path: str, body: object
) -> None:
    plain = await api.request(method, path, json=body)
    english = await api.request(method, path, json=body, headers={"Accept-Language": "en-US"})
    hebrew = await api.request(method, path, json=body, headers=HEBREW)
    assert english.content == plain.content
    assert "content-language" not in english.headers
    assert hebrew.status_code == plain.status_code
    assert hebrew.headers["content-language"] == "he"
    told, before = hebrew.json(), plain.json()
    assert told["message_en"] == before["message"]
    assert told["message"] == told["error"]
    assert SENTENCES[told["code"]] in told["message"]
    same = ("success", "code", "details")
    assert [told[name] for name in same] == [before[name] for name in same]
    assert "message_en" not in before


async def test_the_protocol_of_others_keeps_its_shape(api: httpx.AsyncClient) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    answer = await api.post("/v1/chat/completions", json=body, headers=HEBREW)
    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == SENTENCES["model_down"]
