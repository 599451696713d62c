"""Understands what was written: a marked memory becomes a row, which is scored and derived from.

Any number may run at once: a claim gives each row to one of them, and a crash repeats a row, whose
deriving replaces what it gave before.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from rayapp.core.claims import Backoff, Claim, WorkState, put_back
from rayapp.core.errors import DeadlineExceeded, DependencyDown, Overloaded, RayappError
from rayapp.core.runtime import Runtime
from rayapp.memory.item import MemoryItem, point_id_of
from rayapp.memory.ports import MemoryStore
from rayapp.memory.scope import ReadScope
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


@dataclass(frozen=True, slots=True)
class _Around:
    """What is read at once for the claims of a user.

    `items`: by id, without what cannot be read; `earlier`: see `Deciding.earlier`.
    """

    items: Mapping[str, MemoryItem]
    earlier: Sequence[Understanding] | None


@dataclass(eq=False)
class UnderstandingService:
    """One batch at a time."""

    store: UnderstandingStore
    items: MemoryStore
    deciding: Deciding
    understanders: Sequence[Understander]
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
        await self._collect(marked)
        claimed = await self.store.claim(self.runtime.process, settings.batch, settings.claim_s)
        await self._all(claimed)
        return len(marked) + len(claimed)

    async def take_back_waiting(self) -> None:
        """What waits to be taken back, at once: an erasure certifies it."""
        settings = self.runtime.settings.understanding
        claimed: Sequence[Claim[Understanding]] = ()
        while all(claim.row.gone for claim in claimed):
            claimed = await self.store.claim(self.runtime.process, settings.batch, settings.claim_s)
            if not claimed:
                return
            await self._all(claimed)

    async def _collect(self, items: Sequence[MemoryItem]) -> None:
        """Written memories get rows where there is something to do. The marks go last: a crash in
        between finds the rows again."""
        rows = {(row.user_id, row.memory_id): row for row in await self.store.rows_of(items)}
        due, ended = [], []
        for item in items:
            row = rows.get((item.user_id, item.memory_id))
            known = None if row is None or row.gone else row
            if self._is_due(item, known):
                due.append(row_of(item, self.runtime.new_id()))
            elif known is not None and not self._keeps(item, known):
                ended.append(replace(known, gone=True))
        await self.store.offer_all(due)
        await self.store.offer_all(ended, priority=TAKE_BACK_FIRST)
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

    async def _all(self, claims: Sequence[Claim[Understanding]]) -> None:
        by_user: dict[str, list[Understanding]] = {}
        for row in (claim.row for claim in claims):
            by_user.setdefault(row.user_id, []).append(row)
        around = {user_id: await self._around(user_id, rows) for user_id, rows in by_user.items()}
        for claim in claims:
            await self._one(claim, around[claim.row.user_id])

    async def _around(self, user_id: str, rows: Sequence[Understanding]) -> _Around:
        scope = ReadScope(user_id, include_shared=False)
        items = await self.items.by_points(
            scope, [point_id_of(user_id, row.memory_id) for row in rows]
        )
        undecided = [row for row in rows if not (row.gone or row.sides)]
        return _Around(
            {item.memory_id: item for item in items},
            await self.deciding.earlier(undecided) if undecided else None,
        )

    async def _one(self, claim: Claim[Understanding], around: _Around) -> None:
        try:
            await self._work(claim, around)
        except OUTAGES as error:
            log.warning("a memory waits to be understood: %s", error.message)
            await self._again(claim, error.code, counts=False)
        except RayappError as error:
            log.warning("a memory could not be understood: %s", error.message)
            await self._again(claim, error.code, counts=True)
        except Exception:  # a bug met by one memory must not stop those of others
            log.exception("understanding failed and goes on")
            await self._again(claim, "error", counts=True)

    async def _work(self, claim: Claim[Understanding], around: _Around) -> None:
        row = claim.row
        item = around.items.get(row.memory_id)
        if item is None:
            item = await self.items.get(ReadScope(row.user_id, include_shared=False), row.memory_id)
        if item is None or not self._may_stay(row, item):
            await self._take_back(row)
            await self.store.finish(claim, None)
        else:
            await self._understand(claim, item, around.earlier)

    def _may_stay(self, row: Understanding, item: MemoryItem) -> bool:
        """Whether the source is still there: under its own id, active or put away by its importance
        alone."""
        if item.memory_id != row.memory_id:
            return False
        if is_unimportant(item):
            return True
        return not row.gone and stands(item, self.runtime.clock.now())

    async def _understand(
        self, claim: Claim[Understanding], item: MemoryItem, earlier: Sequence[Understanding] | None
    ) -> None:
        began = time.perf_counter()
        # What came as raw data was decided when it came.
        sides = claim.row.sides or await self.deciding.decide(item, claim.row, earlier)
        row = self._decided(claim.row, item, sides, began)
        gate = Gate(self.deciding.policy(item.org_id).gate)
        derived = not is_unimportant(item) and (row.forced or is_derived(sides, gate))
        # Where nothing is derived and nothing was, `finish` alone tells whose it is.
        nothing = not derived and claim.first
        if not (nothing or await self.store.keep(claim, row)):
            return  # somebody else has it by now
        began = time.perf_counter()
        if derived:
            source = source_text(item, sides, whole=row.forced or gate is Gate.OFF)
            for understander in self.understanders:
                await understander.understand(source)
        elif not nothing:
            await self._take_back(row)
        took = time.perf_counter() - began
        self.runtime.metrics.observe("understanding_stage_s", took, stage="derive")
        row = replace(
            row,
            fate=fate_of(item, derived=derived),
            stages={**row.stages, "derive": round(took * 1000, 3)},
        )
        self.runtime.metrics.count(
            "understanding_decisions", fate=row.fate.value, source=sides[0].speaker.value
        )
        if not await self.store.finish(claim, row) and not nothing:
            await self._undo_if_gone(row)

    def _decided(
        self, row: Understanding, item: MemoryItem, sides: tuple[Importance, ...], began: float
    ) -> Understanding:
        return replace(
            row,
            gone=False,
            sides=sides,
            version=item.version,
            decided_at=row.decided_at or self.runtime.clock.now(),
            stages=row.stages or {"importance": round((time.perf_counter() - began) * 1000, 3)},
        )

    async def _undo_if_gone(self, row: Understanding) -> None:
        """An erasure that took the row away meanwhile did not know what was derived since."""
        scope = ReadScope(row.user_id, include_shared=False)
        if await self.store.find(scope, row.memory_id) is None:
            await self._take_back(row)

    async def _take_back(self, row: Understanding) -> None:
        for understander in self.understanders:
            await understander.take_back(row.user_id, row.memory_id)

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
