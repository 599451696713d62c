"""From the text of an answer to the value asked for: tolerant of form, strict on content."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeVar, cast, get_origin

from pydantic import BaseModel, ValidationError

from rayapp.inference.chat.rules.tolerant_json import json_values

T = TypeVar("T")

_FENCED = re.compile(r"\A\s*```[^\n`]*\n(.*?)\n?```\s*\Z", re.DOTALL)
# Signs that close nothing and mean nothing, which `strip` does not know.
_INVISIBLE = "\ufeff\u200b\u200e\u200f\u2060"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """`reason` is for the model that gets another try, and for the log: no text of the answer."""

    reason: str


def read_answer(text: str, answer: type[T], *, cut: bool = False) -> T | Unreadable:
    """`text` as an `answer`: str, or a pydantic model.

    cut: the endpoint says that it stopped at the length limit. A cut text is no answer, because
    half a fact may say the opposite; of cut JSON the finished values count.
    """
    if answer is str:
        plain = plain_text(text)
        if cut:
            return Unreadable("The answer was cut off; give a shorter one.")
        return cast(T, plain) if plain else Unreadable("The answer is empty.")
    if not issubclass(answer, BaseModel):
        raise TypeError("an answer is str or a pydantic model")
    values = json_values(text)
    if not values:
        return Unreadable("The answer holds no JSON; answer with one JSON object only.")
    problem = ""
    # The last one first: models show an example or think aloud, then answer.
    for one in reversed(values):
        for shaped in shapes_of(one.value, answer):
            try:
                return cast(T, answer.model_validate(shaped))
            except ValidationError as error:
                problem = problem or _problem(error)
    return Unreadable(problem)


def plain_text(text: str) -> str:
    """Without a fence or quotes around all of it."""
    text = text.strip().strip(_INVISIBLE).strip()
    fenced = _FENCED.match(text)
    text = fenced.group(1).strip() if fenced else text
    for opener, closer in (('"', '"'), ("'", "'"), ("“", "”"), ("`", "`")):
        inner = text[1:-1]
        if len(text) > 1 and text[0] == opener and text[-1] == closer and closer not in inner:
            return inner.strip()
    return text


def shapes_of(value: Any, answer: type[BaseModel]) -> list[Any]:
    """What `value` may have meant: a bare array for the one list, one object in an array."""
    if isinstance(value, dict):
        wrapped = list(value.values())
        # {"result": {...}}: the answer under a name of the model's own.
        return [value, wrapped[0]] if len(value) == 1 and isinstance(wrapped[0], dict) else [value]
    required = [name for name, info in answer.model_fields.items() if info.is_required()]
    first = answer.model_fields[required[0]] if len(required) == 1 else None
    if first is not None and get_origin(first.annotation) is list:
        return [{required[0]: value}]
    return [value[0]] if isinstance(value, list) and len(value) == 1 else []


def _problem(error: ValidationError) -> str:
    """Names of fields and rules, never the values."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[:3]
    parts = [
        f"{'.'.join(str(part) for part in one['loc']) or 'answer'}: {one['msg']}" for one in found
    ]
    return f"The answer does not fit: {'; '.join(parts)}."
