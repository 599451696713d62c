"""What every store of the registries of tenants does."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.understanding.statements.ports import KnowledgeRows, KnowledgeStore, RegistryStore
from rayapp.understanding.statements.rules.additions import (
    AddedKind,
    RegistryVersion,
    Ruling,
    RulingState,
)
from rayapp.understanding.statements.rules.growing import added
from tests.support.knowledge_contract import a_gift, a_statement, an_entity

AT = datetime(2026, 5, 20, 9, tzinfo=UTC)
DANA, NOA, AVI = "dana", "noa", "acme/avi"


def a_version(number: int, tenant: str = "") -> RegistryVersion:
    hobby = added(AddedKind.TYPE, "Hobby", ("hobby", "תחביב"), 2)
    return RegistryVersion(tenant=tenant, version=number, additions=(hobby,), by=DANA, at=AT)


def a_ruling(proposal: str = "p-1", tenant: str = "") -> Ruling:
    return Ruling(
        tenant=tenant,
        proposal_id=proposal,
        kind=AddedKind.TYPE,
        label="hobby",
        name="Hobby",
        state=RulingState.ACCEPTED,
        by=DANA,
        at=AT,
    )


class RegistryStoreContract:
    """`store` reads the statements of `knowledge`."""

    @pytest.fixture
    def knowledge(self) -> KnowledgeStore:
        raise NotImplementedError

    @pytest.fixture
    def store(self, knowledge: KnowledgeStore) -> RegistryStore:
        raise NotImplementedError

    async def said(
        self, knowledge: KnowledgeStore, user_id: str, number: int, label: str, **fields: object
    ) -> None:
        """A statement under a label."""
        fields = {"relation": "RELATED_TO", "object_id": None, "value": "chess", **fields}
        one = a_statement(number, label=label, source_id=f"m{number}", **fields)

        async def work(rows: KnowledgeRows) -> None:
            gift = replace(a_gift(f"m{number}"), conversation_id=f"talk-{number}")
            await rows.put_given([gift])
            await rows.put_statements([one])

        await knowledge.change(WriteScope(user_id), work)

    async def test_versions_are_kept_by_tenant(self, store: RegistryStore) -> None:
        assert await store.version("", None) is None
        for number in (2, 3):
            assert await store.rule(a_ruling(), a_version(number), ())
        assert await store.rule(a_ruling(tenant="acme"), a_version(2, "acme"), ())
        assert await store.version("", None) == a_version(3)
        assert await store.version("", 2) == a_version(2)
        assert await store.version("", 7) is None
        assert [one.version for one in await store.versions("", 5)] == [3, 2]
        assert await store.versions("acme", 5) == [a_version(2, "acme")]

    async def test_one_of_two_makes_a_version(self, store: RegistryStore) -> None:
        assert await store.rule(a_ruling(), a_version(2), ())
        assert not await store.rule(a_ruling("p-2"), replace(a_version(2), by=NOA), ())
        found = await store.version("", 2)
        assert found is not None
        assert found.by == DANA
        assert await store.rulings("") == [a_ruling()]

    async def test_the_last_ruling_counts(self, store: RegistryStore) -> None:
        await store.rule(a_ruling(), None, ())
        undone = replace(a_ruling(), state=RulingState.UNDONE)
        await store.rule(undone, None, ())
        later = replace(a_ruling("p-2"), at=AT + timedelta(days=1))
        await store.rule(later, None, ())
        assert await store.rulings("") == [later, undone]
        assert await store.rulings("acme") == []

    async def test_labels_are_counted_within_the_tenant(
        self, store: RegistryStore, knowledge: KnowledgeStore
    ) -> None:
        await self.said(knowledge, DANA, 1, "hobby")
        await self.said(knowledge, NOA, 2, "hobby", value=None, object_id="id-haifa")
        await self.said(knowledge, AVI, 3, "hobby")
        await self.said(knowledge, DANA, 4, "office", relation="HAS")
        assert await store.labels(ReadScope(DANA)) == ["hobby"]
        found = await store.witnesses("", ["hobby", "HOBBY"], 10)
        assert [(one.user_id, one.source_id, one.has_value) for one in found] == [
            (NOA, "m2", False),
            (DANA, "m1", True),
        ]
        assert {one.conversation_id for one in found} == {"talk-1", "talk-2"}
        assert found[0].said_at == AT + timedelta(minutes=2)
        assert len(await store.witnesses("", ["hobby"], 1)) == 1
        assert [one.user_id for one in await store.witnesses("acme", ["hobby"], 10)] == [AVI]
        assert await store.witnesses("", [], 10) == []

    async def test_who_has_nodes_of_a_type(
        self, store: RegistryStore, knowledge: KnowledgeStore
    ) -> None:
        async def work(rows: KnowledgeRows) -> None:
            await rows.put_entities([an_entity("chess", type_="Skill"), an_entity("avi")])

        for user in (NOA, DANA, AVI):
            await knowledge.change(WriteScope(user), work)
        assert await store.having("", ("Skill", "Goal")) == [DANA, NOA]
        assert await store.having("acme", ("Skill",)) == [AVI]
        assert await store.having("", ("Goal",)) == []

    async def test_who_is_alone_in_a_tenant(
        self, store: RegistryStore, knowledge: KnowledgeStore
    ) -> None:
        await self.said(knowledge, DANA, 1, "hobby")
        await self.said(knowledge, AVI, 2, "hobby")
        assert await store.is_alone(DANA)
        assert await store.is_alone(AVI)
        await self.said(knowledge, NOA, 3, "hobby")
        assert not await store.is_alone(DANA)
        assert await store.is_alone(AVI)

    async def test_a_tenant_is_forgotten(self, store: RegistryStore) -> None:
        await store.rule(a_ruling(tenant="acme"), a_version(2, "acme"), ())
        await store.rule(a_ruling(), a_version(2), ())
        assert await store.forget("acme") == 2
        assert await store.version("acme", None) is None
        assert await store.version("", None) == a_version(2)
