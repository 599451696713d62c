"""The data pages over HTTP: hidden memories, counts, clearing."""

import operator
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field

from rayapp.memory.item import MemoryItem
from rayapp.memory.requests import CLEARED_TIERS, Cleared, UserCounts
from rayapp.memory.rules.hiding import DEFAULT_REASON, PREFIX, hidden_reason
from rayapp.memory.tiers import tier_name
from rayapp.portability.rules.kinds import Part
from rayapp.wire import bases

if TYPE_CHECKING:  # programs that only have the client need not hold what this imports
    from rayapp.portability.ports import Certificate

# With its prefix the reason still fits where reasons of archived memories are kept.
MAX_GHOST_REASON = bases.MAX_REASON_CHARS - len(PREFIX)


class UnhideBody(bases.Lenient, bases.Keyed):
    """A hidden memory to show again."""

    aliases: ClassVar = bases.camel("memory_id")
    memory_id: bases.MemoryId = Field(description="Id of the memory.")


class GhostBody(UnhideBody):
    """A memory to hide."""

    tier: bases.TierName | None = bases.optional("Where the caller saw it; not needed.")
    reason: Annotated[str, Field(min_length=1, max_length=MAX_GHOST_REASON)] = Field(
        DEFAULT_REASON, description="Kept with the memory."
    )


class GhostQuery(bases.Lenient):
    """How many hidden memories to list."""

    limit: int = Field(bases.MAX_LIST, ge=1, le=bases.MAX_LIST, description="Newest first.")


class GhostView(bases.Answer):
    """A hidden memory. It stays hidden until it is shown again, so nothing expires."""

    memoryId: str = bases.path("memory_id")
    memory_id: str
    tier: bases.TierWord
    hidden_at: datetime = Field(alias="ghostedAt")
    reason: str
    expires_at: None = Field(None, alias="expiresAt")
    preview: bases.Preview = bases.path("text")

    @classmethod
    def from_item(cls, item: MemoryItem, documents: bool) -> Self:
        hidden_at = item.archived_at or item.updated_at
        reason = hidden_reason(item) or ""
        return cls.of(item, documents, hidden_at=hidden_at, reason=reason, expires_at=None)


class GhostsAnswer(bases.Success):
    """Hidden memories, newest first."""

    memories: tuple[GhostView, ...]
    total: int = Field(description="Of all hidden memories.")


class GhostDone(bases.Written):
    """What became of the memory."""

    message: str
    memory_id: str
    memoryId: str
    status: str
    reason: str | None = None


class TierCounts(bases.Answer):
    """Memories of a tier; `count` is all together."""

    count: int
    active: int
    archived: int
    hidden: int = Field(description="By a person; not among the archived.")


class RowCount(bases.Answer):
    """How many there are."""

    count: int


class GraphCounts(bases.Answer):
    """Rows of the graphs; clearing them deletes the sum."""

    nodes: int = Field(description="Of the content graph.")
    edges: int = Field(description="Of the content graph.")
    learned: int = Field(description="What outcomes taught: routing, actions, known solutions.")


class DataStatsAnswer(bases.Answer):
    """What there is of the user, without a wrapper."""

    memory_bank: TierCounts
    working: TierCounts
    history: TierCounts
    patterns: TierCounts
    books: TierCounts | None = bases.absent("Books, where they have their own name.")
    documents: TierCounts | None = bases.absent("Books by the first client's name.")
    sessions: RowCount
    knowledge_graph: GraphCounts
    degraded: tuple[str, ...] = ()

    @classmethod
    def from_counts(cls, counts: UserCounts, documents: bool) -> Self:
        tiers = {tier_name(tier, documents): counts.tiers[tier] for tier in CLEARED_TIERS.values()}
        sessions = {"count": counts.rows.sessions}
        return cls.model_validate({**tiers, "sessions": sessions, "knowledge_graph": counts.rows})


# A target that stands for all others.
ALL = "all"


class ClearQuery(bases.Lenient, bases.Confirmed):
    """The typed word, here or in the body."""


class ClearBody(bases.Lenient, bases.Confirmed, bases.Keyed):
    """The typed word, and a key that makes a retry safe."""


class ClearedPart(bases.Answer):
    """What became of one kind."""

    target: str
    deleted_count: int = bases.path("deleted")
    remaining: int = bases.path("left")
    error: str | None = Field(description="Why it could not be cleared.")

    @classmethod
    def from_cleared(cls, cleared: Cleared, documents: bool) -> Self:
        tier = CLEARED_TIERS.get(cleared.target)
        target = cleared.target.value if tier is None else tier_name(tier, documents)
        error = cleared.error.message if cleared.error else None
        return cls.of(cleared, target=target, error=error)


class ClearAnswer(bases.Written):
    """What was deleted for good; `remaining` says what a further call has to do."""

    deleted_count: int
    target: str
    timestamp: datetime
    remaining: int
    message: str
    parts: tuple[ClearedPart, ...] = Field(
        (), exclude_if=operator.not_, description="Of `all`: each kind, the failed ones too."
    )

    @classmethod
    def from_cleared(cls, cleared: Cleared, documents: bool) -> Self:
        part = ClearedPart.from_cleared(cleared, documents)
        return cls._of((part,), part.target, cleared.at)

    @classmethod
    def from_parts(cls, cleared: Sequence[Cleared], documents: bool) -> Self:
        parts = tuple(ClearedPart.from_cleared(one, documents) for one in cleared)
        return cls._of(parts, ALL, cleared[-1].at)

    @classmethod
    def _of(cls, parts: tuple[ClearedPart, ...], target: str, at: datetime) -> Self:
        deleted = sum(part.deleted_count for part in parts)
        left = sum(part.remaining for part in parts)
        failed = [part.target for part in parts if part.error is not None]
        message = f"Deleted {deleted}."
        if left:
            message = f"{message} {left} are left; ask again to go on."
        if failed:
            message = f"{message} Not cleared: {', '.join(failed)}; ask again."
        return cls(
            deleted_count=deleted,
            target=target,
            timestamp=at,
            remaining=left,
            message=message,
            parts=parts if target == ALL else (),
            degraded=tuple(failed),
        )


class EraseQuery(bases.Strict, bases.Confirmed):
    """The typed word."""


class ErasePartQuery(EraseQuery):
    """Which part, and the typed word."""

    part: Part = Field(description="`subject`: all memories about it (`subject_id`).")
    id: bases.Name = Field(description="Of the conversation, document, subject or memory.")


def unfinished_erasure(unseen: tuple[str, ...]) -> str:
    """What to do about it, as a sentence."""
    again = "send the same request again until complete is true."
    if not unseen:
        return f"A part is left: {again}"
    return (
        f"These places could not be looked at: {', '.join(unseen)}. Bring them back, then {again}"
    )


class CertificateView(bases.Answer):
    """Counts by place: collections of the database, the index, archives on disk."""

    user_sha256: str = Field(description="SHA-256 of the user id.")
    at: datetime
    removed: dict[str, int] = Field(description="By this call.")
    left: dict[str, int] = Field(description="What still names the user.")
    unseen: tuple[str, ...] = Field(description="Places that could not be looked at.")
    part: str = Field(description="What was erased: `user`, or a part of it.")
    part_sha256: str = Field(description="SHA-256 of the id of the part; empty of a user.")
    sha256: str = Field(description="Of the other fields as JSON with sorted names.")


class ErasedAnswer(bases.Success):
    """Not `complete`: the index has not let go of everything; the same request goes on."""

    complete: bool
    certificate: CertificateView
    message: str

    @classmethod
    def from_certificate(cls, found: "Certificate") -> Self:
        message = "Everything of the user is erased; keys stay until they are revoked."
        if found.part != "user":
            message = f"Everything of the {found.part} is erased."
        if not found.complete:
            message = unfinished_erasure(found.unseen)
        return cls(complete=found.complete, certificate=found, message=message)
