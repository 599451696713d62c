"""Increments as bulk operations: no read is needed, and no text of a user names a field."""

from datetime import timedelta
from typing import Any

import pytest
from pymongo import DeleteOne, UpdateOne

from rayapp.core.errors import InvalidInput
from rayapp.graphs import records
from rayapp.graphs.rules.content import Refused
from rayapp.memory.item import Outcome
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.graph_convert import (
    contribution_document,
    contribution_of_document,
    routing_row,
)
from rayapp.storage.mongo.graph_writes import content_writes, outcome_writes
from rayapp.storage.mongo.indexes import ACTIONS, BOOKS, EDGES, NODES, ROUTING, SOLUTIONS
from rayapp.text.concept import Concept
from tests.support.builders import STORED_AT

# Text that would be an operator or a path if it ever named a field.
NASTY = ("$inc", "a.b", "tiers.working.uses", 'רכב "חדש".$', "\u0000x")
INCREMENTS = {"$inc", "$min", "$max", "$setOnInsert", "$push", "$pull"}


def everything(text: str) -> dict[str, list[UpdateOne | DeleteOne]]:
    """All operations of one outcome and one item in which every word is `text`."""
    concept, counters = Concept(text, text), records.Counters(uses=1, worked=1)
    one = records.Example(
        memory_id=text, point_id=text, tier=Tier.WORKING, outcome=Outcome.WORKED, at=STORED_AT
    )
    counted: Any = {"counters": counters, "at": STORED_AT, "examples": (one,)}
    changes = records.OutcomeChanges(
        routing=(records.RoutingIncrement(concept=concept, tier=Tier.MEMORY_BANK, **counted),),
        actions=(
            records.ActionIncrement(context_type=text, action=text, tier=Tier.WORKING, **counted),
        ),
        solutions=(
            records.SolutionIncrement(
                problem_hash=text, memory_id=text, point_id=text, at=STORED_AT
            ),
        ),
        documents=(records.DocumentIncrement(doc_id=text, counters=counters, at=STORED_AT),),
    )
    content = records.ContentChanges(
        nodes=tuple(
            records.NodeIncrement(concept=concept, mentions=n, quality=0.5, memory_id=text)
            for n in (1, 0, -1)
        ),
        edges=tuple(records.EdgeIncrement(source=text, target=text, weight=w) for w in (1.0, -1.0)),
    )
    return {**outcome_writes("dana", changes), **content_writes("dana", content, STORED_AT)}


def keys_of(value: Any) -> set[str]:
    """Every field name and operator in `value`."""
    if isinstance(value, dict):
        return {key for k, v in value.items() for key in ({k} | keys_of(v))}
    if isinstance(value, list):
        return {key for v in value for key in keys_of(v)}
    return set()


@pytest.mark.parametrize("text", NASTY)
def test_no_text_of_a_user_names_a_field(text: str) -> None:
    plain = everything("plain")
    nasty = everything(text)
    assert set(nasty) == {ROUTING, ACTIONS, SOLUTIONS, BOOKS, NODES, EDGES}
    for name, operations in nasty.items():
        for operation, same in zip(operations, plain[name], strict=True):
            assert keys_of(operation._filter) == keys_of(same._filter)
            if isinstance(operation, UpdateOne):
                assert isinstance(same, UpdateOne)
                assert keys_of(operation._doc) == keys_of(same._doc)


def test_every_operation_is_an_increment_of_one_user() -> None:
    for operations in everything("רכב").values():
        for operation in operations:
            assert operation._filter["user_id"] == "dana"
            if isinstance(operation, UpdateOne):
                assert isinstance(operation._doc, dict)
                assert set(operation._doc) <= INCREMENTS


def test_only_additions_create_rows() -> None:
    writes = everything("docker")
    upserts = {
        name: [op._upsert for op in operations if isinstance(op, UpdateOne)]
        for name, operations in writes.items()
    }
    assert upserts[NODES] == [True, None, None]
    assert upserts[EDGES] == [True, None]
    removals = [op for op in writes[NODES] + writes[EDGES] if isinstance(op, DeleteOne)]
    assert [set(op._filter) & {"mentions", "weight"} for op in removals] == [
        {"mentions"},
        {"weight"},
    ]


def test_nothing_to_add_writes_nothing() -> None:
    assert outcome_writes("dana", records.OutcomeChanges()) == {}
    assert content_writes("dana", records.ContentChanges(), STORED_AT) == {}


def test_a_time_without_a_zone_is_refused() -> None:
    naive = STORED_AT.replace(tzinfo=None)
    change = records.DocumentIncrement(doc_id="d", counters=records.Counters(uses=1), at=naive)
    with pytest.raises(InvalidInput):
        outcome_writes("dana", records.OutcomeChanges(documents=(change,)))
    with pytest.raises(InvalidInput):
        content_writes("dana", records.ContentChanges(), naive)


def test_contributions_come_back_as_they_were() -> None:
    contribution = records.Contribution(
        (Concept("רכב", "רכבים", "phrase"), Concept("docker", "Docker", "entity")), 0.42
    )
    refused = Refused(frozenset({"docker"}), frozenset({("docker", "רכב")}))
    doc = contribution_document(contribution, refused)
    assert contribution_of_document(doc) == (contribution, refused)
    assert contribution_document(records.Contribution(), Refused()) is None
    assert contribution_of_document(None) == (records.Contribution(), Refused())


def test_counters_that_were_never_counted_are_zero() -> None:
    later = STORED_AT + timedelta(days=1)
    row = routing_row(
        {
            "concept": "c",
            "label": "C",
            "tiers": {"books": {"uses": 2, "failed": 2}},
            "first_seen_at": STORED_AT,
            "last_seen_at": later,
        }
    )
    assert row.tiers == {Tier.BOOKS: records.Counters(uses=2, failed=2)}
    assert (row.aliases, row.examples) == ((), ())
