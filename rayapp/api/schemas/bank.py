"""Bodies and query fields of the memory-bank routes, as the first client sends them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rayapp.api.schemas.bases import (
    MAX_OFFSET,
    MAX_PAGE,
    MAX_REASON_CHARS,
    IdempotencyKey,
    Label,
    Labels,
    Lenient,
    MemoryId,
    Share,
)
from rayapp.domain.creation import DEFAULT_CONFIDENCE
from rayapp.domain.requests import NewMemory
from rayapp.domain.tiers import Tier

BANK_ALIASES = {"content": "text"}
PAGE_ALIASES = {"skip": "offset"}
BULK_IDS = 500
# The first client sends neither, and the memory bank refuses items that cannot be ranked or found.
CLIENT_IMPORTANCE = 0.8
CLIENT_TAGS = ("pinned",)

BankStatus = Literal["active", "archived"]
Reason = Annotated[str, Field(min_length=1, max_length=MAX_REASON_CHARS)]


class BankQuery(Lenient):
    """Query fields of the memory-bank list."""

    status: BankStatus = Field("active", description="Active or archived memories.")
    tag: Label | None = Field(None, description="Only memories with this tag.")
    limit: int = Field(100, ge=1, le=MAX_PAGE, description="Memories on a page.")
    offset: int = Field(0, ge=0, le=MAX_OFFSET, description="Memories to skip.")


class BankBody(Lenient):
    """A fact to keep. An id in the body is ignored: it names the memory the fact was taken from."""

    text: str = Field(description="The fact; `content` is another name.")
    tags: Labels = Field(CLIENT_TAGS, description="Tags in any script.")
    importance: Share = Field(CLIENT_IMPORTANCE, description="0 to 1.")
    confidence: Share = Field(DEFAULT_CONFIDENCE, description="0 to 1.")
    idempotency_key: IdempotencyKey = None

    def new_memory(self) -> NewMemory:
        return NewMemory(
            text=self.text,
            tier=Tier.MEMORY_BANK,
            tags=self.tags or CLIENT_TAGS,
            importance=self.importance,
            confidence=self.confidence,
        )


class BankEdit(Lenient):
    """What to change: archive, restore, tags or text."""

    status: BankStatus | None = Field(None, description="`archived` archives, `active` restores.")
    archived_reason: Reason | None = Field(None, description="Kept with an archived memory.")
    tags: Labels | None = Field(None, description="All tags from now on.")
    text: str | None = Field(None, description="New text; `content` is another name.")
    idempotency_key: IdempotencyKey = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.status is None and self.tags is None and self.text is None:
            raise ValueError("changes nothing; send status, tags or text")
        return self


class BulkBody(Lenient):
    """Memories to delete."""

    ids: tuple[MemoryId, ...] = Field(
        min_length=1, max_length=BULK_IDS, description="Ids of memories."
    )
    idempotency_key: IdempotencyKey = None


class BulkArchiveBody(BulkBody):
    """Memories to archive, and why."""

    archived_reason: Reason | None = Field(None, description="Kept with the memories.")
