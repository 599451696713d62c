"""Registries of tenants in process memory. They pass the contract suite of MongoDB's store."""

from collections.abc import Sequence

from rayapp.core.scope import ReadScope
from rayapp.memory.ports import Event
from rayapp.memory.rules.filtering import checked_user
from rayapp.understanding.statements.records import Statement
from rayapp.understanding.statements.rules.additions import (
    RegistryVersion,
    Ruling,
    Witness,
    tenant_of,
)
from rayapp.understanding.statements.rules.registry import DETAIL
from tests.support.stores.knowledge import InMemoryKnowledgeStore


class InMemoryRegistryStore:
    """Implements `RegistryStore`. `told`: what the event stream would tell."""

    def __init__(self, knowledge: InMemoryKnowledgeStore) -> None:
        self._knowledge = knowledge
        self._versions: dict[tuple[str, int], RegistryVersion] = {}
        self._rulings: dict[tuple[str, str], Ruling] = {}
        self.told: list[Event] = []

    async def version(self, tenant: str, number: int | None) -> RegistryVersion | None:
        found = await self.versions(tenant, len(self._versions))
        return next((one for one in found if number in (None, one.version)), None)

    async def versions(self, tenant: str, limit: int) -> list[RegistryVersion]:
        found = [one for (whose, _), one in self._versions.items() if whose == tenant]
        return sorted(found, key=lambda one: one.version, reverse=True)[: max(0, limit)]

    async def rulings(self, tenant: str) -> list[Ruling]:
        found = [one for (whose, _), one in self._rulings.items() if whose == tenant]
        return sorted(found, key=lambda one: one.at, reverse=True)

    async def rule(
        self, ruling: Ruling, version: RegistryVersion | None, told: Sequence[Event]
    ) -> bool:
        if version is not None:
            key = version.tenant, version.version
            if key in self._versions:
                return False
            self._versions[key] = version
        self._rulings[ruling.tenant, ruling.proposal_id] = ruling
        self.told += told
        return True

    async def labels(self, scope: ReadScope) -> list[str]:
        user_id = checked_user(scope.user_id)
        return sorted({one.label or "" for who, one in self._labelled() if who == user_id})

    async def witnesses(self, tenant: str, labels: Sequence[str], limit: int) -> list[Witness]:
        found = [
            (user_id, one)
            for user_id, one in self._labelled()
            if tenant_of(user_id) == tenant and one.label in labels
        ]
        found.sort(key=lambda pair: pair[1].statement_id)
        found.sort(key=lambda pair: pair[1].confirmed_at, reverse=True)
        return [self._witness(user_id, one) for user_id, one in found[: max(0, limit)]]

    async def having(self, tenant: str, types: Sequence[str]) -> list[str]:
        rows = self._knowledge.tables.entities.items()
        users = {who for (who, _), one in rows if one.type in types}
        return sorted(who for who in users if tenant_of(who) == tenant)

    async def is_alone(self, user_id: str) -> bool:
        tenant = tenant_of(user_id)
        users = {who for who, _ in self._knowledge.tables.given if tenant_of(who) == tenant}
        return users <= {user_id}

    async def forget(self, tenant: str) -> int:
        before = len(self._versions) + len(self._rulings)
        self._versions = {key: one for key, one in self._versions.items() if key[0] != tenant}
        self._rulings = {key: one for key, one in self._rulings.items() if key[0] != tenant}
        return before - len(self._versions) - len(self._rulings)

    def _labelled(self) -> list[tuple[str, Statement]]:
        return [
            (user_id, one)
            for (user_id, _), one in self._knowledge.tables.statements.items()
            if one.label is not None and one.relation != DETAIL
        ]

    def _witness(self, user_id: str, one: Statement) -> Witness:
        given = self._knowledge.tables.given.get((user_id, one.source_id or ""))
        return Witness(
            user_id=user_id,
            source_id=one.source_id,
            conversation_id=given.conversation_id if given else None,
            fact_id=one.fact_id,
            label=one.label or "",
            has_value=one.value is not None,
            said_at=one.confirmed_at,
        )
