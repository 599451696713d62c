"""Orders, hints and disclaimers of messages over HTTP: prefetch, prompt, exchange and chats."""

from typing import Any

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.memory.scope import ReadScope
from tests.support import chat_server as replies
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with
from tests.unit.api.test_completions import chat_of

GOALS = "/api/memory/memory-bank/goals"
INSTRUMENTS = ("violin", "piano")
GOAL = [("add goal: run a marathon", "run a marathon"), ("הוסף מטרה: לרוץ מרתון", "לרוץ מרתון")]


def exchange(question: str, answer: str | None = None) -> dict[str, Any]:
    messages = [{"role": "user", "content": question}]
    if answer is not None:
        messages.append({"role": "assistant", "content": answer})
    return {"conversation_id": "c-1", "message_id": "m-1", "messages": messages}


async def goals(api: httpx.AsyncClient) -> list[str]:
    return [one["text"] for one in (await api.get(GOALS)).json()["goals"]]


@pytest.mark.parametrize(("order", "text"), GOAL)
async def test_an_order_is_done_once_by_the_exchange_around_a_turn(
    api: httpx.AsyncClient, order: str, text: str
) -> None:
    first = (await api.post("/api/hooks/exchange", json=exchange(order))).json()
    (done,) = first["intents"]["commands"]
    assert (done["kind"], done["text"], done["status"]) == ("add_goal", text, "stored")
    assert text in first["messages"][0]["content"]
    answer = "That is a fine goal, and it is written down where we both find it."
    again = (await api.post("/api/hooks/exchange", json=exchange(order, answer))).json()
    (known,) = again["intents"]["commands"]
    assert (known["status"], known["memory_ids"]) == ("known", done["memory_ids"])
    assert await goals(api) == [text]


@pytest.mark.parametrize("path", ["/api/memory/context", "/api/memory/prefetch"])
@pytest.mark.parametrize(("order", "text"), GOAL)
async def test_a_prefetch_does_it_and_a_key_that_only_reads_does_not(
    path: str, order: str, text: str
) -> None:
    world = Harness.ready(settings_with(auth={"mode": "keys"}))
    keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
    reader, _ = await keys.create("r", user_id="dana", scopes=["read"])
    writer, _ = await keys.create("w", user_id="dana", scopes=["read", "write"])
    async with client_of(world.services) as api:
        for secret, statuses, kept in ((reader, [], []), (writer, ["stored"], [text])):
            api.headers["Authorization"] = f"Bearer {secret}"
            found = (await api.post(path, json={"query": order})).json()
            assert [one["status"] for one in found["intents"]["commands"]] == statuses
            assert await goals(api) == kept


async def test_what_is_forgotten_twice_stays_removed_and_what_is_unclear_stays(
    api: httpx.AsyncClient,
) -> None:
    told = ("remember that I live in Haifa", "remember that I park in Eilat street")
    for n, text in enumerate(told):
        await api.post("/api/hooks/exchange", json=exchange(text) | {"message_id": f"m-0{n}"})
    order = exchange("forget that I live in Haifa")
    for _ in range(2):
        (done,) = (await api.post("/api/hooks/exchange", json=order)).json()["intents"]["commands"]
        assert done["status"] == "removed"
    other = exchange("forget that I live in Akko") | {"message_id": "m-2"}
    (done,) = (await api.post("/api/hooks/exchange", json=other)).json()["intents"]["commands"]
    assert (done["status"], done["memory_ids"]) == ("not_found", [])


async def test_the_same_order_again_removes_nothing_that_is_only_alike(
    api: httpx.AsyncClient,
) -> None:
    violin, piano = (
        f"my daughter Maya studies {one} at school every Monday" for one in INSTRUMENTS
    )
    for n, text in enumerate((violin, piano)):
        await api.post(
            "/api/hooks/exchange",
            json=exchange(f"remember that {text}") | {"message_id": f"m-0{n}"},
        )
    order = exchange(f"forget that {violin}")
    found = [
        (await api.post("/api/hooks/exchange", json=order)).json()["intents"]["commands"][0]
        for _ in range(2)
    ]
    assert found[0]["memory_ids"] == found[1]["memory_ids"]
    facts = (await api.get("/api/memory/items?tier=memory_bank")).json()["items"]
    assert [one["text"] for one in facts] == [piano]


async def ordered(
    api: httpx.AsyncClient, question: str, conversation: str = "c-1"
) -> list[dict[str, Any]]:
    """What became of the orders of message m-1, with these words."""
    body = exchange(question) | {"conversation_id": conversation}
    found = (await api.post("/api/hooks/exchange", json=body)).json()
    commands: list[dict[str, Any]] = found["intents"]["commands"]
    return commands


async def state_of(api: httpx.AsyncClient, memory_id: str) -> str:
    found = await api.get(f"/api/memory/items/{memory_id}")
    return str(found.json()["memory"]["status"]) if found.status_code == 200 else "gone"


EDITED = [
    ("add goal: run a marathon", "add goal: swim a mile", "swim a mile"),
    ("הוסף מטרה: לרוץ מרתון", "הוסף מטרה: לשחות קילומטר", "לשחות קילומטר"),
    ("add goal: run a marathon", "add goal: Run a marathon", "Run a marathon"),
]


@pytest.mark.parametrize(("first", "then", "text"), EDITED)
async def test_an_edited_message_orders_what_it_says_now(
    api: httpx.AsyncClient, first: str, then: str, text: str
) -> None:
    (done,) = await ordered(api, first)
    (instead,) = await ordered(api, then)
    assert instead["status"] == "stored"
    assert await goals(api) == [text]
    assert await state_of(api, done["memory_ids"][0]) == "gone"
    assert await ordered(api, "How are you today? מה שלומך היום?") == []
    assert await goals(api) == []
    assert [one["status"] for one in await ordered(api, first)] == ["stored"]
    assert len(await goals(api)) == 1


@pytest.mark.parametrize(
    ("told", "order"),
    [
        ("remember that I live in Haifa", "forget that I live in Haifa"),
        ("תזכור שאני גר בחיפה", "תשכח שאני גר בחיפה"),
        ("add goal: run a marathon", "remove goal: run a marathon"),
        ("הוסף מטרה: לרוץ מרתון", "הסר מטרה: לרוץ מרתון"),
    ],
)
async def test_what_an_edited_message_removed_is_back(
    api: httpx.AsyncClient, told: str, order: str
) -> None:
    ((memory_id,),) = [one["memory_ids"] for one in await ordered(api, told, "c-0")]
    for _ in range(2):
        assert [one["status"] for one in await ordered(api, order)] == ["removed"]
        assert await state_of(api, memory_id) == "archived"
        assert await ordered(api, "How are you today?") == []
        assert await state_of(api, memory_id) == "active"


async def test_a_goal_that_is_more_than_a_goal_is_on_its_list_again(api: httpx.AsyncClient) -> None:
    body = {"content": "run a marathon", "tags": ["goal", "context"]}
    stored = (await api.post("/api/memory/memory-bank", json=body)).json()
    assert await goals(api) == ["run a marathon"], stored
    await ordered(api, "remove goal: run a marathon")
    assert await goals(api) == []
    await ordered(api, "How are you today?")
    assert await goals(api) == ["run a marathon"]


async def test_an_edit_keeps_what_is_still_ordered_and_what_others_did(
    api: httpx.AsyncClient,
) -> None:
    (kept,) = await ordered(api, "add goal: run a marathon")
    (same, more) = await ordered(api, "Please add goal: run a marathon. Add goal: swim a mile.")
    assert (same["status"], same["memory_ids"]) == ("known", kept["memory_ids"])
    edit = {"text": "swim two miles", "reason": "mine"}
    await api.patch(f"/api/memory/items/{more['memory_ids'][0]}", json=edit)
    (elsewhere,) = await ordered(api, "add goal: read a book", "c-2")
    await ordered(api, "How are you today?")
    assert await state_of(api, kept["memory_ids"][0]) == "gone"
    assert await state_of(api, more["memory_ids"][0]) == "active"
    assert await state_of(api, elsewhere["memory_ids"][0]) == "active"


async def test_a_goal_that_was_known_before_stays_when_the_message_is_edited(
    api: httpx.AsyncClient,
) -> None:
    await ordered(api, "add goal: run a marathon", "c-0")
    assert [one["status"] for one in await ordered(api, "add goal: run a marathon")] == ["known"]
    await ordered(api, "How are you today?")
    assert await goals(api) == ["run a marathon"]


async def test_the_prompt_says_what_the_message_asks_for(api: httpx.AsyncClient) -> None:
    body = {"query": "Should I take ibuprofen for the fever? What is the price of gold?"}
    found = (await api.post("/api/memory/prompt", json=body)).json()
    assert found["intents"]["hints"] == ["web"]
    assert len(found["intents"]["parts"]) == 2
    (said,) = found["intents"]["disclaimers"]
    assert said["topic"] == "medical"
    assert "use a web search tool" in found["messages"][0]["content"]


async def test_a_chat_does_the_order_and_names_what_it_is_no_advice_of() -> None:
    said = "You should take one tablet of ibuprofen against the fever, at most."
    async with chat_of(replies.in_turn(replies.good(said), replies.good(said))) as chat:
        raw = await chat.client.chat.completions.with_raw_response.create(
            model="rayapp",
            messages=[{"role": "user", "content": "should I take ibuprofen for the fever?"}],
        )
        assert raw.headers["x-disclaimers"] == "medical"
        await chat.ask("add goal: sleep more")
        assert 'Kept the goal in memory: "sleep more".' in chat.prompt
        stats = await chat.world.services.bank.stats(ReadScope("admin"))
        assert stats.active == 1


async def test_a_dry_run_does_nothing_that_the_question_orders() -> None:
    world = Harness.ready(settings_with())
    async with client_of(world.services) as http:
        ask = {"query": "remember that the spare key is with Ruth", "include_context": True}
        await http.post("/api/memory/context", json={**ask, "dry_run": True})
        assert (await http.get("/api/memory/items")).json()["items"] == []
        await http.post("/api/memory/context", json=ask)
        assert (await http.get("/api/memory/items")).json()["items"] != []
