"""A user's newest memories of a kind: what stands before a question, whatever it asks."""

import asyncio
import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import ItemQuery, sort_values
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.search.resident import ResidentViews

# Memories of a view that are looked through here, 3 us each of the event loop; of more the store
# is asked, which has an index for each kind.
MOST_HELD = 1_000


@dataclass(frozen=True, slots=True)
class NewestMemories:
    """Of the view of a user that this process holds, as the primary store has it now; of the store
    where there is none, or a large one. `views` None: always of the store."""

    store: MemoryStore
    views: ResidentViews | None = None

    async def of(
        self, scope: ReadScope, wheres: Sequence[ItemFilter], most: int
    ) -> list[list[MemoryItem]]:
        """At most `most` of the user's own that each filter keeps, the newest first. Raises
        StoreDown."""
        view = await self.views.current(scope.own, wheres) if self.views else None
        if view is not None and len(view) <= MOST_HELD:
            return [_newest(view.kept(where), most) for where in wheres]
        query = ItemQuery(limit=most)
        pages = (self.store.page(scope.own, where, query) for where in wheres)
        return [list(page.items) for page in await asyncio.gather(*pages)]


def _newest(items: Sequence[MemoryItem], most: int) -> list[MemoryItem]:
    return heapq.nlargest(most, items, key=lambda item: sort_values(item, "recent"))
