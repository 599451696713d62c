"""The block: its exact frame, whole lines under a budget, a stable first part, read back."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.assistant.context.rules.pinned import core_memories_of, section_of
from rayapp.assistant.context.rules.prompt_block import (
    STABLE_SECTIONS,
    Limits,
    Material,
    SectionItem,
    build_block,
    etag_of,
)
from rayapp.assistant.records import ContextBlock, Section
from rayapp.inference.rules import estimate_tokens, total_tokens
from rayapp.memory.item import MemoryItem, Outcome, Quality, Stats
from rayapp.memory.tiers import Tier
from tests.support.blocks import parse_lines
from tests.support.builders import STORED_AT, an_item
from tests.support.examples import examples
from tests.unit.assistant.context.rules.test_escape import texts

MOST: dict[Section, int] = {"identity": 10, "preference": 10, "pattern": 5, "always": 20}


def fact(text: str, *tags: str, **fields: object) -> MemoryItem:
    return an_item(text=text, tier=Tier.MEMORY_BANK, tags=tags, **fields)


def block(material: Material, budget: int = 2_000, share: float = 0.5) -> ContextBlock:
    return build_block(material, Limits(budget=budget, stable_share=share))


def relevant(*items: MemoryItem) -> list[SectionItem]:
    return [SectionItem("relevant", item) for item in items]


def test_the_whole_frame() -> None:
    me = fact("קוראים לי דנה", memory_id="id-1")
    tea = fact("likes tea", memory_id="id-2")
    book = an_item(text="עמוד ראשון\nשורה שנייה", tier=Tier.BOOKS, memory_id="id-3")
    solved = an_item(text="restart the router", tier=Tier.PATTERNS, memory_id="id-4")
    made = block(
        Material(
            standing=[SectionItem("identity", me), SectionItem("preference", tea)],
            recall=["Memory id-4 helped before."],
            found=[SectionItem("past", solved), *relevant(book)],
            topic="moving\nhouse",
        )
    )
    assert made.stable == (
        "═══ CONTEXTUAL MEMORY ═══\n"
        "\n"
        "**User Identity:**\n"
        "• [memory_bank:id-1] (2026-01-15, דברי המשתמש)  קוראים לי דנה\n"
        "\n"
        "**Core Preferences:**\n"
        "• [memory_bank:id-2] (2026-01-15, user said)  likes tea\n"
        "\n"
    )
    assert made.volatile == (
        "**Past Experience:**\n"
        "• Memory id-4 helped before.\n"
        "[1] [patterns:id-4] (2026-01-15, user said)  restart the router\n"
        "\n"
        "**Relevant Context:**\n"
        "[2] [documents:id-3] (2026-01-15, דברי המשתמש)  עמוד ראשון ⏎ שורה שנייה\n"
        "\n"
        "**Recent Topic:** moving ⏎ house\n"
        "\n"
        "═══════════════════════\n"
    )
    assert made.text == made.stable + made.volatile
    assert made.etag == etag_of(made.stable)


def test_nothing_known_is_an_empty_text() -> None:
    assert block(Material()).text == ""
    assert (
        block(Material(standing=[SectionItem("identity", fact("x" * 900))]), budget=60).text == ""
    )


def test_a_topic_alone_is_no_context() -> None:
    assert block(Material(topic="moving house")).text == ""


def test_without_standing_memories_the_stable_part_is_empty() -> None:
    """A header of its own would come and go with what a question finds."""
    made = block(Material(found=relevant(an_item(text="x"))))
    assert (made.stable, made.volatile.splitlines()[0]) == ("", "═══ CONTEXTUAL MEMORY ═══")


def test_what_stands_already_is_not_repeated() -> None:
    me = fact("I am Dana")
    made = block(
        Material(standing=[SectionItem("identity", me)], found=relevant(me, an_item(text="b")))
    )
    assert made.text.count("I am Dana") == 1
    assert [line.position for line in made.lines] == [0, 1]


@pytest.mark.parametrize("text", ["I am Dana", "קוראים לי דנה"])
def test_what_stands_and_was_asked_for_is_found_with_a_number(text: str) -> None:
    """Its bytes in the stable part stay the same whatever is asked."""
    me, other = fact(text), an_item(text="b")
    standing = [SectionItem("identity", me)]
    unasked = block(Material(standing=standing, found=relevant(other)))
    made = block(
        Material(standing=standing, found=relevant(other, me), asked=frozenset({me.memory_id}))
    )
    assert made.stable == unasked.stable
    assert [(line.position, line.memory_id) for line in made.lines] == [
        (0, me.memory_id),
        (1, me.memory_id),
        (2, other.memory_id),
    ]


def test_the_own_name_of_books_without_the_first_clients_habit() -> None:
    item = an_item(text="x", tier=Tier.BOOKS, memory_id="b")
    made = build_block(Material(found=relevant(item)), Limits(budget=200, documents=False))
    assert "[1] [books:b] (2026-01-15, user said)  x" in made.text
    assert parse_lines(made.text)[0].tier is Tier.BOOKS


def test_what_has_room_stands_in_the_order_of_authority() -> None:
    talk, more = an_item(text="in passing"), an_item(text="in passing, too")
    page = an_item(text="a page", tier=Tier.BOOKS)
    made = block(Material(found=relevant(talk, page, more, fact("kept on purpose"))))
    assert [line.text for line in made.lines] == [
        "kept on purpose",
        "a page",
        "in passing",
        "in passing, too",
    ]
    assert [line.position for line in made.lines] == [1, 2, 3, 4]


def test_the_best_find_room_before_the_most_trusted() -> None:
    best, weak = an_item(text="best " * 30), fact("weak " * 30)
    made = block(Material(found=relevant(best, weak)), budget=110)
    assert [line.memory_id for line in made.lines] == [best.memory_id]
    assert made.left_out == (weak.memory_id,)


class TestBudget:
    @pytest.mark.parametrize(
        ("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("שלום", 2), ("אבגדהוזחטיכל", 5)]
    )
    def test_hebrew_costs_more(self, text: str, tokens: int) -> None:
        assert estimate_tokens(text) == tokens

    @given(texts)
    def test_as_written_in_the_rule(self, text: str) -> None:
        hebrew = sum("א" <= char <= "ת" for char in text)
        assert estimate_tokens(text) == math.ceil(hebrew / 2.4 + (len(text) - hebrew) / 4)

    def test_a_memory_is_whole_or_left_out(self) -> None:
        long, short = an_item(text="ארוך מאוד " * 80), an_item(text="short")
        made = block(Material(found=relevant(long, short)), budget=100)
        assert made.left_out == (long.memory_id,)
        assert [line.memory_id for line in made.lines] == [short.memory_id]

    def test_a_standing_memory_too_large_for_its_share_may_be_found(self) -> None:
        big = fact("word " * 60)
        material = Material(standing=[SectionItem("always", big)], found=relevant(big))
        assert block(material, budget=120, share=0.2).lines[0].section == "relevant"
        assert block(material, budget=120, share=0.2).left_out == ()
        assert block(Material(standing=material.standing), budget=120, share=0.2).left_out == (
            big.memory_id,
        )

    @given(
        st.lists(texts, max_size=6),
        st.lists(texts, max_size=8),
        st.lists(texts, max_size=3),
        texts,
        st.integers(1, 400),
        st.sampled_from([0.0, 0.3, 0.9]),
    )
    @settings(max_examples=examples(150), deadline=None)
    def test_hostile_texts_within_any_budget(
        self,
        standing: list[str],
        found: list[str],
        recall: list[str],
        topic: str,
        budget: int,
        share: float,
    ) -> None:
        material = Material(
            standing=[SectionItem("always", fact(text)) for text in standing],
            recall=recall,
            found=relevant(*(an_item(text=text) for text in found)),
            topic=topic,
        )
        made = block(material, budget, share)
        assert estimate_tokens(made.text) <= made.tokens <= budget
        read = parse_lines(made.text)
        assert [(one.position, one.memory_id, one.text) for one in read] == [
            (line.position, line.memory_id, line.text) for line in made.lines
        ]
        numbers = [one.position for one in read if one.position]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(read) - len(numbers) == sum(
            line.section in STABLE_SECTIONS for line in made.lines
        )
        offered = {item.item.memory_id for item in (*material.standing, *material.found)}
        assert {line.memory_id for line in made.lines} | set(made.left_out) == offered
        assert made.text.count("═══ CONTEXTUAL MEMORY ═══") == (1 if made.text else 0)

    def test_the_cost_of_rows_is_never_below_their_text(self) -> None:
        rows = ["a", "אב", "", "abc"]
        assert total_tokens(rows) >= estimate_tokens("\n".join(rows))


class TestStanding:
    def test_sections(self) -> None:
        assert section_of(fact("x", "Identity")) == "identity"
        assert section_of(fact("x", "העדפה")) == "preference"
        assert section_of(an_item(always_inject=True)) == "always"
        assert section_of(an_item(tier=Tier.PATTERNS, tags=("identity",))) == "pattern"
        assert section_of(fact("x", "project")) is None
        assert section_of(an_item(tags=("identity",))) is None

    def test_each_memory_once_and_each_section_capped(self) -> None:
        items = [fact(f"{n}", "identity") for n in range(12)]
        found = core_memories_of([*items, *items], MOST)
        assert len({one.item.memory_id for one in found}) == len(found) == 10

    def test_no_outcome_moves_the_stable_part(self) -> None:
        items = [
            fact("a", "identity", quality=Quality(importance=0.9, confidence=0.9)),
            fact("b", "identity", always_inject=True),
            fact("ג", "preference"),
            an_item(text="d", tier=Tier.PATTERNS),
        ]
        used = Stats(
            uses=9, worked_count=9, score=1.0, wilson_score=0.7, last_outcome=Outcome.WORKED
        )
        later = STORED_AT + timedelta(days=3)
        moved = [replace(one, stats=used, updated_at=later) for one in reversed(items)]
        before, after = (
            block(Material(standing=core_memories_of(some, MOST))) for some in (items, moved)
        )
        assert before.stable == after.stable
        assert [line.item.text for line in before.lines] == ["b", "a", "ג", "d"]

    def test_an_edit_changes_the_etag(self) -> None:
        one, other = fact("a", "identity"), fact("b", "identity")
        before = block(Material(standing=core_memories_of([one, other], MOST)))
        edited = replace(one, text="a changed")
        after = block(Material(standing=core_memories_of([edited, other], MOST)))
        assert before.etag != after.etag
