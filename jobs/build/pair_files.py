"""Reads and checks English–Hebrew pairs: our sentences, names, phrases of the dictionary.

One file per field of life, one pair per line: English, a tab, Hebrew.
"""

from dataclasses import dataclass
from pathlib import Path

from rayapp.core.errors import ConfigError
from rayapp.storage.files import load_expansions
from rayapp.text.hebrew import HAS_HEBREW
from rayapp.text.normalize import canonical

PAIRS = Path(__file__).with_name("pairs")
NAMES = Path(__file__).with_name("names")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts that say the same. `field` is the file or dictionary they come from."""

    field: str
    english: str
    hebrew: str


def read_pairs(folder: Path = PAIRS) -> list[Pair]:
    """All pairs of `folder/*.tsv`, by file name and line; of a pair in two files the first.

    Raises ConfigError: no pairs, a line that is not a pair, or a pair that is twice in one file.
    """
    pairs: dict[tuple[str, str], Pair] = {}
    for path in sorted(folder.glob("*.tsv")):
        in_file: dict[tuple[str, str], int] = {}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            where = f"{path.name}, line {number}"
            pair = _pair(path.stem, line, where)
            key = (canonical(pair.english), canonical(pair.hebrew))
            first = in_file.setdefault(key, number)
            if first != number:
                raise ConfigError(f"{where}: the pair is in line {first} already; remove one.")
            pairs.setdefault(key, pair)
    if not pairs:
        raise ConfigError(f"No *.tsv with pairs in {folder}; give their folder.")
    return list(pairs.values())


def _pair(field: str, line: str, where: str) -> Pair:
    halves = [half.strip() for half in line.split("\t")]
    if len(halves) != 2 or not all(halves):
        raise ConfigError(f"{where}: write English, one tab, Hebrew.")
    english, hebrew = halves
    if HAS_HEBREW.search(english) or not HAS_HEBREW.search(hebrew):
        raise ConfigError(f"{where}: English comes first, Hebrew second.")
    return Pair(field, english, hebrew)


def read_dictionary(folder: Path) -> list[Pair]:
    """Every English form of an entry with every Hebrew form of it, sorted, without repeats."""
    found = {
        (english, hebrew)
        for _, hebrew_forms, english_forms in load_expansions(folder).entries()
        for hebrew in hebrew_forms
        for english in english_forms
    }
    return [Pair("dictionary", english, hebrew) for english, hebrew in sorted(found)]
