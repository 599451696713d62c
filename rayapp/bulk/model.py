"""Values of bulk jobs: what a job is, what it is cut into, how far it is. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Any
from uuid import UUID


def lease_of(kind: str) -> str:
    """The lease whose holder drives a job of this kind."""
    return f"job:{kind}"


class JobState(StrEnum):
    """`submitted` waits for a driver, the first or the next; the last three are final."""

    SUBMITTED = "submitted"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL_STATES = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


class DesiredState(StrEnum):
    """What people ask of a job; its workers look at it after every step."""

    RUN = "run"
    PAUSE = "pause"
    CANCEL = "cancel"


class PartitionState(StrEnum):
    WAITING = "waiting"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One independent share of a job. `payload` is plain JSON and says what the share is."""

    index: int
    payload: Mapping[str, Any]


def shares_of(payloads: Iterable[Mapping[str, Any]]) -> list[Partition]:
    """A partition for each of them, numbered in their order."""
    return [Partition(index=index, payload=payload) for index, payload in enumerate(payloads)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a job will do.

    Attributes:
        total: records it expects to look at, for the progress bar.
        facts: what was decided once for the whole job (a collection's name, a watermark); plain
            JSON, stored with the job, so that a resumed job goes on with the same.
    """

    partitions: Sequence[Partition]
    total: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step of a partition did; the counts are of this step alone.

    Attributes:
        cursor: where the next step goes on, plain JSON; None when the partition is finished.
        done: records looked at.
        failed: records that could not be worked on.
        counts: further counts by name, added up over all steps of the job.
        samples: a few plain JSON values for the report.
    """

    cursor: Mapping[str, Any] | None
    done: int = 0
    failed: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    samples: Sequence[Any] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """A stored partition with its checkpoint. `fence` is that of the driver it belongs to."""

    job_id: str
    index: int
    payload: Mapping[str, Any]
    state: PartitionState = PartitionState.WAITING
    cursor: Mapping[str, Any] | None = None
    done: int = 0
    failed: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    samples: Sequence[Any] = ()
    steps: int = 0
    fence: int = 0
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A stored job.

    Attributes:
        params: what was asked, plain JSON; with `kind` it says whether a job can be resumed.
        facts: of its plan; empty until it was planned.
        total, done, failed: records; `done` counts failed ones too. A plan only estimates the
            total, and stores that arrive meanwhile are looked at too: it is never below `done`.
        fence: of the driver that runs it; a driver of a lower one writes nothing.
        attempts: drivers that died, and the present one; one that stopped in order counts not.
        submission_id: of the Ray job that runs it.
        error: one sentence, when it failed.
        exit_code: of the driver that failed, so that whoever followed it ends with the same.
    """

    job_id: str
    kind: str
    params: Mapping[str, Any]
    created_at: datetime
    state: JobState = JobState.SUBMITTED
    wish: DesiredState = DesiredState.RUN
    planned: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    total: int = 0
    done: int = 0
    failed: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    stage: str = ""
    report: Mapping[str, Any] | None = None
    error: str | None = None
    exit_code: int | None = None
    fence: int = 0
    attempts: int = 0
    submission_id: str | None = None
    requested_by: str = ""
    started_at: datetime | None = None
    updated_at: datetime | None = None
    finished_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.done > self.total:
            object.__setattr__(self, "total", self.done)

    @property
    def final(self) -> bool:
        return self.state in FINAL_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The end of a job: its report, and whether all of it was done (exit code 0 or 3)."""

    report: Mapping[str, Any]
    complete: bool = True


UUID_SPACE = 1 << 128


def point_ranges(parts: int) -> list[tuple[str | None, str | None]]:
    """`parts` equal ranges (after, until] of all point ids; None is an open end.

    Point ids are uuid5 values, so equal ranges hold about equally many of them, and both stores
    order their lower-case text as they order the values.
    """
    if parts < 1:
        raise ValueError("A job needs at least one partition.")
    bounds = [None, *(uuid_text(UUID_SPACE * n // parts - 1) for n in range(1, parts)), None]
    return list(pairwise(bounds))


def uuid_text(value: int) -> str:
    """`value`, 0 up to `UUID_SPACE` (not included), as the text of a point id."""
    return str(UUID(int=value))
