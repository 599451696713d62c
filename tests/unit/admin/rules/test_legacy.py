"""Rows of the old memory bank, hidden memories, and session users."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.admin.ports import LegacyFact
from rayapp.admin.rules import SESSION_USER, new_memory
from rayapp.core.errors import InvalidInput
from rayapp.memory.item import Status
from rayapp.memory.rules.creation import TextLimits, check_new
from rayapp.memory.rules.hiding import archived_reason, hidden_reason
from tests.support.builders import an_item

NOW = datetime(2025, 5, 6, tzinfo=UTC)
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)


def a_row(**fields: Any) -> LegacyFact:
    return LegacyFact(raw_id="65a000000000000000000001", fields={"text": "tea תה", **fields})


@given(st.dictionaries(st.sampled_from(["tags", "importance", "createdAt", "status"]), VALUES))
def test_any_row_with_a_text_can_be_stored(fields: dict[str, Any]) -> None:
    check_new(new_memory(a_row(**fields), NOW), TextLimits(text=100, memory_bank=100))


@given(st.lists(VALUES, max_size=80))
def test_any_tags_become_usable_ones(tags: list[Any]) -> None:
    check_new(new_memory(a_row(tags=tags), NOW), TextLimits(text=100, memory_bank=100))


@pytest.mark.parametrize("text", ["", "  ", None, "\x00\x1f", "\u200b\u200f"])
def test_a_row_without_a_text_is_refused(text: Any) -> None:
    with pytest.raises(InvalidInput):
        new_memory(a_row(text=text), NOW)


def test_control_characters_of_old_texts_become_spaces() -> None:
    assert new_memory(a_row(text="tea\x00 ת\x1bה\nx"), NOW).text == "tea  ת ה\nx"


def test_a_day_in_the_future_is_today_and_a_day_without_a_zone_is_utc() -> None:
    ahead = datetime(2030, 1, 1, tzinfo=UTC)
    assert new_memory(a_row(createdAt=ahead), NOW).created_at == NOW
    plain = datetime(2025, 1, 1)
    assert new_memory(a_row(createdAt=plain), NOW).created_at == plain.replace(tzinfo=UTC)


@pytest.mark.parametrize("reason", ["wrong", "מביך", "ghost:ghost:"])
def test_the_reason_comes_back_while_the_memory_is_archived(reason: str) -> None:
    item = an_item(status=Status.ARCHIVED, archived_reason=archived_reason(reason))
    assert hidden_reason(item) == reason
    shown = an_item(status=Status.ACTIVE, archived_reason=archived_reason(reason))
    assert hidden_reason(shown) is None


@pytest.mark.parametrize(
    ("user_id", "session"),
    [("0f" * 32, True), ("0F" * 32, False), ("0f" * 31, False), ("0f" * 32 + "\n", False)],
)
def test_session_users(user_id: str, session: bool) -> None:
    assert (re.fullmatch(SESSION_USER, user_id) is not None) is session
