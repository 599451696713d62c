"""The API document, made from the operations: nothing in it is written twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from rayapp import errors as e
from rayapp.api.auth import NOTICE_HEADER, ROUTE_SCOPES
from rayapp.api.errors import CODES, ERRORS, INTERNAL, error_body, error_table, row_of
from rayapp.api.operation import JSON, Operation
from rayapp.api.paths import PATH_PARAMETERS
from rayapp.api.schemas.answers import ErrorAnswer
from rayapp.api.schemas.client_answers import AliveAnswer, ReadyAnswer
from rayapp.api.schemas.memories import StoreItem

REF = "#/components/schemas/{model}"
# What any route behind the guard may answer.
COMMON: tuple[type[e.RayappError], ...] = (
    e.InvalidInput,
    e.Unauthorized,
    e.Forbidden,
    e.RateLimited,
    e.DeadlineExceeded,
    e.StoreDown,
)

DESCRIPTION = """\
Long-term memory for assistants: store, search and learn, in Hebrew and English.

**Keys.** `Authorization: Bearer rk_…`; a route names the scope it needs, and `admin` covers
all. Without keys the service serves loopback only, as the user `admin`. A caller with the scope
`admin`, or one of a keyless service, acts for another user through `X-User-Id`.

**Writes** take an idempotency key: the field `idempotency_key` of the body, else the header
`Idempotency-Key` or `X-Idempotency-Key`. The same key and body again get the first answer with
`duplicate: true`; while the first one runs, and for another body, the answer is 409.

**Times** are ISO-8601 in UTC; a time without a zone is read as UTC. **Tiers**: `documents` and
`books` are one tier; both names are accepted everywhere, and the setting `compat.tier_documents`
says which one every answer has.

**Errors** have one shape, and every answer carries `X-Request-Id`.

"""


def document(operations: Sequence[Operation], *, version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    paths["/healthz"] = {"get": _probe("Process is up", AliveAnswer, {"ok": True}, None)}
    paths["/readyz"] = {
        "get": _probe(
            "Can serve",
            ReadyAnswer,
            {"ready": True},
            {"ready": False, "reasons": ["mongodb: no primary"]},
        )
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rayapp",
            "version": version,
            "description": DESCRIPTION + error_table(),
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(operations),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(operations: Iterable[Operation]) -> dict[str, Any]:
    models: dict[str, type[BaseModel]] = {
        model.__name__: model for model in (ErrorAnswer, AliveAnswer, ReadyAnswer, StoreItem)
    }
    for operation in operations:
        for model in (operation.body, operation.answer):
            if model is not None:
                models[model.__name__] = model
    _, schema = models_json_schema(
        [(model, "validation") for model in models.values()], ref_template=REF
    )
    defined: dict[str, Any] = schema["$defs"]
    return defined


def _operation(operation: Operation) -> dict[str, Any]:
    scope = ROUTE_SCOPES[operation.method, operation.path]
    described: dict[str, Any] = {
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": f"{operation.description} Scope: `{scope}`.".strip(),
        "operationId": _operation_id(operation),
        "security": [{"key": []}],
        "parameters": _parameters(operation),
        "responses": _responses(operation),
    }
    if operation.body is not None:
        described["requestBody"] = {
            "required": operation.body_required,
            "description": _alias_text(operation.aliases),
            "content": {JSON: {"schema": _ref(operation.body), "example": operation.example_body}},
        }
    return described


def _operation_id(operation: Operation) -> str:
    words = operation.path.removeprefix("/api/").replace("{", "").replace("}", "")
    return f"{operation.method.lower()}_{words.replace('/', '_').replace('-', '_')}"


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, known in PATH_PARAMETERS.items():
        if f"{{{name}}}" in operation.path:
            found.append({"name": name, "in": "path", "required": True, **known})
    if operation.query is not None:
        schema = operation.query.model_json_schema(ref_template=REF)
        required = schema.get("required", [])
        for name, field in schema["properties"].items():
            found.append(_query_parameter(name, field, name in required, operation))
    found.append(_header("X-User-Id", "Acts for this user.", {"type": "string"}))
    found.append(_header("X-Request-Id", "Echoed in the answer.", {"type": "string"}))
    if operation.writes:
        found.append(_header("Idempotency-Key", "Makes a retry safe.", {"type": "string"}))
    return found


def _query_parameter(
    name: str, field: dict[str, Any], required: bool, operation: Operation
) -> dict[str, Any]:
    others = [alias for alias, canonical in operation.aliases.items() if canonical == name]
    text = field.pop("description", "")
    if others:
        text = f"{text} Also: {', '.join(f'`{alias}`' for alias in others)}.".strip()
    parameter = {
        "name": name,
        "in": "query",
        "required": required,
        "description": text,
        "schema": field,
    }
    if name in operation.example_query:
        parameter["example"] = operation.example_query[name]
    return parameter


def _header(name: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": text, "schema": schema}


def _alias_text(aliases: Mapping[str, str]) -> str:
    if not aliases:
        return "JSON."
    pairs = ", ".join(f"`{alias}` = `{name}`" for alias, name in aliases.items())
    return f"JSON. Other names: {pairs}."


def _responses(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {
        str(operation.status): _success(operation.answer, operation.example, media=operation.media)
    }
    for status, text in operation.also.items():
        responses[str(status)] = _success(operation.answer, operation.example, text)
    kinds = [*COMMON, *operation.errors]
    if operation.writes:
        kinds.append(e.IdempotencyConflict)
    if operation.body is not None:
        kinds.append(e.TooLarge)
    by_status: dict[int, list[type[e.RayappError]]] = {}
    for kind in dict.fromkeys(kinds):
        by_status.setdefault(row_of(kind).status, []).append(kind)
    for status, group in sorted(by_status.items()):
        responses.setdefault(str(status), _failure(group))
    if operation.body is not None:
        malformed = e.InvalidInput(CODES["malformed_json"].when, code="malformed_json")
        responses["400"] = _error_response(malformed.message, {"malformed_json": malformed})
        slow = e.InvalidInput(CODES["slow_body"].when, code="slow_body")
        responses["408"] = _error_response(slow.message, {"slow_body": slow})
        media = e.InvalidInput(CODES["unsupported_media_type"].when, code="unsupported_media_type")
        responses["415"] = _error_response(media.message, {"unsupported_media_type": media})
    internal = e.RayappError("Internal error, request id 4f0c.", code=INTERNAL)
    responses["500"] = _error_response(CODES[INTERNAL].when, {INTERNAL: internal})
    return responses


def _success(
    model: type[BaseModel], example: Any, text: str = "Done.", media: str = JSON
) -> dict[str, Any]:
    return {
        "description": text,
        "headers": {
            "X-Request-Id": {"schema": {"type": "string"}},
            NOTICE_HEADER: {
                "description": "Local mode checks no key: the one that was sent was ignored.",
                "schema": {"type": "string"},
            },
        },
        "content": {media: {"schema": _ref(model), "example": example}},
    }


def _failure(kinds: Sequence[type[e.RayappError]]) -> dict[str, Any]:
    samples = {kind.default_code: kind(ERRORS[kind].when) for kind in kinds}
    return _error_response(" ".join(ERRORS[kind].when for kind in kinds), samples)


def _error_response(text: str, samples: Mapping[str, e.RayappError]) -> dict[str, Any]:
    examples = {code: {"value": error_body(error)} for code, error in samples.items()}
    return {
        "description": text,
        "content": {JSON: {"schema": _ref(ErrorAnswer), "examples": examples}},
    }


def _probe(
    summary: str, model: type[BaseModel], example: Any, failing: Any | None
) -> dict[str, Any]:
    responses = {"200": _success(model, example)}
    if failing is not None:
        responses["503"] = _success(model, failing, "Not yet, and why.")
    return {
        "tags": ["probes"],
        "summary": summary,
        "operationId": summary.lower().replace(" ", "_"),
        "security": [],
        "parameters": [],
        "responses": responses,
    }


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": REF.format(model=model.__name__)}
