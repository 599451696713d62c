"""Store, read and change memories over HTTP."""

import re
from collections import defaultdict
from typing import Any

import httpx
import pytest

from rayapp.api.app import ROUTES
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, json_bytes, settings_with

STORE = "/api/memory/store"
ITEM = "/api/memory/items/m-1"


async def store(api: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await api.post(STORE, json={"text": "Dana moved to Haifa", **body})


async def test_store_answers_the_fixed_shape(api: httpx.AsyncClient) -> None:
    response = await store(api, memory_id="m-1")
    assert response.status_code == 201
    assert response.json() == {
        "success": True,
        "memory_id": "m-1",
        "indexed": False,
        "duplicate": False,
        "archived": [],
        "degraded": [],
    }


async def test_an_equal_text_is_a_duplicate_of_the_first(api: httpx.AsyncClient) -> None:
    await store(api, memory_id="m-1")
    again = (await store(api)).json()
    assert (again["memory_id"], again["duplicate"]) == ("m-1", True)


async def test_a_taken_id_with_another_text_is_a_conflict(api: httpx.AsyncClient) -> None:
    await store(api, memory_id="m-1")
    response = await store(api, memory_id="m-1", text="Another text")
    assert response.status_code == 409
    assert response.json()["code"] == "duplicate_memory"
    assert response.json()["details"]["memory_id"] == "m-1"


@pytest.mark.parametrize("name", ["text", "content"])
async def test_both_names_of_the_text_are_accepted(api: httpx.AsyncClient, name: str) -> None:
    response = await api.post(STORE, json={name: "tea", "memoryId": "m-1"})
    assert response.json()["memory_id"] == "m-1"
    assert (await api.get(ITEM)).json()["memory"]["text"] == "tea"


async def test_two_names_of_one_field_must_agree(api: httpx.AsyncClient) -> None:
    response = await api.post(STORE, json={"text": "tea", "content": "coffee"})
    assert response.status_code == 422
    assert response.json()["details"]["field"] == "content"


@pytest.mark.parametrize("name", ["books", "documents"])
async def test_both_names_are_taken_and_the_settings_is_answered(
    api: httpx.AsyncClient, name: str
) -> None:
    await store(api, memory_id="m-1", tier=name)
    assert (await api.get(ITEM)).json()["memory"]["tier"] == "documents"


async def test_a_naive_time_is_utc_and_a_zone_is_converted(api: httpx.AsyncClient) -> None:
    await store(api, memory_id="m-1", created_at="2025-05-04T09:30:00")
    await store(api, memory_id="m-2", text="b", created_at="2025-05-04T12:30:00+03:00")
    for memory_id in ("m-1", "m-2"):
        memory = (await api.get(f"/api/memory/items/{memory_id}")).json()["memory"]
        assert memory["created_at"] == "2025-05-04T09:30:00Z"


BAD_STORES: list[tuple[dict[str, Any], str]] = [
    ({"text": ""}, ""),
    ({"text": "  \n "}, ""),
    ({"text": 7}, "text"),
    ({"text": "a\u0000b"}, "text"),
    ({"text": "a\u0085b"}, "text"),
    ({"tags": "family"}, "tags"),
    ({"tags": ["a\u0007"]}, "tags.0"),
    ({"tags": [""]}, "tags.0"),
    ({"tags": ["x" * 201]}, "tags.0"),
    ({"entities": [None]}, "entities.0"),
    ({"tier": "attic"}, "tier"),
    ({"tier": 3}, "tier"),
    ({"tier": "datagov_schema"}, ""),
    ({"importance": 1.5}, "importance"),
    ({"importance": "high"}, "importance"),
    ({"always_inject": "yes"}, "always_inject"),
    ({"memory_id": "a b"}, "memory_id"),
    ({"memory_id": "a\n"}, "memory_id"),
    ({"memory_id": "a]b"}, "memory_id"),
    ({"memory_id": "x" * 129}, "memory_id"),
    ({"created_at": "yesterday"}, "created_at"),
    ({"created_at": 1746351000}, "created_at"),
    ({"created_at": "9999-12-31T23:59:59-10:00"}, "created_at"),
    ({"source": {"type": "rumour"}}, "source.type"),
    ({"source": {"book": {"a\u0001": 1}}}, "source.book.a field name"),
    ({"source": {"book": {"n": 2**63}}}, "source.book.n"),
    ({"user_id": "mallory"}, "user_id"),
    ({"valid_from": "2025-02-01T00:00:00Z", "valid_to": "2025-01-01T00:00:00Z"}, ""),
    ({"tier": "memory_bank"}, ""),
]


@pytest.mark.parametrize(("change", "field"), BAD_STORES)
async def test_a_bad_field_is_422_and_named(
    api: httpx.AsyncClient, change: dict[str, Any], field: str
) -> None:
    response = await store(api, **change)
    body = response.json()
    assert response.status_code == 422
    assert body["success"] is False
    assert body["error"] == body["message"] != ""
    assert body["details"].get("field", "") == field


async def test_a_tier_error_names_the_tiers(api: httpx.AsyncClient) -> None:
    message = (await store(api, tier="attic")).json()["error"]
    assert "memory_bank" in message
    assert "documents" in message


@pytest.mark.parametrize(
    ("tier", "shown"),
    [
        ("attic", "'attic' is no tier"),
        ("עליית גג", "'עליית גג' is no tier"),
        ("x" * 500, f"'{'x' * 39}…' is no tier"),
        (7, "7 is no tier"),
    ],
)
async def test_a_tier_error_names_what_was_sent(
    api: httpx.AsyncClient, tier: object, shown: str
) -> None:
    assert shown in (await store(api, tier=tier)).json()["error"]


async def test_hebrew_with_bidi_marks_is_stored_as_it_is(api: httpx.AsyncClient) -> None:
    text = "דנה גרה ב\u200fחיפה\tמאז\r\nמאי"
    await store(api, memory_id="m-1", text=text, tags=["משפחה"])
    memory = (await api.get(ITEM)).json()["memory"]
    assert (memory["text"], memory["tags"], memory["lang"]) == (text, ["משפחה"], "he")


async def test_a_text_above_its_limit_is_413() -> None:
    world = Harness.ready(settings_with(http={"text_limit_chars": 20}))
    async with client_of(world.services) as api:
        assert (await api.post(STORE, json={"text": "x" * 20})).status_code == 201
        response = await api.post(STORE, json={"text": "x" * 21})
    assert (response.status_code, response.json()["code"]) == (413, "too_large")


class TestBatch:
    PATH = "/api/memory/store/batch"

    async def test_one_bad_item_rejects_itself_only(self, api: httpx.AsyncClient) -> None:
        items: list[Any] = [
            {"text": "first", "memory_id": "m-1"},
            {"text": "bad\u0000", "memory_id": "m-2"},
            {"text": "first"},
            "no object",
            {"text": "x", "colour": "red"},
            {"text": "last", "memory_id": "m-3"},
        ]
        results = (await api.post(self.PATH, json={"items": items})).json()["results"]
        assert [(one["memory_id"], one["status"]) for one in results] == [
            ("m-1", "stored"),
            (None, "rejected"),
            ("m-1", "duplicate"),
            (None, "rejected"),
            (None, "rejected"),
            ("m-3", "stored"),
        ]
        assert results[1]["code"] == "control_character"
        assert "colour" in results[4]["error"]

    async def test_a_lone_surrogate_or_nan_rejects_its_item_only(
        self, api: httpx.AsyncClient
    ) -> None:
        body = rb'{"items":[{"text":"\ud800"},{"text":"a","importance":NaN},{"text":"fine"}]}'
        results = (await json_bytes(api, "POST", self.PATH, body)).json()["results"]
        assert [one["status"] for one in results] == ["rejected", "rejected", "stored"]

    async def test_a_thousand_items_pass_and_one_more_does_not(
        self, api: httpx.AsyncClient
    ) -> None:
        items = [{"text": f"note {n}"} for n in range(1_001)]
        assert (await api.post(self.PATH, json={"items": items})).status_code == 413
        response = await api.post(self.PATH, json={"items": items[:1_000]})
        assert {one["status"] for one in response.json()["results"]} == {"stored"}

    @pytest.mark.parametrize("body", [{}, {"items": {}}, {"items": [], "more": 1}])
    async def test_a_bad_envelope_is_422(
        self, api: httpx.AsyncClient, body: dict[str, Any]
    ) -> None:
        assert (await api.post(self.PATH, json=body)).status_code == 422


class TestItem:
    async def test_edit_keeps_the_id_and_leaves_a_version(self, api: httpx.AsyncClient) -> None:
        await store(api, memory_id="m-1")
        edited = await api.patch(ITEM, json={"content": "Dana moved to Acre", "reason": "typo"})
        memory = edited.json()["memory"]
        assert (memory["text"], memory["version"]) == ("Dana moved to Acre", 2)
        rows = (await api.get(f"{ITEM}/versions")).json()["versions"]
        assert [(row["version"], row["text"], row["reason"]) for row in rows] == [
            (1, "Dana moved to Haifa", "typo")
        ]

    async def test_an_edit_of_an_old_version_is_409(self, api: httpx.AsyncClient) -> None:
        await store(api, memory_id="m-1")
        await api.patch(ITEM, json={"tags": ["a"], "expected_version": 1})
        response = await api.patch(ITEM, json={"tags": ["b"], "expected_version": 1})
        assert (response.status_code, response.json()["code"]) == (409, "version_conflict")

    @pytest.mark.parametrize("body", [{}, {"reason": "why"}, {"text": None}, {"colour": 1}])
    async def test_an_edit_must_change_a_known_field(
        self, api: httpx.AsyncClient, body: dict[str, Any]
    ) -> None:
        await store(api, memory_id="m-1")
        assert (await api.patch(ITEM, json=body)).status_code == 422

    async def test_archive_hides_and_restore_brings_back(self, api: httpx.AsyncClient) -> None:
        await store(api, memory_id="m-1")
        archived = await api.post(f"{ITEM}/archive", json={"reason": "old"})
        assert archived.json()["memory"]["archived_reason"] == "old"
        assert (await api.get("/api/memory/items")).json()["items"] == []
        listed = (await api.get("/api/memory/items?status=archived")).json()["items"]
        assert [one["memory_id"] for one in listed] == ["m-1"]
        restored = await api.post(f"{ITEM}/restore")
        assert restored.json()["memory"]["status"] == "active"

    async def test_delete_is_final(self, api: httpx.AsyncClient) -> None:
        await store(api, memory_id="m-1")
        assert (await api.delete(ITEM)).json()["success"] is True
        assert (await api.get(ITEM)).status_code == 404
        assert (await api.delete(ITEM)).status_code == 404

    async def test_another_users_memory_is_404(self, api: httpx.AsyncClient) -> None:
        await store(api, memory_id="m-1")
        other = {"X-User-Id": "noa"}
        assert (await api.get(ITEM, headers=other)).status_code == 404
        assert (await api.delete(ITEM, headers=other)).status_code == 404
        assert (await api.patch(ITEM, json={"tags": ["a"]}, headers=other)).status_code == 404
        assert (await api.get(f"{ITEM}/explain?query=x", headers=other)).status_code == 404

    async def test_an_id_of_no_known_form_is_422(self, api: httpx.AsyncClient) -> None:
        response = await api.get("/api/memory/items/a%20b")
        assert (response.status_code, response.json()["code"]) == (422, "bad_memory_id")

    @pytest.mark.parametrize("memory_id", [".", ".."])
    async def test_no_id_is_stored_that_an_address_loses(
        self, api: httpx.AsyncClient, memory_id: str
    ) -> None:
        body = {"text": "Dana moved to Haifa", "memory_id": memory_id}
        response = await api.post("/api/memory/store", json=body)
        assert (response.status_code, response.json()["code"]) == (422, "bad_memory_id")

    async def test_explain_says_where_it_was_lost(self, api: httpx.AsyncClient) -> None:
        await store(api, memory_id="m-1")
        found = (await api.get(f"{ITEM}/explain", params={"query": "Haifa"})).json()
        lost = (await api.get(f"{ITEM}/explain", params={"query": "giraffe"})).json()
        assert (found["found"], found["position"]) == (True, 1)
        assert (lost["found"], lost["lost_at"]) == (False, "retrieve")
        stages = {one["stage"]: one["kept"] for one in lost["stages"]}
        assert [name for name, kept in stages.items() if not kept] == ["retrieve"]


class TestList:
    PATH = "/api/memory/items"

    async def test_a_cursor_walks_all_memories_once(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        for number in range(7):
            world.clock.advance(1)
            await store(api, memory_id=f"m-{number}", text=f"note {number}")
        seen: list[str] = []
        cursor = ""
        while True:
            query = {"limit": "3", **({"cursor": cursor} if cursor else {})}
            page = (await api.get(self.PATH, params=query)).json()
            seen += [one["memory_id"] for one in page["items"]]
            cursor = page["next_cursor"]
            if not cursor:
                break
        assert seen == [f"m-{number}" for number in reversed(range(7))]

    async def test_filters_narrow_and_an_empty_list_matches_nothing(
        self, api: httpx.AsyncClient
    ) -> None:
        await store(api, memory_id="m-1", text="a", tags=["x"], tier="history")
        await store(api, memory_id="m-2", text="b", tags=["y", "x"])

        async def ids(query: str) -> set[str]:
            body = (await api.get(f"{self.PATH}?{query}")).json()
            return {one["memory_id"] for one in body["items"]}

        assert await ids("") == {"m-1", "m-2"}
        assert await ids("tags=y&tags=z") == {"m-2"}
        assert await ids("tags_all=x&tags_all=y") == {"m-2"}
        assert await ids("tier=history") == {"m-1"}
        assert await ids("tiers=history&tiers=working") == {"m-1", "m-2"}
        assert await ids("tiers=all") == {"m-1", "m-2"}
        assert await ids("tags=") == set()
        assert await ids("created_from=2999-01-01") == set()

    async def test_a_filter_is_met_by_what_was_stored_of_the_same_words(
        self, api: httpx.AsyncClient
    ) -> None:
        said = " גינה "
        kept = {"tags": [said], "entities": [said], "importance": 0.8, "confidence": 0.8}
        await store(api, memory_id="m-1", tier="memory_bank", **kept)
        for name in ("tags", "tags_all", "entities"):
            page = (await api.get(self.PATH, params={name: said})).json()
            assert [one["memory_id"] for one in page["items"]] == ["m-1"], name
            body = {"query": "Dana", "filters": {name: [said]}}
            found = (await api.post("/api/memory/search", json=body)).json()
            assert found["total"] == 1, name
        bank = (await api.get("/api/memory/memory-bank", params={"tag": said})).json()
        assert len(bank["memories"]) == 1

    async def test_expired_memories_are_hidden(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await store(api, memory_id="m-1")
        world.clock.advance(24 * 3_600 - 1)
        assert len((await api.get(self.PATH)).json()["items"]) == 1
        world.clock.advance(2)
        assert (await api.get(self.PATH)).json()["items"] == []

    async def test_the_total_is_counted_on_demand(self, api: httpx.AsyncClient) -> None:
        await store(api)
        assert (await api.get(f"{self.PATH}?with_total=true")).json()["total"] == 1
        assert (await api.get(self.PATH)).json()["total"] is None

    @pytest.mark.parametrize(
        "query",
        [
            "limit=0",
            "limit=201",
            "limit=many",
            "cursor=%21%21",
            "colour=red",
            "status=lost",
            "sort=up",
            "tier=attic",
            "langs=xx",
            "source_types=rumour",
            "created_from=soon",
            "tags=%00",
            "tags_all=",
            "limit=3&limit=4",
            "&".join(f"tags={n}" for n in range(300)),
        ],
    )
    async def test_a_bad_query_is_422(self, api: httpx.AsyncClient, query: str) -> None:
        assert (await api.get(f"{self.PATH}?{query}")).status_code == 422


async def test_a_batch_of_which_nothing_was_kept_is_no_success(api: httpx.AsyncClient) -> None:
    batch = [{"text": ""}, {"text": "\u200b\u200f"}, {"text": 7}]
    answer = await api.post("/api/memory/store/batch", json={"items": batch})
    told = answer.json()
    assert (answer.status_code, told["success"]) == (200, False)
    assert {row["status"] for row in told["results"]} == {"rejected"}
    batch.append({"text": "a note"})
    again = (await api.post("/api/memory/store/batch", json={"items": batch})).json()
    assert again["success"] is True


@pytest.mark.parametrize("text", ["\u200b\u200f", "\u2066 \u2069", "\u05b7\u05b8", "\u3164"])
async def test_a_text_that_shows_nothing_is_refused(api: httpx.AsyncClient, text: str) -> None:
    for path, body in (
        ("store", {"text": text}),
        ("memory-bank", {"text": text}),
        ("memory-bank/goals", {"text": text}),
    ):
        answer = await api.post(f"/api/memory/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "empty_text")


EVENTS = "text/event-stream"  # read for as long as they come
ASKED = {one.path: one for one in ROUTES if one.query is not None and one.media != EVENTS}


@pytest.mark.parametrize("path", sorted(ASKED))
async def test_no_error_sentence_shows_a_class_of_the_service(
    api: httpx.AsyncClient, path: str
) -> None:
    operation = ASKED[path]
    assert operation.query is not None
    filled = path.format_map(defaultdict(lambda: "x"))
    for name in operation.query.model_fields:
        for value in ("nonsense", "-1", ""):
            answer = await api.request(operation.method, filled, params={name: value})
            assert not re.search(r"<[A-Za-z_.]+", answer.text), answer.text
