"""The memory bank: capacity, what a repetition changes, pins, goals and values."""

import asyncio
from typing import Any

import pytest

from rayapp.core.errors import BankFull, InvalidInput, NotFound, TooLarge
from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import MemoryItem, Source, SourceType, Status
from rayapp.memory.requests import NewMemory, StoreResult
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.harness import Harness

ME = WriteScope("dana")
READ = ReadScope("dana")


def a_fact(text: str, **fields: Any) -> NewMemory:
    given = {"tags": ("fact",), "importance": 0.5, "confidence": 0.5} | fields
    return NewMemory(text=text, tier=Tier.MEMORY_BANK, **given)


async def keep(h: Harness, text: str, **fields: Any) -> StoreResult:
    return await h.services.bank.add(ME, a_fact(text, **fields))


async def active(h: Harness) -> list[str]:
    page = await h.services.bank.page(READ, status=Status.ACTIVE, tag=None, limit=50, offset=0)
    return sorted(item.memory_id for item in page.items)


@pytest.fixture
async def small() -> Harness:
    """Room for three facts."""
    return await Harness.open(memory_bank={"capacity": 3})


@pytest.fixture
async def harness() -> Harness:
    return await Harness.open()


# --- capacity


async def test_far_below_the_capacity_a_store_costs_two_counts(harness: Harness) -> None:
    await keep(harness, "one")
    harness.items.calls.clear()
    await keep(harness, "two")
    assert harness.items.calls == ["count", "insert", "count"]


async def test_a_pinned_fact_stays_while_plain_ones_exist(small: Harness) -> None:
    await keep(small, "pinned", memory_id="pin", importance=0.1, always_inject=True)
    for name in "abc":
        last = await keep(small, f"fact {name}", memory_id=name, importance=0.9)
    assert last.archived in {("a",), ("b",)}
    assert await active(small) == sorted({"a", "b", "c", "pin"} - set(last.archived))


async def everything(h: Harness) -> list[tuple[str, Status]]:
    rows = [h.items.inner._rows[point].item for point in sorted(h.items.inner._rows)]
    return [(item.memory_id, item.status) for item in rows]


async def test_a_new_fact_of_less_worth_than_all_is_refused_and_leaves_nothing(
    small: Harness,
) -> None:
    for name in "abc":
        await keep(small, f"fact {name}", memory_id=name)
    before = await everything(small)
    for _ in range(3):
        with pytest.raises(BankFull, match="less useful than each of them") as refused:
            await keep(small, "weak", importance=0.1)
        assert refused.value.details == {"capacity": 3, "reason": "less_useful"}
    assert await everything(small) == before
    assert (await keep(small, "fact a", importance=0.1)).status == "duplicate"


@pytest.mark.parametrize(
    "wish", [{"tags": ("goal",)}, {"tags": ("value",)}, {"always_inject": True}]
)
async def test_a_wish_takes_the_place_of_a_plain_fact_whatever_it_is_worth(
    small: Harness, wish: dict[str, Any]
) -> None:
    plain = {"importance": 1.0, "confidence": 1.0}
    for name in "abc":
        await keep(small, f"fact {name}", memory_id=name, **plain)
    kept = await keep(small, "לרוץ מרתון", memory_id="w", importance=0.1, confidence=0.1, **wish)
    assert kept.status == "stored"
    assert await active(small) == sorted({"a", "b", "c", "w"} - set(kept.archived))
    assert len(kept.archived) == 1
    after = await keep(small, "plain", memory_id="d", **plain)
    gone = {*kept.archived, *after.archived}
    assert await active(small) == sorted({"a", "b", "c", "d", "w"} - gone)
    assert len(gone) == 2
    assert {"d", "w"}.isdisjoint(gone)


@pytest.mark.parametrize("wish", [{}, {"tags": ("goal",)}, {"always_inject": True}])
async def test_where_only_wishes_are_left_nothing_is_let_in(
    small: Harness, wish: dict[str, Any]
) -> None:
    for number, fields in enumerate(({"tags": ("goal",)}, {"tags": ("value",)})):
        await keep(small, f"wish {number}", memory_id=f"w{number}", importance=0.1, **fields)
    await keep(small, "wish 2", memory_id="w2", importance=0.1, always_inject=True)
    before = await everything(small)
    with pytest.raises(BankFull, match="archive or unpin one first") as refused:
        await keep(small, "one more", importance=1.0, confidence=1.0, **wish)
    assert refused.value.details["reason"] == "all_pinned"
    assert await everything(small) == before
    await small.services.memories.archive(ME, "w0")
    await keep(small, "one more", importance=1.0, confidence=1.0, **wish)


async def test_nothing_comes_back_where_only_wishes_are_left(small: Harness) -> None:
    await keep(small, "weak", memory_id="weak", importance=0.1)
    await small.services.memories.archive(ME, "weak")
    for name in "abc":
        await keep(small, f"wish {name}", memory_id=name, always_inject=True)
    with pytest.raises(BankFull):
        await small.services.memories.restore(ME, "weak")
    assert await active(small) == ["a", "b", "c"]


async def test_a_fact_that_replaces_another_takes_its_place(small: Harness) -> None:
    for name in "abc":
        await keep(small, f"wish {name}", memory_id=name, always_inject=True)
    kept = await keep(small, "moved to Haifa", memory_id="d", importance=0.1, supersedes="a")
    assert kept.archived == ("a",)
    assert await active(small) == ["b", "c", "d"]


async def test_wishes_at_once_end_at_the_capacity(small: Harness) -> None:
    inner = small.items.inner
    await keep(small, "plain", memory_id="plain")
    await keep(small, "pin", memory_id="pin", always_inject=True)
    for name in ("insert", "count", "lowest_quality", "get", "replace"):
        small.items.__dict__[name] = _yielding(getattr(inner, name))
    answers = await asyncio.gather(
        *(keep(small, f"goal {n}", memory_id=f"g{n}", tags=("goal",)) for n in range(6)),
        return_exceptions=True,
    )
    kept = [one.memory_id for one in answers if isinstance(one, StoreResult)]
    assert sorted([*kept, "pin"]) == await active(small)
    assert len(kept) == 2
    assert [type(one) for one in answers].count(BankFull) == 4


async def test_another_process_that_fills_the_bank_meanwhile_is_told_truly(small: Harness) -> None:
    """It stores between this writer's look and its write."""
    for name in "ab":
        await keep(small, f"wish {name}", memory_id=name, always_inject=True)
    insert = small.items.inner.insert
    other = an_item(tier=Tier.MEMORY_BANK, tags=("goal",), memory_id="other", text="another")

    async def other_is_faster(item: MemoryItem) -> Any:
        del small.items.__dict__["insert"]
        await insert(other)
        return await insert(item)

    small.items.__dict__["insert"] = other_is_faster
    with pytest.raises(BankFull):
        await keep(small, "mine", memory_id="mine", tags=("goal",))
    assert await active(small) == ["a", "b", "other"]


async def test_a_superseded_fact_takes_room_too(small: Harness) -> None:
    old = an_item(tier=Tier.MEMORY_BANK, tags=("f",), superseded_by="a", memory_id="old")
    await small.items.insert(old)
    for name in "abc":
        await keep(small, f"fact {name}", memory_id=name, importance=0.9, confidence=0.9)
    counts = [c for c in await small.items.tier_counts(READ) if c.tier is Tier.MEMORY_BANK]
    assert (counts[0].active, counts[0].archived) == (3, 1)


async def test_what_was_replaced_leaves_first(small: Harness) -> None:
    await keep(small, "lives in Haifa", memory_id="old", importance=1.0)
    await keep(small, "lives in Jaffa", memory_id="new", importance=0.2, supersedes="old")
    await keep(small, "fact a", memory_id="a", importance=0.1)
    assert (await keep(small, "fact b", memory_id="b", importance=0.1)).archived == ("old",)
    assert await active(small) == ["a", "b", "new"]


async def test_a_batch_makes_room_once_and_says_for_whom(small: Harness) -> None:
    facts = [a_fact(f"fact {n}", memory_id=f"f{n}", importance=(n + 1) / 10) for n in range(5)]
    other = NewMemory(text="a note", memory_id="note")
    results = await small.services.memories.store_batch(ME, [*facts, other])
    assert [result.status for result in results] == ["rejected"] * 2 + ["stored"] * 4
    assert [result.code for result in results] == ["bank_full"] * 2 + [None] * 4
    assert {result.archived for result in results} == {()}
    assert await active(small) == ["f2", "f3", "f4"]
    better = [a_fact(f"better {n}", memory_id=f"b{n}", importance=0.9) for n in range(2)]
    results = await small.services.memories.store_batch(ME, [*better, a_fact("f", importance=0.0)])
    assert [result.archived for result in results] == [("f2",), ("f3",), ()]
    assert await active(small) == ["b0", "b1", "f4"]


async def test_a_batch_that_adds_nothing_looks_at_nothing(small: Harness) -> None:
    await keep(small, "one")
    small.items.calls.clear()
    await small.services.memories.store_batch(ME, [a_fact("one")])
    assert small.items.calls.count("count") == 1


async def test_writers_at_once_end_at_the_capacity(small: Harness) -> None:
    """Every await of the fake gives the turn away, so the writers really interleave."""
    inner = small.items.inner
    for name in ("insert", "count", "lowest_quality", "get", "replace"):
        small.items.__dict__[name] = _yielding(getattr(inner, name))
    stored = await asyncio.gather(
        *(keep(small, f"fact {n}", memory_id=f"f{n}", importance=(n + 1) / 10) for n in range(8)),
        *(keep(small, f"weak {n}", memory_id=f"w{n}", importance=0.01) for n in range(3)),
        return_exceptions=True,
    )
    assert await active(small) == ["f5", "f6", "f7"]
    gone = [name for one in stored if isinstance(one, StoreResult) for name in one.archived]
    kept = {one.memory_id for one in stored if isinstance(one, StoreResult)}
    assert sorted(gone) == sorted(kept - {"f5", "f6", "f7"})


def _yielding(call: Any) -> Any:
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        result = await call(*args, **kwargs)
        await asyncio.sleep(0)
        return result

    return wrapped


@pytest.mark.parametrize("when", ["before the look", "after the look"])
async def test_another_writer_in_between_costs_no_second_fact(small: Harness, when: str) -> None:
    for name in "abc":
        await keep(small, f"fact {name}", memory_id=name)
    lowest = small.items.inner.lowest_quality

    async def other_is_faster(*args: Any) -> Any:
        del small.items.__dict__["lowest_quality"]
        found = await lowest(*args)
        await small.services.memories.archive(ME, found[0].memory_id)
        return await lowest(*args) if when == "before the look" else found

    small.items.__dict__["lowest_quality"] = other_is_faster
    result = await keep(small, "fact d", memory_id="d")
    assert result.archived == ()
    assert len(await active(small)) == 3


async def test_what_a_person_restores_does_not_leave_at_once(small: Harness) -> None:
    await keep(small, "weak", memory_id="weak", importance=0.1)
    for name in "abc":
        await keep(small, f"fact {name}", memory_id=name)
    assert "weak" not in await active(small)
    await small.services.memories.restore(ME, "weak")
    assert "weak" in await active(small)
    assert len(await active(small)) == 3


async def test_other_users_facts_do_not_count(small: Harness) -> None:
    for n in range(3):
        await small.services.bank.add(WriteScope("omer"), a_fact(f"his fact {n}"))
    assert (await keep(small, "mine")).archived == ()


# --- said again


@pytest.mark.parametrize("text", ["Dana prefers tea", "דנה מעדיפה תה"])
async def test_a_repetition_keeps_the_best_of_both(harness: Harness, text: str) -> None:
    first = await keep(harness, text, importance=0.4, confidence=0.9, tags=("taste",))
    again = await keep(harness, text, importance=0.8, confidence=0.2, tags=("goal", "taste"))
    assert (again.status, again.memory_id) == ("duplicate", first.memory_id)
    item = await harness.services.memories.get(READ, str(first.memory_id))
    quality = item.quality
    assert (quality.importance, quality.confidence, quality.mentioned_count) == (0.8, 0.9, 2)
    assert (item.tags, item.version) == (("taste", "goal"), 2)


async def test_a_repetition_that_adds_nothing_only_counts(harness: Harness) -> None:
    first = await keep(harness, "Dana prefers tea", importance=0.8, always_inject=True)
    await keep(harness, "Dana prefers tea", importance=0.3)
    item = await harness.services.memories.get(READ, str(first.memory_id))
    assert (item.version, item.quality.importance, item.always_inject) == (1, 0.8, True)
    assert item.quality.mentioned_count == 2


async def test_a_repetition_may_pin(harness: Harness) -> None:
    first = await keep(harness, "Dana prefers tea")
    await keep(harness, "Dana prefers tea", always_inject=True)
    assert (await harness.services.memories.get(READ, str(first.memory_id))).always_inject


async def test_tags_never_grow_above_their_limit(harness: Harness) -> None:
    many = tuple(f"t{n}" for n in range(60))
    first = await keep(harness, "Dana prefers tea", tags=many)
    more = tuple(f"u{n}" for n in range(10))
    assert (await keep(harness, "Dana prefers tea", tags=more)).status == "duplicate"
    item = await harness.services.memories.get(READ, str(first.memory_id))
    assert item.tags == (*many, "u0", "u1", "u2", "u3")


async def test_a_repetition_in_another_tier_changes_no_tags(harness: Harness) -> None:
    first = await harness.store("a note", tags=("a",))
    await harness.store("a note", tags=("b",), importance=1.0)
    assert (await harness.services.memories.get(READ, first)).tags == ("a",)


# --- pins


async def test_a_pin_copies_text_and_provenance_and_leaves_the_memory(harness: Harness) -> None:
    source = Source(type=SourceType.TOOL, tool_name="web_search", conversation_id="c-1")
    origin = await harness.store("דנה גרה בחיפה", source=source, entities=("דנה",), tags=("n",))
    pinned = await harness.services.bank.pin(ME, origin, a_fact("", tags=("pinned",)))
    fact = await harness.services.memories.get(READ, str(pinned.memory_id))
    note = await harness.services.memories.get(READ, origin)
    assert (fact.tier, fact.text, fact.source) == (Tier.MEMORY_BANK, note.text, source)
    assert (fact.entities, fact.tags, fact.trust) == (("דנה",), ("pinned",), note.trust)
    assert (fact.created_at, fact.expires_at) == (note.created_at, None)
    assert (note.tier, note.status, note.version) == (Tier.WORKING, Status.ACTIVE, 1)


async def test_pinning_twice_is_a_duplicate_with_the_same_id(harness: Harness) -> None:
    origin = await harness.store("Dana lives in Haifa")
    pin = a_fact("Dana lives in Haifa", tags=("pinned",))
    first = await harness.services.bank.pin(ME, origin, pin)
    again = await harness.services.bank.pin(ME, origin, pin)
    assert (first.status, again.status) == ("stored", "duplicate")
    assert first.memory_id == again.memory_id != origin


async def test_pinning_a_fact_of_the_bank_is_a_duplicate_of_it(harness: Harness) -> None:
    fact = await keep(harness, "Dana lives in Haifa")
    again = await harness.services.bank.pin(ME, str(fact.memory_id), a_fact(""))
    assert (again.status, again.memory_id) == ("duplicate", fact.memory_id)


async def test_a_pin_with_its_own_words_keeps_them(harness: Harness) -> None:
    origin = await harness.store("a long note about Haifa", summary="Haifa")
    pinned = await harness.services.bank.pin(ME, origin, a_fact("Dana lives in Haifa"))
    fact = await harness.services.memories.get(READ, str(pinned.memory_id))
    assert (fact.text, fact.summary) == ("Dana lives in Haifa", None)


async def test_an_unknown_id_pins_what_was_sent_or_nothing(harness: Harness) -> None:
    assert (await harness.services.bank.pin(ME, "gone", a_fact("Dana"))).status == "stored"
    with pytest.raises(NotFound):
        await harness.services.bank.pin(ME, "gone", a_fact(" "))


async def test_a_memory_of_somebody_else_gives_nothing_away(harness: Harness) -> None:
    source = Source(type=SourceType.TOOL, tool_name="his tool")
    his = await harness.store("his secret", user="omer", source=source)
    with pytest.raises(NotFound):
        await harness.services.bank.pin(ME, his, a_fact(""))
    mine = await harness.services.bank.pin(ME, his, a_fact("my own words"))
    assert (await harness.services.memories.get(READ, str(mine.memory_id))).source == Source()


async def test_a_shared_item_is_pinned_as_mine(harness: Harness) -> None:
    shared = an_item(
        user_id=SYSTEM_USER,
        memory_id="res-1",
        tier=Tier.DATAGOV_SCHEMA,
        text="Bus stops",
        source=Source(type=SourceType.DATAGOV, datagov={"category": "transportation"}),
        subject_id=SYSTEM_USER,
    )
    await harness.items.insert(shared)
    pinned = await harness.services.bank.pin(ME, "res-1", a_fact(""))
    fact = await harness.services.memories.get(READ, str(pinned.memory_id))
    assert (fact.user_id, fact.subject_id, fact.tier) == ("dana", "dana", Tier.MEMORY_BANK)
    assert fact.source.datagov == {"category": "transportation"}


@pytest.mark.parametrize(
    ("text", "error"), [("User: hi\nAssistant: hello", InvalidInput), ("x" * 5_001, TooLarge)]
)
async def test_a_pin_meets_the_write_guard(
    harness: Harness, text: str, error: type[Exception]
) -> None:
    origin = await harness.store(text)
    with pytest.raises(error):
        await harness.services.bank.pin(ME, origin, a_fact(""))


# --- goals and values


async def test_lists_hold_what_carries_their_tag_newest_first(harness: Harness) -> None:
    for text, tags in (
        ("run a marathon", ("goal",)),
        ("honesty", ("value",)),
        ("ללמוד ספרדית", ("goal", "language")),
        ("likes tea", ("taste",)),
    ):
        await keep(harness, text, tags=tags)
        harness.clock.advance(1)
    goals = await harness.services.bank.listed(READ, "goal", 10)
    assert [item.text for item in goals.items] == ["ללמוד ספרדית", "run a marathon"]
    assert goals.total == 2
    first = await harness.services.bank.listed(READ, "goal", 1)
    assert ([item.text for item in first.items], first.total) == (["ללמוד ספרדית"], 2)
    assert (await harness.services.bank.listed(ReadScope("omer"), "goal", 10)).items == ()


async def test_a_fact_that_is_more_than_a_goal_only_leaves_the_list(harness: Harness) -> None:
    fact = str((await keep(harness, "I like green tea", tags=("taste", "goal"))).memory_id)
    bank = harness.services.bank
    await bank.unlist(ME, "goal", fact)
    assert (await bank.listed(READ, "goal", 10)).items == ()
    item = await harness.services.memories.get(READ, fact)
    assert (item.status, item.tags) == (Status.ACTIVE, ("taste",))


async def test_only_what_is_on_a_list_leaves_it(harness: Harness) -> None:
    goal = str((await keep(harness, "run", tags=("goal",))).memory_id)
    note = await harness.store("a note", tags=("goal",))
    bank = harness.services.bank
    for tag, memory_id in (("value", goal), ("goal", note), ("goal", "gone")):
        with pytest.raises(NotFound):
            await bank.unlist(ME, tag, memory_id)
    with pytest.raises(NotFound):
        await bank.unlist(WriteScope("omer"), "goal", goal)
    await bank.unlist(ME, "goal", goal)
    assert (await bank.listed(READ, "goal", 10)).items == ()
    item = await harness.services.memories.get(READ, goal)
    assert (item.status, item.archived_reason) == (Status.ARCHIVED, "goal removed")
    with pytest.raises(NotFound):
        await bank.unlist(ME, "goal", goal)
