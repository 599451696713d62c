"""Values as rows and back."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.errors import InvalidInput
from rayapp.graphs.records import Counters, RoutingRow
from rayapp.memory.item import MemoryItem, Outcome
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.convert import UNREADABLE
from rayapp.storage.mongo.rows import from_row, may_lack, to_row
from tests.support.builders import an_item

AT = datetime(2026, 3, 1, tzinfo=UTC)
TIMES = st.datetimes(timezones=st.just(UTC))


@dataclass(frozen=True, slots=True)
class Grown:
    """`later` came with a later version."""

    name: str
    kinds: frozenset[Outcome] = frozenset()
    later: int = 3


may_lack(Grown, "later")


@given(
    text=st.text(max_size=20),
    tags=st.lists(st.text(max_size=5), max_size=3),
    expires_at=st.none() | TIMES,
    outcome=st.none() | st.sampled_from(Outcome),
)
def test_a_memory_comes_back_as_it_was(
    text: str, tags: list[str], expires_at: datetime | None, outcome: Outcome | None
) -> None:
    item = an_item(text=text, tags=tuple(tags), expires_at=expires_at)
    item = replace(item, stats=replace(item.stats, last_outcome=outcome))
    row = to_row(item)
    assert from_row(MemoryItem, row | {"_id": 1, "beside": True}) == item
    assert (row["tags"], row["stats"]["last_outcome"]) == (tags, outcome and outcome.value)


def test_keys_and_members_are_written_as_their_values() -> None:
    row = RoutingRow(
        concept="tea",
        label="Tea",
        tiers={Tier.HISTORY: Counters(uses=2)},
        first_seen_at=AT,
        last_seen_at=AT,
    )
    written = to_row(row)
    assert list(written["tiers"]) == ["history"]
    assert type(next(iter(written["tiers"]))) is str
    assert from_row(RoutingRow, written) == row


def test_only_what_a_row_may_lack_has_its_default() -> None:
    assert from_row(Grown, {"name": "a", "kinds": ["worked"]}) == Grown(
        "a", frozenset({Outcome.WORKED}), 3
    )
    with pytest.raises(KeyError):
        from_row(Grown, {"name": "a", "later": 4})


@pytest.mark.parametrize("defect", [{"tier": "attic"}, {"stats": 7}, {"tags": None}])
def test_a_row_of_another_shape_is_unreadable(defect: dict[str, Any]) -> None:
    with pytest.raises(UNREADABLE):
        from_row(MemoryItem, to_row(an_item()) | defect)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no zone"):
        to_row(an_item(expires_at=datetime(2026, 3, 1)))
