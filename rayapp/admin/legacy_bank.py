"""Moves the first client's old memory bank in, and proves that nothing of it is missing."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from rayapp.admin import rules
from rayapp.admin.ports import LegacyBank, LegacyFact, Migration, Verification
from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.core.runtime import Runtime
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules import creation
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import Tier
from rayapp.text.normalize import content_hash

# Rows named in an answer: enough to see what is wrong with them.
MAX_SHOWN = 20
UNTOUCHED = 1  # the version of a memory that nobody changed since it was stored
ARCHIVED_REASON = "archived in the old memory bank"


@dataclass(eq=False)
class LegacyMove:
    """A row is moved in under its old id, so that doing it again finds it there, and marked at its
    end: a tombstone goes with its point, and what the user deleted since must not come back."""

    bank: LegacyBank
    memories: MemoriesService
    items: MemoryStore
    _: KW_ONLY
    limits: TextLimits
    runtime: Runtime

    async def move(self, scope: WriteScope, *, dry_run: bool) -> Migration:
        """What is there already stays as it is. Stops when the time of a request is up; asking
        again goes on."""
        until = self.runtime.clock.monotonic() + self.runtime.budget_s
        done = Migration(dry_run=dry_run, total=await self.bank.total(scope.own))
        async for fact in self.bank.rows(scope.own):
            if self.runtime.clock.monotonic() >= until:
                return replace(done, complete=False)
            done = await self._move(scope, fact, done)
        return done

    async def verify(self, scope: ReadScope) -> Verification:
        until = self.runtime.clock.monotonic() + self.runtime.budget_s
        present = unusable = 0
        missing: list[str] = []
        total = await self.bank.total(scope.own)
        complete = True
        async for fact in self.bank.rows(scope.own):
            if self.runtime.clock.monotonic() >= until:
                complete = False
                break
            new = self._usable(fact)
            if isinstance(new, InvalidInput):
                unusable += 1
            elif await self._known(scope.own, fact, new) and not await self._half_moved(
                scope.own, fact, new
            ):
                present += 1
            elif len(missing) < MAX_SHOWN:
                missing.append(fact.raw_id)
        return Verification(
            total=total,
            present=present,
            unusable=unusable,
            missing=tuple(missing),
            complete=complete,
        )

    async def _move(self, scope: WriteScope, fact: LegacyFact, done: Migration) -> Migration:
        done = replace(done, looked_at=done.looked_at + 1)
        new = self._usable(fact)
        if isinstance(new, InvalidInput):
            return _reject(done, fact, new.message)
        known = await self._known(scope.own, fact, new)
        half = known and await self._half_moved(scope.own, fact, new)
        if not done.dry_run and not fact.moved:
            try:
                known = known or (await self.memories.store(scope, new)).status != "stored"
            except Conflict as error:
                return _reject(done, fact, error.message)
            if half or not known:
                await self._archive(scope, fact)
            await self.bank.mark_moved(scope, fact.raw_id, self.runtime.clock.now())
        if known and not half:
            return replace(done, duplicates=done.duplicates + 1)
        return replace(done, migrated=done.migrated + 1)

    async def _archive(self, scope: WriteScope, fact: LegacyFact) -> None:
        if rules.status_of(fact) != rules.ARCHIVED:
            return
        try:
            await self.memories.archive(
                scope, fact.raw_id, reason=ARCHIVED_REASON, expected_version=UNTOUCHED
            )
        except (NotFound, Conflict):
            # Somebody changed it in these milliseconds: their word counts.
            return

    def _usable(self, fact: LegacyFact) -> NewMemory | InvalidInput:
        try:
            if rules.status_of(fact) == rules.DELETED:
                return InvalidInput("The old row was deleted; it stays so.", code="empty_text")
            new = rules.new_memory(fact, self.runtime.clock.now())
            creation.check_new(new, self.limits)
        except InvalidInput as error:
            return error
        return new

    async def _half_moved(self, scope: ReadScope, fact: LegacyFact, new: NewMemory) -> bool:
        """It was stored, and the process ended before it was archived like its old row."""
        if fact.moved or rules.status_of(fact) != rules.ARCHIVED:
            return False
        item = await self.items.get(scope, fact.raw_id)
        return item is not None and _is_untouched(item, new)

    async def _known(self, scope: ReadScope, fact: LegacyFact, new: NewMemory) -> bool:
        """Moved before, whatever became of it; or of this id, or an active one says the same."""
        if fact.moved:
            return True
        if new.memory_id and await self.items.get(scope, new.memory_id) is not None:
            return True
        same = await self.items.find_duplicate(
            WriteScope(scope.user_id), Tier.MEMORY_BANK, "", content_hash(new.text)
        )
        return same is not None


def _is_untouched(item: MemoryItem, new: NewMemory) -> bool:
    """As the move stored it: no edit, no archiving and no restoring came after."""
    same = (item.memory_id, item.version, item.status) == (new.memory_id, UNTOUCHED, Status.ACTIVE)
    return same and item.source == new.source


def _reject(done: Migration, fact: LegacyFact, why: str) -> Migration:
    problem: Mapping[str, Any] = {"id": fact.raw_id, "reason": why}
    shown = done.problems if len(done.problems) >= MAX_SHOWN else (*done.problems, problem)
    return replace(done, rejected=done.rejected + 1, problems=shown)
