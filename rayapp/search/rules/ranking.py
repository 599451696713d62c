"""rank(): the sole entry to scoring. API, tools, prefetch and evaluation all come through here.

final = relevance x outcome evidence x (total boost, capped)
relevance = both arms fused, with what the turns around the item and its speaker add
after a rerank: final = 0.4 x final + 0.6 x probability x outcome evidence; what was not read has
probability 0, so that all candidates stay on one scale.
Evidence bears on the reranker too: it reads words as retrieval does, so it would lift again what
experience has pushed down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rayapp.memory.item import MemoryItem
from rayapp.search.requests import ScoreSummary, SortMode
from rayapp.search.rules.boosts import NO_BOOSTS, Boosts, GraphBoosts
from rayapp.search.rules.candidates import Candidate
from rayapp.search.rules.fusion import DenseArm, Fused, fuse
from rayapp.search.rules.quality import distance_boost, quality_boost, total_boost
from rayapp.search.rules.recipes import Recipe
from rayapp.search.rules.turns import with_turns
from rayapp.search.rules.weights import evidence_factor, learned_score, weights_of


class Scored(NamedTuple):
    """What one candidate's score is made of; see `ScoreSummary`."""

    candidate: Candidate
    fused: Fused
    relevance: float
    evidence: float
    distance: float
    quality: float
    boosts: Boosts
    total: float


@dataclass(slots=True)
class Ranked:
    """A candidate in its place.

    The score alone decides the order. The summary is put together when somebody asks for it: a page
    shows 10 of them, and one for every candidate cost as much as ranking them.
    """

    item: MemoryItem
    final_score: float
    scored: Scored
    ce_score: float | None = None
    ce_rank: int | None = None
    relevance: float | None = None
    named: tuple[str, ...] = ()

    @property
    def dense_similarity(self) -> float | None:
        return self.scored.candidate.dense

    @property
    def summary(self) -> ScoreSummary:
        candidate, fused, boosts = self.scored.candidate, self.scored.fused, self.scored.boosts
        weights = weights_of(self.item)
        return ScoreSummary(
            final_score=self.final_score,
            dense_similarity=candidate.dense,
            text_similarity=fused.text,
            fused=self.scored.relevance,
            rrf_score=fused.rrf,
            ce_score=self.ce_score,
            vector_rank=candidate.dense_rank,
            text_rank=candidate.sparse_rank,
            pending_rank=candidate.pending_rank,
            ce_rank=self.ce_rank,
            quality=self.item.quality.quality_score,
            learned_score=learned_score(self.item),
            evidence=self.scored.evidence,
            distance_boost=self.scored.distance,
            quality_boost=self.scored.quality,
            entity_boost=boosts.entity,
            document_boost=boosts.document,
            action_boost=boosts.action,
            solution_boost=boosts.solution,
            total_boost=self.scored.total,
            weights={
                "dense": fused.dense_weight,
                "text": fused.text_weight,
                "identifier": fused.identifier_weight,
                "embedding": weights.embedding,
                "learned": weights.learned,
            },
            relevance=self.relevance,
            named=self.named,
        )


def rank(
    candidates: Sequence[Candidate],
    *,
    query_lang: str,
    recipe: Recipe,
    arm: DenseArm,
    graphs: GraphBoosts = NO_BOOSTS,
    question: str = "",
) -> list[Ranked]:
    """Candidates by final score, best first; ties go to the newer item, then to the id.

    `question`: its words, to know whether it names a speaker or an identifier.
    """
    fused = fuse(candidates, query_lang, recipe, arm, question)
    relevance = with_turns(
        [candidate.item for candidate in candidates],
        [value.score for value in fused],
        question,
        recipe.turns,
    )
    ranked = [
        _score(candidate, value, score, recipe, graphs)
        for candidate, value, score in zip(candidates, fused, relevance, strict=True)
    ]
    ranked.sort(key=_best_first)
    return ranked


def _best_first(ranked: Ranked) -> tuple[float, float, str]:
    item = ranked.item
    return (-ranked.final_score, -item.created_at.timestamp(), item.point_id)


def _score(
    candidate: Candidate, fused: Fused, relevance: float, recipe: Recipe, graphs: GraphBoosts
) -> Ranked:
    """`relevance`: the fused score with what the turns around the item add."""
    item = candidate.item
    evidence = evidence_factor(item, recipe)
    distance = distance_boost(relevance, item, recipe)
    quality, boosts = quality_boost(item, recipe), graphs.of(item, relevance)
    total = total_boost(
        recipe.total_boost_cap,
        distance,
        quality,
        boosts.entity,
        boosts.document,
        boosts.action,
        boosts.solution,
    )
    scored = Scored(candidate, fused, relevance, evidence, distance, quality, boosts, total)
    return Ranked(item, relevance * evidence * total, scored)


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
    said = blend.cross_encoder * probability * one.scored.evidence
    final = blend.original * one.final_score + said
    return Ranked(one.item, final, one.scored, ce_score=probability, ce_rank=ce_rank)


def _unread(one: Ranked, recipe: Recipe) -> Ranked:
    return Ranked(one.item, recipe.rerank.original * one.final_score, one.scored)


def in_order(
    ranked: Sequence[Ranked], sort_by: SortMode, recipe: Recipe, *, asked: bool
) -> list[Ranked]:
    """Apply the sort mode. `asked` False: recency came from a word in the question.

    An asked-for recency sorts all candidates by time. A guessed one only reorders the candidates
    that are about as relevant as the best, so that a stray "last" cannot lose the answer.
    """
    if sort_by == "score":
        return sorted(ranked, key=lambda r: (-r.item.stats.score, *_best_first(r)))
    if sort_by == "relevance":
        return list(ranked)
    if asked:
        return sorted(ranked, key=lambda r: (-r.item.created_at.timestamp(), r.item.point_id))
    floor = recipe.recency_band * max((r.final_score for r in ranked), default=0.0)
    near = [r for r in ranked if r.final_score >= floor]
    far = [r for r in ranked if r.final_score < floor]
    near.sort(key=lambda r: (-r.item.created_at.timestamp(), r.item.point_id))
    return near + far
