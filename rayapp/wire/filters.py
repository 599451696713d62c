"""The `filters` object of a search and the query fields of a list: both become an ItemFilter."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from rayapp.datagov.rules.categories import CATEGORIES
from rayapp.datagov.rules.filter_names import (
    category_slug,
    flag_spellings,
    format_spellings,
    nearest_category,
)
from rayapp.memory.item import SourceType
from rayapp.memory.paging import SortKey
from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import CORE_TIERS
from rayapp.text.language import Language
from rayapp.wire.bases import (
    MAX_FILTER_VALUES,
    MAX_ID_CHARS,
    MAX_PAGE,
    Flag,
    Name,
    Strict,
    TierName,
    UtcTime,
    Values,
)

ALL_TIERS = "all"


def _tier_list(value: Any) -> Any:
    """`"all"` and a single name are accepted where a list is; "all" is the five core tiers."""
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and ALL_TIERS in names:
        return list(CORE_TIERS) if len(names) == 1 else names
    return names


TierList = Annotated[
    tuple[TierName, ...],
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


def _trimmed(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names))


CategorySlug = Annotated[
    str,
    Field(max_length=MAX_ID_CHARS),
    AfterValidator(known_category),
]
CategoryNames = Annotated[tuple[CategorySlug, ...], Field(max_length=MAX_FILTER_VALUES)]


class Filters(Strict):
    """Conditions joined by AND; a list matches any of its values, an empty one matches nothing."""

    tags: Values | None = Field(None, description="Any of these tags.")
    tags_all: Values | None = Field(
        None,
        min_length=1,
        description="All of these tags.",
        json_schema_extra={"minItems": 1},
    )
    entities: Values | None = Field(None, description="Any of these entities.")
    source_types: tuple[SourceType, ...] | None = Field(None, description="Kinds of source.")
    conversation_ids: Values | None = Field(None, description="Conversations.")
    tool_names: Values | None = Field(None, description="Tools.")
    doc_ids: Values | None = Field(None, description="Documents.")
    subject_ids: Values | None = Field(None, description="Whom the memory is about.")
    categories: CategoryNames | None = Field(
        None, description="DataGov categories: slugs, or their Hebrew or English names."
    )
    formats: Annotated[Values, AfterValidator(_format_values)] | None = Field(
        None, description="DataGov file formats, in any case."
    )
    organizations: Annotated[Values, AfterValidator(_trimmed)] | None = Field(
        None, description="DataGov organizations, by their whole names."
    )
    flags: Annotated[Values, AfterValidator(_flag_values)] | None = Field(
        None, description="DataGov flags, for example `has_phone` or `phone`."
    )
    langs: tuple[Language, ...] | None = Field(None, description="Languages.")
    created_from: UtcTime | None = Field(None, description="Created at or after; naive is UTC.")
    created_to: UtcTime | None = Field(None, description="Created before this; naive is UTC.")
    valid_at: UtcTime | None = Field(None, description="Valid at this time; naive is UTC.")
    always_inject: Flag | None = Field(None, description="Pinned, or not pinned.")
    include_superseded: Flag = Field(False, description="Also what a newer memory replaced.")

    def item_filter(self, **more: Any) -> ItemFilter:
        """As the domain value; `more` sets what the caller names elsewhere."""
        conditions: dict[str, Any] = {
            "tags_any": self.tags,
            "tags_all": self.tags_all,
            "entities_any": self.entities,
            "source_types": self.source_types,
            "conversation_ids": self.conversation_ids,
            "tool_names": self.tool_names,
            "doc_ids": self.doc_ids,
            "subject_ids": self.subject_ids,
            "categories": self.categories,
            "formats": self.formats,
            "organizations": self.organizations,
            "flags": self.flags,
            "langs": self.langs,
            "created_from": self.created_from,
            "created_to": self.created_to,
            "valid_at": self.valid_at,
            "always_inject": self.always_inject,
            "include_superseded": self.include_superseded,
        }
        return ItemFilter(**(conditions | more))


class ItemsQuery(Filters):
    """Query fields of the item list."""

    tiers: TierList | None = Field(None, description="Tiers; all seven when absent.")
    status: Literal["active", "archived"] = Field(
        "active", description="Active or archived memories."
    )
    sort: SortKey = Field("recent", description="Order, best first.")
    limit: int = Field(50, ge=1, le=MAX_PAGE, description="Memories on a page.")
    cursor: Annotated[str, Field(max_length=2_048)] | None = Field(
        None, description="`next_cursor` of the page before."
    )
    query: Name | None = Field(None, description="Only memories with these words.")
    with_total: bool = Field(False, description="Also count all that match.")
    always_inject: bool | None = Field(None, description="Pinned, or not pinned.")
    include_superseded: bool = Field(False, description="Also what a newer memory replaced.")
