"""Temporal words: whole words of both languages, and phrases that only look like them."""

import pytest

from rayapp.search.rules.query import prefers_recency


@pytest.mark.parametrize(
    "query",
    [
        "what did I say yesterday",
        "What did we decide today?",
        "the most recent invoice",
        "what have I been doing lately",
        "who called just now",
        "what did we talk about last week",
        "our last meeting",
        "when did we last talk",
        "what was the last thing I asked",
        "what did I write two days ago",
        "the last 4 meetings",
        "the last two weeks",
        "מה אמרתי אתמול",
        "מה קבענו היום",
        "מה עשינו לאחרונה",
        "מה ההודעה האחרונה שלו",
        "הפגישות האחרונות",
        "מהיום מה השתנה",
        "ומאתמול",
        "לפני כמה ימים",
        "מה אכלת הבוקר",
        "מי התקשר הלילה",
        "שתיתי קפה הבוקר?",
        "מה היה השבוע",
        "היום יום הולדת של דנה?",
        "היום הזה",
        "מה היה היום בארוחת הבוקר",
        "לקחתי את התרופות הבוקר?",
        "לקחתי כדור הלילה?",
        "נסעתי ברכבת הבוקר?",
        "מה המילים האחרונות שכתבתי",
        "what were the last few words I said",
        "the last two pages that we read",
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
        "מה דנה אוכלת לארוחת הבוקר?",
        "וארוחות הערב במלון",
        "מתי משמרת הלילה של נועה?",
        "באיזו שעה תפילת הערב",
        "בשעות הלילה של המרפאה",
        "שמות ימי השבוע",
        "היום הראשון ללימודים",
        "מתי היום הולדת של דנה",
        "מה ארבע הספרות האחרונות של הכרטיס",
        "מה הספרות האחרונות שלו",
        "what are the last 4 digits of my card",
        "the last two letters of the plate",
        "אחריות",
        "עכשווי",
        "",
    ],
)
def test_not_recent(query: str) -> None:
    assert not prefers_recency(query)
