"""How a run of a bulk job ends, read from its row alone: drivers and followers say the same."""

from __future__ import annotations

from dataclasses import dataclass

from rayapp.bulk.model import Job, JobState, JobWish
from rayapp.bulk.rules import can_be_taken

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
    return job.final or (job.state is JobState.PAUSED and job.wish is not JobWish.RUN)


def _completed(job: Job) -> JobResult:
    complete = (job.report or {}).get("complete") is True
    good = complete and job.failed == 0
    text = f"Job {job.job_id} is done: {job.done} records"
    if not good:
        text += f", {job.failed} failed" if job.failed else ", not all of it was done"
    code = EXIT_DONE if good else EXIT_INCOMPLETE
    return JobResult(job=job, exit_code=code, sentence=f"{text}.")
