"""Bulk jobs over HTTP: the list, one job, what is asked of it, and its progress."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from rayapp.bulk.model import FINAL_STATES, Job, JobState, PartitionRow, PartitionState
from rayapp.memory.tiers import tier_name
from rayapp.wire.bases import Answer, Strict, Success, Written

JobWord = Literal["submitted", "running", "paused", "completed", "failed", "cancelled"]
MAX_LISTED = 200
# Partitions and samples shown of one job; all of them would be megabytes for a large one.
MAX_SHOWN = 20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class JobListQuery(Strict):
    """Query fields of the list of jobs."""

    kind: str | None = Field(None, max_length=64, description="Only jobs of this kind.")
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED)] = Field(50, description="Newest first.")


class JobEventsQuery(Strict):
    """Query fields of the progress stream."""

    follow: bool = Field(True, description="False: the present state once, then the end.")


class JobView(Answer):
    """A job. `done` counts failed records too; `counts` are those of its kind."""

    job_id: str
    kind: str
    state: JobWord
    wish: Literal["run", "pause", "cancel"] = Field(description="What was last asked of it.")
    stage: str = Field(description="What its driver does now: plan, partitions, verify.")
    params: dict[str, Any]
    facts: dict[str, Any]
    total: int
    done: int
    failed: int
    share: float = Field(description="0 to 1; 1 only when it has completed.")
    counts: dict[str, int]
    attempts: int = Field(description="Drivers that died, and the present one.")
    requested_by: str
    submission_id: str | None = Field(description="Of the Ray job that runs it.")
    error: str | None
    report: dict[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def from_job(cls, job: Job, documents: bool) -> Self:
        """`documents`: the caller's name of the books tier, which the parameters may name."""
        params = dict(job.params)
        if isinstance(tier := params.get("tier"), str):
            params["tier"] = tier_name(tier, documents)
        return cls.of(job, params=params, share=share_of(job))

    @property
    def final(self) -> bool:
        """It has ended, one way or another."""
        return self.state in FINAL_STATES


def share_of(job: Job) -> float:
    """How much is done; a plan's total is an estimate, so only a completed job is at 1."""
    if job.state is JobState.COMPLETED:
        return 1.0
    return min(0.99, round(job.done / job.total, 4)) if job.total else 0.0


class PartitionsView(Answer):
    """How far the partitions are; `slowest` are those not done, the least recently moved first."""

    total: int
    done: int
    waiting: int
    failed_records: int
    slowest: tuple[dict[str, Any], ...]
    samples: tuple[Any, ...]

    @classmethod
    def from_rows(cls, rows: Sequence[PartitionRow]) -> Self:
        waiting = [row for row in rows if row.state is not PartitionState.DONE]
        waiting.sort(key=lambda row: (row.updated_at or EPOCH, row.index))
        shown = ("index", "done", "failed", "steps", "updated_at")
        return cls(
            total=len(rows),
            done=len(rows) - len(waiting),
            waiting=len(waiting),
            failed_records=sum(row.failed for row in rows),
            slowest=tuple(
                {name: getattr(row, name) for name in shown} for row in waiting[:MAX_SHOWN]
            ),
            samples=tuple(sample for row in rows for sample in row.samples)[:MAX_SHOWN],
        )


class JobListAnswer(Success):
    """Jobs, newest first."""

    jobs: tuple[JobView, ...]
    total: int


class JobAnswer(Success):
    """One job with the state of its partitions."""

    job: JobView
    partitions: PartitionsView


class JobActionAnswer(Written):
    """The job after what was asked; it acts on it after its current step."""

    job: JobView


class JobEvent(Answer):
    """The data of one `progress` or `end` event."""

    job: JobView
