"""Raw data: texts that are kept only if they matter, each with the whole decision."""

import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

from rayapp.core.errors import Conflict, InvalidInput, NotFound, RayappError
from rayapp.core.ids import org_of
from rayapp.core.logging import request_id
from rayapp.core.runtime import Runtime
from rayapp.memory.item import UNIMPORTANT, MemoryItem
from rayapp.memory.requests import NewMemory
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.understanding.deciding import Deciding
from rayapp.understanding.ports import UnderstandingStore
from rayapp.understanding.records import Decided, Fate, Gate, Importance, Mention, Understanding
from rayapp.understanding.rules.importance import is_derived
from rayapp.understanding.rules.sources import is_unimportant, row_of


@dataclass(eq=False)
class RawDataService:
    """Raises InvalidInput, TooLarge, Conflict, NotFound, StoreDown."""

    memories: MemoriesService
    store: UnderstandingStore
    deciding: Deciding
    _: KW_ONLY
    runtime: Runtime

    async def add(self, scope: WriteScope, raw: NewMemory) -> Decided:
        """Score it, then keep it: active without an expiry, or archived. A text that is there
        already is not kept again; its topic may matter by now."""
        self.deciding.check_on(scope.user_id)
        (item,) = self.memories.made(scope, [raw])
        row = row_of(item, self._trace_id())
        same = await self.store.same(scope.own, row.source_hash)
        known = None if same is None else await self._there(scope, same.memory_id)
        if same is not None and known is not None:
            return await self._again(scope, known, same, row)
        sides, stages = await self._decide(item, row)
        put_away = not self._stays(scope, sides)
        new = replace(raw, memory_id=item.memory_id, lasting=True)
        if put_away:
            new = replace(new, archived_reason=UNIMPORTANT)
        stored = await self.memories.store(scope, new)
        if stored.memory_id is None:
            raise InvalidInput(stored.error or "The text was not stored; send another.")
        row = replace(
            row,
            memory_id=stored.memory_id,
            sides=sides,
            stages=stages,
            decided_at=self.runtime.clock.now(),
            fate=self._fate(scope, sides, put_away=put_away),
        )
        await self.store.offer(row)
        return Decided(stored.memory_id, row, duplicate=stored.status == "duplicate")

    async def add_many(
        self, scope: WriteScope, raws: Sequence[NewMemory | RayappError]
    ) -> list[Decided]:
        """In order; a bad one is refused alone."""
        self.deciding.check_on(scope.user_id)
        found = []
        for raw in raws:
            try:
                if isinstance(raw, RayappError):
                    raise raw
                found.append(await self.add(scope, raw))
            except (InvalidInput, Conflict) as error:
                found.append(Decided(None, error=error))
        return found

    async def get(self, scope: ReadScope, memory_id: str) -> Decided:
        """What was decided of any memory of the user."""
        await self.memories.get(scope, memory_id)
        found = await self.store.find(scope, memory_id)
        return Decided(memory_id, None if found is None or found.row.gone else found.row)

    async def reprocess(self, scope: WriteScope, memory_id: str, *, force: bool) -> Decided:
        """Decide anew, as things stand now. `force`: derive from it whatever the score is."""
        self.deciding.check_on(scope.user_id)
        item = await self.memories.get(scope.own, memory_id)
        found = await self.store.find(scope.own, item.memory_id)
        row = replace(row_of(item, self._trace_id()), forced=force)
        if found is not None:
            row = replace(row, heard=found.row.heard)
        return await self._anew(scope, item, row, duplicate=False)

    async def _again(
        self, scope: WriteScope, item: MemoryItem, same: Understanding, row: Understanding
    ) -> Decided:
        said = Mention(
            topics=row.topics,
            at=max(row.said_at, same.said_at),
            conversation_id=row.conversation_id,
        )
        await self.store.hear(scope, same.memory_id, said)
        heard = replace(same, heard=(*same.heard, said))
        if same.fate in (Fate.DERIVED, Fate.WAITING):
            return Decided(same.memory_id, heard, duplicate=True)
        return await self._anew(scope, item, heard, duplicate=True)

    async def _anew(
        self, scope: WriteScope, item: MemoryItem, row: Understanding, *, duplicate: bool
    ) -> Decided:
        sides, stages = await self._decide(item, row)
        passes = row.forced or self._stays(scope, sides)
        if is_unimportant(item) and passes:
            item = await self.memories.restore(scope, item.memory_id)
        row = replace(
            row,
            sides=sides,
            stages=stages,
            decided_at=self.runtime.clock.now(),
            fate=Fate.WAITING
            if row.forced
            else self._fate(scope, sides, put_away=is_unimportant(item)),
        )
        await self.store.offer(row)
        return Decided(item.memory_id, row, duplicate=duplicate)

    async def _decide(
        self, item: MemoryItem, row: Understanding
    ) -> tuple[tuple[Importance, ...], dict[str, float]]:
        began = time.perf_counter()
        sides = await self.deciding.decide(item, row)
        return sides, {"importance": round((time.perf_counter() - began) * 1000, 3)}

    def _stays(self, scope: WriteScope, sides: Sequence[Importance]) -> bool:
        """Whether raw data is kept active."""
        gate = Gate(self.deciding.policy(org_of(scope.user_id)).gate)
        return gate is not Gate.ARCHIVE or is_derived(sides, gate)

    def _fate(self, scope: WriteScope, sides: Sequence[Importance], *, put_away: bool) -> Fate:
        if put_away:
            return Fate.ARCHIVED
        gate = Gate(self.deciding.policy(org_of(scope.user_id)).gate)
        return Fate.WAITING if is_derived(sides, gate) else Fate.PASSED_OVER

    async def _there(self, scope: WriteScope, memory_id: str) -> MemoryItem | None:
        try:
            return await self.memories.get(scope.own, memory_id)
        except NotFound:
            return None

    def _trace_id(self) -> str:
        return request_id.get() or self.runtime.new_id()
