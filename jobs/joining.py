"""How the driver of a job joins the Ray cluster: under its name, and within a limit."""

import faulthandler
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from rayapp.bulk.rules import EXIT_DEPENDENCY
from rayapp.core.errors import ConfigError, JobsDown
from rayapp.core.settings.model import Settings

# Set by Ray in the driver of a submitted job.
RAY_JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
# A driver joins in 1 to 5 s, on a crowded machine in 20.
JOIN_LIMIT_S = 60.0
STDERR = 2  # the file descriptor, whatever stands in for `sys.stderr`


def connect(settings: Settings, name: str) -> None:
    """Join the cluster, whose dashboard shows `name`.

    Raises JobsDown when there is none, ConfigError without an address.
    """
    import ray

    # In the driver of a submitted job Ray's own address wins.
    address = os.environ.get("RAY_ADDRESS") or settings.ray.address
    if not address:
        raise ConfigError("No Ray cluster is named: run `rayapp up`, or set RAY_ADDRESS.")
    try:
        with _limited(address, JOIN_LIMIT_S):
            ray.init(
                address=address,
                job_config=_job_config(name),
                log_to_driver=False,
                configure_logging=False,
            )
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = (str(error).splitlines() or [""])[0][:200]
        raise JobsDown(
            f"No Ray cluster answers at {address}: see `rayapp status` ({first})."
        ) from error


def _job_config(name: str) -> Any:
    """None for a submitted job: Ray hands its driver the one with the launcher's metadata."""
    from ray.job_config import JobConfig

    if os.environ.get(RAY_JOB_CONFIG):
        return None
    return JobConfig(metadata={"job_name": name})


def submission_id() -> str | None:
    """Of the Ray job whose driver this process is; None when it is none."""
    try:
        metadata = orjson.loads(os.environ.get(RAY_JOB_CONFIG) or "{}").get("metadata") or {}
    except (ValueError, AttributeError):
        return None
    found = metadata.get("job_submission_id")
    return str(found) if found else None


@contextmanager
def _limited(address: str, limit_s: float) -> Iterator[None]:
    """End the process when the block takes longer: some waits of Ray have no limit and cannot be
    interrupted. Nothing was begun by then."""
    timer = threading.Timer(limit_s, _give_up, (address, limit_s))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _give_up(address: str, limit_s: float) -> None:
    faulthandler.dump_traceback(file=STDERR)
    sentence = f"The Ray cluster at {address} did not let this job in within {limit_s:g} s"
    print(f"{sentence}: run it again, and see `rayapp status` if it stays so.", flush=True)
    os._exit(EXIT_DEPENDENCY)
