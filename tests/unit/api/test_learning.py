"""Outcomes, responses, feedback, scores and promotion over HTTP."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.ports import Scope
from rayapp.core.errors import Conflict, StoreDown
from rayapp.learning.records import (
    FeedbackRequest,
    OutcomeAnswer,
    OutcomeRequest,
    Recorder,
    ResponseAnswer,
    ResponseRequest,
)
from rayapp.memory.item import Quality
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Receipt, Shown
from rayapp.search.requests import SearchAnswer, SearchQuery
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with

OUTCOMES = "/api/memory/outcomes"
RESPONSE = "/api/memory/record_response"
FEEDBACK = "/api/memory/feedback"
SCORE = "/api/memory/score"
NOTHING = OutcomeAnswer(updated=(), skipped=(), duplicate=False)


class Noted:
    """Implements `Outcomes`: keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def record(self, scope: WriteScope, request: OutcomeRequest) -> OutcomeAnswer:
        self.asked.append(request)
        return OutcomeAnswer(updated=(), skipped=(), duplicate=False, receipt_id="r-found")

    async def shown(self, scope: WriteScope, request: OutcomeRequest) -> Receipt | None:
        return None

    async def record_response(self, scope: WriteScope, request: ResponseRequest) -> ResponseAnswer:
        self.asked.append(request)
        return ResponseAnswer(memory_id="m-1", duplicate=False, scored=NOTHING)

    async def feedback(self, scope: WriteScope, request: FeedbackRequest) -> OutcomeAnswer:
        self.asked.append(request)
        return NOTHING


async def keep(
    world: Harness, *memory_ids: str, user: str = "admin", tier: Tier = Tier.WORKING
) -> None:
    for memory_id in memory_ids:
        now = world.clock.now()
        item = an_item(user_id=user, memory_id=memory_id, tier=tier, stored_at=now)
        await world.items.insert(item)


async def shown(world: Harness, receipt_id: str, *memory_ids: str, user: str = "admin") -> None:
    """A search of the user that showed these memories, in this order."""
    now = world.clock.now()
    world.clock.advance(1)
    rows = tuple(
        Shown(memory_id=one, tier=Tier.WORKING, position=n, final=0.5)
        for n, one in enumerate(memory_ids, 1)
    )
    await world.receipts.put_many(
        [
            Receipt(
                receipt_id=receipt_id,
                user_id=user,
                query="tea",
                recipe="default",
                shown=rows,
                at=now,
                expires_at=now + timedelta(days=1),
                conversation_id="conv-1",
                principal="local",
            )
        ]
    )


async def uses(world: Harness, memory_id: str, user: str = "admin") -> int:
    item = await world.items.get(ReadScope(user), memory_id)
    assert item is not None
    return item.stats.uses


class TestOutcomes:
    async def test_an_outcome_by_id_moves_the_memory(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1")
        response = await api.post(OUTCOMES, json={"memory_ids": ["m-1"], "outcome": "worked"})
        assert response.status_code == 200
        body = response.json()
        assert body == {
            "success": True,
            "duplicate": False,
            "updated": [
                {
                    "memory_id": "m-1",
                    "tier": "working",
                    "uses": 1,
                    "success_count": 1.0,
                    "score": 0.7,
                    "wilson_score": pytest.approx(0.2065, abs=1e-4),
                    "success_estimate": {"value": 0.6033, "low": 0.2065, "high": 1.0},
                }
            ],
            "skipped": [],
            "receipt_id": None,
            "degraded": [],
        }

    @pytest.mark.parametrize(("outcome", "sign"), [("worked", 1), ("failed", -1)])
    async def test_where_people_see_a_memory_its_success_does_not_look_worse(
        self, api: httpx.AsyncClient, world: Harness, outcome: str, sign: int
    ) -> None:
        now = world.clock.now()
        for memory_id, tier in (("m-1", Tier.PATTERNS), ("m-2", Tier.MEMORY_BANK)):
            quality = Quality(importance=0.1, confidence=0.1)
            item = an_item(user_id="admin", memory_id=memory_id, tier=tier, quality=quality)
            await world.items.insert(replace(item, stored_at=now))

        async def seen() -> dict[str, float]:
            hits = (await api.post("/api/memory/search", json={"query": "memory"})).json()
            recent = (await api.get("/api/memory/search")).json()["memories"]
            patterns = (await api.get("/api/memory/patterns/performance")).json()["patterns"]
            bank = (await api.get("/api/memory/memory-bank")).json()["memories"]
            item = (await api.get("/api/memory/items/m-1")).json()["memory"]
            lists = {"hits": hits["results"], "recent": recent, "patterns": patterns}
            shown = {
                name: next(row["wilson_score"] for row in rows if row["memory_id"] == "m-1")
                for name, rows in lists.items()
                if any(row["memory_id"] == "m-1" for row in rows)
            }
            estimate = item["success_estimate"]["value"]
            return shown | {"bank": bank[0]["score"], "item": estimate}

        before = await seen()
        await api.post(OUTCOMES, json={"memory_ids": ["m-1", "m-2"], "outcome": outcome})
        became = await seen()
        assert {"recent", "item", "bank"} <= set(became)
        assert all((became[name] - before[name]) * sign > 0 for name in before), (before, became)

    @pytest.mark.parametrize("place", ["body", "Idempotency-Key", "X-Idempotency-Key"])
    async def test_a_retry_gets_the_first_result_even_days_later(
        self, api: httpx.AsyncClient, world: Harness, place: str
    ) -> None:
        await keep(world, "m-1", "m-2")
        body = {"memory_ids": ["m-1"], "outcome": "worked"}
        headers = {} if place == "body" else {place: "k-1"}
        if place == "body":
            body["idempotency_key"] = "k-1"
        first = await api.post(OUTCOMES, json=body, headers=headers)
        world.clock.advance(2 * 86_400)
        again = await api.post(OUTCOMES, json=body, headers=headers)
        assert first.json()["duplicate"] is False
        assert again.json() == {**first.json(), "duplicate": True}
        assert await uses(world, "m-1") == 1

    async def test_the_key_of_the_body_wins(self, api: httpx.AsyncClient, world: Harness) -> None:
        await keep(world, "m-1")
        body = {"memory_ids": ["m-1"], "outcome": "worked"}
        for key in ("a", "b"):
            sent = body | {"idempotency_key": key}
            assert (await api.post(OUTCOMES, json=sent, headers={"Idempotency-Key": "h"})).json()[
                "duplicate"
            ] is False
        assert await uses(world, "m-1") == 2

    @pytest.mark.parametrize(
        "other", [{"outcome": "failed"}, {"memory_ids": ["m-2"]}, {"memory_ids": ["m-1", "m-2"]}]
    )
    async def test_a_key_used_for_something_else_is_a_conflict(
        self, api: httpx.AsyncClient, world: Harness, other: dict[str, Any]
    ) -> None:
        await keep(world, "m-1", "m-2")
        body = {"memory_ids": ["m-1"], "outcome": "worked", "idempotency_key": "k-1"}
        await api.post(OUTCOMES, json=body)
        response = await api.post(OUTCOMES, json=body | other)
        assert (response.status_code, response.json()["code"]) == (409, "idempotency_conflict")
        assert [await uses(world, one) for one in ("m-1", "m-2")] == [1, 0]

    async def test_without_a_key_each_call_counts(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1")
        for _ in range(2):
            await api.post(OUTCOMES, json={"memory_ids": ["m-1"], "outcome": "failed"})
        assert await uses(world, "m-1") == 2

    async def test_a_failed_record_may_be_sent_again_with_its_key(self) -> None:
        class Down(Noted):
            async def record(self, scope: WriteScope, request: OutcomeRequest) -> OutcomeAnswer:
                if not self.asked:
                    self.asked.append(request)
                    raise StoreDown("MongoDB is away; try again.")
                return await super().record(scope, request)

        noted = Down()
        body = {"memory_ids": ["m-1"], "outcome": "worked", "idempotency_key": "k"}
        async with client_of(Harness.ready(outcomes=noted).services) as api:
            assert [(await api.post(OUTCOMES, json=body)).status_code for _ in "12"] == [503, 200]

    @pytest.mark.parametrize("outcome", ["Worked", "success", "", None, 1, True, ["worked"], {}])
    async def test_what_is_no_outcome_is_refused_by_name(
        self, api: httpx.AsyncClient, world: Harness, outcome: Any
    ) -> None:
        await keep(world, "m-1")
        response = await api.post(OUTCOMES, json={"memory_ids": ["m-1"], "outcome": outcome})
        assert response.status_code == 422
        assert "send one of worked, partial, unknown, failed" in response.json()["error"]
        assert await uses(world, "m-1") == 0

    @pytest.mark.parametrize(
        "body",
        [
            {"outcome": "worked"},
            {"memory_ids": ["m-1"]},
            {"outcome": "worked", "positions": [1]},
            {"outcome": "worked", "memory_ids": []},
            {"outcome": "worked", "memory_ids": "m-1"},
            {"outcome": "worked", "memory_ids": [1]},
            {"outcome": "worked", "memory_ids": ["a b"]},
            {"outcome": "worked", "memory_ids": ["דנה"]},
            {"outcome": "worked", "memory_ids": [f"m-{n}" for n in range(201)]},
            {"outcome": "worked", "memory_ids": ["m-1"], "receipt": "r-1"},
            {"outcome": "worked", "memory_ids": ["m-1"], "action": "rm -rf"},
            {"outcome": "worked", "memory_ids": ["m-1"], "signal": "explicit"},
            {"outcome": "worked", "memory_ids": ["m-1"], "signal": {"confidence": 1.1}},
            {"outcome": "worked", "memory_ids": ["m-1"], "signal": {"confidence": True}},
            {"outcome": "worked", "memory_ids": ["m-1"], "signal": {"source": ""}},
            {"outcome": "worked", "memory_ids": ["m-1"], "signal": {"by": "me"}},
            {"outcome": "worked", "memory_ids": ["m-1"], "idempotency_key": 7},
            {"outcome": "worked", "memory_ids": ["m-1"], "idempotency_key": "a b"},
            {"outcome": "worked", "receipt_id": ""},
            {"outcome": "worked", "receipt_id": 5},
            {"outcome": "worked", "receipt_id": "x" * 513},
            {"outcome": "worked", "receipt_id": "r-1", "positions": []},
            {"outcome": "worked", "receipt_id": "r-1", "positions": [0]},
            {"outcome": "worked", "receipt_id": "r-1", "positions": [-1]},
            {"outcome": "worked", "receipt_id": "r-1", "positions": [True]},
            {"outcome": "worked", "receipt_id": "r-1", "positions": ["1"]},
            {"outcome": "worked", "receipt_id": "r-1", "positions": [1.0]},
            {"outcome": "worked", "receipt_id": "r-1", "positions": 1},
            {"outcome": "worked", "receipt_id": "r-1", "positions": [2]},
            {"outcome": "worked", "receipt_id": "r-1", "positions": [1], "memory_ids": ["m-1"]},
        ],
    )
    async def test_a_bad_body_is_422_and_changes_nothing(
        self, api: httpx.AsyncClient, world: Harness, body: dict[str, Any]
    ) -> None:
        await keep(world, "m-1")
        await shown(world, "r-1", "m-1")
        response = await api.post(OUTCOMES, json=body)
        assert response.status_code == 422, response.text
        assert await uses(world, "m-1") == 0

    async def test_positions_and_all_of_a_receipt(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1", "m-2", "m-3")
        await shown(world, "r-1", "m-3", "m-1")
        body = {"receiptId": "r-1", "positions": [2], "outcome": "partial"}
        one = (await api.post(OUTCOMES, json=body)).json()
        every = (await api.post(OUTCOMES, json={"receipt_id": "r-1", "outcome": "worked"})).json()
        assert [row["memory_id"] for row in one["updated"]] == ["m-1"]
        assert {row["memory_id"] for row in every["updated"]} == {"m-1", "m-3"}
        assert one["receipt_id"] == every["receipt_id"] == "r-1"
        assert await uses(world, "m-2") == 0

    async def test_what_is_somebody_elses_is_404(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1", user="noa")
        await shown(world, "r-1", "m-1", user="noa")
        for target in ({"memory_ids": ["m-1"]}, {"receipt_id": "r-1"}):
            response = await api.post(OUTCOMES, json={"outcome": "failed", **target})
            assert (response.status_code, response.json()["success"]) == (404, False)
        assert await uses(world, "m-1", "noa") == 0

    async def test_books_are_skipped_with_the_reason(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "b-1", tier=Tier.BOOKS)
        body = (await api.post(OUTCOMES, json={"memory_ids": ["b-1"], "outcome": "worked"})).json()
        assert body["updated"] == []
        assert body["skipped"] == [{"memory_id": "b-1", "reason": "not_scored"}]


class TestRecorder:
    @pytest.mark.parametrize(
        ("principal", "scopes", "owner"),
        [
            ("dana", ["read", "write"], True),
            ("chat", ["read", "write"], False),
            ("chat", ["admin"], True),
        ],
    )
    async def test_only_the_user_and_admins_own_the_memories(
        self, principal: str, scopes: list[Scope], owner: bool
    ) -> None:
        noted = Noted()
        world = Harness.ready(settings_with(auth={"mode": "keys"}), outcomes=noted)
        keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
        secret, _ = await keys.create(principal, user_id="dana", scopes=scopes)
        headers = {"Authorization": f"Bearer {secret}"}
        async with client_of(world.services, headers) as api:
            await api.post(OUTCOMES, json={"memory_ids": ["m-1"], "outcome": "worked"})
            await api.post(RESPONSE, json={"key_takeaway": "tea"})
            await api.post(FEEDBACK, json={"messageId": "a", "score": 1})
            await api.post(SCORE, json={"scores": {"m-1": "worked"}})
        recorders = [one.recorder for one in noted.asked]
        assert recorders == [Recorder(principal=principal, owner=owner)] * 4

    async def test_the_keyless_caller_is_the_owner(self) -> None:
        noted = Noted()
        async with client_of(Harness.ready(outcomes=noted).services) as api:
            await api.post(OUTCOMES, json={"memory_ids": ["m-1"], "outcome": "worked"})
        assert noted.asked[0].recorder == Recorder(principal="local", owner=True)

    async def test_a_search_says_who_asked(self) -> None:
        class Seen:
            async def search(self, scope: ReadScope, query: SearchQuery) -> SearchAnswer:
                assert query.principal == "local"
                raise Conflict("seen")

        async with client_of(Harness.ready(search=Seen()).services) as api:
            assert (await api.post("/api/memory/search", json={"query": "x"})).status_code == 409


class TestRecordResponse:
    async def test_the_takeaway_is_kept_and_the_related_are_scored(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1", "m-2", "m-3")
        await shown(world, "r-1", "m-2", "m-3")
        body = {
            "key_takeaway": "דנה שותה תה",
            "outcome": "worked",
            "related": [2, "m-1"],
            "receipt_id": "r-1",
        }
        answer = (await api.post(RESPONSE, json=body)).json()
        assert (answer["scored"], answer["duplicate"], answer["receipt_id"]) == (2, False, "r-1")
        assert {row["memory_id"] for row in answer["updated"]} == {"m-1", "m-3"}
        kept = await world.items.get(ReadScope("admin"), answer["memory_id"])
        assert kept is not None
        assert (kept.text, kept.tier, kept.stats.score) == ("דנה שותה תה", Tier.WORKING, 0.7)

    async def test_nothing_to_score_scores_nothing(self, api: httpx.AsyncClient) -> None:
        answer = (await api.post(RESPONSE, json={"key_takeaway": "tea"})).json()
        assert (answer["scored"], answer["updated"], answer["receipt_id"]) == (0, [], None)
        assert "name a receipt_id" in answer["message"]

    async def test_an_answer_that_scored_nothing_says_why(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        async def said(takeaway: str, **fields: Any) -> str:
            body = {"key_takeaway": takeaway, "conversation_id": "conv-1", **fields}
            message: str = (await api.post(RESPONSE, json=body)).json()["message"]
            return message

        assert "no memories were shown" in await said("קפה")
        await keep(world, "m-1")
        await world.items.insert(an_item(user_id="admin", memory_id="m-2", tier=Tier.BOOKS))
        await shown(world, "r-1", "m-1")
        assert "names no memories" in await said("tea", related=[])
        await shown(world, "r-2", "m-1")
        body = {"receipt_id": "r-2", "outcome": "worked"}
        assert (await api.post(OUTCOMES, json=body)).json()["updated"]
        assert "has been scored already" in await said("דנה שותה תה")
        await shown(world, "r-3", "m-1")
        assert await said("milk") == "Takeaway kept, memories scored."
        assert "`skipped` says why" in await said("sugar", receipt_id="r-3", related=["m-2"])

    async def test_a_retry_stores_and_scores_once(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1")
        body = {"key_takeaway": "tea", "related": ["m-1"], "outcome": "worked"}
        headers = {"X-Idempotency-Key": "k-1"}
        first = (await api.post(RESPONSE, json=body, headers=headers)).json()
        again = (await api.post(RESPONSE, json=body, headers=headers)).json()
        assert again == {**first, "duplicate": True}
        assert await uses(world, "m-1") == 1

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"key_takeaway": ""},
            {"key_takeaway": " \n"},
            {"key_takeaway": "x" * 1_001},
            {"key_takeaway": 5},
            {"key_takeaway": "a\u0000b"},
            {"key_takeaway": "tea", "outcome": "great"},
            {"key_takeaway": "tea", "related": "m-1"},
            {"key_takeaway": "tea", "related": [True]},
            {"key_takeaway": "tea", "related": [0]},
            {"key_takeaway": "tea", "related": [1.5]},
            {"key_takeaway": "tea", "related": [1]},
            {"key_takeaway": "tea", "related": ["a b"]},
            {"key_takeaway": "tea", "related": [["m-1"]]},
            {"key_takeaway": "tea", "unknown_field": 1},
        ],
    )
    async def test_a_bad_body_is_422_and_stores_nothing(
        self, api: httpx.AsyncClient, world: Harness, body: dict[str, Any]
    ) -> None:
        response = await api.post(RESPONSE, json=body)
        assert response.status_code == 422, response.text
        counts = await world.items.tier_counts(ReadScope("admin"))
        assert sum(count.active for count in counts) == 0

    async def test_a_foreign_memory_is_404(self, api: httpx.AsyncClient, world: Harness) -> None:
        await keep(world, "m-1", user="noa")
        response = await api.post(RESPONSE, json={"key_takeaway": "tea", "related": ["m-1"]})
        assert response.status_code == 404


class TestFeedback:
    @pytest.mark.parametrize(("score", "expected"), [(1, 0.7), (0, 0.55), (-1, 0.2)])
    async def test_a_thumb_scores_each_citation_once(
        self, api: httpx.AsyncClient, world: Harness, score: int, expected: float
    ) -> None:
        await keep(world, "m-1")
        body = {"messageId": "a-1", "conversationId": "c", "score": score, "citations": ["m-1"]}
        first = (await api.post(FEEDBACK, json=body)).json()
        again = (await api.post(FEEDBACK, json=body)).json()
        assert (first["success"], first["score"], first["citationsScored"]) == (True, score, 1)
        assert first["message"]
        assert (first["duplicate"], again["duplicate"]) == (False, True)
        item = await world.items.get(ReadScope("admin"), "m-1")
        assert item is not None
        assert (item.stats.uses, item.stats.score) == (1, pytest.approx(expected))

    async def test_the_other_spelling_and_fields_of_the_client_are_accepted(
        self, api: httpx.AsyncClient
    ) -> None:
        response = await api.post(FEEDBACK, json={"message_id": "a-1", "score": 0, "comment": "x"})
        assert (response.status_code, response.json()["citationsScored"]) == (200, 0)
        assert "no answer with this messageId was found" in response.json()["message"]

    async def test_a_foreign_citation_is_left_alone(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1", user="noa")
        body = {"messageId": "a-1", "score": 1, "citations": ["m-1"]}
        answer = (await api.post(FEEDBACK, json=body)).json()
        assert (answer["citationsScored"], answer["skipped"][0]["memory_id"]) == (0, "m-1")
        assert "`skipped` says why" in answer["message"]
        assert await uses(world, "m-1", "noa") == 0

    @pytest.mark.parametrize(
        "body",
        [
            {"score": 1},
            {"messageId": "a-1"},
            {"messageId": "", "score": 1},
            {"messageId": 5, "score": 1},
            {"messageId": "a-1", "score": 2},
            {"messageId": "a-1", "score": True},
            {"messageId": "a-1", "score": 1.0},
            {"messageId": "a-1", "score": "1"},
            {"messageId": "a-1", "score": None},
            {"messageId": "a-1", "message_id": "a-2", "score": 1},
            {"messageId": "a-1", "score": 1, "citations": "m-1"},
            {"messageId": "a-1", "score": 1, "citations": [7]},
            {"messageId": "a-1", "score": 1, "citations": [f"m-{n}" for n in range(201)]},
        ],
    )
    async def test_a_bad_body_is_422(self, api: httpx.AsyncClient, body: dict[str, Any]) -> None:
        assert (await api.post(FEEDBACK, json=body)).status_code == 422


class TestScore:
    async def test_each_memory_gets_its_own_outcome(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1", "m-2", "m-3")
        await shown(world, "r-1", "m-1", "m-2")
        scores = {"1": "worked", "2": "failed", "m-3": "partial"}
        answer = (await api.post(SCORE, json={"receipt_id": "r-1", "scores": scores})).json()
        found = {row["memory_id"]: row["score"] for row in answer["updated"]}
        assert found == {
            "m-1": pytest.approx(0.7),
            "m-2": pytest.approx(0.2),
            "m-3": pytest.approx(0.55),
        }
        assert (answer["receipt_id"], answer["duplicate"]) == ("r-1", False)

    async def test_one_conversation_is_one_receipt(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1", "m-2", "m-3")
        await shown(world, "r-old", "m-3", "m-3")
        await shown(world, "r-new", "m-1", "m-2")
        scores = {"1": "worked", "2": "failed"}
        body = {"conversation_id": "conv-1", "scores": scores}
        answer = (await api.post(SCORE, json=body)).json()
        assert {row["memory_id"] for row in answer["updated"]} == {"m-1", "m-2"}
        assert answer["receipt_id"] == "r-new"

    async def test_digits_are_an_id_without_a_receipt(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "7")
        answer = (await api.post(SCORE, json={"scores": {"7": "worked"}})).json()
        assert [row["memory_id"] for row in answer["updated"]] == ["7"]

    async def test_a_retry_counts_once_even_days_later(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1", "m-2")
        body = {"scores": {"m-1": "worked", "m-2": "failed"}, "idempotency_key": "k-1"}
        first = (await api.post(SCORE, json=body)).json()
        world.clock.advance(2 * 86_400)
        again = (await api.post(SCORE, json=body)).json()
        assert again == {**first, "duplicate": True}
        assert [await uses(world, one) for one in ("m-1", "m-2")] == [1, 1]

    async def test_each_outcome_has_its_own_key(self) -> None:
        noted = Noted()
        scores = {"1": "failed", "3": "worked", "m-9": "worked"}
        body = {"receipt_id": "r-1", "scores": scores, "idempotency_key": "k"}
        async with client_of(Harness.ready(outcomes=noted).services) as api:
            # The id is looked up before the first record, so it must exist for more than one.
            assert (await api.post(SCORE, json=body)).status_code == 404
            assert noted.asked == []
            scores.pop("m-9")
            body["idempotency_key"] = "k2"
            await api.post(SCORE, json=body)
        assert [(one.positions, one.idempotency_key) for one in noted.asked] == [
            ((3,), "score worked positions k2"),
            ((1,), "score failed positions k2"),
        ]

    async def test_what_is_refused_is_refused_as_a_whole(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1", "m-2")
        await keep(world, "m-3", user="noa")
        await shown(world, "r-1", "m-1", "m-2")
        foreign = {"scores": {"m-1": "worked", "m-3": "failed"}}
        beyond = {"receipt_id": "r-1", "scores": {"1": "worked", "3": "failed"}}
        assert (await api.post(SCORE, json=foreign)).status_code == 404
        assert (await api.post(SCORE, json=beyond)).status_code == 422
        assert [await uses(world, one) for one in ("m-1", "m-2")] == [0, 0]

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"scores": {}},
            {"scores": []},
            {"scores": {"m-1": "good"}},
            {"scores": {"m-1": True}},
            {"scores": {"m-1": None}},
            {"scores": {"a b": "worked"}},
            {"scores": {"": "worked"}},
            {"scores": {"תה": "worked"}},
            {"scores": {f"m-{n}": "worked" for n in range(201)}},
            {"scores": {"m-1": "worked"}, "outcome": "worked"},
            {"receipt_id": "r-1", "scores": {"0": "worked"}},
            {"receipt_id": "r-1", "scores": {"01": "worked"}},
            {"receipt_id": "r-1", "scores": {"9" * 100: "worked"}},
        ],
    )
    async def test_a_bad_body_is_422(self, api: httpx.AsyncClient, body: dict[str, Any]) -> None:
        assert (await api.post(SCORE, json=body)).status_code == 422
