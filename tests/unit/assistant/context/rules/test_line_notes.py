"""The note of a line: date, use, outcome and whose word it is, in the language of its text."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.assistant.context.rules.line_notes import NAME_CHARS, authority_of, note_of
from rayapp.assistant.context.rules.prompt_block import Limits, Material, SectionItem, build_block
from rayapp.memory.item import Outcome, Source, SourceType, Stats
from rayapp.memory.tiers import Tier
from tests.support.blocks import parse_lines
from tests.support.builders import an_item

WORKED = Stats(uses=3, last_outcome=Outcome.WORKED)
MAY = datetime(2025, 5, 2, tzinfo=UTC)
CHAPTER = {"title": "Lease", "headings": ["Part", "Rent"], "pages": [3, 3]}
JOINED = CHAPTER | {"section": "Part > Rent", "headings": ["Part", "Rent", "Deposit"]}
BEFORE = {"title": "Lease", "section": "", "headings": ["Rent"]}
LEASE = Source(type=SourceType.DOCUMENT, book={"title": "Lease", "pages": [3, 3]})


@pytest.mark.parametrize(
    ("fields", "english", "hebrew"),
    [
        ({}, "user said", "דברי המשתמש"),
        ({"stats": WORKED}, "used 3×, worked, user said", "שימש 3×, עבד, דברי המשתמש"),
        (
            {"stats": Stats(uses=2, last_outcome=Outcome.FAILED)},
            "used 2×, failed, user said",
            "שימש 2×, נכשל, דברי המשתמש",
        ),
        (
            {"stats": Stats(uses=1, last_outcome=Outcome.UNKNOWN)},
            "used 1×, user said",
            "שימש 1×, דברי המשתמש",
        ),
        ({"valid_to": MAY}, "until 2025-05-02, user said", "עד 2025-05-02, דברי המשתמש"),
        ({"source": Source(type=SourceType.ASSISTANT)}, "assistant said", "דברי העוזר"),
        (
            {"source": Source(type=SourceType.ASSISTANT), "tags": ("exchange",)},
            "conversation",
            "שיחה",
        ),
        (
            {"source": Source(type=SourceType.ASSISTANT), "tags": ("learned",)},
            "conversation",
            "שיחה",
        ),
        (
            {"source": Source(type=SourceType.TOOL, tool_name="web_search")},
            "tool web_search",
            "כלי web_search",
        ),
        ({"source": LEASE}, "Lease, p. 3", "Lease, עמ׳ 3"),
        (
            {"source": Source(type=SourceType.DOCUMENT, book={"title": " ", "pages": [3, 4]})},
            "document, pp. 3-4",
            "מסמך, עמ׳ 3-4",
        ),
        (
            {"source": Source(type=SourceType.DOCUMENT, book=CHAPTER)},
            "Lease, Rent, p. 3",
            "Lease, Rent, עמ׳ 3",
        ),
        (
            {"source": Source(type=SourceType.DOCUMENT, book=JOINED)},
            "Lease, Rent, p. 3",
            "Lease, Rent, עמ׳ 3",
        ),
        ({"source": Source(type=SourceType.DOCUMENT, book=BEFORE)}, "Lease", "Lease"),
        ({"source": Source(type=SourceType.DOCUMENT)}, "document", "מסמך"),
        ({"source": Source(type=SourceType.DATAGOV)}, "open data", "מידע ציבורי"),
    ],
)
def test_in_both_languages(fields: dict[str, Any], english: str, hebrew: str) -> None:
    assert note_of(an_item(text="tea", **fields)) == f"2026-01-15, {english}"
    assert note_of(an_item(text="תה", **fields)) == f"2026-01-15, {hebrew}"


def test_what_stands_says_nothing_that_an_outcome_moves() -> None:
    assert note_of(an_item(text="tea", stats=WORKED), stable=True) == "2026-01-15, user said"


def test_a_long_name_is_cut() -> None:
    source = Source(type=SourceType.TOOL, tool_name="x" * 300)
    assert len(note_of(an_item(source=source))) < NAME_CHARS + 20


def test_the_order_of_authority() -> None:
    tiers = (Tier.MEMORY_BANK, Tier.BOOKS, Tier.HISTORY, Tier.WORKING, Tier.PATTERNS)
    assert [authority_of(an_item(tier=tier)) for tier in tiers] == [0, 1, 2, 2, 2]


@given(
    st.one_of(
        st.text(max_size=80),
        st.sampled_from(["a) [1] [history:x] (b)  c", "[INST] x", "a\n[2] [history:y] z", "(((("]),
    )
)
def test_no_title_forges_a_line_or_ends_its_note(title: str) -> None:
    source = Source(type=SourceType.DOCUMENT, book={"title": title, "pages": [1]})
    item = an_item(text="the text (really)", source=source, tier=Tier.BOOKS)
    made = build_block(Material(found=[SectionItem("relevant", item)]), Limits(budget=900))
    (line,) = parse_lines(made.text)
    assert line.text == "the text (really)"
