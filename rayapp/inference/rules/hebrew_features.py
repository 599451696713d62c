"""What a static bilingual model sees in a Hebrew text: words, their lemmas and letter n-grams.

The builder and the loader share these rules, so that a model is read as it was fitted.
"""

from __future__ import annotations

import re

from rayapp.text.hebrew import HEBREW_LETTER
from rayapp.text.lemmas import lemma

# Raised with every change of what a word turns into; a model names the one it was fitted with.
RULES = 1
# Letters per n-gram: chosen on held-out fields of our sentence pairs (decision 0021).
GRAM_SIZES = (3, 4)
HEBREW_WORD = re.compile(rf"[{HEBREW_LETTER}]+(?:['\"][{HEBREW_LETTER}]+)*'?")
_READABLE = re.compile(r"[^\W_]")


def hebrew_words(normalized: str) -> list[str]:
    """The Hebrew words of a text that `normalize` has seen, in order."""
    return HEBREW_WORD.findall(normalized)


def without_hebrew(normalized: str) -> str:
    """The letters and digits of other scripts, empty when there are none.

    Punctuation alone says nothing, and reading it would cost as much as the words.
    """
    rest = HEBREW_WORD.sub(" ", normalized)
    return rest if _READABLE.search(rest) else ""


def lemma_of(word: str) -> str:
    """The dictionary form: inflections and prefixed forms of a word share one row."""
    return lemma(word)


def grams(lemma_form: str) -> list[str]:
    """Letter n-grams with marked ends, repeats kept: what an unknown word is made of."""
    marked = f"<{lemma_form.strip(chr(39))}>"
    return [
        marked[start : start + size]
        for size in GRAM_SIZES
        for start in range(len(marked) - size + 1)
    ]
