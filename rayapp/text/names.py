"""Which names of a thing a question says: whole names, in any case, form or with a typo. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rayapp.text.hebrew import is_hebrew, unify_finals, without_prefixes
from rayapp.text.normalize import normalize
from rayapp.text.tokens import token_terms, tokens
from rayapp.text.utterance import reading

# What is read of a question: beyond that it is a document, and every name meets every word.
QUESTION_CHARS, QUESTION_WORDS = 2_000, 80
# Shortest words, letters, in which one typo is forgiven. Below them another word is as near as
# the right one; Hebrew writes few vowels, so its words lie closer together. Our choice.
TYPO_LETTERS = 4
TYPO_LETTERS_HEBREW = 6
# First letters that a typo leaves alone: people mistype the beginning of a word least, and
# without them `mango` would name `mongo`. The prefix length that search engines recommend.
TYPO_PREFIX = 2
# Shortest Hebrew name, letters, that is looked for behind a prefix; two letters are too often the
# end of another word.
NAME_LETTERS = 3
_JOINTS = re.compile(r"(?<=\w)[_/.\-](?=\w)")


class _Word(NamedTuple):
    text: str
    readings: frozenset[int]
    stop: bool


def names_in(question: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` that `question` says as a whole, in order.

    Case does not count, nor what joins the words of a name (`raw_driver`, `raw-driver`). A word
    agrees with its plural, with its Hebrew prefixes, and with itself mistyped once. A name of
    stop words only is never said.
    """
    said = _read(question[:QUESTION_CHARS])[:QUESTION_WORDS]
    return tuple(name for name in names if _is_said(_words(name), said))


@reading
def _words(name: str) -> tuple[_Word, ...]:
    return _read(name)


def _read(text: str) -> tuple[_Word, ...]:
    found = []
    for token in tokens(_JOINTS.sub(" ", normalize(text).casefold())):
        terms = [term for term in token_terms(token) if term.kind != "c4"]
        # The parts of a compound would make every one of them the name.
        kept = terms[:1] if token.parts else terms
        found.append(_Word(token.text, frozenset(term.slot for term in kept), terms[0].stop))
    return tuple(found)


def _is_said(name: Sequence[_Word], said: Sequence[_Word]) -> bool:
    if not name or all(word.stop for word in name):
        return False
    places = range(len(said) - len(name) + 1)
    return any(
        all(_agree(word, said[at + offset]) for offset, word in enumerate(name)) for at in places
    )


def _agree(one: _Word, other: _Word) -> bool:
    if not one.readings.isdisjoint(other.readings) or _prefixed(one.text, other.text):
        return True
    return not other.stop and not one.stop and _mistyped(one.text, other.text)


def _prefixed(name: str, said: str) -> bool:
    """`במונגו` names `מונגו`: the name itself is the dictionary that says what a prefix is."""
    if not (is_hebrew(name) and is_hebrew(said)):
        return False
    rests = without_prefixes(unify_finals(said), NAME_LETTERS)
    return unify_finals(name) in rests


def _mistyped(name: str, said: str) -> bool:
    least = TYPO_LETTERS_HEBREW if is_hebrew(name) else TYPO_LETTERS
    if min(len(name), len(said)) < least or name[:TYPO_PREFIX] != said[:TYPO_PREFIX]:
        return False
    # A digit is no slip of a letter: `python3` is not `python2`.
    return name.isalpha() and said.isalpha() and one_edit_apart(name, said)


def one_edit_apart(one: str, other: str) -> bool:
    """One letter more, less or other, or two neighbours swapped (Damerau, 1964)."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1 or one == other:
        return False
    at = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) != len(long):
        return short[at:] == long[at + 1 :]
    if short[at + 1 :] == long[at + 1 :]:
        return True
    return short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
