"""The memory bank over HTTP, as the first client calls it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from rayapp.memory.item import MemoryItem, SourceType
from rayapp.memory.requests import BulkResult, BulkStatus, MemoryEdit, NewMemory, StoreResult
from rayapp.memory.rules.creation import DEFAULT_CONFIDENCE
from rayapp.memory.rules.lifecycle import room_made, success_estimate
from rayapp.memory.tiers import Tier
from rayapp.wire import bases

BULK_IDS = 500
# The first client sends neither, and the memory bank refuses items that cannot be ranked or found.
CLIENT_IMPORTANCE = 0.8
CLIENT_TAGS = ("pinned",)

# Characters: a goal or a value is a sentence; a longer text is a fact of the bank itself.
MAX_LISTED_CHARS = 500

BankStatus = Literal["active", "archived"]
Reason = Annotated[str, Field(min_length=1, max_length=bases.MAX_REASON_CHARS)]


class BankQuery(bases.Lenient):
    """Query fields of the memory-bank list."""

    aliases: ClassVar = {"skip": "offset"}
    status: BankStatus = Field("active", description="Active or archived memories.")
    tag: bases.Label | None = bases.optional("Only memories with this tag.")
    limit: int = Field(100, ge=1, le=bases.MAX_LIST, description="Memories on a page.")
    offset: int = Field(0, ge=0, le=bases.MAX_OFFSET, description="Memories to skip.")


class BankBody(bases.Lenient, bases.Keyed):
    """A fact to keep, or a memory of another tier to pin."""

    aliases: ClassVar = {"content": "text"} | bases.camel("memory_id")
    text: str | None = bases.optional(
        "The fact; `content` is another name. Default: that of the memory."
    )
    memory_id: bases.MemoryId | None = bases.optional(
        "The memory it is taken from: its source, names and dates are copied."
    )
    tags: bases.Labels = Field(CLIENT_TAGS, description="Tags in any script.")
    importance: bases.Share = Field(CLIENT_IMPORTANCE, description="0 to 1.")
    confidence: bases.Share = Field(DEFAULT_CONFIDENCE, description="0 to 1.")
    always_inject: bases.Flag = Field(False, description="Show it in every answer.")
    subject_id: bases.Name | None = bases.optional("Whom it is about; default the user.")
    perspective_owner_id: bases.Name | None = bases.optional("Who told it; default the user.")
    topics: bases.Labels = Field((), description="What it is about.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.text is None and self.memory_id is None:
            raise ValueError("text is missing; send it, or the memory_id of what to pin")
        return self

    def new_memory(self) -> NewMemory:
        tags, text = self.tags or CLIENT_TAGS, self.text or ""
        return self.fill(NewMemory, memory_id=None, text=text, tier=Tier.MEMORY_BANK, tags=tags)


class BankEdit(bases.Lenient, bases.Keyed):
    """What to change: archive, restore, pin, tags or text."""

    aliases: ClassVar = {"content": "text"}
    status: BankStatus | None = bases.optional("`archived` archives, `active` restores.")
    archived_reason: Reason | None = bases.optional("Kept with an archived memory.")
    tags: bases.Labels | None = bases.optional("All tags from now on.")
    text: str | None = bases.optional("New text; `content` is another name.")
    always_inject: bases.Flag | None = bases.optional("Show it in every answer, or not.")
    subject_id: bases.SubjectEdit | None = bases.optional("Whom it is about; empty: the user.")
    perspective_owner_id: bases.SubjectEdit | None = bases.optional("Who told it; empty: the user.")
    topics: bases.Labels | None = bases.optional("All topics from now on.")

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.status is None and self.edit() is None:
            raise ValueError(
                "changes nothing; send status, tags, text, always_inject, subject_id, "
                "perspective_owner_id or topics"
            )
        return self

    def edit(self) -> MemoryEdit | None:
        """The fields to change, None when only the status does."""
        edit = self.fill(MemoryEdit)
        return None if edit == MemoryEdit() else edit


class BulkBody(bases.Lenient, bases.Keyed):
    """Memories to delete."""

    ids: tuple[bases.MemoryId, ...] = Field(
        min_length=1, max_length=BULK_IDS, description="Ids of memories."
    )


class BulkArchiveBody(BulkBody):
    """Memories to archive, and why."""

    archived_reason: Reason | None = bases.optional("Kept with the memories.")


class ListedQuery(bases.Lenient):
    """Query fields of the goals and values."""

    limit: int = Field(100, ge=1, le=bases.MAX_LIST, description="Entries, newest first.")


class ListedBody(bases.Lenient, bases.Keyed):
    """A goal or a value."""

    aliases: ClassVar = {"content": "text"}
    text: Annotated[str, Field(max_length=MAX_LISTED_CHARS)] = Field(
        description="One sentence; `content` is another name."
    )
    importance: bases.Share = Field(CLIENT_IMPORTANCE, description="0 to 1.")

    def new_memory(self, tag: str) -> NewMemory:
        sure = DEFAULT_CONFIDENCE
        return self.fill(NewMemory, tier=Tier.MEMORY_BANK, tags=(tag,), confidence=sure)


# Words of the first client for what no tool delivered: it shows a badge for each.
SOURCE_WORDS: dict[SourceType, str] = {
    SourceType.USER: "conversation",
    SourceType.ASSISTANT: "conversation",
    SourceType.SYSTEM: "conversation",
    SourceType.DOCUMENT: "upload",
    SourceType.IMPORT: "upload",
    SourceType.DATAGOV: "datagov_query",
    SourceType.TOOL: "unknown",
}


class ToolSource(bases.Camel):
    """Origin of a memory: the tool that delivered it, or a word for where it was said."""

    tool_name: str
    url: str | None
    description: str | None
    description_he: str | None
    conversation_title: str | None
    collected_at: datetime

    @classmethod
    def from_item(cls, item: MemoryItem) -> Self:
        name = item.source.tool_name or SOURCE_WORDS[item.source.type]
        return cls.of(item.source, tool_name=name, collected_at=item.created_at)


class BankView(bases.Answer):
    """A memory of the memory bank; `score` is the better of Wilson and quality, 0 to 1."""

    id: str = bases.path("memory_id")
    memory_id: str
    text: str
    tags: tuple[str, ...]
    status: str
    tier: bases.TierWord
    subject_id: str | None
    perspective_owner_id: str | None
    topics: tuple[str, ...]
    score: float
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    archived_reason: str | None
    source: ToolSource
    personality_id: str | None = Field(None, alias="sourcePersonalityId")
    personality_name: str | None = Field(None, alias="sourcePersonalityName")

    @classmethod
    def from_item(cls, item: MemoryItem, documents: bool) -> Self:
        estimate = success_estimate(item.stats.success_count, item.stats.uses)
        best = max(estimate.value, item.quality.quality_score)
        return cls.of(
            item, documents, score=min(1.0, max(0.0, best)), source=ToolSource.from_item(item)
        )


class BankListAnswer(bases.Success):
    """A page of the memory bank."""

    memories: tuple[BankView, ...]
    total: int


class BankItemAnswer(bases.Success):
    """One memory of any tier."""

    memory: BankView


class BankStoreAnswer(bases.Success):
    """A fact was kept, or was there already (`duplicate`)."""

    id: str = bases.path("memory_id")
    memory_id: str
    message: str
    duplicate: bool
    archived: tuple[str, ...]

    @classmethod
    def from_result(cls, result: StoreResult) -> Self:
        duplicate = result.status == "duplicate"
        message = "Already in the memory bank" if duplicate else "Kept in the memory bank"
        if result.archived:
            message += f"; {room_made(result.archived)}"
        return cls.of(result, message=f"{message}.", duplicate=duplicate)


class BankStatsAnswer(bases.Success):
    """Counts of the memory bank."""

    total_memories: int = bases.path("total")
    active: int
    archived: int
    unique_tags: int
    tags: tuple[str, ...]


class BulkResultView(bases.Answer):
    """What became of one id."""

    memory_id: str
    status: BulkStatus


class BulkAnswer(bases.Answer):
    """What became of each id; `success`: something changed, or all was as it was asked to be."""

    success: bool
    results: tuple[BulkResultView, ...]
    degraded: tuple[str, ...] = ()
    duplicate: bases.Repeated = None

    @classmethod
    def from_results(cls, results: Sequence[BulkResult], **counts: int) -> Self:
        found = {one.status for one in results}
        changed = not found.isdisjoint({"archived", "deleted"})
        return cls.model_validate(
            {"success": changed or found == {"already_archived"}, "results": results, **counts}
        )


class BulkArchiveAnswer(BulkAnswer):
    """How many facts exist, how many changed, and what became of each id."""

    matched: int
    modified: int


class BulkDeleteAnswer(BulkAnswer):
    """How many were deleted, and what became of each id."""

    deleted: int


class ListedView(bases.Answer):
    """A goal or a value."""

    id: str = bases.path("memory_id")
    text: str
    created_at: datetime
    importance: float = bases.path("quality.importance")
    status: str


class GoalsAnswer(bases.Success):
    """The goals of the user, newest first."""

    goals: tuple[ListedView, ...]
    total: int


class ValuesAnswer(bases.Success):
    """The values of the user, newest first."""

    values: tuple[ListedView, ...]
    total: int
