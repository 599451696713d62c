"""Time budgets and retries inside them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.deadline import Deadline
from rayapp.core.errors import DeadlineExceeded, EmbedderDown, InvalidInput
from rayapp.core.retry import RetryPolicy, backoff_s, retry

POLICY = RetryPolicy(attempts=4, base_s=1.0, max_s=10.0)


class Watch:
    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, pause_s: float) -> None:
        self.pauses.append(pause_s)
        self.now += pause_s


class TestDeadline:
    def test_stage_gets_its_cap_or_what_is_left(self) -> None:
        watch = Watch()
        deadline = Deadline(5.0, watch.monotonic)
        assert deadline.limit(2.0) == 2.0
        watch.now += 4.0
        assert deadline.limit(2.0) == 1.0

    def test_nothing_left_is_an_error(self) -> None:
        watch = Watch()
        deadline = Deadline(5.0, watch.monotonic)
        watch.now += 7.0
        assert deadline.remaining() == 0.0
        assert deadline.expired
        with pytest.raises(DeadlineExceeded):
            deadline.limit(2.0)


@given(attempt=st.integers(1, 10_000), share=st.floats(0, 1))
def test_backoff_stays_within_bounds(attempt: int, share: float) -> None:
    assert 0.0 <= backoff_s(attempt, POLICY, share) <= POLICY.max_s


@pytest.mark.parametrize(("attempt", "pause"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (50, 10)])
def test_backoff_doubles_up_to_its_limit(attempt: int, pause: float) -> None:
    assert backoff_s(attempt, POLICY, 1.0) == pause


class TestRetry:
    @staticmethod
    async def run(errors: list[Exception], timeout_s: float = 60.0) -> tuple[str, Watch, int]:
        watch, calls = Watch(), 0

        async def call() -> str:
            nonlocal calls
            calls += 1
            if errors:
                raise errors.pop(0)
            return "answer"

        answer = await retry(
            call,
            policy=POLICY,
            deadline=Deadline(timeout_s, watch.monotonic),
            retryable=(EmbedderDown,),
            sleep=watch.sleep,
            random=lambda: 1.0,
        )
        return answer, watch, calls

    async def test_until_it_works(self) -> None:
        answer, watch, calls = await self.run([EmbedderDown("away"), EmbedderDown("away")])
        assert (answer, watch.pauses, calls) == ("answer", [1.0, 2.0], 3)

    async def test_attempts_run_out(self) -> None:
        errors: list[Exception] = [EmbedderDown(str(number)) for number in range(9)]
        with pytest.raises(EmbedderDown, match="3"):
            await self.run(errors)
        assert len(errors) == 5

    async def test_other_errors_are_not_repeated(self) -> None:
        errors: list[Exception] = [InvalidInput("bad"), InvalidInput("bad")]
        with pytest.raises(InvalidInput):
            await self.run(errors)
        assert len(errors) == 1

    async def test_no_pause_beyond_the_deadline(self) -> None:
        errors: list[Exception] = [EmbedderDown("away") for _ in range(9)]
        with pytest.raises(EmbedderDown):
            await self.run(errors, timeout_s=2.5)
        assert len(errors) == 7

    async def test_a_pause_named_by_the_server_is_kept(self) -> None:
        _, watch, _ = await self.run([EmbedderDown("busy", retry_after_s=7.0)])
        assert watch.pauses == [7.0]
