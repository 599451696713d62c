"""Closes what a new memory replaces, after the new one is stored.

Two writes: a crash in between leaves both, and the caller, who got no answer, sends the new one
again; a repeated store closes the older one as the first would have. The other order could lose
the older one from every answer with nothing in its place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from rayapp.domain.creation import check_user
from rayapp.domain.memory import ChangeType, MemoryItem
from rayapp.domain.scope import ReadScope, WriteScope
from rayapp.domain.supersession import check_supersedes, superseded, superseding
from rayapp.domain.tiers import TIER_POLICY
from rayapp.errors import NotFound
from rayapp.protocols import Clock, MemoryStore

Change = Callable[
    [WriteScope, str, Callable[[MemoryItem], MemoryItem], ChangeType, str | None, int | None],
    Awaitable[MemoryItem],
]
NOTHING: Mapping[str, MemoryItem] = {}


class Supersession:
    """`change` is the compare-and-set of the memories service."""

    def __init__(self, store: MemoryStore, clock: Clock, change: Change) -> None:
        self._store = store
        self._clock = clock
        self._change = change

    async def stamped(
        self, scope: WriteScope, item: MemoryItem, beside: Mapping[str, MemoryItem] = NOTHING
    ) -> MemoryItem:
        """`item` as it is stored when it replaces another one.

        Args:
            beside: memories that are stored in the same call, by id.

        Raises:
            InvalidInput: what it names cannot be replaced.
            Conflict: another memory replaced it already.
        """
        named = item.supersedes
        if named is None:
            return item
        check_user(scope.user_id)
        own = ReadScope(scope.user_id, include_shared=False)
        old = await self._store.get(own, named)
        if old is not None and TIER_POLICY[old.tier].shared:
            old = None
        if old is None:
            old = beside.get(named)
        if old is not None and await self._is_repeated(own, old, item):
            return superseding(item, old)
        check_supersedes(old, named, item)
        return item if old is None else superseding(item, old)

    async def _is_repeated(self, own: ReadScope, old: MemoryItem, item: MemoryItem) -> bool:
        """Whether the very text of `item` replaced `old` before: a retry is no conflict."""
        if old.superseded_by is None or old.memory_id == item.memory_id:
            return False
        newer = await self._store.get(own, old.superseded_by)
        return newer is not None and newer.content_hash == item.content_hash

    async def close(self, scope: WriteScope, item: MemoryItem, stored_as: str | None) -> None:
        """Close what `item` replaces; `stored_as` is its id, or that of the equal text before it.

        The first that replaced a memory keeps its place: a race closes it once.
        """
        named = item.supersedes
        if named is None or stored_as is None or stored_as == named:
            return
        by = replace(item, memory_id=stored_as)

        def change(old: MemoryItem) -> MemoryItem:
            # A merge meanwhile may have made the two one memory, which replaces nothing.
            return old if old.memory_id == stored_as else superseded(old, by, self._clock.now())

        try:
            await self._change(
                scope, named, change, ChangeType.UPDATE, f"superseded by {stored_as}", None
            )
        except NotFound:
            return  # deleted meanwhile: nothing is left to hide
