"""The event stream over HTTP, in process."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any, get_args

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.ports import MarkKind, Scope, StreamEvent, StreamKind, StreamMark
from rayapp.api.app import create_api
from rayapp.api.routes.events import frame_bytes
from rayapp.wire.events import EventName
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with
from tests.unit.api.test_middleware import Connection

ROUTE = "/api/memory/events"
LOOK = {"follow": "false"}
AT = datetime(2026, 5, 1, tzinfo=UTC)


def events_of(text: str) -> list[dict[str, Any]]:
    found = []
    for block in text.split("\n\n"):
        lines = [line.partition(": ") for line in block.splitlines()]
        fields = {name: value for name, _, value in lines if name}
        if "data" in fields:
            found.append(
                {"id": fields["id"], "event": fields["event"], **json.loads(fields["data"])}
            )
    return found


async def stored(world: Harness, memory_id: str, user_id: str = "admin") -> None:
    data = {"memory_id": memory_id, "tier": "working"}
    await world.stream.tell(user_id, StreamKind.STORED, data)


async def look(api: httpx.AsyncClient, after: str | None = None, **query: str) -> list[Any]:
    headers = {"Last-Event-ID": after} if after else {}
    response = await api.get(ROUTE, params=LOOK | query, headers=headers)
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert response.headers["Cache-Control"] == "no-store"
    return events_of(response.text)


async def test_what_happened_since_the_last_event_is_told(
    api: httpx.AsyncClient, world: Harness
) -> None:
    (ready,) = await look(api)
    assert (ready["event"], ready["type"]) == ("ready", "ready")
    await stored(world, "m-1")
    await stored(world, "m-2", "noa")
    await stored(world, "m-3")
    events = await look(api, ready["id"])
    assert [event["event"] for event in events] == ["ready", "stored", "stored"]
    assert [event.get("memory_id") for event in events] == [None, "m-1", "m-3"]
    assert [e["memory_id"] for e in await look(api, events[1]["id"]) if "memory_id" in e] == ["m-3"]


async def test_the_header_wins_over_the_query_field(api: httpx.AsyncClient, world: Harness) -> None:
    (ready,) = await look(api)
    await stored(world, "m-1")
    last = (await look(api, ready["id"]))[-1]
    assert len(await look(api, last["id"], last_event_id=ready["id"])) == 1
    assert len(await look(api, last_event_id=ready["id"])) == 2
    assert len(await look(api, lastEventId=ready["id"])) == 2


async def test_types_can_be_chosen(api: httpx.AsyncClient, world: Harness) -> None:
    (ready,) = await look(api)
    await stored(world, "m-1")
    await world.stream.tell("admin", StreamKind.INDEXED, {"memory_id": "m-1", "tier": "working"})
    await world.stream.tell(None, StreamKind.JOB, {"job_id": "job-1", "kind": "reindex"})
    for types, expected in {
        "stored": ["stored"],
        "stored,indexed": ["stored", "indexed"],
        "job": ["job"],
    }.items():
        events = await look(api, ready["id"], types=types)
        assert [event["event"] for event in events[1:]] == expected
    everything = await look(api, ready["id"])
    assert [event["event"] for event in everything[1:]] == ["stored", "indexed", "job"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("types=junk", "types.0"),
        ("types=stored,junk", "types.1"),
        ("follow=perhaps", "follow"),
        ("surprise=1", "surprise"),
        ("last_event_id=" + "a" * 4_097, "last_event_id"),
    ],
)
async def test_bad_input_names_its_field(api: httpx.AsyncClient, query: str, field: str) -> None:
    response = await api.get(f"{ROUTE}?{query}")
    assert (response.status_code, response.json()["details"]["field"]) == (422, field)


async def test_an_unknown_id_is_a_reset(api: httpx.AsyncClient, world: Harness) -> None:
    await stored(world, "m-1")
    events = await look(api, "nobody-knows")
    assert [event["event"] for event in events] == ["reset"]


@pytest.mark.parametrize(
    ("scopes", "types", "status"),
    [
        ({"read"}, None, 200),
        ({"read"}, "stored", 200),
        ({"read", "write"}, "job", 403),
        ({"read"}, "stored,job", 403),
        ({"admin"}, "job", 200),
        ({"write"}, None, 403),
    ],
)
async def test_jobs_are_told_to_operators_only(
    scopes: set[Scope], types: str | None, status: int
) -> None:
    world = Harness.ready(settings_with(auth={"mode": "keys"}))
    keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
    secret, _ = await keys.create("p", user_id="dana", scopes=frozenset(scopes))
    await world.stream.tell(None, StreamKind.JOB, {"job_id": "job-1"})
    await stored(world, "m-1", "dana")
    await stored(world, "m-2", "noa")
    async with client_of(world.services, {"Authorization": f"Bearer {secret}"}) as api:
        query = {"last_event_id": "00000000", **LOOK} | ({"types": types} if types else {})
        response = await api.get(ROUTE, params=query)
        assert response.status_code == status, response.text
        told = {event["event"] for event in events_of(response.text)}
        assert ("job" in told) == (status == 200 and "admin" in scopes)
        assert "m-2" not in response.text


class Follower(Connection):
    """Knows when the stream said that it is ready."""

    begun = asyncio.Event()

    async def send(self, message: Any) -> None:
        await super().send(message)
        if b"ready" in message.get("body", b""):
            self.begun.set()


async def test_a_follower_who_goes_away_frees_its_place(world: Harness) -> None:
    connection = Follower(ROUTE, b"")
    connection.scope["method"] = "GET"
    app = create_api(world.services)
    serving = asyncio.create_task(app(connection.scope, connection.receive, connection.send))
    await asyncio.wait_for(connection.begun.wait(), 5)
    assert world.stream.open_feeds == 1
    connection.gone.set()
    await asyncio.wait_for(serving, 5)
    assert world.stream.open_feeds == 0


def test_a_mark_moves_the_position_without_an_event() -> None:
    mark = StreamMark(position="82AB", kind=MarkKind.ALIVE)
    assert frame_bytes(mark, AT, False) == b": alive\nid: 82AB\n\n"


def test_an_event_is_one_line_whatever_is_in_it() -> None:
    event = StreamEvent(
        position="82AB", kind=StreamKind.PROMOTED, at=AT, data={"from": "a\u2028b\x85", "tier": "ת"}
    )
    lines = frame_bytes(event, AT, False).decode().splitlines()
    assert lines[:2] == ["id: 82AB", "event: promoted"]
    assert json.loads(lines[2].removeprefix("data: ")) == {
        "type": "promoted",
        "at": "2026-05-01T00:00:00Z",
        "from_tier": "a\u2028b\x85",
        "tier": "ת",
    }
    assert len(lines) == 4


@pytest.mark.parametrize(("request_s", "stream_s", "limit"), [(30, 55, 60), (90, 55, 90)])
def test_whoever_cuts_long_requests_leaves_room_for_a_stream(
    request_s: float, stream_s: float, limit: float
) -> None:
    settings = settings_with(serve={"request_timeout_s": request_s}, events={"stream_s": stream_s})
    assert settings.stream_limit_s == limit


def test_the_documented_names_are_those_of_the_stream() -> None:
    assert set(get_args(EventName)) == {kind.value for kind in StreamKind}
