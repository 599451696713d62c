"""What speaks for a text as the answer to a question, on a scale that every corpus shares. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rayapp.text.normalize import normalize
from rayapp.text.terms import token_terms
from rayapp.text.tokens import tokens

# Share of its character 4-grams from which a Hebrew word is held to be another form of one in the
# passage. Source: HeQ questions, by cross-validation (decision record 0023).
SAME_WORD = 0.5
# Characters of the shortest sentence that stands alone: below it a full stop is an abbreviation.
SENTENCE_CHARS = 10
CACHED_QUESTIONS = 100
# What is read of a text and of a question: features are read on the event loop (0.8 ms for 700
# characters), and beyond that a text is a document and a question one, too.
TEXT_CHARS, QUESTION_CHARS, QUESTION_WORDS = 4_000, 1_000, 40

_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n")
_ASKS_NUMBER = re.compile(
    r"""\b(?:how\ (?:many|much|old|long|far|often|tall|big|high)|when
    |what\ (?:year|date|time|day|age)|which\ (?:year|date|day|month))\b
    | (?<!\w)(?:[ובל]?כמה|[ומ]?מתי|עד\ מתי|ב?איז[הו]\ (?:שנה|תאריך|יום|חודש|שעה|גיל))(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER = re.compile(
    r"""\d
    | \b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|forty
    |fifty|sixty|hundred|thousand|million|billion|once|twice|yesterday|today|tomorrow|tonight|ago
    |january|february|march|april|june|july|august|september|october|november|december
    |(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?\b
    | (?<!\w)[ובהלמכש]{0,2}(?:אחת|שני|שתי|שניים|שתיים|שלוש|שלושה|ארבע|ארבעה|חמש|חמישה|שישה|שבעה
    |שמונה|תשע|תשעה|עשר|עשרה|עשרים|שלושים|ארבעים|חמישים|מאה|מאות|אלף|אלפי|אלפים|מיליון|מיליארד
    |פעמיים|אתמול|היום|מחר|ינואר|פברואר|מרץ|אפריל|מאי|יוני|יולי|אוגוסט|ספטמבר|אוקטובר|נובמבר
    |דצמבר|יום\ (?:ראשון|שני|שלישי|רביעי|חמישי|שישי))(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Features:
    """What the logistic model weighs.

    Attributes:
        cosine: of question and text, 0..1.
        coverage: share of the question's words that the text holds.
        passage: the same within its best sentence, where another form of a word counts too.
        words: ln(1 + content words of the question): two of two say less than eight of eight.
        number_missing: 1 when a number or a time is asked for, and the best sentence holds none
            that is not in the question.
    """

    cosine: float
    coverage: float
    passage: float = 0.0
    words: float = 0.0
    number_missing: float = 0.0


class _Word(NamedTuple):
    text: str
    readings: frozenset[int]
    grams: frozenset[int]


def features_of(question: str, text: str, cosine: float | None) -> Features:
    """`cosine` None = the question has no vector."""
    question = question[:QUESTION_CHARS]
    asked = _asked(question)
    sentences = _sentences(text[:TEXT_CHARS])
    words = [_words(sentence) for sentence in sentences]
    there = frozenset[int]().union(*(word.readings for some in words for word in some))
    shares = [_covered(asked, some) for some in words]
    best = shares.index(max(shares))
    wants = bool(_ASKS_NUMBER.search(normalize(question)))
    has = wants and _has_number(asked, sentences[best])
    held = sum(not word.readings.isdisjoint(there) for word in asked)
    return Features(
        cosine=cosine or 0.0,
        coverage=held / len(asked) if asked else 0.0,
        passage=shares[best],
        words=math.log1p(len(asked)),
        number_missing=float(wants and not has),
    )


@lru_cache(maxsize=CACHED_QUESTIONS)
def _asked(question: str) -> tuple[_Word, ...]:
    return tuple(dict.fromkeys(_words(question)))[:QUESTION_WORDS]


def _words(text: str) -> list[_Word]:
    """Content words; stop words say nothing about whether a text answers."""
    found = []
    for token in tokens(normalize(text)):
        terms = token_terms(token)
        if not terms[0].stop:
            readings = frozenset(term.slot for term in terms if term.kind != "c4")
            grams = frozenset(term.slot for term in terms if term.kind == "c4")
            found.append(_Word(token.text, readings, grams))
    return found


def _sentences(text: str) -> list[str]:
    return [one for one in _SENTENCES.split(text) if len(one) > SENTENCE_CHARS] or [text]


def _covered(asked: Sequence[_Word], words: Iterable[_Word]) -> float:
    readings: set[int] = set()
    grams: set[int] = set()
    for word in words:
        readings |= word.readings
        grams |= word.grams
    held = sum(
        not word.readings.isdisjoint(readings)
        or (bool(word.grams) and len(word.grams & grams) >= SAME_WORD * len(word.grams))
        for word in asked
    )
    return held / len(asked) if asked else 0.0


def _has_number(asked: Sequence[_Word], sentence: str) -> bool:
    """A number of the question itself is no answer to it."""
    said = {word.text for word in asked}
    kept = (token.text for token in tokens(normalize(sentence)) if token.text not in said)
    return bool(_NUMBER.search(" ".join(kept)))
