"""What is learned is about the user now: what is known of others, or had ended, is not it."""

from datetime import timedelta

import pytest

from rayapp.assistant.extraction.rules import facts
from rayapp.memory.item import SourceType
from rayapp.memory.requests import MemoryEdit
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT, an_item
from tests.unit.assistant.extraction.world import DANA, World

# What the user says, the fact that a model reads out of it, and one that gives its slot a value.
SAID = [
    ("I am allergic to nuts", "The user is allergic to nuts"),
    ("אני אלרגית לאגוזים", "המשתמשת אלרגית לאגוזים"),
]
SLOTS = [
    ("The user lives in Jaffa", "The user lives in Haifa"),
    ("המשתמש גר ביפו", "המשתמש גר בחיפה"),
]
FACT = {"tier": Tier.MEMORY_BANK, "tags": ("f",), "importance": 0.9, "confidence": 0.9}


async def learned(world: World, said: str, fact: str) -> list[str]:
    world.script.answers["fact_extraction"] = lambda asked: fact
    await world.say(said, "noted")
    await world.learn()
    return await world.texts()


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(("said", "fact"), SAID)
async def test_a_fact_about_the_mother_is_no_known_fact_about_the_user(
    said: str, fact: str, indexed: bool
) -> None:
    world = await World.open()
    await world.store(fact, subject_id="mother", **FACT)
    if indexed:
        await world.index_all()
    assert await learned(world, said, fact) == [fact]
    (asked,) = world.script.questions("fact_extraction")
    assert asked["known"] == []


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(("said", "fact"), SAID)
async def test_what_had_ended_is_learned_as_a_period_of_its_own(
    said: str, fact: str, indexed: bool
) -> None:
    world = await World.open()
    first = await world.store(fact, **FACT)
    await world.memories.edit(DANA, first, MemoryEdit(valid_to=world.clock.now()))
    world.clock.advance(90 * 86_400)
    if indexed:
        await world.index_all()
    assert await learned(world, said, fact) == [fact]
    (again,) = await world.learned()
    old = await world.item(first)
    assert old.valid_to is not None
    assert again.valid_from is not None
    assert (again.valid_from - old.valid_to) >= timedelta(days=90)


@pytest.mark.parametrize(("new", "old"), SLOTS)
def test_a_fact_about_the_user_replaces_none_about_another(new: str, old: str) -> None:
    one = facts.Learned(
        task="fact",
        memory_id="new",
        text=new,
        tier=Tier.MEMORY_BANK,
        tags=(),
        importance=0.9,
        confidence=1.0,
        trust=0.9,
        prompt_version="1",
    )
    mine = an_item(memory_id="old", text=old, tier=Tier.MEMORY_BANK, user_id="dana")
    assert mine.source.type is SourceType.USER
    hers = an_item(
        memory_id="hers", text=old, tier=Tier.MEMORY_BANK, user_id="dana", subject_id="mother"
    )
    at = STORED_AT + timedelta(days=1)
    assert facts.replaced_by(one, [hers, mine], at) == "old"
    assert facts.replaced_by(one, [hers], at) is None
