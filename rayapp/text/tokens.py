"""From a normalised text to terms: its language, its words, and what each adds to the sparse
vector.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from rayapp.text.hebrew import GERESH, GERSHAYIM, HEBREW_LETTER, STOP_WORDS, unify_finals
from rayapp.text.lemmas import lemmas
from rayapp.text.utterance import LONGEST_WORD, SHORT_CHARS, Utterance, reading, word_reading

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


def tokens(normalized: str) -> Iterable[Token]:
    """The tokens of a text that `normalize` has seen, in order."""
    kept = type(normalized) is Utterance or len(normalized) <= SHORT_CHARS
    return _all_of(normalized) if kept else _read(normalized)


@reading
def _all_of(normalized: str) -> tuple[Token, ...]:
    return tuple(_read(normalized))


def _read(normalized: str) -> Iterator[Token]:
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
    if text.isdigit():
        return Token(text, "number")
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


# What one token adds to the sparse vector: raw word, lemmas, Hebrew character 4-grams.
#
# Kinds keep apart: `רכב`, `lemma:רכב` and `c4:רכבי` are three terms of the same word.

TermKind = Literal["raw", "lemma", "c4"]

GRAM_LETTERS = 4


class Term(NamedTuple):
    """A term, its index in the sparse space (u32) and its frequency per occurrence, 0..1."""

    text: str
    slot: int
    kind: TermKind
    weight: float
    stop: bool


def term_index(text: str) -> int:
    """CRC-32 of the UTF-8 bytes: fast, in the standard library, equal on every machine."""
    return zlib.crc32(text.encode("utf-8"))


def token_terms(token: Token, vocabulary: frozenset[str] = frozenset()) -> tuple[Term, ...]:
    """All terms of one token. Stop words give their raw form only, and so does what is no word of
    any language: thousands of terms, which nobody asks for again."""
    text, kind, parts = token
    if len(text) > LONGEST_WORD and not parts:
        return (_term("raw", text, 1.0),)
    return _terms_of(text, kind, parts, vocabulary)


@word_reading
def _terms_of(
    text: str, kind: TokenKind, parts: tuple[str, ...], vocabulary: frozenset[str]
) -> tuple[Term, ...]:
    stop = text in STOP_WORDS
    found = [_term("raw", text, 1.0, stop)]
    if stop:
        return tuple(found)
    if kind == "hebrew":
        found += _readings(text, vocabulary) + _grams(text)
    elif kind == "word":
        found += _readings(text, vocabulary)
    for part in parts:
        found.append(_term("raw", part, 1.0, part in STOP_WORDS))
        if part.isalpha() and part not in STOP_WORDS:
            found += _readings(part, vocabulary)
    return tuple(found)


def _readings(word: str, vocabulary: frozenset[str]) -> list[Term]:
    """Each reading counts in full: an ambiguous word must not lose to a plain one."""
    return [_term("lemma", form, 1.0) for form in lemmas(word, vocabulary)]


def _grams(word: str) -> list[Term]:
    word = word.replace(GERSHAYIM, "").replace(GERESH, "")
    # The only gram of a four-letter word is the word: it would count the raw term twice.
    count = len(word) - GRAM_LETTERS + 1 if len(word) > GRAM_LETTERS else 0
    return [_term("c4", word[at : at + GRAM_LETTERS], 1.0) for at in range(count)]


def _term(kind: TermKind, text: str, weight: float, stop: bool = False) -> Term:
    plain = unify_finals(text)
    name = plain if kind == "raw" else f"{kind}:{plain}"
    return Term(name, term_index(name), kind, weight, stop)
