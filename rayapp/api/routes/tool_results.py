"""Remember what tools answered in a conversation."""

from collections import Counter
from typing import Any

from rayapp.api.call import Call
from rayapp.api.json_body import fold_aliases, refuse_forbidden, validate_body
from rayapp.api.responses import raises
from rayapp.api.route import IDEMPOTENT, CurrentCall, router, unread_body
from rayapp.assistant.tool_results.rules import ToolResult, as_text
from rayapp.core.errors import Conflict, InvalidInput, TooLarge
from rayapp.wire.tools import ToolResultItem, ToolResultsAnswer, ToolResultsBody, ToolResultView

routes = router("memories")


@routes.post(
    "/api/memory/tool-results",
    summary="Remember what tools answered",
    responses=raises(Conflict, TooLarge),
    dependencies=[IDEMPOTENT, unread_body(ToolResultsBody)],
)
async def tool_results(call: CurrentCall) -> ToolResultsAnswer:
    """One result or several. A text is cleaned, secrets, e-mail addresses and phone numbers are
    taken out of it, and it is stored in `working` before the answer comes; the index follows later.
    An equal answer is one memory, whoever asked what. Of a conversation the newest and most helpful
    results stay. Answers of this service's own tools, failures and short answers are not kept;
    `reason` says so."""
    try:
        results = _results(call)
    except RecursionError:  # two names of one field, both nested as deeply as JSON may be
        raise InvalidInput("The output is nested too deeply; send it as a text.") from None
    done = await call.services.tool_results.ingest(call.writes, results)
    counts = Counter(one.status for one in done)
    call.notes |= {"tool_results": len(done), "kept": counts["stored"]}
    return ToolResultsAnswer(
        memory_id=next((one.memory_id for one in done if one.memory_id is not None), None),
        results=tuple(map(ToolResultView.from_ingested, results, done)),
        stored=counts["stored"],
        duplicates=counts["duplicate"],
        skipped=counts["skipped"],
        duplicate=counts["duplicate"] == len(done),
    )


def _results(call: Call) -> list[ToolResult]:
    """The results of the body; what a tool said is cleaned, all else is checked. Raises
    InvalidInput: the field of the result is named; TooLarge."""
    data = call.data
    rows = data.get("results")
    if "results" not in data or not isinstance(rows, list):
        folded = fold_aliases(data, ToolResultItem.aliases)
        refuse_forbidden(folded, skip="output")
        validate_body(ToolResultsBody, folded)
        return [_result(call, {k: v for k, v in folded.items() if k != "idempotency_key"}, "")]
    validate_body(ToolResultsBody, data)
    most = call.services.settings.tool_results.batch_limit_items
    if len(rows) > most:
        raise TooLarge(
            f"There are {len(rows)} results; send at most {most} at once.",
            details={"field": "results", "limit": most},
        )
    return [_result(call, row, f"results.{place}.") for place, row in enumerate(rows)]


def _result(call: Call, row: dict[str, Any], path: str) -> ToolResult:
    try:
        folded = fold_aliases(row, ToolResultItem.aliases)
        refuse_forbidden(folded, skip="output")
        item = validate_body(ToolResultItem, folded)
        own = {"text": as_text(item.output), "category": item.tool_category}
        result = item.fill(ToolResult, failed=item.is_error, **own)
    except InvalidInput as error:
        field = error.details.get("field")
        if not path or not isinstance(field, str):
            raise
        raise InvalidInput(
            path + error.message, code=error.code, details={**error.details, "field": path + field}
        ) from None
    limits = call.services.settings.http
    for name, text, most in (
        ("output", result.text, limits.text_limit_chars),
        ("query", result.query, limits.query_limit_chars),
    ):
        if len(text) > most:
            raise TooLarge(
                f"{path}{name} has {len(text)} characters; send at most {most}.",
                details={"field": f"{path}{name}", "limit": most},
            )
    return result
