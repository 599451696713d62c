"""The caps: known rows always grow, and what was kept out is never taken back."""

from collections import Counter
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from rayapp.graphs.records import Contribution, Counters, RoutingIncrement
from rayapp.graphs.rules.content import (
    GraphQuota,
    Refused,
    admitted_content,
    admitted_routing,
    content_changes,
)
from rayapp.memory.tiers import Tier
from rayapp.text.concept import Concept

AT = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("רכב", "מוסך", "docker", "port", "invoice", "חשבונית")
contributions = st.lists(st.sampled_from(WORDS), unique=True, max_size=6).map(
    lambda keys: Contribution(tuple(Concept(key, key) for key in keys), 0.5)
)
# Items change in any order; each step gives one item another contribution.
histories = st.lists(st.tuples(st.integers(0, 3), contributions), max_size=25)


class Graph:
    """Counts as a store keeps them: a row exists while something carries it."""

    def __init__(self, max_nodes: int, max_edges: int) -> None:
        self.max_nodes, self.max_edges = max_nodes, max_edges
        self.nodes: Counter[str] = Counter()
        self.edges: Counter[tuple[str, str]] = Counter()
        self.items: dict[int, tuple[Contribution, Refused]] = {}

    def change(self, item: int, after: Contribution) -> None:
        before, refused = self.items.get(item, (Contribution(), Refused()))
        admitted, outside = admitted_content(
            content_changes(before, after, str(item)),
            after,
            refused,
            GraphQuota(frozenset(self.nodes), self.max_nodes - len(self.nodes)),
            GraphQuota(frozenset(self.edges), self.max_edges - len(self.edges)),
        )
        for node in admitted.nodes:
            self.nodes[node.concept.key] += node.mentions
        for edge in admitted.edges:
            self.edges[edge.source, edge.target] += int(edge.weight)
        assert all(count >= 0 for count in (*self.nodes.values(), *self.edges.values()))
        self.nodes, self.edges = +self.nodes, +self.edges
        self.items[item] = (after, outside)


@given(histories, st.integers(1, 6), st.integers(1, 6))
def test_taking_everything_back_leaves_nothing(
    history: list[tuple[int, Contribution]], max_nodes: int, max_edges: int
) -> None:
    graph = Graph(max_nodes, max_edges)
    for item, after in history:
        graph.change(item, after)
        assert len(graph.nodes) <= max_nodes
        assert len(graph.edges) <= max_edges
        assert {end for edge in graph.edges for end in edge} <= set(graph.nodes)
    for item in list(graph.items):
        graph.change(item, Contribution())
        assert graph.items[item] == (Contribution(), Refused())
    assert not graph.nodes
    assert not graph.edges


@given(histories)
def test_below_the_caps_the_graph_counts_every_item(
    history: list[tuple[int, Contribution]],
) -> None:
    graph = Graph(1_000, 1_000)
    for item, after in history:
        graph.change(item, after)
    expected = Counter(c.key for after, _ in graph.items.values() for c in after.concepts)
    assert graph.nodes == expected


@given(st.lists(st.sampled_from(WORDS)), st.frozensets(st.sampled_from(WORDS)), st.integers(-1, 6))
def test_known_concepts_always_learn(keys: list[str], known: frozenset[str], free: int) -> None:
    changes = [
        RoutingIncrement(concept=Concept(key, key), tier=tier, counters=Counters(uses=1), at=AT)
        for key in keys
        for tier in (Tier.WORKING, Tier.BOOKS)
    ]
    admitted = admitted_routing(changes, GraphQuota(known, free))
    learned = {change.concept.key for change in admitted}
    assert known & set(keys) <= learned
    assert len(learned - known) == min(max(0, free), len(set(keys) - known))
    assert [change for change in changes if change.concept.key in learned] == list(admitted)
