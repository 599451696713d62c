"""What may have been meant by a question that found nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.graphs.rules import question
from rayapp.graphs.rules.question import MOST_SUGGESTIONS, suggestions_of

KNOWN = ("Haifa", "bicycle lock", "kubernetes", "חיפה", "מנעול אופניים", "ירושלים")


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("what about kubernets?", ("what about kubernetes?",)),
        ("Haiffa weather", ("haifa weather",)),
        ("the bycicle", ("the bicycle",)),
        ("מה עם ירושליים?", ("מה עם ירושלים?",)),
        ("נסיעה לירושליים", ("נסיעה לירושלים",)),
        ("המנעוול", ("המנעול",)),
    ],
)
def test_a_word_in_another_spelling(query: str, meant: tuple[str, ...]) -> None:
    assert suggestions_of(query, KNOWN) == meant


@pytest.mark.parametrize(
    "query",
    [
        "Haifa",
        "what about Haifa",
        "the moon",
        "hi",
        "",
        "bicycle",
        "נסיעה לירושלים",
        "הירח",
        "שלום",
    ],
)
def test_what_is_known_or_like_nothing_has_no_other_spelling(query: str) -> None:
    assert suggestions_of(query, KNOWN) == ()


def test_of_a_long_message_few_words_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def near(word: str, *_: object, **options: object) -> list[str]:
        compared.append(word)
        return []

    monkeypatch.setattr(question, "get_close_matches", near)
    assert (
        suggestions_of(
            " ".join(f"wordword{'abcdefghij'[n % 10]}{n * 'x'}" for n in range(60)), KNOWN
        )
        == ()
    )
    assert len(compared) == question.MOST_UNKNOWN


def test_without_concepts_nothing_is_suggested() -> None:
    assert suggestions_of("kubernets", ()) == ()


@given(st.text(max_size=80), st.lists(st.text(max_size=20), max_size=8))
def test_any_question_is_read(query: str, labels: list[str]) -> None:
    assert len(suggestions_of(query, labels)) <= MOST_SUGGESTIONS
