"""Remember what tools answered in a conversation."""

from __future__ import annotations

from collections import Counter
from typing import Any

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.json_body import fold_aliases, refuse_forbidden, validated
from rayapp.api.operation import Operation
from rayapp.assistant.tool_results.rules import Ingested, ToolResult
from rayapp.core.errors import Conflict, InvalidInput, TooLarge
from rayapp.wire.tool_results import (
    RESULT_ALIASES,
    ToolResultItem,
    ToolResultsAnswer,
    ToolResultsBody,
)


async def tool_results(call: Call) -> Response:
    try:
        results = _results(call)
    except RecursionError:  # two names of one field, both nested as deeply as JSON may be
        raise InvalidInput("The output is nested too deeply; send it as a text.") from None
    done = await call.services.tool_results.ingest(call.writes, results)
    counts = Counter(one.status for one in done)
    ids = [one.memory_id for one in done if one.memory_id is not None]
    call.notes |= {"tool_results": len(done), "kept": counts["stored"]}
    return answer(
        {
            "success": True,
            "memory_id": ids[0] if ids else None,
            "results": [_view(*pair) for pair in zip(results, done, strict=True)],
            "stored": counts["stored"],
            "duplicates": counts["duplicate"],
            "skipped": counts["skipped"],
            "duplicate": counts["duplicate"] == len(done),
            "degraded": [],
        }
    )


def _results(call: Call) -> list[ToolResult]:
    """The results of the body; what a tool said is cleaned, all else is checked.

    Raises:
        InvalidInput: the field of the result is named; TooLarge.
    """
    data = call.data
    rows = data.get("results")
    if "results" not in data or not isinstance(rows, list):
        folded = fold_aliases(data, RESULT_ALIASES)
        refuse_forbidden(folded, skip="output")
        validated(ToolResultsBody, folded)
        return [_result(call, {k: v for k, v in folded.items() if k != "idempotency_key"}, "")]
    validated(ToolResultsBody, data)
    most = call.services.settings.tool_results.batch_limit_items
    if len(rows) > most:
        raise TooLarge(
            f"There are {len(rows)} results; send at most {most} at once.",
            details={"field": "results", "limit": most},
        )
    return [_result(call, row, f"results.{place}.") for place, row in enumerate(rows)]


def _result(call: Call, row: dict[str, Any], path: str) -> ToolResult:
    try:
        folded = fold_aliases(row, RESULT_ALIASES)
        refuse_forbidden(folded, skip="output")
        result = validated(ToolResultItem, folded).result()
    except InvalidInput as error:
        field = error.details.get("field")
        if not path or not isinstance(field, str):
            raise
        raise InvalidInput(
            path + error.message,
            code=error.code,
            details={**error.details, "field": path + field},
        ) from None
    most = call.services.settings.http.text_limit_chars
    if len(result.text) > most:
        raise TooLarge(
            f"{path}output has {len(result.text)} characters; send at most {most}.",
            details={"field": f"{path}output", "limit": most},
        )
    most = call.services.settings.http.query_limit_chars
    if len(result.query) > most:
        raise TooLarge(
            f"{path}query has {len(result.query)} characters; send at most {most}.",
            details={"field": f"{path}query", "limit": most},
        )
    return result


def _view(result: ToolResult, done: Ingested) -> dict[str, Any]:
    prepared = done.prepared
    return {
        "tool_name": result.tool_name,
        "status": done.status,
        "memory_id": done.memory_id,
        "reason": prepared.skipped,
        "indexed": False,
        "redacted": dict(prepared.redacted),
        "truncated": prepared.truncated,
        "original_chars": prepared.original_chars,
        "kept_chars": prepared.kept_chars,
        "archived": list(done.archived),
    }


OPERATIONS = (
    Operation(
        method="POST",
        path="/api/memory/tool-results",
        tag="memories",
        summary="Remember what tools answered",
        description="One result or several. A text is cleaned, secrets, e-mail addresses and "
        "phone numbers are taken out of it, and it is stored in `working` before the answer comes; "
        "the index follows later. An equal answer is one memory, whoever asked what. Of a "
        "conversation the newest and most helpful results stay. Answers of this service's own "
        "tools, failures and short answers are not kept; `reason` says so.",
        handler=tool_results,
        body=ToolResultsBody,
        example_body={
            "tool_name": "tavily_search",
            "query": "מתי נפתחת הרכבת הקלה בחיפה?",
            "output": "The light rail line between Haifa and Nazareth is being built by a "
            "concession; the first section is planned to open in the coming years. לפרטים: "
            "dana@example.com",
            "conversation_id": "conv-7",
            "message_id": "msg-12",
        },
        aliases=RESULT_ALIASES,
        answer=ToolResultsAnswer,
        example={
            "success": True,
            "memory_id": "tool-3b5d8f0c6a1e4b7d9c2f5a8e1b4d7c0f3a6e9b2d",
            "results": [
                {
                    "tool_name": "tavily_search",
                    "status": "stored",
                    "memory_id": "tool-3b5d8f0c6a1e4b7d9c2f5a8e1b4d7c0f3a6e9b2d",
                    "reason": None,
                    "indexed": False,
                    "redacted": {"email": 1},
                    "truncated": False,
                    "original_chars": 160,
                    "kept_chars": 160,
                    "archived": [],
                }
            ],
            "stored": 1,
            "duplicates": 0,
            "skipped": 0,
            "duplicate": False,
            "degraded": [],
        },
        errors=(Conflict, TooLarge),
        writes=True,
    ),
)
