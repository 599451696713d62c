"""The benches' arguments: what is refused, in words that say what to pass instead."""

import math
from argparse import ArgumentTypeError


def positive(text: str) -> int:
    """A count of which there must be one."""
    return _whole(text, 1)


def not_negative(text: str) -> int:
    """A count that may be 0: none of it."""
    return _whole(text, 0)


def positive_number(text: str) -> float:
    """A rate or a length of time, of which there must be some."""
    return _number(text, above_zero=True)


def not_negative_number(text: str) -> float:
    """A rate or a length of time that may be 0."""
    return _number(text, above_zero=False)


def _whole(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise ArgumentTypeError(f"use a whole number of {least} or more, not {text!r}")
    return value


def _number(text: str, *, above_zero: bool) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0 or (above_zero and value == 0):
        least = "above 0" if above_zero else "of 0 or more"
        raise ArgumentTypeError(f"use a number {least}, not {text!r}")
    return value
