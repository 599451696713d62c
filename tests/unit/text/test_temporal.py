"""Temporal words: whole words of both languages, and phrases that only look like them."""

import pytest

from rayapp.search.rules.query import prefers_recency


@pytest.mark.parametrize(
    "query",
    [
        "what did I say yesterday",
        "What did we decide today?",
        "my latest order",
        "the most recent invoice",
        "what have I been doing lately",
        "who called just now",
        "what did we talk about last week",
        "our last meeting",
        "when did we last talk",
        "what was the last thing I asked",
        "what am I currently reading",
        "what did I write two days ago",
        "where does she live now?",
        "מה אמרתי אתמול",
        "מה קבענו היום",
        "מה עשינו לאחרונה",
        "מה ההודעה האחרונה שלו",
        "הפגישות האחרונות",
        "מהיום מה השתנה",
        "ומאתמול",
        "מה קורה עכשיו",
        "לפני כמה ימים",
        "הגרסה העדכנית",
    ],
)
def test_recent(query: str) -> None:
    assert prefers_recency(query)


@pytest.mark.parametrize(
    "query",
    [
        "yes",
        "what is my last name",
        "what are our last names",
        "how long does the battery last",
        "as a last resort",
        "painting of the Last Supper",
        "what do you know",
        "blast radius",
        "from now on use tabs",
        "now that I moved, what about taxes",
        "everlasting",
        "ים המלח",
        "יומולדת של דנה",
        "מה סדר היום של הכנסת",
        "מי צייר את הסעודה האחרונה",
        "מה השם האחרון ברשימה",
        "אחריות",
        "עכשווי",
        "",
    ],
)
def test_not_recent(query: str) -> None:
    assert not prefers_recency(query)
