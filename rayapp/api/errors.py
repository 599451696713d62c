"""From an error class to an HTTP status: one table, and the answer body made from it."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from rayapp.api.hebrew_errors import SENTENCES, wants_hebrew
from rayapp.api.json_answer import answer
from rayapp.core import errors as e

INTERNAL = "internal"
# Beginning of the routes of a foreign protocol, whose clients look for errors in its shape.
PROTOCOL = "/v1/"
# Without a better estimate, one second: long enough for a restart of a replica to show.
DEFAULT_RETRY_AFTER_S = 1.0
# A caller reads the first few problems; a batch of junk must not answer with megabytes.
MAX_PROBLEMS = 10
# Pydantic speaks of the Python type; what is sent as JSON is a list.
LIST_KINDS = frozenset({"tuple_type", "list_type", "set_type", "frozen_set_type"})
COUNTED = re.compile(r"at (?P<bound>least|most) (?P<number>\d+) items?\b")


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One line of the documentation: the status, and when a caller meets it."""

    status: int
    when: str


ERRORS: Mapping[type[e.RayappError], ErrorRow] = {
    e.InvalidInput: ErrorRow(422, "A field breaks a rule; `details.field` names it."),
    e.TooLarge: ErrorRow(413, "A body, text or batch is above its limit."),
    e.Unauthorized: ErrorRow(401, "No API key, or one that is not known."),
    e.Forbidden: ErrorRow(403, "The key lacks the scope, or the user or host is not allowed."),
    e.NotFound: ErrorRow(404, "Not there, or not yours."),
    e.Conflict: ErrorRow(409, "The state of the memory does not allow it."),
    e.DuplicateMemory: ErrorRow(409, "An equal active memory exists; `details.memory_id`."),
    e.BankFull: ErrorRow(
        409,
        "The memory bank is full of more useful or pinned facts; nothing was stored. "
        "`details.reason` is `less_useful` or `all_pinned`.",
    ),
    e.VersionConflict: ErrorRow(409, "The memory changed since it was read; read it again."),
    e.IdempotencyConflict: ErrorRow(
        409, "The idempotency key was used with another body, or its request is in progress."
    ),
    e.RateLimited: ErrorRow(429, "Too many requests from this key; wait `Retry-After` seconds."),
    e.Overloaded: ErrorRow(429, "A bounded queue is full; wait `Retry-After` seconds."),
    e.DeadlineExceeded: ErrorRow(504, "The time budget of the request is used up."),
    e.BadVector: ErrorRow(503, "The embedding backend answered with an unusable vector."),
    e.SchemaMismatch: ErrorRow(503, "The index was built for another model; run a reindex."),
    e.DependencyDown: ErrorRow(503, "A server behind the service is away."),
    e.StoreDown: ErrorRow(503, "MongoDB is away."),
    e.StoreFull: ErrorRow(507, "The disk of the data is full: nothing was stored, reads go on."),
    e.IndexDown: ErrorRow(503, "The vector index is away."),
    e.EmbedderDown: ErrorRow(503, "The embedding backend is away."),
    e.RerankerDown: ErrorRow(503, "The reranking backend is away."),
    e.CacheDown: ErrorRow(503, "The cache is away."),
    e.JobsDown: ErrorRow(503, "The cluster takes no jobs now."),
    e.ModelDown: ErrorRow(503, "The language model is away."),
    e.ConfigError: ErrorRow(500, "The service is configured wrongly; see its log."),
    e.RayappError: ErrorRow(500, "An error without a class of its own; see the log."),
}

# Codes finer than their class. A code listed here decides the status.
CODES: Mapping[str, ErrorRow] = {
    "malformed_json": ErrorRow(400, "The body is not JSON, or not a JSON object."),
    "unsupported_media_type": ErrorRow(415, "A body needs `Content-Type: application/json`."),
    "route_not_found": ErrorRow(404, "No such path."),
    "method_not_allowed": ErrorRow(405, "The path exists, the method does not; see `Allow`."),
    "slow_body": ErrorRow(408, "The body did not arrive in time."),
    "http_error": ErrorRow(400, "The request is not understood."),
    "host_not_allowed": ErrorRow(403, "`Host` or `Origin` is not on the allow-list."),
    "other_user": ErrorRow(403, "The key is bound to another user than `X-User-Id`."),
    "bad_token": ErrorRow(401, "A session token expired, was revoked, changed or is no token."),
    "sessions_off": ErrorRow(403, "Session tokens are off (`auth.sessions`)."),
    "starting": ErrorRow(503, "The replica is still starting."),
    "bad_user_id": ErrorRow(422, "`X-User-Id` has characters that are not allowed."),
    "bad_job_id": ErrorRow(422, "A job id has characters that are not allowed."),
    "bad_memory_id": ErrorRow(422, "A memory id has characters that are not allowed."),
    "bad_idempotency_key": ErrorRow(422, "1 to 255 visible ASCII characters, no spaces."),
    "control_character": ErrorRow(422, "A control character or lone surrogate in a string."),
    "empty_text": ErrorRow(422, "The text is empty."),
    "read_only_tier": ErrorRow(422, "DataGov tiers are filled by their job only."),
    "bad_tag": ErrorRow(422, "A tag is empty or too long."),
    "bad_entity": ErrorRow(422, "An entity is empty or too long."),
    "too_many_tag": ErrorRow(422, "Too many tags."),
    "too_many_entity": ErrorRow(422, "Too many entities."),
    "bad_topic": ErrorRow(422, "A topic is empty or too long."),
    "too_many_topic": ErrorRow(422, "More topics than are stored."),
    "nothing_to_undo": ErrorRow(409, "No decision on it is left to take back."),
    "sources_gone": ErrorRow(409, "What it rested on is gone, so it cannot come back."),
    "understanding_off": ErrorRow(409, "Understanding is off (`understanding.enabled`)."),
    "reserved_name": ErrorRow(422, "The name of a field of a source begins with $."),
    "bad_importance": ErrorRow(422, "importance is not between 0 and 1."),
    "bad_confidence": ErrorRow(422, "confidence is not between 0 and 1."),
    "bad_validity": ErrorRow(422, "valid_from is after valid_to."),
    "bad_supersedes": ErrorRow(422, "supersedes names no memory that can be replaced."),
    "already_superseded": ErrorRow(409, "Another memory replaced it; `details.memory_id`."),
    "bad_always_inject": ErrorRow(422, "always_inject is for memory_bank only."),
    "bank_no_tags": ErrorRow(422, "The memory bank needs a tag."),
    "bank_no_quality": ErrorRow(422, "The memory bank needs importance and confidence."),
    "already_merged": ErrorRow(409, "The node is a part of another one; `details.node_id`."),
    "already_decided": ErrorRow(409, "The proposal was decided on; undo that first."),
    "too_many_statements": ErrorRow(409, "More is said of the nodes than one merge may move."),
    "too_many_webhooks": ErrorRow(409, "The user has as many webhooks as may be."),
    "not_indexed": ErrorRow(409, "The memory has no vector yet, or none any more."),
    "merged": ErrorRow(409, "The memory lives on in another one; `details.memory_id`."),
    "bank_raw_exchange": ErrorRow(422, "The memory bank keeps facts, not whole exchanges."),
    "duplicate": ErrorRow(409, "The document is here already, or one of its title."),
    "book_not_found": ErrorRow(404, "The user has no such document."),
    "chunk_not_found": ErrorRow(404, "The document has no such chunk."),
    "bad_hash": ErrorRow(422, "A hash is not 64 hex digits."),
    "bad_title": ErrorRow(422, "A title is too long, or does not show."),
    "bad_author": ErrorRow(422, "An author is too long, or does not show."),
    "malformed_form": ErrorRow(400, "The form with the file cannot be read."),
    "document_type": ErrorRow(415, "A file of a type that is not read, or not of its name."),
    "document_empty": ErrorRow(422, "The file holds no text."),
    "document_encrypted": ErrorRow(422, "The file is locked with a password."),
    "document_broken": ErrorRow(422, "The file is broken."),
    "document_too_slow": ErrorRow(422, "Reading the file takes too long."),
    "document_memory": ErrorRow(422, "Reading the file takes too much memory."),
    "document_failed": ErrorRow(422, "The document could not be taken in."),
    "upload_gone": ErrorRow(422, "The file of an upload is gone."),
    "unknown_tool": ErrorRow(404, "No tool has this name; the message lists them."),
    "ambiguous_memory": ErrorRow(422, "The words fit several facts; the message lists them."),
    "position_lost": ErrorRow(404, "The event id is unknown or too old to go on from."),
    "no_receipt": ErrorRow(422, "No memories are named and no unscored receipt was found."),
    "bad_position": ErrorRow(422, "A position is not on the receipt."),
    "window_too_small": ErrorRow(
        422, "What a prompt must hold does not fit into half of the window."
    ),
    "bad_takeaway": ErrorRow(422, "key_takeaway is empty or longer than 1,000 characters."),
    "busy": ErrorRow(409, "The same work is going on; ask again when it has finished."),
    "job_starting": ErrorRow(409, "The job has no driver yet; pause it once it runs."),
    "lease_lost": ErrorRow(409, "Another owner took the work over and goes on with it."),
    "job_final": ErrorRow(409, "The job has ended; start a new one."),
    "unknown_action": ErrorRow(400, "The breakers know `reset` and `degraded`."),
    "unknown_recipe": ErrorRow(422, "No ranking recipe has this name; the message lists them."),
    "embedder_timeout": ErrorRow(503, "The embedding backend did not answer in time."),
    "reranker_timeout": ErrorRow(503, "The reranking backend did not answer in time."),
    "archived_already": ErrorRow(409, "The memory is archived for another reason than hiding."),
    "not_hidden": ErrorRow(404, "The memory is not hidden."),
    "not_held": ErrorRow(404, "No operator holds this user."),
    "legal_hold": ErrorRow(409, "An operator holds this user: nothing of it is deleted."),
    "bad_target": ErrorRow(422, "Nothing of this name can be cleared; the message lists them."),
    "bad_template": ErrorRow(400, "The personality template breaks a rule; the message names it."),
    "personality_full": ErrorRow(409, "The user keeps as many templates as there may be."),
    "windows_full": ErrorRow(409, "As many models have a window of their own as there may be."),
    "preset": ErrorRow(409, "A preset is read-only; use another name."),
    "template_in_use": ErrorRow(409, "The template is in use; activate another one first."),
    "confirm_needed": ErrorRow(400, "A reset needs `confirm: true`, an erasure `confirm=DELETE`."),
    "bad_archive": ErrorRow(422, "An archive that is not imported; the message says why."),
    "other_user_archive": ErrorRow(422, "The archive is of another user."),
    "no_archive": ErrorRow(404, "No kept archive has this name."),
    "conversation_active": ErrorRow(400, "The active conversation; switch to another one first."),
    "not_implemented": ErrorRow(
        501, "This version does not do it yet; the message says what to do."
    ),
    INTERNAL: ErrorRow(500, "A defect of the service; the log has the request id."),
}


def row_of(kind: type[e.RayappError]) -> ErrorRow:
    """The row of the nearest listed class."""
    return next(ERRORS[base] for base in kind.__mro__ if base in ERRORS)


def status_of(error: e.RayappError) -> int:
    """HTTP status: the code's own row first, then the row of the class."""
    row = CODES.get(error.code)
    return row.status if row else row_of(type(error)).status


def error_body(error: e.RayappError) -> dict[str, Any]:
    """`error` and `message` hold the same sentence: clients read one or the other."""
    message = _printable(error.message)
    body = {
        "success": False,
        "error": message,
        "message": message,
        "code": error.code,
        "details": error.details,
    }
    if wants_hebrew.get():
        sentence = hebrew_of(error)
        body |= {"error": sentence, "message": sentence, "message_en": message}
    return body


def hebrew_of(error: e.RayappError) -> str:
    """The sentence of the code, else of the nearest listed class, with the field it is about."""
    listed = next(kind for kind in ERRORS if kind in type(error).__mro__)
    sentence = SENTENCES.get(error.code) or SENTENCES[listed.default_code]
    field = error.details.get("field")
    return f"{_printable(field)}: {sentence}" if isinstance(field, str) and field else sentence


def in_protocol(body: dict[str, Any]) -> dict[str, Any]:
    """The body of an error as clients of OpenAI read it."""
    message, code, field = body["message"], body["code"], body["details"].get("field")
    return {"error": {"message": message, "type": code, "code": code, "param": field}}


def error_answer(error: e.RayappError, path: str = "") -> Response:
    """The answer to `error`, with `Retry-After` where a retry makes sense. `path`: of the request,
    which says who reads it."""
    headers = {}
    wait_s = error.retry_after_s
    if wait_s is None and error.retryable:
        wait_s = DEFAULT_RETRY_AFTER_S
    if wait_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(wait_s)))
    if isinstance(error, e.Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    if wants_hebrew.get():
        headers["Content-Language"] = "he"
    body = error_body(error)
    if path.startswith(PROTOCOL):
        body = in_protocol(body)
    return answer(body, status=status_of(error), headers=headers)


def internal_error(request_id: str) -> e.RayappError:
    """What a caller sees of an unexpected exception: the id to look up in the log."""
    return e.RayappError(f"Internal error, request id {request_id}.", code=INTERNAL)


def invalid(error: ValidationError) -> e.InvalidInput:
    """Pydantic's findings as one InvalidInput that names every field; values are not echoed."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    # A list whose items are refused is counted without them: what is wrong are the items.
    within = {one["loc"][:-1] for one in found}
    found = [one for one in found if one["type"] != "too_short" or one["loc"] not in within]
    problems = [
        {
            "field": ".".join(str(part) for part in one["loc"]) or "body",
            "message": _sentence(one["type"], one["msg"]),
        }
        for one in found[:MAX_PROBLEMS]
    ]
    text = "; ".join(f"{one['field']}: {one['message']}" for one in problems[:3])
    return e.InvalidInput(
        _printable(f"{text}."), details={"field": problems[0]["field"], "errors": problems}
    )


def _sentence(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "unknown field; remove it or check its spelling"
    if kind in LIST_KINDS:
        return "must be a list"
    counted = COUNTED.search(message) if kind in ("too_short", "too_long") else None
    if counted is not None:
        bound, number = counted["bound"], int(counted["number"])
        return f"must hold at {bound} {'one item' if number == 1 else f'{number} items'}"
    return message.removeprefix("Value error, ").rstrip(".")


def _printable(text: str) -> str:
    """Text that UTF-8 can carry: a lone surrogate in an echoed name must not break the answer."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def error_table() -> str:
    """Markdown of every status and code, for the API document."""
    rows = [(row.status, kind.default_code, row.when) for kind, row in ERRORS.items()]
    rows += [(row.status, code, row.when) for code, row in CODES.items()]
    lines = [f"| {status} | `{code}` | {when} |" for status, code, when in sorted(rows)]
    return "\n".join(["| status | code | when |", "|---|---|---|", *lines])
