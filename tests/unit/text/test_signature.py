"""What keeps near-duplicates apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.text.signature import difference, may_collapse, signature


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ("Meeting at 10:30", "Meeting at 11:30", "numbers"),
        ("The alarm threshold is -5 degrees", "The alarm threshold is 5 degrees", "numbers"),
        ("Alert when load > 90", "Alert when load < 90", "numbers"),
        ("The fee is 900$", "The fee is 900€", "numbers"),
        ("My blood type is O-", "My blood type is O+", "numbers"),
        ("סוג הדם שלי הוא AB-.", "סוג הדם שלי הוא AB", "numbers"),
        ("She writes in C# at work", "She writes in C++ at work", "numbers"),
        ("ההנחה היא 5%", "ההנחה היא 5", "units"),
        ("אני לוקח אספירין", "שאיני לוקח אספירין", "polarity"),
        ("Pays 1,000 a month", "Pays 100 a month", "numbers"),
        ("Has two kids", "Has three kids", "numbers"),
        ("יש לו שתי בנות", "יש לו שלוש בנות", "numbers"),
        ("Moved from 5 to 7", "Moved from 7 to 5", "numbers"),
        ("I like tea", "I don't like tea", "polarity"),
        ("It works", "It never works", "polarity"),
        ("אני אוהב תה", "אני לא אוהב תה", "polarity"),
        ("יש לי כלב", "אין לי כלב", "polarity"),
        ("Dana said that it works", "Dana said that it doesnt work", "polarity"),
        ("User loves jazz", "User hates jazz", "polarity"),
        ("Enable the cache", "Disable the cache", "polarity"),
        ("הגענו לפני הגשם", "הגענו אחרי הגשם", "polarity"),
        ("שתה תה חם", "שתה תה קר", "polarity"),
        ("הוא אוהב תה", "הוא שונא תה", "polarity"),
        ("בא עם חלב", "בא בלי חלב", "polarity"),
        ("Dana lives in Haifa", "Yossi lives in Haifa", "entities"),
        ("Dana lives in Haifa", "Dana lives in Eilat", "entities"),
        ("Dana likes tea", "Dana and Yossi like tea", "entities"),
        ('שירת בצה"ל', 'שירת במג"ב', "entities"),
        ("יוסי כהן גר בחיפה", "דוד כהן גר בחיפה", "names"),
        ("dana lives in haifa", "yossi lives in haifa", "names"),
    ],
)
def test_kept_apart(a: str, b: str, reason: str) -> None:
    assert difference(a, b) == reason
    assert difference(b, a) == reason
    assert not may_collapse(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Dana prefers tea", "dana prefers tea"),
        ("Dana's favourite drink is tea", "The favourite drink of Dana is tea"),
        ("Pays 1,000 a month", "Pays 1000 a month"),
        ("It does not work", "It doesn't work"),
        ("Dana strongly prefers tea", "Dana prefers tea"),
        ("Has two kids", "Has 2 kids"),
        ("יוסי אוהב תה חם", "יוסי אוהב תה"),
        ('שירת בצה"ל', "שירת בצה״ל"),
        ("The U.S. office", "The U.S. office"),
        ("Likes pre- and post-war films", "Likes pre and post-war films"),
        ("Manages US- and EU-based staff", "Manages US and EU based staff"),
        ("My blood type is O-", "My blood type is O−"),
        ("It was -5 degrees", "It was −5 degrees"),
        ("Reads https://a.io/page#", "Reads https://a.io/page"),
        ("The formula is a+(b*c)", "The formula is a + (b * c)"),
        ("ה-API שלנו איטי", "ה API שלנו איטי"),
    ],
)
def test_may_collapse(a: str, b: str) -> None:
    assert difference(a, b) is None
    assert may_collapse(a, b)


@given(st.text(max_size=100))
def test_a_text_collapses_with_itself(text: str) -> None:
    assert may_collapse(text, text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_order_does_not_matter(a: str, b: str) -> None:
    assert difference(a, b) == difference(b, a)


def test_signature_fields() -> None:
    found = signature("Dana didn't pay 1,500 in Haifa")
    assert found.numbers == ("1500",)
    assert found.negations == 1
    assert found.entities == {"dana", "haifa"}
