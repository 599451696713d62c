"""Hooks of chat programs: context before a turn, the turn itself and its score after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.api.routes.memories import check_query
from rayapp.assistant.context.records import ExchangeAnswer, ExchangeRequest
from rayapp.assistant.context.rules.meta import UNNAMED, memory_meta
from rayapp.assistant.conversations.records import OwedScore, ScoreRequest
from rayapp.assistant.conversations.rules import bare_name, only_block
from rayapp.core.errors import Conflict
from rayapp.inference.ports import Message
from rayapp.memory.tiers import CORE_TIERS, tier_name
from rayapp.search.requests import Hit, SearchQuery
from rayapp.wire import hooks as shapes
from rayapp.wire.examples.context import (
    EXCHANGE_BODY,
    EXCHANGE_EXAMPLE,
    HOOK_CONTEXT_EXAMPLE,
    HOOK_SCORE_EXAMPLE,
    HOOK_STATE_EXAMPLE,
)
from rayapp.wire.hooks import (
    CONTEXT_ALIASES,
    EXCHANGE_ALIASES,
    SCORE_ALIASES,
    ExchangeBody,
    HookContextQuery,
    HookScoreBody,
    HookScoreQuery,
)
from rayapp.wire.views.context import gating_view
from rayapp.wire.views.learning import skipped_views

# Characters of `preview` (client contract).
PREVIEW_CHARS = 150


async def context_post(call: Call) -> Response:
    return await _context(call, call.body_as(HookContextQuery, CONTEXT_ALIASES))


async def context_get(call: Call) -> Response:
    return await _context(call, call.query_as(HookContextQuery, CONTEXT_ALIASES))


async def _context(call: Call, asked: HookContextQuery) -> Response:
    started = call.services.clock.monotonic()
    check_query(call, asked.query)
    tiers = asked.tiers if asked.tiers is not None else CORE_TIERS
    found = await call.services.search.search(
        call.reads,
        SearchQuery(
            query=asked.query,
            limit=min(asked.limit, call.services.settings.search.max_limit),
            tiers=tiers,
            sort_by=asked.sort_by,
            include_datagov=False,
            conversation_id=asked.conversation_id,
            principal=call.principal,
        ),
    )
    owed = None
    if asked.conversation_id is not None:
        owed = await call.services.hooks.owed(call.reads, asked.conversation_id)
    documents = call.documents
    return answer(
        {
            "contexts": [_hit(hit, documents) for hit in found.hits],
            "total": len(found.hits),
            "query": asked.query,
            "tiersSearched": [tier_name(tier, documents) for tier in found.tiers or tiers],
            "latencyMs": _since(call, started),
            "confidence": found.confidence,
            "receipt_id": found.receipt_id,
            **_owing(owed),
            "degraded": list(found.degraded),
        }
    )


async def exchange(call: Call) -> Response:
    started = call.services.clock.monotonic()
    body = call.body_as(ExchangeBody, EXCHANGE_ALIASES)
    raw = [one if isinstance(one, dict) else {} for one in call.data["messages"]]
    request = ExchangeRequest(
        conversation_id=body.conversation_id,
        message_id=body.message_id,
        messages=tuple(Message(one.role, one.content) for one in body.messages),
        limit=min(body.limit, call.services.settings.search.max_limit),
        token_budget=body.token_budget,
        tools=body.tools,
        tools_called=_all_calls(body.tools_called, _tools_called(raw)),
        recorder=call.recorder,
    )
    found = await call.services.hooks.exchange(call.writes, request)
    context = found.context
    call.notes |= {"stages": context.timings_ms, "degraded": context.degraded}
    owed = OwedScore(message_id=found.owed) if found.owed is not None else None
    return answer(
        {
            "messages": _messages(request.messages, raw, found),
            "memoryMeta": memory_meta(
                context,
                user_id=call.user_id,
                message_id=body.message_id,
                documents=call.documents,
                unnamed=UNNAMED,
            ),
            "stored": _stored(found),
            **_owing(owed),
            "required_scoring": owed is not None,
            "current_state": "unscored" if owed is not None else "scored",
            "gating": gating_view(context.gating),
            "latencyMs": _since(call, started),
            "degraded": list(context.degraded),
        }
    )


async def score(call: Call) -> Response:
    body = call.body_as(HookScoreBody, SCORE_ALIASES)
    found = await call.services.hooks.score(
        call.writes,
        ScoreRequest(
            message_id=body.message_id,
            score=body.score,
            conversation_id=body.conversation_id,
            memory_ids=body.memory_ids,
            recorder=call.recorder,
        ),
    )
    return answer(
        {
            "success": True,
            "updated": found.updated,
            "messageId": body.message_id,
            "timestamp": found.at,
            "skipped": skipped_views(found.skipped),
            "duplicate": found.duplicate,
            "degraded": [],
        }
    )


async def score_state(call: Call) -> Response:
    query = call.query_as(HookScoreQuery, SCORE_ALIASES)
    found = await call.services.hooks.state(call.reads, query.message_id, query.conversation_id)
    return answer(
        {
            "messageId": found.message_id,
            "conversationId": found.conversation_id,
            "scored": found.scored_at is not None,
            "timestamp": found.scored_at,
            "required": found.required,
            "score": found.score,
            "memoryId": found.memory_id,
        }
    )


def _hit(hit: Hit, documents: bool) -> dict[str, Any]:
    item = hit.item
    return {
        "tier": tier_name(item.tier, documents),
        "content": item.text,
        "score": hit.summary.final_score,
        "memoryId": item.memory_id,
        "docId": item.source.doc_id,
        "chunkId": item.source.chunk_id,
        "preview": item.text[:PREVIEW_CHARS],
        "createdAt": item.created_at,
    }


def _owing(owed: OwedScore | None) -> dict[str, Any]:
    message_id = owed.message_id if owed else None
    receipt_id = owed.receipt_id if owed else None
    scoring = {"required": owed is not None, "messageId": message_id, "receiptId": receipt_id}
    return {"scoring_required": owed is not None, "scoring": scoring}


def _stored(found: ExchangeAnswer) -> dict[str, Any] | None:
    kept = found.stored
    if kept is None:
        return None
    return {
        "memory_id": kept.memory_id,
        "duplicate": kept.duplicate,
        "scoring_required": kept.scoring_required,
        "reason": kept.reason,
        "truncated": kept.truncated,
        "attributed": kept.attributed,
        "skipped_positions": list(kept.skipped_positions),
    }


def _messages(
    given: Sequence[Message], raw: Sequence[dict[str, Any]], found: ExchangeAnswer
) -> list[dict[str, Any]]:
    """The given messages with all their fields; only what changed is written anew."""
    fields = list(raw)
    if len(found.messages) > len(given):
        given, fields = (Message("system", ""), *given), [{"role": "system"}, *fields]
    elif len(found.messages) < len(given):
        fields = [kept for kept, old in zip(raw, given, strict=True) if not only_block(old)]
        given = [old for old in given if not only_block(old)]
    return [
        {**_plain(new), **kept} if new == old and "content" in kept else {**kept, **_plain(new)}
        for new, old, kept in zip(found.messages, given, fields, strict=True)
    ]


def _plain(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.content}


def _all_calls(named: Sequence[str], seen: Sequence[str]) -> tuple[str, ...]:
    """Calls that are named, and those seen in the messages; one that is both is one call."""
    twice = Counter(bare_name(one) for one in seen)
    more = []
    for one in named:
        if twice[bare_name(one)] > 0:
            twice[bare_name(one)] -= 1
        else:
            more.append(one)
    return (*more, *seen)


def _tools_called(raw: Sequence[dict[str, Any]]) -> list[str]:
    """Names in the `tool_calls` of this turn: what comes after the user's last message."""
    names: list[str] = []
    for message in reversed(raw):
        if message.get("role", "user") == "user":
            break
        calls = message.get("tool_calls")
        for one in calls if isinstance(calls, list) else ():
            function = one.get("function") if isinstance(one, dict) else None
            name = function.get("name") if isinstance(function, dict) else None
            if isinstance(name, str) and name.strip():
                names.append(name.strip())
    return names[::-1]


def _since(call: Call, started: float) -> float:
    return round((call.services.clock.monotonic() - started) * 1000, 3)


_TAG = "hooks"
_CONTEXT = "/api/hooks/context"
_SCORE = "/api/hooks/score"
_CONTEXT_TEXT = "The one search over the core tiers; `scoring_required` says what is still owed."

OPERATIONS = (
    Operation(
        method="POST",
        path=_CONTEXT,
        tag=_TAG,
        summary="Memories for a prompt",
        description=_CONTEXT_TEXT,
        handler=context_post,
        body=HookContextQuery,
        example_body={"query": "Where does Dana live?", "limit": 5, "conversationId": "conv-7"},
        aliases=CONTEXT_ALIASES,
        answer=shapes.HookContextAnswer,
        example=HOOK_CONTEXT_EXAMPLE,
    ),
    Operation(
        method="GET",
        path=_CONTEXT,
        tag=_TAG,
        summary="Memories for a prompt, by query fields",
        description=_CONTEXT_TEXT,
        handler=context_get,
        query=HookContextQuery,
        example_query={"query": "Where does Dana live?", "limit": "5", "tiers": "working,history"},
        aliases=CONTEXT_ALIASES,
        answer=shapes.HookContextAnswer,
        example=HOOK_CONTEXT_EXAMPLE,
    ),
    Operation(
        method="POST",
        path="/api/hooks/exchange",
        tag=_TAG,
        summary="Enrich the messages, and keep a finished turn",
        description="The context stands in the first system message, in place of an earlier one. "
        "When the last message is the assistant's, the turn is kept once per conversation and "
        "message, its marks are scored, and the answer says whether a score is owed.",
        handler=exchange,
        body=ExchangeBody,
        example_body=EXCHANGE_BODY,
        aliases=EXCHANGE_ALIASES,
        answer=shapes.ExchangeAnswerView,
        example=EXCHANGE_EXAMPLE,
        errors=(Conflict,),
        writes=True,
    ),
    Operation(
        method="POST",
        path=_SCORE,
        tag=_TAG,
        summary="Score an answer",
        description="The newest thumb on a memory of an answer counts: the same one again changes "
        "nothing. It ends the waiting for a score of this answer.",
        handler=score,
        body=HookScoreBody,
        example_body={
            "messageId": "msg-7",
            "conversationId": "conv-7",
            "score": 1,
            "memoryIds": ["mem-1"],
        },
        aliases=SCORE_ALIASES,
        answer=shapes.HookScoreAnswer,
        example=HOOK_SCORE_EXAMPLE,
        errors=(Conflict,),
        writes=True,
    ),
    Operation(
        method="GET",
        path=_SCORE,
        tag=_TAG,
        summary="Whether an answer was scored",
        handler=score_state,
        query=HookScoreQuery,
        example_query={"message_id": "msg-7"},
        aliases=SCORE_ALIASES,
        answer=shapes.HookScoreState,
        example=HOOK_STATE_EXAMPLE,
    ),
)
