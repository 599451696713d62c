"""The search route and the recent list."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from rayapp.memory.item import Source, SourceType, Stats
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import CORE_TIERS, Tier
from rayapp.search.requests import SearchAnswer, SearchQuery, StageError
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, json_bytes, settings_with, short_time_limit

SEARCH = "/api/memory/search"


class Recording:
    """Keeps what it is asked and answers nothing, degraded."""

    def __init__(self) -> None:
        self.asked: list[tuple[ReadScope, SearchQuery]] = []

    async def search(self, scope: ReadScope, query: SearchQuery) -> SearchAnswer:
        self.asked.append((scope, query))
        return SearchAnswer(
            receipt_id=None,
            hits=(),
            total=0,
            confidence="low",
            relevance=0.0,
            degraded=("embedder", "receipt"),
            errors=(StageError(stage="embed", message="away", code="embedder_down"),),
        )


async def asked(body: dict[str, Any]) -> SearchQuery:
    search = Recording()
    async with client_of(Harness.ready(search=search).services) as api:
        response = await api.post(SEARCH, json={"query": "tea", **body})
    assert response.status_code == 200, response.text
    return search.asked[0][1]


async def test_a_hit_carries_the_fixed_shape_and_the_clients_fields(
    api: httpx.AsyncClient, world: Harness
) -> None:
    text = "Dana moved to Haifa. " * 20
    await api.post(
        "/api/memory/store",
        json={
            "text": text,
            "memory_id": "m-1",
            "tier": "documents",
            "tags": ["family"],
            "source": {"type": "document", "doc_id": "doc-9"},
        },
    )
    world.clock.advance(3 * 86_400)
    body = (await api.post(SEARCH, json={"query": "Haifa"})).json()
    hit = body["results"][0]
    assert (hit["position"], hit["memory_id"], hit["tier"]) == (1, "m-1", "documents")
    assert (hit["content"], len(hit["preview"]) <= 200) == (text, True)
    assert (hit["age"], hit["tags"], hit["uses"]) == ("3 d", ["family"], 0)
    assert hit["score"] == hit["score_summary"]["final_score"] == 1.0
    assert hit["citations"] == [
        {"source_type": "document", "memory_id": "m-1", "tier": "documents", "doc_id": "doc-9"}
    ]
    assert "retrievalDebug" not in body
    assert body["degraded"] == []
    assert (body["total"], body["hasMore"], body["nextOffset"]) == (1, False, None)


async def test_the_first_client_has_its_second_name_of_debug_by_a_setting() -> None:
    world = Harness.ready(settings_with(compat={"first_client": True}))
    async with client_of(world.services) as api:
        body = (await api.post(SEARCH, json={"query": "tea"})).json()
    assert body["retrievalDebug"] == body["debug"]


async def test_paging_by_offset(api: httpx.AsyncClient) -> None:
    for number in range(5):
        await api.post("/api/memory/store", json={"text": f"tea {number}"})
    first = (await api.post(SEARCH, json={"query": "tea", "limit": 3})).json()
    rest = (await api.post(SEARCH, json={"query": "tea", "limit": 3, "skip": 3})).json()
    assert (first["hasMore"], first["nextOffset"], rest["hasMore"]) == (True, 3, False)
    ids = [hit["memory_id"] for hit in first["results"] + rest["results"]]
    assert len(set(ids)) == 5


async def test_degraded_stages_are_named() -> None:
    async with client_of(Harness.ready(search=Recording()).services) as api:
        body = (await api.post(SEARCH, json={"query": "tea"})).json()
    assert body["receipt_id"] is None
    assert body["degraded"] == body["debug"]["fallbacks_used"] == ["embedder", "receipt"]
    assert body["debug"]["vector_stage_status"] == "failed"
    assert body["debug"]["errors"][0]["code"] == "embedder_down"


TIER_FORMS: list[tuple[dict[str, Any], tuple[Tier, ...] | None]] = [
    ({}, None),
    ({"tiers": "all"}, CORE_TIERS),
    ({"tier": "all"}, CORE_TIERS),
    ({"tiers": ["all"]}, CORE_TIERS),
    ({"tier": "documents"}, (Tier.BOOKS,)),
    ({"tiers": ["documents", "working"]}, (Tier.BOOKS, Tier.WORKING)),
    ({"tiers": []}, ()),
    ({"tiers": None}, None),
]


@pytest.mark.parametrize(("body", "tiers"), TIER_FORMS)
async def test_tiers_in_every_form(body: dict[str, Any], tiers: tuple[Tier, ...] | None) -> None:
    assert (await asked(body)).tiers == tiers


@pytest.mark.parametrize("name", ["sort_by", "sortBy"])
@pytest.mark.parametrize(
    ("value", "mode"), [("recent", "recency"), ("recency", "recency"), ("score", "score")]
)
async def test_sort_in_every_form(name: str, value: str, mode: str) -> None:
    assert (await asked({name: value})).sort_by == mode


async def test_filters_become_an_item_filter() -> None:
    where = (
        await asked(
            {
                "filters": {
                    "tags": ["a"],
                    "tags_all": ["b"],
                    "source_types": ["tool"],
                    "tool_names": [],
                    "langs": ["he"],
                    "created_from": "2025-01-01T02:00:00+02:00",
                }
            }
        )
    ).where
    assert (where.tags_any, where.tags_all) == (("a",), ("b",))
    assert where.source_types == (SourceType.TOOL,)
    assert where.created_from is not None
    assert where.created_from.isoformat() == "2025-01-01T00:00:00+00:00"
    assert where.matches_nothing


async def test_datagov_categories_ask_for_datagov() -> None:
    query = await asked({"datagov_categories": "health, transport"})
    assert query.include_datagov is True
    assert query.tiers == (Tier.DATAGOV_SCHEMA,)
    assert query.where.categories == ("health", "transportation")


BAD_SEARCHES: list[tuple[dict[str, Any], str]] = [
    ({"query": None}, "query"),
    ({"query": ""}, "query"),
    ({"query": "\u200b\u2067 "}, "query"),
    ({"query": " \t"}, "query"),
    ({"query": ["x"]}, "query"),
    ({"query": "x" * 4_001}, "query"),
    ({"query": "a\u001bb"}, "query"),
    ({"limit": 0}, "limit"),
    ({"limit": -1}, "limit"),
    ({"limit": 51}, "limit"),
    ({"limit": "5"}, "limit"),
    ({"limit": True}, "limit"),
    ({"limit": 10**30}, "limit"),
    ({"offset": -1}, "offset"),
    ({"offset": 10**9}, "offset"),
    ({"tiers": ["attic"]}, "tiers.0"),
    ({"tiers": ["all", "working"]}, "tiers.0"),
    ({"tiers": 5}, "tiers"),
    ({"sort_by": "magic"}, "sort_by"),
    ({"min_confidence": "sure"}, "min_confidence"),
    ({"filters": {"tag": ["x"]}}, "filters.tag"),
    ({"filters": {"tags": "x"}}, "filters.tags"),
    ({"filters": {"user_id": ["noa"]}}, "filters.user_id"),
    ({"filters": []}, "filters"),
    ({"filters": {"source_types": ["rumour"]}}, "filters.source_types.0"),
    ({"filters": {"created_from": "soon"}}, "filters.created_from"),
    ({"filters": {"tags": ["\u0000"]}}, "filters.tags.0"),
    ({"filter": {"tags": ["x"]}}, "filter"),
    ({"recipe": "../../etc/passwd"}, "recipe"),
    ({"as_of": 0}, "as_of"),
    ({"include_datagov": "maybe"}, "include_datagov"),
]


@pytest.mark.parametrize(("change", "field"), BAD_SEARCHES)
async def test_a_bad_field_is_422_and_named(
    api: httpx.AsyncClient, change: dict[str, Any], field: str
) -> None:
    response = await api.post(SEARCH, json={"query": "tea", **change})
    assert response.status_code == 422, response.text
    assert response.json()["details"]["field"] == field


async def test_a_junk_enum_names_the_allowed_values(api: httpx.AsyncClient) -> None:
    message = (await api.post(SEARCH, json={"query": "x", "min_confidence": "sure"})).json()
    assert all(name in message["error"] for name in ("high", "medium", "low"))


RAW_BODIES: list[tuple[bytes, int]] = [
    (b"", 400),
    (b"{", 400),
    (b"\xff\xfe", 400),
    (b"[]", 400),
    (b'"x"', 400),
    (b"null", 400),
    (b'{"query": "x"} trailing', 400),
    (b'{"query": "x", "limit": NaN}', 422),
    (b'{"query": "x", "limit": Infinity}', 422),
    (b'{"query": "x", "limit": 1e999}', 422),
    (rb'{"query": "\ud800"}', 422),
    (rb'{"query": "x", "\udc00": 1}', 422),
    (rb'{"query": "\u0000"}', 422),
    (b'{"query": "x", "filters": ' + b"[" * 900 + b"]" * 900 + b"}", 422),
    (b"[" * 100_000, 400),
    (b'{"query": "x", "limit": ' + b"9" * 5_000 + b"}", 400),
]


@pytest.mark.parametrize(("body", "status"), RAW_BODIES)
async def test_bodies_that_no_writer_makes(
    api: httpx.AsyncClient, body: bytes, status: int
) -> None:
    response = await json_bytes(api, "POST", SEARCH, body)
    assert response.status_code == status
    assert response.json()["success"] is False


class Slow:
    """A search that ends only when it is cancelled."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def search(self, scope: ReadScope, query: SearchQuery) -> SearchAnswer:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        raise AssertionError("unreachable")


async def test_the_time_limit_cancels_the_search() -> None:
    slow = Slow()
    settings = short_time_limit()
    async with client_of(Harness.ready(settings, search=slow).services) as api:
        response = await api.post(SEARCH, json={"query": "tea"})
    assert (response.status_code, response.json()["code"]) == (504, "deadline_exceeded")
    assert response.headers["Retry-After"] == "1"
    assert slow.cancelled.is_set()


class TestRecent:
    async def test_the_clients_shape(self, world: Harness, api: httpx.AsyncClient) -> None:
        item = an_item(user_id="admin", memory_id="m-1", tier=Tier.BOOKS, tags=("a",))
        await world.items.insert(item)
        body = (await api.get(SEARCH, params={"tier": "documents", "sort_by": "recent"})).json()
        memory = body["memories"][0]
        assert (memory["memory_id"], memory["tier"]) == ("m-1", "documents")
        assert memory["outcomes"] == {"worked": 0, "failed": 0, "partial": 0, "unknown": 0}
        assert memory["source"]["category"] is None

    async def test_recent_is_by_change_and_score_by_what_is_shown(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        for number, (uses, worked) in enumerate([(0, 0.0), (8, 8.0), (6, 0.0), (1, 1.0)]):
            item = an_item(
                user_id="admin",
                memory_id=f"m-{number}",
                stats=Stats(uses=uses, success_count=worked, score=0.5),
            )
            await world.items.insert(item)
        world.clock.advance(60)
        await api.put("/api/memory/memory-bank/m-2", json={"tags": ["changed"]})

        async def shown(sort: str) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = (await api.get(SEARCH, params={"sort_by": sort})).json()[
                "memories"
            ]
            return found

        assert (await shown("recent"))[0]["memory_id"] == "m-2"
        scores = [one["wilson_score"] for one in await shown("score")]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] > 0.5 > scores[-1]

    async def test_compat_off_answers_books(self) -> None:
        world = Harness.ready(settings_with(compat={"tier_documents": False}))
        await world.items.insert(an_item(user_id="admin", tier=Tier.BOOKS))
        async with client_of(world.services) as api:
            assert (await api.get(SEARCH)).json()["memories"][0]["tier"] == "books"

    async def test_categories_narrow_datagov_and_leave_the_rest(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        own = an_item(user_id="admin", memory_id="own")
        await world.items.insert(own)
        for name in ("health", "transportation"):
            shared = an_item(
                user_id="system",
                memory_id=name,
                tier=Tier.DATAGOV_SCHEMA,
                source=Source(type=SourceType.DATAGOV, datagov={"category": name}),
                updated_at=own.updated_at + timedelta(hours=1),
            )
            await world.items.insert(shared)

        async def ids(query: str) -> list[str]:
            body = (await api.get(f"{SEARCH}?{query}")).json()
            return [one["memory_id"] for one in body["memories"]]

        assert await ids("") == ["own"]
        assert set(await ids("include_datagov=true")) == {"own", "health", "transportation"}
        assert await ids("include_datagov=true&datagov_categories=health,law") == ["health", "own"]

    async def test_limits_and_unknown_fields(self, api: httpx.AsyncClient) -> None:
        assert (await api.get(f"{SEARCH}?limit=200&theme=dark")).status_code == 200
        for bad in ("limit=0", "limit=201", "sort_by=magic", "tier=attic"):
            assert (await api.get(f"{SEARCH}?{bad}")).status_code == 422

    async def test_expired_memories_are_hidden(
        self, world: Harness, api: httpx.AsyncClient
    ) -> None:
        item = an_item(user_id="admin", memory_id="m-1")
        await world.items.insert(replace(item, expires_at=world.clock.now()))
        assert (await api.get(SEARCH)).json()["memories"] == []
