"""Every rule that moves an item, at its borders; one class per rule."""

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.learning.rules.promotion import (
    PROMOTION_RULES,
    Decision,
    PromotionParams,
    apply_move,
    decide,
    transition_id,
)
from rayapp.memory.item import IndexOp, MemoryItem, Stats, Status, SyncState
from rayapp.memory.rules.creation import restored
from rayapp.memory.tiers import TIER_POLICY, Tier
from tests.support.builders import an_item

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
OLD, YOUNG = NOW - timedelta(days=7), NOW - timedelta(days=7) + timedelta(milliseconds=1)
BY_SCORE, BY_WILSON = PromotionParams(), PromotionParams(policy="wilson")
LEFT_ALONE = (Tier.MEMORY_BANK, Tier.BOOKS, Tier.DATAGOV_SCHEMA, Tier.DATAGOV_EXPANSION)
PROBATION = {"tier_uses": 3, "tier_success": 5.0}


def item_of(tier: Tier, *, stored_at: datetime = OLD, **stats: Any) -> MemoryItem:
    """`expires_at`, `status` and `created_at` are the item's, everything else its counters."""
    own = {n: stats.pop(n) for n in ("expires_at", "status", "created_at") if n in stats}
    return an_item(tier=tier, stored_at=stored_at, stats=Stats(**stats), **own)


def decided(item: MemoryItem, params: PromotionParams = BY_SCORE) -> tuple[str, str]:
    decision = decide(item, NOW, params)
    return decision.action, decision.rule


KEPT = ("keep", "none")


class TestLeftAlone:
    @pytest.mark.parametrize("tier", LEFT_ALONE)
    @pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
    @pytest.mark.parametrize("params", [BY_SCORE, BY_WILSON])
    def test_facts_books_and_datagov_are_never_touched(
        self, tier: Tier, score: float, params: PromotionParams
    ) -> None:
        item = item_of(tier, uses=9, score=score, wilson_score=score, expires_at=NOW, **PROBATION)
        assert decided(item, params) == ("keep", "left_alone")

    @pytest.mark.parametrize("status", [Status.ARCHIVED, Status.DELETED])
    def test_what_is_not_active_stays(self, status: Status) -> None:
        item = item_of(Tier.WORKING, uses=9, score=0.0, expires_at=NOW, status=status)
        assert decided(item) == ("keep", "left_alone")


class TestPromoteWorking:
    @pytest.mark.parametrize(
        ("uses", "score", "expected"),
        [
            (2, 0.7, ("promote", "promote_working")),
            (2, 0.6999, KEPT),
            (1, 1.0, KEPT),
            (50, 0.69, KEPT),
        ],
    )
    def test_needs_two_uses_and_a_score_of_070(
        self, uses: int, score: float, expected: tuple[str, str]
    ) -> None:
        assert decided(item_of(Tier.WORKING, uses=uses, score=score)) == expected

    def test_wilson_gates_when_it_is_the_policy(self) -> None:
        sure = item_of(Tier.WORKING, uses=9, score=0.5, wilson_score=0.7007)
        lucky = item_of(Tier.WORKING, uses=3, score=1.0, wilson_score=0.4385)
        assert decided(sure, BY_WILSON) == ("promote", "promote_working")
        assert decided(lucky, BY_WILSON) == KEPT
        assert (decided(sure), decided(lucky)) == (KEPT, ("promote", "promote_working"))

    def test_comes_before_expiry(self) -> None:
        item = item_of(Tier.WORKING, uses=2, score=0.7, expires_at=NOW - timedelta(days=3))
        assert decided(item) == ("promote", "promote_working")

    def test_says_why(self) -> None:
        decision = decide(item_of(Tier.WORKING, uses=2, score=0.7), NOW, BY_SCORE)
        assert (decision.to, decision.reason) == (Tier.HISTORY, "score 0.7 after 2 uses")


class TestPromoteHistory:
    @pytest.mark.parametrize(
        ("score", "tier_uses", "tier_success", "expected"),
        [
            (0.9, 3, 5.0, ("promote", "promote_history")),
            (0.8999, 9, 9.0, KEPT),
            (1.0, 2, 5.0, KEPT),
            (1.0, 9, 4.75, KEPT),
        ],
    )
    def test_needs_score_uses_and_success_of_its_probation(
        self, score: float, tier_uses: int, tier_success: float, expected: tuple[str, str]
    ) -> None:
        item = item_of(
            Tier.HISTORY,
            uses=50,
            success_count=50.0,
            score=score,
            tier_uses=tier_uses,
            tier_success=tier_success,
        )
        assert decided(item) == expected

    def test_wilson_gates_when_it_is_the_policy(self) -> None:
        item = item_of(Tier.HISTORY, uses=40, score=0.95, wilson_score=0.8, **PROBATION)
        sure = replace(item, stats=replace(item.stats, score=0.5, wilson_score=0.9))
        assert (decided(item), decided(item, BY_WILSON)) == (("promote", "promote_history"), KEPT)
        assert (decided(sure), decided(sure, BY_WILSON)) == (KEPT, ("promote", "promote_history"))

    def test_nothing_leads_out_of_patterns_upwards(self) -> None:
        assert decided(item_of(Tier.PATTERNS, uses=9, score=1.0, **PROBATION)) == KEPT


class TestDemotePatterns:
    @pytest.mark.parametrize(
        ("score", "expected"), [(0.2999, ("demote", "demote_patterns")), (0.3, KEPT)]
    )
    def test_below_030_it_goes_back_to_history(
        self, score: float, expected: tuple[str, str]
    ) -> None:
        assert decided(item_of(Tier.PATTERNS, uses=9, score=score)) == expected

    def test_the_policy_gates_promotions_only(self) -> None:
        item = item_of(Tier.PATTERNS, uses=9, score=0.29, wilson_score=0.95)
        assert decided(item, BY_WILSON) == ("demote", "demote_patterns")

    def test_history_is_not_demoted(self) -> None:
        assert decided(item_of(Tier.HISTORY, uses=9, score=0.25)) == KEPT


class TestArchiveExpired:
    @pytest.mark.parametrize("tier", [Tier.WORKING, Tier.HISTORY])
    @pytest.mark.parametrize(
        ("after_ms", "score", "expected"),
        [
            (0, 0.5, ("archive", "archive_expired")),
            (1, 0.5, KEPT),
            (-1, 0.8999, ("archive", "archive_expired")),
            (-1, 0.9, KEPT),
        ],
    )
    def test_at_its_time_unless_the_score_outlives_it(
        self, tier: Tier, after_ms: int, score: float, expected: tuple[str, str]
    ) -> None:
        expires_at = NOW + timedelta(milliseconds=after_ms)
        assert decided(item_of(tier, score=score, expires_at=expires_at)) == expected

    def test_the_reason_is_one_word(self) -> None:
        item = item_of(Tier.WORKING, expires_at=NOW)
        assert apply_move(item, decide(item, NOW, BY_SCORE), NOW).archived_reason == "expired"

    def test_comes_before_garbage(self) -> None:
        item = item_of(Tier.WORKING, uses=5, score=0.0, expires_at=NOW)
        assert decided(item) == ("archive", "archive_expired")

    def test_no_expiry_never_ends(self) -> None:
        assert decided(item_of(Tier.PATTERNS, score=0.5)) == KEPT


class TestArchiveGarbage:
    @pytest.mark.parametrize("tier", [Tier.WORKING, Tier.HISTORY])
    @pytest.mark.parametrize(
        ("stored_at", "score", "expected"),
        [
            (OLD, 0.1999, ("archive", "archive_garbage")),
            (OLD, 0.2, KEPT),
            (YOUNG, 0.1, KEPT),
            (YOUNG, 0.0999, ("archive", "archive_garbage")),
        ],
    )
    def test_below_020_and_while_young_below_010(
        self, tier: Tier, stored_at: datetime, score: float, expected: tuple[str, str]
    ) -> None:
        assert decided(item_of(tier, uses=1, score=score, stored_at=stored_at)) == expected

    @pytest.mark.parametrize("tier", [Tier.WORKING, Tier.HISTORY])
    def test_what_is_asked_of_every_answer_is_no_garbage(self, tier: Tier) -> None:
        item = item_of(tier, uses=2, score=0.0)
        assert decided(replace(item, instruction="ענה תמיד בעברית")) == KEPT

    def test_what_was_never_judged_is_no_garbage(self) -> None:
        assert decided(item_of(Tier.WORKING, uses=0, score=0.0)) == KEPT

    def test_age_counts_from_the_server_time_not_from_when_it_happened(self) -> None:
        item = item_of(
            Tier.WORKING, uses=1, score=0.15, stored_at=YOUNG, created_at=NOW - timedelta(days=900)
        )
        assert decided(item) == KEPT

    @pytest.mark.parametrize("tier", [Tier.WORKING, Tier.HISTORY])
    @pytest.mark.parametrize("stored_at", [OLD, YOUNG])
    def test_what_was_brought_back_stays(self, tier: Tier, stored_at: datetime) -> None:
        item = item_of(tier, uses=2, score=0.05, stored_at=stored_at)
        gone = apply_move(item, decide(item, NOW, BY_SCORE), NOW)
        assert gone.status is Status.ARCHIVED
        back = restored(gone, NOW)
        assert decided(back) == KEPT
        assert (back.stats.score, back.stats.uses) == (0.2, 2)


class TestOrder:
    def test_the_rules_are_named_in_the_order_in_which_they_decide(self) -> None:
        assert [rule.__name__ for rule in PROMOTION_RULES] == [
            "left_alone",
            "promote_working",
            "promote_history",
            "demote_patterns",
            "archive_expired",
            "archive_garbage",
        ]

    def test_a_decision_carries_the_name_of_the_first_rule_that_speaks(self) -> None:
        items = [
            item_of(tier, uses=9, score=score, expires_at=expires_at, **PROBATION)
            for tier in Tier
            for score in (0.0, 0.5, 1.0)
            for expires_at in (None, NOW)
        ]
        speak = {
            item.point_id: [one.__name__ for one in PROMOTION_RULES if one(item, NOW, BY_SCORE)]
            for item in items
        }
        named = {item.point_id: decide(item, NOW, BY_SCORE).rule for item in items}
        assert named == {point: (*names, "none")[0] for point, names in speak.items()}
        assert {rule.__name__ for rule in PROMOTION_RULES} <= set(named.values())


SCORES = st.integers(0, 10_000).map(lambda n: n / 10_000)
STATS = st.builds(
    Stats,
    uses=st.integers(0, 60),
    score=SCORES,
    wilson_score=SCORES,
    tier_uses=st.integers(0, 20),
    tier_success=st.integers(0, 60).map(lambda n: n / 4),
)
AGES = st.integers(-1, 90 * 24).map(lambda hours: timedelta(hours=hours))
ITEMS = st.builds(
    lambda tier, stats, age, left: an_item(
        tier=tier, stats=stats, stored_at=NOW - age, expires_at=None if left is None else NOW + left
    ),
    st.sampled_from(Tier),
    STATS,
    AGES,
    st.none() | AGES | AGES.map(lambda age: -age),
)
PARAMS = st.sampled_from([BY_SCORE, BY_WILSON])


class TestMoved:
    def of(self, item: MemoryItem, to: Tier) -> MemoryItem:
        return apply_move(item, Decision(action="promote", to=to, reason="r", rule="x"), NOW)

    @pytest.mark.parametrize("to", [Tier.HISTORY, Tier.PATTERNS])
    def test_a_fresh_lifetime_and_fresh_tier_counters(self, to: Tier) -> None:
        item = item_of(Tier.WORKING, uses=5, success_count=4.5, **PROBATION)
        item = replace(item, index=replace(item.index, sync_state=SyncState.SYNCED))
        new = self.of(item, to)
        hours = TIER_POLICY[to].ttl_hours
        assert (new.tier, new.tier_entered_at, new.updated_at) == (to, NOW, NOW)
        assert new.expires_at == (None if hours is None else NOW + timedelta(hours=hours))
        assert new.stats == replace(item.stats, tier_uses=0, tier_success=0.0)
        assert (new.index.op, new.index.sync_state) == (IndexOp.PAYLOAD, SyncState.PENDING)
        assert new.index.next_attempt_at == NOW

    def test_what_would_be_demoted_at_once_is_not_promoted(self) -> None:
        """Helped a hundred times, failed four times just now: Wilson is high, the score is not."""
        item = item_of(Tier.HISTORY, uses=104, success_count=100.0, score=0.25, **PROBATION)
        item = replace(item, stats=replace(item.stats, wilson_score=0.905))
        assert decide(item, NOW, BY_WILSON).action == "keep"

    @given(item=ITEMS, params=PARAMS)
    def test_no_chain_of_moves_is_longer_than_two(
        self, item: MemoryItem, params: PromotionParams
    ) -> None:
        """So a second run has nothing to do, and nothing goes round in circles."""
        for _ in range(2):
            item = apply_move(item, decide(item, NOW, params), NOW)
        assert decide(item, NOW, params).action == "keep"

    @given(item=ITEMS, params=PARAMS)
    def test_only_what_a_decision_names_changes(
        self, item: MemoryItem, params: PromotionParams
    ) -> None:
        decision = decide(item, NOW, params)
        new = apply_move(item, decision, NOW)
        assert new.tier is (decision.to or item.tier)
        assert (new.status is Status.ARCHIVED) == (decision.action == "archive")
        assert (new is item) == (decision.action == "keep")
        assert (new.text, new.memory_id, new.quality) == (item.text, item.memory_id, item.quality)

    @given(item=ITEMS, params=PARAMS)
    def test_a_time_zone_does_not_matter(self, item: MemoryItem, params: PromotionParams) -> None:
        israel = timezone(timedelta(hours=2))
        there = replace(
            item,
            stored_at=item.stored_at.astimezone(israel),
            expires_at=item.expires_at and item.expires_at.astimezone(israel),
        )
        assert decide(there, NOW.astimezone(israel), params) == decide(item, NOW, params)


class TestTransitionId:
    def test_is_the_same_for_the_same_step_and_another_for_any_other(self) -> None:
        item = item_of(Tier.WORKING)
        others = [
            transition_id(item, "archived"),
            transition_id(replace(item, version=2), "promoted"),
            transition_id(item_of(Tier.WORKING), "promoted"),
        ]
        assert transition_id(replace(item, text="x"), "promoted") == transition_id(item, "promoted")
        assert transition_id(item, "promoted") not in others


PROGRAM = """
from datetime import UTC, datetime, timedelta
from rayapp.learning.rules.promotion import PromotionParams, apply_move, decide
from rayapp.memory.item import Stats
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item

now = datetime(2026, 3, 27, 0, 30, tzinfo=UTC)  # the clocks of Israel go forward on this day
for tier in Tier:
    for score in (0.0, 0.15, 0.5, 0.95):
        for hours in (-3, -2, -1, 0, 1, 2, 3):
            item = an_item(
                memory_id="m", text="t", tier=tier, stats=Stats(uses=3, score=score),
                stored_at=now - timedelta(days=7) + timedelta(hours=hours),
                expires_at=now + timedelta(hours=hours),
            )
            decision = decide(item, now, PromotionParams())
            print(decision, apply_move(item, decision, now).expires_at)
"""


class TestLocalTime:
    @pytest.mark.process
    def test_decisions_in_israel_are_those_of_utc(self) -> None:
        """Naive local time once moved lifetimes by three hours there."""

        def run(zone: str) -> str:
            return subprocess.run(
                [sys.executable, "-c", PROGRAM],
                env={**os.environ, "TZ": zone},
                capture_output=True,
                text=True,
                check=True,
            ).stdout

        israel, utc = run("Asia/Jerusalem"), run("UTC")
        assert israel == utc
        assert all(action in utc for action in ("'promote'", "'archive'", "'demote'", "'keep'"))
