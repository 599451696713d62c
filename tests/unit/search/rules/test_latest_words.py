"""Words that ask how a thing stands now, in both languages, and words that only look like them."""

import pytest

from rayapp.container import bootstrap
from rayapp.search.rules.latest_words import LatestTable, LatestWords, latest_words
from rayapp.text.normalize import normalize

WORDS = bootstrap.load_texts().latest


def asked(question: str) -> bool:
    return WORDS.asked(normalize(question))


@pytest.mark.parametrize(
    "question",
    [
        "What is the latest status of the Falcon move?",
        "my latest order",
        "the most recent invoice",
        "what am I currently reading",
        "Who is the CURRENT head of the data team?",
        "where does she live now?",
        "which version do we run right now",
        "the last known address of Tamar",
        "What was our last status report on the roof?",
        "the most up-to-date plan",
        "מה הסטטוס האחרון של המעבר?",
        "מה המצב הנוכחי של פלקון",
        "הגרסה העדכנית",
        "לפי התוכנית העדכנית מתי נוסעים",
        "מי ראש הצוות כרגע",
        "מה קורה עכשיו",
        "ומה ההצעה הכי חדשה של ארזים",
        "איפה היא גרה, נכון להיום?",
        "על סמך העדכון האחרון",
    ],
)
def test_a_question_for_the_state_of_now(question: str) -> None:
    assert asked(question)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "yes",
        "What is Tamar's last name?",
        "what happens in the last chapter of Tide",
        "What was my last job before Intel?",
        "my last address before Haifa",
        "When at the latest is the form due?",
        "how strong is the current in the kitchen socket",
        "now that I moved, what about taxes",
        "how long does the battery last",
        "what did we talk about last week",
        "the last 4 digits of the card",
        "when is the last train",
        "מה השם האחרון ברשימה",
        "מה קורה בפרק האחרון של הגאות",
        "מה הייתה העבודה האחרונה שלי לפני אינטל",
        "מה הייתה הכתובת האחרונה שלי לפני חיפה",
        "מתי הרכבת האחרונה לעכו",
        "למי יש את המילה האחרונה",
        "לכל המאוחר עד מתי",
        "עכשווי",
        "אחריות",
    ],
)
def test_no_question_for_the_state_of_now(question: str) -> None:
    assert not asked(question)


def test_without_a_table_nothing_asks() -> None:
    assert not LatestWords().asked("what is the latest status")


def test_every_word_of_a_table_asks() -> None:
    words = latest_words(
        [
            LatestTable(now=("present",), states=("level",), last_before=("last",)),
            LatestTable(states=("מפלס",), last_after=("אחרון",), never=("מפלס אחרון בבניין",)),
        ]
    )
    assert words.asked("the present owner")
    assert words.asked("the last level")
    assert not words.asked("the level of last year")
    assert words.asked("המפלס האחרון")
    assert not words.asked("מפלס אחרון בבניין")
