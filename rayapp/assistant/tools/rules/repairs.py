"""What a model got wrong in the arguments of a tool that only reads, put right and said. Pure.

A turn must not fail because a small model sent `limit: "many"` or a tier that does not exist. What
cannot be read is left out, so that more is searched and never something else; the answer says so.
Tools that write are as strict as ever: a wrong guess would change the wrong memory.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from rayapp.assistant.tools.rules.arguments import as_object, fold, names_of, read_arguments
from rayapp.assistant.tools.rules.definitions import Tool
from rayapp.assistant.tools.rules.parameters import DEFAULT_RESULTS, whole_number
from rayapp.core.errors import InvalidInput

# Wrong arguments of one call that are put right; a call with more is no call of this tool.
MOST = 8
QUERY, LIMIT, ARGUMENTS = "query", "limit", "arguments"
_LEFT_OUT = {
    "tiers": "all tiers were searched",
    "tags": "no tag was asked for",
    "sort_by": "the order is that of the question",
    "more": "it counts as false",
}

T = TypeVar("T", bound=Tool)


def read_repaired(tool: type[T], sent: Any, question: str | None) -> tuple[T, tuple[str, ...]]:
    """The arguments, and one sentence for each that was put right.

    Args:
        question: what the person asked in this turn; it stands in for a query that is not there.

    Raises InvalidInput as `read_arguments` does: the tool writes, or nothing can stand in for what
    it needs.
    """
    notes: list[str] = []
    for _ in range(MOST):
        try:
            return read_arguments(tool, sent), tuple(notes)
        except InvalidInput as error:
            if tool.writes:
                raise
            values = _values(tool, sent)
            put_right = _put_right(tool, values, str(error.details["field"]), question)
            if put_right is None:
                raise
            sent, note = put_right
            notes.append(note)
    return read_arguments(tool, sent), tuple(notes)


def _values(tool: type[Tool], sent: Any) -> dict[str, Any]:
    try:
        return dict(as_object(tool, sent))
    except InvalidInput:
        return {}  # no object at all


def _put_right(
    tool: type[Tool], values: Mapping[str, Any], field: str, question: str | None
) -> tuple[dict[str, Any], str] | None:
    """The arguments without the wrong one, and what is said of it; None: nobody can know."""
    known = names_of(tool)
    names = [name for name in values if known.get(fold(name)) == field]
    given = values[names[0]] if names else None
    others = {name: value for name, value in values.items() if name not in names}
    if field in (QUERY, ARGUMENTS) and QUERY in tool.model_fields:
        if not question or given == question:
            return None
        note = f"{field}: could not be read; the user's message was used."
        return {**others, QUERY: question}, note
    if field == LIMIT:
        number = whole_number(given)
        limit = DEFAULT_RESULTS if number is None else max(1, number)
        return {**others, LIMIT: limit}, f"limit: could not be read; {limit} was used."
    if names:
        return others, f"{field}: could not be read; {_LEFT_OUT.get(field, 'it was left out')}."
    unknown = [name for name in values if fold(name) not in known]
    if not unknown:
        return None
    kept = {name: value for name, value in values.items() if name != unknown[0]}
    return kept, f"{field}: is no argument of {tool.name}; it was left out."
