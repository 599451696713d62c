"""The whole decision matrix of tool gating, and what may never change with it."""

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.assistant.gating.rules.decision import (
    ATTACHMENT_TOOLS,
    KEPT_TOOLS,
    MEMORY_TOOLS,
    TIME_TOOLS,
    decide_tool_gating,
)
from rayapp.assistant.gating.rules.intents import NO_NEEDS, ToolNeeds, tool_needs
from rayapp.assistant.records import GatingDecision
from rayapp.search.requests import ConfidenceLabel

OFFERED = (
    "tavily_search",
    "search_memory",
    "send_email",
    "get_current_time",
    "web_search",
    "docling_convert",
    "datagov_query",
    "record_response",
)
ESSENTIAL = ("search_memory", "get_current_time", "docling_convert", "record_response")
CONFIDENCES: tuple[ConfidenceLabel, ...] = ("high", "medium", "low")
COUNTS = (0, 1, 2, 3, 4, 50)
BOTH = (True, False)
Case = tuple[ToolNeeds, ConfidenceLabel, int, bool]


def every_case() -> Iterator[Case]:
    for degraded, asked, research, search, data, current in product(BOTH, repeat=6):
        needs = ToolNeeds(
            explicit="web" if asked else None,
            research=research,
            search=search,
            official_data=data,
            current=current,
        )
        for confidence, count in product(CONFIDENCES, COUNTS):
            yield needs, confidence, count, degraded


def decided(case: Case, tools: tuple[str, ...] = OFFERED) -> GatingDecision:
    needs, confidence, count, degraded = case
    return decide_tool_gating(
        needs, confidence=confidence, result_count=count, degraded=degraded, tools=tools
    )


# First match wins: what must hold, and the reason. Written apart from the code on purpose.
ORDER: tuple[tuple[str, str], ...] = (
    ("degraded", "FAIL_OPEN_DEGRADED"),
    ("explicit", "EXPLICIT_TOOL_REQUEST"),
    ("research", "RESEARCH_INTENT"),
    ("current", "DATE_QUERY_NEEDS_SEARCH"),
    ("sure", "HIGH_CONFIDENCE_REDUCTION"),
)


def expected_reason(case: Case) -> str:
    needs, confidence, count, degraded = case
    holds = {
        "degraded": degraded,
        "explicit": needs.explicit == "web",
        "research": needs.research,
        "current": needs.current,
        "sure": (confidence, count) in {("high", 3), ("high", 4), ("high", 50)},
    }
    return next((reason for name, reason in ORDER if holds[name]), "DEFAULT_ALLOW_ALL")


def test_every_combination_of_inputs() -> None:
    cases = list(every_case())
    assert len(cases) == 2**6 * 3 * 6
    for case in cases:
        found = decided(case)
        reason = expected_reason(case)
        allowed = ESSENTIAL if reason == "HIGH_CONFIDENCE_REDUCTION" else OFFERED
        assert (found.reason, found.allowed) == (reason, allowed), case
        assert found.reduced == len(OFFERED) - len(allowed)


def test_each_reason_is_reached_and_has_its_own_lines_in_both_languages() -> None:
    lines = {decided(case).reason: decided(case) for case in every_case()}
    assert len(lines) == 6
    assert len({found.trace_en for found in lines.values()}) == 6
    for found in lines.values():
        assert found.trace_en.isascii()
        assert any("א" <= letter <= "ת" for letter in found.trace_he)


def test_nothing_is_counted_when_no_tools_were_given() -> None:
    found = decide_tool_gating(
        NO_NEEDS, confidence="high", result_count=3, degraded=False, tools=()
    )
    assert found.trace_en == "Memory answers with high confidence (3 results)."
    assert found.trace_he == "הזיכרון משיב בביטחון גבוה (3 תוצאות)."


def test_the_intents_search_and_official_data_change_nothing_alone() -> None:
    for needs in (ToolNeeds(search=True), ToolNeeds(official_data=True)):
        assert decided((needs, "high", 3, False)).reason == "HIGH_CONFIDENCE_REDUCTION"


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("שלח מייל לדנה", "EXPLICIT_TOOL_REQUEST"),
        ("send Dana the picture", "EXPLICIT_TOOL_REQUEST"),
        ("למה שלא תחפש באינטרנט", "EXPLICIT_TOOL_REQUEST"),
        ("why don't you search the web", "EXPLICIT_TOOL_REQUEST"),
        ("מה אני צריך ללבוש היום?", "DATE_QUERY_NEEDS_SEARCH"),
        ("what should I wear today?", "DATE_QUERY_NEEDS_SEARCH"),
        ("מי שלח מייל לדנה?", "HIGH_CONFIDENCE_REDUCTION"),
        ("who sent Dana a mail?", "HIGH_CONFIDENCE_REDUCTION"),
        ("אל תחפש באינטרנט, מה שם הכלב שלי?", "HIGH_CONFIDENCE_REDUCTION"),
        ("don't search the web, what is my dog's name?", "HIGH_CONFIDENCE_REDUCTION"),
    ],
)
def test_what_is_asked_for_is_not_taken_away(question: str, reason: str) -> None:
    assert decided((tool_needs(question, OFFERED), "high", 3, False)).reason == reason


@pytest.mark.parametrize(
    ("tool", "kept"),
    [
        ("search_memory", True),
        ("mcp__memory__search_memory", True),
        ("memory.search_memory", True),
        ("Search_Memory", True),
        ("mcp__time__get_current_time", True),
        ("docling_ocr", True),
        ("recall_memory", True),
        ("perplexity_ask", False),
        ("search_memory__web_search", False),
        ("brave_search", False),
        ("duckduckgo_search", False),
        ("my_search_memory", False),
        ("search_memory_web", False),
        ("", False),
    ],
)
def test_what_stays_when_memory_is_enough(tool: str, kept: bool) -> None:
    found = decided((NO_NEEDS, "high", 3, False), (tool,))
    assert found.allowed == ((tool,) if kept else ())


def test_the_table_of_kept_tools_has_three_named_parts() -> None:
    assert KEPT_TOOLS == MEMORY_TOOLS | TIME_TOOLS | ATTACHMENT_TOOLS
    assert len(KEPT_TOOLS) == len(MEMORY_TOOLS) + len(TIME_TOOLS) + len(ATTACHMENT_TOOLS)


@given(
    tools=st.lists(st.sampled_from([*OFFERED, "mcp__x__update_memory", "כלי"]), max_size=12),
    count=st.integers(0, 10),
    confidence=st.sampled_from(CONFIDENCES),
)
def test_the_order_is_kept_and_nothing_is_added(
    tools: list[str], count: int, confidence: ConfidenceLabel
) -> None:
    case: Case = (NO_NEEDS, confidence, count, False)
    found = decided(case, tuple(tools))
    rest = iter(tools)
    assert all(tool in rest for tool in found.allowed)
    assert len(found.allowed) + found.reduced == len(tools)
    assert decided(case, tuple(tools)) == found
