"""From what a model sent to the model of a tool."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import AliasChoices, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from rayapp.assistant.tools.rules.definitions import Tool
from rayapp.core.errors import InvalidInput
from rayapp.memory.item import MemoryItem
from rayapp.text.normalize import canonical, printable

# What programs wrap arguments in; unwrapped when nothing stands beside it.
WRAPPERS = ("arguments", "parameters", "input", "args", "kwargs")
# How models write that they leave an argument out.
NOTHING = frozenset({"", "null", "none", "undefined"})
# Characters of an unknown name that a refusal repeats: enough to find the mistake.
ECHO_CHARS = 40
# JSON within JSON: text of a text of an object, as nested tool proxies make it.
MAX_UNWRAPS = 3


T = TypeVar("T", bound=Tool)


def read_arguments(tool: type[T], sent: Mapping[str, Any] | str | None) -> T:
    """The arguments of one call.

    Raises InvalidInput: one sentence that names the argument; `details.field` is its name.
    """
    known = names_of(tool)
    values: dict[str, list[Any]] = {}
    for name, value in as_object(tool, sent).items():
        field = known.get(fold(name))
        if field is None:
            raise _unknown(tool, name)
        if not _nothing(tool.model_fields[field], value):
            values.setdefault(field, []).append(value)
    first = {field: given[0] for field, given in values.items()}
    found = _validate(tool, first)
    for field, given in values.items():
        if any(_validate(tool, first | {field: other}) != found for other in given[1:]):
            raise _refused(field, "is given twice with different values; send one")
    return found


def _validate(tool: type[T], values: Mapping[str, Any]) -> T:
    try:
        return tool.model_validate(values)
    except ValidationError as error:
        found = {str(one["loc"][0]): one for one in reversed(error.errors(include_url=False))}
    # What was sent comes before what is missing, in its order.
    field = next((name for name in values if name in found), None) or [*found][-1]
    raise _refused(field, _sentence(tool, found[field]))


def _sentence(tool: type[Tool], error: ErrorDetails) -> str:
    if error["type"] == "missing":
        return f"is missing; {tool.name} needs it"
    context = error["ctx"]
    if error["type"] == "too_long":
        noun = "characters" if isinstance(error["input"], str) else "entries"
        return f"has {context['actual_length']} {noun}; send at most {context['max_length']}"
    return str(context["error"])


@cache
def names_of(tool: type[Tool]) -> Mapping[str, str]:
    """Its arguments by every name that they have."""
    names: dict[str, str] = {}
    for name, field in tool.model_fields.items():
        aliases = field.validation_alias
        others = aliases.choices if isinstance(aliases, AliasChoices) else ()
        names |= {fold(one): name for one in (name, *others)}
    return names


def as_object(tool: type[Tool], sent: Any) -> Mapping[str, Any]:
    """The arguments as they came, unwrapped. InvalidInput: they are no object."""
    for _ in range(MAX_UNWRAPS):
        if sent is None:
            return {}
        if isinstance(sent, Mapping):
            inner = _wrapped(tool, sent)
            if inner is None:
                return sent
            sent = inner
        elif isinstance(sent, str):
            sent = _of_text(tool, sent)
        else:
            break
    raise _refused("arguments", "must be a JSON object")


def _wrapped(tool: type[Tool], sent: Mapping[str, Any]) -> Any | None:
    if len(sent) != 1:
        return None
    name, inner = next(iter(sent.items()))
    wraps = fold(name) in WRAPPERS and fold(name) not in names_of(tool)
    return inner if wraps and isinstance(inner, Mapping | str) else None


def _of_text(tool: type[Tool], sent: str) -> Any:
    """JSON, or the one thing that the tool needs, said without a name."""
    if not sent.strip():
        return None
    try:
        found = json.loads(sent)
    except (ValueError, RecursionError):
        found = sent
    if isinstance(found, Mapping) or (isinstance(found, str) and found != sent):
        return found
    needed = [name for name, field in tool.model_fields.items() if field.is_required()]
    looks_like_json = sent.lstrip()[:1] in {"{", "["}
    if len(needed) == 1 and tool.model_fields[needed[0]].annotation is str and not looks_like_json:
        return {needed[0]: sent}
    raise _refused("arguments", "must be a JSON object")


def _nothing(field: FieldInfo, value: Any) -> bool:
    if value is None:
        return True
    blank = isinstance(value, str) and value.strip().lower() in NOTHING
    return blank and not field.is_required()


def fold(name: Any) -> str:
    """`sortBy`, `sort-by` and `Sort By` are `sort_by`."""
    return re.sub(r"[\s_-]+", "", str(name)).lower()


def _unknown(tool: type[Tool], name: Any) -> InvalidInput:
    """A misspelt filter must not widen a search, so it is no less an error than by HTTP."""
    known = ", ".join(tool.model_fields)
    said = printable(name, ECHO_CHARS).strip() or "arguments"
    return _refused(said, f"unknown argument; {tool.name} takes {known}")


def _refused(name: str, problem: str) -> InvalidInput:
    return InvalidInput(f"{name}: {problem}.", details={"field": name})


# Which fact a few words mean. A wrong guess changes the wrong memory, so doubt is no match.

# Geresh and gershayim stand within Hebrew words, as the apostrophe does within English ones.
_BETWEEN = re.compile(r"[^\w'\"]+")


def the_one(items: Sequence[MemoryItem], words: str) -> MemoryItem | None:
    """The only item that says exactly this, else the only one that holds these words in a row."""
    wanted = _words(words)
    if not wanted:
        return None
    texts = {item.memory_id: _words(item.text) for item in items}
    same = [item for item in items if texts[item.memory_id] == wanted]
    holding = [item for item in items if f" {wanted} " in f" {texts[item.memory_id]} "]
    for found in (same, holding):
        if len(found) == 1:
            return found[0]
    return None


def _words(text: str) -> str:
    """Canonical words without the marks between them, so that `Haifa.` holds `haifa`."""
    return " ".join(_BETWEEN.sub(" ", canonical(text)).split())
