"""What both job stores agree on, and how a run ends as its row says. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from rayapp.bulk.model import DesiredState, Job, JobState, PartitionRow, Plan, Step
from rayapp.core.errors import Conflict, InvalidInput, NotFound

# Codes of refused writes: another driver has the job; no driver takes it any more.
LEASE_LOST, JOB_FINAL = "lease_lost", "job_final"
# People read them in a report; more would make every checkpoint slower.
SAMPLES_KEPT = 20
# Nobody drives a job in one of these, so nobody would ever see a wish to cancel it.
IDLE_STATES = frozenset({JobState.SUBMITTED, JobState.PAUSED})
# Out of these no driver ever takes a job again; `can_be_taken` has the rule for failed ones.
TAKEN_NO_MORE = frozenset({JobState.COMPLETED, JobState.CANCELLED})
# A job that failed longer ago is begun anew: most of what its checkpoints say is out of date.
RESUME_FAILED_WITHIN = timedelta(hours=24)


def plain(value: Any) -> Any:
    """`value` as JSON gives it back, its own copy; InvalidInput when it is not plain JSON."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        raise InvalidInput(
            "A job keeps plain JSON only: send text, finite numbers, lists and objects."
        ) from None


def plain_step(step: Step) -> Step:
    """`step` in its stored form; its count names become field names, so they are checked."""
    for name in step.counts:
        if not name or "." in name or name.startswith("$") or "\x00" in name:
            raise InvalidInput(
                f"The count name {name!r} cannot be stored: use a name without dots and dollars."
            )
    return replace(
        step,
        cursor=plain(step.cursor),
        counts=plain(dict(step.counts)),
        samples=plain(list(step.samples)[:SAMPLES_KEPT]),
    )


def plain_plan(plan: Plan) -> Plan:
    """`plan` in its stored form; InvalidInput when two partitions have one index."""
    indexes = [partition.index for partition in plan.partitions]
    if len(set(indexes)) != len(indexes):
        raise InvalidInput("Two partitions of a plan have one index: number them from 0.")
    partitions = [replace(one, payload=plain(one.payload)) for one in plan.partitions]
    return replace(plan, partitions=partitions, facts=plain(plan.facts))


def sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts by name over all of `counts`."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def can_be_taken(job: Job) -> bool:
    """A failed job goes on from its checkpoints. One that failed before its plan was stored has
    none: whoever asked for it was told so, and a driver that comes late must not run it."""
    if job.state is JobState.FAILED:
        return job.planned
    return job.state not in TAKEN_NO_MORE


def can_be_resumed(job: Job, now: datetime) -> bool:
    """It can be taken, and its checkpoints are still worth something."""
    if job.state is not JobState.FAILED:
        return not job.final
    at = job.finished_at or job.updated_at or job.created_at
    return can_be_taken(job) and now - at <= RESUME_FAILED_WITHIN


def driven_by(row: Job | PartitionRow, fence: int) -> None:
    """Refuse a driver that is not the one of `row`."""
    if row.fence != fence:
        raise lease_lost(row.job_id)


def lease_lost(job_id: str) -> Conflict:
    return Conflict(
        f"Another driver has job {job_id} and goes on with it: stop this one.",
        code=LEASE_LOST,
        details={"job_id": job_id},
    )


def job_final(job_id: str, state: JobState) -> Conflict:
    return Conflict(
        f"Job {job_id} is {state.value}: start a new one.",
        code=JOB_FINAL,
        details={"job_id": job_id, "state": state.value},
    )


def no_job(job_id: str) -> NotFound:
    return NotFound(f"No job {job_id}: check the id.", details={"job_id": job_id})


def no_partition(job_id: str, index: int) -> NotFound:
    return NotFound(
        f"Job {job_id} has no partition {index}: plan it first.",
        details={"job_id": job_id, "index": index},
    )


# Exit codes of every job.
EXIT_DONE, EXIT_BAD_ARGUMENTS, EXIT_INCOMPLETE, EXIT_DEPENDENCY = 0, 2, 3, 4
# How a job is left that has not completed, and what comes next.
LEFT = {
    JobState.PAUSED: ("was paused", "Run it again to go on."),
    JobState.CANCELLED: ("was cancelled", ""),
    JobState.SUBMITTED: (
        "was interrupted",
        "Its driver had to end: the service starts the next one, or run it again to go on.",
    ),
    JobState.RUNNING: ("goes on in another process", ""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """How a run ended: `sentence` tells people, the exit code tells scripts."""

    job: Job
    exit_code: int
    sentence: str


def result_of(job: Job) -> JobResult:
    """What the last driver of `job` said and ended with."""
    if job.state is JobState.COMPLETED:
        return _completed(job)
    if job.state is JobState.FAILED:
        code = EXIT_INCOMPLETE if job.exit_code is None else job.exit_code
        sentence = job.error or f"Job {job.job_id} failed: see its log."
        return JobResult(job=job, exit_code=code, sentence=sentence)
    how, next_step = LEFT[job.state]
    text = f"Job {job.job_id} {how} after {job.done} of {job.total} records."
    return JobResult(job=job, exit_code=EXIT_INCOMPLETE, sentence=f"{text} {next_step}".strip())


def has_ended(job: Job) -> bool:
    """No driver takes it again."""
    return job.final and not can_be_taken(job)


def at_rest(job: Job) -> bool:
    """Its driver has ended it or left it as people asked; whoever followed it ends, too."""
    return job.final or (job.state is JobState.PAUSED and job.wish is not DesiredState.RUN)


def _completed(job: Job) -> JobResult:
    complete = (job.report or {}).get("complete") is True
    good = complete and job.failed == 0
    text = f"Job {job.job_id} is done: {job.done} records"
    if not good:
        text += f", {job.failed} failed" if job.failed else ", not all of it was done"
    code = EXIT_DONE if good else EXIT_INCOMPLETE
    return JobResult(job=job, exit_code=code, sentence=f"{text}.")
