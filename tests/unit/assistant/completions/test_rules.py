"""What is read of a chat, what goes on to the model, and marks that nobody sees in a stream."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.assistant.completions.repairs import mend
from rayapp.assistant.completions.rules import Asked, MarkFilter, answer_of, asked_of, forwarded
from rayapp.assistant.conversations.rules import read_attribution
from rayapp.inference.ports import Message
from tests.support.examples import examples

HELLO = {"role": "user", "content": "hello"}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {}}}
NEWS = {"type": "function", "function": {"name": "news", "parameters": {}}}


def asked(*messages: dict[str, Any], conversation: str | None = None, **body: Any) -> Asked:
    plain = tuple(Message(one["role"], one.get("content") or "") for one in messages)
    return asked_of({"messages": list(messages), **body}, plain, conversation)


@pytest.mark.parametrize(
    ("header", "user", "wanted"),
    [("c-1", "u-1", "c-1"), (None, "u-1", "u-1"), (None, "dana@example.com", "dana@example.com")],
)
def test_who_names_the_conversation(header: str | None, user: str, wanted: str) -> None:
    assert asked(HELLO, conversation=header, user=user).conversation_id == wanted


def test_without_a_name_it_is_known_by_its_beginning() -> None:
    first = asked(HELLO).conversation_id
    later = asked(HELLO, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "so?"})
    assert later.conversation_id == first
    assert asked({"role": "user", "content": "שלום"}).conversation_id != first


def test_a_name_that_is_no_id_becomes_one() -> None:
    assert asked(HELLO, user="דנה").conversation_id.isascii(), "a header carries it"
    found = asked(HELLO, conversation="my chat / שיחה").conversation_id
    assert found == asked(HELLO, conversation="my chat / שיחה").conversation_id
    assert found.isalnum()


def test_the_same_question_after_the_same_words_is_the_same_turn() -> None:
    system = {"role": "system", "content": "It is noon."}
    late = {"role": "system", "content": "It is one."}
    assert asked(system, HELLO).message_id == asked(late, HELLO).message_id
    again = asked(HELLO, {"role": "assistant", "content": "hi"}, HELLO)
    assert again.message_id != asked(HELLO).message_id


def test_every_field_goes_on_and_only_the_system_message_changes() -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}]
    told = asked(
        {"role": "system", "content": "Be brief.", "name": "s"},
        {"role": "user", "content": "see"},
        temperature=0.2,
        response_format={"type": "json_object"},
    )
    told.body["messages"][1]["content"] = parts
    enriched = (Message("system", "Be brief.\n\nblock"), Message("user", "see"))
    found = forwarded(told, enriched, model="m", allowed=None)
    assert found["messages"] == [
        {"role": "system", "content": "Be brief.\n\nblock", "name": "s"},
        {"role": "user", "content": parts},
    ]
    assert found["temperature"] == 0.2
    assert found["response_format"] == {"type": "json_object"}
    assert found["model"] == "m"


def test_what_follows_the_question_stays_where_it_is() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    result = {"role": "tool", "tool_call_id": "1", "content": "sunny"}
    told = asked(HELLO, call, result, model="other", tools=[WEATHER])
    found = forwarded(
        told, (Message("system", "block"), Message("user", "hello")), model="m", allowed=None
    )
    assert found["messages"] == [{"role": "system", "content": "block"}, HELLO, call, result]
    assert found["model"] == "other"
    assert found["tools"] == [WEATHER]


@pytest.mark.parametrize(
    ("choice", "left"), [("auto", [NEWS]), (None, [NEWS]), ("required", [WEATHER, NEWS])]
)
def test_tools_that_memory_makes_needless_are_left_out(choice: Any, left: list[Any]) -> None:
    told = asked(HELLO, tools=[WEATHER, NEWS], tool_choice=choice)
    assert forwarded(told, told.told, model="m", allowed=("news",))["tools"] == left


def test_without_tools_nothing_says_how_to_call_them() -> None:
    told = asked(HELLO, tools=[WEATHER], tool_choice="auto", parallel_tool_calls=True)
    found = forwarded(told, told.told, model="m", allowed=())
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & found.keys()


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"content": "Haifa"}, "Haifa"),
        ({"content": None, "tool_calls": [{}]}, None),
        ({"content": " "}, None),
        ("nothing", None),
    ],
)
def test_what_ends_a_turn(message: Any, said: str | None) -> None:
    found = answer_of({"choices": [{"message": message}]})
    assert (found.content if found else None) == said


def test_marks_are_taken_out_of_a_whole_answer() -> None:
    message = {"content": "Haifa.\n<!-- MEM: 1👍 -->"}
    mend({"choices": [{"message": message}, "odd"]}, "where?", json_wanted=False)
    assert message["content"] == "Haifa."


def streamed(pieces: list[str]) -> str:
    held = MarkFilter()
    shown = "".join(map(held.feed, pieces)) + held.end()
    assert held.said == "".join(pieces)
    return shown


def test_thousands_of_blanks_go_through() -> None:
    """Each of them was looked at again for each that followed: a minute for two thousand."""
    blanks = "\n" * 10_000
    assert streamed(list(blanks)) == streamed([blanks]) == blanks


@pytest.mark.parametrize(
    "answer",
    [
        "Dana lives in Haifa.\n<!-- MEM: 1👍 2👎 -->",
        "דנה גרה בחיפה.\n\n<!-- MEM: 1👍 -->\n",
        "Haifa <!--MEM:1+-->",
        "Haifa\n<!-- MEM: 1👍",
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_no_piece_shows_a_mark(answer: str, size: int) -> None:
    pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
    assert streamed(pieces) == read_attribution(answer).text.rstrip()


@pytest.mark.parametrize("answer", ["a < b", "<p>hi</p>", "<!-- a comment -->", "x <", "<!-- ME"])
@pytest.mark.parametrize("size", [1, 3])
def test_what_only_looks_like_one_is_shown(answer: str, size: int) -> None:
    assert streamed([answer[at : at + size] for at in range(0, len(answer), size)]) == answer


@given(st.lists(st.text(alphabet="ab <!-M1👍\n", max_size=6), max_size=12))
@settings(max_examples=examples(300))
def test_however_it_is_cut_the_same_is_shown(pieces: list[str]) -> None:
    assert streamed(pieces) == streamed(["".join(pieces)])
