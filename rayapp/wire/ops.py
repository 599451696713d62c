"""Operations over HTTP in the words of the first client: reindex, sweeps, DataGov, breakers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from rayapp.bulk.model import Job, JobState
from rayapp.core.ids import OWNER_ID_PATTERN
from rayapp.wire import bases
from rayapp.wire.jobs import JobWord

if TYPE_CHECKING:  # it needs numpy, which a client does without
    from rayapp.index.consistency.rules import SweepReport

# Points of one synchronous check at most (client contract).
MAX_SAMPLE = 5_000
ProgressWord = Literal["running", "paused", "completed", "failed"]
# The first client knows four words; `state` says which of ours it is.
PROGRESS_WORDS = {"submitted": "running", "cancelled": "failed"}
# The first client's names of kinds of drift; the others keep ours.
ISSUE_WORDS = {"missing_in_index": "missing_in_qdrant", "orphan_in_index": "orphan_in_qdrant"}


UserId = Annotated[
    Annotated[str, bases.matching(OWNER_ID_PATTERN)] | None,
    Field(description="Items of this user, `org/user` in a tenant; without it those of all users."),
]


class ReindexBody(bases.Strict, bases.Keyed):
    """Whose vectors are made anew even where the old ones fit; all others are copied then."""

    aliases: ClassVar = bases.camel("user_id")
    tier: bases.TierName | None = None
    since: bases.UtcTime | None = bases.optional("Items that changed then or later.")
    user_id: UserId = None


class DeferredBody(bases.Strict, bases.Keyed):
    """Whose items are made due."""

    aliases: ClassVar = bases.camel("user_id")
    user_id: UserId = None


class DeferredQuery(bases.Lenient):
    """Whose items are counted."""

    aliases: ClassVar = bases.camel("user_id")
    user_id: UserId = None


class ConsistencyBody(bases.Strict, bases.Keyed):
    """A sampled look now, or with `full` a job over everything."""

    aliases: ClassVar = {**bases.camel("dry_run", "sample_size"), "sample": "sample_size"}
    dry_run: bases.Flag = Field(False, description="Repair nothing.")
    sample_size: Annotated[bases.Whole, Field(ge=1, le=MAX_SAMPLE)] | None = bases.optional(
        "Points to look at; consistency.sample when it is not given."
    )
    full: bases.Flag = Field(
        False, description="Submit a sweep over all points and answer at once."
    )


class DatagovBody(bases.Strict, bases.Keyed):
    """Where the catalogue is read from."""

    source: Literal["ckan"] | None = bases.optional(
        "`ckan` for the live catalogue; without it datagov.source decides."
    )


class BreakerBody(bases.Lenient, bases.Keyed):
    """`reset` closes the breakers by hand."""

    action: str = Field(
        max_length=64,
        description="`reset`, or `degraded`.",
        json_schema_extra={"enum": ["reset", "degraded"]},
    )
    enabled: bases.Flag | None = bases.optional("With `degraded`; false is `reset`.")


class ProgressView(bases.Camel):
    """A job under the names that the first client reads; `state` is ours, with all six words."""

    job_id: str
    status: ProgressWord
    state: JobWord
    stage: str
    total_items: int = bases.path("total", alias="totalItems")
    processed_items: int = bases.path("done", alias="processedItems")
    failed_items: int = bases.path("failed", alias="failedItems")
    started_at: datetime | None
    updated_at: datetime | None
    # Partitions run side by side, so there is no single last one.
    last_processed_id: str | None = None
    last_processed_at: datetime | None
    error_message: str | None
    duration_ms: int

    @classmethod
    def from_job(cls, job: Job) -> Self:
        report = job.report or {}
        # It ran to its end and did not do what was asked, for a reason that its report names.
        refused = report.get("reason") if report.get("complete") is False else None
        cancelled = "Cancelled." if job.state is JobState.CANCELLED else None
        return cls.of(
            job,
            status="failed" if refused else PROGRESS_WORDS.get(job.state, job.state),
            last_processed_at=job.updated_at if job.done else None,
            error_message=job.error or cancelled or refused,
            duration_ms=duration_ms(job),
        )


def duration_ms(job: Job) -> int:
    """From its first driver to its end, or to its last sign of life."""
    until = job.finished_at or job.updated_at
    if job.started_at is None or until is None:
        return 0
    return max(0, round((until - job.started_at).total_seconds() * 1000))


class ProgressAnswer(bases.Success):
    """`progress` is null before the first job."""

    progress: ProgressView | None


class SubmittedView(bases.Camel):
    """A job that was submitted and has done nothing yet; `follow` is the path that tells of it."""

    # No counts: a zero would read as a result.
    success: Literal[True] = True
    status: Literal["submitted"] = "submitted"
    job_id: str
    kind: str
    follow: str
    message: str

    @classmethod
    def from_job(cls, job: Job) -> Self:
        return cls(
            job_id=job.job_id,
            kind=job.kind,
            follow=f"/api/memory/jobs/{job.job_id}",
            message=f"Submitted as job {job.job_id}: it has not done anything yet.",
        )


class SubmittedAnswer(bases.Written):
    """The job runs in the background: follow it by its id."""

    result: SubmittedView


class ReindexAnswer(bases.Written, bases.Camel):
    """What became of the newest reindex; no id: none is going on."""

    job_id: str | None
    message: str


class PausedAnswer(ReindexAnswer):
    """`paused` False: no such job was going on."""

    paused: bool


class ResumedAnswer(ReindexAnswer):
    """`resumed` False: there is none to go on with."""

    resumed: bool


class CancelledAnswer(ReindexAnswer):
    """`cancelled` False: no such job was going on."""

    cancelled: bool


class DeferredCountAnswer(bases.Success, bases.Camel):
    """How many items wait for the index."""

    pending_reindex: int
    message: str


class DeferredResult(bases.Camel):
    """`hastened` items are due now."""

    success: Literal[True] = True
    hastened: int
    pending_reindex: int


class DeferredAnswer(bases.Written):
    """The indexer does the rest within seconds."""

    result: DeferredResult
    message: str


class IssueView(bases.Camel):
    """One difference between the truth and the index."""

    type: Literal[
        "missing_in_qdrant",
        "orphan_in_qdrant",
        "payload_mismatch",
        "inactive_in_index",
        "vector_mismatch",
        "duplicate_point",
    ]
    memory_id: str
    user_id: str
    point_id: str
    details: str
    repaired: bool


class ConsistencyResult(bases.Camel):
    """`found` and `repaired` count per kind; no job did this, so `jobId` is null."""

    success: Literal[True] = True
    status: Literal["completed"] = "completed"
    job_id: None = None
    checked_at: datetime
    duration_ms: int
    total_checked: int = bases.path("checked", alias="totalChecked")
    issues_found: int
    issues_repaired: int
    issues: tuple[IssueView, ...]
    found: dict[str, int]
    repaired: dict[str, int]
    quarantined: int
    mongo_count: int = bases.path("truth_count", alias="mongoCount")
    qdrant_count: int = bases.path("index_count", alias="qdrantCount")

    @classmethod
    def from_report(cls, report: SweepReport) -> Self:
        return cls.of(
            report,
            duration_ms=round(report.duration_s * 1000),
            issues_found=sum(report.found.values()),
            issues_repaired=sum(report.repaired.values()),
            issues=[IssueView.of(one, type=issue_word(one.kind)) for one in report.issues],
            found={issue_word(kind): number for kind, number in report.found.items()},
            repaired={issue_word(kind): number for kind, number in report.repaired.items()},
        )


def issue_word(kind: str) -> str:
    return ISSUE_WORDS.get(kind, kind)


class ConsistencyAnswer(bases.Written):
    """What a look found, or the job that was submitted for a full sweep: `result.status` says."""

    result: Annotated[ConsistencyResult | SubmittedView, Field(discriminator="status")]


class DatagovStatusAnswer(bases.Success):
    """The newest ingestion, and whether the service fills the tiers by itself."""

    preload: bool
    source: Literal["folder", "ckan"]
    progress: ProgressView | None
    report: dict[str, Any] | None


class BreakerView(bases.Camel):
    """One breaker; when it failed last is not kept."""

    is_open: bool
    failure_count: int
    success_count: int
    last_failure: datetime | None = None
    threshold: int
    open_duration_ms: int
    last_error_category: str | None
    last_error: str | None


class BreakerAnswer(bases.Written, bases.Camel):
    """The breaker of the embedder; `breakers` are all that a request meets, by dependency.

    Each has `state`, `lastError`, `nextProbeS` (0: now, null: closed), and in how many of its
    `replicas` it is `tripped`; shown is the worst one.
    """

    circuit_breaker: BreakerView
    breakers: dict[str, dict[str, Any]]
    embedding_service_healthy: bool
    endpoint: str | None
    is_operational: bool
    is_degraded_mode: bool
    diagnostics: dict[str, Any]
    recommendations: tuple[str, ...]
    message: str | None = None
