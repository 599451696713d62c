"""From what a model sent to the values of a tool's parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rayapp.assistant.tools.records import ToolDefinition
from rayapp.assistant.tools.rules.parameters import Parameter, Refused, Text
from rayapp.core.errors import InvalidInput
from rayapp.memory.item import MemoryItem
from rayapp.text.normalize import canonical

# What programs wrap arguments in; unwrapped when nothing stands beside it.
WRAPPERS = ("arguments", "parameters", "input", "args", "kwargs")
# How models write that they leave an argument out.
NOTHING = frozenset({"", "null", "none", "undefined"})
# Characters of an unknown name that a refusal repeats: enough to find the mistake.
ECHO_CHARS = 40
# JSON within JSON: text of a text of an object, as nested tool proxies make it.
MAX_UNWRAPS = 3


@dataclass(frozen=True, slots=True)
class Arguments:
    """Values by parameter; what was left out is absent, or its default."""

    values: Mapping[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """The value, None when it was left out."""
        return self.values.get(name)


def read_arguments(tool: ToolDefinition, sent: Mapping[str, Any] | str | None) -> Arguments:
    """The arguments of one call.

    Raises:
        InvalidInput: one sentence that names the argument; `details.field` is its name.
    """
    given = _object(tool, sent)
    known = {_folded(name): one for one in tool.parameters for name in (one.name, *one.aliases)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        parameter = known.get(_folded(name))
        if parameter is None:
            raise _unknown(tool, name)
        if not _nothing(parameter, value):
            _put(values, parameter, value)
    for parameter in tool.parameters:
        if parameter.name in values:
            continue
        if parameter.required:
            raise _refused(parameter.name, f"is missing; {tool.name} needs it")
        if parameter.default is not None:
            values[parameter.name] = parameter.kind.read(parameter.default)
    return Arguments(values)


def _put(values: dict[str, Any], parameter: Parameter, value: Any) -> None:
    try:
        found = parameter.kind.read(value)
    except Refused as refused:
        raise _refused(parameter.name, str(refused)) from None
    if values.setdefault(parameter.name, found) != found:
        raise _refused(parameter.name, "is given twice with different values; send one")


def _object(tool: ToolDefinition, sent: Any) -> Mapping[str, Any]:
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


def _wrapped(tool: ToolDefinition, sent: Mapping[str, Any]) -> Any | None:
    if len(sent) != 1:
        return None
    name, inner = next(iter(sent.items()))
    known = {_folded(n) for one in tool.parameters for n in (one.name, *one.aliases)}
    wraps = _folded(name) in WRAPPERS and _folded(name) not in known
    return inner if wraps and isinstance(inner, Mapping | str) else None


def _of_text(tool: ToolDefinition, sent: str) -> Any:
    """JSON, or the one thing that the tool needs, said without a name."""
    if not sent.strip():
        return None
    try:
        found = json.loads(sent)
    except (ValueError, RecursionError):
        found = sent
    if isinstance(found, Mapping) or (isinstance(found, str) and found != sent):
        return found
    needed = [one for one in tool.parameters if one.required]
    looks_like_json = sent.lstrip()[:1] in {"{", "["}
    if len(needed) == 1 and isinstance(needed[0].kind, Text) and not looks_like_json:
        return {needed[0].name: sent}
    raise _refused("arguments", "must be a JSON object")


def _nothing(parameter: Parameter, value: Any) -> bool:
    if value is None:
        return True
    blank = isinstance(value, str) and value.strip().lower() in NOTHING
    return blank and not parameter.required


def _folded(name: Any) -> str:
    """`sortBy`, `sort-by` and `Sort By` are `sort_by`."""
    return re.sub(r"[\s_-]+", "", str(name)).lower()


def _shown(name: Any) -> str:
    """A name that may itself be junk, in characters that every writer can carry."""
    text = str(name)[:ECHO_CHARS]
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def _unknown(tool: ToolDefinition, name: Any) -> InvalidInput:
    """A misspelt filter must not widen a search, so it is no less an error than by HTTP."""
    known = ", ".join(one.name for one in tool.parameters)
    return _refused(
        _shown(name).strip() or "arguments", f"unknown argument; {tool.name} takes {known}"
    )


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
