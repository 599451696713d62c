"""How much of a body of Hebrew titles a dictionary knows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rayapp.text.expansions import Expansions
from rayapp.text.hebrew import is_hebrew
from rayapp.text.lemmas import lemmas
from rayapp.text.normalize import normalize
from rayapp.text.stopwords import STOP_WORDS
from rayapp.text.tokens import tokens


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
