"""Fills the DataGov tiers in the background after a start, when the settings ask for it."""

from __future__ import annotations

import logging

from rayapp.bulk.kinds import DATAGOV
from rayapp.bulk.model import Job, JobState, JobWish
from rayapp.bulk.service import JobsService
from rayapp.core.errors import Conflict
from rayapp.core.settings.model import DatagovSettings

log = logging.getLogger("rayapp.preload")
REQUESTED_BY = "maintenance"
CKAN = "ckan"


class DatagovPreload:
    """Asks for an ingest after every start: one that finds nothing new writes nothing."""

    def __init__(self, jobs: JobsService, settings: DatagovSettings) -> None:
        self._jobs = jobs
        self._settings = settings

    async def run(self) -> bool:
        """True when nothing is left to do. Raises JobsDown."""
        if not self._settings.preload:
            return True
        # A folder is named by the settings alone: a job that is asked for names no path.
        params = {} if self._settings.source is not None else {"source": CKAN}
        while True:
            try:
                job = await self._jobs.submit(DATAGOV, params, requested_by=REQUESTED_BY)
            except Conflict as busy:
                other = await self._jobs.get(str(busy.details["job_id"]))
                if await self._was_stopped(other):
                    # Begun anew, not resumed: its source, its settings and the texts that it
                    # wrote may be others by now, and what it wrote is not written again.
                    await self._jobs.wish(other.job_id, JobWish.CANCEL)
                    continue
                log.info("the open-data catalogue is not asked for: %s", busy.message)
                return other.state in (JobState.SUBMITTED, JobState.RUNNING)
            log.info("the open-data catalogue is being loaded: job %s", job.job_id)
            return True

    async def _was_stopped(self, job: Job) -> bool:
        """Ours, begun, and without a driver although nobody asked for a pause or an end."""
        if job.requested_by != REQUESTED_BY or job.wish is not JobWish.RUN:
            return False
        handed_back = job.planned and job.state is JobState.SUBMITTED
        if handed_back or job.state is JobState.PAUSED:
            return True
        return any(lost.job_id == job.job_id for lost in await self._jobs.orphaned())
