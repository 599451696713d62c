"""Rows that did not change are not parsed again; whatever changed is."""

from dataclasses import replace
from typing import Any

import bson
from bson.raw_bson import RawBSONDocument

from rayapp.storage.mongo.convert import MAX_ROW_BYTES, ParsedRows, to_document
from tests.support.builders import an_item

ITEM = an_item()


def row(text: str = "דנה גרה בחיפה", **changes: Any) -> RawBSONDocument:
    document = to_document(replace(ITEM, text=text)) | changes
    return RawBSONDocument(bson.encode(document))


def test_an_unchanged_row_gives_the_same_item() -> None:
    rows = ParsedRows()
    (first,) = rows.items([row()])
    (again,) = rows.items([row()])
    assert again is first
    assert first.text == "דנה גרה בחיפה"
    assert first.created_at.tzinfo is not None


def test_any_change_of_a_row_is_seen() -> None:
    rows = ParsedRows()
    rows.items([row()])
    (archived,) = rows.items([row(status="archived")])
    assert archived.status == "archived"
    (edited,) = rows.items([row("Dana lives in Haifa")])
    assert edited.text == "Dana lives in Haifa"


def test_order_is_kept_and_unreadable_rows_are_left_out_each_time() -> None:
    rows = ParsedRows()
    for _ in range(2):
        found = rows.items([row("a b"), row("broken", tier="no such tier"), row("c d")])
        assert [item.text for item in found] == ["a b", "c d"]


def test_it_forgets_what_was_used_longest_ago() -> None:
    rows = ParsedRows(max_bytes=2 * len(row("one").raw) + 10)
    (first,), (second,) = rows.items([row("one")]), rows.items([row("two")])
    rows.items([row("one")])
    rows.items([row("six")])
    assert rows.items([row("one")])[0] is first
    assert rows.items([row("two")])[0] is not second


def test_a_long_document_takes_no_place() -> None:
    rows = ParsedRows()
    long = row("מסמך " * MAX_ROW_BYTES)
    assert rows.items([long])[0] is not rows.items([long])[0]
