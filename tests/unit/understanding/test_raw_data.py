"""Raw data, the gate and what is derived, over HTTP, in both languages: the table of cases."""

from typing import Any

import httpx
import pytest

from rayapp.core.errors import InvalidInput, StoreDown
from rayapp.memory.item import Status
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.portability import erasure
from rayapp.understanding.records import Fate
from tests.support.harness import Harness
from tests.unit.understanding.conftest import Understood

RAW, STORE = "/api/memory/raw-data", "/api/memory/store"
ITEM, SEARCH = "/api/memory/items", "/api/memory/search"
PROUD = {
    "content": "I felt really proud when my son won the science competition.",
    "contentType": "user_chat",
    "perspectiveOwnerId": "parent",
    "subjectId": "child",
    "topicKey": "academic_achievements",
}
PROUD_HE = {**PROUD, "content": "הרגשתי גאה מאוד כשהבן שלי זכה בתחרות המדעים."}
QUANTUM = {"en": "What is quantum mechanics?", "he": "מה זה מכניקת הקוונטים?"}
BANK = {"en": "What did the central bank decide?", "he": "מה החליט הבנק המרכזי?"}
languages = pytest.mark.parametrize("language", ["en", "he"])


async def add(api: httpx.AsyncClient, text: str = "", **fields: Any) -> dict[str, Any]:
    answer = await api.post(RAW, json=({"text": text} if text else {}) | fields)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def status_of(world: Harness, memory_id: str) -> tuple[Status, str | None]:
    item = await world.services.memories.get(ReadScope("dana"), memory_id)
    return item.status, item.archived_reason


@pytest.mark.parametrize("body", [PROUD, PROUD_HE])
async def test_e1_pride_of_a_parent(
    world: Understood, api: httpx.AsyncClient, body: dict[str, Any]
) -> None:
    added = await add(api, **body)
    decided = added["decision"]["importance"]
    assert decided["score"] > decided["threshold"] == 0.44
    assert decided["signals"]["emotional"] == 1.0
    assert (decided["speaker"], decided["source_factor"], decided["passed"]) == ("user", 1.0, True)
    assert added["decision"]["trace_id"]
    memory = (await api.get(f"{ITEM}/{added['memory_id']}")).json()["memory"]
    assert (memory["subject_id"], memory["perspective_owner_id"]) == ("child", "parent")
    assert memory["topics"] == ["academic_achievements"]
    assert (memory["status"], memory["expires_at"]) == ("active", None)
    await world.work()
    (source,) = world.heard.sources.values()
    assert (source.text, source.subject_id) == (body["content"], "child")
    assert (source.perspective_owner_id, source.topics) == ("parent", ("academic_achievements",))
    assert (await api.get(f"{RAW}/{added['memory_id']}")).json()["decision"]["fate"] == "derived"


@pytest.mark.parametrize(
    ("body", "query"),
    [(PROUD, "accomplishment in school competition"), (PROUD_HE, "הישג בתחרות בבית הספר")],
)
async def test_e3_a_search_by_whom_it_is_about_and_who_told_it(
    world: Understood, api: httpx.AsyncClient, body: dict[str, Any], query: str
) -> None:
    added = await add(api, **body)
    own = {"text": "I won a school competition in chess. זכיתי בתחרות בית ספר", "tier": "history"}
    await api.post(STORE, json=own)
    await world.world.store(body["content"], user="noa", subject_id="child")
    await world.world.indexed()

    async def found(**filters: Any) -> list[str]:
        answer = await api.post(SEARCH, json={"query": query, "filters": filters})
        assert answer.status_code == 200, answer.text
        hits = answer.json()["results"]
        for hit in hits:
            assert isinstance(hit["topics"], list), hit
        return [hit["memory_id"] for hit in hits]

    assert await found(subject_ids=["child"]) == [added["memory_id"]]
    assert await found(perspective_owner_ids=["parent"]) == [added["memory_id"]]
    assert await found(topics=["academic_achievements"]) == [added["memory_id"]]
    assert await found(subject_ids=["stranger"]) == []
    assert added["memory_id"] not in await found(perspective_owner_ids=["dana"])
    listed = await api.get(ITEM, params={"topics": "academic_achievements"})
    assert [one["memory_id"] for one in listed.json()["items"]] == [added["memory_id"]]


@languages
async def test_1_a_topic_that_comes_again_and_again_matters(
    world: Understood, api: httpx.AsyncClient, language: str
) -> None:
    text, fates = QUANTUM[language], []
    for number in range(3):
        answer = await add(api, text, session_id=f"c-{number}")
        fates.append(answer["decision"]["fate"])
        await world.work()
    assert fates == ["archived", "archived", "waiting"]
    last = answer["decision"]["importance"]
    assert (last["score"], last["overrides"]) == (1.0, ["recurrence"])
    assert await status_of(world.world, answer["memory_id"]) == (Status.ACTIVE, None)
    assert world.heard.texts() == [text]
    memory = (await api.get(f"{ITEM}/{answer['memory_id']}")).json()["memory"]
    assert memory["expires_at"] is None


async def test_1_the_same_topic_in_other_words_on_three_days(
    world: Understood, api: httpx.AsyncClient
) -> None:
    for text in ("What is quantum mechanics?", "Who invented quantum mechanics?"):
        assert (await add(api, text))["decision"]["fate"] == "archived"
        world.world.clock.advance(86_400)
    again = await add(api, "Which book explains quantum mechanics?")
    assert again["decision"]["importance"]["score"] == 1.0


@languages
async def test_2_a_question_about_the_world_is_archived(
    world: Understood, api: httpx.AsyncClient, language: str
) -> None:
    added = await add(api, BANK[language])
    assert added["decision"]["fate"] == "archived"
    assert await status_of(world.world, added["memory_id"]) == (Status.ARCHIVED, "importance")
    await world.work()
    await world.world.indexed()
    assert world.heard.sources == {}
    assert await world.world.found(BANK[language]) == []
    kept = (await api.get(f"{RAW}/{added['memory_id']}")).json()["decision"]
    assert (kept["fate"], kept["importance"]["passed"]) == ("archived", False)


@pytest.mark.parametrize("text", ["I felt how you are growing stronger.", "אני שמחה בשבילך."])
async def test_4_what_an_assistant_reflects_counts_half(
    world: Understood, api: httpx.AsyncClient, text: str
) -> None:
    added = await add(api, text, content_type="ai_response")
    decided = added["decision"]["importance"]
    assert decided["source_factor"] == 0.5
    assert added["decision"]["fate"] == "archived"


@pytest.mark.parametrize("text", ["I am an AI language model.", "אני רוצה להיות עוזר טוב יותר."])
async def test_t2_an_assistant_has_no_identity_and_no_goals(
    world: Understood, api: httpx.AsyncClient, text: str
) -> None:
    added = await add(api, text, content_type="ai_response")
    assert added["decision"]["importance"]["overrides"] == []
    assert added["decision"]["fate"] == "archived"


async def test_t4_an_edited_source_is_understood_anew(
    world: Understood, api: httpx.AsyncClient
) -> None:
    added = await add(api, **PROUD)
    await world.work()
    new = "I felt really proud when my daughter won the chess tournament."
    await api.patch(f"{ITEM}/{added['memory_id']}", json={"text": new})
    await world.work()
    assert world.heard.texts() == [new]
    await api.patch(f"{ITEM}/{added['memory_id']}", json={"text": "The museum opens at nine."})
    await world.work()
    assert world.heard.sources == {}


@pytest.mark.parametrize("how", ["delete", "archive", "expire"])
async def test_t4_what_is_gone_is_taken_back(
    world: Understood, api: httpx.AsyncClient, how: str
) -> None:
    text = "My daughter was born yesterday and I am so happy."
    body = {"text": text, "tier": "working", "memory_id": "m-1"}
    assert (await api.post(STORE, json=body)).is_success
    await world.work()
    assert world.heard.texts() == [text]
    if how == "delete":
        await api.delete(f"{ITEM}/m-1")
    elif how == "archive":
        await api.post(f"{ITEM}/m-1/archive")
    else:
        world.world.clock.advance(3 * 86_400)
        await world.world.promotion.run(None)
    await world.work()
    assert world.heard.sources == {}
    assert world.state("m-1") is None


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/api/memory/user/part", {"part": "memory", "id": "m-1"}),
        ("/api/memory/user/part", {"part": "subject", "id": "child"}),
        ("/api/memory/user/part", {"part": "conversation", "id": "c-1"}),
        ("/api/memory/user", {}),
    ],
)
async def test_t4_an_erasure_is_certified(
    world: Understood,
    api: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    part: dict[str, str],
) -> None:
    monkeypatch.setattr(erasure, "POLL_S", 0.0)
    await add(api, **PROUD, memoryId="m-1", sessionId="c-1")
    await world.work()
    await world.world.indexed()
    first = await api.delete(path, params={"confirm": "DELETE", **part})
    assert first.is_success, first.text
    await world.work()
    await world.world.indexed()
    assert world.state("m-1") is None
    if part:
        assert world.heard.sources == {}
    again = (await api.delete(path, params={"confirm": "DELETE", **part})).json()
    assert again["certificate"]["left"]["understandings"] == 0


async def test_t5_the_same_text_twice_is_one_understanding(
    world: Understood, api: httpx.AsyncClient
) -> None:
    first = await add(api, **PROUD)
    await world.work()
    second = await add(api, **PROUD)
    assert (second["memory_id"], second["duplicate"]) == (first["memory_id"], True)
    await world.work()
    assert [call for call, _ in world.heard.calls] == ["understand"]
    again = await api.post(RAW, json={**PROUD, "content": BANK["en"]})
    repeated = await api.post(RAW, json={**PROUD, "content": BANK["en"]})
    assert again.json()["memory_id"] == repeated.json()["memory_id"]
    assert repeated.json()["duplicate"]


async def test_a_repeat_with_the_same_key_is_the_same_answer(
    world: Understood, api: httpx.AsyncClient
) -> None:
    headers = {"Idempotency-Key": "k-1"}
    first = (await api.post(RAW, json=PROUD, headers=headers)).json()
    again = (await api.post(RAW, json=PROUD, headers=headers)).json()
    assert again["memory_id"] == first["memory_id"]
    assert len(world.world.understandings.rows()) == 1


async def test_9_a_message_a_second_is_a_claim_a_second_at_most(world: Understood) -> None:
    claims = 0
    service, store = world.world.container.understanding, world.world.understandings
    claim = store.claim

    async def counted(owner: str, limit: int, claim_s: float) -> Any:
        nonlocal claims
        found = await claim(owner, limit, claim_s)
        claims += bool(found)
        return found

    store.claim = counted
    texts = [f"My son said something lovely, number {number}." for number in range(60)]
    for text in texts:
        await world.world.store(text)
        for _ in range(4):
            world.world.clock.advance(0.25)
            await service.run_once()
    await world.work()
    assert world.heard.texts() == sorted(texts)
    assert claims <= 61
    calls = [source for call, source in world.heard.calls if call == "understand"]
    assert len(calls) == len(set(calls)) == 60


async def test_what_comes_within_half_a_second_is_taken_together(world: Understood) -> None:
    service = world.world.container.understanding
    await world.world.store("My son is ill.")
    world.world.clock.advance(0.4)
    assert await service.run_once() == 0
    await world.world.store("My son is at home.")
    world.world.clock.advance(0.1)
    assert await service.run_once() == 4  # two marks, two rows
    assert len(world.heard.sources) == 2


async def test_only_the_sides_of_a_turn_that_matter_are_derived_from(
    world: Understood, api: httpx.AsyncClient
) -> None:
    turn = [
        {"role": "user", "content": "My mother died last week and I feel so alone."},
        {"role": "assistant", "content": "The museum opens at nine and closes at five today."},
    ]
    body = {"conversation_id": "c-1", "message_id": "msg-1", "messages": turn}
    (await api.post("/api/hooks/exchange", json=body)).raise_for_status()
    await world.work()
    assert world.heard.texts() == ["My mother died last week and I feel so alone."]
    (row,) = world.world.understandings.rows()
    assert [side.speaker.value for side in row.sides] == ["user", "assistant"]
    assert [side.passed for side in row.sides] == [True, False]


async def test_other_memories_are_stored_and_found_whatever_they_score(
    world: Understood, api: httpx.AsyncClient
) -> None:
    await world.world.store("The museum opens at nine.", memory_id="m-1")
    await world.work()
    await world.world.indexed()
    assert await world.world.found("When does the museum open?") == ["m-1"]
    assert world.heard.sources == {}
    decided = (await api.get(f"{RAW}/m-1")).json()["decision"]
    assert decided["fate"] == "passed_over"


async def test_a_batch_decides_each_and_refuses_a_bad_one_alone(api: httpx.AsyncClient) -> None:
    items = [PROUD, {"content": ""}, "text", {"content": BANK["he"]}]
    answer = await api.post(f"{RAW}/batch", json={"items": items})
    found = answer.json()["results"]
    fates = [one["decision"] and one["decision"]["fate"] for one in found]
    assert fates == ["waiting", None, None, "archived"]
    assert [one.get("code") is not None for one in found] == [False, True, True, False]


async def test_reprocess_with_force_brings_a_text_back(
    world: Understood, api: httpx.AsyncClient
) -> None:
    added = await add(api, BANK["en"])
    path = f"{RAW}/{added['memory_id']}/reprocess"
    assert (await api.post(path)).json()["decision"]["fate"] == "archived"
    forced = (await api.post(path, json={"force": True})).json()
    assert forced["decision"]["fate"] == "waiting"
    await world.work()
    assert world.heard.texts() == [BANK["en"]]
    assert await status_of(world.world, added["memory_id"]) == (Status.ACTIVE, None)


async def test_what_is_unknown_is_404(api: httpx.AsyncClient) -> None:
    assert (await api.get(f"{RAW}/nobody")).status_code == 404
    assert (await api.post(f"{RAW}/nobody/reprocess")).status_code == 404


async def test_a_failing_source_is_tried_again_and_then_given_up(world: Understood) -> None:
    await world.world.store("My son is ill and I am afraid.", memory_id="m-1")
    world.heard.error = ValueError("broken")
    for _ in range(world.world.settings.understanding.tries):
        await world.work()
        world.world.clock.advance(3_600)
    await world.work()
    state = world.world.understandings.queued(("dana", "m-1"))
    assert state is not None
    assert (state.state.value, state.error) == ("dead", "error")
    world.heard.error = None
    await world.world.services.raw_data.reprocess(WriteScope("dana"), "m-1", force=False)
    await world.work()
    assert len(world.heard.sources) == 1


@pytest.mark.parametrize("error", [ValueError("broken"), InvalidInput("bad"), StoreDown("away")])
async def test_a_bad_text_stops_no_other_of_its_batch(world: Understood, error: Exception) -> None:
    for name in ("Itay", "Noa", "Ruth", "Maya", "Omer"):
        await world.world.store(f"My child {name} is ill and I am afraid.", memory_id=name)
    world.heard.error, world.heard.bad = error, "Ruth"
    await world.work()
    away = isinstance(error, StoreDown)
    assert len(world.heard.sources) == (0 if away else 4)
    state = world.world.understandings.queued(("dana", "Ruth"))
    assert state is not None
    assert (state.state.value, state.tries) == ("waiting", 0 if away else 1)
    world.heard.error = None
    world.world.clock.advance(3_600)
    await world.work()
    assert len(world.heard.sources) == 5


async def test_the_row_says_what_it_says_after_the_work(world: Understood) -> None:
    await world.world.store("My son is ill and I am afraid.", memory_id="m-1")
    await world.work()
    state = world.world.understandings.queued(("dana", "m-1"))
    assert state is not None
    assert state.row.fate is Fate.DERIVED
    assert set(state.row.stages) == {"importance", "derive"}
