"""Facts that hold one value at a time, and which of two takes the other's place."""

import pytest

from rayapp.text.slots import MAX_CHARS, Slot, replaces, slot_of


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("I live in Haifa", Slot("me", "home", "haifa")),
        ("The user lives in Tel Aviv.", Slot("me", "home", "tel aviv")),
        ("Dana now lives in Berlin", Slot("dana", "home", "berlin")),
        ("User works at Google", Slot("me", "work", "google")),
        ("My phone number is 052-1234567", Slot("me", "phone number", "052-1234567")),
        ("Dana's favorite color is blue", Slot("dana", "favorite color", "blue")),
        ("The code of the gate is 4711", Slot("gate", "code", "4711")),
        ("the wifi password is blue whale", Slot("wifi", "password", "blue whale")),
        ("I am 34 years old", Slot("me", "age", "34")),
        ("אני גרה בתל אביב", Slot("me", "home", "תל אביב")),
        ("המשתמש גר כיום בחיפה", Slot("me", "home", "חיפה")),
        ("דנה עובדת באיכילוב", Slot("דנה", "work", "איכילוב")),
        ("קוראים לי דנה", Slot("me", "name", "דנה")),
        ("שמי דנה", Slot("me", "name", "דנה")),
        ("הטלפון שלי הוא 052-1234567", Slot("me", "טלפון", "052-1234567")),
        ("המנהלת שלי היא נועה", Slot("me", "מנהלת", "נועה")),
        ("דנה בת 34", Slot("דנה", "age", "34")),
    ],
)
def test_a_slot(text: str, wanted: Slot) -> None:
    assert slot_of(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "I do not live in Haifa",
        "אני לא גרה בחיפה",
        "I lived in Haifa",
        "I live in Haifa with Omri",
        "I live in Haifa and work at the port",
        "אני גרה בחיפה עם עמרי",
        "Do I live in Haifa?",
        "I like Haifa",
        "I have a dog called Rex",
        "Dana likes tea",
        "She works at Intel",
        "it works for me",
        "הוא גר בחיפה",
        "היא עובדת באיכילוב",
        "I work at night",
        "I work at home",
        "I work for free",
        "Dana drives to work every day",
        "My phone is broken",
        "My boss is on vacation",
        "My name is hard to pronounce",
        "My car is in the garage",
        "The user lives in a rented apartment",
        "the user's flight is delayed",
        "אני עובד בלילה",
        "אני עובד במשרה מלאה",
        "דנה גרה בשכירות",
        "המשתמש גר בדירה שכורה",
        "אני גר בקומה 3",
        "אני גר ברחוב הרצל 5",
        "אני גרה בשכונה שקטה",
        "I live at 12 Main Street",
        "I live in apartment 5",
        "אני עובד בשבת",
        "אני עובד בימי שישי",
        "Dana works for fun",
        "I live in " + "x" * MAX_CHARS,
        "",
    ],
)
def test_no_slot(text: str) -> None:
    assert slot_of(text) is None


@pytest.mark.parametrize(
    ("new", "old", "wanted"),
    [
        ("The user lives in Tel Aviv", "I live in Haifa", True),
        ("אני גרה בתל אביב", "המשתמשת גרה בחיפה", True),
        ("My manager is Noa", "The user's manager is Rotem", True),
        ("I live in Tel Aviv", "I live in Tel Aviv Florentin", False),
        ("I live in Tel Aviv Florentin", "I live in Tel Aviv", False),
        ("Dana lives in Tel Aviv", "Omri lives in Haifa", False),
        ("I work at Haifa", "I live in Tel Aviv", False),
        ("The user lives in Haifa", "המשתמש גר בחיפה", False),
        ("I live in Haifa", "I live in Haifa", False),
        ("I like tea", "I like coffee", False),
        ("I live in Israel", "I live in Haifa", False),
        ("My car is a Tesla", "My car is a Mazda", True),
        ("I live in New York", "I live in Boston", True),
        ("I work at Home Depot", "I work at Walmart", True),
        ("אני גר בבית שמש", "אני גר בחיפה", True),
        ("אני עובד בבית חולים הדסה", "אני עובד בשיבא", True),
        ("My birthday is on May 5", "My birthday is on May 6", True),
        ("My name is Jordan", "My name is Dana", True),
        ("I live in Germany", "I live in United States", True),
        ("I live in France", "I live in Israel", True),
        ("The user works at the Ministry of Health", "I work at Google", True),
    ],
)
def test_what_takes_the_place_of_what(new: str, old: str, wanted: bool) -> None:
    assert replaces(new, old) is wanted
