"""Operations for administrators under the first client's paths: reindex, deferred items, sweeps,
DataGov. Long work is a job: the answer comes at once and names it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.errors import error_body, status_of
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.bulk.model import CONSISTENCY, DATAGOV, REINDEX, Job, JobState, JobWish
from rayapp.core.errors import Conflict, EmbedderDown, JobsDown
from rayapp.wire import ops as shapes
from rayapp.wire.bases import Answer
from rayapp.wire.examples.ops import PROGRESS_EXAMPLE, SUBMITTED_EXAMPLE, SWEEP_EXAMPLE
from rayapp.wire.views.jobs import progress_view, submitted_view, sweep_view

EMBEDDING = "embedding"
# What becomes of a job that a driver has.
AFTER_WISH = {
    JobWish.PAUSE: "The reindex stops after its step.",
    JobWish.RUN: "The reindex goes on.",
    JobWish.CANCEL: "The reindex ends after its step.",
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


async def _submitted(call: Call, kind: str, params: dict[str, Any]) -> Response:
    job = await call.services.jobs.submit(kind, params, requested_by=call.principal)
    return answer({"success": True, "result": submitted_view(job), "degraded": []})


# --- reindex


async def reindex_progress(call: Call) -> Response:
    job = await _newest(call, REINDEX)
    progress = None if job is None else progress_view(job)
    return answer({"success": True, "progress": progress, "degraded": []})


async def reindex(call: Call) -> Response:
    body = call.body_as(shapes.ReindexBody, shapes.USER_ALIASES) if call.body else None
    params: dict[str, Any] = {}
    if body is not None:
        params = {
            "tier": None if body.tier is None else body.tier.value,
            "since": None if body.since is None else body.since.isoformat(),
            "user_id": body.user_id,
        }
    return await _submitted(call, REINDEX, params)


async def reindex_rollback(call: Call) -> Response:
    return await _submitted(call, REINDEX, {"rollback": True})


async def reindex_pause(call: Call) -> Response:
    return await _wished(call, JobWish.PAUSE, "paused")


async def reindex_resume(call: Call) -> Response:
    return await _wished(call, JobWish.RUN, "resumed")


async def reindex_cancel(call: Call) -> Response:
    return await _wished(call, JobWish.CANCEL, "cancelled")


async def _wished(call: Call, wish: JobWish, word: str) -> Response:
    """The first client asks without an id: the newest reindex is meant, if it has not ended."""
    job = await _newest(call, REINDEX)
    if job is None or job.final:
        body = {word: False, "jobId": None, "message": "No reindex is going on."}
    else:
        job = await call.services.jobs.wish(job.job_id, wish)
        body = {word: True, "jobId": job.job_id, "message": _what_happens(job, wish)}
    return answer({"success": True, **body, "degraded": []})


def _what_happens(job: Job, wish: JobWish) -> str:
    """`job`: as it is after the wish; one without a driver is at once what was asked for."""
    if job.state is JobState.CANCELLED:
        return "The reindex is cancelled."
    if job.state is JobState.SUBMITTED:
        return "The reindex waits for its driver."
    if job.state is JobState.PAUSED and wish is JobWish.PAUSE:
        return "The reindex is paused."
    return AFTER_WISH[wish]


# --- items that the index does not hold yet


async def deferred_count(call: Call) -> Response:
    query = call.query_as(shapes.DeferredQuery, shapes.USER_ALIASES)
    waiting = await call.services.deferred.waiting(query.user_id)
    message = f"{waiting} memories wait for the index." if waiting else "Nothing waits."
    return answer({"success": True, "pendingReindex": waiting, "message": message, "degraded": []})


async def deferred(call: Call) -> Response:
    body = call.body_as(shapes.DeferredBody, shapes.USER_ALIASES) if call.body else None
    user_id = None if body is None else body.user_id
    problem = await _embedder_problem(call)
    if problem is not None:
        return no_embedder(problem)
    hastened = await call.services.deferred.hasten(user_id)
    waiting = await call.services.deferred.waiting(user_id)
    return answer(
        {
            "success": True,
            "result": {"success": True, "hastened": hastened, "pendingReindex": waiting},
            "message": f"{hastened} memories are due now; {waiting} wait for the index in all.",
            "degraded": [],
        }
    )


async def _embedder_problem(call: Call) -> str | None:
    components = await call.services.health.components()
    found = next((one for one in components if one.name == EMBEDDING), None)
    return None if found is None or found.healthy else found.message


def no_embedder(problem: str) -> Response:
    """503 with the steps where the first client reads them."""
    reason = problem.rstrip(".")
    error = EmbedderDown(f"The embedder is away: {reason}.", details={"steps": list(RECOVERY)})
    return answer(
        error_body(error) | {"recoverySteps": list(RECOVERY)},
        status=status_of(error),
        headers={"Retry-After": "1"},
    )


# --- sweeps


async def consistency(call: Call) -> Response:
    body = shapes.ConsistencyBody()
    if call.body:
        body = call.body_as(shapes.ConsistencyBody, shapes.CONSISTENCY_ALIASES)
    repair = not body.dry_run
    if body.full:
        return await _submitted(call, CONSISTENCY, {"full": True, "repair": repair})
    sample = body.sample_size or call.services.settings.consistency.sample
    report = await call.services.consistency.check(
        sample=min(sample, shapes.MAX_SAMPLE), repair=repair
    )
    return answer({"success": True, "result": sweep_view(report), "degraded": []})


# --- DataGov


async def datagov(call: Call) -> Response:
    body = call.body_as(shapes.DatagovBody) if call.body else shapes.DatagovBody()
    folder = call.services.settings.datagov.source
    # A folder is named by the settings alone, so a job on it names no source.
    source = body.source or (None if folder is not None else "ckan")
    return await _submitted(call, DATAGOV, {"source": source})


async def datagov_status(call: Call) -> Response:
    job, settings = await _newest(call, DATAGOV), call.services.settings.datagov
    return answer(
        {
            "success": True,
            "preload": settings.preload,
            "source": "ckan" if settings.source is None else "folder",
            "progress": None if job is None else progress_view(job),
            "report": None if job is None or job.report is None else dict(job.report),
            "degraded": [],
        }
    )


_TAG = "operations"
_ERRORS = (Conflict, JobsDown)


def _reindex_wish(
    name: str, summary: str, handler: Any, shape: type[Answer], word: str
) -> Operation:
    return Operation(
        method="POST",
        path=f"/api/memory/ops/reindex/{name}",
        tag=_TAG,
        summary=summary,
        description=f"The newest reindex; `{word}` is false when it has ended or there is none.",
        handler=handler,
        answer=shape,
        example={
            "success": True,
            word: True,
            "jobId": "job-1",
            "message": "The reindex goes on.",
            "degraded": [],
        },
        errors=_ERRORS,
        writes=True,
    )


OPERATIONS = (
    Operation(
        method="GET",
        path="/api/memory/ops/reindex",
        tag=_TAG,
        summary="Progress of the newest reindex",
        handler=reindex_progress,
        answer=shapes.ProgressAnswer,
        example={"success": True, "progress": PROGRESS_EXAMPLE, "degraded": []},
    ),
    Operation(
        method="POST",
        path="/api/memory/ops/reindex",
        tag=_TAG,
        summary="Fill a new collection behind the running one",
        description="Submits a job and answers at once; searches see the new collection only when "
        "it is complete and verified.",
        handler=reindex,
        body=shapes.ReindexBody,
        body_required=False,
        example_body={"tier": "books"},
        aliases=shapes.USER_ALIASES,
        answer=shapes.SubmittedAnswer,
        example=SUBMITTED_EXAMPLE,
        errors=_ERRORS,
        writes=True,
    ),
    _reindex_wish("pause", "Pause the reindex", reindex_pause, shapes.PausedAnswer, "paused"),
    _reindex_wish(
        "resume", "Go on with the reindex", reindex_resume, shapes.ResumedAnswer, "resumed"
    ),
    _reindex_wish(
        "cancel", "Cancel the reindex", reindex_cancel, shapes.CancelledAnswer, "cancelled"
    ),
    Operation(
        method="POST",
        path="/api/memory/ops/reindex/rollback",
        tag=_TAG,
        summary="Go back to the collection before the last reindex",
        description="Submits a job; possible within `reindex.rollback_h` hours.",
        handler=reindex_rollback,
        answer=shapes.SubmittedAnswer,
        example=SUBMITTED_EXAMPLE,
        errors=_ERRORS,
        writes=True,
    ),
    Operation(
        method="GET",
        path="/api/memory/ops/reindex/deferred",
        tag=_TAG,
        summary="Count what waits for the index",
        handler=deferred_count,
        query=shapes.DeferredQuery,
        example_query={"user_id": "admin"},
        aliases=shapes.USER_ALIASES,
        answer=shapes.DeferredCountAnswer,
        example={
            "success": True,
            "pendingReindex": 3,
            "message": "3 memories wait for the index.",
            "degraded": [],
        },
    ),
    Operation(
        method="POST",
        path="/api/memory/ops/reindex/deferred",
        tag=_TAG,
        summary="Index waiting and failed items now",
        description="503 with `recoverySteps` while the embedder is away.",
        handler=deferred,
        body=shapes.DeferredBody,
        body_required=False,
        example_body={"user_id": "admin"},
        aliases=shapes.USER_ALIASES,
        answer=shapes.DeferredAnswer,
        example={
            "success": True,
            "result": {"success": True, "hastened": 3, "pendingReindex": 3},
            "message": "3 memories are due now; 3 wait for the index in all.",
            "degraded": [],
        },
        errors=(EmbedderDown,),
        writes=True,
    ),
    Operation(
        method="POST",
        path="/api/memory/ops/consistency",
        tag=_TAG,
        summary="Compare index and truth",
        description="A sample from a place that changes with every call, repaired unless `dry_run`."
        " With `full` a job looks at everything: `status` is `submitted` then, without counts.",
        handler=consistency,
        body=shapes.ConsistencyBody,
        body_required=False,
        example_body={"dry_run": True, "sample_size": 500},
        aliases=shapes.CONSISTENCY_ALIASES,
        answer=shapes.ConsistencyAnswer,
        example={"success": True, "result": SWEEP_EXAMPLE, "degraded": []},
        errors=_ERRORS,
        writes=True,
    ),
    Operation(
        method="GET",
        path="/api/memory/ops/datagov",
        tag=_TAG,
        summary="State of the DataGov tiers",
        handler=datagov_status,
        answer=shapes.DatagovStatusAnswer,
        example={
            "success": True,
            "preload": False,
            "source": "ckan",
            "progress": PROGRESS_EXAMPLE,
            "report": None,
            "degraded": [],
        },
    ),
    Operation(
        method="POST",
        path="/api/memory/ops/datagov",
        tag=_TAG,
        summary="Fill the DataGov tiers",
        description="Submits a job; records that are there already are not written again.",
        handler=datagov,
        body=shapes.DatagovBody,
        body_required=False,
        example_body={"source": "ckan"},
        answer=shapes.SubmittedAnswer,
        example=SUBMITTED_EXAMPLE,
        errors=_ERRORS,
        writes=True,
    ),
)
