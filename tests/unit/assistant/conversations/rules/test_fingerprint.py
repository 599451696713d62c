"""What was injected is known again; what is new, or corrects it, is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.assistant.conversations.rules import (
    MAX_PER_TEXT,
    already_known,
    fingerprints_of,
    without_known,
)

INJECTED = (
    "My dog is called Rex.",
    "Dana lives in Haifa. She works at the port.",
    "דנה גרה בחיפה מאז חודש מאי",
    "הכלב שלי אוהב לשחק בכדור",
)
KNOWN = fingerprints_of(INJECTED)


@pytest.mark.parametrize(
    "text",
    [
        "My dog is called Rex.",
        "Your dog is called Rex!",
        "your DOG is called   rex",
        "You told me your dog is called Rex.",
        "Yes, your dog is called Rex.",
        "As you said, Dana lives in Haifa.",
        "She works at the port.\nDana lives in Haifa.",
        "דנה גרה בחיפה מאז חודש מאי.",
        "דָּנָה גָּרָה בְּחֵיפָה מאז חודש מאי",
        "אמרת לי שדנה גרה בחיפה מאז חודש מאי",
        "כן, הכלב שלך אוהב לשחק בכדור!",
    ],
)
def test_an_echo_is_known(text: str) -> None:
    assert already_known(text, KNOWN)
    assert without_known(text, KNOWN) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Dana lives in Eilat.",
        "Dana no longer lives in Haifa.",
        "It is not true that Dana lives in Haifa.",
        "Dana lives in Haifa. She bought a boat.",
        "My cat is called Rex.",
        "Dana",
        "",
        "!?",
        "דנה גרה באילת מאז חודש מאי",
        "דנה כבר לא גרה בחיפה מאז חודש מאי",
        "החתול שלי אוהב לשחק בכדור",
        "דנה גרה בחיפה מאז חודש מאי. היא קנתה סירה.",
    ],
)
def test_what_is_new_is_not_known(text: str) -> None:
    assert not already_known(text, KNOWN)


OPPOSITE = fingerprints_of(
    (
        "I have meetings on Friday",
        "יש לי פגישות ביום שישי",
        "well water tastes of iron",
        "יוסי גר בחולון עם אחותו",
    )
)


@pytest.mark.parametrize(
    "text",
    [
        "No meetings on Friday.",
        "no  you have meetings on Friday",
        "No you said you have meetings on Friday.",
        "Sure meetings on Friday.",
        "לא יש לך פגישות ביום שישי.",
        "לא אמרת לי שיש לך פגישות ביום שישי",
        "לא אמרת שיש לך פגישות ביום שישי.",
        "בטח יוסי גר בחולון עם אחותו",
        "אז יוסי גר בחולון עם אחותו",
    ],
)
def test_a_negation_is_no_way_to_lead_in(text: str) -> None:
    assert not already_known(text, OPPOSITE)
    assert without_known(text, OPPOSITE) == text


@pytest.mark.parametrize(
    "text",
    [
        "No, you have meetings on Friday.",
        "No, as you said, I have meetings on Friday.",
        "Sure, meetings on Friday.",
        "So you have meetings on Friday.",
        "לא, יש לך פגישות ביום שישי.",
        "לא, אמרת לי שיש לך פגישות ביום שישי.",
        "כן יש לך פגישות ביום שישי",
        "אז, יוסי גר בחולון עם אחותו",
    ],
)
def test_before_a_comma_it_leads_in(text: str) -> None:
    assert without_known(text, OPPOSITE) == ""


@pytest.mark.parametrize("echo", ["את גרה בחיפה", "אמרת שאת גרה בחיפה.", "את גרה בחיפה!"])
def test_a_woman_is_addressed_as_a_man_is(echo: str) -> None:
    assert already_known(echo, fingerprints_of(["אני גרה בחיפה"]))
    assert not already_known("את גרה באילת", fingerprints_of(["אני גרה בחיפה"]))


def test_only_the_new_sentences_stay() -> None:
    text = "Dana lives in Haifa. She bought a boat! כן, הכלב שלך אוהב לשחק בכדור."
    assert without_known(text, KNOWN) == "She bought a boat!"


def test_nothing_is_known_without_fingerprints() -> None:
    assert not already_known("My dog is called Rex.", ())
    assert without_known("My dog is called Rex.", ()) == "My dog is called Rex."


def test_a_long_text_takes_a_bounded_number() -> None:
    words = " ".join(f"word{n}" for n in range(5_000))
    assert len(fingerprints_of([words])) == MAX_PER_TEXT


TEXTS = st.text(alphabet="abcאבגדה .!?\n", max_size=120)


@given(st.lists(TEXTS, max_size=5))
def test_each_injected_text_with_a_word_is_known(texts: list[str]) -> None:
    known = fingerprints_of(texts)
    assert len(set(known)) == len(known)
    of_contexts = ["".join(fingerprints_of([one])) for one in texts]
    for text in texts:
        said = any(letter.isalnum() for letter in text)
        assert already_known(text, known) is already_known(text, of_contexts) is said


@given(TEXTS, TEXTS)
def test_leaving_out_only_takes_away(text: str, injected: str) -> None:
    rest = iter(text)
    assert all(letter in rest for letter in without_known(text, fingerprints_of([injected])))


def test_text_without_an_echo_stays_as_it_is() -> None:
    for text in ("...and .NET 3.5; הכול חדש!!", "- one\n- two\n\n", "?!"):
        assert without_known(text, KNOWN) == text or not any(c.isalnum() for c in text)
