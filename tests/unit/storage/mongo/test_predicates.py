"""Predicates: owners are always named, operators never come from input."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.errors import InvalidInput
from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import Status
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import CORE_TIERS, DATAGOV_TIERS, Tier
from rayapp.storage.mongo.predicates import ANY_OF, MAX_TEXT_TERMS, selected, text_terms, visible
from tests.support.list_contract import FILTERS, SCOPES

DANA = ReadScope("dana")


@given(scope=SCOPES, where=FILTERS)
def test_every_query_has_equality_on_one_allowed_owner(scope: ReadScope, where: ItemFilter) -> None:
    for predicate in selected(scope, where):
        assert predicate["user_id"] in (scope.user_id, SYSTEM_USER)
        if predicate["user_id"] != scope.user_id:
            assert scope.include_shared
            assert set(predicate["tier"]["$in"]) <= {tier.value for tier in DATAGOV_TIERS}


def test_core_tiers_ask_only_me() -> None:
    assert [p["user_id"] for p in selected(DANA, ItemFilter(tiers=CORE_TIERS))] == ["dana"]
    assert visible(DANA, (Tier.WORKING,)) == {"user_id": "dana", "tier": {"$in": ["working"]}}


@pytest.mark.parametrize("name", ["tiers", "statuses", *(name for name, _ in ANY_OF)])
def test_an_empty_list_asks_nothing(name: str) -> None:
    assert selected(DANA, ItemFilter(**{name: ()})) == []


@pytest.mark.parametrize("name", [f.name for f in fields(ItemFilter)])
def test_every_filter_field_changes_the_predicate(name: str) -> None:
    value: Any = {
        "tiers": (Tier.WORKING,),
        "statuses": (Status.ARCHIVED,),
        "always_inject": True,
        "include_superseded": True,
        "include_hidden": False,
    }.get(name, ("a",))
    changed = selected(DANA, ItemFilter(**{name: value}))
    assert changed != selected(DANA, ItemFilter())


def test_deleted_items_are_seen_only_when_named() -> None:
    (predicate,) = selected(ReadScope("dana", False), ItemFilter(statuses=None))
    assert predicate["status"] == {"$ne": "deleted"}


@pytest.mark.parametrize("user_id", ["", "a\n", "dana ", {"$ne": None}, None])
def test_a_malformed_owner_raises(user_id: Any) -> None:
    with pytest.raises(InvalidInput):
        visible(ReadScope(user_id))


@given(st.text(max_size=200))
def test_text_terms_hold_no_operator(query: str) -> None:
    terms = text_terms(query)
    assert not set('"-\\') & set(terms)
    assert len(terms.split()) <= MAX_TEXT_TERMS


def test_text_terms_are_plain_words() -> None:
    assert text_terms('"Red car" -blue שָׁלוֹם צה"ל red') == ("red car blue שלום צה ל צה״ל")


def test_a_high_score_is_read_after_its_expiry() -> None:
    now = datetime(2026, 1, 15, 12, tzinfo=UTC)
    (predicate,) = selected(ReadScope("dana", False), ItemFilter(now=now))
    assert {"stats.score": {"$gte": 0.9}} in predicate["$and"][0]["$or"]
