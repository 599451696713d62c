"""Long results of tools: cut for the model, with a sentence that says so."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.assistant.tools.rules.limits import cut_text, limited_results
from rayapp.assistant.tools.rules.table import first_to_try
from rayapp.assistant.tools.rules.texts import within
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.graphs.rules.directives import Side
from rayapp.inference.rules import estimate_tokens
from rayapp.storage.files import load_tools

TABLE = load_tools(CONFIG_DIR / "tools.yaml")
LONG = "a line of the page that was found\n" * 2_000
HEBREW = "שורה מתוך הדף שנמצא\n" * 2_000
CUT = {"en": "[Cut here: this result was longer than", "he": "[נחתך כאן: התוצאה ארוכה מ-"}


@pytest.mark.parametrize(("side", "text"), [("en", LONG), ("he", HEBREW)])
def test_a_long_text_ends_with_a_whole_line_and_says_so(side: Side, text: str) -> None:
    shown = cut_text(text, 300, side)
    *lines, note = shown.split("\n")
    assert note.startswith(CUT[side])
    assert "300" in note
    assert set(lines) == {text.split("\n")[0]}
    assert 250 < estimate_tokens(shown) <= 300
    assert cut_text(text[:400], 300, side) == text[:400]


@given(st.text(max_size=3_000), st.integers(60, 400), st.sampled_from(["en", "he"]))
def test_no_text_is_longer_than_its_tokens(text: str, tokens: int, side: Side) -> None:
    shown = cut_text(text, tokens, side)
    assert estimate_tokens(shown) <= tokens
    assert shown == text or CUT[side] in shown


def a_call(name: Any, call_id: Any = "c1") -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def a_result(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c1", "content": content, **fields}


@pytest.mark.parametrize(
    ("messages", "tokens"),
    [
        ([a_call("web_search"), a_result(LONG)], 3_000),
        ([a_call("mcp__files__docling_convert"), a_result(LONG)], 6_000),
        ([a_result(LONG, name="get_current_time")], 100),
        ([a_call("juggle"), a_result(LONG)], 2_000),
        ([{"role": "assistant", "tool_calls": "none"}, a_result(LONG)], 2_000),
        ([a_call(["a", "list"], {"an": "object"}), a_result(LONG, tool_call_id=[1])], 2_000),
    ],
)
def test_each_result_has_the_tokens_of_its_tool(
    messages: list[dict[str, Any]], tokens: int
) -> None:
    *before, result = limited_results(messages, TABLE, "en")
    assert before == messages[:-1]
    assert CUT["en"] in result["content"]
    assert 0.9 * tokens < estimate_tokens(result["content"]) <= tokens
    assert {**result, "content": LONG} == messages[-1]


def test_parts_share_the_tokens_and_what_is_no_text_stays() -> None:
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    parts = [{"type": "text", "text": "short"}, picture, {"type": "text", "text": LONG}]
    (result,) = limited_results([a_result(parts)], TABLE, "he")
    short, shown, long = result["content"]
    assert (short, shown) == (parts[0], picture)
    assert CUT["he"] in long["text"]
    assert estimate_tokens(long["text"]) <= 2_000


def test_many_short_parts_share_the_tokens_as_well() -> None:
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    rows = [{"type": "text", "text": f"row {number} of the table"} for number in range(2_000)]
    (result,) = limited_results([a_result([*rows, picture])], TABLE, "en")
    *shown, last = result["content"]
    assert last == picture
    texts = [part["text"] for part in shown]
    assert [CUT["en"] in text for text in texts] == [False] * (len(texts) - 1) + [True]
    note = estimate_tokens(texts[-1])
    assert 1_900 < sum(map(estimate_tokens, texts)) <= 2_000 + note


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": LONG},
        {"role": "tool"},
        a_result(None),
        a_result("short"),
    ],
)
def test_what_is_no_long_result_passes(message: dict[str, Any]) -> None:
    assert limited_results([message], TABLE, "en") == [message]


def test_an_answer_of_ours_keeps_its_last_line() -> None:
    shown = within(f"{LONG}call record_response", 500)
    assert shown.endswith("missing.]\ncall record_response")
    assert estimate_tokens(shown) <= 500
    assert within("short\nend", 500) == "short\nend"


def test_the_tools_to_try_first_come_first() -> None:
    offered = ("juggle", "web_search", "mcp__memory__search_memory", "a_tool", "perplexity_ask")
    assert first_to_try(offered, TABLE) == (
        "mcp__memory__search_memory",
        "perplexity_ask",
        "web_search",
        "juggle",
        "a_tool",
    )
