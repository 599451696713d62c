"""Pictures of the graphs, ids of their nodes, and the two-sided search for a path."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.container import bootstrap
from rayapp.graphs.records import ContentEdge
from rayapp.graphs.rules.content import shortest_path
from rayapp.graphs.rules.question import CONTEXT_TYPES, named_concept
from rayapp.graphs.rules.views import (
    HEAVIEST_EDGE,
    HIGHEST_SCORE,
    LIGHTEST_EDGE,
    LOWEST_SCORE,
    MAX_EDGES,
    BidirectionalSearch,
    action_totals,
    best_tiers,
    graph_view,
)
from rayapp.memory.tiers import Tier
from tests.unit.graphs.rules.rows import AT, action, counted, edge, later, node, routing

TIERS = st.dictionaries(
    st.sampled_from(list(Tier)), st.builds(counted, *[st.integers(0, 40)] * 4), max_size=len(Tier)
)


# --- routing -------------------------------------------------------------------------------


@pytest.mark.parametrize("concept", ["docker", "ביטוח לאומי"])
def test_a_routing_node_tells_all_that_a_view_reads(concept: str) -> None:
    tiers = {Tier.PATTERNS: counted(9, 1), Tier.WORKING: counted(0, 2)}
    [shown] = graph_view(routing=[routing(concept, tiers, label="Label")]).nodes
    assert (shown.id, shown.concept, shown.type) == (f"routing_{concept}", "Label", "routing")
    assert (shown.usage, shown.success_rate) == (12, 9 / 12)
    assert shown.score == pytest.approx(0.596, abs=0.001)  # Wilson of 9 of 10: the best tier
    assert (shown.created_at, shown.last_used) == (AT, later(1))
    assert shown.best_tier is Tier.PATTERNS


def test_routing_scores_stay_in_the_range_of_a_picture() -> None:
    rows = [
        routing("good", {Tier.BOOKS: counted(900)}),
        routing("bad", {Tier.BOOKS: counted(0, 9)}),
    ]
    good, bad = graph_view(routing=rows).nodes
    assert (good.score, bad.score) == (HIGHEST_SCORE, LOWEST_SCORE)
    assert (good.best_tier, bad.best_tier) == (Tier.BOOKS, None)


def test_an_unjudged_concept_is_neutral() -> None:
    [shown] = graph_view(routing=[routing("new", {})]).nodes
    assert (shown.score, shown.success_rate, shown.usage) == (0.5, 0.5, 0)


def test_two_concepts_are_linked_by_a_tier_in_which_both_did_well() -> None:
    rows = [
        routing("docker", {Tier.PATTERNS: counted(20), Tier.WORKING: counted(0, 5)}),
        routing("דוקר", {Tier.PATTERNS: counted(5)}),
        routing("cake", {Tier.WORKING: counted(5)}),
    ]
    view = graph_view(routing=rows)
    [link] = view.edges
    assert {link.source, link.target} == {"routing_docker", "routing_דוקר"}
    assert link.weight == pytest.approx(0.566, abs=0.001)  # Wilson of 5 of 5, the weaker one
    assert [one.connections for one in view.nodes] == [1, 1, 0]


@settings(deadline=None)
@given(st.lists(TIERS, max_size=6))
def test_routing_pictures_are_always_in_range(tiers: list[dict[Tier, object]]) -> None:
    rows = [routing(f"c{at}", one) for at, one in enumerate(tiers)]  # type: ignore[arg-type]
    view = graph_view(routing=rows)
    assert all(LOWEST_SCORE <= one.score <= HIGHEST_SCORE for one in view.nodes)
    assert all(LIGHTEST_EDGE <= one.weight <= HEAVIEST_EDGE for one in view.edges)
    ends = [end for one in view.edges for end in (one.source, one.target)]
    assert {one.id: one.connections for one in view.nodes if one.connections} == {
        end: ends.count(end) for end in ends
    }
    assert all(len(best_tiers(row)) <= 3 for row in rows)


# --- content and actions -------------------------------------------------------------------


def test_a_content_node_takes_its_success_from_the_routing_graph() -> None:
    view = graph_view(
        known=[routing("רכב", {Tier.BOOKS: counted(4, 1)})],
        nodes=[node("רכב", label="הרכב", mentions=4, quality_sum=3.0), node("new")],
    )
    known, new = view.nodes
    assert (known.id, known.concept, known.type) == ("content_רכב", "הרכב", "content")
    assert (known.score, known.usage, known.success_rate) == (0.75, 4, 0.8)
    assert (known.created_at, known.last_used, known.best_tier) == (AT, later(2), Tier.BOOKS)
    assert (new.success_rate, new.best_tier) == (0.5, None)


def test_edges_that_leave_the_picture_are_left_out_and_heavy_ones_come_first() -> None:
    view = graph_view(
        nodes=[node("a"), node("b"), node("c")],
        edges=[edge("a", "b", 1), edge("b", "c", 5), edge("c", "elsewhere", 9)],
    )
    assert [(one.source, one.target, one.weight) for one in view.edges] == [
        ("content_b", "content_c", 5),
        ("content_a", "content_b", 1),
    ]
    assert [one.connections for one in view.nodes] == [1, 2, 1]


def test_a_picture_keeps_the_heaviest_edges_only() -> None:
    names = [f"n{at:03}" for at in range(80)]
    edges = [
        edge(one, other, weight=float(at))
        for at, (one, other) in enumerate((a, b) for a in names for b in names if a < b)
    ]
    view = graph_view(nodes=[node(name) for name in names], edges=edges)
    assert len(edges) > MAX_EDGES == len(view.edges)
    assert min(one.weight for one in view.edges) == len(edges) - MAX_EDGES


def test_an_action_is_one_node_over_all_its_tiers() -> None:
    rows = [
        action("coding_help", "search_memory", counted(3, 1), Tier.PATTERNS),
        action(
            "coding_help",
            "search_memory",
            counted(0, 1, partial=1),
            Tier.WORKING,
            first_used_at=later(-5),
            last_used_at=later(9),
        ),
        action("docker", "search_memory", counted(1)),
    ]
    both, other = graph_view(actions=rows).nodes
    assert (both.id, both.concept) == (
        "action_coding_help_search_memory",
        "search_memory@coding_help",
    )
    assert (both.type, both.usage, both.best_tier) == ("action", 6, Tier.PATTERNS)
    assert both.success_rate == pytest.approx(3.5 / 6)  # a partial success counts half
    assert (both.created_at, both.last_used) == (later(-5), later(9))
    assert other.id == "action_docker_search_memory"


def test_only_the_most_used_actions_are_shown() -> None:
    rows = [action("general", f"tool-{uses}", counted(uses)) for uses in range(1, 40)]
    shown = graph_view(actions=rows).nodes
    assert [one.usage for one in shown] == list(range(39, 14, -1))


@settings(deadline=None)
@given(st.permutations([counted(2, 1), counted(1, unknown=4), counted(0, 3, 2)]))
def test_totals_of_an_action_do_not_depend_on_the_order_of_its_tiers(parts: list[object]) -> None:
    tiers = (Tier.WORKING, Tier.HISTORY, Tier.PATTERNS)
    rows = [
        action("general", "x", one, tier)  # type: ignore[arg-type]
        for one, tier in zip(parts, tiers, strict=True)
    ]
    [total] = action_totals(rows)
    assert total.counters == counted(3, 4, 2, 4)


# --- names ---------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.sampled_from(CONTEXT_TYPES), st.text(min_size=1, max_size=40).filter(str.strip))
def test_an_action_id_is_read_back_whatever_its_action_is_called(context: str, name: str) -> None:
    name = name.strip()
    [shown] = graph_view(actions=[action(context, name, counted(1))]).nodes
    assert named_concept(shown.id).action == (context, name)


@pytest.mark.parametrize("prefix", ["", "routing_", "content_"])
@pytest.mark.parametrize("key", ["docker", "משרד בריאות", "c++", "content_strategy"])
def test_an_id_stands_for_its_key_with_and_without_prefix(prefix: str, key: str) -> None:
    assert key in named_concept(prefix + key).keys


@pytest.mark.parametrize(
    ("written", "key"), [("Dockers", "docker"), ("הרכבים", "רכב"), ("  kubernetes ", "kubernetes")]
)
def test_a_label_stands_for_its_lemma_form(written: str, key: str) -> None:
    assert key in named_concept(written).keys


def test_a_translation_means_the_same_concept_when_the_dictionary_knows_it() -> None:
    expansions = bootstrap.load_texts().expansions
    hebrew, english = (set(named_concept(one, expansions).keys) for one in ("מכוניות", "cars"))
    assert hebrew & english


@pytest.mark.parametrize("name", ["action_plan", "action_docker", "action_docker_", "docker"])
def test_what_names_no_action_is_a_concept(name: str) -> None:
    assert named_concept(name).action is None


@settings(deadline=None)
@given(st.text(max_size=500))
def test_any_name_is_read_without_an_error_and_within_bounds(name: str) -> None:
    keys = named_concept(name).keys
    assert len(keys) <= 8
    assert all(keys)


# --- paths ---------------------------------------------------------------------------------

NAMES = st.sampled_from("abcdefghij")
GRAPHS = st.lists(st.tuples(NAMES, NAMES).filter(lambda pair: pair[0] != pair[1]), max_size=25)


def walked(
    pairs: list[tuple[str, str]], source: str, target: str, reads: int
) -> BidirectionalSearch:
    """A search with a store that holds `pairs`."""
    stored = [edge(one, other) for one, other in {tuple(sorted(pair)) for pair in pairs}]
    reach = BidirectionalSearch(source, target)
    for _ in range(reads):
        if reach.met or not reach.frontier:
            break
        near = set(reach.frontier)
        reach.step([one for one in stored if {one.source, one.target} & near], limit=2_000)
    return reach


@settings(deadline=None)
@given(GRAPHS, NAMES, NAMES)
def test_three_reads_find_every_path_of_six_edges_and_it_is_the_shortest(
    pairs: list[tuple[str, str]], source: str, target: str
) -> None:
    whole: list[ContentEdge] = [edge(one, other) for one, other in pairs]
    expected = shortest_path(whole, source, target)
    reach = walked(pairs, source, target, reads=3)
    found = shortest_path(reach.corridor(), source, target)
    assert found == expected
    assert reach.met == bool(expected)


def test_both_ends_are_searched_at_once() -> None:
    chain = [*pairwise("abcdefg")]
    assert not walked(chain, "a", "g", reads=2).met
    reach = walked(chain, "a", "g", reads=3)
    assert reach.met
    assert shortest_path(reach.corridor(), "a", "g") == list("abcdefg")


def test_a_frontier_is_bounded() -> None:
    reach = BidirectionalSearch("hub", "far")
    reach.step([edge("hub", f"n{at}") for at in range(50)], limit=7)
    assert len(reach.frontier) == 7


def test_a_path_through_a_wide_graph_is_not_lost() -> None:
    way = [*pairwise(["source", "a", "b", "c", "d", "e", "target"])]
    wide = [(hub, f"{hub}{at}") for hub in ("source", "a", "b", "d", "target") for at in range(700)]
    everything = [edge(one, other) for one, other in (*way, *wide)]
    assert shortest_path(everything, "source", "target") == []  # too many nodes to look at
    corridor = walked([*way, *wide], "source", "target", reads=3).corridor()
    assert {(one.source, one.target) for one in corridor} == {tuple(sorted(one)) for one in way}
    assert len(shortest_path(corridor, "source", "target")) == 7
