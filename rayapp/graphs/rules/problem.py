"""The fingerprint of a problem: questions that ask the same, in either language, share it."""

import hashlib
from typing import NamedTuple

from rayapp.text.concept_words import is_generic, key_of, readings_of
from rayapp.text.expansions import Expansions
from rayapp.text.normalize import normalize
from rayapp.text.signature import turns_of
from rayapp.text.tokens import tokens
from rayapp.text.utterance import beginning, reading, word_reading

# One content word names a topic, not a problem.
MIN_CONTENT_WORDS = 2
# A longer question is never asked again in the same words; the rest is not read.
MAX_READ_CHARS = 1_000
# 96 bits: no two problems of a user meet by chance.
HASH_DIGITS = 24


class _Unit(NamedTuple):
    readings: tuple[str, ...]
    key: str
    generic: bool


@reading
def problem_hash(text: str, expansions: Expansions | None = None) -> str | None:
    """24 hex digits over the set of content words; None when there are fewer than two.

    Order, inflection and politeness do not count; "not", "off" and "before" do. A word or phrase of
    the dictionary counts as its entry, so a question and its translation meet when the dictionary
    knows their words.
    """
    vocabulary = expansions.vocabulary if expansions else frozenset[str]()
    plain = normalize(beginning(text, MAX_READ_CHARS))
    units = [_unit(token.text, vocabulary) for token in tokens(plain)]
    keys: set[str] = set()
    used: set[int] = set()
    for term in expansions.known([unit.readings for unit in units]) if expansions else ():
        if term.end - term.start > 1 or not units[term.start].generic:
            keys.add(key_of(term.key))
            used.update(range(term.start, term.end))
    keys.update(unit.key for at, unit in enumerate(units) if at not in used and not unit.generic)
    if len(keys) < MIN_CONTENT_WORDS:
        return None
    turns = sorted(turns_of(plain))
    # As before where nothing is turned round.
    basis = "\n".join([*sorted(keys), *(["", *turns] if turns else [])])
    return hashlib.sha256(basis.encode("utf-8")).hexdigest()[:HASH_DIGITS]


@word_reading
def _unit(word: str, vocabulary: frozenset[str]) -> _Unit:
    readings = readings_of(word, vocabulary)
    return _Unit(readings, key_of(readings[:1]), is_generic(word, readings[0]))
