"""Types and bases that the bodies and the answers share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationInfo,
)
from pydantic.alias_generators import to_camel

from rayapp.core.ids import MEMORY_ID_PATTERN, user_of
from rayapp.memory.rules.creation import MAX_LABEL_CHARS, MAX_TAGS
from rayapp.memory.rules.lifecycle import success_estimate
from rayapp.memory.tiers import TIER_ALIASES, Tier, parse_tier, tier_name
from rayapp.text.normalize import shows_nothing

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Far above the longest concept that a text yields, far below what a server takes in a URL.
MAX_CONCEPT_CHARS = 512


# Of one page, and how deep paging by offset goes; deeper paging takes a cursor.
MAX_PAGE = 200
MAX_OFFSET = 10_000
# Of a list that the first client shows whole: as much as its memory bank holds.
MAX_LIST = 1_000
MAX_FILTER_VALUES = 500
MAX_REASON_CHARS = 500
MAX_ID_CHARS = 512
MAX_MODEL_CHARS = 200
MAX_SUMMARY_CHARS = 10_000
BAD_ID = "must be 1 to 128 characters of letters, digits and . _ : @ -"
# Of a wrong value that an error names: enough to find it in a body.
MAX_ECHO_CHARS = 40


PREVIEW_CHARS = 200  # client contract


ValueT = TypeVar("ValueT", bound="DataclassInstance")


def preview(text: str, limit: int = PREVIEW_CHARS) -> str:
    """The start of a text, as lists and panels show it."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def camel(*names: str) -> dict[str, str]:
    """Other names of fields: those of the first client."""
    return {to_camel(name): name for name in names}


def optional(description: str, **more: Any) -> Any:
    """Of what is sent: a field that may be left out."""
    return Field(None, description=description, **more)


class Body(BaseModel):
    """What is sent, in a body or a query.

    `aliases`: other names of its fields. `read_apart`: a field whose items are read one by one.
    """

    aliases: ClassVar[Mapping[str, str]] = {}
    read_apart: ClassVar[str | None] = None

    def fill(self, kind: type[ValueT], **others: Any) -> ValueT:
        """A value of the domain: each field from the one of its name here, or from `others`."""
        names = {one.name for one in fields(kind)} & type(self).model_fields.keys()
        return kind(**({name: getattr(self, name) for name in names} | others))


class Strict(Body):
    """Our own routes: an unknown field is an error, because a misspelt filter must not widen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Lenient(Body):
    """Routes of the first client, which sends fields that mean nothing here."""

    model_config = ConfigDict(extra="ignore", frozen=True)


# The word that is typed before something is deleted for good.
CONFIRM = "DELETE"


class Confirmed(Body):
    """With the typed word."""

    confirm: str = Field("", max_length=MAX_ID_CHARS, description=f"The word {CONFIRM}.")


def is_none(value: object) -> bool:
    return value is None


# A field that is left out of an answer where there is nothing to say.
Absent = Field(default=None, exclude_if=is_none)


def absent(description: str, **more: Any) -> Any:
    """The same, described."""
    return Field(None, exclude_if=is_none, description=description, **more)


def path(attributes: str, *, alias: str | None = None, **more: Any) -> Any:
    """Of an answer: where its field stands in the value that it is built from (`stats.uses`). In
    JSON, which clients build answers from, nothing else may stand there. `alias`: its JSON name."""
    inside = AliasPath(*attributes.split("."))
    if alias is None:
        return Field(validation_alias=inside, **more)
    return Field(validation_alias=AliasChoices(inside, alias), serialization_alias=alias, **more)


# Of a write: the first answer again, by idempotency key.
Repeated = Annotated[bool | None, Field(exclude_if=is_none)]


class _Beside:
    """A value, and what is said of it beside its own attributes."""

    def __init__(self, value: object, others: Mapping[str, Any]) -> None:
        self.__dict__ |= {"_value": value, **others}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._value, name)


class Answer(BaseModel):
    """A shape of answers: routes build it, the API document shows it, the client reads it.

    A client may be older than the service, so fields that it does not know are dropped.
    """

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        from_attributes=True,
        validate_by_name=True,
        validate_by_alias=True,
        json_schema_serialization_defaults_required=True,
        json_schema_extra={"additionalProperties": False},
    )

    @classmethod
    def of(cls, value: object, documents: bool = False, /, **others: Any) -> Self:
        """Each field from `others`, or from the attribute of `value` that has its name; answers
        within from the values there. `documents`: the caller's name of the books tier."""
        return cls.model_validate(_Beside(value, others), context=documents)


class Camel(Answer):
    """A shape of the first client, all of whose names are in camel case."""

    model_config = ConfigDict(alias_generator=to_camel)


class Success(Answer):
    """`degraded` names the stages that were skipped."""

    success: Literal[True] = True
    degraded: tuple[str, ...] = ()


class Written(Success):
    """Of a write."""

    duplicate: Repeated = None


class BuiltIn(Answer):
    """Time to build the answer."""

    built_ms: float


class Outcomes(Answer):
    """Outcomes counted."""

    worked: int = path("worked_count")
    failed: int = path("failed_count")
    partial: int = path("partial_count")
    unknown: int = path("unknown_count")


class ErrorAnswer(Answer):
    """Every error. `error` and `message` hold the same sentence."""

    success: Literal[False]
    error: str = Field(description="One sentence that says what to do.")
    message: str
    code: str = Field(description="Stable name; the table of codes is in the description.")
    details: dict[str, Any] = Field(description="For example the field that was refused.")
    message_en: str | None = absent(
        "The English sentence, where `Accept-Language` asks for Hebrew."
    )
    duplicate: bool = Field(False, description="The first answer again, by idempotency key.")


class EstimateView(Answer):
    """How often the memory helps: the most likely share, and the 95 % interval it lies in."""

    value: float = Field(ge=0, le=1, description="No success lowers it, no failure raises it.")
    low: float = Field(ge=0, le=1)
    high: float = Field(ge=0, le=1)


def _tier_word(value: Any, info: ValidationInfo) -> Any:
    return tier_name(value, bool(info.context)) if isinstance(value, str) else value


def _estimate(value: Any) -> Any:
    """Of counters; as it is where it is known already."""
    known = getattr(value, "success_count", None)
    return value if known is None else success_estimate(known, value.uses)


def _estimated_value(value: Any) -> Any:
    return getattr(_estimate(value), "value", value)


# Of an answer: a tier as this caller names it; a text cut short; how often a memory helps, made of
# its counters.
TierWord = Annotated[str, BeforeValidator(_tier_word)]
Preview = Annotated[str, BeforeValidator(preview)]
Estimate = Annotated[EstimateView, BeforeValidator(_estimate)]
ShownWilson = Annotated[float, BeforeValidator(_estimated_value)]

# Where only the first client reads `wilson_score`, as a percentage (decision 0049).
SHOWN_WILSON = "For the first client, which shows it to people: `value` of `success_estimate`."


def _utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("must lie within the years 1 to 9999 in UTC") from None


def _only_text(value: Any) -> Any:
    # Digits alone would be read as seconds since 1970.
    if isinstance(value, datetime) or (isinstance(value, str) and "-" in value):
        return value
    raise ValueError("must be an ISO-8601 string such as 2026-05-01T09:30:00Z")


def _tier(value: Any) -> Any:
    tier = parse_tier(value) if isinstance(value, str) else None
    if tier is None:
        names = ", ".join([*Tier, *TIER_ALIASES])
        raise ValueError(f"{_shown(value)} is no tier; the tiers are {names}")
    return tier


def _shown(value: Any) -> str:
    """What was sent, short enough for a sentence."""
    text = value if isinstance(value, str) else repr(value)
    cut = text if len(text) <= MAX_ECHO_CHARS else f"{text[: MAX_ECHO_CHARS - 1]}…"
    return f"{cut!r}" if isinstance(value, str) else cut


def matching(pattern: re.Pattern[str], problem: str = BAD_ID) -> AfterValidator:
    """Refuses a text that is not of this form as a whole: `$` would let a trailing newline pass."""

    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(problem)
        return value

    return AfterValidator(check)


def _label(value: str) -> str:
    if shows_nothing(value):
        raise ValueError("must not be blank")
    return value


def comma_list(value: object) -> object:
    """`"a,b"`, as a URL holds a list, alone or in a list."""
    names = value if isinstance(value, list) else [value]
    if not all(isinstance(name, str) for name in names):
        return value
    return [part.strip() for name in names for part in str(name).split(",") if part.strip()]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


UtcTime = Annotated[datetime, BeforeValidator(_only_text), AfterValidator(_utc)]
TierName = Annotated[
    Tier,
    BeforeValidator(_tier),
    Field(
        json_schema_extra={"enum": [*(tier.value for tier in Tier), *TIER_ALIASES]},
        description="A tier; `documents` is another name of `books`.",
    ),
]
MemoryId = Annotated[
    str,
    matching(MEMORY_ID_PATTERN),
    Field(json_schema_extra={"pattern": "^[A-Za-z0-9._:@-]{1,128}$"}),
]
Label = Annotated[str, Field(max_length=MAX_LABEL_CHARS), AfterValidator(_label)]
Labels = Annotated[tuple[Label, ...], Field(max_length=MAX_TAGS)]
Values = Annotated[
    tuple[Annotated[str, Field(max_length=MAX_ID_CHARS)], ...], Field(max_length=MAX_FILTER_VALUES)
]
# Of an answer: the user as clients name it, without its tenant.
PlainUser = Annotated[str, AfterValidator(user_of)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
SubjectEdit = Annotated[str, Field(max_length=MAX_ID_CHARS)]
Flag = StrictBool
Whole = Annotated[int, Field(strict=True)]
OneOrMore = BeforeValidator(_as_list)

# What a key is made of, as it is checked and as it is documented.
IDEMPOTENCY_KEY_PATTERN = "^[!-~]{1,255}$"


class Keyed(Body):
    """A write with a key that makes a repeat of it safe."""

    idempotency_key: (
        Annotated[str, Field(json_schema_extra={"pattern": IDEMPOTENCY_KEY_PATTERN})] | None
    ) = Field(
        None,
        description="Wins over the `Idempotency-Key` header. The same key and body again get the "
        "first answer, marked `duplicate`.",
    )
