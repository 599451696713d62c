"""Lines as a page draws them, and as they are read."""

import pytest

from rayapp.documents.rules.visual_order import composed, is_right_to_left, reading_order

# What is read, and what the bidirectional algorithm of Unicode draws of it from left to right
# (made with python-bidi 0.6).
LINES = [
    ("שלום עולם.", ".םלוע םולש"),
    ("ריימונד? (התשובה: דמיאן).", ".(ןאימד :הבושתה) ?דנומייר"),
    ("שלום (world) עולם", "םלוע (world) םולש"),
    ("גרסה Word (2010) היא", "איה (Word (2010 הסרג"),
    ('מחיר 10.50 ₪ (כולל 17% מע"מ)', '(מ"עמ 17% ללוכ) ₪ 10.50 ריחמ'),
    ("בשנים 1988–1995 היו", "ויה 1995–1988 םינשב"),
    ("ה-2 בינואר 12/05/2024 בשעה 12:30", "12:30 העשב 12/05/2024 ראוניב 2-ה"),
    ("C++ היא שפה", "הפש איה ++C"),
    ("הכתובת https://a.b/c?d=1 כאן", "ןאכ https://a.b/c?d=1 תבותכה"),
    ('טל 03-1234567 או דוא"ל a@b.co.il', 'a@b.co.il ל"אוד וא 03-1234567 לט'),
    ("[1] מקור, [2] עוד", "דוע [2] ,רוקמ [1]"),
    ("The word שלום means", "The word םולש means"),
    ('He said "שלום עולם" (peace)', 'He said "םלוע םולש" (peace)'),
    ("1. השאלות", "תולאשה .1"),
    ("ו-2 שאלות", "תולאש 2-ו"),
    ("windows 11 Pro: מדריך", "windows 11 Pro: ךירדמ"),
    ("תקן ISO 9001:2015 לניהול", "לוהינל ISO 9001:2015 ןקת"),
    ("50%-30% מהאוכלוסייה", "הייסולכואהמ 30%-50%"),
    ("A, B, ו-C", "A, B, ו-C"),
    ("Plain English (only).", "Plain English (only)."),
]


@pytest.mark.parametrize(("read", "drawn"), LINES)
def test_a_drawn_line_is_read(read: str, drawn: str) -> None:
    assert reading_order(list(drawn), is_right_to_left(drawn)) == read


def test_points_stay_with_their_letter() -> None:
    assert reading_order(["ם", "וֹ", "ל", "שָׁ"], True) == "שָׁלוֹם"


def test_brackets_that_were_not_turned() -> None:
    assert reading_order(list(").havfrue :תינדב)"), True) == "(בדנית: havfrue.)"


@pytest.mark.parametrize(
    ("text", "document", "expected"),
    [
        ("שלום", None, True),
        ("hello", True, False),
        ("Microsoft Azure Functions היא שירות", None, False),
        ("Microsoft Azure Functions היא שירות", True, True),
        ("the word שלום means peace", False, False),
        ("12.5", True, False),
    ],
)
def test_where_a_line_runs(text: str, document: bool | None, expected: bool) -> None:
    assert is_right_to_left(text, document) is expected


def test_presentation_forms_become_letters_and_points() -> None:
    assert composed("\ufb2a\ufb01") == "ש\u05c1fi"
