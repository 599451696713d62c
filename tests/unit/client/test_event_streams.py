"""Server-sent events as the client reads them: whole, in order, and again after a break."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from rayapp.client import Event, MemoryClient, RetryPolicy, SyncMemoryClient
from rayapp.client.events import Stream
from rayapp.core.errors import DependencyDown, Forbidden, NotFound
from tests.support.ports import free_port
from tests.unit.fake_service import FakeService, serving

FAST = RetryPolicy(attempts=3, base_s=0.001)


def frame(number: int, name: str = "stored") -> str:
    return f'id: {number}\nevent: {name}\ndata: {{"n": {number}}}\n\n'


@dataclass
class Events(FakeService):
    """Two events per connection, five in all, each after the mark `ready` if that is set;
    `refusals` come before the first answer."""

    asked: list[str | None] = field(default_factory=list)
    refusals: list[Response] = field(default_factory=list)
    ready: bool = False

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/api/memory/events", self.events),
                Route("/api/memory/jobs/{job_id}/events", self.events),
            ]
        )

    async def events(self, request: Request) -> Response:
        last = request.headers.get("Last-Event-ID")
        self.asked.append(last)
        if self.refusals:
            return self.refusals.pop(0)
        first = int(last or 0) + 1

        async def lines() -> AsyncIterator[str]:
            yield "retry: 1\n\n: alive\n\n"
            if self.ready:
                yield f'id: {first - 1}\nevent: ready\ndata: {{"type": "ready"}}\n\n'
            for number in range(first, min(first + 2, 6)):
                yield frame(number, "end" if number == 5 else "progress")

        return StreamingResponse(lines(), media_type="text/event-stream")


def refused(status: int, code: str, retry_after: str | None = None) -> Response:
    headers = {"Retry-After": retry_after} if retry_after else None
    body = {"success": False, "error": "Not now.", "code": code}
    return JSONResponse(body, status_code=status, headers=headers)


@pytest.fixture
def service() -> Iterator[Events]:
    events = Events()
    with serving(events):
        yield events


def test_a_stream_goes_on_where_it_was_until_its_end(service: Events) -> None:
    with SyncMemoryClient(service.url, retry=FAST) as client:
        found = list(client.ops.job_events("job-1"))
    assert [(one.id, one.name, one.data["n"]) for one in found] == [
        *((str(number), "progress", number) for number in range(1, 5)),
        ("5", "end", 5),
    ]
    assert service.asked == [None, "2", "4"]


async def test_the_async_client_reads_the_same(service: Events) -> None:
    service.refusals.append(refused(503, "overloaded", "0"))
    found: list[str] = []
    async with MemoryClient(service.url, retry=FAST) as client:
        async for event in client.events(["stored", "outcome"], last_id="1"):
            found.append(event.id)
            if len(found) == 3:
                break
    assert found == ["2", "3", "4"]
    assert service.asked[:2] == ["1", "1"]


def test_without_following_it_is_asked_until_nothing_is_new(service: Events) -> None:
    with SyncMemoryClient(service.url, retry=FAST) as client:
        assert [one.id for one in client.events(follow=False)] == ["1", "2", "3", "4", "5"]
    assert service.asked == [None, "2", "4", "5"]


def test_without_following_the_mark_of_a_connection_is_nothing_new(service: Events) -> None:
    service.ready = True
    with SyncMemoryClient(service.url, retry=FAST) as client:
        found = [(one.id, one.name) for one in client.events(follow=False, last_id="2")]
    assert found[0] == ("2", "ready")
    assert [number for number, name in found if name != "ready"] == ["3", "4", "5"]
    assert len(found) == 4
    assert service.asked == ["2", "4", "5"]


def test_without_following_what_begins_meanwhile_is_not_waited_for() -> None:
    """A caller who writes for each event would make the next one."""
    stream = Stream(path="/events", headers={}, retry=FAST, once=True)
    for minute in range(3):
        stream.request()
        at = f"2026-01-01T00:0{minute}:00.5Z"
        told = [("ready", at), ("stored", at)] if minute else [("ready", at), ("stored", "")]
        for number, (name, when) in enumerate(told):
            lines = (f"id: {minute}{number}", f"event: {name}", f'data: {{"at": "{when}"}}', "")
            assert [stream.line(line) for line in lines][:3] == [None] * 3
        stream.closed()
        assert stream.ended == (minute > 0)


def test_a_refusal_that_does_not_pass_is_an_error(service: Events) -> None:
    service.refusals += [refused(404, "not_found"), refused(403, "forbidden")]
    with SyncMemoryClient(service.url, retry=FAST) as client:
        with pytest.raises(NotFound, match=r"Not now\."):
            next(client.ops.job_events("gone"))
        with pytest.raises(Forbidden):
            next(client.events())
    assert len(service.asked) == 2


def test_tries_end(service: Events) -> None:
    service.refusals += [refused(503, "overloaded", "0") for _ in range(3)]
    with SyncMemoryClient(service.url, retry=FAST) as client, pytest.raises(DependencyDown):
        next(client.events())
    url = f"http://127.0.0.1:{free_port()}"
    with SyncMemoryClient(url, retry=FAST) as client, pytest.raises(DependencyDown, match="lost"):
        next(client.events())


def read(text: str) -> list[Event]:
    stream = Stream(path="/", headers={}, retry=FAST)
    return [event for line in text.split("\n") if (event := stream.line(line)) is not None]


@given(st.lists(st.integers(0, 10**6), max_size=20), st.sampled_from(["", ": alive\n\n"]))
def test_every_event_is_read_once_and_in_order(numbers: list[int], between: str) -> None:
    text = between.join(frame(number) for number in numbers)
    assert [event.data["n"] for event in read(text)] == numbers


def test_an_event_that_broke_off_is_forgotten_and_its_id_kept_from_the_whole_one() -> None:
    stream = Stream(path="/", headers={}, retry=FAST)
    for line in [*frame(1).split("\n"), "id: 2", "event: stored", "data: {"]:
        stream.line(line)
    assert stream.request().headers["Last-Event-ID"] == "1"
    assert stream.line("") is None
    assert stream.request().headers["Last-Event-ID"] == "1"


def test_an_id_without_data_moves_the_position_once_it_is_whole() -> None:
    stream = Stream(path="/", headers={}, retry=FAST)
    for line in [": alive", "id: 7"]:
        assert stream.line(line) is None
    assert stream.last_id is None
    assert stream.line("") is None
    assert stream.request().headers["Last-Event-ID"] == "7"


@given(st.integers(0, 200))
def test_wherever_a_connection_breaks_each_event_is_told_once(cut: int) -> None:
    text = "".join(frame(number) for number in range(1, 6))
    stream, found = Stream(path="/", headers={}, retry=FAST), []
    for sent in (text[:cut], None):
        stream.request()
        first = int(stream.last_id or 0) + 1
        sent = "".join(frame(n) for n in range(first, 6)) if sent is None else sent
        told = [stream.line(line) for line in sent.splitlines()]
        found += [event.data["n"] for event in told if event is not None]
    assert found == [1, 2, 3, 4, 5]


def test_data_that_is_no_object_is_named() -> None:
    with pytest.raises(DependencyDown, match="no JSON object"):
        read("data: nonsense\n\n")


async def test_a_separator_within_an_event_does_not_end_its_line(service: Events) -> None:
    said = 'id: 1\nevent: end\ndata: {"reason": "one\u2028two"}\n\n'
    service.refusals += [Response(said, media_type="text/event-stream") for _ in range(2)]
    with SyncMemoryClient(service.url, retry=FAST) as client:
        assert [one.data for one in client.ops.job_events("job-1")] == [{"reason": "one\u2028two"}]
    async with MemoryClient(service.url, retry=FAST) as client:
        found = [one.data async for one in client.ops.job_events("job-1")]
    assert found == [{"reason": "one\u2028two"}]
