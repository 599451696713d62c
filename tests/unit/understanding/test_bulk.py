"""The job that understands what is stored, over the stores of the tests."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rayapp.bulk.model import Partition, PartitionRow, Plan
from rayapp.container.understanding import tidying
from rayapp.core.claims import WorkState
from rayapp.core.errors import InvalidInput, StoreDown
from rayapp.core.scope import ReadScope
from rayapp.memory.item import ChangeType
from rayapp.memory.rules.creation import deleted
from rayapp.memory.rules.revision import replaced_state
from rayapp.understanding.bulk import UnderstandWork
from rayapp.understanding.ports import SourceText, Understander
from rayapp.understanding.records import Fate
from tests.support.builders import an_item
from tests.support.harness import Harness

USERS = ("dana", "noa")
TEXTS = ("{name} lives in Haifa.", "My boss is Ruth.", "How long should pasta cook?")


class Dies:
    """Understands, and dies once: before its so many-eth time or right after."""

    def __init__(self, inner: Understander, before: int, *, after: bool) -> None:
        self.inner, self.left, self.after = inner, before, after

    async def understand(self, sources: Sequence[SourceText]) -> None:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise StoreDown("MongoDB is away.")
        await self.inner.understand(sources)
        if self.left == 0:
            raise StoreDown("MongoDB is away.")

    async def take_back(self, user_id: str, source_ids: Sequence[str]) -> None:
        await self.inner.take_back(user_id, source_ids)


async def a_world() -> Harness:
    world = Harness.ready()
    for user_id in USERS:
        for number, text in enumerate(TEXTS):
            item = an_item(
                user_id=user_id, memory_id=f"m{number}", text=text.format(name=user_id.title())
            )
            await world.items.insert(item)
    return world


def work_of(
    world: Harness, *, again: bool = False, understander: Understander | None = None
) -> UnderstandWork:
    container = world.container
    return UnderstandWork(
        container.stores.understandings,
        container.understanding.deciding,
        container.stores.items,
        understander or container.understander,
        tidying(container.stores, container.growth, container.runtime),
        user_id=None,
        again=again,
        runtime=container.runtime,
    )


async def run(work: UnderstandWork, plan: Plan, at: dict[int, Any] | None = None) -> Counter[str]:
    """Every partition from its checkpoint on; `at` keeps how far each has come."""
    at = {} if at is None else at
    counts: Counter[str] = Counter()
    for one in plan.partitions:
        while at.setdefault(one.index, None) != "over":
            step = await work.step(Partition(index=one.index, payload=one.payload), at[one.index])
            counts.update(step.counts)
            at[one.index] = step.cursor if step.cursor is not None else "over"
    return counts


def graph(world: Harness) -> Any:
    tables = world.knowledge.tables
    ids = (tables.entities, tables.statements, tables.given)
    return [sorted(one) for one in ids], {key: one.mentions for key, one in tables.entities.items()}


async def test_every_memory_is_understood_once() -> None:
    world = await a_world()
    work = work_of(world)
    plan = await work.plan()
    assert plan.total == len(USERS) * len(TEXTS)
    assert await run(work, plan) == {"derived": 4, "passed_over": 2}
    known = graph(world)
    assert await run(work, plan) == {"known": 6}
    assert await run(work_of(world, again=True), plan) == {"derived": 4, "passed_over": 2}
    assert graph(world) == known
    found = await world.container.stores.understandings.find(ReadScope("dana"), "m0")
    assert found is not None
    assert found.row.fate is Fate.DERIVED


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("dies", [1, 2])
async def test_a_killed_step_is_repeated_to_the_same_end(dies: int, after: bool) -> None:
    whole = await a_world()
    plan = await work_of(whole).plan()
    await run(work_of(whole), plan)
    world = await a_world()
    at: dict[int, Any] = {}
    dying = Dies(world.container.understander, dies, after=after)
    with pytest.raises(StoreDown):
        await run(work_of(world, understander=dying), plan, at)
    await run(work_of(world), plan, at)
    assert graph(world) == graph(whole)


async def test_what_nothing_stands_behind_goes() -> None:
    world, world_user = await a_world(), "dana"
    plan = await work_of(world).plan()
    await run(work_of(world), plan)
    known, tables = graph(world), world.knowledge.tables
    lost = next(one for (user, _), one in tables.statements.items() if user == world_user)
    ghost = replace(lost, statement_id="ghost", source_id="nobody", fact_id="f", slot="f")
    tables.statements[world_user, "ghost"] = ghost
    node = next(one for (user, _), one in tables.entities.items() if user == world_user)
    unnamed = replace(node, entity_id="unnamed", keys=(), names=(), mentions=0)
    by_hand = replace(unnamed, entity_id="by-hand", verified_by="dana")
    for one in (unnamed, by_hand):
        tables.entities[world_user, one.entity_id] = one
    assert (await run(work_of(world), plan))["orphans"] == 2
    assert (world_user, "by-hand") in tables.entities
    del tables.entities[world_user, "by-hand"]
    assert graph(world) == known


async def test_the_report_counts_and_a_user_may_be_named() -> None:
    world = await a_world()
    work = work_of(world)
    work.user_id = "noa"
    plan = await work.plan()
    assert plan.total == len(TEXTS)
    counts = await run(work, plan)
    row = PartitionRow(job_id="j", index=0, payload={}, done=3, counts=counts)
    finish = await work.finish([row])
    assert finish.complete
    assert finish.report == {"memories": 3, "derived": 2, "passed_over": 1}


async def test_what_the_service_knows_of_a_newer_version_stays() -> None:
    world = await a_world()
    work = work_of(world)
    plan = await work.plan()
    await run(work, plan)
    store = world.container.stores.understandings
    found = await store.find(ReadScope("dana"), "m0")
    assert found is not None
    await store.offer(replace(found.row, version=9))
    assert await store.settle([found.row]) == {"m0"}
    (claim,) = await store.claim("one", 5, 60.0)
    assert claim.row.version == 9
    assert (await run(work_of(world, again=True), plan))["skipped"] == 1


class Refuses:
    """Does not understand one text, nor those that come with it."""

    def __init__(self, inner: Understander) -> None:
        self.inner = inner

    async def understand(self, sources: Sequence[SourceText]) -> None:
        if any(one.source_id == "m1" for one in sources):
            raise InvalidInput("A value cannot be stored.")
        await self.inner.understand(sources)

    async def take_back(self, user_id: str, source_ids: Sequence[str]) -> None:
        await self.inner.take_back(user_id, source_ids)


async def test_a_bad_text_stops_no_other() -> None:
    world = await a_world()
    work = work_of(world, understander=Refuses(world.container.understander))
    plan = await work.plan()
    assert await run(work, plan) == {"derived": 2, "failed": 2, "passed_over": 2}
    assert {source for _, source in world.knowledge.tables.given} == {"m0"}


class Deletes:
    """Understands, and memories are deleted meanwhile."""

    def __init__(self, world: Harness) -> None:
        self.world, self.inner = world, world.container.understander

    async def understand(self, sources: Sequence[SourceText]) -> None:
        await self.inner.understand(sources)
        for one in sources:
            scope = ReadScope(one.user_id, include_shared=False)
            item = await self.world.items.get(scope, one.source_id)
            assert item is not None
            now = self.world.clock.now()
            row = replaced_state(item, ChangeType.UPDATE, "test", now)
            await self.world.items.replace(deleted(item, now), expected_version=1, row=row)

    async def take_back(self, user_id: str, source_ids: Sequence[str]) -> None:
        await self.inner.take_back(user_id, source_ids)


async def test_what_is_deleted_meanwhile_is_taken_back() -> None:
    world = await a_world()
    work = work_of(world, understander=Deletes(world))
    await run(work, await work.plan())
    tables = world.knowledge.tables
    assert tables.statements
    store = world.container.stores.understandings
    found = await store.find(ReadScope("dana"), "m0")
    assert found is not None
    assert (found.state, found.row.gone, found.row.topics) == (WorkState.WAITING, True, ())
    await world.container.understanding.take_back_waiting()
    assert not any((tables.given, tables.entities, tables.statements))
    assert await store.find(ReadScope("dana"), "m0") is None
