"""Long work on the embedded engine as short pieces, between which others get their turn."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

PIECE_POINTS = 32  # 7 ms of writing at 256 dimensions (our benchmark)

Result = TypeVar("Result")
Part = TypeVar("Part")
Pieces = Generator[None, None, Result]


def parts(whole: Sequence[Part]) -> Iterator[Sequence[Part]]:
    for start in range(0, len(whole), PIECE_POINTS):
        yield whole[start : start + PIECE_POINTS]


def exhaust(pieces: Pieces[Result]) -> Result:
    """All pieces, one after the other."""
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            result: Result = done.value
            return result
