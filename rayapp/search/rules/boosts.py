"""What the graphs know of a candidate, as multipliers; the cap over all of them is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rayapp.graphs.records import ContentNode, GraphPriors
from rayapp.graphs.rules.belonging import happened_to
from rayapp.graphs.rules.context_type import GENERAL
from rayapp.graphs.rules.rates import action_success_rate
from rayapp.graphs.rules.routing import depth_factors
from rayapp.memory.item import NEUTRAL_SCORE, MemoryItem
from rayapp.memory.tiers import Tier
from rayapp.search.rules.recipes import Recipe
from rayapp.text.normalize import normalize
from rayapp.text.tokens import tokens

# The row of the action graph that speaks for a search.
SEARCH_ACTION = "search_memory"
# Questions that no rule claims share this context and nothing else: what failed in one of them says
# nothing about the next. Its rows are kept and shown, they move no candidate.
SILENT_CONTEXT = GENERAL
# Known solutions of one problem that are looked at, the most successful ones. Our choice.
MAX_SOLUTIONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Boosts:
    """Multipliers of one candidate; 1.0 = the graphs say nothing of it."""

    entity: float = 1.0
    document: float = 1.0
    action: float = 1.0
    solution: float = 1.0


NEUTRAL = Boosts()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphBoosts:
    """The priors of one search, ready to be asked about each candidate.

    Attributes:
        nodes: content nodes of the question's concepts.
        documents, actions: finished factors by doc_id and by tier.
        solutions: when the points that solved this problem before last did so.
    """

    nodes: tuple[ContentNode, ...] = ()
    entity_weight: float = 0.0
    entity_cap: float = 1.0
    documents: Mapping[str, float] = field(default_factory=dict)
    actions: Mapping[Tier, float] = field(default_factory=dict)
    solutions: Mapping[str, datetime] = field(default_factory=dict)
    solution_distance: float = 1.0

    def of(self, item: MemoryItem, relevance: float) -> Boosts:
        """The multipliers of `item`; `relevance` is its fused score, 0..1."""
        if self is NO_BOOSTS:
            return NEUTRAL
        return Boosts(
            entity=self._entity(item),
            document=self.documents.get(item.dedup_scope, 1.0) if item.tier is Tier.BOOKS else 1.0,
            action=self.actions.get(item.tier, 1.0),
            solution=nearer(relevance, self.solution_distance)
            if _solved(item, self.solutions)
            else 1.0,
        )

    def _entity(self, item: MemoryItem) -> float:
        if item.tier is not Tier.MEMORY_BANK or not self.nodes:
            return 1.0
        total = sum(node.avg_quality for node in self.nodes if _carries(item, node))
        return min(self.entity_cap, 1.0 + self.entity_weight * total)


NO_BOOSTS = GraphBoosts()


def graph_boosts(priors: GraphPriors, recipe: Recipe) -> GraphBoosts:
    """What the priors of a search add to its candidates."""
    if priors.is_empty:
        return NO_BOOSTS
    return GraphBoosts(
        nodes=priors.nodes,
        entity_weight=recipe.entity_weight,
        entity_cap=recipe.entity_cap,
        documents=_document_factors(priors, recipe),
        actions=_action_factors(priors, recipe),
        solutions=_solution_times(priors),
        solution_distance=recipe.solution_distance,
    )


def solution_points(priors: GraphPriors) -> tuple[str, ...]:
    """Point ids of the known solutions, most successful first."""
    return tuple(_solution_times(priors))


def is_solution(item: MemoryItem, priors: GraphPriors) -> bool:
    """Whether `item` itself solved this problem, not a deleted memory with its id."""
    return _solved(item, _solution_times(priors))


def _solution_times(priors: GraphPriors) -> dict[str, datetime]:
    """The best solutions and when each last helped, most successful first."""
    best = sorted(priors.solutions, key=lambda one: (-one.success_count, one.point_id))
    times: dict[str, datetime] = {}
    for one in best:
        times.setdefault(one.point_id, one.last_used_at)
    return dict(list(times.items())[:MAX_SOLUTIONS])


def _solved(item: MemoryItem, times: Mapping[str, datetime]) -> bool:
    at = times.get(item.point_id)
    return at is not None and happened_to(item, at)


def tier_depths(
    priors: GraphPriors, tiers: Sequence[Tier], depth: int, recipe: Recipe
) -> dict[Tier, int]:
    """Candidates to ask of each tier: never fewer than `depth`, and of every tier."""
    if not recipe.routing or not priors.routing:
        return dict.fromkeys(tiers, depth)
    factors = depth_factors(priors.routing, tiers)
    return {tier: max(depth, round(depth * factors.get(tier, 1.0))) for tier in tiers}


def nearer(relevance: float, factor: float) -> float:
    """`distance * factor` as a multiplier of the relevance, so that it falls under the one cap."""
    if not 0.0 < relevance < 1.0:
        return 1.0
    return (1.0 - (1.0 - relevance) * factor) / relevance


def _document_factors(priors: GraphPriors, recipe: Recipe) -> dict[str, float]:
    """Upwards only: a book is a source, and one that did not help once is not wrong."""
    factors = {}
    for one in priors.documents:
        if one.counters.uses >= recipe.effect_uses:
            above = max(0.0, action_success_rate(one.counters) - NEUTRAL_SCORE)
            factors[one.doc_id] = 1.0 + recipe.document_gain * above / (1.0 - NEUTRAL_SCORE)
    return factors


def _action_factors(priors: GraphPriors, recipe: Recipe) -> dict[Tier, float]:
    return {
        row.tier: recipe.action_base + recipe.action_span * action_success_rate(row.counters)
        for row in priors.actions
        if row.action == SEARCH_ACTION
        and row.context_type != SILENT_CONTEXT
        and row.counters.uses >= recipe.effect_uses
    }


def _carries(item: MemoryItem, node: ContentNode) -> bool:
    """Whether `item` is one of the memories behind `node`.

    A node lists a bounded number of its memories. Only when it counts more than it lists does the
    item itself have to say: by its tags and entities, or by the words of its text.
    """
    if item.memory_id in node.memory_ids:
        return True
    if node.mentions <= len(node.memory_ids):
        return False
    label = normalize(node.label).casefold()
    if any(normalize(name).casefold() == label for name in (*item.tags, *item.entities)):
        return True
    words = {token.text for token in tokens(normalize(item.text))}
    wanted = {token.text for token in tokens(label)}
    return bool(wanted) and wanted <= words
