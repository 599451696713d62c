"""Types of the arguments of tools, and a reading of them that forgives what is unambiguous.

Small models send numbers as strings, one value for a list, a list as text. What means one thing
only is taken; anything else is a ValueError whose sentence says what to send.
"""

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from rayapp.core.ids import MEMORY_ID_PATTERN
from rayapp.memory.item import Outcome
from rayapp.memory.rules.creation import MAX_LABEL_CHARS, MAX_TAGS
from rayapp.memory.scope import LAST_PAGE
from rayapp.memory.tiers import CORE_TIERS, TIER_ALIASES, Tier, parse_tier, tier_name
from rayapp.search.requests import SortMode
from rayapp.text.normalize import find_forbidden, shows_nothing, without_marks

T = TypeVar("T")

YES = frozenset({"true", "yes", "1", "on", "כן", "אמת"})
NO = frozenset({"false", "no", "0", "off", "לא", "שקר"})
OUTCOME_SYNONYMS = {
    **dict.fromkeys(("success", "successful", "helped", "helpful", "good", "👍"), "worked"),
    **dict.fromkeys(("עבד", "עבדה", "הצליח", "הצליחה", "הצלחה", "עזר", "עזרה"), "worked"),
    **dict.fromkeys(("failure", "fail", "wrong", "bad", "👎"), "failed"),
    **dict.fromkeys(("נכשל", "נכשלה", "כישלון", "שגוי", "שגויה"), "failed"),
    **dict.fromkeys(("לא עבד", "לא עבדה", "לא עזר", "לא עזרה"), "failed"),
    **dict.fromkeys(("partly", "partially", "חלקי", "חלקית"), "partial"),
    **dict.fromkeys(("unclear", "neutral", "➖", "לא ידוע"), "unknown"),
}
SORT_SYNONYMS = {
    **dict.fromkeys(("relevant",), "relevance"),
    **dict.fromkeys(("recent", "newest", "latest", "date", "time"), "recency"),
    **dict.fromkeys(("best", "rating"), "score"),
}
# The largest number in a text that is read as one; longer digits are no count of anything.
_NUMBER = re.compile(r"[+-]?\d{1,9}(\.\d{1,9})?")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%")
# `3`, `[3]`, `#3`, `(3)`: how models repeat the number of a result.
_POSITION = re.compile(r"[\[#(]?\s*(\d{1,5})\s*[\])]?")
MAX_POSITION = 10_000
# Memories of one call: as many as one outcome may name.
MAX_REFERENCES = 200
# Results of one search tool call (client contract).
DEFAULT_RESULTS = 5
MAX_RESULTS = 20


def read_text(value: Any) -> str:
    """Any text that is not blank; the longest one is a bound of the field."""
    if not isinstance(value, str):
        raise ValueError("must be text")
    if shows_nothing(value):
        raise ValueError("is blank; say something")
    return _clean(value.strip())


def read_count(value: Any) -> int:
    """A number of results; above the most it is the most: more was wanted than there is."""
    number = _number(value)
    if number is None or not number.is_integer():
        raise ValueError(f"must be a whole number from 1 to {MAX_RESULTS}")
    if number < 1:
        raise ValueError("must be at least 1")
    return int(min(number, MAX_RESULTS))


def read_page(value: Any) -> int:
    """The number of a page."""
    number = _number(value)
    if number is None or not number.is_integer() or not 1 <= number <= LAST_PAGE:
        raise ValueError(f"must be the number of a page, from 1 to {LAST_PAGE}")
    return int(number)


def read_names(value: Any) -> tuple[str, ...]:
    """Titles, headings or ids, whole: a comma is part of a title."""
    value = _decode(value)
    many = value if isinstance(value, list | tuple) else [value]
    return tuple(dict.fromkeys(read_text(one) for one in many))


def whole_number(value: Any) -> int | None:
    """A number of whatever size; None where there is none."""
    number = _number(value)
    return None if number is None else int(number)


def read_share(value: Any) -> float:
    """0 to 1; `80%` is 0.8."""
    percent = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    number = float(percent[1]) / 100 if percent else _number(value)
    if number is None or not 0.0 <= number <= 1.0:
        raise ValueError("must be a number from 0 to 1")
    return number


def read_flag(value: Any) -> bool:
    word = value.strip().lower() if isinstance(value, str) else None
    if value in (True, 1) or word in YES:
        return True
    if value in (False, 0) or word in NO:
        return False
    raise ValueError("must be true or false")


def read_outcome(value: Any) -> str:
    return _word(value, Outcome, OUTCOME_SYNONYMS)


def read_sort(value: Any) -> str:
    return _word(value, get_args(SortMode), SORT_SYNONYMS)


def read_tags(value: Any) -> tuple[str, ...]:
    """Short labels in any script; a text is one label, or several with commas between."""
    found = []
    for one in _as_list(value):
        if not isinstance(one, str):
            raise ValueError("must be a list of texts")
        label = _clean(one.strip().lstrip("#").strip())
        if len(label) > MAX_LABEL_CHARS:
            raise ValueError(f"holds a tag of more than {MAX_LABEL_CHARS} characters")
        if label:
            found.append(label)
    if len(found) > MAX_TAGS:
        raise ValueError(f"holds {len(found)} tags; send at most {MAX_TAGS}")
    return tuple(dict.fromkeys(found))


def read_tiers(value: Any) -> tuple[Tier, ...]:
    """Tiers to search; `all` is the five core ones, and so is leaving it out."""
    found: list[Tier] = []
    for one in _as_list(value):
        name = re.sub(r"[\s-]+", "_", one.strip().lower()) if isinstance(one, str) else ""
        tier = parse_tier(name)
        if name == "all":
            found.extend(CORE_TIERS)
        elif tier is not None:
            found.append(tier)
        else:
            names = ", ".join([*Tier, *TIER_ALIASES, "all"])
            raise ValueError(f"names no tier; the tiers are {names}")
    if not found:
        raise ValueError("is empty; leave it out to search all tiers")
    return tuple(dict.fromkeys(found))


def tiers_schema(documents: bool) -> WithJsonSchema:
    """`documents`: the name of the books tier in it (`tier_name`); both names are read."""
    names = [*(tier_name(tier, documents) for tier in Tier), "all"]
    items = {"type": "string", "enum": names}
    return WithJsonSchema({"type": "array", "items": items, "minItems": 1})


def read_references(value: Any) -> tuple[int | str, ...]:
    """Numbers and ids, mixed. An empty list means none of them."""
    return _counted(dict.fromkeys(read_reference(one) for one in _as_list(value)))


def read_scores(value: Any) -> list[dict[str, Any]]:
    """Memories with an outcome each; an object of number or id and outcome is read as well."""
    value = _decode(value)
    rows: Sequence[Any]
    if isinstance(value, Mapping) and not _names_one(value):
        rows = [{"memory": memory, "outcome": outcome} for memory, outcome in value.items()]
    elif isinstance(value, Mapping):
        rows = [value]
    else:
        rows = value if isinstance(value, list | tuple) else []
    found = [pair for row in rows for pair in _pairs(row)]
    if not found:
        raise ValueError('must be a list such as [{"memory": 1, "outcome": "worked"}]')
    pairs = dict.fromkeys(_counted(found))
    return [{"memory": memory, "outcome": outcome} for memory, outcome in pairs]


def _pairs(row: Any) -> list[tuple[int | str, str]]:
    if not isinstance(row, Mapping):
        raise ValueError('must hold objects such as {"memory": 1, "outcome": "worked"}')
    named = next((row[name] for name in _MEMORY_NAMES if row.get(name) is not None), None)
    given = next((row[name] for name in _OUTCOME_NAMES if row.get(name) is not None), None)
    if named is None or given is None:
        raise ValueError("needs a memory and an outcome in each entry")
    outcome = read_outcome(given)
    return [(read_reference(one), outcome) for one in _as_list(named)]


_MEMORY_NAMES = ("memory", "memory_id", "memoryId", "position", "positions", "id", "related")
_OUTCOME_NAMES = ("outcome", "score", "result", "rating")


def read_reference(value: Any) -> int | str:
    """A position (from 1) or a memory id."""
    if isinstance(value, str):
        named = value.strip()
        number = _POSITION.fullmatch(named)
        if number is None:
            inner = named.removeprefix("[").removesuffix("]")
            if MEMORY_ID_PATTERN.fullmatch(inner):
                return inner
        else:
            value = int(number[1])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_POSITION:
        return value
    raise ValueError("must be the number of a search result (from 1) or a memory id")


def _names_one(value: Mapping[str, Any]) -> bool:
    """True for one entry that came without its list."""
    return any(name in value for name in _MEMORY_NAMES) and any(n in value for n in _OUTCOME_NAMES)


def _decode(value: Any) -> Any:
    """The list or object that a text is the JSON of, else the value itself."""
    if isinstance(value, str) and value.strip()[:1] in {"[", "{"}:
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return found if isinstance(found, list | dict) else value
    return value


def _as_list(value: Any) -> list[Any]:
    """A list as it is; a text as its parts; anything else as the one thing in a list."""
    value = _decode(value)
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str):
        return [part for part in re.split(r"[,;\n]", value) if part.strip()]
    if isinstance(value, Mapping):
        raise ValueError("must be a list")
    return [value]


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        text = value.strip()
        return float(text) if _NUMBER.fullmatch(text) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _word(value: Any, names: Iterable[str], synonyms: Mapping[str, str]) -> str:
    """One of a few names; `synonyms` are other words for them, in both languages."""
    # Programs that write Hebrew put marks of direction around a word.
    word = without_marks(value).strip().lower() if isinstance(value, str) else ""
    word = synonyms.get(word, word)
    if word not in list(names):
        raise ValueError(f"must be one of {', '.join(names)}")
    return word


def _counted(found: Collection[T]) -> tuple[T, ...]:
    if len(found) > MAX_REFERENCES:
        raise ValueError(f"names {len(found)} memories; send at most {MAX_REFERENCES}")
    return tuple(found)


def _clean(text: str) -> str:
    forbidden = find_forbidden(text)
    if forbidden:
        raise ValueError(f"holds a {forbidden}; remove it")
    return text


Text = Annotated[str, Field(min_length=1), BeforeValidator(read_text)]
Count = Annotated[int, Field(ge=1, le=MAX_RESULTS), BeforeValidator(read_count)]
Page = Annotated[int, Field(ge=1), BeforeValidator(read_page)]
Names = Annotated[tuple[str, ...], Field(max_length=MAX_TAGS), BeforeValidator(read_names)]
Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(read_share)]
Flag = Annotated[bool, BeforeValidator(read_flag)]
OutcomeWord = Annotated[
    Outcome,
    BeforeValidator(read_outcome),
    WithJsonSchema({"type": "string", "enum": [one.value for one in Outcome]}),
]
SortWord = Annotated[SortMode, BeforeValidator(read_sort)]
Tags = Annotated[tuple[str, ...], Field(max_length=MAX_TAGS), BeforeValidator(read_tags)]
Tiers = Annotated[tuple[Tier, ...], BeforeValidator(read_tiers)]
# One memory: its number in the last search of the conversation, or its id.
Reference = Annotated[int, Field(ge=1)] | str
MemoryRef = Annotated[Reference, BeforeValidator(read_reference)]
MemoryRefs = Annotated[
    tuple[Reference, ...], Field(max_length=MAX_REFERENCES), BeforeValidator(read_references)
]


class Score(BaseModel):
    """A memory and what became of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory: Reference = Field(description="Number of the search result, or memory id.")
    outcome: OutcomeWord


Scores = Annotated[
    tuple[Score, ...], Field(min_length=1, max_length=MAX_REFERENCES), BeforeValidator(read_scores)
]
