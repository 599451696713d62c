"""The lease of a job's driver: one per kind, renewed while it works, given back at its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from rayapp.bulk.kinds import lease_of
from rayapp.bulk.ports import Lease, LeaseStore
from rayapp.bulk.rules import LEASE_LOST
from rayapp.bulk.steps import PASSING, Sleep
from rayapp.core.errors import Conflict, RayappError
from rayapp.core.ports import Clock

log = logging.getLogger("rayapp.jobs")
T = TypeVar("T")

# Renewed three times in its life, so that two lost attempts do no harm.
RENEWALS = 3
# Between two tries while another holder has it or the store is away, seconds.
RETRY_S = 0.5

# Carries what the driver has from its old fence to its new one. Conflict, code `lease_lost`: what
# it had is another driver's, or was.
Move = Callable[[int, int], Awaitable[None]]


async def beside(main: Coroutine[Any, Any, T], side: Coroutine[Any, Any, None]) -> T:
    """The result of `main`, while `side` runs; an error of `side` cancels `main` and is raised."""
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(main), asyncio.create_task(side)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            tasks[1].result()
        return await tasks[0]  # type: ignore[no-any-return]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class JobLease:
    """In the hands of one driver of a kind.

    A renewal may come late, after a stall of the machine. If nobody else had the lease meanwhile,
    it is taken back with a new fence, the next one: `move` carries the job to it, and the driver
    goes on.
    """

    def __init__(
        self,
        leases: LeaseStore,
        kind: str,
        holder: str,
        move: Move,
        *,
        ttl_s: float,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._leases, self._holder, self._ttl_s = leases, holder, ttl_s
        self._name, self._move = lease_of(kind), move
        self._clock, self._sleep = clock, sleep
        self._lease: Lease | None = None
        self._fence = 0
        # Held while a renewal may change the fence.
        self._steady = asyncio.Lock()

    @property
    def fence(self) -> int:
        """That of every write from now on."""
        return self._fence

    async def acquire(self) -> bool:
        """Try once to take it."""
        self._lease = await self._take()
        if self._lease is None:
            return False
        self._fence = self._lease.fence
        return True

    async def held(self) -> Lease | None:
        """Whoever has it now."""
        return await self._leases.current(self._name)

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` while renewing; cancel it as soon as another driver has the lease or the job.

        Raises Conflict, code `lease_lost`; what the store raised when it was away for too long.
        """
        return await beside(work, self._renew())

    async def release(self) -> None:
        """Give it back; a store that is away lets it run out instead."""
        if self._lease is not None:
            with contextlib.suppress(RayappError):
                await self._leases.release(self._lease)

    async def confirm(self) -> None:
        """Renew now: nobody else had the lease from `acquire` to this moment.

        Raises Conflict, code `lease_lost`, when somebody had.
        """
        async with self._steady:
            await self._renew_once()

    def steady(self) -> asyncio.Lock:
        """While it is held the fence does not change."""
        return self._steady

    async def fenced(self, call: Callable[[int], Awaitable[T]]) -> T:
        """`call` with the present fence, and again when that one moved on while it ran."""
        while True:
            fence = self._fence
            try:
                return await call(fence)
            except Conflict as error:
                if not await self.outlived(error, fence):
                    raise

    async def outlived(self, error: Conflict, fence: int) -> bool:
        """Whether `error` refused a write only because this driver has a later fence by now."""
        if error.code != LEASE_LOST:
            return False
        async with self._steady:
            return self._fence != fence

    async def _renew(self) -> None:
        failing_since: float | None = None
        pause_s = self._ttl_s / RENEWALS
        while True:
            await self._sleep(pause_s)
            asked_at = self._clock.monotonic()
            try:
                async with self._steady:
                    await self._renew_once()
            except PASSING:
                # Not since the last good renewal: that may be long ago only because of a stall.
                failing_since = asked_at if failing_since is None else failing_since
                if self._clock.monotonic() - failing_since >= self._ttl_s:
                    raise
                pause_s = RETRY_S
                continue
            failing_since, pause_s = None, self._ttl_s / RENEWALS

    async def _renew_once(self) -> None:
        had = 0 if self._lease is None else self._lease.fence
        self._lease = lease = await self._take()
        # Every other holder has taken one fence.
        if lease is None or lease.fence > had + 1:
            raise Conflict("Another driver got the lease of this one.", code=LEASE_LOST)
        if lease.fence != self._fence:
            log.warning("%s was renewed late: taken back as %d", self._name, lease.fence)
            await self._move(self._fence, lease.fence)
            self._fence = lease.fence

    def _take(self) -> Awaitable[Lease | None]:
        return self._leases.acquire(self._name, self._holder, self._ttl_s)
