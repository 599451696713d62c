"""Identifiers of a question, and which of them a text holds exactly: tickets, invoices, keys. Pure.

The tokens of BM25 cut them: `INV-001234` is three terms and `מזהה123456` a Hebrew word and a
number, so a neighbour with another number shares most of it.
"""

import re

from rayapp.text.hebrew import is_hebrew, without_prefixes
from rayapp.text.normalize import normalize
from rayapp.text.utterance import reading

# Of one question; beyond that it is a log or a list, and every text would be looked through for
# each. Our choice.
MOST = 16
# Digits that make a number a name, alone and after letters (`INV-123`): shorter ones are counts,
# ages and model names (`COVID-19`). Our choice.
ALONE, AFTER_LETTERS = 5, 3
# Letters and digits of a key that goes to and fro between them (`a1b2c3`; not `h2o`).
KEY_LENGTH = 6
# Groups of digits of an address or a card; a date and a time have three.
NUMBER_GROUPS = 4
# Four digits that are a year in most texts.
YEARS = range(1000, 2100)

_CHUNK = re.compile(r"\w+(?:[-.:/@#+]\w+)*")
_JOINTS = re.compile(r"[-.:/@#+_]+")
_RUNS = re.compile(r"\d+|[^\W\d_]+")
# `1990s`, `100km`, `12am`, `20th`.
_QUANTITY = re.compile(r"\d{1,4}[^\W\d_]{1,2}")
_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[a-z]+")
_MARK = re.compile(r"[\d@_]")
# What may stand right before an identifier, as far as Hebrew particles, and right after it.
_BEFORE = re.compile(r"(?<!\w)(?<!\w[-._@])(?:[ושכלמבה]{1,5}-?)?\Z")
_AFTER = re.compile(r"[-._@]?\w")
_LONGEST_BEFORE = 6


class Identifier:
    """One identifier that a question names.

    `readings`: as it is written, then without the Hebrew particles that it may begin with
    (`ל-INV-001234`); the text may put some before it as well.
    """

    def __init__(self, readings: tuple[str, ...]) -> None:
        self.readings = readings
        # Normalising a text takes far longer than to see that it lacks the digits, or the letters.
        self._digits = max(_DIGITS.findall(readings[-1]), key=len, default="")
        self._letters = max(_LETTERS.findall(readings[-1]), key=len, default="")

    def is_in(self, text: str) -> bool:
        """Whether `text` holds it as a whole: not as a part of a longer one."""
        if self._digits not in text:
            return False
        if not self._digits and text.isascii() and self._letters not in text.lower():
            return False
        plain = _plain(text)
        return any(_stands_in(plain, reading) for reading in self.readings)


# The identifiers of a question are looked for in one text after the other.
@reading
def _plain(text: str) -> str:
    return normalize(text).casefold()


def _stands_in(text: str, reading: str) -> bool:
    """As one expression per identifier would say it: making that takes longer than to look."""
    at = text.find(reading)
    while at >= 0:
        begins = _BEFORE.search(text, max(0, at - _LONGEST_BEFORE), at)
        if begins and not _AFTER.match(text, at + len(reading)):
            return True
        at = text.find(reading, at + 1)
    return False


def identifiers_in(question: str) -> tuple[Identifier, ...]:
    """The first `MOST` different ones of `question`, in order."""
    if _MARK.search(question) is None:  # most questions
        return ()
    found: dict[tuple[str, ...], None] = {}
    for match in _CHUNK.finditer(normalize(question).casefold()):
        readings = _readings(match.group())
        if _names_one(readings[-1]):
            found[readings] = None
            if len(found) == MOST:
                break
    return tuple(map(Identifier, found))


def _readings(word: str) -> tuple[str, ...]:
    """`word`, and what is left of it after each legal Hebrew prefix."""
    if not is_hebrew(word):
        return (word,)
    rests = (rest.lstrip("-") for rest in without_prefixes(word, 1))
    return (word, *dict.fromkeys(rest for rest in rests if rest))


def _names_one(word: str) -> bool:
    """`INV-001234`, `a1b2c3`, `ERR_X`, an address; not a year, a date, `COVID-19` or `100km`."""
    if "@" in word or "_" in word.strip("_"):
        return True
    parts = [part for part in _JOINTS.split(word) if part]
    numbers = [part for part in parts if part.isdecimal()]
    if len(numbers) == len(parts):
        return len(parts) >= NUMBER_GROUPS or any(
            len(part) >= ALONE or (len(parts) == 1 and _is_no_year(part)) for part in parts
        )
    return any(
        len(part) >= ALONE or (len(part) >= AFTER_LETTERS and not _is_year(part))
        for part in numbers
    ) or any(map(_is_key, parts))


def _is_year(number: str) -> bool:
    return len(number) == len(str(YEARS.start)) and int(number) in YEARS


def _is_no_year(number: str) -> bool:
    return len(number) == len(str(YEARS.start)) and not _is_year(number)


def _is_key(part: str) -> bool:
    """Letters and digits in one: enough digits, or more than one change between the two."""
    runs = _RUNS.findall(part)
    digits = sum(len(run) for run in runs if run.isdecimal())
    if not digits or len(runs) == 1 or _QUANTITY.fullmatch(part):
        return False
    return digits >= AFTER_LETTERS or (len(runs) > 2 and len(part) >= KEY_LENGTH)
