"""Token bucket: a steady rate with bursts."""


class TokenBucket:
    """Starts full. `per_second` tokens come back, `burst` is the most it holds."""

    __slots__ = ("_at", "_burst", "_per_second", "_tokens")

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._at: float | None = None

    def take(self, now: float, tokens: float = 1.0) -> float:
        """Take `tokens` and return 0, or take nothing and return the seconds to wait.

        `now` is monotonic seconds; a clock that steps back adds nothing. More than `burst`
        tokens are never granted: the wait is infinite.
        """
        if tokens > self._burst:
            return float("inf")
        self._refill(now)
        if tokens <= self._tokens:
            self._tokens -= tokens
            return 0.0
        return (tokens - self._tokens) / self._per_second

    def wait_s(self, now: float) -> float:
        """What `take` of one would answer, taking nothing."""
        self._refill(now)
        return max(0.0, (1.0 - self._tokens) / self._per_second)

    def idle(self, now: float) -> bool:
        """True when it is full again, so that forgetting it changes nothing."""
        self._refill(now)
        return self._tokens >= self._burst

    def _refill(self, now: float) -> None:
        if self._at is not None and now > self._at:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
        if self._at is None or now > self._at:
            self._at = now
