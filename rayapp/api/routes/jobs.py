"""Bulk jobs: the list, one job, what is asked of it, and its progress as a stream."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable

import orjson
from starlette.responses import Response, StreamingResponse

from rayapp.api.auth import JOB
from rayapp.api.json_answer import OPTIONS
from rayapp.api.paths import JobIdPart
from rayapp.api.responses import EventStream, raises
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.bulk.model import DesiredState
from rayapp.core.errors import Conflict, JobsDown, NotFound, RayappError
from rayapp.wire import jobs as wire

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

ReadJob = Callable[[], Awaitable[wire.JobView]]
Pause = Callable[[float], Awaitable[None]]


def event_id(job: wire.JobView) -> str:
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
            yield sse_event("end" if job.final else "progress", this_id, _data(job))
            if job.final:
                return
            last_id, quiet_s = this_id, 0.0
            continue
        quiet_s += LOOK_S
        if quiet_s >= HEARTBEAT_S:
            quiet_s = 0.0
            yield b": alive\n\n"


def _data(job: wire.JobView) -> bytes:
    event = wire.JobEvent(job=job).model_dump()
    return orjson.dumps(event, option=OPTIONS | orjson.OPT_SORT_KEYS)


def sse_event(name: str, this_id: str, data: bytes) -> bytes:
    """One server-sent event; its data on one line for readers that break lines as Unicode does."""
    for raw, escaped in UNICODE_BREAKS.items():
        data = data.replace(raw, escaped)
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (this_id.encode(), name.encode(), data)


EVENT_STREAM = EventStream.media_type
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

routes = router("jobs")
JOBS = "/api/memory/jobs"


@routes.get(JOBS, summary="List jobs")
async def listed(call: CurrentCall, query: InQuery[wire.JobListQuery]) -> wire.JobListAnswer:
    """Bulk jobs of every kind, newest first."""
    found, total = await call.services.jobs.page(query.kind, query.limit)
    jobs = tuple(wire.JobView.from_job(job, call.documents) for job in found)
    return wire.JobListAnswer(jobs=jobs, total=total)


@routes.get(JOB, summary="One job", responses=raises(NotFound))
async def one(call: CurrentCall, job_id: JobIdPart) -> wire.JobAnswer:
    job = await call.services.jobs.get(job_id)
    rows = await call.services.jobs.partitions(job_id)
    return wire.JobAnswer(
        job=wire.JobView.from_job(job, call.documents),
        partitions=wire.PartitionsView.from_rows(rows),
    )


def _add_action(name: str, wish: DesiredState, summary: str, description: str) -> None:
    @routes.post(
        f"{JOB}/{name}",
        summary=summary,
        description=description,
        **writes(NotFound, Conflict, JobsDown),
    )
    async def action(call: CurrentCall, job_id: JobIdPart) -> wire.JobActionAnswer:
        job = await call.services.jobs.set_desired_state(job_id, wish)
        return wire.JobActionAnswer(job=wire.JobView.from_job(job, call.documents))


_add_action(
    "pause",
    DesiredState.PAUSE,
    "Pause a job",
    "Its workers stop after their step; nothing is lost. What it does at its end (comparing, "
    "switching) is cut short and done again when it goes on.",
)
_add_action(
    "resume",
    DesiredState.RUN,
    "Go on with a job",
    "A paused job, one whose driver died, or one that failed in the last 24 hours gets a new "
    "driver and goes on where it was.",
)
_add_action(
    "cancel",
    DesiredState.CANCEL,
    "Cancel a job",
    "Its workers stop after their step, for good; what it does at its end is cut short.",
)


@routes.get(
    f"{JOB}/events",
    summary="Follow a job",
    response_class=EventStream,
    response_model=None,
    responses={
        200: {"model": wire.JobEvent},
        204: {"description": "There is nothing more to come."},
        **raises(NotFound),
    },
)
async def events(
    call: CurrentCall, job_id: JobIdPart, query: InQuery[wire.JobEventsQuery]
) -> Response:
    """Server-sent events: `progress` on every change, at most two per second, and `end` with the
    report. The id of an event stands for the state: after a reconnect with `Last-Event-ID` only
    what has changed is sent. A stream ends before the time limit of a request and the client
    reconnects; 204 means that there is nothing more to come."""
    last_id = dict(call.scope["headers"]).get(b"last-event-id", b"").decode("latin-1") or None

    async def read() -> wire.JobView:
        return wire.JobView.from_job(await call.services.jobs.get(job_id), call.documents)

    job = await read()
    if job.final and last_id == event_id(job):
        return Response(status_code=204)  # tells an event source to stop reconnecting

    rounds = rounds_within(call.services.settings.serve.request_timeout_s) if query.follow else 1
    stream = progress_events(read, last_id=last_id, rounds=rounds, pause=asyncio.sleep)
    return StreamingResponse(stream, media_type=EVENT_STREAM, headers=STREAM_HEADERS)
