"""A changed verdict: the item as if only the last one had been given."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rayapp.learning.records import OutcomeEvent, Withdrawn
from rayapp.learning.rules.outcomes import MIN_TTL, applied_to, apply_outcome
from rayapp.learning.rules.verdicts import Taking, standing, taken_back, withdrawing
from rayapp.memory.item import MemoryItem, Outcome, Stats
from rayapp.memory.rules.creation import restored
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT, an_item

AT = STORED_AT + timedelta(days=1)
FAR = AT + timedelta(days=100)
OUTCOME = st.sampled_from(list(Outcome))
STEPS = st.lists(OUTCOME, min_size=1, max_size=12)
# True: the verdict of the one answer. False: an outcome that has nothing to do with it.
MIXED = st.lists(st.tuples(st.booleans(), OUTCOME), max_size=30)
SCORE = st.integers(0, 10_000).map(lambda n: n / 10_000)


def an_item_at(score: float, expires_at: datetime | None = FAR) -> MemoryItem:
    return an_item(memory_id="a", stats=Stats(score=score), expires_at=expires_at)


def given_verdict(
    item: MemoryItem, outcome: Outcome, at: datetime, last: Taking | None
) -> tuple[MemoryItem, Taking]:
    """`item` after a verdict that takes the place of `last`, as the stores do it."""
    event = OutcomeEvent(
        user_id="dana",
        idempotency_key=at.isoformat(),
        principal="dana",
        outcome=outcome,
        at=at,
        memory_ids=("a",),
    )
    if last is not None:
        item = taken_back(item, (last,), at)
    after = apply_outcome(item, outcome, at, at)
    return after, Taking(event=event, applied=applied_to(item, event))


@given(STEPS, SCORE)
def test_any_verdicts_of_one_answer_leave_what_the_last_alone_leaves(
    outcomes: list[Outcome], score: float
) -> None:
    start = an_item_at(score)
    item, last = start, None
    for step, outcome in enumerate(outcomes):
        at = AT + timedelta(minutes=step)
        item, last = given_verdict(item, outcome, at, last)
    alone, _ = given_verdict(start, outcomes[-1], at, None)
    assert item.stats == alone.stats
    assert item.expires_at == alone.expires_at


@given(MIXED, SCORE)
def test_counters_are_exact_among_other_outcomes_and_the_score_stays_in_its_bounds(
    steps: list[tuple[bool, Outcome]], score: float
) -> None:
    item, last = an_item_at(score), None
    for step, (mine, outcome) in enumerate(steps):
        at = AT + timedelta(minutes=step)
        if mine:
            item, last = given_verdict(item, outcome, at, last)
        else:
            item = apply_outcome(item, outcome, at, at)
        assert 0.0 <= item.stats.score <= 1.0
    plain = an_item_at(score)
    newest = max((n for n, (mine, _) in enumerate(steps) if mine), default=None)
    for step, (mine, outcome) in enumerate(steps):
        if not mine or step == newest:
            at = AT + timedelta(minutes=step)
            plain = apply_outcome(plain, outcome, at, at)
    assert replace(item.stats, score=0.0) == replace(plain.stats, score=0.0)


@given(st.lists(st.booleans(), max_size=12), SCORE)
def test_what_helped_never_leaves_less_than_before_it(withdrawn: list[bool], score: float) -> None:
    item, takings = an_item_at(score), []
    for step in range(len(withdrawn)):
        item, taking = given_verdict(item, Outcome.WORKED, AT + timedelta(minutes=step), None)
        takings.append(taking)
    gone = [taking for taking, goes in zip(takings, withdrawn, strict=True) if goes]
    left = taken_back(item, gone, FAR)
    assert left.stats.uses == len(withdrawn) - len(gone)
    assert left.stats.score >= score


def test_a_new_stay_in_a_tier_keeps_its_counters_and_its_lifetime() -> None:
    item, first = given_verdict(an_item_at(0.5), Outcome.WORKED, AT, None)
    later = AT + timedelta(hours=1)
    fresh = replace(item.stats, tier_uses=0, tier_success=0.0)
    promoted = replace(item, tier=Tier.HISTORY, tier_entered_at=later, stats=fresh)
    for moved in (promoted, replace(promoted, tier=Tier.WORKING)):
        back = taken_back(moved, (first,), later)
        assert back.stats == Stats(last_outcome=Outcome.WORKED, last_outcome_at=AT)
        assert back.expires_at == moved.expires_at


def test_a_lifetime_that_is_taken_back_leaves_an_hour() -> None:
    item, first = given_verdict(an_item_at(0.5, AT + timedelta(hours=2)), Outcome.WORKED, AT, None)
    later = AT + timedelta(days=3)
    assert taken_back(item, (first,), later).expires_at == later + MIN_TTL


def test_what_an_item_does_not_count_is_not_taken_from_it() -> None:
    item, first = given_verdict(an_item_at(0.5), Outcome.WORKED, AT, None)
    other = replace(item, stats=Stats(uses=1, failed_count=1))
    assert taken_back(other, (first,), AT) == other
    again = replace(item, stored_at=AT + timedelta(days=1))
    assert taken_back(again, (first,), AT) == again


def test_the_later_copy_of_two_gives_back_what_it_took_over() -> None:
    """The one that was judged was merged into one that was stored after the verdict."""
    item, first = given_verdict(an_item_at(0.5), Outcome.WORKED, AT, None)
    later = AT + timedelta(days=1)
    winner = replace(an_item(memory_id="b"), stats=item.stats, stored_at=later)
    stats = taken_back(winner, (first,), later).stats
    assert (stats.uses, stats.worked_count) == (0, 0)


def test_what_was_withdrawn_before_the_graphs_counted_is_never_counted() -> None:
    item, first = given_verdict(an_item_at(0.5), Outcome.WORKED, AT, None)
    event = replace(first.event, applied=(first.applied,), documents=("book",))
    part, owes = withdrawing(event, Withdrawn(points=(item.point_id,)), owes=True)
    assert (part.counted, owes) == (None, True)
    assert standing(part, part.withdrawn).applied == ()
    whole, owes = withdrawing(part, Withdrawn(documents=("book",)), owes=True)
    assert (whole.counted, owes) == (None, False)
    counted, owes = withdrawing(part, Withdrawn(documents=("book",)), owes=False)
    assert (counted.counted, owes) == (part.withdrawn, True)


def test_what_came_back_has_shown_nothing_in_its_tier() -> None:
    """Or a verdict that is taken back after it would leave what it had added."""
    item, taking = given_verdict(an_item_at(0.5), Outcome.WORKED, AT, None)
    back = restored(item, AT + timedelta(hours=1))
    after = taken_back(back, (taking,), AT + timedelta(hours=2))
    assert (after.stats.tier_uses, after.stats.tier_success) == (0, 0.0)
