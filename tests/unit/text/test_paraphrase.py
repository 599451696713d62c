"""What says the same in other words, and what only looks so."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rayapp.text.paraphrase import says_the_same
from rayapp.text.signature import difference

BENCH = Path(__file__).parents[2] / "bench"
FILES = ("dedup_pairs.yaml", "dedup_pairs_held_out.yaml")
KEPT_APART = [
    pair
    for name in FILES
    for groups in yaml.safe_load((BENCH / name).read_text(encoding="utf-8")).values()
    for pairs in groups["other"].values()
    for pair in pairs
]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("I am allergic to peanuts", "I'm allergic to peanuts."),
        ("The user prefers dark mode", "User prefers the dark mode"),
        ("The user is learning Spanish", "The user learns Spanish"),
        ("We are studying law", "We study law"),
        ("My favourite colour is blue", "My favorite color is blue"),
        ("My dog's name is Rex", "My dog is called Rex"),
        ("I usually wake up at 6", "I wake up usually at 6"),
        (
            "Restart the worker after changing the queue",
            "After changing the queue restart the worker",
        ),
        ("My phone number is 050-777", "My phone number was changed to 050-777"),
        ("I have two kids", "I have two children"),
        ("יעל צמחונית", "יעל היא צמחונית"),
        ("אני שותה קפה בלי סוכר", "אני שותה את הקפה בלי סוכר"),
        ("לכלב שלי קוראים רקס", "שם הכלב שלי הוא רקס"),
        ("הטיסה יוצאת בשעה 7", "הטיסה יוצאת ב-7"),
        ("אני קם בדרך כלל ב-6", "בדרך כלל אני קם ב-6"),
        ("הצבע האהוב עליי הוא כחול", "הצבע האהוב עלי הוא כחול"),
        ("אני מדבר גם עברית וגם רוסית", "אני מדבר עברית ורוסית"),
    ],
)
def test_one_fact_in_other_words(a: str, b: str) -> None:
    assert says_the_same(a, b)
    assert says_the_same(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("P(A) = P(B|A)", "P(A) = P(B)"),
        ("Is the server in Frankfurt?", "The server is in Frankfurt."),
        ("The threshold is -5 degrees", "The threshold is 5 degrees"),
        ("Colours: R G B", "Colours: B R G"),
        ("Dana owes Noa money", "Noa owes Dana money"),
        ("My son lives in Paris", "My sons live in Paris"),
        ("Dana works at the bank", "Dana worked at the bank"),
        ("דנה אוהבת את נועה", "את דנה אוהבת נועה"),
        ("דנה עובדת בבנק", "דנה עבדה בבנק"),
        ("יוסי הלווה אלף שקל", "יוסי לווה אלף שקל"),
        ("דנה הראתה את הדירה", "דנה ראתה את הדירה"),
        ("יוסי השכיר דירה", "יוסי שכיר דירה"),
        ("אבא הבריא אחרי הניתוח", "אבא בריא אחרי הניתוח"),
        ("I'm quitting Google", "I quit Google"),
        ("I am reading War and Peace", "I read War and Peace"),
    ],
)
def test_one_word_makes_it_another_fact(a: str, b: str) -> None:
    assert not says_the_same(a, b)


@pytest.mark.parametrize("pair", KEPT_APART, ids=" / ".join)
def test_no_pair_of_the_bench_is_taken_for_the_same(pair: list[str]) -> None:
    assert not says_the_same(*pair) or difference(*pair) not in (None, "names")


WORDS = ["dana", "noa", "likes", "is", "the", "to", "from", "working", "works", "not"]
HEBREW = ["דנה", "נועה", "אוהבת", "את", "הוא", "לחיפה", "מחיפה", "לא", "תמיד"]
TEXTS = st.lists(st.sampled_from(WORDS + HEBREW), min_size=1, max_size=7).map(" ".join)


@given(TEXTS, TEXTS)
def test_it_is_the_same_both_ways(a: str, b: str) -> None:
    assert says_the_same(a, b) == says_the_same(b, a)


@given(TEXTS, st.sampled_from(["not", "rarely", "לא", "כמעט"]))
def test_a_word_more_is_another_fact(text: str, word: str) -> None:
    assert not says_the_same(text, f"{text} {word}")
