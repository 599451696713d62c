"""Bulk jobs over HTTP: the list, one job, what is asked of it, and its events."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.ports import Scope
from rayapp.api.app import create_api
from rayapp.api.auth import RULES
from rayapp.api.routes.jobs import HEARTBEAT_S, LOOK_S, event_id, progress_events, rounds_within
from rayapp.bulk.model import Job, JobState, Step
from rayapp.bulk.params import DEFERRED, REINDEX
from rayapp.bulk.service import START_S
from rayapp.core.errors import JobsDown, RayappError, StoreDown
from rayapp.wire.jobs import JobView
from tests.support.harness import Harness
from tests.support.jobs import a_job
from tests.unit.api.serving import client_of, settings_with
from tests.unit.api.test_middleware import Connection

JOBS = "/api/memory/jobs"
ONE = f"{JOBS}/job-1"
ADMIN_ROUTES = [key for key in RULES if key[1].startswith((JOBS, "/api/memory/ops/"))]


async def test_the_list_is_newest_first_and_can_be_of_one_kind(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await a_job(world.jobs, JobState.COMPLETED)
    world.clock.advance(1)
    await a_job(world.jobs, JobState.RUNNING, job_id="job-2", kind=DEFERRED)
    everything = (await api.get(JOBS)).json()
    assert [job["job_id"] for job in everything["jobs"]] == ["job-2", "job-1"]
    assert everything["total"] == 2
    one_kind = (await api.get(f"{JOBS}?kind={REINDEX}")).json()
    assert [job["state"] for job in one_kind["jobs"]] == ["completed"]
    newest = (await api.get(f"{JOBS}?limit=1")).json()
    assert ([job["job_id"] for job in newest["jobs"]], newest["total"]) == (["job-2"], 2)


@pytest.mark.parametrize("query", ["kind=format_disk", "limit=0", "limit=201", "junk=1", "limit=x"])
async def test_a_wrong_list_is_refused(api: httpx.AsyncClient, query: str) -> None:
    response = await api.get(f"{JOBS}?{query}")
    assert (response.status_code, response.json()["success"]) == (422, False)


async def test_one_job_shows_its_partitions(api: httpx.AsyncClient, world: Harness) -> None:
    await a_job(world.jobs, JobState.RUNNING)
    step = Step(cursor={"at": 4}, done=4, failed=1, counts={"copied": 3}, samples=["mem-9"])
    await world.jobs.checkpoint("job-1", 0, 1, step)
    await world.jobs.progress("job-1", 1)
    body = (await api.get(ONE)).json()
    job, partitions = body["job"], body["partitions"]
    assert (job["done"], job["total"], job["share"], job["counts"]) == (4, 10, 0.4, {"copied": 3})
    assert (partitions["total"], partitions["done"], partitions["waiting"]) == (1, 0, 1)
    assert (partitions["failed_records"], partitions["samples"]) == (1, ["mem-9"])
    assert [row["index"] for row in partitions["slowest"]] == [0]


async def test_a_job_that_met_more_than_its_plan_expected_is_never_above_its_total(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await a_job(world.jobs, JobState.RUNNING)
    await world.jobs.checkpoint("job-1", 0, 1, Step(cursor={"at": 12}, done=12))
    await world.jobs.progress("job-1", 1)
    job = (await api.get(JOBS)).json()["jobs"][0]
    assert (job["done"], job["total"], job["share"]) == (12, 12, 0.99)


async def test_a_job_shows_at_most_so_many_partitions(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await a_job(world.jobs, JobState.RUNNING)
    rows = world.jobs._rows["job-1"]
    rows |= {n: replace(rows[0], index=n, samples=["s"] * 5) for n in range(1, 50)}
    partitions = (await api.get(ONE)).json()["partitions"]
    assert (len(partitions["slowest"]), len(partitions["samples"])) == (20, 20)
    assert partitions["waiting"] == 50


@pytest.mark.parametrize("path", ["", "/pause", "/resume", "/cancel", "/events"])
@pytest.mark.parametrize(
    ("job_id", "status", "code"),
    [("nobody", 404, "not_found"), ("%00", 422, "bad_job_id"), ("a%0A", 422, "bad_job_id")],
)
async def test_an_unknown_job_is_404_and_no_id_is_422(
    api: httpx.AsyncClient, path: str, job_id: str, status: int, code: str
) -> None:
    method = "GET" if path in {"", "/events"} else "POST"
    response = await api.request(method, f"{JOBS}/{job_id}{path}")
    assert (response.status_code, response.json()["code"]) == (status, code)


@pytest.mark.parametrize(
    ("action", "wish"), [("pause", "pause"), ("cancel", "cancel"), ("resume", "run")]
)
async def test_what_is_asked_of_a_running_job_is_kept(
    api: httpx.AsyncClient, world: Harness, action: str, wish: str
) -> None:
    await a_job(world.jobs, JobState.RUNNING)
    job = (await api.post(f"{ONE}/{action}")).json()["job"]
    assert (job["state"], job["wish"]) == ("running", wish)


async def test_a_paused_job_goes_on_with_a_new_driver(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await a_job(world.jobs, JobState.PAUSED)
    assert (await api.post(f"{ONE}/resume", json={})).status_code == 200
    assert [job.job_id for job in world.launcher.launched] == ["job-1"]


async def test_a_retry_with_the_same_key_starts_no_second_driver(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await a_job(world.jobs, JobState.PAUSED)
    key = {"Idempotency-Key": "k-1"}
    for _ in range(2):
        answer = await api.post(f"{ONE}/resume", headers=key)
        assert answer.status_code == 200
    assert answer.json()["duplicate"] is True
    assert len(world.launcher.launched) == 1


async def test_without_a_cluster_resuming_is_503(api: httpx.AsyncClient, world: Harness) -> None:
    await a_job(world.jobs, JobState.PAUSED)
    world.launcher.error = JobsDown("The cluster takes no jobs.")
    response = await api.post(f"{ONE}/resume")
    assert (response.status_code, response.json()["code"]) == (503, "jobs_down")
    assert "Retry-After" in response.headers


async def test_a_failed_job_goes_on(api: httpx.AsyncClient, world: Harness) -> None:
    await a_job(world.jobs, JobState.FAILED)
    response = await api.post(f"{ONE}/resume")
    assert (response.status_code, response.json()["job"]["state"]) == (200, "submitted")
    assert [job.job_id for job in world.launcher.launched] == ["job-1"]


@pytest.mark.parametrize(
    ("state", "action"),
    [
        (state, action)
        for state in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)
        for action in ("pause", "resume", "cancel")
        if (state, action) != (JobState.FAILED, "resume")
    ],
)
async def test_a_job_that_ended_can_be_asked_nothing_else(
    api: httpx.AsyncClient, world: Harness, action: str, state: JobState
) -> None:
    await a_job(world.jobs, state)
    response = await api.post(f"{ONE}/{action}")
    assert (response.status_code, response.json()["code"]) == (409, "job_final")


async def test_a_job_without_a_driver_yet_cannot_be_paused(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await a_job(world.jobs, JobState.SUBMITTED)
    response = await api.post(f"{ONE}/pause")
    assert (response.status_code, response.json()["code"]) == (409, "job_starting")


async def test_a_job_whose_driver_died_is_cancelled_at_once(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await a_job(world.jobs, JobState.RUNNING)
    world.clock.advance(START_S + 1)
    assert (await api.post(f"{ONE}/cancel")).json()["job"]["state"] == "cancelled"


@pytest.mark.parametrize("scopes", [{"read"}, {"write"}, {"read", "write"}])
async def test_jobs_and_operations_need_an_admin_key(scopes: set[Scope]) -> None:
    world = Harness.ready(settings_with(auth={"mode": "keys"}))
    keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
    secret, _ = await keys.create("bot", user_id="dana", scopes=frozenset(scopes))
    await a_job(world.jobs, JobState.RUNNING)
    async with client_of(world.services, {"Authorization": f"Bearer {secret}"}) as client:
        for method, path in ADMIN_ROUTES:
            response = await client.request(method, path.replace("{job_id}", "job-1"))
            assert (response.status_code, response.json()["code"]) == (403, "forbidden"), path
    job = await world.services.jobs.get("job-1")
    assert job.wish.value == "run"


def test_the_admin_routes_are_all_of_them() -> None:
    assert len(ADMIN_ROUTES) >= 20
    assert {RULES[key].scope for key in ADMIN_ROUTES} == {"admin"}


# --- the stream


def blocks(raw: bytes) -> list[dict[str, str]]:
    """The fields of every event or comment."""
    found = []
    for block in raw.decode().split("\n\n"):
        lines = [line.partition(":") for line in block.splitlines()]
        if lines:
            found.append({name or "comment": value.strip() for name, _, value in lines})
    return found


def kinds(events: Iterable[dict[str, str]]) -> list[str]:
    return [one.get("event") or next(iter(one)) for one in events]


def shown(job: Job) -> JobView:
    return JobView.from_job(job, documents=False)


async def a_stream(
    states: list[Job | RayappError], *, last_id: str | None = None, rounds: int | None = None
) -> tuple[list[dict[str, str]], list[float]]:
    """The events of a job that shows these states, one per look, and the pauses in between."""
    seen, pauses = iter(states), []

    async def read() -> JobView:
        state = next(seen)
        if isinstance(state, RayappError):
            raise state
        return shown(state)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    stream = progress_events(
        read, last_id=last_id, rounds=len(states) if rounds is None else rounds, pause=pause
    )
    return blocks(b"".join([part async for part in stream])), pauses


@pytest.fixture
async def job(world: Harness) -> Job:
    return await a_job(world.jobs, JobState.RUNNING)


class TestEvents:
    async def test_one_event_per_change_and_the_report_at_the_end(self, job: Job) -> None:
        moved = replace(job, done=5)
        ended = replace(moved, state=JobState.COMPLETED, done=10, report={"copied": 10})
        found, pauses = await a_stream([job, job, moved, moved, ended], rounds=99)
        assert kinds(found) == ["retry", "progress", "progress", "end"]
        told = [json.loads(one["data"])["job"] for one in found[1:]]
        assert [one["done"] for one in told] == [0, 5, 10]
        assert told[-1]["report"] == {"copied": 10}
        assert pauses == [LOOK_S] * 4

    async def test_no_more_than_two_changes_per_second(self) -> None:
        assert LOOK_S >= 0.5

    async def test_after_a_reconnect_only_what_changed_is_sent(self, job: Job) -> None:
        moved = replace(job, done=5)
        found, _ = await a_stream([job, moved], last_id=event_id(shown(job)))
        assert kinds(found) == ["retry", "progress"]
        assert found[1]["id"] == event_id(shown(moved))
        found, _ = await a_stream([moved], last_id=event_id(shown(job)))
        assert kinds(found) == ["retry", "progress"]

    async def test_an_unknown_last_id_gets_the_present_state(self, job: Job) -> None:
        found, _ = await a_stream([job], last_id="from another age")
        assert kinds(found) == ["retry", "progress"]

    async def test_signs_of_life_while_nothing_changes(self, job: Job) -> None:
        looks = int(HEARTBEAT_S / LOOK_S)
        found, _ = await a_stream([job] * (2 * looks + 1))
        assert kinds(found) == ["retry", "progress", "comment", "comment"]
        found, _ = await a_stream([job] * looks)
        assert kinds(found) == ["retry", "progress"]

    async def test_a_store_that_is_away_ends_the_stream(self, job: Job) -> None:
        found, _ = await a_stream([job, StoreDown("No primary."), replace(job, done=5)])
        assert kinds(found) == ["retry", "progress"]

    async def test_it_ends_before_the_limit_of_a_request(self, job: Job) -> None:
        _, pauses = await a_stream([job] * 500, rounds=rounds_within(30.0))
        assert sum(pauses) < 30.0
        assert rounds_within(0.01) == 1

    async def test_text_of_any_script_stays_on_one_line(self, job: Job) -> None:
        odd = replace(job, state=JobState.FAILED, error="שורה\nשנייה \u2028 third")
        found, _ = await a_stream([odd])
        assert json.loads(found[1]["data"])["job"]["error"] == odd.error


async def test_the_stream_over_http_ends_with_the_job(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await a_job(world.jobs, JobState.COMPLETED)
    response = await api.get(f"{ONE}/events")
    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert response.headers["Cache-Control"] == "no-store"
    found = blocks(response.content)
    assert kinds(found) == ["retry", "end"]
    again = await api.get(f"{ONE}/events", headers={"Last-Event-ID": found[1]["id"]})
    assert (again.status_code, again.content) == (204, b"")


async def test_without_following_the_present_state_comes_once(
    api: httpx.AsyncClient, world: Harness
) -> None:
    await a_job(world.jobs, JobState.RUNNING)
    response = await api.get(f"{ONE}/events?follow=false")
    assert kinds(blocks(response.content)) == ["retry", "progress"]


async def test_the_stream_ends_when_its_reader_leaves(world: Harness) -> None:
    await a_job(world.jobs, JobState.RUNNING)
    connection = Connection(f"{ONE}/events", b"")
    connection.scope["method"] = "GET"
    began = asyncio.Event()

    async def send(message: Any) -> None:
        await connection.send(message)
        if b"progress" in message.get("body", b""):
            began.set()

    app = create_api(world.services)
    serving = asyncio.create_task(app(connection.scope, connection.receive, send))
    await began.wait()
    connection.gone.set()
    await asyncio.wait_for(serving, 5)
    assert not any(b"event: end" in part.get("body", b"") for part in connection.sent)
