"""Open data over HTTP: names in filters, fields of hits, the debug facts, and the graph."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from rayapp.client import SearchReply
from rayapp.core.ids import SYSTEM_USER
from rayapp.graphs.records import ContentEdge, ContentNode
from rayapp.memory.item import Source, SourceType
from rayapp.memory.tiers import Tier
from rayapp.text.normalize import content_hash
from rayapp.wire.search import SearchAnswerView
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.support.stores.shared_items import InMemorySharedItems
from tests.unit.api.serving import client_of

SEARCH = "/api/memory/search"
AT = datetime(2026, 1, 1, tzinfo=UTC)
FACTS: dict[str, Any] = {
    "kind": "resource",
    "category": "health",
    "dataset_id": "d-1",
    "resource_id": "r-1",
    "title": "מרפאות",
    "organization": "משרד הבריאות",
    "format": "csv",
    "total_records": 1200,
    "fields": ["שם", "phone"],
    "flags": {"has_phone": True, "has_date": False},
    "url": "https://data.gov.il/dataset/clinics",
}
TEXT = "מאגר מידע: מרפאות של משרד הבריאות. Dataset: clinics of the Ministry of Health"


async def served(**overrides: Any) -> tuple[Harness, httpx.AsyncClient]:
    harness = await Harness.open(**overrides)
    await harness.items.insert(
        an_item(
            user_id=SYSTEM_USER,
            memory_id="datagov_resource_r-1",
            tier=Tier.DATAGOV_SCHEMA,
            text=TEXT,
            content_hash=content_hash(TEXT),
            source=Source(type=SourceType.DATAGOV, datagov=FACTS),
            stored_at=harness.clock.now(),
        )
    )
    await harness.drain()
    return harness, client_of(harness.services)


async def found(api: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await api.post(SEARCH, json={"query": "clinics מרפאות", **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    SearchAnswerView.model_validate(answer)
    return answer


async def test_a_hit_carries_the_facts_of_the_catalogue() -> None:
    _, api = await served()
    async with api:
        answer = await found(api, include_datagov=True)
    hit = answer["results"][0]
    assert hit["datagov"] == {**FACTS, "flags": ["has_phone"], "error": None}
    assert hit["source"]["category"] == "health"
    assert hit["source"]["datagov"]["dataset_id"] == "d-1"
    facts = SearchReply.model_validate(answer).results[0].datagov
    assert facts is not None
    assert (facts.dataset_id, facts.total_records, facts.flags) == ("d-1", 1200, ("has_phone",))


async def test_a_personal_hit_has_no_catalogue_facts_and_odd_ones_keep_the_shape() -> None:
    harness, api = await served()
    await harness.store("clinics that I liked", user="admin")
    odd = {"fields": {"a": 1}, "total_records": "many", "flags": 7, "title": ["x"], "kind": "own"}
    await harness.store("clinics מרפאות, my own table", user="admin", source=Source(datagov=odd))
    await harness.drain()
    async with api:
        hits = (await found(api, include_datagov=False))["results"]
    views = {hit["content"]: hit["datagov"] for hit in hits}
    assert views["clinics that I liked"] is None
    own = views["clinics מרפאות, my own table"]
    assert (own["kind"], own["fields"], own["flags"], own["total_records"]) == ("own", [], [], None)
    assert own["title"] is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, {"searched": False, "guessed": False, "reason": None, "categories": []}),
        (
            {"query": "which datasets list clinics"},
            {"searched": True, "guessed": True, "reason": "datasets", "categories": ["health"]},
        ),
        (
            {"query": "אילו מאגרי מידע יש על מרפאות"},
            {"searched": True, "guessed": True, "reason": "datasets", "categories": ["health"]},
        ),
        (
            {"include_datagov": True},
            {"searched": True, "guessed": False, "reason": "asked", "categories": []},
        ),
        (
            {"filters": {"formats": ["csv"]}},
            {"searched": True, "guessed": False, "reason": "filter", "categories": []},
        ),
    ],
)
async def test_the_answer_says_why_open_data_was_searched(
    body: dict[str, Any], expected: dict[str, Any]
) -> None:
    _, api = await served()
    async with api:
        answer = await found(api, **body)
    assert answer["debug"]["datagov"] == expected
    assert ("datagov_schema" in answer["debug"]["tiers"]) is expected["searched"]
    assert bool(answer["results"]) is expected["searched"]


@pytest.mark.parametrize(
    "filters",
    [
        {"categories": ["health"]},
        {"categories": ["בריאות"]},
        {"categories": ["Health", "מים"]},
        {"formats": ["CSV"]},
        {"formats": [".Csv", "xlsx"]},
        {"organizations": [" משרד הבריאות "]},
        {"flags": ["phone"]},
        {"flags": ["has_phone"]},
    ],
)
async def test_names_in_filters_are_understood(filters: dict[str, Any]) -> None:
    _, api = await served()
    async with api:
        assert len((await found(api, filters=filters))["results"]) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"filters": {"categories": ["water"]}},
        {"filters": {"categories": []}},
        {"filters": {"formats": []}},
        {"filters": {"organizations": []}},
        {"filters": {"flags": []}},
        {"filters": {"flags": ["has_date"]}},
        {"datagov_categories": "water"},
        {"datagov_categories": []},
        {"datagov_categories": "health", "filters": {"categories": ["water"]}},
    ],
)
async def test_what_no_item_meets_finds_nothing(body: dict[str, Any]) -> None:
    _, api = await served()
    async with api:
        assert (await found(api, **body))["results"] == []


@pytest.mark.parametrize("value", ["health,מים", ["health"], "בריאות"])
async def test_the_first_clients_categories_work_end_to_end(value: Any) -> None:
    _, api = await served()
    async with api:
        assert len((await found(api, datagov_categories=value))["results"]) == 1


@pytest.mark.parametrize(
    ("body", "field", "hint"),
    [
        ({"filters": {"categories": ["helth"]}}, "filters.categories.0", "did you mean health"),
        ({"filters": {"categories": ["בריאת"]}}, "filters.categories.0", "did you mean health"),
        ({"filters": {"categories": ["qqq"]}}, "filters.categories.0", "transportation"),
        ({"datagov_categories": "water,helth"}, "datagov_categories.1", "did you mean health"),
    ],
)
async def test_an_unknown_category_is_refused_with_the_nearest(
    body: dict[str, Any], field: str, hint: str
) -> None:
    _, api = await served()
    async with api:
        response = await api.post(SEARCH, json={"query": "x", **body})
    assert response.status_code == 422
    assert response.json()["details"]["field"] == field
    assert hint in response.json()["error"]


async def test_the_recent_list_takes_any_category_that_a_client_knows() -> None:
    _, api = await served()
    async with api:
        for query, count in (
            ("include_datagov=true", 1),
            ("include_datagov=true&datagov_categories=statistics", 0),
            ("include_datagov=true&datagov_categories=statistics,בריאות", 1),
            ("", 0),
        ):
            body = (await api.get(f"{SEARCH}?{query}")).json()
            assert len(body["memories"]) == count, query


async def test_the_shared_user_cannot_be_acted_for() -> None:
    _, api = await served()
    async with api:
        for path, body in (
            (SEARCH, {"query": "x"}),
            ("/api/memory/store", {"text": "mine", "tier": "datagov_schema"}),
        ):
            response = await api.post(path, json=body, headers={"X-User-Id": SYSTEM_USER})
            assert response.status_code in (400, 403), response.text
        response = await api.post(
            "/api/memory/store", json={"text": "mine", "tier": "datagov_schema"}
        )
        assert (response.status_code, response.json()["code"]) == (422, "read_only_tier")


# --- the graph -------------------------------------------------------------------------------


def node(node_id: str, label: str, kind: Any) -> ContentNode:
    return ContentNode(
        node_id=node_id,
        label=label,
        type=kind,
        mentions=2,
        quality_sum=1.8,
        first_seen_at=AT,
        last_seen_at=AT,
    )


@pytest.mark.parametrize("mode", ["both", "content", "routing"])
async def test_the_picture_shows_the_catalogue_when_it_is_asked_to(mode: str) -> None:
    harness, api = await served()
    nodes = [
        node("datagov_root", "data.gov.il", "catalogue"),
        node("datagov_category_health", "בריאות · Health", "category"),
    ]
    edge = ContentEdge(
        source="datagov_root",
        target="datagov_category_health",
        weight=3.0,
        first_seen_at=AT,
        last_seen_at=AT,
        relation="has_category",
    )
    shared = InMemorySharedItems(harness.items.inner, harness.graphs.inner)
    await shared.put_graph(nodes, [edge])
    async with api:
        plain = (await api.get(f"/api/memory/graph?mode={mode}")).json()
        for name in ("include_datagov", "includeDataGov"):
            body = (await api.get(f"/api/memory/graph?mode={mode}&{name}=true")).json()
            shown = {one["concept"] for one in body["nodes"]}
            assert shown == {"data.gov.il", "בריאות · Health"}
            assert [one["weight"] for one in body["edges"]] == [3.0]
            assert body["meta"]["node_count"] == 2
    assert plain["nodes"] == []
