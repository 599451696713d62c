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
from dataclasses import dataclass, replace

from rayapp.domain.memory import MemoryItem
from rayapp.domain.requests import ScoreSummary, SortMode
from rayapp.domain.retrieval.boosts import NO_BOOSTS, GraphBoosts
from rayapp.domain.retrieval.candidates import Candidate
from rayapp.domain.retrieval.fusion import DenseArm, Fused, fuse
from rayapp.domain.retrieval.quality import distance_boost, quality_boost, total_boost
from rayapp.domain.retrieval.recipes import Recipe
from rayapp.domain.retrieval.turns import with_turns
from rayapp.domain.retrieval.weights import evidence_factor, learned_score, weights_of


@dataclass(frozen=True, slots=True)
class Ranked:
    item: MemoryItem
    summary: ScoreSummary


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

    `question`: its words, to know whether it names a speaker.
    """
    fused = fuse(candidates, query_lang, recipe, arm)
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
    return (-ranked.summary.final_score, -item.created_at.timestamp(), item.point_id)


def _score(
    candidate: Candidate, fused: Fused, relevance: float, recipe: Recipe, graphs: GraphBoosts
) -> Ranked:
    """`relevance`: the fused score with what the turns around the item add."""
    item = candidate.item
    evidence = evidence_factor(item, recipe)
    distance = distance_boost(relevance, item, recipe)
    quality, boosts = quality_boost(item, recipe), graphs.of(item, relevance)
    boost = total_boost(
        recipe.total_boost_cap,
        distance,
        quality,
        boosts.entity,
        boosts.document,
        boosts.action,
        boosts.solution,
    )
    weights = weights_of(item)
    summary = ScoreSummary(
        final_score=relevance * evidence * boost,
        dense_similarity=candidate.dense,
        text_similarity=fused.text,
        fused=relevance,
        rrf_score=fused.rrf,
        vector_rank=candidate.dense_rank,
        text_rank=candidate.sparse_rank,
        pending_rank=candidate.pending_rank,
        quality=item.quality.quality_score,
        learned_score=learned_score(item),
        evidence=evidence,
        distance_boost=distance,
        quality_boost=quality,
        entity_boost=boosts.entity,
        document_boost=boosts.document,
        action_boost=boosts.action,
        solution_boost=boosts.solution,
        total_boost=boost,
        weights={
            "dense": fused.dense_weight,
            "text": 1.0 - fused.dense_weight,
            "embedding": weights.embedding,
            "learned": weights.learned,
        },
    )
    return Ranked(item, summary)


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
    blend, before = recipe.rerank, one.summary
    said = blend.cross_encoder * probability * before.evidence
    final = blend.original * before.final_score + said
    return Ranked(
        one.item, replace(before, final_score=final, ce_score=probability, ce_rank=ce_rank)
    )


def _unread(one: Ranked, recipe: Recipe) -> Ranked:
    final = recipe.rerank.original * one.summary.final_score
    return Ranked(one.item, replace(one.summary, final_score=final))


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
    floor = recipe.recency_band * max((r.summary.final_score for r in ranked), default=0.0)
    near = [r for r in ranked if r.summary.final_score >= floor]
    far = [r for r in ranked if r.summary.final_score < floor]
    near.sort(key=lambda r: (-r.item.created_at.timestamp(), r.item.point_id))
    return near + far
