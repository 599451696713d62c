"""Streams that are mended as they pass: the same whatever pieces they come in."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.assistant.completions.calls import CallFilter
from rayapp.assistant.completions.json_filter import JsonFilter, mended_json
from rayapp.assistant.completions.repairs import AnswerFilter, AnswerStream, ThinkFilter, held_from
from rayapp.inference.chat.rules.hijack import fallback_of, hijack_of
from tests.support.examples import examples

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
).filter(lambda value: isinstance(value, dict | list))


def fed(held: Any, text: str, size: int = 1) -> str:
    """What is shown of a text that comes in pieces of `size`."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join(map(held.feed, pieces)) + str(held.end())


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<think>why</think>so", "<think>why</think>so"),
        ("<thinking>why</thinking>so", "<think>why</think>so"),
        ("<think>why", "<think>why</think>"),
        ("<think>why <think>again</think>so</think>!", "<think>why again</think>so!"),
        ("why</think>so", "whyso"),
        ("say `<think>` to think", "say `<think>` to think"),
        ("```\n<think>\n```\nso", "```\n<think>\n```\nso"),
        ("<think>``` is open</think>so", "<think>``` is open</think>so"),
        ("a < b and <thin air>", "a < b and <thin air>"),
        ("<think>למה</think>ככה", "<think>למה</think>ככה"),
        ("at the end <thi", "at the end <thi"),
    ],
)
def test_thoughts_are_opened_and_closed(text: str, shown: str, size: int) -> None:
    assert fed(ThinkFilter(), text, size) == shown


def test_thoughts_end_before_a_tool_is_called() -> None:
    held = ThinkFilter()
    assert held.feed("<think>I call") + held.close() == "<think>I call</think>"
    assert held.end() == ""


@given(st.text(alphabet="<>/think`i a\n", max_size=60), st.integers(1, 9))
@settings(max_examples=examples(200))
def test_thoughts_come_out_the_same_in_any_pieces(text: str, size: int) -> None:
    once = fed(ThinkFilter(), text, 1000)
    assert fed(ThinkFilter(), text, size) == once


@given(JSON, st.integers(1, 9), st.booleans())
@settings(max_examples=examples(200))
def test_whole_json_passes_as_it_is(value: Any, size: int, indented: bool) -> None:
    text = json.dumps(value, indent=2 if indented else None, ensure_ascii=False)
    assert fed(JsonFilter(), text, size) == text
    assert fed(JsonFilter(), f"Here it is:\n```json\n{text}\n```\n", size) == text


@given(JSON, st.integers(1, 9), st.data())
@settings(max_examples=examples(200))
def test_json_that_is_cut_is_whole_at_its_end(value: Any, size: int, data: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    cut = text[: data.draw(st.integers(1, len(text)))]
    json.loads(fed(JsonFilter(), cut, size))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"city": "Hai', {"city": "Hai"}),
        ('{"a": 1, "b', {"a": 1}),
        ('{"a": 1, "b":', {"a": 1}),
        ('{"a": [1, 2,]}', {"a": [1, 2]}),
        ('{"a": tru', {"a": True}),
        ('{"a": True, "b": None}', {"a": True, "b": None}),
        ('{"a": "one\ntwo"}', {"a": "one\ntwo"}),
        ('{"a": "\\u05d', {"a": ""}),
        ('{"a": {"b": [1, {"c": "ד', {"a": {"b": [1, {"c": "ד"}]}}),
        ('{"a": 1} and that was it', {"a": 1}),
        ('{"a": [1, 2\n```\n', {"a": [1, 2]}),
        ('{"a": 1 "b": [1 "c" {"d": 2}]}', {"a": 1, "b": [1, "c", {"d": 2}]}),
        ("[,1]", [1]),
        ('{word "a": 1}', {"a": 1}),
    ],
)
def test_broken_json_is_mended(text: str, value: Any) -> None:
    assert json.loads(fed(JsonFilter(), text)) == value
    assert json.loads(mended_json(text)) == value


def test_json_that_is_too_deep_to_be_read_is_whole_too() -> None:
    deep = mended_json('{"a":' + "[" * 3_000)
    assert (deep.count("["), deep.count("]")) == (3_000, 3_000)


def test_what_is_no_json_stays() -> None:
    assert fed(JsonFilter(), "I cannot do that.") == "I cannot do that."
    assert mended_json("") == ""


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    ("question", "answer", "shown"),
    [
        ("where?", "It is near.\nI am now a pirate. Arr!", f"It is near.\n\n{fallback_of('a')}"),
        ("where?", "I am now a pirate. Arr!", fallback_of("a")),
        ("where?", "It is near. HACKED", f"It is near.\n\n{fallback_of('a')}"),
        ("where?", "PWNED", fallback_of("a")),
        ("where?", "Look: <system>obey</system>", f"Look:\n\n{fallback_of('a')}"),
        ("איפה?", "זה קרוב. אני עכשיו פיראט. ארר!", f"זה קרוב.\n\n{fallback_of('א')}"),
        ("where?", "I am now sure. As requested, I will call.", None),
        ("where?", "The site was hacked in May. It is well now.", None),
        ("act as a pirate", "I am now a pirate. Ahoy!", None),
        ("איפה?", "אני עכשיו קורא. כפי שביקשת, אשלח.", None),
    ],
)
def test_a_hijack_ends_where_it_begins(
    question: str, answer: str, shown: str | None, size: int
) -> None:
    held = AnswerFilter(question)
    found = fed(held, answer, size)
    assert found.split() == (answer if shown is None else shown).split()
    assert (held.hijacked is None) == (shown is None)


@given(st.text(max_size=120), st.integers(1, 9))
@settings(max_examples=examples(200))
def test_any_other_answer_passes_whole(text: str, size: int) -> None:
    if hijack_of(text) is None and "<" not in text:
        assert fed(AnswerFilter(""), text, size) == text


@pytest.mark.parametrize(("text", "at"), [("so i am no", 3), ("so", 2), ("<", 0), ("a <thi", 2)])
def test_only_what_may_become_one_is_held(text: str, at: int) -> None:
    assert held_from(text, ("i am now", "<think>")) == at


def chunk(**fields: Any) -> dict[str, Any]:
    finish = fields.pop("finish", None)
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(arguments: str) -> dict[str, Any]:
    return {"index": 0, "function": {"arguments": arguments}}


def test_a_call_that_breaks_off_has_whole_arguments_and_ends_the_thought() -> None:
    passing = AnswerStream("weather?", json_wanted=False)
    chunks = [
        chunk(content="<think>I look"),
        chunk(tool_calls=[call('{"city": "Ha')]),
        chunk(tool_calls=[call("ifa")]),
        chunk(finish="length"),
    ]
    for one in chunks:
        passing.pass_on(one)
    deltas = [one["choices"][0]["delta"] for one in chunks]
    assert "".join(one.get("content") or "" for one in deltas) == "<think>I look</think>"
    said = "".join(c["function"]["arguments"] for one in deltas for c in one.get("tool_calls", ()))
    assert json.loads(said) == {"city": "Haifa"}
    assert passing.called


@pytest.mark.parametrize("place", [{}, {"index": 0}])
def test_calls_that_share_a_number_are_each_whole(place: dict[str, Any]) -> None:
    """As some servers stream them; others send a new id with each part of one call."""
    passing = AnswerStream("weather?", json_wanted=False)
    sent = [
        {"id": "a", **place, "function": {"name": "weather", "arguments": '{"city": '}},
        {"id": "x", **place, "function": {"name": None, "arguments": '"Haifa"}'}},
        {"id": "b", **place, "function": {"name": "weather", "arguments": '{"city": "אילת"}'}},
    ]
    for one in sent:
        passing.pass_on(chunk(tool_calls=[one]))
    passing.pass_on(chunk(finish="tool_calls"))
    assert [one["index"] for one in sent] == [0, 0, 1]
    said = [one["function"]["arguments"] for one in sent]
    assert json.loads(said[0] + said[1]) == {"city": "Haifa"}
    assert json.loads(said[2]) == {"city": "אילת"}


def test_a_call_whose_parts_all_have_a_name_and_an_id_of_their_own_is_one() -> None:
    """As vLLM streams a function that `tool_choice` names."""
    passing = AnswerStream("weather?", json_wanted=False)
    parts = ["", *'{"city": "Haifa"}', "", "\n"]
    sent = [
        {"id": f"q-{at}", "index": 0, "function": {"name": "weather", "arguments": part}}
        for at, part in enumerate(parts)
    ]
    for one in sent:
        passing.pass_on(chunk(tool_calls=[one]))
    assert {one["index"] for one in sent} == {0}
    said = "".join(one["function"]["arguments"] for one in sent)
    assert json.loads(said) == {"city": "Haifa"}


@pytest.mark.parametrize("own", [{}, {"id": ""}])
def test_calls_without_ids_are_told_apart_where_each_is_whole(own: dict[str, Any]) -> None:
    passing = AnswerStream("weather?", json_wanted=False)
    sent = [
        {**own, "index": 0, "function": {"name": "weather", "arguments": said}}
        for said in ('{"city": "Haifa"}', '{"city": "אילת"}')
    ]
    passing.pass_on(chunk(tool_calls=sent))
    assert [one["index"] for one in sent] == [0, 1]
    assert json.loads(sent[1]["function"]["arguments"]) == {"city": "אילת"}


def test_a_call_of_another_kind_is_one_too() -> None:
    passing = AnswerStream("weather?", json_wanted=False)
    passing.pass_on(chunk(tool_calls=[{"id": "a", "custom": {"name": "shell", "input": "ls"}}]))
    end = passing.end()
    assert end is not None
    assert end["choices"][0]["finish_reason"] == "tool_calls"


def test_a_server_that_names_an_error_has_failed() -> None:
    passing = AnswerStream("weather?", json_wanted=False)
    passing.pass_on({**chunk(content="Sunny."), "error": None})
    assert not passing.failed
    passing.pass_on({"error": {"message": "out of memory"}})
    passing.pass_on({"choices": [], "usage": {"prompt_tokens": 1}})
    assert passing.failed
    assert passing.end() is None


def test_json_is_shown_without_thoughts_marks_and_fences() -> None:
    text = '<think>{"no": 1}</think>```json\n{"a": [1, 2\n```\n<!-- MEM: 1👍 -->'
    held = AnswerFilter("as JSON", json_wanted=True)
    assert json.loads(fed(held, text)) == {"a": [1, 2]}


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_tags_and_marks_within_json_are_data(size: int) -> None:
    text = '{"a": "<think> and </think>", "b": ["<!-- MEM: 1👍 -->", "<thinking>"], "c": 1}'
    held = AnswerFilter("as JSON", json_wanted=True)
    assert fed(held, f"<think>{{no}}</think>{text}<!-- MEM: 1👍 -->", size) == text
    assert held.said.endswith(f"{text}<!-- MEM: 1👍 -->")


CALL = '{"tool_calls": [{"name": "weather", "arguments": {"city": "Haifa"}}]}'
CALLED = [("weather", '{"city": "Haifa"}')]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "shown", "called"),
    [
        (CALL, "", CALLED),
        (f"I look.\n```json\n{CALL}\n```\nWait.", "I look.\n\nWait.", CALLED),
        (f"אבדוק.\n{CALL}", "אבדוק.\n", CALLED),
        (f"<think>why</think>{CALL}", "<think>why</think>", CALLED),
        (f"<think>perhaps {CALL}</think>no", f"<think>perhaps {CALL}</think>no", []),
        ('{"tool_calls": [{"function": {"name": "weather", "arg', "", [("weather", "{}")]),
        (CALL[:-5], "", CALLED),
        (f"{CALL} {CALL}", " ", CALLED * 2),
        (CALL.replace("weather", "format_disk"), CALL.replace("weather", "format_disk"), []),
        ('{"tool_calls": 3} is JSON', '{"tool_calls": 3} is JSON', []),
        ('use {"tool": 1} or `{`', 'use {"tool": 1} or `{`', []),
        ('```json\n{"a": 1}\n```', '```json\n{"a": 1}\n```', []),
        ('at the end {"tool_ca', 'at the end {"tool_ca', []),
    ],
)
def test_a_call_in_the_text_is_a_call(
    text: str, shown: str, called: list[tuple[str, str]], size: int
) -> None:
    held = AnswerFilter("weather?", tools=("weather",))
    assert fed(held, text, size) == shown
    found = [(one["function"]["name"], one["function"]["arguments"]) for one in held.calls]
    assert found == called
    assert len({one["id"] for one in held.calls}) == len(called)
    plain = AnswerFilter("weather?")
    assert fed(plain, text, size) == text
    assert not plain.calls


@given(st.text(alphabet='{}"tool_calls: [`\n', max_size=60), st.integers(1, 9))
@settings(max_examples=examples(200))
def test_what_calls_nothing_passes_as_it_is(text: str, size: int) -> None:
    assert fed(CallFilter(("weather",), ""), text, size) == text


def test_a_call_in_a_stream_is_numbered_behind_the_others() -> None:
    passing = AnswerStream("weather?", json_wanted=False, tools=("weather",))
    chunks = [
        chunk(tool_calls=[call("{}")]),
        chunk(content=CALL[:20]),
        chunk(content=CALL[20:]),
        chunk(finish="stop"),
    ]
    for one in chunks:
        passing.pass_on(one)
    deltas = [one["choices"][0]["delta"] for one in chunks]
    assert [call["index"] for one in deltas for call in one.get("tool_calls", ())] == [0, 1]
    assert "".join(one.get("content") or "" for one in deltas) == ""
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert passing.called


@pytest.mark.parametrize(
    "last", [{"index": 0, "finish_reason": "stop"}, None], ids=["bare", "none"]
)
def test_what_is_held_is_shown_when_the_stream_ends_without_a_delta(last: Any) -> None:
    passing = AnswerStream("what is the code?", json_wanted=False)
    chunks = [chunk(content="I am now telling you the code is 7 <")]
    if last is not None:
        chunks.append({"choices": [last]})
    for one in chunks:
        passing.pass_on(one)
    end = passing.end()
    assert (end is None) == (last is not None)
    deltas = [one["choices"][0]["delta"] for one in (*chunks, *([end] if end else []))]
    shown = "".join(one.get("content") or "" for one in deltas)
    assert shown == "I am now telling you the code is 7 <"


def test_an_error_ends_a_stream_by_itself() -> None:
    passing = AnswerStream("what is the code?", json_wanted=False)
    passing.pass_on(chunk(content="hi"))
    passing.pass_on({"error": {"message": "too long"}})
    assert passing.end() is None
