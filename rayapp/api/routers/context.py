"""What an assistant should know before it searches."""

from __future__ import annotations

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.examples import INSIGHTS_EXAMPLE
from rayapp.api.insight_views import insights_view
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.api.routers.memories import check_query
from rayapp.api.schemas.context_answers import InsightsAnswer
from rayapp.api.schemas.graphs import INSIGHTS_ALIASES, InsightsBody, InsightsQuery
from rayapp.domain.learning_requests import InsightsRequest


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
            **insights_view(found, call.services.settings.compat.tier_documents),
            "meta": {"built_ms": found.built_ms},
            "degraded": [],
        }
    )


_TAG = "context"
_PATH = "/api/memory/context/insights"
_TEXT = "From the graphs alone: no embedding is computed, nothing is searched."

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
)
