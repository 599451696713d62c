"""Sort orders of item lists and the opaque cursor that continues them.

All orders are descending and end in `point_id`, which is unique, so a page never skips or repeats.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from rayapp.core.errors import InvalidInput
from rayapp.memory.item import MemoryItem

SortKey = Literal["recent", "score", "updated"]
SortValue = datetime | float | str

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_CREATED: tuple[str, Callable[[MemoryItem], SortValue]] = ("created_at", lambda i: i.created_at)
_SCORE: tuple[str, Callable[[MemoryItem], SortValue]] = ("stats.score", lambda i: i.stats.score)
_UPDATED: tuple[str, Callable[[MemoryItem], SortValue]] = ("updated_at", lambda i: i.updated_at)
_POINT: tuple[str, Callable[[MemoryItem], SortValue]] = ("point_id", lambda i: i.point_id)

# Field path and getter of each key, most significant first.
SORT_KEYS: dict[SortKey, tuple[tuple[str, Callable[[MemoryItem], SortValue]], ...]] = {
    "recent": (_CREATED, _SCORE, _UPDATED, _POINT),
    "score": (_SCORE, _UPDATED, _POINT),
    "updated": (_UPDATED, _POINT),
}


def sort_values(item: MemoryItem, sort: SortKey) -> tuple[Any, ...]:
    """The values that place `item` in `sort`, most significant first."""
    return tuple(get(item) for _, get in SORT_KEYS[sort])


def encode_cursor(item: MemoryItem, sort: SortKey) -> str:
    """A cursor that continues after `item`."""
    values = [_plain(value) for value in sort_values(item, sort)]
    raw = json.dumps([sort, *values], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_cursor(cursor: str, sort: SortKey) -> tuple[SortValue, ...]:
    """The sort values of the last item seen; raises InvalidInput when they cannot be read."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        made_for, *values = json.loads(raw)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise _bad_cursor() from None
    fields = [path for path, _ in SORT_KEYS[sort]]
    if made_for != sort or len(values) != len(fields):
        raise _bad_cursor()
    return tuple(_typed(path, value) for path, value in zip(fields, values, strict=True))


def _bad_cursor() -> InvalidInput:
    return InvalidInput("The cursor cannot be read: use `next_cursor` of a page with this sort.")


def _plain(value: SortValue) -> int | float | str:
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(milliseconds=1)
    return value


def _typed(path: str, value: Any) -> SortValue:
    if path.endswith("_at"):
        if type(value) is not int:
            raise _bad_cursor()
        try:
            return EPOCH + timedelta(milliseconds=value)
        except OverflowError:
            raise _bad_cursor() from None
    if path == "point_id":
        if not isinstance(value, str):
            raise _bad_cursor()
        return value
    try:
        if type(value) in (int, float) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise _bad_cursor()
