"""Starts a stored job as a service does, from a process of the cluster; prints what Ray knows."""

import asyncio
import json
import sys
import time
from pathlib import Path

from jobs.joining import connect
from rayapp.container import bootstrap
from rayapp.local.stack import stack

LIMIT_S = 150.0


async def submit(folder: Path, job_id: str) -> None:
    settings = stack.attach(folder)
    connect(settings, "toy")
    from ray.job_submission import JobSubmissionClient

    from rayapp.serve.job_launcher import RayJobLauncher, cluster_address

    settings = settings.model_copy(
        update={"data": settings.data.model_copy(update={"dir": folder})}
    )
    job = await bootstrap.Stores(settings).jobs.get(job_id)
    assert job is not None
    launcher = RayJobLauncher(settings, package="tests.integration.toys")
    submission_id = await launcher.launch(job)
    client = JobSubmissionClient(cluster_address())
    end = time.monotonic() + LIMIT_S
    while True:
        known = next(one for one in client.list_jobs() if one.submission_id == submission_id)
        if known.status.is_terminal() or time.monotonic() > end:
            break
        await asyncio.sleep(0.3)
    print(
        json.dumps(
            {
                "submission_id": submission_id,
                "status": known.status.value,
                "metadata": known.metadata,
                "entrypoint": known.entrypoint,
                "env": (known.runtime_env or {}).get("env_vars"),
                "log": client.get_job_logs(submission_id)[-2_000:],
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(submit(Path(sys.argv[1]), sys.argv[2]))
