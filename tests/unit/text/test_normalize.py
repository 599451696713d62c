"""Forms of a text: for matching, for the hash, and what may not be stored."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.text.normalize import canonical, content_hash, find_forbidden, normalize, shows_nothing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("שָׁלוֹם עוֹלָם", "שלום עולם"),
        ("בְּרֵאשִׁ֖ית", "בראשית"),
        ("בית־ספר", "בית ספר"),
        ("צה״ל", 'צה"ל'),
        ("צה”ל", 'צה"ל'),
        ("צה''ל", 'צה"ל'),
        ("צה\u05f3\u05f3ל", 'צה"ל'),
        ("צה\u2019\u2019ל", 'צה"ל'),
        ("צה\u2033ל", 'צה"ל'),
        ("INV\u2011001234", "INV-001234"),
        ("ג׳ירפה", "ג'ירפה"),
        ("ג\u00b4ירפה", "ג'ירפה"),
        ("יְרוּשָׁלַ\u034fִם", "ירושלם"),
        ("ג’ירפה", "ג'ירפה"),
        ("\u200fשלום\u200e", "שלום"),
        ("של\u200bום", "שלום"),
        ("\ufeffhello\u00ad", "hello"),
        ("\ufb2a\ufb35", "שו"),
        ("  a \t b\n\nc ", "a b c"),
        ("Ｆｕｌｌ", "Full"),
        ("מים רבים", "מים רבים"),
    ],
)
def test_normalize(text: str, expected: str) -> None:
    assert normalize(text) == expected


def test_quotes_around_hebrew_words_are_not_gershayim() -> None:
    assert normalize("“שלום”") == "“שלום”"


@given(st.text())
def test_normalize_twice_is_normalize_once(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)


@given(st.text())
def test_canonical_twice_is_canonical_once(text: str) -> None:
    assert canonical(canonical(text)) == canonical(text)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Dana likes tea", "dana  likes\ntea "),
        ("שלום\u200f עולם", "שלום עולם"),
        ("caf\u00e9", "cafe\u0301"),
        ("\ufb2aלום", unicodedata.normalize("NFD", "\ufb2aלום")),
    ],
)
def test_same_hash(a: str, b: str) -> None:
    assert content_hash(a) == content_hash(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("10² m", "102 m"),
        ("costs 5", "costs 5.0"),
        ("I do", "I do not"),
        ("let's eat, grandma", "let's eat grandma"),
        ("👩\u200d👧", "👩👧"),
        ("שֶׁמֶן", "שָׁמֵן"),
    ],
)
def test_different_hash(a: str, b: str) -> None:
    assert content_hash(a) != content_hash(b)


def test_hash_is_sha256_hex() -> None:
    assert content_hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize("code", [0x00, 0x08, 0x0B, 0x1F, 0x7F, 0x80, 0x85, 0x9F, 0xD800, 0xDFFF])
def test_forbidden_characters_are_named(code: int) -> None:
    found = find_forbidden("ab" + chr(code))
    assert found is not None
    assert f"U+{code:04X}" in found
    assert "character 2" in found


@pytest.mark.parametrize("text", ["", "tab\tline\r\n", "שלום \u200f\u202b\u2067", "\u00a0🙂é"])
def test_allowed_characters(text: str) -> None:
    assert find_forbidden(text) is None


@given(
    st.text(
        st.one_of(
            st.characters(categories=("Cf", "Zs", "Zl", "Zp", "Mn", "Me", "Mc")),
            st.sampled_from("\t\n\u200b\u200e\u200f\u202a\u2069\ufeff\u115f\u3164\uffa0\u2800"),
        )
    )
)
def test_marks_and_spaces_alone_show_nothing(text: str) -> None:
    assert shows_nothing(text)


@given(
    st.sampled_from(["שָׁלוֹם", "דִּירָה 4", "\u200fabc\u200e", "\u2067עברית\u2069", "👍", "א", "7"]),
    st.text(st.characters(categories=("Cf", "Zs", "Mn"))),
    st.text(st.characters(categories=("Cf", "Zs", "Mn"))),
)
def test_a_word_with_points_or_bidi_marks_is_seen(word: str, before: str, after: str) -> None:
    assert not shows_nothing(before + word + after)
