"""Reading JSON bodies and query strings: strict, and with the field named in every refusal.

orjson reads the normal case. What it refuses is read again by the standard library, which accepts
NaN and lone surrogates, so that the refusal can name the field, or reject one item of a batch.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import orjson
from pydantic import ValidationError

from rayapp.api.errors import invalid
from rayapp.core.errors import InvalidInput
from rayapp.text.normalize import find_forbidden, printable
from rayapp.wire.bases import Body

ModelT = TypeVar("ModelT", bound=Body)

# Far deeper than any documented body, far below what overflows a stack.
MAX_DEPTH = 32
# BSON integers have 64 bits, signed.
INT64_MAX = 2**63 - 1
MAX_QUERY_FIELDS = 256


def decode_json(body: bytes) -> Any:
    """The parsed body; NaN, Infinity and lone surrogates are kept for `refuse_forbidden` to name.

    Raises InvalidInput: code `malformed_json`.
    """
    if not body:
        raise _malformed("The body is empty; send a JSON object.")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        reason = str(error)
    try:
        return json.loads(body.decode("utf-8"))
    except UnicodeDecodeError:  # orjson says what it would say of half a character
        raise _malformed("The body is not UTF-8; send JSON in UTF-8, not compressed.") from None
    except (ValueError, RecursionError):
        raise _malformed(f"The body is not valid JSON: {reason}.") from None


def json_object(body: bytes) -> dict[str, Any]:
    """Like `decode_json`, for bodies that must be an object."""
    data = decode_json(body)
    if not isinstance(data, dict):
        raise _malformed("The body must be a JSON object.")
    return data


def refuse_forbidden(data: Any, *, skip: str | None = None) -> None:
    """Refuse control characters, lone surrogates, non-finite and over-long numbers, deep nests.

    `skip` names one top-level field that is checked by somebody else.
    """
    for path, value in _leaves(data, skip):
        if isinstance(value, str):
            forbidden = find_forbidden(value)
            if forbidden:
                raise _refused(path, f"holds a {forbidden}; remove it", "control_character")
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise _refused(path, "must be a finite number")
        elif isinstance(value, int) and abs(value) > INT64_MAX:
            raise _refused(path, "must fit in 64 bits")


def _leaves(data: Any, skip: str | None) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every key and scalar with its path; iterative, so that depth cannot overflow the stack."""
    todo: list[tuple[tuple[str, ...], Any]] = [((), data)]
    while todo:
        path, value = todo.pop()
        if len(path) > MAX_DEPTH:
            raise _refused(path[:3], f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            for key, inner in value.items():
                yield (*path, "a field name"), key
                if path or key != skip:
                    todo.append(((*path, key), inner))
        elif isinstance(value, list):
            todo.extend(((*path, str(i)), inner) for i, inner in enumerate(value))
        else:
            yield path, value


def fold_aliases(data: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """`data` under the canonical names; two names of one field must agree."""
    folded = dict(data)
    for alias, name in aliases.items():
        if alias not in folded:
            continue
        value = folded.pop(alias)
        if name in folded and folded[name] != value:
            raise _refused((alias,), f"and {name} are one field and differ; send one")
        folded[name] = value
    return folded


def read_model(model: type[ModelT], data: Mapping[str, Any]) -> ModelT:
    """`data` as `model`, after the checks above.

    Raises InvalidInput: every field that breaks a rule is named.
    """
    refuse_forbidden(dict(data), skip=model.read_apart)
    return validate_body(model, fold_aliases(data, model.aliases) if model.aliases else data)


def validate_body(model: type[ModelT], data: Mapping[str, Any]) -> ModelT:
    """`data` as `model`; the errors of pydantic become one InvalidInput."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise invalid(error) from None


def read_query(model: type[ModelT], query: bytes) -> ModelT:
    """The query string as `model`. List fields repeat (`tags=a&tags=b`); `tags=` is the empty list.

    Raises InvalidInput: every field that breaks a rule is named.
    """
    try:
        pairs = parse_qsl(
            query.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS
        )
    except ValueError:
        raise InvalidInput(f"More than {MAX_QUERY_FIELDS} query fields; send fewer.") from None
    fields = model.model_fields.items()
    many = {name for name, info in fields if "tuple[" in str(info.annotation)}
    data: dict[str, Any] = {}
    for alias, value in pairs:
        name = model.aliases.get(alias, alias)
        if name in many:
            data.setdefault(name, []).append(value)
        elif name in data and data[name] != value:
            raise _refused((name,), "is given twice with different values; send one")
        else:
            data[name] = value
    for name in many & data.keys():
        if data[name] == [""]:
            data[name] = []
    return read_model(model, data)


def _malformed(message: str) -> InvalidInput:
    return InvalidInput(message, code="malformed_json")


def _refused(path: tuple[str, ...], problem: str, code: str | None = None) -> InvalidInput:
    field = printable(".".join(path) or "body")
    return InvalidInput(f"{field}: {problem}.", code=code, details={"field": field})
