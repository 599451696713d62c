"""Closes what a new memory replaces, after the new one is stored.

Two writes: a crash in between leaves both, and the caller, who got no answer, sends the new one
again; a repeated store closes the older one as the first would have. The other order could lose
the older one from every answer with nothing in its place.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from rayapp.core.errors import NotFound
from rayapp.core.runtime import Clock
from rayapp.memory.item import ChangeType, MemoryItem
from rayapp.memory.ports import MemoryStore
from rayapp.memory.rules.creation import check_user
from rayapp.memory.rules.lifecycle import check_supersedes, supersede, superseding
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import TIER_POLICY

Change = Callable[
    [WriteScope, str, Callable[[MemoryItem], MemoryItem], ChangeType, str | None, int | None],
    Awaitable[MemoryItem],
]


class BatchPredecessors:
    """The memories that come first in the same call: a later one may replace them."""

    def __init__(self) -> None:
        self.items: dict[str, MemoryItem] = {}
        # What replaces an id; that is closed only after all are stored.
        self.newer: dict[str, MemoryItem] = {}
        self._stored_as: dict[str, str] = {}

    def add(self, item: MemoryItem) -> None:
        self.items[item.memory_id] = item
        if item.supersedes is not None:
            self.newer.setdefault(item.supersedes, item)

    def stored(self, item: MemoryItem, stored_as: str | None) -> None:
        """`stored_as` is another id when the text was there before."""
        if stored_as is not None:
            self._stored_as[item.memory_id] = stored_as

    def resolved(self, item: MemoryItem) -> MemoryItem:
        """`item`, naming what became of the memory that it replaces."""
        if item.supersedes is None:
            return item
        return replace(item, supersedes=self._stored_as.get(item.supersedes, item.supersedes))


class Supersession:
    """`change` is the compare-and-set of the memories service."""

    def __init__(self, store: MemoryStore, clock: Clock, change: Change) -> None:
        self._store = store
        self._clock = clock
        self._change = change

    async def stamped(
        self, scope: WriteScope, item: MemoryItem, beside: BatchPredecessors | None = None
    ) -> MemoryItem:
        """`item` as it is stored when it replaces another one.

        Raises:
            InvalidInput: what it names cannot be replaced, or not at that time.
            Conflict: another memory replaced it already.
        """
        named = item.supersedes
        if named is None:
            return item
        check_user(scope.user_id)
        beside = beside or BatchPredecessors()
        old = await self._store.get(scope.own, named)
        if old is not None and TIER_POLICY[old.tier].shared:
            old = None
        if old is None:
            old = beside.items.get(named)
        if old is not None:
            newer = await self._newer(scope.own, old)
            if newer is None:
                newer = beside.newer.get(old.memory_id)
                old = replace(old, superseded_by=newer.memory_id if newer else None)
            if _repeats(item, old, newer):
                return superseding(item, old)
        check_supersedes(old, named, item, item.stored_at)
        return item if old is None else superseding(item, old)

    async def _newer(self, own: ReadScope, old: MemoryItem) -> MemoryItem | None:
        """What replaced `old`; None when that was deleted, which leaves its place free."""
        if old.superseded_by is None:
            return None
        return await self._store.get(own, old.superseded_by)

    async def close(self, scope: WriteScope, item: MemoryItem, stored_as: str | None) -> None:
        """Close what `item` replaces; `stored_as` is its id, or that of the equal text before it.

        The first that replaced a memory keeps its place: a race closes it once. What is hidden
        itself closes nothing: a repeated store must not close what became current again.
        """
        named = item.supersedes
        if named is None or stored_as is None or stored_as == named:
            return
        current = await self._store.get(scope.own, stored_as)
        if current is None or current.superseded_by is not None:
            return
        by = replace(item, memory_id=current.memory_id)
        vanished = await self._vanished(scope.own, named)

        def change(old: MemoryItem) -> MemoryItem:
            # A merge meanwhile may have made the two one memory, which replaces nothing.
            if old.memory_id == by.memory_id:
                return old
            return supersede(old, by, self._clock.now(), vanished=vanished)

        try:
            await self._change(
                scope, named, change, ChangeType.UPDATE, f"superseded by {by.memory_id}", None
            )
        except NotFound:
            return  # deleted meanwhile: nothing is left to hide

    async def _vanished(self, own: ReadScope, named: str) -> str | None:
        """The id that closed `named` before, when its memory was deleted."""
        old = await self._store.get(own, named)
        if old is None or await self._newer(own, old) is not None:
            return None
        return old.superseded_by


def _repeats(item: MemoryItem, old: MemoryItem, newer: MemoryItem | None) -> bool:
    """Whether the very text of `item` replaces `old` already: a retry is no conflict."""
    if newer is None or old.memory_id == item.memory_id:
        return False
    return newer.content_hash == item.content_hash
