"""Operations for administrators under the first client's paths: reindex, deferred items, sweeps,
DataGov, breakers. Long work is a job: the answer comes at once and names it."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from rayapp.admin.ports import Component
from rayapp.api.call import Call
from rayapp.api.errors import error_body, status_of
from rayapp.api.json_answer import answer
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.api.routes.system import public_url
from rayapp.bulk.model import DesiredState, Job, JobState
from rayapp.bulk.params import CONSISTENCY, DATAGOV, REINDEX
from rayapp.core.errors import Conflict, EmbedderDown, InvalidInput, JobsDown
from rayapp.wire import ops as wire

routes = router("operations")
OPS = "/api/memory/ops"
REINDEXES, WAITING, DATAGOVS = f"{OPS}/reindex", f"{OPS}/reindex/deferred", f"{OPS}/datagov"
BREAKERS = f"{OPS}/circuit-breaker"
SUBMITS = writes(Conflict, JobsDown)
EMBEDDING = "embedding"
# What becomes of a job that a driver has.
AFTER_WISH = {
    DesiredState.PAUSE: "The reindex stops after its step.",
    DesiredState.RUN: "The reindex goes on.",
    DesiredState.CANCEL: "The reindex ends after its step.",
}
# Jobs looked through for the one that is meant.
RECENT = 20
RECOVERY = (
    "Run `rayapp doctor`: it names what the embedder lacks.",
    "Read the log of the embedding deployment in the Ray dashboard.",
    "Waiting items are kept and indexed as soon as the embedder answers again.",
)


async def _newest(call: Call, kind: str) -> Job | None:
    """The one that goes on, else the last one that had a driver: a submit that was refused
    because another job went on leaves a row too."""
    found = await call.services.jobs.recent(kind, RECENT)
    going_on = (job for job in found if not job.final)
    driven = (job for job in found if job.started_at is not None)
    return next(going_on, None) or next(driven, None) or next(iter(found), None)


async def _submit(call: Call, kind: str, **params: Any) -> wire.SubmittedView:
    job = await call.services.jobs.submit(kind, params, requested_by=call.who.principal)
    return wire.SubmittedView.from_job(job)


# --- reindex


@routes.get(REINDEXES, summary="Progress of the newest reindex")
async def reindex_progress(call: CurrentCall) -> wire.ProgressAnswer:
    job = await _newest(call, REINDEX)
    return wire.ProgressAnswer(progress=job and wire.ProgressView.from_job(job))


@routes.post(REINDEXES, summary="Fill a new collection behind the running one", **SUBMITS)
async def reindex(call: CurrentCall, body: wire.ReindexBody | None = None) -> wire.SubmittedAnswer:
    """Submits a job and answers at once; searches see the new collection only when it is complete
    and verified."""
    params = body.model_dump(mode="json", exclude={"idempotency_key"}) if body else {}
    return wire.SubmittedAnswer(result=await _submit(call, REINDEX, **params))


def _add_wish(
    name: str, wish: DesiredState, summary: str, shape: type[wire.ReindexAnswer], word: str
) -> None:
    """The first client asks without an id: the newest reindex is meant, if it has not ended."""

    @routes.post(
        f"{REINDEXES}/{name}",
        summary=summary,
        description=f"The newest reindex; `{word}` is false when it has ended or there is none.",
        response_model=shape,
        **SUBMITS,
    )
    async def ask(call: CurrentCall) -> wire.ReindexAnswer:
        job = await _newest(call, REINDEX)
        if job is None or job.final:
            message = "No reindex is going on."
            return shape.model_validate({word: False, "job_id": None, "message": message})
        job = await call.services.jobs.set_desired_state(job.job_id, wish)
        return shape.of(job, message=_what_happens(job, wish), **{word: True})


_add_wish("pause", DesiredState.PAUSE, "Pause the reindex", wire.PausedAnswer, "paused")
_add_wish("resume", DesiredState.RUN, "Go on with the reindex", wire.ResumedAnswer, "resumed")
_add_wish("cancel", DesiredState.CANCEL, "Cancel the reindex", wire.CancelledAnswer, "cancelled")


def _what_happens(job: Job, wish: DesiredState) -> str:
    """`job`: as it is after the wish; one without a driver is at once what was asked for."""
    if job.state is JobState.CANCELLED:
        return "The reindex is cancelled."
    if job.state is JobState.SUBMITTED:
        return "The reindex waits for its driver."
    if job.state is JobState.PAUSED and wish is DesiredState.PAUSE:
        return "The reindex is paused."
    return AFTER_WISH[wish]


@routes.post(
    f"{REINDEXES}/rollback", summary="Go back to the collection before the last reindex", **SUBMITS
)
async def reindex_rollback(call: CurrentCall) -> wire.SubmittedAnswer:
    """Submits a job; possible within `reindex.rollback_h` hours."""
    return wire.SubmittedAnswer(result=await _submit(call, REINDEX, rollback=True))


# --- items that the index does not hold yet


@routes.get(WAITING, summary="Count what waits for the index")
async def deferred_count(
    call: CurrentCall, query: InQuery[wire.DeferredQuery]
) -> wire.DeferredCountAnswer:
    waiting = await call.services.deferred.waiting(query.user_id)
    message = f"{waiting} memories wait for the index." if waiting else "Nothing waits."
    return wire.DeferredCountAnswer(pending_reindex=waiting, message=message)


@routes.post(
    WAITING,
    summary="Index waiting and failed items now",
    response_model=wire.DeferredAnswer,
    **writes(EmbedderDown),
)
async def deferred(
    call: CurrentCall, body: wire.DeferredBody | None = None
) -> wire.DeferredAnswer | Response:
    """503 with `recoverySteps` while the embedder is away."""
    user_id = body.user_id if body else None
    embedder = await _embedder(call)
    if embedder is not None and not embedder.healthy:
        return _no_embedder(embedder.message)
    hastened = await call.services.deferred.requeue(user_id)
    waiting = await call.services.deferred.waiting(user_id)
    return wire.DeferredAnswer(
        result=wire.DeferredResult(hastened=hastened, pending_reindex=waiting),
        message=f"{hastened} memories are due now; {waiting} wait for the index in all.",
    )


async def _embedder(call: Call) -> Component | None:
    components = await call.services.health.components()
    return next((one for one in components if one.name == EMBEDDING), None)


def _no_embedder(problem: str) -> Response:
    """503 with the steps where the first client reads them."""
    reason = problem.rstrip(".")
    error = EmbedderDown(f"The embedder is away: {reason}.", details={"steps": list(RECOVERY)})
    return answer(
        error_body(error) | {"recoverySteps": list(RECOVERY)},
        status=status_of(error),
        headers={"Retry-After": "1"},
    )


# --- sweeps


@routes.post(f"{OPS}/consistency", summary="Compare index and truth", **SUBMITS)
async def consistency(
    call: CurrentCall, body: wire.ConsistencyBody | None = None
) -> wire.ConsistencyAnswer:
    """A sample from a place that changes with every call, repaired unless `dry_run`. With `full` a
    job looks at everything: `status` is `submitted` then, without counts."""
    how = body or wire.ConsistencyBody()
    if how.full:
        job = await _submit(call, CONSISTENCY, full=True, repair=not how.dry_run)
        return wire.ConsistencyAnswer(result=job)
    sample = how.sample_size or call.services.settings.consistency.sample
    report = await call.services.consistency.check(
        sample=min(sample, wire.MAX_SAMPLE), repair=not how.dry_run
    )
    return wire.ConsistencyAnswer(result=wire.ConsistencyResult.from_report(report))


# --- DataGov


@routes.get(DATAGOVS, summary="State of the DataGov tiers")
async def datagov_status(call: CurrentCall) -> wire.DatagovStatusAnswer:
    job, settings = await _newest(call, DATAGOV), call.services.settings.datagov
    return wire.DatagovStatusAnswer.of(
        settings,
        source="ckan" if settings.source is None else "folder",
        progress=job and wire.ProgressView.from_job(job),
        report=job and job.report,
    )


@routes.post(DATAGOVS, summary="Fill the DataGov tiers", **SUBMITS)
async def datagov(call: CurrentCall, body: wire.DatagovBody | None = None) -> wire.SubmittedAnswer:
    """Submits a job; records that are there already are not written again."""
    folder = call.services.settings.datagov.source
    # A folder is named by the settings alone, so a job on it names no source.
    source = (body and body.source) or (None if folder is not None else "ckan")
    return wire.SubmittedAnswer(result=await _submit(call, DATAGOV, source=source))


# --- the circuit breakers: their state, and closing them by hand
#
# Degraded mode is no switch here: a breaker opens when its dependency fails, searches say
# `degraded`, and a probe closes it. Forcing it by hand would drop the meaning out of every search
# for nothing, so a client that asks for it is told the state and that nothing was changed.

ALREADY = "It already answers without what is away; it comes back by itself, or send `reset`."
NOT_FORCED = (
    "Nothing was changed: every dependency answers. The service degrades by itself when one fails."
)


@routes.get(BREAKERS, summary="State of the breakers")
async def breakers(call: CurrentCall) -> wire.BreakerAnswer:
    rows, embedder = await call.services.health.breakers(), await _embedder(call)
    healthy = embedder is None or embedder.healthy
    shown = _breaker(call, rows.get(EMBEDDING) or {}, embedder)
    return wire.BreakerAnswer(
        circuit_breaker=shown,
        breakers=rows,
        embedding_service_healthy=healthy,
        endpoint=public_url(call.services.settings.embedding.url),
        is_operational=healthy and not shown.is_open,
        is_degraded_mode=not healthy or any(row.get("isOpen") for row in rows.values()),
        diagnostics=embedder.details if embedder else {},
        recommendations=() if healthy else RECOVERY,
        degraded=() if healthy else (EMBEDDING,),
    )


def _breaker(call: Call, row: Mapping[str, Any], embedder: Component | None) -> wire.BreakerView:
    """That of the embedder, of which an embedder without an error of its own says what it lacks."""
    error, rules = row.get("lastError"), call.services.settings.breaker
    lacks = embedder.message if embedder is not None and not embedder.healthy else None
    return wire.BreakerView(
        is_open=bool(row.get("isOpen")),
        failure_count=row.get("failureCount", 0),
        success_count=row.get("successCount", 0),
        threshold=rules.embedder_failures,
        open_duration_ms=round(rules.embedder_open_s * 1000),
        last_error_category=str(error).split(":", 1)[0] if error else None,
        last_error=lacks if error is None else error,
    )


@routes.post(
    BREAKERS,
    summary="Close the breakers by hand",
    description="Those of the replica that answers, and of every replica of the embedder and of a "
    "model reranker, which are then asked once. 503 while the embedder is still away. `degraded` "
    "with `enabled: true` answers the state and forces nothing.",
    response_model=wire.BreakerAnswer,
    **writes(EmbedderDown),
)
async def reset_breakers(
    call: CurrentCall, body: wire.BreakerBody
) -> wire.BreakerAnswer | Response:
    """Close what requests meet: of this replica, of the embedder and of the reranker."""
    _check_action(body)
    if body.enabled and body.action == "degraded":
        found = await breakers(call)
        message = ALREADY if found.is_degraded_mode else NOT_FORCED
        return found.model_copy(update={"message": message})
    closed = await call.services.health.reset_breakers()
    found = await breakers(call)
    # Whatever failed since the reset, which asked once itself, is away.
    error = found.circuit_breaker.last_error
    if error or not found.embedding_service_healthy:
        return _no_embedder(error or "it does not answer")
    return found.model_copy(update={"message": _reset_message(closed, found.breakers)})


def _check_action(body: wire.BreakerBody) -> None:
    if body.action not in {"reset", "degraded"}:
        raise InvalidInput(
            "action must be `reset` or `degraded`.",
            code="unknown_action",
            details={"field": "action"},
        )
    if body.action == "degraded" and body.enabled is None:
        raise InvalidInput(
            "With `degraded`, send `enabled`: true or false.", details={"field": "enabled"}
        )


def _reset_message(reset: Sequence[str], breakers: Mapping[str, Mapping[str, Any]]) -> str:
    closed = f"Closed by hand: {', '.join(reset)}." if reset else "All breakers were closed."
    failing = [f"{name} ({row['lastError']})" for name, row in breakers.items() if row["lastError"]]
    return f"{closed} Still failing: {', '.join(failing)}." if failing else closed
