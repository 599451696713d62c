"""Graphs, patterns and insights over HTTP: on the whole service, and on rows that a test sets."""

from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from rayapp.api.app import ROUTES
from rayapp.graphs import records
from rayapp.memory.item import Outcome, Stats
from rayapp.memory.ports import Event
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT, an_item
from tests.support.harness import Harness
from tests.support.shapes import check_shape
from tests.unit.api.serving import client_of, settings_with

BANK = "/api/memory/memory-bank"
KG = "/api/memory/kg"
SHAPES = {f"{one.method} {one.path}": one.answer for one in ROUTES}
GOOD = records.Counters(uses=4, worked=3, failed=1)


@pytest.fixture
async def learned() -> AsyncIterator[httpx.AsyncClient]:
    """Facts in both languages, outcomes about them, and all that follows done."""
    harness = await Harness.open()
    async with client_of(harness.services) as api:
        facts = ["Dana lives in Haifa", "דנה עובדת בחיפה", "The TCP/IP notes are with Dana"]
        ids = []
        for text in facts:
            body = {"text": text, "tags": ["project/x"], "importance": 0.9}
            ids.append((await api.post(BANK, json=body)).json()["memory_id"])
        await harness.drain()
        # A verdict over a list is one use: one alone would not make a tier the best one.
        for query in ("Where is Dana?", "What does Dana do?"):
            found = (await api.post("/api/memory/search", json={"query": query})).json()
            body = {"receipt_id": found["receipt_id"], "outcome": "worked"}
            assert (await api.post("/api/memory/outcomes", json=body)).status_code == 200
        await harness.drain()
        await harness.settle()
        yield api


async def fits(response: httpx.Response, name: str) -> dict[str, Any]:
    """The body, held against its documented shape."""
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    check_shape(SHAPES[name], body)
    return body


class TestPicture:
    async def test_nodes_have_what_the_picture_draws(self, learned: httpx.AsyncClient) -> None:
        body = await fits(await learned.get("/api/memory/graph"), "GET /api/memory/graph")
        kinds = {node["type"] for node in body["nodes"]}
        assert kinds == {"routing", "content", "action"}
        assert all(node["created_at"] and node["last_used"] for node in body["nodes"])
        assert {node["id"].split("_")[0] for node in body["nodes"]} == kinds
        assert any(node["best_collection"] == "memory_bank" for node in body["nodes"])
        ids = {node["id"] for node in body["nodes"]}
        assert body["edges"]
        assert all({edge["source"], edge["target"]} <= ids for edge in body["edges"])
        assert body["meta"]["node_count"] == len(body["nodes"])
        assert body["meta"]["edge_count"] == len(body["edges"])

    @pytest.mark.parametrize("mode", ["routing", "content"])
    async def test_a_mode_shows_its_graph_alone(
        self, learned: httpx.AsyncClient, mode: str
    ) -> None:
        nodes = (await learned.get(f"/api/memory/graph?mode={mode}")).json()["nodes"]
        assert {node["type"] for node in nodes} == {mode}

    async def test_an_empty_graph_is_an_answer(self, api: httpx.AsyncClient) -> None:
        for path in ("/api/memory/graph", KG, f"{KG}/action-rollups"):
            body = await fits(await api.get(path), f"GET {path}")
            assert body["success"] is True
            assert not body.get("nodes")
            assert not body.get("concepts")
            assert not body.get("rollups")

    async def test_another_user_sees_nothing(self, learned: httpx.AsyncClient) -> None:
        noa = {"X-User-Id": "noa"}
        assert (await learned.get("/api/memory/graph", headers=noa)).json()["nodes"] == []
        assert (await learned.get(KG, headers=noa)).json()["concepts"] == []
        path = f"{KG}/concept/content_dana/definition"
        assert (await learned.get(path)).status_code == 200
        assert (await learned.get(path, headers=noa)).status_code == 404


class TestReads:
    @pytest.mark.parametrize("mode", ["routing", "content", "both"])
    @pytest.mark.parametrize("route", [KG, "/api/memory/graph"])
    async def test_a_call_reads_the_truth_at_most_five_times(self, route: str, mode: str) -> None:
        harness = await Harness.open()
        async with client_of(harness.services) as api:
            body = {"text": "Dana lives in Haifa"}
            assert (await api.post(BANK, json=body)).status_code == 200
            await harness.settle()
            before = len(harness.graphs.calls) + len(harness.items.calls)
            assert (await api.get(f"{route}?mode={mode}")).status_code == 200
            reads = len(harness.graphs.calls) + len(harness.items.calls) - before
            assert 1 <= reads <= 5


class Rows:
    """Implements the reads of `Graphs` on set rows."""

    def __init__(self) -> None:
        now = STORED_AT
        self.asked: list[Any] = []
        self.rows = (
            self.row("old", GOOD, now - timedelta(days=30)),
            self.row("new", records.Counters(uses=1, failed=1), now),
        )
        self.nodes = (
            self.node("content_old", "Old", 0.9, now - timedelta(days=40)),
            self.node("content_tea", "Tea", 0.8, now - timedelta(days=3)),
        )

    def row(self, key: str, counters: records.Counters, at: Any) -> records.RoutingRow:
        return records.RoutingRow(
            concept=key,
            label=key.title(),
            tiers={Tier.BOOKS: counters},
            first_seen_at=at,
            last_seen_at=at,
        )

    def node(self, node_id: str, label: str, score: float, at: Any) -> records.GraphNodeView:
        return records.GraphNodeView(
            id=node_id,
            concept=label,
            type="content",
            score=score,
            usage=7,
            connections=1,
            success_rate=0.5,
            created_at=at,
            last_used=at,
        )

    async def concepts(self, scope: ReadScope, limit: int) -> tuple[records.RoutingRow, ...]:
        return self.rows

    async def picture(self, scope: ReadScope, mode: str) -> records.GraphView:
        nodes = self.nodes if mode != "routing" else ()
        return records.GraphView(
            nodes=nodes, edges=(records.GraphEdgeView("content_old", "content_tea", 2.0),)
        )

    async def listing(
        self, scope: ReadScope, mode: str, *, concepts: int, actions: int
    ) -> records.GraphListing:
        return records.GraphListing(
            concepts=await self.concepts(scope, concepts),
            picture=await self.picture(scope, mode),
            actions=await self.actions(scope, context_type=None, limit=actions),
        )

    async def actions(
        self, scope: ReadScope, *, context_type: str | None, limit: int
    ) -> tuple[records.ActionRow, ...]:
        self.asked.append(context_type)
        return (
            self.action(Tier.BOOKS, records.Counters(uses=2, worked=2), 2),
            self.action(Tier.WORKING, records.Counters(uses=2, failed=1, partial=1), 1),
        )

    def action(self, tier: Tier, counters: records.Counters, days: int) -> records.ActionRow:
        at = STORED_AT - timedelta(days=days)
        examples = tuple(
            records.Example(
                memory_id=f"{tier}-{n}",
                point_id=f"p-{tier}-{n}",
                tier=tier,
                outcome=Outcome.WORKED,
                at=at - timedelta(hours=n),
            )
            for n in range(4)
        )
        return records.ActionRow(
            context_type="coding_help",
            action="search_memory",
            tier=tier,
            counters=counters,
            first_used_at=at - timedelta(days=9),
            last_used_at=at,
            examples=examples,
        )


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
async def on_rows(rows: Rows) -> AsyncIterator[httpx.AsyncClient]:
    world = Harness.ready(graphs=rows)
    world.clock.advance((STORED_AT - world.clock.now()).total_seconds())
    async with client_of(world.services) as api:
        yield api


class TestConcepts:
    async def test_both_graphs_are_one_list(self, on_rows: httpx.AsyncClient) -> None:
        body = await fits(await on_rows.get(KG), f"GET {KG}")
        found = {one["concept_id"]: one for one in body["concepts"]}
        assert {key: one["source"] for key, one in found.items()} == {
            "old": "both",
            "new": "routing",
            "tea": "content",
        }
        old = found["old"]
        assert (old["label"], old["concept"], old["uses"], old["usage_count"]) == (
            "Old", "Old", 4, 4,
        )  # fmt: skip
        assert (old["success_rate"], old["mentions"]) == (0.75, 7)
        assert old["outcomes"] == {"positive": 3, "negative": 1, "partial": 0, "unknown": 0}
        assert old["related_concepts"] == ["Tea"]
        assert old["tier_stats"].keys() == {"documents"}
        assert old["best_collection"] == "documents"
        assert old["last_used"] == "2025-12-16T12:00:00Z"
        assert old["created_at"] == "2025-12-06T12:00:00Z"
        assert (found["tea"]["uses"], found["tea"]["type"], found["new"]["type"]) == (
            7, "content", "routing",
        )  # fmt: skip
        assert body["meta"] | {"built_ms": 0} == {
            "mode": "both",
            "routing_count": 2,
            "content_count": 2,
            "merged_count": 3,
            "built_ms": 0,
        }
        assert body["actionEffectiveness"][0]["success_rate"] == pytest.approx(2.5 / 4)

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("", ["tea", "old", "new"]),
            ("sort_by=recent", ["new", "tea", "old"]),
            ("sort_by=oldest", ["old", "tea", "new"]),
            ("time_filter=week&sort_by=recent", ["new", "tea"]),
            ("time_filter=today", ["new"]),
            ("time_filter=session", ["new"]),
            ("limit=1", ["tea"]),
            ("mode=content", ["tea", "old"]),
            ("mode=routing", ["old", "new"]),
        ],
    )
    async def test_filters_and_orders_are_honoured(
        self, on_rows: httpx.AsyncClient, query: str, expected: list[str]
    ) -> None:
        found = (await on_rows.get(f"{KG}?{query}")).json()["concepts"]
        assert [one["concept_id"] for one in found] == expected

    @pytest.mark.parametrize(
        "query", ["mode=action", "time_filter=year", "sort_by=name", "limit=0", "limit=x"]
    )
    async def test_what_is_not_offered_is_422(self, api: httpx.AsyncClient, query: str) -> None:
        assert (await api.get(f"{KG}?{query}")).status_code == 422

    async def test_books_keep_their_name_when_the_client_contract_is_off(self, rows: Rows) -> None:
        world = Harness.ready(settings_with(compat={"tier_documents": False}), graphs=rows)
        async with client_of(world.services) as api:
            found = (await api.get(KG)).json()["concepts"]
        assert found[-1]["tier_stats"].keys() == {"books"}

    async def test_a_noted_concept_is_acknowledged_and_not_stored(
        self, api: httpx.AsyncClient
    ) -> None:
        response = await api.post(KG, json={"concept": "חיפה", "tier": "documents"})
        body = await fits(response, f"POST {KG}")
        assert body["stored"] is False
        assert (await api.get(KG)).json()["concepts"] == []

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"concept": "tea"},
            {"concept": "", "tier": "working"},
            {"concept": 7, "tier": "working"},
            {"concept": "x" * 513, "tier": "working"},
            {"concept": "tea", "tier": "attic"},
            {"concept": "tea", "tier": "working", "outcome": "good"},
        ],
    )
    async def test_a_bad_note_is_422(self, api: httpx.AsyncClient, body: dict[str, Any]) -> None:
        assert (await api.post(KG, json=body)).status_code == 422


class TestActions:
    async def test_rollups_are_over_all_tiers_and_per_tier(
        self, on_rows: httpx.AsyncClient
    ) -> None:
        path = f"{KG}/action-rollups"
        body = await fits(await on_rows.get(path), f"GET {path}")
        found = {one["label"]: one for one in body["rollups"]}
        assert list(found) == [
            "search_memory@coding_help->documents",
            "search_memory@coding_help",
            "search_memory@coding_help->working",
        ]
        total = found["search_memory@coding_help"]
        assert (total["tier_key"], total["uses"], total["worked"], total["failed"]) == (
            "*",
            4,
            2,
            1,
        )
        assert (total["first_used_at"], total["last_used_at"]) == (
            "2026-01-04T12:00:00Z", "2026-01-14T12:00:00Z",
        )  # fmt: skip
        assert body["meta"]["count"] == 3

    async def test_tiers_may_be_left_out_and_contexts_asked_for(
        self, on_rows: httpx.AsyncClient, rows: Rows
    ) -> None:
        query = "include_tiers=false&context_type=coding_help&limit=5"
        found = (await on_rows.get(f"{KG}/action-rollups?{query}")).json()["rollups"]
        assert [one["label"] for one in found] == ["search_memory@coding_help"]
        assert rows.asked == ["coding_help"]

    @pytest.mark.parametrize(
        "query", ["limit=0", "limit=201", "include_tiers=perhaps", "context_type="]
    )
    async def test_a_bad_query_is_422(self, api: httpx.AsyncClient, query: str) -> None:
        assert (await api.get(f"{KG}/action-rollups?{query}")).status_code == 422

    async def test_the_statistics_show_actions_with_their_newest_examples(
        self, on_rows: httpx.AsyncClient
    ) -> None:
        body = await fits(await on_rows.get("/api/memory/stats"), "GET /api/memory/stats")
        (one,) = body["stats"]["action_effectiveness"]
        assert (one["context_type"], one["action_type"]) == ("coding_help", "search_memory")
        assert (one["total_uses"], one["success_rate"]) == (4, pytest.approx(2.5 / 4))
        times = [example["timestamp"] for example in one["examples"]]
        assert len(times) == 5
        assert times == sorted(times, reverse=True)
        assert one["examples"][0] == {
            "timestamp": "2026-01-14T12:00:00Z",
            "outcome": "worked",
            "doc_id": "working-0",
        }


class TestDefinition:
    async def definition(self, api: httpx.AsyncClient, name: str) -> httpx.Response:
        return await api.get(f"{KG}/concept/{quote(name, safe='')}/definition")

    @pytest.mark.parametrize(
        "name",
        ["content_dana", "routing_dana", "dana", "Dana", "חיפה", "בחיפה", "TCP/IP", "project/x"],
    )
    async def test_a_concept_is_found_by_id_and_by_name(
        self, learned: httpx.AsyncClient, name: str
    ) -> None:
        response = await self.definition(learned, name)
        body = await fits(response, f"GET {KG}/concept/{{concept_id}}/definition")
        assert body["definition"]["related"]["memories"], name

    async def test_both_shapes_hold_real_values(self, learned: httpx.AsyncClient) -> None:
        body = (await self.definition(learned, "content_dana")).json()
        assert (body["concept"]["id"], body["concept"]["type"]) == ("dana", "content")
        stats = body["definition"]["stats"]
        assert stats["mentions"] == 2
        assert 0 < stats["avg_quality"] <= 1
        assert body["usage_count"] == body["outcome_breakdown"]["worked"] == stats["uses"] > 0
        assert (body["best_collection"], body["success_rate"]) == ("memory_bank", 1.0)
        breakdown = body["collections_breakdown"]["memory_bank"]
        assert breakdown["successes"] == breakdown["total"] == body["usage_count"]
        assert "Haifa" in body["related_concepts"]
        haifa = next(
            one for one in body["related_concepts_with_stats"] if one["concept"] == "Haifa"
        )
        assert (haifa["co_occurrence"], haifa["success_together"]) == (1.0, 2)
        assert body["last_used"] >= body["created_at"]
        memory = body["definition"]["related"]["memories"][0]
        assert memory["text_preview"]
        assert memory["tier"] == "memory_bank"

    async def test_an_action_is_a_concept_too(self, learned: httpx.AsyncClient) -> None:
        body = (await self.definition(learned, "action_general_search_memory")).json()
        assert body["concept"]["type"] == "action"
        stats = body["definition"]["stats"]
        assert (stats["context_type"], stats["action"]) == ("general", "search_memory")
        assert body["usage_count"] == stats["uses"] > 0
        assert "mentions" not in stats

    async def test_an_unknown_concept_is_404_with_a_sentence(
        self, learned: httpx.AsyncClient
    ) -> None:
        response = await self.definition(learned, "אין כזה")
        assert response.status_code == 404
        body = response.json()
        assert (body["success"], body["error"]) == (False, body["message"])
        assert (await learned.get(f"{KG}/concept/dana")).json()["code"] == "route_not_found"

    @pytest.mark.parametrize("name", ["%20", "a%00b", "%ED%A0%80%0B", "x" * 513])
    async def test_a_name_that_is_none_is_422(self, api: httpx.AsyncClient, name: str) -> None:
        assert (await api.get(f"{KG}/concept/{name}/definition")).status_code == 422
        assert (await api.get(f"{KG}/concept//definition")).status_code == 422


class TestPath:
    async def test_the_way_between_two_concepts(self, learned: httpx.AsyncClient) -> None:
        query = {"source": "Haifa", "target": "TCP/IP"}
        body = await fits(await learned.get(f"{KG}/path", params=query), f"GET {KG}/path")
        assert body["found"] is True
        assert (body["path"][0], body["path"][-1], len(body["nodes"])) == ("Haifa", "TCP/IP", 3)
        assert len(body["edges"]) == 2
        ids = [node["id"] for node in body["nodes"]]
        assert ids[0].startswith("content_")
        steps = [{edge["source"], edge["target"]} for edge in body["edges"]]
        assert steps == [set(step) for step in pairwise(ids)]

    async def test_no_way_is_an_answer(self, learned: httpx.AsyncClient) -> None:
        body = (await learned.get(f"{KG}/path?source=dana&target=nobody")).json()
        assert (body["found"], body["path"], body["nodes"], body["edges"]) == (False, [], [], [])

    @pytest.mark.parametrize(
        "query", ["", "source=a", "target=a", "source=&target=b", "source=a&source=b&target=c"]
    )
    async def test_both_ends_are_needed(self, api: httpx.AsyncClient, query: str) -> None:
        assert (await api.get(f"{KG}/path?{query}")).status_code == 422


class TestUpkeep:
    async def test_the_size_of_the_graph(self, learned: httpx.AsyncClient) -> None:
        path = "/api/memory/content-graph/stats"
        stats = (await fits(await learned.get(path), f"GET {path}"))["stats"]
        assert stats["nodes"] > 2
        assert stats["edges"] > 1
        assert stats["last_updated_at"]

    async def test_an_empty_graph_has_no_time(self, api: httpx.AsyncClient) -> None:
        stats = (await api.get("/api/memory/content-graph/stats")).json()["stats"]
        assert stats == {"nodes": 0, "edges": 0, "last_updated_at": None}

    @pytest.mark.parametrize("sent", [{}, {"json": {}}, {"json": {"dry_run": True, "limit": 5}}])
    async def test_backfill_says_what_it_took_up(
        self, api: httpx.AsyncClient, sent: dict[str, Any]
    ) -> None:
        path = "/api/memory/content-graph/backfill"
        result = (await fits(await api.post(path, **sent), f"POST {path}"))["result"]
        assert result["dry_run"] is bool(sent.get("json"))
        assert result["processed_memories"] == 0

    @pytest.mark.parametrize(
        "body",
        [
            {"limit": 0},
            {"limit": 2_001},
            {"limit": "5"},
            {"limit": True},
            {"limit": 1.5},
            {"dry_run": "yes"},
            {"dry_run": 1},
            {"dryrun": True},
        ],
    )
    async def test_a_bad_backfill_is_422(
        self, api: httpx.AsyncClient, body: dict[str, Any]
    ) -> None:
        assert (await api.post("/api/memory/content-graph/backfill", json=body)).status_code == 422


class TestPatterns:
    async def test_patterns_come_best_first(self, api: httpx.AsyncClient, world: Harness) -> None:
        for name, wilson in (("weak", 0.2), ("strong", 0.8)):
            stats = Stats(
                uses=9, worked_count=8, failed_count=1, success_rate=0.9, wilson_score=wilson
            )
            await world.items.insert(
                an_item(
                    user_id="admin",
                    memory_id=name,
                    tier=Tier.PATTERNS,
                    stats=stats,
                    text=f"{name} " + "ש" * 400,
                )
            )
        path = "/api/memory/patterns/performance"
        body = await fits(await api.get(path), f"GET {path}")
        assert [one["memory_id"] for one in body["patterns"]] == ["strong", "weak"]
        one = body["patterns"][0]
        assert (one["uses"], one["worked"], one["failed"]) == (9, 8, 1)
        assert len(one["text_preview"]) <= 220
        assert one["summary"]
        assert body["meta"]["count"] == 2


class TestInsights:
    PATH = "/api/memory/context/insights"

    async def test_both_ways_of_asking_answer_alike(self, learned: httpx.AsyncClient) -> None:
        body = {"query": "Where does Dana live?", "recentMessages": ["דנה", {"content": "Haifa"}]}
        posted = await fits(await learned.post(self.PATH, json=body), f"POST {self.PATH}")
        query = {"query": body["query"], "recent_messages": ["דנה", "Haifa"]}
        got = await fits(await learned.get(self.PATH, params=query), f"GET {self.PATH}")
        assert posted["matched_concepts"]
        assert posted["tier_recommendations"][0]["tier"] == "memory_bank"
        posted.pop("meta")
        got.pop("meta")
        assert posted == got

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"query": ""},
            {"query": "  "},
            {"query": 7},
            {"query": "x" * 4_001},
            {"query": "a\u0007b"},
            {"query": "tea", "recent_messages": "hi"},
            {"query": "tea", "recent_messages": [1]},
            {"query": "tea", "recent_messages": [{"role": "user"}]},
            {"query": "tea", "recent_messages": ["x"] * 51},
            {"query": "tea", "conversation_id": ""},
            {"query": "tea", "limit": 5},
        ],
    )
    async def test_a_bad_question_is_422(
        self, api: httpx.AsyncClient, body: dict[str, Any]
    ) -> None:
        assert (await api.post(self.PATH, json=body)).status_code == 422

    @pytest.mark.parametrize("query", ["", "query=", "query=%20", "query=a&junk=1"])
    async def test_a_bad_query_string_is_422(self, api: httpx.AsyncClient, query: str) -> None:
        assert (await api.get(f"{self.PATH}?{query}")).status_code == 422


class TestRates:
    async def test_moves_of_the_last_minutes_over_what_can_move(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        for name in ("a", "b", "c", "d"):
            await api.post("/api/memory/store", json={"text": name, "tier": "history"})
        moves = [("promoted", 0), ("promoted", 299), ("promoted", 301), ("demoted", 10)]
        for number, (kind, age_s) in enumerate(moves):
            at = world.clock.now() - timedelta(seconds=age_s)
            await world.events.add(Event(event_id=f"e-{number}", user_id="admin", kind=kind, at=at))
        stats = (await api.get("/api/memory/stats")).json()["stats"]
        assert (stats["promotion_rate"], stats["demotion_rate"]) == (0.5, 0.25)

    async def test_a_rate_of_nothing_is_null(self, api: httpx.AsyncClient) -> None:
        stats = (await api.get("/api/memory/stats")).json()["stats"]
        names = ("promotion_rate", "demotion_rate", "cache_hit_rate")
        assert [stats[name] for name in names] == [None, None, None]

    async def test_cache_hits_are_those_of_all_layers(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        world.metrics.count("embed_cache_hits", 2, layer="lru")
        world.metrics.count("embed_cache_hits", 1, layer="redis")
        world.metrics.count("embed_cache_misses", 1)
        stats = (await api.get("/api/memory/stats")).json()["stats"]
        assert stats["cache_hit_rate"] == 0.75
