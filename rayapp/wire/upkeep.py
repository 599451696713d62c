"""Upkeep over HTTP, as the first client calls it: sizes, compaction, cleanup, old data, reset."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field

from rayapp.admin import ports
from rayapp.admin.rules import QUIET_DAYS
from rayapp.memory.tiers import CORE_TIERS, Tier, tier_name
from rayapp.wire import bases
from rayapp.wire.ops import UserId

MAX_QUIET_DAYS = 3_650
MAX_CURSOR_CHARS = 1_000
MAX_SHOWN_USERS = 20


def _core(tier: Tier) -> Tier:
    if tier not in CORE_TIERS:
        raise ValueError("is read-only; name a core tier")
    return tier


CoreTier = Annotated[bases.TierName, AfterValidator(_core)]
Cursor = Annotated[str, Field(min_length=1, max_length=MAX_CURSOR_CHARS)] | None


class QuietQuery(bases.Lenient):
    """Since when a session must have been quiet."""

    aliases: ClassVar = bases.camel("quiet_days")
    quiet_days: int = Field(
        QUIET_DAYS, ge=1, le=MAX_QUIET_DAYS, description="Days without a change."
    )


class CleanupBody(bases.Lenient, bases.Confirmed, bases.Keyed):
    """What to remove; the typed word is asked for when something is."""

    aliases: ClassVar = bases.camel("dry_run", "quiet_days")
    dry_run: bases.Flag = Field(True, description="Only count; send false to remove.")
    quiet_days: Annotated[bases.Whole, Field(ge=1, le=MAX_QUIET_DAYS)] = Field(
        QUIET_DAYS, description="Days without a change."
    )


class MigrateQuery(bases.Lenient):
    """Whose old memory bank."""

    aliases: ClassVar = bases.camel("user_id")
    user_id: UserId = bases.optional("Default: the caller's user; `org/user` in a tenant.")


class MigrateBody(MigrateQuery, bases.Keyed):
    """Whose old memory bank is moved in."""

    aliases: ClassVar = bases.camel("dry_run", "user_id")
    dry_run: bases.Flag = Field(False, description="Only count what would be moved.")


class VerifyBody(MigrateQuery):
    """Whose old memory bank is looked at."""


class SanitizeQuery(bases.Lenient):
    """Where to look."""

    aliases: ClassVar = {"nextCursor": "cursor"}
    tier: CoreTier | None = bases.optional("Only this tier.")
    cursor: Cursor = bases.optional("`nextCursor` of the last answer.")


class SanitizeBody(SanitizeQuery, bases.Keyed):
    """Where to look, and whether to change anything."""

    aliases: ClassVar = {"dryRun": "dry_run", "nextCursor": "cursor"}
    dry_run: bases.Flag | None = bases.optional(
        "Only look; send false to change. Absent: only look, unless `compat.first_client` is set, "
        "whose button sends nothing."
    )


class ResetBody(bases.Lenient):
    """The word that it is meant."""

    # A call without it is refused, with the warning that a missing field would not get.
    model_config = ConfigDict(json_schema_extra={"required": ["confirm"]})

    confirm: bases.Flag | Annotated[str, Field(max_length=bases.MAX_ID_CHARS)] = Field(
        False,
        description=f"The word {bases.CONFIRM}: all memories of all users go. The first client "
        "sends true.",
        json_schema_extra={"examples": [bases.CONFIRM]},
    )


class CollectionView(bases.Answer):
    """One collection of MongoDB."""

    name: str
    count: int
    size_bytes: int
    storage_bytes: int
    index_bytes: int
    free_bytes: int


class IndexSizeView(bases.Answer):
    """The vector index behind the alias; a count is null where the engine has none."""

    collection: str | None
    # Each point has one dense vector and one of terms; the client counts the dense ones.
    points_count: int = bases.path("points")
    vectors_count: int = bases.path("points")
    segments_count: int | None = bases.path("facts.segments", default=None)


class SizesMeta(bases.Answer):
    """Sums over all collections."""

    built_ms: float
    total_bytes: int
    free_bytes: int


class SizesAnswer(bases.Success):
    """What the data takes."""

    mongo: tuple[CollectionView, ...]
    qdrant: IndexSizeView | None
    meta: SizesMeta


class CompactView(bases.Answer):
    """One collection that had free space."""

    collection: str
    success: bool
    before_bytes: int
    after_bytes: int
    freed_bytes: int
    error: str | None


class CompactAnswer(bases.Answer):
    """What the file system got back."""

    success: Literal[True] = True
    space_reclaimed_mb: float
    space_reclaimed_bytes: int
    collections_compacted: int
    compact_results: tuple[CompactView, ...]
    complete: bool
    message: str
    timestamp: datetime


class SessionUserView(bases.Answer):
    """A user id that was a browser session."""

    user_id: str
    memories: int
    last_change: datetime


class CleanupStats(bases.Answer):
    """`users`: the first twenty of those that would go."""

    session_users: int
    orphaned_users: int
    orphaned_memories: int
    quiet_days: int
    users: tuple[SessionUserView, ...]

    @classmethod
    def from_report(cls, report: ports.Cleanup, quiet_days: int) -> Self:
        return cls.of(
            report,
            orphaned_users=len(report.orphans),
            orphaned_memories=sum(user.memories for user in report.orphans),
            quiet_days=quiet_days,
            users=report.orphans[:MAX_SHOWN_USERS],
        )


class CleanupCountAnswer(bases.Success):
    """What a cleanup would remove."""

    stats: CleanupStats


class CleanupResult(bases.Answer):
    """`remaining` users were not reached; ask again."""

    users_removed: int
    memories_removed: int
    rows_removed: int
    remaining: int


class CleanupAnswer(bases.Written, bases.Camel):
    """What a cleanup removed, or would."""

    dry_run: bool
    stats: CleanupStats
    result: CleanupResult
    message: str


class MigrationView(bases.Answer):
    """`problems`: rows that cannot be moved, and why."""

    total: int
    looked_at: int
    migrated: int
    duplicates: int
    rejected: int
    problems: tuple[dict[str, Any], ...]
    complete: bool


class MigrateStatus(bases.Answer):
    """`pending`: what a move would bring in now."""

    legacy_total: int = bases.path("total")
    pending: int = bases.path("migrated")
    already_there: int = bases.path("duplicates")
    unusable: int = bases.path("rejected")
    needed: bool
    complete: bool

    @classmethod
    def from_migration(cls, would: ports.Migration) -> Self:
        return cls.of(would, needed=would.migrated > 0 or not would.complete)


class MigrateStatusAnswer(bases.Success):
    """How far the move is."""

    status: MigrateStatus


class MigrateAnswer(bases.Written, bases.Camel):
    """What was moved, or would be."""

    dry_run: bool
    stats: MigrationView
    message: str


class VerificationView(bases.Answer):
    """`missing`: ids of some old rows that were not moved, or not archived like the old one."""

    total: int
    present: int
    unusable: int
    missing: tuple[str, ...]
    verified: bool
    complete: bool

    @classmethod
    def from_verification(cls, found: ports.Verification) -> Self:
        everything = found.present + found.unusable == found.total
        return cls.of(found, verified=found.complete and everything)


class VerifyAnswer(bases.Success):
    """Whether everything was moved."""

    verification: VerificationView


class SanitizeAnswer(bases.Written, bases.Camel):
    """Texts with encoded files in them; `nextCursor` null: everything was looked at."""

    dry_run: bool
    total_scanned: int = bases.path("scanned", alias="totalScanned")
    total_corrupted: int = bases.path("corrupted", alias="totalCorrupted")
    total_sanitized: int = bases.path("sanitized", alias="totalSanitized")
    total_failed: int = bases.path("failed", alias="totalFailed")
    samples: tuple[dict[str, Any], ...]
    duration_ms: float
    next_cursor: str | None
    message: str
    next_steps: tuple[str, ...]

    @classmethod
    def from_report(cls, report: ports.SanitizeReport, documents: bool) -> Self:
        steps = {
            "Ask again with nextCursor as cursor to go on.": report.next_cursor is not None,
            "Send dry_run false to take the encoded files out.": report.dry_run
            and report.corrupted,
            "Some memories changed meanwhile; run it again.": report.failed,
        }
        found = f"{report.corrupted} of {report.scanned} memories hold encoded files."
        return cls.of(
            report,
            samples=[{**one, "tier": tier_name(one["tier"], documents)} for one in report.samples],
            duration_ms=round(report.duration_ms, 1),
            message=found if report.dry_run else f"{found} {report.sanitized} were cleaned.",
            next_steps=[step for step, needed in steps.items() if needed],
        )


class PreviewCollection(bases.Answer):
    """A collection that a reset empties."""

    name: str
    count: int
    exists: bool = True


class PreviewMongo(bases.Camel):
    """The truth."""

    collections: tuple[PreviewCollection, ...]
    total_documents: int
    kept: tuple[str, ...]


class PreviewIndex(bases.Camel):
    """The vector index; `oldCollections`: what a rollback could bring back."""

    collection: str | None
    point_count: int
    exists: bool
    old_collections: tuple[str, ...]


class ResetPreviewView(bases.Answer):
    """What would go."""

    mongodb: PreviewMongo
    qdrant: PreviewIndex

    @classmethod
    def from_preview(cls, found: ports.ResetPreview) -> Self:
        index, documents = found.index, sum(one.count for one in found.collections)
        return cls(
            mongodb=PreviewMongo.of(found, total_documents=documents),
            qdrant=PreviewIndex(
                collection=index.collection if index else None,
                point_count=index.points if index else 0,
                exists=index is not None and index.collection is not None,
                old_collections=tuple(found.old_indexes),
            ),
        )


class ResetPreviewAnswer(bases.Success, bases.Camel):
    """What a reset would remove."""

    preview: ResetPreviewView
    warning: str
    confirmation_required: Literal[True] = True


class ResetCollection(bases.Answer):
    """What became of a collection."""

    collection: str
    status: Literal["emptied"] = "emptied"
    removed: int


class ResetIndexView(bases.Answer):
    """What became of the index; `dropped`: collections that a rollback could have brought back."""

    status: Literal["emptied", "partial"]
    removed: int
    dropped: tuple[str, ...]


class ResetResults(bases.Answer):
    """What a reset removed."""

    mongodb: tuple[ResetCollection, ...]
    qdrant: ResetIndexView

    @classmethod
    def from_report(cls, report: ports.ResetReport) -> Self:
        rows = sorted(report.removed.items())
        return cls(
            mongodb=tuple(ResetCollection(collection=name, removed=gone) for name, gone in rows),
            qdrant=ResetIndexView(
                status="emptied" if report.complete else "partial",
                removed=report.points,
                dropped=tuple(report.dropped),
            ),
        )


class ResetAnswer(bases.Success, bases.Camel):
    """Not `complete`: its time was up, and asking again goes on."""

    message: str
    complete: bool
    results: ResetResults
    next_steps: tuple[str, ...]


class IntegrityCheckView(bases.Answer):
    """One thing that should agree."""

    name: str
    well: bool
    found: int | None = Field(description="How many are not as they should be; null: not known.")
    says: str
    repair: str = Field(description="The command that puts it right.")


class BackupsView(bases.Answer):
    """Whole backups of the folder."""

    count: int
    bytes: int
    newest_at: datetime | None


class IntegrityAnswer(bases.Success):
    """Sizes and checks. Not `well`: some check found something, or cannot tell."""

    well: bool
    store_bytes: int = Field(description="Files of the collections and of their indexes.")
    conversations: int = Field(description="Sessions, those without a kept turn too.")
    turns: int
    backups: BackupsView
    checks: tuple[IntegrityCheckView, ...]


class DaysQuery(bases.Strict):
    """How many days."""

    days: int = Field(30, ge=1, le=400, description="Newest first; 400 are kept.")


class DayView(bases.Answer):
    """A day as it ended, or stands now."""

    day: str = Field(description="YYYY-MM-DD in UTC.")
    at: datetime
    tiers: dict[str, dict[str, int]]
    rows: dict[str, int] = Field(description="By collection.")
    store_bytes: int
    waiting: int
    failed: int
    points: int | None
    free_bytes: int | None


class DaysAnswer(bases.Success):
    """Newest first."""

    days: tuple[DayView, ...]
