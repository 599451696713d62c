"""Hebrew words to rows of a bilingual static model."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rayapp.inference.rules.hebrew_features import grams, lemma_of

# Distinct words kept resolved: about 20 MB; the words of a busy store are far fewer.
CACHE_WORDS = 1 << 16

Rows = tuple[tuple[int, ...], tuple[float, ...]]


class HebrewReader:
    """Known lemmas have a row; any other word is read from the rows of its letter n-grams.

    Args:
        words: lemma to row.
        pieces: n-gram to row.
    """

    def __init__(self, words: Mapping[str, int], pieces: Mapping[str, int]) -> None:
        self._words, self._pieces = words, pieces
        self._cache: dict[str, Rows] = {}

    def rows(self, word: str) -> Rows:
        """(rows, weight of each); both empty for a word of which nothing is known."""
        found = self._cache.get(word)
        if found is None:
            if len(self._cache) >= CACHE_WORDS:
                self._cache.clear()
            found = self._cache[word] = self._read(word)
        return found

    def _read(self, word: str) -> Rows:
        form = lemma_of(word)
        row = self._words.get(form)
        if row is not None:
            return (row,), (1.0,)
        parts = grams(form)
        known = tuple(self._pieces[part] for part in parts if part in self._pieces)
        return known, (1.0 / math.sqrt(len(parts)),) * len(known) if parts else ()
