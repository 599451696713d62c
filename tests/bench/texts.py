"""Synthetic bilingual memories and questions: seeded templates over people, things and places.

Each memory holds one fact of one user. Names and values repeat across users as they do in life,
so term statistics are not those of random words.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

HEBREW_SHARE = 0.5  # both languages weigh the same
DETAIL_SHARE = 0.4  # facts with a second sentence: lengths vary as in a dialogue


def _words(text: str) -> list[str]:
    return text.split()


PEOPLE = {
    "he": _words("נועה דוד מיכל יוסי תמר אבי רחל עומר שירה גיא הדס ליאור יעל רון מאיה איתן"),
    "en": _words(
        "Anna Ben Carol Dan Emma Frank Grace Henry Iris Jack Karen Leo Mona Nick Olga Paul"
    ),
}
THINGS = {
    "he": _words(
        "הדירה החוזה המחשב הכלב הפרויקט התרופה הרכב הטיסה החשבונית הפגישה השרת הספר "
        "המתכון הקורס המצגת הביטוח"
    ),
    "en": _words(
        "flat contract laptop dog project medicine car flight invoice meeting server book "
        "recipe course slides insurance"
    ),
}
PLACES = {
    "he": _words("חיפה ירושלים אשדוד נתניה טבריה אילת רעננה חולון עכו צפת לוד רמלה"),
    "en": _words("Haifa London Leeds Lisbon Berlin Boston Austin Oslo Madrid Kyoto Dublin Vienna"),
}
STATES = {
    "he": _words("אושר נדחה הוחלף תוקן נשלח נמכר הוזמן בוטל הועבר נבדק"),
    "en": _words(
        "approved postponed replaced repaired shipped sold ordered cancelled moved checked"
    ),
}
FACTS = {
    "he": (
        "{person} אמר ש{thing} {state} ב{place} ביום {day} בחודש {month}, מספר אסמכתה {number}.",
        "לפי {person}, {thing} מספר {number} {state} ועכשיו נמצא ב{place}.",
        "צריך לזכור: {thing} של {person} {state}, והמועד החדש הוא {day}.{month} ב{place}.",
        "בפגישה ב{place} סוכם עם {person} ש{thing} {state} עד {day}.{month} (תיק {number}).",
    ),
    "en": (
        "{person} said that the {thing} was {state} in {place} on {day}.{month}, file {number}.",
        "According to {person}, {thing} number {number} was {state} and is now in {place}.",
        "Remember: the {thing} of {person} was {state}; the new date is {day}.{month} in {place}.",
        "At the meeting in {place} {person} agreed that the {thing} is {state} by {day}.{month} "
        "(case {number}).",
    ),
}
DETAILS = {
    "he": (
        " העלות הייתה {number} שקלים והתשלום יתבצע בשלושה חלקים, אחרי אישור בכתב של {other}.",
        " אם משהו ישתנה, {other} יעדכן בטלפון ואחר כך במייל, לא לפני יום {day}.",
    ),
    "en": (
        " It cost {number} dollars, paid in three parts once {other} has confirmed in writing.",
        " If anything changes {other} will call first and then write, not before the {day}th.",
    ),
}
QUESTIONS = {
    "he": (
        "מה קרה עם {thing} של {person} ב{place}?",
        "מתי {thing} של {person} {state}?",
        "איפה {thing} מספר {number} ומה {person} אמר עליו?",
    ),
    "en": (
        "What happened to the {thing} of {person} in {place}?",
        "When was the {thing} of {person} {state}?",
        "Where is {thing} number {number} and what did {person} say?",
    ),
}


@dataclass(frozen=True, slots=True)
class Fact:
    """Values of one memory, from which a question about it is made."""

    lang: str
    values: dict[str, str]
    text: str

    def question(self, random_: random.Random) -> str:
        """A question about this fact; the other language's words are never needed."""
        return random_.choice(QUESTIONS[self.lang]).format(**self.values)


def facts(seed: int) -> Iterator[Fact]:
    """Endless distinct facts; the same seed gives the same texts."""
    random_ = random.Random(seed)
    serial = 0
    while True:
        serial += 1
        lang = "he" if random_.random() < HEBREW_SHARE else "en"
        values = {
            "person": random_.choice(PEOPLE[lang]),
            "other": random_.choice(PEOPLE[lang]),
            "thing": random_.choice(THINGS[lang]),
            "place": random_.choice(PLACES[lang]),
            "state": random_.choice(STATES[lang]),
            "day": str(random_.randint(1, 28)),
            "month": str(random_.randint(1, 12)),
            "number": f"{serial}{random_.randint(10, 99)}",
        }
        text = random_.choice(FACTS[lang]).format(**values)
        if random_.random() < DETAIL_SHARE:
            text += random_.choice(DETAILS[lang]).format(**values)
        # The serial number makes every text distinct: no template leaves all numbers out.
        yield Fact(lang, values, text if values["number"] in text else f"{text} [{serial}]")
