"""Bodies, query fields and answers of upkeep: sizes, compaction, cleanup, moving in, reset."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from rayapp.admin.rules import QUIET_DAYS
from rayapp.memory.tiers import CORE_TIERS, Tier
from rayapp.wire.bases import Answer, Flag, IdempotencyKey, Lenient, TierName, Whole
from rayapp.wire.ops import UserId

CLEANUP_ALIASES = {"dryRun": "dry_run", "quietDays": "quiet_days"}
MIGRATE_ALIASES = {"dryRun": "dry_run", "userId": "user_id"}
SANITIZE_ALIASES = {"dryRun": "dry_run", "userId": "user_id", "nextCursor": "cursor"}
MAX_QUIET_DAYS = 3_650
MAX_CURSOR_CHARS = 1_000


def _core(tier: Tier) -> Tier:
    if tier not in CORE_TIERS:
        raise ValueError("is read-only; name a core tier")
    return tier


CoreTier = Annotated[TierName, AfterValidator(_core)]
Cursor = Annotated[str, Field(min_length=1, max_length=MAX_CURSOR_CHARS)] | None


class QuietQuery(Lenient):
    """Since when a session must have been quiet."""

    quiet_days: int = Field(
        QUIET_DAYS, ge=1, le=MAX_QUIET_DAYS, description="Days without a change."
    )


class CleanupBody(Lenient):
    """What to remove."""

    dry_run: Flag = Field(True, description="Only count; send false to remove.")
    quiet_days: Annotated[Whole, Field(ge=1, le=MAX_QUIET_DAYS)] = Field(
        QUIET_DAYS, description="Days without a change."
    )
    idempotency_key: IdempotencyKey = None


class MigrateQuery(Lenient):
    """Whose old memory bank."""

    user_id: UserId = Field(None, description="Default: the caller's user.")


class MigrateBody(Lenient):
    """Whose old memory bank is moved in."""

    user_id: UserId = Field(None, description="Default: the caller's user.")
    dry_run: Flag = Field(False, description="Only count what would be moved.")
    idempotency_key: IdempotencyKey = None


class VerifyBody(Lenient):
    """Whose old memory bank is looked at."""

    user_id: UserId = Field(None, description="Default: the caller's user.")


class SanitizeQuery(Lenient):
    """Where to look."""

    tier: CoreTier | None = Field(None, description="Only this tier.")
    cursor: Cursor = Field(None, description="`nextCursor` of the last answer.")


class SanitizeBody(Lenient):
    """Where to look, and whether to change anything."""

    tier: CoreTier | None = Field(None, description="Only this tier.")
    cursor: Cursor = Field(None, description="`nextCursor` of the last answer.")
    dry_run: Flag = Field(True, description="Only look; send false to change.")
    idempotency_key: IdempotencyKey = None


class ResetBody(Lenient):
    """The word that it is meant."""

    # A call without it is refused, with the warning that a missing field would not get.
    model_config = ConfigDict(json_schema_extra={"required": ["confirm"]})

    confirm: Flag = Field(
        False,
        description="Must be true: all memories of all users go.",
        json_schema_extra={"const": True},
    )


class CollectionView(Answer):
    """One collection of MongoDB."""

    name: str
    count: int
    size_bytes: int
    storage_bytes: int
    index_bytes: int
    free_bytes: int


class IndexSizeView(Answer):
    """The vector index behind the alias; a count is null where the engine has none."""

    collection: str | None
    points_count: int
    vectors_count: int
    segments_count: int | None


class SizesMeta(Answer):
    """Sums over all collections."""

    built_ms: float
    total_bytes: int
    free_bytes: int


class SizesAnswer(Answer):
    """What the data takes."""

    success: Literal[True]
    mongo: list[CollectionView]
    qdrant: IndexSizeView | None
    meta: SizesMeta
    degraded: list[str]


class CompactView(Answer):
    """One collection that had free space."""

    collection: str
    success: bool
    before_bytes: int
    after_bytes: int
    freed_bytes: int
    error: str | None


class CompactAnswer(Answer):
    """What the file system got back."""

    success: Literal[True]
    space_reclaimed_mb: float
    space_reclaimed_bytes: int
    collections_compacted: int
    compact_results: list[CompactView]
    complete: bool
    message: str
    timestamp: datetime


class SessionUserView(Answer):
    """A user id that was a browser session."""

    user_id: str
    memories: int
    last_change: datetime


class CleanupStats(Answer):
    """`users`: the first twenty of those that would go."""

    session_users: int
    orphaned_users: int
    orphaned_memories: int
    quiet_days: int
    users: list[SessionUserView]


class CleanupCountAnswer(Answer):
    """What a cleanup would remove."""

    success: Literal[True]
    stats: CleanupStats
    degraded: list[str]


class CleanupResult(Answer):
    """`remaining` users were not reached; ask again."""

    users_removed: int
    memories_removed: int
    rows_removed: int
    remaining: int


class CleanupAnswer(Answer):
    """What a cleanup removed, or would."""

    success: Literal[True]
    dryRun: bool
    stats: CleanupStats
    result: CleanupResult
    message: str
    degraded: list[str]
    duplicate: bool = False


class MigrationView(Answer):
    """`problems`: rows that cannot be moved, and why."""

    total: int
    looked_at: int
    migrated: int
    duplicates: int
    rejected: int
    problems: list[dict[str, Any]]
    complete: bool


class MigrateStatus(Answer):
    """`pending`: what a move would bring in now."""

    legacy_total: int
    pending: int
    already_there: int
    unusable: int
    needed: bool
    complete: bool


class MigrateStatusAnswer(Answer):
    """How far the move is."""

    success: Literal[True]
    status: MigrateStatus
    degraded: list[str]


class MigrateAnswer(Answer):
    """What was moved, or would be."""

    success: Literal[True]
    dryRun: bool
    stats: MigrationView
    message: str
    degraded: list[str]
    duplicate: bool = False


class VerificationView(Answer):
    """`missing`: ids of some old rows that were not moved, or not archived like the old one."""

    total: int
    present: int
    unusable: int
    missing: list[str]
    verified: bool
    complete: bool


class VerifyAnswer(Answer):
    """Whether everything was moved."""

    success: Literal[True]
    verification: VerificationView
    degraded: list[str]


class SanitizeAnswer(Answer):
    """Texts with encoded files in them; `nextCursor` null: everything was looked at."""

    success: Literal[True]
    dryRun: bool
    totalScanned: int
    totalCorrupted: int
    totalSanitized: int
    totalFailed: int
    samples: list[dict[str, Any]]
    durationMs: float
    nextCursor: str | None
    message: str
    nextSteps: list[str]
    degraded: list[str]
    duplicate: bool = False


class PreviewCollection(Answer):
    """A collection that a reset empties."""

    name: str
    count: int
    exists: bool


class PreviewMongo(Answer):
    """The truth."""

    collections: list[PreviewCollection]
    totalDocuments: int
    kept: list[str]


class PreviewIndex(Answer):
    """The vector index; `oldCollections`: what a rollback could bring back."""

    collection: str | None
    pointCount: int
    exists: bool
    oldCollections: list[str]


class ResetPreviewView(Answer):
    """What would go."""

    mongodb: PreviewMongo
    qdrant: PreviewIndex


class ResetPreviewAnswer(Answer):
    """What a reset would remove."""

    success: Literal[True]
    preview: ResetPreviewView
    warning: str
    confirmationRequired: Literal[True]
    degraded: list[str]


class ResetCollection(Answer):
    """What became of a collection."""

    collection: str
    status: Literal["emptied"]
    removed: int


class ResetIndexView(Answer):
    """What became of the index; `dropped`: collections that a rollback could have brought back."""

    status: Literal["emptied", "partial"]
    removed: int
    dropped: list[str]


class ResetResults(Answer):
    """What a reset removed."""

    mongodb: list[ResetCollection]
    qdrant: ResetIndexView


class ResetAnswer(Answer):
    """Not `complete`: its time was up, and asking again goes on."""

    success: Literal[True]
    message: str
    complete: bool
    results: ResetResults
    nextSteps: list[str]
    degraded: list[str]
