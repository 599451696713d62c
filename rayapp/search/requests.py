"""What callers ask of a search and what they get back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from rayapp.core.deadline import Span
from rayapp.memory.item import MemoryItem
from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import Tier
from rayapp.text.passage import Passage
from rayapp.text.utterance import Utterance

SortMode = Literal["relevance", "recency", "score"]
ConfidenceLabel = Literal["high", "medium", "low"]
Known = Literal["yes", "no", "unsure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What a hit must reach to be put before an assistant.

    share: of the strength of the best hit, 0..1; 0 = off.
    rise: what that share grows by from the first hit to the one numbered `expected`.
    expected: hits that the question needs; so many are shown where there is no floor.
    relevance: probability that the best hit answers, 0..1; None: that of the calibration.
    knowledge: probability that memory knows anything of it, 0..1; None: that of the weights.
    world: the question is about the world of today, so that asking for the newest is no reason to
    show what memory has.
    """

    share: float
    rise: float
    expected: int
    relevance: float | None = None
    knowledge: float | None = None
    world: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """`tiers` None = the five core tiers; `limit` None = estimated from the question.

    `include_datagov` None = when a filter or the question itself asks for open data.
    `min_relevance` leaves out hits whose relevance, a probability 0..1, is below it; `named_only`
    those none of whose entities the question names; `floor` those that are weak beside the best
    one, and all of them when that is weak. `receipt` False: whoever asks shows something else than
    these hits, and keeps the receipt of that. `read`: a language model reads whether one of the
    hits answers; where none does, the search abstains.
    """

    query: str
    limit: int | None = None
    offset: int = 0
    tiers: tuple[Tier, ...] | None = None
    sort_by: SortMode | None = None
    where: ItemFilter = field(default_factory=ItemFilter)
    min_confidence: ConfidenceLabel | None = None
    min_relevance: float | None = None
    named_only: bool = False
    floor: Floor | None = None
    include_datagov: bool | None = None
    as_of: datetime | None = None
    recipe: str | None = None
    conversation_id: str | None = None
    principal: str = ""
    timeout_s: float | None = None
    receipt: bool = True
    read: bool = False

    def __post_init__(self) -> None:
        """Whoever asks, the question carries what is read of it from here on."""
        object.__setattr__(self, "query", Utterance(self.query))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSummary:
    """How one hit got its place. Ranks start at 1; None = the retriever did not return the item.

    dense_similarity, encoder_similarity: max(0, cosine). text_similarity: BM25 / best BM25 of this
    query, 0..1.
    fused: after fusion and weights, 0..1. length_factor: what a text of several passages keeps of
    it. ce_score: reranker probability. weights: what was used.
    evidence: what outcomes multiplied the relevance by, 1 = nobody judged it.
    distance_boost: how many times nearer quality brings a memory_bank item.
    total_boost: the product of all fields that end in `_boost`, capped.
    relevance: probability that the item answers the question, None = nobody asked for it.
    named: which of its entities the question names.
    """

    final_score: float
    dense_similarity: float | None = None
    encoder_similarity: float | None = None
    text_similarity: float | None = None
    fused: float = 0.0
    length_factor: float = 1.0
    rrf_score: float | None = None
    ce_score: float | None = None
    vector_rank: int | None = None
    encoder_rank: int | None = None
    text_rank: int | None = None
    pending_rank: int | None = None
    ce_rank: int | None = None
    quality: float | None = None
    learned_score: float | None = None
    evidence: float = 1.0
    distance_boost: float = 1.0
    quality_boost: float = 1.0
    entity_boost: float = 1.0
    document_boost: float = 1.0
    action_boost: float = 1.0
    solution_boost: float = 1.0
    total_boost: float = 1.0
    weights: dict[str, float] = field(default_factory=dict)
    relevance: float | None = None
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """`passage`: what of a long text answers; None: the whole text does. `outdated_by`: the newer
    hit of the same answer that gives another value for the same thing. `latest`: it is among the
    newest that speak of the thing whose latest state was asked for."""

    position: int
    item: MemoryItem
    summary: ScoreSummary
    collapsed_ids: tuple[str, ...] = ()
    passage: Passage | None = None
    outdated_by: str | None = None
    latest: bool = False

    @property
    def text(self) -> str:
        """What of the item answers."""
        return self.item.text if self.passage is None else self.passage.of(self.item.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageError:
    stage: str
    message: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatagovUse:
    """Whether the open-data tiers were searched, and why.

    Attributes:
        guessed: nobody asked for them, the words of the question did.
        reason: `asked`, `filter`, or the rule of the intent.
        categories: topics of the question; told, not used.
    """

    searched: bool = False
    guessed: bool = False
    reason: str = ""
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """Whether memory knows anything of what was asked, and why that is said: a key of `REASONS` in
    `search/rules/knowledge.py`. `probability` None: it could not be asked."""

    known: Known = "unsure"
    probability: float | None = None
    reason: str = "not_assessed"
    signals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """`total` counts candidates of the first page after filtering, whichever page it is; later
    pages may go on beyond them. `degraded` says which stages were skipped, why.

    `answered_by`: the position of the hit that answers, as a model read it; None = nobody read.
    `timings_ms` add up to the time of the search; `spans` say when its stages ran.
    `weak`: hits that were found and left out by the floor of the query.
    `knowledge`: of the whole question; with a floor, where nothing is known, there is no hit.
    """

    receipt_id: str | None
    hits: tuple[Hit, ...]
    total: int
    confidence: ConfidenceLabel
    relevance: float
    weak: int = 0
    knowledge: Knowledge = field(default_factory=Knowledge)
    abstained: bool = False
    best_rejected: float | None = None
    answered_by: int | None = None
    next_offset: int | None = None
    degraded: tuple[str, ...] = ()
    timings_ms: dict[str, float] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()
    errors: tuple[StageError, ...] = ()
    recipe: str = "default"
    sort_by: SortMode = "relevance"
    tiers: tuple[Tier, ...] = ()
    language: str = "other"
    expansions: tuple[str, ...] = ()
    datagov: DatagovUse = field(default_factory=DatagovUse)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainStage:
    """One stage of the pipeline for one memory: kept, or lost by how much."""

    stage: str
    kept: bool
    detail: str
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    memory_id: str
    query: str
    found: bool
    position: int | None
    lost_at: str | None
    stages: tuple[ExplainStage, ...]
