"""Keeps every indexer from claiming for the seconds in which the alias of the index moves.

Stores go on: what is stored meanwhile stays pending, which searches show from the truth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from rayapp.errors import Conflict, DependencyDown
from rayapp.job_protocols import ItemScan
from rayapp.protocols import Clock, Lease, LeaseStore

SWITCH_LEASE = "index_switch"
# Ends by itself when its holder dies: indexing then goes on after so many seconds.
HOLD_S = 20.0
# Between two looks at the claims, seconds: a batch takes about 0.2 s.
LOOK_S = 0.1
# A claim ends at its time by the server's clock; waiting a little longer than that is enough.
CLAIM_SLACK_S = 5.0

Sleep = Callable[[float], Awaitable[None]]


async def held(leases: LeaseStore) -> bool:
    """True while no indexer may claim."""
    return await leases.current(SWITCH_LEASE) is not None


class IndexHold:
    """`async with`; `renew` within, at least every few seconds."""

    def __init__(
        self,
        leases: LeaseStore,
        scan: ItemScan,
        *,
        holder: str,
        claim_s: float,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._leases, self._scan = leases, scan
        self._holder, self._claim_s = holder, claim_s
        self._clock, self._sleep = clock, sleep
        self._lease: Lease | None = None

    async def __aenter__(self) -> IndexHold:
        """Waits for an earlier holder that died; DependencyDown when it is still alive."""
        end = self._clock.monotonic() + 2 * HOLD_S
        while self._lease is None:
            self._lease = await self._leases.acquire(SWITCH_LEASE, self._holder, HOLD_S)
            if self._lease is None:
                if self._clock.monotonic() >= end:
                    raise DependencyDown("Another job moves the index alias: try again shortly.")
                await self._sleep(LOOK_S * 10)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._lease is not None:
            lease, self._lease = self._lease, None
            await self._leases.release(lease)

    async def renew(self) -> None:
        """Raises Conflict when the hold was lost, so that nothing is switched without it."""
        lease = await self._leases.acquire(SWITCH_LEASE, self._holder, HOLD_S)
        if lease is None or self._lease is None or lease.fence != self._lease.fence:
            raise Conflict("The hold on the indexers was lost: run the job again.")
        self._lease = lease

    async def until_idle(self) -> None:
        """Until no batch of an indexer is under way; claims end by themselves at the latest."""
        end = self._clock.monotonic() + self._claim_s + CLAIM_SLACK_S
        while await self._scan.in_flight():
            if self._clock.monotonic() >= end:
                raise DependencyDown("The indexers do not stop claiming: see their logs.")
            await self.renew()
            await self._sleep(LOOK_S)
        await self.renew()
