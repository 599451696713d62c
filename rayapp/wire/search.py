"""Body of a search, and the query fields of the recent list that shares its path."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from rayapp.datagov.rules.filter_names import category_slug
from rayapp.memory.tiers import DATAGOV_ANSWERS
from rayapp.search.requests import SearchQuery, SortMode
from rayapp.wire.bases import (
    MAX_OFFSET,
    MAX_PAGE,
    Flag,
    Lenient,
    Share,
    Strict,
    UtcTime,
    Whole,
)
from rayapp.wire.filters import CategorySlug, Filters, TierList

ALIASES = {
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
    SortMode,
    BeforeValidator(_sort),
    Field(description="`recent` is another name of `recency`."),
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


class SearchBody(Strict):
    """A question, and what may answer it. The largest `limit` is the setting search.max_limit."""

    query: str = Field(min_length=1, description="The question, in any language.")
    limit: Annotated[Whole, Field(ge=1)] | None = Field(
        None, description="Hits; estimated from the question when absent."
    )
    offset: Annotated[Whole, Field(ge=0, le=MAX_OFFSET)] = Field(
        0, description="Hits to skip; `skip` is another name."
    )
    tiers: TierList | None = Field(None, description='Tiers, or "all": the five core tiers.')
    sort_by: Sort | None = Field(None, description="Order; the recipe's when absent.")
    filters: Filters | None = Field(None, description="Conditions on the memories.")
    min_confidence: Literal["high", "medium", "low"] | None = Field(
        None, description="Abstain below this confidence."
    )
    min_relevance: Share | None = Field(
        None,
        description="Leave out hits whose `score_summary.relevance`, a probability from 0 to 1, "
        "is below this. 0 leaves nothing out, and fills that field.",
    )
    named_only: Flag = Field(
        False,
        description="Only memories one of whose entities the question names, whatever else it "
        "says; `score_summary.named` says which.",
    )
    include_datagov: Flag | None = Field(
        None,
        description="Also search open data. When absent, a filter on it or the words of the "
        "question decide; `debug.datagov` says so.",
    )
    datagov_categories: Categories | None = None
    as_of: UtcTime | None = Field(None, description="Answer as of this time; naive is UTC.")
    recipe: Handle | None = Field(None, description="Ranking recipe; the default when absent.")
    conversation_id: Annotated[str, Field(min_length=1, max_length=512)] | None = Field(
        None, description="Conversation the question comes from; kept in the receipt."
    )

    def search_query(self) -> SearchQuery:
        tiers, datagov, more = self.tiers, self.include_datagov, {}
        filters = self.filters or Filters.model_construct()
        if self.datagov_categories is not None:
            # A category exists on DataGov memories only: asking for one asks for those tiers.
            datagov, more = True, {"categories": _both(self.datagov_categories, filters.categories)}
            tiers = DATAGOV_ANSWERS if tiers is None else tiers
        return SearchQuery(
            query=self.query,
            limit=self.limit,
            offset=self.offset,
            tiers=tiers,
            sort_by=self.sort_by,
            where=filters.item_filter(**more),
            min_confidence=self.min_confidence,
            min_relevance=self.min_relevance,
            named_only=self.named_only,
            include_datagov=datagov,
            as_of=self.as_of,
            recipe=self.recipe,
            conversation_id=self.conversation_id,
        )


def _both(one: tuple[str, ...], other: tuple[str, ...] | None) -> tuple[str, ...]:
    return one if other is None else tuple(slug for slug in one if slug in other)


def _list_sort(value: Any) -> Any:
    return {"recency": "recent", "relevance": "recent"}.get(value, value)


class RecentQuery(Lenient):
    """Query fields of the recent list."""

    tiers: TierList | None = None
    sort_by: Annotated[Literal["recent", "score"], BeforeValidator(_list_sort)] = Field(
        "recent", description="Newest first, or best score first; `recency` is `recent`."
    )
    limit: int = Field(100, ge=1, le=MAX_PAGE, description="Memories in the answer.")
    offset: int = Field(0, ge=0, le=MAX_OFFSET, description="Memories to skip.")
    query: Annotated[str, Field(max_length=4_000)] | None = Field(
        None, description="Only memories with these words."
    )
    include_datagov: bool = Field(False, description="Also the catalogue of DataGov.")
    datagov_categories: AnyCategories | None = None
