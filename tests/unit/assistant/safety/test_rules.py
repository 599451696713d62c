"""Questions and answers that are no advice of a professional, and those that only name one."""

import pytest

from rayapp.assistant.safety.rules import disclaimers_of


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("Should I take ibuprofen for this fever?", "medical"),
        ("I have chest pain. What should I do?", "medical"),
        ("how much paracetamol can I take", "medical"),
        ("האם כדאי לקחת אקמול?", "medical"),
        ("יש לי כאב בחזה, מה לעשות?", "medical"),
        ("should I invest in bitcoin?", "financial"),
        ("Is it wise to sell my stocks now", "financial"),
        ("כדאי לי להשקיע בביטקוין?", "financial"),
        ("האם עדיף משכנתא קבועה?", "financial"),
        ("can I sue my landlord?", "legal"),
        ("Is this contract binding, what can I do?", "legal"),
        ("אפשר לתבוע את בעל הדירה?", "legal"),
        ("האם מותר לבטל את החוזה?", "legal"),
    ],
)
def test_a_question_for_advice(question: str, topic: str) -> None:
    (found,) = disclaimers_of(question)
    assert found.topic == topic
    assert found.text.isascii() == question.isascii()


@pytest.mark.parametrize(
    "question",
    [
        "when is my doctor appointment?",
        "should I watch Doctor Who again?",
        "should I invest more time in Hebrew?",
        "can I stock the fridge?",
        "should I call Sue?",
        "what did my lawyer say?",
        "how does the muscle contract?",
        "what is the health bar of the game?",
        "מתי התור שלי לרופא?",
        "כדאי לי להשקיע זמן בעברית?",
        "מה אמר עורך הדין?",
        "",
    ],
)
def test_a_trade_that_is_only_named(question: str) -> None:
    assert disclaimers_of(question) == ()


@pytest.mark.parametrize(
    ("answer", "topics"),
    [
        ("You should take 400 mg of ibuprofen every six hours.", ["medical"]),
        ("I recommend stocks. You could also sue the company.", ["financial", "legal"]),
        ("מומלץ לקחת אקמול.", ["medical"]),
        ("Your doctor is Dana. You can call her at nine.", []),
        ("התור לרופא ביום שני.", []),
    ],
)
def test_an_answer_that_advises(answer: str, topics: list[str]) -> None:
    assert [one.topic for one in disclaimers_of("", answer)] == topics
