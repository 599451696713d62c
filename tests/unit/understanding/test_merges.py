"""Nodes that are one, and nodes that never are."""

from dataclasses import replace

import pytest

from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.understanding.statements.merging import RESOLVER
from rayapp.understanding.statements.records import Entity, MergeKind, MergeState
from rayapp.understanding.statements.requests import (
    KnowledgeQuestion,
    MergeDecision,
    NewMerge,
    NewSplit,
    NodeEdit,
    NodeEnd,
)
from tests.support.knowledge_world import USER, KnowledgeWorld

READ, WRITE = ReadScope(USER), WriteScope(USER)


@pytest.fixture
def world() -> KnowledgeWorld:
    return KnowledgeWorld()


async def people(world: KnowledgeWorld, name: str = "") -> list[Entity]:
    found = await world.knowledge.of_type(READ, "Person", 50)
    return [one for one in found if name in one.name and one.name != "I"]


async def homes(world: KnowledgeWorld, name: str) -> set[str]:
    asked = KnowledgeQuestion(source=NodeEnd(type="Person", name=name), relation="LIVES_IN")
    answer = await world.knowledge.query(READ, asked)
    return {one.target.name for one in answer.found if one.target}


def everything(world: KnowledgeWorld) -> tuple[object, ...]:
    tables = world.store.tables
    return dict(tables.given), dict(tables.entities), dict(tables.statements)


async def two(world: KnowledgeWorld) -> tuple[Entity, Entity]:
    await world.say("m1", "Bob lives in Haifa.")
    await world.say("m2", "Robert works at Intel.", days=1)
    await world.say("m3", "Robert lives in Acre.", days=2)
    (bob,), (robert,) = await people(world, "Bob"), await people(world, "Robert")
    return robert, bob


class TestMerge:
    async def test_both_names_are_one_and_the_later_home_counts(
        self, world: KnowledgeWorld
    ) -> None:
        robert, bob = await two(world)
        done = await world.merges.merge(
            WRITE, NewMerge(kept_id=robert.entity_id, gone_id=bob.entity_id)
        )
        assert {one.name for one in done.node.names} == {"Robert", "Bob"}
        assert len(done.ended) == 1
        for name in ("Bob", "Robert"):
            assert await homes(world, name) == {"Acre"}
        assert [one.entity_id for one in await people(world)] == [robert.entity_id]
        found, sources = await world.knowledge.node(READ, bob.entity_id)
        assert found.entity_id == robert.entity_id
        assert found.mentions == 3
        assert set(sources) == {"m1", "m2", "m3"}

    async def test_a_dry_run_tells_the_same_and_changes_nothing(
        self, world: KnowledgeWorld
    ) -> None:
        robert, bob = await two(world)
        before = everything(world)
        new = NewMerge(kept_id=robert.entity_id, gone_id=bob.entity_id)
        dry = await world.merges.merge(WRITE, replace(new, dry_run=True))
        assert everything(world) == before
        assert not world.store.tables.merges
        done = await world.merges.merge(WRITE, new)
        assert (dry.ended, dry.moved, dry.node) == (done.ended, done.moved, done.node)

    async def test_undoing_leaves_everything_as_it_was(self, world: KnowledgeWorld) -> None:
        robert, bob = await two(world)
        before = everything(world)
        done = await world.merges.merge(
            WRITE, NewMerge(kept_id=robert.entity_id, gone_id=bob.entity_id)
        )
        undone = await world.merges.decide(WRITE, done.merge.merge_id, MergeDecision.UNDO)
        assert undone.merge.state is MergeState.UNDONE
        assert everything(world) == before
        with pytest.raises(Conflict) as caught:
            await world.merges.decide(WRITE, done.merge.merge_id, MergeDecision.UNDO)
        assert caught.value.code == "nothing_to_undo"

    async def test_a_chain_is_taken_back_link_by_link(self, world: KnowledgeWorld) -> None:
        robert, bob = await two(world)
        await world.say("m4", "Bert plays for Maccabi.", days=3)
        (bert,) = await people(world, "Bert")
        kept = NewMerge(kept_id=robert.entity_id, gone_id=bob.entity_id)
        first = await world.merges.merge(WRITE, kept)
        await world.merges.merge(WRITE, NewMerge(kept_id=bert.entity_id, gone_id=robert.entity_id))
        assert await homes(world, "Bert") == {"Acre"}
        assert [one.name for one in await people(world)] == ["Bert"]
        for node, rows in ((bert, 2), (bob, 1), (robert, 2)):
            listed = await world.merges.listed(READ, None, 9, node.entity_id)
            assert len(listed) == rows, node.name
        assert len(await world.merges.listed(READ, None, 1, bert.entity_id)) == 1
        await world.merges.decide(WRITE, first.merge.merge_id, MergeDecision.UNDO)
        assert await homes(world, "Bob") == {"Haifa"}
        assert await homes(world, "Bert") == {"Acre"}

    async def test_a_deleted_text_takes_its_name_out_of_the_merged_node(
        self, world: KnowledgeWorld
    ) -> None:
        robert, bob = await two(world)
        await world.merges.merge(WRITE, NewMerge(kept_id=robert.entity_id, gone_id=bob.entity_id))
        for source in ("m2", "m3"):
            await world.understander.take_back(USER, [source])
        (left,) = await people(world)
        assert left.name == "Bob"
        assert {one.name for one in left.names} == {"Bob"}
        assert await homes(world, "Bob") == {"Haifa"}
        await world.understander.take_back(USER, ["m1"])
        assert not world.store.tables.entities
        assert not world.store.tables.statements

    async def test_later_texts_and_those_read_again_stay_merged(
        self, world: KnowledgeWorld
    ) -> None:
        robert, bob = await two(world)
        await world.merges.merge(WRITE, NewMerge(kept_id=robert.entity_id, gone_id=bob.entity_id))
        before = everything(world)
        await world.say("m1", "Bob lives in Haifa.")
        assert everything(world) == before
        await world.say("m5", "Bob moved to Oslo.", days=9)
        assert await homes(world, "Robert") == {"Oslo"}

    async def test_what_rests_on_a_merged_fact_falls_with_it(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "My daughter Noa works at Intel.")
        await world.say("m2", "Noga is happy because Noa works at Intel.", days=1)
        (noa,) = await people(world, "Noa")
        await world.say("m3", "Noam studies at Technion.", days=2)
        (noam,) = await people(world, "Noam")
        done = await world.merges.merge(
            WRITE, NewMerge(kept_id=noam.entity_id, gone_id=noa.entity_id)
        )
        facts = {one.fact_id for one in world.store.tables.statements.values()}
        for one in world.store.tables.statements.values():
            assert {each.fact_id for each in one.premises} <= facts
        await world.merges.decide(WRITE, done.merge.merge_id, MergeDecision.UNDO)
        facts = {one.fact_id for one in world.store.tables.statements.values()}
        for one in world.store.tables.statements.values():
            assert {each.fact_id for each in one.premises} <= facts

    async def test_what_cannot_be_one_is_refused(self, world: KnowledgeWorld) -> None:
        robert, bob = await two(world)
        (haifa, *_) = await world.knowledge.of_type(READ, "Place", 5)

        async def merge(kept: str, gone: str) -> None:
            await world.merges.merge(WRITE, NewMerge(kept_id=kept, gone_id=gone))

        with pytest.raises(InvalidInput):
            await merge(bob.entity_id, bob.entity_id)
        with pytest.raises(InvalidInput):
            await merge(bob.entity_id, haifa.entity_id)
        with pytest.raises(NotFound):
            await merge(bob.entity_id, "nobody")
        await merge(robert.entity_id, bob.entity_id)
        with pytest.raises(Conflict) as caught:
            await merge(robert.entity_id, bob.entity_id)
        assert caught.value.code == "already_merged"
        assert caught.value.details == {"node_id": robert.entity_id}


class TestSplit:
    async def test_a_split_stays_when_its_texts_are_read_again(self, world: KnowledgeWorld) -> None:
        texts = {"m1": "Sarah lives in Haifa.", "m2": "Sarah moved to Oslo."}
        for days, (source, text) in enumerate(texts.items()):
            await world.say(source, text, days=days)
        (sarah,) = await people(world, "Sarah")
        done = await world.merges.split(
            WRITE, NewSplit(node_id=sarah.entity_id, memory_ids=("m2",))
        )
        assert done.merge.kind is MergeKind.SPLIT
        for _ in range(2):
            assert len(await people(world, "Sarah")) == 2
            assert await homes(world, "Sarah") == {"Haifa", "Oslo"}
            for days, (source, text) in enumerate(texts.items()):
                await world.say(source, text, days=days)
        await world.merges.decide(WRITE, done.merge.merge_id, MergeDecision.UNDO)
        assert await homes(world, "Sarah") == {"Oslo"}
        assert len(await people(world, "Sarah")) == 1

    async def test_something_must_be_left(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "Sarah lives in Haifa.")
        (sarah,) = await people(world, "Sarah")
        for memory_id in ("m1", "m7"):
            with pytest.raises(InvalidInput):
                await world.merges.split(
                    WRITE, NewSplit(node_id=sarah.entity_id, memory_ids=(memory_id,))
                )


class TestAliases:
    async def test_a_name_can_be_given_and_taken_away(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "Sarah lives in Haifa.")
        (sarah,) = await people(world, "Sarah")
        await world.knowledge.edit(WRITE, sarah.entity_id, NodeEdit(synonyms=("שרה",)))
        assert await homes(world, "שרה") == {"Haifa"}
        await world.knowledge.edit(WRITE, sarah.entity_id, NodeEdit(name="Sally", synonyms=()))
        assert await homes(world, "שרה") == set()
        assert await homes(world, "Sally") == await homes(world, "Sarah") == {"Haifa"}
        with pytest.raises(NotFound):
            await world.knowledge.edit(WRITE, "nobody", NodeEdit(name="Sally"))


class TestWhoIsWho:
    """What is never merged, nor merged by itself."""

    @pytest.mark.parametrize(
        "texts",
        [
            ("Lena lives in Oslo.", "Lina lives in Oslo."),
            ("Noa Levi works at Intel.", "Noa Lavi works at Intel."),
            ("לנה גרה באוסלו.", "לינה גרה באוסלו."),
            ("My mother Sarah lives in Haifa.", "Sarah's daughter Sarah lives in Haifa."),
            ("My daughter Sarah lives in Haifa.", "My colleague Sarah lives in Haifa."),
            ("Sarah Cohen and Sarah work at Intel.", "Sarah lives in Haifa."),
        ],
    )
    async def test_they_stay_apart(self, world: KnowledgeWorld, texts: tuple[str, ...]) -> None:
        for number, text in enumerate(texts):
            await world.say(f"m{number}", text, days=number)
        await world.resolver.look(USER)
        merged = [one for one in world.store.tables.merges.values() if one.joins]
        assert merged == []
        assert not any(one.merged_into for one in world.store.tables.entities.values())

    async def test_sarah_of_two_families_is_not_even_proposed(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "Sarah Cohen works at Intel.")
        await world.say("m2", "Sarah Cohen's brother Dan lives in Haifa.", days=1)
        await world.say("m3", "Sarah works at Intel.", days=2)
        await world.say("m4", "Sarah's brother Gil lives in Haifa.", days=3)
        for key in [key for key, one in world.store.tables.merges.items() if not one.joins]:
            del world.store.tables.merges[key]
        found = await world.resolver.look(USER)
        assert (found.merged, found.proposed) == (0, 0)

    async def test_who_has_the_same_company_is_one(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "Sarah Cohen works at Intel.")
        await world.say("m2", "Sarah works at Intel.", days=2)
        await world.resolver.look(USER)
        (row,) = world.store.tables.merges.values()
        assert (row.state, row.decided_by) == (MergeState.DONE, RESOLVER)
        assert len(await people(world, "Sarah")) == 1

    async def test_a_doubt_is_proposed_once_and_a_declined_one_does_not_come_back(
        self, world: KnowledgeWorld
    ) -> None:
        await world.say("m1", "Sarah Cohen works at Intel.")
        await world.say("m2", "Sarah lives in Haifa.", days=2)
        assert (await world.resolver.look(USER)).proposed == 0  # the text itself led to it
        ((row, pair),) = await world.merges.listed(READ, MergeState.PENDING, 10)
        assert {pair.kept.name, pair.gone.name} == {"Sarah Cohen", "Sarah"}
        assert await homes(world, "Sarah Cohen") == set()
        await world.merges.decide(WRITE, row.merge_id, MergeDecision.DECLINE)
        assert await world.merges.waiting(READ) == 0
        assert (await world.resolver.look(USER)).proposed == 0
        await world.merges.decide(WRITE, row.merge_id, MergeDecision.UNDO)
        await world.merges.decide(WRITE, row.merge_id, MergeDecision.ACCEPT)
        assert await homes(world, "Sarah Cohen") == {"Haifa"}
        with pytest.raises(Conflict):
            await world.merges.decide(WRITE, row.merge_id, MergeDecision.DECLINE)
