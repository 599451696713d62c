"""Texts of one user that are worked on together: how many, and whether fewer may do better."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from rayapp.core.errors import DependencyDown, Overloaded

# Texts of one change, and their characters: their rows stay far below the 16 MB of a transaction,
# and their work far below its time.
MOST_TEXTS, MOST_CHARS = 50, 100_000

T = TypeVar("T")


def batches(texts: Sequence[T], chars_of: Callable[[T], int]) -> Iterator[list[T]]:
    """In order. One that is longer than a batch stands alone."""
    some: list[T] = []
    chars = 0
    for one in texts:
        size = chars_of(one)
        if some and (len(some) == MOST_TEXTS or chars + size > MOST_CHARS):
            yield some
            some, chars = [], 0
        some.append(one)
        chars += size
    if some:
        yield some


def by_user(texts: Iterable[T], user_of: Callable[[T], str]) -> list[list[T]]:
    """Those of each user, in order."""
    found: dict[str, list[T]] = {}
    for one in texts:
        found.setdefault(user_of(one), []).append(one)
    return list(found.values())


def halves(texts: Sequence[T], error: Exception) -> tuple[Sequence[T], Sequence[T]] | None:
    """What is tried after all together failed, so that a bad text stops no other one; None: nothing
    less, for it is one text, or what they need is away."""
    if len(texts) < 2 or isinstance(error, DependencyDown | Overloaded):
        return None
    half = len(texts) // 2
    return texts[:half], texts[half:]
