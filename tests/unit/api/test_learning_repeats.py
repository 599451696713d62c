"""Learning over HTTP: one key, one thumb or one memory twice, and what a refusal says."""

from typing import Any

import httpx
import pytest

from rayapp.memory.scope import ReadScope
from tests.support.harness import Harness
from tests.unit.api.test_learning import FEEDBACK, OUTCOMES, RESPONSE, SCORE, keep, shown, uses


class TestKeys:
    @pytest.mark.parametrize(
        "other",
        [
            {"positions": [2]},
            {"positions": None},
            {"conversation_id": "conv-2"},
            {"action": "get_context"},
            {"signal": {"source": "explicit", "confidence": 0.9}},
        ],
    )
    async def test_one_key_with_another_body_is_409(
        self, api: httpx.AsyncClient, world: Harness, other: dict[str, Any]
    ) -> None:
        await keep(world, "m-1", "m-2")
        await shown(world, "r-1", "m-1", "m-2")
        body = {"receipt_id": "r-1", "positions": [1], "outcome": "worked", "idempotency_key": "k"}
        assert (await api.post(OUTCOMES, json=body)).status_code == 200
        response = await api.post(OUTCOMES, json=body | other)
        assert (response.status_code, response.json()["code"]) == (409, "idempotency_conflict")
        assert (await api.post(OUTCOMES, json=body)).json()["duplicate"] is True
        assert [await uses(world, one) for one in ("m-1", "m-2")] == [1, 0]

    async def test_a_retry_of_a_response_is_the_first_result_after_a_delete(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        body = {"key_takeaway": "תה ירוק", "idempotency_key": "k"}
        first = (await api.post(RESPONSE, json=body)).json()
        await api.delete(f"/api/memory/items/{first['memory_id']}")
        assert (await api.post(RESPONSE, json=body)).json() == {**first, "duplicate": True}
        assert await world.items.get(ReadScope("admin"), first["memory_id"]) is None


class TestThumbs:
    async def test_a_second_call_scores_the_citations_that_are_new(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1", "m-2")
        body = {"messageId": "a", "score": 1}
        scored = []
        for citations in (["m-1"], ["m-1", "m-2"], ["m-2", "m-1"]):
            answer = (await api.post(FEEDBACK, json=body | {"citations": citations})).json()
            scored.append((answer["citationsScored"], answer["duplicate"]))
        assert scored == [(1, False), (1, False), (0, True)]
        assert [await uses(world, one) for one in ("m-1", "m-2")] == [1, 1]

    async def test_one_message_id_in_two_conversations_is_two_answers(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1")
        body = {"messageId": "1", "score": 1, "citations": ["m-1"]}
        for conversation in ("conv-1", "conv-2"):
            sent = body | {"conversationId": conversation}
            answer = (await api.post(FEEDBACK, json=sent)).json()
            assert (answer["citationsScored"], answer["duplicate"]) == (1, False)
        assert await uses(world, "m-1") == 2

    async def test_up_down_up_ends_up(self, api: httpx.AsyncClient, world: Harness) -> None:
        await keep(world, "m-1")
        for score in (1, -1, 1):
            body = {"messageId": "תשובה 1", "score": score, "citations": ["m-1"]}
            assert (await api.post(FEEDBACK, json=body)).json()["citationsScored"] == 1
            world.clock.advance(1)
        item = await world.items.get(ReadScope("admin"), "m-1")
        assert item is not None
        assert (item.stats.worked_count, item.stats.failed_count) == (1, 0)
        assert item.stats.last_outcome == "worked"


class TestScoreTwice:
    @pytest.mark.parametrize("where", [{"receipt_id": "r-1"}, {"conversation_id": "conv-1"}])
    async def test_two_outcomes_of_one_memory_are_refused_by_name(
        self, api: httpx.AsyncClient, world: Harness, where: dict[str, str]
    ) -> None:
        await keep(world, "m-1", "m-2")
        await shown(world, "r-1", "m-1", "m-2")
        body = {**where, "scores": {"2": "worked", "m-2": "failed", "1": "worked"}}
        response = await api.post(SCORE, json=body)
        assert response.status_code == 422
        said = "m-2 is worked by position 2 and failed by its id; send one outcome for it."
        assert said in response.json()["error"]
        assert [await uses(world, one) for one in ("m-1", "m-2")] == [0, 0]

    async def test_the_same_outcome_twice_counts_once_even_days_later(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1", "m-2")
        await shown(world, "r-1", "m-1", "m-2")
        scores = {"2": "worked", "m-2": "worked", "m-1": "failed"}
        body = {"conversation_id": "conv-1", "scores": scores, "idempotency_key": "k"}
        first = (await api.post(SCORE, json=body)).json()
        assert [row["memory_id"] for row in first["updated"]] == ["m-2", "m-1"]
        world.clock.advance(2 * 86_400)
        await shown(world, "r-2", "m-2", "m-1")
        again = await api.post(SCORE, json=body)
        assert again.json() == {**first, "duplicate": True}
        assert [await uses(world, one) for one in ("m-1", "m-2")] == [1, 1]

    async def test_a_key_with_other_scores_is_409_even_days_later(
        self, api: httpx.AsyncClient, world: Harness
    ) -> None:
        await keep(world, "m-1", "m-2")
        body: dict[str, Any] = {"scores": {"m-1": "worked"}, "idempotency_key": "k"}
        await api.post(SCORE, json=body)
        world.clock.advance(2 * 86_400)
        body["scores"] = {"m-1": "worked", "m-2": "failed"}
        assert (await api.post(SCORE, json=body)).status_code == 409
        assert [await uses(world, one) for one in ("m-1", "m-2")] == [1, 0]


class TestSentences:
    @pytest.mark.parametrize(
        ("path", "body", "said"),
        [
            (
                OUTCOMES,
                {"outcome": "worked", "receipt_id": "r", "positions": [0]},
                "positions.0: Input should be greater than or equal to 1.",
            ),
            (
                "/api/memory/prefetch",
                {"query": "x", "recentMessages": "x"},
                "recent_messages: must be a list.",
            ),
            (
                "/api/hooks/exchange",
                {"conversationId": "c", "messageId": "m", "messages": []},
                "messages: must hold at least one item.",
            ),
            (
                "/api/hooks/exchange",
                {
                    "conversationId": "c",
                    "messageId": "m",
                    "messages": [{"role": "alien", "content": "x"}],
                },
                "messages.0.role: must be one of user, assistant, system, tool, function, "
                "developer.",
            ),
            (
                OUTCOMES,
                {"outcome": "worked", "receipt_id": "r", "positions": []},
                "positions: must hold at least one item.",
            ),
            (
                RESPONSE,
                {"key_takeaway": "t", "related": ["a b"]},
                "related.0: must be a position (a whole number from 1 to 10000) or a memory id.",
            ),
            (
                RESPONSE,
                {"key_takeaway": "t", "related": ["m-1", 0]},
                "related.1: must be a position (a whole number from 1 to 10000) or a memory id.",
            ),
        ],
    )
    async def test_one_bad_element_is_one_sentence(
        self, api: httpx.AsyncClient, path: str, body: dict[str, Any], said: str
    ) -> None:
        response = await api.post(path, json=body)
        assert response.status_code == 422
        assert response.json()["error"] == said
