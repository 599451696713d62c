"""The concepts of a text: what it is about, found by rules in Hebrew and English.

Spellings meet under a key: lemmas without stop words, or the dictionary's own form when it knows
the term, so that a term and its translation are one concept.
"""

import re
from collections.abc import Iterator, Sequence

from rayapp.text.concept import Concept, NodeType
from rayapp.text.concept_words import (
    HEBREW_ADJECTIVES,
    OPENERS,
    cut,
    is_definite,
    is_feminine_construct,
    is_noun,
    key_of,
    phrase_key,
    scan,
)
from rayapp.text.expansions import Expansions, KnownTerm
from rayapp.text.hebrew import HEBREW_LETTER
from rayapp.text.normalize import normalize
from rayapp.text.utterance import beginning, reading

# At most so many per text (learning design, "Graphs").
MAX_CONCEPTS = 12
# What a text is about stands in its beginning; the rest is not read, so that cost is bounded.
MAX_READ_CHARS = 4_000
MAX_LABEL_CHARS = 80
# A longer quotation, or run of capitals, is a sentence or a headline. Our choice.
MAX_PHRASE_WORDS = 5
MAX_QUOTED_CHARS = 60

_QUOTED = re.compile(
    rf"""
    (?<!\w)(?:
        "( (?: [^"] | (?<=[{HEBREW_LETTER}])"(?=[{HEBREW_LETTER}]) ){{2,{MAX_QUOTED_CHARS}}}? )"
      | [“„]( [^“”]{{2,{MAX_QUOTED_CHARS}}} )[“”]
      | «( [^»]{{2,{MAX_QUOTED_CHARS}}} )»
      | `( [^`]{{2,{MAX_QUOTED_CHARS}}} )`
    )(?!\w)
    """,
    re.VERBOSE,
)
_QUOTES = frozenset('"“„«`')
_SENTENCE_END = re.compile(r"[.!?:;…•|\n]")
_CONNECTORS = frozenset({"of", "de", "van", "von", "ben", "al"})


def extract_concepts(
    text: str,
    *,
    tags: Sequence[str] = (),
    entities: Sequence[str] = (),
    expansions: Expansions | None = None,
    limit: int = MAX_CONCEPTS,
) -> tuple[Concept, ...]:
    """The concepts of a text, the most telling first, at most `limit`, no key twice.

    Order: tags, entities, quotations, acronyms, runs of capitals, phrases (of the dictionary and
    Hebrew construct pairs), then words, repeated ones first. Numbers, dates, ids and addresses
    are none.
    """
    if not (tags or entities):
        return _of_text(beginning(text, MAX_READ_CHARS), expansions, limit)
    return _extracted(beginning(text, MAX_READ_CHARS), tags, entities, expansions, limit)


@reading
def _of_text(text: str, expansions: Expansions | None, limit: int) -> tuple[Concept, ...]:
    return _extracted(text, (), (), expansions, limit)


def _extracted(
    text: str,
    tags: Sequence[str],
    entities: Sequence[str],
    expansions: Expansions | None,
    limit: int,
) -> tuple[Concept, ...]:
    found: dict[str, Concept] = {}
    kinds: tuple[tuple[Sequence[str], NodeType], ...] = ((tags, "tag"), (entities, "entity"))
    for names, kind in kinds:
        for name in names[: 2 * limit]:
            _add(found, concept_key(name, expansions), name, kind)
    if len(found) < limit:
        # A new line starts a new sentence; `normalize` would make it a space.
        said = text.replace("\n", " . ") if "\n" in text else text
        reader = _Reader(normalize(said), expansions)
        for step in (reader.quoted, reader.acronyms, reader.capitals, reader.phrases, reader.words):
            for key, label, node_type in step():
                _add(found, key, label, node_type)
            if len(found) >= limit:
                break
    return tuple(found.values())[:limit]


@reading
def concept_key(name: str, expansions: Expansions | None = None) -> str:
    """The key of one term, however it is spelled; empty when it is no concept at all."""
    words = scan(normalize(name[:MAX_READ_CHARS]), _vocabulary(expansions)).words
    terms = expansions.known([word.readings for word in words]) if expansions else []
    if terms and (terms[0].start, terms[0].end) == (0, len(words)):
        return key_of(terms[0].key)
    return phrase_key(words)


class _Reader:
    """One normalised text on its way through the rules."""

    def __init__(self, text: str, expansions: Expansions | None) -> None:
        self._text = text
        self._expansions = expansions
        self._words, self._spans = scan(text, _vocabulary(expansions))
        self._shouted = text.isupper() and not any(word.hebrew for word in self._words)
        terms = expansions.known([word.readings for word in self._words]) if expansions else []
        self._terms: dict[int, KnownTerm] = {term.start: term for term in terms}
        # Words of a phrase whose parts mean something else ("ביטוח לאומי" is no insurance).
        self._used: set[int] = set()

    def quoted(self) -> Iterator[tuple[str, str, NodeType]]:
        if _QUOTES.isdisjoint(self._text):
            return
        for match in _QUOTED.finditer(self._text):
            label = next(group for group in match.groups() if group).strip()
            words = scan(label, _vocabulary(self._expansions)).words
            if len(words) <= MAX_PHRASE_WORDS and not all(word.stop for word in words):
                key = concept_key(label, self._expansions)
                yield key, label, "phrase" if len(words) > 1 else "entity"

    def acronyms(self) -> Iterator[tuple[str, str, NodeType]]:
        if self._shouted:
            return
        for at, word in enumerate(self._words):
            if word.acronym and not word.stop:
                yield self._key(at, at + 1), self._label(at, at + 1), "acronym"

    def capitals(self) -> Iterator[tuple[str, str, NodeType]]:
        at = len(self._words) if self._shouted else 0
        while at < len(self._words):
            word = self._words[at]
            if not word.capital or word.function:
                at += 1
                continue
            end = self._run_end(at)
            if word.lower in OPENERS and self._opens_sentence(at):
                at += 1
            if at < end and self._names_something(at, end):
                yield self._key(at, end), self._label(at, end), "entity"
            at = max(end, at)

    def phrases(self) -> Iterator[tuple[str, str, NodeType]]:
        for term in self._terms.values():
            if term.end - term.start > 1:
                self._used.update(range(term.start, term.end))
                yield key_of(term.key), self._label(term.start, term.end), "phrase"
        for at, word in enumerate(self._words[:-1]):
            if word.hebrew and not word.stop and self._is_construct(at):
                self._used.update((at, at + 1))
                yield self._key(at, at + 2), self._label(at, at + 2), "phrase"

    def words(self) -> Iterator[tuple[str, str, NodeType]]:
        counts: dict[str, int] = {}
        labels: dict[str, str] = {}
        for at, word in enumerate(self._words):
            if not word.stop and at not in self._used:
                key = self._key(at, at + 1)
                if key in counts:
                    counts[key] += 1
                elif key:
                    counts[key] = 1
                    labels[key] = self._label(at, at + 1)
        for key in sorted(counts, key=lambda one: -counts[one]):
            yield key, labels[key], "concept"

    def _key(self, start: int, end: int) -> str:
        term = self._terms.get(start)
        if term is not None and term.end == end:
            return key_of(term.key)
        if end - start == 1:
            return self._words[start].key
        return phrase_key(self._words[start:end])

    def _label(self, start: int, end: int) -> str:
        return self._text[self._spans[start][0] : self._spans[end - 1][1]]

    def _gap(self, at: int) -> str:
        """What stands between a word and the one before it."""
        return self._text[self._spans[at - 1][1] : self._spans[at][0]]

    def _run_end(self, start: int) -> int:
        """Where the capitalised words that follow `start` end; "of" may stand between two."""
        end = start + 1
        while end < len(self._words) and end - start < MAX_PHRASE_WORDS and self._gap(end) == " ":
            word = self._words[end]
            if word.capital and not word.function:
                end += 1
            elif (
                word.lower in _CONNECTORS
                and end + 1 < len(self._words)
                and self._gap(end + 1) == " "
                and self._words[end + 1].capital
                and not self._words[end + 1].function
            ):
                end += 2
            else:
                break
        return end

    def _opens_sentence(self, at: int) -> bool:
        return at == 0 or _SENTENCE_END.search(self._gap(at)) is not None

    def _names_something(self, start: int, end: int) -> bool:
        words = self._words[start:end]
        if all(word.stop for word in words):
            return False
        return len(words) > 1 or not (words[0].common and self._opens_sentence(start))

    def _is_construct(self, at: int) -> bool:
        """Two nouns of which the first belongs to the second: משרד הבריאות, קופת חולים."""
        first, second = self._words[at], self._words[at + 1]
        if second.stop or not second.hebrew or first.acronym:
            return False
        if at in self._used or at + 1 in self._used or self._gap(at + 1) not in (" ", "-"):
            return False
        if first.lower[0] == "ה" and first.readings[0][0] != "ה":
            return False
        if second.lower in HEBREW_ADJECTIVES:
            return False
        return is_definite(second) or (is_feminine_construct(first) and is_noun(second))


def _add(found: dict[str, Concept], key: str, label: str, node_type: NodeType) -> None:
    if key and key not in found:
        found[key] = Concept(key, cut(" ".join(label.split()), MAX_LABEL_CHARS), node_type)


def _vocabulary(expansions: Expansions | None) -> frozenset[str]:
    return expansions.vocabulary if expansions else frozenset()
