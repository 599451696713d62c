"""When and how long the client waits before it asks again. Pure: jitter and times passed in."""

from dataclasses import dataclass

# Answers that say "later": rate limit or full queue, and a dependency that is away.
RETRY_STATUSES = frozenset({429, 503})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential backoff with full jitter (AWS Architecture Blog, 2015), capped.

    Attributes:
        attempts: calls in all, the first included.
        base_s: longest wait before the second call; doubles with every further one.
        max_wait_s: cap of one wait; a server's `Retry-After` counts up to the same cap.
    """

    attempts: int = 6
    base_s: float = 0.1
    max_wait_s: float = 5.0

    def wait_s(self, attempt: int, jitter: float, retry_after_s: float | None) -> float:
        """Seconds to wait after failed call number `attempt` (from 1); `jitter` in 0..1.

        A `Retry-After` is a lower bound: the jitter is added on top so that clients spread.
        """
        backoff = min(self.max_wait_s, self.base_s * 2.0 ** (attempt - 1)) * jitter
        asked = 0.0 if retry_after_s is None else min(self.max_wait_s, max(0.0, retry_after_s))
        return asked + backoff


def may_retry(status: int, code: str | None, retry_after_s: float | None) -> bool:
    """True when the same request with the same idempotency key can succeed later.

    409 with a `Retry-After` is "the first call with this key is still in progress".
    """
    return status in RETRY_STATUSES or (
        status == 409 and code == "idempotency_conflict" and retry_after_s is not None
    )
