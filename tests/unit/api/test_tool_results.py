"""Tool results over HTTP."""

from typing import Any

import httpx
import pytest

from rayapp.memory.scope import ReadScope
from tests.support.harness import Harness
from tests.unit.api.serving import json_bytes

ROUTE = "/api/memory/tool-results"
TEXT = "The light rail between Haifa and Nazareth is being built. הרכבת הקלה נבנית בשלבים. " * 3


def body(**fields: Any) -> dict[str, Any]:
    return {"tool_name": "tavily_search", "output": TEXT, "conversation_id": "c-1", **fields}


async def test_one_result_is_stored(api: httpx.AsyncClient, world: Harness) -> None:
    response = await api.post(ROUTE, json=body(query="רכבת", output=TEXT + " dana@example.com"))
    assert response.status_code == 200, response.text
    answer = response.json()
    (row,) = answer["results"]
    assert (answer["stored"], answer["duplicates"], answer["skipped"]) == (1, 0, 0)
    assert (row["status"], row["indexed"], row["redacted"]) == ("stored", False, {"email": 1})
    assert answer["memory_id"] == row["memory_id"]
    stored = await world.services.memories.get(ReadScope("admin"), row["memory_id"])
    assert "dana@" not in stored.text
    assert "conversation:c-1" in stored.tags


async def test_several_results_have_one_row_each(api: httpx.AsyncClient) -> None:
    rows = [body(), body(), body(output="short"), body(output={"rows": [TEXT]})]
    answer = (await api.post(ROUTE, json={"results": rows})).json()
    assert [row["status"] for row in answer["results"]] == [
        "stored",
        "duplicate",
        "skipped",
        "stored",
    ]
    assert answer["results"][2]["reason"] == "too_short"
    assert answer["results"][2]["memory_id"] is None
    assert answer["duplicate"] is False


async def test_the_names_of_other_programs_are_accepted(api: httpx.AsyncClient) -> None:
    sent = {
        "toolName": "tavily_search",
        "content": [{"type": "text", "text": TEXT}],
        "prompt": "rail",
        "conversationId": "c-1",
        "toolCallId": "run-1",
        "linked_doc": "doc-1",
        "isError": False,
    }
    answer = (await api.post(ROUTE, json=sent)).json()
    assert answer["results"][0]["status"] == "stored", answer


async def test_control_characters_of_a_tool_are_cleaned_not_refused(api: httpx.AsyncClient) -> None:
    response = await api.post(ROUTE, json=body(output="\x1b[31m\x00" + TEXT))
    assert response.json()["results"][0]["status"] == "stored"
    escaped = ('{"tool_name": "t", "output": "\\ud800' + TEXT + '"}').encode()
    response = await json_bytes(api, "POST", ROUTE, escaped)
    assert response.json()["results"][0]["status"] in {"stored", "duplicate"}, response.text


@pytest.mark.parametrize(
    ("sent", "status", "field"),
    [
        ({}, 422, "body"),
        ({"results": []}, 422, "results"),
        ({"results": [], **body()}, 422, "results"),
        ({"results": [body()], "query": "x"}, 422, "body"),
        ({"results": "x"}, 422, "results"),
        ({"results": [1]}, 422, "results.0"),
        ({"results": [body(), body(output=None)]}, 422, "results.1.output"),
        ({"results": [body(), {"output": TEXT}]}, 422, "results.1.tool_name"),
        ({"results": [body()] * 21}, 413, "results"),
        (body(output=None), 422, "output"),
        ({"tool_name": "t"}, 422, "output"),
        ({"output": TEXT}, 422, "tool_name"),
        (body(tool_name=""), 422, "tool_name"),
        (body(tool_name="a\nb"), 422, "tool_name"),
        (body(tool_name="x" * 101), 422, "tool_name"),
        (body(conversation_id="c" * 129), 422, "conversation_id"),
        (body(query="\x00"), 422, "query"),
        (body(query="x" * 4_001), 413, "query"),
        (body(output="x" * 100_001), 413, "output"),
        (body(language="fr"), 422, "language"),
        (body(surprise=1), 422, "surprise"),
        (body(text="another"), 422, "text"),
        (body(entities=[""]), 422, "entities.0"),
        (body(is_error="yes"), 422, "is_error"),
        (body(created_at=5), 422, "created_at"),
    ],
)
async def test_bad_input_names_its_field(
    api: httpx.AsyncClient, sent: Any, status: int, field: str
) -> None:
    response = await api.post(ROUTE, json=sent)
    answer = response.json()
    assert (response.status_code, answer["details"]["field"]) == (status, field), answer
    assert answer["success"] is False


async def test_a_retry_with_the_same_key_is_answered_as_before(
    api: httpx.AsyncClient, world: Harness
) -> None:
    first = await api.post(ROUTE, json=body(idempotency_key="k-1"))
    again = await api.post(ROUTE, json=body(idempotency_key="k-1"))
    assert first.json()["results"][0]["status"] == "stored"
    assert again.json() == first.json() | {"duplicate": True}
    other = await api.post(ROUTE, json=body(idempotency_key="k-1", query="x"))
    assert other.status_code == 409


async def test_a_repetition_is_marked(api: httpx.AsyncClient) -> None:
    for expected in (False, True):
        answer = (await api.post(ROUTE, json=body())).json()
        assert answer["duplicate"] is expected


async def test_an_output_nested_as_deeply_as_json_may_be_is_no_defect(
    api: httpx.AsyncClient,
) -> None:
    deep = "[" * 1_000 + "]" * 1_000
    sent = f'{{"tool_name": "t", "output": {deep}, "text": {deep}}}'.encode()
    response = await json_bytes(api, "POST", ROUTE, sent)
    assert response.status_code in {200, 400, 422}, response.text
