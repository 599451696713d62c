"""What an assistant should know before it searches."""

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import model_answer
from rayapp.api.route import CurrentCall, InQuery, router
from rayapp.api.routes.memories import check_query
from rayapp.assistant.context.rules.meta import UNNAMED, memory_meta, retrieval_debug
from rayapp.assistant.records import AssistantContext, ContextRequest
from rayapp.graphs.records import InsightsRequest
from rayapp.inference.ports import Message
from rayapp.wire import context as wire

routes = router("context")
INSIGHTS = "/api/memory/context/insights"
COLD = "/api/memory/context/cold-start"
INSIGHTS_TEXT = "From the graphs alone: no embedding is computed, nothing is searched."
COLD_TEXT = (
    "Who the user is, what they prefer and what is pinned, one line each, capped by count. Facts "
    "that a fixed question finds fill the rest."
)


@routes.post(INSIGHTS, summary="Insights before a search", description=INSIGHTS_TEXT)
async def insights(call: CurrentCall, body: wire.InsightsBody) -> wire.InsightsAnswer:
    check_query(call, body.query)
    recent = (one if isinstance(one, str) else one.content for one in body.recent_messages)
    request = body.fill(InsightsRequest, recent=tuple(recent))
    found = await call.services.insights.insights(call.reads, request)
    return wire.InsightsAnswer.from_insights(found, call.documents)


@routes.get(
    INSIGHTS, summary="Insights before a search, by query fields", description=INSIGHTS_TEXT
)
async def insights_by_query(
    call: CurrentCall, query: InQuery[wire.InsightsQuery]
) -> wire.InsightsAnswer:
    return await insights(call, query)


@routes.post(
    "/api/memory/context",
    summary="Context of a question, ready for a prompt",
    response_model=wire.ContextAnswer,
)
async def context(call: CurrentCall, body: wire.PrefetchBody) -> Response:
    """Insights, standing memories and the one search, packed under a token budget. The stable part
    comes first and stays equal, byte by byte, until one of its memories changes (`ETag`). Positions
    are those of the receipt, so that marks like `<!-- MEM: 1👍 -->` in an answer mean its lines.
    What was away is named in `degraded`."""
    found = await _context(call, body)
    block, shown = found.block, body.include_context
    meta = memory_meta(found, user_id=call.who.user_id, documents=call.documents)
    return _tagged(
        wire.ContextAnswer.from_context(
            found,
            latency_ms=call.built_ms,
            stable_text=block.stable if shown else None,
            volatile_text=block.volatile if shown else None,
            memory_meta=meta,
        )
    )


@routes.post(
    "/api/memory/prefetch",
    summary="Context of a question, for the first client",
    description="What `POST /api/memory/context` does, in the names of the first client.",
    response_model=wire.PrefetchAnswer,
)
async def prefetch(call: CurrentCall, body: wire.PrefetchBody) -> Response:
    found = await _context(call, body)
    return _tagged(
        wire.PrefetchAnswer.from_context(
            found,
            latency_ms=call.built_ms,
            debug=retrieval_debug(found) | {"confidence": found.confidence},
            text=(found.block.text or None) if body.include_context else None,
            memory_meta=memory_meta(
                found, user_id=call.who.user_id, documents=call.documents, unnamed=UNNAMED
            ),
        )
    )


async def _context(call: Call, body: wire.PrefetchBody) -> AssistantContext:
    found = await call.services.context.prefetch(call.reads, request_of(call, body))
    call.notes |= {
        "stages": found.timings_ms,
        "lines": len(found.block.lines),
        "degraded": found.degraded,
    }
    return found


def request_of(call: Call, body: wire.PrefetchBody) -> ContextRequest:
    check_query(call, body.query)
    # A key that may not write changes nothing, also not by what its user says.
    recorder = call.recorder if call.who.may_write and not body.dry_run else None
    return body.fill(
        ContextRequest, recent=_before(body), principal=call.who.principal, recorder=recorder
    )


def _before(body: wire.PrefetchBody) -> tuple[Message, ...]:
    """The messages before the question: programs often send the question among them."""
    found = tuple(Message(role=one.role, content=one.content) for one in body.recent_messages)
    if found and found[-1].role == "user" and found[-1].content.strip() == body.query.strip():
        return found[:-1]
    return found


def _tagged(shown: wire.ContextAnswer | wire.PrefetchAnswer) -> Response:
    return model_answer(shown, headers={"ETag": f'"{shown.etag}"'})


@routes.post(COLD, summary="What is known before the first question", description=COLD_TEXT)
async def cold_start(
    call: CurrentCall, body: wire.ColdStartBody | None = None
) -> wire.ColdStartAnswer:
    conversation_id = body.conversation_id if body else None
    found = await call.services.context.cold_start(call.reads, conversation_id)
    return wire.ColdStartAnswer.from_start(found, call.documents, call.built_ms)


@routes.get(
    COLD, summary="What is known before the first question, by query fields", description=COLD_TEXT
)
async def cold_start_by_query(
    call: CurrentCall, query: InQuery[wire.ColdStartBody]
) -> wire.ColdStartAnswer:
    return await cold_start(call, query)
