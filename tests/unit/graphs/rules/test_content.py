"""The content graph: what an item adds, what a change takes back, and paths."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.graphs.records import ContentChanges, Contribution
from rayapp.graphs.rules.content import (
    MAX_LINKED,
    MAX_PATH_STEPS,
    content_changes,
    contribution_of,
    edges_between,
    shortest_path,
)
from rayapp.memory.item import MemoryItem, Quality, Status
from rayapp.memory.tiers import Tier
from rayapp.text.concept import Concept
from rayapp.text.expansions import Expansions
from tests.unit.graphs.rules.rows import AT, edge


def item(**changes: Any) -> MemoryItem:
    return MemoryItem(
        **{
            "memory_id": "m1",
            "point_id": "p1",
            "user_id": "u1",
            "tier": Tier.MEMORY_BANK,
            "text": "docker build fails",
            "content_hash": "h",
            "created_at": AT,
            "stored_at": AT,
            "updated_at": AT,
            "tier_entered_at": AT,
            "quality": Quality(importance=0.8, confidence=0.5),
            **changes,
        }
    )


def of(*keys: str, quality: float = 0.5) -> Contribution:
    return Contribution(tuple(Concept(key, key) for key in keys), quality)


class Graph:
    """The sums that a store keeps."""

    def __init__(self) -> None:
        self.mentions: Counter[str] = Counter()
        self.members: Counter[tuple[str, str]] = Counter()
        self.quality: Counter[str] = Counter()
        self.weights: Counter[tuple[str, str]] = Counter()

    def apply(self, changes: ContentChanges) -> "Graph":
        for one in changes.nodes:
            self.mentions[one.concept.key] += one.mentions
            self.members[one.concept.key, one.memory_id] += one.mentions
            self.quality[one.concept.key] += one.quality  # type: ignore[assignment]
        for link in changes.edges:
            self.weights[link.source, link.target] += int(link.weight)
        return self

    def state(self) -> tuple[Any, ...]:
        qualities = {key: round(value, 6) for key, value in self.quality.items()}
        return tuple(
            {key: value for key, value in table.items() if value}
            for table in (self.mentions, self.members, qualities, self.weights)
        )


@pytest.mark.parametrize("tier", [Tier.MEMORY_BANK, Tier.BOOKS])
@pytest.mark.parametrize(
    ("text", "keys"),
    [("docker build fails", ("docker", "build", "fail")), ("המחשבים של הלקוחות", ("מחשב", "לקוח"))],
)
def test_active_items_of_both_tiers_contribute(
    tier: Tier, text: str, keys: tuple[str, ...]
) -> None:
    found = contribution_of(item(tier=tier, text=text))
    assert tuple(concept.key for concept in found.concepts) == keys
    assert found.quality == 0.4


def test_tags_entities_and_the_dictionary_take_part() -> None:
    dictionary = Expansions(
        {"a.yaml": {"domain": "a", "entries": [{"he": ["מכונית"], "en": ["car"]}]}}
    )
    found = contribution_of(item(text="my car", tags=("garage",), entities=("Dana",)), dictionary)
    assert [(one.key, one.type) for one in found.concepts] == [
        ("garage", "tag"),
        ("dana", "entity"),
        ("מכונית", "concept"),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"status": Status.ARCHIVED},
        {"status": Status.DELETED},
        {"tier": Tier.PATTERNS},
        {"tier": Tier.WORKING},
        {"tier": Tier.HISTORY},
        {"tier": Tier.DATAGOV_SCHEMA},
        {"text": "it is what it is"},
    ],
)
def test_others_contribute_nothing(changes: dict[str, Any]) -> None:
    assert contribution_of(item(**changes)) == Contribution()


def test_first_contribution_adds_nodes_and_edges() -> None:
    changes = content_changes(Contribution(), of("docker", "build", quality=0.4), "m1")
    assert [(n.concept.key, n.mentions, n.quality, n.memory_id) for n in changes.nodes] == [
        ("docker", 1, 0.4, "m1"),
        ("build", 1, 0.4, "m1"),
    ]
    assert [(e.source, e.target, e.weight) for e in changes.edges] == [("build", "docker", 1.0)]


def test_deletion_takes_back_what_was_added() -> None:
    changes = content_changes(of("docker", "build", quality=0.4), Contribution(), "m1")
    assert [(n.concept.key, n.mentions, n.quality) for n in changes.nodes] == [
        ("docker", -1, -0.4),
        ("build", -1, -0.4),
    ]
    assert [(e.source, e.target, e.weight) for e in changes.edges] == [("build", "docker", -1.0)]


def test_an_edit_touches_only_what_changed() -> None:
    changes = content_changes(of("docker", "build"), of("docker", "רכב"), "m1")
    assert [(n.concept.key, n.mentions) for n in changes.nodes] == [("build", -1), ("רכב", 1)]
    assert {(e.source, e.target): e.weight for e in changes.edges} == {
        ("build", "docker"): -1.0,
        ("docker", "רכב"): 1.0,
    }


def test_changed_quality_is_a_quality_only_increment() -> None:
    changes = content_changes(of("docker", quality=0.25), of("docker", quality=0.75), "m1")
    assert [(n.mentions, n.quality) for n in changes.nodes] == [(0, 0.5)]
    assert changes.edges == ()


def test_no_change_is_no_increment() -> None:
    assert content_changes(of("docker", "רכב"), of("docker", "רכב"), "m1") == ContentChanges()


def test_only_the_first_concepts_are_linked() -> None:
    keys = [f"c{at:02}" for at in range(MAX_LINKED + 4)]
    found = edges_between(of(*keys).concepts)
    assert len(found) == MAX_LINKED * (MAX_LINKED - 1) // 2
    assert all(source < target < keys[MAX_LINKED] for source, target in found)


_KEYS = st.lists(
    st.sampled_from(["docker", "build", "רכב", "בית", *"abcdefghij"]), unique=True, max_size=12
)
_CONTRIBUTIONS = st.builds(
    lambda keys, quality: of(*keys, quality=quality / 10_000) if keys else Contribution(),
    _KEYS,
    st.integers(min_value=0, max_value=10_000),
)


@given(_CONTRIBUTIONS, _CONTRIBUTIONS, _CONTRIBUTIONS)
def test_two_steps_are_one(a: Contribution, b: Contribution, c: Contribution) -> None:
    twice = Graph().apply(content_changes(a, b, "m1")).apply(content_changes(b, c, "m1"))
    assert twice.state() == Graph().apply(content_changes(a, c, "m1")).state()


@given(_CONTRIBUTIONS, _CONTRIBUTIONS)
def test_there_and_back_leaves_nothing(a: Contribution, b: Contribution) -> None:
    graph = Graph().apply(content_changes(a, b, "m1")).apply(content_changes(b, a, "m1"))
    assert graph.state() == ({}, {}, {}, {})


@given(_CONTRIBUTIONS)
def test_a_contribution_says_what_it_adds(a: Contribution) -> None:
    mentions, members, _, weights = Graph().apply(content_changes(Contribution(), a, "m1")).state()
    assert mentions == {concept.key: 1 for concept in a.concepts}
    assert members == {(concept.key, "m1"): 1 for concept in a.concepts}
    assert weights == dict.fromkeys(edges_between(a.concepts), 1)


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([], []),
        ([edge("a", "x")], []),
        ([edge("a", "z")], ["a", "z"]),
        ([edge("a", "b"), edge("b", "z")], ["a", "b", "z"]),
        ([edge("a", "b"), edge("b", "z"), edge("a", "z")], ["a", "z"]),
        ([edge("a", "b"), edge("b", "z"), edge("a", "c", 5), edge("c", "z")], ["a", "c", "z"]),
        ([edge("a", "c"), edge("c", "z"), edge("a", "b"), edge("b", "z")], ["a", "b", "z"]),
        ([edge("a", "רכב"), edge("רכב", "z")], ["a", "רכב", "z"]),
    ],
)
def test_shortest_path(edges: list[Any], expected: list[str]) -> None:
    assert shortest_path(edges, "a", "z") == expected
    assert shortest_path(edges[::-1], "a", "z") == expected


def test_a_node_reaches_itself() -> None:
    assert shortest_path([], "a", "a") == ["a"]


def test_a_path_has_a_longest_length() -> None:
    nodes = [f"n{at:02}" for at in range(MAX_PATH_STEPS + 2)]
    chain = [edge(one, other) for one, other in pairwise(nodes)]
    assert shortest_path(chain, nodes[0], nodes[MAX_PATH_STEPS]) == nodes[: MAX_PATH_STEPS + 1]
    assert shortest_path(chain, nodes[0], nodes[MAX_PATH_STEPS + 1]) == []
