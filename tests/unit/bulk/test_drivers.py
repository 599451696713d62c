"""One job has one driver: others follow it, take over when it dies, and end with its result."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rayapp.bulk.model import DesiredState, JobState
from rayapp.bulk.rules import EXIT_BAD_ARGUMENTS, EXIT_DONE, EXIT_INCOMPLETE, JobResult
from rayapp.core.errors import Conflict, InvalidInput
from tests.support.examples import examples
from tests.unit.bulk.driver_processes import KIND, Cluster, Process, SlowWork, Trouble
from tests.unit.bulk.fake_workers import World
from tests.unit.bulk.job_rig import everything
from tests.unit.bulk.virtual_time import run_virtually

# Of virtual time: a lease is 15 s, and a run of a test has a handful of stalls of a minute.
LIMIT_S = 3_000.0
# Longer than a lease lives, so that somebody else may have it by then.
STALL_S = 40.0
LEASE_S = 15.0
# Calls of a driver to the store until its job is there: resume, lease, plan, insert, retries.
CREATED_BY_CALL = 8


def virtually(main: Any) -> Any:
    return run_virtually(main, LIMIT_S)


def done_once(cluster: Cluster, *results: JobResult | None) -> None:
    """Everybody who lived to see it tells the same good end of the only job."""
    ends = [result for result in results if result is not None]
    assert ends
    assert {(one.exit_code, one.sentence) for one in ends} == {(EXIT_DONE, ends[0].sentence)}
    assert {one.job.job_id for one in ends} == {ends[0].job.job_id}
    job = ends[0].job
    assert job.done == job.total == sum(cluster.world.sizes)
    assert set(cluster.world.worked) == set(everything(cluster.world))
    assert cluster.writers_took_turns()


def test_a_second_run_follows_the_first_and_ends_with_its_result() -> None:
    cluster = Cluster(World(sizes=[20], batch=1))

    async def later() -> JobResult | None:
        await asyncio.sleep(8)
        return await cluster.run(Process("two"))

    async def both() -> Any:
        return await asyncio.gather(cluster.run(Process("one")), later())

    one, two = virtually(both())
    done_once(cluster, one, two)
    assert len(cluster.world.worked) == 20
    assert cluster.followed == [("two", one.job.job_id)]
    shown = [job.done for name, job in cluster.seen if name == "two"]
    assert shown == sorted(shown)
    assert 0 < shown[0] < shown[-1] == 20


@pytest.mark.parametrize("named_first", [True, False])
def test_a_replacement_and_a_person_are_one_driver_in_either_order(named_first: bool) -> None:
    cluster = Cluster(World(sizes=[20], batch=1))

    async def race() -> Any:
        dead = await cluster.run(Process("dead", {12: Trouble(dies=True)}))
        assert dead is None
        (job,) = await cluster.jobs.recent(KIND, 5)
        first, then = {"job_id": job.job_id}, {}
        if not named_first:
            first, then = then, first
        starts = cluster.run(Process("first"), **first), cluster.run(Process("then"), **then)
        return await asyncio.gather(*starts)

    done_once(cluster, *virtually(race()))
    assert len(virtually_jobs(cluster)) == 1


def virtually_jobs(cluster: Cluster) -> list[Any]:
    return virtually(cluster.jobs.recent(KIND, 10))  # type: ignore[no-any-return]


def test_whoever_follows_takes_over_when_the_driver_dies() -> None:
    cluster = Cluster(World(sizes=[30], batch=1))

    async def race() -> Any:
        return await asyncio.gather(
            cluster.run(Process("dies", {20: Trouble(dies=True)}), linger_s=60.0),
            cluster.run(Process("two")),
            cluster.run(Process("three")),
        )

    dead, two, three = virtually(race())
    assert dead is None
    done_once(cluster, two, three)
    # The step at hand is made again, and what the dead driver's workers did afterwards is refused.
    assert len(cluster.world.worked) <= 30 + 60


@pytest.mark.parametrize("stall_s", [5.0, 14.0, 16.0, STALL_S, 600.0])
@pytest.mark.parametrize("call", range(1, 14))
def test_a_driver_that_stalls_takes_its_lease_back_and_goes_on(call: int, stall_s: float) -> None:
    cluster = Cluster(World(sizes=[8, 5], batch=1))
    result = virtually(cluster.run(Process("one", {call: Trouble(stall_s=stall_s)})))
    done_once(cluster, result)
    assert result.job.attempts == 1
    # At most the steps at hand, of both partitions, are made again.
    assert len(cluster.world.worked) <= 13 + 2


def test_a_lease_that_was_taken_back_has_its_new_fence_everywhere() -> None:
    cluster = Cluster(World(sizes=[40], batch=1))

    async def stalled() -> Any:
        result = await cluster.run(Process("one", {14: Trouble(stall_after_s=STALL_S)}))
        assert result is not None
        return result, await cluster.jobs.partitions(result.job.job_id)

    result, rows = virtually(stalled())
    done_once(cluster, result)
    assert result.job.fence > 1
    assert {row.fence for row in rows} == {result.job.fence}
    assert cluster.world.plans == 1


@pytest.mark.parametrize("call", range(1, 20))
def test_a_driver_that_wakes_up_too_late_follows_whoever_has_its_job(call: int) -> None:
    cluster = Cluster(World(sizes=[60], batch=1))

    async def race() -> Any:
        return await asyncio.gather(
            cluster.run(Process("sleeper", {call: Trouble(stall_s=STALL_S)})),
            cluster.run(Process("two")),
        )

    done_once(cluster, *virtually(race()))


def test_other_parameters_are_busy_while_a_living_driver_works_on_another_job() -> None:
    cluster = Cluster(World(sizes=[60], batch=1))

    async def race() -> Any:
        first = asyncio.create_task(cluster.run(Process("one")))
        await asyncio.sleep(3)
        others = [{"params": {"a": 2}}, {"resume": False}]
        tries = [cluster.run(Process(f"o{n}"), **other) for n, other in enumerate(others)]
        refused = await asyncio.gather(*tries, return_exceptions=True)
        return await first, *refused

    one, *refused = virtually(race())
    done_once(cluster, one)
    for error in refused:
        assert isinstance(error, Conflict)
        assert (error.code, error.details["job_id"]) == ("busy", one.job.job_id)


def test_other_parameters_wait_for_the_lease_of_a_dead_driver() -> None:
    cluster = Cluster(World(sizes=[20], batch=1))

    async def race() -> Any:
        await cluster.run(Process("dead", {14: Trouble(dies=True)}))
        return await cluster.run(Process("other"), params={"a": 2})

    result = virtually(race())
    assert (result.exit_code, result.job.params) == (EXIT_DONE, {"a": 2})


@pytest.mark.parametrize(
    ("wish", "state"),
    [(DesiredState.PAUSE, JobState.PAUSED), (DesiredState.CANCEL, JobState.CANCELLED)],
)
def test_a_follower_ends_as_its_driver_does_when_people_wish_something_else(
    wish: DesiredState, state: JobState
) -> None:
    cluster = Cluster(World(sizes=[60], batch=1))

    async def race() -> Any:
        runs = [asyncio.create_task(cluster.run(Process(name))) for name in ("one", "two")]
        await asyncio.sleep(12)
        (job,) = await cluster.jobs.recent(KIND, 5)
        await cluster.jobs.set_desired_state(job.job_id, wish)
        return await asyncio.gather(*runs)

    one, two = virtually(race())
    assert (one.exit_code, one.job.state) == (EXIT_INCOMPLETE, state)
    assert (two.exit_code, two.sentence) == (one.exit_code, one.sentence)


def test_a_follower_that_is_stopped_leaves_the_job_to_its_driver() -> None:
    cluster = Cluster(World(sizes=[20], batch=1))
    two = Process("two")

    async def race() -> Any:
        one = asyncio.create_task(cluster.run(Process("one")))
        following = asyncio.create_task(cluster.run(two))
        await asyncio.sleep(6)
        cluster.runners["two"].stop(pause=True)
        return await one, await following

    one, left = virtually(race())
    done_once(cluster, one)
    assert left.exit_code == EXIT_INCOMPLETE
    assert "goes on in another process" in left.sentence
    assert len(cluster.world.worked) == 20


def test_a_follower_of_a_driver_that_fails_ends_with_its_exit_code_and_sentence() -> None:
    cluster = Cluster(World(sizes=[9], batch=1))
    plans = 0

    async def refused() -> Any:
        nonlocal plans
        plans += 1
        await asyncio.sleep(6)
        raise InvalidInput("The source has no such column: name another.")

    async def race() -> Any:
        class Refusing(SlowWork):
            async def plan(self) -> Any:
                await refused()

        async def open_work(_params: Any) -> Any:
            return Refusing(cluster.world)

        cluster.open_work = open_work  # type: ignore[method-assign]
        return await asyncio.gather(cluster.run(Process("one")), cluster.run(Process("two")))

    for result in virtually(race()):
        assert result.exit_code == EXIT_BAD_ARGUMENTS
        assert result.sentence == "The source has no such column: name another."
    assert plans == 1


TROUBLES = st.dictionaries(
    st.integers(1, 60),
    st.builds(
        Trouble,
        stall_s=st.sampled_from([0.0, 0.0, 3.0, 16.0, STALL_S]),
        late_s=st.sampled_from([0.0, 0.0, 2.0, 18.0, STALL_S]),
        stall_after_s=st.sampled_from([0.0, 0.0, 16.0]),
        dies=st.sampled_from([False, False, False, True]),
    ),
    max_size=5,
)


def _stalls_while_it_creates(calls: dict[int, Trouble]) -> bool:
    """Whether one of the calls until the job is stored outlasts a lease."""
    first = (trouble for number, trouble in calls.items() if number <= CREATED_BY_CALL)
    return any(one.stall_s + one.late_s + one.stall_after_s >= LEASE_S for one in first)


@hypothesis_settings(max_examples=examples(300))
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    drivers=st.lists(st.tuples(TROUBLES, TROUBLES, st.floats(0, 60)), min_size=1, max_size=3),
    linger_s=st.sampled_from([0.0, 5.0, 60.0]),
)
def test_whatever_stalls_or_dies_one_job_is_done_once_and_nobody_is_sent_away(
    sizes: list[int], drivers: list[Any], linger_s: float
) -> None:
    async def one(number: int, troubles: Any, worker: Any, start_s: float) -> JobResult | None:
        await asyncio.sleep(start_s)
        alive = {n: Trouble(t.stall_s, t.late_s, t.stall_after_s) for n, t in worker.items()}
        return await cluster.run(Process(f"d{number}", troubles), alive, linger_s=linger_s)

    async def race() -> list[JobResult | None]:
        runs = [one(n, *driver) for n, driver in enumerate(drivers)]
        results = list(await asyncio.gather(*runs))
        if all(result is None for result in results):
            results.append(await cluster.run(Process("at last")))
        await asyncio.sleep(200)  # whatever is still under way arrives
        return results

    cluster = Cluster(World(sizes=sizes, batch=1))
    results = virtually(race())
    assert cluster.writers_took_turns()
    for result in results:
        assert result is None or result.exit_code == EXIT_DONE, result
    jobs = {result.job.job_id: result.job for result in results if result is not None}
    for job in jobs.values():
        assert job.done == job.total == sum(sizes)
        assert job.counts == {"seen": sum(sizes)}
    if any(_stalls_while_it_creates(troubles) for troubles, _, _ in drivers):
        # The insert of a job has no fence: it may arrive when somebody else has made another one,
        # which is done first.
        return
    # Whoever asked while the job was going on got its result; who came later, a job of its own.
    spans = [(job.created_at, job.finished_at) for job in jobs.values()]
    for begun, ended in spans:
        assert not any(begun < other < ended for other, _ in spans if other != begun)
