"""What every `ClaimQueue` must do; run on the fake and on MongoDB."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest

from rayapp.core.claims import Backoff, Claim, ClaimQueue, WorkState, put_back

CLAIM_S = 60.0
# Long enough for a claim to be taken, short enough to be waited for, seconds.
SHORT_S = 0.3
BACKOFF = Backoff(pause_s=SHORT_S, most_s=SHORT_S, tries=3)


@dataclass(frozen=True, slots=True)
class Parcel:
    """What the queue of the suite holds."""

    user_id: str
    memory_id: str
    note: str = ""


class ClaimStores(NamedTuple):
    queue: ClaimQueue[Parcel]
    elapse: Callable[[float], Awaitable[None]]


def parcel(name: str = "p-1", user_id: str = "dana", note: str = "") -> Parcel:
    return Parcel(user_id, name, note)


async def one_of(stores: ClaimStores, claim_s: float = CLAIM_S) -> Claim[Parcel]:
    (found,) = await stores.queue.claim("one", 5, claim_s)
    return found


class ClaimQueueContract:
    @pytest.fixture
    def stores(self) -> ClaimStores:
        raise NotImplementedError

    async def test_what_is_offered_is_claimed_whole_and_once(self, stores: ClaimStores) -> None:
        await stores.queue.offer(parcel(note="$עברית"))
        claimed = await one_of(stores)
        assert (claimed.row, claimed.tries) == (parcel(note="$עברית"), 0)
        assert await stores.queue.claim("two", 5, CLAIM_S) == []

    async def test_the_first_claim_of_a_row_knows_that_it_is(self, stores: ClaimStores) -> None:
        await stores.queue.offer_all([parcel(), parcel("p-2")])
        first, other = await stores.queue.claim("one", 5, CLAIM_S)
        assert (first.first, other.first) == (True, True)
        assert await stores.queue.retry(first, delay_s=0.0, error="away", counts=False)
        assert await stores.queue.finish(other, other.row)
        await stores.queue.offer(parcel("p-2"))
        await stores.elapse(0.01)
        again = await stores.queue.claim("one", 5, CLAIM_S)
        assert [one.first for one in again] == [False, False]

    async def test_it_takes_what_came_first_and_no_more_than_asked(
        self, stores: ClaimStores
    ) -> None:
        for name in ("a", "b", "c"):
            await stores.queue.offer(parcel(name))
            await stores.elapse(0.01)
        first = await stores.queue.claim("one", 2, CLAIM_S)
        rest = await stores.queue.claim("two", 2, CLAIM_S)
        assert [one.row.memory_id for one in first] == ["a", "b"]
        assert [one.row.memory_id for one in rest] == ["c"]
        assert await stores.queue.claim("two", 0, CLAIM_S) == []

    async def test_what_is_more_urgent_is_taken_before_what_is_older(
        self, stores: ClaimStores
    ) -> None:
        await stores.queue.offer(parcel("backfill"), priority=1)
        await stores.elapse(0.01)
        await stores.queue.offer(parcel("live"))
        taken = await stores.queue.claim("one", 1, CLAIM_S)
        assert [one.row.memory_id for one in taken] == ["live"]

    async def test_a_row_is_not_due_before_its_time(self, stores: ClaimStores) -> None:
        await stores.queue.offer(parcel(), delay_s=SHORT_S)
        assert await stores.queue.claim("one", 5, CLAIM_S) == []
        await stores.elapse(SHORT_S + 0.1)
        await one_of(stores)

    async def test_equal_names_of_two_users_are_two_rows(self, stores: ClaimStores) -> None:
        await stores.queue.offer(parcel())
        await stores.queue.offer(parcel(user_id="noa"))
        claimed = await stores.queue.claim("one", 5, CLAIM_S)
        assert {one.row.user_id for one in claimed} == {"dana", "noa"}

    async def test_a_claim_ends_and_its_fence_with_it(self, stores: ClaimStores) -> None:
        await stores.queue.offer(parcel())
        late = await one_of(stores, SHORT_S)
        await stores.elapse(SHORT_S + 0.1)
        now = await one_of(stores)
        assert now.fence > late.fence
        assert not await stores.queue.beat(late, CLAIM_S)
        assert not await stores.queue.keep(late, parcel(note="late"))
        assert not await stores.queue.retry(late, delay_s=0.0, error="late", counts=True)
        assert not await stores.queue.bury(late, "late")
        assert not await stores.queue.finish(late, parcel(note="late"))
        assert not await stores.queue.finish(late, None)
        assert await stores.queue.finish(now, parcel(note="done"))

    async def test_a_beat_holds_it_longer(self, stores: ClaimStores) -> None:
        await stores.queue.offer(parcel())
        mine = await one_of(stores, SHORT_S)
        assert await stores.queue.beat(mine, CLAIM_S)
        await stores.elapse(SHORT_S + 0.1)
        assert await stores.queue.claim("two", 5, CLAIM_S) == []

    async def test_what_is_kept_is_there_after_a_crash(self, stores: ClaimStores) -> None:
        await stores.queue.offer(parcel())
        mine = await one_of(stores, SHORT_S)
        assert await stores.queue.keep(mine, parcel(note="$half"))
        await stores.elapse(SHORT_S + 0.1)
        assert (await one_of(stores)).row.note == "$half"

    async def test_what_is_finished_is_not_taken_again(self, stores: ClaimStores) -> None:
        await stores.queue.offer(parcel())
        mine = await one_of(stores)
        assert await stores.queue.finish(mine, replace(mine.row, note="done"))
        assert not await stores.queue.finish(mine, mine.row)
        assert await stores.queue.claim("two", 5, CLAIM_S) == []
        assert await stores.queue.count(WorkState.DONE) == 1
        assert await stores.queue.count(WorkState.WAITING) == 0

    async def test_several_at_once_are_as_one_by_one(self, stores: ClaimStores) -> None:
        queue = stores.queue
        await queue.offer_all([])
        await queue.offer_all([parcel("b"), parcel("c")])
        await queue.offer_all([parcel("a", note="first")], priority=-1)
        claims = await queue.claim("one", 5, CLAIM_S)
        assert claims[0].row.memory_id == "a"
        assert {one.row.memory_id for one in claims} == {"a", "b", "c"}
        kept = [(one, replace(one.row, note="$half")) for one in claims]
        assert await queue.keep_all(kept) == [True, True, True]
        await queue.offer(parcel("b", note="newer"))
        assert await queue.finish_all([]) == []
        assert await queue.keep_all(kept) == [one.row.memory_id != "b" for one in claims]
        done = await queue.finish_all(kept)
        assert done == [one.row.memory_id != "b" for one in claims]
        assert await queue.count(WorkState.DONE) == 2
        assert (await one_of(stores)).row.note == "newer"

    async def test_a_row_that_leaves_nothing_goes(self, stores: ClaimStores) -> None:
        await stores.queue.offer(parcel())
        assert await stores.queue.finish(await one_of(stores), None)
        assert [await stores.queue.count(state) for state in WorkState] == [0, 0, 0]

    async def test_an_offer_takes_the_row_from_whoever_works_on_it(
        self, stores: ClaimStores
    ) -> None:
        await stores.queue.offer(parcel(note="old"))
        old = await one_of(stores)
        await stores.queue.offer(parcel(note="new"))
        assert not await stores.queue.finish(old, old.row)
        new = await one_of(stores)
        assert (new.row.note, new.tries) == ("new", 0)
        await stores.queue.finish(new, new.row)
        await stores.queue.offer(parcel(note="again"))
        assert (await one_of(stores)).row.note == "again"

    async def test_a_failed_try_comes_back_later_and_the_last_one_not_at_all(
        self, stores: ClaimStores
    ) -> None:
        await stores.queue.offer(parcel())
        for tries in range(BACKOFF.tries):
            mine = await one_of(stores)
            assert mine.tries == tries
            assert await put_back(stores.queue, mine, "$broken", backoff=BACKOFF, random=0.5)
            assert await stores.queue.claim("two", 5, CLAIM_S) == []
            await stores.elapse(SHORT_S + 0.1)
        assert await stores.queue.claim("two", 5, CLAIM_S) == []
        assert await stores.queue.count(WorkState.DEAD) == 1
        await stores.queue.offer(parcel())
        assert (await one_of(stores)).tries == 0

    async def test_what_was_away_is_no_failed_try(self, stores: ClaimStores) -> None:
        await stores.queue.offer(parcel())
        mine = await one_of(stores)
        assert await stores.queue.retry(mine, delay_s=0.0, error="away", counts=False)
        await stores.elapse(0.01)
        assert (await one_of(stores)).tries == 0

    async def test_many_who_claim_at_once_share_the_rows(self, stores: ClaimStores) -> None:
        for number in range(12):
            await stores.queue.offer(parcel(f"p-{number}"))
        taken = await asyncio.gather(*(stores.queue.claim("one", 5, CLAIM_S) for _ in range(6)))
        names = [one.row.memory_id for some in taken for one in some]
        assert len(names) == len(set(names))
        names += [one.row.memory_id for one in await stores.queue.claim("two", 12, CLAIM_S)]
        assert len(names) == len(set(names)) == 12
