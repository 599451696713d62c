"""Which phrases of the shipped tables a text says. The words are data (`configs/language`).

A row is a phrase in lower case. `a/b` is either word, `a?` may be left out, `*` is any word, `*0-4`
so many of them, `stem~` a word that begins so, `~end` one that ends so and `#` a number. The words
of a phrase stand beside each other, with a blank or a hyphen between them. A Hebrew one may have
up to three particles before its first word, and stands in no quotation marks: those make another
word of it; `=` before the phrase: it has no particles, `^`: and stands where a
clause begins. What a table says under `but` takes back what it overlaps.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import yaml

from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.text.hebrew import is_hebrew
from rayapp.text.utterance import reading

FOLDER = CONFIG_DIR / "language"
LANGUAGES = frozenset({"en", "he"})
BUT, BARE, OPENS = "but", "=", "^"
# Particles that may be written together with a Hebrew word, up to three of them (וכשה).
PARTICLE = "הבלוכמש"
PARTICLES, MOST_PARTICLES = frozenset(PARTICLE), 3
_UNIT = re.compile(r"\w+|[^\w\s]")
_GAP = re.compile(r"\*(?:(\d+)-(\d+))?")
_QUOTES, _CLAUSE_ENDS = frozenset("\"'"), frozenset(".,;:!?")
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Span = tuple[int, int]


class _Slot(NamedTuple):
    """One place of a phrase: words, beginnings and ends of words, or a gap of so many words."""

    words: frozenset[str] = frozenset()
    stems: tuple[str, ...] = ()
    tails: tuple[str, ...] = ()
    number: bool = False
    optional: bool = False
    least: int = 0
    most: int = 0

    def fits(self, word: str) -> bool:
        if word in self.words or (self.number and word.isdigit()):
            return True
        return word.startswith(self.stems) or (word.endswith(self.tails) and word not in self.tails)


class _Row(NamedTuple):
    """`label`: whose phrase it is; one that takes back has `but`. `bare`: without particles;
    `opens`: only where a clause begins. `follows`: the words of which one comes next; None: others
    may, or nothing has to."""

    label: str
    but: bool
    bare: bool
    opens: bool
    hebrew: bool
    rest: tuple[_Slot, ...]
    follows: frozenset[str] | None


_NO_ROWS: Sequence[_Row] = ()


@dataclass(frozen=True, slots=True)
class Phrases:
    """What a text says: places by label, those that are taken back left out."""

    places: Mapping[str, tuple[Span, ...]]

    def __contains__(self, label: str) -> bool:
        return label in self.places

    def of(self, label: str) -> tuple[Span, ...]:
        return self.places.get(label, ())

    def within(self, label: str, start: int, end: int) -> bool:
        """Whether it is said in this part of the text."""
        return any(start <= at and to <= end for at, to in self.of(label))


class PhraseTables:
    """All rows by the words they may begin with. Built once."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self.labels = tuple(tables)
        self._by_word: dict[str, list[_Row]] = {}
        self._by_stem: dict[str, list[_Row]] = {}
        for label, table in tables.items():
            self._add_table(label, table, but=False)
            if BUT in table:
                self._add_table(label, table[BUT], but=True)
        self._stems = tuple(self._by_stem)

    def read(self, plain: str) -> Phrases:
        units = _units_of(plain)
        said: dict[str, list[Span]] = {}
        taken: dict[str, list[Span]] = {}
        words = [*units.words, ""]
        for at, word in enumerate(units.words):
            following = words[at + 1]
            for row in self._rows_of(word):
                if row.follows is not None and following not in row.follows:
                    continue
                if units.bars(at, hebrew=row.hebrew) or (row.opens and not units.opens(at)):
                    continue
                ends = set(_ends(units.words, at + 1, row.rest)) if row.rest else {at + 1}
                if ends:
                    spans = (taken if row.but else said).setdefault(row.label, [])
                    spans += units.spans(at, sorted(ends), hebrew=row.hebrew)
        places = {
            label: kept
            for label, spans in said.items()
            if (kept := _without(spans, taken.get(label, ())))
        }
        return Phrases(places)

    def _rows_of(self, word: str) -> Sequence[_Row]:
        """Those that a word may begin, behind its particles too."""
        found = self._begun_by(word)
        if word[0] in PARTICLES:
            for size in range(1, min(len(word), MOST_PARTICLES + 1)):
                found = [*found, *(one for one in self._begun_by(word[size:]) if not one.bare)]
                if word[size] not in PARTICLES:
                    break
        return found

    def _begun_by(self, word: str) -> Sequence[_Row]:
        found = self._by_word.get(word, _NO_ROWS)
        if word.startswith(self._stems):
            for stem, rows in self._by_stem.items():
                if word.startswith(stem):
                    found = [*found, *rows]
        return found

    def _add_table(self, label: str, table: Mapping[str, Any], *, but: bool) -> None:
        unknown = set(table) - LANGUAGES - {BUT}
        if unknown:
            raise ConfigError(f"Language table {label}: {sorted(unknown)} is no language.")
        for language in LANGUAGES & set(table):
            for phrase in table[language]:
                self._add(label, str(phrase), but=but)

    def _add(self, label: str, phrase: str, *, but: bool) -> None:
        for one in _spelt_out(phrase.lstrip(BARE + OPENS).split(" ")):
            self._add_row(label, phrase, [slot for part in one for slot in _slots_of(part)], but)

    def _add_row(self, label: str, phrase: str, slots: Sequence[_Slot], but: bool) -> None:
        bare = phrase.startswith((BARE, OPENS))
        starts = next((at for at, slot in enumerate(slots) if not slot.optional), len(slots))
        if starts == len(slots) or slots[starts].most:
            raise ConfigError(f"Language table {label}: {phrase!r} begins with no word.")
        for at in range(starts + 1):
            first, rest = slots[at], tuple(slots[at + 1 :])
            opens, follows = phrase.startswith(OPENS), _follows(rest)
            row = _Row(label, but, bare, opens, is_hebrew(phrase), rest, follows)
            for word in first.words:
                self._by_word.setdefault(word, []).append(row)
            for stem in first.stems:
                self._by_stem.setdefault(stem, []).append(row)


def _follows(rest: Sequence[_Slot]) -> frozenset[str] | None:
    found: set[str] = set()
    for slot in rest:
        if slot.most or slot.stems or slot.tails or slot.number:
            return None
        found |= slot.words
        if not slot.optional:
            return frozenset(found)
    return None


def _spelt_out(parts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A word with a sign inside is several units, so it has a row of its own."""
    choices = []
    for part in parts:
        mark = "?" if part.endswith("?") else ""
        words = part.removesuffix("?").split("/")
        whole = [one for one in words if one.replace("~", "").isalnum() or one == "#"]
        signed = [one for one in words if one not in whole]
        choices.append([f"{one}{mark}" for one in ("/".join(whole), *signed) if one])
    yield from product(*choices)


def _slots_of(part: str) -> Iterator[_Slot]:
    if gap := _GAP.fullmatch(part):
        least, most = (int(gap[1]), int(gap[2])) if gap[1] else (1, 1)
        yield _Slot(least=least, most=most)
        return
    optional = part.endswith("?")
    words = part.removesuffix("?").split("/")
    if len(words) == 1 and "~" not in words[0] and words[0] != "#":
        for unit in _UNIT.findall(words[0]):
            yield _Slot(words=frozenset((unit,)), optional=optional)
        return
    yield _Slot(
        words=frozenset(one for one in words if "~" not in one),
        stems=tuple(one[:-1] for one in words if one.endswith("~")),
        tails=tuple(one[1:] for one in words if one.startswith("~")),
        number="#" in words,
        optional=optional,
    )


class _Units:
    """The words and signs of a text, in lower case, and where they stand."""

    def __init__(self, found: Sequence[tuple[str, int, int]]) -> None:
        self.words = [word for word, _, _ in found]
        self._places = [(start, end) for _, start, end in found]

    def bars(self, at: int, *, hebrew: bool) -> bool:
        """Whether what stands right before a word makes it part of another one."""
        if not at or self._places[at - 1][1] != self._places[at][0]:
            return False
        before = self.words[at - 1]
        return before == "." or (hebrew and before in _QUOTES)

    def opens(self, at: int) -> bool:
        """Whether a clause begins with this word."""
        return not at or self.words[at - 1] in _CLAUSE_ENDS

    def spans(self, at: int, ends: Sequence[int], *, hebrew: bool) -> list[Span]:
        """Those of phrases that begin and end behind these words."""
        return [
            (self._places[at][0], self._places[end - 1][1])
            for end in ends
            if not (hebrew and self._is_quoted(end))
        ]

    def _is_quoted(self, end: int) -> bool:
        behind = end < len(self.words) and self._places[end][0] == self._places[end - 1][1]
        return behind and self.words[end] in _QUOTES


def _units_of(text: str) -> _Units:
    """A hyphen between two words is a blank."""
    low = text.lower().replace("’", "'")
    low = low if len(low) == len(text) else text.replace("’", "'")
    found = [(one[0], one.start(), one.end()) for one in _UNIT.finditer(low)]
    if "-" not in low:
        return _Units(found)
    joined = {
        at
        for at in range(1, len(found) - 1)
        if found[at][0] == "-"
        and (found[at - 1][2], found[at][2]) == (found[at][1], found[at + 1][1])
    }
    return _Units([one for at, one in enumerate(found) if at not in joined])


def _ends(words: Sequence[str], at: int, slots: Sequence[_Slot]) -> Iterator[int]:
    """Behind which words a phrase may end, of which the rest is to follow."""
    if not slots:
        yield at
        return
    slot, rest = slots[0], slots[1:]
    if slot.most:
        for size in range(slot.most + 1):
            if size >= slot.least:
                yield from _ends(words, at + size, rest)
            if at + size >= len(words) or not words[at + size][0].isalnum():
                return
        return
    if slot.optional:
        yield from _ends(words, at, rest)
    if at < len(words) and slot.fits(words[at]):
        yield from _ends(words, at + 1, rest)


def _without(spans: Sequence[Span], taken: Sequence[Span]) -> tuple[Span, ...]:
    kept = (
        (start, end)
        for start, end in spans
        if not any(begin < end and start < close for begin, close in taken)
    )
    return tuple(dict.fromkeys(kept))


@cache
def shipped_tables() -> PhraseTables:
    """Those of `configs/language`, by `file.table`."""
    tables = {
        f"{path.stem}.{name}": table
        for path in sorted(FOLDER.glob("*.yaml"))
        for name, table in yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER).items()
    }
    return PhraseTables(tables)


def tables_of(file: str) -> tuple[str, ...]:
    """The names of the tables of a file, in their order."""
    begins = f"{file}."
    return tuple(
        one.removeprefix(begins) for one in shipped_tables().labels if one.startswith(begins)
    )


@reading
def phrases_in(plain: str) -> Phrases:
    """What a normalised text says of the shipped tables."""
    return shipped_tables().read(plain)
