"""Phrases of the tables against the words of a sentence. Pure.

A phrase is compiled once into its elements; matching is a search with going back, as short as the
phrase is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from rayapp.core.errors import ConfigError
from rayapp.understanding.statements.rules.parts import Part, Read
from rayapp.understanding.statements.rules.tables import word_set
from rayapp.understanding.statements.rules.words import Word

RowT = TypeVar("RowT")
WHO = "who"
# Words that stand before the first one that a phrase needs, at most.
BEFORE = 12
# Words of an optional group that are passed over.
OPTIONAL_WORDS = 4


@dataclass(frozen=True, slots=True)
class Literal:
    """One of these words; `optional`: or none, or several of them."""

    forms: frozenset[str]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a kind, under a name; `prefix`: behind this joined letter."""

    kind: str
    name: str
    prefix: str = ""
    optional: bool = False


Element = Literal | Place


@dataclass(frozen=True, slots=True)
class Bound:
    """A part of a kind that was found, with its words."""

    kind: str
    start: int
    end: int
    part: Part


@dataclass(frozen=True, slots=True)
class Match:
    """Where a phrase stands, and its parts. `goes_on`: it is about whom the sentence spoke of."""

    start: int
    end: int
    goes_on: bool
    parts: Mapping[str, Bound]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of the tables. `needs`: one word of each of these is in every sentence that says
    it."""

    elements: tuple[Element, ...]
    needs: tuple[frozenset[str], ...]

    @property
    def has_subject(self) -> bool:
        first = self.elements[0]
        return isinstance(first, Place) and first.name == WHO


def compiled(phrase: str, groups: Mapping[str, str], kinds: Sequence[str]) -> Phrase:
    """The elements of a phrase. Raises ConfigError: it names a part or group that is not there."""
    elements = tuple(_element(token, groups, kinds) for token in phrase.split())
    plain = (one for one in elements if isinstance(one, Literal) and not one.optional)
    return Phrase(elements, tuple(one.forms for one in plain))


def _element(token: str, groups: Mapping[str, str], kinds: Sequence[str]) -> Element:
    optional = token.startswith("[")
    inner = token[1:-1] if optional else token
    prefix, joint, part = inner.partition("+")
    if joint and part.startswith("{"):
        inner = part
    else:
        prefix = ""
    if inner.startswith("{"):
        kind, _, name = inner[1:-1].partition(":")
        if kind not in kinds:
            raise ConfigError(f"phrases: {token} is no part of a phrase; use one of {kinds}.")
        return Place(kind, name or kind, prefix, optional)
    forms: set[str] = set()
    for one in inner.split("|"):
        if one.startswith("<"):
            if one[1:-1] not in groups:
                raise ConfigError(f"phrases: {one} is no group; add it to `groups`.")
            forms |= word_set(groups[one[1:-1]])
        else:
            forms |= word_set(one)
    return Literal(frozenset(forms), optional)


class Seen(NamedTuple):
    """The parts that begin at a place, by where they end, and the words in which they were read."""

    words: Sequence[Word]
    start: int
    parts: tuple[tuple[int, Part], ...]


class Phrases(Generic[RowT]):
    """Rows with a phrase each, by the words without which it cannot stand; in their order."""

    def __init__(self, rows: Sequence[RowT], phrase_of: Callable[[RowT], Phrase]) -> None:
        self._rows = rows
        self._always: list[int] = []
        self._by_word: dict[str, list[int]] = {}
        self._others: list[tuple[frozenset[str], ...]] = []
        for at, row in enumerate(rows):
            first, *others = phrase_of(row).needs or (frozenset(),)
            self._others.append(tuple(others))
            for word in first:
                self._by_word.setdefault(word, []).append(at)
            if not first:
                self._always.append(at)

    def __iter__(self) -> Iterator[RowT]:
        return iter(self._rows)

    def among(self, said: frozenset[str]) -> list[RowT]:
        """Those that may stand where these words are said."""
        found = set(self._always).union(*(self._by_word.get(one, ()) for one in said))
        return [
            self._rows[at]
            for at in sorted(found)
            if not any(said.isdisjoint(one) for one in self._others[at])
        ]


class Matcher:
    """Finds phrases; `fillers` may stand between the elements of any phrase, and behind what
    `continues` a clause may have no subject of its own."""

    def __init__(
        self, readers: Mapping[str, Read], fillers: frozenset[str], continues: frozenset[str]
    ) -> None:
        self._readers, self._fillers, self._continues = readers, fillers, continues
        # What the readers find in the sentence that is read now, by kind, joined letter and place:
        # most phrases ask for the same parts.
        self._words: Sequence[Word] = ()
        self._seen: dict[tuple[str, str, int], Seen] = {}

    def matches(
        self, phrase: Phrase, words: Sequence[Word], taken: frozenset[int]
    ) -> Iterator[Match]:
        """The first reading at each place, left to right, without words that are `taken`."""
        at, end = self._range(phrase, words)
        first = phrase.elements[0]
        while at < end:
            if not self._may_begin(first, words, at, taken):
                at += 1
                continue
            found = next(self._from(phrase.elements, 0, words, at, {}, taken), None)
            if found is None or found[0] == at:
                at += 1
                continue
            goes_on = phrase.has_subject and WHO not in found[1]
            yield Match(at, found[0], goes_on, found[1])
            at = found[0]

    def _may_begin(
        self, first: Element, words: Sequence[Word], at: int, taken: frozenset[int]
    ) -> bool:
        """Whether the first element of a phrase stands here, which it seldom does."""
        if first.optional:
            return True
        if isinstance(first, Literal):
            return not words[at].forms.isdisjoint(first.forms)
        if at not in taken and self._at(first.kind, first.prefix, words, at).parts:
            return True
        return first.name == WHO and first.kind == WHO and self._goes_on(words, at)

    def _range(self, phrase: Phrase, words: Sequence[Word]) -> tuple[int, int]:
        """Where the phrase may begin: before the word that it needs first, and not far."""
        if not phrase.needs:
            return 0, len(words)
        held = [at for at, word in enumerate(words) if not word.forms.isdisjoint(phrase.needs[0])]
        return (max(0, held[0] - BEFORE), held[-1] + 1) if held else (0, 0)

    def _from(
        self,
        elements: Sequence[Element],
        index: int,
        words: Sequence[Word],
        at: int,
        parts: dict[str, Bound],
        taken: frozenset[int],
    ) -> Iterator[tuple[int, dict[str, Bound]]]:
        if index == len(elements):
            yield at, parts
            return
        element = elements[index]
        for end, bound in self._one(element, words, at, taken, first=index == 0):
            more = parts
            if bound is not None and isinstance(element, Place):
                more = {**parts, element.name: bound}
            yield from self._from(elements, index + 1, words, end, more, taken)
        skips = index > 0 and at < len(words) and words[at - 1].ends != "."
        if skips and not words[at].forms.isdisjoint(self._fillers):
            yield from self._from(elements, index, words, at + 1, parts, taken)

    def _one(
        self,
        element: Element,
        words: Sequence[Word],
        at: int,
        taken: frozenset[int],
        *,
        first: bool,
    ) -> Iterator[tuple[int, Bound | None]]:
        if isinstance(element, Literal):
            yield from self._literal(element, words, at)
            return
        if at < len(words) and at not in taken:
            yield from self._part(element, words, at, taken)
        if element.optional:
            yield at, None
        elif element.name == WHO and first and element.kind == WHO and self._goes_on(words, at):
            # Whoever the sentence spoke of.
            yield at, None

    def _goes_on(self, words: Sequence[Word], at: int) -> bool:
        if at == 0 or at >= len(words):
            return False
        joined = words[at].hebrew and words[at].low[0] == "ו" and len(words[at].forms) > 1
        return joined or words[at - 1].low in self._continues

    def _literal(
        self, element: Literal, words: Sequence[Word], at: int
    ) -> Iterator[tuple[int, Bound | None]]:
        if not element.optional:
            if at < len(words) and not words[at].forms.isdisjoint(element.forms):
                yield at + 1, None
            return
        end = at
        while end < len(words) and end - at < OPTIONAL_WORDS and words[end].low in element.forms:
            end += 1
        for last in range(end, at - 1, -1):
            yield last, None

    def _part(
        self, element: Place, words: Sequence[Word], at: int, taken: frozenset[int]
    ) -> Iterator[tuple[int, Bound]]:
        seen, start, found = self._at(element.kind, element.prefix, words, at)
        for end, part in found:
            stop = next((place for place in range(start, end) if place in taken), end)
            if stop == end:
                yield end, Bound(element.kind, start, end, part)
            elif stop > start:
                # Words that are taken end the part.
                for short, again in self._readers[element.kind](seen[:stop], start):
                    yield short, Bound(element.kind, start, short, again)

    def _at(self, kind: str, prefix: str, words: Sequence[Word], at: int) -> Seen:
        """What of a kind stands at a place, behind a joined letter or without one."""
        if words is not self._words:
            self._words, self._seen = words, {}
        key = (kind, prefix, at)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._look(kind, prefix, words, at)
        return found

    def _look(self, kind: str, prefix: str, words: Sequence[Word], at: int) -> Seen:
        seen, start = words, at
        if prefix:
            rest = words[at].behind(prefix)
            if words[at].low == prefix and at + 1 < len(words):
                start = at + 1
            elif rest is not None:
                seen = [*words[:at], rest, *words[at + 1 :]]
            elif words[at].low.startswith(prefix) and kind == "person":
                pass  # לי: the letter belongs to the word
            else:
                return Seen(words, at, ())
        elif at >= len(words):
            return Seen(words, at, ())
        if seen is words and prefix:
            return Seen(words, start, self._at(kind, "", words, start).parts)
        return Seen(seen, start, tuple(self._readers[kind](seen, start)))
