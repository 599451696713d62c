"""Retries with full jitter, inside a deadline. For idempotent calls only."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from rayapp.core.deadline import Deadline

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """`attempts` calls at most; pauses grow from `base_s` to `max_s` seconds."""

    attempts: int
    base_s: float
    max_s: float


def backoff_s(attempt: int, policy: RetryPolicy, share: float) -> float:
    """Pause after the failed `attempt` (from 1); `share` in 0..1 is the jitter.

    Full jitter spreads callers better than a fixed part plus jitter (M. Brooker, "Exponential
    Backoff And Jitter", AWS Architecture Blog, 2015).
    """
    # The exponent is bounded so that a large attempt cannot overflow a float.
    return share * min(policy.max_s, policy.base_s * 2.0 ** min(attempt - 1, 64))


async def retry(
    call: Callable[[], Awaitable[T]],
    *,
    policy: RetryPolicy,
    deadline: Deadline,
    retryable: tuple[type[Exception], ...],
    sleep: Callable[[float], Awaitable[None]],
    random: Callable[[], float],
) -> T:
    """Repeat an idempotent `call` while it raises `retryable` and the deadline leaves room.

    The last error is raised when attempts or time run out. A pause that would end after the
    deadline is not begun.
    """
    attempt = 1
    while True:
        try:
            return await call()
        except retryable as error:
            pause_s = backoff_s(attempt, policy, random())
            # A dependency that named its own pause knows better than our schedule.
            pause_s = max(pause_s, getattr(error, "retry_after_s", None) or 0.0)
            if attempt >= policy.attempts or pause_s >= deadline.remaining():
                raise
            await sleep(pause_s)
            attempt += 1
