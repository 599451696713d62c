"""A text, and what was read of it.

One message is asked for its language, its words, its topic, its kind and more, by a dozen readers
that know nothing of each other. Each of them keeps what it found with the text itself, so that a
text is read once however many ask. A question is made an `Utterance` at the door and carries its
readings until it is answered; of other texts, which come back from the store as new strings, the
latest are remembered here, and of words more. No reader has a cache of its own.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

# Texts whose readings stay: lines, names, labels and sentences of some searches. A longer text is
# read again: a document is not asked for twice within one answer.
KEPT_TEXTS, KEPT_CHARS = 1 << 15, 2_000
# The same of the normal form and the words of a text, which take more room than the text.
SHORT_CHARS = 200
# Distinct words of a large store stay resident: about 60 MB at this size.
KEPT_WORDS = 1 << 17
# A longer one is no word of any language, and nobody asks for it again.
LONGEST_WORD = 64

P = ParamSpec("P")
FoundT = TypeVar("FoundT")
Readings = dict[Hashable, Any]


class Utterance(str):
    """A text that carries its readings. It is a string to everybody else: it is stored, sent and
    compared like one, and leaves the process as one."""

    __slots__ = ("is_normal", "readings")
    is_normal: bool
    readings: Readings

    def __new__(cls, text: str) -> "Utterance":
        if type(text) is cls:
            return text
        made = super().__new__(cls, text)
        made.is_normal, made.readings = False, {}
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str.__str__(self),)


def beginning(text: str, most: int) -> str:
    """At most so many characters; a text that is no longer is itself, with its readings."""
    return text if len(text) <= most else text[:most]


@lru_cache(maxsize=KEPT_TEXTS)
def _of_text(text: str) -> Readings:
    return {}


@lru_cache(maxsize=KEPT_WORDS)
def _of_word(word: str) -> Readings:
    return {}


def reading(reader: Callable[Concatenate[str, P], FoundT]) -> Callable[Concatenate[str, P], FoundT]:
    """What `reader` finds in a text is kept with it, for the same further arguments."""

    @wraps(reader)
    def read(text: str, *more: P.args, **named: P.kwargs) -> FoundT:
        if type(text) is Utterance:
            known = text.readings
        elif len(text) <= KEPT_CHARS:
            known = _of_text(text)
        else:
            return reader(text, *more, **named)
        key = (reader, more, *named.values()) if more or named else reader
        try:
            found: FoundT = known[key]
        except KeyError:
            found = known[key] = reader(text, *more, **named)
        return found

    return cast(Callable[Concatenate[str, P], FoundT], read)


def word_reading(
    reader: Callable[Concatenate[str, P], FoundT],
) -> Callable[Concatenate[str, P], FoundT]:
    """The same of one word: there are more of them, and they come back for longer."""

    @wraps(reader)
    def read(word: str, *more: P.args, **named: P.kwargs) -> FoundT:
        if len(word) > LONGEST_WORD:
            return reader(word, *more, **named)
        known = _of_word(word)
        key = (reader, more) if more else reader
        try:
            found: FoundT = known[key]
        except KeyError:
            found = known[key] = reader(word, *more, **named)
        return found

    return cast(Callable[Concatenate[str, P], FoundT], read)
