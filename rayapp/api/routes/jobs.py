"""Bulk jobs: the list, one job, what is asked of it, and its progress as a stream."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable

import orjson
from starlette.responses import Response, StreamingResponse

from rayapp.api.call import Call
from rayapp.api.json_answer import OPTIONS, answer
from rayapp.api.operation import Operation
from rayapp.bulk.model import Job, JobWish
from rayapp.core.errors import Conflict, JobsDown, NotFound, RayappError
from rayapp.wire import jobs as shapes
from rayapp.wire.examples.ops import JOB_EXAMPLE, JOB_STREAM_EXAMPLE, PARTITIONS_EXAMPLE
from rayapp.wire.views.jobs import job_view, named_job, partitions_view

# Progress of one job as server-sent events.
#
# An event is the whole present state and its id is a hash of that state: a client that reconnects
# with `Last-Event-ID` hears nothing until something has changed, and nothing needs to be kept for
# it.

# Between two looks at the job, seconds: people see two changes per second as motion.
LOOK_S = 0.5
# Between two signs of life while nothing changes, seconds: below the idle limit of usual proxies.
HEARTBEAT_S = 15.0
# Share of the request's time limit after which a stream ends by itself; the client reconnects.
SHARE_OF_LIMIT = 0.8
# A client waits so long before it reconnects, milliseconds.
RETRY_MS = 500
# Line breaks that JSON leaves as they are, and their escapes.
UNICODE_BREAKS = {one.encode(): f"\\u{ord(one):04x}".encode() for one in "\x85\u2028\u2029"}

ReadJob = Callable[[], Awaitable[Job]]
Pause = Callable[[float], Awaitable[None]]


def event_id(job: Job) -> str:
    """The same for the same state, in every process."""
    return hashlib.blake2b(_data(job), digest_size=8).hexdigest()


def rounds_within(request_timeout_s: float) -> int:
    """Looks that fit into a request, so that it is the stream that ends it."""
    return max(1, int(request_timeout_s * SHARE_OF_LIMIT / LOOK_S))


async def progress_events(
    read: ReadJob, *, last_id: str | None, rounds: int, pause: Pause
) -> AsyncIterator[bytes]:
    """`progress` on every change, `end` once the job is final, comments in between.

    Args:
        last_id: what the client saw last.
        rounds: looks until the stream ends.
    """
    yield f"retry: {RETRY_MS}\n\n".encode()
    quiet_s = 0.0
    for number in range(rounds):
        if number:
            await pause(LOOK_S)
        try:
            job = await read()
        except RayappError:
            return  # the client reconnects, and is told then what is wrong
        this_id = event_id(job)
        if this_id != last_id or job.final:
            yield _event("end" if job.final else "progress", this_id, job)
            if job.final:
                return
            last_id, quiet_s = this_id, 0.0
            continue
        quiet_s += LOOK_S
        if quiet_s >= HEARTBEAT_S:
            quiet_s = 0.0
            yield b": alive\n\n"


def _data(job: Job) -> bytes:
    """On one line, also for readers that break lines where Unicode does."""
    data = orjson.dumps({"job": job_view(job)}, option=OPTIONS | orjson.OPT_SORT_KEYS)
    for raw, escaped in UNICODE_BREAKS.items():
        data = data.replace(raw, escaped)
    return data


def _event(name: str, this_id: str, job: Job) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (this_id.encode(), name.encode(), _data(job))


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
