"""Memories over HTTP: what stores, changes and lists them, and what they look like."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from rayapp.memory.item import MemoryItem, Source, SourceType, SyncState
from rayapp.memory.requests import MemoryEdit, NewMemory, StoreResult
from rayapp.memory.tiers import Tier
from rayapp.wire import bases

Summary = Annotated[str, Field(max_length=bases.MAX_SUMMARY_CHARS)]
Reason = Annotated[str, Field(max_length=bases.MAX_REASON_CHARS)]


class DatagovBody(bases.Lenient):
    """The fields that filters read, typed; others are kept as they are."""

    category: bases.Name | None = bases.optional("Category.")
    format: bases.Name | None = bases.optional("File format.")
    organization: bases.Name | None = bases.optional("Organization.")
    resource_id: bases.Name | None = bases.optional("Resource.")
    flags: dict[str, bool] | list[bases.Name] | None = bases.optional("Feature flags.")


def _web_address(value: str) -> str:
    """People follow it with a click, so it is an address of the web and nothing else."""
    if urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).netloc:
        raise ValueError("is no address of the web; send one that begins with https://")
    return value


WebAddress = Annotated[str, Field(max_length=2_000), AfterValidator(_web_address)]
Said = Annotated[str, Field(min_length=1, max_length=500)]


class SourceBody(bases.Strict):
    """Where a memory came from."""

    type: SourceType = Field(SourceType.USER, description="Kind of source.")
    conversation_id: bases.Name | None = bases.optional("Conversation.")
    message_id: bases.Name | None = bases.optional("Message.")
    tool_name: bases.Name | None = bases.optional("Tool.")
    tool_run_id: bases.Name | None = bases.optional("Run of the tool.")
    doc_id: bases.Name | None = bases.optional("Document.")
    chunk_id: bases.Name | None = bases.optional("Chunk of the document.")
    book: dict[str, Any] | None = bases.optional("Fields of a book.")
    datagov: dict[str, Any] | None = bases.optional("Fields of a DataGov resource.")
    url: WebAddress | None = bases.optional("Page that it was read on: http or https.")
    description: Said | None = bases.optional("What the source is, for people.")
    description_he: Said | None = bases.optional("The same in Hebrew.")
    conversation_title: Said | None = bases.optional("Title of the conversation.")

    @field_validator("datagov")
    @classmethod
    def _typed_datagov(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None:
            DatagovBody.model_validate(value)
        return value


class StoreItem(bases.Strict):
    """One memory to store. Limits on text and labels are those of the tier."""

    aliases: ClassVar = {"content": "text", "memoryId": "memory_id"}
    text: str = Field(description="The memory; `content` is another name.")
    tier: bases.TierName = Tier.WORKING
    tags: bases.Labels = Field((), description="Tags in any script.")
    entities: bases.Labels = Field((), description="Names it is about.")
    importance: bases.Share | None = bases.optional("0 to 1; required in memory_bank.")
    confidence: bases.Share | None = bases.optional("0 to 1; required in memory_bank.")
    always_inject: bases.Flag = Field(False, description="Pin it; memory_bank only.")
    memory_id: bases.MemoryId | None = bases.optional("Your id; made when absent.")
    created_at: bases.UtcTime | None = bases.optional("When it happened; naive is UTC.")
    source: SourceBody | None = bases.optional("Where it came from.")
    summary: Summary | None = bases.optional("A short form.")
    subject_id: bases.Name | None = bases.optional("Whom it is about; default the user.")
    perspective_owner_id: bases.Name | None = bases.optional("Who told it; default the user.")
    topics: bases.Labels = Field((), description="What it is about.")
    valid_from: bases.UtcTime | None = bases.optional("Valid from; naive is UTC.")
    valid_to: bases.UtcTime | None = bases.optional("Valid until; naive is UTC.")
    supersedes: bases.MemoryId | None = bases.optional(
        "Id of the memory that this one replaces: it is valid until this one is, and "
        "hidden unless asked for (`include_superseded`, `as_of`)."
    )

    def new_memory(self) -> NewMemory:
        return self.fill(NewMemory, source=self.source.fill(Source) if self.source else Source())


class StoreBody(StoreItem, bases.Keyed):
    """One memory to store."""


class BatchBody(bases.Strict, bases.Keyed):
    """Memories to store. One that breaks a rule is rejected alone."""

    read_apart: ClassVar = "items"
    items: list[Any] = Field(
        description="Memories, each as in `POST /api/memory/store`.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/StoreItem"}},
    )


class RestoreBody(bases.Strict, bases.Keyed):
    """At which version."""

    expected_version: Annotated[bases.Whole, Field(ge=1)] | None = bases.optional(
        "409 unless the memory is at this version."
    )


class EditBody(RestoreBody):
    """Fields to change; a field that is absent or null stays as it is."""

    aliases: ClassVar = {"content": "text"}
    text: str | None = bases.optional("New text; it is embedded again.")
    tags: bases.Labels | None = bases.optional("All tags from now on.")
    entities: bases.Labels | None = bases.optional("All entities from now on.")
    summary: Summary | None = bases.optional("New short form.")
    importance: bases.Share | None = bases.optional("0 to 1.")
    confidence: bases.Share | None = bases.optional("0 to 1.")
    always_inject: bases.Flag | None = bases.optional("Pin or unpin; memory_bank only.")
    valid_to: bases.UtcTime | None = bases.optional("Valid until; naive is UTC.")
    subject_id: bases.SubjectEdit | None = bases.optional("Whom it is about; empty: the user.")
    perspective_owner_id: bases.SubjectEdit | None = bases.optional("Who told it; empty: the user.")
    topics: bases.Labels | None = bases.optional("All topics from now on.")
    reason: Reason | None = bases.optional("Kept with the old version.")

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.fill(MemoryEdit, expected_version=None, reason=None) == MemoryEdit():
            raise ValueError("changes nothing; send at least one field to change")
        return self


class ArchiveBody(RestoreBody):
    """Why, and at which version."""

    reason: Reason | None = bases.optional("Kept with the memory.")


class VersionsQuery(bases.Strict):
    """Query fields of the version list."""

    limit: int = Field(50, ge=1, le=bases.MAX_PAGE, description="Versions, newest first.")


class ExplainQuery(bases.Strict):
    """Query fields of the explanation."""

    query: str = Field(min_length=1, description="The question that did or did not find it.")


class SourceView(bases.Answer):
    """Where a memory came from; `category` is its DataGov category."""

    type: str
    conversation_id: str | None
    message_id: str | None
    tool_name: str | None
    tool_run_id: str | None
    doc_id: str | None
    chunk_id: str | None
    category: str | None = bases.path("datagov.category", default=None)
    book: dict[str, Any] | None
    datagov: dict[str, Any] | None


class WholeSourceView(SourceView):
    """With what a tool said of it; hits go without."""

    url: str | None
    description: str | None
    description_he: str | None
    conversation_title: str | None


class StatsView(bases.Answer):
    """Outcome counters."""

    uses: int
    success_count: float
    worked_count: int
    partial_count: int
    unknown_count: int
    failed_count: int
    success_rate: float
    wilson_score: float
    score: float
    last_outcome: str | None
    last_outcome_at: datetime | None
    tier_uses: int
    tier_success: float


class IndexView(bases.Answer):
    """Where the memory stands between truth and index."""

    sync_state: Literal["pending", "synced", "failed"]
    op: Literal["vector", "payload", "delete"]
    attempts: int
    last_error: str | None
    indexed_at: datetime | None


class QualityView(bases.Answer):
    """importance x confidence = quality_score."""

    importance: float = bases.path("quality.importance")
    confidence: float = bases.path("quality.confidence")
    quality_score: float = bases.path("quality.quality_score")
    mentioned_count: int = bases.path("quality.mentioned_count")


class MemoryView(QualityView):
    """A memory; `text` and `content` are the same."""

    memory_id: str
    user_id: bases.PlainUser
    tier: bases.TierWord
    status: str
    text: str
    content: str = bases.path("text")
    summary: str | None
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    always_inject: bool
    instruction: str | None = Field(
        description="What it asks of every answer, or says to be preferred."
    )
    lang: str
    source: WholeSourceView
    subject_id: str | None
    perspective_owner_id: str | None
    topics: tuple[str, ...]
    trust: float
    stats: StatsView
    success_estimate: bases.Estimate
    created_at: datetime
    stored_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    archived_reason: str | None
    expires_at: datetime | None
    version: int
    supersedes: str | None
    superseded_by: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    indexed: bool
    index: IndexView

    @classmethod
    def from_item(cls, item: MemoryItem, documents: bool) -> Self:
        indexed = item.index.sync_state is SyncState.SYNCED
        return cls.of(item, documents, success_estimate=item.stats, indexed=indexed)


class StoreAnswer(bases.Success):
    """`indexed` is false: the index follows within a second or so; search sees the memory now."""

    memory_id: str
    indexed: bool = False
    duplicate: bool
    archived: tuple[str, ...] = Field(description="What capacity archived to make room.")

    @property
    def status(self) -> Literal["stored", "duplicate"]:
        """As the lines of a batch say it."""
        return "duplicate" if self.duplicate else "stored"


class BatchResult(bases.Answer):
    """One line per memory sent, in order. What was rejected was not kept, so it has no id."""

    memory_id: str | None
    status: Literal["stored", "duplicate", "rejected"]
    code: str | None = bases.Absent
    error: str | None = bases.Absent
    archived: tuple[str, ...] | None = bases.Absent

    @classmethod
    def from_result(cls, result: StoreResult) -> Self:
        kept = result.status != "rejected"
        return cls.of(
            result, memory_id=result.memory_id if kept else None, archived=result.archived or None
        )


class BatchAnswer(bases.Answer):
    """Results in the order of the items; no `success` when every one was rejected."""

    success: bool
    degraded: tuple[str, ...] = ()
    results: tuple[BatchResult, ...]
    duplicate: bases.Repeated = None


class ItemsAnswer(bases.Success):
    """A page of memories; `next_cursor` null ends the list."""

    items: tuple[MemoryView, ...]
    next_cursor: str | None
    total: int | None = Field(description="Only with `with_total`.")


class ItemAnswer(bases.Written):
    """One memory."""

    memory: MemoryView


class DoneAnswer(bases.Written):
    """A change was made."""

    memory_id: str
    message: str


class VersionView(bases.Answer):
    """The state that a change replaced."""

    version: int
    text: str
    tags: tuple[str, ...]
    quality: QualityView
    stats: StatsView
    change_type: str
    reason: str | None
    at: datetime


class VersionsAnswer(bases.Success):
    """Newest first."""

    memory_id: str
    versions: tuple[VersionView, ...]


class ExplainStageView(bases.Answer):
    """One stage: kept, or lost and by how much."""

    stage: str
    kept: bool
    detail: str
    values: dict[str, float]


class ExplainAnswer(bases.Success):
    """Why a question found a memory, or at which stage it was lost."""

    memory_id: str
    query: str
    found: bool
    position: int | None
    lost_at: str | None
    stages: tuple[ExplainStageView, ...]
