"""The API document, made from the operations: nothing in it is written twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from rayapp.api.auth import NOTICE_HEADER, ROUTE_SCOPES
from rayapp.api.errors import CODES, ERRORS, INTERNAL, error_body, error_table, row_of
from rayapp.api.middleware import READS, STORES_NOTHING
from rayapp.api.operation import JSON, Operation
from rayapp.api.paths import ID_PATTERN, PATH_PARAMETERS
from rayapp.core import errors as e
from rayapp.wire.answers import ErrorAnswer
from rayapp.wire.bases import IDEMPOTENCY_KEY_PATTERN
from rayapp.wire.client_answers import AliveAnswer, ReadyAnswer
from rayapp.wire.memories import StoreItem

# The order in which the API document shows its operations, and a sentence for each group.

FIRST = "start here"
# What a newcomer needs: keep, find, judge, prepare a turn and learn from it, and see what is there.
FIRST_CALLS = frozenset(
    {
        ("POST", "/api/memory/store"),
        ("POST", "/api/memory/search"),
        ("POST", "/api/memory/outcomes"),
        ("POST", "/api/memory/context"),
        ("POST", "/api/hooks/exchange"),
        ("GET", "/api/memory/stats"),
    }
)
GROUPS: Mapping[str, str] = {
    FIRST: "Keep a memory, find it, say what helped; before and after each turn of an assistant.",
    "memories": "Store, read, change, archive and explain memories.",
    "search": "Find memories by meaning and by words, or list the newest.",
    "learning": "Say what worked and what failed, and let promotion run.",
    "context": "What an assistant should know before it answers.",
    "hooks": "The calls of a chat program around each turn.",
    "memory bank": "Lasting facts about a person, with goals and values.",
    "tools": "What an assistant may call by itself, over HTTP and MCP.",
    "graphs": "Which concepts, tiers and actions belong together.",
    "insights": "Counts, growth and the health of the service.",
    "events": "What changed, as it happens.",
    "personality": "How the assistant speaks.",
    "hidden memories": "Memories that a person does not want to see used.",
    "data": "Sizes of one user's data, and clearing it.",
    "models": "Checks and costs of the language model.",
    "jobs": "Bulk work: list, follow, pause, resume and cancel.",
    "operations": "Reindex, consistency, open data and breakers, for operators.",
    "upkeep": "Sizes, cleanup and moves over all users, for operators.",
    "system": "Version, short health and disk space.",
    "probes": "For load balancers: is the process up, and can it serve.",
    "not yet": "Routes of a later version: they answer 501.",
}


def tags_of(method: str, path: str, tag: str) -> list[str]:
    """The group of an operation, and the one of a newcomer where it belongs there too."""
    return [tag, FIRST] if (method, path) in FIRST_CALLS else [tag]


REF = "#/components/schemas/{model}"
TEXT, HTML = "text/plain", "text/html"
# Successes that say all by their status.
BODYLESS = frozenset({202, 204})
HEADERS = {
    "X-Request-Id": {"schema": {"type": "string"}},
    NOTICE_HEADER: {
        "description": "Local mode checks no key: the one that was sent was ignored.",
        "schema": {"type": "string"},
    },
}
UNREADABLE = "Invalid HTTP request received."
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

Begin with the group **start here**: `store` keeps a memory, `search` finds it, `outcomes` says what
helped; `context` gives an assistant what it should know before it answers, and `exchange` learns
from the turn afterwards.

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
# Closed until somebody wants it: the reference opens on what a newcomer needs.
ERROR_LIST = """\
<details><summary>All error codes</summary>

{table}

</details>
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
            "description": DESCRIPTION + ERROR_LIST.format(table=error_table()),
        },
        "tags": [{"name": name, "description": text} for name, text in GROUPS.items()],
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
    if ambiguous := [name for name in defined if "__" in name]:
        # Pydantic then names them by their modules, and generators drop one of them.
        raise ValueError(f"Two models share one name; rename one of {', '.join(ambiguous)}.")
    for one in defined.values():
        _tell_defaults(one)
    return defined


def _tell_defaults(schema: dict[str, Any]) -> None:
    """Move the defaults of fields into their descriptions.

    To generators of clients a field with a `default` is always there, so that callers would have
    to send it.
    """
    for field in schema.get("properties", {}).values():
        value = field.pop("default", None)
        if value is not None:
            text = field.get("description", "")
            told = json.dumps(value, ensure_ascii=False)
            field["description"] = f"{text} By default {told}.".strip()


def _operation(operation: Operation) -> dict[str, Any]:
    scope = ROUTE_SCOPES[operation.method, operation.path]
    described: dict[str, Any] = {
        "tags": tags_of(operation.method, operation.path, operation.tag),
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
            "content": {JSON: {"schema": _ref(operation.body), "example": _example(operation)}},
        }
    return described


def _example(operation: Operation) -> Any:
    """The example of the body under the names that the schema knows."""
    body = operation.example_body
    if not isinstance(body, Mapping):
        return body
    return {operation.aliases.get(name, name): value for name, value in body.items()}


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
    user = {"type": "string", "pattern": ID_PATTERN}
    found.append(_header("X-User-Id", "Acts for this user.", user))
    found.append(_header("X-Request-Id", "Echoed in the answer.", {"type": "string"}))
    if operation.writes:
        key = {"type": "string", "pattern": IDEMPOTENCY_KEY_PATTERN}
        found.append(_header("Idempotency-Key", "Makes a retry safe.", key))
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
        responses[str(status)] = (
            {"description": text, "headers": HEADERS}
            if status in BODYLESS
            else _success(operation.answer, operation.example, text)
        )
    kinds = [*COMMON, *operation.errors]
    if operation.writes:
        kinds.append(e.IdempotencyConflict)
    if operation.method not in READS and operation.path not in STORES_NOTHING:
        kinds.append(e.StoreFull)
    if operation.body is not None:
        kinds.append(e.TooLarge)
    by_status: dict[int, list[type[e.RayappError]]] = {}
    for kind in dict.fromkeys(kinds):
        by_status.setdefault(row_of(kind).status, []).append(kind)
    for status, group in sorted(by_status.items()):
        responses.setdefault(str(status), _failure(group))
    responses["400"] = _unreadable()
    if operation.body is not None:
        malformed = e.InvalidInput(CODES["malformed_json"].when, code="malformed_json")
        responses["400"] = _error_response(malformed.message, {"malformed_json": malformed})
        responses["400"]["content"] |= _unreadable()["content"]
        slow = e.InvalidInput(CODES["slow_body"].when, code="slow_body")
        responses["408"] = _error_response(slow.message, {"slow_body": slow})
        media = e.InvalidInput(CODES["unsupported_media_type"].when, code="unsupported_media_type")
        responses["415"] = _error_response(media.message, {"unsupported_media_type": media})
    internal = e.RayappError("Internal error, request id 4f0c.", code=INTERNAL)
    responses["500"] = _error_response(CODES[INTERNAL].when, {INTERNAL: internal})
    for status, (when, example) in operation.protocol_errors.items():
        known = responses.get(str(status), {"description": "", "content": {}})
        shapes = [_ref(operation.answer), _ref(ErrorAnswer)]
        content = {JSON: {"schema": {"anyOf": shapes}, "example": example}}
        responses[str(status)] = {
            "description": f"{known['description']} {when}".strip(),
            "content": known["content"] | content,
        }
    return responses


def _event(model: type[BaseModel]) -> dict[str, Any]:
    """One server-sent event, as readers of streams split it."""
    data = {"type": "string", "contentMediaType": JSON, "contentSchema": _ref(model)}
    text = {"type": "string"}
    return {
        "type": "object",
        "description": f"Each event of the stream; its data is a `{model.__name__}`.",
        "properties": {"id": text, "event": text, "data": data, "retry": {"type": "integer"}},
    }


def _unreadable() -> dict[str, Any]:
    """What the HTTP server answers by itself."""
    return {
        "description": "The request is no HTTP, or its URL or headers are longer than 64 KB.",
        "content": {
            media: {"schema": {"type": "string"}, "example": UNREADABLE} for media in (TEXT, HTML)
        },
    }


def _success(
    model: type[BaseModel], example: Any, text: str = "Done.", media: str = JSON
) -> dict[str, Any]:
    schema: dict[str, Any] = _ref(model)
    if media != JSON:
        schema = _event(model)
    return {
        "description": text,
        "headers": HEADERS,
        "content": {media: {"schema": schema, "example": example}},
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
