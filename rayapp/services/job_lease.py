"""The lease of a job's driver: one per kind, renewed while it works, given back at its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from rayapp.domain.job_kinds import lease_of
from rayapp.errors import Conflict, RayappError
from rayapp.protocols import Clock, Lease, LeaseStore
from rayapp.services.job_steps import PASSING, Sleep

T = TypeVar("T")

# Renewed three times in its life, so that two lost attempts do no harm.
RENEWALS = 3
# Between two tries while another holder has it or the store is away, seconds.
RETRY_S = 0.5


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
    """Taken by one driver of a kind."""

    def __init__(
        self,
        leases: LeaseStore,
        kind: str,
        holder: str,
        *,
        ttl_s: float,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._leases, self._holder, self._ttl_s = leases, holder, ttl_s
        self._name = lease_of(kind)
        self._clock, self._sleep = clock, sleep
        self._lease: Lease | None = None

    async def acquire(self) -> Lease | None:
        """Take it; None when its holder is alive.

        A holder is alive when it renews. One that was killed does not, so this waits until its
        lease has run out, which is one lifetime at most.
        """
        seen: Lease | None = None
        while (lease := await self._take()) is None:
            held = await self._leases.current(self._name)
            if seen is not None and held is not None and held != seen:
                return None
            seen = held or seen
            await self._sleep(RETRY_S)
        self._lease = lease
        return lease

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` while renewing; cancel it as soon as the lease is lost.

        Raises Conflict, code `lease_lost`; what the store raised when it was away for too long.
        """
        return await beside(work, self._renew())

    async def release(self) -> None:
        """Give it back; a store that is away lets it run out instead."""
        if self._lease is not None:
            with contextlib.suppress(RayappError):
                await self._leases.release(self._lease)

    async def _renew(self) -> None:
        good_at, pause_s = self._clock.monotonic(), self._ttl_s / RENEWALS
        while True:
            await self._sleep(pause_s)
            asked_at = self._clock.monotonic()
            try:
                lease = await self._take()
            except PASSING:
                if self._clock.monotonic() - good_at >= self._ttl_s:
                    raise
                pause_s = RETRY_S
                continue
            if lease is None or self._lease is None or lease.fence != self._lease.fence:
                self._lease = lease
                raise Conflict(
                    "This driver lost its lease and stopped: run the job again to go on.",
                    code="lease_lost",
                )
            good_at, pause_s = asked_at, self._ttl_s / RENEWALS

    def _take(self) -> Awaitable[Lease | None]:
        return self._leases.acquire(self._name, self._holder, self._ttl_s)
