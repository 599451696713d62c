"""Names and words are found however they are spelt: composed or not, with marks that show nothing,
with one character for a letter and its point."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.harness import Harness
from tests.unit.api.serving import client_of
from tests.unit.api.test_conversations import said

M = "/api/memory"
# Two ways to write the same, both ways round.
SAME = {
    "accent": ("Caf\u00e9", "Cafe\u0301"),
    "bidi": ("\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05dc\u200f\u05d5\u05dd"),
    "around": ("\u05e9\u05dc\u05d5\u05dd", "\u202b\u05e9\u05dc\u05d5\u05dd\u202c"),
    "presented": ("\u05e9\u05dc\u05d5\u05dd", "\ufb2a\u05dc\u05d5\u05dd"),
    "points": ("\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd"),
    "ligature": ("find", "\ufb01nd"),
    "soft hyphen": ("garden", "gar\u00adden"),
}
PAIRS = [
    pytest.param(*(pair if first else pair[::-1]), id=f"{name}-{first}")
    for name, pair in SAME.items()
    for first in (True, False)
]


def shown(text: str) -> str:
    """The first spelling of a pair."""
    return next(pair[0] for pair in SAME.values() if text in pair)


async def listed(api: httpx.AsyncClient, **query: str) -> list[str]:
    found = await api.get(f"{M}/items", params=query)
    assert found.is_success, found.text
    return [one["memory_id"] for one in found.json()["items"]]


async def store(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await api.post(f"{M}/store", json={"text": "It rains in Haifa", **fields})
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(("kept", "asked"), PAIRS)
async def test_a_name_is_found_in_each_of_its_spellings(
    api: httpx.AsyncClient, world: Harness, kept: str, asked: str
) -> None:
    await store(api, memory_id="m", tags=[kept, "x"], entities=[kept], subject_id=kept)
    await store(api, memory_id="other", text="It is dry in Eilat", tags=["x"])
    names = ("tags", "tags_all", "entities", "subject_ids")
    for name in names:
        assert await listed(api, **{name: asked}) == ["m"], name
    await world.container.indexing.run_once()
    for name in names:
        body = {"query": "Where does it rain?", "filters": {name: [asked]}}
        found = (await api.post(f"{M}/search", json=body)).json()["results"]
        assert [hit["memory_id"] for hit in found] == ["m"], name


@pytest.mark.parametrize(("kept", "asked"), PAIRS)
async def test_a_list_by_words_reads_them_as_a_search_does(
    api: httpx.AsyncClient, kept: str, asked: str
) -> None:
    await store(api, memory_id="m", text=f"The note says {kept} to all")
    assert await listed(api, query=asked) == ["m"]
    recent = (await api.get(f"{M}/search", params={"query": asked})).json()["memories"]
    assert [one["memory_id"] for one in recent] == ["m"]
    said = (await api.get(f"{M}/items/m")).json()["memory"]["text"]
    assert said == f"The note says {kept} to all"


@pytest.mark.parametrize(("kept", "asked"), PAIRS)
async def test_a_fact_of_the_bank_has_one_tag(
    api: httpx.AsyncClient, kept: str, asked: str
) -> None:
    """Also after an edit, and both spellings are one."""
    fact = {"text": "The door code is in the drawer", "tags": [kept, asked], "importance": 0.9}
    stored = await api.post(f"{M}/memory-bank", json=fact)
    memory_id = stored.json()["memory_id"]
    found = (await api.get(f"{M}/memory-bank", params={"tag": asked})).json()["memories"]
    assert [one["tags"] for one in found] == [[shown(kept)]]
    await api.patch(f"{M}/items/{memory_id}", json={"tags": [asked, "door"]})
    found = (await api.get(f"{M}/memory-bank", params={"tag": kept})).json()["memories"]
    assert [one["memory_id"] for one in found] == [memory_id]


@pytest.mark.parametrize(("kept", "asked"), PAIRS)
async def test_a_conversation_is_found_by_its_words(
    api: httpx.AsyncClient, kept: str, asked: str
) -> None:
    answer = "It is well, and there is nothing else to say about it today."
    await said(api, "c", "m-1", question=f"How is {kept}?", answer=answer)
    found = (await api.get(f"{M}/conversations", params={"query": asked})).json()
    assert [one["conversation_id"] for one in found["conversations"]] == ["c"]


@pytest.mark.parametrize(("kept", "asked"), PAIRS)
async def test_a_concept_of_a_graph_is_found_by_its_name(
    api: httpx.AsyncClient, world: Harness, kept: str, asked: str
) -> None:
    fact = {"text": "It opens at nine", "tags": [kept], "importance": 0.9}
    stored = await api.post(f"{M}/memory-bank", json={**fact, "confidence": 0.9})
    assert stored.is_success, stored.text
    while await world.container.indexing.run_once() or await world.container.outbox.run_once():
        pass
    found = await api.get(f"{M}/kg/concept/{quote(asked)}/definition")
    assert found.is_success, found.text


@pytest.mark.parametrize(("kept", "asked"), PAIRS)
async def test_a_part_of_a_user_is_erased_in_each_spelling(
    api: httpx.AsyncClient, kept: str, asked: str
) -> None:
    await store(api, memory_id="m", subject_id=kept)
    path = f"{M}/user/part"
    found = await api.delete(path, params={"part": "subject", "id": asked, "confirm": "DELETE"})
    assert found.is_success, found.text
    assert await listed(api) == []
    certificate = found.json()["certificate"]
    # Its tombstone is left until the index has let go of it.
    assert certificate["left"]["memory_items"] == 1


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
async def test_a_title_is_one_documents(pair: tuple[str, str]) -> None:
    world = Harness.ready()
    async with client_of(world.services) as api:
        for number, title in enumerate(pair):
            file = {"file": (f"{number}.txt", f"Text number {number}".encode())}
            answer = await api.post(f"{M}/books", files=file, data={"title": title})
            pointed = "\u05b8" in "".join(pair)  # what a person sees is kept as it is
            assert answer.status_code == (409 if number and not pointed else 200), answer.text
