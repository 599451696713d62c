"""The job that runs a promotion cycle for every user, cut into shares."""

from datetime import timedelta

import pytest

from rayapp.bulk.model import Partition, PartitionRow, Step
from rayapp.core.errors import Conflict, StoreDown
from rayapp.learning import promotion as module
from rayapp.learning.promotion import STEP_S, PromotionWork
from rayapp.learning.records import PromotionReport
from rayapp.memory.item import Status
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from tests.support.clock import FakeClock
from tests.support.harness import Harness

EXPIRED = timedelta(days=40)


class Noted:
    """Implements `Promotion`: each cycle takes `seconds`."""

    def __init__(self, clock: FakeClock, seconds: float = 0.0) -> None:
        self.clock, self.seconds = clock, seconds
        self.users: list[str | None] = []
        self.errors: dict[str, Exception] = {}
        self.report = PromotionReport(examined=2, promoted=1)

    async def run(self, user_id: str | None) -> PromotionReport:
        self.users.append(user_id)
        self.clock.advance(self.seconds)
        if user_id in self.errors:
            raise self.errors[user_id]
        return self.report


def row_of(index: int, *steps: Step) -> PartitionRow:
    counts: dict[str, int] = {}
    for step in steps:
        for name, number in step.counts.items():
            counts[name] = counts.get(name, 0) + number
    return PartitionRow(
        job_id="j", index=index, payload={}, done=sum(step.done for step in steps), counts=counts
    )


async def through(work: PromotionWork, partition: Partition) -> list[Step]:
    steps: list[Step] = []
    cursor = None
    while not steps or steps[-1].cursor is not None:
        steps.append(await work.step(partition, cursor))
        cursor = steps[-1].cursor
    return steps


def work_of(world: Harness, noted: Noted) -> PromotionWork:
    return PromotionWork(noted, world.lifecycle, clock=world.clock)  # type: ignore[arg-type]


async def test_every_user_with_something_to_judge_is_in_one_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "USERS_PER_PARTITION", 2)
    monkeypatch.setattr(module, "PAGE", 3)
    world = await Harness.open()
    for user in ("noam", "dana", "galit", "omer", "tal"):
        for n in range(2):
            await world.store(f"note {n} of the garden", user=user)
    await world.store(
        "דנה גרה בחיפה",
        user="idle",
        tier=Tier.MEMORY_BANK,
        tags=("home",),
        importance=0.5,
        confidence=0.5,
    )
    world.clock.advance(EXPIRED.total_seconds())
    plan = await work_of(world, Noted(world.clock)).plan()
    shares = [one.payload["users"] for one in plan.partitions]
    assert [len(share) for share in shares] == [2, 2, 1]
    assert sorted(user for share in shares for user in share) == sorted(
        ["noam", "dana", "galit", "omer", "tal"]
    )
    assert plan.total == 5


async def test_with_nothing_to_judge_there_is_no_share() -> None:
    world = await Harness.open()
    work = work_of(world, Noted(world.clock))
    assert (await work.plan()).partitions == []
    finish = await work.finish([])
    assert (finish.complete, finish.report["users"]) == (True, 0)


async def test_the_cycles_of_a_share_do_what_the_owner_does() -> None:
    world = await Harness.open()
    ids = {user: await world.store("a note of the garden", user=user) for user in ("dana", "noam")}
    world.clock.advance(EXPIRED.total_seconds())
    work = PromotionWork(world.promotion, world.lifecycle, clock=world.clock)
    (partition,) = (await work.plan()).partitions
    steps = await through(work, partition)
    finish = await work.finish([row_of(0, *steps)])
    assert (finish.report["archived"], finish.report["users"], finish.complete) == (2, 2, True)
    for user, memory_id in ids.items():
        assert (await world.items.get(ReadScope(user), memory_id)).status is Status.ARCHIVED
    assert (await work.plan()).total == 0


async def test_a_step_ends_after_its_time_and_the_next_goes_on() -> None:
    world = await Harness.open()
    noted = Noted(world.clock, seconds=STEP_S * 0.6)
    work = work_of(world, noted)
    partition = Partition(index=0, payload={"users": ["a", "b", "c", "d", "e"]})
    steps = await through(work, partition)
    assert [step.done for step in steps] == [2, 2, 1]
    assert noted.users == ["a", "b", "c", "d", "e"]
    assert steps[0].counts == {"examined": 4, "promoted": 2}


async def test_a_step_always_moves_on() -> None:
    world = await Harness.open()
    work = work_of(world, Noted(world.clock, seconds=STEP_S * 10))
    steps = await through(work, Partition(index=0, payload={"users": ["a", "b"]}))
    assert [step.done for step in steps] == [1, 1]


async def test_a_repeated_step_is_the_same_step() -> None:
    world = await Harness.open()
    work = work_of(world, Noted(world.clock, seconds=STEP_S))
    partition = Partition(index=0, payload={"users": ["a", "b", "c"]})
    first = await work.step(partition, {"next": 1})
    assert await work.step(partition, {"next": 1}) == first
    assert first.cursor == {"next": 2}


@pytest.mark.parametrize("code", ["busy", "lease_lost"])
async def test_a_user_whose_cycle_goes_on_elsewhere_is_counted(code: str) -> None:
    world = await Harness.open()
    noted = Noted(world.clock)
    noted.errors["b"] = Conflict("A cycle is going on.", code=code)
    work = work_of(world, noted)
    (step,) = await through(work, Partition(index=0, payload={"users": ["a", "b", "c"]}))
    assert (step.done, step.counts["busy"], step.counts["promoted"]) == (3, 1, 2)
    assert (await work.finish([row_of(0, step)])).complete


async def test_a_store_that_is_away_is_the_frames_business() -> None:
    world = await Harness.open()
    noted = Noted(world.clock)
    noted.errors["b"] = StoreDown("No primary.")
    work = work_of(world, noted)
    with pytest.raises(StoreDown):
        await work.step(Partition(index=0, payload={"users": ["a", "b"]}), None)


async def test_items_that_no_rule_could_judge_make_it_incomplete() -> None:
    world = await Harness.open()
    noted = Noted(world.clock)
    noted.report = PromotionReport(examined=3, errors=1)
    work = work_of(world, noted)
    (step,) = await through(work, Partition(index=0, payload={"users": ["a"]}))
    finish = await work.finish([row_of(0, step)])
    assert (finish.complete, finish.report["errors"]) == (False, 1)
