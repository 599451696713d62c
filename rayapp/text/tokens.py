"""Splitting a normalised text into words, numbers, addresses and code identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from rayapp.text.hebrew import HEBREW_LETTER

TokenKind = Literal["hebrew", "word", "number", "code"]


class Token(NamedTuple):
    """One token, lower case.

    `parts` are the words inside a compound (`getUserName`, `well-known`, `2023-05-08`).
    """

    text: str
    kind: TokenKind
    parts: tuple[str, ...] = ()


_PATTERN = re.compile(
    rf"""
      (?P<code> https?://[^\s<>"']+ | [A-Za-z0-9._%+-]{{1,64}}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+ )
    | (?P<hebrew> [{HEBREW_LETTER}]+(?:['"][{HEBREW_LETTER}]+)* )
    | (?P<number> \d+(?:[.,:/-]\d+)*(?![\w]) )
    | (?P<word> [^\W{HEBREW_LETTER}]+(?:['’.+#/-][^\W{HEBREW_LETTER}]+)*[+#]* )
    """,
    re.VERBOSE,
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_ENDINGS = re.compile(r"(?:'s|'|\.)$")


def tokens(normalized: str) -> Iterator[Token]:
    """The tokens of a text that `normalize` has seen, in order."""
    for match in _PATTERN.finditer(normalized):
        text = match.group()
        kind = match.lastgroup
        if kind == "hebrew":
            yield Token(text, "hebrew")
        elif kind == "number":
            yield _number(text)
        elif kind == "code":
            text = text.rstrip(".,;:!?)")
            yield Token(text.lower(), "code", _pieces(text))
        else:
            yield _word(text)


def _number(text: str) -> Token:
    if _THOUSANDS.fullmatch(text):
        return Token(text.replace(",", ""), "number")
    parts = tuple(re.split(r"[,:/-]|\.", text))
    return Token(text, "number", parts if len(parts) > 1 else ())


def _word(text: str) -> Token:
    text = _ENDINGS.sub("", text.replace("’", "'"))
    if text.islower() and text.isalpha():
        return Token(text, "word")
    parts = _pieces(text)
    # Capitals at the start only, or an apostrophe inside, do not make an identifier.
    plain = len(parts) <= 1 or ("'" in text and text.replace("'", "").isalpha())
    return Token(text.lower(), "word") if plain else Token(text.lower(), "code", parts)


def _pieces(text: str) -> tuple[str, ...]:
    """Words inside a compound, lower case, without single letters, in order."""
    found = (piece.lower() for piece in _CAMEL.findall(text))
    return tuple(piece for piece in found if len(piece) > 1 or piece.isdigit())
