"""Two facts become one only when they say the same of the same; both languages alike."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.learning.rules.dedup import pair, told_apart
from rayapp.memory.item import MemoryItem, Quality, Stats, Status
from rayapp.memory.tiers import Tier
from rayapp.text.paraphrase import content_words
from tests.support.builders import STORED_AT, an_item

SIMILARITY = 0.9
NEAR = 0.97
TIME = datetime(2026, 1, 1, tzinfo=UTC)


def fact(text: str = "Dana likes tea", **changes: Any) -> MemoryItem:
    return an_item(**({"tier": Tier.MEMORY_BANK, "text": text} | changes))


def reason(a: str, b: str) -> str | None:
    return told_apart(fact(a), fact(b), NEAR, SIMILARITY)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Dana lives in Haifa", "Dana lives in Haifa."),
        ("The user prefers dark mode", "User prefers dark mode"),
        ("Anna is a vegetarian", "Anna is vegetarian"),
        ("I'm allergic to peanuts", "I am allergic to peanuts"),
        ("דנה גרה בחיפה", "דנה גרה בחיפה."),
        ("המשתמש מעדיף מצב כהה", "המשתמש מעדיף את מצב כהה"),
        ("יעל צמחונית", "יעל היא צמחונית"),
        ("הגיבוי רץ ב-02:00", "הגיבוי רץ ב 02:00"),
        ("שָׁלוֹם לדנה", "שלום לדנה"),
    ],
)
def test_the_same_said_twice_is_one_memory(a: str, b: str) -> None:
    assert reason(a, b) is None


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ("The rent is 4500", "The rent is 4700", "numbers"),
        ("I have two children", "I have three children", "numbers"),
        ("The lease ends on 2025-05-01", "The lease ends on 2025-06-01", "numbers"),
        ("Dana's blood type is O-", "Dana's blood type is O+", "numbers"),
        ("Dana writes C# at work", "Dana writes C++ at work", "numbers"),
        ("I eat meat", "I do not eat meat", "polarity"),
        ("Dana can drive", "Dana can't drive", "polarity"),
        ("tea with sugar", "tea without sugar", "polarity"),
        ("Dana likes tea", "Dana dislikes tea", "polarity"),
        ("The shop opens before noon", "The shop opens after noon", "polarity"),
        ("Dana works at Google", "Dana works at Amazon", "entities"),
        ("The exam is on Monday", "The exam is on Tuesday", "entities"),
        ("dana owes me money", "noa owes me money", "words"),
        ("Dana is allergic to peanuts", "Dana is allergic to walnuts", "words"),
        ("The contract was signed", "The contract was almost signed", "words"),
        ("Dana lives in Haifa", "Dana's mother lives in Haifa", "words"),
        ("Dana owes Noa money", "Noa owes Dana money", "words"),
        ("שכר הדירה הוא 4500", "שכר הדירה הוא 4700", "numbers"),
        ("יש לי שלושה ילדים", "יש לי ארבעה ילדים", "numbers"),
        ("החוזה נגמר ב-1.5.2025", "החוזה נגמר ב-1.6.2025", "numbers"),
        ("אני אוכל בשר", "אני לא אוכל בשר", "polarity"),
        ("יש מנעול בדלת", "אין מנעול בדלת", "polarity"),
        ("תה עם סוכר", "תה בלי סוכר", "polarity"),
        ("דנה אוהבת תה", "דנה שונאת תה", "polarity"),
        ("החנות נפתחת לפני הצהריים", "החנות נפתחת אחרי הצהריים", "polarity"),
        ("דנה עובדת בגוגל", "דנה עובדת באמזון", "words"),
        ("המבחן ביום שני", "המבחן ביום שלישי", "words"),
        ("דנה אלרגית לבוטנים", "דנה אלרגית לאגוזים", "words"),
        ('דנה עובדת בצה"ל', 'דנה עובדת בשב"כ', "entities"),
        ("החוזה נחתם", "החוזה כמעט נחתם", "words"),
        ("דנה גרה בחיפה", "אמא של דנה גרה בחיפה", "words"),
        ("הרכבת נוסעת מחיפה לאילת", "הרכבת נוסעת מאילת לחיפה", "words"),
    ],
)
def test_a_near_miss_stays_two_memories(a: str, b: str, why: str) -> None:
    assert reason(a, b) == why
    assert reason(b, a) == why


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"user_id": "noa"}, "user"),
        ({"tier": Tier.PATTERNS}, "tier"),
        ({"status": Status.ARCHIVED}, "status"),
        ({"status": Status.DELETED}, "status"),
        ({"subject_id": "noa"}, "subject"),
        ({"perspective_owner_id": "noa"}, "subject"),
        ({"org_id": "acme"}, "subject"),
        ({"dedup_scope": "c-2"}, "scope"),
        ({"valid_from": TIME}, "validity"),
        ({"valid_to": TIME}, "validity"),
        ({"supersedes": "m-0"}, "validity"),
        ({"superseded_by": "m-9"}, "validity"),
    ],
)
def test_what_belongs_elsewhere_never_merges(changes: dict[str, Any], why: str) -> None:
    assert told_apart(fact(), fact(**changes), 1.0, SIMILARITY) == why
    assert told_apart(fact(**changes), fact(), 1.0, SIMILARITY) == why


@pytest.mark.parametrize("tier", sorted(set(Tier) - {Tier.MEMORY_BANK, Tier.PATTERNS}))
def test_other_tiers_are_left_alone(tier: Tier) -> None:
    assert told_apart(fact(tier=tier), fact(tier=tier), 1.0, SIMILARITY) == "tier"


def test_an_item_is_not_its_own_twin() -> None:
    item = fact()
    assert told_apart(item, item, 1.0, SIMILARITY) == "id"


@pytest.mark.parametrize(
    ("cosine", "similarity", "why"),
    [
        (0.9, 0.9, None),
        (0.899, 0.9, "distance"),
        (float("nan"), 0.9, "distance"),
        (1.0, 0.0, "off"),
    ],
)
def test_the_threshold_is_inclusive_and_can_be_off(
    cosine: float, similarity: float, why: str | None
) -> None:
    assert told_apart(fact(), fact(), cosine, similarity) == why


@pytest.mark.parametrize(
    ("a", "b", "merges"),
    [
        (("Dana",), ("Noa",), False),
        (("Dana", "Haifa"), ("dana",), True),
        (("Dana",), (), True),
        (("דנה",), ("נועה",), False),
        (("דנה", "חיפה"), ("דנה",), True),
    ],
)
def test_labels_of_other_people_keep_two_facts_apart(
    a: tuple[str, ...], b: tuple[str, ...], merges: bool
) -> None:
    assert (told_apart(fact(entities=a), fact(entities=b), 1.0, SIMILARITY) is None) is merges


def test_pinned_and_plain_facts_may_merge() -> None:
    assert told_apart(fact(always_inject=True), fact(), 1.0, SIMILARITY) is None


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"quality": Quality(importance=0.9)}, {"quality": Quality(importance=0.8)}),
        ({"stats": Stats(wilson_score=0.7)}, {"stats": Stats(wilson_score=0.6)}),
        ({"stored_at": STORED_AT + timedelta(days=1)}, {}),
        ({"memory_id": "z"}, {"memory_id": "a"}),
        (
            {"quality": Quality(importance=0.9)},
            {"stats": Stats(wilson_score=0.9), "stored_at": STORED_AT + timedelta(days=1)},
        ),
        ({"stats": Stats(wilson_score=0.7)}, {"stored_at": STORED_AT + timedelta(days=1)}),
        ({"trust": 0.9}, {"trust": 0.7, "stats": Stats(uses=9, wilson_score=0.9)}),
        ({"quality": Quality(importance=0.9), "trust": 0.6}, {"quality": Quality(importance=0.8)}),
    ],
)
def test_quality_then_trust_then_wilson_then_the_newer_stays(
    better: dict[str, Any], worse: dict[str, Any]
) -> None:
    kept, gone = fact(**better), fact(**worse)
    assert pair(kept, gone) == pair(gone, kept) == (kept, gone)


ENGLISH = [
    "Dana",
    "Noa",
    "likes",
    "hates",
    "tea",
    "not",
    "7",
    "eight",
    "the",
    "in",
    "before",
    "after",
]
HEBREW = ["דנה", "נועה", "אוהבת", "שונאת", "תה", "לא", "9", "שמונה", "את", "בחיפה", "לפני", "אחרי"]
TEXTS = st.lists(st.sampled_from(ENGLISH + HEBREW), min_size=1, max_size=6).map(" ".join)
ITEMS = st.builds(
    lambda text, user, tier, status, label: fact(
        text, user_id=user, tier=tier, status=status, entities=label
    ),
    TEXTS,
    st.sampled_from(["dana", "omer"]),
    st.sampled_from([Tier.MEMORY_BANK, Tier.PATTERNS, Tier.HISTORY]),
    st.sampled_from(list(Status)),
    st.sampled_from([(), ("Dana",), ("נועה",)]),
)
COSINES = st.floats(0.0, 1.0)


@given(ITEMS, ITEMS, COSINES)
def test_the_order_of_two_items_does_not_matter(a: MemoryItem, b: MemoryItem, c: float) -> None:
    assert told_apart(a, b, c, SIMILARITY) == told_apart(b, a, c, SIMILARITY)
    assert pair(a, b)[0] is pair(b, a)[0]


@given(ITEMS, ITEMS, COSINES)
def test_a_merge_stays_within_user_tier_and_active(a: MemoryItem, b: MemoryItem, c: float) -> None:
    if told_apart(a, b, c, SIMILARITY) is None:
        assert (a.user_id, a.tier) == (b.user_id, b.tier)
        assert a.status is b.status is Status.ACTIVE
        assert c >= SIMILARITY
        assert sorted(content_words(a.text)) == sorted(content_words(b.text))


@given(TEXTS, st.sampled_from(["not", "never", "לא", "אין"]))
def test_a_negation_more_never_merges(text: str, negation: str) -> None:
    assert told_apart(fact(text), fact(f"{negation} {text}"), 1.0, SIMILARITY) is not None


@given(TEXTS)
def test_marks_around_a_text_change_nothing(text: str) -> None:
    assert told_apart(fact(text), fact(f"  {text} !"), 1.0, SIMILARITY) is None
