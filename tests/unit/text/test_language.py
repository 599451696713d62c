"""Language by script share."""

import pytest

from rayapp.text.language import detect_language


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
