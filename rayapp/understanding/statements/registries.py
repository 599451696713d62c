"""The registry of each tenant: the shipped one with what the tenant has added to it."""

from dataclasses import dataclass, field

from rayapp.core.errors import NotFound
from rayapp.core.runtime import Clock
from rayapp.understanding.statements.ports import RegistryStore
from rayapp.understanding.statements.rules.additions import TenantRegistry, tenant_of
from rayapp.understanding.statements.rules.growing import grown
from rayapp.understanding.statements.rules.registry import Ontology

# How long a process goes by a version that it has read, seconds.
KEPT_S = 2.0


@dataclass(eq=False)
class Registries:
    """Reads alone."""

    base: Ontology
    store: RegistryStore
    clock: Clock
    _kept: dict[str, tuple[float, TenantRegistry]] = field(default_factory=dict)

    async def of(self, user_id: str) -> Ontology:
        """The registry that the user's texts are read by."""
        return (await self.latest(tenant_of(user_id))).ontology

    async def latest(self, tenant: str) -> TenantRegistry:
        now = self.clock.monotonic()
        kept = self._kept.get(tenant)
        if kept is None or now - kept[0] >= KEPT_S:
            found = await self.store.version(tenant, None)
            kept = now, TenantRegistry(grown(self.base, found), found)
            # Without those that are read again anyway: a process sees many tenants in its life.
            fresh = {one: it for one, it in self._kept.items() if now - it[0] < KEPT_S}
            self._kept = {**fresh, tenant: kept}
        return kept[1]

    async def at(self, tenant: str, number: int) -> TenantRegistry:
        """An earlier version. Raises NotFound."""
        if number == self.base.version:
            return TenantRegistry(self.base)
        found = await self.store.version(tenant, number)
        if found is None:
            raise NotFound("The registry has no such version; read it without one to see which.")
        return TenantRegistry(grown(self.base, found), found)

    def forget(self, tenant: str) -> None:
        """Read it again: it has changed."""
        self._kept.pop(tenant, None)
