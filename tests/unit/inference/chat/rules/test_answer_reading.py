"""From an answer's text to the value that was asked for."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.inference.chat.rules.answers import (
    HistorySummary,
    MergedMemory,
    OutcomeJudgement,
    ProfileFindings,
    Unreadable,
    plain_text,
    read_answer,
)

GOOD = '{"outcome": "worked", "confidence": 0.9, "indicators": ["תודה!"], "reason": "x"}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"הנה התשובה: {GOOD} בהצלחה",
        f"[{GOOD}]",
        '{"result": ' + GOOD + "}",
        "{'outcome': 'worked', 'confidence': .9,}",
        '{"outcome": "failed", "confidence": 2} then: ' + GOOD,
        '{"outcome": "worked|failed", "confidence": 0.0}\n' + GOOD,
    ],
)
def test_a_judgement_is_read_in_every_dress(text: str) -> None:
    found = read_answer(text, OutcomeJudgement)
    assert isinstance(found, OutcomeJudgement)
    assert (found.outcome, found.confidence) == ("worked", 0.9)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "worked",
        "{}",
        '{"outcome": "great", "confidence": 0.9}',
        '{"outcome": "worked", "confidence": 1.5}',
        '{"outcome": "worked", "confidence": true}',
        '{"outcome": "worked", "confidence": NaN}',
        '{"outcome": "worked"}',
    ],
)
def test_what_does_not_fit_is_no_judgement(text: str) -> None:
    assert isinstance(read_answer(text, OutcomeJudgement), Unreadable)


def test_the_reason_holds_no_text_of_the_answer() -> None:
    found = read_answer('{"outcome": "סוד כמוס", "confidence": "secret"}', OutcomeJudgement)
    assert isinstance(found, Unreadable)
    assert "outcome" in found.reason
    assert "סוד" not in found.reason
    assert "secret" not in found.reason


def test_a_bare_array_fills_the_one_list() -> None:
    item = {"field": "name", "value": "דנה", "confidence": "high", "quote": "אני דנה"}
    found = read_answer(json.dumps([item], ensure_ascii=False), ProfileFindings)
    assert isinstance(found, ProfileFindings)
    assert found.items[0].value == "דנה"
    bullets = read_answer('["דנה עברה לחיפה"]', HistorySummary)
    assert bullets == HistorySummary(bullets=["דנה עברה לחיפה"])


def test_of_cut_json_the_finished_items_count() -> None:
    text = '{"items": [{"field": "name", "value": "Dana", "confidence": "high"}, {"field": "na'
    found = read_answer(text, ProfileFindings, cut=True)
    assert isinstance(found, ProfileFindings)
    assert [item.value for item in found.items] == ["Dana"]


def test_a_cut_value_never_counts() -> None:
    text = '{"same": true, "confidence": 1.0, "text": "Dana does not'
    found = read_answer(text, MergedMemory, cut=True)
    assert isinstance(found, MergedMemory)
    assert found.text == ""


def test_a_cut_text_is_no_answer() -> None:
    assert isinstance(read_answer("Dana does not", str, cut=True), Unreadable)
    assert read_answer("Dana does not eat fish.", str) == "Dana does not eat fish."


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("  דנה גרה בחיפה. \n", "דנה גרה בחיפה."),
        ("```\nDana\n```", "Dana"),
        ('"Dana lives here."', "Dana lives here."),
        ('"a" and "b"', '"a" and "b"'),
        ('צה"ל', 'צה"ל'),
        ("\u200fדנה\u200e", "דנה"),
    ],
)
def test_wrapping_of_plain_text_goes(text: str, plain: str) -> None:
    assert plain_text(text) == plain


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for answer in (OutcomeJudgement, ProfileFindings, HistorySummary, MergedMemory):
        assert isinstance(read_answer(text, answer), Unreadable | answer)
