"""JSON as language models write it: in prose and fences, cut off, with quotes and commas amiss.

One pass, bounded depth, no invented values. Written here because the known library for it needs
minutes for a hostile answer of 60 kB and reads prose as values (decision 0028).
"""

import json
import math
import re
from collections import deque
from dataclasses import dataclass
from typing import Any, NoReturn

# An answer of a helper has a few hundred tokens; more than this is a fault or an attack.
MAX_CHARS = 200_000
# No answer nests deeper than six; the limit keeps the recursion far from Python's own.
MAX_DEPTH = 32
# Values of one answer that are looked at, the last ones: models reason first and answer last.
MAX_VALUES = 32
INT64 = 2**63

_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n?")
_OPENER = re.compile(r"[{\[]")
_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[+-]?(?:\d{1,64}\.?\d{0,64}|\.\d{1,64})(?:[eE][+-]?\d{1,4})?(?![\w.])")
_WORD = re.compile(r"[^\W\d][\w.$-]*")
_PLAIN = re.compile(r"[^\\\"'”’]+")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CLOSERS = {'"': '"', "'": "'", "“": '”"', "‘": "’'"}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# JSON, Python and JavaScript; what is no number there is nothing here.
_LITERALS = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "nan": None,
    "infinity": None,
    "undefined": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """A value of an answer. `repairs`: what was amiss; `start`, `end`: where it stood."""

    value: Any
    repairs: tuple[str, ...] = ()
    start: int = 0
    end: int = 0


def parse_json(text: str, *, keep_cut: bool = False) -> ParsedJson | None:
    """The JSON value of an answer, None when there is none. Of several the longest, then the last.

    keep_cut: keep what an answer that was cut off had begun; otherwise half a value is no value.
    """
    found = json_values(text, keep_cut=keep_cut)
    return max(found, key=lambda one: (one.end - one.start, one.start), default=None)


def json_values(
    text: str, *, keep_cut: bool = False, most: int | None = MAX_VALUES
) -> list[ParsedJson]:
    """The objects and arrays of an answer in their order, the last `most` of them."""
    whole = _strict(text[:MAX_CHARS])
    if whole is not None and len(text) <= MAX_CHARS:
        return [whole]
    text = text[:MAX_CHARS]
    first = len(text) - len(text.lstrip())
    last = len(text.rstrip())
    fence = ("fence",) if _FENCE.search(text) else ()
    found: deque[ParsedJson] = deque(maxlen=most)
    at = 0
    while (opener := _OPENER.search(text, at)) is not None:
        reader = _Reader(text, opener.start(), keep_cut)
        value, at = reader.read()
        if value is not None:
            alone = opener.start() <= first and at >= last
            around = () if alone else fence or ("prose",)
            marks = tuple(dict.fromkeys((*reader.repairs, *around)))
            found.append(ParsedJson(value, marks, opener.start(), at))
    return list(found)


def _strict(text: str) -> ParsedJson | None:
    try:
        value = json.loads(
            text, parse_constant=refuse_constant, parse_float=_finite, parse_int=_whole
        )
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list) or _SURROGATE.search(text) or "\\u" in text:
        # Escapes may name half a character, which no store takes: the reader below mends them.
        return None
    return ParsedJson(value, (), 0, len(text)) if _shallow(value, MAX_DEPTH) else None


def refuse_constant(name: str) -> NoReturn:
    """NaN and Infinity are no JSON."""
    raise ValueError(name)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(digits)
    return value


def _whole(digits: str) -> int | float:
    value = int(digits)
    return value if -INT64 <= value < INT64 else _finite(digits)


def _shallow(value: Any, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    children = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_shallow(child, depth - 1) for child in children)


class _NotJson(Exception):
    """Here is no value; the search goes on behind `at`."""


class _Cut:
    """What an answer that was cut off had begun."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Reader:
    """Reads one object or array that starts at `at`, forward only."""

    def __init__(self, text: str, at: int, keep_cut: bool) -> None:
        self._text = text
        self._at = at
        self._start = at
        self._keep_cut = keep_cut
        self.repairs: list[str] = []

    def read(self) -> tuple[Any, int]:
        """The value, or None when it is no JSON, and where the next search begins."""
        try:
            value = self._value(MAX_DEPTH, in_object=False)
        except _NotJson:
            return None, max(self._at, self._start + 1)
        value = value.value if isinstance(value, _Cut) else value
        return value, max(self._at, self._start + 1)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self) -> None:
        """Over white space and comments."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            two = self._text[self._at : self._at + 2]
            if two not in ("//", "/*"):
                return
            end = self._text.find("\n" if two == "//" else "*/", self._at)
            self._at = len(self._text) if end < 0 else end + (1 if two == "//" else 2)
            self.repairs.append("comment")

    def _value(self, depth: int, *, in_object: bool) -> Any:
        head = self._peek()
        if head in ("{", "["):
            if depth == 0:
                raise _NotJson
            return self._object(depth - 1) if head == "{" else self._array(depth - 1)
        if head in _CLOSERS and head:
            return self._string(key=False, in_object=in_object)
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            return self._number(number)
        return self._word(in_object)

    def _object(self, depth: int) -> Any:
        self._at += 1
        made: dict[str, Any] = {}
        while True:
            self._commas()
            head = self._peek()
            if head == "}":
                self._at += 1
                return made
            if head == "]":  # the brace is missing: an array around it goes on
                self.repairs.append("bracket")
                return made
            if not head or not self._pair(made, depth):
                return self._ended(made)

    def _pair(self, made: dict[str, Any], depth: int) -> bool:
        """One key with its value; False when the text ended within it."""
        key = self._key()
        self._skip()
        if isinstance(key, _Cut) or not self._peek():
            return False
        if self._peek() != ":":
            raise _NotJson
        self._at += 1
        self._skip()
        if not self._peek():
            return False
        if self._peek() in ("}", ","):
            self.repairs.append("empty")
            return True
        value = self._value(depth, in_object=True)
        if not isinstance(value, _Cut):
            made[key] = value
            return True
        if self._keep_cut or isinstance(value.value, dict | list):
            made[key] = value.value
        return False

    def _array(self, depth: int) -> Any:
        self._at += 1
        made: list[Any] = []
        while True:
            self._commas()
            head = self._peek()
            if head == "]":
                self._at += 1
                return made
            if head == "}":
                self.repairs.append("bracket")
                return made
            if not head:
                return self._ended(made)
            value = self._value(depth, in_object=False)
            if isinstance(value, _Cut):
                # An unfinished element would look like one that lacks its fields.
                if self._keep_cut:
                    made.append(value.value)
                return self._ended(made)
            made.append(value)

    def _ended(self, made: Any) -> _Cut:
        self.repairs.append("cut")
        return _Cut(made)

    def _commas(self) -> None:
        """To the next element. A comma too many or too few is no fault of the values."""
        self._skip()
        seen = 0
        while self._peek() in (",", ";") and self._peek():
            seen += 1
            self._at += 1
            self._skip()
        if seen > 1 or (seen and self._peek() in ("}", "]")):
            self.repairs.append("comma")

    def _key(self) -> str | _Cut:
        if self._peek() in _CLOSERS:
            key: str | _Cut = self._string(key=True, in_object=True)
            return key
        word = _WORD.match(self._text, self._at)
        if word is None:
            raise _NotJson
        self._at = word.end()
        self.repairs.append("bare")
        return word.group()

    def _number(self, found: re.Match[str]) -> Any:
        self._at = found.end()
        digits = found.group()
        try:
            plain = digits.lstrip("+-").isdecimal()
            value = _whole(digits) if plain else _finite(digits)
        except ValueError:
            raise _NotJson from None
        return _Cut(value) if self._at == len(self._text) else value

    def _word(self, in_object: bool) -> Any:
        """true, None, …; behind a colon any word stands for itself."""
        word = _WORD.match(self._text, self._at)
        if word is None:
            raise _NotJson
        name = word.group().lower()
        if name not in _LITERALS and not in_object:
            self._at = word.end()
            raise _NotJson
        self._at = word.end()
        if self._at == len(self._text):
            return _Cut(_LITERALS.get(name, word.group()))
        if name in _LITERALS:
            if word.group() not in ("true", "false", "null"):
                self.repairs.append("literal")
            return _LITERALS[name]
        self.repairs.append("bare")
        return word.group()

    def _string(self, *, key: bool, in_object: bool) -> Any:
        """A quote ends it only where something of JSON follows: Hebrew writes ד"ר inside words."""
        opener = self._peek()
        closers = _CLOSERS[opener]
        if opener != '"':
            self.repairs.append("quote")
        self._at += 1
        parts: list[str] = []
        while self._at < len(self._text):
            plain = _PLAIN.match(self._text, self._at)
            if plain is not None:
                parts.append(plain.group())
                self._at = plain.end()
                continue
            head = self._peek()
            self._at += 1
            if head == "\\":
                parts.append(self._escape())
            elif head in closers and self._closes(key, in_object):
                return self._repair("".join(parts))
            else:
                if head == '"':
                    self.repairs.append("quote")
                parts.append(head)
        self.repairs.append("cut")
        return _Cut(self._repair("".join(parts)))

    def _repair(self, text: str) -> str:
        if any(mark in text for mark in "\n\t\r"):
            self.repairs.append("newline")
        # Half a character, which no store takes.
        return _SURROGATE.sub("\ufffd", text)

    def _closes(self, key: bool, in_object: bool) -> bool:
        """What stands behind the quote at `_at - 1`, seen from there."""
        text, after = self._text, _SPACE.match(self._text, self._at)
        assert after is not None
        head = text[after.end() : after.end() + 1]
        if key:
            return head in (":", "") or not head
        if not head or head in "}]":
            return True
        if head in ",;":
            return self._goes_on(after.end() + 1, in_object)
        if "`" in head and text.startswith("```", after.end()):
            return True
        # A comma is missing between two lines.
        return head in _CLOSERS and "\n" in after.group()

    def _goes_on(self, at: int, in_object: bool) -> bool:
        """True when a key, a value or an end stands at `at`, so that the comma was JSON's."""
        after = _SPACE.match(self._text, at)
        assert after is not None
        at = after.end()
        head = self._text[at : at + 1]
        if not head or head in "}]\"'“‘" or self._text.startswith(("//", "/*"), at):
            return True
        word = _WORD.match(self._text, at)
        if in_object:
            behind = word.end() if word else at
            return word is not None and self._text[behind : behind + 1] == ":"
        return (
            head in "{["
            or head.isdecimal()
            or head in "+-."
            or (word is not None and word.group().lower() in _LITERALS)
        )

    def _escape(self) -> str:
        head = self._peek()
        if not head:
            return ""
        self._at += 1
        if head in _ESCAPES:
            return _ESCAPES[head]
        if head != "u":
            # JSON knows no other: \d of a pattern or \' of Python keep what they mean.
            return head if head in ('"', "\\", "/", "'") else f"\\{head}"
        digits = _HEX.match(self._text, self._at)
        if digits is None:
            return "\\u"
        self._at = digits.end()
        code = int(digits.group(), 16)
        low = _HEX.match(self._text, self._at + 2)
        if 0xD800 <= code < 0xDC00 and self._text.startswith("\\u", self._at) and low:
            second = int(low.group(), 16)
            if 0xDC00 <= second < 0xE000:
                self._at = low.end()
                return chr(0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00))
        return chr(code)
