"""Shapes of the search answers."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from rayapp.wire.answers import SHOWN_WILSON, Answer, EstimateView, SourceView


class CitationView(Answer):
    """What a hit may be cited as."""

    source_type: str
    memory_id: str
    tier: str
    doc_id: str | None = None


class ScoreWeightsView(Answer):
    """Shares of the two arms and of the identifiers that the question names, and of relevance and
    what outcomes taught; the first three sum to 1, and so do the last two."""

    dense: float
    text: float
    identifier: float = Field(
        description="Of holding them exactly; 0: none is named, or it tells no hit apart."
    )
    embedding: float
    learned: float


class ScoreSummaryView(Answer):
    """How a hit got its place. Ranks start at 1; null: that arm did not return it."""

    final_score: float
    dense_similarity: float | None = Field(description="max(0, cosine).")
    text_similarity: float | None = Field(description="BM25 over the best BM25 of the question.")
    fused: float
    rrf_score: float | None
    ce_score: float | None = Field(description="Probability of the reranker.")
    vector_rank: int | None
    text_rank: int | None
    pending_rank: int | None
    ce_rank: int | None
    quality: float | None
    learned_score: float | None
    evidence: float = Field(description="Factor of outcomes; 1: nobody judged it.")
    distance_boost: float = Field(description="How much nearer quality brings the item.")
    quality_boost: float
    entity_boost: float
    document_boost: float
    action_boost: float
    solution_boost: float
    total_boost: float = Field(description="Product of all boosts, capped by the recipe.")
    weights: ScoreWeightsView
    relevance: float | None = Field(
        description="Probability that it answers; null without `min_relevance`."
    )
    named: list[str] = Field(description="Entities of it that the question names.")
    wilson_score: float
    uses: int
    created_at: datetime
    updated_at: datetime


class DatagovView(Answer):
    """A hit of the open-data catalogue. A category has no `dataset_id`, a dataset no `resource_id`.

    `flags` names what its tables hold (`has_phone`, `has_location` ...); `error`: the source could
    not read the resource.
    """

    kind: str | None = Field(description="category, dataset, resource or expansion.")
    category: str | None
    dataset_id: str | None
    resource_id: str | None
    title: str | None
    organization: str | None
    format: str | None = Field(description="Lower case; null: several, or unknown.")
    total_records: int | None = Field(description="Null: nobody counted.")
    fields: list[str] = Field(description="Names of columns.")
    flags: list[str]
    url: str | None
    error: str | None


class HitView(Answer):
    """One result; position starts at 1, `score` is `score_summary.final_score`."""

    position: int
    memory_id: str
    tier: str
    content: str
    preview: str = Field(description="About 200 characters.")
    created_at: datetime
    updated_at: datetime
    age: str = Field(description="For example `3 d`.")
    tags: list[str]
    uses: int
    success_estimate: EstimateView
    wilson_score: float = Field(description=SHOWN_WILSON)
    score: float
    last_outcome: str | None
    source: SourceView
    citations: list[CitationView]
    collapsed_ids: list[str] = Field(description="Near-equal hits folded into this one.")
    datagov: DatagovView | None = Field(description="Null: not of the open-data catalogue.")
    score_summary: ScoreSummaryView


class StageErrorView(Answer):
    """A stage that was skipped, and why."""

    stage: str
    message: str
    code: str


class DatagovUseView(Answer):
    """Whether open data was searched, and why."""

    searched: bool
    guessed: bool = Field(description="By the words of the question alone; half a page at most.")
    reason: str | None = Field(description="`asked`, `filter`, or the rule of the words.")
    categories: list[str] = Field(description="Topics in the words of a guess.")


class SearchDebugView(Answer):
    """What the pipeline did."""

    confidence: Literal["high", "medium", "low"]
    relevance: float
    best_rejected: float | None
    stage_timings_ms: dict[str, float] = Field(
        description="Each instant counts for one stage: the sum is the time of the search."
    )
    fallbacks_used: list[str]
    errors: list[StageErrorView]
    vector_stage_status: Literal["ok", "failed"]
    recipe: str
    sort_by: str
    tiers: list[str]
    language: str
    expansions: list[str]
    datagov: DatagovUseView


class SearchAnswerView(Answer):
    """`degraded` names the stages that were skipped; empty when all ran."""

    success: Literal[True]
    receipt_id: str | None
    results: list[HitView]
    total: int
    abstained: bool
    confidence: Literal["high", "medium", "low"]
    degraded: list[str]
    debug: SearchDebugView
    retrievalDebug: SearchDebugView | None = Field(
        None, description="`debug` once more, only for the first client (`compat.first_client`)."
    )
    hasMore: bool
    nextOffset: int | None


class OutcomeCounts(Answer):
    """Outcomes so far."""

    worked: int
    failed: int
    partial: int
    unknown: int


class RecentView(Answer):
    """A line of the recent list."""

    memory_id: str
    content: str
    tier: str
    status: str
    success_estimate: EstimateView
    wilson_score: float = Field(description=SHOWN_WILSON)
    score: float
    uses: int
    created_at: datetime
    updated_at: datetime
    tags: list[str]
    outcomes: OutcomeCounts
    last_used: datetime | None
    source: SourceView


class RecentAnswer(Answer):
    """The recent list."""

    success: Literal[True]
    memories: list[RecentView]
    degraded: list[str]
