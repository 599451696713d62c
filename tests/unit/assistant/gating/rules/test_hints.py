"""Where an answer lies by the words of a message, and how many questions it holds."""

import pytest

from rayapp.assistant.gating.rules.hints import hint_notes, hints_of, parts_of
from rayapp.assistant.gating.rules.intents import shows_image, tool_needs


@pytest.mark.parametrize(
    "message",
    [
        "what is the price of bitcoin",
        "latest news about the elections",
        "What's the weather in Haifa?",
        "how much does a new bicycle cost",
        "how much is the dollar",
        "מה מחיר הביטקוין?",
        "מה החדשות?",
        "כמה עולה אופניים חדשים",
        "מה מזג האוויר בחיפה",
        "מה שער הדולר",
    ],
)
def test_the_world_is_asked_for(message: str) -> None:
    assert hints_of(message) == ("web",)
    assert tool_needs(message).current


@pytest.mark.parametrize(
    "message",
    [
        "my weather app crashes",
        "good news, everybody is healthy",
        "the newspaper is on the table",
        "what was the price of the bicycle we bought?",
        "the price of freedom",
        "analyze this image: what is the weather there?",
        "Image content: a board with the price of gold",
        "מסעדות חדשות בתל אביב",
        "יש לנו חדשות טובות",
        "כמה עולה המנוי שלי?",
        "מה מחיר האופניים שקנינו?",
        "נתח את התמונה: מה מזג האוויר?",
        "תוכן התמונה: לוח עם מחיר הזהב",
    ],
)
def test_the_world_is_not_asked_for(message: str) -> None:
    assert hints_of(message) == ()


@pytest.mark.parametrize(
    "message",
    [
        "analyze this image, what time is it now?",
        "what is in the picture today?",
        "מה רואים בתמונה היום?",
    ],
)
def test_of_a_picture_nobody_asks_the_world(message: str) -> None:
    assert shows_image(message)
    assert not tool_needs(message).current


@pytest.mark.parametrize("message", ["what time is it now?", "imagine a picture book", "מה השעה?"])
def test_no_picture_is_shown(message: str) -> None:
    assert not shows_image(message)


@pytest.mark.parametrize(
    "message",
    [
        "quote the first line from the book",
        "give me a quote about whales from my novel",
        "cite a passage from Dana's report",
        "צטט משהו מתוך הספר",
        "תני לי ציטוט על לווייתנים מהמסמך",
    ],
)
def test_words_of_a_document_are_asked_for(message: str) -> None:
    assert hints_of(message) == ("documents",)


@pytest.mark.parametrize(
    "message",
    [
        "I need a price quote from the contractor",
        "get a quote from the insurer to book the repair",
        "I read a book about quotes",
        "book a table from noon",
        "קיבלתי הצעת מחיר מהקבלן",
        "קראתי ספר",
    ],
)
def test_no_document_is_asked_for(message: str) -> None:
    assert hints_of(message) == ()


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        (
            "Where does Dana work? What is the gate code?",
            ("Where does Dana work?", "What is the gate code?"),
        ),
        (
            "1. Where does Dana work? 2. What is the gate code",
            ("Where does Dana work?", "What is the gate code"),
        ),
        (
            "1) the gate code\n2) the wifi password\n3) the alarm code",
            ("the gate code", "the wifi password", "the alarm code"),
        ),
        (
            "where does Dana work; what is the gate code?",
            ("where does Dana work", "what is the gate code?"),
        ),
        ("איפה דנה עובדת? מה הקוד של השער?", ("איפה דנה עובדת?", "מה הקוד של השער?")),
        ("1. איפה דנה עובדת 2. מה הקוד של השער", ("איפה דנה עובדת", "מה הקוד של השער")),
        # With the marks of direction that Hebrew editors write.
        ("איפה דנה עובדת?\u200f מה הקוד של השער?\u200f", ("איפה דנה עובדת?", "מה הקוד של השער?")),
        (
            "\u200f1. איפה דנה עובדת\n\u200f2. מה הקוד של השער",
            ("איפה דנה עובדת", "מה הקוד של השער"),
        ),
    ],
)
def test_several_questions(message: str, parts: tuple[str, ...]) -> None:
    assert parts_of(message) == parts


@pytest.mark.parametrize(
    "message",
    [
        "Where does Dana work?",
        "Where does Dana work? And why?",
        "I went home; it was late",
        "is it version 1.2 or 1.3?",
        "see https://example.com/a?b=1;c=2 and https://example.com/d?e=3",
        "2. second item first, 1. first item second?",
        "איפה דנה עובדת? ולמה?",
        "Summarise this:\nWhere does Dana work? What is the gate code?",
    ],
)
def test_one_question(message: str) -> None:
    assert parts_of(message) == ()


def test_notes_are_said_in_both_languages() -> None:
    for side, letters in (("en", "web"), ("he", "ברשת")):
        notes = hint_notes(("web", "documents"), side)  # type: ignore[arg-type]
        assert len(notes) == 2
        assert letters in notes[0]
