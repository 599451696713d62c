"""The prompt files, and that no text breaks out of its block."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.errors import ConfigError
from rayapp.inference.chat.rules.answers import ANSWERS
from rayapp.inference.ports import HELPERS, HelperName, Message
from rayapp.inference.prompts.loader import (
    LANGUAGES,
    MAX_BLOCK_CHARS,
    RULES,
    PromptBook,
    data_block,
    inline,
    load_prompts,
    parse_prompt,
    plain,
)

VALUES: dict[str, Any] = {
    "messages": [Message("user", "שלום"), Message("assistant", "hi\nthere")],
    "bullets": 3,
    "known": ["דנה גרה בחיפה"],
    "context": [],
    "texts": ["a", "b"],
}


def values(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: VALUES.get(name, f"text of {name} / טקסט") for name in names}


@pytest.mark.parametrize("name", HELPERS)
def test_both_languages_ask_the_same(name: HelperName) -> None:
    he, en = (load_prompts().get(name, language).head for language in LANGUAGES)
    assert (he.variables, he.answer, he.version) == (en.variables, en.answer, en.version)
    # The same answer takes more tokens in Hebrew.
    assert he.max_tokens >= en.max_tokens


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", HELPERS)
def test_every_variable_stands_in_a_block_and_data_is_said_to_be_data(
    name: HelperName, language: Any
) -> None:
    prompt = load_prompts().get(name, language)
    system, user = prompt.render(values(prompt.head.variables))
    assert system.content.endswith(RULES[language])
    assert (system.role, user.role) == ("system", "user")
    outside = re.sub(r"(?s)\[DATA (\w+) (\w+)\]\n.*?\n\[END \1 \2\]", "", user.content)
    assert outside.strip() == ""
    hebrew = len(re.findall("[א-ת]", system.content))
    assert (hebrew > 100) == (language == "he")


@pytest.mark.parametrize("name", HELPERS)
def test_the_shape_asked_for_is_the_shape_that_is_read(name: HelperName) -> None:
    """The JSON of a prompt names fields of its answer, and all that are required."""
    for language in LANGUAGES:
        prompt = load_prompts().get(name, language)
        system = prompt.render(values(prompt.head.variables))[0].content
        answer = ANSWERS[prompt.head.answer]
        if answer is str:
            assert prompt.json_schema is None
            continue
        assert prompt.json_schema is not None
        for field in prompt.json_schema["properties"]:
            assert f'"{field}"' in system


def test_other_variables_than_the_named_ones_are_a_defect() -> None:
    prompt = load_prompts().get("tool_result_summary", "en")
    for wrong in ({}, {"text": "a", "more": "b"}):
        with pytest.raises(ConfigError, match="tool_result_summary"):
            prompt.render(wrong)


def test_a_book_without_a_prompt_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tool_result_summary\.en"):
        PromptBook({})


HEAD = """---
name: tool_result_summary
version: 1
language: en
answer: history_summary
max_tokens: 100
temperature: 0.0
variables: [text]
---
"""
FILE = "tool_result_summary.en.jinja"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (FILE, "no front matter"),
        (FILE, HEAD + "no user message"),
        (FILE, HEAD + "s\n=== user ===\n{{ other }}\n"),
        (FILE, HEAD + "s\n=== user ===\n{{ text \n"),
        (FILE, HEAD.replace("history_summary", "poem") + "s\n=== user ===\n{{ text }}\n"),
        (FILE, HEAD.replace("100", "1") + "s\n=== user ===\n{{ text }}\n"),
        ("merge_duplicates.en.jinja", HEAD + "s\n=== user ===\n{{ text }}\n"),
    ],
)
def test_a_bad_file_is_named(file: str, text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(file)):
        parse_prompt(file, text)


@pytest.mark.parametrize(
    "escape",
    ["{{ text.__class__.__mro__ }}", "{{ text.format.__globals__ }}", "{{ ''.__class__ ~ text }}"],
)
def test_a_template_reaches_nothing_but_its_variables(escape: str) -> None:
    with pytest.raises(ConfigError):
        parse_prompt(FILE, HEAD + f"s\n=== user ===\n{escape}\n").render({"text": "x"})


HOSTILE = st.text(max_size=60) | st.lists(
    st.sampled_from(
        ["[END text ", "[DATA text ", "]", "\n", "[ /END", "0123456789abcdef", "<|im_start|>",
         "<|", "|>", "[INST]", "<<SYS>>", "\u202e", "\u2028", "\r", "{{ 7 * 7 }}",
         "{% raw %}", "התעלם"]
    ),
    max_size=12,
).map("".join)  # fmt: skip
MARK = re.compile(r"\[\s*/?\s*(?:DATA|END)\b", re.IGNORECASE)


@given(HOSTILE)
def test_no_text_breaks_out_of_its_block(text: str) -> None:
    block = data_block(text, "text")
    first, *body, last = block.split("\n")
    code = first.removeprefix("[DATA text ").removesuffix("]")
    assert last == f"[END text {code}]"
    inside = "\n".join(body)
    assert MARK.search(inside) is None
    assert code not in inside
    assert not re.search(r"<\|\w|\w\|>|\[/?INST\]|<</?SYS>>|[\u202a-\u202e\u2066-\u2069]", inside)


@given(HOSTILE)
def test_a_text_is_never_run_as_a_template(text: str) -> None:
    prompt = load_prompts().get("tool_result_summary", "en")
    assert prompt.render({"text": text})[1].content == data_block(text, "text")


@given(HOSTILE)
def test_a_value_within_a_sentence_stays_one_line_without_marks(text: str) -> None:
    value = inline(text)
    assert "\n" not in value
    assert MARK.search(value) is None


def test_what_is_left_out_is_said() -> None:
    block = data_block("א" * (MAX_BLOCK_CHARS + 5), "text")
    assert "[… 5 more characters left out]" in block


def test_quotes_and_signs_of_a_text_stay_as_they_are() -> None:
    text = 'ד"ר כהן: a < b && c > d, {"x": 1} & more'
    assert text in data_block(text, "text")


@pytest.mark.parametrize("text", ["[" + " " * 200_000 + "x", "[" + " \n" * 100_000 + "א"])
def test_a_bracket_before_many_spaces_is_read_once(text: str) -> None:
    """Tried again from every space, this would not end within the time of a test."""
    assert plain(text) == text
