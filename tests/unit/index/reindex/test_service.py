"""A reindex beside the running service: filled, proved, switched, and nothing lost."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rayapp.bulk.model import Job, JobState
from rayapp.core.errors import Conflict, EmbedderDown, InvalidInput
from rayapp.index.records import WHOLE, ScoredPoint
from rayapp.index.reindex.service import ReindexWork
from rayapp.index.reindex.verify import overlap_of
from rayapp.index.rules.points import PASSAGES
from rayapp.index.service import beat
from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.search.requests import SearchQuery
from rayapp.text.passages import passages_of
from tests.support.index_points import written_again
from tests.unit.index.reindex.world import DANA, Driver, OtherModel, World


async def test_unchanged_points_are_copied_and_served_from_the_new_collection(world: World) -> None:
    await world.fill(30)
    before = await world.service.found("which lighthouse needs paint", limit=10)
    old = await world.target()
    job, finish = await world.run()
    report = finish.report
    assert finish.complete
    assert (report["copied"], report["embedded"], report["failed"]) == (30, 0, 0)
    assert await world.target() == job.facts["collection"] != old
    assert await world.unlike_the_truth() == []
    assert await world.service.found("which lighthouse needs paint", limit=10) == before
    assert (report["verify"]["sample"], report["verify"]["overlap"]) == (30, 1.0)
    assert report["verify"]["receipts"] == 1
    assert set(report["seconds"]) == {"fill", "follow", "verify", "switch"}
    assert old in await world.service.index.collections()


async def test_the_plan_only_reads(world: World) -> None:
    await world.fill(5)
    work = ReindexWork(await world.parts(), {})
    plan = await work.plan()
    assert (plan.total, len(plan.partitions)) == (5, 3)
    assert plan.facts["previous"] == await world.target()
    assert await world.service.index.collections() == [await world.target()]


async def test_another_model_is_filled_from_the_truth(world: World) -> None:
    await world.fill(20)
    model = OtherModel()
    _, finish = await world.run(parts=await world.parts(model))
    assert (finish.report["copied"], finish.report["embedded"]) == (0, 20)
    assert finish.report["switched"]
    assert await world.unlike_the_truth() == []
    # The words mean the same on both, the vectors do not.
    assert not finish.report["verify"]["overlap_gated"]


async def test_the_alias_waits_while_a_service_runs_with_the_old_model(world: World) -> None:
    await world.fill(10)
    old = await world.target()
    parts = await world.parts(OtherModel())

    async def beating(seconds: float) -> None:
        world.service.clock.advance(seconds)
        await beat(world.service.leases, world.service.schema, "indexer")

    await beating(0)
    job, finish = await world.run(parts=replace(parts, sleep=beating))
    assert finish.complete
    assert (finish.report["ready"], finish.report["switched"]) == (True, False)
    assert "restart the service with other/model" in finish.report["next"]
    assert await world.target() == old
    assert await world.unlike_the_truth(job.facts["collection"]) == []


async def test_a_dead_services_lease_does_not_hold_the_alias(world: World) -> None:
    await world.fill(3)
    await beat(world.service.leases, world.service.schema, "killed")
    _, finish = await world.run(parts=await world.parts(OtherModel()))
    assert finish.report["switched"]


async def test_switch_never_leaves_a_proved_collection(world: World) -> None:
    await world.fill(6)
    old = await world.target()
    job, finish = await world.run({"switch": "never"})
    assert (finish.complete, finish.report["ready"]) == (True, True)
    assert await world.target() == old
    assert await world.unlike_the_truth(job.facts["collection"]) == []


async def test_an_empty_service_gets_an_empty_collection(world: World) -> None:
    job, finish = await world.run()
    assert (finish.complete, finish.report["items"]) == (True, 0)
    assert await world.target() == job.facts["collection"]


async def test_chosen_items_are_embedded_again_and_the_others_copied(world: World) -> None:
    await world.fill(9)
    for n in range(4):
        await world.service.store(f"chapter {n}", tier=Tier.BOOKS)
    await world.service.drain()
    _, finish = await world.run({"tier": "books"})
    assert (finish.report["copied"], finish.report["embedded"]) == (9, 4)
    _, finish = await world.run({"user_id": "user1", "since": "2026-01-01T00:00:00+00:00"})
    assert finish.report["embedded"] == 3
    _, finish = await world.run({"since": "2030-01-01T00:00:00+00:00"})
    assert finish.report["embedded"] == 0
    assert await world.unlike_the_truth() == []


async def test_an_item_without_a_vector_fails_alone_and_stays_visible(world: World) -> None:
    await world.fill(12)
    bad = await world.service.store("poison in the well")
    await world.service.drain()
    _, finish = await world.run(parts=await world.parts(OtherModel()))
    assert not finish.complete
    assert finish.report["switched"]
    assert (finish.report["failed"], finish.report["embedded"]) == (1, 12)
    (sample,) = finish.report["failures"]
    assert (sample["memory_id"], sample["error"]) == (bad, "bad_vector: The model gave NaN.")
    assert (await world.service.items.backlog()).pending == 1


async def test_too_many_failures_leave_the_alias_alone(world: World) -> None:
    await world.fill(5)
    for n in range(11):
        await world.service.store(f"poison {n}")
    await world.service.drain()
    old = await world.target()
    _, finish = await world.run(parts=await world.parts(OtherModel()))
    assert not finish.complete
    assert finish.report["reason"].startswith("11 of 16 items could not be embedded")
    assert await world.target() == old


async def test_an_outage_ends_a_step_and_is_nobodys_failure(world: World) -> None:
    await world.fill(8)
    model: Any = OtherModel()
    driver = Driver(world, {}, await world.parts(model))
    await driver.prepare()

    async def away(*_: Any, **__: Any) -> None:
        raise EmbedderDown("The embedder is away.")

    model.embed, works = away, model.embed
    with pytest.raises(EmbedderDown):
        await driver.partitions()
    model.embed = works
    await driver.partitions()
    assert (await driver.finish()).report["failed"] == 0


async def test_points_that_differ_from_the_model_leave_the_alias_alone(world: World) -> None:
    await world.fill(10)
    old = await world.target()

    async def spoil(job: Job) -> None:
        name = job.facts["collection"]
        stored = next(iter((await world.points(name)).values()))
        index = world.service.index.at(name)
        (whole,) = await index.retrieve([stored.point_id], WHOLE)
        await index.upsert([written_again(whole, dense=-whole.dense)])

    _, finish = await world.run(after_fill=spoil)
    assert not finish.complete
    assert finish.report["reason"].startswith("1 of 10 sampled points differ")
    assert await world.target() == old
    assert await world.unlike_the_truth() == []


async def test_searches_that_answer_otherwise_leave_the_alias_alone(world: World) -> None:
    await world.fill(24, users=1)
    for query in ("which lighthouse needs paint", "איזה מגדלור צריך צבע"):
        await world.service.search(query)
    old = await world.target()

    async def shuffle(_: Job) -> None:
        """The old collection answers the same questions with other items."""
        rng = np.random.default_rng(4)
        index = world.service.index.at(old)
        points = await index.retrieve(list(await world.points(old)), WHOLE)
        for point in points:
            noise = rng.standard_normal(point.dense.shape).astype(np.float32)
            terms = replace(point.sparse, values=list(rng.random(len(point.sparse.values))))
            await index.upsert([written_again(point, dense=noise, sparse=terms)])

    _, finish = await world.run(after_fill=shuffle)
    assert not finish.complete
    assert finish.report["verify"]["overlap"] < 0.9
    assert "Replayed searches agree on" in finish.report["reason"]
    assert await world.target() == old


async def test_points_that_vanished_are_brought_again_before_the_switch(world: World) -> None:
    await world.fill(20)

    async def lose(job: Job) -> None:
        await world.service.index.drop_collection(job.facts["collection"])
        await world.service.index.create_collection(job.facts["collection"], world.service.schema)

    _, finish = await world.run(after_fill=lose)
    assert finish.complete
    assert finish.report["switched"]
    assert await world.unlike_the_truth() == []


async def test_a_moved_alias_is_left_where_it_is(world: World) -> None:
    await world.fill(4)
    index = world.service.index

    async def move(_: Job) -> None:
        await index.create_collection("memories_x_1_1", world.service.schema)
        await index.switch_alias("memories_x_1_1")

    _, finish = await world.run(after_fill=move)
    assert not finish.complete
    assert "moved to memories_x_1_1" in finish.report["reason"]
    assert await world.target() == "memories_x_1_1"
    _, finish = await world.run()  # nothing of the other job stands in the way of a new one
    assert finish.report["switched"]


async def test_what_happens_while_it_fills_is_in_the_new_collection(world: World) -> None:
    ids = await world.fill(12, users=1)
    memories = world.service.services.memories

    async def live(_: Job) -> None:
        await world.service.store("stored meanwhile")
        await world.service.store("טרם הוכנס לאינדקס")
        await memories.edit(DANA, ids[0], MemoryEdit(text="טקסט חדש לגמרי"))
        await memories.edit(DANA, ids[1], MemoryEdit(tags=("new",)))
        await memories.delete(DANA, ids[2])
        await memories.archive(DANA, ids[3], reason="done")
        await world.service.drain()
        await memories.edit(DANA, ids[4], MemoryEdit(text="edited and still pending"))
        await world.service.store("pending at the switch")

    job, finish = await world.run(after_fill=live)
    assert finish.complete
    assert finish.report["followed"] >= 4
    answer = await world.service.search("pending at the switch")
    assert answer.hits[0].item.text == "pending at the switch"
    await world.service.drain()
    assert await world.unlike_the_truth() == []
    assert await world.target() == job.facts["collection"]


async def test_a_text_that_was_only_spaced_anew_is_cut_anew_too(world: World) -> None:
    told = [f"The {one} is what uncle Bob speaks of. " * 15 for one in ("parrot", "piano")]
    memory_id = await world.service.store("\n\n".join(told))
    await world.service.drain()
    wide = "\n\n".join(text.replace(" ", " " * 8) for text in told)
    await world.service.services.memories.edit(DANA, memory_id, MemoryEdit(text=wide))

    async def indexed(_: Job) -> None:
        await world.service.drain()

    await world.run(after_fill=indexed)
    (point,) = (await world.points()).values()
    assert point.payload[PASSAGES] == len(passages_of(wide)) > len(passages_of("\n\n".join(told)))


async def test_a_driver_killed_after_the_switch_is_finished_by_the_next(world: World) -> None:
    await world.fill(7)
    driver = Driver(world, {}, await world.parts())
    await driver.prepare()
    await driver.partitions()
    await world.service.index.switch_alias(driver.job.facts["collection"])
    again = Driver(world, {}, await world.parts())
    await again.prepare(driver.job.job_id)
    finish = await again.finish()
    assert (finish.complete, finish.report["switched"]) == (True, True)


async def test_drop_old_leaves_the_new_collection_alone(world: World) -> None:
    await world.fill(3)
    await world.service.index.create_collection("memories2_m_8_0", world.service.schema)
    await world.run()
    old = set(await world.service.index.collections())
    _, finish = await world.run({"drop_old": True})
    target = await world.target()
    assert await world.service.index.collections() == sorted([target, "memories2_m_8_0"])
    assert set(finish.report["dropped"]) == old - {"memories2_m_8_0"}


async def test_a_job_of_another_model_is_not_gone_on_with(world: World) -> None:
    work = ReindexWork(await world.parts(OtherModel()), {})
    facts = (await ReindexWork(await world.parts(), {}).plan()).facts
    with pytest.raises(InvalidInput, match="--no-resume"):
        await work.begin(facts)


# --- the indexer beside it


async def test_nothing_is_claimed_while_the_alias_moves(world: World) -> None:
    await world.service.store("waits")
    parts = await world.parts()
    async with parts.hold() as hold:
        assert await world.service.indexing.run_once() == 0
        await hold.renew()
    assert await world.service.indexing.run_once() == 1


async def test_a_hold_ends_by_itself_when_its_holder_died(world: World) -> None:
    await world.service.store("waits")
    hold = (await world.parts()).hold()
    await hold.__aenter__()
    assert await world.service.indexing.run_once() == 0
    world.service.clock.advance(21)
    assert await world.service.indexing.run_once() == 1
    async with (await world.parts()).hold():
        with pytest.raises(Conflict, match="hold on the indexers was lost"):
            await hold.renew()


async def test_the_switch_waits_for_a_batch_that_was_claimed_before(world: World) -> None:
    await world.fill(3)
    one = await world.service.store("claimed by a slow indexer")
    claimed = await world.service.items.claim(token="slow", limit=5, claim_s=60)
    assert [item.memory_id for item in claimed] == [one]
    began = world.service.clock.monotonic()
    _, finish = await world.run()
    assert finish.report["switched"]
    assert world.service.clock.monotonic() - began >= 60


async def test_a_deleted_memory_leaves_every_collection(world: World) -> None:
    ids = await world.fill(5, users=1)
    await world.run()
    await world.run({"switch": "never"})
    names = await world.service.index.collections()
    assert len(names) == 3
    await world.service.services.memories.delete(WriteScope("dana"), ids[0])
    await world.service.drain()
    for name in names:
        assert len(await world.points(name)) == 4
    assert await world.service.scan.total() == 4


# --- replayed searches


def hits(*pairs: tuple[str, float]) -> list[ScoredPoint]:
    return [ScoredPoint(point_id, score) for point_id, score in pairs]


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        (hits(("a", 0.9), ("b", 0.8)), hits(("b", 0.9), ("a", 0.8)), 1.0),
        (hits(("a", 0.9), ("b", 0.8)), hits(("a", 0.9), ("c", 0.5)), 0.5),
        (hits(("a", 0.9), ("b", 0.8)), hits(("a", 0.9), ("c", 0.8)), 1.0),
        (hits(("a", 0.9), ("b", 0.8)), hits(("a", 0.9)), 0.5),
        (hits(("a", 0.9)), [], 0.0),
        (hits(("a", 0.9), ("b", 0.9)), hits(("c", 0.89), ("d", 0.89)), 1.0),
    ],
    ids=["order", "another", "tie", "shorter", "nothing", "drift"],
)
def test_overlap_of_two_lists(
    one: list[ScoredPoint], other: list[ScoredPoint], share: float
) -> None:
    assert overlap_of(one, other) == share
    assert overlap_of(other, one) == share


async def test_searches_work_at_every_moment_of_a_reindex(world: World) -> None:
    """Asked between any two calls of the job: the hit is there and nothing is degraded."""
    await world.fill(10, users=1)
    asked = 0

    class ModelPort:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            async def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal asked
                answer = await world.service.services.search.search(
                    ReadScope("dana"), SearchQuery(query="lighthouse 4")
                )
                assert answer.hits[0].item.text == "lighthouse 4 needs paint"
                assert answer.degraded == ()
                asked += 1
                return await getattr(self.inner, name)(*args, **kwargs)

            return call

        def at(self, collection: str) -> Any:
            return ModelPort(self.inner.at(collection))

    parts = await world.parts()
    parts = replace(parts, index=ModelPort(parts.index), scan=ModelPort(parts.scan))
    job, _ = await world.run(parts=parts)
    assert job.state is JobState.COMPLETED
    assert asked > 20
