"""How well the tables read: the labelled texts, both languages, and what must not be read."""

import pytest

from jobs.suites.understanding import LABELLED, LANGUAGES, SAID_AT, load_labelled, measure
from rayapp.container.understanding import load_reader, load_registry

ENTITIES, RELATIONS = 0.80, 0.70


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("held_out", [False, True])
def test_labelled_texts_are_read_well(language: str, held_out: bool) -> None:
    texts = load_labelled(LABELLED / f"{language}.yaml", load_registry())
    assert len(texts) >= 60
    some = [one for one in texts if one.held_out is held_out]
    entities, relations, _ = measure(load_reader(), some)
    assert entities.f1 >= ENTITIES
    assert relations.f1 >= RELATIONS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "What did the central bank decide?",
        "Where do I live?",
        "If I lived in Paris I would be happy.",
        "Maybe I work at Intel.",
        "Does Dana live in Haifa?",
        "איפה אני גר?",
        "אם אני גר בפריז אני מאושר.",
        "הלוואי שאני גר בפריז.",
        "def live(place): return place",
        "https://example.com/live?in=Paris",
        "a" * 10_000,
        "I live in " * 500,
    ],
)
def test_what_says_nothing_gives_nothing(text: str) -> None:
    assert load_reader().read(text, SAID_AT).claims == ()


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("I passed the exam yesterday.", "2026-05-19"),
        ("I passed the exam two weeks ago.", "2026-05-06"),
        ("I passed the exam in 2019.", "2019-01-01"),
        ("I passed the exam in March.", "2026-03-01"),
        ("I passed the exam in September.", "2025-09-01"),
        ("עברתי את המבחן אתמול.", "2026-05-19"),
        ("עברתי את המבחן לפני שבועיים.", "2026-05-06"),
        ("עברתי את המבחן ב-2019.", "2019-01-01"),
        ("עברתי את המבחן במרץ.", "2026-03-01"),
        ("עברתי את המבחן לפני שלוש שנים.", "2023-05-21"),
    ],
)
def test_times_are_read_against_when_it_was_said(text: str, begins: str) -> None:
    (claim,) = load_reader().read(text, SAID_AT).claims
    assert claim.begins is not None
    assert claim.begins.date().isoformat() == begins


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("My sister Dana called. She lives in Haifa.", 1),
        ("My sister Dana met my friend Noa. She lives in Haifa.", 0),
        ("אחותי דנה התקשרה. היא גרה בחיפה.", 1),
    ],
)
def test_a_pronoun_means_the_one_person_whom_it_can_mean(text: str, people: int) -> None:
    claims = load_reader().read(text, SAID_AT).claims
    assert len([one for one in claims if one.relation == "LIVES_IN"]) == people
