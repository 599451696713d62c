"""Fills the DataGov tiers in the background after a start, when the settings ask for it."""

from __future__ import annotations

import logging

from rayapp.domain.job_kinds import DATAGOV
from rayapp.domain.jobs import Job, JobState
from rayapp.errors import Conflict
from rayapp.services.jobs import JobsService
from rayapp.settings import DatagovSettings

log = logging.getLogger("rayapp.preload")
REQUESTED_BY = "maintenance"
# Jobs looked through for the last one that was completed.
RECENT_JOBS = 50
CKAN = "ckan"


class DatagovPreload:
    """Asks for one ingest of the catalogue, unless the last completed one is of the same source."""

    def __init__(self, jobs: JobsService, settings: DatagovSettings) -> None:
        self._jobs = jobs
        self._settings = settings

    async def run(self) -> bool:
        """True when nothing is left to do. Raises JobsDown."""
        if not self._settings.preload:
            return True
        done = [
            job
            for job in await self._jobs.recent(DATAGOV, RECENT_JOBS)
            if job.state is JobState.COMPLETED
        ]
        if done and self._is_same(done[0]):
            return True
        # A folder is named by the settings alone: a job that is asked for names no path.
        params = {} if self._settings.source is not None else {"source": CKAN}
        try:
            job = await self._jobs.submit(DATAGOV, params, requested_by=REQUESTED_BY)
        except Conflict:
            log.info("the open-data catalogue is being loaded already")
            return True
        log.info("the open-data catalogue is being loaded: job %s", job.job_id)
        return True

    def _is_same(self, job: Job) -> bool:
        wanted = CKAN if self._settings.source is None else str(self._settings.source)
        return bool(job.facts.get("source", job.params.get("source")) == wanted)
