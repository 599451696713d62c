"""Token bucket with a passed clock."""

import math

from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.token_bucket import TokenBucket


def test_a_full_bucket_serves_a_burst_then_the_rate() -> None:
    bucket = TokenBucket(per_second=2.0, burst=3)
    assert [bucket.take(10.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert bucket.take(10.5) == 0.0


def test_a_refusal_takes_nothing() -> None:
    bucket = TokenBucket(per_second=1.0, burst=2)
    bucket.take(0.0)
    assert bucket.take(0.0, 2.0) == 1.0
    assert bucket.take(0.0, 1.0) == 0.0


def test_more_than_the_burst_is_never_granted() -> None:
    assert TokenBucket(per_second=1.0, burst=2).take(0.0, 3.0) == math.inf


def test_idle_when_full_again() -> None:
    bucket = TokenBucket(per_second=1.0, burst=2)
    bucket.take(0.0)
    assert (bucket.idle(0.5), bucket.idle(1.0)) == (False, True)


@given(
    pauses=st.lists(st.floats(-5, 5), min_size=1, max_size=60),
    per_second=st.floats(0.1, 100),
    burst=st.integers(1, 50),
)
def test_never_more_than_burst_plus_rate(
    pauses: list[float], per_second: float, burst: int
) -> None:
    """A clock that steps back grants nothing extra."""
    bucket, now, latest, taken = TokenBucket(per_second, burst), 0.0, 0.0, 0
    for pause in pauses:
        now += pause
        latest = max(latest, now)
        taken += bucket.take(now) == 0.0
    # The bucket counts from its first use, which may be before second 0.
    elapsed = latest - min(0.0, pauses[0])
    assert taken <= burst + elapsed * per_second + 1e-6
