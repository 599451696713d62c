"""Understands what was written: a marked memory becomes a row, which is scored and derived from.

Any number may run at once: a claim gives each row to one of them, and a crash repeats a row, whose
deriving replaces what it gave before.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

from rayapp.core.claims import Backoff, Claim, WorkState, put_back
from rayapp.core.errors import DeadlineExceeded, DependencyDown, Overloaded, RayappError
from rayapp.core.runtime import Runtime
from rayapp.memory.item import MemoryItem, point_id_of
from rayapp.memory.ports import MemoryStore
from rayapp.memory.scope import ReadScope
from rayapp.understanding.batches import batches, by_user, halves
from rayapp.understanding.deciding import Deciding
from rayapp.understanding.ports import Understander, UnderstandingStore
from rayapp.understanding.records import TAKE_BACK_FIRST, Fate, Gate, Importance, Understanding
from rayapp.understanding.rules.importance import is_derived
from rayapp.understanding.rules.sources import (
    fate_of,
    is_source,
    is_unimportant,
    row_of,
    source_hash,
    source_text,
    stands,
)

log = logging.getLogger("rayapp.understanding")
OUTAGES = (DependencyDown, Overloaded, DeadlineExceeded)
# First and longest pause after a failed try, and the one while something is away, seconds.
PAUSE_S, MAX_PAUSE_S, AWAY_S = 2.0, 600.0, 15.0
# Between two counts of what waits, seconds.
GAUGE_S = 10.0


@dataclass(eq=False)
class UnderstandingService:
    """One batch at a time."""

    store: UnderstandingStore
    items: MemoryStore
    deciding: Deciding
    understander: Understander
    _: KW_ONLY
    runtime: Runtime

    def __post_init__(self) -> None:
        self._gauged_at: float | None = None
        tries = self.runtime.settings.understanding.tries
        self._backoff = Backoff(PAUSE_S, MAX_PAUSE_S, tries)

    async def run_once(self) -> int:
        """How many memories were looked at and rows worked on. A bad one stops no other."""
        await self._gauge()
        settings = self.runtime.settings.understanding
        marked = await self.store.marked(settings.batch, settings.settle_s)
        for of_user in by_user(marked, lambda one: one.user_id):
            await self._collect(of_user)
        claimed = await self.store.claim(self.runtime.process, settings.batch, settings.claim_s)
        await self._work_on(claimed)
        return len(marked) + len(claimed)

    async def take_back_waiting(self) -> None:
        """What waits to be taken back, at once: an erasure certifies it."""
        settings = self.runtime.settings.understanding
        claimed: Sequence[Claim[Understanding]] = ()
        while all(claim.row.gone for claim in claimed):
            claimed = await self.store.claim(self.runtime.process, settings.batch, settings.claim_s)
            if not claimed:
                return
            await self._work_on(claimed)

    async def _collect(self, items: Sequence[MemoryItem]) -> None:
        """Written memories of a user get a row where there is something to do. The mark goes last:
        a crash in between finds the row again."""
        scope = ReadScope(items[0].user_id, include_shared=False)
        found = await self.store.find_all(scope, [one.memory_id for one in items])
        due, gone = [], []
        for item in items:
            row = found.get(item.memory_id)
            known = None if row is None or row.row.gone else row.row
            if self._is_due(item, known):
                due.append(row_of(item, self.runtime.new_id()))
            elif known is not None and not self._keeps(item, known):
                gone.append(replace(known, gone=True))
        await self.store.offer_all(due)
        await self.store.offer_all(gone, priority=TAKE_BACK_FIRST)
        await self.store.unmark(items)

    def _is_due(self, item: MemoryItem, known: Understanding | None) -> bool:
        """Whether it is to be looked at, for the first time or anew."""
        if not (self.deciding.policy(item.org_id).enabled and is_source(item)):
            return False
        alike = known is not None and known.source_hash == source_hash(item)
        returned = alike and known is not None and known.fate is Fate.ARCHIVED
        return stands(item, self.runtime.clock.now()) and (not alike or returned)

    def _keeps(self, item: MemoryItem, known: Understanding) -> bool:
        """Whether its row says what still holds."""
        if is_unimportant(item):
            return known.fate is Fate.ARCHIVED
        alike = known.source_hash == source_hash(item)
        return alike and stands(item, self.runtime.clock.now())

    async def _work_on(self, claimed: Sequence[Claim[Understanding]]) -> None:
        """Those of one user together."""
        for of_user in by_user(claimed, lambda claim: claim.row.user_id):
            for some in batches(of_user, lambda _: 0):
                await self._try(some)

    async def _try(self, claims: Sequence[Claim[Understanding]]) -> None:
        try:
            await self._work(claims)
        except RayappError as error:
            await self._part(claims, error)
        except Exception as error:  # a bug met by one memory must not stop those of others
            log.exception("understanding failed and goes on")
            await self._part(claims, error)

    async def _part(self, claims: Sequence[Claim[Understanding]], error: Exception) -> None:
        """What failed together is tried in parts, or put back."""
        parts = halves(claims, error)
        if parts is None:
            for claim in claims:
                await self._failed(claim, error)
            return
        for some in parts:
            await self._try(some)

    async def _failed(self, claim: Claim[Understanding], error: Exception) -> None:
        if isinstance(error, OUTAGES):
            log.warning("a memory waits to be understood: %s", error.message)
            await self._again(claim, error.code, counts=False)
        elif isinstance(error, RayappError):
            log.warning("a memory could not be understood: %s", error.message)
            await self._again(claim, error.code, counts=True)
        else:
            await self._again(claim, "error", counts=True)

    async def _work(self, claims: Sequence[Claim[Understanding]]) -> None:
        user_id = claims[0].row.user_id
        points = [point_id_of(user_id, claim.row.memory_id) for claim in claims]
        found = await self.items.by_points(ReadScope(user_id, include_shared=False), points)
        items = {one.memory_id: one for one in found}
        gone, there = [], []
        for claim in claims:
            item = items.get(claim.row.memory_id)
            if item is None or not self._may_stay(claim.row, item):
                gone.append(claim)
            else:
                there.append((claim, item))
        if gone:
            await self.understander.take_back(user_id, [one.row.memory_id for one in gone])
            for claim in gone:
                await self.store.finish(claim, None)
        for some in batches(there, lambda one: len(one[1].text)):
            await self._understand(some)

    def _may_stay(self, row: Understanding, item: MemoryItem) -> bool:
        """Whether the source is still there: under its own id, active or put away by its importance
        alone."""
        if item.memory_id != row.memory_id:
            return False
        if is_unimportant(item):
            return True
        return not row.gone and stands(item, self.runtime.clock.now())

    async def _understand(self, there: Sequence[tuple[Claim[Understanding], MemoryItem]]) -> None:
        began = time.perf_counter()
        # What came as raw data was decided when it came.
        asked = [(item, claim.row) for claim, item in there if not claim.row.sides]
        decided = await self.deciding.decide_all(asked)
        sides = {item.memory_id: one for (item, _), one in zip(asked, decided, strict=True)}
        took = (time.perf_counter() - began) / len(there)
        rows = [
            self._decided(claim.row, item, claim.row.sides or sides[item.memory_id], took)
            for claim, item in there
        ]
        kept = await self.store.keep_all(
            [(claim, row) for (claim, _), row in zip(there, rows, strict=True)]
        )
        # Somebody else has the others by now.
        mine = [
            (claim, item, row)
            for (claim, item), row, held in zip(there, rows, kept, strict=True)
            if held
        ]
        if mine:
            await self._derive(mine)

    async def _derive(
        self, texts: Sequence[tuple[Claim[Understanding], MemoryItem, Understanding]]
    ) -> None:
        began = time.perf_counter()
        sources, passed_over = [], []
        for claim, item, row in texts:
            gate = Gate(self.deciding.policy(item.org_id).gate)
            if not is_unimportant(item) and (row.forced or is_derived(row.sides, gate)):
                whole = row.forced or gate is Gate.OFF
                sources.append(source_text(item, row.sides, whole=whole))
            elif not claim.first:  # of what nobody ever looked at there is nothing to take back
                passed_over.append(item.memory_id)
        await self.understander.understand(sources)
        if passed_over:
            await self.understander.take_back(texts[0][2].user_id, passed_over)
        took = (time.perf_counter() - began) / len(texts)
        derived = {one.source_id for one in sources}
        done = []
        for claim, item, row in texts:
            self.runtime.metrics.observe("understanding_stage_s", took, stage="derive")
            row = replace(
                row,
                fate=fate_of(item, derived=item.memory_id in derived),
                stages={**row.stages, "derive": round(took * 1000, 3)},
            )
            self.runtime.metrics.count(
                "understanding_decisions", fate=row.fate.value, source=row.sides[0].speaker.value
            )
            done.append((claim, row))
        for (_, row), held in zip(done, await self.store.finish_all(done), strict=True):
            if not held:
                await self._undo_if_gone(row)

    def _decided(
        self, row: Understanding, item: MemoryItem, sides: tuple[Importance, ...], took_s: float
    ) -> Understanding:
        return replace(
            row,
            gone=False,
            sides=sides,
            version=item.version,
            decided_at=row.decided_at or self.runtime.clock.now(),
            stages=row.stages or {"importance": round(took_s * 1000, 3)},
        )

    async def _undo_if_gone(self, row: Understanding) -> None:
        """An erasure that took the row away meanwhile did not know what was derived since."""
        scope = ReadScope(row.user_id, include_shared=False)
        if await self.store.find(scope, row.memory_id) is None:
            await self.understander.take_back(row.user_id, [row.memory_id])

    async def _again(self, claim: Claim[Understanding], error: str, *, counts: bool) -> None:
        spread = self.runtime.random()
        try:
            if counts:
                self.runtime.metrics.count("understanding_failed", end=error)
                await put_back(self.store, claim, error, backoff=self._backoff, random=spread)
            else:
                delay = AWAY_S * (0.5 + spread)
                await self.store.retry(claim, delay_s=delay, error=error, counts=False)
        except RayappError as failed:
            log.warning("a memory waits until its claim ends: %s", failed.message)

    async def _gauge(self) -> None:
        now = self.runtime.clock.monotonic()
        if self._gauged_at is None or now - self._gauged_at >= GAUGE_S:
            self._gauged_at = now
            waiting = await self.store.count(WorkState.WAITING)
            self.runtime.metrics.gauge("understanding_waiting", float(waiting))
