"""Lines of pages become paragraphs and headings."""

import pytest

from rayapp.documents.records import BlockKind
from rayapp.documents.rules.page_lines import Line, blocks_of, heading_key, without_running_titles


def line(text: str, y: float, page: int = 1, size: float = 12, right: float = 500) -> Line:
    return Line(text, page, size, y, y, 50, right)


def test_lines_of_a_paragraph_are_joined_and_gaps_part_them() -> None:
    lines = [line(text, y) for text, y in (("one", 700), ("two", 686), ("three", 650))]
    more = [line("four", 636), line("five", 622)]
    assert [block.text for block in blocks_of([*lines, *more])] == ["one two", "three four five"]


def test_a_short_line_that_ends_a_sentence_ends_its_paragraph() -> None:
    lines = [line("Long.", 700), line("Short.", 686, right=200), line("Next", 672)]
    assert [block.text for block in blocks_of(lines)] == ["Long. Short.", "Next"]


def test_larger_lines_are_headings_by_their_size() -> None:
    text = [line("word " * 30, 600 - 14 * n) for n in range(10)]
    lines = [line("Book", 760, size=24), line("Chapter", 720, size=16), *text]
    heads = [b for b in blocks_of(lines) if b.kind is BlockKind.HEADING]
    assert [(head.text, head.level) for head in heads] == [("Book", 1), ("Chapter", 2)]


def test_the_outline_of_the_file_names_headings() -> None:
    lines = [line("1. פתיחה", 700), line("text", 686)]
    found = list(blocks_of(lines, {(1, heading_key("1 פתיחה")): 2}))
    assert (found[0].kind, found[0].level, found[1].text) == (BlockKind.HEADING, 2, "text")


def test_items_of_a_list_stand_alone() -> None:
    found = list(blocks_of([line("• one", 700), line("more", 686), line("• two", 672)]))
    assert [(b.kind, b.text) for b in found] == [
        (BlockKind.LIST_ITEM, "• one more"),
        (BlockKind.LIST_ITEM, "• two"),
    ]


def test_page_numbers_and_running_titles_go() -> None:
    lines = [
        row
        for page in range(1, 7)
        for row in (
            line("My book", 780, page),
            line(f"text of {'abcdef'[page - 1]}", 700, page),
            line(f"text {'uvwxyz'[page - 1]}", 686, page),
            line(f"- {page} -", 20, page),
        )
    ]
    kept = without_running_titles(lines, 6)
    assert len(kept) == 12
    assert all(row.text.startswith("text") for row in kept)
    assert without_running_titles(lines[:8], 2) == lines[:8]


def test_sums_at_the_edges_of_pages_stay() -> None:
    pages = range(1, 7)
    lines = [
        line(text, y, page)
        for page in pages
        for text, y in (
            (f"Acme, page {page} of 6", 760),
            (f"Salary of worker {page}", 400),
            (f"Net to pay: {1000 + page * 37}.50", 60),
        )
    ]
    kept = [one.text for one in without_running_titles(lines, len(pages))]
    assert len(kept) == 12
    assert "Net to pay: 1037.50" in kept


def test_the_only_line_of_a_page_stays() -> None:
    lines = [line(f"Question {page}", 700, page) for page in range(1, 7)]
    assert without_running_titles(lines, 6) == lines


@pytest.mark.parametrize(
    "footer",
    [
        "Confidential 2024-03-12 Page {} of 12",
        "12/03/2024 10:31 {}/12",
        "Tel 03-1234567 Fax 03-7654321 www.a.co.il {}",
        "2-{}",
        "{}",
    ],
)
def test_footers_with_numbers_of_their_own_go(footer: str) -> None:
    pages = range(1, 13)
    words = "abcdefghijklmnop"
    texts = [line(f"text {words[page]} of it", 400, page) for page in pages]
    lines = [*texts, *(line(footer.format(page), 20, page) for page in pages)]
    lines += [line(f"the {words[page + 1]} one", 780, page) for page in pages]
    kept = without_running_titles(lines, 12)
    assert [one for one in kept if one.y == 20] == []
    assert len(kept) == 24
