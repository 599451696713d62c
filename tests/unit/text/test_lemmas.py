"""Readings of words: prefixes, inflections, acronyms."""

import pytest

from rayapp.text.hebrew import without_prefixes
from rayapp.text.lemmas import lemma, lemmas


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("רכבים", "רכב"),
        ("לרכבים", "רכב"),
        ("הרכב", "רכב"),
        ("שברכבים", "רכב"),
        ("ושברכבים", "רכב"),
        ("והרכב", "רכב"),
        ("ירושלים", "ירושלים"),
        ("בירושלים", "ירושלים"),
        ("מים", "מים"),
        ("שבבית", "בית"),
        ("לבית", "בית"),
        ("וכשהילדים", "ילד"),
        ("הגנה", "הגנה"),
        ("הסכם", "הסכם"),
        ("מכתב", "מכתב"),
        ("cars", "car"),
        ("Running", "run"),
        ("mice", "mouse"),
        ("k8s", "k8s"),
        ("AI", "ai"),
        ("JS", "js"),
        ("ML", "ml"),
        ("was", "be"),
    ],
)
def test_likeliest_reading(word: str, expected: str) -> None:
    assert lemma(word) == expected


def test_water_is_never_sea() -> None:
    assert "ים" not in lemmas("מים")


def test_ambiguous_word_keeps_both_readings() -> None:
    assert set(lemmas("הרכב")) == {"רכב", "הרכב"}


@pytest.mark.parametrize(
    ("word", "acronym"),
    [
        ('צה"ל', 'צה"ל'),
        ('בצה"ל', 'צה"ל'),
        ('ת"א', 'ת"א'),
        ('לת"א', 'ת"א'),
        ('הדו"ח', 'דו"ח'),
        ('ארה"ב', 'ארה"ב'),
        ('שבארה"ב', 'ארה"ב'),
        ('שב"כ', 'שב"כ'),
        ('מנכ"ל', 'מנכ"ל'),
    ],
)
def test_acronyms_stay_whole(word: str, acronym: str) -> None:
    assert lemma(word) == acronym


def test_acronym_meets_its_spelling_without_marks() -> None:
    assert set(lemmas('דו"חות')) & set(lemmas("דוחות")) & set(lemmas('דו"ח'))


def test_prefix_before_a_word_only_the_vocabulary_knows() -> None:
    assert lemma("בזברנית") != "זברנית"
    assert lemma("בזברנית", frozenset({"זברנית"})) == "זברנית"


@pytest.mark.parametrize(
    ("word", "min_letters", "expected"),
    [
        ("ושברכבים", 3, ["שברכבים", "ברכבים", "רכבים"]),
        ("בהבית", 3, ["הבית"]),
        ("מים", 3, []),
        ("אבטיח", 3, []),
    ],
)
def test_only_legal_prefixes_come_off(word: str, min_letters: int, expected: list[str]) -> None:
    assert without_prefixes(word, min_letters) == expected
