"""The examples: the scripted model says only what it was shown, a broken promise ends in 3."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from examples import chat_loop
from examples.chat_loop import BROKEN, Result, Turn
from examples.scripted_model import Script, load_script, reply_to, script_of, serving
from rayapp.inference.prompts.loader import data_block

SCRIPT = Script(
    facts={"אני דנה": "שמה של המשתמשת דנה"},
    asks={"Where do I live?": "lives in Haifa", "How do I fix the build?": "fix the build"},
)
SEARCH = {"type": "function", "function": {"name": "web_search"}}
CONTEXT = (
    "<memory_context>\n[1] [working:a] (2026-01-15, conversation)  User: Dana lives in Haifa\n"
    "• [2] [memory_bank:b] (2026-01-15, user said)  Dana lives in Haifa\n"
    "[3] [history:c] (2026-01-15, used 1×, worked, user said)  To fix the build, restart\n"
)


def asked(said: str, system: str = "", **more: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": said}]
    return reply_to(SCRIPT, {"messages": messages, **more})


def test_the_model_quotes_what_it_was_shown_and_marks_it() -> None:
    answer = asked("Where do I live?", CONTEXT)["content"]
    assert answer == "From what you told me: Dana lives in Haifa\n<!-- MEM: 2👍 -->"


def test_the_model_knows_nothing_by_itself() -> None:
    wanted = asked("Where do I live?", tools=[SEARCH])["tool_calls"][0]["function"]
    assert json.loads(wanted["arguments"]) == {"query": "Where do I live?"}
    assert "Haifa" not in asked("Where do I live?")["content"]


def test_a_suggestion_is_not_marked_before_it_was_tried() -> None:
    answer = asked("How do I fix the build?", CONTEXT)["content"]
    assert answer.endswith("To fix the build, restart")


@pytest.mark.parametrize(("said", "fact"), [("אני דנה", SCRIPT.facts["אני דנה"]), ("x", "NOTHING")])
def test_facts_are_found_in_the_prompt_of_the_helper(said: str, fact: str) -> None:
    prompt = str(data_block("1. known", "known")) + "\n" + str(data_block(said, "user_text"))
    assert asked(prompt, "Reply with the fact, or the word NOTHING.")["content"] == fact


def test_other_helpers_are_told_that_nothing_was_found() -> None:
    answer = json.loads(asked("…", 'Answer {"outcome": "worked|failed"}')["content"])
    assert (answer["outcome"], answer["confidence"]) == ("unknown", 0.2)


def test_the_endpoint_speaks_like_others() -> None:
    body = {"model": "any", "messages": [{"role": "user", "content": "שלום"}]}
    with serving(SCRIPT) as url:
        answer = httpx.post(f"{url}/chat/completions", json=body).json()
    assert answer["choices"][0]["message"]["content"].startswith("תודה")
    assert answer["usage"]["prompt_tokens"] > 0


def test_the_script_has_thirty_turns_and_both_languages() -> None:
    loaded = load_script()
    turns = [turn for one in loaded["conversations"] for turn in one["turns"]]
    assert len(turns) == 30
    facts = script_of(loaded).facts
    assert any("א" <= fact[0] <= "ת" for fact in facts.values())
    assert len(set(facts.values())) < sum("fact" in turn for turn in turns)  # some are said twice


def played() -> Result:
    """What a run that keeps all promises looks like."""

    def turn(day: str, asks: str, used: str, allowed: list[str]) -> Turn:
        return Turn(day, 1, "?", asks=asks, shown=[used], used=[used], allowed=allowed)

    return Result(
        turns=[
            turn("monday", "fix the hanging build", "restart", ["web_search"]),
            turn("tuesday", "fix the hanging build", "clear", ["web_search"]),
            turn("tuesday", "Haifa", "Dana lives in Haifa", []),
        ],
        facts={"Dana lives in Haifa": 1},
    )


def broken(what: str) -> Result:
    result = played()
    if what == "facts are kept once":
        result.facts["Dana lives in Haifa"] = 2
    elif what == "facts are recalled in later conversations":
        result.turns[2].shown = []
    elif what == "a failed answer is not offered first again":
        result.turns[1].used = ["restart"]
    else:
        result.turns[2].allowed = ["web_search"]
    return result


PROMISES = (
    "facts are kept once",
    "facts are recalled in later conversations",
    "a failed answer is not offered first again",
    "tools stay away when memory is enough",
)


URL = "http://127.0.0.1:9100/v1"
ON: dict[str, Any] = {"enabled": True, "message": "ok", "helpers": {"fact_extraction": True}}


def test_a_service_with_helpers_needs_no_advice() -> None:
    assert chat_loop.without_helpers({"models": ON}, URL) is None


@pytest.mark.parametrize(
    ("models", "why"),
    [
        ({"enabled": False, "message": "off: set models.base_url"}, "off: set models.base_url"),
        (ON | {"helpers": {"fact_extraction": False}}, "fact_extraction is off"),
        (None, "off"),
    ],
)
def test_a_service_without_helpers_is_told_what_to_do_before_the_first_turn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], models: Any, why: str
) -> None:
    client = chat_loop.SyncMemoryClient
    monkeypatch.setattr(client, "diagnostics", lambda self: {"models": models})
    monkeypatch.setattr(chat_loop.Chat, "play", lambda self, console: pytest.fail("played"))
    monkeypatch.setattr(sys, "argv", ["chat_loop", "--model", URL])
    assert chat_loop.main() == chat_loop.NO_HELPERS
    said = capsys.readouterr().out
    assert why in said
    assert "`rayapp down`" in said
    assert f"RAYAPP_MODELS__BASE_URL={URL}" in said


@pytest.mark.parametrize("what", PROMISES)
def test_each_promise_is_broken_alone(what: str) -> None:
    result = broken(what)
    chat_loop._judge(result, {"Dana lives in Haifa": 2})
    assert [name for name, holds in result.promises.items() if not holds] == [what]
    whole = played()
    chat_loop._judge(whole, {"Dana lives in Haifa": 2})
    assert whole.kept


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The transcript of a program whose conversation is not played."""
    path = tmp_path / "transcript.json"
    monkeypatch.setattr(sys, "argv", ["chat_loop", "--out", str(path)])
    monkeypatch.setattr(chat_loop, "_schemas", lambda client: {})
    monkeypatch.setattr(chat_loop.SyncMemoryClient, "diagnostics", lambda self: {"models": ON})
    return path


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, BROKEN)])
def test_the_exit_code_says_whether_the_promises_hold(
    out: Path, monkeypatch: pytest.MonkeyPatch, holds: bool, code: int
) -> None:
    result = played() if holds else broken(PROMISES[0])
    chat_loop._judge(result, {"Dana lives in Haifa": 2})
    monkeypatch.setattr(chat_loop.Chat, "play", lambda self, console: result)
    assert chat_loop.main() == code
    assert json.loads(out.read_text("utf-8"))["promises"][PROMISES[0]] is holds
