"""Room in the memory bank of a user: who is let in, and who leaves for it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from rayapp.core.errors import BankFull, Conflict, NotFound
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.ports import MemoryStore
from rayapp.memory.rules.lifecycle import WISH_TAGS, is_wish, surplus, without_room
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier

# Looks at a full memory bank per write: one does it, more only while other writers interfere.
SURPLUS_ROUNDS = 3
# Writers of one user's bank in this process follow one another, so that each decides over what
# the one before it left. Users share a turn when their hashes meet.
TURNS = 256

BANK = ItemFilter(tiers=(Tier.MEMORY_BANK,), include_superseded=True)
# Archives one item, given an `expected_version`.
Archive = Callable[..., Awaitable[MemoryItem]]


class BankQuota:
    """Keeps at most `capacity` active facts per user.

    Who has no place is refused before anything is written. What is archived afterwards is decided
    by what is there then: another process may have added facts in between.
    """

    def __init__(self, store: MemoryStore, capacity: int, archive: Archive) -> None:
        self._store = store
        self._capacity = capacity
        self._archive = archive
        self._turns = tuple(asyncio.Lock() for _ in range(TURNS))

    def turn(self, user_id: str) -> asyncio.Lock:
        return self._turns[hash(user_id) % TURNS]

    async def refused(self, scope: WriteScope, new: Sequence[MemoryItem]) -> dict[str, BankFull]:
        """Those of `new` that find no place, by id. Texts that are there already need none.

        Below the capacity this is one count of index keys.
        """
        count = await self._store.count(scope.own, BANK)
        if count + len(new) <= self._capacity:
            return {}
        texts = {item.content_hash: item for item in reversed(new)}
        known = await asyncio.gather(*(self._known(scope, item) for item in texts.values()))
        fresh = [item for item, there in zip(texts.values(), known, strict=True) if not there]
        full = await self._full_for(scope, fresh[::-1], count + len(fresh) - self._capacity)
        return {
            item.memory_id: full[item.content_hash] for item in new if item.content_hash in full
        }

    async def check_return(self, scope: WriteScope, item: MemoryItem) -> None:
        """Raise BankFull when archived `item` cannot come back. To bring it back is a wish."""
        over = await self._store.count(scope.own, BANK) + 1 - self._capacity
        wish = replace(item, always_inject=True)
        for full in (await self._full_for(scope, (wish,), over)).values():
            raise full

    async def settle(
        self, scope: WriteScope, stored: Sequence[MemoryItem]
    ) -> tuple[tuple[str, ...], dict[str, BankFull]]:
        """After `stored` was let in and stored: who left for it, and who of it lost its place.

        A place is lost when another process stored facts between the look and the store.
        """
        gone, over = await self._make_place(scope, newest=[item.memory_id for item in stored])
        lost = [item for item in stored if item.memory_id in gone]
        for item in [item for item in reversed(stored) if is_wish(item)][: max(0, over)]:
            lost += [item] if await self._leave(scope, item) else []
        full = {one.memory_id: self._full(less_useful=not is_wish(one)) for one in lost}
        return tuple(name for name in gone if name not in full), full

    async def make(self, scope: WriteScope, *, keep: Sequence[str]) -> None:
        """Archive what is too much and may leave, but none of `keep`."""
        await self._make_place(scope, keep=keep)

    async def _make_place(
        self, scope: WriteScope, *, keep: Sequence[str] = (), newest: Sequence[str] = ()
    ) -> tuple[tuple[str, ...], int]:
        """Who left, and how many are still too many because they may not leave.

        Below the capacity this is one count. Candidates are read before the count that decides:
        what another writer archives in between is among them, and is not replaced by the next one.
        `newest`: facts that this call has just stored; of equals the older ones leave, so more
        candidates are read than leave.
        """
        gone: list[str] = []
        over = await self._store.count(scope.own, BANK) - self._capacity
        for _ in range(SURPLUS_ROUNDS):
            if over <= 0:
                break
            lowest = await self._least(scope, over + len(newest) + len(keep))
            over = await self._store.count(scope.own, BANK) - self._capacity
            for item in surplus(lowest, over, keep=keep, newest=newest):
                gone += await self._leave(scope, item)
            over = await self._store.count(scope.own, BANK) - self._capacity
        return tuple(gone), over

    async def _full_for(
        self, scope: WriteScope, new: Sequence[MemoryItem], over: int
    ) -> dict[str, BankFull]:
        """The refusals by content hash; `over`: facts too many with all of `new`."""
        if over <= 0:
            return {}
        closing = await self._closing(scope.own, new)
        least = {item.memory_id: item for item in await self._least(scope, over)} | closing
        plain = any(not is_wish(item) for item in least.values())
        return {
            item.content_hash: self._full(less_useful=plain and not is_wish(item))
            for item in without_room(new, tuple(least.values()), over)
        }

    async def _leave(self, scope: WriteScope, item: MemoryItem) -> list[str]:
        """Archive `item` unless it changed since it was judged; the next round sees it anew."""
        try:
            await self._archive(scope, item.memory_id, expected_version=item.version)
        except (Conflict, NotFound):
            return []
        return [item.memory_id]

    async def _least(self, scope: WriteScope, count: int) -> list[MemoryItem]:
        """At least the `count` least of those that are no wishes."""
        counts = await asyncio.gather(
            self._store.count(scope.own, replace(BANK, always_inject=True)),
            self._store.count(scope.own, replace(BANK, tags_any=WISH_TAGS)),
        )
        return await self._store.lowest_quality(scope, Tier.MEMORY_BANK, count + sum(counts))

    async def _closing(self, read: ReadScope, new: Sequence[MemoryItem]) -> dict[str, MemoryItem]:
        """The facts of the bank that `new` replaces, as they will be."""
        found = {}
        for item in new:
            old = await self._store.get(read, item.supersedes) if item.supersedes else None
            if old is not None and old.tier is Tier.MEMORY_BANK and old.status is Status.ACTIVE:
                found[old.memory_id] = replace(old, superseded_by=item.memory_id)
        return found

    async def _known(self, scope: WriteScope, item: MemoryItem) -> bool:
        """Whether storing `item` adds nothing: its id or its text is there."""
        if await self._store.get(scope.own, item.memory_id) is not None:
            return True
        same = await self._store.find_duplicate(
            scope, item.tier, item.dedup_scope, item.content_hash
        )
        return same is not None

    def _full(self, *, less_useful: bool) -> BankFull:
        room = f"The memory bank is full ({self._capacity} facts)"
        if less_useful:
            return BankFull(
                f"{room} and this one is less useful than each of them, so it was not kept: "
                "archive one first, or store it with a higher importance or confidence.",
                details={"capacity": self._capacity, "reason": "less_useful"},
            )
        return BankFull(
            f"{room} with pinned facts, goals and values, which are never dropped, so this one "
            "was not kept: archive or unpin one first.",
            details={"capacity": self._capacity, "reason": "all_pinned"},
        )
