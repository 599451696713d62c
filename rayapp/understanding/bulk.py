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
from rayapp.memory.scope import ReadScope
from rayapp.understanding.deciding import Deciding
from rayapp.understanding.ports import Understander, UnderstandingStore
from rayapp.understanding.records import Gate, Importance, Understanding
from rayapp.understanding.rules.importance import is_derived
from rayapp.understanding.rules.sources import fate_of, row_of, source_hash, source_text, stands

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
    understanders: Sequence[Understander]
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
            for item in page:
                what = await self._one(item)
                counts[what] += 1
                done, failed, after = done + 1, failed + (what == "failed"), item.memory_id
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

    async def _one(self, item: MemoryItem) -> str:
        """What became of it. A bad one stops no other."""
        enabled = self.deciding.policy(item.org_id).enabled
        if not enabled or not stands(item, self.runtime.clock.now()):
            return "skipped"
        found = await self.store.find(ReadScope(item.user_id, include_shared=False), item.memory_id)
        known = None if found is None else found.row
        if known is not None and known.version > item.version:
            return "skipped"  # the service is further than this look
        if not self.again and _is_understood(item, known):
            return "known"
        try:
            row = await self._understood(item, known)
        except RayappError as error:
            if error.retryable:
                raise
            return "failed"
        # A newer text of it is due: it replaces what this one gave.
        return row.fate.value if await self.store.settle(row) else "skipped"

    async def _understood(self, item: MemoryItem, known: Understanding | None) -> Understanding:
        row = row_of(item, self.runtime.new_id())
        sides: tuple[Importance, ...] = ()
        if known is not None:
            row = replace(row, heard=known.heard, forced=known.forced)
            sides = known.sides if _is_understood(item, known) else ()
        began = time.perf_counter()
        sides = sides or await self.deciding.decide(item, row)
        gate = Gate(self.deciding.policy(item.org_id).gate)
        derived = row.forced or is_derived(sides, gate)
        source = source_text(item, sides, whole=row.forced or gate is Gate.OFF)
        for one in self.understanders:
            if derived:
                await one.understand(source)
            elif known is not None:
                await one.take_back(item.user_id, item.memory_id)
        return replace(
            row,
            sides=sides,
            fate=fate_of(item, derived=derived),
            decided_at=self.runtime.clock.now(),
            stages={"derive": round((time.perf_counter() - began) * 1000, 3)},
        )


def _is_understood(item: MemoryItem, known: Understanding | None) -> bool:
    alike = known is not None and known.source_hash == source_hash(item)
    return alike and known is not None and not known.gone
