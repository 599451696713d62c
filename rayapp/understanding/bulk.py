"""Understanding everything that is stored, as a job: users in parallel, each user's memories in
order. What comes in meanwhile is understood by the service, and counts before what this does."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Protocol

from rayapp.bulk.model import Finish, Partition, PartitionRow, Plan, Step, shares_of
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Runtime
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import MemoryStore
from rayapp.memory.scope import ReadScope
from rayapp.understanding.batches import batches, halves
from rayapp.understanding.deciding import Deciding
from rayapp.understanding.ports import Understander, UnderstandingStore
from rayapp.understanding.records import TAKE_BACK_FIRST, Gate, Understanding
from rayapp.understanding.rules.importance import is_derived
from rayapp.understanding.rules.sources import (
    fate_of,
    gone_row,
    row_of,
    source_hash,
    source_text,
    stands,
)

# Users of a partition, memories read at once, and how long a step takes at most, seconds.
USERS_PER_PARTITION, PAGE, STEP_S = 20, 200, 1.5


class LooksAgain(Protocol):
    """What is to be done of a user when all memories were understood."""

    async def look(self, user_id: str) -> Mapping[str, int]:
        """What it did, by name."""


@dataclass(eq=False)
class UnderstandWork:
    """Implements `JobWork`. A step that is repeated derives the same again: by difference, nothing.

    `user_id`: of this user alone; `again`: also what was understood already.
    """

    store: UnderstandingStore
    deciding: Deciding
    items: MemoryStore
    understander: Understander
    after: LooksAgain
    _: KW_ONLY
    user_id: str | None
    again: bool
    runtime: Runtime

    async def plan(self) -> Plan:
        users = [self.user_id] if self.user_id is not None else await self._users()
        total = 0
        for user_id in users:
            total += await self.store.stored(ReadScope(user_id, include_shared=False))
        shares = (
            users[at : at + USERS_PER_PARTITION] for at in range(0, len(users), USERS_PER_PARTITION)
        )
        return Plan(partitions=shares_of({"users": one} for one in shares), total=total)

    async def _users(self) -> list[str]:
        found: list[str] = []
        while page := await self.store.users_after(found[-1] if found else "", PAGE):
            found += page
        return found

    async def begin(self, facts: Mapping[str, Any]) -> None:
        """Nothing needs to exist."""

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        users: Sequence[str] = partition.payload["users"]
        place, after = (0, "") if cursor is None else (int(cursor["user"]), str(cursor["after"]))
        began = self.runtime.clock.monotonic()
        counts: Counter[str] = Counter()
        done = failed = 0
        while place < len(users) and self.runtime.clock.monotonic() - began < STEP_S:
            scope = ReadScope(users[place], include_shared=False)
            page = await self.store.memories_after(scope, after, PAGE)
            for some in batches(page, lambda one: len(one.text)):
                whats = await self._all(some)
                counts.update(whats)
                done, failed = done + len(some), failed + whats.count("failed")
                after = some[-1].memory_id
                if self.runtime.clock.monotonic() - began >= STEP_S:
                    break
            if not page:
                counts.update(await self.after.look(users[place]))
                place, after = place + 1, ""
        over = place >= len(users)
        return Step(
            cursor=None if over else {"user": place, "after": after},
            done=done,
            failed=failed,
            counts=counts,
        )

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        counts: Counter[str] = Counter()
        for row in partitions:
            counts.update(row.counts)
        memories, failed = sum(row.done for row in partitions), counts["failed"]
        return Finish(report={"memories": memories, **counts}, complete=not failed)

    async def close(self) -> None:
        """Holds nothing."""

    async def _all(self, items: Sequence[MemoryItem]) -> list[str]:
        """What became of memories of one user. A bad one stops no other."""
        try:
            return await self._together(items)
        except Exception as error:  # whatever it is, fewer texts may do without it
            parts = halves(items, error)
            if parts is not None:
                return [what for some in parts for what in await self._all(some)]
            if not isinstance(error, RayappError) or error.retryable:
                raise
            return ["failed"]

    async def _together(self, items: Sequence[MemoryItem]) -> list[str]:
        scope = ReadScope(items[0].user_id, include_shared=False)
        ids = [one.memory_id for one in items]
        known = {name: one.row for name, one in (await self.store.find_all(scope, ids)).items()}
        became = {one.memory_id: self._skipped(one, known.get(one.memory_id)) for one in items}
        todo = [one for one in items if not became[one.memory_id]]
        if todo:
            rows = await self._understood(todo, known)
            became |= {one.memory_id: one.fate.value for one in rows}
            # A newer text of these is due: it replaces what this one gave.
            became |= dict.fromkeys(await self.store.settle(rows), "skipped")
            await self._take_back_gone(scope, todo)
        return [became[one] for one in ids]

    async def _take_back_gone(self, scope: ReadScope, items: Sequence[MemoryItem]) -> None:
        """What was deleted while it was understood had no row by which the deletion could say so:
        the queue is told now."""
        found = await self.items.by_points(scope, [one.point_id for one in items])
        there = {one.memory_id for one in found}
        gone = [
            gone_row(one.user_id, one.memory_id, one.created_at)
            for one in items
            if one.memory_id not in there
        ]
        await self.store.offer_all(gone, priority=TAKE_BACK_FIRST)

    def _skipped(self, item: MemoryItem, known: Understanding | None) -> str:
        """Why nothing is to be done; empty: it is to be understood."""
        enabled = self.deciding.policy(item.org_id).enabled
        if not enabled or not stands(item, self.runtime.clock.now()):
            return "skipped"
        if known is not None and known.version > item.version:
            return "skipped"  # the service is further than this look
        return "known" if not self.again and _is_understood(item, known) else ""

    async def _understood(
        self, items: Sequence[MemoryItem], known: Mapping[str, Understanding]
    ) -> list[Understanding]:
        began = time.perf_counter()
        rows = [self._row(one, known.get(one.memory_id)) for one in items]
        asked = [pair for pair in zip(items, rows, strict=True) if not pair[1].sides]
        decided = await self.deciding.decide_all(asked)
        sides = {item.memory_id: one for (item, _), one in zip(asked, decided, strict=True)}
        rows = [replace(one, sides=one.sides or sides[one.memory_id]) for one in rows]
        sources, passed_over = [], []
        for item, row in zip(items, rows, strict=True):
            gate = Gate(self.deciding.policy(item.org_id).gate)
            if row.forced or is_derived(row.sides, gate):
                whole = row.forced or gate is Gate.OFF
                sources.append(source_text(item, row.sides, whole=whole))
            elif item.memory_id in known:
                passed_over.append(item.memory_id)
        await self.understander.understand(sources)
        await self.understander.take_back(items[0].user_id, passed_over)
        derived = {one.source_id for one in sources}
        took = round((time.perf_counter() - began) * 1000 / len(items), 3)
        return [
            replace(
                row,
                fate=fate_of(item, derived=item.memory_id in derived),
                decided_at=self.runtime.clock.now(),
                stages={"derive": took},
            )
            for item, row in zip(items, rows, strict=True)
        ]

    def _row(self, item: MemoryItem, known: Understanding | None) -> Understanding:
        row = row_of(item, self.runtime.new_id())
        if known is None:
            return row
        sides = known.sides if _is_understood(item, known) else ()
        return replace(row, heard=known.heard, forced=known.forced, sides=sides)


def _is_understood(item: MemoryItem, known: Understanding | None) -> bool:
    alike = known is not None and known.source_hash == source_hash(item)
    return alike and known is not None and not known.gone
