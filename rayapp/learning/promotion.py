"""The owner of tiers: the only code that moves or archives by rule, for one user or as a job."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from rayapp.bulk.model import Finish, Partition, PartitionRow, Plan, Step, shares_of
from rayapp.bulk.ports import Lease, LeaseStore
from rayapp.bulk.rules import LEASE_LOST, sum_counts
from rayapp.core import errors
from rayapp.core.retry import RetryPolicy, backoff_s
from rayapp.core.runtime import Clock, Runtime
from rayapp.learning.ports import LifecycleStore, Walk
from rayapp.learning.records import Move, PromotionReport, PromotionSchedule
from rayapp.learning.rules import promotion as rules
from rayapp.learning.rules.dedup import later, merge_moves, older_first
from rayapp.memory.item import ChangeType, MemoryItem
from rayapp.memory.ports import Event
from rayapp.memory.rules.creation import lifetime
from rayapp.memory.rules.revision import replaced_state

# What failed and waits before it is tried again, so that it neither blocks nor heats a queue.

# A bad row is tried again after 1 s, then ever more rarely, at last once in ten minutes (as an
# item that the index refuses). `attempts` is not used: nothing is given up.
PAUSE = RetryPolicy(attempts=1, base_s=1.0, max_s=600.0)
# An outage says nothing about the row: it is tried again soon, seconds.
OUTAGE_PAUSE_S = 5.0
# Rows remembered; beyond it the ones that failed longest ago are forgotten and simply tried again.
MAX_REMEMBERED = 5_000


class Pauses:
    """Kept in process: another process tries a bad row once for itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: dict[Hashable, tuple[int, float]] = {}

    def __len__(self) -> int:
        return len(self._failed)

    def failed(self, key: Hashable, *, outage: bool = False) -> float:
        """Note a failure; the pause before the next try, seconds."""
        attempts = self._failed.pop(key, (0, 0.0))[0] + int(not outage)
        pause_s = OUTAGE_PAUSE_S if outage else backoff_s(attempts, PAUSE, 1.0)
        self._failed[key] = (attempts, self._clock.monotonic() + pause_s)
        while len(self._failed) > MAX_REMEMBERED:
            self._failed.pop(next(iter(self._failed)))
        return pause_s

    def waits(self, key: Hashable) -> bool:
        return key in self._failed and self._clock.monotonic() < self._failed[key][1]

    def forget(self, key: Hashable) -> None:
        self._failed.pop(key, None)

    def forget_old(self) -> None:
        """Forget what could have been tried again long ago: somebody else settled it."""
        limit = self._clock.monotonic() - PAUSE.max_s
        for key in [key for key, (_, until) in self._failed.items() if until < limit]:
            del self._failed[key]


# The work of the job `promotion`: the owner's cycle for every user that a rule could touch.

# Users of one partition: enough that its checkpoints cost little, few enough to share the work.
USERS_PER_PARTITION = 100
# A step ends after the user that passes this time, seconds: a pause is then heard soon.
STEP_S = 1.0
# Items read at once while users are listed.
PAGE = 1_000
COUNTED = ("examined", "promoted", "demoted", "archived", "merged", "errors")


class PromotionWork:
    """Implements `JobWork`. A user whose cycle goes on elsewhere is counted as `busy`, not redone:
    that cycle does the same."""

    def __init__(self, promotion: PromotionService, store: LifecycleStore, *, clock: Clock) -> None:
        self._promotion = promotion
        self._store = store
        self._clock = clock

    async def plan(self) -> Plan:
        users = sorted(await self._users())
        shares = [
            users[start : start + USERS_PER_PARTITION]
            for start in range(0, len(users), USERS_PER_PARTITION)
        ]
        return Plan(partitions=shares_of({"users": one} for one in shares), total=len(users))

    async def begin(self, facts: Mapping[str, Any]) -> None:
        """Nothing needs to exist."""

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        users: Sequence[str] = partition.payload["users"]
        first = 0 if cursor is None else int(cursor["next"])
        place, began = first, self._clock.monotonic()
        counts: list[Mapping[str, int]] = []
        while place < len(users) and (place == first or self._clock.monotonic() - began < STEP_S):
            counts.append(await self._cycle(users[place]))
            place += 1
        over = place >= len(users)
        return Step(
            cursor=None if over else {"next": place}, done=place - first, counts=sum_counts(counts)
        )

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        counts = sum_counts(row.counts for row in partitions)
        users = sum(row.done for row in partitions)
        report = {"users": users, **{name: counts.get(name, 0) for name in (*COUNTED, "busy")}}
        return Finish(report=report, complete=not counts.get("errors"))

    async def close(self) -> None:
        """Holds nothing."""

    async def _cycle(self, user_id: str) -> Mapping[str, int]:
        try:
            report = await self._promotion.run(user_id)
        except errors.Conflict:
            return {"busy": 1}
        return _counts(report)

    async def _users(self) -> set[str]:
        """Owners of items that a rule could touch; the same reads as those of one cycle."""
        users: set[str] = set()
        now = self._clock.now()
        for judged in (True, False):
            walk, after = Walk(judged=judged, user_id=None, now=now), None
            while True:
                page = await self._store.candidates(walk, after, PAGE)
                users.update(item.user_id for item in page)
                if len(page) < PAGE:
                    break
                after = page[-1]
        return users


def _counts(report: PromotionReport) -> dict[str, int]:
    found = asdict(report)
    return {name: found[name] for name in COUNTED if found[name]}


log = logging.getLogger("rayapp.promotion")
LEASE = "promotion"
# How long a cycle waits for another one of the same name: 5 looks, about 1 s on average.
BUSY = RetryPolicy(attempts=5, base_s=0.2, max_s=1.0)
# An item that changes while it is decided on is read and decided on again; outcomes of one item
# are seldom nearer to each other than one transaction takes (3 ms), so a few tries are enough.
ITEM = RetryPolicy(attempts=4, base_s=0.01, max_s=0.1)
# Items moved in one transaction, one transaction after the other: each writes the row of the
# lease, so that transactions at the same time would only fight for it. Measured with
# tests/bench/promotion.py, 10,000 items on two busy cores: 32 is faster than 1, 8 and 128 (2.2,
# 1.3 and 1.5 times).
GROUP = 32
# A move may be followed by another one: a pattern that is demoted can be garbage in history. Two
# is the longest chain that the rules allow; the limit only ends a chain that should not exist.
MAX_STEPS = 4

KINDS: dict[rules.Action, tuple[ChangeType, str]] = {
    "promote": (ChangeType.PROMOTE, "promoted"),
    "demote": (ChangeType.DEMOTE, "demoted"),
    "archive": (ChangeType.ARCHIVE, "archived"),
}
MERGED = "merged"


@dataclass(frozen=True, slots=True)
class _Transition:
    """What is asked of the store for one item; `stays` names the item that goes on."""

    moves: tuple[Move, ...]
    event: Event
    stays: str


@dataclass(slots=True)
class _Run:
    """One cycle or check: who acts, under which lease, and what was done. `moved` holds what was
    counted of the page in work: an item counts once for each kind of move."""

    lease: Lease | None
    owner: str
    report: Counter[str] = field(default_factory=Counter)
    moved: set[tuple[str, str | None, str]] = field(default_factory=set)

    def is_new(self, event: Event) -> bool:
        key = (event.user_id, event.memory_id, event.kind)
        known = key in self.moved
        self.moved.add(key)
        return not known


@dataclass(eq=False)
class PromotionService:
    """Cycles of promotion, for one user or for all. Raises Conflict, StoreDown."""

    store: LifecycleStore
    leases: LeaseStore
    _: KW_ONLY
    runtime: Runtime

    def __post_init__(self) -> None:
        self._params = rules.PromotionParams(policy=self.runtime.settings.promotion.policy)

    async def run(self, user_id: str | None) -> PromotionReport:
        """Look at every item that a rule could touch; a second run finds nothing to do.

        Raises Conflict: `busy` when another cycle goes on, `lease_lost` when one took over.
        """
        started = self.runtime.clock.monotonic()
        lease = await self._lease(_lease_name(user_id))
        run = _Run(lease, lease.holder)
        try:
            await self._cycle(user_id, run)
        finally:
            await self.leases.release(run.lease or lease)
        return self._report(run, started)

    async def check(
        self, user_id: str, memory_ids: Sequence[str], *, lease: Lease | None = None
    ) -> PromotionReport:
        """Apply the rules to these items now: the promotion effect of an outcome.

        With `lease`, nothing moves once another owner has it (Conflict, code `lease_lost`).
        """
        started = self.runtime.clock.monotonic()
        run = _Run(lease, self.runtime.process if lease is None else lease.holder)
        await self._settle(await self.store.by_ids(user_id, memory_ids), run)
        return self._report(run, started)

    async def schedule(self, user_id: str | None = None) -> PromotionSchedule:
        """Of the cycles over all users, and of those over this user alone."""
        names = [LEASE] if user_id is None else [LEASE, _lease_name(user_id)]
        owner = await self.leases.current(rules.OWNER_LEASE)
        released = await asyncio.gather(*map(self.leases.last_released, names))
        scheduled = rules.is_scheduled(
            owned=owner is not None,
            last_cycle=released[0],
            interval=timedelta(seconds=self.runtime.settings.promotion.interval_s),
            now=self.runtime.clock.now(),
        )
        return PromotionSchedule(
            interval_ms=round(self.runtime.settings.promotion.interval_s * 1000),
            running=scheduled,
            last_run_at=max((at for at in released if at is not None), default=None),
        )

    async def activity(self, since: datetime) -> list[tuple[str, int, int]]:
        """(user, exchanges stored since then, conversations they came from)."""
        return await self.store.activity(since)

    # --- one cycle

    async def _lease(self, name: str) -> Lease:
        """A holder of its own for every cycle: two cycles of one process exclude each other."""
        holder = f"{self.runtime.process}:{self.runtime.new_id()}"
        for attempt in range(1, BUSY.attempts + 1):
            lease = await self.leases.acquire(name, holder, self.runtime.settings.promotion.lease_s)
            if lease is not None:
                return lease
            if attempt < BUSY.attempts:
                await asyncio.sleep(backoff_s(attempt, BUSY, self.runtime.random()))
        raise errors.Conflict(
            "A promotion cycle is going on: wait until it has finished.",
            code="busy",
            details={"lease": name},
        )

    async def _cycle(self, user_id: str | None, run: _Run) -> None:
        await self._walk(user_id, True, run)
        run.lease = await self._renew(run.lease)
        await self._walk(user_id, False, run)

    async def _walk(self, user_id: str | None, judged: bool, run: _Run) -> None:
        limit, after = self.runtime.settings.promotion.batch_size, None
        while True:
            walk = Walk(judged=judged, user_id=user_id, now=self.runtime.clock.now())
            page = await self.store.candidates(walk, after, limit)
            await self._settle(page, run)
            if len(page) < limit:
                return
            after = page[-1]
            run.lease = await self._renew(run.lease)

    async def _renew(self, lease: Lease | None) -> Lease | None:
        if lease is None:
            return None
        renewed = await self.leases.acquire(
            lease.name, lease.holder, self.runtime.settings.promotion.lease_s
        )
        if renewed is None:
            raise errors.Conflict(
                "Another owner took over: it goes on with the work.",
                code=LEASE_LOST,
                details={"lease": lease.name},
            )
        return renewed

    async def _settle(self, items: Sequence[MemoryItem], run: _Run) -> None:
        """Move each item until no rule applies any more."""
        run.report["examined"] += len(items)
        run.moved.clear()
        for _ in range(MAX_STEPS):
            due = [(item, found) for item in items if (found := self._check(item, run))]
            moved_on: list[MemoryItem] = []
            for start in range(0, len(due), GROUP):
                moved_on += await self._group(due[start : start + GROUP], run)
            items = moved_on
            if not items:
                return

    def _check(self, item: MemoryItem, run: _Run) -> rules.Decision | None:
        """An item that no rule can judge is left where it is."""
        try:
            return self._decision(item)
        except Exception:  # one bad item never stops the cycle
            log.error("item %s is left where it is", item.memory_id, exc_info=True)
            run.report["errors"] += 1
            return None

    def _decision(self, item: MemoryItem) -> rules.Decision | None:
        decision = rules.decide(item, self.runtime.clock.now(), self._params)
        return None if decision.action == "keep" else decision

    async def _group(
        self, due: Sequence[tuple[MemoryItem, rules.Decision]], run: _Run
    ) -> list[MemoryItem]:
        """All of `due` in one transaction; when it refuses, each half, until a bad one is alone."""
        if len(due) == 1:
            alone = await self._alone(due[0][0], run)
            return [alone] if alone is not None else []
        try:
            wanted = [self._plain(item, decision, run) for item, decision in due]
            moves = [move for one in wanted for move in one.moves]
            items = await self.store.transition(
                moves, [one.event for one in wanted], lease=run.lease
            )
        except Exception as error:  # whatever is wrong with one shows when it is alone
            if _lease_lost(error):
                raise
            half = len(due) // 2
            return [*await self._group(due[:half], run), *await self._group(due[half:], run)]
        for one in wanted:
            self._count(one.event, run)
        return items

    async def _alone(self, item: MemoryItem, run: _Run) -> MemoryItem | None:
        """Move one item, deciding again when it changed; None when there is nothing more to do."""
        reason: Exception | None = None
        for attempt in range(1, ITEM.attempts + 1):
            try:
                return await self._step(item, run)
            except errors.NotFound:
                return None
            except Exception as error:  # one bad item never stops the cycle
                last = attempt == ITEM.attempts
                if _lease_lost(error) or (last and isinstance(error, errors.DependencyDown)):
                    raise
                reason = error
                if last or not _worth_a_retry(error):
                    break
            await asyncio.sleep(backoff_s(attempt, ITEM, self.runtime.random()))
            found = await self.store.by_ids(item.user_id, [item.memory_id])
            if not found:
                return None
            item = found[0]
        log.error("item %s is left where it is", item.memory_id, exc_info=reason)
        run.report["errors"] += 1
        return None

    async def _step(self, item: MemoryItem, run: _Run) -> MemoryItem | None:
        decision = self._decision(item)
        if decision is None:
            return None
        other = None
        if decision.to is not None:
            moved = rules.apply_move(item, decision, self.runtime.clock.now())
            other = await self.store.same_text(moved, decision.to)
        if other is None:
            wanted = self._plain(item, decision, run)
        else:
            wanted = self._merge(item, other, decision, run)
        items = await self.store.transition(wanted.moves, [wanted.event], lease=run.lease)
        self._count(wanted.event, run)
        return next((i for i in items if i.memory_id == wanted.stays), None)

    # --- what a transition writes

    def _plain(self, item: MemoryItem, decision: rules.Decision, run: _Run) -> _Transition:
        now = self.runtime.clock.now()
        change, kind = KINDS[decision.action]
        new = rules.apply_move(item, decision, now)
        row = replaced_state(item, change, decision.reason, now)
        to = decision.to.value if decision.to is not None else new.status.value
        event = _event(kind, item, now, {**_why(decision, run), "from": item.tier.value, "to": to})
        move = Move(item=new, expected_version=item.version, row=row)
        return _Transition((move,), event, item.memory_id)

    def _merge(
        self, item: MemoryItem, other: MemoryItem, decision: rules.Decision, run: _Run
    ) -> _Transition:
        """`item` meets `other`, which says the same in the tier it goes to: they become one there.
        The id that was stored first is kept, whichever of the two it is."""
        now = self.runtime.clock.now()
        winner, loser = older_first(item, other)
        arrived = rules.apply_move(item, decision, now) if winner is item else _as_fresh(other, now)
        moves = merge_moves(arrived, loser, now=now, reason=decision.reason, read=winner)
        data = {
            **_why(decision, run),
            "from": item.tier.value,
            "to": arrived.tier.value,
            "into": winner.memory_id,
        }
        return _Transition(tuple(moves), _event(MERGED, loser, now, data), winner.memory_id)

    def _count(self, event: Event, run: _Run) -> None:
        if run.is_new(event):
            run.report[event.kind] += 1
            self.runtime.metrics.count("transitions", kind=event.kind)

    def _report(self, run: _Run, started: float) -> PromotionReport:
        spent_ms = (self.runtime.clock.monotonic() - started) * 1000
        return PromotionReport(**run.report, duration_ms=round(spent_ms, 3))


def _as_fresh(item: MemoryItem, now: datetime) -> MemoryItem:
    """`item` in the tier where another one arrives as it: it lasts as long as what arrives."""
    fresh = lifetime(item.tier, item.instruction, now)
    return replace(item, expires_at=later(item.expires_at, fresh))


def _lease_name(user_id: str | None) -> str:
    return LEASE if user_id is None else f"{LEASE}:{user_id}"


def _lease_lost(error: Exception) -> bool:
    return isinstance(error, errors.Conflict) and error.code == LEASE_LOST


def _worth_a_retry(error: Exception) -> bool:
    changed = isinstance(error, errors.VersionConflict | errors.DuplicateMemory)
    return changed or (isinstance(error, errors.RayappError) and error.retryable)


def _why(decision: rules.Decision, run: _Run) -> dict[str, str]:
    return {"reason": decision.reason, "rule": decision.rule, "owner": run.owner}


def _event(kind: str, item: MemoryItem, now: datetime, data: dict[str, str]) -> Event:
    return Event(
        event_id=rules.transition_id(item, kind),
        user_id=item.user_id,
        kind=kind,
        at=now,
        memory_id=item.memory_id,
        data=data,
    )
