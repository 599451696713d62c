"""What every `OutcomeStore` must do.

Subclass the contracts and give a `stores` fixture of empty stores.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rayapp.core.errors import IdempotencyConflict, NotFound
from rayapp.core.ids import SYSTEM_USER
from rayapp.learning.ports import OutcomeLimits, OutcomeStore
from rayapp.learning.records import OutcomeEvent, Signal
from rayapp.learning.rules.outcomes import with_outcome
from rayapp.memory.item import (
    IndexOp,
    IndexState,
    MemoryItem,
    Outcome,
    Source,
    SourceType,
    Stats,
    Status,
    SyncState,
)
from rayapp.memory.ports import MemoryStore
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Receipt, ReceiptStore, Shown
from tests.support.builders import STORED_AT, a_version, an_item

DANA, NOA = ReadScope("dana"), ReadScope("noa")
AT = STORED_AT + timedelta(days=1)
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)
LIMITS = OutcomeLimits(keep_receipt_until=FUTURE + timedelta(days=30), guest_per_hour=3)
SYNCED = IndexState(sync_state=SyncState.SYNCED, rev=4, model="m", vector_hash="h")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeStores:
    """One implementation of the stores that an outcome touches."""

    memories: MemoryStore
    receipts: ReceiptStore
    outcomes: OutcomeStore

    async def put(self, *items: MemoryItem) -> None:
        for item in items:
            assert (await self.memories.insert(item)).inserted

    async def item(self, memory_id: str, scope: ReadScope = DANA) -> MemoryItem:
        found = await self.memories.get(scope, memory_id)
        assert found is not None
        return found

    async def record(
        self, *memory_ids: str, strict: bool = True, limits: OutcomeLimits = LIMITS, **fields: Any
    ) -> OutcomeEvent:
        event = an_event(*memory_ids, **fields)
        done, duplicate = await self.outcomes.record(event, limits, strict=strict)
        assert not duplicate
        return done

    async def receipt(self, *shown: str, **fields: Any) -> Receipt:
        receipt = a_receipt(*shown, **fields)
        await self.receipts.put_many([receipt])
        return receipt


_keys = iter(range(1, 1_000_000))


def an_event(*memory_ids: str, **changes: Any) -> OutcomeEvent:
    """An outcome `worked` by user dana with its own key, but for `changes`."""
    fields: dict[str, Any] = {
        "user_id": "dana",
        "idempotency_key": f"key-{next(_keys)}",
        "principal": "dana",
        "outcome": Outcome.WORKED,
        "at": AT,
        "memory_ids": memory_ids,
    }
    return OutcomeEvent(**{**fields, **changes})


def a_receipt(*shown: str, **changes: Any) -> Receipt:
    """A receipt of dana's conversation c-1 that shows these memories."""
    fields: dict[str, Any] = {
        "receipt_id": f"r-{next(_keys)}",
        "user_id": "dana",
        "query": "מתי צריך לחדש את הדרכון?",
        "recipe": "default",
        "shown": tuple(
            Shown(position=n, memory_id=m, tier=Tier.WORKING, final=0.5)
            for n, m in enumerate(shown, start=1)
        ),
        "at": AT,
        "expires_at": FUTURE,
        "conversation_id": "c-1",
        "principal": "guest",
    }
    return Receipt(**{**fields, **changes})


def reasons(event: OutcomeEvent) -> dict[str, str]:
    return {one.memory_id: one.reason for one in event.skipped}


def applied_ids(event: OutcomeEvent) -> list[str]:
    return [one.memory_id for one in event.applied]


def a_book_item(memory_id: str, doc_id: str = "book-1") -> MemoryItem:
    source = Source(type=SourceType.DOCUMENT, doc_id=doc_id)
    return an_item(memory_id=memory_id, tier=Tier.BOOKS, dedup_scope=doc_id, source=source)


class CountingContract:
    """Counters, lifetime and index queue of the items."""

    @pytest.mark.parametrize("outcome", list(Outcome))
    async def test_an_outcome_moves_the_item_and_tells_how(
        self, stores: OutcomeStores, outcome: Outcome
    ) -> None:
        await stores.put(an_item(memory_id="a", text="הטופס נמצא במגירה", index=SYNCED))
        before = await stores.item("a")
        done = await stores.record("a", outcome=outcome)
        after = await stores.item("a")
        assert after.stats == with_outcome(Stats(), outcome, AT)
        assert replace(after, stats=before.stats, index=before.index) == before
        (one,) = done.applied
        assert (one.memory_id, one.point_id, one.tier) == ("a", after.point_id, Tier.WORKING)
        assert one.uses == 1
        assert one.score == after.stats.score
        assert one.success_count == after.stats.success_count
        assert one.wilson_score == after.stats.wilson_score

    async def test_the_payload_write_is_queued_with_the_counters(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a", index=SYNCED))
        await stores.record("a")
        state = (await stores.item("a")).index
        assert (state.op, state.sync_state, state.rev) == (IndexOp.PAYLOAD, SyncState.PENDING, 5)
        assert (state.attempts, state.claim, state.last_error) == (0, None, None)
        assert state.next_attempt_at is not None
        assert (state.model, state.vector_hash) == ("m", "h")
        assert (await stores.memories.backlog()).pending == 1
        (claimed,) = await stores.memories.claim(token="t", limit=10, claim_s=60)
        assert claimed.memory_id == "a"

    @pytest.mark.parametrize(
        ("op", "state", "expected"),
        [
            (IndexOp.VECTOR, SyncState.PENDING, IndexOp.VECTOR),
            (IndexOp.VECTOR, SyncState.FAILED, IndexOp.VECTOR),
            (IndexOp.DELETE, SyncState.SYNCED, IndexOp.VECTOR),
            (IndexOp.PAYLOAD, SyncState.PENDING, IndexOp.PAYLOAD),
            (IndexOp.PAYLOAD, SyncState.FAILED, IndexOp.PAYLOAD),
            (IndexOp.PAYLOAD, SyncState.SYNCED, IndexOp.PAYLOAD),
        ],
    )
    async def test_a_write_that_the_index_still_needs_is_not_lost(
        self, stores: OutcomeStores, op: IndexOp, state: SyncState, expected: IndexOp
    ) -> None:
        index = IndexState(op=op, sync_state=state, attempts=7, last_error="e", claim="c")
        await stores.put(an_item(memory_id="a", index=index))
        await stores.record("a")
        now = (await stores.item("a")).index
        assert (now.op, now.sync_state, now.rev) == (expected, SyncState.PENDING, 2)
        assert (now.attempts, now.claim, now.last_error) == (0, None, None)

    async def test_a_waiting_item_keeps_the_start_of_its_wait(self, stores: OutcomeStores) -> None:
        long_ago = STORED_AT - timedelta(days=300)
        await stores.put(an_item(memory_id="a", stored_at=long_ago), an_item(index=SYNCED))
        before = (await stores.memories.backlog()).oldest_pending_s
        await stores.record("a")
        assert (await stores.memories.backlog()).oldest_pending_s >= before

    async def test_an_archived_item_counts_and_leaves_the_index_alone(
        self, stores: OutcomeStores
    ) -> None:
        expires = AT + timedelta(days=2)
        await stores.put(
            an_item(memory_id="a", status=Status.ARCHIVED, index=SYNCED, expires_at=expires)
        )
        done = await stores.record("a")
        after = await stores.item("a")
        assert applied_ids(done) == ["a"]
        assert after.stats.uses == 1
        assert after.index == SYNCED
        assert after.expires_at == expires

    @pytest.mark.parametrize(
        ("outcome", "left", "expected"),
        [
            (Outcome.WORKED, timedelta(hours=5), timedelta(days=7, hours=5)),
            (Outcome.PARTIAL, timedelta(hours=5), timedelta(days=3, hours=5)),
            (Outcome.UNKNOWN, timedelta(hours=5), timedelta(hours=5)),
            (Outcome.FAILED, timedelta(days=20), timedelta(days=13)),
            (Outcome.FAILED, timedelta(hours=5), timedelta(hours=1)),
            (Outcome.FAILED, timedelta(minutes=20), timedelta(minutes=20)),
        ],
    )
    async def test_the_lifetime_moves(
        self, stores: OutcomeStores, outcome: Outcome, left: timedelta, expected: timedelta
    ) -> None:
        await stores.put(an_item(memory_id="a", expires_at=AT + left))
        await stores.record("a", outcome=outcome)
        assert (await stores.item("a")).expires_at == AT + expected

    async def test_memory_bank_counts_and_never_expires(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a", tier=Tier.MEMORY_BANK))
        await stores.record("a", outcome=Outcome.FAILED)
        after = await stores.item("a")
        assert (after.stats.uses, after.stats.score, after.expires_at) == (1, 0.2, None)

    async def test_a_late_outcome_reaches_the_item_in_its_new_tier(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a", stats=Stats(uses=4, tier_uses=4)))
        item = await stores.item("a")
        promoted = replace(item, tier=Tier.HISTORY, stats=replace(item.stats, tier_uses=0))
        await stores.memories.replace(promoted, expected_version=1, row=a_version(item))
        done = await stores.record("a")
        after = await stores.item("a")
        assert done.applied[0].tier is Tier.HISTORY
        assert (after.stats.uses, after.stats.tier_uses, after.version) == (5, 1, 2)

    async def test_an_older_outcome_that_comes_late_does_not_become_the_last(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a"))
        await stores.record("a", outcome=Outcome.FAILED)
        await stores.record("a", at=AT - timedelta(minutes=1))
        stats = (await stores.item("a")).stats
        assert (stats.uses, stats.last_outcome, stats.last_outcome_at) == (2, Outcome.FAILED, AT)


class NamingContract:
    """Which item an id means, and when it is refused."""

    async def test_the_same_id_of_two_users_is_two_items(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"), an_item(memory_id="a", user_id="noa"))
        await stores.record("a", user_id="noa")
        assert (await stores.item("a")).stats.uses == 0
        assert (await stores.item("a", NOA)).stats.uses == 1

    async def test_a_foreign_id_is_not_found_and_changes_nothing(
        self, stores: OutcomeStores
    ) -> None:
        receipt = await stores.receipt("a")
        await stores.put(an_item(memory_id="a"), an_item(memory_id="b", user_id="noa"))
        event = an_event("a", "b", receipt_id=receipt.receipt_id)
        with pytest.raises(NotFound, match="No memory b of yours") as raised:
            await stores.outcomes.record(event, LIMITS, strict=True)
        assert raised.value.details == {"memory_id": "b"}
        assert (await stores.item("a")).stats.uses == 0
        assert (await stores.item("b", NOA)).stats.uses == 0
        assert await stores.outcomes.find(DANA, event.idempotency_key) is None
        assert await stores.receipts.get(DANA, receipt.receipt_id) == receipt

    async def test_an_id_that_is_gone_is_skipped_when_a_receipt_named_it(
        self, stores: OutcomeStores
    ) -> None:
        deleted = an_item(memory_id="b", status=Status.DELETED)
        await stores.put(an_item(memory_id="a"), deleted)
        done = await stores.record("b", "a", "c", strict=False)
        assert applied_ids(done) == ["a"]
        assert reasons(done) == {"b": "gone", "c": "gone"}

    async def test_a_deleted_id_named_by_the_caller_is_not_found(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a", status=Status.DELETED))
        with pytest.raises(NotFound):
            await stores.record("a")

    async def test_a_merged_id_moves_its_winner_once(self, stores: OutcomeStores) -> None:
        loser = an_item(memory_id="a", status=Status.ARCHIVED, merged_into="b")
        await stores.put(loser, an_item(memory_id="b"))
        assert applied_ids(await stores.record("a")) == ["b"]
        assert applied_ids(await stores.record("a", "b", "a")) == ["b"]
        assert (await stores.item("b")).stats.uses == 2

    async def test_an_id_merged_into_a_deleted_item_is_gone(self, stores: OutcomeStores) -> None:
        loser = an_item(memory_id="a", status=Status.ARCHIVED, merged_into="b")
        await stores.put(loser, an_item(memory_id="b", status=Status.DELETED))
        assert reasons(await stores.record("a", strict=False)) == {"a": "gone"}

    async def test_shared_items_and_books_are_not_scored(self, stores: OutcomeStores) -> None:
        shared = an_item(memory_id="d", user_id=SYSTEM_USER, tier=Tier.DATAGOV_SCHEMA)
        await stores.put(shared, a_book_item("k"), a_book_item("l"), an_item(memory_id="a"))
        done = await stores.record("d", "k", "l", "a")
        assert reasons(done) == {"d": "not_scored", "k": "not_scored", "l": "not_scored"}
        assert applied_ids(done) == ["a"]
        assert done.documents == ("book-1",)
        assert (await stores.item("k")).stats == Stats()
        assert (await stores.item("d")).stats == Stats()

    async def test_an_own_private_item_of_the_system_user_is_not_shared(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="s", user_id=SYSTEM_USER))
        with pytest.raises(NotFound):
            await stores.record("s")


class RepeatContract:
    """Idempotency and concurrency."""

    async def test_a_known_key_changes_nothing_and_answers_the_first_result(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a", index=SYNCED), a_book_item("k"))
        event = an_event(
            "a",
            "k",
            "x",
            outcome=Outcome.PARTIAL,
            query="איפה הדרכון?",
            concepts=("דרכון",),
            context_type="doc_rag",
            conversation_id="c-1",
            signal=Signal(source="reaction", confidence=0.9),
        )
        first, _ = await stores.outcomes.record(event, LIMITS, strict=False)
        await stores.record("a")
        before = await stores.item("a")
        again = replace(event, at=AT + timedelta(hours=3))
        assert await stores.outcomes.record(again, LIMITS, strict=False) == (first, True)
        assert await stores.item("a") == before
        assert await stores.outcomes.find(DANA, event.idempotency_key) == first
        assert await stores.outcomes.find(NOA, event.idempotency_key) is None
        expected = replace(
            event, applied=first.applied, skipped=first.skipped, documents=("book-1",)
        )
        assert first == expected

    @pytest.mark.parametrize(
        "change",
        [{"outcome": Outcome.FAILED}, {"memory_ids": ("a", "b")}, {"receipt_id": "r-other"}],
    )
    async def test_a_key_used_for_something_else_is_a_conflict(
        self, stores: OutcomeStores, change: dict[str, Any]
    ) -> None:
        await stores.put(an_item(memory_id="a"), an_item(memory_id="b"))
        event = an_event("a")
        await stores.outcomes.record(event, LIMITS, strict=True)
        with pytest.raises(IdempotencyConflict):
            await stores.outcomes.record(replace(event, **change), LIMITS, strict=True)
        assert (await stores.item("a")).stats.uses == 1

    async def test_two_users_may_use_one_key(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"), an_item(memory_id="a", user_id="noa"))
        await stores.record("a", idempotency_key="k")
        await stores.record("a", user_id="noa", idempotency_key="k")

    async def test_outcomes_at_once_all_count(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="hot"), *(an_item(memory_id=f"m{n}") for n in range(4)))
        outcomes = [list(Outcome)[n % 4] for n in range(60)]
        await asyncio.gather(
            *(
                stores.record("hot", f"m{n % 4}", f"m{(n + 1) % 4}", outcome=outcome)
                for n, outcome in enumerate(outcomes)
            )
        )
        stats = (await stores.item("hot")).stats
        assert stats.uses == stats.tier_uses == 60
        assert stats.success_count == stats.tier_success == 15 * 1.75
        counts = (stats.worked_count, stats.partial_count, stats.unknown_count, stats.failed_count)
        assert counts == (15, 15, 15, 15)
        rest = [(await stores.item(f"m{n}")).stats.uses for n in range(4)]
        assert sum(rest) == 120

    async def test_one_key_at_once_counts_once(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"))
        event = an_event("a")
        answers = await asyncio.gather(
            *(stores.outcomes.record(event, LIMITS, strict=True) for _ in range(20))
        )
        assert sum(not duplicate for _, duplicate in answers) == 1
        assert len({first.applied for first, _ in answers}) == 1
        assert (await stores.item("a")).stats.uses == 1


class OutcomeContract(CountingContract, NamingContract, RepeatContract):
    """Items, ids and keys; `outcome_limits_contract` has receipts, guests and the outbox."""
