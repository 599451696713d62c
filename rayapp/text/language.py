"""The language of a text by its script shares."""

import re
from typing import Literal

Language = Literal["he", "en", "mixed", "other"]

# Share of the smaller of the two scripts from which both languages count: one product name in
# a Hebrew sentence stays below it (our choice, checked on the table in the tests).
MIXED_SHARE = 0.25
# Below this share of all letters neither Hebrew nor Latin is the script of the text.
KNOWN_SHARE = 0.5

_HEBREW = re.compile("[\u05d0-\u05ea\u05f0-\u05f2\ufb1d-\ufb4f]")
_LATIN = re.compile("[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f]")
_LETTER = re.compile(r"[^\W\d_]")


def detect_language(text: str) -> Language:
    """ "he", "en" (any Latin script), "mixed", or "other" (another script, or no letters)."""
    hebrew = len(_HEBREW.findall(text))
    latin = len(_LATIN.findall(text))
    both = hebrew + latin
    if both == 0 or both < KNOWN_SHARE * len(_LETTER.findall(text)):
        return "other"
    if min(hebrew, latin) >= MIXED_SHARE * both:
        return "mixed"
    return "he" if hebrew > latin else "en"


def crosses(first: str, second: str) -> bool:
    """Whether one of two languages is Hebrew and the other English, so that no word is shared."""
    return {first, second} == {"he", "en"}
