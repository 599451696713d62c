"""Which answers of a model are none."""

from __future__ import annotations

import pytest

from rayapp.domain.extraction.prefix import accepted_prefix
from rayapp.domain.extraction.refusing import refuses
from rayapp.domain.tool_results.summing import accepted_summary
from rayapp.testing.builders import an_item

REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "Sorry, no.",
    "I cannot place this text.",
    "I can’t do that.",
    "I am unable to say.",
    "We are not able to say where it is from.",
    "Unfortunately I know nothing of it.",
    "My apologies, there is nothing to say.",
    "As an AI language model, I have no access to it.",
    "As a helpful assistant I do not answer this.",
    "אני מצטער, איני יכול לעזור בכך.",
    "מצטערת, אין לי מה לומר.",
    "לצערי אין לי מידע.",
    "סליחה, אבל אין לי תשובה.",
    "לא אוכל לעזור בזה.",
    "אינני מסוגלת לענות.",
    "אין באפשרותי לענות.",
    "כמודל שפה, אין לי גישה לכך.",
]
ANSWERS = [
    "From a talk about the harbour of Jaffa.",
    "Dana says that she is sorry.",
    "A talk about apologies.",
    "As a child Dana lived in Haifa.",
    "Assistance for the elderly in Haifa.",
    "Can't Stop: a board game of Dana's.",
    "I, Claudius: notes on a book.",
    "We can see 20 stops.",
    "מתוך שיחה על נמל יפו.",
    "דנה מצטערת על האיחור.",
    "כמודל ראשון נבחרה חיפה.",
    "כעוזר שר האוצר הוא עבד בירושלים.",
    "לא ניתן היה להגיע לחיפה.",
    "אני לאה, מורה מחיפה.",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_neither_prefix_nor_summary(text: str) -> None:
    hebrew = any("א" <= letter <= "ת" for letter in text)
    told = "הוא פתוח בימי ראשון " * 60 if hebrew else "It is open on Sundays " * 60
    assert refuses(f"  {text}")
    assert accepted_prefix(text, an_item(text=told)) == ""
    assert accepted_summary(text, told) is None


@pytest.mark.parametrize("text", ANSWERS)
def test_what_speaks_of_somebody_is_an_answer(text: str) -> None:
    assert not refuses(text)
