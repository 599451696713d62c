"""From a tool's answer to a memory, or to the reason why it becomes none."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.assistant.tool_results.rules import (
    CATEGORIES,
    Prepared,
    ToolResult,
    as_text,
    category_of,
    cut,
    is_memory_tool,
    label,
    label_language,
    prepare,
)
from rayapp.core.settings.model import ToolResultSettings
from rayapp.memory.item import SourceType
from rayapp.memory.rules.creation import TextLimits, check_new
from rayapp.memory.tiers import Tier

LIMITS = ToolResultSettings()
ENGLISH = "The light rail between Haifa and Nazareth is being built in sections. " * 3
HEBREW = "הרכבת הקלה בין חיפה לנצרת נבנית בשלבים, והקטע הראשון ייפתח בשנים הקרובות. " * 3
SENTENCES = st.lists(
    st.sampled_from(["The rail opens soon.", "הרכבת תיפתח בקרוב!", "How much? ", "\n\n", "word "]),
    min_size=1,
    max_size=2_000,
).map(" ".join)


def result(text: str = ENGLISH, **fields: Any) -> ToolResult:
    return ToolResult(tool_name="tavily_search", text=text, **fields)


def kept(prepared: Prepared) -> Any:
    assert prepared.new is not None, prepared.skipped
    return prepared.new


def test_a_result_becomes_a_memory_with_its_provenance() -> None:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    new = kept(
        prepare(
            result(
                query="light rail",
                conversation_id="conv-7",
                message_id="m-1",
                tool_run_id="run-1",
                entities=("חיפה", "Nazareth"),
                linked_docs=("doc-1",),
                created_at=at,
            ),
            LIMITS,
        )
    )
    assert (new.tier, new.importance, new.confidence) == (Tier.WORKING, 0.6, 0.7)
    assert new.source.type is SourceType.TOOL
    assert (new.source.tool_name, new.source.tool_run_id) == ("tavily_search", "run-1")
    assert (new.source.conversation_id, new.source.message_id) == ("conv-7", "m-1")
    hashed = next(tag for tag in new.tags if tag.startswith("content_hash:"))
    assert len(hashed) == len("content_hash:") + 16
    assert set(new.tags) == {
        "tool:tavily_search",
        "tool_category:search",
        hashed,
        "conversation:conv-7",
        "linked_doc:doc-1",
        "entity:חיפה",
        "entity:Nazareth",
    }
    assert (new.entities, new.created_at) == (("חיפה", "Nazareth"), at)
    check_new(new, TextLimits(text=100_000, memory_bank=5_000))


@pytest.mark.parametrize(
    ("query", "text", "given", "head"),
    [
        ("light rail", HEBREW, None, "Result of web search (tavily_search) for: light rail"),
        ("רכבת קלה", ENGLISH, None, "תוצאה של חיפוש באינטרנט (tavily_search), לשאלה: רכבת קלה"),
        ("", HEBREW, None, "תוצאה של חיפוש באינטרנט (tavily_search)"),
        ("", ENGLISH, None, "Result of web search (tavily_search)"),
        ("12345", HEBREW, None, "תוצאה של חיפוש באינטרנט (tavily_search), לשאלה: 12345"),
        ("light rail", ENGLISH, "he", "תוצאה של חיפוש באינטרנט (tavily_search), לשאלה: light rail"),
    ],
)
def test_the_label_speaks_the_language_of_the_conversation(
    query: str, text: str, given: Any, head: str
) -> None:
    new = kept(prepare(result(text, query=query, language=given), LIMITS))
    assert new.text.splitlines()[0] == head


def test_a_label_is_one_line_without_secrets() -> None:
    line = label("t", "search", "mail\ndana@example.com\x07 " + "x " * 500, "en")
    assert "\n" not in line
    assert "dana" not in line
    assert len(line) < 300
    assert label_language(None, "", "") == "en"


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("tavily_search", "search"),
        ("perplexity-ask", "research"),
        ("datagov_query", "official_data"),
        ("israelGovSearch", "official_data"),
        ("mcp__docling__convert_document", "documents"),
        ("webSearch", "search"),
        ("run_python", "code"),
        ("weather", "other"),
        ("researcher", "other"),
    ],
)
def test_whole_words_of_a_name_say_the_category(name: str, category: str) -> None:
    assert category_of(name) == category
    assert category in CATEGORIES


def test_a_category_of_the_caller_stands() -> None:
    new = kept(prepare(result(category="weather"), LIMITS))
    assert "tool_category:weather" in new.tags
    assert new.text.startswith("Result of weather (tavily_search)")


@pytest.mark.parametrize(
    "name", ["search_memory", "memory.search_memory", "mcp__rayapp__add-to-memory-bank"]
)
def test_answers_of_the_memory_itself_are_not_remembered_again(name: str) -> None:
    assert is_memory_tool(name)
    prepared = prepare(replace(result(), tool_name=name), LIMITS)
    assert (prepared.new, prepared.skipped) == (None, "memory_tool")


def test_other_tools_are_not_taken_for_the_memory() -> None:
    assert not is_memory_tool("search_memory_prices")


def test_a_failure_is_not_kept() -> None:
    assert prepare(result(failed=True), LIMITS).skipped == "failed"


@pytest.mark.parametrize(("length", "skipped"), [(99, "too_short"), (100, None)])
@pytest.mark.parametrize("letter", ["a", "א"])
def test_short_answers_are_not_kept(length: int, skipped: str | None, letter: str) -> None:
    assert prepare(result(letter * length), LIMITS).skipped == skipped


def test_marks_do_not_make_an_answer_long_enough() -> None:
    prepared = prepare(result("dana@example.com " * 20), LIMITS)
    assert (prepared.skipped, prepared.redacted) == ("too_short", {"email": 20})


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (ENGLISH, "[cut: {kept:,} of {of:,} characters kept]"),
        (HEBREW, "[קוצר: נשמרו {kept:,} מתוך {of:,} תווים]"),
    ],
)
def test_a_long_answer_is_cut_and_says_so(text: str, note: str) -> None:
    prepared = prepare(result(text * 100), LIMITS)
    new = kept(prepared)
    assert prepared.truncated
    assert prepared.kept_chars <= LIMITS.max_chars
    assert prepared.original_chars == len((text * 100).strip())
    assert new.text.endswith(
        "\n\n" + note.format(kept=prepared.kept_chars, of=prepared.original_chars)
    )
    assert new.text.split("\n\n")[1][-1] in ".!"


def test_a_whole_answer_has_no_note() -> None:
    prepared = prepare(result(), LIMITS)
    assert not prepared.truncated
    assert kept(prepared).text == f"Result of web search (tavily_search)\n\n{ENGLISH.strip()}"


def test_equal_answers_are_one_memory_whoever_asked() -> None:
    one = kept(prepare(result(query="a", conversation_id="c-1"), LIMITS))
    other = kept(prepare(result(f"  {ENGLISH}\r\n", query="ב", conversation_id="c-2"), LIMITS))
    different = kept(prepare(result(ENGLISH + "Really."), LIMITS))
    assert one.memory_id == other.memory_id != different.memory_id


def test_a_secret_at_the_end_of_what_is_looked_at_is_not_kept_in_half() -> None:
    """The address lies across the place where the reading stops; marks make room for the rest."""
    filler = "dana@example.com " * 300
    size = round(LIMITS.max_chars * 1.2)
    text = filler + "word " * ((size - len(filler) - 8) // 5)
    text += "x" * (size - len(text) - 8) + " somebody.private@example.com " + "word " * 5_000
    new = kept(prepare(result(text), LIMITS))
    assert "somebody" not in new.text


@given(SENTENCES, st.integers(min_value=50, max_value=2_000))
def test_a_cut_keeps_a_beginning_and_no_half_word(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert len(short) <= limit
    assert text.startswith(short)
    if len(text) > limit:
        after = text[len(short) : len(short) + 1]
        assert after.isspace() or short[-1:].isspace() or short[-1] in ".!?" or not short


@given(st.text(max_size=3_000), st.text(max_size=100))
def test_whatever_a_tool_says_may_be_stored(text: str, query: str) -> None:
    prepared = prepare(result(text + " " + ENGLISH, query=query), LIMITS)
    check_new(kept(prepared), TextLimits(text=100_000, memory_bank=5_000))
    assert LIMITS.min_chars <= prepared.kept_chars <= LIMITS.max_chars


@pytest.mark.parametrize("filler", [ENGLISH, HEBREW])
def test_secrets_within_json_are_not_kept(filler: str) -> None:
    """A line break in a string of JSON is written with a letter, which is none of the secret's."""
    secrets = ["ghp_" + "a1B2" * 9, "sk-proj-abcDEF123456ghiJKL789", "052-1234567"]
    output = {
        "stdout": "\n".join([filler, *secrets]),
        "body": '{"password": "Qw3rty \\"x\\""}',
        "password": "two words",
    }
    prepared = prepare(result(as_text(output)), LIMITS)
    assert dict(prepared.redacted) == {"api_key": 2, "phone": 1, "secret": 2}
    assert not [one for one in [*secrets, "Qw3", "words"] if one in kept(prepared).text]
