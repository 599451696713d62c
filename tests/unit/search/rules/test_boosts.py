"""Boosts of the graphs: what they look at, and the one cap over all of them."""

import math
from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.errors import ConfigError
from rayapp.graphs.records import (
    ActionRow,
    ContentNode,
    Counters,
    DocumentEffect,
    GraphPriors,
    KnownSolution,
    RoutingRow,
)
from rayapp.memory.item import MemoryItem, Quality, Source, Stats
from rayapp.memory.tiers import CORE_TIERS, Tier
from rayapp.search.rules.candidates import Candidate, Candidates, to_candidates
from rayapp.search.rules.fusion import DenseRetriever
from rayapp.search.rules.ranking import (
    MAX_SOLUTIONS,
    NO_BOOSTS,
    Boosts,
    graph_boosts,
    nearer,
    rank,
    solution_points,
    tier_depths,
)
from rayapp.search.rules.recipes import Recipe, parse_recipe
from tests.support.builders import an_item
from tests.unit.graphs.rules import rows

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
RECIPE = Recipe(name="test")


def a_node(label: str, *memory_ids: str, quality: float = 1.0, mentions: int = 0) -> ContentNode:
    mentions = mentions or len(memory_ids)
    total = quality * mentions
    return rows.node(label, mentions=mentions, quality_sum=total, memory_ids=memory_ids)


def an_action(
    tier: Tier, action: str = "search_memory", *, context: str = "docker", **counts: int
) -> ActionRow:
    return rows.action(context, action, rows.counted(**counts), tier)


def a_solution(item: MemoryItem, count: int = 1) -> KnownSolution:
    return rows.solution(item, "p", count)


def a_book(doc_id: str, **counts: int) -> DocumentEffect:
    return DocumentEffect(doc_id=doc_id, counters=Counters(uses=sum(counts.values()), **counts))


def boosts(item: MemoryItem, relevance: float = 0.5, **priors: object) -> Boosts:
    return graph_boosts(GraphPriors(**priors), RECIPE).of(item, relevance)  # type: ignore[arg-type]


def test_entities_boost_memory_bank_by_their_quality_up_to_the_cap() -> None:
    bank = an_item(tier=Tier.MEMORY_BANK, memory_id="m")
    assert boosts(bank, nodes=(a_node("haifa", "m", quality=0.5),)).entity == pytest.approx(1.1)
    two = (a_node("haifa", "m"), a_node("נמל", "m"))
    assert boosts(bank, nodes=two).entity == pytest.approx(1.4)
    many = tuple(a_node(f"n{n}", "m") for n in range(9))
    assert boosts(bank, nodes=many).entity == 1.5
    assert boosts(bank, nodes=(a_node("haifa", "other"),)).entity == 1.0
    assert boosts(replace(bank, tier=Tier.HISTORY), nodes=two).entity == 1.0


@pytest.mark.parametrize(
    ("label", "changes"),
    [
        ("Haifa", {"tags": ("haifa",)}),
        ("haifa", {"entities": ("Haifa",)}),
        ("haifa port", {"text": "The port of Haifa is busy."}),
        ("נמל חיפה", {"text": "חיפה היא עיר עם נמל"}),
    ],
)
def test_an_item_speaks_for_itself_when_the_node_lists_fewer_than_it_counts(
    label: str, changes: dict[str, object]
) -> None:
    item = an_item(tier=Tier.MEMORY_BANK, memory_id="m", **changes)
    cut, whole = a_node(label, "x", mentions=9), a_node(label, "x")
    assert boosts(item, nodes=(cut,)).entity > 1.0
    assert boosts(item, nodes=(whole,)).entity == 1.0
    plain = an_item(tier=Tier.MEMORY_BANK, text="nothing of it")
    assert boosts(plain, nodes=(cut,)).entity == 1.0


def test_a_book_that_helps_is_boosted_and_none_is_pushed_down() -> None:
    page = an_item(tier=Tier.BOOKS, source=Source(book={"book_id": "d"}), dedup_scope="d")
    assert boosts(page, documents=(a_book("d", worked=3),)).document == pytest.approx(1.15)
    half = a_book("d", worked=3, failed=1)
    assert boosts(page, documents=(half,)).document == pytest.approx(1.075)
    assert boosts(page, documents=(a_book("d", failed=9),)).document == 1.0
    assert boosts(page, documents=(a_book("d", worked=2),)).document == 1.0
    assert boosts(page, documents=(a_book("e", worked=3),)).document == 1.0
    note = an_item(tier=Tier.HISTORY, source=Source(doc_id="d"))
    assert boosts(note, documents=(a_book("d", worked=3),)).document == 1.0


def test_an_action_speaks_for_its_tier_from_three_uses() -> None:
    item = an_item(tier=Tier.HISTORY)
    assert boosts(item, actions=(an_action(Tier.HISTORY, worked=3),)).action == pytest.approx(1.3)
    assert boosts(item, actions=(an_action(Tier.HISTORY, failed=3),)).action == pytest.approx(0.7)
    even = an_action(Tier.HISTORY, partial=3)
    assert boosts(item, actions=(even,)).action == pytest.approx(1.0)
    assert boosts(item, actions=(an_action(Tier.HISTORY, worked=2),)).action == 1.0
    assert boosts(item, actions=(an_action(Tier.WORKING, worked=3),)).action == 1.0
    other = an_action(Tier.HISTORY, "create_memory", worked=3)
    assert boosts(item, actions=(other,)).action == 1.0


def test_questions_that_no_rule_claims_say_nothing_of_a_tier() -> None:
    item = an_item(tier=Tier.HISTORY)
    for counts in ({"failed": 9}, {"worked": 9}):
        row = an_action(Tier.HISTORY, context="general", **counts)
        assert boosts(item, actions=(row,)).action == 1.0


def test_a_known_solution_is_at_half_the_distance() -> None:
    item, other = an_item(), an_item()
    known = boosts(item, 0.6, solutions=(a_solution(item),)).solution
    assert 0.6 * known == pytest.approx(0.8)
    assert boosts(other, 0.6, solutions=(a_solution(item),)).solution == 1.0
    assert nearer(0.0, 0.5) == nearer(1.0, 0.5) == 1.0


def test_the_most_successful_solutions_are_looked_at() -> None:
    items = [an_item() for _ in range(MAX_SOLUTIONS + 3)]
    known = tuple(a_solution(item, count) for count, item in enumerate(items))
    expected = tuple(item.point_id for item in reversed(items))[:MAX_SOLUTIONS]
    assert solution_points(GraphPriors(solutions=known)) == expected


def test_a_known_solution_is_a_candidate_though_no_arm_returned_it() -> None:
    item, other = an_item(), an_item()
    candidates = to_candidates([item, other], {}, {}, {}, wanted=(item.point_id,))
    assert [one.item for one in candidates] == [item]


def test_without_a_graph_nothing_is_boosted() -> None:
    assert graph_boosts(GraphPriors(), RECIPE) is NO_BOOSTS
    assert NO_BOOSTS.of(an_item(tier=Tier.MEMORY_BANK), 0.5) == Boosts()


@given(
    quality=st.floats(0, 1),
    nodes=st.integers(0, 12),
    worked=st.integers(0, 20),
    failed=st.integers(0, 20),
    tier=st.sampled_from(CORE_TIERS),
    words=st.floats(0, 10),
    cap=st.floats(1, 4),
)
def test_no_mix_of_boosts_exceeds_the_cap(
    quality: float, nodes: int, worked: int, failed: int, tier: Tier, words: float, cap: float
) -> None:
    item = an_item(
        tier=tier,
        memory_id="m",
        lang="en",
        quality=Quality(importance=quality, confidence=1.0),
        stats=Stats(),
        source=Source(doc_id="d"),
    )
    priors = GraphPriors(
        nodes=tuple(a_node(f"n{n}", "m") for n in range(nodes)),
        actions=(an_action(tier, worked=worked, failed=failed),),
        documents=(a_book("d", worked=worked, failed=failed),),
        solutions=(a_solution(item),),
    )
    recipe = Recipe(name="test", total_boost_cap=cap)
    best = an_item(lang="en")
    answer = rank(
        Candidates.of(
            [
                Candidate(item=item, sparse=words, sparse_rank=2),
                Candidate(item=best, sparse=10.0, sparse_rank=1),
            ]
        ),
        query_lang="en",
        recipe=recipe,
        retriever=DenseRetriever(used=False),
        graphs=graph_boosts(priors, recipe),
    )
    one = next(one for one in answer if one.item is item).summary
    assert one.total_boost <= cap
    assert one.final_score <= one.fused * cap + 1e-9


@pytest.mark.parametrize("cap", [1.5, 4.0])
@pytest.mark.parametrize("score", [0.2, 0.7, 1.0])
@pytest.mark.parametrize("tier", list(Tier))
def test_the_parts_multiply_to_the_total(tier: Tier, score: float, cap: float) -> None:
    item = an_item(
        tier=tier,
        memory_id="m",
        lang="en",
        quality=Quality(importance=score, confidence=1.0),
        source=Source(doc_id="d"),
    )
    priors = GraphPriors(
        nodes=(a_node("n", "m", quality=0.3),),
        actions=(an_action(tier, worked=2, failed=1),),
        documents=(a_book("d", worked=3),),
        solutions=(a_solution(item),),
    )
    recipe = Recipe(name="test", total_boost_cap=cap)
    found = Candidate(item=item, sparse=9.0, sparse_rank=2)
    best = Candidate(item=an_item(lang="en"), sparse=10.0, sparse_rank=1)
    answer = rank(
        Candidates.of([found, best]),
        query_lang="en",
        recipe=recipe,
        retriever=DenseRetriever(used=False),
        graphs=graph_boosts(priors, recipe),
    )
    summary = next(one for one in answer if one.item is item).summary
    names = {field.name for field in fields(summary) if field.name.endswith("_boost")}
    parts = math.prod(getattr(summary, name) for name in names - {"total_boost"})
    assert summary.total_boost == pytest.approx(min(cap, parts))
    assert (summary.distance_boost > 1.0) is (tier is Tier.MEMORY_BANK and score == 0.2)


@pytest.mark.parametrize("score", [0.5, 0.7, 1.0])
def test_an_entity_counts_for_a_fact_of_any_quality(score: float) -> None:
    quality = Quality(importance=score, confidence=1.0)
    plain, named = (
        an_item(tier=Tier.MEMORY_BANK, memory_id=name, lang="en", quality=quality)
        for name in ("plain", "named")
    )
    answer = rank(
        Candidates.of(
            [
                Candidate(item=plain, sparse=10.0, sparse_rank=1),
                Candidate(item=named, sparse=9.5, sparse_rank=2),
            ]
        ),
        query_lang="en",
        recipe=RECIPE,
        retriever=DenseRetriever(used=False),
        graphs=graph_boosts(GraphPriors(nodes=(a_node("haifa", "named", quality=0.5),)), RECIPE),
    )
    assert [one.item.memory_id for one in answer] == ["named", "plain"]


def a_route(**tiers: Counters) -> RoutingRow:
    return RoutingRow(
        concept="c",
        label="c",
        tiers={Tier(name): counters for name, counters in tiers.items()},
        first_seen_at=NOW,
        last_seen_at=NOW,
    )


def test_a_recommended_tier_is_searched_deeper_and_no_tier_less_deep() -> None:
    route = a_route(patterns=Counters(uses=9, worked=9), history=Counters(uses=9, failed=9))
    depths = tier_depths(GraphPriors(routing=(route,)), CORE_TIERS, 30, RECIPE)
    assert set(depths) == set(CORE_TIERS)
    assert depths[Tier.PATTERNS] > 30
    assert all(depths[tier] == 30 for tier in CORE_TIERS if tier is not Tier.PATTERNS)
    off = Recipe(name="test", routing=False)
    assert set(tier_depths(GraphPriors(routing=(route,)), CORE_TIERS, 30, off).values()) == {30}
    assert set(tier_depths(GraphPriors(), CORE_TIERS, 30, RECIPE).values()) == {30}


@pytest.mark.parametrize(
    ("field", "value"),
    [("harm_score", 0.5), ("harm_floor", 2), ("outcome_band", 0.9), ("entity_cap", 0.5)],
)
def test_a_parameter_out_of_bounds_names_its_field(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=field):
        parse_recipe("mine", {field: value})
