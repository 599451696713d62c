"""Resolving what an outcome is about, and what a retry answers."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rayapp.core.errors import Forbidden, IdempotencyConflict, InvalidInput, NotFound
from rayapp.learning.records import OutcomeRequest, Signal
from rayapp.memory.item import Outcome, Stats
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Shown
from tests.unit.learning.outcome_world import DANA, DANA_READS, GUEST, World, skipped, updated


class TestRecord:
    async def test_named_ids_are_scored_once_each(self, world: World) -> None:
        answer = await world.record(memory_ids=("b", "a", "b"), idempotency_key="k")
        assert updated(answer) == ["b", "a"]
        assert (answer.duplicate, answer.receipt_id) == (False, None)
        assert await world.uses("a", "b", "c") == [1, 1, 0]
        event = await world.event("k")
        assert (event.query, event.concepts, event.context_type) == ("", (), "general")

    async def test_positions_are_those_of_the_receipt(self, world: World) -> None:
        await world.receipt("r", "c", "a", "b")
        answer = await world.record(receipt_id="r", positions=(3, 1, 3), idempotency_key="k")
        assert updated(answer) == ["b", "c"]
        assert answer.receipt_id == "r"
        event = await world.event("k")
        assert event.query == "איך מחדשים דרכון?"
        assert (event.concepts, event.context_type) == (("דרכון",), "doc_rag")
        assert event.conversation_id == "c-1"

    async def test_it_belongs_to_the_conversation_where_the_question_was_asked(
        self, world: World
    ) -> None:
        await world.receipt("r", "a")
        named = {"receipt_id": "r", "conversation_id": "c-2", "idempotency_key": "k"}
        await world.record(**named)
        assert (await world.event("k")).conversation_id == "c-1"

    async def test_a_receipt_alone_means_all_that_it_shows(self, world: World) -> None:
        await world.receipt("r", "a", "c")
        assert updated(await world.record(receipt_id="r")) == ["a", "c"]

    async def test_a_conversation_means_its_newest_unscored_receipt(self, world: World) -> None:
        await world.receipt("old", "a")
        await world.receipt("new", "b")
        await world.receipt("elsewhere", "c", conversation_id="c-2")
        assert updated(await world.record(conversation_id="c-1")) == ["b"]
        assert updated(await world.record(conversation_id="c-1")) == ["a"]
        with pytest.raises(InvalidInput) as raised:
            await world.record(conversation_id="c-1")
        assert raised.value.code == "no_receipt"

    async def test_an_empty_receipt_answers_with_nothing(self, world: World) -> None:
        await world.receipt("r")
        answer = await world.record(receipt_id="r")
        assert (answer.updated, answer.skipped, answer.receipt_id) == ((), (), "r")

    async def test_named_ids_leave_the_receipts_of_the_conversation_alone(
        self, world: World
    ) -> None:
        receipt = await world.receipt("r", "a")
        await world.record(memory_ids=("b",), conversation_id="c-1")
        assert await world.receipts.get(DANA_READS, "r") == receipt

    async def test_a_scored_receipt_lives_thirty_days(self, world: World) -> None:
        await world.receipt("r", "a")
        now = world.clock.now()
        await world.record(receipt_id="r")
        receipt = await world.receipts.get(DANA_READS, "r")
        assert receipt is not None
        assert (receipt.scored_at, receipt.expires_at) == (now, now + timedelta(days=30))

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({}, "no_receipt"),
            ({"memory_ids": ("a",), "positions": (1,)}, "invalid_input"),
            ({"memory_ids": ()}, "invalid_input"),
            ({"positions": (), "receipt_id": "r"}, "invalid_input"),
            ({"memory_ids": tuple(f"m{n}" for n in range(201))}, "invalid_input"),
            ({"memory_ids": ("a", "שלום עולם")}, "bad_memory_id"),
            ({"receipt_id": "r", "positions": (1, 3)}, "bad_position"),
            ({"receipt_id": "r", "positions": (0,)}, "bad_position"),
            ({"receipt_id": "r", "positions": (-1,)}, "bad_position"),
        ],
    )
    async def test_an_invalid_request_changes_nothing(
        self, world: World, fields: dict[str, Any], code: str
    ) -> None:
        receipt = await world.receipt("r", "a", "b")
        with pytest.raises(InvalidInput) as raised:
            await world.record(**fields, idempotency_key="k")
        assert raised.value.code == code
        assert await world.uses("a", "b") == [0, 0]
        assert await world.receipts.get(DANA_READS, "r") == receipt
        assert await world.outcome_rows.find(DANA_READS, "k") is None

    async def test_a_wrong_position_is_told_the_valid_ones(self, world: World) -> None:
        await world.receipt("r", "a", "b")
        with pytest.raises(InvalidInput, match="no position 3: the receipt shows 1 to 2"):
            await world.record(receipt_id="r", positions=(3,))

    async def test_a_wrong_position_of_a_later_page_is_told_that_page(self, world: World) -> None:
        page = tuple(
            Shown(position=n, memory_id=m, tier=Tier.WORKING, final=0.5)
            for n, m in ((3, "a"), (4, "b"))
        )
        for shown, said in (
            (page, "3 to 4"),
            (page[1:], "only 4"),
            ((*page, replace(page[0], position=9)), "3, 4, 9"),
            ((), "nothing"),
        ):
            await world.receipt(said, shown=shown)
            with pytest.raises(InvalidInput, match=f"position 1: the receipt shows {said}\\."):
                await world.record(receipt_id=said, positions=(1,))

    async def test_foreign_and_expired_receipts_are_not_found(self, world: World) -> None:
        await world.receipt("foreign", "a", user_id="noa")
        await world.receipt("short", "a", expires_at=world.clock.now())
        for receipt_id in ("foreign", "short", "none"):
            with pytest.raises(NotFound, match=f"No receipt {receipt_id}"):
                await world.record(receipt_id=receipt_id)
        assert await world.uses("a") == [0]

    async def test_a_named_id_must_exist_and_a_shown_one_may_be_gone(self, world: World) -> None:
        await world.memory("n", "noa")
        with pytest.raises(NotFound, match="No memory n of yours"):
            await world.record(memory_ids=("a", "n"))
        await world.receipt("r", "a", "b")
        await world.memories.delete(DANA, "b")
        answer = await world.record(receipt_id="r")
        assert updated(answer) == ["a"]
        assert skipped(answer) == {"b": "gone"}
        assert (await world.item("n", "noa")).stats == Stats()

    async def test_the_shared_user_is_refused(self, world: World) -> None:
        request = OutcomeRequest(outcome=Outcome.WORKED, memory_ids=("a",))
        with pytest.raises(Forbidden):
            await world.outcomes.record(WriteScope("system"), request)

    async def test_a_weak_signal_is_kept_as_unknown_evidence(self, world: World) -> None:
        await world.receipt("r", "a", "b")
        weak = Signal(source="follow_up", confidence=0.69)
        answer = await world.record(receipt_id="r", signal=weak, idempotency_key="k")
        assert updated(answer) == []
        assert skipped(answer) == {"a": "weak_signal", "b": "weak_signal"}
        event = await world.event("k")
        assert (event.outcome, event.memory_ids, event.signal) == (
            Outcome.UNKNOWN,
            ("a", "b"),
            weak,
        )
        assert await world.uses("a", "b") == [0, 0]
        again = await world.record(receipt_id="r", signal=weak, idempotency_key="k")
        assert again == replace(answer, duplicate=True)

    @pytest.mark.parametrize(
        "signal", [Signal(source="follow_up", confidence=0.7), Signal(confidence=0.1)]
    )
    async def test_strong_and_explicit_signals_count(self, world: World, signal: Signal) -> None:
        assert updated(await world.record(memory_ids=("a",), signal=signal)) == ["a"]


class TestRepeat:
    async def test_a_retry_answers_the_first_result_and_takes_no_other_receipt(
        self, world: World
    ) -> None:
        await world.receipt("first", "a")
        request: dict[str, Any] = {"conversation_id": "c-1", "idempotency_key": "k"}
        answer = await world.record(**request)
        await world.receipt("second", "b")
        assert await world.record(**request) == replace(answer, duplicate=True)
        assert await world.uses("a", "b") == [1, 0]

    async def test_a_key_of_another_outcome_is_a_conflict(self, world: World) -> None:
        await world.record(memory_ids=("a",), idempotency_key="k")
        for fields in (
            {"memory_ids": ("b",)},
            {"memory_ids": ("a",), "outcome": Outcome.FAILED},
            {"memory_ids": ("a",), "receipt_id": "r"},
        ):
            with pytest.raises(IdempotencyConflict):
                await world.record(**fields, idempotency_key="k")
        assert await world.uses("a", "b") == [1, 0]

    @pytest.mark.parametrize(
        "other",
        [
            {"positions": (2,)},
            {"positions": (1, 2)},
            {"positions": None},
            {"positions": None, "memory_ids": ("a",)},
            {"receipt_id": None},
            {"conversation_id": "c-1"},
            {"action": "get_context"},
            {"signal": Signal(confidence=0.9)},
            {"outcome": Outcome.FAILED},
        ],
    )
    async def test_a_key_with_another_request_is_a_conflict(
        self, world: World, other: dict[str, Any]
    ) -> None:
        """Compared as sent: two requests may be about the same memory and differ all the same."""
        await world.receipt("r", "a", "b")
        request: dict[str, Any] = {"receipt_id": "r", "positions": (1,), "idempotency_key": "k"}
        await world.record(**request)
        with pytest.raises(IdempotencyConflict):
            await world.record(**request | other)
        assert (await world.record(**request)).duplicate
        assert await world.uses("a", "b") == [1, 0]

    async def test_a_key_recorded_without_a_fingerprint_is_compared_by_its_memories(
        self, world: World
    ) -> None:
        await world.record(memory_ids=("a",), idempotency_key="k")
        row = world.outcome_rows._events["dana", "k"]
        row.event = replace(row.event, request_hash="")
        assert (await world.record(memory_ids=("a",), idempotency_key="k")).duplicate
        with pytest.raises(IdempotencyConflict):
            await world.record(memory_ids=("b",), idempotency_key="k")

    async def test_without_a_key_every_outcome_counts(self, world: World) -> None:
        for _ in range(3):
            assert not (await world.record(memory_ids=("a",))).duplicate
        assert await world.uses("a") == [3]


class TestGuests:
    async def test_a_guest_scores_its_own_receipt(self, world: World) -> None:
        await world.receipt("mine", "a", principal="agent")
        await world.receipt("other", "b", principal="someone")
        answer = await world.record(conversation_id="c-1", recorder=GUEST)
        assert (updated(answer), answer.receipt_id) == (["a"], "mine")
        refused = await world.record(receipt_id="other", recorder=GUEST)
        assert skipped(refused) == {"b": "not_shown"}
        again = await world.record(receipt_id="mine", recorder=GUEST)
        assert skipped(again) == {"a": "already_scored"}
        named = await world.record(memory_ids=("c",), recorder=GUEST)
        assert skipped(named) == {"c": "not_shown"}
