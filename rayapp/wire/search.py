"""The search: body, filters, answer, and the recent list that shares its path."""

from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from rayapp.core.errors import EmbedderDown, IndexDown
from rayapp.datagov.rules.categories import (
    CATEGORIES,
    category_slug,
    flag_spellings,
    format_spellings,
    nearest_category,
)
from rayapp.memory.item import Source, SourceType
from rayapp.memory.requests import SortKey
from rayapp.memory.rules.filtering import flag_names
from rayapp.memory.rules.lifecycle import age, success_estimate
from rayapp.memory.scope import LAST_PAGE, ItemFilter
from rayapp.memory.tiers import CORE_TIERS, DATAGOV_ANSWERS, tier_name
from rayapp.search.requests import Hit, ScoreSummary, SearchAnswer, SearchQuery, SortMode
from rayapp.text.language import Language
from rayapp.wire import bases
from rayapp.wire.memories import SourceView

# The `filters` object of a search and the query fields of a list: both become an ItemFilter.

ALL_TIERS = "all"


def _tier_list(value: Any) -> Any:
    """`"all"` and a single name are accepted where a list is; "all" is the five core tiers."""
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and ALL_TIERS in names:
        return list(CORE_TIERS) if len(names) == 1 else names
    return names


TierList = Annotated[
    tuple[bases.TierName, ...],
    BeforeValidator(_tier_list),
    Field(max_length=32, description='Names of tiers, or "all" for the five core tiers.'),
]


def known_category(name: str) -> str:
    """The slug of a category by any of its names; ValueError names the nearest one."""
    slug = category_slug(name)
    if slug is None:
        nearest = nearest_category(name)
        hint = f"did you mean {nearest}?" if nearest else f"use one of {', '.join(CATEGORIES)}"
        raise ValueError(f"is no DataGov category; {hint}")
    return slug


def _format_values(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for name in names for one in format_spellings(name)))


def _flag_values(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for name in names for one in flag_spellings(name)))


def _trim(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names))


# What is stored without the blanks around it, which a filter may have as well.
Trimmed = Annotated[bases.Values, AfterValidator(_trim)]
Page = Annotated[int, Field(ge=1, le=LAST_PAGE)]
CategorySlug = Annotated[str, Field(max_length=bases.MAX_ID_CHARS), AfterValidator(known_category)]
CategoryNames = Annotated[tuple[CategorySlug, ...], Field(max_length=bases.MAX_FILTER_VALUES)]


class PlaceFilters(bases.Strict):
    """Which passages of documents."""

    authors: bases.Values | None = bases.optional("Authors of documents.")
    sections: bases.Values | None = bases.optional(
        "Headings that a passage stands under, each as it is written."
    )
    page_from: Page | None = bases.optional("On this page of a document or after it.")
    page_to: Page | None = bases.optional("On this page of a document or before it.")
    has_code: bases.Flag | None = bases.optional("Passages of documents with code.")


class Filters(PlaceFilters):
    """Conditions joined by AND; a list matches any of its values, an empty one matches nothing."""

    tags: Trimmed | None = bases.optional("Any of these tags.")
    tags_all: Trimmed | None = Field(
        None, min_length=1, description="All of these tags.", json_schema_extra={"minItems": 1}
    )
    entities: Trimmed | None = bases.optional("Any of these entities.")
    source_types: tuple[SourceType, ...] | None = bases.optional("Kinds of source.")
    conversation_ids: bases.Values | None = bases.optional("Conversations.")
    tool_names: bases.Values | None = bases.optional("Tools.")
    doc_ids: bases.Values | None = bases.optional("Documents.")
    subject_ids: bases.Values | None = bases.optional("Whom the memory is about.")
    perspective_owner_ids: bases.Values | None = bases.optional("Who told it.")
    topics: Trimmed | None = bases.optional("Any of these topics.")
    categories: CategoryNames | None = bases.optional(
        "DataGov categories: slugs, or their Hebrew or English names."
    )
    formats: Annotated[bases.Values, AfterValidator(_format_values)] | None = bases.optional(
        "DataGov file formats, in any case."
    )
    organizations: Trimmed | None = bases.optional("DataGov organizations, by their whole names.")
    flags: Annotated[bases.Values, AfterValidator(_flag_values)] | None = bases.optional(
        "DataGov flags, for example `has_phone` or `phone`."
    )
    langs: tuple[Language, ...] | None = bases.optional("Languages.")
    created_from: bases.UtcTime | None = bases.optional("Created at or after; naive is UTC.")
    created_to: bases.UtcTime | None = bases.optional("Created before this; naive is UTC.")
    valid_at: bases.UtcTime | None = bases.optional("Valid at this time; naive is UTC.")
    always_inject: bases.Flag | None = bases.optional("Pinned, or not pinned.")
    include_superseded: bases.Flag = Field(
        False,
        description="Also what a newer memory replaced. It is valid no more: a search shows it "
        "where `valid_at` names a time at which it was.",
    )

    def item_filter(self, **more: Any) -> ItemFilter:
        """As the domain value; `more` sets what the caller names elsewhere."""
        return self.fill(
            ItemFilter, **{"tags_any": self.tags, "entities_any": self.entities} | more
        )


class ItemsQuery(Filters):
    """Query fields of the item list."""

    aliases: ClassVar = {"tier": "tiers", "sort_by": "sort", "sortBy": "sort"}
    tiers: TierList | None = bases.optional("Tiers; all seven when absent.")
    status: Literal["active", "archived"] = Field(
        "active", description="Active or archived memories."
    )
    sort: SortKey = Field("recent", description="Order, best first.")
    limit: int = Field(50, ge=1, le=bases.MAX_PAGE, description="Memories on a page.")
    cursor: Annotated[str, Field(max_length=2_048)] | None = bases.optional(
        "`next_cursor` of the page before."
    )
    query: bases.Name | None = bases.optional("Only memories with these words.")
    with_total: bool = Field(False, description="Also count all that match.")
    always_inject: bool | None = bases.optional("Pinned, or not pinned.")
    has_code: bool | None = bases.optional("Passages of documents with code.")
    include_superseded: bool = Field(False, description="Also what a newer memory replaced.")


SEARCH_ALIASES = {
    "sortBy": "sort_by",
    "tier": "tiers",
    "skip": "offset",
    "includeDataGov": "include_datagov",
    "datagovCategories": "datagov_categories",
    "conversationId": "conversation_id",
    "minConfidence": "min_confidence",
    "minRelevance": "min_relevance",
    "namedOnly": "named_only",
    "asOf": "as_of",
}


def _sort(value: Any) -> Any:
    return "recency" if value == "recent" else value


def _comma_list(value: Any) -> Any:
    """`"a,b"` as the first client sends it in a URL."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


Sort = Annotated[
    SortMode, BeforeValidator(_sort), Field(description="`recent` is another name of `recency`.")
]
Categories = Annotated[
    tuple[CategorySlug, ...],
    BeforeValidator(_comma_list),
    Field(max_length=100, description="Only DataGov memories of these categories."),
]


def _slug_or_name(name: str) -> str:
    return category_slug(name) or name


# The first client's own list has categories that no catalogue has: they match nothing.
AnyCategories = Annotated[
    tuple[Annotated[str, Field(max_length=200), AfterValidator(_slug_or_name)], ...],
    BeforeValidator(_comma_list),
    Field(max_length=100, description="Of the DataGov memories, only these categories."),
]
Handle = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class SearchBody(bases.Strict):
    """A question, and what may answer it. The largest `limit` is the setting search.max_limit."""

    aliases: ClassVar = SEARCH_ALIASES
    query: str = Field(min_length=1, description="The question, in any language.")
    limit: Annotated[bases.Whole, Field(ge=1)] | None = bases.optional(
        "Hits; estimated from the question when absent."
    )
    offset: Annotated[bases.Whole, Field(ge=0, le=bases.MAX_OFFSET)] = Field(
        0, description="Hits to skip; `skip` is another name."
    )
    tiers: TierList | None = bases.optional('Tiers, or "all": the five core tiers.')
    sort_by: Sort | None = bases.optional("Order; the recipe's when absent.")
    filters: Filters | None = bases.optional("Conditions on the memories.")
    min_confidence: Literal["high", "medium", "low"] | None = bases.optional(
        "Abstain below this confidence."
    )
    min_relevance: bases.Share | None = bases.optional(
        "Leave out hits whose `score_summary.relevance`, a probability from 0 to 1, "
        "is below this; the best 60 are read for it. 0 leaves nothing out, and fills that field."
    )
    named_only: bases.Flag = Field(
        False,
        description="Only memories one of whose entities the question names, whatever else it "
        "says; `score_summary.named` says which.",
    )
    read: bases.Flag = Field(
        False,
        description="Let the language model (`models.base_url`) read whether a hit answers: "
        "`answered_by` names it, and where none does the search abstains. Costs a call.",
    )
    include_datagov: bases.Flag | None = bases.optional(
        "Also search open data. When absent, a filter on it or the words of the "
        "question decide; `debug.datagov` says so."
    )
    datagov_categories: Categories | None = None
    as_of: bases.UtcTime | None = bases.optional("Answer as of this time; naive is UTC.")
    recipe: Handle | None = bases.optional("Ranking recipe; the default when absent.")
    conversation_id: Annotated[str, Field(min_length=1, max_length=512)] | None = bases.optional(
        "Conversation the question comes from; kept in the receipt."
    )

    def search_query(self) -> SearchQuery:
        tiers, datagov, more = self.tiers, self.include_datagov, {}
        filters = self.filters or Filters.model_construct()
        if self.datagov_categories is not None:
            # A category exists on DataGov memories only: asking for one asks for those tiers.
            datagov, more = True, {"categories": _both(self.datagov_categories, filters.categories)}
            tiers = DATAGOV_ANSWERS if tiers is None else tiers
        where = filters.item_filter(**more)
        return self.fill(SearchQuery, tiers=tiers, where=where, include_datagov=datagov)


def _both(one: tuple[str, ...], other: tuple[str, ...] | None) -> tuple[str, ...]:
    return one if other is None else tuple(slug for slug in one if slug in other)


def _list_sort(value: Any) -> Any:
    return {"recency": "recent", "relevance": "recent"}.get(value, value)


class RecentQuery(bases.Lenient):
    """Query fields of the recent list."""

    aliases: ClassVar = SEARCH_ALIASES
    tiers: TierList | None = None
    sort_by: Annotated[Literal["recent", "score"], BeforeValidator(_list_sort)] = Field(
        "recent", description="What changed last first, or the best score; `recency` is `recent`."
    )
    limit: int = Field(100, ge=1, le=bases.MAX_PAGE, description="Memories in the answer.")
    offset: int = Field(0, ge=0, le=bases.MAX_OFFSET, description="Memories to skip.")
    query: Annotated[str, Field(max_length=4_000)] | None = bases.optional(
        "Only memories with these words."
    )
    include_datagov: bool = Field(False, description="Also the catalogue of DataGov.")
    datagov_categories: AnyCategories | None = None


class CitationView(bases.Answer):
    """What a hit may be cited as."""

    source_type: str
    memory_id: str
    tier: str
    doc_id: str | None = bases.Absent


class ScoreWeightsView(bases.Answer):
    """Shares of the retrievers and of the identifiers that the question names, and of relevance
    and what outcomes taught; the first four sum to 1, and so do the last two."""

    dense: float
    text: float
    encoder: float = Field(description="0: it is off, or has not read the memory yet.")
    identifier: float = Field(
        description="Of holding them exactly; 0: none is named, or it tells no hit apart."
    )
    embedding: float
    learned: float


class ScoreSummaryView(bases.Answer):
    """How a hit got its place. Ranks start at 1; null: that retriever did not return it."""

    final_score: float
    dense_similarity: float | None = Field(description="max(0, cosine).")
    encoder_similarity: float | None = Field(description="The same by the encoder, where it is on.")
    text_similarity: float | None = Field(description="BM25 over the best BM25 of the question.")
    fused: float
    length_factor: float = Field(description="What a text of several passages keeps of it.")
    rrf_score: float | None
    ce_score: float | None = Field(description="Probability of the reranker.")
    vector_rank: int | None
    encoder_rank: int | None
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
    named: tuple[str, ...] = Field(description="Entities of it that the question names.")
    wilson_score: float
    uses: int
    created_at: datetime
    updated_at: datetime


class DatagovView(bases.Answer):
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
    fields: tuple[str, ...] = Field(description="Names of columns.")
    flags: tuple[str, ...]
    url: str | None
    error: str | None

    @staticmethod
    def body(source: Source) -> dict[str, Any] | None:
        """The catalogue's facts in one shape: a user's own may be of any type."""
        facts = source.datagov
        if facts is None:
            return None
        found: dict[str, Any] = {
            name: value if isinstance(value := facts.get(name), str) else None
            for name in DatagovView.model_fields
        }
        records, fields = facts.get("total_records"), facts.get("fields")
        return found | {
            "total_records": records if type(records) is int else None,
            "fields": [str(one) for one in fields] if isinstance(fields, list | tuple) else [],
            "flags": flag_names(source),
        }


class PassageView(bases.Answer):
    """What of a long text answers: its characters `start` to `end`."""

    text: str
    start: int
    end: int


class HitView(bases.Answer):
    """One result; position starts at 1, `score` is `score_summary.final_score`."""

    position: int
    memory_id: str
    tier: str
    subject_id: str | None = Field(description="Whom it is about; the user's own id or another.")
    perspective_owner_id: str | None = Field(description="Who told it; the same.")
    topics: tuple[str, ...]
    content: str
    preview: str = Field(description="About 200 characters.")
    passage: PassageView | None = bases.absent("Left out: the whole text is one.")
    outdated_by: str | None = bases.absent(
        "A newer hit above that gives another value for the same thing."
    )
    created_at: datetime
    updated_at: datetime
    age: str = Field(description="For example `3 d`.")
    tags: tuple[str, ...]
    uses: int
    success_estimate: bases.EstimateView
    wilson_score: float = Field(description=bases.SHOWN_WILSON)
    score: float
    last_outcome: str | None
    source: SourceView
    citations: tuple[CitationView, ...]
    collapsed_ids: tuple[str, ...] = Field(description="Near-equal hits folded into this one.")
    datagov: DatagovView | None = Field(description="Null: not of the open-data catalogue.")
    score_summary: ScoreSummaryView


class StageErrorView(bases.Answer):
    """A stage that was skipped, and why."""

    stage: str
    message: str
    code: str


class DatagovUseView(bases.Answer):
    """Whether open data was searched, and why."""

    searched: bool
    guessed: bool = Field(description="By the words of the question alone; half a page at most.")
    reason: str | None = Field(description="`asked`, `filter`, or the rule of the words.")
    categories: tuple[str, ...] = Field(description="Topics in the words of a guess.")


class SearchDebugView(bases.Answer):
    """What the pipeline did."""

    confidence: Literal["high", "medium", "low"]
    relevance: float
    best_rejected: float | None
    stage_timings_ms: dict[str, float] = Field(
        description="Each instant counts for one stage: the sum is the time of the search."
    )
    fallbacks_used: tuple[str, ...]
    errors: tuple[StageErrorView, ...]
    vector_stage_status: Literal["ok", "failed"]
    recipe: str
    sort_by: str
    tiers: tuple[str, ...]
    language: str
    expansions: tuple[str, ...]
    datagov: DatagovUseView


class SearchAnswerView(bases.Success):
    """`degraded` names the stages that were skipped; empty when all ran."""

    receipt_id: str | None
    results: tuple[HitView, ...]
    total: int
    abstained: bool
    confidence: Literal["high", "medium", "low"]
    knows: Literal["yes", "no", "unsure"] = Field(
        "unsure",
        description="Whether memory knows anything of the question; its best hits are listed "
        "whatever it says. Explain gives the reason.",
    )
    debug: SearchDebugView
    retrieval_debug: SearchDebugView | None = bases.absent(
        "`debug` once more, only for the first client (`compat.first_client`).",
        alias="retrievalDebug",
    )
    answered_by: int | None = bases.absent(
        "With `read`: the position of the hit that answers, as the model says."
    )
    suggestions: tuple[str, ...] | None = bases.absent(
        "Where nothing was found: the question in a spelling that memory knows."
    )
    has_more: bool = Field(alias="hasMore")
    next_offset: int | None = Field(alias="nextOffset")

    @property
    def ids(self) -> tuple[str, ...]:
        """Memory ids, best first."""
        return tuple(hit.memory_id for hit in self.results)

    @property
    def stage_timings_ms(self) -> dict[str, float]:
        """Milliseconds per stage as the server measured them; they add up to `server_ms`."""
        return self.debug.stage_timings_ms

    @property
    def server_ms(self) -> float | None:
        """Milliseconds that the search took on the server; None when it does not say."""
        timings = self.stage_timings_ms
        return sum(timings.values()) if timings else None


class OutcomeCounts(bases.Outcomes):
    """Outcomes so far."""


class RecentView(bases.Answer):
    """A line of the recent list."""

    memory_id: str
    content: str = bases.path("text")
    tier: bases.TierWord
    status: str
    success_estimate: bases.Estimate = bases.path("stats")
    wilson_score: bases.ShownWilson = bases.path("stats", description=bases.SHOWN_WILSON)
    score: float = bases.path("stats.score")
    uses: int = bases.path("stats.uses")
    created_at: datetime
    updated_at: datetime
    tags: tuple[str, ...]
    outcomes: OutcomeCounts = bases.path("stats")
    last_used: datetime | None = bases.path("stats.last_outcome_at")
    source: SourceView


class RecentAnswer(bases.Success):
    """The recent list."""

    memories: tuple[RecentView, ...]


# The search is the hot path: its answer is written as plain values in the shape of
# `SearchAnswerView`, which costs a third of building the models.

# What the pipeline says of a hit; the rest of `ScoreSummaryView` comes from the memory.
SCORES = tuple(one.name for one in fields(ScoreSummary))
_scores = attrgetter(*SCORES)
SOURCE = tuple(name for name in SourceView.model_fields if name != "category")
_source = attrgetter(*SOURCE)
VECTOR_CODES = frozenset({EmbedderDown.default_code, IndexDown.default_code})


def hit_body(hit: Hit, now: datetime, documents: bool) -> dict[str, Any]:
    """A `HitView`."""
    item, summary, stats = hit.item, hit.summary, hit.item.stats
    source, tier = item.source, tier_name(item.tier, documents)
    estimate = success_estimate(stats.success_count, stats.uses)
    citation = {"source_type": source.type, "memory_id": item.memory_id, "tier": tier}
    shared = {
        "wilson_score": stats.wilson_score,
        "uses": stats.uses,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }
    passage: dict[str, Any] = {}
    if hit.passage is not None:
        start, end = hit.passage
        passage = {"passage": {"text": hit.text, "start": start, "end": end}}
    outdated = {"outdated_by": hit.outdated_by} if hit.outdated_by is not None else {}
    return (
        shared
        | passage
        | outdated
        | {
            "position": hit.position,
            "memory_id": item.memory_id,
            "tier": tier,
            "subject_id": item.subject_id,
            "perspective_owner_id": item.perspective_owner_id,
            "topics": item.topics,
            "content": item.text,
            "preview": bases.preview(hit.text),
            "age": age(item.created_at, now),
            "tags": item.tags,
            "success_estimate": estimate,
            "wilson_score": estimate.value,
            "score": summary.final_score,
            "last_outcome": stats.last_outcome,
            "source": dict(zip(SOURCE, _source(source), strict=True))
            | {"category": (source.datagov or {}).get("category")},
            "citations": [citation | ({"doc_id": source.doc_id} if source.doc_id else {})],
            "collapsed_ids": hit.collapsed_ids,
            "datagov": DatagovView.body(source),
            "score_summary": dict(zip(SCORES, _scores(summary), strict=True)) | shared,
        }
    )


def search_body(
    found: SearchAnswer,
    now: datetime,
    documents: bool,
    *,
    first_client: bool = False,
    suggestions: tuple[str, ...] = (),
) -> dict[str, Any]:
    """A `SearchAnswerView`."""
    lost_vectors = any(error.code in VECTOR_CODES for error in found.errors)
    debug = {
        "confidence": found.confidence,
        "relevance": found.relevance,
        "best_rejected": found.best_rejected,
        "stage_timings_ms": found.timings_ms,
        "fallbacks_used": found.degraded,
        "errors": found.errors,
        "vector_stage_status": "failed" if lost_vectors else "ok",
        "recipe": found.recipe,
        "sort_by": found.sort_by,
        "tiers": [tier_name(tier, documents) for tier in found.tiers],
        "language": found.language,
        "expansions": found.expansions,
        "datagov": {
            "searched": found.datagov.searched,
            "guessed": found.datagov.guessed,
            "reason": found.datagov.reason or None,
            "categories": found.datagov.categories,
        },
    }
    return {
        "success": True,
        "receipt_id": found.receipt_id,
        "results": [hit_body(hit, now, documents) for hit in found.hits],
        "total": found.total,
        "abstained": found.abstained,
        "confidence": found.confidence,
        "knows": found.knowledge.known,
        "degraded": found.degraded,
        "debug": debug,
        **({"retrievalDebug": debug} if first_client else {}),
        **({"answered_by": found.answered_by} if found.answered_by is not None else {}),
        **({"suggestions": suggestions} if suggestions else {}),
        "hasMore": found.next_offset is not None,
        "nextOffset": found.next_offset,
    }
