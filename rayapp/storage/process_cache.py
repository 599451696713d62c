"""Least-recently-used cache in the process: the fake of `Cache` and the layer in front of Redis."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from rayapp.core.runtime import Clock


class InMemoryCache:
    """At most `max_items` values; the one unused for longest goes first.

    A hit refreshes the lifetime to `refresh_ttl_s` when that is set.
    """

    def __init__(self, max_items: int, clock: Clock, *, refresh_ttl_s: int | None = None) -> None:
        self._max_items = max_items
        self._clock = clock
        self._refresh_ttl_s = refresh_ttl_s
        # key → (value, monotonic second at which it ends); the newest use is last.
        self._values: OrderedDict[str, tuple[bytes, float]] = OrderedDict()

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        now = self._clock.monotonic()
        return [self._get(key, now) for key in keys]

    async def set_many(self, values: Mapping[str, bytes], ttl_s: int) -> None:
        ends = self._clock.monotonic() + ttl_s
        for key, value in values.items():
            self._values[key] = (value, ends)
            self._values.move_to_end(key)
        while len(self._values) > self._max_items:
            self._values.popitem(last=False)

    async def ping(self) -> float:
        return 0.0

    async def close(self) -> None:
        self._values.clear()

    def _get(self, key: str, now: float) -> bytes | None:
        entry = self._values.get(key)
        if entry is None:
            return None
        value, ends = entry
        if now >= ends:
            del self._values[key]
            return None
        if self._refresh_ttl_s is not None:
            self._values[key] = (value, now + self._refresh_ttl_s)
        self._values.move_to_end(key)
        return value
