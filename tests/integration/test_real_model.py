"""The service before a real language model: llama.cpp's server, asked by OpenAI's own clients.

The model is a small base model: it continues texts, follows no order and keeps to no form. Nothing
of what it says is looked at, only that everything around it holds.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from jobs.build.console import node_command
from tests.running import RunningService, started, until
from tests.shell import printed
from tests.support.llama_server import NAME, WINDOW_TOKENS, llama_server, missing_model

pytestmark = [
    pytest.mark.process,
    pytest.mark.ray,
    pytest.mark.engine,
    pytest.mark.skipif(bool(missing_model()), reason="needs packages: see tests.check --all"),
]
CALLS = Path(__file__).parent / "generated"
CLIENT = "openai@7.59.0"
FETCH_LIMIT_S = 240
# Ten times as long as an answer takes beside nothing else.
PATIENT_S = 120.0
# Of a turn, of a conversation, of a memory and of a search.
HELPERS = {
    "answer_reading",
    "contextual_prefix",
    "conversation_title",
    "outcome_detection",
    "profile_detection",
}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "known": {"type": "boolean"}},
    "required": ["city", "known"],
}
FACTS = {
    "en": (
        "My sister Noa lives in Haifa and is allergic to peanuts.",
        "Where does my sister live?",
    ),
    "he": ("אחותי נועה גרה בחיפה ואלרגית לבוטנים.", "איפה אחותי גרה?"),
}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A stack whose helpers all ask the model."""
    folder = tmp_path_factory.mktemp("m")
    with llama_server(folder) as url:
        running = started(
            folder / "d",
            models={
                "base_url": url,
                "model": NAME,
                "timeout_s": 60.0,
                "helpers": {"contextual_prefix": True},
            },
        )
        try:
            yield running
        finally:
            running.down()


def client_of(real: RunningService, user: str) -> OpenAI:
    headers = {"X-User-Id": user}
    return OpenAI(
        base_url=f"{real.url}/v1",
        api_key="none",
        max_retries=0,
        timeout=PATIENT_S,
        default_headers=headers,
    )


def ask(client: OpenAI, *messages: str, **fields: Any) -> Any:
    rows: list[Any] = [
        {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(messages)
    ]
    fields = {"model": "", "max_tokens": 24, "user": "c-1", **fields}
    return client.chat.completions.create(messages=rows, **fields)


def kept(real: RunningService, user: str, conversation: str = "c-1") -> list[dict[str, Any]]:
    """The messages of a conversation, as a person reads them again."""
    with real.client(user) as http:
        answer = http.get(f"/api/memory/conversations/{conversation}/messages")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return []
    rows: list[dict[str, Any]] = answer.raise_for_status().json()["messages"]
    return rows


def keeps(real: RunningService, user: str, question: str) -> None:
    """The question is a turn, soon."""
    until(lambda: any(row["content"] == question for row in kept(real, user)))


@pytest.mark.parametrize("language", FACTS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_is_answered_kept_and_paid(
    real: RunningService, language: str, *, stream: bool
) -> None:
    user = f"real-{language}-{stream}"
    told, question = FACTS[language]
    client = client_of(real, user)
    ask(client, told)
    keeps(real, user, told)
    if stream:
        chunks = list(ask(client, question, stream=True, stream_options={"include_usage": True}))
        said = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
        used = chunks[-1].usage
    else:
        answer = ask(client, question)
        said, used = answer.choices[0].message.content, answer.usage
    keeps(real, user, question)
    assert used.prompt_tokens > 10
    assert used.completion_tokens > 0
    assert said
    asked = [row["content"] for row in kept(real, user) if row["role"] == "user"]
    assert asked == [told, question]
    with real.client(user) as http:
        usage = http.get("/api/memory/models/usage").json()
    chats = next(one for one in usage["by_helper"] if one["helper"] == "chat")
    assert chats["calls"] == 2
    assert chats["tokens"] >= used.total_tokens


def test_who_leaves_in_the_middle_finds_the_question_again(real: RunningService) -> None:
    client = client_of(real, "real-left")
    question = "Tell me everything about the port of Jaffa, from its beginning."
    with ask(client, question, stream=True, max_tokens=2_000) as stream:
        for _ in range(4):
            next(stream)
    keeps(real, "real-left", question)
    # The model's place is free again: the next is answered.
    assert ask(client, "And now?").choices


def test_json_of_a_schema_comes_as_json(real: RunningService) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
    client = client_of(real, "real-json")
    question = "Which city is Noa in?"
    answer = ask(client, question, response_format=form, max_tokens=200)
    found = json.loads(answer.choices[0].message.content)
    assert found.keys() == {"city", "known"}
    chunks = ask(client, question, response_format=form, max_tokens=200, stream=True)
    said = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert json.loads(said).keys() == {"city", "known"}


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_over_the_window_is_refused_with_its_reason(
    real: RunningService, *, stream: bool
) -> None:
    client = client_of(real, f"real-long-{stream}")
    long = "The ships of Jaffa carry oranges. " * (WINDOW_TOKENS // 4)
    with pytest.raises(openai.APIStatusError) as refused:
        ask(client, long, stream=stream)
    assert refused.value.status_code in {400, 413, 422}
    assert "context" in refused.value.message
    assert ask(client, "And a short one?").choices


def test_a_stop_word_ends_the_answer(real: RunningService) -> None:
    client = client_of(real, "real-stop")
    answer = ask(client, "Count to ten: 1 2 3", stop=["e", "a", "o", "i", "1", " "], max_tokens=200)
    assert answer.choices[0].finish_reason == "stop"
    assert not set(answer.choices[0].message.content) & set("eaoi1 ")
    keeps(real, "real-stop", "Count to ten: 1 2 3")


def test_an_answer_that_ends_at_its_limit_says_so(real: RunningService) -> None:
    client = client_of(real, "real-short")
    answer = ask(client, "Tell me of the sea, at length.", max_tokens=3)
    assert answer.choices[0].finish_reason in {"length", "stop"}
    assert answer.usage.completion_tokens <= 3
    keeps(real, "real-short", "Tell me of the sea, at length.")


def test_helpers_that_get_nonsense_leave_the_service_whole(real: RunningService) -> None:
    """Extraction, titles, summaries, prefixes and the reader, in a conversation of six turns."""
    user = "real-helpers"
    client = client_of(real, user)
    said: list[str] = []
    for told, question in FACTS.values():
        for text in (told, question, f"{told} {question}"):
            answer = ask(client, *said, text)
            said += [text, answer.choices[0].message.content or "…"]
    with real.client(user) as http:
        http.timeout = httpx.Timeout(PATIENT_S)
        for told, question in FACTS.values():
            asked = {"query": question}
            # A reader that says nonsense may find an answer, or none: that is its word.
            http.post("/api/memory/search", json=asked | {"read": True}).raise_for_status()
            found = http.post("/api/memory/search", json=asked).raise_for_status()
            assert any(told in hit["content"] for hit in found.json()["results"]), found.text
        body = {"tool_name": "tavily_search", "conversation_id": "c-1"}
        body["output"] = "The light rail between Haifa and Nazareth opens in 2027. " * 60
        http.post("/api/memory/tool-results", json=body).raise_for_status()
        sent = {"file": ("notes.md", ("# Notes\n\n" + "Noa lives in Haifa.\n\n" * 40).encode())}
        http.post("/api/memory/books", files=sent).raise_for_status()
        real.indexed(PATIENT_S)

        def asked() -> set[str]:
            usage = http.get("/api/memory/models/usage").json()
            return {one["helper"] for one in usage["by_helper"]}

        until(lambda: asked() >= HELPERS, PATIENT_S)
        (row,) = http.get("/api/memory/conversations").json()["conversations"]
        assert row["title"]
        rows = http.get("/api/memory/conversations/c-1/messages").json()["messages"]
        assert sum(one["role"] == "user" for one in rows) == 6
        ill = [
            one["name"]
            for one in http.get("/api/memory/health").json()["components"]
            if not one["healthy"]
        ]
        # Of a model that says nonsense health says so.
        assert set(ill) <= {"models"}
    assert real.ready()


def test_the_client_of_npm(real: RunningService, tmp_path: Path) -> None:
    environment = dict(os.environ)
    install = [*node_command("npm"), "install", "--no-audit", "--no-fund", CLIENT]
    printed(install, tmp_path, environment, FETCH_LIMIT_S)
    shutil.copy(CALLS / "chat.mjs", tmp_path)
    command = [*node_command("node"), "chat.mjs", real.url]
    seen = json.loads(printed(command, tmp_path, environment, FETCH_LIMIT_S))
    assert seen["tokens"] > 0
    assert seen["finish"] in {"stop", "length"}
    assert seen["taken"] == 3
