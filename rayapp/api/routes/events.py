"""What happens to a user's memories, as server-sent events."""

from collections.abc import AsyncIterator
from datetime import datetime

import orjson
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from rayapp.admin import ports
from rayapp.admin.event_stream import Following
from rayapp.api.call import Call
from rayapp.api.json_answer import OPTIONS
from rayapp.api.responses import EventStream, raises
from rayapp.api.route import CurrentCall, InQuery, router
from rayapp.api.routes.jobs import EVENT_STREAM, RETRY_MS, STREAM_HEADERS, sse_event
from rayapp.core.errors import Forbidden, Overloaded
from rayapp.core.runtime import Clock
from rayapp.memory.tiers import tier_name
from rayapp.wire.events import EventsQuery, StreamEventView

routes = router("events")

# Fields that name a tier; `from` is a word of many languages.
TIERS = ("tier", "from_tier")
_FIELDS = {"from": "from_tier"}


@routes.get(
    "/api/memory/events",
    summary="Follow what happens to the memories",
    response_class=EventStream,
    response_model=None,
    responses={200: {"model": StreamEventView}, **raises(Overloaded)},
)
async def events(call: CurrentCall, query: InQuery[EventsQuery]) -> Response:
    """Server-sent events in the order in which they were committed: `stored`, `indexed`, `outcome`,
    `promoted`, `demoted`, `archived`, `restored`, `updated`, `merged`, and for the scope `admin`
    the progress of bulk jobs, `job`. No text is among them. The server ends a stream after
    `events.stream_s` seconds; a client that comes back with `Last-Event-ID` misses nothing. An id
    that is unknown or too old is answered by the event `reset`: read again what you show, then go
    on. Comments are signs of life."""
    header = dict(call.scope["headers"]).get(b"last-event-id", b"").decode("latin-1").strip()
    following = await call.services.events.follow(
        call.reads,
        ports.StreamRequest(
            after=header or query.last_event_id or None,
            kinds=_kinds(call, query.types),
            follow=query.follow,
        ),
    )
    return FollowingResponse(following, call.services.clock, call.documents)


class FollowingResponse(StreamingResponse):
    """Gives the stream back however the answer ends: its time, a failure, a caller who left."""

    def __init__(self, following: Following, clock: Clock, documents: bool) -> None:
        super().__init__(
            _lines(following.frames, clock, documents),
            media_type=EVENT_STREAM,
            headers=STREAM_HEADERS,
        )
        self._following = following

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._following.close()


def frame_bytes(frame: ports.Frame, at: datetime, documents: bool) -> bytes:
    """One frame as the event stream has it. An id without data moves a follower's position on."""
    if frame.kind is ports.MarkKind.ALIVE:
        return b": alive\nid: %s\n\n" % frame.position.encode()
    data: dict[str, object] = {"type": frame.kind.value, "at": at}
    if isinstance(frame, ports.StreamEvent):
        given = {_FIELDS.get(name, name): one for name, one in frame.data.items()}
        named = {name: tier_name(given[name], documents) for name in TIERS if given.get(name)}
        data |= {"at": frame.at} | given | named
    return sse_event(frame.kind.value, frame.position, orjson.dumps(data, option=OPTIONS))


async def _lines(
    frames: AsyncIterator[ports.Frame], clock: Clock, documents: bool
) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MS}\n\n".encode()
    async for frame in frames:
        yield frame_bytes(frame, clock.now(), documents)


def _kinds(call: Call, wanted: tuple[str, ...] | None) -> frozenset[ports.StreamKind]:
    """Jobs belong to no user: they are told to operators, and to nobody who did not ask."""
    allowed = frozenset(ports.StreamKind) if call.who.admin else ports.USER_KINDS
    if wanted is None:
        return allowed
    if not allowed.issuperset(wanted):
        raise Forbidden("Events of jobs need a key with the scope admin; leave out `job`.")
    return frozenset(map(ports.StreamKind, wanted))
