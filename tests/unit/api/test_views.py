"""Ages, previews and names."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasPath

from rayapp.api.app import ROUTES
from rayapp.memory.rules.lifecycle import age
from rayapp.memory.tiers import Tier, tier_name
from rayapp.wire.bases import PREVIEW_CHARS, Answer, preview

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


def answers(kind: type[Answer] = Answer) -> Iterator[type[Answer]]:
    for one in kind.__subclasses__():
        yield one
        yield from answers(one)


def test_what_is_built_from_a_value_is_read_from_json_by_its_own_name() -> None:
    """Where a field stands in a value, the JSON of the answer has nothing, or the same."""
    assert ROUTES  # all of them are imported
    found = {
        f"{one.__name__}.{name}"
        for one in answers()
        for name, field in one.model_fields.items()
        for path in (getattr(field.validation_alias, "choices", (field.validation_alias,)))
        if isinstance(path, AliasPath) and path.path[0] in one.model_fields
    }
    same = {"MemoryView.content", "GhostView.memoryId", "KgConceptView.concept"}
    same |= {"BankView.id", "BankStoreAnswer.id", "SourceView.category", "WholeSourceView.category"}
    assert found == same
