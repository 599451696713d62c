"""What every queue of stored exchanges must do; run on the fake and on MongoDB."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from rayapp.assistant.extraction.rules.facts import LearnedExchange
from rayapp.assistant.ports import EXCHANGE_TTL_S, ExchangeQueue
from rayapp.core.errors import Forbidden
from rayapp.core.runtime import Clock, SystemClock
from rayapp.memory.item import point_id_of
from rayapp.memory.scope import ReadScope, WriteScope

DANA, NOA = WriteScope("dana"), WriteScope("noa")
CLAIM_S = 60.0
# Long enough for a claim to be taken, short enough to be waited for, seconds.
SHORT_S = 0.3


class ExchangeStores(NamedTuple):
    queue: ExchangeQueue
    clock: Clock
    elapse: Callable[[float], Awaitable[None]]


def turn(clock: Clock, message_id: str = "m-1", **changes: Any) -> LearnedExchange:
    made = LearnedExchange(
        user_id="dana",
        conversation_id="c-1",
        message_id=message_id,
        user_text="אני גר בחיפה",
        answer="Noted: $haifa",
        memory_id=f"x-{message_id}",
        at=clock.now(),
        principal="agent",
        injected=("f-1", "f-2"),
        receipt_id="r-1",
        shown=("a", "b"),
    )
    return replace(made, **changes)


def same(one: LearnedExchange, other: LearnedExchange) -> bool:
    """Stores keep milliseconds."""
    return replace(one, at=other.at) == other and abs(one.at - other.at) < timedelta(seconds=0.001)


class ExchangeContract:
    @pytest.fixture
    def stores(self) -> ExchangeStores:
        raise NotImplementedError

    async def test_what_is_offered_is_claimed_whole(self, stores: ExchangeStores) -> None:
        offered = turn(stores.clock)
        assert await stores.queue.offer(DANA, offered)
        (claimed,) = await stores.queue.claim(token="t", limit=5, claim_s=CLAIM_S)
        assert same(offered, claimed.exchange)
        assert (claimed.attempts, dict(claimed.plan)) == (0, {})

    async def test_a_turn_is_queued_once(self, stores: ExchangeStores) -> None:
        offered = turn(stores.clock)
        assert await stores.queue.offer(DANA, offered)
        assert not await stores.queue.offer(DANA, replace(offered, user_text="other"))
        (claimed,) = await stores.queue.claim(token="t", limit=5, claim_s=CLAIM_S)
        assert claimed.exchange.user_text == offered.user_text
        assert await stores.queue.finish(offered, "t", "done", {})
        assert not await stores.queue.offer(DANA, offered)
        assert await stores.queue.waiting() == 0

    async def test_a_replaced_turn_waits_again_with_its_new_words(
        self, stores: ExchangeStores
    ) -> None:
        offered, queue = turn(stores.clock), stores.queue
        await queue.offer(DANA, offered)
        (mine,) = await queue.claim(token="one", limit=5, claim_s=CLAIM_S)
        await queue.keep(mine.exchange, "one", {"parts": {"fact": []}})
        new = replace(offered, user_text="$other", receipt_id="r-2")
        await queue.replace(DANA, new)
        assert not await queue.finish(mine.exchange, "one", "done", {})
        (again,) = await queue.claim(token="two", limit=5, claim_s=CLAIM_S)
        assert same(new, again.exchange)
        assert (again.attempts, dict(again.plan)) == (0, {})
        await queue.finish(new, "two", "done", {})
        await queue.replace(DANA, offered)
        assert await queue.waiting() == 1
        with pytest.raises(Forbidden):
            await queue.replace(NOA, offered)

    async def test_a_turn_that_is_replaced_when_it_has_aged_is_learned_too(
        self, stores: ExchangeStores
    ) -> None:
        now, queue = stores.clock.now(), stores.queue
        old = turn(stores.clock, at=now - timedelta(seconds=2 * EXCHANGE_TTL_S))
        await queue.offer(DANA, old)
        assert await queue.claim(token="one", limit=5, claim_s=CLAIM_S) == []
        new = replace(old, user_text="אני גר ביפו")
        await queue.replace(DANA, new)
        (again,) = await queue.claim(token="two", limit=5, claim_s=CLAIM_S)
        assert same(new, again.exchange)
        (seen,) = await queue.earlier(ReadScope("dana"), turn(stores.clock, "m-2"), 5)
        assert same(new, seen)
        assert await queue.finish(again.exchange, "two", "done", {})

    async def test_turns_offered_at_once_are_queued_once(self, stores: ExchangeStores) -> None:
        offered = turn(stores.clock)
        new = await asyncio.gather(*(stores.queue.offer(DANA, offered) for _ in range(8)))
        assert sum(new) == 1
        assert await stores.queue.waiting() == 1

    async def test_nobody_queues_for_another_user(self, stores: ExchangeStores) -> None:
        with pytest.raises(Forbidden):
            await stores.queue.offer(NOA, turn(stores.clock))
        assert await stores.queue.waiting() == 0

    async def test_a_claim_keeps_others_away_until_it_ends(self, stores: ExchangeStores) -> None:
        await stores.queue.offer(DANA, turn(stores.clock))
        (mine,) = await stores.queue.claim(token="one", limit=5, claim_s=SHORT_S)
        assert await stores.queue.claim(token="two", limit=5, claim_s=CLAIM_S) == []
        await stores.elapse(SHORT_S + 0.1)
        (theirs,) = await stores.queue.claim(token="two", limit=5, claim_s=CLAIM_S)
        assert theirs.exchange == mine.exchange

    async def test_who_lost_the_claim_changes_nothing(self, stores: ExchangeStores) -> None:
        await stores.queue.offer(DANA, turn(stores.clock))
        (mine,) = await stores.queue.claim(token="one", limit=5, claim_s=0.0)
        await stores.elapse(0.1)
        assert await stores.queue.claim(token="two", limit=5, claim_s=CLAIM_S)
        assert not await stores.queue.keep(mine.exchange, "one", {"a": 1})
        assert not await stores.queue.finish(mine.exchange, "one", "done", {})
        assert not await stores.queue.again(
            mine.exchange, "one", delay_s=0, error="late", blamed=True
        )
        assert await stores.queue.finish(mine.exchange, "two", "done", {})

    async def test_a_plan_survives_the_one_who_made_it(self, stores: ExchangeStores) -> None:
        await stores.queue.offer(DANA, turn(stores.clock))
        (mine,) = await stores.queue.claim(token="one", limit=5, claim_s=SHORT_S)
        plan = {"fact": [{"text": "$where ‏חיפה", "trust": 0.7}], "notes": {"a.b": "kept"}}
        assert await stores.queue.keep(mine.exchange, "one", plan)
        await stores.elapse(SHORT_S + 0.1)
        (again,) = await stores.queue.claim(token="two", limit=5, claim_s=CLAIM_S)
        assert dict(again.plan) == plan

    async def test_a_retry_waits_and_counts_only_blame(self, stores: ExchangeStores) -> None:
        await stores.queue.offer(DANA, turn(stores.clock))
        for blamed, attempts in ((True, 1), (False, 1), (True, 2)):
            (one,) = await stores.queue.claim(token="t", limit=5, claim_s=CLAIM_S)
            assert await stores.queue.again(
                one.exchange, "t", delay_s=SHORT_S, error="away", blamed=blamed
            )
            assert await stores.queue.claim(token="t", limit=5, claim_s=CLAIM_S) == []
            await stores.elapse(SHORT_S + 0.1)
            (one,) = await stores.queue.claim(token="t", limit=5, claim_s=CLAIM_S)
            assert one.attempts == attempts
            await stores.queue.again(one.exchange, "t", delay_s=0, error="", blamed=False)
            await stores.elapse(0.01)

    async def test_the_longest_waiting_comes_first(self, stores: ExchangeStores) -> None:
        for number in range(4):
            await stores.queue.offer(DANA, turn(stores.clock, f"m-{number}"))
            await stores.elapse(0.01)
        first = await stores.queue.claim(token="one", limit=2, claim_s=CLAIM_S)
        for one in first:
            assert await stores.queue.finish(one.exchange, "one", "done", {})
        rest = await stores.queue.claim(token="two", limit=9, claim_s=CLAIM_S)
        got = [one.exchange.message_id for one in (*first, *rest)]
        assert got == ["m-0", "m-1", "m-2", "m-3"]
        assert await stores.queue.claim(token="t", limit=0, claim_s=CLAIM_S) == []

    async def test_a_users_backlog_is_in_nobodys_way(self, stores: ExchangeStores) -> None:
        for number in range(40):
            await stores.queue.offer(DANA, turn(stores.clock, f"m-{number:02}"))
        await stores.elapse(0.01)
        for user in ("noa", "adam"):
            await stores.queue.offer(WriteScope(user), turn(stores.clock, "m-x", user_id=user))
        taken = await stores.queue.claim(token="t", limit=4, claim_s=CLAIM_S)
        assert [one.exchange.user_id for one in taken] == ["adam", "dana", "noa", "dana"]
        mine = [one.exchange.message_id for one in taken if one.exchange.user_id == "dana"]
        assert mine == ["m-00", "m-01"]

    async def test_users_take_turns_over_claims(self, stores: ExchangeStores) -> None:
        users = ("adam", "dana", "noa")
        for user in users:
            for number in range(3):
                offered = turn(stores.clock, f"m-{number}", user_id=user)
                await stores.queue.offer(WriteScope(user), offered)
                await stores.elapse(0.01)
        seen = []
        for _ in range(5):
            for one in await stores.queue.claim(token="t", limit=2, claim_s=CLAIM_S, per_user=1):
                seen.append((one.exchange.user_id, one.exchange.message_id))
                assert await stores.queue.finish(one.exchange, "t", "done", {})
        expected = [(user, f"m-{number}") for number in range(3) for user in users]
        assert sorted(seen) == sorted(expected)
        assert seen[:6] == expected[:6]

    async def test_no_more_of_one_user_than_asked_for(self, stores: ExchangeStores) -> None:
        for number in range(3):
            await stores.queue.offer(DANA, turn(stores.clock, f"m-{number}"))
        for wanted in ("m-0", "m-1"):
            (one,) = await stores.queue.claim(token="t", limit=4, claim_s=CLAIM_S, per_user=1)
            assert one.exchange.message_id == wanted
            assert await stores.queue.finish(one.exchange, "t", "done", {})
        assert await stores.queue.claim(token="t", limit=4, claim_s=CLAIM_S, per_user=0) == []
        left = await stores.queue.claim(token="t", limit=4, claim_s=CLAIM_S, per_user=1)
        assert [one.exchange.message_id for one in left] == ["m-2"]

    async def test_a_users_next_turn_waits_for_the_one_in_work(
        self, stores: ExchangeStores
    ) -> None:
        """It must see what the first one taught, whoever claims it."""
        start = stores.clock.now()
        late = turn(stores.clock, "m-x", at=start - timedelta(seconds=5))
        for number in range(2):
            at = start + timedelta(seconds=number - 2)
            await stores.queue.offer(DANA, turn(stores.clock, f"m-{number}", at=at))
        (first,) = await stores.queue.claim(token="one", limit=4, claim_s=SHORT_S, per_user=1)
        assert first.exchange.message_id == "m-0"
        await stores.queue.offer(NOA, turn(stores.clock, user_id="noa"))
        await stores.queue.offer(DANA, late)  # earlier, and offered while a later one is in work
        (other,) = await stores.queue.claim(token="two", limit=4, claim_s=CLAIM_S)
        assert other.exchange.user_id == "noa"
        assert await stores.queue.claim(token="two", limit=4, claim_s=CLAIM_S) == []
        await stores.elapse(SHORT_S + 0.1)  # whoever had it died
        rest = await stores.queue.claim(token="two", limit=4, claim_s=CLAIM_S)
        assert [one.exchange.message_id for one in rest] == ["m-x", "m-0", "m-1"]

    async def test_a_turn_that_was_put_back_holds_up_the_users_next(
        self, stores: ExchangeStores
    ) -> None:
        start = stores.clock.now()
        for number in range(3):
            at = start + timedelta(seconds=number - 3)
            await stores.queue.offer(DANA, turn(stores.clock, f"m-{number}", at=at))
        for user in ("adam", "noa"):
            await stores.queue.offer(WriteScope(user), turn(stores.clock, user_id=user))
        taken = await stores.queue.claim(token="t", limit=1, claim_s=CLAIM_S)
        taken += await stores.queue.claim(token="t", limit=1, claim_s=CLAIM_S)
        assert [one.exchange.user_id for one in taken] == ["adam", "dana"]
        (mine,) = (one.exchange for one in taken if one.exchange.user_id == "dana")
        assert await stores.queue.again(mine, "t", delay_s=SHORT_S, error="away", blamed=True)
        rest = await stores.queue.claim(token="t", limit=9, claim_s=CLAIM_S)
        assert [one.exchange.user_id for one in rest] == ["noa"]
        await stores.elapse(SHORT_S + 0.1)
        rest = await stores.queue.claim(token="t", limit=9, claim_s=CLAIM_S)
        assert [one.exchange.message_id for one in rest] == ["m-0", "m-1", "m-2"]

    async def test_a_row_past_its_life_holds_up_nothing(self, stores: ExchangeStores) -> None:
        old = turn(stores.clock, at=stores.clock.now() - timedelta(seconds=EXCHANGE_TTL_S + 5))
        await stores.queue.offer(DANA, old)
        await stores.queue.offer(DANA, turn(stores.clock, "m-2"))
        (one,) = await stores.queue.claim(token="t", limit=5, claim_s=CLAIM_S, per_user=1)
        assert one.exchange.message_id == "m-2"

    async def test_earlier_turns_of_the_same_conversation(self, stores: ExchangeStores) -> None:
        start = stores.clock.now()
        made = [turn(stores.clock, f"m-{n}", at=start + timedelta(seconds=n)) for n in range(4)]
        made[1] = replace(made[1], memory_id=None)
        made[3] = replace(made[3], at=made[2].at)  # equal times: by id
        for one in made:
            await stores.queue.offer(DANA, one)
        await stores.queue.offer(DANA, turn(stores.clock, "m-0", conversation_id="c-2"))
        await stores.queue.offer(NOA, turn(stores.clock, "m-0", user_id="noa"))
        mine = ReadScope("dana")
        got = await stores.queue.earlier(mine, made[3], 10)
        assert [one.message_id for one in got] == ["m-2", "m-1", "m-0"]
        assert [o.message_id for o in await stores.queue.earlier(mine, made[3], 1)] == ["m-2"]
        assert await stores.queue.earlier(mine, made[0], 10) == []
        assert await stores.queue.earlier(mine, made[3], 0) == []
        assert await stores.queue.earlier(ReadScope("eve"), made[3], 10) == []

    async def test_an_erased_turn_keeps_its_place_and_no_text(self, stores: ExchangeStores) -> None:
        start, mine = stores.clock.now(), ReadScope("dana")
        made = [turn(stores.clock, f"m-{n}", at=start + timedelta(seconds=n)) for n in range(3)]
        for one in made[:2]:
            await stores.queue.offer(DANA, one)
        await stores.queue.erase(made[0])
        await stores.queue.erase(turn(stores.clock, "never offered"))
        after, gone = await stores.queue.earlier(mine, made[2], 5)
        assert same(made[1], after)
        assert (gone.message_id, gone.memory_id, gone.erased) == ("m-0", "x-m-0", True)
        assert (gone.user_text, gone.answer, gone.injected) == ("", "", ())
        assert not after.erased
        (claimed,) = await stores.queue.claim(token="t", limit=5, claim_s=CLAIM_S)
        assert claimed.exchange.message_id == "m-1"
        assert not await stores.queue.offer(DANA, made[0])

    async def test_who_works_on_an_erased_turn_has_lost_it(self, stores: ExchangeStores) -> None:
        offered = turn(stores.clock)
        await stores.queue.offer(DANA, offered)
        await stores.queue.claim(token="t", limit=5, claim_s=CLAIM_S)
        assert await stores.queue.keep(offered, "t", {"parts": {"fact": ["חיפה"]}})
        await stores.queue.erase(offered)
        assert not await stores.queue.keep(offered, "t", {})
        assert not await stores.queue.finish(offered, "t", "done", {})
        assert await stores.queue.waiting() == 0

    async def test_deleted_memories_take_their_turns_along(self, stores: ExchangeStores) -> None:
        start, owner = stores.clock.now(), {"dana": DANA, "noa": NOA}
        rows = [
            turn(stores.clock, "m-1", at=start),
            turn(stores.clock, "m-2", at=start, memory_id="kept"),
            turn(stores.clock, "m-3", at=start, memory_id="x-m-1"),  # said again
            turn(stores.clock, "m-4", at=start, memory_id=None),
            turn(stores.clock, "m-1", at=start, user_id="noa"),
        ]
        for one in rows:
            await stores.queue.offer(owner[one.user_id], one)
        done = await stores.queue.claim(token="t", limit=9, claim_s=CLAIM_S)
        assert len(done) == len(rows)
        assert await stores.queue.finish(rows[0], "t", "done", {"fact": "learned"})
        await stores.queue.purge([])
        await stores.queue.purge([point_id_of("dana", "x-m-1"), point_id_of("dana", "other")])
        later = turn(stores.clock, "m-9", at=start + timedelta(seconds=9))
        left = {
            (user, one.message_id): one.erased
            for user in owner
            for one in await stores.queue.earlier(ReadScope(user), replace(later, user_id=user), 9)
        }
        assert left == {
            ("dana", "m-1"): True,
            ("dana", "m-2"): False,
            ("dana", "m-3"): True,
            ("dana", "m-4"): False,
            ("noa", "m-1"): False,
        }
        # The ones that nobody took away are still worked on.
        assert await stores.queue.waiting() == 3

    async def test_waiting_turns_are_skipped_in_bulk(self, stores: ExchangeStores) -> None:
        for number in range(3):
            await stores.queue.offer(DANA, turn(stores.clock, f"m-{number}"))
        assert await stores.queue.skip_waiting("no endpoint", 2) == 2
        assert await stores.queue.waiting() == 1
        assert await stores.queue.skip_waiting("no endpoint", 0) == 0
        assert len(await stores.queue.claim(token="t", limit=5, claim_s=CLAIM_S)) == 1

    async def test_a_row_past_its_life_is_gone(self, stores: ExchangeStores) -> None:
        old = turn(stores.clock, at=stores.clock.now() - timedelta(seconds=EXCHANGE_TTL_S + 5))
        await stores.queue.offer(DANA, old)
        assert await stores.queue.claim(token="t", limit=5, claim_s=CLAIM_S) == []
        later = turn(stores.clock, "m-2")
        assert await stores.queue.earlier(ReadScope("dana"), later, 5) == []


def on_server(queue: ExchangeQueue) -> ExchangeStores:
    """A store that keeps the time by itself."""
    return ExchangeStores(queue, SystemClock(), asyncio.sleep)
