"""What only a real MongoDB shows: schema, plans, time zones, crashes."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from rayapp.admin.retention import LegalHolds
from rayapp.container.bootstrap import runtime_of
from rayapp.core.errors import ConfigError, RayappError, SchemaMismatch, StoreDown
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import MongoSettings, Settings
from rayapp.learning.ports import ScoreGiven
from rayapp.memory.item import Source, SourceType
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.storage.mongo.database import MongoDatabase, redacted
from rayapp.storage.mongo.event_stream import MongoEventStore, told_in
from rayapp.storage.mongo.index_queue import IS_PENDING
from rayapp.storage.mongo.indexes import (
    EVENTS,
    INDEXES,
    ITEMS,
    RETIRED,
    SESSIONS,
    SYNC_DUE,
    VEILED_WORDS,
)
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.operator_rows import MongoHoldStore
from rayapp.storage.mongo.predicates import selected
from rayapp.storage.mongo.receipts import NEWEST, MongoReceiptStore, living
from rayapp.storage.mongo.sessions import target_of
from tests.support.builders import an_item
from tests.support.mongo_server import MongoServer, running_mongo
from tests.support.side_store_contract import a_receipt

pytestmark = pytest.mark.engine
DANA = ReadScope("dana").own
BY_RECEIPT = ScoreGiven(at=datetime(2026, 1, 1, tzinfo=UTC), receipt_id="r-1")

UNIQUE = {
    "memory_items": {"user_memory", "point", "active_text"},
    "memory_versions": {"user_memory_version"},
    "documents": {"user_book", "title_once"},
    "document_uploads": {"user_upload"},
    "memory_deletions": {"user_tier"},
    "memory_changes": set(),
    "receipts": {"receipt"},
    "events": {"event"},
    "leases": set(),
    "api_keys": {"key_hash"},
    "audit_log": {"audit_entry"},
    "idempotency": {"user_route_key"},
    "memory_outcomes": {"user_key"},
    "known_solutions": {"user_problem_memory"},
    "kg_routing": {"user_concept"},
    "kg_nodes": {"user_node"},
    "kg_edges": {"user_edge"},
    "kg_actions": {"user_context_action_tier"},
    "books": {"user_doc"},
    "jobs": {"job"},
    "job_partitions": {"job_partition"},
    "quarantine": {"quarantined"},
    "sessions": {"user_conversation"},
    "personality": {"user"},
    "exchanges": {"user_exchange"},
    "understandings": {"user_memory"},
    "kg_given": {"user_source"},
    "kg_entities": {"user_entity"},
    "kg_statements": {"user_statement"},
    "derived": {"user_derived"},
    "kg_merges": {"user_merge"},
    "ontology": {"tenant_version"},
    "ontology_rulings": {"tenant_proposal"},
    "webhooks": {"user_webhook"},
    "webhook_deliveries": {"user_delivery"},
    "webhook_feed": set(),
    "turns": {"user_turn_message"},
    "model_windows": {"user_model"},
    "imports": {"user_archive"},
    "model_usage": set(),
    "daily_metrics": {"day"},
    "legal_holds": {"held_user"},
    "ended_tokens": set(),
    "backup_keys": set(),
}
TTL_S = {
    ("receipts", "receipt_expiry"): 0,
    ("audit_log", "audit_expiry"): 0,
    ("memory_changes", "change_expiry"): 3_600,
    ("document_uploads", "upload_expiry"): 0,
    ("events", "event_expiry"): 7_776_000,
    ("idempotency", "idempotency_expiry"): 86_400,
    ("quarantine", "quarantine_expiry"): 2_592_000,
    ("jobs", "job_expiry"): 7_776_000,
    ("job_partitions", "partition_expiry"): 7_776_000,
    ("sessions", "session_expiry"): 0,
    ("exchanges", "exchange_expiry"): 604_800,
    ("model_usage", "usage_expiry"): 7_776_000,
    ("imports", "import_expiry"): 2_592_000,
    ("daily_metrics", "day_expiry"): 34_560_000,
    ("ended_tokens", "token_expiry"): 0,
    ("webhook_deliveries", "delivery_expiry"): 0,
}
PARTIAL = {
    "active_text": {"status": "active"},
    "user_waiting": {"index.sync_state": "pending"},
    "pending_by_user": {"index.sync_state": "pending"},
    "pending_since": {"index.sync_state": "pending"},
    "failed_by_user": {"index.sync_state": "failed"},
    "follow_up": {"follow_up_at": {"$type": "date"}},
    "understand": {"understand_at": {"$type": "date"}},
    "judged": {"status": "active", "stats.uses": {"$gt": 0}},
    "expiring": {"status": "active", "stats.uses": 0, "expires_at": {"$type": "date"}},
    "working_stored": {"tier": "working"},
    "merged": {"merged_into": {"$type": "string"}},
    "indexed": {"status": "active", "index.indexed_at": {"$type": "date"}},
    "patterns_newest": {"tier": "patterns", "status": "active"},
    "instructions_newest": {"instruction": {"$type": "string"}, "status": "active"},
    "hidden": {"status": "archived", "archived_reason": {"$gte": "ghost:", "$lt": "ghost;"}},
    "conversation_items": {"source.conversation_id": {"$type": "string"}},
    "veiled_words": {"veiled_words": {"$type": "string"}},
}
ITEM_KEYS = {
    "_id_": {"_id": 1},
    "user_memory": {"user_id": 1, "memory_id": 1},
    "point": {"point_id": 1},
    "user_tier_status": {"user_id": 1, "tier": 1, "status": 1},
    "user_status_updated": {"user_id": 1, "status": 1, "updated_at": -1},
    "active_text": {"user_id": 1, "tier": 1, "dedup_scope": 1, "content_hash": 1},
    "user_tags": {"user_id": 1, "tags": 1},
    "user_entities": {"user_id": 1, "entities": 1},
    "user_pinned": {"user_id": 1, "always_inject": 1, "status": 1},
    "tier_expiry": {"tier": 1, "expires_at": 1},
    "sync_due": {"index.sync_state": 1, "index.next_attempt_at": 1},
    "user_waiting": {"user_id": 1, "stored_at": 1, "source.chunk_id": 1, "index.vector_hash": 1},
    "pending_by_user": {"index.sync_state": 1, "user_id": 1, "index.next_attempt_at": 1},
    "pending_since": {"index.sync_state": 1, "index.pending_since": 1},
    "failed_by_user": {"index.sync_state": 1, "user_id": 1},
    "follow_up": {"follow_up_at": 1},
    "understand": {"understand_at": 1},
    "judged": {"user_id": 1, "point_id": 1},
    "expiring": {"user_id": 1, "point_id": 1, "expires_at": 1},
    "working_stored": {"tier": 1, "stored_at": 1, "user_id": 1, "source.conversation_id": 1},
    "merged": {"user_id": 1, "merged_into": 1},
    "indexed": {"index.indexed_at": 1, "point_id": 1},
    "patterns_newest": {
        "user_id": 1,
        "created_at": -1,
        "stats.score": -1,
        "updated_at": -1,
        "point_id": -1,
    },
    "instructions_newest": {
        "user_id": 1,
        "created_at": -1,
        "stats.score": -1,
        "updated_at": -1,
        "point_id": -1,
    },
    "hidden": {"user_id": 1, "archived_at": -1, "point_id": -1},
    "text_search": {"user_id": 1, "_fts": "text", "_ftsx": 1},
    "conversation_items": {"user_id": 1, "source.conversation_id": 1},
    "veiled_words": {"user_id": 1, "veiled_words": 1},
}


@pytest.fixture
async def database(mongo: MongoServer) -> AsyncIterator[MongoDatabase]:
    database = MongoDatabase(mongo.settings())
    await database.client.drop_database("rayapp-test")
    await database.ensure_schema()
    yield database
    await database.close()


class TestSchema:
    async def test_every_option_of_every_index_is_on_the_server(
        self, database: MongoDatabase
    ) -> None:
        stored = {name: await database.indexes(name) for name in INDEXES}
        for name, indexes in stored.items():
            assert {i for i, raw in indexes.items() if raw.get("unique")} == UNIQUE[name]
        ttl = {
            (name, i): raw["expireAfterSeconds"]
            for name, indexes in stored.items()
            for i, raw in indexes.items()
            if "expireAfterSeconds" in raw
        }
        assert ttl == TTL_S
        items = stored["memory_items"]
        assert {i: dict(raw["key"]) for i, raw in items.items()} == ITEM_KEYS
        partial = {
            i: dict(raw["partialFilterExpression"])
            for i, raw in items.items()
            if "partialFilterExpression" in raw
        }
        assert partial == PARTIAL
        text = items["text_search"]
        assert dict(text["weights"]) == {"text": 10, "summary": 5, "tags": 3}
        assert text["default_language"] == "none"
        assert text["language_override"] == "text_index_language"

    async def test_a_second_start_changes_nothing(self, database: MongoDatabase) -> None:
        before = {name: await database.indexes(name) for name in INDEXES}
        await asyncio.gather(database.ensure_schema(), database.ensure_schema())
        assert {name: await database.indexes(name) for name in INDEXES} == before

    async def test_an_index_of_an_earlier_version_goes(self, database: MongoDatabase) -> None:
        (name, index), *_ = RETIRED
        await database.collection(name).create_index([("user_id", 1), ("stored_at", 1)], name=index)
        await asyncio.gather(database.ensure_schema(), database.ensure_schema())
        assert index not in await database.indexes(name)

    async def test_rows_of_an_earlier_version_are_found_by_words_that_they_veil(
        self, database: MongoDatabase
    ) -> None:
        store, rows = MongoMemoryStore(database), database.collection(ITEMS)
        texts = {
            "m-1": "\u05e9\u05dc\u200f\u05d5\u05dd",
            "m-2": "\u05e9\u05dc\u05d5\u05dd",
            "m-3": "tea",
        }
        for name, text in texts.items():
            await store.insert(an_item(memory_id=name, text=text))
        await rows.update_many({}, {"$unset": {VEILED_WORDS.name: ""}})
        await rows.drop_index(VEILED_WORDS.name)
        for _ in range(2):  # another start changes nothing
            await database.ensure_schema()
            query = ItemQuery(text_query="\u05e9\u05dc\u05d5\u05dd")
            page = await store.page(DANA, ItemFilter(), query)
            assert {item.memory_id for item in page.items} == {"m-1", "m-2"}
            assert await rows.count_documents({VEILED_WORDS.name: {"$exists": True}}) == 1

    async def test_a_search_beside_an_ingest_reads_no_chunk_that_is_coming(
        self, database: MongoDatabase
    ) -> None:
        store = MongoMemoryStore(database)
        chunks = [
            an_item(memory_id=f"c-{n}", source=Source(type=SourceType.DOCUMENT, chunk_id=f"c-{n}"))
            for n in range(300)
        ]
        await store.insert_many([*chunks, *(an_item(memory_id=f"m-{n}") for n in range(3))])
        rows = database.client["rayapp-test"]
        await rows.command({"profile": 2})
        found = await store.pending(ReadScope("dana", include_shared=False), ItemFilter(), 9)
        await rows.command({"profile": 0})
        assert sorted(item.memory_id for item in found) == ["m-0", "m-1", "m-2"]
        asked = await rows["system.profile"].find_one({"command.hint": "user_waiting"})
        assert asked is not None
        assert asked["docsExamined"] == 3

    @pytest.mark.parametrize(
        ("collection", "name", "keys", "options"),
        [
            ("memory_items", "point", [("point_id", 1)], {}),
            ("memory_items", "user_tags", [("user_id", 1)], {}),
            ("events", "event_expiry", [("at", 1)], {"expireAfterSeconds": 60}),
            ("memory_items", "text_search", [("user_id", 1), ("text", "text")], {}),
        ],
    )
    async def test_an_index_that_differs_is_named(
        self,
        database: MongoDatabase,
        collection: str,
        name: str,
        keys: list[tuple[str, Any]],
        options: dict[str, Any],
    ) -> None:
        await database.collection(collection).drop_index(name)
        await database.collection(collection).create_index(keys, name=name, **options)
        with pytest.raises(SchemaMismatch, match=name) as caught:
            await database.ensure_schema()
        assert caught.value.details == {"collection": collection, "index": name}

    async def test_the_server_removes_expired_receipts(self, database: MongoDatabase) -> None:
        old = a_receipt(expires_at=datetime(2026, 1, 1, tzinfo=UTC))
        await MongoReceiptStore(database).put_many([old])
        rows = database.collection("receipts")
        admin = database.client.admin
        await admin.command({"setParameter": 1, "ttlMonitorEnabled": True})
        try:
            deadline = time.monotonic() + 15
            while await rows.count_documents({}) and time.monotonic() < deadline:  # noqa: ASYNC110 - the server does it
                await asyncio.sleep(0.1)
        finally:
            await admin.command({"setParameter": 1, "ttlMonitorEnabled": False})
        assert await rows.count_documents({}) == 0

    async def test_a_hold_is_told_once(self, database: MongoDatabase) -> None:
        """The server keeps milliseconds of the time of a hold, a clock says microseconds."""
        events = MongoEventStore(database)
        runtime = runtime_of(Settings(), InMemoryMetrics())
        holds = LegalHolds(MongoHoldStore(database), events, runtime=runtime)
        first = await holds.place("dana", "case 17", "ops")
        assert await holds.place("dana", "case 18", "ops") == first
        told = await events.recent(ReadScope(SYSTEM_USER), None, 9)
        assert [one.kind for one in told] == ["hold_placed"]


class TestPlans:
    async def test_backlog_counts_read_no_document(self, database: MongoDatabase) -> None:
        command = {"count": "memory_items", "query": IS_PENDING, "hint": SYNC_DUE.name}
        explained = await database.client["rayapp-test"].command({"explain": command})
        assert "COUNT_SCAN" in str(explained)
        assert "FETCH" not in str(explained)

    async def test_waiting_users_are_found_by_skipping_through_the_index(
        self, database: MongoDatabase
    ) -> None:
        await MongoMemoryStore(database).insert(an_item())
        pipeline = [{"$match": IS_PENDING}, {"$group": {"_id": "$user_id"}}]
        command = {
            "aggregate": "memory_items",
            "pipeline": pipeline,
            "cursor": {},
            "hint": "pending_by_user",
        }
        explained = await database.client["rayapp-test"].command({"explain": command})
        assert "DISTINCT_SCAN" in str(explained)

    @pytest.mark.parametrize("extra", [{}, {"scored_at": None}])
    async def test_the_newest_receipts_are_read_in_the_order_of_their_index(
        self, database: MongoDatabase, extra: dict[str, Any]
    ) -> None:
        rows = database.collection("receipts")
        found = rows.find({**living(ReadScope("dana"), "c"), **extra}, sort=NEWEST, limit=10)
        plan = str((await found.explain())["queryPlanner"]["winningPlan"])
        assert "conversation_receipts" in plan
        assert "SORT" not in plan

    @pytest.mark.parametrize(
        ("collection", "where", "index"),
        [
            (
                ITEMS,
                selected(DANA, ItemFilter(conversation_ids=("c", "d")))[0],
                "conversation_items",
            ),
            (EVENTS, told_in(DANA, "c", "learned"), "conversation_events"),
            (SESSIONS, target_of(WriteScope("dana"), BY_RECEIPT)[0], "user_owed"),
        ],
    )
    async def test_what_few_rows_have_is_found_by_its_own_index(
        self, database: MongoDatabase, collection: str, where: dict[str, Any], index: str
    ) -> None:
        """A partial index serves only queries that say what it holds."""
        rows = database.collection(collection)
        plan = (await rows.find(where).explain())["queryPlanner"]
        considered = [plan["winningPlan"], *plan["rejectedPlans"]]
        assert f"'indexName': '{index}'" in str(considered)


class TestTime:
    @pytest.fixture
    def in_jerusalem(self) -> Iterator[None]:
        before = os.environ.get("TZ")
        os.environ["TZ"] = "Asia/Jerusalem"
        time.tzset()
        yield
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()

    @pytest.mark.usefixtures("in_jerusalem")
    async def test_times_do_not_move_in_israel(self, database: MongoDatabase) -> None:
        assert datetime(2026, 7, 1).astimezone().utcoffset() == timedelta(hours=3)
        at = datetime(2026, 7, 1, 1, 30, tzinfo=timezone(timedelta(hours=3)))
        store = MongoMemoryStore(database)
        await store.insert(an_item(memory_id="x", stored_at=at, expires_at=at))
        item = await store.get(ReadScope("dana"), "x")
        assert item is not None
        assert item.expires_at == item.stored_at == at
        assert item.stored_at.isoformat() == "2026-06-30T22:30:00+00:00"
        growth = await store.growth(ReadScope("dana"), at - timedelta(days=1))
        assert growth[1:] == [("2026-06-30", "manual", 1)]


class TestConnection:
    def test_no_uri_says_what_to_set(self) -> None:
        with pytest.raises(ConfigError, match="MONGODB_URI"):
            MongoDatabase(MongoSettings())

    @pytest.mark.parametrize("uri", ["mongodb://u:pw-1@h:port", "mongodb+srv://u:pw-1@h:1/"])
    def test_a_bad_uri_is_a_config_error_without_its_password(self, uri: str) -> None:
        with pytest.raises(ConfigError) as caught:
            MongoDatabase(MongoSettings(uri=uri))
        assert "pw-1" not in str(caught.value)
        assert caught.value.__cause__ is None

    async def test_an_absent_server_is_store_down_in_time_and_names_no_password(self) -> None:
        settings = MongoSettings(uri="mongodb://u:pw-1@127.0.0.1:1/?w=1", server_selection_s=0.2)
        database = MongoDatabase(settings)
        started = time.monotonic()
        with pytest.raises(StoreDown) as caught:
            await database.ping()
        assert time.monotonic() - started < 2
        assert caught.value.retry_after_s
        shown = f"{database!r} {caught.value} {caught.value.details}"
        assert "pw-1" not in shown
        await database.close()

    def test_redacted(self) -> None:
        uri = "mongodb://user:p%40ss@a:1,b:2/db?authSource=admin"
        assert redacted(uri) == "mongodb://a:1,b:2"


@dataclass
class Writer:
    """Inserts one item after another; remembers what was acknowledged and how failures felt."""

    store: MongoMemoryStore
    name: str
    acknowledged: list[str] = field(default_factory=list)
    errors: list[RayappError] = field(default_factory=list)
    slowest_error_s: float = 0.0
    resumed: asyncio.Event = field(default_factory=asyncio.Event)

    async def write_until(self, stop: asyncio.Event) -> None:
        number = 0
        while not stop.is_set():
            item = an_item(memory_id=f"{self.name}-{number}")
            number += 1
            started = time.monotonic()
            try:
                await self.store.insert(item)
                self.acknowledged.append(item.point_id)
                if self.errors:
                    self.resumed.set()
            except RayappError as error:
                self.errors.append(error)
                self.slowest_error_s = max(self.slowest_error_s, time.monotonic() - started)


@pytest.mark.fault
async def test_acknowledged_writes_survive_kill_9_and_the_client_recovers() -> None:
    with running_mongo() as server:
        database = MongoDatabase(server.settings(server_selection_s=0.5))
        store = MongoMemoryStore(database)
        await store.ensure_schema()
        writers = [Writer(store, f"w{n}") for n in range(4)]
        stop = asyncio.Event()
        tasks = [asyncio.create_task(writer.write_until(stop)) for writer in writers]
        await asyncio.sleep(1.5)
        server.kill()
        before = {point for writer in writers for point in writer.acknowledged}
        await asyncio.sleep(1.2)
        await asyncio.to_thread(server.start)
        async with asyncio.timeout(15):
            await asyncio.gather(*(writer.resumed.wait() for writer in writers))
        stop.set()
        await asyncio.gather(*tasks)
        acknowledged = [point for writer in writers for point in writer.acknowledged]
        errors = [error for writer in writers for error in writer.errors]
        assert len(before) > 20
        assert len(acknowledged) > len(before)
        assert errors
        assert {type(error) for error in errors} == {StoreDown}
        assert max(writer.slowest_error_s for writer in writers) < 4
        found = await store.by_points(ReadScope("dana"), acknowledged)
        assert {item.point_id for item in found} == set(acknowledged)
        await database.close()
