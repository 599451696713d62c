"""What an assistant should know before it searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.api.routes.memories import check_query
from rayapp.graphs.records import InsightsRequest
from rayapp.wire.context import (
    COLD_START_ALIASES,
    PREFETCH_ALIASES,
    ColdStartAnswer,
    ColdStartBody,
    ContextAnswer,
    InsightsAnswer,
    PrefetchAnswer,
    PrefetchBody,
)
from rayapp.wire.examples.context import COLD_START_EXAMPLE, CONTEXT_EXAMPLE, PREFETCH_EXAMPLE
from rayapp.wire.examples.memories import INSIGHTS_EXAMPLE
from rayapp.wire.graphs import INSIGHTS_ALIASES, InsightsBody, InsightsQuery
from rayapp.wire.views.context import (
    cold_start_view,
    context_view,
    prefetch_view,
)
from rayapp.wire.views.insights import insights_view


async def insights_post(call: Call) -> Response:
    return await _insights(call, call.body_as(InsightsBody, INSIGHTS_ALIASES).request())


async def insights_get(call: Call) -> Response:
    return await _insights(call, call.query_as(InsightsQuery, INSIGHTS_ALIASES).request())


async def _insights(call: Call, request: InsightsRequest) -> Response:
    check_query(call, request.query)
    found = await call.services.insights.insights(call.reads, request)
    return answer(
        {
            "success": True,
            **insights_view(found, call.documents),
            "meta": {"built_ms": found.built_ms},
            "degraded": [],
        }
    )


async def context(call: Call) -> Response:
    return await _context(call, context_view)


async def prefetch(call: Call) -> Response:
    return await _context(call, prefetch_view)


async def _context(call: Call, view: Callable[..., dict[str, Any]]) -> Response:
    started = call.services.clock.monotonic()
    body = call.body_as(PrefetchBody, PREFETCH_ALIASES)
    check_query(call, body.query)
    found = await call.services.context.prefetch(call.reads, body.request(call.principal))
    call.notes |= {
        "stages": found.timings_ms,
        "lines": len(found.block.lines),
        "degraded": found.degraded,
    }
    shown = view(
        found,
        user_id=call.user_id,
        documents=call.documents,
        with_text=body.include_context,
        took_ms=round((call.services.clock.monotonic() - started) * 1000, 3),
    )
    return answer(shown, headers={"ETag": f'"{found.block.etag}"'})


async def cold_start_post(call: Call) -> Response:
    body = call.body_as(ColdStartBody, COLD_START_ALIASES) if call.body else ColdStartBody()
    return await _cold_start(call, body)


async def cold_start_get(call: Call) -> Response:
    return await _cold_start(call, call.query_as(ColdStartBody, COLD_START_ALIASES))


async def _cold_start(call: Call, body: ColdStartBody) -> Response:
    started = call.services.clock.monotonic()
    found = await call.services.context.cold_start(call.reads, body.conversation_id)
    took = (call.services.clock.monotonic() - started) * 1000
    documents = call.documents
    return answer(
        {
            "success": True,
            **cold_start_view(found, documents),
            "meta": {"built_ms": round(took, 3)},
        }
    )


_TAG = "context"
_PATH = "/api/memory/context/insights"
_COLD = "/api/memory/context/cold-start"
_COLD_TEXT = (
    "Who the user is, what they prefer and what is pinned, one line each, capped by count. Facts "
    "that a fixed question finds fill the rest."
)
_TEXT = "From the graphs alone: no embedding is computed, nothing is searched."

_CONTEXT = Operation(
    method="POST",
    path="/api/memory/context",
    tag=_TAG,
    summary="Context of a question, ready for a prompt",
    description="Insights, standing memories and the one search, packed under a token budget. "
    "The stable part comes first and stays equal, byte by byte, until one of its memories "
    "changes (`ETag`). Positions are those of the receipt, so that marks like "
    "`<!-- MEM: 1👍 -->` in an answer mean its lines. What was away is named in `degraded`.",
    handler=context,
    body=PrefetchBody,
    example_body={
        "query": "Where does Dana live?",
        "conversation_id": "conv-7",
        "recent_messages": [
            {"role": "user", "content": "דנה עברה דירה"},
            {"role": "assistant", "content": "When?"},
        ],
        "has_documents": False,
        "token_budget": 1_500,
        "include_context": True,
        "tools": ["search_memory", "web_search"],
    },
    aliases=PREFETCH_ALIASES,
    answer=ContextAnswer,
    example=CONTEXT_EXAMPLE,
)

OPERATIONS = (
    Operation(
        method="POST",
        path=_PATH,
        tag=_TAG,
        summary="Insights before a search",
        description=_TEXT,
        handler=insights_post,
        body=InsightsBody,
        example_body={
            "query": "Where does Dana live?",
            "conversation_id": "conv-7",
            "recent_messages": ["דנה עברה דירה", {"role": "assistant", "content": "When?"}],
        },
        aliases=INSIGHTS_ALIASES,
        answer=InsightsAnswer,
        example=INSIGHTS_EXAMPLE,
    ),
    Operation(
        method="GET",
        path=_PATH,
        tag=_TAG,
        summary="Insights before a search, by query fields",
        description=_TEXT,
        handler=insights_get,
        query=InsightsQuery,
        example_query={"query": "Where does Dana live?"},
        aliases=INSIGHTS_ALIASES,
        answer=InsightsAnswer,
        example=INSIGHTS_EXAMPLE,
    ),
    _CONTEXT,
    replace(
        _CONTEXT,
        path="/api/memory/prefetch",
        summary="Context of a question, for the first client",
        description="What `POST /api/memory/context` does, in the names of the first client.",
        handler=prefetch,
        answer=PrefetchAnswer,
        example=PREFETCH_EXAMPLE,
    ),
    Operation(
        method="POST",
        path=_COLD,
        tag=_TAG,
        summary="What is known before the first question",
        description=_COLD_TEXT,
        handler=cold_start_post,
        body=ColdStartBody,
        body_required=False,
        example_body={"conversation_id": "conv-8"},
        aliases=COLD_START_ALIASES,
        answer=ColdStartAnswer,
        example=COLD_START_EXAMPLE,
    ),
    Operation(
        method="GET",
        path=_COLD,
        tag=_TAG,
        summary="What is known before the first question, by query fields",
        description=_COLD_TEXT,
        handler=cold_start_get,
        query=ColdStartBody,
        aliases=COLD_START_ALIASES,
        answer=ColdStartAnswer,
        example=COLD_START_EXAMPLE,
    ),
)
