"""Two memories that say the same become one, and nothing that was learned is lost."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.learning.rules.dedup import merge_moves, merged, older_first
from rayapp.learning.rules.outcomes import with_outcome
from rayapp.memory.item import ChangeType, IndexOp, Outcome, Quality, Stats, Status, SyncState
from rayapp.memory.rules.lifecycle import wilson_lower_bound
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT, an_item

NOW = STORED_AT + timedelta(days=3)
DAY = timedelta(days=1)


def judged(*outcomes: Outcome, minutes: int = 0) -> Stats:
    stats = Stats()
    for number, outcome in enumerate(outcomes):
        stats = with_outcome(stats, outcome, STORED_AT + timedelta(minutes=minutes + number))
    return stats


OUTCOMES = st.lists(st.sampled_from(Outcome), max_size=12)


class TestCounters:
    @given(winner=OUTCOMES, loser=OUTCOMES)
    def test_are_those_of_an_item_that_got_all_outcomes(
        self, winner: list[Outcome], loser: list[Outcome]
    ) -> None:
        kept, _ = merged(an_item(stats=judged(*winner)), an_item(stats=judged(*loser)), NOW)
        both = judged(*winner, *loser)
        for name in (
            "uses",
            "success_count",
            "worked_count",
            "partial_count",
            "unknown_count",
            "failed_count",
            "success_rate",
            "wilson_score",
            "tier_uses",
            "tier_success",
        ):
            assert getattr(kept.stats, name) == getattr(both, name), name

    @given(winner=OUTCOMES, loser=OUTCOMES)
    def test_score_lies_between_the_two(self, winner: list[Outcome], loser: list[Outcome]) -> None:
        one, other = judged(*winner), judged(*loser)
        kept, _ = merged(an_item(stats=one), an_item(stats=other), NOW)
        assert min(one.score, other.score) <= kept.stats.score <= max(one.score, other.score)

    @pytest.mark.parametrize(
        ("winner", "loser", "score"),
        [
            ((9, 0.9), (0, 0.5), 0.9),
            ((0, 0.5), (4, 0.2), 0.2),
            ((3, 1.0), (1, 0.2), 0.8),
            ((0, 0.7), (0, 0.5), 0.7),
        ],
    )
    def test_score_is_weighted_by_uses(
        self, winner: tuple[int, float], loser: tuple[int, float], score: float
    ) -> None:
        one, other = (Stats(uses=uses, score=s) for uses, s in (winner, loser))
        kept, _ = merged(an_item(stats=one), an_item(stats=other), NOW)
        assert kept.stats.score == score

    def test_tier_counters_of_another_tier_do_not_count(self) -> None:
        stats = judged(*[Outcome.WORKED] * 4)
        kept, _ = merged(
            an_item(tier=Tier.HISTORY, stats=stats), an_item(tier=Tier.WORKING, stats=stats), NOW
        )
        assert (kept.stats.tier_uses, kept.stats.tier_success) == (4, 4.0)
        assert (kept.stats.uses, kept.stats.success_count) == (8, 8.0)
        assert kept.stats.wilson_score == wilson_lower_bound(8.0, 8)

    @pytest.mark.parametrize("winner_is_later", [True, False])
    def test_the_last_outcome_is_the_later_one(self, winner_is_later: bool) -> None:
        late, early = judged(Outcome.FAILED, minutes=9), judged(Outcome.WORKED)
        pair = (late, early) if winner_is_later else (early, late)
        kept, _ = merged(an_item(stats=pair[0]), an_item(stats=pair[1]), NOW)
        assert kept.stats.last_outcome is Outcome.FAILED
        assert kept.stats.last_outcome_at == late.last_outcome_at

    def test_an_outcome_is_later_than_none(self) -> None:
        kept, _ = merged(an_item(), an_item(stats=judged(Outcome.WORKED)), NOW)
        assert kept.stats.last_outcome is Outcome.WORKED


class TestWinner:
    def kept(self, winner: dict[str, Any], loser: dict[str, Any]) -> Any:
        return merged(an_item(memory_id="w", **winner), an_item(**loser), NOW)[0]

    def test_labels_are_united_in_order(self) -> None:
        kept = self.kept(
            {"tags": ("רכב", "a"), "entities": ("חיפה",)},
            {"tags": ("a", "b"), "entities": ("Haifa",)},
        )
        assert (kept.tags, kept.entities) == (("רכב", "a", "b"), ("חיפה", "Haifa"))

    def test_labels_are_bounded(self) -> None:
        kept = self.kept(
            {"tags": tuple(f"w{n}" for n in range(60))}, {"tags": tuple(f"l{n}" for n in range(60))}
        )
        assert (len(kept.tags), kept.tags[63]) == (64, "l3")

    @pytest.mark.parametrize(
        ("winner", "loser", "expected"), [(0.9, 0.5, 0.9), (0.5, 0.9, 0.9), (0.5, 0.5, 0.5)]
    )
    def test_the_better_quality_is_kept_and_mentions_are_added(
        self, winner: float, loser: float, expected: float
    ) -> None:
        kept = self.kept(
            {"quality": Quality(importance=winner, mentioned_count=2)},
            {"quality": Quality(importance=loser, mentioned_count=3)},
        )
        assert kept.quality == Quality(importance=expected, mentioned_count=5)

    @pytest.mark.parametrize("pinned", [(True, False), (False, True)])
    def test_what_one_pins_stays_pinned(self, pinned: tuple[bool, bool]) -> None:
        assert self.kept({"always_inject": pinned[0]}, {"always_inject": pinned[1]}).always_inject

    def test_what_one_asks_of_every_answer_stays_asked(self) -> None:
        asks, plain = {"instruction": "Answer in metric."}, {"expires_at": NOW + DAY}
        for kept in (self.kept(plain, asks), self.kept(asks, plain)):
            assert (kept.instruction, kept.expires_at) == ("Answer in metric.", None)
        own = self.kept({"instruction": "ענה בקצרה"}, asks)
        assert own.instruction == "ענה בקצרה"

    @pytest.mark.parametrize(
        ("winner", "loser", "expected"),
        [(NOW, NOW + DAY, NOW + DAY), (NOW + DAY, NOW, NOW + DAY), (None, NOW, None)],
    )
    def test_the_later_expiry_holds_and_none_is_the_latest(
        self, winner: Any, loser: Any, expected: Any
    ) -> None:
        assert self.kept({"expires_at": winner}, {"expires_at": loser}).expires_at == expected
        assert self.kept({"expires_at": loser}, {"expires_at": winner}).expires_at == expected

    def test_a_current_loser_makes_a_closed_winner_current_again(self) -> None:
        closed = {"superseded_by": "port 9090", "valid_to": NOW - DAY}
        reopened = self.kept(closed, {"stored_at": NOW})
        assert (reopened.superseded_by, reopened.valid_to) == (None, None)
        # A copy of before the replacement says nothing against it.
        older = self.kept(closed, {"stored_at": NOW - 2 * DAY})
        assert (older.superseded_by, older.valid_to) == ("port 9090", NOW - DAY)
        still = self.kept(closed, {**closed, "superseded_by": "other"})
        assert (still.superseded_by, still.valid_to) == ("port 9090", NOW - DAY)
        current = self.kept({"valid_to": NOW + DAY}, closed)
        assert (current.superseded_by, current.valid_to) == (None, NOW + DAY)

    def test_it_happened_when_the_first_of_them_happened(self) -> None:
        kept = self.kept({"created_at": NOW}, {"created_at": NOW - DAY})
        assert (kept.created_at, kept.updated_at, kept.memory_id) == (NOW - DAY, NOW, "w")

    def test_time_in_the_tier_counts_from_the_first_that_entered_it(self) -> None:
        entered = {"tier_entered_at": STORED_AT - DAY}
        assert self.kept({}, entered).tier_entered_at == STORED_AT - DAY
        assert self.kept({}, {**entered, "tier": Tier.HISTORY}).tier_entered_at == STORED_AT

    def test_the_index_is_asked_for_a_new_payload(self) -> None:
        index = replace(an_item().index, sync_state=SyncState.SYNCED, rev=4)
        kept = self.kept({"index": index}, {})
        assert (kept.index.op, kept.index.sync_state) == (IndexOp.PAYLOAD, SyncState.PENDING)
        assert kept.index.rev > 4


def test_the_loser_is_archived_and_points_at_the_winner() -> None:
    _, gone = merged(an_item(memory_id="w"), an_item(memory_id="l", text="שלום"), NOW)
    assert (gone.memory_id, gone.merged_into, gone.text) == ("l", "w", "שלום")
    assert (gone.status, gone.archived_reason) == (Status.ARCHIVED, "merged into w")
    assert (gone.archived_at, gone.index.op) == (NOW, IndexOp.DELETE)


class TestOlderFirst:
    def test_the_first_stored_wins_whoever_asks(self) -> None:
        old, new = an_item(memory_id="z"), an_item(memory_id="a", stored_at=STORED_AT + DAY)
        assert older_first(old, new) == older_first(new, old) == (old, new)

    def test_of_two_stored_at_once_the_lower_id_wins(self) -> None:
        a, b = an_item(memory_id="a"), an_item(memory_id="b")
        assert older_first(b, a) == older_first(a, b) == (a, b)


class TestMoves:
    def test_the_loser_comes_first_with_the_states_that_were_read(self) -> None:
        winner, loser = an_item(version=4), an_item(version=7)
        first, second = merge_moves(winner, loser, now=NOW, reason="same text")
        assert (first.item.memory_id, first.expected_version) == (loser.memory_id, 7)
        assert (second.item.memory_id, second.expected_version) == (winner.memory_id, 4)
        assert {first.row.change_type, second.row.change_type} == {ChangeType.MERGE}
        assert (first.row.reason, first.row.at, first.row.stats) == ("same text", NOW, loser.stats)

    def test_a_winner_that_moves_too_is_compared_with_what_was_read(self) -> None:
        read = an_item(stats=judged(Outcome.WORKED, Outcome.WORKED))
        arrived = replace(read, tier=Tier.HISTORY, stats=replace(read.stats, tier_uses=0))
        loser = an_item(tier=Tier.HISTORY)
        _, second = merge_moves(arrived, loser, now=NOW, reason=None, read=read)
        assert (second.item.tier, second.row.stats) == (Tier.HISTORY, read.stats)
