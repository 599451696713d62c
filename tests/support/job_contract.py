"""What every `JobStore` must do.

Subclass the contract and give a `store` fixture, an empty store, and an `elapse` fixture, which
lets that many seconds pass for it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rayapp.bulk.model import (
    DesiredState,
    Job,
    JobState,
    Partition,
    PartitionRow,
    PartitionState,
    Plan,
    Step,
)
from rayapp.bulk.ports import JobStore
from rayapp.core.errors import Conflict, InvalidInput, NotFound

Elapse = Callable[[float], Awaitable[None]]
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
PARAMS = {"force": False, "name": "דוח $שנתי", "dotted.key": [1, {"$x": None}]}
PLAN = Plan(
    total=30,
    facts={"collection": "memories_a", "$since": 1.5},
    partitions=(
        Partition(index=1, payload={"after": "7f", "until": None}),
        Partition(index=0, payload={"after": None, "until": "7f"}),
    ),
)


def a_job(job_id: str = "j-1", **changes: Any) -> Job:
    return replace(Job(job_id=job_id, kind="toy", params=PARAMS, created_at=LONG_AGO), **changes)


async def taken(store: JobStore, job_id: str = "j-1", fence: int = 1) -> Job:
    """A stored job with a driver."""
    assert await store.create(a_job(job_id))
    return await store.take(job_id, fence, submission_id=None)


async def planned(store: JobStore, job_id: str = "j-1", fence: int = 1) -> Job:
    job = await taken(store, job_id, fence)
    await store.planned(job_id, fence, PLAN)
    return job


async def the_job(store: JobStore, job_id: str = "j-1") -> Job:
    job = await store.get(job_id)
    assert job is not None
    return job


async def ended(store: JobStore, state: JobState) -> Job:
    await taken(store)
    return await store.end("j-1", 1, state)


Write = Callable[[JobStore], Awaitable[object]]
# Every write of a driver, as fence 1 of the job `j-1`.
WRITES: dict[str, Write] = {
    "planned": lambda store: store.planned("j-1", 1, PLAN),
    "checkpoint": lambda store: store.checkpoint("j-1", 0, 1, Step(cursor=None)),
    "progress": lambda store: store.progress("j-1", 1),
    "stage": lambda store: store.stage("j-1", 1, "verify"),
    "end": lambda store: store.end("j-1", 1, JobState.COMPLETED),
}


class JobContract:
    async def test_a_job_comes_back_with_the_time_of_the_store(self, store: JobStore) -> None:
        assert await store.get("j-1") is None
        assert await store.create(a_job(requested_by="ops", total=3, counts={"a": 1}))
        job = await the_job(store)
        assert job.created_at > LONG_AGO
        assert job.created_at.utcoffset() is not None
        assert replace(job, created_at=LONG_AGO, updated_at=None) == a_job(
            requested_by="ops", total=3, counts={"a": 1}
        )

    async def test_an_id_is_stored_once(self, store: JobStore) -> None:
        assert await store.create(a_job(requested_by="first"))
        assert not await store.create(a_job(requested_by="second"))
        assert (await the_job(store)).requested_by == "first"

    async def test_one_of_many_creators_at_once_wins(self, store: JobStore) -> None:
        made = await asyncio.gather(*(store.create(a_job()) for _ in range(8)))
        assert sum(made) == 1

    async def test_only_plain_json_is_kept(self, store: JobStore) -> None:
        for value in (LONG_AGO, float("nan"), {1, 2}):
            with pytest.raises(InvalidInput):
                await store.create(a_job(params={"value": value}))
        assert await store.get("j-1") is None

    async def test_recent_and_unfinished_are_newest_first(
        self, store: JobStore, elapse: Elapse
    ) -> None:
        for job_id, kind in (("a", "toy"), ("b", "other"), ("c", "toy"), ("d", "toy")):
            await store.create(a_job(job_id, kind=kind))
            await elapse(0.005)
        await store.set_desired_state("c", DesiredState.CANCEL)
        assert [job.job_id for job in await store.recent(None, 9)] == ["d", "c", "b", "a"]
        assert [job.job_id for job in await store.recent("toy", 2)] == ["d", "c"]
        assert await store.recent("toy", 0) == []
        assert await store.count(None) == 4
        assert await store.count("toy") == len(await store.recent("toy", 9))
        assert [job.job_id for job in await store.unfinished("toy")] == ["d", "a"]
        assert await store.unfinished("none") == []

    async def test_taking_makes_a_driver(self, store: JobStore) -> None:
        await store.create(a_job())
        job = await store.take("j-1", 3, submission_id="ray-1")
        assert (job.state, job.fence, job.attempts) == (JobState.RUNNING, 3, 1)
        assert job.submission_id == "ray-1"
        assert job.started_at is not None
        # Whoever takes a running job takes it from a driver that died.
        again = await store.take("j-1", 4, submission_id=None)
        assert (again.fence, again.attempts, again.submission_id) == (4, 2, None)
        assert again.started_at == job.started_at
        assert again == await store.get("j-1")

    @pytest.mark.parametrize("state", [JobState.PAUSED, JobState.SUBMITTED])
    async def test_a_driver_that_stops_in_order_does_not_count(
        self, store: JobStore, state: JobState
    ) -> None:
        await taken(store)
        for fence in range(2, 5):
            left = await store.end("j-1", fence - 1, state)
            assert (left.state, left.final) == (state, False)
            assert await store.end("j-1", fence - 1, state) == replace(
                left, updated_at=(await the_job(store)).updated_at
            )
            assert (await store.take("j-1", fence, submission_id=None)).attempts == 1
        assert (await store.take("j-1", 9, submission_id=None)).attempts == 2

    async def test_taking_gives_the_partitions_to_the_new_driver(self, store: JobStore) -> None:
        await planned(store)
        await store.checkpoint("j-1", 0, 1, Step(cursor={"at": 5}, done=5))
        await store.take("j-1", 7, submission_id=None)
        rows = await store.partitions("j-1")
        assert [(row.index, row.fence, row.done) for row in rows] == [(0, 7, 5), (1, 7, 0)]

    async def test_a_lower_fence_never_takes_a_job(self, store: JobStore) -> None:
        await taken(store, fence=5)
        with pytest.raises(Conflict) as caught:
            await store.take("j-1", 4, submission_id=None)
        assert caught.value.code == "lease_lost"
        assert (await the_job(store)).attempts == 1

    async def test_what_is_not_there_cannot_be_taken_or_wished(self, store: JobStore) -> None:
        with pytest.raises(NotFound):
            await store.take("none", 1, submission_id=None)
        with pytest.raises(NotFound):
            await store.set_desired_state("none", DesiredState.CANCEL)
        with pytest.raises(NotFound):
            await store.submitted("none", "ray-1")
        with pytest.raises(NotFound):
            await store.progress("none", 1)
        with pytest.raises(NotFound):
            await store.checkpoint("none", 0, 1, Step(cursor=None))
        assert await store.partitions("none") == []

    @pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.CANCELLED])
    async def test_what_was_completed_or_cancelled_is_not_taken(
        self, store: JobStore, state: JobState
    ) -> None:
        job = await ended(store, state)
        with pytest.raises(Conflict) as caught:
            await store.take("j-1", 2, submission_id=None)
        assert caught.value.code == "job_final"
        assert await store.get("j-1") == job

    async def test_what_failed_without_a_plan_is_not_taken(self, store: JobStore) -> None:
        """Its caller was told that it failed; a driver that comes late must not run it."""
        job = await ended(store, JobState.FAILED)
        with pytest.raises(Conflict) as caught:
            await store.take("j-1", 2, submission_id=None)
        assert caught.value.code == "job_final"
        assert await store.get("j-1") == job

    async def test_a_failed_job_with_a_plan_is_submitted_again(self, store: JobStore) -> None:
        await planned(store)
        await store.set_desired_state("j-1", DesiredState.CANCEL)
        await store.take("j-1", 2, submission_id=None)
        await store.end("j-1", 2, JobState.FAILED, error="The disk is full: make room.")
        for wish in (DesiredState.PAUSE, DesiredState.CANCEL):
            with pytest.raises(Conflict) as caught:
                await store.set_desired_state("j-1", wish)
            assert caught.value.code == "job_final"
        job = await store.set_desired_state("j-1", DesiredState.RUN)
        assert (job.state, job.wish, job.attempts) == (JobState.SUBMITTED, DesiredState.RUN, 0)
        assert (job.error, job.finished_at, job.planned) == (None, None, True)
        assert job == await store.get("j-1")
        assert len(await store.partitions("j-1")) == 2

    async def test_a_wish_to_run_leaves_a_running_job_as_it_is(self, store: JobStore) -> None:
        before = await taken(store)
        after = await store.set_desired_state("j-1", DesiredState.RUN)
        assert after == replace(before, updated_at=after.updated_at)

    async def test_a_failed_job_goes_on_with_its_next_driver(self, store: JobStore) -> None:
        await planned(store)
        await store.checkpoint("j-1", 0, 1, Step(cursor={"at": 5}, done=5))
        await store.end("j-1", 1, JobState.FAILED, error="The disk is full: make room.")
        job = await store.take("j-1", 2, submission_id=None)
        assert (job.state, job.error, job.finished_at) == (JobState.RUNNING, None, None)
        assert job.attempts == 1
        assert await store.checkpoint("j-1", 0, 2, Step(cursor=None, done=1)) is DesiredState.RUN
        assert (await store.progress("j-1", 2)).done == 6

    @pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED])
    async def test_an_ended_job_is_left_alone(self, store: JobStore, state: JobState) -> None:
        job = await ended(store, state)
        assert job.final
        assert job.finished_at is not None
        with pytest.raises(Conflict) as caught:
            await store.set_desired_state("j-1", DesiredState.RUN)
        assert caught.value.code == "job_final"
        again = await store.end("j-1", 1, JobState.PAUSED, error="late")
        assert again == job == await store.get("j-1")

    async def test_planning_stores_plan_and_partitions(self, store: JobStore) -> None:
        await planned(store)
        job = await the_job(store)
        assert (job.planned, job.total, job.facts) == (True, 30, PLAN.facts)
        first, second = await store.partitions("j-1")
        assert first == PartitionRow(
            job_id="j-1", index=0, payload=PLAN.partitions[1].payload, fence=1
        )
        assert (second.index, second.payload) == (1, PLAN.partitions[0].payload)

    async def test_planning_again_changes_nothing(self, store: JobStore) -> None:
        await planned(store)
        await store.checkpoint("j-1", 0, 1, Step(cursor={"at": 1}, done=1))
        before = await store.partitions("j-1")
        await store.planned("j-1", 1, Plan(total=1, partitions=(Partition(index=9, payload={}),)))
        assert await store.partitions("j-1") == before
        assert (await the_job(store)).total == 30

    async def test_a_plan_may_have_no_partition(self, store: JobStore) -> None:
        await taken(store)
        await store.planned("j-1", 1, Plan(total=0, partitions=()))
        assert (await the_job(store)).planned
        assert await store.partitions("j-1") == []
        job = await store.progress("j-1", 1)
        assert (job.done, job.failed, job.counts) == (0, 0, {})

    async def test_a_plan_names_each_partition_once(self, store: JobStore) -> None:
        await taken(store)
        twice = (Partition(index=0, payload={}), Partition(index=0, payload={}))
        with pytest.raises(InvalidInput):
            await store.planned("j-1", 1, Plan(total=1, partitions=twice))
        assert not (await the_job(store)).planned

    async def test_a_checkpoint_moves_the_cursor_and_adds(self, store: JobStore) -> None:
        await planned(store)
        first = Step(
            cursor={"after": "a", "$deep": {"x.y": 1}},
            done=3,
            failed=1,
            counts={"new": 2},
            samples=[{"id": "$1"}],
        )
        second = Step(cursor={"after": "b"}, done=2, counts={"new": 1, "same": 4}, samples=["ב"])
        assert await store.checkpoint("j-1", 0, 1, first) is DesiredState.RUN
        (row, _) = await store.partitions("j-1")
        assert row.cursor == first.cursor
        assert await store.checkpoint("j-1", 0, 1, second) is DesiredState.RUN
        row, other = await store.partitions("j-1")
        assert row.cursor == {"after": "b"}
        assert (row.state, row.done, row.failed, row.steps) == (PartitionState.WAITING, 5, 1, 2)
        assert row.counts == {"new": 3, "same": 4}
        assert row.samples == ({"id": "$1"}, "ב")
        assert row.updated_at is not None
        assert (other.done, other.cursor, other.steps) == (0, None, 0)

    async def test_the_last_step_counts_once(self, store: JobStore) -> None:
        await planned(store)
        last = Step(cursor=None, done=4, counts={"new": 4})
        for _ in range(2):
            assert await store.checkpoint("j-1", 0, 1, last) is DesiredState.RUN
        (row, _) = await store.partitions("j-1")
        assert (row.state, row.done, row.counts) == (PartitionState.DONE, 4, {"new": 4})
        assert row.steps == 1

    async def test_the_first_twenty_samples_stay(self, store: JobStore) -> None:
        await planned(store)
        await store.checkpoint("j-1", 0, 1, Step(cursor={}, samples=range(15)))
        await store.checkpoint("j-1", 0, 1, Step(cursor={}, samples=range(15, 50)))
        (row, _) = await store.partitions("j-1")
        assert row.samples == tuple(range(20))

    @pytest.mark.parametrize("name", ["", "a.b", "$a", "a\x00b"])
    async def test_a_count_name_that_is_a_path_is_refused(self, store: JobStore, name: str) -> None:
        await planned(store)
        with pytest.raises(InvalidInput):
            await store.checkpoint("j-1", 0, 1, Step(cursor=None, counts={name: 1}))

    async def test_steps_at_once_all_count(self, store: JobStore) -> None:
        await planned(store)
        step = Step(cursor={"at": 1}, done=1, counts={"n": 2})
        await asyncio.gather(*(store.checkpoint("j-1", n % 2, 1, step) for n in range(10)))
        job = await store.progress("j-1", 1)
        assert (job.done, job.counts) == (10, {"n": 20})

    async def test_progress_sums_the_partitions(self, store: JobStore) -> None:
        await planned(store)
        await store.checkpoint("j-1", 0, 1, Step(cursor={}, done=3, failed=1, counts={"a": 1}))
        await store.checkpoint("j-1", 1, 1, Step(cursor=None, done=4, counts={"a": 2, "b": 5}))
        for _ in range(2):
            job = await store.progress("j-1", 1)
            assert (job.done, job.failed, job.counts) == (7, 1, {"a": 3, "b": 5})
        assert job == await store.get("j-1")

    async def test_more_than_the_plan_expected_raises_the_total(self, store: JobStore) -> None:
        await planned(store)
        await store.checkpoint("j-1", 0, 1, Step(cursor={}, done=31))
        job = await store.progress("j-1", 1)
        assert (job.done, job.total) == (31, 31)
        assert job == await store.get("j-1")

    async def test_a_partition_that_is_not_planned_is_not_found(self, store: JobStore) -> None:
        await planned(store)
        with pytest.raises(NotFound):
            await store.checkpoint("j-1", 2, 1, Step(cursor=None))

    @pytest.mark.parametrize("name", sorted(WRITES))
    async def test_a_driver_that_was_replaced_writes_nothing(
        self, store: JobStore, name: str
    ) -> None:
        await planned(store)
        await store.take("j-1", 2, submission_id=None)
        before = await the_job(store), await store.partitions("j-1")
        with pytest.raises(Conflict) as caught:
            await WRITES[name](store)
        assert caught.value.code == "lease_lost"
        assert (await the_job(store), await store.partitions("j-1")) == before

    async def test_a_driver_that_got_its_lease_back_goes_on_under_its_new_fence(
        self, store: JobStore
    ) -> None:
        before = await planned(store)
        for _ in range(2):  # its answer may be lost, so it is repeated
            await store.refence("j-1", 1, 2)
        job, rows = await the_job(store), await store.partitions("j-1")
        assert (job.fence, [row.fence for row in rows]) == (2, [2, 2])
        assert (job.attempts, job.state, job.wish) == (before.attempts, before.state, before.wish)
        step = Step(cursor={"at": 1}, done=1)
        with pytest.raises(Conflict) as late:
            await store.checkpoint("j-1", 0, 1, step)
        assert late.value.code == "lease_lost"
        await store.checkpoint("j-1", 0, 2, step)
        assert (await store.progress("j-1", 2)).done == 1

    async def test_the_fence_of_another_driver_is_never_replaced(self, store: JobStore) -> None:
        await planned(store)
        await store.take("j-1", 2, submission_id=None)
        with pytest.raises(Conflict) as lost:
            await store.refence("j-1", 1, 3)
        assert lost.value.code == "lease_lost"
        with pytest.raises(NotFound):
            await store.refence("nobody", 1, 2)
        rows = await store.partitions("j-1")
        assert ((await the_job(store)).fence, {row.fence for row in rows}) == (2, {2})

    async def test_one_of_a_driver_that_is_back_and_its_successor_has_the_job(
        self, store: JobStore
    ) -> None:
        for n in range(5):
            job_id = f"j-{n}"
            await planned(store, job_id)
            back, _ = await asyncio.gather(
                store.refence(job_id, 1, 2),
                store.take(job_id, 3, submission_id=None),
                return_exceptions=True,
            )
            assert back is None or isinstance(back, Conflict)
            rows = await store.partitions(job_id)
            assert ((await the_job(store, job_id)).fence, {row.fence for row in rows}) == (3, {3})

    async def test_the_exit_code_of_a_failure_is_kept_until_the_next_driver(
        self, store: JobStore
    ) -> None:
        await planned(store)
        ended = await store.end("j-1", 1, JobState.FAILED, error="Away.", exit_code=4)
        assert (ended.exit_code, (await the_job(store)).exit_code) == (4, 4)
        assert (await store.set_desired_state("j-1", DesiredState.RUN)).exit_code is None
        await store.take("j-1", 2, submission_id=None)
        await store.end("j-1", 2, JobState.FAILED, error="Away.", exit_code=4)
        assert (await store.take("j-1", 3, submission_id=None)).exit_code is None

    async def test_an_unplanned_job_is_not_planned_by_an_old_driver(self, store: JobStore) -> None:
        await taken(store)
        await store.take("j-1", 2, submission_id=None)
        with pytest.raises(Conflict) as caught:
            await store.planned("j-1", 1, PLAN)
        assert caught.value.code == "lease_lost"
        assert await store.partitions("j-1") == []

    async def test_the_stage_and_the_end_are_kept(self, store: JobStore) -> None:
        await taken(store)
        await store.stage("j-1", 1, "verify")
        report = {"missing": 0, "a.b": ["$c", None]}
        job = await store.end("j-1", 1, JobState.COMPLETED, report=report)
        assert (job.stage, job.state, job.report) == ("verify", JobState.COMPLETED, report)
        assert job.finished_at == job.updated_at
        assert job == await store.get("j-1")

    async def test_an_error_is_cleared_by_the_next_driver(self, store: JobStore) -> None:
        await taken(store)
        paused = await store.end("j-1", 1, JobState.PAUSED, error="The index is away: start it.")
        assert (paused.final, paused.finished_at) == (False, None)
        assert paused.error == "The index is away: start it."
        job = await store.take("j-1", 2, submission_id=None)
        assert (job.state, job.error) == (JobState.RUNNING, None)

    async def test_workers_learn_what_is_asked(self, store: JobStore) -> None:
        await planned(store)
        assert (await store.set_desired_state("j-1", DesiredState.PAUSE)).state is JobState.RUNNING
        assert await store.checkpoint("j-1", 0, 1, Step(cursor={})) is DesiredState.PAUSE
        await store.set_desired_state("j-1", DesiredState.CANCEL)
        assert await store.checkpoint("j-1", 0, 1, Step(cursor={})) is DesiredState.CANCEL

    async def test_a_wish_to_pause_ends_with_the_next_driver(self, store: JobStore) -> None:
        await taken(store)
        await store.set_desired_state("j-1", DesiredState.PAUSE)
        paused = await store.end("j-1", 1, JobState.PAUSED)
        assert (paused.state, paused.wish) == (JobState.PAUSED, DesiredState.PAUSE)
        assert (await store.take("j-1", 2, submission_id=None)).wish is DesiredState.RUN

    async def test_a_wish_to_cancel_stays(self, store: JobStore) -> None:
        await taken(store)
        assert (await store.set_desired_state("j-1", DesiredState.CANCEL)).state is JobState.RUNNING
        assert (await store.take("j-1", 2, submission_id=None)).wish is DesiredState.CANCEL

    async def test_a_job_that_nobody_drives_is_cancelled_at_once(self, store: JobStore) -> None:
        await store.create(a_job("new"))
        await taken(store)
        await store.end("j-1", 1, JobState.PAUSED)
        for job_id in ("new", "j-1"):
            assert not (await store.set_desired_state(job_id, DesiredState.RUN)).final
            job = await store.set_desired_state(job_id, DesiredState.CANCEL)
            assert (job.state, job.wish) == (JobState.CANCELLED, DesiredState.CANCEL)
            assert job.finished_at is not None

    async def test_the_ray_job_of_a_launched_job_is_kept(self, store: JobStore) -> None:
        await store.create(a_job())
        await store.submitted("j-1", "ray-9")
        job = await the_job(store)
        assert (job.submission_id, job.state) == ("ray-9", JobState.SUBMITTED)

    async def test_a_paused_job_waits_for_the_driver_that_was_launched(
        self, store: JobStore
    ) -> None:
        await taken(store)
        await store.submitted("j-1", "ray-9")
        assert (await the_job(store)).state is JobState.RUNNING
        await store.end("j-1", 1, JobState.PAUSED)
        await store.submitted("j-1", "$ray-10")
        job = await the_job(store)
        assert (job.submission_id, job.state) == ("$ray-10", JobState.SUBMITTED)

    async def test_what_is_known_later_is_added_to_the_report(self, store: JobStore) -> None:
        await taken(store)
        job = await store.end("j-1", 1, JobState.COMPLETED, report={"ready": True, "a.b": {"x": 1}})
        for at in ("early", "$late"):
            await store.add_to_report("j-1", {"adopted.at": at})
        found = await the_job(store)
        assert found.report == {"ready": True, "a.b": {"x": 1}, "adopted.at": "$late"}
        assert (found.state, found.finished_at) == (JobState.COMPLETED, job.finished_at)
        await taken(store, "no-report")
        await store.add_to_report("no-report", {"a": 1})
        assert (await the_job(store, "no-report")).report == {"a": 1}
        with pytest.raises(NotFound):
            await store.add_to_report("none", {"a": 1})
