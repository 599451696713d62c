"""rank(): the sole entry to scoring, with evidence, quality and boosts. Search and evaluation
share it.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from rayapp.graphs.records import ContentNode, GraphPriors
from rayapp.graphs.rules.content import happened_to
from rayapp.graphs.rules.question import GENERAL
from rayapp.graphs.rules.routing import action_success_rate, depth_factors
from rayapp.memory.item import NEUTRAL_SCORE, MemoryItem
from rayapp.memory.rules.lifecycle import shown_share
from rayapp.memory.tiers import TIER_POLICY, Tier
from rayapp.search.requests import ScoreSummary, SortMode
from rayapp.search.rules.candidates import Candidates, Floats, said
from rayapp.search.rules.fusion import DenseRetriever, Fused, fuse
from rayapp.search.rules.recipes import Recipe
from rayapp.search.rules.turns import with_turns
from rayapp.text.concepts import MAX_READ_CHARS
from rayapp.text.normalize import normalize
from rayapp.text.passage import Passage
from rayapp.text.passages import is_whole, passage_at
from rayapp.text.tokens import tokens
from rayapp.text.utterance import reading

# How much outcome evidence counts: the maturity table, inside a relevance band (decision 0016).

# The memory bank is not scored by outcomes: from this many uses on they are this share of what is
# learned of a fact, in the Wilson blend that is shown and in what moves it (decision 0016).
BANK_WILSON_SHARE = 0.2
BANK_WILSON_USES = 3
BANK_HIGH_QUALITY = 0.8
# Tiers whose items outcomes can sink.
HARMING_TIERS = frozenset({Tier.WORKING, Tier.HISTORY, Tier.PATTERNS})


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the relevance and of the learned score; they sum to 1."""

    embedding: float
    learned: float


@dataclass(frozen=True, slots=True)
class Maturity:
    """A row of the table: applies from `uses` and `score` on."""

    name: str
    uses: int
    score: float
    weights: Weights


NEW = Weights(0.70, 0.30)
MATURITY: tuple[Maturity, ...] = (
    Maturity("proven", 5, 0.8, Weights(0.20, 0.80)),
    Maturity("established", 3, 0.7, Weights(0.25, 0.75)),
    Maturity("emerging", 2, 0.5, Weights(0.35, 0.65)),
    Maturity("doubtful", 2, 0.0, Weights(0.70, 0.30)),
    Maturity("new", 0, 0.0, NEW),
)


def learned_score(item: MemoryItem) -> float:
    """What experience says of the item, 0..1."""
    if item.tier is not Tier.MEMORY_BANK:
        return item.stats.score
    quality = item.quality.quality_score
    if item.stats.uses < BANK_WILSON_USES:
        return quality
    return (1 - BANK_WILSON_SHARE) * quality + BANK_WILSON_SHARE * item.stats.wilson_score


def weights_of(item: MemoryItem) -> Weights:
    """The row that applies to this item."""
    if not TIER_POLICY[item.tier].learned_weight:
        return Weights(1.0, 0.0)
    if item.tier is Tier.MEMORY_BANK:
        high = item.quality.quality_score >= BANK_HIGH_QUALITY
        return Weights(0.45, 0.55) if high else Weights(0.60, 0.40)
    for row in MATURITY:
        if item.stats.uses >= row.uses and item.stats.score >= row.score:
            return row.weights
    return NEW


def evidence_factor(item: MemoryItem, recipe: Recipe) -> float:
    """What outcomes multiply the relevance by; exactly 1 while nobody has judged the item.

    Two rules. Inside the band, the learned score moves the item by its distance from neutral,
    weighed by maturity. Beyond it, an item that keeps failing is held to do harm and falls to a
    share of its relevance. Nothing lifts an item beyond the band, so that what helped elsewhere
    cannot pass what answers this question. A fact of the memory bank moves by its small share of
    the band and never does harm: it was kept on purpose, and an answer that failed does not make
    it untrue.
    """
    if not recipe.maturity or not is_judged(item):
        return 1.0
    weight = weights_of(item).learned
    if item.tier is Tier.MEMORY_BANK:
        weight *= BANK_WILSON_SHARE
    shift = weight * (item.stats.score - NEUTRAL_SCORE)
    shift = min(recipe.outcome_band, max(-recipe.outcome_band, shift))
    return (1.0 + shift) * (1.0 - (1.0 - recipe.harm_floor) * harm(item, recipe))


def is_judged(item: MemoryItem) -> bool:
    """A score given at birth counts as a judgement; items of tiers without learning never do, and
    facts of the memory bank from `BANK_WILSON_USES` outcomes on."""
    if not TIER_POLICY[item.tier].learned_weight:
        return False
    if item.tier is Tier.MEMORY_BANK:
        return item.stats.uses >= BANK_WILSON_USES
    return item.stats.uses > 0 or item.stats.score != NEUTRAL_SCORE


def harm(item: MemoryItem, recipe: Recipe) -> float:
    """How surely the item does harm, 0..1: how low its score is, and on how many outcomes."""
    if item.tier not in HARMING_TIERS:
        return 0.0
    low = max(0.0, (recipe.harm_score - item.stats.score) / recipe.harm_score)
    return low * min(1.0, item.stats.uses / recipe.harm_uses)


# What the graphs know of a candidate, as multipliers; `total_boost` caps them all.

# The row of the action graph that speaks for a search.
SEARCH_ACTION = "search_memory"
# Questions that no rule claims share this context and nothing else: what failed in one of them says
# nothing about the next. Its rows are kept and shown, they move no candidate.
SILENT_CONTEXT = GENERAL
# Known solutions of one problem that are looked at, the most successful ones. Our choice.
MAX_SOLUTIONS = 5
# Of the band of a guessed recency: how far down a recency that a caller asked for goes. What is
# unrelated has at most 0.15 of the best score in the tests' stores, half of this.
ASKED_REACH = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Boosts:
    """Multipliers of one candidate; 1.0 = the graphs say nothing of it."""

    entity: float = 1.0
    document: float = 1.0
    action: float = 1.0
    solution: float = 1.0

    @property
    def factors(self) -> tuple[float, ...]:
        return self.entity, self.document, self.action, self.solution


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


def solutions_among(items: Iterable[MemoryItem], priors: GraphPriors) -> set[str]:
    """Points of those that solved this problem themselves, not a deleted memory with their id."""
    times = _solution_times(priors)
    return {item.point_id for item in items if _solved(item, times)} if times else set()


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
        and row.tier is not None
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
    wanted = {token.text for token in tokens(label)}
    return bool(wanted) and wanted <= _words_of(item.text)


@reading  # an item is asked about one node after the other
def _words_of(text: str) -> Set[str]:
    """As far as the graph read it."""
    return {token.text for token in tokens(normalize(text[:MAX_READ_CHARS]))}


# memory_bank quality in ranking, and the cap over all multipliers (decision 0002).


def distance_boost(relevance: float, item: MemoryItem, recipe: Recipe) -> float:
    """How many times nearer quality brings a memory_bank item: >= 1, 1 for other tiers.

    The rule is `distance * max(floor, 1 - 0.8 * quality)`. It is returned as a multiplier so that
    it falls under the same cap as every other boost: read alone it would lift an item that has
    nothing to do with the question to 0.8. It takes what `quality_boost` leaves of the quality
    cap.
    """
    if item.tier is not Tier.MEMORY_BANK:
        return 1.0
    factor = max(recipe.quality_floor, 1.0 - recipe.quality_distance * item.quality.quality_score)
    return min(nearer(relevance, factor), recipe.quality_cap / quality_boost(item, recipe))


def quality_boost(item: MemoryItem, recipe: Recipe) -> float:
    """Multiplier 1 + quality for memory_bank up to the quality cap, 1 for other tiers."""
    if item.tier is not Tier.MEMORY_BANK:
        return 1.0
    return min(recipe.quality_cap, 1.0 + item.quality.quality_score)


def total_boost(cap: float, *factors: float) -> float:
    """The product of all multipliers, never above `cap`."""
    product = 1.0
    for factor in factors:
        product *= factor
    return min(cap, product)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What the scores of all candidates are made of, a row for each; see `ScoreSummary`."""

    candidates: Candidates
    fused: Fused
    relevance: Floats
    evidence: Floats
    distance: Floats
    quality: Floats
    boosts: Mapping[int, Boosts]
    total: Floats

    @property
    def final(self) -> Floats:
        return self.relevance * self.evidence * self.total


@dataclass(slots=True)
class Ranked:
    """A candidate in its place, the row `at` of `scored`.

    The score alone decides the order. The summary is put together when somebody asks for it: a page
    shows 10 of them, and one for every candidate cost as much as ranking them.
    """

    item: MemoryItem
    final_score: float
    scored: Scored
    at: int
    ce_score: float | None = None
    ce_rank: int | None = None
    relevance: float | None = None
    named: tuple[str, ...] = ()
    latest: bool = False

    @property
    def passage(self) -> Passage | None:
        """What of a long text speaks for the item; None: the whole text does."""
        text = self.item.text
        return None if is_whole(text) else passage_at(text, int(self.scored.fused.passage[self.at]))

    @property
    def passage_text(self) -> str:
        passage = self.passage
        return self.item.text if passage is None else passage.of(self.item.text)

    @property
    def dense_similarity(self) -> float | None:
        return said(self.scored.candidates.dense[self.at])

    @property
    def summary(self) -> ScoreSummary:
        at, scored, fused = self.at, self.scored, self.scored.fused
        candidate, boosts = scored.candidates[at], scored.boosts.get(at, NEUTRAL)
        weights = weights_of(self.item)
        return ScoreSummary(
            final_score=self.final_score,
            ce_score=self.ce_score,
            ce_rank=self.ce_rank,
            quality=self.item.quality.quality_score,
            learned_score=learned_score(self.item),
            dense_similarity=candidate.dense,
            encoder_similarity=candidate.encoder,
            vector_rank=candidate.dense_rank,
            encoder_rank=candidate.encoder_rank,
            text_rank=candidate.sparse_rank,
            pending_rank=candidate.pending_rank,
            entity_boost=boosts.entity,
            document_boost=boosts.document,
            action_boost=boosts.action,
            solution_boost=boosts.solution,
            text_similarity=float(fused.text[at]),
            rrf_score=float(fused.rrf[at]),
            length_factor=float(fused.length[at]),
            fused=float(scored.relevance[at]),
            evidence=float(scored.evidence[at]),
            distance_boost=float(scored.distance[at]),
            quality_boost=float(scored.quality[at]),
            total_boost=float(scored.total[at]),
            weights={
                "dense": float(fused.dense_weight[at]),
                "text": float(fused.text_weight[at]),
                "encoder": float(fused.encoder_weight[at]),
                "identifier": fused.identifier_weight,
                "embedding": weights.embedding,
                "learned": weights.learned,
            },
            relevance=self.relevance,
            named=self.named,
        )


def rank(
    candidates: Candidates,
    *,
    query_lang: str,
    recipe: Recipe,
    retriever: DenseRetriever,
    graphs: GraphBoosts = NO_BOOSTS,
    question: str = "",
) -> list[Ranked]:
    """Candidates by final score, best first; ties go to the newer item, then to the id.

    `question`: its words, to know whether it names a speaker or an identifier.
    """
    items = candidates.items
    if not items:
        return []
    fused = fuse(candidates, query_lang, recipe, retriever, question)
    relevance = with_turns(items, fused.score, question, recipe.turns, query_lang)
    scored = _scored(candidates, fused, relevance, recipe, graphs)
    ranked = [
        Ranked(item, final, scored, at)
        for at, (item, final) in enumerate(zip(items, scored.final.tolist(), strict=True))
    ]
    ranked.sort(key=_best_first)
    return ranked


def _best_first(ranked: Ranked) -> tuple[float, float, str]:
    item = ranked.item
    return (-ranked.final_score, -item.created_at.timestamp(), item.point_id)


def _scored(
    candidates: Candidates, fused: Fused, relevance: Floats, recipe: Recipe, graphs: GraphBoosts
) -> Scored:
    """`relevance`: the fused scores with what the turns around the items add."""
    evidence = np.array([evidence_factor(item, recipe) for item in candidates.items])
    distance, quality, total = (np.ones(len(candidates)) for _ in range(3))
    boosts: dict[int, Boosts] = {}
    for at, item in enumerate(candidates.items):
        if graphs is not NO_BOOSTS or item.tier is Tier.MEMORY_BANK:
            near = float(relevance[at])
            boosts[at] = known = graphs.of(item, near)
            closer, better = distance_boost(near, item, recipe), quality_boost(item, recipe)
            distance[at], quality[at] = closer, better
            total[at] = total_boost(recipe.total_boost_cap, closer, better, *known.factors)
    return Scored(candidates, fused, relevance, evidence, distance, quality, boosts, total)


def with_rerank(
    ranked: Sequence[Ranked], probabilities: Sequence[float], recipe: Recipe
) -> list[Ranked]:
    """Blend reranker probabilities (of the first `len(probabilities)`) into the order.

    What was not read stays behind: its score before is lower, and nothing is added to it.
    """
    if not probabilities:
        return list(ranked)
    order = sorted(range(len(probabilities)), key=lambda i: -probabilities[i])
    ce_rank = {index: rank for rank, index in enumerate(order, start=1)}
    blended = [
        _blended(one, p, ce_rank[index], recipe)
        for index, (one, p) in enumerate(zip(ranked, probabilities, strict=False))
    ]
    blended.sort(key=_best_first)
    return blended + [_unread(one, recipe) for one in ranked[len(blended) :]]


def _blended(one: Ranked, probability: float, ce_rank: int, recipe: Recipe) -> Ranked:
    blend = recipe.rerank
    read = blend.cross_encoder * probability * float(one.scored.evidence[one.at])
    final = blend.original * one.final_score + read
    return Ranked(one.item, final, one.scored, one.at, ce_score=probability, ce_rank=ce_rank)


def _unread(one: Ranked, recipe: Recipe) -> Ranked:
    return Ranked(one.item, recipe.rerank.original * one.final_score, one.scored, one.at)


def in_order(
    ranked: Sequence[Ranked], sort_by: SortMode, recipe: Recipe, *, asked: bool
) -> list[Ranked]:
    """Apply the sort mode. `asked` False: recency came from a word in the question.

    Score is the estimate of success that people are shown. A recency puts the newest first of the
    candidates that are about as relevant as the best, so that a stray "last" cannot lose the
    answer; one that a caller asked for reaches further down. All others follow by relevance: the
    newest memories of all would be the same for every question.
    """
    if sort_by == "score":
        return sorted(ranked, key=lambda r: (-shown_share(r.item.stats), *_best_first(r)))
    if sort_by == "relevance":
        return list(ranked)
    share = recipe.recency_band * (ASKED_REACH if asked else 1.0)
    floor = share * max((r.final_score for r in ranked), default=0.0)
    near = [r for r in ranked if r.final_score >= floor]
    far = [r for r in ranked if r.final_score < floor]
    near.sort(key=lambda r: r.item.created_at, reverse=True)  # of one moment: as they stood
    return near + far
