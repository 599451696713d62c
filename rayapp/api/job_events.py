"""Progress of one job as server-sent events.

An event is the whole present state and its id is a hash of that state: a client that reconnects
with `Last-Event-ID` hears nothing until something has changed, and nothing needs to be kept for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable

import orjson

from rayapp.api.json_answer import OPTIONS
from rayapp.bulk.model import Job
from rayapp.core.errors import RayappError
from rayapp.wire.views.jobs import job_view

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
