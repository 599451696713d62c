"""A user's data as a whole: what is hidden, what there is, and clearing it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, replace

from rayapp.core.errors import Conflict, NotFound, RayappError
from rayapp.core.runtime import Runtime
from rayapp.memory import requests
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import MemoryStore, UserRows
from rayapp.memory.rules.hiding import archived_reason, hidden_reason
from rayapp.memory.scope import EVERYTHING, ItemFilter, ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import CORE_TIERS, Tier

# Memories of one transaction: a few tenths of a second, so that the time limit is kept and an edit
# that comes between waits briefly.
PAGE = 200


@dataclass(eq=False)
class UserDataService:
    """A user's data as a whole. Raises NotFound, Conflict, StoreDown.

    Only ever touches the caller's own user.

    settle: waits for what earlier answers to a user leave behind; it would come after a deletion.
    """

    memories: MemoriesService
    items: MemoryStore
    rows: UserRows
    _: KW_ONLY
    settle: Callable[[str], Awaitable[None]]
    runtime: Runtime

    # --- hidden memories

    async def hide(self, scope: WriteScope, memory_id: str, reason: str) -> MemoryItem:
        """Archive it as hidden; harmless to repeat. Conflict when it is archived for another
        reason."""
        item = await self.memories.archive(scope, memory_id, reason=archived_reason(reason))
        if hidden_reason(item) is None:
            raise Conflict(
                "The memory is archived already, so nobody sees it; restore it first to hide it.",
                code="archived_already",
                details={"memory_id": memory_id},
            )
        return item

    async def unhide(self, scope: WriteScope, memory_id: str) -> MemoryItem:
        """Restore a hidden memory; NotFound, code `not_hidden`, for any other."""
        item = await self.memories.get(scope.own, memory_id)
        if hidden_reason(item) is None:
            raise NotFound(
                "The memory is not hidden, so there is nothing to show again.",
                code="not_hidden",
                details={"memory_id": memory_id, "status": item.status.value},
            )
        return await self.memories.restore(scope, memory_id, expected_version=item.version)

    async def hidden(self, scope: ReadScope, limit: int) -> tuple[list[MemoryItem], int]:
        """Newest first, and how many there are of all."""
        found = await self.rows.hidden(scope, limit)
        full = len(found) == limit
        return found, await self.rows.count_hidden(scope) if full else len(found)

    # --- counts and clearing

    async def counts(self, scope: ReadScope) -> requests.UserCounts:
        found, rows = await asyncio.gather(
            self.items.tier_counts(scope.own), self.rows.counts(scope.own)
        )
        totals = {
            row.tier: requests.TierTotal(
                active=row.active, archived=row.archived, hidden=row.hidden
            )
            for row in found
        }
        return requests.UserCounts(
            tiers={tier: totals.get(tier, requests.TierTotal()) for tier in CORE_TIERS}, rows=rows
        )

    async def clear_all(self, scope: WriteScope) -> list[requests.Cleared]:
        """Every target in its turn, within the time of a request; one that fails keeps none of
        the others."""
        until = self.runtime.clock.monotonic() + self.runtime.budget_s
        done = []
        for target in requests.ClearTarget:
            try:
                left_s = max(0.0, until - self.runtime.clock.monotonic())
                done.append(await self.clear(scope, target, left_s))
            except RayappError as error:
                failed = requests.Cleared(
                    target=target, deleted=0, left=0, at=self.runtime.clock.now(), error=error
                )
                done.append(failed)
        return done

    async def clear(
        self, scope: WriteScope, target: requests.ClearTarget, budget_s: float | None = None
    ) -> requests.Cleared:
        """Delete for good, within the time of a request; `left` says what it did not reach."""
        budget_s = self.runtime.budget_s if budget_s is None else budget_s
        tier = requests.CLEARED_TIERS.get(target)
        left = 0
        if tier is Tier.BOOKS:  # first, so that nothing adds chunks meanwhile
            await self.rows.clear_documents(scope)
        if tier is not None:
            deleted, left = await self.clear_tiers(scope, (tier,), budget_s)
            if tier is Tier.BOOKS and not left:
                await self.rows.clear_documents(scope)
        elif target is requests.ClearTarget.SESSIONS:
            await self.settle(scope.user_id)
            deleted = await self.rows.clear_sessions(scope)
        else:
            deleted = await self.rows.clear_graph(scope)
        return requests.Cleared(
            target=target, deleted=deleted, left=left, at=self.runtime.clock.now()
        )

    async def clear_tiers(
        self, scope: WriteScope, tiers: tuple[Tier, ...], budget_s: float
    ) -> tuple[int, int]:
        """Delete the user's memories of these tiers, so that versions go and the indexer takes
        their points; (how many, how many are left when the time is up)."""
        where = replace(EVERYTHING, tiers=tiers)
        return await self.delete(scope, where, budget_s), await self.items.count(scope.own, where)

    async def delete(self, scope: WriteScope, where: ItemFilter, budget_s: float) -> int:
        """Delete the user's memories that meet `where`, page by page until the time is up; how
        many."""
        until, deleted = self.runtime.clock.monotonic() + budget_s, 0
        while gone := await self.rows.delete_page(scope, where, PAGE, self.runtime.clock.now()):
            deleted += gone
            if self.runtime.clock.monotonic() >= until:
                break
        return deleted
