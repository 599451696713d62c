"""JSON as models write it: what is read, what is refused, and that no answer costs seconds."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.inference.chat.rules.tolerant_json import MAX_CHARS, MAX_VALUES, json_values, parse_json
from tests.support.examples import examples

READ: list[tuple[str, Any]] = [
    ('{"a": 1,}', {"a": 1}),
    ("{'a': 'it's', 'b': True, 'c': None}", {"a": "it's", "b": True, "c": None}),
    ('```json\n{"a": [1, 2,]}\n```', {"a": [1, 2]}),
    ("Sure! Here:\n{\"a\": 1} hope it helps", {"a": 1}),
    ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
    ('{"a": "ד"ר כהן אמר "שלום""}', {"a": 'ד"ר כהן אמר "שלום"'}),
    ('{"a": "אמר "שלום", והלך", "b": 2}', {"a": 'אמר "שלום", והלך', "b": 2}),
    ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
    ('{"a": "x"\n"b": 2}', {"a": "x", "b": 2}),
    ("{outcome: worked, confidence: .8}", {"outcome": "worked", "confidence": 0.8}),
    ("{“א”: “ב”}", {"א": "ב"}),
    ('{"a": NaN, "b": undefined}', {"a": None, "b": None}),
    ('{"a": 1, // why\n "b": /* so */ 2}', {"a": 1, "b": 2}),
    ('{"a": [1, 2}', {"a": [1, 2]}),
    (r'{"p": "\d+ \u05e9 \ud83d\ude00 \ud800"}', {"p": "\\d+ ש 😀 \ufffd"}),
    ("see [brackets] and {braces} then {\"a\": 1}", {"a": 1}),
    ("[1, 2, 3]", [1, 2, 3]),
    ('{"n": 99999999999999999999}', {"n": 1e20}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), READ)
def test_what_models_write_is_read(text: str, value: Any) -> None:
    found = parse_json(text)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize("text", ["", "NOTHING", "אין", '"just words"', "12", "{a}", "[brackets]"])
def test_prose_is_no_json(text: str) -> None:
    assert parse_json(text) is None


CUT = '{"items": [{"v": "abc", "n": 1}, {"v": "de'


def test_half_a_value_is_no_value() -> None:
    found = parse_json(CUT)
    assert found is not None
    assert found.value == {"items": [{"v": "abc", "n": 1}]}
    assert "cut" in found.repairs


def test_half_a_value_is_kept_when_asked_for() -> None:
    found = parse_json(CUT, keep_cut=True)
    assert found is not None
    assert found.value["items"][1] == {"v": "de"}


@pytest.mark.parametrize(
    ("text", "repairs"),
    [
        ('{"a": 1}', ()),
        (' {"a": 1,} ', ("comma",)),
        ('```\n{"a": 1}\n```', ("fence",)),
        ('x {"a": True}', ("literal", "prose")),
    ],
)
def test_repairs_are_named(text: str, repairs: tuple[str, ...]) -> None:
    found = parse_json(text)
    assert found is not None
    assert found.repairs == repairs


def test_of_several_values_the_longest_then_the_last_counts() -> None:
    assert parse_json('{"x": 1} {"y": 2}').value == {"y": 2}  # type: ignore[union-attr]
    assert parse_json('{"long": "er"} {"y": 2}').value == {"long": "er"}  # type: ignore[union-attr]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip
DOCUMENTS = st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=5) | st.lists(
    JSON_VALUES, max_size=5
)


@given(DOCUMENTS, st.booleans())
def test_good_json_is_read_as_it_is(value: Any, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    found = parse_json(text)
    assert found is not None
    assert found.value == value


@given(DOCUMENTS, st.sampled_from(["```json\n%s\n```", "כן, הנה: %s", "<think>hm</think>\n%s\n"]))
def test_good_json_is_found_in_its_wrapping(value: Any, around: str) -> None:
    found = parse_json(around % json.dumps(value, ensure_ascii=False))
    assert found is not None
    assert found.value == value


SIGNS = [*"{}[]:,\"\\'`/*“”1ae \n", "ש", "tru", "\\u05", "e9"]


@settings(max_examples=examples(300), deadline=None)
@given(
    st.text(max_size=200) | st.lists(st.sampled_from(SIGNS), max_size=60).map("".join),
    st.booleans(),
)  # fmt: skip
def test_any_text_gives_strict_json_or_nothing(text: str, keep_cut: bool) -> None:
    for found in json_values(text, keep_cut=keep_cut):
        assert 0 <= found.start < found.end <= len(text)
        encoded = json.dumps(found.value, ensure_ascii=False, allow_nan=False).encode()
        assert json.loads(encoded) == found.value


HOSTILE = {
    "deep arrays": "[" * 40_000,
    "deep objects": '{"a":' * 20_000,
    "braces": "{ " * 30_000,
    "open quotes": "{'" * 30_000,
    "many": "{}" * 30_000,
    "inner quotes": '{"a":"' + '" ' * 30_000,
    "inner commas": '["' + '",' * 30_000,
    "escapes": '{"a":"' + "\\u" * 30_000,
    "fences": "```json\n" * 8_000,
    "digits": "[" + "1" * 60_000,
    "long": '{"a": "' + "x" * (MAX_CHARS * 2),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_work_grows_with_the_length_only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts how often the reader looks at the text, for a text and for half of it."""
    from rayapp.inference.chat.rules import tolerant_json

    looks = 0
    peek = tolerant_json._Reader._peek

    def counted(self: Any) -> str:
        nonlocal looks
        looks += 1
        return peek(self)

    monkeypatch.setattr(tolerant_json._Reader, "_peek", counted)
    text = HOSTILE[name][:MAX_CHARS]
    assert len(json_values(text[: len(text) // 2])) <= MAX_VALUES
    half, looks = looks, 0
    json_values(text)
    assert looks <= 2.2 * half + 200
