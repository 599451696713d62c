"""What was last seen of the index, and the pause of every indexer while its alias moves."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, TypeVar

from rayapp.bulk.ports import Lease, LeaseStore
from rayapp.core.breaker import Breaker
from rayapp.core.cancelling import end
from rayapp.core.errors import Conflict, DependencyDown, RayappError
from rayapp.core.runtime import Clock
from rayapp.index.ports import ItemScan, VectorIndex
from rayapp.memory.ports import MemoryStore

SWITCH_LEASE = "index_switch"
# Ends by itself when its holder dies: indexing then goes on after so many seconds.
HOLD_S = 20.0
# Renewed so often within that time, so that lost attempts do no harm.
RENEWALS = 4
# Before a renewal is tried again while the store is away, seconds.
RETRY_S = 0.5
# Between two looks at the claims, seconds: a batch takes about 0.2 s.
LOOK_S = 0.1
# A claim ends at its time by the server's clock; waiting a little longer than that is enough.
CLAIM_SLACK_S = 5.0

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


async def held(leases: LeaseStore) -> bool:
    """True while no indexer may claim."""
    return await leases.current(SWITCH_LEASE) is not None


async def uncut(work: Coroutine[Any, Any, T]) -> T:
    """What must not be left half done: a cancel waits for the end of `work` and is raised then."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


@dataclass(eq=False)
class WriteBarrier:
    """`async with`: a task of its own renews the hold, whatever the block does. When the hold is
    lost the block is cancelled, and the reason is raised instead.

    Attributes:
        sleep: between the looks of this object.
        pause: between two renewals.
    """

    leases: LeaseStore
    scan: ItemScan
    _: KW_ONLY
    holder: str
    claim_s: float
    clock: Clock
    sleep: Sleep = asyncio.sleep
    pause: Sleep = asyncio.sleep

    def __post_init__(self) -> None:
        self._lease: Lease | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._owner: asyncio.Task[object] | None = None
        self._cancels = 0
        self._lost: RayappError | None = None

    async def __aenter__(self) -> Self:
        """Waits for an earlier holder that died; DependencyDown when it is still alive."""
        end = self.clock.monotonic() + 2 * HOLD_S
        while self._lease is None:
            try:
                await uncut(self._take())
            except asyncio.CancelledError:
                await uncut(self._give_back())
                raise
            if self._lease is None:
                if self.clock.monotonic() >= end:
                    raise DependencyDown("Another job moves the index alias: try again shortly.")
                await self.sleep(LOOK_S * 10)
        self._owner = asyncio.current_task()
        self._cancels = self._owner.cancelling() if self._owner is not None else 0
        self._renewing = asyncio.create_task(self._renew())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: object
    ) -> None:
        await uncut(self._give_back())
        if self._lost is None or self._owner is None:
            return
        # Only the cancel of this object is turned into its reason: another one goes on outwards.
        others = self._owner.uncancel() > self._cancels
        if not others and (kind is None or kind is asyncio.CancelledError):
            raise self._lost from error

    async def renew(self) -> None:
        """Raises Conflict when the hold was lost, so that nothing is switched without it."""
        lease = await self.leases.acquire(SWITCH_LEASE, self.holder, HOLD_S)
        if lease is None or self._lease is None or lease.fence != self._lease.fence:
            raise Conflict("The hold on the indexers was lost: run the job again.")
        self._lease = lease

    async def until_idle(self) -> None:
        """Until no batch of an indexer is under way; claims end by themselves at the latest."""
        end = self.clock.monotonic() + self.claim_s + CLAIM_SLACK_S
        while await self.scan.in_flight():
            if self.clock.monotonic() >= end:
                raise DependencyDown("The indexers do not stop claiming: see their logs.")
            await self.renew()
            await self.sleep(LOOK_S)
        await self.renew()

    async def _take(self) -> None:
        self._lease = await self.leases.acquire(SWITCH_LEASE, self.holder, HOLD_S)

    async def _give_back(self) -> None:
        if self._renewing is not None:
            await end(self._renewing)
        if self._lease is not None:
            lease, self._lease = self._lease, None
            with suppress(RayappError):  # a store that is away lets it run out instead
                await self.leases.release(lease)

    async def _renew(self) -> None:
        """Until the block ends, or cancels it."""
        good_at, pause_s = self.clock.monotonic(), HOLD_S / RENEWALS
        while self._lost is None:
            await self.pause(pause_s)
            asked_at = self.clock.monotonic()
            try:
                await self.renew()
            except RayappError as error:
                if not error.retryable or self.clock.monotonic() - good_at >= HOLD_S:
                    self._lost = error
                pause_s = RETRY_S
            else:
                good_at, pause_s = asked_at, HOLD_S / RENEWALS
        if self._owner is not None:
            self._owner.cancel()


# What was last seen of the index; refreshed beside the requests, read by each of them.


@dataclass(slots=True)
class IndexMonitor:
    """One per process.

    Attributes:
        rebuilding: it answers, but with a part of the truth.
        refused: it was built for another model or analyser; its answers mean nothing here.
        has_failed: some items gave up, so the index does not hold their current state.
        points: how many points it held, of all users.
    """

    breaker: Breaker
    rebuilding: bool = False
    refused: bool = False
    has_failed: bool = False
    points: int = 0

    @property
    def reason(self) -> str | None:
        """Why the index must not be asked; None when it may."""
        if self.refused:
            return "index_refused"
        return "index_rebuilding" if self.rebuilding else None

    async def look(self, index: VectorIndex, store: MemoryStore) -> None:
        """Refresh; a part that is away leaves what was known of it."""
        with suppress(RayappError):
            health = await index.health()
            self.rebuilding, self.points = health.needs_rebuild, health.points
        with suppress(RayappError):
            self.has_failed = bool(await store.failures(1))
