"""The language of a text by its script shares."""

import re
from typing import Literal

from rayapp.text.utterance import reading

Language = Literal["he", "en", "mixed", "other"]

# Share of the smaller of the two scripts from which both languages count: one product name in
# a Hebrew sentence stays below it (our choice, checked on the table in the tests).
MIXED_SHARE = 0.25
# Below this share of all letters neither Hebrew nor Latin is the script of the text.
KNOWN_SHARE = 0.5

# Runs of letters: a text has a fifth as many of them.
_HEBREW = re.compile("[\u05d0-\u05ea\u05f0-\u05f2\ufb1d-\ufb4f]+")
_LATIN = re.compile("[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f]+")
_LETTER = re.compile(r"[^\W\d_]+")


@reading
def detect_language(text: str) -> Language:
    """ "he", "en" (any Latin script), "mixed", or "other" (another script, or no letters)."""
    hebrew, latin = letters_in(_HEBREW, text), letters_in(_LATIN, text)
    both = hebrew + latin
    if both == 0 or both < KNOWN_SHARE * letters_in(_LETTER, text):
        return "other"
    if min(hebrew, latin) >= MIXED_SHARE * both:
        return "mixed"
    return "he" if hebrew > latin else "en"


def letters_in(runs: re.Pattern[str], text: str) -> int:
    """How many characters the runs of a text hold."""
    return sum(map(len, runs.findall(text)))


def crosses(first: str, second: str) -> bool:
    """Whether one of two languages is Hebrew and the other English, so that no word is shared."""
    return {first, second} == {"he", "en"}
