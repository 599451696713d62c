"""One token bucket per API key, in this replica."""

from __future__ import annotations

from rayapp.core.errors import RateLimited
from rayapp.core.settings.model import RateLimitSettings
from rayapp.core.token_bucket import TokenBucket

# Full buckets carry no information, so they are forgotten when this many are kept.
BUCKETS = 10_000


class RateLimiter:
    """Grants `per_second` requests with bursts of `burst` to each key."""

    def __init__(self, settings: RateLimitSettings) -> None:
        self._settings = settings
        self._buckets: dict[str, TokenBucket] = {}

    def take(self, key: str, now: float) -> None:
        """Count one request at `now` (monotonic seconds).

        Raises:
            RateLimited: with the seconds until the next request is granted.
        """
        bucket = self._buckets.get(key)
        if bucket is None:
            self._forget_idle(now)
            bucket = TokenBucket(self._settings.per_second, float(self._settings.burst))
            self._buckets[key] = bucket
        wait_s = bucket.take(now)
        if wait_s > 0:
            raise RateLimited("Too many requests from this key; slow down.", retry_after_s=wait_s)

    def _forget_idle(self, now: float) -> None:
        if len(self._buckets) >= BUCKETS:
            self._buckets = {k: b for k, b in self._buckets.items() if not b.idle(now)}
