"""The tenant predicate and the translation of every filter field."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import Tier
from rayapp.storage.qdrant.predicate import (
    ANY_OF_FIELDS,
    FIELD_KINDS,
    TENANT_FIELD,
    AnyOf,
    Clause,
    Flag,
    HasIds,
    OneOf,
    Predicate,
    Range,
    count_predicate,
    not_newer_than,
    predicate_of,
)
from tests.support.vector_index_cases import EMPTY_LISTS, FILTER_CANARIES, item_filters

MINE = AnyOf("user_id", ("ann",))
BOTH = AnyOf("user_id", ("ann", SYSTEM_USER))
SYSTEM_SHARED = Predicate(
    (AnyOf("user_id", (SYSTEM_USER,)), AnyOf("tier", ("datagov_expansion", "datagov_schema")))
)
MINE_OR_SHARED = OneOf((Predicate((MINE,)), SYSTEM_SHARED))


@pytest.mark.parametrize(
    ("include_shared", "tiers", "expected"),
    [
        (True, None, MINE_OR_SHARED),
        (False, None, MINE),
        (True, (Tier.BOOKS, Tier.WORKING), MINE),
        (True, (), MINE),
        (True, (Tier.DATAGOV_SCHEMA,), BOTH),
        (False, (Tier.DATAGOV_SCHEMA,), MINE),
        (True, (Tier.DATAGOV_SCHEMA, Tier.BOOKS), MINE_OR_SHARED),
    ],
)
def test_tenant_clause_comes_first(
    include_shared: bool, tiers: tuple[Tier, ...] | None, expected: Clause
) -> None:
    scope = ReadScope("ann", include_shared)
    assert predicate_of(scope, ItemFilter(), tiers).must[0] == expected
    assert predicate_of(scope, ItemFilter(tiers=tiers)).must[0] == expected


@given(where=item_filters(), shared=st.booleans(), tiers=st.lists(st.sampled_from(Tier)))
def test_every_scoped_predicate_names_the_user(
    where: ItemFilter, shared: bool, tiers: list[Tier]
) -> None:
    head = predicate_of(ReadScope("ann", shared), where, tuple(tiers)).must[0]
    assert head in (MINE, BOTH, MINE_OR_SHARED)
    assert shared or head == MINE


def test_every_filter_field_is_translated() -> None:
    """A field added to ItemFilter must get a canary in the contract, unless no search asks it."""
    assert {f.name for f in fields(ItemFilter)} - set(FILTER_CANARIES) == {
        "valid_at",
        "include_superseded",
        "include_attached",
        "instruction",
        "updated_to",
        "include_hidden",
    }
    assert {name for name, _ in ANY_OF_FIELDS} | {"tiers"} == set(EMPTY_LISTS)


def clauses_of(predicate: Predicate) -> list[AnyOf | Flag | Range]:
    """All that ask for a key."""
    found: list[AnyOf | Flag | Range] = []
    for clause in (*predicate.must, *predicate.must_not):
        if isinstance(clause, OneOf):
            found += [one for option in clause.options for one in clauses_of(option)]
        elif not isinstance(clause, HasIds):
            found.append(clause)
    return found


def keys_of(predicate: Predicate) -> set[str]:
    return {clause.key for clause in clauses_of(predicate)}


@pytest.mark.parametrize("case", FILTER_CANARIES, ids=str)
def test_every_key_of_a_predicate_is_indexed(case: str) -> None:
    indexed = {TENANT_FIELD, *FIELD_KINDS}
    where = FILTER_CANARIES[case][2]
    assert keys_of(predicate_of(ReadScope("ann"), where)) <= indexed
    assert keys_of(not_newer_than(3)) <= indexed


@pytest.mark.parametrize("case", FILTER_CANARIES, ids=str)
def test_whole_numbers_are_asked_for_as_ranges_alone(case: str) -> None:
    """The embedded engine's index of them holds nothing else."""
    whole = {key for key, kind in FIELD_KINDS.items() if kind == "integer"}
    asked = clauses_of(count_predicate(ReadScope("ann"), FILTER_CANARIES[case][2]))
    asked += clauses_of(not_newer_than(3))
    assert all(isinstance(one, Range) for one in asked if one.key in whole)


@pytest.mark.parametrize("field", EMPTY_LISTS)
def test_empty_list_is_known_to_match_nothing(field: str) -> None:
    conditions: dict[str, Any] = {field: ()}
    assert ItemFilter(**conditions).matches_nothing
    assert predicate_of(ReadScope("ann"), ItemFilter(**conditions)).matches_nothing


def test_disjoint_tiers_match_nothing() -> None:
    where = ItemFilter(tiers=(Tier.BOOKS,))
    assert predicate_of(ReadScope("ann"), where, (Tier.HISTORY,)).matches_nothing
    assert not predicate_of(ReadScope("ann"), where, (Tier.BOOKS,)).matches_nothing


def test_a_count_takes_every_item_once() -> None:
    others = Range(key="passage", gte=1.0)
    assert count_predicate(None, None) == Predicate((), (others,))
    assert count_predicate(ReadScope("ann", False), None) == Predicate((MINE,), (others,))
    everyone = count_predicate(None, ItemFilter(include_attached=True))
    active = AnyOf("status", ("active",))
    assert everyone == Predicate((active,), (Flag("superseded", True), others))


def test_rev_guard_names_the_points_it_was_given() -> None:
    newer = Range(key="rev", gt=4.0)
    assert not_newer_than(4) == Predicate((), (newer,))
    assert not_newer_than(4, ("a", "b")) == Predicate((HasIds(("a", "b")),), (newer,))
