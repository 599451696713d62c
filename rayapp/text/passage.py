"""A part of a text. Apart from how texts are cut, which the client need not know."""

from typing import NamedTuple


class Passage(NamedTuple):
    """Characters `start` to `end` of a text."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]
