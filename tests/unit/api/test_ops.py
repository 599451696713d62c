"""Operations over HTTP, in the shapes that the first client reads."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from rayapp.admin.health import HealthService
from rayapp.bulk.model import Job, JobState, Step
from rayapp.bulk.params import CONSISTENCY, DATAGOV, REINDEX
from rayapp.core.errors import EmbedderDown, IndexDown, JobsDown
from rayapp.index.consistency.rules import Drift, Issue, SweepReport
from rayapp.memory.item import SyncState
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.support.jobs import FixedConsistency, a_job
from tests.unit.api.serving import client_of, json_bytes, settings_with

OPS = "/api/memory/ops"
REINDEXING = f"{OPS}/reindex"
WAITING = f"{OPS}/reindex/deferred"
SWEEP = f"{OPS}/consistency"
BREAKER = f"{OPS}/circuit-breaker"
PROGRESS_FIELDS = {
    "jobId",
    "status",
    "totalItems",
    "processedItems",
    "failedItems",
    "startedAt",
    "updatedAt",
    "lastProcessedId",
    "lastProcessedAt",
    "errorMessage",
    "durationMs",
}
STEPS = "recoverySteps"


AWAY = EmbedderDown("No model is loaded.")


class SetBreakers:
    """In front of the real health: the breakers are those that a test sets."""

    def __init__(self, real: HealthService) -> None:
        self.components = real.components
        self.tripped: dict[str, dict[str, Any]] = {}
        self.after_reset: dict[str, dict[str, Any]] = {}

    async def breakers(self) -> dict[str, dict[str, Any]]:
        return dict(self.tripped)

    async def reset_breakers(self) -> list[str]:
        names, self.tripped = list(self.tripped), dict(self.after_reset)
        return names


@pytest.fixture
def consistency() -> FixedConsistency:
    return FixedConsistency()


@pytest.fixture
def world(consistency: FixedConsistency) -> Harness:
    return Harness.ready(consistency=consistency)


class TestReindex:
    async def test_before_the_first_one_there_is_no_progress(self, api: httpx.AsyncClient) -> None:
        assert (await api.get(REINDEXING)).json() == {
            "success": True,
            "progress": None,
            "degraded": [],
        }

    @pytest.mark.parametrize(
        ("body", "params"),
        [
            (None, {}),
            ({}, {}),
            ({"tier": "documents"}, {"tier": "books"}),
            ({"since": "2026-05-01T12:00:00+03:00"}, {"since": "2026-05-01T09:00:00+00:00"}),
            ({"userId": "dana"}, {"user_id": "dana"}),
        ],
    )
    async def test_it_is_submitted_and_answered_at_once(
        self, api: httpx.AsyncClient, world: Harness, body: Any, params: dict[str, Any]
    ) -> None:
        response = (
            await api.post(REINDEXING, json=body)
            if body is not None
            else (await api.post(REINDEXING))
        )
        result = response.json()["result"]
        (job,) = world.launcher.launched
        assert response.status_code == 200
        assert result == submission_of(job)
        assert (job.kind, job.params, job.requested_by) == (REINDEX, params, "local")

    @pytest.mark.parametrize(
        "body", [{"tier": "cellar"}, {"tier": 5}, {"since": "yesterday"}, {"userId": "a b"}]
    )
    async def test_bad_conditions_are_refused(
        self, api: httpx.AsyncClient, world: Harness, body: dict[str, Any]
    ) -> None:
        response = await api.post(REINDEXING, json=body)
        assert (response.status_code, response.json()["success"]) == (422, False)
        assert world.launcher.launched == []

    async def test_a_second_one_is_busy(self, api: httpx.AsyncClient) -> None:
        first = (await api.post(REINDEXING, json={})).json()["result"]["jobId"]
        response = await api.post(REINDEXING, json={"tier": "books"})
        body = response.json()
        assert (response.status_code, body["code"]) == (409, "busy")
        assert body["details"]["job_id"] == first

    async def test_a_retry_with_the_same_key_names_the_same_job(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        answers = [
            (await api.post(REINDEXING, headers={"Idempotency-Key": "k-1"})).json()
            for _ in range(2)
        ]
        assert answers[0]["result"] == answers[1]["result"]
        assert len(world.launcher.launched) == 1

    async def test_without_a_cluster_it_is_503_and_the_progress_says_why(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        world.launcher.error = JobsDown("The cluster takes no jobs.")
        response = await api.post(REINDEXING)
        assert (response.status_code, response.json()["code"]) == (503, "jobs_down")
        progress = (await api.get(REINDEXING)).json()["progress"]
        assert (progress["status"], progress["errorMessage"]) == (
            "failed",
            "The cluster takes no jobs.",
        )

    @pytest.mark.parametrize(
        ("state", "word"),
        [
            (JobState.SUBMITTED, "running"),
            (JobState.RUNNING, "running"),
            (JobState.PAUSED, "paused"),
            (JobState.COMPLETED, "completed"),
            (JobState.FAILED, "failed"),
            (JobState.CANCELLED, "failed"),
        ],
    )
    async def test_the_progress_speaks_the_clients_words(
        self, api: httpx.AsyncClient, world: Harness, state: JobState, word: str
    ) -> None:
        await a_job(world.jobs, state)
        progress = (await api.get(REINDEXING)).json()["progress"]
        assert progress.keys() >= PROGRESS_FIELDS
        assert (progress["status"], progress["state"]) == (word, state.value)
        assert (progress["errorMessage"] == "Cancelled.") is (state is JobState.CANCELLED)

    async def test_the_progress_is_that_of_the_newest_reindex(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await a_job(world.jobs, JobState.COMPLETED)
        world.clock.advance(1)
        await a_job(world.jobs, JobState.RUNNING, job_id="job-2")
        await a_job(world.jobs, JobState.RUNNING, job_id="job-3", kind=CONSISTENCY)
        await world.jobs.checkpoint("job-2", 0, 1, Step(cursor={}, done=4, failed=1))
        world.clock.advance(2)
        await world.jobs.progress("job-2", 1)
        progress = (await api.get(REINDEXING)).json()["progress"]
        assert progress["jobId"] == "job-2"
        assert (progress["totalItems"], progress["processedItems"]) == (10, 4)
        assert (progress["failedItems"], progress["durationMs"]) == (1, 2_000)

    @pytest.mark.parametrize(
        ("path", "word"), [("pause", "paused"), ("resume", "resumed"), ("cancel", "cancelled")]
    )
    @pytest.mark.parametrize("state", [None, JobState.COMPLETED, JobState.CANCELLED])
    async def test_with_none_going_on_nothing_is_asked(
        self, api: httpx.AsyncClient, world: Harness, path: str, word: str, state: JobState | None
    ) -> None:
        if state is not None:
            await a_job(world.jobs, state)
        response = await api.post(f"{REINDEXING}/{path}")
        assert response.status_code == 200
        assert (response.json()[word], response.json()["jobId"]) == (False, None)

    @pytest.mark.parametrize(
        ("path", "word", "wish"),
        [
            ("pause", "paused", "pause"),
            ("resume", "resumed", "run"),
            ("cancel", "cancelled", "cancel"),
        ],
    )
    async def test_the_newest_one_is_meant(
        self, api: httpx.AsyncClient, world: Harness, path: str, word: str, wish: str
    ) -> None:
        await a_job(world.jobs, JobState.RUNNING)
        body = (await api.post(f"{REINDEXING}/{path}", json={})).json()
        assert (body["success"], body[word], body["jobId"]) == (True, True, "job-1")
        assert (await world.services.jobs.get("job-1")).wish.value == wish

    @pytest.mark.parametrize(
        ("state", "path", "told"),
        [
            (JobState.SUBMITTED, "cancel", "The reindex is cancelled."),
            (JobState.SUBMITTED, "resume", "The reindex waits for its driver."),
            (JobState.PAUSED, "cancel", "The reindex is cancelled."),
            (JobState.PAUSED, "pause", "The reindex is paused."),
            (JobState.PAUSED, "resume", "The reindex waits for its driver."),
            (JobState.RUNNING, "pause", "The reindex stops after its step."),
            (JobState.RUNNING, "resume", "The reindex goes on."),
            (JobState.RUNNING, "cancel", "The reindex ends after its step."),
        ],
    )
    async def test_the_answer_says_what_is(
        self, api: httpx.AsyncClient, world: Harness, state: JobState, path: str, told: str
    ) -> None:
        await a_job(world.jobs, state)
        assert (await api.post(f"{REINDEXING}/{path}")).json()["message"] == told

    async def test_one_that_was_cancelled_before_it_started_does_not_go_on(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await a_job(world.jobs, JobState.SUBMITTED)
        await api.post(f"{REINDEXING}/cancel")
        body = (await api.post(f"{REINDEXING}/resume")).json()
        assert (body["resumed"], body["message"]) == (False, "No reindex is going on.")

    async def test_going_back_is_a_job_of_its_own(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await a_job(world.jobs, JobState.COMPLETED)
        response = await api.post(f"{REINDEXING}/rollback")
        assert response.status_code == 200
        assert world.launcher.launched[0].params == {"rollback": True}


class TestDeferred:
    @pytest.fixture(autouse=True)
    async def _waiting(self, world: Harness) -> None:
        for user, number in (("admin", 2), ("noam", 1)):
            for n in range(number):
                await world.items.insert(an_item(user_id=user, memory_id=f"{user}-{n}"))

    @pytest.mark.parametrize(
        ("query", "number"),
        [("", 3), ("?userId=admin", 2), ("?user_id=noam", 1), ("?userId=nobody", 0)],
    )
    async def test_it_counts_for_one_user_or_for_all(
        self, api: httpx.AsyncClient, query: str, number: int
    ) -> None:
        body = (await api.get(f"{WAITING}{query}")).json()
        assert (body["pendingReindex"], bool(body["message"])) == (number, True)

    @pytest.mark.parametrize("user", ["a b", "", "x" * 129])
    async def test_what_is_no_user_is_refused(self, api: httpx.AsyncClient, user: str) -> None:
        assert (await api.get(WAITING, params={"userId": user})).status_code == 422
        assert (await api.post(WAITING, json={"userId": user})).status_code == 422

    async def test_failed_items_are_tried_again(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        row = next(row for row in world.items._rows.values() if row.item.user_id == "noam")
        failed = replace(row.item.index, sync_state=SyncState.FAILED, next_attempt_at=None)
        row.hold(replace(row.item, index=failed), world.clock.now())
        body = (await api.post(WAITING, json={"userId": "noam"})).json()
        assert body["result"] == {"success": True, "hastened": 1, "pendingReindex": 1}
        assert (await world.items.backlog()).failed == 0

    async def test_without_a_body_it_is_for_all(self, api: httpx.AsyncClient) -> None:
        body = (await api.post(WAITING)).json()
        assert body["result"]["pendingReindex"] == 3

    async def test_without_an_embedder_it_is_503_with_what_to_do(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        world.embedder.error = AWAY
        response = await api.post(WAITING, json={})
        body = response.json()
        assert (response.status_code, body["success"]) == (503, False)
        assert body["code"] == "embedder_down"
        assert body["error"] == body["message"] == "The embedder is away: No model is loaded."
        assert all(isinstance(step, str) for step in body[STEPS])
        assert body[STEPS]
        assert "Retry-After" in response.headers


class TestConsistency:
    REPORT = SweepReport(
        checked_at=datetime(2026, 5, 1, tzinfo=UTC),
        duration_s=1.25,
        checked=900,
        found={Drift.MISSING: 2, Drift.VECTOR: 1},
        repaired={Drift.MISSING: 2},
        issues=[
            Issue(
                kind=kind,
                point_id=f"p-{kind.value}",
                memory_id="mem-1",
                user_id="admin",
                details="differs",
                repaired=kind is Drift.MISSING,
            )
            for kind in Drift
        ],
        truth_count=1_000,
        index_count=998,
        quarantined=3,
    )

    async def test_what_was_found_in_the_clients_words(
        self, api: httpx.AsyncClient, consistency: FixedConsistency
    ) -> None:
        consistency.report = self.REPORT
        result = (await api.post(SWEEP, json={})).json()["result"]
        assert [issue["type"] for issue in result["issues"]] == [
            "missing_in_qdrant",
            "orphan_in_qdrant",
            "inactive_in_index",
            "payload_mismatch",
            "vector_mismatch",
            "duplicate_point",
        ]
        assert result["issues"][0] == {
            "type": "missing_in_qdrant",
            "memoryId": "mem-1",
            "userId": "admin",
            "pointId": "p-missing_in_index",
            "details": "differs",
            "repaired": True,
        }
        del result["issues"]
        assert result == {
            "success": True,
            "status": "completed",
            "jobId": None,
            "checkedAt": "2026-05-01T00:00:00Z",
            "durationMs": 1_250,
            "totalChecked": 900,
            "issuesFound": 3,
            "issuesRepaired": 2,
            "found": {"missing_in_qdrant": 2, "vector_mismatch": 1},
            "repaired": {"missing_in_qdrant": 2},
            "quarantined": 3,
            "mongoCount": 1_000,
            "qdrantCount": 998,
        }

    @pytest.mark.parametrize(
        ("body", "asked"),
        [
            (None, (1_000, True)),
            ({"dryRun": True}, (1_000, False)),
            ({"dry_run": False, "sampleSize": 50}, (50, True)),
            ({"sample": 5_000, "dryRun": True}, (5_000, False)),
        ],
    )
    async def test_how_much_is_looked_at_and_whether_it_is_repaired(
        self,
        api: httpx.AsyncClient,
        body: Any,
        asked: tuple[int, bool],
        consistency: FixedConsistency,
    ) -> None:
        await (api.post(SWEEP) if body is None else api.post(SWEEP, json=body))
        assert consistency.asked == [asked]

    async def test_a_large_sample_of_the_settings_is_cut(
        self, consistency: FixedConsistency
    ) -> None:
        world = Harness.ready(
            settings_with(consistency={"sample": 90_000}), consistency=consistency
        )
        async with client_of(world.services) as api:
            await api.post(SWEEP)
        assert consistency.asked == [(5_000, True)]

    @pytest.mark.parametrize(
        "body", [{"sampleSize": 0}, {"sampleSize": 5_001}, {"sampleSize": "9"}, {"dryRun": "no"}]
    )
    async def test_bad_bodies_are_refused(
        self, api: httpx.AsyncClient, body: dict[str, Any], consistency: FixedConsistency
    ) -> None:
        assert (await api.post(SWEEP, json=body)).status_code == 422
        assert consistency.asked == []

    @pytest.mark.parametrize(
        ("body", "params"),
        [
            ({"full": True}, {"full": True, "repair": True}),
            ({"full": True, "dryRun": True}, {"full": True}),
        ],
    )
    async def test_a_full_sweep_is_a_job(
        self,
        api: httpx.AsyncClient,
        world: Harness,
        body: dict[str, Any],
        params: dict[str, Any],
        consistency: FixedConsistency,
    ) -> None:
        result = (await api.post(SWEEP, json=body)).json()["result"]
        (job,) = world.launcher.launched
        assert (job.kind, job.params) == (CONSISTENCY, params)
        assert result == submission_of(job)
        assert consistency.asked == []

    async def test_an_index_that_is_away_is_503(
        self, api: httpx.AsyncClient, consistency: FixedConsistency
    ) -> None:
        async def check(*, sample: int, repair: bool) -> SweepReport:
            raise IndexDown("The index is being filled.")

        consistency.check = check  # type: ignore[method-assign]
        assert (await api.post(SWEEP, json={})).status_code == 503


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (REINDEXING, {"tier": "books"}),
        (f"{REINDEXING}/rollback", None),
        (SWEEP, {"full": True}),
        (f"{OPS}/datagov", None),
    ],
)
async def test_a_submission_says_so_counts_nothing_and_names_where_to_follow_it(
    api: httpx.AsyncClient, world: Harness, path: str, body: Any
) -> None:
    result = (await api.post(path, json=body or {})).json()["result"]
    (job,) = world.launcher.launched
    assert result == submission_of(job)
    assert not any(isinstance(value, int) and value is not True for value in result.values())
    followed = (await api.get(result["follow"])).json()["job"]
    assert (followed["job_id"], followed["state"]) == (job.job_id, "submitted")


def submission_of(job: Job) -> dict[str, Any]:
    """What every route answers that submits a job: nothing was done yet, so no counts."""
    return {
        "success": True,
        "status": "submitted",
        "jobId": job.job_id,
        "kind": job.kind,
        "follow": f"/api/memory/jobs/{job.job_id}",
        "message": f"Submitted as job {job.job_id}: it has not done anything yet.",
    }


class TestDatagov:
    async def test_it_is_submitted_from_the_live_catalogue(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        response = await api.post(f"{OPS}/datagov")
        (job,) = world.launcher.launched
        assert response.json()["result"]["jobId"] == job.job_id
        assert (job.kind, job.params) == (DATAGOV, {"source": "ckan"})

    async def test_a_folder_is_named_by_the_settings_alone(self) -> None:
        world = Harness.ready(settings_with(datagov={"source": "/data/datagov"}))
        async with client_of(world.services) as api:
            await api.post(f"{OPS}/datagov", json={})
            status = (await api.get(f"{OPS}/datagov")).json()
        assert world.launcher.launched[0].params == {}
        assert (status["source"], "/data" in str(status)) == ("folder", False)

    @pytest.mark.parametrize("source", ["/etc/passwd", "../datagov", "", "CKAN", 5, ["ckan"]])
    async def test_a_path_of_a_request_is_never_opened(
        self, api: httpx.AsyncClient, world: Harness, source: Any
    ) -> None:
        assert (await api.post(f"{OPS}/datagov", json={"source": source})).status_code == 422
        assert world.launcher.launched == []

    async def test_its_state_is_that_of_the_newest_job(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        before = (await api.get(f"{OPS}/datagov")).json()
        assert (before["progress"], before["report"], before["preload"]) == (None, None, False)
        await a_job(world.jobs, JobState.RUNNING, kind=DATAGOV)
        await world.jobs.end("job-1", 1, JobState.COMPLETED, report={"items": 3_190})
        after = (await api.get(f"{OPS}/datagov")).json()
        assert (after["progress"]["status"], after["report"]) == ("completed", {"items": 3_190})


class TestBreakers:
    @pytest.fixture
    def health(self, world: Harness) -> SetBreakers:
        return SetBreakers(world.services.health)

    @pytest.fixture
    async def api(self, world: Harness, health: SetBreakers) -> AsyncIterator[httpx.AsyncClient]:
        async with client_of(replace(world.services, health=health)) as client:
            yield client

    async def test_a_healthy_service(self, api: httpx.AsyncClient) -> None:
        body = (await api.get(BREAKER)).json()
        assert body["circuitBreaker"] == {
            "isOpen": False,
            "failureCount": 0,
            "successCount": 0,
            "lastFailure": None,
            "threshold": 2,
            "openDurationMs": 60_000,
            "lastErrorCategory": None,
            "lastError": None,
        }
        assert (body["embeddingServiceHealthy"], body["isOperational"]) == (True, True)
        assert (body["isDegradedMode"], body["recommendations"]) == (False, [])

    async def test_an_open_breaker_of_the_embedder(
        self, api: httpx.AsyncClient, world: Harness, health: SetBreakers
    ) -> None:
        row = {
            "state": "open",
            "isOpen": True,
            "failureCount": 2,
            "successCount": 0,
            "lastError": "EmbedderDown: no answer",
        }
        world.embedder.error = AWAY
        health.tripped = {"embedding": row}
        body = (await api.get(BREAKER)).json()
        assert body["circuitBreaker"]["isOpen"] is True
        assert body["circuitBreaker"]["lastErrorCategory"] == "EmbedderDown"
        assert (body["isOperational"], body["isDegradedMode"]) == (False, True)
        assert body["recommendations"]

    @pytest.mark.parametrize(
        "body", [{"action": "reset"}, {"action": "degraded", "enabled": False}]
    )
    async def test_they_are_closed_by_hand(
        self, api: httpx.AsyncClient, body: dict[str, Any], health: SetBreakers
    ) -> None:
        health.tripped = {"qdrant": {"state": "open", "isOpen": True}}
        answer = (await api.post(BREAKER, json=body)).json()
        assert (answer["success"], answer["breakers"]) == (True, {})
        assert "qdrant" in answer["message"]

    async def test_what_still_fails_after_the_reset_is_said(
        self, api: httpx.AsyncClient, health: SetBreakers
    ) -> None:
        failing = {"state": "closed", "isOpen": False, "lastError": "RerankerDown: away"}
        health.tripped = {"reranker": {"state": "open", "isOpen": True}}
        health.after_reset = {"reranker": failing}
        answer = (await api.post(BREAKER, json={"action": "reset"})).json()
        assert answer["message"] == (
            "Closed by hand: reranker. Still failing: reranker (RerankerDown: away)."
        )
        health.after_reset = {"embedding": failing}
        response = await api.post(BREAKER, json={"action": "reset"})
        assert (response.status_code, bool(response.json()[STEPS])) == (503, True)

    @pytest.mark.parametrize(
        ("gone", "said"), [(False, "Nothing was changed"), (True, "It already answers without")]
    )
    async def test_degraded_mode_is_told_and_never_forced(
        self, api: httpx.AsyncClient, gone: bool, said: str, health: SetBreakers
    ) -> None:
        health.tripped = {"qdrant": {"state": "open", "isOpen": True}} if gone else {}
        response = await api.post(BREAKER, json={"action": "degraded", "enabled": True})
        body = response.json()
        assert (response.status_code, body["isDegradedMode"]) == (200, gone)
        assert body["message"].startswith(said)
        assert bool(health.tripped) is gone

    async def test_an_embedder_that_stays_away_is_503(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        world.embedder.error = AWAY
        response = await api.post(BREAKER, json={"action": "reset"})
        assert (response.status_code, bool(response.json()[STEPS])) == (503, True)

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"action": "explode"}, 400),
            ({"action": ""}, 400),
            ({"action": "degraded"}, 422),
            ({"action": "degraded", "enabled": "perhaps"}, 422),
            ({"action": 5}, 422),
            ({}, 422),
        ],
    )
    async def test_anything_else_is_refused(
        self, api: httpx.AsyncClient, body: dict[str, Any], status: int, health: SetBreakers
    ) -> None:
        health.tripped = {"qdrant": {"state": "open"}}
        assert (await api.post(BREAKER, json=body)).status_code == status
        assert health.tripped


@pytest.mark.parametrize("path", [REINDEXING, WAITING, SWEEP, f"{OPS}/datagov", BREAKER])
@pytest.mark.parametrize("body", [b"[]", b"{", b"null", b'"reindex"'])
async def test_a_body_that_is_no_object_is_400(
    api: httpx.AsyncClient, world: Harness, path: str, body: bytes, consistency: FixedConsistency
) -> None:
    response = await json_bytes(api, "POST", path, body)
    assert (response.status_code, response.json()["code"]) == (400, "malformed_json")
    assert world.launcher.launched == []
    assert consistency.asked == []
