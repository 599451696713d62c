"""Bulk jobs: the list, one job, what is asked of it, and its progress as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response, StreamingResponse

from rayapp.api.call import Call
from rayapp.api.job_events import event_id, progress_events, rounds_within
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.bulk.model import Job, JobWish
from rayapp.core.errors import Conflict, JobsDown, NotFound
from rayapp.wire import jobs as shapes
from rayapp.wire.examples.ops import JOB_EXAMPLE, JOB_STREAM_EXAMPLE, PARTITIONS_EXAMPLE
from rayapp.wire.views.jobs import job_view, named_job, partitions_view

EVENT_STREAM = "text/event-stream"
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def listed(call: Call) -> Response:
    query = call.query_as(shapes.JobListQuery)
    found = await call.services.jobs.recent(query.kind, query.limit)
    views = [job_view(named_job(job, call.documents)) for job in found]
    return answer({"success": True, "jobs": views, "total": len(views), "degraded": []})


async def one(call: Call) -> Response:
    job_id = call.job_id()
    job = await call.services.jobs.get(job_id)
    rows = await call.services.jobs.partitions(job_id)
    return answer(
        {
            "success": True,
            "job": job_view(named_job(job, call.documents)),
            "partitions": partitions_view(rows),
            "degraded": [],
        }
    )


def _wishing(wish: JobWish) -> Callable[[Call], Awaitable[Response]]:
    async def handler(call: Call) -> Response:
        job_id = call.job_id()
        job = await call.services.jobs.wish(job_id, wish)
        view = job_view(named_job(job, call.documents))
        return answer({"success": True, "job": view, "degraded": []})

    return handler


async def events(call: Call) -> Response:
    job_id, query = call.job_id(), call.query_as(shapes.JobEventsQuery)
    last_id = dict(call.scope["headers"]).get(b"last-event-id", b"").decode("latin-1") or None

    async def read() -> Job:
        return named_job(await call.services.jobs.get(job_id), call.documents)

    job = await read()
    if job.final and last_id == event_id(job):
        return Response(status_code=204)  # tells an event source to stop reconnecting

    rounds = rounds_within(call.services.settings.serve.request_timeout_s) if query.follow else 1
    stream = progress_events(read, last_id=last_id, rounds=rounds, pause=asyncio.sleep)
    return StreamingResponse(stream, media_type=EVENT_STREAM, headers=STREAM_HEADERS)


_TAG = "jobs"
_ACTION = {"success": True, "job": JOB_EXAMPLE, "degraded": []}


def _action(name: str, wish: JobWish, summary: str, description: str) -> Operation:
    return Operation(
        method="POST",
        path=f"/api/memory/jobs/{{job_id}}/{name}",
        tag=_TAG,
        summary=summary,
        description=description,
        handler=_wishing(wish),
        answer=shapes.JobActionAnswer,
        example=_ACTION,
        errors=(NotFound, Conflict, JobsDown),
        writes=True,
    )


OPERATIONS = (
    Operation(
        method="GET",
        path="/api/memory/jobs",
        tag=_TAG,
        summary="List jobs",
        description="Bulk jobs of every kind, newest first.",
        handler=listed,
        query=shapes.JobListQuery,
        example_query={"kind": "reindex", "limit": "10"},
        answer=shapes.JobListAnswer,
        example={"success": True, "jobs": [JOB_EXAMPLE], "total": 1, "degraded": []},
    ),
    Operation(
        method="GET",
        path="/api/memory/jobs/{job_id}",
        tag=_TAG,
        summary="One job",
        handler=one,
        answer=shapes.JobAnswer,
        example={
            "success": True,
            "job": JOB_EXAMPLE,
            "partitions": PARTITIONS_EXAMPLE,
            "degraded": [],
        },
        errors=(NotFound,),
    ),
    _action(
        "pause",
        JobWish.PAUSE,
        "Pause a job",
        "Its workers stop after their step; nothing is lost. What it does at its end (comparing, "
        "switching) is cut short and done again when it goes on.",
    ),
    _action(
        "resume",
        JobWish.RUN,
        "Go on with a job",
        "A paused job, one whose driver died, or one that failed in the last 24 hours gets a new "
        "driver and goes on where it was.",
    ),
    _action(
        "cancel",
        JobWish.CANCEL,
        "Cancel a job",
        "Its workers stop after their step, for good; what it does at its end is cut short.",
    ),
    Operation(
        method="GET",
        path="/api/memory/jobs/{job_id}/events",
        tag=_TAG,
        summary="Follow a job",
        description="Server-sent events: `progress` on every change, at most two per second, and "
        "`end` with the report. The id of an event stands for the state: after a reconnect with "
        "`Last-Event-ID` only what has changed is sent. A stream ends before the time limit of a "
        "request and the client reconnects; 204 means that there is nothing more to come.",
        handler=events,
        query=shapes.JobEventsQuery,
        example_query={"follow": "false"},
        answer=shapes.JobEvent,
        example=JOB_STREAM_EXAMPLE,
        media=EVENT_STREAM,
        also={204: "There is nothing more to come."},
        errors=(NotFound,),
    ),
)
