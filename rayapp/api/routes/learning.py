"""What helped and what did not: outcomes, responses, feedback, scores, promotion."""

from dataclasses import replace

from rayapp.api.call import Call
from rayapp.api.idempotency import key_of
from rayapp.api.route import KEEPS_KEY, CurrentCall, router, writes
from rayapp.core.errors import Conflict, NotFound
from rayapp.learning.records import (
    FeedbackRequest,
    OutcomeAnswer,
    OutcomeRequest,
    ResponseRequest,
    Signal,
)
from rayapp.learning.rules.outcomes import fingerprint
from rayapp.learning.rules.scores import once_each, score_requests, together
from rayapp.memory.item import Outcome
from rayapp.wire import learning as wire

routes = router("learning")
MEMORY = "/api/memory"
REFUSALS = writes(NotFound, Conflict)
KEPT = writes(NotFound, Conflict, key=KEEPS_KEY)


@routes.post(f"{MEMORY}/outcomes", summary="Record an outcome", **KEPT)
async def outcomes(call: CurrentCall, body: wire.OutcomeBody) -> wire.OutcomeAnswerView:
    """About the memories named by id or by position of a receipt, else about all that the receipt
    shows. A retry with the same idempotency key gets the first result, for ever."""
    own = {"signal": body.signal.fill(Signal), "idempotency_key": key_of(call)}
    request = body.fill(OutcomeRequest, recorder=call.recorder, **own)
    found = await call.services.outcomes.record(call.writes, request)
    return wire.OutcomeAnswerView.from_answer(found, call.documents)


@routes.post(f"{MEMORY}/record_response", summary="Keep what an answer taught", **KEPT)
async def record_response(call: CurrentCall, body: wire.ResponseBody) -> wire.ResponseAnswerView:
    """Stores the takeaway in `working` and scores `related`, or all that the receipt shows. A retry
    with the same idempotency key gets the first result, for ever."""
    request = body.fill(ResponseRequest, idempotency_key=key_of(call), recorder=call.recorder)
    found = await call.services.outcomes.record_response(call.writes, request)
    return wire.ResponseAnswerView.from_response(found, call.documents)


@routes.post(f"{MEMORY}/feedback", summary="Rate an answer", **REFUSALS)
async def feedback(call: CurrentCall, body: wire.FeedbackBody) -> wire.FeedbackAnswer:
    """Scores each citation. The newest thumb on a citation of a message counts: the same one again
    changes nothing, another one takes its place. Message ids are those of their conversation."""
    request = body.fill(FeedbackRequest, recorder=call.recorder)
    if request.conversation_id is None:
        # So that it is one thumb with one that names the conversation, and goes with it.
        known = await call.services.hooks.state(call.reads, body.message_id, None)
        name = known.conversation_id
        request = replace(request, conversation_id=name, found=name is not None)
    found = await call.services.outcomes.feedback(call.writes, request)
    message = await _feedback_message(call, body, found)
    return wire.FeedbackAnswer.of(
        found, message=message, score=body.score, citations_scored=len(found.updated)
    )


async def _feedback_message(call: Call, body: wire.FeedbackBody, found: OutcomeAnswer) -> str:
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


@routes.post(
    f"{MEMORY}/score",
    summary="Score memories one by one",
    description="Like an outcome, each memory with its own.",
    **REFUSALS,
)
async def score(call: CurrentCall, body: wire.ScoreBody) -> wire.OutcomeAnswerView:
    """One record per outcome; what could be refused is refused before the first one."""
    whole = body.fill(
        OutcomeRequest,
        outcome=Outcome.UNKNOWN,
        idempotency_key=key_of(call),
        recorder=call.recorder,
        request_hash=fingerprint(**body.model_dump(mode="json", exclude={"idempotency_key"})),
    )
    requests = score_requests(body.scores, whole, by_position=body.has_receipt)
    receipt_id = body.receipt_id
    if len({request.positions is None for request in requests}) > 1:
        receipt = await call.services.outcomes.shown(call.writes, requests[0])
        if receipt is not None:
            ids = {one.position: one.memory_id for one in receipt.shown}
            receipt_id, requests = receipt.receipt_id, once_each(requests, ids)
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
    return wire.OutcomeAnswerView.from_answer(together(answers), call.documents)


@routes.post(f"{MEMORY}/ops/promote", summary="Run a promotion cycle", **writes(Conflict))
async def promote(call: CurrentCall, body: wire.PromoteBody | None = None) -> wire.PromoteAnswer:
    """For the acting user, or for all users. Running it twice changes nothing."""
    of_all = body is not None and body.all_users
    report = await call.services.promotion.run(None if of_all else call.who.user_id)
    return wire.PromoteAnswer(stats=report)


@routes.get(f"{MEMORY}/decay/schedule", summary="When promotion runs")
async def decay_schedule(call: CurrentCall) -> wire.ScheduleAnswer:
    schedule = await call.services.promotion.schedule(call.who.user_id)
    return wire.ScheduleAnswer(schedule=schedule)


@routes.post(
    f"{MEMORY}/decay/force", summary="Run a promotion cycle for the acting user", **writes(Conflict)
)
async def decay_force(call: CurrentCall) -> wire.DecayAnswer:
    report = await call.services.promotion.run(call.who.user_id)
    return wire.DecayAnswer(result=report)
