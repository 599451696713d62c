"""The event stream on the in-memory fake and on a real MongoDB, and over real HTTP."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
import uvicorn

from rayapp.admin.event_stream import EventStreamService
from rayapp.admin.ports import StreamKind
from rayapp.api.app import create_api
from rayapp.bulk.model import Job
from rayapp.container import bootstrap
from rayapp.core.errors import StoreDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import SystemClock
from rayapp.core.vectors import IndexSchema
from rayapp.learning.ports import OutcomeLimits
from rayapp.learning.records import Move, OutcomeEvent
from rayapp.memory.item import ChangeType, MemoryItem, Outcome
from rayapp.memory.ports import Event, IndexResult
from rayapp.memory.rules import creation
from rayapp.memory.rules.revision import replaced_state
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.derived import MongoDerivedStore
from rayapp.storage.mongo.errors import AUTH_CODES, RETRY_CODES, TIMEOUT_CODES
from rayapp.storage.mongo.event_stream import MongoEventStore, MongoEventStream, means_lost
from rayapp.storage.mongo.jobs import MongoJobStore
from rayapp.storage.mongo.lifecycle import MongoLifecycleStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.ontology import MongoRegistryStore
from rayapp.storage.mongo.outcomes import MongoOutcomeStore
from rayapp.storage.mongo.understandings import MongoUnderstandingStore
from rayapp.understanding.derived.ports import DerivedRows
from rayapp.understanding.records import Fate, Importance, Speaker, Understanding
from tests.support.builders import an_item
from tests.support.clock import FakeClock
from tests.support.derived_contract import AT, a_row
from tests.support.event_stream_contract import (
    DANA,
    POLL_S,
    EventStreamContract,
    StreamRig,
    kinds_of,
    told,
)
from tests.support.harness import Harness
from tests.support.ontology_contract import a_ruling, a_version
from tests.support.stores.event_stream import InMemoryEventStream
from tests.unit.api.serving import settings_with

SCHEMA = IndexSchema(model="m", dims=4, analyser="a")


def now() -> datetime:
    return datetime.now(UTC)


class FakeChanges:
    """What the truth would tell."""

    def __init__(self, stream: InMemoryEventStream) -> None:
        self._stream = stream

    async def store(self, user_id: str, memory_id: str) -> None:
        data = {"memory_id": memory_id, "tier": "working", "source": "user"}
        await self._stream.tell(user_id, StreamKind.STORED, data)

    async def index(self, user_id: str, memory_id: str) -> None:
        data = {"memory_id": memory_id, "tier": "working"}
        await self._stream.tell(user_id, StreamKind.INDEXED, data)

    async def judge(self, user_id: str, memory_id: str) -> None:
        data = {"outcome": "worked", "memory_ids": [memory_id]}
        await self._stream.tell(user_id, StreamKind.OUTCOME, data)

    async def promote(self, user_id: str, memory_id: str) -> None:
        data = {"memory_id": memory_id, "from": "working", "tier": "history"}
        await self._stream.tell(user_id, StreamKind.PROMOTED, data)

    async def archive(self, user_id: str, memory_id: str) -> None:
        await self._stream.tell(user_id, StreamKind.ARCHIVED, {"memory_id": memory_id})

    async def teach(self, user_id: str, kind: StreamKind, data: Mapping[str, Any]) -> None:
        await self._stream.tell(user_id, kind, data)

    async def job(self, job_id: str, done: int) -> None:
        await self._stream.tell(None, StreamKind.JOB, {"job_id": job_id, "done": done})


class MongoChanges:
    """The real stores: what tells a change is what makes it."""

    def __init__(self, database: MongoDatabase) -> None:
        self.items = MongoMemoryStore(database)
        self._outcomes = MongoOutcomeStore(database)
        self._lifecycle = MongoLifecycleStore(database)
        self._jobs = MongoJobStore(database)
        self._events = MongoEventStore(database)
        self._judged = 0

    async def store(self, user_id: str, memory_id: str) -> None:
        at = now()
        item = an_item(
            user_id=user_id,
            memory_id=memory_id,
            text=f"secret words of {memory_id}",
            stored_at=at,
            updated_at=at,
        )
        assert (await self.items.insert(item)).inserted

    async def index(self, user_id: str, memory_id: str) -> None:
        item = await self._item(user_id, memory_id)
        claimed = await self.items.claim(token="t", limit=100, claim_s=60)
        found = next(one for one in claimed if one.point_id == item.point_id)
        result = IndexResult(
            user_id=found.user_id,
            point_id=found.point_id,
            rev=found.index.rev,
            op=found.index.op,
            vector_hash="h",
        )
        assert await self.items.finish("t", [result], SCHEMA) == 1

    async def judge(self, user_id: str, memory_id: str) -> None:
        self._judged += 1
        event = OutcomeEvent(
            user_id=user_id,
            idempotency_key=f"k-{self._judged}",
            principal="key",
            outcome=Outcome.WORKED,
            at=now(),
            memory_ids=(memory_id,),
            query="secret words",
        )
        limits = OutcomeLimits(keep_receipt_until=now(), guest_per_hour=10)
        await self._outcomes.record(event, limits, strict=True)

    async def teach(self, user_id: str, kind: StreamKind, data: Mapping[str, Any]) -> None:
        """As `ExtractionExecutor` notes it."""
        event = Event(
            event_id=f"e-{kind.value}",
            user_id=user_id,
            kind=kind.value,
            at=now(),
            memory_id=data["memory_id"],
            data={**data, "owner": "extraction", "from": "secret words"},
        )
        await self._events.add(event)

    async def promote(self, user_id: str, memory_id: str) -> None:
        item = await self._item(user_id, memory_id)
        new = replace(item, tier=Tier.HISTORY)
        row = replaced_state(item, ChangeType.PROMOTE, "secret words", now())
        event = Event(
            event_id=f"e-{user_id}-{memory_id}",
            user_id=user_id,
            kind="promoted",
            at=now(),
            memory_id=memory_id,
            data={"from": "working", "to": "history", "reason": "secret words", "rule": "used"},
        )
        move = Move(item=new, expected_version=item.version, row=row)
        await self._lifecycle.transition([move], [event])

    async def archive(self, user_id: str, memory_id: str) -> None:
        item = await self._item(user_id, memory_id)
        new = creation.archived(item, "secret words", now())
        row = replaced_state(item, ChangeType.ARCHIVE, "secret words", now())
        await self.items.replace(new, expected_version=item.version, row=row)

    async def job(self, job_id: str, done: int) -> None:
        if done == 0:
            job = Job(job_id=job_id, kind="reindex", params={"secret": "words"}, created_at=now())
            await self._jobs.create(job)
        else:
            await self._jobs._jobs.update_one({"job_id": job_id}, {"$set": {"done": done}})

    async def _item(self, user_id: str, memory_id: str) -> MemoryItem:
        item = await self.items.get(ReadScope(user_id), memory_id)
        assert item is not None
        return item


class TestInMemoryEventStream(EventStreamContract):
    @pytest.fixture
    def rig(self) -> StreamRig:
        stream = InMemoryEventStream(FakeClock())
        return StreamRig(stream, FakeChanges(stream))


@pytest.fixture
def changes(database: MongoDatabase) -> MongoChanges:
    return MongoChanges(database)


@pytest.mark.engine
class TestMongoEventStream(EventStreamContract):
    @pytest.fixture
    def rig(self, database: MongoDatabase, changes: MongoChanges) -> StreamRig:
        return StreamRig(MongoEventStream(database), changes)

    async def test_the_end_of_an_archived_item_in_the_index_is_not_told_as_indexed(
        self, rig: StreamRig, changes: MongoChanges
    ) -> None:
        await changes.store("dana", "m-1")
        await changes.archive("dana", "m-1")
        feed = await rig.open(kinds={StreamKind.INDEXED})
        await changes.index("dana", "m-1")
        assert await told(feed) == []
        await feed.close()

    async def test_a_judged_item_is_told_again_when_the_index_holds_it(
        self, rig: StreamRig, changes: MongoChanges
    ) -> None:
        await changes.store("dana", "m-1")
        await changes.index("dana", "m-1")
        feed = await rig.open(kinds={StreamKind.INDEXED})
        await changes.judge("dana", "m-1")
        await changes.index("dana", "m-1")
        assert kinds_of(await told(feed)) == ["indexed"]
        await feed.close()

    async def test_what_was_derived_is_told_by_its_id_alone(
        self, rig: StreamRig, database: MongoDatabase
    ) -> None:
        feed = await rig.open()
        store = MongoDerivedStore(database)

        async def work(rows: DerivedRows) -> None:
            await rows.put([a_row(1)])
            await rows.tell([a_row(1)])

        await store.change(WriteScope("dana"), work)
        (event,) = await told(feed)
        await feed.close()
        assert (event.kind, event.data) == (StreamKind.THOUGHT, {"id": "row-1"})

    async def test_a_version_of_the_registry_is_told_by_its_number(
        self, rig: StreamRig, database: MongoDatabase
    ) -> None:
        feed = await rig.open()
        event = Event(event_id="e-1", user_id="dana", kind="ontology", at=AT, data={"version": 2})
        await MongoRegistryStore(database).rule(a_ruling(), a_version(2), [event])
        (told_of,) = await told(feed)
        await feed.close()
        assert (told_of.kind, told_of.data) == (StreamKind.ONTOLOGY, {"version": 2})

    async def test_what_matters_is_told_once_when_it_was_derived_from(
        self, rig: StreamRig, database: MongoDatabase
    ) -> None:
        queue, feed = MongoUnderstandingStore(database), await rig.open()
        for name, score in (("m-1", 0.8), ("m-2", 0.3)):
            side = Importance(
                speaker=Speaker.USER,
                score=score,
                base=score,
                signals={},
                overrides=(),
                threshold=0.44,
                factor=1.0,
                params="importance-1",
            )
            row = Understanding(
                user_id="dana", memory_id=name, source_hash="h", version=1, said_at=AT
            )
            await queue.offer(row)
            (claim,) = await queue.claim("me", 1, 60.0)
            decided = replace(row, sides=(side,))
            assert await queue.keep(claim, decided)
            assert await queue.finish(claim, replace(decided, fate=Fate.DERIVED))
        events = await told(feed)
        await feed.close()
        assert [(one.kind, one.data) for one in events] == [
            (StreamKind.IMPORTANT, {"memory_id": "m-1"})
        ]

    async def test_a_stored_batch_is_told_item_by_item(
        self, rig: StreamRig, changes: MongoChanges
    ) -> None:
        feed = await rig.open()
        items = [
            an_item(user_id="dana", memory_id=f"m-{n}", text=f"text {n}", content_hash=f"{n:064}")
            for n in range(300)
        ]
        await changes.items.insert_many(items)
        assert len(await told(feed)) == 300
        await feed.close()

    async def test_a_server_that_is_away_is_said(self) -> None:
        settings = settings_with().mongo.model_copy(
            update={"uri": "mongodb://127.0.0.1:9/?replicaSet=rs", "server_selection_s": 0.2}
        )
        database = MongoDatabase(settings)
        with pytest.raises(StoreDown):
            await MongoEventStream(database).open(
                DANA, after=None, kinds=frozenset(StreamKind), poll_s=POLL_S
            )
        await database.close()

    @pytest.mark.parametrize("code", sorted(RETRY_CODES | AUTH_CODES | TIMEOUT_CODES))
    def test_a_server_that_says_later_does_not_mean_a_lost_position(self, code: int) -> None:
        assert not means_lost(code)

    @pytest.mark.parametrize("code", [9, 280, 286, 40649, 50811])
    def test_a_refused_token_means_a_lost_position(self, code: int) -> None:
        assert means_lost(code)


# --- over HTTP


class Heard:
    """One follower that reconnects as a browser does, and remembers what it heard."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.last: str | None = None
        self.began = asyncio.Event()
        self.events: list[str] = []
        self.ids: list[str] = []

    async def listen(self, client: httpx.AsyncClient, until: int | None, **query: str) -> None:
        """One connection; it ends by itself, or once `until` memories are known in all."""
        headers = {"Last-Event-ID": self.last} if self.last else {}
        async with client.stream("GET", self._url, headers=headers, params=query) as response:
            assert response.status_code == 200, await response.aread()
            event: dict[str, str] = {}
            async for line in response.aiter_lines():
                name, _, value = line.partition(": ")
                if line:
                    event[name] = value
                    continue
                self.last = event.get("id", self.last)
                if "data" in event:
                    self._hear(event)
                event = {}
                if until is not None and len(self.ids) >= until:
                    return

    def _hear(self, event: dict[str, str]) -> None:
        self.events.append(event["event"])
        self.began.set()
        if event["event"] == "stored":
            self.ids.append(httpx.Response(200, text=event["data"]).json()["memory_id"])


@asynccontextmanager
async def served(database: MongoDatabase, **concerns: Any) -> AsyncIterator[tuple[str, Any]]:
    """The API on a free loopback port, its events from a real MongoDB."""
    settings = settings_with(**concerns)
    runtime = bootstrap.runtime_of(settings, InMemoryMetrics(), SystemClock())
    service = EventStreamService(MongoEventStream(database), runtime=runtime)
    world = Harness.ready(settings, events=service)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(create_api(world.services), log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/api/memory/events", service
        finally:
            server.should_exit = server.force_exit = True
            with suppress(asyncio.CancelledError):
                await serving


@pytest.mark.engine
class TestOverHttp:
    async def test_nothing_is_lost_between_two_connections(
        self, database: MongoDatabase, changes: MongoChanges
    ) -> None:
        """A writer never pauses while streams end and begin: each id is heard, and only once."""
        total = 120
        # The server ends each stream after 0.3 s; the follower comes back at once.
        async with served(database, events={"stream_s": 0.3, "heartbeat_s": 0.1}) as (url, _):
            heard = Heard(url)

            async def write() -> None:
                for number in range(total):
                    await changes.store("admin" if number % 2 else "noa", f"m-{number}")
                    await asyncio.sleep(0.01)

            connections = 0
            async with httpx.AsyncClient(timeout=30) as client:
                await heard.listen(client, None, follow="false")
                writing = asyncio.create_task(write())
                while len(heard.ids) < total // 2 and connections < 100:
                    connections += 1
                    await heard.listen(client, total // 2)
                    await asyncio.sleep(0.02 * (connections % 3))
                await writing
        assert heard.ids == [f"m-{number}" for number in range(1, total, 2)]
        assert connections > 2
        assert "reset" not in heard.events

    async def test_a_lost_place_is_said_once_and_the_stream_goes_on(
        self, database: MongoDatabase, changes: MongoChanges
    ) -> None:
        async with served(database, events={"stream_s": 20.0}) as (url, _):
            heard = Heard(url)
            heard.last = "8200000000" * 4
            async with httpx.AsyncClient(timeout=30) as client:
                listening = asyncio.create_task(heard.listen(client, 1))
                await heard.began.wait()
                await changes.store("admin", "m-1")
                await listening
        assert heard.events == ["reset", "stored"]

    async def test_a_follower_who_leaves_frees_its_place_at_once(
        self, database: MongoDatabase
    ) -> None:
        limits = {"stream_s": 60.0, "max_streams": 1}
        async with (
            served(database, events=limits) as (url, service),
            httpx.AsyncClient(timeout=30) as client,
        ):
            async with client.stream("GET", url) as response:
                assert response.status_code == 200
                refused = await client.get(url, params={"follow": "false"})
                assert (refused.status_code, refused.json()["code"]) == (429, "overloaded")
                assert refused.headers["Retry-After"]
            async with asyncio.timeout(10):
                while service._open:  # noqa: ASYNC110  # the service has no need to tell it
                    await asyncio.sleep(0.01)
            again = await client.get(url, params={"follow": "false"})
            assert again.status_code == 200

    async def test_a_stream_outlives_the_time_limit_of_a_request(
        self, database: MongoDatabase, changes: MongoChanges
    ) -> None:
        limits = {"serve": {"request_timeout_s": 0.2}, "search": {"timeout_s": 0.1}}
        async with served(database, events={"stream_s": 5.0}, **limits) as (url, _):
            heard = Heard(url)
            async with httpx.AsyncClient(timeout=30) as client:
                listening = asyncio.create_task(heard.listen(client, 1))
                await asyncio.sleep(0.6)
                assert not listening.done()
                await changes.store("admin", "m-1")
                await listening
        assert heard.events == ["ready", "stored"]
