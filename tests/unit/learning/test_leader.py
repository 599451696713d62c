"""When the owner acts: at start, on schedule, after a user's exchanges, and only one of many."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from rayapp.bulk.ports import Lease
from rayapp.container import bootstrap
from rayapp.core.errors import Conflict, StoreDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.learning.leader import (
    ACTIVITY_S,
    CLEAN_S,
    MaintenanceService,
    PeriodicTask,
    PeriodicTasks,
)
from rayapp.learning.records import PromotionReport
from rayapp.learning.rules.promotion import OWNER_LEASE, Activity, cycle_due
from tests.support.clock import FakeClock
from tests.support.stores.stores import InMemoryLeaseStore

INTERVAL_S = 1_800.0


class FakePromotion:
    def __init__(self) -> None:
        self.cycles: list[str | None] = []
        self.stored: dict[str, tuple[int, int]] = {}
        self.asked_since: list[datetime] = []
        self.error: Exception | None = None

    async def run(self, user_id: str | None) -> PromotionReport:
        self.cycles.append(user_id)
        if self.error is not None:
            raise self.error
        return PromotionReport()

    async def activity(self, since: datetime) -> list[tuple[str, int, int]]:
        self.asked_since.append(since)
        return [(user, *counts) for user, counts in self.stored.items()]


class FakeEffects:
    def __init__(self) -> None:
        self.cleaned = 0
        self.owed = 3
        self.drained: list[tuple[Lease | None, bool]] = []

    async def run_once(self, lease: Lease | None = None, *, promotes: bool = True) -> int:
        self.drained.append((lease, promotes))
        settled, self.owed = self.owed, 0
        return settled

    async def clean(self, _limit: int) -> int:
        self.cleaned += 1
        return 0


class Owner:
    """One process that may be the owner."""

    def __init__(self, clock: FakeClock, leases: InMemoryLeaseStore, **changed: float) -> None:
        self.promotion, self.outbox = FakePromotion(), FakeEffects()
        settings = load_settings(env={}, overrides={"promotion": changed})
        runtime = bootstrap.runtime_of(settings, InMemoryMetrics(), clock)
        promotion: Any = self.promotion
        effects: Any = self.outbox
        self.service = MaintenanceService(promotion, effects, leases, runtime=runtime)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def leases(clock: FakeClock) -> InMemoryLeaseStore:
    return InMemoryLeaseStore(clock)


@pytest.fixture
def owner(clock: FakeClock, leases: InMemoryLeaseStore) -> Owner:
    return Owner(clock, leases)


async def test_it_works_first_and_sleeps_after(owner: Owner, clock: FakeClock) -> None:
    assert await owner.service.act()
    assert owner.promotion.cycles == [None]
    assert await owner.service.act()
    assert owner.promotion.cycles == [None]
    clock.advance(INTERVAL_S)
    assert await owner.service.act()
    assert owner.promotion.cycles == [None, None]


async def look(owner: Owner, clock: FakeClock, **stored: tuple[int, int]) -> list[str | None]:
    """The cycles that this look at the activity caused."""
    owner.promotion.stored = stored
    before = len(owner.promotion.cycles)
    clock.advance(ACTIVITY_S)
    await owner.service.act()
    return owner.promotion.cycles[before:]


async def test_every_user_has_a_count_of_their_own(owner: Owner, clock: FakeClock) -> None:
    await owner.service.act()
    assert await look(owner, clock, dana=(19, 1), yossi=(20, 1)) == ["yossi"]
    assert await look(owner, clock, dana=(20, 1), yossi=(21, 1)) == ["dana"]
    assert await look(owner, clock, dana=(39, 1), yossi=(40, 1)) == ["yossi"]
    assert await look(owner, clock, dana=(40, 1), yossi=(41, 1)) == ["dana"]


async def test_another_conversation_is_a_cycle_once(owner: Owner, clock: FakeClock) -> None:
    await owner.service.act()
    assert await look(owner, clock, dana=(1, 1)) == []
    assert await look(owner, clock, dana=(2, 2)) == ["dana"]
    assert await look(owner, clock, dana=(3, 2)) == []
    assert await look(owner, clock, dana=(4, 3)) == ["dana"]


async def test_a_users_cycle_that_failed_is_tried_again(owner: Owner, clock: FakeClock) -> None:
    await owner.service.act()
    owner.promotion.error = StoreDown("away")
    assert await look(owner, clock, dana=(20, 1)) == ["dana"]
    owner.promotion.error = None
    assert await look(owner, clock, dana=(20, 1)) == ["dana"]
    assert await look(owner, clock, dana=(20, 1)) == []


async def test_the_counts_start_again_with_a_cycle_of_all(owner: Owner, clock: FakeClock) -> None:
    await owner.service.act()
    await look(owner, clock, dana=(25, 1))
    owner.promotion.stored = {}  # nothing since the cycle that comes now
    clock.advance(INTERVAL_S)
    began = clock.now()
    await owner.service.act()
    assert owner.promotion.asked_since[-1] == began
    assert await look(owner, clock, dana=(20, 1)) == ["dana"]


def test_one_conversation_is_no_switch() -> None:
    assert not cycle_due(Activity(1, 1), Activity(), 20)
    assert cycle_due(Activity(2, 2), Activity(), 20)


async def test_dead_references_are_cleaned_now_and_then(owner: Owner, clock: FakeClock) -> None:
    await owner.service.act()
    await owner.service.act()
    assert owner.outbox.cleaned == 1
    clock.advance(CLEAN_S)
    await owner.service.act()
    assert owner.outbox.cleaned == 2


async def test_only_the_holder_of_the_lease_acts(
    clock: FakeClock, leases: InMemoryLeaseStore, owner: Owner
) -> None:
    held = await leases.acquire(OWNER_LEASE, "another process", 60)
    assert held is not None
    assert not await owner.service.act()
    assert owner.promotion.cycles == []
    assert await owner.service.drain() == 3  # the outbox is everybody's
    assert owner.outbox.drained == [(None, False)]  # the tiers are the owner's
    clock.advance(61)
    assert await owner.service.act()
    assert owner.promotion.cycles == [None]
    await owner.service.drain()
    lease, promotes = owner.outbox.drained[-1]
    assert promotes
    assert lease == await leases.current(OWNER_LEASE)


async def test_a_released_lease_is_taken_over_at_once(
    clock: FakeClock, leases: InMemoryLeaseStore, owner: Owner
) -> None:
    await owner.service.act()
    await owner.service.release()
    taken = await leases.acquire(OWNER_LEASE, "another process", 60)
    assert taken is not None
    await owner.service.release()  # not ours any more: left alone
    assert await leases.current(OWNER_LEASE) == taken


async def test_a_cycle_that_somebody_else_runs_is_done(owner: Owner) -> None:
    owner.promotion.error = Conflict("busy")
    assert await owner.service.act()
    assert await owner.service.act()
    assert owner.promotion.cycles == [None]


async def test_a_cycle_that_failed_is_tried_again_soon(owner: Owner) -> None:
    owner.promotion.error = StoreDown("away")
    assert await owner.service.act()
    owner.promotion.error = None
    assert await owner.service.act()
    assert owner.promotion.cycles == [None, None]


async def test_a_task_that_takes_longer_than_the_lease_has_one_owner(
    clock: FakeClock, leases: InMemoryLeaseStore
) -> None:
    owner, other = Owner(clock, leases, lease_s=1.2), Owner(clock, leases)

    async def backup() -> None:
        for _ in range(2):
            clock.advance(1.0)
            await asyncio.sleep(0.5)
            assert not await other.service.act()

    task = PeriodicTask(name="backup", every_s=60.0, first_s=0.0, run=backup)
    owner.service._periodic = PeriodicTasks([task], clock)
    assert await owner.service.act()
    assert not other.promotion.cycles
