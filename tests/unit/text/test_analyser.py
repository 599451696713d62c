"""Terms and sparse vectors."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.text.analyser import Analyser, Bm25, TermWeights, score
from rayapp.text.expansions import Expansion
from rayapp.text.tokens import term_index

ANALYSER = Analyser()
PINNED = ("bm25-3-18fd302e", 18, 19443)
PINNED_SUM = 23.04970513900589


def weight_of(vector_indices: list[int], values: list[float], term: str) -> float | None:
    return dict(zip(vector_indices, values, strict=True)).get(term_index(term))


def test_terms_of_a_hebrew_word() -> None:
    # Final letters have one form inside terms.
    assert ANALYSER.terms("לרכבים") == {
        "לרכבימ": 1.0,
        "lemma:רכב": 1.0,
        "c4:לרכב": 1.0,
        "c4:רכבי": 1.0,
        "c4:כבימ": 1.0,
    }


def test_terms_count_repeats_and_keep_parts_of_identifiers() -> None:
    terms = ANALYSER.terms("userName user")
    assert terms["user"] == 2.0
    assert terms["lemma:user"] == 2.0
    assert terms["username"] == 1.0


def test_stop_words_give_their_raw_form_only() -> None:
    assert ANALYSER.terms("של the") == {"של": 1.0, "the": 1.0}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("בית־ספר", "בית ספר"),
        ("צה״ל", 'צה"ל'),
        ("שָׁלוֹם", "שלום"),
        ("Hello\u200f World", "hello world"),
    ],
)
def test_spellings_of_one_text_have_one_vector(a: str, b: str) -> None:
    assert ANALYSER.document(a) == ANALYSER.document(b)


@given(st.text(max_size=200))
def test_vectors_are_well_formed(text: str) -> None:
    for vector in (ANALYSER.document(text), ANALYSER.query(text)):
        assert vector.indices == sorted(set(vector.indices))
        assert len(vector.indices) == len(vector.values)
        assert all(0 <= index < 2**32 for index in vector.indices)
        assert all(math.isfinite(value) and value > 0 for value in vector.values)


def test_document_value_is_bm25() -> None:
    vector = Analyser(bm25=Bm25(k1=1.5, b=0.75, average_tokens=10)).document("tea tea milk")
    norm = 1.5 * (1 - 0.75 + 0.75 * 3 / 10)
    assert weight_of(vector.indices, vector.values, "tea") == pytest.approx(2.5 * 2 / (2 + norm))
    assert weight_of(vector.indices, vector.values, "milk") == pytest.approx(2.5 / (1 + norm))


def test_query_weights_by_kind() -> None:
    weights = TermWeights(raw=1.0, lemma=2.0, c4=0.25, stop=0.1)
    vector = Analyser(weights=weights).query("the ילדים")
    assert weight_of(vector.indices, vector.values, "the") == 0.1
    assert weight_of(vector.indices, vector.values, "ילדימ") == 1.0
    assert weight_of(vector.indices, vector.values, "lemma:ילד") == 2.0
    assert weight_of(vector.indices, vector.values, "c4:ילדי") == 0.25


def test_query_of_stop_words_only_keeps_their_weight() -> None:
    vector = ANALYSER.query("who am i")
    assert vector.values == [1.0, 1.0, 1.0]


def test_expansion_weighs_less_and_leaves_own_words_alone() -> None:
    expansions = [Expansion("car", 1.0, "x"), Expansion("tea", 0.5, "x")]
    plain = ANALYSER.query("car")
    vector = ANALYSER.query("car", expansions, expansion_weight=0.4)
    assert weight_of(vector.indices, vector.values, "tea") == pytest.approx(0.2)
    for term in ("car", "lemma:car"):
        assert weight_of(vector.indices, vector.values, term) == weight_of(
            plain.indices, plain.values, term
        )


def test_version_follows_what_changes_documents() -> None:
    assert Analyser().version == ANALYSER.version
    assert Analyser(weights=TermWeights(c4=0.9)).version == ANALYSER.version
    assert Analyser(bm25=Bm25(k1=1.0)).version != ANALYSER.version
    assert Analyser(vocabulary=["זברנית"]).version != ANALYSER.version


def test_documents_of_this_version_do_not_move() -> None:
    """When this fails, raise SCHEMA: stored vectors no longer match what a query asks for."""
    vector = ANALYSER.document("הרכבים של צה״ל, getUser 3.11 running")
    total = sum(index * position for position, index in enumerate(vector.indices, start=1))
    assert (ANALYSER.version, len(vector.indices), total % 1_000_003) == PINNED
    assert sum(vector.values) == pytest.approx(PINNED_SUM)


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("where are the cars", "a red car", 1.0),
        ("לרכבים", "הרכב בחניה", 1.0),
        ("cars and boats", "a red car", 0.5),
        ("who am i", "i am dana", 0.0),
        ("", "anything", 0.0),
        ("tea", "", 0.0),
    ],
)
def test_coverage(query: str, text: str, expected: float) -> None:
    assert ANALYSER.coverage(query, text) == expected


def test_score_without_idf_is_the_dot_product() -> None:
    query, document = ANALYSER.query("tea"), ANALYSER.document("tea")
    expected = sum(q * d for q, d in zip(query.values, document.values, strict=True))
    assert score(query, document) == pytest.approx(expected)


def test_terms_the_table_lacks_count_nothing() -> None:
    query, document = ANALYSER.query("tea"), ANALYSER.document("tea")
    assert score(query, document, {}) == 0.0
