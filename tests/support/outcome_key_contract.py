"""What every `OutcomeStore` must do with keys and the requests behind them."""

import asyncio
from dataclasses import replace

import pytest

from rayapp.core.errors import IdempotencyConflict
from rayapp.learning.records import OutcomeEvent
from rayapp.memory.item import Outcome
from tests.support.builders import an_item
from tests.support.outcome_contract import DANA, LIMITS, NOA, OutcomeStores, an_event


class OutcomeKeyContract:
    """Fingerprints, and reads by the start of a key."""

    async def test_the_fingerprint_and_the_takeaway_are_kept(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"))
        done = await stores.record("a", request_hash="f00d", takeaway_id="t-1")
        found = await stores.outcomes.find(DANA, done.idempotency_key)
        assert found == done
        assert (done.request_hash, done.takeaway_id) == ("f00d", "t-1")

    async def test_one_key_with_another_fingerprint_is_a_conflict(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a"))
        event = an_event("a", request_hash="f00d")
        first, _ = await stores.outcomes.record(event, LIMITS, strict=True)
        other = replace(event, request_hash="beef")
        with pytest.raises(IdempotencyConflict):
            await stores.outcomes.record(other, LIMITS, strict=True)
        # The same request may mean another receipt or other memories by now.
        moved = replace(event, memory_ids=("a", "b"), receipt_id="r-later")
        assert await stores.outcomes.record(moved, LIMITS, strict=True) == (first, True)
        assert (await stores.item("a")).stats.uses == 1

    async def test_two_requests_with_one_key_at_once_are_one_outcome_and_a_conflict(
        self, stores: OutcomeStores
    ) -> None:
        await stores.put(an_item(memory_id="a"))
        event = an_event("a", request_hash="f00d")
        answers = await asyncio.gather(
            stores.outcomes.record(event, LIMITS, strict=True),
            stores.outcomes.record(replace(event, request_hash="beef"), LIMITS, strict=True),
            return_exceptions=True,
        )
        errors = [type(one) for one in answers if isinstance(one, BaseException)]
        assert errors == [IdempotencyConflict]
        assert (await stores.item("a")).stats.uses == 1

    async def test_events_are_found_by_the_start_of_their_key(self, stores: OutcomeStores) -> None:
        await stores.put(an_item(memory_id="a"), an_item(memory_id="a", user_id="noa"))

        async def kept(key: str, outcome: Outcome, user: str = "dana") -> OutcomeEvent:
            return await stores.record("a", idempotency_key=key, outcome=outcome, user_id=user)

        first = await kept("של דנה 01", Outcome.WORKED)
        third = await kept("של דנה 10", Outcome.FAILED)
        second = await kept("של דנה 02", Outcome.PARTIAL)
        await kept("של דני 01", Outcome.WORKED)
        await kept("של דנה", Outcome.WORKED)
        await kept("של דנה 03", Outcome.WORKED, "noa")
        latest = stores.outcomes.latest
        assert await latest(DANA, "של דנה ", 10) == [third, second, first]
        assert await latest(DANA, "של דנה ", 2) == [third, second]
        assert await latest(DANA, "של דנה ", 0) == []
        assert await latest(DANA, "של.", 10) == []
        assert len(await latest(NOA, "של דנה ", 10)) == 1
