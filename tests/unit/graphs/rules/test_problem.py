"""Problem fingerprints: the same question has the same one, in either language."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.graphs.rules.problem import problem_hash
from rayapp.text.expansions import Expansions

FILES: dict[str, Any] = {
    "a.yaml": {
        "domain": "test",
        "entries": [
            {"he": ["בית חולים"], "en": ["hospital"]},
            {"he": ['ת"א', "תל אביב"], "en": ["Tel Aviv"]},
            {"he": ["שגיאה"], "en": ["error"]},
            {"he": ["שרת"], "en": ["server"]},
            {"he": ["התקנה"], "en": ["installation"]},
        ],
    }
}
DICTIONARY = Expansions(FILES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("docker build fails", "My Docker builds fail, please help"),
        ("docker build fails", "fails: build docker"),
        ("pytest hangs in CI", "in CI, pytest hangs!"),
        ("שגיאה בשרת", "השרת שלי עם שגיאות"),
        ("התקנת מדפסת במחשב", "במחשב התקנת מדפסות"),
        ("error 404 on the server", "server error 404"),
    ],
)
def test_order_inflection_and_politeness_do_not_count(one: str, other: str) -> None:
    assert problem_hash(one, DICTIONARY) == problem_hash(other, DICTIONARY) is not None


@pytest.mark.parametrize(
    ("hebrew", "english"),
    [
        ("בית חולים בתל אביב", "hospital in Tel Aviv"),
        ("בית חולים בת״א", "a hospital in Tel Aviv"),
        ("שגיאה בשרת", "server error"),
        ("שגיאות בהתקנה של docker", "docker installation errors"),
    ],
)
def test_a_question_and_its_translation_meet(hebrew: str, english: str) -> None:
    assert problem_hash(hebrew, DICTIONARY) == problem_hash(english, DICTIONARY) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("docker build fails", "docker push fails"),
        ("error 404 on the server", "error 500 on the server"),
        ("install docker on linux", "remove docker on linux"),
        ("בית חולים בתל אביב", "בית ספר בתל אביב"),
        ("שגיאה בשרת", "שגיאה במדפסת"),
        ("How do I turn on dark mode in Slack?", "How do I turn off dark mode in Slack?"),
        ("מה אוכלים לפני הניתוח בבטן", "מה אוכלים אחרי הניתוח בבטן"),
        ("מתכון לעוגה עם ביצים", "מתכון לעוגה בלי ביצים"),
        ("the printer prints on both sides", "the printer does not print on both sides"),
    ],
)
def test_other_problems_differ(one: str, other: str) -> None:
    assert problem_hash(one, DICTIONARY) != problem_hash(other, DICTIONARY)


@pytest.mark.parametrize(
    "text",
    ["", "docker", "what is docker?", "hospital", "בית חולים", "מה זה דוקר", "docker docker", "?!"],
)
def test_one_topic_is_no_problem(text: str) -> None:
    assert problem_hash(text, DICTIONARY) is None


def test_shape() -> None:
    found = problem_hash("docker build fails")
    assert found is not None
    assert len(found) == 24
    assert int(found, 16) >= 0


@given(st.permutations(["docker", "build", "server", "שגיאה", "תל אביב", "hospital", "42"]))
def test_any_order_gives_one_hash(words: list[str]) -> None:
    expected = problem_hash("docker build server שגיאה תל אביב hospital 42", DICTIONARY)
    assert problem_hash(" ".join(words), DICTIONARY) == expected
