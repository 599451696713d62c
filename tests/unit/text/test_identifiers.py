"""What is an identifier in a question, and what holds it."""

import random

import pytest

from rayapp.text.identifiers import MOST, identifiers_in


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("what is 000f1234?", ["000f1234"]),
        ("מה זה 67a25288?", ["67a25288"]),
        ("מתי שולמה חשבונית INV-001234?", ["inv-001234"]),
        ("מה קרה ל-INV-001234", ["inv-001234"]),
        ("מה קרה לINV-001234", ["inv-001234"]),
        ("זיהוי-65-818174", ["זיהוי-65-818174"]),
        ("מזהה123456", ["מזהה123456"]),
        ("who owns PROJ-123, and (ERR_TIMEOUT)?", ["proj-123", "err_timeout"]),
        ("d9b1d7db-4f5c-4a0e-8d5d-1f5c2a3b4c5d", ["d9b1d7db-4f5c-4a0e-8d5d-1f5c2a3b4c5d"]),
        ("mail dana@example.co.il about a1b2c3", ["dana@example.co.il", "a1b2c3"]),
        ("order 4711 from 10.0.0.17, 052-1234567", ["4711", "10.0.0.17", "052-1234567"]),
    ],
)
def test_a_name_with_digits_is_an_identifier(question: str, names: list[str]) -> None:
    found = identifiers_in(question)
    assert len(found) == len(names)
    assert all(name in one.readings for one, name in zip(found, names, strict=True))


@pytest.mark.parametrize(
    "question",
    [
        "",
        "what happened on 2023-05-08 at 12:30?",
        "in 1948, the mid-1990s or post-2008",
        "מה קרה ב-1948 ובשנת 2019",
        "is COVID-19 in top-10, the F-16 or an MP3 of H2O?",
        "100km in 24-hour shifts for the 20th 3-year-old",
        "well-known getUserName, 1,250,000 and 3.14",
        "_emphasis_",
    ],
)
def test_years_dates_counts_and_models_are_not(question: str) -> None:
    assert identifiers_in(question) == ()


@pytest.mark.parametrize(
    ("name", "text", "holds"),
    [
        ("INV-001234", "Invoice inv-001234 was paid", True),
        ("INV-001234", "ref:INV-001234.", True),
        ("INV-001234", "ref: INV\u2011001234", True),
        ("INV-001234", "שולם לפי ה-INV-001234", True),
        ("INV-001234", "שולם בINV-001234, סוף", True),
        ("ל-INV-001234", "Invoice INV-001234", True),
        ("INV-001234", "\u200eINV-001234\u200f", True),
        ("מזהה123456", "Marker המזהה123456 here", True),
        ("המזהה123456", "Marker מזהה123456 here", True),
        ("INV-001234", "Invoice INV-0012345", False),
        ("INV-001234", "Invoice INV-001234-7", False),
        ("INV-001234", "Invoice XINV-001234", False),
        ("INV-001234", "Invoice NEW-INV-001234", False),
        ("INV-001234", "Invoice 001234", False),
        ("build-12345.1", "build-12345.12", False),
        ("מזהה123456", "Marker מזהה123457", False),
        ("65-818174", "זיהוי-65-818174", False),
    ],
)
def test_a_text_holds_an_identifier_as_a_whole(name: str, text: str, holds: bool) -> None:
    (one,) = identifiers_in(name)
    assert one.is_in(text) is holds


def test_a_pasted_log_names_only_so_many() -> None:
    rng = random.Random(3)
    names = " ".join(f"{rng.getrandbits(64):016x}" for _ in range(200))
    assert len(identifiers_in(names)) == MOST


@pytest.mark.parametrize("text", ["חדר 5 ፩፪፫፬", "a_b ❶❷❸❹", "5 ⓵⓶⓷⓸"])
def test_signs_that_are_no_decimal_digits_are_read(text: str) -> None:
    assert len(identifiers_in(text)) <= MOST
