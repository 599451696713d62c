"""The one middleware, plain ASGI: request id, in-flight limit, guard, full disk, body and time."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from types import TracebackType

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rayapp.admin.ports import Deed
from rayapp.api.auth import NOTICE_HEADER, Guard, Mark, RouteRule, source_of
from rayapp.api.call import SCOPE_KEY, Call
from rayapp.api.errors import error_answer, internal_error
from rayapp.api.hebrew_errors import prefers_hebrew, wants_hebrew
from rayapp.api.services import Services, Starting
from rayapp.core import errors
from rayapp.core.disk_space import DiskSpace, DiskState
from rayapp.core.logging import request_id, user_hash
from rayapp.core.settings.model import Settings
from rayapp.core.token_bucket import TokenBucket

READS = frozenset({"GET", "HEAD", "OPTIONS"})


def check_room(disk: DiskSpace, method: str, rule: RouteRule) -> None:
    """Before the handler runs. Tools look themselves: one route leads to those that only read.

    Raises StoreFull: it would store something, and there is no room.
    """
    if method in READS or rule.scope == "read" or Mark.NOTHING_KEPT in rule.marks:
        return
    frees = method == "DELETE" or Mark.FREES in rule.marks
    disk.check(frees=frees, bulk=Mark.BULK in rule.marks)


def explained(error: errors.RayappError, disk: DiskSpace) -> errors.RayappError:
    """`error`, or why MongoDB is away: it ends itself on a disk without room."""
    if not isinstance(error, errors.StoreDown) or isinstance(error, errors.StoreFull):
        return error
    found = disk.look()
    if found is None or found.state is not DiskState.FULL:
        return error
    return errors.StoreDown(
        f"{found.reason}; MongoDB stopped and comes back by itself when there is room.",
        details=error.details | {"folder": found.folder, "free_bytes": found.free_bytes},
        retry_after_s=error.retry_after_s,
    )


# When a request that is too much is refused: soon, but not so often that those in work wait.

# Refused at once, per second. A refusal costs .6 ms: 250 clients that asked again after 50 ms got
# 1,600 of them a second and left 5 of 80 searches (decision 0036).
AT_ONCE_PER_S = 50.0
# The others are refused after this, seconds: what their Retry-After asks for anyway.
HOLD_S = 1.0


class Refusals:
    """Those of one replica. `held` of them are waiting for their refusal."""

    def __init__(
        self,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sleep, self._now = sleep, now
        self._at_once = TokenBucket(AT_ONCE_PER_S, AT_ONCE_PER_S)
        self.held = 0

    async def due(self, room: int) -> None:
        """Return when the request is to be refused; at most `room` are held at a time."""
        if self._at_once.take(self._now()) == 0.0 or self.held >= room:
            return
        self.held += 1
        try:
            await self._sleep(HOLD_S)
        finally:
            self.held -= 1


def room_of(settings: Settings) -> int:
    """How many refusals may be held: most of what Serve admits above our own limit. Above its limit
    Serve refuses by itself, with an answer that is not ours."""
    spare = settings.serve.search.max_ongoing_requests - settings.http.max_in_flight
    return 3 * spare // 4


logger = logging.getLogger(__name__)

# A place in work is not held for a body that trickles in, seconds.
BODY_TIMEOUT_S = 5.0
# Of a form beside its file, bytes.
FORM_SPARE_BYTES = 64 * 1024
GetServices = Callable[[], Services | None]
PASSAGE_KEY = "rayapp.passage"
LANGUAGE_HEADER = b"accept-language"
_Asgi = tuple[Scope, Receive, Send]
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")
BODYLESS = frozenset({"GET", "HEAD", "OPTIONS"})
# A replica that cannot serve yet is asked again at the pace of a start-up probe.
STARTING_RETRY_S = 1.0


@dataclass(eq=False)
class RequestMiddleware:
    """Outermost layer of the API.

    Args:
        services: answers None while the replica is still starting.
        batch_paths: routes that take the larger body limit.
        form_limits: bytes of the file of routes that take a form with one, by path.
        unread_paths: routes that look at nothing that is sent, of whatever kind it is.
    """

    app: ASGIApp
    _: KW_ONLY
    services: GetServices
    starting: Starting | None
    batch_paths: frozenset[str]
    form_limits: Callable[[Settings], Mapping[str, int]] = lambda settings: {}
    unread_paths: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._uploads = 0
        self._guard: tuple[Services, Guard] | None = None
        self._in_flight = 0
        self._refusals = Refusals()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        reply = _Reply(scope, send, _request_id(headers))
        services = self.services()
        passage = _Passage(self, services, headers, reply)
        scope[PASSAGE_KEY] = passage
        started = time.perf_counter()
        self._in_flight += 1
        request_id.set(reply.request_id)
        wants_hebrew.set(prefers_hebrew(headers.get(LANGUAGE_HEADER, b"").decode("latin-1")))
        try:
            if services is not None:
                self._guard_of(services).check_host(scope["method"], headers)
            await self.app(scope, receive, reply.send)
        except errors.RayappError as error:
            told = error if services is None else explained(error, services.disk)
            await reply.send_answer(error_answer(told, scope["path"]))
        except Exception:  # the last frame: the caller gets an id, the log the trace
            logger.exception("request %s failed", reply.request_id)
            broken = internal_error(reply.request_id)
            await reply.send_answer(error_answer(broken, scope["path"]))
        finally:
            self._in_flight -= 1
            if services is not None:
                await _audit(services, passage)
                self._measure(services, passage.rule, reply, time.perf_counter() - started)

    async def enter(self, passage: _Passage, rule: RouteRule, app: ASGIApp, asgi: _Asgi) -> None:
        """Run the route `app`, which the router chose, if `rule` lets this request in."""
        passage.rule = rule
        if rule.scope == "public":
            await app(*asgi)
            return
        services = passage.services
        if services is None:
            raise self._not_yet()
        if self._in_flight - self._refusals.held > services.settings.http.max_in_flight:
            await self._refusals.due(room_of(services.settings))
            raise errors.Overloaded("Too many requests are in work; try again.")
        scope, receive, send = asgi
        async with _Limits(services, rule, receive, passage.reply) as limits:
            guard = self._guard_of(services)
            who = await guard.admit(rule, passage.headers, source_of(scope))
            passage.reply.notice = who.notice
            check_room(services.disk, scope["method"], rule)
            if Mark.DESTROYS in rule.marks:
                await services.holds.check(who.user_id)
            body = await self._body(rule, asgi, passage.headers, services)
            scope[SCOPE_KEY] = Call(services, scope, who, body)
            limits.watch_disconnect()
            # The handlers take the body from the call.
            await app(scope, with_body(b"", receive), send)

    def _not_yet(self) -> errors.RayappError:
        """Still starting, or blocked until a person acts: then waiting is no advice."""
        if self.starting is not None and self.starting.blocked:
            return errors.SchemaMismatch(" ".join(self.starting.problems))
        return errors.DependencyDown(
            "The service is still starting; try again.",
            code="starting",
            retry_after_s=STARTING_RETRY_S,
        )

    def _guard_of(self, services: Services) -> Guard:
        if self._guard is None or self._guard[0] is not services:
            self._guard = (services, Guard(services))
        return self._guard[1]

    async def _body(
        self, rule: RouteRule, asgi: _Asgi, headers: dict[bytes, bytes], services: Services
    ) -> bytes:
        scope, receive, _ = asgi
        if scope["method"] in BODYLESS or rule.template in self.unread_paths:
            return b""
        file_bytes = self.form_limits(services.settings).get(rule.template)
        if scope["method"] == "POST" and file_bytes is not None:
            return await self._form(receive, headers, services, file_bytes)
        http = services.settings.http
        batch = rule.template in self.batch_paths
        limit = http.batch_body_limit_bytes if batch else http.body_limit_bytes
        body = await _body_within(BODY_TIMEOUT_S, receive, headers, limit)
        kind = _media_type(headers)
        if kind != b"application/json" and (body or kind):
            # Forms and text are what a foreign web page can post without asking first.
            raise errors.InvalidInput(
                "Send the body as JSON with Content-Type: application/json.",
                code="unsupported_media_type",
            )
        return body

    async def _form(
        self, receive: Receive, headers: dict[bytes, bytes], services: Services, file_bytes: int
    ) -> bytes:
        """A whole form: a few at a time, because each is held in memory."""
        settings = services.settings.documents
        if _media_type(headers) != b"multipart/form-data":
            raise errors.InvalidInput(
                "Send the file as multipart/form-data, in the field `file`.",
                code="unsupported_media_type",
            )
        if self._uploads >= settings.uploads:
            raise errors.Overloaded("Other files are arriving; send this one again.")
        self._uploads += 1
        try:
            limit = file_bytes + FORM_SPARE_BYTES
            return await _body_within(settings.upload_s, receive, headers, limit)
        finally:
            self._uploads -= 1

    def _measure(
        self, services: Services, rule: RouteRule | None, reply: _Reply, seconds: float
    ) -> None:
        route = rule.template if rule else "unmatched"
        services.metrics.count("http_requests", route=route, status=str(reply.status))
        services.metrics.observe("http_latency_s", seconds, route=route)
        services.metrics.gauge("http_in_flight", float(self._in_flight))
        if rule is None or rule.scope != "public":
            _log(reply, route, seconds)


async def _audit(services: Services, passage: _Passage) -> None:
    """Note a request that was let in, once it is answered: nobody waits for it."""
    rule, scope = passage.rule, passage.reply.scope
    call: Call | None = scope.get(SCOPE_KEY)
    if rule is None or call is None:
        return
    if not rule.audited and not (rule.writes and services.settings.audit.writes):
        return
    deed = Deed(
        principal=call.who.principal,
        key_id=call.who.key_id,
        user_id=call.who.user_id,
        source=source_of(scope),
        method=rule.method,
        route=rule.template,
        ids={**scope.get("path_params", {}), **call.ids},
        memory_ids=call.memory_ids,
        status=passage.reply.status,
        request_id=passage.reply.request_id,
    )
    await services.audit.note(deed)


@dataclass(slots=True)
class _Passage:
    """A request at the gate; `rule` is that of the route that the router chose, None before."""

    gate: RequestMiddleware
    services: Services | None
    headers: dict[bytes, bytes]
    reply: _Reply
    rule: RouteRule | None = None


class Guarded:
    """A route behind the gate. Without a gate around it, it answers nobody."""

    def __init__(self, app: ASGIApp, rule: RouteRule) -> None:
        self._app = app
        self._rule = rule

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        passage: _Passage = scope[PASSAGE_KEY]
        await passage.gate.enter(passage, self._rule, self._app, (scope, receive, send))


def _log(reply: _Reply, route: str, seconds: float) -> None:
    """One line per request: who, what, how long; never a text, never a user's name."""
    call: Call | None = reply.scope.get(SCOPE_KEY)
    fields: dict[str, object] = {
        "route": route,
        "status": reply.status,
        "ms": round(seconds * 1000, 2),
    }
    if call is not None:
        fields |= {"user": user_hash(call.who.user_id), **call.notes}
    logger.info("request", extra={"fields": fields})


class _Reply:
    """Sends messages with the request id added; knows whether the answer began and ended."""

    # What proxies log for a caller that went away before its answer.
    CLIENT_CLOSED = 499

    def __init__(self, scope: Scope, send: Send, request_id: bytes) -> None:
        self.scope = scope
        self._send = send
        self._id = request_id
        self.status = self.CLIENT_CLOSED
        self.finished = False
        self.notice = ""
        self.on_sent: Callable[[], None] | None = None

    @property
    def request_id(self) -> str:
        return self._id.decode("ascii")

    @property
    def started(self) -> bool:
        return self.status != self.CLIENT_CLOSED

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            added = [(b"x-request-id", self._id)]
            if self.notice:
                added.append((NOTICE_HEADER.lower().encode(), self.notice.encode("ascii")))
            message["headers"] = [*message.get("headers", ()), *added]
        elif message["type"] == "http.response.body":
            self.finished = not message.get("more_body", False)
        await self._send(message)
        if self.on_sent is not None:
            self.on_sent()

    async def send_answer(self, response: Response) -> None:
        """A whole answer, unless another one began."""
        if not self.started:
            await response(self.scope, _never, self.send)


class _Limits:
    """Ends a request at its time limit, or when so long nothing more of a lasting answer was taken;
    ends a read when its caller goes away. Writes are finished even so: half a write that nobody
    hears of is worse than a wasted one."""

    def __init__(
        self, services: Services, rule: RouteRule, receive: Receive, reply: _Reply
    ) -> None:
        settings = services.settings
        self._seconds = (
            settings.stream_limit_s
            if Mark.STREAM in rule.marks
            else settings.serve.request_timeout_s
        )
        reads = rule.scope == "read" and Mark.MAY_WRITE not in rule.marks
        self._reads = reads or reply.scope["method"] in BODYLESS
        self._receive = receive
        self._reply = reply
        self._timeout = asyncio.timeout(self._seconds)
        self._watcher: asyncio.Task[None] | None = None
        self._gone = False
        if Mark.LASTING in rule.marks:
            reply.on_sent = self._go_on

    def _go_on(self) -> None:
        if not self._gone and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._seconds)

    async def __aenter__(self) -> _Limits:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._reply.on_sent = None
        if self._watcher is not None:
            self._watcher.cancel()
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            if self._gone:
                return True
            raise errors.DeadlineExceeded(
                f"The request took longer than {self._seconds:g} s; ask for less or try again."
            ) from None
        return False

    def watch_disconnect(self) -> None:
        if self._reads:
            self._watcher = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._reply.finished:
            self._gone = True
            self._timeout.reschedule(asyncio.get_running_loop().time())


async def _body_within(
    seconds: float, receive: Receive, headers: dict[bytes, bytes], limit: int
) -> bytes:
    try:
        async with asyncio.timeout(seconds):
            return await _read_body(receive, headers, limit)
    except TimeoutError:
        raise errors.InvalidInput(
            f"The body did not arrive within {seconds:.0f} s; send it again.", code="slow_body"
        ) from None


def _media_type(headers: dict[bytes, bytes]) -> bytes:
    return headers.get(b"content-type", b"").split(b";")[0].strip().lower()


async def _read_body(receive: Receive, headers: dict[bytes, bytes], limit: int) -> bytes:
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise errors.InvalidInput("The body ended early.", code="malformed_json")
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def with_body(body: bytes, receive: Receive) -> Receive:
    """`body` first, which was read already; further messages still come from the server."""
    first = True

    async def next_message() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return next_message


async def _never() -> Message:
    return {"type": "http.disconnect"}


def _request_id(headers: dict[bytes, bytes]) -> bytes:
    given = headers.get(b"x-request-id", b"")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex.encode("ascii")


def _size(number: int) -> str:
    return f"{number / 1e6:.1f} MB" if number >= 1_000_000 else f"{number} bytes"


def _too_large(limit: int) -> errors.TooLarge:
    return errors.TooLarge(
        f"The body is larger than {_size(limit)}; send less, or in parts.",
        details={"limit_bytes": limit},
    )
