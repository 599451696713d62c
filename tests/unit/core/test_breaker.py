"""Breaker rules with a passed clock."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.batching import OUT_OF_MEMORY
from rayapp.core.breaker import Breaker, BreakerPolicy, BreakerState, Ticket, worst_by_name
from rayapp.core.errors import BadVector, EmbedderDown, InvalidInput

POLICY = BreakerPolicy(failures=2, open_s=60.0, successes=2)


def opened(at: float = 0.0) -> Breaker:
    breaker = Breaker("embedder", POLICY)
    for _ in range(POLICY.failures):
        ticket = breaker.admit(at)
        assert ticket
        breaker.fail(ticket, "refused", at)
    return breaker


def probe(breaker: Breaker, now: float) -> Ticket:
    ticket = breaker.admit(now)
    assert ticket
    return ticket


def state(breaker: Breaker, now: float = 0.0) -> BreakerState:
    return breaker.snapshot(now).state


class TestClosed:
    def test_failures_in_a_row_open_it(self) -> None:
        assert state(opened()) is BreakerState.OPEN

    def test_a_success_between_failures_keeps_it_closed(self) -> None:
        breaker = Breaker("embedder", POLICY)
        for _ in range(5):
            breaker.fail(probe(breaker, 0), "refused", 0)
            breaker.succeed(probe(breaker, 0))
        assert state(breaker) is BreakerState.CLOSED

    def test_calls_that_waited_in_one_stall_count_as_one_failure(self) -> None:
        breaker = Breaker("embedder", POLICY)
        together = [probe(breaker, 0) for _ in range(5)]
        for late, ticket in enumerate(together):
            breaker.fail(ticket, "late", 1.5 + late / 10)
        assert (state(breaker), breaker.snapshot(2).failures) == (BreakerState.CLOSED, 1)
        breaker.fail(probe(breaker, 2), "late", 3.5)
        assert state(breaker) is BreakerState.OPEN


class TestOpen:
    @pytest.mark.parametrize(("now", "admitted"), [(0, False), (59.9, False), (60, True)])
    def test_admits_after_open_s(self, now: float, admitted: bool) -> None:
        assert (opened().admit(now) is not None) is admitted

    def test_shows_why_and_when(self) -> None:
        shot = opened(at=100).snapshot(110)
        assert (shot.last_error, shot.next_probe_s, shot.failures) == ("refused", 50.0, 2)

    def test_results_of_calls_from_before_are_ignored(self) -> None:
        breaker = Breaker("embedder", POLICY)
        early = [probe(breaker, 0) for _ in range(5)]
        for ticket in early:
            breaker.fail(ticket, "refused", 0)
        half_open = probe(breaker, 60)
        for ticket in early:
            breaker.succeed(ticket)
            breaker.release(ticket)
        assert breaker.admit(60) is None
        breaker.succeed(half_open)
        assert breaker.snapshot(60).successes == 1


class TestHalfOpen:
    def test_one_probe_at_a_time(self) -> None:
        breaker = opened()
        probe(breaker, 60)
        assert [breaker.admit(60 + second) for second in range(100)] == [None] * 100

    def test_successes_close_it(self) -> None:
        breaker = opened()
        breaker.succeed(probe(breaker, 60))
        assert state(breaker) is BreakerState.HALF_OPEN
        breaker.succeed(probe(breaker, 60))
        assert state(breaker) is BreakerState.CLOSED

    def test_a_failed_probe_opens_it_for_the_full_time(self) -> None:
        breaker = opened()
        breaker.fail(probe(breaker, 70), "still refused", 75)
        assert breaker.admit(134.9) is None
        assert breaker.admit(135) is not None

    def test_a_cancelled_probe_frees_the_slot(self) -> None:
        breaker = opened()
        breaker.release(probe(breaker, 60))
        assert breaker.admit(60) is not None


def test_reset_closes_and_forgets() -> None:
    breaker = opened()
    breaker.reset()
    shot = breaker.snapshot(0)
    assert (shot.state, shot.failures, shot.last_error, shot.next_probe_s) == (
        BreakerState.CLOSED,
        0,
        None,
        None,
    )


EVENTS = st.lists(
    st.tuples(st.sampled_from(["admit", "succeed", "fail", "release", "reset"]), st.floats(0, 40)),
    max_size=80,
)


@given(EVENTS, st.randoms(use_true_random=False))
def test_never_two_probes_and_never_a_call_while_open(
    events: list[tuple[str, float]], random: Random
) -> None:
    breaker = Breaker("embedder", POLICY)
    now, opened_at = 0.0, -1.0
    out: list[tuple[Ticket, bool]] = []  # a ticket and whether it is a living probe
    for event, pause in events:
        now += pause
        before = state(breaker, now)
        if event == "admit":
            ticket = breaker.admit(now)
            if before is BreakerState.OPEN and now - opened_at < POLICY.open_s:
                assert ticket is None
            if ticket:
                is_probe = state(breaker, now) is BreakerState.HALF_OPEN
                assert not (is_probe and any(living for _, living in out))
                out.append((ticket, is_probe))
        elif event == "reset":
            breaker.reset()
        elif out:
            ticket, _ = out.pop(random.randrange(len(out)))
            if event == "fail":
                breaker.fail(ticket, "refused", now)
            else:
                getattr(breaker, event)(ticket)
        after = state(breaker, now)
        if after is not before:
            # Tickets of another state are void: their calls no longer count as probes.
            out = [(t, living and after is BreakerState.HALF_OPEN) for t, living in out]
            opened_at = now if after is BreakerState.OPEN else opened_at


class TestCall:
    @pytest.mark.parametrize(
        ("error", "counts"),
        [
            (EmbedderDown("away"), True),
            (BadVector("garbage"), True),
            (TimeoutError(), True),
            (EmbedderDown("too big", code=OUT_OF_MEMORY), False),
            (InvalidInput("empty"), False),
            (ValueError("a bug of ours"), False),
        ],
    )
    async def test_which_errors_count(self, error: Exception, counts: bool) -> None:
        breaker = Breaker("embedder", POLICY)

        async def call() -> None:
            raise error

        for _ in range(POLICY.failures):
            with pytest.raises(type(error)):
                await breaker.call(call, lambda: 0.0, EmbedderDown)
        assert (state(breaker) is BreakerState.OPEN) is counts

    async def test_open_refuses_without_calling(self) -> None:
        called = []

        async def call() -> None:
            called.append(1)

        with pytest.raises(EmbedderDown) as caught:
            await opened(at=0).call(call, lambda: 10.0, EmbedderDown)
        assert (called, caught.value.code, caught.value.retry_after_s) == ([], "breaker_open", 50)


def test_of_several_replicas_the_worst_is_shown_first() -> None:
    closed, failing, tripped = Breaker("a", POLICY), Breaker("a", POLICY), opened(at=0)
    ticket = failing.admit(0)
    assert ticket is not None
    failing.fail(ticket, "EmbedderDown: away", 0)
    rows = [one.snapshot(1) for one in (closed, tripped, failing, Breaker("b", POLICY))]
    found = worst_by_name([rows[0], rows[2], rows[3]])
    assert {name: len(shots) for name, shots in found.items()} == {"a": 2, "b": 1}
    assert found["a"][0].last_error == "EmbedderDown: away"
    found = worst_by_name(replace(row, name="a") for row in rows)
    assert found["a"][0].state is BreakerState.OPEN
