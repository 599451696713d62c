"""Language by script share."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.text.language import _HEBREW, _LATIN, _LETTER, detect_language, letters_in


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("מה שלומך היום", "he"),
        ("איך מתקינים Docker על השרת החדש שלי במשרד", "he"),
        ("How are you", "en"),
        ("the word שלום means peace in that old language of theirs", "en"),
        ("פגישה עם John Smith", "mixed"),
        ("", "other"),
        ("12345 !?", "other"),
        ("Привет мир", "other"),
        ("你好 Bob", "en"),
        ("שָׁלוֹם", "he"),
    ],
)
def test_detect_language(text: str, expected: str) -> None:
    assert detect_language(text) == expected


@given(st.text(st.sampled_from("אבתךשּײ aéZ9_-яß你٣")))
def test_letters_are_counted_one_by_one(text: str) -> None:
    for letters in (_HEBREW, _LATIN, _LETTER):
        one = re.compile(letters.pattern.removesuffix("+"))
        assert letters_in(letters, text) == len(one.findall(text))
