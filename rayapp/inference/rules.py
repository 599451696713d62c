"""What a text costs in tokens, without a tokeniser. Pure and the same everywhere."""

import math
import re
from collections.abc import Sequence

from rayapp.text.hebrew import HEBREW_LETTER
from rayapp.text.language import letters_in

# Characters per token (0025): tokenisers cut Hebrew finer.
HEBREW_CHARS_PER_TOKEN = 2.4
OTHER_CHARS_PER_TOKEN = 4.0

_HEBREW = re.compile(f"[{HEBREW_LETTER}]+")


def estimate_tokens(text: str) -> int:
    """Tokens of a text, rounded up; never less for a longer text."""
    hebrew = 0 if text.isascii() else letters_in(_HEBREW, text)
    return math.ceil(hebrew / HEBREW_CHARS_PER_TOKEN + (len(text) - hebrew) / OTHER_CHARS_PER_TOKEN)


def total_tokens(rows: Sequence[str]) -> int:
    """What rows cost one by one, line breaks included: never less than their text as a whole."""
    return sum(estimate_tokens(f"{row}\n") for row in rows)
