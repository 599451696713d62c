"""Why was this memory (not) shown? Runs the one search and follows a single memory through it."""

from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.core.deadline import Deadline
from rayapp.core.errors import NotFound
from rayapp.core.runtime import Runtime
from rayapp.graphs.records import GraphPriors
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import MemoryStore
from rayapp.memory.rules.filtering import matches
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import tier_name
from rayapp.search.requests import (
    ExplainStage,
    Explanation,
    Hit,
    Knowledge,
    ScoreSummary,
    SearchQuery,
)
from rayapp.search.rules.candidates import Candidate
from rayapp.search.rules.diversification import Kept
from rayapp.search.rules.knowledge import REASONS
from rayapp.search.rules.ranking import Ranked, solutions_among
from rayapp.search.service import Prepared, SearchService
from rayapp.search.tracing import Trace


@dataclass(eq=False)
class Explainer:
    """Follows one memory through the search."""

    service: SearchService
    store: MemoryStore
    runtime: Runtime

    async def explain(self, scope: ReadScope, memory_id: str, query: SearchQuery) -> Explanation:
        """Follow `memory_id` stage by stage; `lost_at` names the stage that dropped it."""
        item = await self.store.get(scope, memory_id)
        if item is None:
            raise NotFound(f"No memory {memory_id}; list /api/memory/items to see what exists.")
        prepared = self.service.prepare(scope, query)
        trace = Trace(self.runtime.clock, self.runtime.metrics)
        deadline = Deadline(
            query.timeout_s or self.runtime.settings.search.timeout_s, self.runtime.clock.monotonic
        )
        stages = [
            _stored(item),
            _filtered(prepared, item, self.runtime.settings.compat.tier_documents),
        ]
        gathered = await self.service.gather(prepared, deadline, trace)
        candidate = next(
            (c for c in gathered.candidates if c.item.memory_id == item.memory_id), None
        )
        depth = gathered.depths.get(item.tier, prepared.depth)
        stages.append(_retrieved(candidate, item, gathered.priors, depth))
        ranked = await self.service.ranked(prepared, gathered, deadline, trace)
        stages.append(_knowledge(self.service.assess(prepared, ranked)))
        last = prepared.query.offset + prepared.limit
        kept = self.service.distinct(prepared, ranked, end=last)
        page = self.service.page(prepared, ranked, kept)
        collapsed = _collapsed(page, item)
        place = _position(page, kept, ranked, item)
        shown = bool(collapsed) or _in_page(place, prepared)
        stages += [*_placed(ranked, item, prepared, kept=shown), *collapsed]
        lost = next((stage.stage for stage in stages if not stage.kept), None)
        return Explanation(
            memory_id=item.memory_id,
            query=query.query,
            found=lost is None,
            position=place if lost is None else None,
            lost_at=lost,
            stages=tuple(stages),
        )


def _filtered(prepared: Prepared, item: MemoryItem, documents: bool) -> ExplainStage:
    if item.tier not in prepared.tiers:
        detail = f"Tier {tier_name(item.tier, documents)} was not searched."
        return ExplainStage(stage="filter", kept=False, detail=detail)
    kept = matches(item, prepared.where)
    detail = "Matches." if kept else "A filter, its expiry or its validity leaves it out."
    return ExplainStage(stage="filter", kept=kept, detail=detail)


def _stored(item: MemoryItem) -> ExplainStage:
    state = item.index.sync_state.value
    return ExplainStage(
        stage="truth",
        kept=item.status.value == "active",
        detail=f"Status {item.status.value}, index state {state}.",
        values={"index_rev": float(item.index.rev), "attempts": float(item.index.attempts)},
    )


def _retrieved(
    candidate: Candidate | None, item: MemoryItem, priors: GraphPriors, depth: int
) -> ExplainStage:
    if candidate is None:
        return ExplainStage(
            stage="retrieve",
            kept=False,
            detail=f"No retriever returned it among its best {depth}.",
            values={"depth": float(depth)},
        )
    values = {
        "dense": candidate.dense,
        "dense_rank": candidate.dense_rank,
        "bm25": candidate.sparse,
        "bm25_rank": candidate.sparse_rank,
        "encoder": candidate.encoder,
        "encoder_rank": candidate.encoder_rank,
        "pending": candidate.pending,
        "known_solution": 1.0 if solutions_among((item,), priors) else None,
    }
    detail = "Returned by " + ", ".join(k for k, v in values.items() if v is not None) + "."
    if not candidate.encoded:
        detail += " The encoder has not read it yet: it is ranked by the others."
    return ExplainStage(
        stage="retrieve",
        kept=True,
        detail=detail,
        values={key: float(value) for key, value in values.items() if value is not None},
    )


def _in_page(position: int | None, prepared: Prepared) -> bool:
    first = prepared.query.offset
    return position is not None and first < position <= first + prepared.limit


def _placed(
    ranked: list[Ranked], item: MemoryItem, prepared: Prepared, *, kept: bool
) -> list[ExplainStage]:
    """`kept`: it, or the twin that speaks for it, is within the page."""
    place = _place(ranked, item)
    if place is None:
        return []
    summary = ranked[place - 1].summary
    last = prepared.query.offset + prepared.limit
    bar = ranked[min(last, len(ranked)) - 1].summary.final_score
    detail = f"Place {place} of {len(ranked)}; {prepared.limit} are shown"
    if not kept:
        detail += f", the last with {bar:.4f}, {bar - summary.final_score:.4f} above it"
    return [
        ExplainStage(
            stage="rank", kept=kept, detail=f"{detail}.", values=_parts(summary, place, prepared)
        )
    ]


def _collapsed(page: Sequence[Hit], item: MemoryItem) -> list[ExplainStage]:
    for one in page:
        if item.memory_id in one.collapsed_ids:
            face = one.item.memory_id
            detail = f"Says the same as {face}, which scored better and is shown for both."
            return [ExplainStage(stage="collapse", kept=False, detail=detail)]
    return []


def _knowledge(found: Knowledge) -> ExplainStage:
    """What is said of the whole question; a search lists its hits whatever that is."""
    values = {} if found.probability is None else {"probability": found.probability}
    return ExplainStage(
        stage="knowledge",
        kept=True,
        detail=f"Does memory know anything of this: {found.known}. {REASONS[found.reason]}",
        values=values | dict(found.signals),
    )


def _position(
    page: Sequence[Hit], kept: Sequence[Kept], ranked: Sequence[Ranked], item: MemoryItem
) -> int | None:
    """Among what is shown: collapsed twins take no place, and of two values of one thing the newer
    has the better one."""
    shown = next((hit.position for hit in page if hit.item.memory_id == item.memory_id), None)
    return shown or _place([ranked[one.index] for one in kept], item)


def _place(ranked: Sequence[Ranked], item: MemoryItem) -> int | None:
    ids = (one.item.memory_id for one in ranked)
    return next((place for place, name in enumerate(ids, 1) if name == item.memory_id), None)


def _parts(summary: ScoreSummary, place: int, prepared: Prepared) -> dict[str, float]:
    """Everything that the final score is made of; `evidence_shift` is in points of `fused`."""
    parts = {
        "final": summary.final_score,
        "fused": summary.fused,
        "length_factor": summary.length_factor,
        "dense_similarity": summary.dense_similarity,
        "encoder_similarity": summary.encoder_similarity,
        "text_similarity": summary.text_similarity,
        "learned": summary.learned_score,
        "evidence": summary.evidence,
        "evidence_shift": summary.fused * (summary.evidence - 1.0),
        "quality": summary.quality,
        "distance_boost": summary.distance_boost,
        "quality_boost": summary.quality_boost,
        "entity_boost": summary.entity_boost,
        "document_boost": summary.document_boost,
        "action_boost": summary.action_boost,
        "solution_boost": summary.solution_boost,
        "total_boost": summary.total_boost,
        "total_boost_cap": prepared.recipe.total_boost_cap,
        "ce_score": summary.ce_score,
        "place": float(place),
    }
    return {key: value for key, value in parts.items() if value is not None} | summary.weights
