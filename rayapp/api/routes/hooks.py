"""Hooks of chat programs: context before a turn, the turn itself and its score after it."""

from collections import Counter
from collections.abc import Sequence

from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.api.routes.memories import check_query
from rayapp.assistant.context.rules.meta import UNNAMED, memory_meta
from rayapp.assistant.conversations.rules import (
    is_cut_short,
    tool_rounds,
    tools_called,
    with_fields,
    with_roles,
)
from rayapp.assistant.records import ExchangeRequest, PendingFeedback, ScoreRequest
from rayapp.assistant.tools.rules.definitions import own_name
from rayapp.assistant.tools.rules.limits import limited_results
from rayapp.core.errors import Conflict
from rayapp.graphs.rules.directives import side_of
from rayapp.inference.ports import Message
from rayapp.learning.records import ToolRun
from rayapp.memory.tiers import CORE_TIERS, tier_name
from rayapp.search.requests import SearchQuery
from rayapp.wire import hooks as wire
from rayapp.wire.context import GatingView
from rayapp.wire.prompt import TurnPromptAnswer

routes = router("hooks")
CONTEXT = "/api/hooks/context"
CONTEXT_TEXT = "The one search over the core tiers; `scoring_required` says what is still owed."
SCORE = "/api/hooks/score"


@routes.post(CONTEXT, summary="Memories for a prompt", description=CONTEXT_TEXT)
async def context(call: CurrentCall, body: wire.HookContextQuery) -> wire.HookContextAnswer:
    check_query(call, body.query)
    tiers = body.tiers if body.tiers is not None else CORE_TIERS
    found = await call.services.search.search(
        call.reads,
        body.fill(
            SearchQuery,
            limit=min(body.limit, call.services.settings.search.max_limit),
            tiers=tiers,
            include_datagov=False,
            principal=call.who.principal,
        ),
    )
    owed = None
    if body.conversation_id is not None:
        owed = await call.services.hooks.owed(call.reads, body.conversation_id)
    return wire.HookContextAnswer.of(
        found,
        call.documents,
        total=len(found.hits),
        query=body.query,
        tiers_searched=tuple(tier_name(tier, call.documents) for tier in found.tiers or tiers),
        latency_ms=call.built_ms,
        scoring_required=owed is not None,
        scoring=wire.ScoringView.from_pending(owed),
    )


@routes.get(CONTEXT, summary="Memories for a prompt, by query fields", description=CONTEXT_TEXT)
async def context_by_query(
    call: CurrentCall, query: InQuery[wire.HookContextQuery]
) -> wire.HookContextAnswer:
    return await context(call, query)


@routes.post(
    "/api/hooks/exchange",
    summary="Enrich the messages, and keep a finished turn",
    **writes(Conflict),
)
async def exchange(call: CurrentCall, body: wire.ExchangeBody) -> wire.ExchangeAnswerView:
    """The context stands in the first system message, in place of an earlier one. When the last
    message is the assistant's, the turn is kept once per conversation and message, its marks are
    scored, and the answer says whether a score is owed."""
    raw = [one if isinstance(one, dict) else {} for one in call.data["messages"]]
    messages = tuple(Message(one.role, one.content) for one in body.messages)
    told = with_roles(messages, raw)
    request = body.fill(
        ExchangeRequest,
        messages=messages,
        limit=min(body.limit, call.services.settings.search.max_limit),
        tools_called=_all_calls(body.tools_called, tools_called(told)),
        tool_rounds=tool_rounds(told),
        interrupted=body.interrupted or is_cut_short(raw[-1]),
        tool_runs=tuple(one.fill(ToolRun) for one in body.tool_runs),
        prompt=body.include_prompt,
        recorder=call.recorder,
    )
    found = await call.services.hooks.exchange(call.writes, request)
    context = found.context
    call.notes |= {"stages": context.timings_ms, "degraded": context.degraded}
    owed = PendingFeedback(message_id=found.owed) if found.owed is not None else None
    return wire.ExchangeAnswerView.of(
        found,
        messages=limited_results(
            with_fields(request.messages, raw, found.messages),
            call.services.tools.table,
            side_of(context.task.language),
        ),
        memory_meta=memory_meta(
            context,
            user_id=call.who.user_id,
            message_id=body.message_id,
            documents=call.documents,
            unnamed=UNNAMED,
        ),
        scoring_required=owed is not None,
        scoring=wire.ScoringView.from_pending(owed),
        required_scoring=owed is not None,
        current_state="unscored" if owed is not None else "scored",
        gating=GatingView.from_decision(context.gating),
        intents=context.intents,
        latency_ms=call.built_ms,
        degraded=context.degraded,
        prompt=TurnPromptAnswer.from_prompt(found.prompt, latency_ms=call.built_ms)
        if found.prompt
        else None,
    )


@routes.post(SCORE, summary="Score an answer", **writes(Conflict))
async def score(call: CurrentCall, body: wire.HookScoreBody) -> wire.HookScoreAnswer:
    """The newest thumb on a memory of an answer counts: the same one again changes nothing. It ends
    the waiting for a score of this answer."""
    request = body.fill(ScoreRequest, recorder=call.recorder)
    found = await call.services.hooks.score(call.writes, request)
    updated, now = len(found.updated), call.services.clock.now()
    return wire.HookScoreAnswer.of(
        found, updated=updated, message_id=body.message_id, timestamp=now
    )


@routes.get(SCORE, summary="Whether an answer was scored")
async def score_state(
    call: CurrentCall, query: InQuery[wire.HookScoreQuery]
) -> wire.HookScoreState:
    found = await call.services.hooks.state(call.reads, query.message_id, query.conversation_id)
    scored_at = found.scored_at
    return wire.HookScoreState.of(found, scored=scored_at is not None, timestamp=scored_at)


def _all_calls(named: Sequence[str], seen: Sequence[str]) -> tuple[str, ...]:
    """Calls that are named, and those seen in the messages; one that is both is one call."""
    twice = Counter(own_name(one) for one in seen)
    more = []
    for one in named:
        if twice[own_name(one)] > 0:
            twice[own_name(one)] -= 1
        else:
            more.append(one)
    return (*more, *seen)
