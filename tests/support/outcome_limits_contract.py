"""What every `OutcomeStore` must do with receipts, guests and the outbox."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

from rayapp.core.ids import SYSTEM_USER
from rayapp.learning.records import OutcomeEvent, Skipped
from rayapp.memory.item import Outcome, Stats
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Receipt
from tests.support.builders import an_item
from tests.support.outcome_contract import (
    AT,
    DANA,
    FUTURE,
    LIMITS,
    NOA,
    OutcomeStores,
    a_book_item,
    applied_ids,
    reasons,
)


class ReceiptMarkContract:
    """What an outcome does to its receipt."""

    async def test_a_scored_receipt_ends_its_turn_and_lives_longer(
        self, stores: OutcomeStores
    ) -> None:
        receipt = await stores.receipt("a")
        await stores.put(an_item(memory_id="a"))
        await stores.record("a", receipt_id=receipt.receipt_id)
        scored = await stores.receipts.get(DANA, receipt.receipt_id)
        until = LIMITS.keep_receipt_until
        assert scored == replace(receipt, scored_at=AT, expires_at=until)
        assert await stores.receipts.latest(DANA, "c-1", 5, unscored=True) == []

    async def test_a_receipt_that_lives_longer_is_not_shortened(
        self, stores: OutcomeStores
    ) -> None:
        far = FUTURE + timedelta(days=365)
        receipt = await stores.receipt("a", expires_at=far)
        await stores.put(an_item(memory_id="a"))
        await stores.record("a", receipt_id=receipt.receipt_id)
        scored = await stores.receipts.get(DANA, receipt.receipt_id)
        assert scored is not None
        assert scored.expires_at == far

    async def test_an_outcome_about_nothing_still_ends_the_turn(
        self, stores: OutcomeStores
    ) -> None:
        receipt = await stores.receipt()
        done = await stores.record(receipt_id=receipt.receipt_id, strict=False)
        assert (done.applied, done.skipped) == ((), ())
        assert await stores.receipts.latest(DANA, "c-1", 5, unscored=True) == []
        assert await stores.outcomes.backlog() == 0

    async def test_a_lost_or_foreign_receipt_is_left_alone(self, stores: OutcomeStores) -> None:
        foreign = await stores.receipt("a", user_id="noa")
        await stores.put(an_item(memory_id="a"))
        await stores.record("a", receipt_id=foreign.receipt_id)
        await stores.record("a", receipt_id="r-lost")
        assert await stores.receipts.get(NOA, foreign.receipt_id) == foreign
        assert (await stores.item("a")).stats.uses == 2

    async def test_a_weak_signal_is_kept_and_applied_to_nothing(
        self, stores: OutcomeStores
    ) -> None:
        receipt = await stores.receipt("a")
        await stores.put(an_item(memory_id="a"), a_book_item("k"))
        weak = (Skipped("a", "weak_signal"), Skipped("k", "weak_signal"))
        done = await stores.record(
            "a", "k", outcome=Outcome.UNKNOWN, skipped=weak, receipt_id=receipt.receipt_id
        )
        assert (done.applied, done.skipped, done.documents) == ((), weak, ())
        assert (await stores.item("a")).stats == Stats()
        assert await stores.receipts.get(DANA, receipt.receipt_id) == receipt
        assert await stores.outcomes.backlog() == 0


class GuestContract:
    """Limits of a principal that does not own the memories."""

    async def guest(
        self, stores: OutcomeStores, receipt: Receipt | None, *ids: str, **fields: Any
    ) -> OutcomeEvent:
        fields = {"principal": "guest", "owner": False, "strict": False, **fields}
        return await stores.record(
            *ids, receipt_id=receipt.receipt_id if receipt else None, **fields
        )

    async def test_it_judges_only_what_it_was_shown(self, stores: OutcomeStores) -> None:
        await stores.put(*(an_item(memory_id=m) for m in "abc"))
        receipt = await stores.receipt("a", "b")
        done = await self.guest(stores, receipt, "a", "c")
        assert applied_ids(done) == ["a"]
        assert reasons(done) == {"c": "not_shown"}
        assert reasons(await self.guest(stores, None, "a")) == {"a": "not_shown"}
        other = await self.guest(stores, receipt, "b", principal="stranger")
        assert reasons(other) == {"b": "not_shown"}
        assert (await stores.item("b")).stats.uses == 0
        assert await stores.outcomes.find(DANA, other.idempotency_key) == other

    async def test_what_it_stored_itself_it_judges_in_full(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="mine", stored_by="guest"), an_item(memory_id="a"))
        for _ in range(5):
            assert applied_ids(await self.guest(stores, None, "mine", "a")) == ["mine"]
        assert (await stores.item("mine")).stats.uses == 5
        assert (await stores.item("a")).stats.uses == 0

    async def test_it_learns_nothing_about_ids_that_it_was_not_shown(
        self, stores: OutcomeStores
    ) -> None:
        receipt = await stores.receipt("a")
        done = await self.guest(stores, receipt, "nothing", strict=True)
        assert reasons(done) == {"nothing": "not_shown"}
        assert await stores.receipts.get(DANA, receipt.receipt_id) == receipt

    async def test_each_memory_of_a_receipt_counts_once(self, stores: OutcomeStores) -> None:
        await stores.put(*(an_item(memory_id=m) for m in "ab"), a_book_item("k"))
        receipt, second = await stores.receipt("a", "b", "k"), await stores.receipt("a")
        first = await self.guest(stores, receipt, "a", "k")
        again = await self.guest(stores, receipt, "a", "b", "k")
        assert first.documents == ("book-1",)
        assert (applied_ids(again), again.documents) == (["b"], ())
        assert reasons(again) == {"a": "already_scored", "k": "already_scored"}
        assert reasons(await self.guest(stores, second, "a")) == {"a": "already_scored"}
        tomorrow = AT + timedelta(hours=25)
        assert applied_ids(await self.guest(stores, second, "a", at=tomorrow)) == ["a"]

    async def test_at_once_a_memory_counts_once(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"))
        receipt = await stores.receipt("a")
        done = await asyncio.gather(*(self.guest(stores, receipt, "a") for _ in range(8)))
        assert Counter(len(event.applied) for event in done) == {1: 1, 0: 7}
        assert (await stores.item("a")).stats.uses == 1

    async def test_its_outcomes_per_hour_are_limited(self, stores: OutcomeStores) -> None:
        names = "abcd"
        await stores.put(*(an_item(memory_id=m) for m in names))
        receipt = await stores.receipt(*names)
        for name in names[:3]:
            assert applied_ids(await self.guest(stores, receipt, name)) == [name]
        assert reasons(await self.guest(stores, receipt, "d")) == {"d": "rate"}
        later = await self.guest(stores, receipt, "d", at=AT + timedelta(hours=1))
        assert applied_ids(later) == ["d"]

    async def test_the_owner_is_not_limited(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"))
        receipt = await stores.receipt("a")
        for _ in range(5):
            assert applied_ids(await stores.record("a", receipt_id=receipt.receipt_id)) == ["a"]


class OutboxContract:
    """Effects that accepted outcomes still owe."""

    async def test_effects_are_owed_until_they_are_settled(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"), an_item(memory_id="a", user_id="noa"))
        second = await stores.record("a", at=AT + timedelta(minutes=1))
        first = await stores.record("a", user_id="noa")
        third = await stores.record("a", at=AT + timedelta(minutes=2))
        late = AT + timedelta(hours=1)
        due = stores.outcomes.due
        assert await due("graph", 10, before=late) == [first, second, third]
        assert await due("promotion", 2, before=late) == [first, second]
        assert await due("graph", 10, before=AT + timedelta(minutes=1)) == [first]
        assert await due("graph", 0, before=late) == []
        assert await stores.outcomes.backlog() == 3
        assert await stores.outcomes.settle("graph", [first, second]) == 2
        assert await stores.outcomes.settle("graph", [first, third]) == 1
        assert await due("graph", 10, before=late) == []
        assert await stores.outcomes.backlog() == 3
        assert await stores.outcomes.settle("promotion", [first, second, third]) == 3
        assert await stores.outcomes.settle("promotion", []) == 0
        assert await stores.outcomes.backlog() == 0

    async def test_what_moved_nothing_owes_nothing(self, stores: OutcomeStores) -> None:
        shared = an_item(memory_id="d", user_id=SYSTEM_USER, tier=Tier.DATAGOV_SCHEMA)
        await stores.put(shared)
        await stores.record("d", "x", strict=False)
        assert await stores.outcomes.backlog() == 0

    async def test_a_book_owes_the_graph_alone(self, stores: OutcomeStores) -> None:
        await stores.put(a_book_item("k"))
        event = await stores.record("k")
        late = AT + timedelta(hours=1)
        assert await stores.outcomes.due("graph", 10, before=late) == [event]
        assert await stores.outcomes.due("promotion", 10, before=late) == []

    async def test_failures_are_the_newest_of_each_item(self, stores: OutcomeStores) -> None:
        items = [an_item(memory_id=m) for m in "abc"]
        await stores.put(*items, an_item(memory_id="a", user_id="noa"))

        async def failed(*ids: str, minute: int, **fields: Any) -> OutcomeEvent:
            fields = {"outcome": Outcome.FAILED, "at": AT + timedelta(minutes=minute), **fields}
            return await stores.record(*ids, **fields)

        await failed("a", minute=1)
        both = await failed("a", "b", minute=2)
        newest_b = await failed("b", minute=3)
        await failed("b", minute=4, outcome=Outcome.WORKED)
        await failed("a", minute=5, user_id="noa")
        points = [item.point_id for item in items]
        assert await stores.outcomes.failures(DANA, points) == [newest_b, both]
        assert await stores.outcomes.failures(DANA, points[:1] * 2) == [both]
        assert await stores.outcomes.failures(DANA, points[2:]) == []
        assert await stores.outcomes.failures(DANA, []) == []


class OutcomeLimitsContract(ReceiptMarkContract, GuestContract, OutboxContract):
    """Receipts, guests and the outbox."""
