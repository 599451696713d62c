"""Bodies and answers of the operations routes that the first client calls."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from rayapp.core.ids import USER_ID_PATTERN
from rayapp.wire.bases import (
    Answer,
    Flag,
    IdempotencyKey,
    Lenient,
    Strict,
    TierName,
    UtcTime,
    Whole,
)
from rayapp.wire.jobs import JobWord

USER_ALIASES = {"userId": "user_id"}
CONSISTENCY_ALIASES = {
    "dryRun": "dry_run",
    "sampleSize": "sample_size",
    "sample": "sample_size",
}
# Points of one synchronous check at most (client contract).
MAX_SAMPLE = 5_000
ProgressWord = Literal["running", "paused", "completed", "failed"]


def _user(value: str) -> str:
    if not USER_ID_PATTERN.fullmatch(value):
        raise ValueError("must be 1 to 128 characters of letters, digits and . _ : @ -")
    return value


UserId = Annotated[
    Annotated[str, AfterValidator(_user)] | None,
    Field(description="Items of this user; without it those of all users."),
]


class ReindexBody(Strict):
    """Whose vectors are made anew even where the old ones fit; all others are copied then."""

    tier: TierName | None = None
    since: UtcTime | None = Field(None, description="Items that changed then or later.")
    user_id: UserId = None
    idempotency_key: IdempotencyKey = None


class DeferredBody(Strict):
    """Whose items are made due."""

    user_id: UserId = None
    idempotency_key: IdempotencyKey = None


class DeferredQuery(Lenient):
    """Whose items are counted."""

    user_id: UserId = None


class ConsistencyBody(Strict):
    """A sampled look now, or with `full` a job over everything."""

    dry_run: Flag = Field(False, description="Repair nothing.")
    sample_size: Annotated[Whole, Field(ge=1, le=MAX_SAMPLE)] | None = Field(
        None, description="Points to look at; consistency.sample when it is not given."
    )
    full: Flag = Field(False, description="Submit a sweep over all points and answer at once.")
    idempotency_key: IdempotencyKey = None


class DatagovBody(Strict):
    """Where the catalogue is read from."""

    source: Literal["ckan"] | None = Field(
        None, description="`ckan` for the live catalogue; without it datagov.source decides."
    )
    idempotency_key: IdempotencyKey = None


class BreakerBody(Lenient):
    """`reset` closes the breakers by hand."""

    action: str = Field(
        max_length=64,
        description="`reset`, or `degraded`.",
        json_schema_extra={"enum": ["reset", "degraded"]},
    )
    enabled: Flag | None = Field(None, description="With `degraded`; false is `reset`.")
    idempotency_key: IdempotencyKey = None


class ProgressView(Answer):
    """A job under the names that the first client reads; `state` is ours, with all six words."""

    jobId: str
    status: ProgressWord
    state: JobWord
    stage: str
    totalItems: int
    processedItems: int
    failedItems: int
    startedAt: datetime | None
    updatedAt: datetime | None
    lastProcessedId: str | None
    lastProcessedAt: datetime | None
    errorMessage: str | None
    durationMs: int


class ProgressAnswer(Answer):
    """`progress` is null before the first job."""

    success: Literal[True]
    progress: ProgressView | None
    degraded: list[str]


class SubmittedView(Answer):
    """A job that was submitted and has done nothing yet; `follow` is the path that tells of it."""

    success: Literal[True]
    status: Literal["submitted"]
    jobId: str
    kind: str
    follow: str
    message: str


class SubmittedAnswer(Answer):
    """The job runs in the background: follow it by its id."""

    success: Literal[True]
    result: SubmittedView
    degraded: list[str]
    duplicate: bool | None = None


class PausedAnswer(Answer):
    """`paused` False: no such job was going on."""

    success: Literal[True]
    paused: bool
    jobId: str | None
    message: str
    degraded: list[str]
    duplicate: bool | None = None


class ResumedAnswer(Answer):
    """`resumed` False: there is none to go on with."""

    success: Literal[True]
    resumed: bool
    jobId: str | None
    message: str
    degraded: list[str]
    duplicate: bool | None = None


class CancelledAnswer(Answer):
    """`cancelled` False: no such job was going on."""

    success: Literal[True]
    cancelled: bool
    jobId: str | None
    message: str
    degraded: list[str]
    duplicate: bool | None = None


class DeferredCountAnswer(Answer):
    """How many items wait for the index."""

    success: Literal[True]
    pendingReindex: int
    message: str
    degraded: list[str]


class DeferredResult(Answer):
    """`hastened` items are due now."""

    success: Literal[True]
    hastened: int
    pendingReindex: int


class DeferredAnswer(Answer):
    """The indexer does the rest within seconds."""

    success: Literal[True]
    result: DeferredResult
    message: str
    degraded: list[str]
    duplicate: bool | None = None


class IssueView(Answer):
    """One difference between the truth and the index."""

    type: Literal[
        "missing_in_qdrant",
        "orphan_in_qdrant",
        "payload_mismatch",
        "inactive_in_index",
        "vector_mismatch",
        "duplicate_point",
    ]
    memoryId: str
    userId: str
    pointId: str
    details: str
    repaired: bool


class ConsistencyResult(Answer):
    """`found` and `repaired` count per kind; no job did this, so `jobId` is null."""

    success: Literal[True]
    status: Literal["completed"]
    jobId: None
    checkedAt: datetime
    durationMs: int
    totalChecked: int
    issuesFound: int
    issuesRepaired: int
    issues: list[IssueView]
    found: dict[str, int]
    repaired: dict[str, int]
    quarantined: int
    mongoCount: int
    qdrantCount: int


class ConsistencyAnswer(Answer):
    """What a look found, or the job that was submitted for a full sweep: `result.status` says."""

    success: Literal[True]
    result: Annotated[ConsistencyResult | SubmittedView, Field(discriminator="status")]
    degraded: list[str]
    duplicate: bool | None = None


class DatagovStatusAnswer(Answer):
    """The newest ingestion, and whether the service fills the tiers by itself."""

    success: Literal[True]
    preload: bool
    source: Literal["folder", "ckan"]
    progress: ProgressView | None
    report: dict[str, Any] | None
    degraded: list[str]


class BreakerView(Answer):
    """One breaker."""

    isOpen: bool
    failureCount: int
    successCount: int
    lastFailure: datetime | None
    threshold: int
    openDurationMs: int
    lastErrorCategory: str | None
    lastError: str | None


class BreakerAnswer(Answer):
    """The breaker of the embedder; `breakers` are all that a request meets, by dependency.

    Each has `state`, `lastError`, `next_probe_s` (0: now, null: closed), and in how many of its
    `replicas` it is `tripped`; shown is the worst one.
    """

    success: Literal[True]
    circuitBreaker: BreakerView
    breakers: dict[str, dict[str, Any]]
    embeddingServiceHealthy: bool
    endpoint: str | None
    isOperational: bool
    isDegradedMode: bool
    diagnostics: dict[str, Any]
    recommendations: list[str]
    message: str | None = None
    degraded: list[str]
    duplicate: bool | None = None
