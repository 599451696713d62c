"""A question names a thing by its whole name, in any form, and by nothing less."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.text.names import names_in, one_edit_apart

WORDS = st.text(alphabet="abcde", min_size=1, max_size=7)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("what's my K8S deploy story?", "k8s"),
        ("how do we use the mongodb raw driver", "mongodb_raw_driver"),
        ("should I use base classes here?", "base class"),
        ("how do I configure typscript strict mode?", "TypeScript"),
        ("typsecript config", "TypeScript"),
        ("suggest a good Mongoose schema", "moongoose"),
        ("מה יש במונגו היום?", "מונגו"),
        ("ומה עם שהרדיס נפל", "רדיס"),
        ("מתי נפתחות הגינות של בתי הספר", "בית ספר"),
        ("היישום של פוסטגרסס נפל", "פוסטגרס"),
        ("כמה עולה חברת החשמל", "חברת חשמל"),
    ],
)
def test_a_name_is_found_in_its_forms_and_with_a_typo(question: str, name: str) -> None:
    assert names_in(question, (name, "something else")) == (name,)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("mango connection pooling", "Mongo"),
        ("k9s pod scheduling", "k8s"),
        ("how does the CI pipeline run", "functional pipeline"),
        ("what does it do for us", "it"),
        ("fly to Rome", "Fly.io"),
        ("python2 on the server", "python3"),
        ("הספר על השולחן", "ספה"),
        ("מה זה של מי", "של"),
        ("driver raw mongodb", "mongodb raw driver"),
        ("anything", ""),
    ],
)
def test_part_of_a_name_or_another_word_is_no_name(question: str, name: str) -> None:
    assert names_in(question, (name,)) == ()


def test_names_keep_their_order_and_spelling() -> None:
    assert names_in("redis and REACT", ("React", "Vue", "redis")) == ("React", "redis")


@given(WORDS, WORDS)
def test_one_edit_is_symmetric_and_never_zero(one: str, other: str) -> None:
    assert one_edit_apart(one, other) == one_edit_apart(other, one)
    assert not one_edit_apart(one, one)


@given(WORDS, st.integers(0, 6), st.sampled_from("abcdef"))
def test_a_letter_more_is_one_edit(word: str, at: int, letter: str) -> None:
    longer = word[:at] + letter + word[at:]
    assert one_edit_apart(word, longer)


@given(WORDS, st.integers(0, 6), st.sampled_from("xyz"))
def test_two_other_letters_are_two_edits(word: str, at: int, letter: str) -> None:
    assert not one_edit_apart(word, word[:at] + letter + letter + word[at:])


@given(st.text(max_size=30), st.text(max_size=12))
def test_any_text_is_understood(question: str, name: str) -> None:
    assert names_in(question, (name,)) in ((), (name,))
