"""What every `OutcomeStore` must do with a verdict that takes the place of an earlier one."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rayapp.learning.ports import OutcomesOf
from rayapp.learning.records import OutcomeEvent, Withdrawn
from rayapp.memory.item import ChangeType, MemoryItem, Outcome, Stats, point_id_of
from rayapp.memory.rules.creation import archived, deleted
from rayapp.memory.rules.revision import replaced_state
from rayapp.memory.scope import WriteScope
from tests.support.builders import an_item
from tests.support.outcome_contract import AT, DANA, LIMITS, OutcomeStores, a_book_item, an_event

A, B = point_id_of("dana", "a"), point_id_of("dana", "b")
LATE = AT + timedelta(days=1)
WRITES = WriteScope("dana")
WHOLE = OutcomesOf(conversation_id="c-1", whole=True)


async def verdict(
    stores: OutcomeStores,
    *memory_ids: str,
    outcome: Outcome = Outcome.WORKED,
    instead_of: tuple[OutcomeEvent, ...] = (),
    **fields: Any,
) -> OutcomeEvent:
    keys = tuple(event.idempotency_key for event in instead_of)
    return await stores.record(*memory_ids, outcome=outcome, replaces=keys, **fields)


async def kept(stores: OutcomeStores, event: OutcomeEvent) -> OutcomeEvent:
    found = await stores.outcomes.find(DANA, event.idempotency_key)
    assert found is not None
    return found


async def merge(stores: OutcomeStores, loser: MemoryItem, winner: str) -> None:
    gone = archived(replace(loser, merged_into=winner), "merged", AT)
    row = replaced_state(loser, ChangeType.ARCHIVE, "merged", AT)
    await stores.memories.replace(gone, expected_version=loser.version, row=row)


async def owing(stores: OutcomeStores) -> set[str]:
    due = await stores.outcomes.due("graph", 100, before=LATE)
    return {event.idempotency_key for event in due}


class OutcomeVerdictContract:
    """Counters as those of the last verdict alone, and what the graphs are owed."""

    @pytest.mark.parametrize("last", list(Outcome))
    async def test_only_the_last_verdict_of_an_answer_counts(
        self, stores: OutcomeStores, last: Outcome
    ) -> None:
        expires = AT + timedelta(days=10)
        await stores.put(an_item(memory_id="a", expires_at=expires))
        await stores.put(an_item(memory_id="b", expires_at=expires))
        events: list[OutcomeEvent] = []
        for outcome in (Outcome.WORKED, Outcome.FAILED, Outcome.FAILED, Outcome.PARTIAL, last):
            events.append(await verdict(stores, "a", outcome=outcome, instead_of=tuple(events)))
        await verdict(stores, "b", outcome=last)
        changed, once = await stores.item("a"), await stores.item("b")
        assert changed.stats == once.stats
        assert changed.expires_at == once.expires_at
        (one,) = events[-1].applied
        assert (one.uses, one.score) == (1, once.stats.score)
        assert await kept(stores, events[-1]) == events[-1]

    async def test_a_score_at_its_limit_comes_back(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a", stats=Stats(score=0.9)))
        first = await verdict(stores, "a")
        assert (await stores.item("a")).stats.score == 1.0
        await verdict(stores, "a", outcome=Outcome.UNKNOWN, instead_of=(first,))
        assert (await stores.item("a")).stats.score == 0.9

    async def test_other_outcomes_stay(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"), an_item(memory_id="b"))
        first = await verdict(stores, "a", "b")
        await stores.record("a", outcome=Outcome.PARTIAL)
        await verdict(stores, "a", outcome=Outcome.FAILED, instead_of=(first,))
        a, b = (await stores.item("a")).stats, (await stores.item("b")).stats
        assert (a.uses, a.worked_count, a.partial_count, a.failed_count) == (2, 0, 1, 1)
        assert (b.uses, b.worked_count) == (1, 1)
        assert (await kept(stores, first)).withdrawn == Withdrawn(points=(A,))

    async def test_an_event_the_graphs_have_not_seen_owes_only_what_stands(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a"), an_item(memory_id="b"))
        whole, part = await verdict(stores, "a"), await verdict(stores, "a", "b")
        both = (whole, part)
        new = await verdict(stores, "a", outcome=Outcome.FAILED, instead_of=both)
        assert await owing(stores) == {part.idempotency_key, new.idempotency_key}
        assert [(await kept(stores, one)).counted for one in both] == [None, None]

    async def test_an_event_the_graphs_counted_owes_the_difference(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a"), an_item(memory_id="b"))
        old = await verdict(stores, "a", "b")
        assert await stores.outcomes.settle("graph", [old]) == 1
        new = await verdict(stores, "a", outcome=Outcome.FAILED, instead_of=(old,))
        found = await kept(stores, old)
        assert (found.counted, found.withdrawn) == (Withdrawn(), Withdrawn(points=(A,)))
        assert await owing(stores) == {old.idempotency_key, new.idempotency_key}
        await stores.outcomes.settle("graph", [found])
        await verdict(stores, "b", outcome=Outcome.FAILED, instead_of=(old, new))
        found = await kept(stores, old)
        assert (found.counted, found.withdrawn) == (Withdrawn((A,)), Withdrawn((A, B)))

    async def test_a_book_is_judged_by_the_newest_verdict(self, stores: OutcomeStores) -> None:
        await stores.put(a_book_item("p-1", "book-1"))
        old = await verdict(stores, "p-1")
        new = await verdict(stores, "p-1", outcome=Outcome.FAILED, instead_of=(old,))
        assert (await kept(stores, old)).withdrawn == Withdrawn(documents=("book-1",))
        assert await owing(stores) == {new.idempotency_key}

    async def test_a_withdrawn_failure_is_none(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"), an_item(memory_id="b"))
        old = await verdict(stores, "a", "b", outcome=Outcome.FAILED)
        await verdict(stores, "a", instead_of=(old,))
        assert await stores.outcomes.failures(DANA, [A]) == []
        assert len(await stores.outcomes.failures(DANA, [A, B])) == 1

    async def test_a_repeated_call_takes_back_once(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"))
        await stores.record("a")
        old = await verdict(stores, "a")
        event = an_event("a", outcome=Outcome.FAILED, replaces=(old.idempotency_key,))
        answers = await asyncio.gather(
            *(stores.outcomes.record(event, LIMITS, strict=True) for _ in range(4))
        )
        assert sorted(known for _, known in answers) == [False, True, True, True]
        stats = (await stores.item("a")).stats
        assert (stats.uses, stats.worked_count, stats.failed_count) == (2, 1, 1)

    async def test_outcomes_that_are_taken_back_leave_nothing(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a", stats=Stats(score=0.6)), an_item(memory_id="b"))
        kept = await stores.record("a", outcome=Outcome.PARTIAL)
        before = [(await stores.item(name)).stats for name in ("a", "b")]
        gone = await stores.record("a", "b", conversation_id="c-1", outcome=Outcome.FAILED)
        await stores.record("a", conversation_id="c-1", idempotency_key="again")
        other = await stores.record("b", conversation_id="c-2")
        whole = OutcomesOf(conversation_id="c-1", whole=True)
        assert await stores.outcomes.withdraw(WRITES, whole, LATE) == []
        after = await stores.item("a")
        assert after.stats == before[0]
        assert after.stats.last_outcome_at == kept.at
        assert (await stores.item("b")).stats.failed_count == 0
        assert (await stores.item("b")).stats.last_outcome_at == other.at
        assert await stores.outcomes.failures(DANA, [A, B]) == []
        assert await stores.outcomes.find(DANA, gone.idempotency_key) is None
        # A key is free again, and what was taken back is not taken back twice.
        await stores.record("a", conversation_id="c-1", idempotency_key="again")
        await stores.outcomes.withdraw(WRITES, whole, LATE)
        await stores.outcomes.withdraw(WRITES, whole, LATE)
        assert (await stores.item("a")).stats == before[0]
        assert await stores.outcomes.forget(WRITES, whole) == 0
        assert await stores.outcomes.find(DANA, other.idempotency_key) == other

    @pytest.mark.parametrize(
        ("outcome", "left"), [(Outcome.WORKED, 1.0), (Outcome.FAILED, 0.0)], ids=["best", "worst"]
    )
    async def test_what_met_a_limit_gives_back_what_it_moved(
        self, stores: OutcomeStores, outcome: Outcome, left: float
    ) -> None:
        await stores.put(an_item(memory_id="a", stats=Stats(score=0.5)))
        for _ in range(3):
            await stores.record("a", outcome=outcome)
        for _ in range(5):
            await stores.record("a", outcome=outcome, conversation_id="c-1")
        await stores.outcomes.withdraw(WRITES, WHOLE, LATE)
        stats = (await stores.item("a")).stats
        assert (stats.uses, stats.score) == (3, left)

    async def test_what_the_graphs_counted_is_owed_until_it_is_settled(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a"))
        old = await stores.record("a", conversation_id="c-1")
        assert await stores.outcomes.settle("graph", [old]) == 1
        whole = OutcomesOf(conversation_id="c-1", whole=True)
        (owed,) = await stores.outcomes.withdraw(WRITES, whole, LATE)
        assert (owed.withdrawn, owed.counted) == (Withdrawn((A,)), Withdrawn())
        assert await stores.outcomes.forget(WRITES, whole) == 1
        assert await stores.outcomes.withdraw(WRITES, whole, LATE) == [owed]
        await stores.outcomes.settle("graph", [owed])
        assert await stores.outcomes.forget(WRITES, whole) == 0

    async def test_only_the_outcomes_of_one_turn_are_taken_back(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a"))
        receipt = await stores.receipt("a")
        said: dict[str, Any] = {"conversation_id": "c-1"}
        await stores.record("a", receipt_id=receipt.receipt_id, **said)
        await stores.record("a", idempotency_key="mark of it", **said)
        await stores.record("a", idempotency_key="thumb 1", **said)
        left = await stores.record("a", outcome=Outcome.FAILED, **said)
        turn = OutcomesOf(
            receipt_id=receipt.receipt_id, keys=("mark of it",), prefixes=("thumb ",), **said
        )
        await stores.outcomes.withdraw(WRITES, turn, LATE)
        open_again = await stores.receipts.get(DANA, receipt.receipt_id)
        assert open_again is not None
        assert open_again.scored_at is None
        stats = (await stores.item("a")).stats
        assert (stats.uses, stats.worked_count, stats.failed_count) == (1, 0, 1)
        assert await stores.outcomes.find(DANA, left.idempotency_key) == left

    async def test_a_merged_memory_gives_back_what_it_brought(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"))
        await stores.record("a", conversation_id="c-1")
        loser = await stores.item("a")
        await stores.put(an_item(memory_id="w", text="wins", stats=loser.stats))
        await merge(stores, loser, "w")
        await stores.outcomes.withdraw(WRITES, WHOLE, LATE)
        assert (await stores.item("w")).stats.uses == 0
        # And it brings it back no more, when it is a memory of its own again.
        (own_row,) = await stores.memories.by_points(DANA, [A])
        assert (own_row.merged_into, own_row.stats) == ("w", Stats())

    async def test_a_changed_verdict_is_taken_from_the_merged_memory_too(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a"))
        old = await verdict(stores, "a")
        loser = await stores.item("a")
        await stores.put(an_item(memory_id="w", text="wins", stats=loser.stats))
        await merge(stores, loser, "w")
        await verdict(stores, "a", outcome=Outcome.FAILED, instead_of=(old,))
        winner, (own_row,) = await stores.item("w"), await stores.memories.by_points(DANA, [A])
        assert (winner.stats.worked_count, winner.stats.failed_count) == (0, 1)
        assert (own_row.stats.uses, own_row.stats.score) == (0, 0.5)

    async def test_the_last_outcome_may_be_one_that_a_merged_memory_brought(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a"))
        before = await stores.record("a", outcome=Outcome.FAILED)
        loser = await stores.item("a")
        await stores.put(an_item(memory_id="w", text="wins", stats=loser.stats))
        await merge(stores, loser, "w")
        await stores.record("w", conversation_id="c-1", at=AT + timedelta(hours=1))
        await stores.outcomes.withdraw(WRITES, WHOLE, LATE)
        assert (await stores.item("w")).stats == loser.stats
        assert loser.stats.last_outcome_at == before.at

    @pytest.mark.parametrize("merged", [False, True])
    async def test_the_last_outcome_is_not_one_of_a_deleted_memory_with_the_id(
        self, stores: OutcomeStores, merged: bool
    ) -> None:
        await stores.put(an_item(memory_id="a"))
        await stores.record("a", outcome=Outcome.WORKED)
        old = await stores.item("a")
        row = replaced_state(old, ChangeType.ARCHIVE, "deleted", AT)
        gone = deleted(old, AT)
        await stores.memories.replace(gone, expected_version=old.version, row=row)
        anew = an_item(memory_id="a", text="said again", stored_at=AT + timedelta(hours=1))
        await stores.put(anew, an_item(memory_id="w", text="wins"))
        if merged:
            await merge(stores, await stores.item("a"), "w")
        name = "w" if merged else "a"
        await stores.record(name, conversation_id="c-1", at=AT + timedelta(hours=2))
        await stores.outcomes.withdraw(WRITES, WHOLE, LATE)
        stats = (await stores.item(name)).stats
        assert (stats.uses, stats.last_outcome, stats.last_outcome_at) == (0, None, None)
