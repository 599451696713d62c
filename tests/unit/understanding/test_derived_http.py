"""Episodes, thoughts, the review and hints over HTTP, as the worker derives them."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rayapp.portability import erasure
from rayapp.understanding.statements.registries import KEPT_S
from tests.support.harness import Harness
from tests.unit.api.serving import client_of
from tests.unit.understanding.conftest import on

RAW, ITEM, USER = "/api/memory/raw-data", "/api/memory/items", "/api/memory/user"
EPISODES, THOUGHTS = "/api/memory/episodes", "/api/memory/thoughts"
REVIEW, SUMMARY = "/api/review", "/api/memory/summary"
DAY_S = 86_400.0
ANXIOUS = (
    "I felt anxious about the exam at school.",
    "I was so anxious about the exam again.",
    "I am anxious about the exam tomorrow.",
)
FELL = "אתמול הבת שלי נועה נפלה מהאופניים בפארק ושברה את היד. נבהלתי מאוד, ואז נסענו לבית החולים."


class Derived:
    """A service of which nothing is replaced, and its worker."""

    def __init__(self) -> None:
        self.harness = Harness.ready(on())

    async def work(self) -> None:
        self.harness.clock.advance(self.harness.settings.understanding.settle_s)
        while await self.harness.container.understanding.run_once():
            pass

    async def anxious(self, api: httpx.AsyncClient, **fields: Any) -> list[str]:
        """A text a day, for three days; their memories."""
        found = []
        for text in ANXIOUS:
            answer = await api.post(RAW, json={"text": text, "session_id": "c-1", **fields})
            found.append(answer.json()["memory_id"])
            await self.work()
            self.harness.clock.advance(DAY_S)
        return found


@pytest.fixture
def world() -> Derived:
    return Derived()


@pytest.fixture
async def api(world: Derived) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(world.harness.services, {"X-User-Id": "dana"}) as client:
        yield client


async def read(api: httpx.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    answer = await api.get(path, params=query)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_thought_waits_is_accepted_and_hinted_at(
    world: Derived, api: httpx.AsyncClient
) -> None:
    memories = await world.anxious(api)
    waits = await read(api, REVIEW)
    assert waits["waiting"] == {"thought": 1, "episode": 0, "merge": 0, "ontology": 0}
    (item,) = waits["items"]
    assert (item["state"], item["support"], item["source_ids"]) == ("pending", 3, memories)
    asked = {"query": "How do I get through the exam?"}
    before = (await api.post(SUMMARY, json=asked)).json()
    assert (before["emotional_patterns"], before["waiting"]) == ([], 1)
    path = f"{REVIEW}/thought/{item['id']}"
    accepted = await api.post(path, json={"decision": "accept"})
    assert accepted.json()["item"]["state"] == "accepted"
    after = (await api.post(SUMMARY, json=asked)).json()
    assert [one["name"] for one in after["emotional_patterns"]] == ["anxiety"]
    short = await read(api, SUMMARY, query=asked["query"], detail="names", recap=True)
    assert short["memory_hints"]["emotionalPatterns"] == ["anxiety"]
    assert short["recap"] == "[Pattern: anxiety]"
    detail = await read(api, f"{THOUGHTS}/{item['id']}")
    assert [one["memory_id"] for one in detail["sources"]] == memories
    assert [one["by"] for one in detail["versions"]] == ["local"]
    assert detail["thought"]["memory_ids"] == memories
    undone = await api.post(path, json={"decision": "undo"})
    assert undone.json()["item"]["state"] == "pending"
    again = await api.post(path, json={"decision": "undo"})
    assert (again.status_code, again.json()["code"]) == (409, "nothing_to_undo")


async def test_a_merge_waits_is_declined_and_taken_back(
    world: Derived, api: httpx.AsyncClient
) -> None:
    for text in ("Sarah Cohen works at Intel.", "Sarah lives in Haifa."):
        bank = {"tier": "memory_bank", "tags": ["context"], "importance": 0.8, "confidence": 0.9}
        stored = await api.post("/api/memory/store", json={"text": text, **bank})
        assert stored.is_success, stored.text
        await world.work()
    waits = await read(api, REVIEW, kind="merge")
    assert waits["waiting"]["merge"] == 1
    (item,) = waits["items"]
    assert set(item["title"].split(" = ")) == {"Sarah Cohen", "Sarah"}
    path = f"{REVIEW}/merge/{item['id']}"
    edited = await api.post(path, json={"decision": "edit", "title": "x"})
    assert edited.status_code == 422
    states = [
        (await api.post(path, json={"decision": decision})).json()["item"]["state"]
        for decision in ("decline", "undo", "accept")
    ]
    assert states == ["declined", "pending", "accepted"]
    assert (await read(api, REVIEW, kind="merge"))["items"] == []
    (shown,) = (await read(api, REVIEW, kind="merge", state="accepted"))["items"]
    assert shown["can_undo"]


HOBBIES = ("Chess is my hobby.", "My hobby is playing chess.", "קדרות היא התחביב שלי.")


async def hobbies(api: httpx.AsyncClient) -> list[str]:
    """The nodes that are hobbies."""
    found = await read(api, "/api/knowledge/nodes", type="Pastime")
    return sorted(one["name"] for one in found["nodes"])


async def test_a_name_is_proposed_accepted_and_read_again(
    world: Derived, api: httpx.AsyncClient
) -> None:
    told = world.harness.registry.told
    for number, text in enumerate(HOBBIES):
        stored = await api.post(RAW, json={"text": text, "session_id": f"c-{number}"})
        assert stored.is_success, stored.text
        await world.work()
    waits = await read(api, REVIEW, kind="ontology")
    assert waits["waiting"]["ontology"] == 1
    (item,) = waits["items"]
    assert (item["title"], item["text"], item["support"]) == ("Hobby", "hobby", 2)
    assert len(item["source_ids"]) == 2
    path = f"{REVIEW}/ontology/{item['id']}"
    new = {"decision": "edit", "title": "pastime", "text": "תחביב, hobby"}
    edited = await api.post(path, json=new)
    assert (edited.json()["item"]["state"], edited.json()["item"]["title"]) == (
        "accepted",
        "Pastime",
    )
    registry = await read(api, "/api/knowledge/ontology")
    (added,) = registry["added"]
    assert (registry["version"], registry["made_by"]) == (2, "local")
    assert (added["name"], added["words"]) == ("Pastime", ["hobby", "תחביב"])
    assert (await read(api, "/api/knowledge/ontology", version=1))["added"] == []
    missing = await api.get("/api/knowledge/ontology", params={"version": 9})
    assert missing.status_code == 404
    assert [(one.kind, one.data) for one in told] == [("ontology", {"version": 2})]
    assert await hobbies(api) == []
    world.harness.clock.advance(KEPT_S)
    await world.work()
    assert await hobbies(api) == ["Chess", "playing chess", "קדרות"]
    (shown,) = (await read(api, REVIEW, kind="ontology", state="accepted"))["items"]
    assert (shown["id"], shown["can_undo"]) == (item["id"], True)
    undone = await api.post(path, json={"decision": "undo"})
    assert undone.json()["item"]["state"] == "pending"
    world.harness.clock.advance(KEPT_S)
    await world.work()
    assert (await read(api, "/api/knowledge/ontology"))["version"] == 3
    asked = {"relation": "RELATED_TO", "label": "hobby"}
    found = (await api.post("/api/knowledge/query", json=asked)).json()
    assert {one["relationship"]["value"] for one in found["found"]} == {"Chess", "playing chess"}
    declined = await api.post(path, json={"decision": "decline"})
    assert declined.json()["item"]["state"] == "declined"
    assert (await read(api, REVIEW, kind="ontology"))["items"] == []
    assert (await read(api, REVIEW, kind="ontology", state="declined"))["items"] != []


async def test_nobody_else_sees_it(world: Derived, api: httpx.AsyncClient) -> None:
    await world.anxious(api)
    (item,) = (await read(api, REVIEW))["items"]
    async with client_of(world.harness.services, {"X-User-Id": "noa"}) as other:
        assert (await read(other, REVIEW))["items"] == []
        assert (await read(other, THOUGHTS))["thoughts"] == []
        assert (await other.get(f"{THOUGHTS}/{item['id']}")).status_code == 404
        decided = await other.post(f"{REVIEW}/thought/{item['id']}", json={"decision": "accept"})
        assert decided.status_code == 404
    assert (await api.get(f"{EPISODES}/{item['id']}")).status_code == 404
    assert (await api.get(REVIEW, params={"kind": "moods"})).status_code == 404


async def test_an_episode_is_found_and_one_is_told(world: Derived, api: httpx.AsyncClient) -> None:
    answer = await api.post(RAW, json={"text": FELL, "topic_key": "noa"})
    await world.work()
    (found,) = (await read(api, EPISODES))["episodes"]
    assert (found["narrative"], found["doc_id"]) == (FELL, answer.json()["memory_id"])
    assert (found["made_by"], found["topics"]) == (None, ["noa"])
    assert found["memory_ids"] == [found["doc_id"]]
    for node, count in ((found["node_ids"][0], 1), ("another", 0)):
        assert len((await read(api, EPISODES, node_id=node))["episodes"]) == count
    told = {
        "content": "Omri learned to ride a bike in the park.",
        "emotionTags": ["proud"],
        "occurredAt": "2026-02-20T10:00:00Z",
        "subjectId": "omri",
    }
    made = await api.post(EPISODES, json=told)
    assert made.is_success, made.text
    episode = made.json()["episode"]
    assert (episode["emotion_tags"], episode["subject_id"]) == (["pride"], "omri")
    assert (await api.get(f"{ITEM}/{episode['doc_id']}")).json()["memory"]["expires_at"] is None
    await world.work()
    assert len((await read(api, EPISODES, subject_id="omri"))["episodes"]) == 1
    assert len((await read(api, EPISODES, to="2026-02-21T00:00:00Z"))["episodes"]) == 1
    await api.delete(f"{ITEM}/{episode['doc_id']}")
    await world.work()
    assert (await read(api, EPISODES, subject_id="omri"))["episodes"] == []
    missing = await api.post(EPISODES, json={"raw_data_id": "nothing"})
    assert missing.status_code == 404
    assert (await api.post(EPISODES, json={"title": "Nothing"})).status_code == 422


@pytest.mark.parametrize(
    ("part", "left"),
    [
        ({"part": "subject", "id": "exams"}, 0),
        ({"part": "conversation", "id": "c-1"}, 0),
        ({"part": "memory", "id": ""}, 0),
        ({}, 0),
    ],
)
async def test_an_erasure_takes_all_of_it_and_says_so(
    world: Derived,
    api: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    part: dict[str, str],
    left: int,
) -> None:
    monkeypatch.setattr(erasure, "POLL_S", 0.0)
    memories = await world.anxious(api, subject_id="exams")
    await world.harness.indexed()
    if part.get("part") == "memory":
        part = {**part, "id": memories[0]}
    path = f"{USER}/part" if part else USER
    asked = {"confirm": "DELETE", **part}
    first = await api.delete(path, params=asked)
    assert first.is_success, first.text
    assert first.json()["certificate"]["removed"]["derived"] >= 1
    await world.work()
    await world.harness.indexed()
    again = (await api.delete(path, params=asked)).json()
    assert again["certificate"]["left"]["derived"] == left
    assert (await read(api, THOUGHTS))["thoughts"] == []
    if part.get("part") != "memory":
        assert world.harness.derived.rows == {}


async def test_hints_stand_in_the_context_where_they_are_on(world: Derived) -> None:
    settings = on().model_copy(update={"context": on().context.model_copy(update={"hints": 5})})
    world.harness = Harness.ready(settings)
    async with client_of(world.harness.services, {"X-User-Id": "dana"}) as api:
        await api.post(RAW, json={"text": "I value honesty."})
        await world.work()
        asked = {"query": "Should I tell my boss the truth?"}
        answer = await api.post("/api/memory/context", json=asked)
        assert answer.is_success, answer.text
        assert "**About The User:**" in answer.text
        assert "Values honesty. (today)" in answer.text
        assert "How to mention it" in answer.text
