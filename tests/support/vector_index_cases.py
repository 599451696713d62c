"""Cases, builders and strategies of the vector index contract."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
from hypothesis import strategies as st

from rayapp.core.errors import BadVector, InvalidInput
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.vectors import SparseVector
from rayapp.index.ports import VectorIndex
from rayapp.index.records import IndexPoint, SubQuery
from rayapp.memory.item import Status, point_id_of
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import Tier
from tests.support.index_points import (
    COMMON_TERM,
    DIMS,
    NOW,
    dense_query,
    index_point,
    sparse_query,
    vector,
)

MakeIndex = Callable[[], Awaitable[VectorIndex]]
ANN = ReadScope("ann")
EVERYTHING = ItemFilter(statuses=None, include_superseded=True, include_attached=True)
DAY_S = 86_400.0
NOW_S = NOW.timestamp()
ABSENT = point_id_of("nobody", "nothing")

# payload of the point that matches, payload of one that does not, the filter between them.
FILTER_CANARIES: dict[str, tuple[dict[str, Any], dict[str, Any], ItemFilter]] = {
    "tiers": ({"tier": "books"}, {"tier": "history"}, ItemFilter(tiers=(Tier.BOOKS,))),
    "statuses": (
        {"status": "archived"},
        {"status": "active"},
        ItemFilter(statuses=(Status.ARCHIVED,)),
    ),
    "default status": ({"status": "active"}, {"status": "archived"}, ItemFilter()),
    "tags_any": ({"tags": ["א", "b"]}, {"tags": ["c"]}, ItemFilter(tags_any=("א", "z"))),
    "tags_all": ({"tags": ["a", "b"]}, {"tags": ["a"]}, ItemFilter(tags_all=("a", "b"))),
    "entities_any": (
        {"entities": ["Haifa"]},
        {"entities": ["Eilat"]},
        ItemFilter(entities_any=("Haifa",)),
    ),
    "source_types": ({"source_type": "tool"}, {}, ItemFilter(source_types=("tool",))),
    "conversation_ids": (
        {"conversation_id": "c1"},
        {"conversation_id": "c2"},
        ItemFilter(conversation_ids=("c1", "c9")),
    ),
    "tool_names": ({"tool_name": "t"}, {}, ItemFilter(tool_names=("t",))),
    "doc_ids": ({"doc_id": "d1"}, {"doc_id": "d2"}, ItemFilter(doc_ids=("d1",))),
    "subject_ids": ({"subject_id": "s"}, {"subject_id": "x"}, ItemFilter(subject_ids=("s",))),
    "perspective_owner_ids": (
        {"perspective_owner_id": "s"},
        {"perspective_owner_id": "x"},
        ItemFilter(perspective_owner_ids=("s",)),
    ),
    "topics": ({"topics": ["a", "b"]}, {"topics": ["c"]}, ItemFilter(topics=("b",))),
    "categories": ({"category": "k"}, {"category": "x"}, ItemFilter(categories=("k",))),
    "formats": ({"format": "csv"}, {"format": "pdf"}, ItemFilter(formats=("csv",))),
    "organizations": ({"organization": "o"}, {}, ItemFilter(organizations=("o",))),
    "flags": ({"flags": ["geo"]}, {"flags": []}, ItemFilter(flags=("geo",))),
    "langs": ({"lang": "he"}, {"lang": "en"}, ItemFilter(langs=("he",))),
    "authors": ({"author": "a"}, {"author": "b"}, ItemFilter(authors=("a",))),
    "sections": (
        {"headings": ["פרק א", "Two"]},
        {"headings": ["Two and more"]},
        ItemFilter(sections=("Two",)),
    ),
    "page_from": ({"last_page": 5}, {"last_page": 4}, ItemFilter(page_from=5)),
    "page_to": ({"first_page": 5}, {"first_page": 6}, ItemFilter(page_to=5)),
    "pages without any": (
        {"first_page": 5, "last_page": 6},
        {},
        ItemFilter(page_from=6, page_to=9),
    ),
    "has_code": ({"has_code": True}, {"has_code": False}, ItemFilter(has_code=True)),
    "no code": ({"has_code": False}, {}, ItemFilter(has_code=False)),
    "attached to nothing": (
        {"tier": "books"},
        {"tier": "books", "attached": True, "attached_to": "c1"},
        ItemFilter(),
    ),
    "attached_to": (
        {"tier": "books", "attached": True, "attached_to": "c1"},
        {"tier": "books", "attached": True, "attached_to": "c2"},
        ItemFilter(attached_to="c1"),
    ),
    "created_from": (
        {"created_at": NOW_S},
        {"created_at": NOW_S - 1},
        ItemFilter(created_from=NOW),
    ),
    "created_to": ({"created_at": NOW_S - 1}, {"created_at": NOW_S}, ItemFilter(created_to=NOW)),
    "now": ({"expires_at": NOW_S + 1}, {"expires_at": NOW_S}, ItemFilter(now=NOW)),
    "now without expiry": ({"expires_at": None}, {"expires_at": NOW_S - 1}, ItemFilter(now=NOW)),
    "now with a score that survives": (
        {"expires_at": NOW_S - 1, "score": 0.9},
        {"expires_at": NOW_S - 1, "score": 0.89},
        ItemFilter(now=NOW),
    ),
    "valid_at start": ({"valid_from": NOW_S}, {"valid_from": NOW_S + 1}, ItemFilter(valid_at=NOW)),
    "valid_at end": ({"valid_to": NOW_S + 1}, {"valid_to": NOW_S}, ItemFilter(valid_at=NOW)),
    "valid_at open": ({}, {"valid_to": NOW_S - DAY_S}, ItemFilter(valid_at=NOW)),
    "always_inject": (
        {"always_inject": True},
        {"always_inject": False},
        ItemFilter(always_inject=True),
    ),
    "not always_inject": (
        {"always_inject": False},
        {"always_inject": True},
        ItemFilter(always_inject=False),
    ),
    "superseded": ({"superseded": False}, {"superseded": True}, ItemFilter()),
}
EMPTY_LISTS = (
    "tiers",
    "statuses",
    "tags_any",
    "entities_any",
    "source_types",
    "conversation_ids",
    "tool_names",
    "doc_ids",
    *("subject_ids", "perspective_owner_ids", "topics"),
    "categories",
    "formats",
    "organizations",
    "flags",
    "langs",
    "authors",
    "sections",
)


def _bad_points() -> dict[str, tuple[IndexPoint, type[Exception]]]:
    good = index_point("bad")
    nan, huge = vector(1).copy(), vector(1).copy()
    nan[3], huge[0] = np.nan, np.inf
    sparse = replace(good, sparse=SparseVector([4, 4], [1.0, 1.0]))
    return {
        "too short": (replace(good, dense=vector(1, DIMS - 1)), BadVector),
        "too long": (replace(good, dense=vector(1, DIMS + 1)), BadVector),
        "nan": (replace(good, dense=nan), BadVector),
        "infinite": (replace(good, dense=huge), BadVector),
        "overflow": (replace(good, dense=np.full(DIMS, 3e38, np.float32)), BadVector),
        "zero": (replace(good, dense=np.zeros(DIMS, np.float32)), BadVector),
        "id": (replace(good, point_id="memory-1"), InvalidInput),
        "integer id": (replace(good, point_id="17"), InvalidInput),
        "repeated index": (sparse, InvalidInput),
        "lengths": (replace(good, sparse=SparseVector([4], [1.0, 1.0])), InvalidInput),
        "negative index": (replace(good, sparse=SparseVector([-1], [1.0])), InvalidInput),
        "big index": (replace(good, sparse=SparseVector([1 << 32], [1.0])), InvalidInput),
        "nan weight": (replace(good, sparse=SparseVector([4], [float("nan")])), InvalidInput),
        "no owner": (replace(good, payload={"tier": "history"}), InvalidInput),
        "empty owner": (replace(good, payload={"user_id": ""}), InvalidInput),
        "rev": (replace(good, rev=-1), InvalidInput),
    }


BAD_POINTS = _bad_points()


async def found(
    index: VectorIndex,
    where: ItemFilter = EVERYTHING,
    scope: ReadScope = ANN,
    sub_queries: Sequence[SubQuery] | None = None,
) -> list[set[str]]:
    """Ids per sub-query; by default a dense and a lexical sub-query that every point matches."""
    answer = await index.query(scope, where, sub_queries or (dense_query(), sparse_query()))
    return [{hit.point_id for hit in hits} for hits in answer]


def crowd() -> list[IndexPoint]:
    """Points of three users, two of one name, and the system with every payload field in play."""
    rng = np.random.default_rng(5)

    def choose(values: Sequence[Any]) -> Any:
        return values[int(rng.integers(len(values)))]

    points = []
    for i in range(60):
        payload = {
            "tier": choose([tier.value for tier in Tier]),
            "status": choose(["active", "active", "archived"]),
            "lang": choose(["he", "en"]),
            "tags": choose([[], ["a"], ["a", "b"]]),
            "doc_id": choose([None, "d1", "d2"]),
            "superseded": choose([False, False, True]),
            "expires_at": choose([None, NOW_S - DAY_S, NOW_S + DAY_S]),
            "score": choose([0.5, 0.9]),
            "valid_from": choose([None, NOW_S - DAY_S, NOW_S + DAY_S]),
            "created_at": NOW_S - DAY_S * int(rng.integers(5)),
        }
        owner = choose(["ann", "bob", "acme/ann", SYSTEM_USER])
        points.append(index_point(f"m{i % 20}-{i // 20}", owner, seed=i, **payload))
    # Two rolls may give one user the same memory id; the index holds it once.
    return list({p.point_id: p for p in points}.values())


def _some(values: Sequence[Any]) -> st.SearchStrategy[tuple[Any, ...] | None]:
    lists = st.lists(st.sampled_from(values), max_size=3, unique=True).map(tuple)
    return st.none() | lists


@st.composite
def item_filters(draw: st.DrawFn) -> ItemFilter:
    times = st.none() | st.sampled_from([NOW + timedelta(days=d) for d in (-3, -1, 0, 2)])
    return ItemFilter(
        tiers=draw(_some(list(Tier))),
        statuses=draw(_some([Status.ACTIVE, Status.ARCHIVED])),
        tags_any=draw(_some(["a", "b", "c"])),
        tags_all=draw(_some(["a", "b"])),
        doc_ids=draw(_some(["d1", "d2"])),
        langs=draw(_some(["he", "en"])),
        created_from=draw(times),
        created_to=draw(times),
        valid_at=draw(times),
        now=draw(times),
        include_superseded=draw(st.booleans()),
    )


@st.composite
def sub_query_of_any(draw: st.DrawFn) -> SubQuery:
    tiers = draw(_some(list(Tier)))
    if draw(st.booleans()):
        return dense_query(draw(st.integers(0, 9)), limit=100, tiers=tiers)
    return sparse_query(COMMON_TERM, 100 + draw(st.integers(0, 49)), limit=100, tiers=tiers)
