"""The rule of outcomes: counters, score, Wilson bound, lifetime, and who may judge what."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.errors import IdempotencyConflict, NotFound
from rayapp.learning.records import OutcomeEvent, Skipped
from rayapp.learning.rules.outcomes import (
    MIN_TTL,
    GuestLimits,
    Target,
    apply_outcome,
    check_same,
    moved_expiry,
    plan_outcome,
    with_outcome,
)
from rayapp.memory.item import IndexOp, IndexState, Outcome, Stats, Status, SyncState
from rayapp.memory.rules.lifecycle import success_estimate, wilson_lower_bound
from rayapp.memory.tiers import TIER_POLICY, Tier
from tests.support.builders import STORED_AT, an_item

AT = STORED_AT
OUTCOMES = st.lists(st.sampled_from(list(Outcome)), max_size=40)


def after(outcomes: list[Outcome], stats: Stats | None = None) -> Stats:
    stats = stats or Stats()
    for minute, outcome in enumerate(outcomes):
        stats = with_outcome(stats, outcome, AT + timedelta(minutes=minute))
    return stats


@pytest.mark.parametrize(
    ("success", "uses", "expected"),
    [
        (45, 50, 0.786),
        (9, 9, 0.701),
        (3, 3, 0.438),
        (0, 0, 0.5),
        (0, 5, 0.0),
        (1, 2, 0.095),
        (2.5, 5, 0.170),
    ],
)
def test_the_wilson_bound_is_the_decided_one(success: float, uses: int, expected: float) -> None:
    assert wilson_lower_bound(success, uses) == pytest.approx(expected, abs=0.0006)


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_the_wilson_bound_is_below_the_rate_and_has_four_decimals(uses: int, share: float) -> None:
    bound = wilson_lower_bound(share * uses, uses)
    assert 0 <= bound <= share + 5e-5
    assert bound == round(bound, 4)


@pytest.mark.parametrize(
    ("success", "uses", "value", "low", "high"),
    [(0, 0, 0.5, 0.0, 1.0), (1, 1, 0.6033, 0.2065, 1.0), (0, 1, 0.3967, 0.0, 0.7935)],
)
def test_the_estimate_says_what_is_likely_and_how_little_is_known(
    success: float, uses: int, value: float, low: float, high: float
) -> None:
    found = success_estimate(success, uses)
    assert (found.value, found.low, found.high) == (value, low, high)


@given(OUTCOMES)
def test_no_success_looks_worse_and_no_failure_better(outcomes: list[Outcome]) -> None:
    def shown(stats: Stats) -> tuple[float, float, float]:
        found = success_estimate(stats.success_count, stats.uses)
        assert 0 <= found.low <= found.value <= found.high <= 1
        return found.value, found.low, found.high

    before = after(outcomes)
    for outcome, sign in ((Outcome.WORKED, 1), (Outcome.FAILED, -1)):
        became = with_outcome(before, outcome, AT)
        changes = [new - old for new, old in zip(shown(became), shown(before), strict=True)]
        assert all(change * sign >= 0 for change in changes)
    if before.uses:
        assert success_estimate(before.success_count, before.uses).low == before.wilson_score


def test_more_success_than_uses_counts_as_all() -> None:
    assert wilson_lower_bound(12, 9) == wilson_lower_bound(9, 9)


@pytest.mark.parametrize(
    ("outcome", "success", "score"),
    [
        (Outcome.WORKED, 1.0, 0.7),
        (Outcome.PARTIAL, 0.5, 0.55),
        (Outcome.UNKNOWN, 0.25, 0.5),
        (Outcome.FAILED, 0.0, 0.2),
    ],
)
def test_one_outcome_of_each_kind(outcome: Outcome, success: float, score: float) -> None:
    stats = with_outcome(Stats(), outcome, AT)
    assert (stats.uses, stats.tier_uses) == (1, 1)
    assert (stats.success_count, stats.tier_success, stats.success_rate) == (success,) * 3
    assert stats.score == score
    assert (stats.last_outcome, stats.last_outcome_at) == (outcome, AT)
    assert getattr(stats, f"{outcome.value}_count") == 1


def test_the_score_stays_between_0_and_1() -> None:
    assert after([Outcome.WORKED] * 4).score == 1.0
    assert after([Outcome.FAILED] * 4).score == 0.0


def test_counters_of_the_tier_count_beside_those_of_the_life() -> None:
    promoted = replace(after([Outcome.WORKED] * 3), tier_uses=0, tier_success=0.0)
    stats = after([Outcome.PARTIAL], promoted)
    assert (stats.uses, stats.success_count) == (4, 3.5)
    assert (stats.tier_uses, stats.tier_success) == (1, 0.5)
    assert stats.wilson_score == wilson_lower_bound(3.5, 4)


@given(OUTCOMES, st.randoms(use_true_random=False))
def test_counters_do_not_depend_on_the_order(outcomes: list[Outcome], chance: object) -> None:
    shuffled = list(outcomes)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = after(outcomes), after(shuffled)
    neutral = {"score": 0.5, "last_outcome": None, "last_outcome_at": None}
    assert replace(one, **neutral) == replace(other, **neutral)


@given(OUTCOMES)
def test_every_number_has_four_decimals_and_the_kinds_add_up(outcomes: list[Outcome]) -> None:
    stats = after(outcomes)
    for name in ("success_count", "success_rate", "wilson_score", "score", "tier_success"):
        assert getattr(stats, name) == round(getattr(stats, name), 4)
    kinds = (stats.worked_count, stats.partial_count, stats.unknown_count, stats.failed_count)
    assert sum(kinds) == stats.uses == len(outcomes)


@given(st.sampled_from(list(Outcome)), st.timedeltas(timedelta(days=-30), timedelta(days=60)))
def test_a_lifetime_never_goes_below_an_hour_and_a_failure_adds_none(
    outcome: Outcome, left: timedelta
) -> None:
    expires = AT + left
    moved = moved_expiry(expires, outcome, AT)
    assert moved is not None
    if outcome is Outcome.FAILED:
        assert moved <= expires
        assert moved >= min(expires, AT + MIN_TTL)
    else:
        assert moved >= expires


def test_what_never_expires_still_never_does() -> None:
    assert [moved_expiry(None, outcome, AT) for outcome in Outcome] == [None] * 4


@pytest.mark.parametrize(
    ("outcome", "score", "hours"),
    [
        (Outcome.FAILED, 0.9, 1),
        (Outcome.UNKNOWN, 1.0, 1),
        (Outcome.PARTIAL, 0.95, 24),
        (Outcome.FAILED, 0.89, -48),
        (Outcome.PARTIAL, 0.5, 24),
    ],
)
def test_what_outlived_its_expiry_is_not_hidden_by_one_outcome(
    outcome: Outcome, score: float, hours: int
) -> None:
    over = AT - timedelta(days=2)
    assert moved_expiry(over, outcome, AT, score=score) == AT + timedelta(hours=hours)


def test_books_and_shared_tiers_are_not_scored() -> None:
    unscored = {tier for tier in Tier if not TIER_POLICY[tier].scored}
    assert unscored == {Tier.BOOKS, Tier.DATAGOV_SCHEMA, Tier.DATAGOV_EXPANSION}


def test_a_judged_item_asks_for_a_payload_write_and_is_not_edited() -> None:
    item = an_item(index=IndexState(sync_state=SyncState.SYNCED, rev=3), expires_at=AT)
    now = AT + timedelta(seconds=5)
    new = apply_outcome(item, Outcome.WORKED, AT, now)
    assert (new.index.op, new.index.rev, new.index.next_attempt_at) == (IndexOp.PAYLOAD, 4, now)
    assert (new.version, new.updated_at) == (item.version, item.updated_at)
    assert new.expires_at == AT + timedelta(days=7)


def test_an_archived_item_only_counts() -> None:
    item = an_item(status=Status.ARCHIVED, expires_at=AT)
    new = apply_outcome(item, Outcome.FAILED, AT, AT)
    assert new == replace(item, stats=new.stats)
    assert new.stats.uses == 1


# --- the plan


def an_event(*memory_ids: str, **changes: object) -> OutcomeEvent:
    event = OutcomeEvent(
        user_id="dana",
        idempotency_key="k",
        principal="dana",
        outcome=Outcome.WORKED,
        at=AT,
        memory_ids=memory_ids,
    )
    return replace(event, **changes)  # type: ignore[arg-type]


def a_target(name: str, tier: Tier = Tier.WORKING, doc_id: str | None = None) -> Target:
    return Target(memory_id=name, point_id=f"p-{name}", tier=tier, doc_id=doc_id)


def test_every_named_id_is_applied_or_skipped_once() -> None:
    found = {"a": a_target("w"), "b": a_target("w"), "k": a_target("k", Tier.BOOKS, "doc")}
    event = an_event("a", "b", "k", "x", "a", "v", skipped=(Skipped("v", "weak_signal"),))
    plan = plan_outcome(event, found, guest=None, strict=False)
    assert plan.targets == (found["a"],)
    assert {one.memory_id: one.reason for one in plan.skipped} == {
        "k": "not_scored",
        "x": "gone",
        "v": "weak_signal",
    }
    assert (plan.documents, plan.points) == (("doc",), ("p-w", "p-k"))
    assert plan.closes_turn


def test_a_strict_plan_names_the_id_that_is_not_there() -> None:
    with pytest.raises(NotFound, match="No memory b of yours"):
        plan_outcome(an_event("a", "b"), {"a": a_target("a")}, guest=None, strict=True)


def test_weak_signals_alone_do_not_end_a_turn() -> None:
    weak = an_event("a", skipped=(Skipped("a", "weak_signal"),))
    assert not plan_outcome(weak, {}, guest=None, strict=True).closes_turn
    assert plan_outcome(an_event(), {}, guest=None, strict=True).closes_turn


def test_a_guest_ends_a_turn_only_by_judging_something() -> None:
    found = {"a": a_target("a")}
    shown = GuestLimits(shown=frozenset("a"), left=1)
    assert plan_outcome(an_event("a"), found, guest=shown, strict=False).closes_turn
    refused = plan_outcome(an_event("a"), found, guest=GuestLimits(), strict=False)
    assert (refused.closes_turn, refused.targets) == (False, ())
    tired = replace(shown, left=0)
    assert plan_outcome(an_event("a"), found, guest=tired, strict=False).skipped == (
        Skipped("a", "rate"),
    )


def test_a_repeat_may_name_the_same_ids_in_any_order() -> None:
    check_same(an_event("a", "b"), an_event("b", "a", "a", at=AT + timedelta(hours=1)))
    with pytest.raises(IdempotencyConflict):
        check_same(an_event("a"), an_event("a", outcome=Outcome.FAILED))
