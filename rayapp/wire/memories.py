"""Bodies of the memory routes."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from rayapp.memory.item import Source, SourceType
from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.tiers import Tier
from rayapp.wire.bases import (
    MAX_PAGE,
    MAX_REASON_CHARS,
    MAX_SUMMARY_CHARS,
    Flag,
    IdempotencyKey,
    Labels,
    Lenient,
    MemoryId,
    Name,
    Share,
    Strict,
    TierName,
    UtcTime,
    Whole,
)

ALIASES = {"content": "text", "memoryId": "memory_id"}


class DatagovBody(Lenient):
    """The fields that filters read, typed; others are kept as they are."""

    category: Name | None = Field(None, description="Category.")
    format: Name | None = Field(None, description="File format.")
    organization: Name | None = Field(None, description="Organization.")
    resource_id: Name | None = Field(None, description="Resource.")
    flags: dict[str, bool] | list[Name] | None = Field(None, description="Feature flags.")


class SourceBody(Strict):
    """Where a memory came from."""

    type: SourceType = Field(SourceType.USER, description="Kind of source.")
    conversation_id: Name | None = Field(None, description="Conversation.")
    message_id: Name | None = Field(None, description="Message.")
    tool_name: Name | None = Field(None, description="Tool.")
    tool_run_id: Name | None = Field(None, description="Run of the tool.")
    doc_id: Name | None = Field(None, description="Document.")
    chunk_id: Name | None = Field(None, description="Chunk of the document.")
    book: dict[str, Any] | None = Field(None, description="Fields of a book.")
    datagov: dict[str, Any] | None = Field(None, description="Fields of a DataGov resource.")

    @field_validator("datagov")
    @classmethod
    def _typed_datagov(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None:
            DatagovBody.model_validate(value)
        return value

    def source(self) -> Source:
        return Source(**{name: getattr(self, name) for name in type(self).model_fields})


class StoreItem(Strict):
    """One memory to store. Limits on text and labels are those of the tier."""

    text: str = Field(description="The memory; `content` is another name.")
    tier: TierName = Tier.WORKING
    tags: Labels = Field((), description="Tags in any script.")
    entities: Labels = Field((), description="Names it is about.")
    importance: Share | None = Field(None, description="0 to 1; required in memory_bank.")
    confidence: Share | None = Field(None, description="0 to 1; required in memory_bank.")
    always_inject: Flag = Field(False, description="Pin it; memory_bank only.")
    memory_id: MemoryId | None = Field(None, description="Your id; made when absent.")
    created_at: UtcTime | None = Field(None, description="When it happened; naive is UTC.")
    source: SourceBody | None = Field(None, description="Where it came from.")
    summary: Annotated[str, Field(max_length=MAX_SUMMARY_CHARS)] | None = Field(
        None, description="A short form."
    )
    subject_id: Name | None = Field(None, description="Whom it is about; default the user.")
    valid_from: UtcTime | None = Field(None, description="Valid from; naive is UTC.")
    valid_to: UtcTime | None = Field(None, description="Valid until; naive is UTC.")
    supersedes: MemoryId | None = Field(
        None,
        description="Id of the memory that this one replaces: it is valid until this one is, and "
        "hidden unless asked for (`include_superseded`, `as_of`).",
    )

    def new_memory(self) -> NewMemory:
        return NewMemory(
            text=self.text,
            tier=self.tier,
            tags=self.tags,
            entities=self.entities,
            importance=self.importance,
            confidence=self.confidence,
            always_inject=self.always_inject,
            memory_id=self.memory_id,
            created_at=self.created_at,
            source=self.source.source() if self.source else Source(),
            summary=self.summary,
            subject_id=self.subject_id,
            valid_from=self.valid_from,
            valid_to=self.valid_to,
            supersedes=self.supersedes,
        )


class StoreBody(StoreItem):
    """One memory to store."""

    idempotency_key: IdempotencyKey = None


class BatchBody(Strict):
    """Memories to store. One that breaks a rule is rejected alone."""

    items: list[Any] = Field(
        description="Memories, each as in `POST /api/memory/store`.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/StoreItem"}},
    )
    idempotency_key: IdempotencyKey = None


class EditBody(Strict):
    """Fields to change; a field that is absent or null stays as it is."""

    text: str | None = Field(None, description="New text; it is embedded again.")
    tags: Labels | None = Field(None, description="All tags from now on.")
    entities: Labels | None = Field(None, description="All entities from now on.")
    summary: Annotated[str, Field(max_length=MAX_SUMMARY_CHARS)] | None = Field(
        None, description="New short form."
    )
    importance: Share | None = Field(None, description="0 to 1.")
    confidence: Share | None = Field(None, description="0 to 1.")
    always_inject: Flag | None = Field(None, description="Pin or unpin; memory_bank only.")
    valid_to: UtcTime | None = Field(None, description="Valid until; naive is UTC.")
    expected_version: Annotated[Whole, Field(ge=1)] | None = Field(
        None, description="409 unless the memory is at this version."
    )
    reason: Annotated[str, Field(max_length=MAX_REASON_CHARS)] | None = Field(
        None, description="Kept with the old version."
    )
    idempotency_key: IdempotencyKey = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        guards = {"expected_version", "reason", "idempotency_key"}
        if all(
            getattr(self, name) is None for name in type(self).model_fields if name not in guards
        ):
            raise ValueError("changes nothing; send at least one field to change")
        return self

    def edit(self) -> MemoryEdit:
        names = (name for name in type(self).model_fields if name != "idempotency_key")
        return MemoryEdit(**{name: getattr(self, name) for name in names})


class ArchiveBody(Strict):
    """Why, and at which version."""

    reason: Annotated[str, Field(max_length=MAX_REASON_CHARS)] | None = Field(
        None, description="Kept with the memory."
    )
    expected_version: Annotated[Whole, Field(ge=1)] | None = Field(
        None, description="409 unless the memory is at this version."
    )
    idempotency_key: IdempotencyKey = None


class RestoreBody(Strict):
    """At which version."""

    expected_version: Annotated[Whole, Field(ge=1)] | None = Field(
        None, description="409 unless the memory is at this version."
    )
    idempotency_key: IdempotencyKey = None


class VersionsQuery(Strict):
    """Query fields of the version list."""

    limit: int = Field(50, ge=1, le=MAX_PAGE, description="Versions, newest first.")


class ExplainQuery(Strict):
    """Query fields of the explanation."""

    query: str = Field(min_length=1, description="The question that did or did not find it.")
