"""What one token adds to the sparse vector: raw word, lemmas, Hebrew character 4-grams.

Kinds keep apart: `רכב`, `lemma:רכב` and `c4:רכבי` are three terms of the same word.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Literal, NamedTuple

from rayapp.text.hebrew import GERESH, GERSHAYIM, unify_finals
from rayapp.text.lemmas import CACHE_WORDS, lemmas
from rayapp.text.stopwords import STOP_WORDS
from rayapp.text.tokens import Token

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


@lru_cache(maxsize=CACHE_WORDS)
def token_terms(token: Token, vocabulary: frozenset[str] = frozenset()) -> tuple[Term, ...]:
    """All terms of one token. Stop words give their raw form only."""
    stop = token.text in STOP_WORDS
    found = [_term("raw", token.text, 1.0, stop)]
    if stop:
        return tuple(found)
    if token.kind == "hebrew":
        found += _readings(token.text, vocabulary) + _grams(token.text)
    elif token.kind == "word":
        found += _readings(token.text, vocabulary)
    for part in token.parts:
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
