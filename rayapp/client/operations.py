"""Client calls about bulk jobs and operations; they need a key with the scope `admin`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Literal
from urllib.parse import quote, urlencode

from rayapp.client.calls import Calls
from rayapp.client.models import (
    JobListReply,
    JobReply,
    JobStatus,
    SubmitReply,
    SweepReply,
)
from rayapp.errors import DeadlineExceeded

JOBS = "/api/memory/jobs"
OPS = "/api/memory/ops"
ENDED = frozenset({"completed", "failed", "cancelled"})
POLL_S = 0.5  # between two looks at a job: people see that as motion
STALL_S = 300.0  # a job that shows no sign of life for this long is stuck, not slow


class OperationCalls(Calls):
    """The calls."""

    async def reindex(
        self, *, tier: str | None = None, since: str | None = None, user_id: str | None = None
    ) -> str:
        """Submit a reindex; the id of its job.

        The conditions name items whose vectors are made anew even where the old ones fit.

        Raises:
            Conflict: code `busy`, while another one has not ended.
            DependencyDown: code `jobs_down`, when the cluster takes no jobs.
        """
        asked = {"tier": tier, "since": since, "user_id": user_id}
        body = {name: value for name, value in asked.items() if value is not None}
        return (await self.write(SubmitReply, f"{OPS}/reindex", body)).result.job_id

    async def reindex_rollback(self) -> str:
        """Submit the way back to the collection before the last reindex; the id of its job."""
        return (await self.write(SubmitReply, f"{OPS}/reindex/rollback", {})).result.job_id

    async def ingest_datagov(self, source: Literal["ckan"] | None = None) -> str:
        """Submit the filling of the DataGov tiers; the id of its job."""
        body = {} if source is None else {"source": source}
        return (await self.write(SubmitReply, f"{OPS}/datagov", body)).result.job_id

    async def consistency(self, *, sample: int | None = None, repair: bool = True) -> SweepReply:
        """A sampled look now."""
        body: dict[str, object] = {"dry_run": not repair}
        if sample is not None:
            body["sample_size"] = sample
        return await self.write(SweepReply, f"{OPS}/consistency", body)

    async def sweep(self, *, repair: bool = True) -> str:
        """Submit a sweep over everything; the id of its job."""
        body = {"dry_run": not repair, "full": True}
        found = await self.write(SweepReply, f"{OPS}/consistency", body)
        assert found.result.job_id is not None
        return found.result.job_id

    async def jobs(self, kind: str | None = None, *, limit: int = 50) -> tuple[JobStatus, ...]:
        """Newest first."""
        asked = {"limit": limit} if kind is None else {"kind": kind, "limit": limit}
        return (await self.read(JobListReply, "GET", f"{JOBS}?{urlencode(asked)}")).jobs

    async def job(self, job_id: str) -> JobStatus:
        """One job. Raises NotFound."""
        return (await self.read(JobReply, "GET", _path(job_id))).job

    async def pause_job(self, job_id: str) -> JobStatus:
        """Its workers stop after their step. Raises Conflict when it has ended."""
        return await self._wish(job_id, "pause")

    async def resume_job(self, job_id: str) -> JobStatus:
        """Go on where it was. Raises Conflict when it has ended."""
        return await self._wish(job_id, "resume")

    async def cancel_job(self, job_id: str) -> JobStatus:
        """Its workers stop after their step, for good. Raises Conflict when it has ended."""
        return await self._wish(job_id, "cancel")

    async def wait_job(
        self,
        job_id: str,
        *,
        stall_s: float = STALL_S,
        poll_s: float = POLL_S,
        on_progress: Callable[[JobStatus], None] | None = None,
    ) -> JobStatus:
        """Wait until a job has ended or was paused; look at `state` to see which.

        Raises:
            DeadlineExceeded: nothing about it changed for `stall_s` seconds.
        """
        seen: tuple[object, ...] | None = None
        moved = time.monotonic()
        while True:
            job = await self.job(job_id)
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
            await asyncio.sleep(poll_s)

    async def _wish(self, job_id: str, name: str) -> JobStatus:
        return (await self.write(JobReply, f"{_path(job_id)}/{name}", {})).job


def _path(job_id: str) -> str:
    return f"{JOBS}/{quote(job_id, safe='')}"
