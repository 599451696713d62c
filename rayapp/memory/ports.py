"""The seams of the memory: its store, its events, the rows of a user, and its services.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from rayapp.core.vectors import IndexSchema
from rayapp.memory.item import IndexOp, MemoryItem, MemoryVersion
from rayapp.memory.requests import ItemQuery, RowCounts
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier


@dataclass(frozen=True, slots=True)
class InsertResult:
    """`existing` is the active item that stood in the way: same id (`id`) or same text (`text`)."""

    inserted: bool
    existing: MemoryItem | None = None
    clash: Literal["id", "text"] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    items: list[MemoryItem]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexResult:
    """What the indexer did for one claimed item at `rev`; `error` None means synced.

    `blamed` False: a dependency was away, and the try does not count against the item.
    `context_prefix` is stored with the item whatever came of the try, so that it is asked for once;
    empty: what is there stays.
    """

    user_id: str
    point_id: str
    rev: int
    op: IndexOp
    error: str | None = None
    next_attempt_at: datetime | None = None
    failed: bool = False
    blamed: bool = True
    vector_hash: str | None = None
    context_prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBacklog:
    """Counts over all users, claimed and backing-off items included in pending.

    `oldest_untried_s`: age of the oldest pending item that has not failed by itself.
    """

    pending: int
    synced: int
    failed: int
    oldest_pending_s: float
    oldest_untried_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TierCount:
    """`deleted`: how many ever were; their rows go with their points. `waiting`: items whose newest
    state is not in the index yet. `indexed`: active ones whose newest state is. `hidden`: what a
    person hid, which is not among the archived."""

    tier: Tier
    active: int = 0
    archived: int = 0
    hidden: int = 0
    deleted: int = 0
    uses_total: int = 0
    worked: int = 0
    failed: int = 0
    waiting: int = 0
    indexed: int = 0

    @property
    def success_rate(self) -> float:
        judged = self.worked + self.failed
        return self.worked / judged if judged else 0.5


class MemoryStore(Protocol):
    """`memory_items` and `memory_versions`. MongoDB is the truth."""

    async def ensure_schema(self) -> None:
        """Create collections and indexes with all their options; idempotent."""

    async def insert(self, item: MemoryItem) -> InsertResult:
        """Insert with majority+journal; a unique clash is a result, not an error."""

    async def insert_many(self, items: Sequence[MemoryItem]) -> list[InsertResult]:
        """Same, unordered, one result per item in order."""

    async def get(self, scope: ReadScope, memory_id: str) -> MemoryItem | None:
        """Any status but deleted; a merged id resolves to its winner."""

    async def by_points(self, scope: ReadScope, point_ids: Sequence[str]) -> list[MemoryItem]:
        """Hydrate hits; missing, deleted and foreign ids are left out; order is not kept."""

    async def searchable(self, scope: ReadScope, limit: int) -> list[MemoryItem] | None:
        """The active items of the user, without shared ones; None when there are more of them."""

    async def find_duplicate(
        self, scope: WriteScope, tier: Tier, dedup_scope: str, content_hash: str
    ) -> MemoryItem | None:
        """The active item with the same text, if there is one."""

    async def mention(
        self, scope: WriteScope, memory_id: str, at: datetime, also: str | None = None
    ) -> None:
        """quality.mentioned_count + 1."""

    async def page(self, scope: ReadScope, where: ItemFilter, query: ItemQuery) -> Page:
        """A sorted page, which says nothing of the total; a cursor that cannot be read is an
        InvalidInput."""

    async def count(
        self, scope: ReadScope, where: ItemFilter, *, text_query: str | None = None
    ) -> int:
        """All items that `page` would show."""

    async def pending(
        self, scope: ReadScope, where: ItemFilter, limit: int, *, with_failed: bool = False
    ) -> list[MemoryItem]:
        """The newest items that the index does not hold yet in their current state, but for
        chunks of documents that are coming (`rules.filtering.is_coming`).

        `with_failed`: also those it never will, unless they are tried again.
        """

    async def text_search(
        self, scope: ReadScope, where: ItemFilter, query: str, limit: int
    ) -> list[tuple[MemoryItem, float]]:
        """The "index down" rung: `$text` under the user prefix, asked for me and for system."""

    async def replace(
        self, item: MemoryItem, *, expected_version: int, row: MemoryVersion
    ) -> MemoryItem:
        """Compare-and-set on version, the old state to memory_versions, in one transaction.

        The stored item gets `version = expected_version + 1`.
        Raises VersionConflict, NotFound, DuplicateMemory.
        """

    async def versions(self, scope: ReadScope, memory_id: str, limit: int) -> list[MemoryVersion]:
        """Newest first."""

    async def lowest_quality(self, scope: WriteScope, tier: Tier, limit: int) -> list[MemoryItem]:
        """Active items by (quality_score, wilson, last_outcome_at), lowest first.

        What was replaced comes before what is current.
        """

    async def claim(self, *, token: str, limit: int, claim_s: float) -> list[MemoryItem]:
        """Take due pending items for `claim_s` seconds; fair over users; takes over expired."""

    async def finish(self, token: str, results: Sequence[IndexResult], schema: IndexSchema) -> int:
        """Write back what the indexer did, guarded by rev and claim; returns how many matched.

        A finished `delete` of a deleted item removes the tombstone row.
        """

    async def mark_all_pending(self) -> int:
        """Ask for every active item to be indexed again, but those that gave up."""

    async def mark_restored(self) -> int:
        """Ask for every item to be indexed, or taken out, after the truth went back in time: at a
        rev above any that the index can hold. How many there are."""

    async def backlog(self) -> IndexBacklog: ...

    async def failures(self, limit: int, user_id: str | None = None) -> list[MemoryItem]:
        """Items that gave up, of one user or of all, for diagnostics and reports."""

    async def retry_failed(self, user_id: str | None = None) -> int:
        """Make every failed item, of one user or of all, pending and due; how many there were."""

    async def requeue(self, user_id: str | None) -> int:
        """`retry_failed`, and make pending items that nobody has claimed due now. How many
        changed; what was due already did not. None: of all users."""

    async def waiting(self, user_id: str | None) -> int:
        """Items that the index does not have as they are, pending or failed, from index keys
        alone. None: of all users."""

    async def waiting_since(self, user_id: str | None, since: datetime) -> int:
        """Pending items that wait since then or earlier. None: of all users."""

    async def tier_counts(
        self, scope: ReadScope | None, tier: Tier | None = None
    ) -> list[TierCount]:
        """One row per tier that has items; None counts all users, and all tiers."""

    async def tags(self, scope: ReadScope, tier: Tier) -> list[str]: ...

    async def growth(self, scope: ReadScope, since: datetime) -> list[tuple[str, str, int]]:
        """(UTC date, source label, items stored that day), plus one row dated "" with the base."""

    async def ping(self) -> float:
        """Seconds of one round trip; raises StoreDown."""


@dataclass(frozen=True, slots=True)
class Change:
    """A write that a search may show. `at` grows with the server's time, `points` are what it
    names. `done`: it is there; otherwise it may be under way."""

    key: str
    at: int
    points: tuple[str, ...]
    done: bool = False

    @property
    def of_graphs(self) -> bool:
        """Whether the user's graphs gained something; it names no point."""
        return not self.points


class Changes(NamedTuple):
    """What one look found, newest first, and the server's time of the look, as `Change.at`.
    `whole`: none of the time since the last look has ended meanwhile."""

    found: list[Change]
    until: int
    whole: bool = True


class ChangeLog(Protocol):
    """What was lately written of each user's items and graphs. Each write says so before it does it
    or in its own transaction, so that whoever keeps items can tell what to read again."""

    async def since(self, user_id: str, until: int | None, limit: int) -> Changes:
        """The last `limit` changes: from a minute before the look that said `until` on, for a
        transaction may end after a later one; or of the last hour."""

    def before(self, at: int, seconds: float) -> int:
        """A server's time, as `Change.at`, that many seconds before another one."""

    def around(self, items: Iterable[tuple[str, str]]) -> AbstractAsyncContextManager[None]:
        """Say that what the index holds of items (user id, point id) is about to change, and after
        the block that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    event_id: str
    user_id: str
    kind: str
    at: datetime
    memory_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


class EventStore(Protocol):
    async def add(self, event: Event) -> None: ...
    async def recent(self, scope: ReadScope, kind: str | None, limit: int) -> list[Event]: ...
    async def of_conversation(
        self, scope: ReadScope, conversation_id: str, kind: str
    ) -> list[Event]:
        """All that name it in their data, newest first."""


class UserRows(Protocol):
    """What the truth keeps of one user, beyond the reads of `MemoryStore`."""

    async def hidden(self, scope: ReadScope, limit: int) -> list[MemoryItem]:
        """Memories archived with a reason of `memory.rules.hiding`, newest first."""

    async def count_hidden(self, scope: ReadScope) -> int:
        """Of all that `hidden` lists."""

    async def counts(self, scope: ReadScope) -> RowCounts: ...
    async def delete_page(
        self, scope: WriteScope, where: ItemFilter, limit: int, at: datetime
    ) -> int:
        """Delete up to `limit` memories that meet `where` in one transaction, each as
        `MemoryStore.replace` deletes one: a tombstone for the indexer, versions gone, what was
        merged into it too.

        How many, merged ones included; 0 when none is left. A memory that is part of one in
        another tier goes too, for its text stands in this one; the other stays.
        """

    async def leave_conversation(self, scope: WriteScope, conversation_id: str) -> None:
        """What another conversation said too is of that one from now on."""

    async def delete_of_conversation(
        self, scope: WriteScope, conversation_id: str, limit: int, at: datetime
    ) -> int:
        """The same for memories of any tier whose source is this conversation."""

    async def merged_into(self, scope: ReadScope, memory_ids: Sequence[str]) -> list[MemoryItem]:
        """What became part of these memories, as it was."""

    async def clear_sessions(self, scope: WriteScope) -> int:
        """Forget the user's conversations, their words and what was shown in them; how many."""

    async def clear_graph(self, scope: WriteScope) -> int:
        """Empty all graphs of the user, so that a backfill builds the content graph anew; how
        many rows there were."""

    async def clear_documents(self, scope: WriteScope) -> int:
        """Forget the rows of the user's books, not their memories; how many there were."""
