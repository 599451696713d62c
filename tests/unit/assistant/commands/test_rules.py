"""Sentences that order something of memory, and sentences that only look like it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.assistant.commands.rules import (
    LONGEST,
    MOST,
    Command,
    Performed,
    commands_of,
    meant,
    takeaway_of,
    takes_back,
    told,
)
from rayapp.text.analyser import Analyser
from tests.support.builders import an_item

ORDERS = [
    (
        "Remember that meeting with Dana is on Tuesday",
        "remember",
        "meeting with Dana is on Tuesday",
    ),
    ("Forget that Or lives in Haifa", "forget", "Or lives in Haifa"),
    ("תזכור שורה אלרגית לבוטנים", "remember", "ורה אלרגית לבוטנים"),
    ("forget that plan B is Haifa", "forget", "plan B is Haifa"),
    ("Remember that book clubs meet on Monday", "remember", "book clubs meet on Monday"),
    ("Remember that Dr. Levi is my dentist.", "remember", "Dr. Levi is my dentist"),
    ("remember that it is at 5 p.m. on Tuesday", "remember", "it is at 5 p.m. on Tuesday"),
    ("remember that I wake at 5 a.m. Good night.", "remember", "I wake at 5 a.m"),
    ("תזכור שאני גר ברח. הרצל 5", "remember", "אני גר ברח. הרצל 5"),
    ("תזכור שהכלב ברח. זה עצוב", "remember", "הכלב ברח"),
    ("תזכור שיש לי כאבי גב. מה אפשר לעשות?", "remember", "יש לי כאבי גב"),
    ("Remember that I live on Main St. What's the weather?", "remember", "I live on Main St"),
    ("תזכור שקל לי ללמוד בבוקר", "remember", "קל לי ללמוד בבוקר"),
    ("forget that: I live in Haifa", "forget", "I live in Haifa"),
    ("Remember that my blood type is O-.", "remember", "my blood type is O-"),
    ("תזכור שסוג הדם שלי הוא A-", "remember", "סוג הדם שלי הוא A-"),
    ("remember: -5 is the coldest it was", "remember", "-5 is the coldest it was"),
    ('Remember that my street is "Palm"', "remember", 'my street is "Palm"'),
    ('תזכור שאני עובד ב"אלביט".', "remember", 'אני עובד ב"אלביט"'),
    ("תזכור ש-5 ביוני הוא יום ההולדת שלי", "remember", "5 ביוני הוא יום ההולדת שלי"),
    ("תזכרי ש\u05beDana גרה בחיפה", "remember", "Dana גרה בחיפה"),
    ("תשכח ש-Dana גרה בחיפה", "forget", "Dana גרה בחיפה"),
    ("תזכור ש–5 ביוני הוא יום ההולדת שלי", "remember", "5 ביוני הוא יום ההולדת שלי"),
    ("Remember that I like jazz—", "remember", "I like jazz"),
    ("Remember that I like jazz --", "remember", "I like jazz"),
    ('Remember: "I like jazz. And rock."', "remember", "I like jazz"),
    ('"Hello. Remember that I live in Haifa."', "remember", "I live in Haifa"),
    ('Remember that my screen has 27".', "remember", 'my screen has 27"'),
    ('תזכור: "אני משרת בצה"ל".', "remember", 'אני משרת בצה"ל'),
    ("list my goals -", "list_goals", ""),
    ("add running to my goals -", "add_goal", "running"),
    ('Forget that "I like jazz"', "forget", "I like jazz"),
    ("תזכור שהפגישה עם פרופ. לוי מחר", "remember", "הפגישה עם פרופ. לוי מחר"),
    ("אל תשכח שבתי לומדת רפואה", "remember", "בתי לומדת רפואה"),
    ("\u200fתזכור שאני טבעוני", "remember", "אני טבעוני"),
    ("\u200eRemember that I am vegan", "remember", "I am vegan"),
    ("תִּזְכֹּר שאני טבעוני", "remember", "אני טבעוני"),
    ("add goal: run a marathon", "add_goal", "run a marathon"),
    ("Add a goal: run a marathon.", "add_goal", "run a marathon"),
    ("please add a new goal to learn Hebrew", "add_goal", "learn Hebrew"),
    ("add goal learn Hebrew well", "add_goal", "learn Hebrew well"),
    ('Can you add "run a marathon" to my goals?', "add_goal", "run a marathon"),
    ("הוסף מטרה: לרוץ מרתון", "add_goal", "לרוץ מרתון"),
    ("תוסיף לי מטרה לרוץ מרתון", "add_goal", "לרוץ מרתון"),
    ("תוסיפי יעד חדש: לישון יותר", "add_goal", "לישון יותר"),
    ("הוסיפי לרוץ מרתון למטרות שלי", "add_goal", "לרוץ מרתון"),
    ("list my goals", "list_goals", ""),
    ("What are my goals?", "list_goals", ""),
    ("show me my goals for this year", "list_goals", ""),
    ("מה המטרות שלי?", "list_goals", ""),
    ("הציגי לי את כל המטרות", "list_goals", ""),
    ("remove goal: run a marathon", "remove_goal", "run a marathon"),
    ("delete run a marathon from my goals", "remove_goal", "run a marathon"),
    ("מחק את המטרה: לרוץ מרתון", "remove_goal", "לרוץ מרתון"),
    ("תסירי לרוץ מרתון מהמטרות שלי", "remove_goal", "לרוץ מרתון"),
    ("add value: honesty", "add_value", "honesty"),
    ("add honesty to my values", "add_value", "honesty"),
    ("הוסף ערך: יושר", "add_value", "יושר"),
    ("תוסיפי יושר לערכים שלי", "add_value", "יושר"),
    ("Remember that I am allergic to nuts", "remember", "I am allergic to nuts"),
    ("could you remember that I'm vegan?", "remember", "I'm vegan"),
    ("don't forget that I leave on Monday", "remember", "I leave on Monday"),
    ("remember: my locker is 12", "remember", "my locker is 12"),
    ("תזכור שאני גר בחיפה", "remember", "אני גר בחיפה"),
    ("תזכרי בבקשה שאני צמחוני", "remember", "אני צמחוני"),
    ("אל תשכח שאני נוסע ביום שני", "remember", "אני נוסע ביום שני"),
    ("forget that I live in Haifa", "forget", "I live in Haifa"),
    ("please forget that I live in Haifa.", "forget", "I live in Haifa"),
    ("תשכח שאני גר בחיפה", "forget", "אני גר בחיפה"),
    ("שכחי: אני גרה בחיפה", "forget", "אני גרה בחיפה"),
    ("/save_learning the gate opens with a stick", "save_learning", "the gate opens with a stick"),
    ("/save_learning", "save_learning", ""),
    ("/save_learning השער נפתח במקל", "save_learning", "השער נפתח במקל"),
]
LOOK_ALIKES = [
    "Remember that book I told you about",
    "Remember that restaurant in Haifa we liked",
    "Forget that plan.",
    "Forget that question, what is the capital of France?",
    "Forget that and write me a poem",
    "Forget that for now",
    "תזכור שעת יציאה: שמונה",
    "תזכור שמעתי חדשות טובות",
    "תשכח שנייה מהעבודה ותענה לי",
    "תשכח שאלה קודמת",
    "Forget that, I live in Haifa.",
    "Forget that; my name is Dana",
    "Forget that - I am vegan",
    "Forget Thatcher's policies",
    "Forget that's what I said about Dana",
    "אל תשכח שמן זית",
    "אל תשכח שמלה",
    "תזכור שבוע הבא יש מבחן",
    "Add goal scorer to the list",
    "add the goal scorer to the table",
    "add a goal to the app",
    "add goal tracking to the app",
    "how do I add a goal to my list?",
    "our goal: run a marathon",
    "what are the goals of the project?",
    "remove the goal post from the picture",
    "add value to the customer",
    "add value labels to the chart",
    "how do we add value?",
    "Remember that time we went to Eilat?",
    "do you remember that I live in Haifa?",
    "I remember that I live in Haifa",
    "remember to call Dana",
    "forget it, let us go on",
    "forget that",
    "forget that I said anything",
    "forget what I said",
    "I always forget that I live in Haifa",
    "/save_learning_rate 0.1",
    "the parameter /save_learning is not set",
    "הוסף מטרה לשער",
    "הוסף ערך לטבלה",
    "מה המטרות של הפרויקט?",
    "אתה זוכר שאני גר בחיפה?",
    "אני זוכר שאני גר בחיפה",
    "תשכח מזה",
    "תשכח שאמרתי משהו",
    "מי הוסיף מטרה: לרוץ מרתון",
    "```\nadd goal: run a marathon\n```",
    "> remember that the password is 1234",
    "Translate this:\nremember that the password is 1234",
]


@pytest.mark.parametrize(("message", "kind", "text"), ORDERS)
def test_an_order(message: str, kind: str, text: str) -> None:
    assert [(one.kind, one.text) for one in commands_of(message)] == [(kind, text)]


@pytest.mark.parametrize("message", LOOK_ALIKES)
def test_a_look_alike_orders_nothing(message: str) -> None:
    assert commands_of(message) == ()


def test_orders_stand_among_other_sentences_each_once_and_not_in_long_material() -> None:
    both = "Good morning! Add goal: sleep more. Remember that I am vegan. Add goal: sleep more."
    assert [one.kind for one in commands_of(both)] == ["add_goal", "remember"]
    assert commands_of(f"{both}{' and so on' * LONGEST}") == ()
    many = "\n".join(f"add goal: goal number {n}" for n in range(MOST + 3))
    assert len(commands_of(many)) == MOST


@given(st.text(max_size=200))
def test_any_text_is_read_and_orders_name_something(message: str) -> None:
    for one in commands_of(message):
        assert one.text or one.kind in ("list_goals", "save_learning")


@pytest.mark.parametrize("message", ["forget that I live in Haifa", "מחק את המטרה: לרוץ מרתון"])
def test_what_is_taken_back_is_known_as_such(message: str) -> None:
    assert takes_back(message)
    assert not takes_back("remember that I live in Haifa")


@pytest.mark.parametrize(
    ("words", "texts", "found"),
    [
        ("I live in Haifa", ["I live in Haifa", "I lived in Eilat"], ["I live in Haifa"]),
        ("my rent is 5000", ["my rent is 5000₪"], ["my rent is 5000₪"]),
        ("I live in Haifa", ["Dana works in Haifa"], []),
        ("I live in Haifa", ["I live in Haifa and the gate code of the office is 4711"], []),
        ("I like tea", ["I like tea", "I like coffee"], ["I like tea"]),
        ("אני גר בחיפה", ["אני גר בחיפה", "דנה עובדת בחיפה"], ["אני גר בחיפה"]),
        ("it", ["anything at all"], []),
        ("I eat meat", ["I do not eat meat"], []),
        ("אני אוכל בשר", ["אני לא אוכל בשר"], []),
        ("I do not eat meat", ["I don't eat meat"], ["I don't eat meat"]),
        ("I am allergic to peanuts", ["I'm not allergic to peanuts"], []),
        ("I eat meat", ["I do not eat meat", "I eat meat"], ["I eat meat"]),
        ("the code of the gate is 4711", ["the code of the gate is 4712"], []),
        ("my blood type is O-", ["my blood type is O+"], []),
    ],
)
def test_only_what_says_it_is_meant(words: str, texts: Sequence[str], found: Sequence[str]) -> None:
    items = [an_item(memory_id=f"m-{n}", text=text) for n, text in enumerate(texts)]
    assert [one.text for one in meant(items, words, Analyser().coverage)] == list(found)


def test_the_takeaway_is_what_is_written_or_how_the_answer_begins() -> None:
    assert takeaway_of("mine", ["theirs"]) == "mine"
    assert takeaway_of("", ["first", "the  last\nanswer"]) == "the last answer"
    assert takeaway_of("", []) == ""
    assert len(takeaway_of("", ["word " * 300])) <= 500


def test_every_result_is_told_in_both_languages() -> None:
    for status in ("stored", "known", "removed", "listed", "not_found", "ambiguous", "refused"):
        one = Performed(Command("add_goal", "run"), status, (an_item(),))  # type: ignore[arg-type]
        english, hebrew = told(one, "en"), told(one, "he")
        assert english.isascii()
        assert any("א" <= letter <= "ת" for letter in hebrew)
    assert told(Performed(Command("list_goals"), "listed"), "en") == "No goals are known."
