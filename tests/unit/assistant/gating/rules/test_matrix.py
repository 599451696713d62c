"""The gating matrix: kinds of questions, states of memory and languages, and the tools left."""

from typing import Literal

import pytest

from rayapp.assistant.gating.rules.decision import decide_tool_gating
from rayapp.assistant.gating.rules.intents import tool_needs
from rayapp.search.requests import ConfidenceLabel

OFFERED = ("search_memory", "web_search", "send_email", "get_current_time", "datagov_query")
OWN = ("search_memory", "get_current_time")
# Confidence, memories shown because of the question, and whether memory worked only in part.
State = tuple[ConfidenceLabel, int, bool]
STATES: dict[str, State] = {
    "empty": ("low", 0, False),
    "unsure": ("medium", 5, False),
    "one": ("high", 1, False),
    "sure": ("high", 3, False),
    "degraded": ("high", 3, True),
}
# With a sure memory: whether all tools stay, or its own and the clock. In every other state all do.
Left = Literal["all", "own"]
MATRIX: dict[str, tuple[str, str, Left]] = {
    "greeting": ("hello there", "שלום לך", "own"),
    "fact": ("where does Dana live?", "איפה דנה גרה?", "own"),
    "own past": ("what did we decide about the gate?", "מה החלטנו על השער?", "own"),
    "own things": ("what is my locker code?", "מה הקוד של הלוקר שלי?", "own"),
    "memory search": ("search my memory for Dana", "חפש בזיכרון שלי את דנה", "own"),
    "picture": ("describe this image: what time is it?", "תאר את התמונה: מה השעה?", "own"),
    "goal": ("add goal: run a marathon", "הוסף מטרה: לרוץ מרתון", "own"),
    "quotation": ("quote the line from the book", "צטט את השורה מתוך הספר", "own"),
    "open data": ("which data does data.gov have?", "אילו מאגרים ממשלתיים יש?", "own"),
    "web": ("search the web for bees", "חפש באינטרנט על דבורים", "all"),
    "tool by verb": ("send an email to Dana", "שלח מייל לדנה", "all"),
    "research": ("do research on bees", "עשה מחקר על דבורים", "all"),
    "news": ("what is the latest news?", "מה החדשות?", "all"),
    "weather": ("what is the weather in Haifa?", "מה מזג האוויר בחיפה?", "all"),
    "price": ("what is the price of gold?", "מה מחיר הזהב?", "all"),
    "clock": ("what time is it?", "מה השעה?", "all"),
    "date": ("when is the election?", "מתי הבחירות?", "all"),
    "refused": ("do not search the web, where is Dana?", "אל תחפש באינטרנט, איפה דנה?", "own"),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", MATRIX)
def test_the_matrix(kind: str, state: str) -> None:
    *questions, left = MATRIX[kind]
    confidence, count, degraded = STATES[state]
    for question in questions:
        found = decide_tool_gating(
            tool_needs(question, OFFERED),
            confidence=confidence,
            result_count=count,
            degraded=degraded,
            tools=OFFERED,
        )
        wanted = OWN if (state, left) == ("sure", "own") else OFFERED
        assert found.allowed == wanted, f"{question}: {found.reason}"
