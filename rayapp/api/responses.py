"""What a route may answer, for the API document: from the one table of errors."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from rayapp.api.auth import RULES, Mark
from rayapp.api.errors import CODES, ERRORS, INTERNAL, PROTOCOL, error_body, in_protocol, row_of
from rayapp.api.middleware import READS
from rayapp.core import errors as e

JSON, TEXT, HTML = "application/json", "text/plain", "text/html"
ERROR_SCHEMA = {"$ref": "#/components/schemas/ErrorAnswer"}
PROTOCOL_SCHEMA = {"$ref": "#/components/schemas/ProtocolError"}
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
Responses = dict[int | str, dict[str, Any]]


class EventStream(Response):
    """The class of the answers that are streams of server-sent events, for the API document."""

    media_type = "text/event-stream"


def raises(*kinds: type[e.RayappError]) -> Responses:
    """What an error of these classes answers, by status."""
    by_status: dict[int, list[type[e.RayappError]]] = {}
    for kind in kinds:
        by_status.setdefault(row_of(kind).status, []).append(kind)
    return {
        status: _errors(
            [ERRORS[kind].when for kind in group],
            {kind.default_code: kind(ERRORS[kind].when) for kind in group},
        )
        for status, group in sorted(by_status.items())
    }


def common_responses(method: str, path: str, *, writes: bool, reads_body: bool) -> Responses:
    """What every route of this kind may answer."""
    kinds = [*COMMON]
    if writes:
        kinds.append(e.IdempotencyConflict)
    rule = RULES.get((method, path))
    if method not in READS and not (rule and Mark.NOTHING_KEPT in rule.marks):
        kinds.append(e.StoreFull)
    if reads_body:
        kinds.append(e.TooLarge)
    codes = ["malformed_json", "slow_body", "unsupported_media_type"] if reads_body else []
    unreadable = {
        "description": "The request is no HTTP, or its URL or headers are longer than 64 KB.",
        "content": {
            media: {"schema": {"type": "string"}, "example": UNREADABLE} for media in (TEXT, HTML)
        },
    }
    internal = e.RayappError("Internal error, request id 4f0c.", code=INTERNAL)
    return merged(
        raises(*kinds),
        *(raises_code(code) for code in codes),
        {400: unreadable, 500: _errors([CODES[INTERNAL].when], {INTERNAL: internal})},
    )


def merged(*several: Mapping[int | str, dict[str, Any]]) -> Responses:
    """One entry per status: its texts joined, its examples side by side."""
    found: Responses = {}
    for status, one in ((status, one) for many in several for status, one in many.items()):
        known = found.get(status)
        found[status] = one if known is None else _both(known, one)
    return dict(sorted(found.items(), key=lambda entry: str(entry[0])))


def spoken(responses: Responses, path: str) -> Responses:
    """Errors in the shape of those who read them: routes of the protocol of OpenAI have its own."""
    if not path.startswith(PROTOCOL):
        return responses
    return {status: _in_protocol(one) for status, one in responses.items()}


def _in_protocol(response: dict[str, Any]) -> dict[str, Any]:
    media = response.get("content", {}).get(JSON, {})
    if media.get("schema") != ERROR_SCHEMA:
        return response
    examples = {
        name: {"value": in_protocol(one["value"])} for name, one in media["examples"].items()
    }
    told = {JSON: {"schema": PROTOCOL_SCHEMA, "examples": examples}}
    return response | {"content": response["content"] | told}


def _both(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    if "model" in first:
        return first  # a route that answers this status in a shape of its own
    texts = [first.get("description", ""), second.get("description", "")]
    both = first | {"description": " ".join(dict.fromkeys(text for text in texts if text))}
    content: dict[str, Any] = dict(first.get("content", {}))
    for media, one in second.get("content", {}).items():
        known = content.get(media, {})
        examples = {"examples": known.get("examples", {}) | one.get("examples", {})}
        content[media] = one | known | (examples if "examples" in one else {})
    return both | ({"content": content} if content else {})


def raises_code(code: str) -> Responses:
    """The same of one code, whose status is not that of its class."""
    row = CODES[code]
    return {row.status: _errors([row.when], {code: e.InvalidInput(row.when, code=code)})}


def _errors(when: Sequence[str], samples: Mapping[str, e.RayappError]) -> dict[str, Any]:
    examples = {code: {"value": error_body(error)} for code, error in samples.items()}
    return {
        "description": " ".join(when),
        "content": {JSON: {"schema": ERROR_SCHEMA, "examples": examples}},
    }


def file_form(fields: type[BaseModel], example: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a route that takes one file, with these fields beside it."""
    beside = fields.model_json_schema()
    properties = {"file": {"type": "string", "format": "binary"}, **beside["properties"]}
    required = ["file", *beside.get("required", ())]
    schema = {"type": "object", "required": required, "properties": properties}
    content = {"multipart/form-data": {"schema": schema, "example": example}}
    return {
        "requestBody": {
            "required": True,
            "description": "A form with one file.",
            "content": content,
        }
    }
