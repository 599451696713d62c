"""Operators' calls under one name, `client.ops`: jobs, upkeep, breakers, and the service itself."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack

import httpx

from rayapp.client.calls import Pause, Reader, Request, Talk, Writer, asked, at, call, given, listed
from rayapp.client.core import Core, failure, json_of, parse, unreachable
from rayapp.core.errors import DeadlineExceeded
from rayapp.wire import access, insights, learning, system, upkeep
from rayapp.wire import ops as wire
from rayapp.wire.jobs import JobActionAnswer, JobAnswer, JobListAnswer, JobView
from rayapp.wire.retention import HoldAnswer, HoldsAnswer, HoldView, ReleasedAnswer, RetentionAnswer
from rayapp.wire.tenants import (
    TenantErasedAnswer,
    TenantsAnswer,
    TenantUsersAnswer,
    TenantUserView,
    TenantView,
)

MEMORY = "/api/memory"
JOBS = f"{MEMORY}/jobs"
OPS = f"{MEMORY}/ops"
BREAKERS = f"{OPS}/circuit-breaker"
CLEANUP = f"{MEMORY}/cleanup"
HOLDS, RETENTION = f"{OPS}/holds", f"{OPS}/retention"
TENANTS = f"{OPS}/tenants"
KEYS, AUDIT = "/api/admin/keys", "/api/admin/audit"
WISHES: Mapping[str, type[wire.ReindexAnswer]] = {
    "pause": wire.PausedAnswer,
    "resume": wire.ResumedAnswer,
    "cancel": wire.CancelledAnswer,
}
JOB_POLL_S = 0.5  # between two looks at a job: people see that as motion
JOB_STALL_S = 300.0  # a job that shows no sign of life for this long is stuck, not slow


class OpsCalls(Core):
    """The calls; the client that they belong to says to whom and for whom.

    They need a key with the scope `admin` where keys are asked for.
    """

    def __init__(self, client: Core) -> None:
        super().__init__(client.url, user_id=client._user_id, retry=client._retry)
        self._told = client._told  # what one of them said, the other does not say again

    @call
    def reindex(
        self, *, tier: str | None = None, since: str | None = None, user_id: str | None = None
    ) -> Talk[str]:
        """Submit a reindex; the id of its job.

        The conditions name items whose vectors are made anew even where the old ones fit.

        Raises:
            Conflict: code `busy`, while another one has not ended.
            DependencyDown: code `jobs_down`, when the cluster takes no jobs.
        """
        body = given({"tier": tier, "since": since, "user_id": user_id})
        return self._submit(f"{OPS}/reindex", body)

    @call
    def promote(
        self, *, all_users: bool = False, **who: Unpack[Writer]
    ) -> Talk[learning.PromoteAnswer]:
        """Run a promotion cycle over the user's memories, or over everybody's."""
        body = {"all_users": all_users}
        return self.writing(learning.PromoteAnswer, f"{OPS}/promote", body, **who)

    @call
    def reindex_rollback(self) -> Talk[str]:
        """Submit the way back to the collection before the last reindex; the id of its job."""
        return self._submit(f"{OPS}/reindex/rollback", {})

    @call
    def reindex_progress(self) -> Talk[wire.ProgressView | None]:
        """The reindex that runs or ran last, None when there was none."""
        return (yield from self.reading(wire.ProgressAnswer, f"{OPS}/reindex")).progress

    @call
    def reindex_wish(self, wish: Literal["pause", "resume", "cancel"]) -> Talk[wire.ReindexAnswer]:
        """Ask something of the reindex that runs; without a `job_id` none was going on."""
        return self.writing(WISHES[wish], f"{OPS}/reindex/{wish}", {})

    @call
    def deferred(self, *, owner: str | None = None) -> Talk[int]:
        """How many memories wait for the index; `owner`: of this user alone."""
        path = asked(f"{OPS}/reindex/deferred", user_id=owner)
        return (yield from self.reading(wire.DeferredCountAnswer, path)).pending_reindex

    @call
    def run_deferred(self, *, owner: str | None = None) -> Talk[wire.DeferredAnswer]:
        """Try them again now. Raises DependencyDown without an embedder."""
        path = f"{OPS}/reindex/deferred"
        return self.writing(wire.DeferredAnswer, path, given({"user_id": owner}))

    @call
    def ingest_datagov(self, source: Literal["ckan"] | None = None) -> Talk[str]:
        """Submit the filling of the DataGov tiers; the id of its job."""
        return self._submit(f"{OPS}/datagov", given({"source": source}))

    @call
    def datagov_status(self) -> Talk[wire.DatagovStatusAnswer]:
        """What the last filling of the DataGov tiers did."""
        return self.reading(wire.DatagovStatusAnswer, f"{OPS}/datagov")

    @call
    def consistency(
        self, *, sample: int | None = None, repair: bool = True
    ) -> Talk[wire.ConsistencyResult]:
        """What a sampled look finds now."""
        body = given({"dry_run": not repair, "sample_size": sample})
        found = (yield from self.writing(wire.ConsistencyAnswer, f"{OPS}/consistency", body)).result
        assert isinstance(found, wire.ConsistencyResult)  # only `full` submits a job
        return found

    @call
    def sweep(self, *, repair: bool = True) -> Talk[str]:
        """Submit a sweep over everything; the id of its job."""
        body = {"dry_run": not repair, "full": True}
        return self._submit(f"{OPS}/consistency", body)

    @call
    def breakers(self) -> Talk[wire.BreakerAnswer]:
        """The state of the circuit breakers."""
        return self.reading(wire.BreakerAnswer, BREAKERS)

    @call
    def reset_breakers(self) -> Talk[wire.BreakerAnswer]:
        """Close them by hand. Raises DependencyDown while the embedder is still away."""
        return self.writing(wire.BreakerAnswer, BREAKERS, {"action": "reset"})

    @call
    def set_degraded(self, enabled: bool) -> Talk[wire.BreakerAnswer]:
        """Answer without the embedder, or with it again."""
        body = {"action": "degraded", "enabled": enabled}
        return self.writing(wire.BreakerAnswer, BREAKERS, body)

    @call
    def jobs(self, kind: str | None = None, *, limit: int = 50) -> Talk[tuple[JobView, ...]]:
        """Newest first."""
        return (yield from self.reading(JobListAnswer, asked(JOBS, kind=kind, limit=limit))).jobs

    @call
    def job(self, job_id: str) -> Talk[JobView]:
        """One job. Raises NotFound."""
        return self._job(job_id)

    @call
    def pause_job(self, job_id: str) -> Talk[JobView]:
        """Its workers stop after their step. Raises Conflict when it has ended."""
        return self._wish(job_id, "pause")

    @call
    def resume_job(self, job_id: str) -> Talk[JobView]:
        """Go on where it was. Raises Conflict when it has ended."""
        return self._wish(job_id, "resume")

    @call
    def cancel_job(self, job_id: str) -> Talk[JobView]:
        """Its workers stop after their step, for good. Raises Conflict when it has ended."""
        return self._wish(job_id, "cancel")

    @call
    def wait_job(
        self,
        job_id: str,
        *,
        stall_s: float = JOB_STALL_S,
        poll_s: float = JOB_POLL_S,
        on_progress: Callable[[JobView], None] | None = None,
    ) -> Talk[JobView]:
        """Wait until a job has ended or was paused; look at `state` to see which.

        Raises DeadlineExceeded: nothing about it changed for `stall_s` seconds.
        """
        seen: tuple[object, ...] | None = None
        moved = time.monotonic()
        while True:
            job = yield from self._job(job_id)
            if on_progress is not None:
                on_progress(job)
            if job.final or job.state == "paused":
                return job
            shown = (job.state, job.stage, job.done, job.attempts)
            if shown != seen:
                seen, moved = shown, time.monotonic()
            if time.monotonic() - moved > stall_s:
                raise DeadlineExceeded(
                    f"Job {job_id} has not moved for {stall_s:.0f} s: look at its log in the Ray "
                    "dashboard, or cancel it."
                )
            yield Pause(poll_s)

    def _submit(self, path: str, body: dict[str, Any]) -> Talk[str]:
        return (yield from self.writing(wire.SubmittedAnswer, path, body)).result.job_id

    def _job(self, job_id: str) -> Talk[JobView]:
        return (yield from self.reading(JobAnswer, at(JOBS, job_id))).job

    def _wish(self, job_id: str, name: str) -> Talk[JobView]:
        return (yield from self.writing(JobActionAnswer, at(JOBS, job_id, name), {})).job

    # --- the upkeep of the stores

    @call
    def data_sizes(self) -> Talk[upkeep.SizesAnswer]:
        """Rows and bytes of every collection, and of the index."""
        return self.reading(upkeep.SizesAnswer, "/api/system/data-sizes")

    @call
    def compact(self) -> Talk[upkeep.CompactAnswer]:
        """Give the room of removed rows back to the disk."""
        return self.writing(upkeep.CompactAnswer, "/api/data/compact-database")

    @call
    def session_users(self, *, quiet_days: int | None = None) -> Talk[upkeep.CleanupStats]:
        """Users that were made for one session and are quiet since."""
        path = asked(CLEANUP, quiet_days=quiet_days)
        return (yield from self.reading(upkeep.CleanupCountAnswer, path)).stats

    @call
    def clean_up(
        self, *, dry_run: bool = True, quiet_days: int | None = None, confirm: str | None = None
    ) -> Talk[upkeep.CleanupAnswer]:
        """Remove them with all that is theirs; `dry_run` only counts, else `confirm` is the word
        DELETE."""
        body = given({"dry_run": dry_run, "quiet_days": quiet_days, "confirm": confirm})
        return self.writing(upkeep.CleanupAnswer, CLEANUP, body)

    @call
    def migration(self, *, owner: str | None = None) -> Talk[upkeep.MigrateStatus]:
        """What of the first client's old collection is still to be moved."""
        path = asked(f"{OPS}/migrate", user_id=owner)
        return (yield from self.reading(upkeep.MigrateStatusAnswer, path)).status

    @call
    def migrate(
        self, *, owner: str | None = None, dry_run: bool = False
    ) -> Talk[upkeep.MigrateAnswer]:
        """Move it."""
        body = given({"user_id": owner, "dry_run": dry_run})
        return self.writing(upkeep.MigrateAnswer, f"{OPS}/migrate", body)

    @call
    def verify_migration(self, *, owner: str | None = None) -> Talk[upkeep.VerificationView]:
        """Look whether all of it is there."""
        path, body = f"{OPS}/migrate", given({"user_id": owner})
        return (yield from self.writing(upkeep.VerifyAnswer, path, body, method="PUT")).verification

    @call
    def find_blobs(
        self, *, tier: str | None = None, cursor: str | None = None, **who: Unpack[Reader]
    ) -> Talk[upkeep.SanitizeAnswer]:
        """Memories whose text holds encoded files."""
        path = asked(f"{OPS}/sanitize", tier=tier, cursor=cursor)
        return self.reading(upkeep.SanitizeAnswer, path, **who)

    @call
    def remove_blobs(
        self,
        *,
        tier: str | None = None,
        cursor: str | None = None,
        dry_run: bool = True,
        **who: Unpack[Writer],
    ) -> Talk[upkeep.SanitizeAnswer]:
        """Cut them out; `dry_run` only looks."""
        body = given({"tier": tier, "cursor": cursor, "dry_run": dry_run})
        return self.writing(upkeep.SanitizeAnswer, f"{OPS}/sanitize", body, **who)

    @call
    def integrity(self) -> Talk[upkeep.IntegrityAnswer]:
        """Whether the stores agree, and how old the last backup is."""
        return self.reading(upkeep.IntegrityAnswer, f"{OPS}/integrity")

    @call
    def daily(self, *, days: int | None = None) -> Talk[tuple[upkeep.DayView, ...]]:
        """What the service held, a row per day."""
        path = asked(f"{OPS}/daily", days=days)
        return (yield from self.reading(upkeep.DaysAnswer, path)).days

    @call
    def retention(self) -> Talk[RetentionAnswer]:
        """What is past its age and would go."""
        return self.reading(RetentionAnswer, RETENTION)

    @call
    def run_retention(self, *, confirm: str) -> Talk[RetentionAnswer]:
        """Delete it now, for good. Raises InvalidInput unless `confirm` is the word DELETE."""
        return self.writing(RetentionAnswer, RETENTION, {"confirm": confirm})

    @call
    def holds(self) -> Talk[tuple[HoldView, ...]]:
        """Users whose data are held."""
        return (yield from self.reading(HoldsAnswer, HOLDS)).holds

    @call
    def hold(self, *, owner: str, reason: str) -> Talk[HoldView]:
        """Nothing of this user is deleted from now on."""
        body = {"user_id": owner, "reason": reason}
        return (yield from self.writing(HoldAnswer, HOLDS, body)).hold

    @call
    def release(self, *, owner: str) -> Talk[ReleasedAnswer]:
        """The user's data may be deleted again. Raises NotFound."""
        path = asked(HOLDS, user_id=owner)
        return self.writing(ReleasedAnswer, path, method="DELETE")

    @call
    def tenants(self) -> Talk[tuple[TenantView, ...]]:
        """Those that a key was ever made for."""
        return (yield from self.reading(TenantsAnswer, TENANTS)).tenants

    @call
    def tenant_users(self, org_id: str) -> Talk[tuple[TenantUserView, ...]]:
        """Those of whom anything is kept."""
        return (yield from self.reading(TenantUsersAnswer, f"{at(TENANTS, org_id)}/users")).users

    @call
    def keys(self) -> Talk[tuple[access.KeyView, ...]]:
        """All keys, with those that open nothing any more."""
        return (yield from self.reading(access.KeysAnswer, KEYS)).keys

    @call
    def make_key(
        self,
        principal: str,
        *,
        owner: str | None = None,
        org_id: str | None = None,
        scopes: Sequence[access.KeyScope] = ("read", "write"),
        name: str = "",
        expires_at: datetime | None = None,
    ) -> Talk[access.KeyMadeAnswer]:
        """The answer alone holds the key. Raises InvalidInput."""
        body: dict[str, Any] = {
            "principal": principal,
            "user_id": owner,
            "org_id": org_id,
            "name": name,
        }
        until = None if expires_at is None else expires_at.isoformat()
        body |= {"scopes": listed(scopes), "expires_at": until}
        return self.writing(access.KeyMadeAnswer, KEYS, given(body))

    @call
    def rotate_key(self, key_id: str, *, grace_s: int = 86_400) -> Talk[access.KeyMadeAnswer]:
        """Another key in its place; it works for `grace_s` more. Raises NotFound."""
        path = f"{at(KEYS, key_id)}/rotate"
        return self.writing(access.KeyMadeAnswer, path, {"grace_s": grace_s})

    @call
    def revoke_key(self, key_id: str) -> Talk[access.KeyView]:
        """With the session tokens that it made. Raises NotFound, Conflict."""
        answer = self.writing(access.KeyEndedAnswer, at(KEYS, key_id), method="DELETE")
        return (yield from answer).ended

    @call
    def audit(
        self,
        *,
        principal: str | None = None,
        owner: str | None = None,
        route: str | None = None,
        since: datetime | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Talk[access.AuditAnswer]:
        """A page of the audit log, the latest first; `cursor`: the `next_cursor` of the last."""
        at_least = None if since is None else since.isoformat()
        path = asked(
            AUDIT,
            principal=principal,
            user_id=owner,
            route=route,
            since=at_least,
            cursor=cursor,
            limit=limit,
        )
        return self.reading(access.AuditAnswer, path)

    @call
    def erase_tenant(self, org_id: str, *, confirm: str) -> Talk[TenantErasedAnswer]:
        """Revoke its keys and erase its users; `confirm`: the word DELETE. Call again while it is
        not `complete`. Raises NotFound."""
        path = asked(at(TENANTS, org_id), confirm=confirm)
        return self.writing(TenantErasedAnswer, path, method="DELETE")

    @call
    def reset_preview(self) -> Talk[upkeep.ResetPreviewAnswer]:
        """What a reset would remove."""
        return self.reading(upkeep.ResetPreviewAnswer, f"{OPS}/reset")

    @call
    def reset(self, *, confirm: str) -> Talk[upkeep.ResetAnswer]:
        """Remove all memories of all users for good; `confirm`: the word DELETE."""
        return self.writing(upkeep.ResetAnswer, f"{OPS}/reset", {"confirm": confirm})


SYSTEM = "/api/system"
STALL_S = 120.0  # an index backlog that does not move for this long is stuck, not slow
POLL_S = 0.25  # between two looks at the backlog


class SystemCalls(Core):
    """The calls about the service itself: readiness, health, sizes, the wait for the index."""

    @call
    def diagnostics(self) -> Talk[dict[str, Any]]:
        """The whole diagnostics body."""
        return (
            yield from self.reading(insights.DiagnosticsAnswer, f"{MEMORY}/diagnostics")
        ).model_dump()

    @call
    def backlog(self) -> Talk[insights.BacklogView]:
        """Index counts out of the diagnostics."""
        return self._backlog()

    @call
    def ready(self) -> Talk[system.ReadyAnswer]:
        """Readiness; a service that is warming up answers `ready=False` with reasons.

        Raises DependencyDown: nothing listens there.
        """
        came = yield Request(method="GET", path="/readyz")
        if not isinstance(came, httpx.Response):
            raise unreachable(self.url, came)
        return parse(system.ReadyAnswer, json_of(came))

    @call
    def wait_indexed(
        self,
        *,
        stall_s: float = STALL_S,
        poll_s: float = POLL_S,
        encoded: bool = False,
        on_progress: Callable[[insights.BacklogView], None] | None = None,
    ) -> Talk[insights.BacklogView]:
        """Wait until nothing is pending in the index, over all users.

        `encoded`: also until the encoder has read everything, which takes a fiftieth of a second
        for a short text and a quarter for a passage.

        Raises DeadlineExceeded: the backlog did not shrink for `stall_s` seconds.
        """
        lowest: int | None = None
        moved = time.monotonic()
        while True:
            backlog = yield from self._backlog()
            if on_progress is not None:
                on_progress(backlog)
            waiting = backlog.waiting(encoded=encoded)
            if waiting == 0:
                return backlog
            if waiting is not None and (lowest is None or waiting < lowest):
                lowest, moved = waiting, time.monotonic()
            if time.monotonic() - moved > stall_s:
                raise DeadlineExceeded(
                    f"{waiting or 'Some'} memories are still waiting to be indexed after "
                    f"{stall_s:.0f} s without progress: look at GET /api/memory/diagnostics."
                )
            yield Pause(poll_s)

    @call
    def stats(self, **who: Unpack[Reader]) -> Talk[insights.StatsBody]:
        """What the user's tiers hold and how they do."""
        return (yield from self.reading(insights.StatsAnswer, f"{MEMORY}/stats", **who)).stats

    @call
    def growth(
        self, *, days: int | None = None, **who: Unpack[Reader]
    ) -> Talk[insights.GrowthAnswer]:
        """Memories per day, oldest first."""
        return self.reading(insights.GrowthAnswer, asked(f"{MEMORY}/growth", days=days), **who)

    @call
    def health(self, *, full: bool = False) -> Talk[insights.HealthAnswer]:
        """The components; `unhealthy` is an answer here, not an error.

        Raises DependencyDown: nothing listens there.
        """
        came = yield Request(method="GET", path=asked(f"{MEMORY}/health", full=full or None))
        if not isinstance(came, httpx.Response):
            raise unreachable(self.url, came)
        body = json_of(came)
        if came.is_error and "components" not in body:
            raise failure(came)
        return parse(insights.HealthAnswer, body)

    @call
    def version(self) -> Talk[str]:
        """The version of the service."""
        return (yield from self.reading(system.VersionAnswer, f"{SYSTEM}/version")).version

    @call
    def system_health(self) -> Talk[system.SystemHealthBody]:
        """Whether the servers behind it answer, and warnings."""
        return (yield from self.reading(system.SystemHealthAnswer, f"{SYSTEM}/health")).health

    @call
    def disk_space(self) -> Talk[system.DiskView]:
        """Room on the disk of the data directory."""
        return (yield from self.reading(system.DiskAnswer, f"{SYSTEM}/disk-space")).disk

    def _backlog(self) -> Talk[insights.BacklogView]:
        return (yield from self.reading(insights.DiagnosticsAnswer, f"{MEMORY}/diagnostics")).index
