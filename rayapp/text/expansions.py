"""Query expansion from bilingual dictionaries, and how much of a body of titles a
dictionary knows.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rayapp.core.errors import ConfigError
from rayapp.text.hebrew import GERSHAYIM, STOP_WORDS, is_hebrew
from rayapp.text.lemmas import lemmas
from rayapp.text.normalize import normalize
from rayapp.text.tokens import tokens

# A translation says the same thing; a synonym only nearly. Our choice, scaled by the recipe.
TRANSLATION_WEIGHT = 1.0
SYNONYM_WEIGHT = 0.7
# Enough for three words of a query with their whole entries; more would bury the user's words.
MAX_EXPANSIONS = 24
# An acronym this long is unambiguous without its marks (צהל), a shorter one is not (תא).
MIN_BARE_ACRONYM_LETTERS = 3
# Readings tried per form; ambiguous phrases have two or four.
MAX_FORM_PATHS = 8


@dataclass(frozen=True, slots=True)
class Expansion:
    """A text to add to a query. `weight` 0..1 relative to the user's words, `source` a domain."""

    text: str
    weight: float
    source: str


class KnownTerm(NamedTuple):
    """A form found at words `start` to `end`; all forms of one entry have the same `key`."""

    start: int
    end: int
    key: tuple[str, ...]


class _Form(NamedTuple):
    text: str
    hebrew: bool
    key: tuple[str, ...]


class _Entry(NamedTuple):
    forms: tuple[_Form, ...]
    weight: float
    source: str
    key: tuple[str, ...]


@dataclass(slots=True)
class _Node:
    children: dict[str, _Node] = field(default_factory=dict)
    matches: list[tuple[_Entry, _Form]] = field(default_factory=list)


class Expansions:
    """An immutable dictionary built once at start-up.

    Args:
        files: file name to its parsed content.

    Raises:
        ConfigError: wrong shape, a repeated form or pair, a form that expands to itself, a stop
            word; the message names file and entry.
    """

    def __init__(self, files: Mapping[str, Any] | None = None) -> None:
        raw = [(name, _checked_file(name, content)) for name, content in (files or {}).items()]
        self.vocabulary: frozenset[str] = frozenset(
            word for _, content in raw for word in _hebrew_words(content["entries"])
        )
        self._root = _Node()
        self._entries: list[_Entry] = []
        for name, content in raw:
            pairs: dict[frozenset[tuple[str, ...]], int] = {}
            for number, item in enumerate(content["entries"], start=1):
                entry = self._entry(item, str(content["domain"]), f"{name}, entry {number}")
                _refuse_repeated_pairs(entry, pairs, name, number)
                self._add(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> Iterator[tuple[str, list[str], list[str]]]:
        """(domain, Hebrew forms, English forms) of every entry, in file order."""
        for entry in self._entries:
            hebrew = [form.text for form in entry.forms if form.hebrew]
            yield entry.source, hebrew, [form.text for form in entry.forms if not form.hebrew]

    def expand(self, query: str, *, limit: int = MAX_EXPANSIONS) -> list[Expansion]:
        """What to add to `query`, heaviest first: the longest match at each word, left to right.

        A matched phrase is used up: its words are not looked up again. Forms that the query
        already holds are left out.
        """
        words = [self._readings(token.text) for token in tokens(normalize(query))]
        found: dict[str, Expansion] = {}
        own: set[str] = set()
        at = 0
        while at < len(words):
            length, node = self._longest(words, at)
            for entry, matched in node.matches if node else ():
                own.add(matched.text)
                for expansion in _others(entry, matched):
                    known = found.get(expansion.text)
                    if known is None or known.weight < expansion.weight:
                        found[expansion.text] = expansion
            at += max(length, 1)
        kept = [expansion for text, expansion in found.items() if text not in own]
        return sorted(kept, key=lambda expansion: -expansion.weight)[:limit]

    def known(self, words: Sequence[tuple[str, ...]]) -> list[KnownTerm]:
        """The forms in `words` (readings of each word, with `vocabulary`), as `expand` finds them.

        A form of several entries belongs to the first one.
        """
        found: list[KnownTerm] = []
        starts = self._root.children.keys()
        at = 0
        while at < len(words):
            length = 0
            if not starts.isdisjoint(words[at]):
                length, node = self._longest(words, at)
                if node is not None:
                    entry, _ = node.matches[0]
                    found.append(KnownTerm(at, at + length, entry.key))
            at += max(length, 1)
        return found

    def _longest(self, words: Sequence[tuple[str, ...]], at: int) -> tuple[int, _Node | None]:
        """Words used and the node of the longest form that starts at `at`; (0, None) if none."""
        best: tuple[int, _Node | None] = (0, None)
        nodes = [self._root]
        for length, readings in enumerate(words[at:], start=1):
            nodes = [
                node.children[reading]
                for node in nodes
                for reading in readings
                if reading in node.children
            ]
            if not nodes:
                break
            ends = [node for node in nodes if node.matches]
            if ends:
                best = (length, _join(ends))
        return best

    def _readings(self, word: str) -> tuple[str, ...]:
        return lemmas(word, self.vocabulary)

    def _entry(self, item: Any, source: str, where: str) -> _Entry:
        if not isinstance(item, dict) or not set(item) <= {"he", "en", "weight"}:
            raise ConfigError(f"{where}: write a mapping with the keys he, en and weight only.")
        weight = item.get("weight", 1.0)
        if not isinstance(weight, int | float) or not 0 < weight <= 1:
            raise ConfigError(f"{where}: weight must be above 0 and at most 1.")
        forms: dict[tuple[str, ...], _Form] = {}
        for text in [*_texts(item, "he", where), *_texts(item, "en", where)]:
            form = self._form(text, where)
            clash = forms.get(form.key)
            if clash is not None:
                raise ConfigError(
                    f"{where}: {text!r} and {clash.text!r} are one form; remove one of them."
                )
            forms[form.key] = form
        if len(forms) < 2:
            raise ConfigError(f"{where}: give at least two forms that expand to each other.")
        # A form without marks reads best as the name of all: תל אביב rather than ת"א.
        plain = [key for key, form in forms.items() if GERSHAYIM not in form.text]
        return _Entry(tuple(forms.values()), float(weight), source, [*plain, *forms][0])

    def _form(self, text: str, where: str) -> _Form:
        plain = normalize(text)
        words = [token.text for token in tokens(plain)]
        if all(word in STOP_WORDS for word in words):
            raise ConfigError(f"{where}: {text!r} holds stop words only; remove it.")
        return _Form(plain, is_hebrew(plain), tuple(self._readings(word)[0] for word in words))

    def _add(self, entry: _Entry) -> None:
        self._entries.append(entry)
        for form in entry.forms:
            choices = [self._paths(token.text) for token in tokens(form.text)]
            for path in itertools.islice(itertools.product(*choices), MAX_FORM_PATHS):
                node = self._root
                for step in path:
                    node = node.children.setdefault(step, _Node())
                node.matches.append((entry, form))

    def _paths(self, word: str) -> tuple[str, ...]:
        readings = self._readings(word)
        if GERSHAYIM in word and len(word) <= MIN_BARE_ACRONYM_LETTERS:
            return tuple(reading for reading in readings if GERSHAYIM in reading)
        return readings


def _others(entry: _Entry, matched: _Form) -> Iterator[Expansion]:
    for form in entry.forms:
        if form is not matched:
            kind = SYNONYM_WEIGHT if form.hebrew == matched.hebrew else TRANSLATION_WEIGHT
            yield Expansion(form.text, kind * entry.weight, entry.source)


def _join(nodes: list[_Node]) -> _Node:
    if len(nodes) == 1:
        return nodes[0]
    return _Node(matches=[match for node in nodes for match in node.matches])


def _checked_file(name: str, content: Any) -> dict[str, Any]:
    if not isinstance(content, dict) or set(content) != {"domain", "entries"}:
        raise ConfigError(f"{name}: write a mapping with the keys domain and entries.")
    if not isinstance(content["entries"], list):
        raise ConfigError(f"{name}: entries must be a list.")
    return content


def _texts(item: dict[str, Any], script: str, where: str) -> list[str]:
    texts = item.get(script, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"{where}: {script} must be a list of texts (quote yes, no and numbers).")
    for text in texts:
        plain = normalize(text)
        if not any(True for _ in tokens(plain)):
            raise ConfigError(f"{where}: {text!r} has no words; remove it.")
        if is_hebrew(plain) != (script == "he"):
            raise ConfigError(
                f"{where}: {text!r} is in the wrong list; {script} is for its script."
            )
    return texts


def _hebrew_words(entries: Iterable[Any]) -> Iterator[str]:
    """Single Hebrew words of all entries: they may follow a prefix in a query."""
    for item in entries:
        texts = item.get("he", []) if isinstance(item, dict) else []
        for text in texts if isinstance(texts, list) else []:
            words = [token.text for token in tokens(normalize(str(text)))]
            if len(words) == 1:
                yield words[0]


def _refuse_repeated_pairs(
    entry: _Entry, pairs: dict[frozenset[tuple[str, ...]], int], name: str, number: int
) -> None:
    """One pair belongs to one entry of a file; other files may repeat it in their own domain."""
    for one, other in itertools.combinations(entry.forms, 2):
        first = pairs.setdefault(frozenset((one.key, other.key)), number)
        if first != number:
            raise ConfigError(
                f"{name}, entry {number}: {one.text!r} and {other.text!r} are a pair of "
                f"entry {first} already; remove one of them."
            )


# How much of a body of Hebrew titles a dictionary knows.


@dataclass(frozen=True, slots=True)
class Coverage:
    """`known` of `total` distinct Hebrew words; `missing` are the most frequent unknown ones."""

    known: int
    total: int
    missing: tuple[tuple[str, int], ...]

    @property
    def share(self) -> float:
        return self.known / self.total if self.total else 1.0


def coverage_of(dictionary: Expansions, texts: Iterable[str], *, missing: int = 20) -> Coverage:
    """A word is known when one of its readings stands in a Hebrew form of the dictionary."""
    readings = {
        reading
        for _, hebrew, _ in dictionary.entries()
        for form in hebrew
        for token in tokens(normalize(form))
        for reading in lemmas(token.text)
    }
    words: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        for token in tokens(normalize(text)):
            found = lemmas(token.text)
            if is_hebrew(token.text) and not STOP_WORDS.intersection((token.text, *found)):
                words[found] += 1
    unknown = Counter({word[0]: n for word, n in words.items() if readings.isdisjoint(word)})
    return Coverage(len(words) - len(unknown), len(words), tuple(unknown.most_common(missing)))


def pairs_by_domain(dictionary: Expansions) -> dict[str, tuple[int, int]]:
    """Domain to (entries, term pairs): an entry counts as many pairs as its longer side."""
    found: dict[str, tuple[int, int]] = {}
    for domain, hebrew, english in dictionary.entries():
        entries, pairs = found.get(domain, (0, 0))
        both = max(len(hebrew), len(english)) if hebrew and english else 0
        found[domain] = (entries + 1, pairs + both)
    return found
