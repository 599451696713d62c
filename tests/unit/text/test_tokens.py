"""Tokens: compounds keep their whole and give their parts."""

import pytest

from rayapp.text.normalize import normalize
from rayapp.text.tokens import Token, token_terms, tokens


def split(text: str) -> list[Token]:
    return list(tokens(normalize(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", [Token("getusername", "code", ("get", "user", "name"))]),
        ("HTTPServer", [Token("httpserver", "code", ("http", "server"))]),
        ("snake_case", [Token("snake_case", "code", ("snake", "case"))]),
        ("well-known", [Token("well-known", "code", ("well", "known"))]),
        ("node.js", [Token("node.js", "code", ("node", "js"))]),
        ("dan@x.co.il", [Token("dan@x.co.il", "code", ("dan", "co", "il"))]),
        ("2023-05-08", [Token("2023-05-08", "number", ("2023", "05", "08"))]),
        ("1,000.50", [Token("1000.50", "number")]),
        ("Python 3.11", [Token("python", "word"), Token("3.11", "number", ("3", "11"))]),
        ("C++ C#", [Token("c++", "word"), Token("c#", "word")]),
        ("Dana’s don't", [Token("dana", "word"), Token("don't", "word")]),
        ("5kg", [Token("5kg", "code", ("5", "kg"))]),
        ('צה"ל', [Token('צה"ל', "hebrew")]),
        ('"שלום" אמר', [Token("שלום", "hebrew"), Token("אמר", "hebrew")]),
        ("רח' הרצל", [Token("רח", "hebrew"), Token("הרצל", "hebrew")]),
        ("בית־ספר", [Token("בית", "hebrew"), Token("ספר", "hebrew")]),
        ("ב-2023", [Token("ב", "hebrew"), Token("2023", "number")]),
        ("Привет", [Token("привет", "word")]),
        ("?! …", []),
    ],
)
def test_tokens(text: str, expected: list[Token]) -> None:
    assert split(text) == expected


def test_link_keeps_its_words_and_drops_the_full_stop() -> None:
    (link,) = split("https://example.org/docs.")
    assert link.text == "https://example.org/docs"
    assert "docs" in link.parts


def test_what_is_no_word_of_any_language_has_one_term() -> None:
    """Thousands of grams of it, kept for the next search, filled the memory."""
    (token,) = tokens("א" * 1_000)
    assert [term.kind for term in token_terms(token)] == ["raw"]
    (link,) = tokens("https://example.org/" + "/".join(["budget"] * 20))
    assert "budget" in {term.text for term in token_terms(link)}
