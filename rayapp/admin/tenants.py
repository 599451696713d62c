"""Tenants for operators: who they are, and erasing one as a whole (decision 0076)."""

import asyncio
from collections import Counter
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

from rayapp.admin.ports import ApiKeyStore
from rayapp.admin.retention import LegalHolds
from rayapp.core.errors import NotFound
from rayapp.core.runtime import Runtime
from rayapp.memory.scope import WriteScope
from rayapp.portability.erasure import ARCHIVES, ErasureService
from rayapp.portability.files import ArchiveFiles
from rayapp.portability.ports import UserArchive
from rayapp.understanding.statements.ports import RegistryStore

# What a tenant has added to the registry, among what was removed.
REGISTRY = "ontology"
# Users erased at once: each waits for the indexer most of its time.
AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """`keys`: those that open something. `users`: with anything kept of them."""

    org_id: str
    keys: int
    users: int
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantUser:
    """`user_id`: with its tenant. `held`: an operator keeps the data from being deleted."""

    user_id: str
    memories: int
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantErased:
    """`removed`, `left`, `unseen`: of all its users, by place, as certificates say them.

    `users_left`: still to be erased, by the same request again.
    """

    org_id: str
    keys_revoked: int
    users: int
    users_left: int
    removed: dict[str, int]
    left: dict[str, int]
    unseen: tuple[str, ...]

    @property
    def complete(self) -> bool:
        return not self.users_left and not any(self.left.values()) and not self.unseen


class TenantStores(Protocol):
    """Which tenants there are, and whose rows."""

    api_keys: ApiKeyStore
    archive: UserArchive
    registry: RegistryStore


@dataclass(eq=False)
class TenantsService:
    """Raises StoreDown."""

    stores: TenantStores
    holds: LegalHolds
    erasure: ErasureService
    files: ArchiveFiles
    _: KW_ONLY
    runtime: Runtime

    async def all(self) -> list[Tenant]:
        """Those that a key was ever made for, by name; the default one has none and is left out."""
        living: Counter[str] = Counter()
        now = self.runtime.clock.now()
        for key in await self.stores.api_keys.all():
            if key.org_id is not None:
                living[key.org_id] += key.living_at(now)
        found = []
        for org_id, keys in sorted(living.items()):
            owners = await self.stores.archive.owners(org_id)
            memories = sum(owners.values())
            found.append(Tenant(org_id=org_id, keys=keys, users=len(owners), memories=memories))
        return found

    async def users(self, org_id: str) -> list[TenantUser]:
        """Those of whom anything is kept, by name. A tenant that nobody knows has none."""
        owners, held = await asyncio.gather(self.stores.archive.owners(org_id), self.holds.users())
        return [
            TenantUser(user_id=owner, memories=owners[owner], held=owner in held)
            for owner in sorted(owners)
        ]

    async def erase(self, org_id: str) -> TenantErased:
        """Revoke its keys, then erase its users, some at once, until the time of a request is over.
        A repeat goes on.

        Raises:
            NotFound: no key and no row names the tenant.
            Conflict: one of its users is held; nothing is erased.
        """
        until = self.runtime.clock.monotonic() + self.runtime.stream_budget_s
        owners = sorted(await self.stores.archive.owners(org_id))
        if not owners and all(key.org_id != org_id for key in await self.stores.api_keys.all()):
            raise NotFound("There is no such tenant; list them to see their names.")
        for held in sorted(await self.holds.users() & set(owners)):
            await self.holds.check(held)
        revoked = await self.stores.api_keys.revoke(None, self.runtime.clock.now(), org_id=org_id)
        removed: Counter[str] = Counter()
        left: Counter[str] = Counter()
        unseen: set[str] = set()
        for at in range(0, len(owners), AT_ONCE):
            scopes = [WriteScope(one, "tenant erasure") for one in owners[at : at + AT_ONCE]]
            for found in await asyncio.gather(*(self.erasure.erase(one, until) for one in scopes)):
                removed.update(found.removed)
                left.update(found.left)
                unseen.update(found.unseen)
            if self.runtime.clock.monotonic() >= until:
                break
        removed[ARCHIVES] += await self.files.erase_tenant(org_id)
        rest = await self.stores.archive.owners(org_id)
        if not rest:
            removed[REGISTRY] += await self.stores.registry.forget(org_id)
        return TenantErased(
            org_id=org_id,
            keys_revoked=revoked,
            users=len(set(owners) - rest.keys()),
            users_left=len(rest),
            removed=dict(sorted(removed.items())),
            left=dict(sorted(left.items())),
            unseen=tuple(sorted(unseen)),
        )
