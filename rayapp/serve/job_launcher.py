"""Starts the driver of a stored job as a Ray job, so that it is in the cluster's list of jobs."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import ray

from rayapp.bulk.model import Job
from rayapp.core.errors import InvalidInput, JobsDown
from rayapp.core.settings.load import ENV_EXTRA, ENV_PREFIX
from rayapp.core.settings.model import Settings

if TYPE_CHECKING:
    from ray.job_submission import JobSubmissionClient

KIND = re.compile(r"[a-z][a-z_]{0,63}")
RETRY_AFTER_S = 5.0
# A cluster that does not answer within this is away, seconds.
TIMEOUT_S = 30.0
# Last parts of the settings that name a server or a key: a URI may hold a password.
SECRETS = frozenset({"URI", "URL", "BASE_URL", "API_KEY", "SESSION_SECRET", "USER_KEYS"})


class RayJobLauncher:
    """Implements `JobLauncher`, inside a replica or any other process that Ray knows.

    `package`: where the module of a kind is.
    """

    def __init__(self, settings: Settings, *, package: str = "jobs") -> None:
        self._settings, self._package = settings, package
        self._client: JobSubmissionClient | None = None
        # Its own: Ray's client waits without a limit for a dashboard that hangs, and would take one
        # thread after the other from all that the process does beside its loop.
        self._threads = ThreadPoolExecutor(1, "job-launch")

    async def launch(self, job: Job) -> str:
        """A cluster that answers too late may start the driver all the same: the store of the
        jobs decides whether it still takes its job."""
        if not KIND.fullmatch(job.kind):
            raise InvalidInput(f"{job.kind!r} is no kind of job: use letters and underscores.")
        try:
            async with asyncio.timeout(TIMEOUT_S):
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._threads, self._submit, job)
        except TimeoutError:
            raise _down(f"no answer within {TIMEOUT_S:.0f} s") from None
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            self._client = None
            raise _down(str(error)) from error

    def _submit(self, job: Job) -> str:
        # Imported when a job is started: most replicas never do.
        from ray.job_submission import JobSubmissionClient

        if self._client is None:
            self._client = JobSubmissionClient(cluster_address())
        # One job may need several drivers, and Ray takes an id only once.
        submission_id = f"{job.kind}-{job.job_id}-{uuid.uuid4().hex[:6]}"
        return self._client.submit_job(
            entrypoint=f"{sys.executable} -m {self._package}.{job.kind} --job-id {job.job_id}",
            submission_id=submission_id,
            metadata={"job_name": job.kind, "job_id": job.job_id},
            runtime_env={"env_vars": job_environment(self._settings, os.environ)},
        )


def cluster_address() -> str:
    """Of the cluster this process is part of; its dashboard is found through it."""
    if ray.is_initialized():
        return str(ray.get_runtime_context().gcs_address)
    return os.environ.get("RAY_ADDRESS") or "auto"


def job_environment(settings: Settings, env: Mapping[str, str]) -> dict[str, str]:
    """What a driver is told. Ray keeps it and shows it in the list of jobs, so no secret is in it.

    The folder is enough where a local stack runs. Elsewhere the driver finds the servers in the
    environment of its node, which has them from `ray start` (MONGODB_URI, QDRANT_URL, REDIS_URL),
    and is told how else this process was set; its profile too, which the arguments of the
    application may have chosen (`deploy.application`).
    """
    folder = settings.data.dir.resolve()
    found = {f"{ENV_PREFIX}DATA__DIR": str(folder)}
    if _has_stack(folder):
        return found
    found["RAYAPP_PROFILE"] = settings.profile
    return {name: value for name, value in env.items() if _is_told(name)} | found


def _is_told(name: str) -> bool:
    if not name.startswith(ENV_PREFIX) or name.rsplit("__", 1)[-1].upper() in SECRETS:
        return False
    return name == "RAYAPP_CONFIG" or name not in ENV_EXTRA


def _has_stack(folder: Path) -> bool:
    return (folder / "run" / "state.json").exists()


def _down(text: str) -> JobsDown:
    return JobsDown(
        "The cluster takes no jobs: its dashboard must run (setting ray.dashboard); or start the "
        "job with `rayapp job`.",
        details={"error": text[:300]},
        retry_after_s=RETRY_AFTER_S,
    )
