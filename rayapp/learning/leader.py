"""When the owner acts: on tiers at start, on schedule, after exchanges; and its named tasks."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta

from rayapp.assistant.extraction.service import ExchangeLearning
from rayapp.bulk.ports import Lease, LeaseStore
from rayapp.core.cancelling import end
from rayapp.core.errors import Conflict, RayappError
from rayapp.core.runtime import Clock, Runtime
from rayapp.learning.outbox import OutboxService
from rayapp.learning.promotion import PromotionService
from rayapp.learning.rules.promotion import OWNER_LEASE, Activity, cycle_due

log = logging.getLogger("rayapp.maintenance")


# After a task failed, or asked for it, it is tried again so soon, seconds; sooner when it is due.
RETRY_S = 60.0
# `every_s` of a task that is done once in the life of an owner.
ONCE = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicTask:
    """One thing that the owner does again and again.

    Attributes:
        every_s: pause from one begin to the next one.
        first_s: pause before the first one, from when a process became the owner.
        run: False = it was not done, and is tried again soon; anything else = it was.
    """

    name: str
    every_s: float
    first_s: float
    run: Callable[[], Awaitable[object]]


class PeriodicTasks:
    """Runs what is due, one after the other. A task that fails never stops the others."""

    def __init__(self, tasks: Sequence[PeriodicTask], clock: Clock) -> None:
        self._periodic = tuple(tasks)
        self._clock = clock
        self._due: dict[str, float] = {}

    def forget(self) -> None:
        """This process is not the owner any more: it begins anew when it is."""
        self._due = {}

    async def run_due(self) -> None:
        now = self._clock.monotonic()
        for task in self._periodic:
            due = self._due.setdefault(task.name, now + task.first_s)
            if due <= now:
                await self._run(task)

    async def _run(self, task: PeriodicTask) -> None:
        began, done = self._clock.monotonic(), False
        try:
            done = await task.run() is not False
        except RayappError as error:
            log.warning("%s waits: %s", task.name, error.message)
        except Exception:  # a bug in one task must not stop the others
            log.exception("%s failed and is tried again", task.name)
        self._due[task.name] = began + (task.every_s if done else min(task.every_s, RETRY_S))


# Pause between two looks at who stored enough for a cycle, seconds.
ACTIVITY_S = 10.0
# Pause between two cleanings of dead graph references, seconds, and rows per cleaning.
CLEAN_S = 600.0
CLEAN_ROWS = 10_000


@dataclass(slots=True)
class _Times:
    """When each task was last done, seconds of the monotonic clock; None = never."""

    cycle: float | None = None
    activity: float | None = None
    clean: float | None = None


@dataclass(eq=False)
class MaintenanceService:
    """`drain` and `act` are called again and again by the deployment's loops."""

    promotion: PromotionService
    outbox: OutboxService
    leases: LeaseStore
    _: KW_ONLY
    tasks: Sequence[PeriodicTask] = ()
    learning: ExchangeLearning | None = None
    runtime: Runtime

    def __post_init__(self) -> None:
        self._periodic = PeriodicTasks(self.tasks, self.runtime.clock)
        self._times = _Times()
        self._lease: Lease | None = None
        # Before the first cycle: what was stored since a cycle would have run.
        self._window = self.runtime.clock.now() - timedelta(
            seconds=self.runtime.settings.promotion.interval_s
        )
        self._seen: dict[str, Activity] = {}

    async def drain(self) -> int:
        """Settle one batch of what outcomes and changed items owe; tiers only as their owner.

        On a full disk it waits in the outbox, as what is to be learned and every task but the
        lease do.
        """
        if self.runtime.disk.full:
            return 0
        return await self.outbox.run_once(self._lease, promotes=self._lease is not None)

    async def learn(self) -> int:
        """Learn from one batch of exchanges; every process may, because each is claimed by one."""
        if self.learning is None or self.runtime.disk.full:
            return 0
        return await self.learning.run_once()

    async def act(self) -> bool:
        """Do every task that is due, if this process is the owner; whether it is."""
        self._lease = await self.leases.acquire(
            OWNER_LEASE, self.runtime.process, self.runtime.settings.promotion.lease_s
        )
        if self._lease is None:
            self._times = _Times()  # whoever becomes the owner starts with a cycle
            self._periodic.forget()
            return False
        if self.runtime.disk.full:
            return True
        # A backup takes longer than the lease: whoever took it would make one as well.
        renewing = asyncio.create_task(self._renew())
        try:
            await self._do_what_is_due()
        finally:
            await end(renewing)
        return True

    async def _renew(self) -> None:
        """Until it is lost, or ended."""
        lease_s = self.runtime.settings.promotion.lease_s
        while self._lease is not None:
            await asyncio.sleep(lease_s / 3)
            with suppress(RayappError):  # the store is away: so it is for whoever waits for it
                self._lease = await self.leases.acquire(OWNER_LEASE, self.runtime.process, lease_s)

    async def _do_what_is_due(self) -> None:
        if self._is_due(self._times.cycle, self.runtime.settings.promotion.interval_s):
            await self._cycle_of_all()
        if self._is_due(self._times.activity, ACTIVITY_S):
            await self._busy_users()
            self._times.activity = self.runtime.clock.monotonic()
        if self._is_due(self._times.clean, CLEAN_S):
            await self.outbox.clean(CLEAN_ROWS)
            self._times.clean = self.runtime.clock.monotonic()
        await self._periodic.run_due()

    async def release(self) -> None:
        """Give the lease back, so that another process takes over at once."""
        try:
            lease, self._lease = await self.leases.current(OWNER_LEASE), None
            if lease is not None and lease.holder == self.runtime.process:
                await self.leases.release(lease)
        finally:
            if self.learning is not None:
                await self.learning.close()

    async def _cycle_of_all(self) -> None:
        began, now = self.runtime.clock.monotonic(), self.runtime.clock.now()
        if await self._cycle(None):
            self._times.cycle = began
            self._window, self._seen = now, {}

    async def _busy_users(self) -> None:
        """A cycle for everybody who stored enough, or changed the conversation, since theirs."""
        for user_id, stored, conversations in await self.promotion.activity(self._window):
            activity = Activity(stored, conversations)
            seen = self._seen.get(user_id, Activity())
            due = cycle_due(activity, seen, self.runtime.settings.promotion.exchanges)
            if due and await self._cycle(user_id):
                self._seen[user_id] = activity

    async def _cycle(self, user_id: str | None) -> bool:
        """False when it must be tried again soon."""
        try:
            report = await self.promotion.run(user_id)
        except Conflict:
            return True  # somebody asked for the same cycle by hand
        except RayappError as error:
            log.warning("promotion waits: %s", error.message)
            return False
        if report.promoted or report.demoted or report.archived or report.merged or report.errors:
            log.info("promotion cycle: %s", report)
        return True

    def _is_due(self, last: float | None, every_s: float) -> bool:
        return last is None or self.runtime.clock.monotonic() - last >= every_s
