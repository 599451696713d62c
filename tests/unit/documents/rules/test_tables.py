"""Rows as texts with the names of their columns."""

import pytest

from rayapp.documents.records import BlockKind
from rayapp.documents.rules.tables import HEAD_ROWS, NAME_LENGTH, row_text, table_blocks

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
