"""Marks of memories in answers: read in every spelling, taken out without losing a word."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rayapp.assistant.conversations import rules
from rayapp.assistant.conversations.rules import (
    INSTRUCTION_EN,
    INSTRUCTION_HE,
    MOST_MARKS,
    MOST_READ,
    code_spans,
    instruction,
    read_attribution,
    resolve,
)
from rayapp.memory.item import Outcome

W, F, U = Outcome.WORKED, Outcome.FAILED, Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("body", "marks"),
    [
        (" 1👍 2👎 3➖ ", {1: W, 2: F, 3: U}),
        ("1👍,2👎,3➖", {1: W, 2: F, 3: U}),
        (" 1 👍 ; 2 👎 | 3 ➖", {1: W, 2: F, 3: U}),
        ("1👍🏽 2👎🏿 3➖\ufe0f", {1: W, 2: F, 3: U}),
        ("1\u200f👍 \u200e2👎", {1: W, 2: F}),
        ("1+ 2- 3=", {1: W, 2: F, 3: U}),
        ("1+1 2-", {1: W, 2: F}),
        ("1: 👍, 2: 👎", {1: W, 2: F}),
        ("#1👍 [2]👎", {1: W, 2: F}),
        ("1, 2 👍 3👎", {1: W, 2: W, 3: F}),
        ("1-3👍", {1: W, 3: W}),
        ("1👍 1👎", {1: F}),
        ("12👍 100👎", {12: W, 100: F}),
        ("12345👍 2👍", {2: W}),
        ("1✅ 2❌", {1: W, 2: F}),
        ("1👍 (helpful), 2👎 הטעה", {1: W, 2: F}),
        ("", {}),
        (" none ", {}),
        ("0👍", {0: W}),
        ("٣👍", {3: W}),
    ],
)
@pytest.mark.parametrize("name", ["MEM", "mem", " MEM "])
def test_marks_are_read(name: str, body: str, marks: dict[int, Outcome]) -> None:
    found = read_attribution(f"The answer. תשובה.\n<!--{name}:{body}-->")
    assert found.marks == marks
    assert found.text == "The answer. תשובה."


@pytest.mark.parametrize(
    ("answer", "text", "marks"),
    [
        ("a <!-- MEM: 1👍 --> b <!-- MEM: 2👎 -->", "a  b", {1: W, 2: F}),
        ("a <!-- MEM: 1👍 2👎", "a", {1: W, 2: F}),
        ("a <!-- MEM: 1👍\nthe rest stays", "a the rest stays", {1: W}),
        ("<!-- MEM: 1👍 <!-- MEM: 2👎 -->", "", {1: W, 2: F}),
        ("שלום <!-- MEM: 1👍 --> עולם", "שלום  עולם", {1: W}),
        ("<!-- MEM: 2--->", "", {2: F}),
    ],
)
def test_comments_anywhere_are_taken_out(answer: str, text: str, marks: dict[int, Outcome]) -> None:
    found = read_attribution(answer)
    assert (found.text, found.marks) == (text, marks)


@pytest.mark.parametrize(
    "answer",
    [
        "```\n<!-- MEM: 1👍 -->\n```",
        "~~~html\n<!-- MEM: 1👍 -->\n~~~\ndone",
        "write `<!-- MEM: 1👍 -->` at the end",
        "כתוב ``<!-- MEM: 1👍 -->`` בסוף",
        "```\nunclosed <!-- MEM: 1👍 -->",
        "<!-- a note -->",
        "MEM: 1👍",
        "<!-- MEMO: 1👍 -->",
        "1👍",
        "  spaces stay  \n",
    ],
)
def test_what_is_no_mark_stays(answer: str) -> None:
    found = read_attribution(answer)
    assert (found.text, dict(found.marks)) == (answer, {})


def test_marks_after_code_are_read() -> None:
    found = read_attribution("```\n<!-- MEM: 1👍 -->\n```\n<!-- MEM: 2👎 -->")
    assert found.marks == {2: F}
    assert found.text == "```\n<!-- MEM: 1👍 -->\n```"


class CountedSpans(list[tuple[int, int]]):
    """Counts how often a span is looked at."""

    looks = 0

    def __getitem__(self, at: Any) -> Any:
        self.looks += 1
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for one in super().__iter__():
            self.looks += 1
            yield one


def test_spans_of_code_are_looked_at_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = 400
    answer = "`a` <!--MEM:1👍-->" * pieces
    spans = CountedSpans(code_spans(answer))
    assert len(spans) == pieces
    monkeypatch.setattr(rules, "code_spans", lambda _: spans)
    assert read_attribution(answer).marks == {1: W}
    assert spans.looks <= 5 * pieces


def test_spans_of_code_are_in_order_and_apart() -> None:
    text = "`a` b\n```\n`c` ``d``\n```\nשלום `ה`"
    spans = code_spans(text)
    assert [text[start:end] for start, end in spans] == ["`a`", "```\n`c` ``d``\n```", "`ה`"]


def test_more_marks_than_an_outcome_may_name_do_not_count() -> None:
    comments = "".join(f"<!-- MEM: {n}👍 {n + 1}👎 -->" for n in range(1, 3 * MOST_MARKS, 2))
    found = read_attribution(f"תשובה {comments}")
    assert (found.text, sorted(found.marks)) == ("תשובה", list(range(1, MOST_MARKS + 1)))
    again = read_attribution(f"{comments}<!-- MEM: 1👎 -->")
    assert again.marks[1] is F


def test_marks_far_before_the_end_are_text() -> None:
    far = f"<!-- MEM: 1👍 -->{'x' * MOST_READ}"
    assert read_attribution(far).text == far
    found = read_attribution(f"{far}<!-- MEM: 2👍 -->")
    assert (found.text, found.marks) == (far, {2: W})


def test_positions_resolve_through_what_was_shown() -> None:
    found = resolve({1: W, 2: F, 3: W, 9: W, 0: F}, {1, 2, 3})
    assert found.by_outcome == {W: (1, 3), F: (2,)}
    assert found.skipped == (0, 9)


def test_the_instruction_is_read_as_it_asks() -> None:
    for text in (INSTRUCTION_EN, INSTRUCTION_HE):
        assert read_attribution(text).marks == {1: W, 2: F, 3: U}
    assert instruction("he") == INSTRUCTION_HE
    assert instruction("en") == instruction("mixed") == INSTRUCTION_EN


PIECES = st.sampled_from(
    [
        "<!--",
        "-->",
        " MEM",
        ":",
        "1",
        "👍",
        "👎",
        "➖",
        "-",
        "+",
        "```",
        "`",
        "\n",
        "טקסט",
        " ",
        "x",
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join)))
@example("<!-- MEM:" + "1👍" * 2_000)
@example("<!--MEM:" * 200)
@example("9" * 5_000)
def test_reading_never_raises_and_only_takes_away(answer: str) -> None:
    found = read_attribution(answer)
    rest = iter(answer)
    assert all(letter in rest for letter in found.text)
    assert all(0 <= position <= 9_999 for position in found.marks)


WORDS = st.text(alphabet="abc אבג.,\n", min_size=1, max_size=60)


@given(WORDS, st.dictionaries(st.integers(1, 99), st.sampled_from("👍👎➖"), min_size=1), WORDS)
def test_taking_marks_out_never_loses_other_text(
    before: str, marks: dict[int, str], after: str
) -> None:
    body = " ".join(f"{position}{mark}" for position, mark in marks.items())
    found = read_attribution(f"{before}<!-- MEM: {body} -->{after}")
    assert "".join(found.text.split()) == "".join((before + after).split())
    assert set(found.marks) == set(marks)
