"""Arguments of tools: their JSON Schema, and a reading that forgives what is unambiguous.

Small models send numbers as strings, one value for a list, a list as text. What means one thing
only is taken; anything else is refused with one sentence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rayapp.core.ids import MEMORY_ID_PATTERN
from rayapp.memory.rules.creation import MAX_LABEL_CHARS, MAX_TAGS
from rayapp.memory.tiers import CORE_TIERS, TIER_ALIASES, Tier, parse_tier, tier_name
from rayapp.text.normalize import find_forbidden

Schema = dict[str, Any]

YES = frozenset({"true", "yes", "1", "on", "כן", "אמת"})
NO = frozenset({"false", "no", "0", "off", "לא", "שקר"})
# The largest number in a text that is read as one; longer digits are no count of anything.
_NUMBER = re.compile(r"[+-]?\d{1,9}(\.\d{1,9})?")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%")
# `3`, `[3]`, `#3`, `(3)`: how models repeat the number of a result.
_POSITION = re.compile(r"[\[#(]?\s*(\d{1,5})\s*[\])]?")
MAX_POSITION = 10_000
# Memories of one call: as many as one outcome may name.
MAX_REFERENCES = 200

Reference = int | str


class Refused(ValueError):
    """The value means nothing, or more than one thing; the message says what to send."""


class Kind(Protocol):
    """What values an argument takes."""

    def schema(self) -> Schema: ...
    def read(self, value: Any) -> Any:
        """The value; Refused when it cannot be one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument. `default` is what its absence means, where the schema can say it."""

    name: str
    text: str
    kind: Kind
    required: bool = False
    default: Any = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """Any text that is not blank."""

    max_chars: int

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1, "maxLength": self.max_chars}

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise Refused("must be text")
        text = value.strip()
        if not text:
            raise Refused("is blank; say something")
        if len(text) > self.max_chars:
            raise Refused(f"has {len(text)} characters; send at most {self.max_chars}")
        return _clean(text)


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number; above `high` it is `high`, because more was wanted than there is."""

    low: int
    high: int

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def read(self, value: Any) -> int:
        number = _number(value)
        if number is None or not number.is_integer():
            raise Refused(f"must be a whole number from {self.low} to {self.high}")
        if number < self.low:
            raise Refused(f"must be at least {self.low}")
        return int(min(number, self.high))


@dataclass(frozen=True, slots=True)
class Share:
    """0 to 1; `80%` is 0.8."""

    def schema(self) -> Schema:
        return {"type": "number", "minimum": 0, "maximum": 1}

    def read(self, value: Any) -> float:
        percent = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
        number = float(percent[1]) / 100 if percent else _number(value)
        if number is None or not 0.0 <= number <= 1.0:
            raise Refused("must be a number from 0 to 1")
        return number


@dataclass(frozen=True, slots=True)
class Flag:
    """Yes or no."""

    def schema(self) -> Schema:
        return {"type": "boolean"}

    def read(self, value: Any) -> bool:
        word = value.strip().lower() if isinstance(value, str) else None
        if value in (True, 1) or word in YES:
            return True
        if value in (False, 0) or word in NO:
            return False
        raise Refused("must be true or false")


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few names; `synonyms` are other words for them, in both languages."""

    names: tuple[str, ...]
    synonyms: Mapping[str, str] = field(default_factory=dict)

    def schema(self) -> Schema:
        return {"type": "string", "enum": list(self.names)}

    def read(self, value: Any) -> str:
        word = value.strip().lower() if isinstance(value, str) else ""
        word = self.synonyms.get(word, word)
        if word not in self.names:
            raise Refused(f"must be one of {', '.join(self.names)}")
        return word


@dataclass(frozen=True, slots=True)
class Tags:
    """Short labels in any script; a text is one label, or several with commas between."""

    examples: tuple[str, ...] = ()

    def schema(self) -> Schema:
        schema: Schema = {"type": "array", "items": {"type": "string"}, "maxItems": MAX_TAGS}
        return schema | {"examples": [list(self.examples)]} if self.examples else schema

    def read(self, value: Any) -> tuple[str, ...]:
        found = []
        for one in _listed(value):
            if not isinstance(one, str):
                raise Refused("must be a list of texts")
            label = _clean(one.strip().lstrip("#").strip())
            if len(label) > MAX_LABEL_CHARS:
                raise Refused(f"holds a tag of more than {MAX_LABEL_CHARS} characters")
            if label:
                found.append(label)
        if len(found) > MAX_TAGS:
            raise Refused(f"holds {len(found)} tags; send at most {MAX_TAGS}")
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Tiers:
    """Tiers to search; `all` is the five core ones, and so is leaving it out.

    `documents`: the name of the books tier in the schema (`tier_name`); both are read.
    """

    documents: bool = False

    def schema(self) -> Schema:
        names = [*(tier_name(tier, self.documents) for tier in Tier), "all"]
        return {"type": "array", "items": {"type": "string", "enum": names}, "minItems": 1}

    def read(self, value: Any) -> tuple[Tier, ...]:
        found: list[Tier] = []
        for one in _listed(value):
            name = re.sub(r"[\s-]+", "_", one.strip().lower()) if isinstance(one, str) else ""
            tier = parse_tier(name)
            if name == "all":
                found.extend(CORE_TIERS)
            elif tier is not None:
                found.append(tier)
            else:
                names = ", ".join([*Tier, *TIER_ALIASES, "all"])
                raise Refused(f"names no tier; the tiers are {names}")
        if not found:
            raise Refused("is empty; leave it out to search all tiers")
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class MemoryRef:
    """One memory: its number in the last search of the conversation, or its id."""

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}

    def read(self, value: Any) -> Reference:
        return read_reference(value)


@dataclass(frozen=True, slots=True)
class MemoryRefs:
    """Numbers and ids, mixed. An empty list means none of them."""

    def schema(self) -> Schema:
        return {"type": "array", "items": MemoryRef().schema(), "maxItems": MAX_REFERENCES}

    def read(self, value: Any) -> tuple[Reference, ...]:
        found = tuple(dict.fromkeys(read_reference(one) for one in _listed(value)))
        if len(found) > MAX_REFERENCES:
            raise Refused(f"names {len(found)} memories; send at most {MAX_REFERENCES}")
        return found


@dataclass(frozen=True, slots=True)
class Scores:
    """Memories with an outcome each; an object of number or id and outcome is read as well."""

    outcomes: OneOf

    def schema(self) -> Schema:
        one = {
            "type": "object",
            "properties": {
                "memory": MemoryRef().schema()
                | {"description": "Number of the search result, or memory id."},
                "outcome": self.outcomes.schema(),
            },
            "required": ["memory", "outcome"],
            "additionalProperties": False,
        }
        return {"type": "array", "items": one, "minItems": 1, "maxItems": MAX_REFERENCES}

    def read(self, value: Any) -> tuple[tuple[Reference, str], ...]:
        value = _decoded(value)
        rows: Sequence[Any]
        if isinstance(value, Mapping):
            rows = [value] if _names_one(value) else [_row(k, v) for k, v in value.items()]
        else:
            rows = value if isinstance(value, list | tuple) else []
        found = [pair for row in rows for pair in self._pairs(row)]
        if not found:
            raise Refused('must be a list such as [{"memory": 1, "outcome": "worked"}]')
        if len(found) > MAX_REFERENCES:
            raise Refused(f"names {len(found)} memories; send at most {MAX_REFERENCES}")
        return tuple(dict.fromkeys(found))

    def _pairs(self, row: Any) -> list[tuple[Reference, str]]:
        if not isinstance(row, Mapping):
            raise Refused('must hold objects such as {"memory": 1, "outcome": "worked"}')
        named = next((row[name] for name in _MEMORY_NAMES if row.get(name) is not None), None)
        given = next((row[name] for name in _OUTCOME_NAMES if row.get(name) is not None), None)
        if named is None or given is None:
            raise Refused("needs a memory and an outcome in each entry")
        outcome = self.outcomes.read(given)
        return [(read_reference(one), outcome) for one in _listed(named)]


_MEMORY_NAMES = ("memory", "memory_id", "memoryId", "position", "positions", "id", "related")
_OUTCOME_NAMES = ("outcome", "score", "result", "rating")


def read_reference(value: Any) -> Reference:
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
    raise Refused("must be the number of a search result (from 1) or a memory id")


def _row(memory: Any, outcome: Any) -> dict[str, Any]:
    return {"memory": memory, "outcome": outcome}


def _names_one(value: Mapping[str, Any]) -> bool:
    """True for one entry that came without its list."""
    return any(name in value for name in _MEMORY_NAMES) and any(n in value for n in _OUTCOME_NAMES)


def _decoded(value: Any) -> Any:
    """The list or object that a text is the JSON of, else the value itself."""
    if isinstance(value, str) and value.strip()[:1] in {"[", "{"}:
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return found if isinstance(found, list | dict) else value
    return value


def _listed(value: Any) -> list[Any]:
    """A list as it is; a text as its parts; anything else as the one thing in a list."""
    value = _decoded(value)
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str):
        return [part for part in re.split(r"[,;\n]", value) if part.strip()]
    if isinstance(value, Mapping):
        raise Refused("must be a list")
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


def _clean(text: str) -> str:
    forbidden = find_forbidden(text)
    if forbidden:
        raise Refused(f"holds a {forbidden}; remove it")
    return text
