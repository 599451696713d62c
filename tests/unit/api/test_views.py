"""Ages, previews and names."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.memory.rules.lifecycle import age
from rayapp.memory.tiers import Tier, tier_name
from rayapp.wire.memories import PREVIEW_CHARS, preview

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "now"),
        (59, "now"),
        (60, "1 min"),
        (3_599, "59 min"),
        (3_600, "1 h"),
        (86_399, "23 h"),
        (3 * 86_400, "3 d"),
        (45 * 86_400, "1 mo"),
        (800 * 86_400, "2 y"),
    ],
)
def test_age(seconds: int, text: str) -> None:
    assert age(NOW - timedelta(seconds=seconds), NOW) == text


@given(st.text(max_size=400))
def test_a_preview_is_the_text_or_its_beginning(text: str) -> None:
    shown = preview(text)
    assert len(shown) <= PREVIEW_CHARS
    assert shown == text or (shown[-1] == "…" and text.startswith(shown[:-1]))


@pytest.mark.parametrize("tier", Tier)
def test_only_books_have_another_name(tier: Tier) -> None:
    assert tier_name(tier, documents=False) == tier.value
    assert (tier_name(tier, documents=True) != tier.value) == (tier is Tier.BOOKS)
