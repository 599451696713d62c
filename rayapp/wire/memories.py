"""Memories over HTTP: what stores, changes and lists them, and what they look like."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from rayapp.memory.item import MemoryItem, Source, SourceType, SyncState
from rayapp.memory.requests import MemoryEdit, NewMemory, StoreResult
from rayapp.memory.rules.lifecycle import success_estimate
from rayapp.memory.tiers import Tier, tier_name
from rayapp.wire import bases

PREVIEW_CHARS = 200  # client contract


class DatagovBody(bases.Lenient):
    """The fields that filters read, typed; others are kept as they are."""

    category: bases.Name | None = Field(None, description="Category.")
    format: bases.Name | None = Field(None, description="File format.")
    organization: bases.Name | None = Field(None, description="Organization.")
    resource_id: bases.Name | None = Field(None, description="Resource.")
    flags: dict[str, bool] | list[bases.Name] | None = Field(None, description="Feature flags.")


class SourceBody(bases.Strict):
    """Where a memory came from."""

    type: SourceType = Field(SourceType.USER, description="Kind of source.")
    conversation_id: bases.Name | None = Field(None, description="Conversation.")
    message_id: bases.Name | None = Field(None, description="Message.")
    tool_name: bases.Name | None = Field(None, description="Tool.")
    tool_run_id: bases.Name | None = Field(None, description="Run of the tool.")
    doc_id: bases.Name | None = Field(None, description="Document.")
    chunk_id: bases.Name | None = Field(None, description="Chunk of the document.")
    book: dict[str, Any] | None = Field(None, description="Fields of a book.")
    datagov: dict[str, Any] | None = Field(None, description="Fields of a DataGov resource.")

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
    importance: bases.Share | None = Field(None, description="0 to 1; required in memory_bank.")
    confidence: bases.Share | None = Field(None, description="0 to 1; required in memory_bank.")
    always_inject: bases.Flag = Field(False, description="Pin it; memory_bank only.")
    memory_id: bases.MemoryId | None = Field(None, description="Your id; made when absent.")
    created_at: bases.UtcTime | None = Field(None, description="When it happened; naive is UTC.")
    source: SourceBody | None = Field(None, description="Where it came from.")
    summary: Annotated[str, Field(max_length=bases.MAX_SUMMARY_CHARS)] | None = Field(
        None, description="A short form."
    )
    subject_id: bases.Name | None = Field(None, description="Whom it is about; default the user.")
    valid_from: bases.UtcTime | None = Field(None, description="Valid from; naive is UTC.")
    valid_to: bases.UtcTime | None = Field(None, description="Valid until; naive is UTC.")
    supersedes: bases.MemoryId | None = Field(
        None,
        description="Id of the memory that this one replaces: it is valid until this one is, and "
        "hidden unless asked for (`include_superseded`, `as_of`).",
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

    expected_version: Annotated[bases.Whole, Field(ge=1)] | None = Field(
        None, description="409 unless the memory is at this version."
    )


class EditBody(RestoreBody):
    """Fields to change; a field that is absent or null stays as it is."""

    aliases: ClassVar = {"content": "text"}
    text: str | None = Field(None, description="New text; it is embedded again.")
    tags: bases.Labels | None = Field(None, description="All tags from now on.")
    entities: bases.Labels | None = Field(None, description="All entities from now on.")
    summary: Annotated[str, Field(max_length=bases.MAX_SUMMARY_CHARS)] | None = Field(
        None, description="New short form."
    )
    importance: bases.Share | None = Field(None, description="0 to 1.")
    confidence: bases.Share | None = Field(None, description="0 to 1.")
    always_inject: bases.Flag | None = Field(None, description="Pin or unpin; memory_bank only.")
    valid_to: bases.UtcTime | None = Field(None, description="Valid until; naive is UTC.")
    reason: Annotated[str, Field(max_length=bases.MAX_REASON_CHARS)] | None = Field(
        None, description="Kept with the old version."
    )

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.fill(MemoryEdit, expected_version=None, reason=None) == MemoryEdit():
            raise ValueError("changes nothing; send at least one field to change")
        return self


class ArchiveBody(RestoreBody):
    """Why, and at which version."""

    reason: Annotated[str, Field(max_length=bases.MAX_REASON_CHARS)] | None = Field(
        None, description="Kept with the memory."
    )


class VersionsQuery(bases.Strict):
    """Query fields of the version list."""

    limit: int = Field(50, ge=1, le=bases.MAX_PAGE, description="Versions, newest first.")


class ExplainQuery(bases.Strict):
    """Query fields of the explanation."""

    query: str = Field(min_length=1, description="The question that did or did not find it.")


def preview(text: str, limit: int = PREVIEW_CHARS) -> str:
    """The start of a text, as lists and panels show it."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


class SourceView(bases.Answer):
    """Where a memory came from; `category` is its DataGov category."""

    type: str
    conversation_id: str | None
    message_id: str | None
    tool_name: str | None
    tool_run_id: str | None
    doc_id: str | None
    chunk_id: str | None
    category: str | None
    book: dict[str, Any] | None
    datagov: dict[str, Any] | None

    @classmethod
    def from_source(cls, source: Source) -> Self:
        return cls.of(source, category=(source.datagov or {}).get("category"))


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

    importance: float
    confidence: float
    quality_score: float
    mentioned_count: int


class MemoryView(QualityView):
    """A memory; `text` and `content` are the same."""

    memory_id: str
    user_id: bases.PlainUser
    tier: str
    status: str
    text: str
    content: str
    summary: str | None
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    always_inject: bool
    instruction: str | None = Field(
        description="What it asks of every answer, or says to be preferred."
    )
    lang: str
    source: SourceView
    subject_id: str | None
    trust: float
    stats: StatsView
    success_estimate: bases.EstimateView
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
        """`documents`: the caller's name of the books tier."""
        return cls.of(
            item,
            tier=tier_name(item.tier, documents),
            content=item.text,
            source=SourceView.from_source(item.source),
            success_estimate=success_estimate(item.stats.success_count, item.stats.uses),
            **dict(QualityView.of(item.quality)),
            indexed=item.index.sync_state is SyncState.SYNCED,
        )


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
