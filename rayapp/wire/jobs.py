"""Bodies, queries and answers of the job routes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from rayapp.wire.bases import Answer, Strict

JobWord = Literal["submitted", "running", "paused", "completed", "failed", "cancelled"]
MAX_LISTED = 200


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


class PartitionsView(Answer):
    """How far the partitions are; `slowest` are those not done, the least recently moved first."""

    total: int
    done: int
    waiting: int
    failed_records: int
    slowest: list[dict[str, Any]]
    samples: list[Any]


class JobListAnswer(Answer):
    """Jobs, newest first."""

    success: Literal[True]
    jobs: list[JobView]
    total: int
    degraded: list[str]


class JobAnswer(Answer):
    """One job with the state of its partitions."""

    success: Literal[True]
    job: JobView
    partitions: PartitionsView
    degraded: list[str]


class JobActionAnswer(Answer):
    """The job after what was asked; it acts on it after its current step."""

    success: Literal[True]
    job: JobView
    degraded: list[str]
    duplicate: bool | None = None


class JobEvent(Answer):
    """The data of one `progress` or `end` event."""

    job: JobView
