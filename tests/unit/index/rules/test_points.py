"""Payload building and the checks that are not already cases of the contract."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from rayapp.core.errors import InvalidInput, SchemaMismatch
from rayapp.core.vectors import IndexSchema, SparseVector
from rayapp.index.rules.points import (
    check_schema,
    checked_collection,
    checked_ids,
    checked_points,
    collection_name,
    epoch_s,
    payload_of,
    payload_update_of,
    point_of,
    vector_hash_of,
    was_embedded,
)
from rayapp.memory.item import (
    IndexState,
    MemoryItem,
    Quality,
    Source,
    SourceType,
    Stats,
    Status,
    point_id_of,
)
from rayapp.memory.tiers import Tier
from tests.support.index_points import DIMS, SCHEMA, index_point, vector

AT = datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)
ITEM = MemoryItem(
    memory_id="m",
    point_id=point_id_of("ann", "m"),
    user_id="ann",
    tier=Tier.DATAGOV_SCHEMA,
    text="סוד",
    content_hash="h",
    created_at=AT,
    stored_at=AT + timedelta(hours=1),
    updated_at=AT,
    tier_entered_at=AT,
    tags=("עיר", "b"),
    entities=("Haifa",),
    always_inject=True,
    lang="he",
    source=Source(
        type=SourceType.DATAGOV,
        conversation_id="c",
        tool_name="t",
        doc_id="d",
        datagov={
            "category": "k",
            "format": "csv",
            "organization": "o",
            "flags": {"geo": True, "old": False, "big": True},
        },
        book={"author": "Dana", "headings": ["One", "Two"], "pages": [3, 4], "has_code": False},
    ),
    subject_id="s",
    quality=Quality(importance=0.5, confidence=0.8),
    stats=Stats(uses=3, score=0.75),
    expires_at=AT + timedelta(days=1),
    index=IndexState(rev=7),
    superseded_by="n",
    valid_from=AT,
)
VECTOR_KEYS = {"analyser", "vector_hash"}


def test_payload_holds_what_the_data_model_lists() -> None:
    point = point_of(ITEM, [(vector(1), SparseVector([1], [1.0]))], SCHEMA)
    assert point.payload == {
        "user_id": "ann",
        "memory_id": "m",
        "tier": "datagov_schema",
        "status": "active",
        "lang": "he",
        "author": "Dana",
        "headings": ["One", "Two"],
        "first_page": 3,
        "last_page": 4,
        "has_code": False,
        "attached": None,
        "attached_to": None,
        "tags": ["עיר", "b"],
        "entities": ["Haifa"],
        "conversation_id": "c",
        "source_type": "datagov",
        "tool_name": "t",
        "doc_id": "d",
        "subject_id": "s",
        "perspective_owner_id": None,
        "topics": [],
        "category": "k",
        "format": "csv",
        "organization": "o",
        "flags": ["big", "geo"],
        "created_at": AT.timestamp(),
        "expires_at": AT.timestamp() + 86_400,
        "valid_from": AT.timestamp(),
        "valid_to": None,
        "superseded": True,
        "score": 0.75,
        "quality_score": 0.4,
        "uses": 3,
        "always_inject": True,
        "rev": 7,
        "analyser": "a1",
        "vector_hash": vector_hash_of(ITEM.content_hash, SCHEMA, ""),
    }
    assert (point.point_id, point.rev) == (ITEM.point_id, 7)
    assert json.loads(json.dumps(point.payload)) == point.payload
    assert type(point.payload["tier"]) is str


def test_text_never_enters_the_payload() -> None:
    assert "סוד" not in json.dumps(payload_of(ITEM), ensure_ascii=False)


def test_payload_update_leaves_what_belongs_to_the_vectors() -> None:
    assert set(payload_of(ITEM)) | VECTOR_KEYS == set(
        point_of(ITEM, [(vector(1), SparseVector([], []))], SCHEMA).payload
    )
    update = payload_update_of(replace(ITEM, status=Status.ARCHIVED, expires_at=None))
    assert not VECTOR_KEYS & set(update.payload)
    assert update.payload["status"] == "archived"
    assert update.payload["expires_at"] is None
    assert (update.point_id, update.rev) == (ITEM.point_id, 7)


def test_times_are_seconds_whatever_the_zone() -> None:
    local = AT.astimezone(timezone(timedelta(hours=2)))
    assert epoch_s(local) == epoch_s(AT) == pytest.approx(1767323045.6789)
    assert epoch_s(None) is None


def test_vector_hash_depends_on_the_content_and_on_what_shaped_the_vectors() -> None:
    base = vector_hash_of("content", SCHEMA, "")
    assert vector_hash_of("content", SCHEMA, "") == base
    others = [replace(SCHEMA, model="m2"), replace(SCHEMA, dims=9), replace(SCHEMA, analyser="x")]
    hashes = {
        vector_hash_of("other", SCHEMA, ""),
        vector_hash_of("content", SCHEMA, "על ספינות"),
        vector_hash_of("content", SCHEMA, "About ships."),
        *(vector_hash_of("content", other, "") for other in others),
    }
    assert len(hashes | {base}) == 7


def test_a_row_that_was_indexed_for_another_model_was_embedded() -> None:
    """A reindex brings its point over; the row goes on naming the model before."""
    was = {"model": "before", "dims": 3, "analyser": "a0"}
    old = IndexSchema(**was)
    state = IndexState(**was, vector_hash=vector_hash_of("h", old, ""))
    item = replace(ITEM, index=state)
    assert was_embedded(item)
    assert not was_embedded(replace(item, content_hash="other words"))
    assert not was_embedded(replace(item, context_prefix="on ships"))
    assert not was_embedded(replace(ITEM, index=IndexState()))


def test_without_a_prefix_the_hash_is_what_indexes_hold_already() -> None:
    basis = f"content\n{SCHEMA.model}\n{SCHEMA.dims}\n{SCHEMA.analyser}"
    kept = hashlib.sha256(basis.encode()).hexdigest()[:32]
    assert vector_hash_of("content", SCHEMA, "") == kept


def test_collection_names() -> None:
    schema = IndexSchema(model="intfloat/E5 base", dims=768, analyser="a")
    assert collection_name("memories", schema, None) == "memories_intfloat-e5-base_768_0"
    name = collection_name("memories", schema, AT)
    assert name == "memories_intfloat-e5-base_768_20260102030405678900"
    assert checked_collection(name) == name


def test_ids_are_canonical_and_unique() -> None:
    one = point_id_of("ann", "a")
    assert checked_ids([one.upper(), one]) == [one]
    with pytest.raises(InvalidInput):
        checked_points([replace(index_point("a"), point_id=one.upper())], SCHEMA)


def test_later_of_two_equal_revs_wins() -> None:
    first, second = index_point("m", rev=2, lang="en"), index_point("m", rev=2, lang="he")
    (kept,) = checked_points([first, second], SCHEMA)
    assert kept is second


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_float_types_are_accepted(dtype: type[np.floating[Any]]) -> None:
    point = index_point("m")
    assert checked_points([replace(point, dense=point.dense.astype(dtype))], SCHEMA)


def test_every_difference_of_a_schema_is_named() -> None:
    wanted = IndexSchema(model="n", dims=DIMS * 2, analyser="b")
    with pytest.raises(SchemaMismatch) as caught:
        check_schema("c", SCHEMA, wanted, ["no IDF"])
    assert len(caught.value.details["problems"]) == 4
    check_schema("c", SCHEMA, SCHEMA)
