"""Which model the running service serves: its indexers keep a lease of that name alive."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

from rayapp.bulk.ports import LeaseStore
from rayapp.core.vectors import IndexSchema

# An indexer renews about every two seconds; six missed beats mean that there is none.
SERVING_S = 15.0
# Between two looks at a lease that may be a dead process's, seconds.
LOOK_S = 1.0
# Another replica takes over a lease that ended within this time, seconds.
TAKEOVER_S = 5.0

Sleep = Callable[[float], Awaitable[None]]


def serving_lease(schema: IndexSchema) -> str:
    """The lease of one schema. The analyser is part of it, so its whole name is hashed in."""
    basis = f"{schema.model}\n{schema.dims}\n{schema.analyser}"
    return f"serving:{schema.slug}:{hashlib.sha256(basis.encode()).hexdigest()[:12]}"


async def beat(leases: LeaseStore, schema: IndexSchema, process: str) -> None:
    """Called by every indexer whose index is open; one of them holds the lease."""
    await leases.acquire(serving_lease(schema), process, SERVING_S)


async def served_now(leases: LeaseStore, schema: IndexSchema) -> bool:
    """One look, for who learned from `is_served` that nobody did: a lease that is there now is of
    a process that was started since."""
    return await leases.current(serving_lease(schema)) is not None


async def is_served(leases: LeaseStore, schema: IndexSchema, sleep: Sleep) -> bool:
    """True when a service runs with `schema`. May take as long as a dead process's lease lasts.

    Only a renewed lease proves a living process; a lease that is away may just change hands.
    """
    name = serving_lease(schema)
    first = await leases.current(name)
    waited_s = missing_s = 0.0
    while waited_s <= SERVING_S + TAKEOVER_S:
        now = await leases.current(name)
        if now is None:
            if missing_s >= TAKEOVER_S:
                return False
            missing_s += LOOK_S
        elif first is None or now.expires_at > first.expires_at:
            return True
        else:
            missing_s = 0.0
        await sleep(LOOK_S)
        waited_s += LOOK_S
    return False
