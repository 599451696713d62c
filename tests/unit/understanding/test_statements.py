"""What texts say becomes a graph that stays true: the table of examples and edge cases."""

from datetime import timedelta

import pytest

from rayapp.core.errors import InvalidInput, NotFound
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.understanding.statements.ports import StatementsWanted
from rayapp.understanding.statements.records import Entity, Standing
from rayapp.understanding.statements.requests import (
    Knowing,
    KnowledgeAnswer,
    KnowledgeQuestion,
    NewLink,
    NewNode,
    NodeEnd,
)
from tests.support.knowledge_world import NOW, USER, KnowledgeWorld

ANYTHING = NodeEnd()
READS, WRITES = ReadScope(USER), WriteScope(USER, "dana's key")
HARVARD = (
    "My daughter Sarah got into Harvard last week, and I felt incredibly proud of her hard work."
)
HARVARD_HE = "הבת שלי שרה התקבלה להרווארד בשבוע שעבר, והרגשתי ממש גאה בעבודה הקשה שלה."


@pytest.fixture
def world() -> KnowledgeWorld:
    return KnowledgeWorld()


async def ask(
    world: KnowledgeWorld,
    relation: str,
    source: str = "I",
    *,
    type_: str = "Person",
    target: NodeEnd = ANYTHING,
    user_id: str = USER,
    days: float | None = None,
    past: bool = False,
    label: str | None = None,
) -> KnowledgeAnswer:
    as_of = None if days is None else NOW - timedelta(days=300 - days)
    asked = KnowledgeQuestion(
        source=NodeEnd(type=type_, name=source or None),
        relation=relation,
        target=target,
        as_of=as_of,
        past=past,
        label=label,
    )
    return await world.knowledge.query(ReadScope(user_id), asked)


def names(answer: KnowledgeAnswer) -> list[str]:
    return [one.target.name if one.target else str(one.relationship.value) for one in answer.found]


async def people(world: KnowledgeWorld, user_id: str = USER) -> list[Entity]:
    return await world.knowledge.of_type(ReadScope(user_id), "Person", 50)


@pytest.mark.parametrize(
    ("text", "name", "place"), [(HARVARD, "Sarah", "Harvard"), (HARVARD_HE, "שרה", "הרווארד")]
)
async def test_the_sentence_about_harvard(
    world: KnowledgeWorld, text: str, name: str, place: str
) -> None:
    await world.say("m1", text)
    (child,) = [one for one in await people(world) if one.name == name]
    found = await world.knowledge.relationships(READS, child.entity_id, "both", None, 50)
    said = {(one.relationship.relation, one.relationship.label) for one in found}
    assert said == {
        ("PARENT_OF", None),
        ("PARTICIPATED_IN", None),
        ("RELATED_TO", "ACHIEVEMENT"),
        ("VALUES", None),
    }
    assert names(await ask(world, "RELATED_TO", name)) == [place]
    felt = await ask(world, "FELT", "", type_="Event", target=NodeEnd(type="Emotion", name="pride"))
    (pride,) = felt.found
    assert pride.relationship.intensity == "high"
    assert pride.relationship.target_id == child.entity_id
    assert pride.relationship.holder_id != child.entity_id
    (took_part,) = (await ask(world, "PARTICIPATED_IN", name)).found
    begun = took_part.relationship.valid_from
    assert begun is not None
    assert (NOW - timedelta(days=300)) - begun <= timedelta(days=8)


@pytest.mark.parametrize(
    ("first", "second", "names_in_order"),
    [
        ("Sports matter most for my son.", "Grades matter most for my son.", ["Grades", "Sports"]),
        ("ספורט הכי חשוב לבן שלי.", "ציונים הכי חשובים לבן שלי.", ["ציונים", "ספורט"]),
    ],
)
async def test_what_contradicts_is_kept_in_the_order_of_time(
    world: KnowledgeWorld, first: str, second: str, names_in_order: list[str]
) -> None:
    await world.say("m2", second, days=40)
    await world.say("m1", first, days=10)
    assert names(await ask(world, "VALUES", "son")) == names_in_order


@pytest.mark.parametrize("asked", ["proud", "pride", "גאה", "גאווה", "honored"])
async def test_a_feeling_is_found_by_its_synonyms(world: KnowledgeWorld, asked: str) -> None:
    await world.say("m1", "I felt really proud when my son won the science competition.")
    await world.say("m2", "I was sad because the dog died.")
    felt = await ask(world, "FELT", "", type_="Event", target=NodeEnd(type="Emotion", name=asked))
    assert [one.source.name for one in felt.found] == ["my son won the science competition"]


async def test_a_name_that_nothing_has_is_understood_by_meaning(world: KnowledgeWorld) -> None:
    await world.say("m1", "I want to run a marathon.")
    goal = NodeEnd(type="Goal", name="run a long marathon")
    found = await ask(world, "PURSUES", target=goal)
    assert names(found) == ["run a marathon"]
    assert found.nearest == ("run a marathon",)
    exact = KnowledgeQuestion(target=goal, relation="PURSUES", fallback=False)
    assert (await world.knowledge.query(READS, exact)).knowing is Knowing.UNKNOWN


class TestByHand:
    async def test_a_node_outlives_its_sources(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "Sarah lives in Haifa.")
        made = await world.knowledge.create(
            WRITES, NewNode(type="Person", name="Sarah", attributes={})
        )
        assert made.verified_by == "dana's key"
        assert made.mentions == 1
        await world.say("m1", "Sarah lives in Acre.")
        await world.understander.take_back(USER, ["m1"])
        assert [(one.name, one.verified) for one in await people(world)] == [("Sarah", True)]

    async def test_two_names_meet_when_a_person_says_so(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "Sarah lives in Haifa.")
        await world.say("m2", "שרה גרה בחיפה.")
        assert len(await people(world)) == 2
        other = "rina"
        await world.knowledge.create(
            WriteScope(other),
            NewNode(type="Person", name="Sarah", synonyms=("שרה",), attributes={}),
        )
        await world.say("m3", "Sarah lives in Haifa.", user_id=other)
        await world.say("m4", "שרה עובדת באינטל.", user_id=other)
        (sarah,) = await people(world, other)
        assert sarah.mentions == 2

    async def test_a_link_of_the_registry_ends_the_older_one(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "Sarah lives in Haifa.")
        (sarah,) = await people(world)
        acre = await world.knowledge.create(
            WRITES, NewNode(type="Place", name="Acre", attributes={})
        )
        link = NewLink(from_id=sarah.entity_id, relation="LIVES_IN", to_id=acre.entity_id)
        made, warning = await world.knowledge.link(WRITES, link)
        assert warning is None
        assert made.relationship.verified
        assert names(await ask(world, "LIVES_IN", "Sarah")) == ["Acre"]

    async def test_an_unknown_relation_keeps_its_label(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "Sarah lives in Haifa.")
        (sarah,) = await people(world)
        (home,) = (await ask(world, "LIVES_IN", "Sarah")).found
        assert home.target is not None
        link = NewLink(from_id=sarah.entity_id, relation="LIVS_IN", to_id=home.target.entity_id)
        made, warning = await world.knowledge.link(WRITES, link)
        assert (made.relationship.relation, made.relationship.label) == ("RELATED_TO", "LIVS_IN")
        assert warning is not None
        assert "LIVES_IN" in warning

    async def test_what_cannot_be_is_refused(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "Sarah lives in Haifa.")
        (sarah,) = await people(world)
        itself = NewLink(from_id=sarah.entity_id, relation="LIVES_IN", to_id=sarah.entity_id)
        with pytest.raises(InvalidInput, match="cannot hold"):
            await world.knowledge.link(WRITES, itself)
        nobody = NewLink(from_id=sarah.entity_id, relation="LIVES_IN", to_id="nobody")
        with pytest.raises(NotFound):
            await world.knowledge.link(WRITES, nobody)
        with pytest.raises(InvalidInput, match="Person"):
            await world.knowledge.create(WRITES, NewNode(type="Persn", name="x", attributes={}))

    async def test_a_deleted_node_goes_with_what_is_said_of_it(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "Sarah lives in Haifa.")
        (sarah,) = await people(world)
        await world.knowledge.delete(WRITES, sarah.entity_id)
        assert await people(world) == []
        assert world.store.tables.statements == {}
        with pytest.raises(NotFound):
            await world.knowledge.node(READS, sarah.entity_id)


class TestTakenBack:
    async def test_a_deleted_source_leaves_nothing(self, world: KnowledgeWorld) -> None:
        await world.say("m1", HARVARD)
        await world.understander.take_back(USER, ["m1"])
        tables = world.store.tables
        assert (tables.given, tables.entities, tables.statements) == ({}, {}, {})

    async def test_what_another_source_says_stays(self, world: KnowledgeWorld) -> None:
        await world.say("m1", HARVARD)
        await world.say("m2", "My daughter Sarah speaks French.", days=1)
        await world.understander.take_back(USER, ["m1"])
        assert sorted(one.name for one in await people(world)) == ["I", "Sarah"]
        assert names(await ask(world, "HAS_SKILL", "Sarah")) == ["French"]
        assert await world.knowledge.of_type(READS, "Emotion", 10) == []

    async def test_a_name_that_only_the_deleted_source_said_is_gone(
        self, world: KnowledgeWorld
    ) -> None:
        await world.say("m1", "My daughter Sarah lives in Haifa.")
        await world.say("m2", "My daughter speaks French.", days=1)
        assert sorted(one.name for one in await people(world)) == ["I", "Sarah"]
        await world.understander.take_back(USER, ["m1"])
        assert sorted(one.name for one in await people(world)) == ["I", "daughter"]
        assert "Sarah" not in str(world.store.tables)

    async def test_an_edited_source_gives_what_it_says_now(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "I live in Haifa.")
        await world.say("m1", "I live in Acre.")
        assert names(await ask(world, "LIVES_IN")) == ["Acre"]
        assert [one.name for one in await world.knowledge.of_type(READS, "Place", 9)] == ["Acre"]
        await world.say("m1", "What a day.")
        assert world.store.tables.given == {}

    async def test_the_same_text_twice_counts_once(self, world: KnowledgeWorld) -> None:
        for _ in range(2):
            await world.say("m1", "Dana lives in Haifa.")
        (dana,) = await people(world)
        assert dana.mentions == 1
        (home,) = (await ask(world, "LIVES_IN", "Dana")).found
        assert home.relationship.mentions == 1

    async def test_what_the_deleted_one_replaced_is_true_again(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "I live in Haifa.")
        await world.say("m2", "I live in Acre.", days=30)
        await world.understander.take_back(USER, ["m2"])
        assert names(await ask(world, "LIVES_IN")) == ["Haifa"]


class TestTime:
    async def test_the_order_of_arrival_does_not_matter(self, world: KnowledgeWorld) -> None:
        said = {"m1": ("Haifa", 10), "m2": ("Acre", 50), "m3": ("Oslo", 90)}
        for source in ("m2", "m3", "m1"):
            place, days = said[source]
            await world.say(source, f"I live in {place}.", days=days)
        assert names(await ask(world, "LIVES_IN")) == ["Oslo"]
        assert names(await ask(world, "LIVES_IN", days=60)) == ["Acre"]
        assert names(await ask(world, "LIVES_IN", days=20)) == ["Haifa"]
        assert (await ask(world, "LIVES_IN", days=5)).knowing is Knowing.UNKNOWN

    async def test_what_ended_is_no_longer_known(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "I work at Intel.")
        await world.say("m2", "I quit my job at Intel.", days=30)
        answer = await ask(world, "WORKS_AT")
        assert (answer.knowing, names(answer)) == (Knowing.NO_LONGER, [])
        (past,) = (await ask(world, "WORKS_AT", past=True)).found
        assert past.relationship.standing is Standing.ENDED
        assert names(await ask(world, "WORKS_AT", days=20)) == ["Intel"]
        await world.say("m3", "I work at Intel.", days=60)
        assert names(await ask(world, "WORKS_AT")) == ["Intel"]

    async def test_others_add(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "I play the piano.")
        await world.say("m2", "I play the cello.", days=5)
        assert names(await ask(world, "HAS_SKILL")) == ["cello", "piano"]

    async def test_a_detail_has_one_value(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "My phone number is 054-1111111.")
        await world.say("m2", "My phone number is 054-2222222.", days=5)
        answer = await ask(world, "HAS", label="phone number")
        assert names(answer) == ["054-2222222"]


class TestDependents:
    @pytest.mark.parametrize(
        ("base", "resting", "relation", "change"),
        [
            ("I work at Intel.", "My boss is Ruth.", "MANAGED_BY", "I joined Google."),
            ("I work at Intel.", "My colleague Avi sings.", "COLLEAGUE_OF", "I left Intel."),
            ("I live in Oslo.", "My neighbour Bo is loud.", "NEIGHBOUR_OF", "I moved to Rome."),
            ("אני עובד באינטל.", "הבוס שלי הוא דני.", "MANAGED_BY", "התחלתי לעבוד בגוגל."),
        ],
    )
    async def test_what_stands_on_it_falls_with_it(
        self, world: KnowledgeWorld, base: str, resting: str, relation: str, change: str
    ) -> None:
        await world.say("m1", base)
        await world.say("m2", resting, days=5)
        assert (await ask(world, relation)).knowing is Knowing.KNOWN
        await world.say("m3", change, days=30)
        assert (await ask(world, relation)).knowing is Knowing.NO_LONGER
        (doubted,) = (await ask(world, relation, past=True)).found
        assert doubted.relationship.standing is Standing.IN_DOUBT
        assert (await ask(world, relation, days=10)).knowing is Knowing.KNOWN
        await world.say("m4", resting, days=40)
        assert (await ask(world, relation)).knowing is Knowing.KNOWN

    async def test_a_deleted_premise_leaves_doubt(self, world: KnowledgeWorld) -> None:
        await world.say("m2", "My boss is Ruth.", days=5)
        await world.say("m1", "I work at Intel.")
        await world.understander.take_back(USER, ["m1"])
        assert (await ask(world, "MANAGED_BY")).knowing is Knowing.NO_LONGER

    async def test_a_reason_is_a_premise(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "I live in Haifa because I work at Intel.")
        assert names(await ask(world, "LIVES_IN")) == ["Haifa"]
        await world.say("m2", "I left Intel.", days=9)
        assert (await ask(world, "LIVES_IN")).knowing is Knowing.NO_LONGER

    async def test_without_a_premise_it_stands_alone(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "My boss is Ruth.")
        assert names(await ask(world, "MANAGED_BY")) == ["Ruth"]

    async def test_in_doubt_is_not_in_the_snapshot(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "I work at Intel.")
        await world.say("m2", "My boss is Ruth.", days=5)
        await world.say("m3", "I left Intel.", days=9)
        shown = await world.knowledge.snapshot(READS, None, 50)
        assert {one.relation for one in shown.links} == {"PARTICIPATED_IN"}
        assert {one.name for one in shown.nodes} >= {"I", "Intel", "Ruth"}


class TestWhoIsWho:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("Lena lives in Haifa.", "Lina lives in Acre."),
            ("My daughter Noa lives in Haifa.", "My colleague Noa lives in Acre."),
            ("Dana's daughter Noa lives in Haifa.", "My daughter Noa lives in Acre."),
            ("My mother Noa lives in Haifa.", "My daughter Noa lives in Acre."),
            ("לנה גרה בחיפה.", "לינה גרה בעכו."),
        ],
    )
    async def test_in_doubt_there_are_two(
        self, world: KnowledgeWorld, first: str, second: str
    ) -> None:
        await world.say("m1", first)
        await world.say("m2", second, days=5)
        reads = world.store.reads(READS)
        said = await reads.statements(StatementsWanted(relations=("LIVES_IN",)))
        assert len({one.subject_id for one in said}) == 2
        assert all(one.valid_to is None for one in said)

    async def test_one_person_by_role_and_by_name(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "My daughter Sarah lives in Haifa.")
        await world.say("m2", "My daughter speaks French.", days=1)
        await world.say("m3", "Sarah is very curious.", days=2)
        assert sorted(one.name for one in await people(world)) == ["I", "Sarah"]

    async def test_a_place_is_one_in_both_languages(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "Dana lives in Haifa.")
        await world.say("m2", "Avi lives in חיפה.", days=1)
        assert len(await world.knowledge.of_type(READS, "Place", 10)) == 1

    async def test_the_speaker_is_whose_perspective_it_is(self, world: KnowledgeWorld) -> None:
        await world.say("m1", "I live in Haifa.", perspective="mother")
        await world.say("m2", "I live in Acre.", perspective="child", days=1)
        assert len(await people(world)) == 2
        homes = await ask(world, "LIVES_IN", "")
        assert sorted(names(homes)) == ["Acre", "Haifa"]
        hers = KnowledgeQuestion(relation="LIVES_IN", perspective="mother")
        assert names(await world.knowledge.query(READS, hers)) == ["Haifa"]


async def test_nobody_reads_what_another_user_said(world: KnowledgeWorld) -> None:
    for user_id, place in (("acme/dana", "Haifa"), ("beta/dana", "Acre"), ("dana", "Oslo")):
        await world.say("m1", f"I live in {place}.", user_id=user_id)
    for user_id, place in (("acme/dana", "Haifa"), ("beta/dana", "Acre"), ("dana", "Oslo")):
        assert names(await ask(world, "LIVES_IN", user_id=user_id)) == [place]
        (me,) = await people(world, user_id)
        for other in {"acme/dana", "beta/dana", "dana"} - {user_id}:
            with pytest.raises(NotFound):
                await world.knowledge.node(ReadScope(other), me.entity_id)
    await world.understander.take_back("acme/dana", ["m1"])
    assert names(await ask(world, "LIVES_IN", user_id="dana")) == ["Oslo"]


async def test_a_premise_is_of_the_same_person(world: KnowledgeWorld) -> None:
    await world.say("m1", "Dana's boss Ruth lives in Acre.")
    await world.say("m2", "My boss Tom works at Google.", days=1)
    await world.say("m3", "I work at Intel. Dana works at Wix.", days=2)
    await world.say("m4", "Dana's boss Ruth sings well. My boss Tom is strict.", days=3)
    await world.say("m5", "I left Intel.", days=9)
    assert (await ask(world, "MANAGED_BY")).knowing is Knowing.NO_LONGER
    assert names(await ask(world, "MANAGED_BY", "Dana")) == ["Ruth"]


async def test_an_event_stays_when_its_source_is_understood_again(world: KnowledgeWorld) -> None:
    for _ in range(2):
        await world.say("m-1", "I felt proud when my son won the science competition.")
        (event,) = await world.knowledge.of_type(READS, "Event", 9)
        assert (event.name, event.mentions) == ("my son won the science competition", 1)
    await world.understander.take_back(USER, ["m-1"])
    assert await world.knowledge.of_type(READS, None, 9) == []
