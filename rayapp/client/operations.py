"""Client calls about bulk jobs and operations; they need a key with the scope `admin`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

from rayapp.client.calls import Calls, Pause, Talk, asked, at, call, given
from rayapp.client.models import (
    JobListReply,
    JobReply,
    JobStatus,
    Plain,
    SubmitReply,
    SweepReply,
)
from rayapp.core.errors import DeadlineExceeded

JOBS = "/api/memory/jobs"
JOB = f"{JOBS}/{{job_id}}"
OPS = "/api/memory/ops"
ENDED = frozenset({"completed", "failed", "cancelled"})
POLL_S = 0.5  # between two looks at a job: people see that as motion
STALL_S = 300.0  # a job that shows no sign of life for this long is stuck, not slow


class OperationCalls(Calls):
    """The calls."""

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
        return (yield from self._submitted(f"{OPS}/reindex", body))

    @call
    def reindex_rollback(self) -> Talk[str]:
        """Submit the way back to the collection before the last reindex; the id of its job."""
        return (yield from self._submitted(f"{OPS}/reindex/rollback", {}))

    @call
    def reindex_progress(self) -> Talk[dict[str, Any] | None]:
        """The reindex that runs or ran last, None when there was none."""
        found = (yield from self.reading(Plain, f"{OPS}/reindex")).body
        progress: dict[str, Any] | None = found["progress"]
        return progress

    @call
    def reindex_wish(self, wish: Literal["pause", "resume", "cancel"]) -> Talk[dict[str, Any]]:
        """Ask something of the reindex that runs; the whole answer."""
        return (yield from self.writing(Plain, f"{OPS}/reindex/{wish}", {})).body

    @call
    def deferred(self, *, owner: str | None = None) -> Talk[int]:
        """How many memories wait for the index; `owner`: of this user alone."""
        path = asked(f"{OPS}/reindex/deferred", user_id=owner)
        return int((yield from self.reading(Plain, path)).body["pendingReindex"])

    @call
    def run_deferred(self, *, owner: str | None = None) -> Talk[dict[str, Any]]:
        """Try them again now; the whole answer. Raises DependencyDown without an embedder."""
        path = f"{OPS}/reindex/deferred"
        return (yield from self.writing(Plain, path, given({"user_id": owner}))).body

    @call
    def ingest_datagov(self, source: Literal["ckan"] | None = None) -> Talk[str]:
        """Submit the filling of the DataGov tiers; the id of its job."""
        return (yield from self._submitted(f"{OPS}/datagov", given({"source": source})))

    @call
    def datagov_status(self) -> Talk[dict[str, Any]]:
        """What the last filling of the DataGov tiers did."""
        return (yield from self.reading(Plain, f"{OPS}/datagov")).body

    @call
    def consistency(self, *, sample: int | None = None, repair: bool = True) -> Talk[SweepReply]:
        """A sampled look now."""
        body = given({"dry_run": not repair, "sample_size": sample})
        return (yield from self.writing(SweepReply, f"{OPS}/consistency", body))

    @call
    def sweep(self, *, repair: bool = True) -> Talk[str]:
        """Submit a sweep over everything; the id of its job."""
        body = {"dry_run": not repair, "full": True}
        return (yield from self._submitted(f"{OPS}/consistency", body))

    @call
    def breakers(self) -> Talk[dict[str, Any]]:
        """The state of the circuit breakers."""
        return (yield from self.reading(Plain, f"{OPS}/circuit-breaker")).body

    @call
    def reset_breakers(self) -> Talk[dict[str, Any]]:
        """Close them by hand. Raises DependencyDown while the embedder is still away."""
        path = f"{OPS}/circuit-breaker"
        return (yield from self.writing(Plain, path, {"action": "reset"})).body

    @call
    def set_degraded(self, enabled: bool) -> Talk[dict[str, Any]]:
        """Answer without the embedder, or with it again."""
        body = {"action": "degraded", "enabled": enabled}
        return (yield from self.writing(Plain, f"{OPS}/circuit-breaker", body)).body

    @call
    def jobs(self, kind: str | None = None, *, limit: int = 50) -> Talk[tuple[JobStatus, ...]]:
        """Newest first."""
        return (yield from self.reading(JobListReply, asked(JOBS, kind=kind, limit=limit))).jobs

    @call
    def job(self, job_id: str) -> Talk[JobStatus]:
        """One job. Raises NotFound."""
        return (yield from self._job(job_id))

    @call
    def pause_job(self, job_id: str) -> Talk[JobStatus]:
        """Its workers stop after their step. Raises Conflict when it has ended."""
        return (yield from self._wish(job_id, "pause"))

    @call
    def resume_job(self, job_id: str) -> Talk[JobStatus]:
        """Go on where it was. Raises Conflict when it has ended."""
        return (yield from self._wish(job_id, "resume"))

    @call
    def cancel_job(self, job_id: str) -> Talk[JobStatus]:
        """Its workers stop after their step, for good. Raises Conflict when it has ended."""
        return (yield from self._wish(job_id, "cancel"))

    @call
    def wait_job(
        self,
        job_id: str,
        *,
        stall_s: float = STALL_S,
        poll_s: float = POLL_S,
        on_progress: Callable[[JobStatus], None] | None = None,
    ) -> Talk[JobStatus]:
        """Wait until a job has ended or was paused; look at `state` to see which.

        Raises:
            DeadlineExceeded: nothing about it changed for `stall_s` seconds.
        """
        seen: tuple[object, ...] | None = None
        moved = time.monotonic()
        while True:
            job = yield from self._job(job_id)
            if on_progress is not None:
                on_progress(job)
            if job.state in ENDED or job.state == "paused":
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

    def _submitted(self, path: str, body: dict[str, Any]) -> Talk[str]:
        return (yield from self.writing(SubmitReply, path, body)).result.job_id

    def _job(self, job_id: str) -> Talk[JobStatus]:
        return (yield from self.reading(JobReply, at(JOB, job_id=job_id))).job

    def _wish(self, job_id: str, name: str) -> Talk[JobStatus]:
        path = f"{at(JOB, job_id=job_id)}/{name}"
        return (yield from self.writing(JobReply, path, {})).job
