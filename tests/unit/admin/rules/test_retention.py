"""Which memories are past their age: never a younger one, a pinned one, or another kind's."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rayapp.admin.ports import RetentionKind
from rayapp.admin.rules import retention_limits
from rayapp.core.settings.model import RetentionSettings
from rayapp.memory.item import MemoryItem, Source, SourceType, Status
from rayapp.memory.rules.filtering import matches
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT, an_item

NOW = STORED_AT + timedelta(days=400)
AGES = st.timedeltas(timedelta(0), timedelta(days=400))
LIMITS = st.dictionaries(
    st.sampled_from([kind.value for kind in RetentionKind]), st.integers(1, 500).map(float)
)


@st.composite
def items(draw: st.DrawFn) -> MemoryItem:
    changed = NOW - draw(AGES)
    return an_item(
        tier=draw(st.sampled_from(Tier)),
        stored_at=changed - draw(AGES),
        updated_at=changed,
        created_at=NOW - draw(AGES),
        always_inject=draw(st.booleans()),
        status=draw(st.sampled_from(Status)),
        source=Source(type=draw(st.sampled_from(SourceType))),
    )


def going(item: MemoryItem, days: dict[str, float], *, pinned: bool) -> set[RetentionKind]:
    found = retention_limits(days, pinned=pinned, now=NOW)
    return {one.kind for one in found if one.memories and matches(item, one.memories)}


@given(item=items(), days=LIMITS, pinned=st.booleans())
def test_nothing_goes_that_is_younger_pinned_or_of_a_kind_without_a_limit(
    item: MemoryItem, days: dict[str, float], pinned: bool
) -> None:
    for kind in going(item, days, pinned=pinned):
        assert item.updated_at < NOW - timedelta(days=days[kind])
        assert pinned or not item.always_inject
        assert item.status is not Status.DELETED
        by_tool = kind is RetentionKind.TOOL_RESULTS and item.source.type is SourceType.TOOL
        assert item.tier.value == kind or by_tool
    # A fact goes by its own limit alone, a chunk with its document alone.
    assert item.tier is not Tier.BOOKS or not going(item, days, pinned=pinned)
    if item.tier is Tier.MEMORY_BANK and "memory_bank" not in days:
        assert not going(item, days, pinned=pinned)


@given(item=items(), more=st.timedeltas(timedelta(0), timedelta(days=99)), days=LIMITS)
def test_what_is_past_its_age_stays_so(
    item: MemoryItem, more: timedelta, days: dict[str, float]
) -> None:
    later = retention_limits(days, pinned=True, now=NOW + more)
    kinds = {one.kind for one in later if one.memories and matches(item, one.memories)}
    assert going(item, days, pinned=True) <= kinds


def test_every_kind_has_its_setting_and_none_is_on_by_default() -> None:
    assert RetentionSettings().days == {}
    on = RetentionSettings(**{f"{kind}_days": 1 for kind in RetentionKind})
    assert set(on.days) == {kind.value for kind in RetentionKind}
    assert [one.kind for one in retention_limits(on.days, pinned=False, now=NOW)] == [
        *RetentionKind
    ]


def test_a_limit_is_a_moment() -> None:
    days = {"history": 30.0}
    for age, goes in ((30, False), (29.9, False), (30.1, True)):
        at: datetime = NOW - timedelta(days=age)
        item = an_item(tier=Tier.HISTORY, stored_at=at)
        assert bool(going(item, days, pinned=False)) is goes
