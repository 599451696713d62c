"""What a text is about, by rules, in both languages."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.container import bootstrap
from rayapp.text.concept import Concept
from rayapp.text.concepts import MAX_CONCEPTS, MAX_READ_CHARS, concept_key, extract_concepts
from rayapp.text.expansions import Expansions

FILES: dict[str, Any] = {
    "a.yaml": {
        "domain": "test",
        "entries": [
            {"he": ["מכונית", "רכב"], "en": ["car", "vehicle"]},
            {"he": ["בית חולים"], "en": ["hospital"]},
            {"he": ["ביטוח"], "en": ["insurance"]},
            {"he": ["ביטוח לאומי"], "en": ["National Insurance"]},
            {"he": ['ת"א', "תל אביב"], "en": ["Tel Aviv"]},
            {"he": ["שרת"], "en": ["server"]},
            {"he": ["עבודה"], "en": ["job", "work"]},
        ],
    }
}
DICTIONARY = Expansions(FILES)
OURS = bootstrap.load_texts().expansions


def keys(text: str, **given_terms: Any) -> list[str]:
    return [concept.key for concept in extract_concepts(text, **given_terms)]


def typed(text: str, node_type: str, expansions: Expansions | None = None) -> list[str]:
    found = extract_concepts(text, expansions=expansions)
    return [concept.label for concept in found if concept.type == node_type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docker build fails", ["docker", "build", "fail"]),
        ("How do I fix the build?", ["fix", "build"]),
        ("I want to know a thing", []),
        ("the cars and the car", ["car"]),
        ("המחשבים של הלקוחות", ["מחשב", "לקוח"]),
        ("אני רוצה לדעת משהו", []),
        ("רכב חדש או רכבים ישנים", ["רכב"]),
        ("ראיתי את הילדים בטלוויזיה", ["ילד", "טלוויזיה"]),
        ("", []),
    ],
)
def test_a_plain_sentence_still_has_concepts(text: str, expected: list[str]) -> None:
    assert keys(text) == expected


@pytest.mark.parametrize(
    "spellings",
    [
        ["רכב", "רכבים", "הרכב", "ברכב", "\u05e8\u05b6\u05db\u05b6\u05d1"],
        ["Docker", "docker", "DOCKER", "Docker's"],
        ["APIs", "API", "api"],
        ["docker-compose", "docker compose", "Docker Compose"],
        ['דו"ח', "דו״ח", 'הדו"ח'],
        ["משרד הבריאות", "במשרד הבריאות", "משרד־הבריאות"],
        ["user_preferences", "user preference"],
    ],
)
def test_spellings_meet_under_one_key(spellings: list[str]) -> None:
    assert len({concept_key(one) for one in spellings}) == 1
    assert concept_key(spellings[0])


@pytest.mark.parametrize(
    "spellings",
    [
        ["car", "cars", "Vehicle", "רכבים", "המכונית", "ברכב"],
        ["hospital", "Hospitals", "בית חולים", "בבית חולים"],
        ["Tel Aviv", "תל אביב", "בתל אביב", "ת״א", 'לת"א'],
        ["server", "servers", "שרת", "השרת", "בשרת"],
        ["National Insurance", "ביטוח לאומי"],
    ],
)
def test_a_term_meets_its_translation(spellings: list[str]) -> None:
    assert len({concept_key(one, DICTIONARY) for one in spellings}) == 1
    for one in spellings:
        assert concept_key(one, DICTIONARY) in keys(f"{one}", expansions=DICTIONARY)


@pytest.mark.parametrize("expansions", [None, OURS])
@pytest.mark.parametrize("name", ["דנה", "רוני", "עידו", "מאיה", "יוסי", "נועה", "חיפה"])
@pytest.mark.parametrize("particle", ["ל", "ב", "מ", "ש", "ו"])
def test_a_name_is_one_concept_behind_every_particle(
    particle: str, name: str, expansions: Expansions | None
) -> None:
    if particle + name in ("במאיה", "מנועה"):  # "in my May", "her engine": words of their own
        return
    assert concept_key(particle + name, expansions) == concept_key(name, expansions)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("לדנה יש כלב", "דנה"),
        ("דנה אמרה", "דנה"),
        ("ודנה אמרה", "דנה"),
        ("לרותי יש כלב", "רותי"),
        ("לנועה יש כלב", "נעה"),
        ("נסענו לתל אביב", "תל אביב"),
    ],
)
def test_what_belongs_to_a_name_is_found_under_it(text: str, key: str) -> None:
    assert keys(text, expansions=OURS)[0] == key
    assert "ילד" not in keys(text, expansions=OURS)


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("לאכול", "לאכול"),
        ("ללמוד", "למד"),
        ("לשמור", "שמר"),
        ("לשיר", "שיר"),
        ("בית", "בית"),
        ("מים", "מימ"),
        ("ילד", "ילד"),
        ("לילד", "ילד"),
        ("לידה", "לידה"),
        ("מנוע", "מנוע"),
        ("מחנה", "מחנה"),
        ("מליאת", "מליאה"),
    ],
)
def test_everyday_words_are_no_names(word: str, key: str) -> None:
    assert keys(word) == [key]


def test_a_verb_of_movement_is_no_concept() -> None:
    assert keys("ללכת") == []


def test_the_label_is_the_text_as_written() -> None:
    (found,) = extract_concepts("my Cars", expansions=DICTIONARY)
    assert (found.key, found.label) == ("מכונית", "Cars")


def test_a_known_phrase_is_not_its_parts() -> None:
    assert keys("ביטוח לאומי", expansions=DICTIONARY) == ["ביטוח לאומי"]
    assert "ביטוח" not in keys("National Insurance", expansions=DICTIONARY)


def test_a_generic_word_of_the_dictionary_is_no_concept() -> None:
    assert keys("it does not work", expansions=DICTIONARY) == []
    assert keys("my job", expansions=DICTIONARY) == ["עבודה"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('she read "Moby Dick" twice', ["Moby Dick"]),
        ('הוא קרא את "מלחמה ושלום" פעמיים', ["מלחמה ושלום"]),
        ("run `docker compose` now", ["docker compose"]),
        ("she read “Moby Dick” twice", ["Moby Dick"]),
        ('הכתבה על "חיל צה"ל בגבול" פורסמה', ['חיל צה"ל בגבול']),
        ('ו"ביטוח" 5" screen', []),
        ('he said "this is a very long sentence that nobody would call a name" loudly', []),
    ],
)
def test_quotations(text: str, expected: list[str]) -> None:
    assert typed(text, "phrase")[: len(expected)] == expected
    assert len(typed(text, "phrase")) == len(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the API of AWS", ["API", "AWS"]),
        ("two APIs and CI/CD", ["APIs", "CI/CD"]),
        ('חייל בצה"ל עם מנכ״ל', ['בצה"ל', 'מנכ"ל']),
        ("ה-API של הבנק", ["API"]),
        ("PLEASE FIX MY DOCKER BUILD", []),
        ("what should WE do NOW", []),
    ],
)
def test_acronyms(text: str, expected: list[str]) -> None:
    assert typed(text, "acronym") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we met Dana Cohen in New York", ["Dana Cohen", "New York"]),
        ("the Bank of Israel said", ["Bank of Israel"]),
        ("Deploy Kubernetes on Monday", ["Kubernetes"]),
        ("Yesterday it rained. Weather is bad", []),
        ("Grafana shows it", ["Grafana"]),
        ("I met him in May", []),
        ("we use MongoDB", ["MongoDB"]),
        ("first line\nSecond line", []),
        ("פגשנו את Dana Cohen בחיפה", ["Dana Cohen"]),
    ],
)
def test_capitalised_runs(text: str, expected: list[str]) -> None:
    assert typed(text, "entity") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("פניתי אל משרד הבריאות", ["משרד הבריאות"]),
        ("הוא לומד בבית הספר", ["בבית הספר"]),
        ("תור לקופת חולים כללית", ["לקופת חולים"]),
        ("חברת ביטוח בירושלים", ["חברת ביטוח"]),
        ("הילד הגדול שלי", []),
        ("במשרד הגדול", []),
        ("הבית הזה", []),
        ("הלך הביתה", []),
        ("ראית סרט", []),
        ("חברה בירושלים", []),
        ("משרד. הבריאות", []),
    ],
)
def test_hebrew_construct_pairs(text: str, expected: list[str]) -> None:
    assert typed(text, "phrase") == expected


@pytest.mark.parametrize(
    "text",
    [
        "42 3.14 1,000 50%",
        "2024-05-08 08/05/2024 10:30",
        "Monday 8 May, next week at 10 am",
        "יום שלישי 8 במאי בשעה 10 בבוקר",
        "https://docker.com/build?x=kubernetes",
        "www.docker.com",
        "dana@example.com",
        "/usr/lib/docker/build.py and ~/notes/plan.md",
        r"C:\docker\build",
        "3fa85f64-5717-4562-b3fc-2c963f66afa6",
        "mem_8f3a2b7c91 deadbeef42",
        "(https://example.com/דוקר)",
        "x" * 70,
    ],
)
def test_numbers_dates_ids_and_addresses_are_no_concepts(text: str) -> None:
    assert keys(text) == []
    assert keys(text, expansions=OURS) == []


@pytest.mark.parametrize("text", ["python3.11", "k8s", "GPT-4", "c++", "c#", "node.js", "ipv6"])
def test_names_with_digits_and_signs_are_concepts(text: str) -> None:
    assert keys(text) == [text.lower()]


def test_order_tags_then_entities_then_what_the_text_says() -> None:
    found = extract_concepts(
        'sleep: Dana Cohen asked AWS about "moby dick" at משרד הבריאות',
        tags=("health", "2024", ""),
        entities=("Acme Ltd",),
    )
    assert [concept.type for concept in found[:6]] == [
        "tag",
        "entity",
        "phrase",
        "acronym",
        "entity",
        "phrase",
    ]
    assert found[0] == Concept("health", "health", "tag")
    assert found[1].label == "Acme Ltd"
    assert {concept.type for concept in found[6:]} == {"concept"}


def test_a_tag_keeps_its_type_when_the_text_names_it_too() -> None:
    assert extract_concepts("Docker רכבים", tags=("docker", "רכב")) == (
        Concept("docker", "docker", "tag"),
        Concept("רכב", "רכב", "tag"),
    )


def test_repeated_words_come_first() -> None:
    assert keys("garden tomato cucumber tomato")[0] == "tomato"
    assert keys("גינה רכב מלפפון רכבים")[0] == "רכב"


def test_only_the_beginning_is_read() -> None:
    assert keys("the " * (MAX_READ_CHARS // 4) + "docker") == []


def test_limit() -> None:
    text = "apple banana cherry grape lemon mango melon olive peach pear plum quince fig"
    assert len(keys(text)) == MAX_CONCEPTS
    assert keys(text, limit=3) == ["apple", "banana", "cherry"]
    assert len(keys("", tags=[f"tag{letter}" for letter in "abcdefghijklmnopqrst"])) == MAX_CONCEPTS


_ALPHABET = st.sampled_from([*"abzABZ אבגהתםן\"'`“”-_./:@#+09\n\t\u05bc\u202b", "docker "])
_TEXTS = st.one_of(st.text(max_size=120), st.lists(_ALPHABET, max_size=80).map("".join))


@given(_TEXTS, st.lists(_TEXTS, max_size=3), st.booleans())
def test_any_text_gives_bounded_distinct_clean_keys(
    text: str, tags: list[str], known: bool
) -> None:
    found = extract_concepts(text, tags=tags, expansions=DICTIONARY if known else None)
    assert len(found) <= MAX_CONCEPTS
    assert len({concept.key for concept in found}) == len(found)
    for concept in found:
        assert 1 <= len(concept.key) <= 64
        assert concept.key == concept.key.strip()
        assert concept.label.strip() == concept.label != ""
    assert found == extract_concepts(text, tags=tags, expansions=DICTIONARY if known else None)
