"""Bodies and query fields of the memory-bank routes, as the first client sends them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.rules.creation import DEFAULT_CONFIDENCE
from rayapp.memory.tiers import Tier
from rayapp.wire.answers import Answer
from rayapp.wire.bases import (
    MAX_OFFSET,
    MAX_PAGE,
    MAX_REASON_CHARS,
    Flag,
    IdempotencyKey,
    Label,
    Labels,
    Lenient,
    MemoryId,
    Share,
)

BANK_ALIASES = {"content": "text", "memoryId": "memory_id"}
PAGE_ALIASES = {"skip": "offset"}
BULK_IDS = 500
# The first client sends neither, and the memory bank refuses items that cannot be ranked or found.
CLIENT_IMPORTANCE = 0.8
CLIENT_TAGS = ("pinned",)

# Characters: a goal or a value is a sentence; a longer text is a fact of the bank itself.
MAX_LISTED_CHARS = 500

BankStatus = Literal["active", "archived"]
Reason = Annotated[str, Field(min_length=1, max_length=MAX_REASON_CHARS)]


class BankQuery(Lenient):
    """Query fields of the memory-bank list."""

    status: BankStatus = Field("active", description="Active or archived memories.")
    tag: Label | None = Field(None, description="Only memories with this tag.")
    limit: int = Field(100, ge=1, le=MAX_PAGE, description="Memories on a page.")
    offset: int = Field(0, ge=0, le=MAX_OFFSET, description="Memories to skip.")


class BankBody(Lenient):
    """A fact to keep, or a memory of another tier to pin."""

    text: str | None = Field(
        None, description="The fact; `content` is another name. Default: that of the memory."
    )
    memory_id: MemoryId | None = Field(
        None, description="The memory it is taken from: its source, names and dates are copied."
    )
    tags: Labels = Field(CLIENT_TAGS, description="Tags in any script.")
    importance: Share = Field(CLIENT_IMPORTANCE, description="0 to 1.")
    confidence: Share = Field(DEFAULT_CONFIDENCE, description="0 to 1.")
    always_inject: Flag = Field(False, description="Show it in every answer.")
    idempotency_key: IdempotencyKey = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.text is None and self.memory_id is None:
            raise ValueError("text is missing; send it, or the memory_id of what to pin")
        return self

    def new_memory(self) -> NewMemory:
        return NewMemory(
            text=self.text or "",
            tier=Tier.MEMORY_BANK,
            tags=self.tags or CLIENT_TAGS,
            importance=self.importance,
            confidence=self.confidence,
            always_inject=self.always_inject,
        )


class BankEdit(Lenient):
    """What to change: archive, restore, pin, tags or text."""

    status: BankStatus | None = Field(None, description="`archived` archives, `active` restores.")
    archived_reason: Reason | None = Field(None, description="Kept with an archived memory.")
    tags: Labels | None = Field(None, description="All tags from now on.")
    text: str | None = Field(None, description="New text; `content` is another name.")
    always_inject: Flag | None = Field(None, description="Show it in every answer, or not.")
    idempotency_key: IdempotencyKey = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.status is None and self.edit() is None:
            raise ValueError("changes nothing; send status, tags, text or always_inject")
        return self

    def edit(self) -> MemoryEdit | None:
        """The fields to change, None when only the status does."""
        edit = MemoryEdit(text=self.text, tags=self.tags, always_inject=self.always_inject)
        return None if edit == MemoryEdit() else edit


class BulkBody(Lenient):
    """Memories to delete."""

    ids: tuple[MemoryId, ...] = Field(
        min_length=1, max_length=BULK_IDS, description="Ids of memories."
    )
    idempotency_key: IdempotencyKey = None


class BulkArchiveBody(BulkBody):
    """Memories to archive, and why."""

    archived_reason: Reason | None = Field(None, description="Kept with the memories.")


class ListedQuery(Lenient):
    """Query fields of the goals and values."""

    limit: int = Field(100, ge=1, le=MAX_PAGE, description="Entries, newest first.")


class ListedBody(Lenient):
    """A goal or a value."""

    text: Annotated[str, Field(max_length=MAX_LISTED_CHARS)] = Field(
        description="One sentence; `content` is another name."
    )
    importance: Share = Field(CLIENT_IMPORTANCE, description="0 to 1.")
    idempotency_key: IdempotencyKey = None

    def new_memory(self, tag: str) -> NewMemory:
        return NewMemory(
            text=self.text,
            tier=Tier.MEMORY_BANK,
            tags=(tag,),
            importance=self.importance,
            confidence=DEFAULT_CONFIDENCE,
        )


class ListedView(Answer):
    """A goal or a value."""

    id: str
    text: str
    created_at: datetime
    importance: float
    status: str


class GoalsAnswer(Answer):
    """The goals of the user, newest first."""

    success: Literal[True]
    goals: list[ListedView]
    total: int
    degraded: list[str]


class ValuesAnswer(Answer):
    """The values of the user, newest first."""

    success: Literal[True]
    values: list[ListedView]
    total: int
    degraded: list[str]
