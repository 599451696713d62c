"""Whom a memory is about, from the store to the prompt, over HTTP, in both languages."""

from typing import Any

import httpx
import pytest

from rayapp.assistant.context.rules.prompt_block import TITLES

STORE, PREFETCH, SEARCH = "/api/memory/store", "/api/memory/prefetch", "/api/memory/search"
ITEM = "/api/memory/items/"
COLD = "/api/memory/context/cold-start"
# What is said, the question that it answers, and how a line says whom it is about.
SAID = [
    ("Allergic to nuts", "who is allergic to nuts?", "about mother"),
    ("אלרגית לאגוזים", "מי אלרגית לאגוזים?", "על mother"),
]
in_both = pytest.mark.parametrize(("text", "query", "about"), SAID)


async def store(api: httpx.AsyncClient, text: str, **fields: Any) -> dict[str, Any]:
    bank = {"tier": "memory_bank", "tags": ["identity"], "importance": 0.8, "confidence": 0.8}
    answer = await api.post(STORE, json={"text": text, **bank, **fields})
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def block(api: httpx.AsyncClient, query: str) -> dict[str, Any]:
    answer = await api.post(PREFETCH, json={"query": query, "includeContext": True})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def line_of(text: str, memory_id: str) -> str:
    return next(line for line in text.splitlines() if f":{memory_id}]" in line)


@in_both
async def test_a_fact_about_another_never_stands_under_the_users_identity(
    api: httpx.AsyncClient, text: str, query: str, about: str
) -> None:
    await store(api, text, memory_id="m-1", subject_id="mother")
    found = await block(api, query)
    told = found["memoryContextInjection"]
    assert TITLES["identity"] not in told
    assert f"({about}, " in line_of(told, "m-1")
    items = found["memoryMeta"]["known_context"]["known_context_items"]
    assert [(one["memory_id"], one["subject_id"]) for one in items] == [("m-1", "mother")]
    meta = found["memoryMeta"]
    assert {one["subject_id"] for one in (*meta["citations"], *meta["uncited"])} == {"mother"}


@in_both
async def test_what_is_pinned_about_another_stands_and_says_of_whom(
    api: httpx.AsyncClient, text: str, query: str, about: str
) -> None:
    await store(api, text, memory_id="m-1", subject_id="mother", always_inject=True)
    told = (await block(api, "tea?"))["memoryContextInjection"]
    assert TITLES["identity"] not in told
    assert TITLES["always"] in told
    assert f"({about}, " in line_of(told, "m-1")
    cold = (await api.post(COLD, json={})).json()
    assert f"({about}) {text}" in cold["text"]
    assert [one["subject_id"] for one in cold["memories"]] == ["mother"]


@in_both
async def test_the_same_words_about_two_people_are_two_hits(
    api: httpx.AsyncClient, text: str, query: str, about: str
) -> None:
    await store(api, text, memory_id="hers", subject_id="mother")
    assert (await store(api, text, memory_id="mine"))["duplicate"] is False
    answer = (await api.post(SEARCH, json={"query": query})).json()
    found = {hit["memory_id"]: hit["subject_id"] for hit in answer["results"]}
    assert found == {"hers": "mother", "mine": "admin"}
    told = (await block(api, query))["memoryContextInjection"]
    assert about not in line_of(told, "mine")
    assert f"({about}, " in line_of(told, "hers")


@in_both
async def test_whom_it_is_about_is_set_and_cleared_by_an_edit(
    api: httpx.AsyncClient, text: str, query: str, about: str
) -> None:
    await store(api, text, memory_id="m-1")
    edited = await api.patch(f"{ITEM}m-1", json={"subject_id": "mother"})
    assert edited.json()["memory"]["subject_id"] == "mother"
    assert TITLES["identity"] not in (await block(api, query))["memoryContextInjection"]
    # The user's own words are no repetition of it any more.
    assert (await store(api, text, memory_id="mine"))["duplicate"] is False
    clash = await api.patch(f"{ITEM}m-1", json={"subject_id": ""})
    assert (clash.status_code, clash.json()["details"]["memory_id"]) == (409, "mine")
    await api.delete(f"{ITEM}mine")
    cleared = await api.patch(f"{ITEM}m-1", json={"subject_id": ""})
    assert cleared.json()["memory"]["subject_id"] == "admin"
    assert TITLES["identity"] in (await block(api, query))["memoryContextInjection"]
    assert (await store(api, text))["memory_id"] == "m-1"


@in_both
async def test_what_is_said_of_one_never_replaces_what_is_said_of_another(
    api: httpx.AsyncClient, text: str, query: str, about: str
) -> None:
    await store(api, text, memory_id="hers", subject_id="mother")
    body = {"text": f"{text} 2", "supersedes": "hers"}
    refused = await api.post(STORE, json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_supersedes")
    kept = await api.post(STORE, json={**body, "subject_id": "mother"})
    assert kept.status_code == 201


async def test_the_bank_says_and_changes_whom_a_fact_is_about(api: httpx.AsyncClient) -> None:
    bank = "/api/memory/memory-bank"
    kept = (await api.post(bank, json={"text": "Tea at four", "subject_id": "mother"})).json()
    listed = (await api.get(bank)).json()["memories"]
    assert [one["subject_id"] for one in listed] == ["mother"]
    await api.put(f"{bank}/{kept['memory_id']}", json={"subject_id": ""})
    item = (await api.get(f"{ITEM}{kept['memory_id']}")).json()
    assert item["memory"]["subject_id"] == "admin"
