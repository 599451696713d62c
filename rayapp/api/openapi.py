"""The API document: what FastAPI writes from the routes, with recorded examples and our groups."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from rayapp.api.auth import NOTICE_HEADER
from rayapp.api.errors import error_table
from rayapp.api.responses import JSON
from rayapp.api.route import Route
from rayapp.wire.bases import ErrorAnswer
from rayapp.wire.completions import ProtocolError
from rayapp.wire.memories import StoreItem
from rayapp.wire.raw_data import RawDataItem
from rayapp.wire.system import AliveAnswer, ReadyAnswer

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
    "understanding": "What memories mean: how much they matter, and what is derived from them.",
    "search": "Find memories by meaning and by words, or list the newest.",
    "vectors": "Memories by their vectors alone: the nearest, and how near two are.",
    "learning": "Say what worked and what failed, and let promotion run.",
    "books": "Documents: upload, follow, search, quote and delete them.",
    "context": "What an assistant should know before it answers.",
    "hooks": "The calls of a chat program around each turn.",
    "completions": "For programs with a client of OpenAI: a model with memory, and vectors.",
    "conversations": "List, search, read again, switch, rename, export and delete them.",
    "memory bank": "Lasting facts about a person, with goals and values.",
    "tools": "What an assistant may call by itself, over HTTP and MCP.",
    "graphs": "Which concepts, tiers and actions belong together.",
    "knowledge": "People, events, feelings and goals, and what is said of them.",
    "insights": "Counts, growth and the health of the service.",
    "events": "What changed, as it happens.",
    "webhooks": "What changed, sent to programs by signed requests.",
    "access": "Keys, the users of a tenant, and who did what.",
    "sessions": "Short tokens for browsers, in the place of a key.",
    "personality": "How the assistant speaks.",
    "hidden memories": "Memories that a person does not want to see used.",
    "data": "Sizes of one user's data, and clearing it.",
    "backup": "The user's data leave, come back, and are kept.",
    "models": "Checks and costs of the language model.",
    "jobs": "Bulk work: list, follow, pause, resume and cancel.",
    "operations": "Reindex, consistency, open data and breakers, for operators.",
    "upkeep": "Sizes, cleanup and moves over all users, for operators.",
    "system": "Version, short health and disk space.",
    "probes": "For load balancers: is the process up, and can it serve.",
    "not yet": "Routes of a later version: they answer 501.",
}


REF = "#/components/schemas/{model}"
HEADERS = {
    "X-Request-Id": {"schema": {"type": "string"}},
    NOTICE_HEADER: {
        "description": "Local mode checks no key: the one that was sent was ignored.",
        "schema": {"type": "string"},
    },
}
# Successes that say all by their status.
BODYLESS = frozenset({"202", "204"})
DESCRIPTION = """\
Long-term memory for assistants: store, search and learn, in Hebrew and English.

Begin with the group **start here**: `store` keeps a memory, `search` finds it, `outcomes` says what
helped; `context` gives an assistant what it should know before it answers, and `exchange` learns
from the turn afterwards.

**Keys.** `Authorization: Bearer rk_…`; a route names the scope it needs, and `admin` covers
all. Without keys the service serves loopback only, as the user `admin`. A caller with the scope
`admin`, or one of a keyless service, acts for another user through `X-User-Id`. A key may belong to
a tenant: then all it does stays there, and routes about the whole service refuse it. Browsers send
a session token in its place (`POST /api/auth/session`), where the service gives them.

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


@cache
def examples() -> Mapping[str, Mapping[str, Any]]:
    """By `METHOD /path`: `path`, `query` and `body` of a request that works once the memory `mem-1`
    exists, and the `answer` it got (`python -m tests.record_examples`)."""
    text = resources.files("rayapp.api").joinpath("examples.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return found


def document(routes: Sequence[Route], *, version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    made = get_openapi(
        title="rayapp",
        version=version,
        description=DESCRIPTION + ERROR_LIST.format(table=error_table()),
        tags=[{"name": name, "description": text} for name, text in GROUPS.items()],
        routes=routes,
    )
    schemas: dict[str, Any] = made["components"]["schemas"]
    schemas |= _schemas(
        ErrorAnswer, ProtocolError, AliveAnswer, ReadyAnswer, StoreItem, RawDataItem
    )
    if ambiguous := [name for name in schemas if "__" in name]:
        # Pydantic then names them by their modules, and generators drop one of them.
        raise ValueError(f"Two models share one name; rename one of {', '.join(ambiguous)}.")
    for schema in schemas.values():
        _say_defaults(schema)
    for route in routes:
        _complete(made["paths"][route.path][route.method.lower()], route)
    blocked = {"ready": False, "reasons": ["mongodb: no primary"]}
    made["paths"] |= {
        "/healthz": {"get": _probe("Process is up", AliveAnswer, {"ok": True}, None)},
        "/readyz": {"get": _probe("Can serve", ReadyAnswer, {"ready": True}, blocked)},
    }
    return made


def _complete(operation: dict[str, Any], route: Route) -> None:
    """Add what FastAPI does not know: the group of a newcomer, other names, examples, headers."""
    known = examples()[f"{route.method} {route.path}"]
    if (route.method, route.path) in FIRST_CALLS:
        operation["tags"] = [*operation["tags"], FIRST]
    for parameter in operation["parameters"]:
        _complete_parameter(parameter, route.aliases, known)
    if route.body is not None:
        body = operation["requestBody"]
        body["required"] = body.get("required", False)
        body["description"] = _alias_text(route.aliases)
        content = body["content"][JSON]
        # A body that may be left out may not be null for that.
        content["schema"] = content["schema"].get("anyOf", [content["schema"]])[0]
        content["example"] = known["body"]
    for status, response in operation["responses"].items():
        own = route.responses.get(int(status), {}).get("model") is route.answer
        if own or status.startswith("2") or status == str(route.status):
            response["headers"] = HEADERS
            for media, content in response.get("content", {}).items():
                content.setdefault("example", known["answer"])
                if media == route.media != JSON:
                    content["schema"] = _event(route.answer)
        if status in known.get("errors", {}):
            response["content"][JSON] = {
                "schema": response["content"][JSON]["schema"],
                "example": known["errors"][status],
            }
        if status in BODYLESS:
            response.pop("content", None)


def _complete_parameter(
    parameter: dict[str, Any], aliases: Mapping[str, str], known: Mapping[str, Any]
) -> None:
    schema, name = parameter["schema"], parameter["name"]
    for unsaid in ("title", "default") if parameter["in"] == "header" else ("title",):
        schema.pop(unsaid, None)
    text = schema.pop("description", "")
    if parameter["in"] == "query":
        others = [f"`{alias}`" for alias, canonical in aliases.items() if canonical == name]
        text = f"{text} Also: {', '.join(others)}." if others else text
        parameter["description"] = text.strip()
    example = known.get(parameter["in"], {})
    if name in example:
        parameter["example"] = example[name]


def _alias_text(aliases: Mapping[str, str]) -> str:
    if not aliases:
        return "JSON."
    pairs = ", ".join(f"`{alias}` = `{name}`" for alias, name in aliases.items())
    return f"JSON. Other names: {pairs}."


def _schemas(*models: type[BaseModel]) -> dict[str, Any]:
    """Of shapes that no route names as its own."""
    _, schema = models_json_schema([(one, "validation") for one in models], ref_template=REF)
    found: dict[str, Any] = schema["$defs"]
    return found


def _say_defaults(schema: dict[str, Any]) -> None:
    """Move the defaults of fields into their descriptions. To generators of clients a field with a
    `default` is always there, so that callers would have to send it."""
    always = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        value = field.pop("default", None)
        if value is not None and name not in always:
            text = field.get("description", "")
            said = json.dumps(value, ensure_ascii=False)
            field["description"] = f"{text} By default {said}.".strip()


def _event(model: type[BaseModel]) -> dict[str, Any]:
    """One server-sent event, as readers of streams split it."""
    data = {"type": "string", "contentMediaType": JSON, "contentSchema": _ref(model)}
    text = {"type": "string"}
    return {
        "type": "object",
        "description": f"Each event of the stream; its data is a `{model.__name__}`.",
        "properties": {"id": text, "event": text, "data": data, "retry": {"type": "integer"}},
    }


def _probe(
    summary: str, model: type[BaseModel], example: Any, failing: Any | None
) -> dict[str, Any]:
    def success(text: str, example: Any) -> dict[str, Any]:
        content = {JSON: {"schema": _ref(model), "example": example}}
        return {"description": text, "headers": HEADERS, "content": content}

    responses = {"200": success("Done.", example)}
    if failing is not None:
        responses["503"] = success("Not yet, and why.", failing)
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
