"""Takeaways and the feedback of people."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from rayapp.assistant.ports import TurnRecord
from rayapp.core.errors import IdempotencyConflict, InvalidInput, NotFound
from rayapp.learning.ports import OutcomeLimits
from rayapp.learning.records import FeedbackRequest, OutcomeEvent
from rayapp.learning.rules.outcomes import key_prefix, old_key_prefix
from rayapp.learning.rules.tools import verdict_prefix
from rayapp.memory.item import Outcome, SourceType, Stats
from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from tests.support.conversation_contract import a_kept_turn
from tests.unit.learning.outcome_world import DANA, DANA_READS, GUEST, World, skipped, updated


class TestResponses:
    @pytest.mark.parametrize(
        ("outcome", "score"),
        [
            (Outcome.WORKED, 0.7),
            (Outcome.PARTIAL, 0.55),
            (Outcome.UNKNOWN, 0.5),
            (Outcome.FAILED, 0.2),
        ],
    )
    async def test_the_takeaway_is_born_with_the_score_of_its_outcome(
        self, world: World, outcome: Outcome, score: float
    ) -> None:
        answer = await world.respond("  The form needs two copies  ", outcome=outcome)
        item = await world.item(answer.memory_id)
        assert (item.text, item.tier) == ("The form needs two copies", Tier.WORKING)
        assert item.tags == ("key_takeaway",)
        assert item.source.type is SourceType.ASSISTANT
        assert item.stats == Stats(score=score)
        assert answer.scored.updated == ()

    async def test_all_shown_items_are_scored_when_none_are_named(self, world: World) -> None:
        await world.receipt("r", "a", "b")
        answer = await world.respond(outcome=Outcome.WORKED, conversation_id="c-1")
        assert updated(answer.scored) == ["a", "b"]
        assert (await world.item(answer.memory_id)).source.conversation_id == "c-1"
        assert await world.receipts.latest(DANA_READS, "c-1", 1, unscored=True) == []

    async def test_related_mixes_positions_and_ids(self, world: World) -> None:
        await world.receipt("r", "a", "b")
        answer = await world.respond(related=(2, "c", "b"), receipt_id="r")
        assert updated(answer.scored) == ["b", "c"]

    async def test_related_to_nothing_ends_the_turn(self, world: World) -> None:
        await world.receipt("r", "a")
        answer = await world.respond(related=(), conversation_id="c-1")
        assert answer.scored.updated == ()
        assert await world.uses("a") == [0]
        assert await world.receipts.latest(DANA_READS, "c-1", 1, unscored=True) == []

    async def test_no_search_of_another_conversation_is_scored(self, world: World) -> None:
        await world.receipt("r", "a")
        await world.respond(conversation_id="c-2")
        await world.respond("עוד משהו")
        assert await world.uses("a") == [0]

    @pytest.mark.parametrize(
        ("takeaway", "fields", "error"),
        [
            ("   ", {}, InvalidInput),
            ("x" * 1_001, {}, InvalidInput),
            ("ok", {"related": (3,), "receipt_id": "r"}, InvalidInput),
            ("ok", {"related": (1,)}, InvalidInput),
            ("ok", {"related": ("a", "nothing")}, NotFound),
            ("ok", {"related": ("a", "n")}, NotFound),
            ("ok", {"receipt_id": "none"}, NotFound),
        ],
    )
    async def test_an_invalid_response_stores_and_scores_nothing(
        self, world: World, takeaway: str, fields: dict[str, Any], error: type[Exception]
    ) -> None:
        await world.memory("n", "noa")
        receipt = await world.receipt("r", "a", "b")
        before = len(world.items._rows)
        with pytest.raises(error):
            await world.respond(takeaway, **fields)
        assert len(world.items._rows) == before
        assert await world.uses("a") == [0]
        assert await world.receipts.get(DANA_READS, "r") == receipt

    @pytest.mark.parametrize("takeaway", ["\u200b\u200b", "two\u0007 copies"])
    async def test_a_takeaway_that_cannot_be_stored_judges_no_tool(
        self, world: World, takeaway: str
    ) -> None:
        turn = a_kept_turn()
        record = TurnRecord(message_id="m-1", memory_id="x", at=turn.at, required=True)
        await world.conversations.keep(DANA, turn, "")
        await world.sessions.add_turn(DANA, "c-1", record)
        judged = verdict_prefix("c-1", "m-1")
        with pytest.raises(InvalidInput):
            await world.respond(takeaway, conversation_id="c-1", outcome=Outcome.WORKED)
        assert await world.outcome_rows.latest(DANA_READS, judged, 10) == []
        await world.respond("two copies", conversation_id="c-1", outcome=Outcome.WORKED)
        assert len(await world.outcome_rows.latest(DANA_READS, judged, 10)) == 1

    async def test_a_thousand_characters_are_a_takeaway(self, world: World) -> None:
        assert (await world.respond("א" * 1_000)).memory_id

    async def test_a_retry_stores_and_scores_once(self, world: World) -> None:
        await world.receipt("r", "a")
        request: dict[str, Any] = {"conversation_id": "c-1", "idempotency_key": "k"}
        first = await world.respond(outcome=Outcome.WORKED, **request)
        await world.receipt("later", "b")
        again = await world.respond(outcome=Outcome.WORKED, **request)
        assert (first.duplicate, again.duplicate) == (False, True)
        assert again.memory_id == first.memory_id
        assert again.scored == replace(first.scored, duplicate=True)
        assert await world.uses("a", "b") == [1, 0]
        assert (await world.item(first.memory_id)).quality.mentioned_count == 1

    async def test_a_retry_of_a_response_without_receipt_finds_none_later(
        self, world: World
    ) -> None:
        request: dict[str, Any] = {"conversation_id": "c-1", "idempotency_key": "k"}
        await world.respond(**request)
        await world.receipt("later", "a")
        await world.respond(**request)
        assert await world.uses("a") == [0]

    async def test_a_retry_meets_a_takeaway_that_was_archived(self, world: World) -> None:
        first = await world.respond(idempotency_key="k")
        await world.memories.archive(DANA, first.memory_id)
        again = await world.respond(idempotency_key="k")
        assert (again.memory_id, again.duplicate) == (first.memory_id, True)

    async def test_a_key_of_another_takeaway_or_outcome_is_a_conflict(self, world: World) -> None:
        await world.respond(idempotency_key="k", outcome=Outcome.WORKED)
        with pytest.raises(IdempotencyConflict):
            await world.respond("another text", idempotency_key="k", outcome=Outcome.WORKED)
        with pytest.raises(IdempotencyConflict):
            await world.respond(idempotency_key="k", outcome=Outcome.FAILED)

    async def test_a_known_takeaway_is_kept_once_and_the_call_is_no_duplicate(
        self, world: World
    ) -> None:
        first = await world.respond()
        await world.receipt("r", "a")
        for key in (None, "k"):
            again = await world.respond(receipt_id="r", idempotency_key=key)
            assert (again.memory_id, again.duplicate) == (first.memory_id, False)
            assert updated(again.scored) == ["a"]
        retry = await world.respond(receipt_id="r", idempotency_key="k")
        assert (retry.memory_id, retry.duplicate) == (first.memory_id, True)
        assert await world.uses("a") == [2]

    @pytest.mark.parametrize("known", [False, True])
    async def test_a_retry_after_the_takeaway_was_deleted_stores_nothing(
        self, world: World, known: bool
    ) -> None:
        if known:
            await world.respond()
        request: dict[str, Any] = {"related": ("a",), "idempotency_key": "k"}
        first = await world.respond(**request)
        await world.memories.delete(DANA, first.memory_id)
        again = await world.respond(**request)
        assert (again.memory_id, again.duplicate) == (first.memory_id, True)
        assert (await world.items.get(DANA_READS, first.memory_id)) is None
        assert await world.uses("a") == [1]

    async def test_a_retry_after_the_takeaway_was_edited_is_a_duplicate(self, world: World) -> None:
        first = await world.respond(idempotency_key="k")
        await world.memories.edit(DANA, first.memory_id, MemoryEdit(text="נוסח אחר"))
        again = await world.respond(idempotency_key="k")
        assert (again.memory_id, again.duplicate) == (first.memory_id, True)
        assert (await world.item(first.memory_id)).text == "נוסח אחר"

    @pytest.mark.parametrize(
        "other",
        [
            {"takeaway": "טקסט אחר"},
            {"related": (1,)},
            {"related": ("a", "b")},
            {"related": ()},
            {"related": None},
            {"receipt_id": None},
            {"conversation_id": "c-2"},
            {"outcome": Outcome.FAILED},
        ],
    )
    async def test_a_key_with_another_request_is_a_conflict_and_stores_nothing(
        self, world: World, other: dict[str, Any]
    ) -> None:
        await world.receipt("r", "a", "b")
        request: dict[str, Any] = {
            "takeaway": "a note",
            "related": ("a",),
            "receipt_id": "r",
            "idempotency_key": "k",
        }
        await world.respond(**request)
        before = len(world.items._rows)
        with pytest.raises(IdempotencyConflict):
            await world.respond(**request | other)
        assert len(world.items._rows) == before
        assert await world.uses("a", "b") == [1, 0]

    async def test_no_key_of_an_outcome_is_like_that_of_a_response(self, world: World) -> None:
        await world.respond(related=("a",), idempotency_key="k")
        for key in ("k:response", "response:k"):
            await world.record(memory_ids=("a",), idempotency_key=key)
        assert await world.uses("a") == [3]

    async def test_the_key_of_a_response_is_not_the_key_of_an_outcome(self, world: World) -> None:
        await world.record(memory_ids=("a",), idempotency_key="k")
        await world.respond(related=("a",), idempotency_key="k")
        assert await world.uses("a") == [2]


class TestFeedback:
    @pytest.mark.parametrize(
        ("score", "outcome"), [(1, Outcome.WORKED), (0, Outcome.PARTIAL), (-1, Outcome.FAILED)]
    )
    async def test_a_thumb_judges_every_citation_once(
        self, world: World, score: int, outcome: Outcome
    ) -> None:
        answer = await world.feedback(score, "a", "b", "a")
        assert updated(answer) == ["a", "b"]
        assert (await world.item("a")).stats.last_outcome is outcome
        again = await world.feedback(score, "a", "b")
        assert (again.updated, again.skipped, again.duplicate) == ((), (), True)
        assert await world.uses("a", "b") == [1, 1]

    async def test_a_changed_mind_takes_the_place_of_the_first(self, world: World) -> None:
        await world.feedback(1, "a", "b")
        answer = await world.feedback(-1, "a")
        assert (updated(answer), answer.updated[0].uses) == (["a"], 1)
        stats = (await world.item("a")).stats
        assert (stats.uses, stats.worked_count, stats.failed_count) == (1, 0, 1)
        assert (stats.score, stats.success_rate, stats.tier_uses) == (0.2, 0.0, 1)
        assert await world.uses("b") == [1]

    async def test_a_thumb_from_before_its_conversation_was_known_is_the_same(
        self, world: World
    ) -> None:
        await world.feedback(1, "a")
        assert (await world.feedback(1, "a", conversation_id="c-1", found=True)).duplicate
        await world.feedback(-1, "a", conversation_id="c-1", found=True)
        stats = (await world.item("a")).stats
        assert (stats.uses, stats.worked_count, stats.failed_count) == (1, 0, 1)

    async def test_a_message_id_is_of_its_conversation(self, world: World) -> None:
        answers = [
            await world.feedback(1, "a", conversation_id=name) for name in ("c-1", "c-2", None)
        ]
        assert [updated(answer) for answer in answers] == [["a"]] * 3
        assert (await world.feedback(1, "a", conversation_id="c-2")).duplicate
        await world.feedback(-1, "a", conversation_id="c-1")
        stats = (await world.item("a")).stats
        assert (stats.uses, stats.worked_count, stats.failed_count) == (3, 2, 1)

    async def test_a_thumb_of_an_older_version_is_known_in_its_conversation(
        self, world: World
    ) -> None:
        """Its row has neither a conversation in its key nor what it moved."""
        key = f"{old_key_prefix('m-1')}00000001"
        limits = OutcomeLimits(keep_receipt_until=world.clock.now(), guest_per_hour=9)
        old = OutcomeEvent(
            user_id="dana",
            idempotency_key=key,
            principal="local",
            outcome=Outcome.WORKED,
            at=world.clock.now(),
            memory_ids=("a",),
            conversation_id="c-1",
        )
        await world.outcome_rows.record(old, limits, strict=True)
        world.clock.advance(1)
        assert (await world.feedback(1, "a", conversation_id="c-1")).duplicate
        await world.feedback(-1, "a", conversation_id="c-1")
        await world.feedback(1, "a", conversation_id="c-2")
        stats = (await world.item("a")).stats
        assert (stats.uses, stats.worked_count, stats.failed_count) == (2, 1, 1)
        assert stats.score == 0.4

    async def test_a_guest_replaces_no_verdict_of_the_owner(self, world: World) -> None:
        await world.feedback(1, "a", conversation_id="c-1")
        await world.receipt("r", "a")
        guest = await world.feedback(-1, "a", conversation_id="c-1", recorder=GUEST)
        assert updated(guest) == ["a"]
        stats = (await world.item("a")).stats
        assert (stats.worked_count, stats.failed_count) == (1, 1)
        await world.feedback(0, "a", conversation_id="c-1")
        stats = (await world.item("a")).stats
        assert (stats.uses, stats.partial_count) == (1, 1)

    async def test_a_further_citation_is_judged_alone(self, world: World) -> None:
        await world.feedback(1, "a")
        answer = await world.feedback(1, "a", "b")
        assert (updated(answer), answer.duplicate) == (["b"], False)
        less = await world.feedback(1, "b")
        assert (less.updated, less.duplicate) == ((), True)
        assert await world.uses("a", "b") == [1, 1]

    async def test_the_last_thumb_of_a_person_is_the_one_in_effect(self, world: World) -> None:
        for score in (1, -1, -1, 1, 1):
            await world.feedback(score, "a")
            world.clock.advance(1)
        stats = (await world.item("a")).stats
        assert (stats.uses, stats.worked_count, stats.failed_count) == (1, 1, 0)
        assert (stats.score, stats.last_outcome) == (0.7, Outcome.WORKED)

    async def test_thumbs_of_two_answers_are_two(self, world: World) -> None:
        await world.feedback(1, "a")
        request = FeedbackRequest(message_id="m-1 00000001", score=1, citations=("a",))
        assert not (await world.outcomes.feedback(DANA, request)).duplicate
        assert await world.uses("a") == [2]

    async def test_no_key_of_a_caller_is_that_of_a_thumb(self, world: World) -> None:
        await world.record(memory_ids=("b",), idempotency_key="feedback:m-1:1")
        await world.feedback(1, "a")
        (thumb,) = await world.outcome_rows.latest(DANA_READS, key_prefix(None, "m-1"), 10)
        assert thumb.memory_ids == ("a",)
        assert " " in thumb.idempotency_key

    async def test_thumbs_at_once_all_count_and_none_twice(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both look before one of them is kept."""
        latest = world.outcome_rows.latest
        looked: list[int] = []

        async def together(scope: ReadScope, prefix: str, limit: int) -> list[OutcomeEvent]:
            found = await latest(scope, prefix, limit)
            looked.append(len(found))
            await asyncio.sleep(0)
            return found

        monkeypatch.setattr(world.outcome_rows, "latest", together)
        answers = await asyncio.gather(
            world.feedback(1, "a"), world.feedback(1, "b"), world.feedback(1, "a")
        )
        assert looked[:6] == [0] * 6  # each looks under the old prefix and under the new one
        assert [updated(answer) for answer in answers] == [["a"], ["b"], []]
        assert [answer.duplicate for answer in answers] == [False, False, True]
        assert await world.uses("a", "b") == [1, 1]

    async def test_a_refused_thumb_of_a_guest_does_not_stand_for_the_owners(
        self, world: World
    ) -> None:
        refused = await world.feedback(1, "a", recorder=GUEST)
        assert skipped(refused) == {"a": "not_shown"}
        assert updated(await world.feedback(1, "a")) == ["a"]

    async def test_a_repeat_says_again_what_is_gone(self, world: World) -> None:
        first = await world.feedback(1, "nothing", "not an id")
        again = await world.feedback(1, "nothing", "not an id")
        assert skipped(first) == skipped(again) == {"nothing": "gone", "not an id": "gone"}
        assert again.duplicate

    async def test_a_stale_or_odd_citation_is_skipped(self, world: World) -> None:
        await world.memories.delete(DANA, "b")
        answer = await world.feedback(1, "a", "b", "nothing", "not an id")
        assert updated(answer) == ["a"]
        assert skipped(answer) == dict.fromkeys(("b", "nothing", "not an id"), "gone")

    async def test_no_citations_score_nothing(self, world: World) -> None:
        await world.receipt("r", "a")
        answer = await world.feedback(1, conversation_id="c-1")
        assert (answer.updated, answer.skipped) == ((), ())
        assert await world.uses("a") == [0]

    @pytest.mark.parametrize("score", [2, -2])
    async def test_another_score_is_refused(self, world: World, score: int) -> None:
        with pytest.raises(InvalidInput):
            await world.feedback(score, "a")

    async def test_the_receipt_that_showed_a_citation_gives_the_context(self, world: World) -> None:
        await world.receipt("shows", "a", "b")
        await world.receipt("newer", "c")
        await world.feedback(1, "b", conversation_id="c-1")
        (event,) = await world.outcome_rows.latest(DANA_READS, key_prefix("c-1", "m-1"), 10)
        assert (event.receipt_id, event.concepts) == ("shows", ("דרכון",))

    @pytest.mark.parametrize(
        ("turns", "found"),
        [
            (("m-1", None, "m-2"), "of-m-1"),
            ((None, "m-2", "m-3"), "of-None"),
            (("m-2", "m-3"), "of-m-3"),
        ],
    )
    async def test_a_thumb_on_an_older_answer_takes_no_receipt_of_a_newer_one(
        self, world: World, turns: tuple[str | None, ...], found: str
    ) -> None:
        for turn in turns:
            await world.receipt(f"of-{turn}", "a", turn_id=turn)
        await world.feedback(1, "a", conversation_id="c-1")
        (event,) = await world.outcome_rows.latest(DANA_READS, key_prefix("c-1", "m-1"), 10)
        assert event.receipt_id == found
        left = await world.receipts.latest(DANA_READS, "c-1", 10, unscored=True)
        names = {f"of-{turn}" for turn in turns}
        assert {one.receipt_id for one in left} == names - {found}

    async def test_a_guest_judges_citations_that_it_was_shown(self, world: World) -> None:
        await world.receipt("shows", "a", principal="agent")
        answer = await world.feedback(1, "a", "c", conversation_id="c-1", recorder=GUEST)
        assert updated(answer) == ["a"]
        assert skipped(answer) == {"c": "not_shown"}
