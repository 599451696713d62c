"""Exports, imports and erasures over HTTP."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field
from pydantic.alias_generators import to_snake

from rayapp.memory.tiers import Tier, parse_tier
from rayapp.portability.rules.kinds import DEFAULT_KINDS, Format, Kind, Merge, Origin
from rayapp.wire import bases

if TYPE_CHECKING:  # programs that only have the client need not hold what these import
    from rayapp.portability.foreign import ForeignReport
    from rayapp.portability.ports import Estimate, ImportReport, PutCounts

# What the first client leaves out by a name of its own.
GRAPH_PARTS = {
    "includeKg": ("kg_nodes", "kg_edges"),
    "includeRoutingKg": ("kg_routing", "known_solutions"),
    "includeActionKg": ("kg_actions",),
    "includeActionOutcomes": (),
    "includeReindexCheckpoints": (),
    "includeConsistencyLogs": (),
}
KIND_PARTS = {
    "includeOutcomes": Kind.OUTCOMES,
    "includeVersions": Kind.VERSIONS,
    "includePersonalityMappings": Kind.PERSONALITY,
}
# What it calls the counts of an import, by collection.
STATS = {
    "versionsImported": "memory_versions",
    "outcomesImported": "memory_outcomes",
    "kgNodesImported": "kg_nodes",
    "kgEdgesImported": "kg_edges",
    "routingConceptsImported": "kg_routing",
    "routingStatsImported": "known_solutions",
    "actionEffectivenessImported": "kg_actions",
    "personalityMappingsImported": "personality",
}
# It disables a part by this text; anything else leaves it in.
OFF = "false"
Switch = Annotated[str, Field(max_length=bases.MAX_ID_CHARS)]


def _parts(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _kinds(text: str) -> str:
    if unknown := set(_parts(text)) - set(Kind):
        raise ValueError(f"{min(unknown)!r} is no kind; the kinds are {', '.join(Kind)}")
    return text


def _tiers(text: str) -> str:
    names = [one for one in _parts(text) if one != "all"]
    if unknown := [one for one in names if parse_tier(one) is None]:
        raise ValueError(f"{unknown[0]!r} is no tier; the tiers are {', '.join(Tier)}")
    return text


Text = Annotated[str, Field(max_length=bases.MAX_ID_CHARS)]
ON = Field("true", description="`false` leaves it out.")


class ExportQuery(bases.Lenient):
    """What an export holds."""

    include: Annotated[Text, AfterValidator(_kinds)] | None = Field(
        None,
        description="Kinds, separated by commas: " + ", ".join(Kind) + ". Without it: all but "
        "receipts and events.",
    )
    includeTiers: Annotated[Text, AfterValidator(_tiers)] = Field(
        "all", description="Tiers, separated by commas, or `all`."
    )
    includeArchived: Switch = ON
    includeOutcomes: Switch = ON
    includeActionOutcomes: Switch = ON
    includeKg: Switch = ON
    includeRoutingKg: Switch = ON
    includeActionKg: Switch = ON
    includeVersions: Switch = ON
    includePersonalityMappings: Switch = ON
    includeReindexCheckpoints: Switch = ON
    includeConsistencyLogs: Switch = ON

    def kinds(self) -> frozenset[Kind]:
        """Those that are asked for."""
        found = DEFAULT_KINDS
        if self.include is not None:
            found = frozenset(map(Kind, _parts(self.include)))
        return found - {KIND_PARTS[name] for name in KIND_PARTS if getattr(self, name) == OFF}

    def without(self) -> frozenset[str]:
        """Collections that are left out."""
        off = [name for name in GRAPH_PARTS if getattr(self, name) == OFF]
        return frozenset(part for name in off for part in GRAPH_PARTS[name])

    def tiers(self) -> tuple[Tier, ...] | None:
        """None: all of them."""
        found = [parse_tier(one) for one in _parts(self.includeTiers)]
        if not found or None in found:
            return None
        return tuple(dict.fromkeys(one for one in found if one is not None))


class DownloadQuery(ExportQuery):
    """What an export holds, and its form."""

    format: Format = Field(
        "json", description="`json`, or `zip`: JSON Lines per collection with a manifest."
    )
    name: Annotated[str, Field(max_length=100)] | None = bases.optional(
        "An archive that is kept, by its name; then all else counts for nothing."
    )


class SizeView(bases.Answer):
    """Rows, and their bytes as the database holds them."""

    rows: int
    bytes: int


class IndexPointsView(bases.Answer):
    """The user's part of the index. It is not exported: an import builds it anew."""

    ok: bool
    point_count: int | None
    collection_exists: bool
    vector_dims: int | None


class EstimateBody(bases.Answer):
    """How much an export holds."""

    total_docs: int = bases.path("rows")
    total_bytes: int = bases.path(
        "bytes", description="As stored; a zip takes a tenth to a fifth of it."
    )
    collection_counts: dict[str, int]
    kinds: dict[str, SizeView]
    qdrant: IndexPointsView


class BackupEstimate(bases.Success):
    as_of: datetime
    estimate: EstimateBody

    @classmethod
    def from_estimate(cls, found: "Estimate", index: tuple[int, int | None] | None) -> Self:
        """`index`: points and the size of their vectors; None = it is away."""
        known = index is not None
        points, dims = index or (None, None)
        qdrant = IndexPointsView(
            ok=known, point_count=points, collection_exists=known, vector_dims=dims
        )
        counts = {name: one.rows for name, one in found.collections.items()}
        return cls(
            as_of=found.at,
            degraded=() if known else ("vector_index",),
            estimate=EstimateBody.of(found, collection_counts=counts, qdrant=qdrant),
        )


class ExportDocument(bases.Answer):
    """An export as JSON; times in rows as MongoDB's Extended JSON writes them."""

    format: str
    version: int
    exportedAt: datetime
    userId: str
    collections: dict[str, list[dict[str, Any]]]
    manifest: dict[str, Any] = Field(
        description="Counts, sizes, SHA-256 and schema of each collection; what is made anew."
    )


Payload = Annotated[dict[str, Any], Field(description="An export, as `format=json` answers it.")]


class ImportBody(bases.Lenient, bases.Confirmed):
    """An archive, and how it is taken in; removing what is here asks for the word."""

    aliases: ClassVar = {to_snake(name): name for name in ("dryRun", "mergeStrategy", "mapUser")}
    payload: Payload | None = None
    name: Annotated[str, Field(max_length=100)] | None = bases.optional(
        "Instead of `payload`: an archive that is kept."
    )
    dryRun: bases.Flag = Field(False, description="Only say what would change.")
    mergeStrategy: Merge = Field(
        Merge.MERGE,
        description="`merge`: the newer of two states of a memory stays; `skip_existing`: the one "
        "that is here; `replace`: what is here of these kinds goes first.",
    )
    mapUser: bases.Flag = Field(False, description="Take an archive of another user as your own.")


class RestoreExportBody(ImportBody):
    """The same; without a strategy everything of these kinds is replaced."""

    mergeStrategy: Merge = Merge.REPLACE


class UploadedImport(bases.Lenient, bases.Confirmed):
    """The fields of a form beside its file."""

    aliases: ClassVar = ImportBody.aliases
    dryRun: bool = False
    mergeStrategy: Literal["merge", "skip_existing", "replace"] = "merge"
    mapUser: bool = False


class ForeignImport(bases.Lenient):
    """The fields of a form beside its file."""

    aliases: ClassVar = {"dry_run": "dryRun", "from": "source"}
    source: Literal["mem0", "chatgpt", "claude", "markdown", "roampal"] = Field(
        description="The system that exported the file."
    )
    dryRun: bool = Field(False, description="Only say what would change.")


class ImportStats(bases.Answer):
    """Counts by the first client's names; those of things that are not kept here are 0."""

    memoriesImported: int
    memoriesSkipped: int
    versionsImported: int
    outcomesImported: int
    actionOutcomesImported: int = 0
    kgNodesImported: int
    kgEdgesImported: int
    routingConceptsImported: int
    routingStatsImported: int
    actionEffectivenessImported: int
    personalityMappingsImported: int
    reindexCheckpointsImported: int = 0
    consistencyLogsImported: int = 0

    @classmethod
    def from_counts(cls, counts: "dict[str, PutCounts]") -> Self:
        items = counts.get("memory_items")
        added = {name: counts[one].added if one in counts else 0 for name, one in STATS.items()}
        return cls(
            memoriesImported=items.added + items.changed if items else 0,
            memoriesSkipped=items.present + items.same_text if items else 0,
            **added,
        )


class PutView(bases.Answer):
    """Rows of a collection: `present` were there, `same_text` say what another memory says."""

    added: int
    changed: int
    present: int
    same_text: int


class ImportAnswer(bases.Written):
    """What was written, or would be. Not `complete`: the time was up; the same request goes on."""

    dryRun: bool
    stats: ImportStats
    errors: tuple[str, ...] = ()
    collections: dict[str, PutView] = bases.path("counts")
    cleared: dict[str, int]
    left_out: dict[str, str] = Field(
        alias="leftOut", description="Collections that are not written, and why."
    )
    complete: bool
    resumed: bool
    message: str

    @classmethod
    def from_report(cls, report: "ImportReport", *, dry_run: bool) -> Self:
        stats = ImportStats.from_counts(report.counts)
        done = "would be imported" if dry_run else "were imported"
        message = f"{stats.memoriesImported} memories {done}, {stats.memoriesSkipped} are here."
        if not report.complete:
            message = "The time was up: send the same request again until complete is true."
        return cls.of(report, dryRun=dry_run, stats=stats, message=message)


class NotTaken(bases.Answer):
    """Something of a file that is not imported."""

    what: str
    why: str
    count: int


class ForeignImportAnswer(ImportAnswer):
    """`found`: what the file holds, by tier, and its conversations and turns."""

    source: Origin
    found: dict[str, int]
    not_taken: tuple[NotTaken, ...] = Field(alias="notTaken")

    @classmethod
    def from_foreign(cls, done: "ForeignReport", source: Origin, *, dry_run: bool) -> Self:
        known = ImportAnswer.from_report(done.report, dry_run=dry_run)
        not_taken = tuple(
            NotTaken(what=what, why=why, count=count)
            for (what, why), count in sorted(done.left_out.items())
        )
        return cls.of(known, source=source, found=done.found, not_taken=not_taken)


class KeptView(bases.Answer):
    """An archive that is kept on the server."""

    name: str
    size_bytes: int = bases.path("bytes")
    exportedAt: datetime = bases.path("at")


class SafetyView(KeptView):
    """What there was before. `payload`: the export itself, where it is small."""

    payload: dict[str, Any] | None = None


class RestoredExport(bases.Written):
    preRestore: SafetyView
    result: ImportAnswer = Field(alias="import")


class BackupsAnswer(bases.Success):
    """Newest first."""

    backups: tuple[KeptView, ...]
    total: int


class CleanupQuery(bases.Strict):
    """How many of the kept archives stay."""

    keep: Annotated[int, Field(ge=0, le=1_000)] = Field(7, description="The newest so many.")


class BackupsGone(bases.Written):
    removed: tuple[str, ...]
    kept: int
    message: str
