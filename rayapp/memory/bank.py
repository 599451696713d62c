"""The memory bank: facts a person or the assistant keeps on purpose."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from rayapp.core.errors import NotFound
from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import LEARNED_TAG, MemoryItem, Status
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import (
    BankStats,
    BulkResult,
    BulkStatus,
    ItemList,
    ItemQuery,
    MemoryEdit,
    NewMemory,
    StoreResult,
)
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import Tier


class MemoryBankService:
    """memory_bank with its write guard and capacity."""

    def __init__(self, memories: MemoriesService, store: MemoryStore) -> None:
        self._memories = memories
        self._store = store

    async def add(self, scope: WriteScope, new: NewMemory) -> StoreResult:
        return await self._memories.store(scope, replace(new, tier=Tier.MEMORY_BANK))

    async def pin(self, scope: WriteScope, memory_id: str, new: NewMemory) -> StoreResult:
        """Keep what memory `memory_id` says, with its provenance; that memory stays as it is.

        An empty text in `new` stands for the text of the memory. An unknown id with a text is a
        plain fact, without one it raises NotFound.
        """
        try:
            origin = await self._memories.get(ReadScope(scope.user_id), memory_id)
        except NotFound:
            if not new.text.strip():
                raise
            return await self.add(scope, new)
        return await self.add(scope, _copy_of(origin, new))

    async def listed(self, scope: ReadScope, tag: str, limit: int) -> ItemList:
        """The active facts of one list (`goal`, `value`), newest first, with their total."""
        where = ItemFilter(tiers=(Tier.MEMORY_BANK,), tags_any=(tag,))
        return await self._memories.page(scope, where, ItemQuery(limit=limit, with_total=True))

    async def unlist(self, scope: WriteScope, tag: str, memory_id: str) -> None:
        """Archive a fact of that list; NotFound when it is not on it."""
        fact = await self._memories.get(scope.own, memory_id)
        on_list = fact.tier is Tier.MEMORY_BANK and tag in fact.tags
        if fact.status is not Status.ACTIVE or not on_list:
            raise NotFound(f"No {tag} {memory_id}; list them to see their ids.")
        # The fact may be known for more than this list: then it only leaves the list.
        left = tuple(one for one in fact.tags if one != tag)
        # Where it came from is no list.
        if set(left) - {LEARNED_TAG}:
            await self._memories.edit(scope, memory_id, MemoryEdit(tags=left))
        else:
            await self._memories.archive(scope, memory_id, reason=f"{tag} removed")

    async def stats(self, scope: ReadScope) -> BankStats:
        counts = await self._store.tier_counts(scope, Tier.MEMORY_BANK)
        active = sum(count.active for count in counts)
        archived = sum(count.archived for count in counts)
        tags = await self._store.tags(scope, Tier.MEMORY_BANK)
        return BankStats(
            total=active + archived, active=active, archived=archived, tags=tuple(tags)
        )

    async def page(
        self, scope: ReadScope, *, status: Status, tag: str | None, limit: int, offset: int
    ) -> ItemList:
        where = ItemFilter(
            tiers=(Tier.MEMORY_BANK,),
            statuses=(status,),
            tags_any=(tag,) if tag else None,
            include_superseded=True,
            include_hidden=False,
        )
        return await self._memories.page(
            scope, where, ItemQuery(limit=limit, offset=offset, with_total=True)
        )

    async def archive_many(
        self, scope: WriteScope, memory_ids: Sequence[str], reason: str | None
    ) -> list[BulkResult]:
        """What became of each id of any tier, in order, named twice once."""

        async def archive(item: MemoryItem) -> BulkStatus:
            after = await self._memories.archive(scope, item.memory_id, reason=reason)
            return "archived" if after.version != item.version else "already_archived"

        return [await self._each(scope, one, archive) for one in dict.fromkeys(memory_ids)]

    async def delete_many(self, scope: WriteScope, memory_ids: Sequence[str]) -> list[BulkResult]:
        """As `archive_many`."""

        async def delete(item: MemoryItem) -> BulkStatus:
            await self._memories.delete(scope, item.memory_id)
            return "deleted"

        return [await self._each(scope, one, delete) for one in dict.fromkeys(memory_ids)]

    async def _each(
        self, scope: WriteScope, memory_id: str, act: Callable[[MemoryItem], Awaitable[BulkStatus]]
    ) -> BulkResult:
        """Bulk actions never reach through an id that was merged: its winner is changed only by its
        own id."""
        try:
            item = await self._memories.get(scope.own, memory_id)
            if item.memory_id != memory_id:
                return BulkResult(memory_id, "merged")
            return BulkResult(memory_id, await act(item))
        except NotFound:
            return BulkResult(memory_id, "not_found")


def _copy_of(origin: MemoryItem, new: NewMemory) -> NewMemory:
    """`new` with the text, where it has none, and the provenance of `origin`."""
    shared = origin.user_id == SYSTEM_USER
    return replace(
        new,
        text=new.text if new.text.strip() else origin.text,
        entities=new.entities or origin.entities,
        source=origin.source,
        summary=origin.summary if new.text.strip() in ("", origin.text.strip()) else None,
        subject_id=new.subject_id or (None if shared else origin.subject_id),
        perspective_owner_id=new.perspective_owner_id
        or (None if shared else origin.perspective_owner_id),
        topics=new.topics or origin.topics,
        created_at=origin.created_at,
        valid_from=origin.valid_from,
        valid_to=origin.valid_to,
    )
