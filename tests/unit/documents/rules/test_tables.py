"""Rows as texts with the names of their columns."""

import pytest

from rayapp.documents.records import BlockKind
from rayapp.documents.rules.tables import HEAD_ROWS, NAME_LENGTH, ROW_LENGTH, row_text, table_blocks

Rows = list[list[str]]


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        ([["a", "b"], ["1", "2"]], ["a: 1; b: 2"]),
        ([["a", "b"], ["", "2"], ["", ""]], ["b: 2"]),
        ([["a", ""], ["1", "2"]], ["a; ", "1; 2"]),
        ([["Prices"], ["a", "b"], ["1", "2"]], ["Prices", "a: 1; b: 2"]),
        ([["1", "2"], ["3", "4"]], ["1; 2", "3; 4"]),
        ([["a", "b"]], ["a; b"]),
        ([["one"], ["two"]], ["one", "two"]),
        ([["a", "b"], ["x", "y", "z"]], ["a: x; b: y; z"]),
        ([["a\n b", "c"], ["  1 ", "2"]], ["a b: 1; c: 2"]),
        ([["שנה", "2023"], ["א", "1"]], ["שנה; 2023", "א; 1"]),
        ([], []),
    ],
)
def test_rows(rows: Rows, texts: list[str]) -> None:
    assert [block.text for block in table_blocks(rows)] == [
        text.removesuffix("; ") for text in texts
    ]


def test_every_row_names_all_columns_of_its_table() -> None:
    rows = [["a", "b"], *[["1", ""] for _ in range(2 * HEAD_ROWS)]]
    blocks = list(table_blocks(rows, page=3))
    assert len(blocks) == 2 * HEAD_ROWS
    assert {(block.columns, block.page, block.kind) for block in blocks} == {
        (("a", "b"), 3, BlockKind.TABLE_ROW)
    }


def test_long_texts_name_no_columns() -> None:
    """A page that is laid out as a table."""
    long = "words " * NAME_LENGTH
    blocks = list(table_blocks([["Question", long], ["a", "b"]]))
    assert [block.text for block in blocks] == [f"Question; {long.strip()}", "a; b"]
    assert all(not block.columns for block in blocks)


def test_values_hold_what_they_hold() -> None:
    assert row_text(["name", "sum"], ["x; y: z", "=1+1"]) == "name: x; y: z; sum: =1+1"


@pytest.mark.parametrize(
    "names",
    [
        ["branch", "2023", "2024", "2025"],
        ["סניף", "2025", "2024", "2023"],
        ["branch", "2023", "2024"],
        ["branch", "city", "2024"],
        ["", "2020", "2025", "2030"],
        ["2023", "2024", "2025"],
        ["branch", "2022/23", "2023/24"],
        ["branch", "01/2024", "02/2024", "03/2024"],
        ["branch", "11/2023", "12/2023", "01/2024"],
        ["branch", "2024-01-15", "2024-01-16"],
        ["branch", "31.12.2023", "31.1.2024"],
        ["day", "08:00", "09:30", "11:00"],
        ["branch", "0-4", "5-9", "10-14"],
        ["branch", "1", "2", "3", "4"],
        ["branch", "10", "20", "30", "total"],
        ["branch", *(str(month) for month in range(1, 13))],
        ["branch", "2023", "2024", "2025", "Σ 3 years"],
    ],
)
def test_names_that_are_numbers(names: list[str]) -> None:
    """Years, days, hours, ranges, and numbers that count: what stands above other numbers."""
    body = [["Haifa", "512", "97.5", "1,300", *["7", "3", "8", "1"] * 3][: len(names)]] * 3
    blocks = list(table_blocks([names, *body]))
    assert [block.columns for block in blocks] == [tuple(filter(None, names))] * 3
    assert all(f"{names[-1]}: " in block.text for block in blocks)


@pytest.mark.parametrize(
    "rows",
    [
        [["Haifa", "10", "20", "30"], ["Lod", "11", "22", "33"], ["Acre", "10", "15", "20"]],
        [["Haifa", "512", "498", "733"], ["Lod", "12", "99", "81"]],
        [["Dan", "1956", "1980"], ["Ann", "1960", "1991"], ["Ron", "1971", "1999"]],
        [["Dan", "2024-01-15", "2024-02-01"], ["Ann", "2024-03-01", "2024-03-09"]],
        [["Dan", "03-5551234", "050-1234567"], ["Ann", "03-5550000", "052-7654321"]],
        [["Haifa", "1.5", "2.5", "3.5"], ["Lod", "7", "9", "1"]],
        [["Haifa", "10%", "20%", "30%"], ["Lod", "7", "9", "1"]],
        [["Year", "2023"], ["Branch", "Haifa"], ["Sales", "12"]],
        [["1", "2", "3"], ["yes", "no", "yes"]],
    ],
)
def test_numbers_that_name_nothing(rows: Rows) -> None:
    """The first row of a table without names."""
    assert [block.text for block in table_blocks(rows)] == ["; ".join(row) for row in rows]


def test_a_title_over_all_columns_names_none() -> None:
    rows = [["Sales"] * 3, ["branch", "2023", "2024"], ["Haifa", "5", "6"], ["Lod", "8", "7"]]
    for heads in (0, 2):
        assert [block.text for block in table_blocks(rows, heads=heads)] == [
            "Sales", "branch: Haifa; 2023: 5; 2024: 6", "branch: Lod; 2023: 8; 2024: 7",
        ]  # fmt: skip


@pytest.mark.parametrize("heads", [0, 2])
@pytest.mark.parametrize(
    "first", [["branch", "2023", "", "2024", ""], ["branch", "2023", "2023", "2024", "2024"]]
)
@pytest.mark.parametrize("corner", ["", "branch"])
def test_names_in_two_rows(first: list[str], corner: str, heads: int) -> None:
    rows = [first, [corner, "sold", "cost", "sold", "cost"], ["Haifa", "5", "6", "7", "8"]]
    (block,) = table_blocks(rows, heads=heads)
    assert block.text == "branch: Haifa; 2023 sold: 5; 2023 cost: 6; 2024 sold: 7; 2024 cost: 8"
    assert block.columns == ("branch", "2023 sold", "2023 cost", "2024 sold", "2024 cost")


def test_rows_that_are_no_second_names() -> None:
    rows = [["name", "city", ""], ["Dan", "Haifa", "old"], ["Ann", "Lod", "7"]]
    assert [block.text for block in table_blocks(rows)] == [
        "name: Dan; city: Haifa; old", "name: Ann; city: Lod; 7",
    ]  # fmt: skip


def test_a_table_that_is_all_names_is_as_if_nothing_were_stated() -> None:
    rows = [["a", "b"], ["c", "d"]]
    assert list(table_blocks(rows, heads=2)) == list(table_blocks(rows))


def test_a_stated_name_is_cut_where_it_is_long() -> None:
    rows = [["a", "words " * NAME_LENGTH], ["1", "2"]]
    (block,) = table_blocks(rows, heads=1)
    assert len(block.columns[1]) <= NAME_LENGTH
    assert block.text == f"a: 1; {block.columns[1]}: 2"


def test_a_long_row_is_several_that_begin_alike() -> None:
    names = ["country", "code", *(str(year) for year in range(1960, 2026))]
    rows = [names, ["Israel", "ISR", *(str(10**6 + year) for year in range(66))]]
    texts = [block.text for block in table_blocks(rows)]
    assert len(texts) > 1
    assert all(len(text) <= ROW_LENGTH for text in texts)
    assert all(text.startswith("country: Israel; code: ISR; ") for text in texts)
    told = [pair for text in texts for pair in text.split("; ")[2:]]
    assert told == [f"{1960 + year}: {10**6 + year}" for year in range(66)]


def test_a_long_value_is_several_rows_of_one_name() -> None:
    words = " ".join(f"word{number}." for number in range(400))
    texts = [block.text for block in table_blocks([["id", "notes"], ["7", words], ["8", "x"]])]
    assert all(text.startswith("id: 7; notes: word") for text in texts[:-1])
    assert all(len(text) <= ROW_LENGTH for text in texts)
    assert " ".join(text.removeprefix("id: 7; notes: ") for text in texts[:-1]) == words
    assert texts[-1] == "id: 8; notes: x"
