"""Our DataGov questions: enough of them, well formed, and true to the catalogue."""

import re
from collections import Counter
from pathlib import Path

import pytest

from jobs.suites.datagov_set import SCHEMAS, load_questions
from jobs.suites.suite import Question, read_json

ASKED, CONTROLS = load_questions()
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HEBREW = re.compile("[א-ת]")
CATEGORIES = 21
LEAST_PER_LANGUAGE = 70
LEAST_PARALLEL, MOST_PARALLEL = 3, 15


def plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def in_language(lang: str) -> list[Question]:
    return [question for question in ASKED if question.lang == lang]


@pytest.mark.parametrize("lang", ["he", "en"])
def test_each_language_has_enough_over_all_categories(lang: str) -> None:
    asked = in_language(lang)
    assert len(asked) >= LEAST_PER_LANGUAGE
    counts = Counter(question.category for question in asked)
    assert len(counts) == CATEGORIES
    assert min(counts.values()) >= 2
    assert max(counts.values()) <= len(asked) // 8


def test_every_question_has_one_to_six_different_datasets() -> None:
    for question in ASKED:
        assert 1 <= len(question.gold) <= 6, question.question_id
        assert len(set(question.gold)) == len(question.gold), question.question_id
        assert all(UUID.fullmatch(name) for name in question.gold), question.question_id


def test_no_id_or_text_is_used_twice() -> None:
    everything = [*ASKED, *CONTROLS]
    assert len({question.question_id for question in everything}) == len(everything)
    assert len({plain(question.text) for question in everything}) == len(everything)


def test_a_question_is_in_the_script_of_its_language() -> None:
    for question in [*ASKED, *CONTROLS]:
        hebrew = len(HEBREW.findall(question.text))
        if question.lang == "he":
            assert hebrew > len(re.findall("[A-Za-z]", question.text)), question.question_id
        else:
            assert hebrew == 0, question.question_id


def test_the_languages_mostly_ask_for_different_things() -> None:
    """A few parallel pairs show what the language alone costs."""
    hebrew = {frozenset(question.gold) for question in in_language("he")}
    parallel = sum(frozenset(question.gold) in hebrew for question in in_language("en"))
    assert LEAST_PARALLEL <= parallel <= MOST_PARALLEL


@pytest.mark.realdata
def test_questions_are_true_to_the_catalogue(realdata: Path) -> None:
    datasets = {row["dataset_id"]: row for row in read_json(realdata / SCHEMAS, "x")["datasets"]}
    titles = {plain(row["title"]) for row in datasets.values()}
    known = {category for row in datasets.values() for category in row["categories"]}
    assert {question.category for question in ASKED} == known
    for question in ASKED:
        assert plain(question.text) not in titles, question.question_id
        of_gold = {c for name in question.gold for c in datasets[name]["categories"]}
        assert question.category in of_gold, question.question_id
