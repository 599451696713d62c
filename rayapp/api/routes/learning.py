"""What helped and what did not: outcomes, responses, feedback, scores, promotion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.idempotency import key_of
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.learning.records import (
    FeedbackRequest,
    OutcomeAnswer,
    OutcomeRequest,
    Recorder,
    ResponseRequest,
)
from rayapp.learning.rules.outcomes import fingerprint
from rayapp.memory.item import Outcome
from rayapp.search.ports import Receipt
from rayapp.wire import learning as shapes
from rayapp.wire.examples.memories import CYCLE_EXAMPLE, OUTCOME_EXAMPLE
from rayapp.wire.learning import (
    FEEDBACK_ALIASES,
    OUTCOME_ALIASES,
    RESPONSE_ALIASES,
    FeedbackBody,
    OutcomeBody,
    PromoteBody,
    ResponseBody,
    ScoreBody,
)
from rayapp.wire.views.learning import (
    cycle_view,
    outcome_view,
    response_view,
    skipped_views,
    together,
)

# A body of /score as outcome requests: one per outcome, and each memory in one of them.


def score_requests(body: ScoreBody, key: str | None, recorder: Recorder) -> list[OutcomeRequest]:
    """Positions before ids, and the largest position first: if it exists, all of them do."""
    positions: dict[Outcome, list[int]] = {}
    ids: dict[Outcome, list[str]] = {}
    for target, outcome in body.scores.items():
        if body.shows_positions and target.isdigit():
            positions.setdefault(outcome, []).append(int(target))
        else:
            ids.setdefault(outcome, []).append(target)
    first = OutcomeRequest(
        outcome=Outcome.UNKNOWN,
        receipt_id=body.receipt_id,
        conversation_id=body.conversation_id,
        recorder=recorder,
        action=body.action,
        request_hash=fingerprint(
            scores=dict(body.scores),
            receipt_id=body.receipt_id,
            conversation_id=body.conversation_id,
            action=body.action,
        ),
    )
    groups = [
        replace(first, outcome=outcome, positions=tuple(sorted(set(found))))
        for outcome, found in sorted(positions.items(), key=lambda one: -max(one[1]))
    ]
    groups += [
        replace(first, outcome=outcome, memory_ids=tuple(found)) for outcome, found in ids.items()
    ]
    if key is None:
        return groups
    return [replace(one, idempotency_key=_derived(key, one)) for one in groups]


def once_each(requests: Sequence[OutcomeRequest], receipt: Receipt) -> list[OutcomeRequest]:
    """Requests in which no id names what a position names too.

    Raises:
        InvalidInput: a memory is given two outcomes.
    """
    shown = {one.position: one.memory_id for one in receipt.shown}
    judged: dict[str, tuple[Outcome, str]] = {}
    for request in requests:
        named = [(shown[p], f"position {p}") for p in request.positions or () if p in shown]
        named += [(one, "its id") for one in request.memory_ids or ()]
        for memory_id, name in named:
            outcome, other = judged.setdefault(memory_id, (request.outcome, name))
            if outcome is not request.outcome:
                raise InvalidInput(
                    f"scores: {memory_id} is {outcome} by {other} and {request.outcome} by {name}; "
                    "send one outcome for it.",
                    details={"field": "scores", "memory_id": memory_id},
                )
    left = []
    for request in requests:
        if request.memory_ids is not None:
            ids = tuple(one for one in request.memory_ids if judged[one][1] == "its id")
            request = replace(request, memory_ids=ids)
        if request.memory_ids != ():
            left.append(request)
    return left


def _derived(key: str, request: OutcomeRequest) -> str:
    """A space is in no key of a caller: none of theirs is like it."""
    return f"score {request.outcome} {'ids' if request.positions is None else 'positions'} {key}"


async def outcomes(call: Call) -> Response:
    key = key_of(call)
    body = call.body_as(OutcomeBody, OUTCOME_ALIASES)
    request = OutcomeRequest(
        outcome=body.outcome,
        memory_ids=body.memory_ids,
        positions=body.positions,
        receipt_id=body.receipt_id,
        conversation_id=body.conversation_id,
        idempotency_key=key,
        signal=body.signal.signal(),
        recorder=call.recorder,
        action=body.action,
    )
    found = await call.services.outcomes.record(call.writes, request)
    return answer(outcome_view(found, call.documents))


async def record_response(call: Call) -> Response:
    key = key_of(call)
    body = call.body_as(ResponseBody, RESPONSE_ALIASES)
    request = ResponseRequest(
        key_takeaway=body.key_takeaway,
        outcome=body.outcome,
        related=body.related,
        receipt_id=body.receipt_id,
        conversation_id=body.conversation_id,
        idempotency_key=key,
        recorder=call.recorder,
    )
    found = await call.services.outcomes.record_response(call.writes, request)
    return answer(response_view(found, call.documents))


async def feedback(call: Call) -> Response:
    body = call.body_as(FeedbackBody, FEEDBACK_ALIASES)
    request = FeedbackRequest(
        message_id=body.message_id,
        score=body.score,
        conversation_id=body.conversation_id,
        citations=body.citations,
        recorder=call.recorder,
    )
    found = await call.services.outcomes.feedback(call.writes, request)
    return answer(
        {
            "success": True,
            "message": await _feedback_message(call, body, found),
            "score": body.score,
            "citationsScored": len(found.updated),
            "skipped": skipped_views(found.skipped),
            "duplicate": found.duplicate,
            "degraded": [],
        }
    )


async def _feedback_message(call: Call, body: FeedbackBody, found: OutcomeAnswer) -> str:
    """A thumb that moved nothing says why: the client cannot see what is known here."""
    if found.duplicate:
        return "Known already."
    if found.updated:
        return "Feedback kept."
    if body.citations:
        return "Nothing was scored: `skipped` says why for each citation."
    known = await call.services.hooks.state(call.reads, body.message_id, body.conversation_id)
    if known.memory_id is None:
        return (
            "Nothing was scored: no answer with this messageId was found here. "
            "Check the id, or name the memories in `citations`."
        )
    return "Nothing was scored: name the memories in `citations`."


async def score(call: Call) -> Response:
    """One record per outcome; what could be refused is refused before the first one."""
    body = call.body_as(ScoreBody, OUTCOME_ALIASES)
    requests = score_requests(body, key_of(call), call.recorder)
    receipt_id = body.receipt_id
    if len({request.positions is None for request in requests}) > 1:
        receipt = await call.services.outcomes.shown(call.writes, requests[0])
        if receipt is not None:
            receipt_id, requests = receipt.receipt_id, once_each(requests, receipt)
    if len(requests) > 1:
        for memory_id in [one for request in requests for one in request.memory_ids or ()]:
            await call.services.memories.get(call.reads, memory_id)
    answers: list[OutcomeAnswer] = []
    for request in requests:
        # The conversation's newest unscored search is another one once the first record is made.
        named = replace(request, receipt_id=receipt_id)
        found = await call.services.outcomes.record(call.writes, named)
        receipt_id = receipt_id or found.receipt_id
        answers.append(found)
    return answer(outcome_view(together(answers), call.documents))


async def promote(call: Call) -> Response:
    body = call.body_as(PromoteBody) if call.body else PromoteBody()
    report = await call.services.promotion.run(None if body.all_users else call.user_id)
    return answer({"success": True, "stats": cycle_view(report), "degraded": []})


async def decay_schedule(call: Call) -> Response:
    schedule = await call.services.promotion.schedule(call.user_id)
    return answer(
        {
            "success": True,
            "schedule": {
                "kind": "promotion_cycle",
                "interval_ms": schedule.interval_ms,
                "running": schedule.running,
                "last_run_at": schedule.last_run_at,
            },
            "degraded": [],
        }
    )


async def decay_force(call: Call) -> Response:
    report = await call.services.promotion.run(call.user_id)
    return answer({"success": True, "result": cycle_view(report), "degraded": []})


_TAG = "learning"
_KEEPS = "A retry with the same idempotency key gets the first result, for ever."

OPERATIONS = (
    Operation(
        method="POST",
        path="/api/memory/outcomes",
        tag=_TAG,
        summary="Record an outcome",
        description="About the memories named by id or by position of a receipt, else about all "
        f"that the receipt shows. {_KEEPS}",
        handler=outcomes,
        body=OutcomeBody,
        example_body={
            "memory_ids": ["mem-1"],
            "outcome": "worked",
            "signal": {"source": "explicit", "confidence": 1.0},
        },
        aliases=OUTCOME_ALIASES,
        answer=shapes.OutcomeAnswerView,
        example=OUTCOME_EXAMPLE,
        errors=(NotFound, Conflict),
        writes=True,
        keeps_key=True,
    ),
    Operation(
        method="POST",
        path="/api/memory/record_response",
        tag=_TAG,
        summary="Keep what an answer taught",
        description="Stores the takeaway in `working` and scores `related`, or all that the "
        f"receipt shows. {_KEEPS}",
        handler=record_response,
        body=ResponseBody,
        example_body={
            "key_takeaway": "Dana wants the address in Hebrew; דנה רוצה את הכתובת בעברית.",
            "outcome": "worked",
            "related": ["mem-1"],
        },
        aliases=RESPONSE_ALIASES,
        answer=shapes.ResponseAnswerView,
        example=OUTCOME_EXAMPLE
        | {"memory_id": "0192f1c8-7a2e-7c1b-9d57-3c2f6f0b8a11", "scored": 1}
        | {"message": "Takeaway kept, memories scored."},
        errors=(NotFound, Conflict),
        writes=True,
        keeps_key=True,
    ),
    Operation(
        method="POST",
        path="/api/memory/feedback",
        tag=_TAG,
        summary="Rate an answer",
        description="Scores each citation. The newest thumb on a citation of a message counts: the "
        "same one again changes nothing, another one takes its place. Message ids are those of "
        "their conversation.",
        handler=feedback,
        body=FeedbackBody,
        example_body={
            "messageId": "msg-7",
            "conversationId": "conv-7",
            "score": 1,
            "citations": ["mem-1"],
        },
        aliases=FEEDBACK_ALIASES,
        answer=shapes.FeedbackAnswer,
        example={
            "success": True,
            "message": "Feedback kept.",
            "score": 1,
            "citationsScored": 1,
            "skipped": [],
            "duplicate": False,
            "degraded": [],
        },
        errors=(NotFound, Conflict),
        writes=True,
    ),
    Operation(
        method="POST",
        path="/api/memory/score",
        tag=_TAG,
        summary="Score memories one by one",
        description="Like an outcome, each memory with its own.",
        handler=score,
        body=ScoreBody,
        example_body={"scores": {"mem-1": "worked"}},
        aliases=OUTCOME_ALIASES,
        answer=shapes.OutcomeAnswerView,
        example=OUTCOME_EXAMPLE,
        errors=(NotFound, Conflict),
        writes=True,
    ),
    Operation(
        method="POST",
        path="/api/memory/ops/promote",
        tag=_TAG,
        summary="Run a promotion cycle",
        description="For the acting user, or for all users. Running it twice changes nothing.",
        handler=promote,
        body=PromoteBody,
        body_required=False,
        example_body={"all_users": False},
        answer=shapes.PromoteAnswer,
        example={"success": True, "stats": CYCLE_EXAMPLE, "degraded": []},
        errors=(Conflict,),
        writes=True,
    ),
    Operation(
        method="GET",
        path="/api/memory/decay/schedule",
        tag=_TAG,
        summary="When promotion runs",
        handler=decay_schedule,
        answer=shapes.ScheduleAnswer,
        example={
            "success": True,
            "schedule": {
                "kind": "promotion_cycle",
                "interval_ms": 1_800_000,
                "running": True,
                "last_run_at": "2025-05-07T09:30:00Z",
            },
            "degraded": [],
        },
    ),
    Operation(
        method="POST",
        path="/api/memory/decay/force",
        tag=_TAG,
        summary="Run a promotion cycle for the acting user",
        handler=decay_force,
        answer=shapes.DecayAnswer,
        example={"success": True, "result": CYCLE_EXAMPLE, "degraded": []},
        errors=(Conflict,),
        writes=True,
    ),
)
