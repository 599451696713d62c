"""What failed and waits before it is tried again, so that it neither blocks nor heats a queue."""

from __future__ import annotations

from collections.abc import Hashable

from rayapp.core.ports import Clock
from rayapp.core.retry import RetryPolicy, backoff_s

# A bad row is tried again after 1 s, then ever more rarely, at last once in ten minutes (as an
# item that the index refuses). `attempts` is not used: nothing is given up.
PAUSE = RetryPolicy(attempts=1, base_s=1.0, max_s=600.0)
# An outage says nothing about the row: it is tried again soon, seconds.
OUTAGE_PAUSE_S = 5.0
# Rows remembered; beyond it the ones that failed longest ago are forgotten and simply tried again.
MAX_REMEMBERED = 5_000


class Pauses:
    """Kept in process: another process tries a bad row once for itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: dict[Hashable, tuple[int, float]] = {}

    def __len__(self) -> int:
        return len(self._failed)

    def failed(self, key: Hashable, *, outage: bool = False) -> float:
        """Note a failure; the pause before the next try, seconds."""
        attempts = self._failed.pop(key, (0, 0.0))[0] + int(not outage)
        pause_s = OUTAGE_PAUSE_S if outage else backoff_s(attempts, PAUSE, 1.0)
        self._failed[key] = (attempts, self._clock.monotonic() + pause_s)
        while len(self._failed) > MAX_REMEMBERED:
            self._failed.pop(next(iter(self._failed)))
        return pause_s

    def waits(self, key: Hashable) -> bool:
        return key in self._failed and self._clock.monotonic() < self._failed[key][1]

    def forget(self, key: Hashable) -> None:
        self._failed.pop(key, None)

    def forget_old(self) -> None:
        """Forget what could have been tried again long ago: somebody else settled it."""
        limit = self._clock.monotonic() - PAUSE.max_s
        for key in [key for key, (_, until) in self._failed.items() if until < limit]:
            del self._failed[key]
