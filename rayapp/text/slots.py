"""What a short fact says of whom: a subject, a slot that holds one value, and the value. Pure.

"Dana lives in Haifa" and "Dana lives in Tel Aviv" share subject and slot, so the newer one replaces
the older one. A fact that is taken for replaced is hidden, so these rules know few sentences and
know them well: one clause, no "not", a slot that people have one value of.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.text.hebrew import HAS_HEBREW
from rayapp.text.normalize import canonical, normalize
from rayapp.text.signature import signature
from rayapp.text.utterance import reading
from rayapp.text.word_lists import words_of

# Characters of a fact that is read, and words of its value: more is a story, and holds other facts.
MAX_CHARS = 160
MAX_VALUE_WORDS = 5
# Whoever the fact is about when it is the person themselves.
ME = "me"


@dataclass(frozen=True, slots=True)
class Slot:
    """`subject` and `name` are canonical words; so is `value`."""

    subject: str
    name: str
    value: str


# Who they are a sentence alone does not say: what it says replaces nobody's fact.
NOBODY_EN = ("he", "she", "it", "they", "we", "you", "this", "that", "who")
NOBODY_HE = ("הוא", "היא", "הם", "הן", "זה", "זאת", "זו", "אנחנו", "אתה", "את", "כולם")
SOMEBODY = ("someone", "somebody", "everyone", "everybody", "מישהו", "מישהי")
NOBODY = frozenset((*NOBODY_EN, *NOBODY_HE, *SOMEBODY))
_ME = frozenset(("i", "me", "my", "user", "the user", "אני", "שלי", "לי", "המשתמש", "המשתמשת"))
# Of these a person or a thing has one at a time.
_NOUNS_EN = (
    "name|full name|home address|address|phone|phone number|mobile|mobile number|email|e-mail|"
    "email address|birthday|date of birth|age|employer|job|job title|title|boss|manager|doctor|"
    "dentist|accountant|lawyer|landlord|school|university|team|car|salary|rent|budget|price|"
    "deadline|due date|start date|release date|meeting time|code|door code|gate code|pin|password|"
    "passphrase|version|port|hotel|flight|flight number|room|room number|office|city|home town|"
    "hometown|country|native language|time zone|timezone|favou?rite [a-z]+|default [a-z]+|"
    "blood type|weight|height|shoe size"
)
_NOUNS_HE = (
    "שם|שם מלא|שם משפחה|כתובת|טלפון|מספר טלפון|מספר הטלפון|נייד|מייל|דואל|אימייל|יום הולדת|"
    "תאריך לידה|"
    "גיל|מעסיק|תפקיד|מנהל|מנהלת|בוס|רופא|רופאה|רופא שיניים|רואה חשבון|עורך דין|בעל הבית|בית ספר|"
    "אוניברסיטה|צוות|רכב|אוטו|מכונית|שכר|משכורת|שכירות|שכר דירה|תקציב|מחיר|מועד|דדליין|תאריך יעד|"
    "קוד|סיסמה|סיסמא|גרסה|גירסה|פורט|מלון|טיסה|מספר טיסה|חדר|משרד|עיר|מדינה|שפת אם|אזור זמן|סוג דם|"
    "משקל|גובה|מידת נעליים|צבע אהוב|מאכל אהוב"
)
_NOW_EN = r"(?:(?:now|currently|today|these days|at the moment) )?"
_NOW_HE = r"(?:(?:עכשיו|כעת|כיום|היום|כרגע) )?"
_LATER_EN = r"(?!(?:now|currently|today|these|at)\b)[a-z][\w.-]*"
_LATER_HE = r"(?!(?:עכשיו|כעת|כיום|היום|כרגע)(?!\w))[\w\"'-]+"
_WHO_EN = rf"(?P<who>(?:the user|user|i|my [a-z]+|[a-z][\w.-]*(?: {_LATER_EN})?))"
_WHO_HE = rf"(?P<who>(?:המשתמשת?|אני|[\w\"'-]+(?: שלי)?(?: {_LATER_HE})?))"
_IS_EN = r"(?:is|'s|was changed to|changed to|has changed to|is set to)"
_IS_HE = r"(?:הוא|היא|זה|השתנה ל-?|השתנתה ל-?|:|-)"
# A slot of its own, or the noun itself: `thing`.
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (
            "home",
            rf"{_WHO_EN} {_NOW_EN}(?:lives?|is living|am living|resides?|is based|am based) "
            rf"{_NOW_EN}(?:in|at) (?P<value>.+)",
        ),
        ("home", rf"{_WHO_HE} {_NOW_HE}(?:גרה?|מתגוררת?) {_NOW_HE}ב-?(?P<value>.+)"),
        (
            "work",
            rf"{_WHO_EN} {_NOW_EN}(?:works?|is working|am working|is employed) {_NOW_EN}"
            r"(?:at|for) (?P<value>.+)",
        ),
        (
            "work",
            rf"{_WHO_HE} {_NOW_HE}(?:עובדת?|מועסקת?) {_NOW_HE}(?:ב-?|אצל |עבור )(?P<value>.+)",
        ),
        ("name", r"(?P<who>my|the user's|user's) name is (?P<value>.+)"),
        ("name", r"(?P<who>user|the user|i) (?:is|am) called (?P<value>.+)"),
        ("name", r"(?:קוראים (?P<who>לי)|(?P<me>שמי)|(?P<mine>השם שלי)(?: הוא)?) (?P<value>.+)"),
        ("age", rf"{_WHO_EN} (?:is|am) (?P<value>\d{{1,3}}) years old"),
        ("age", rf"{_WHO_HE} (?:בן|בת) (?P<value>\d{{1,3}})"),
        ("car", rf"{_WHO_EN} {_NOW_EN}drives {_NOW_EN}(?:an? |the )?(?P<value>.+)"),
        (
            "",
            rf"(?P<who>my|the user's|user's|[a-z][\w.-]*'s) (?P<thing>{_NOUNS_EN}) {_IS_EN} "
            rf"{_NOW_EN}(?P<value>.+)",
        ),
        (
            "",
            rf"the (?P<thing>{_NOUNS_EN}) (?:of|for|to) (?P<who>(?:the |my )?[\w.' -]{{2,40}}?) "
            rf"{_IS_EN} {_NOW_EN}(?P<value>.+)",
        ),
        ("", rf"the (?P<who>[a-z][\w.-]* )(?P<thing>{_NOUNS_EN}) {_IS_EN} {_NOW_EN}(?P<value>.+)"),
        (
            "",
            rf"ה?(?P<thing>{_NOUNS_HE}) (?P<who>שלי|של [\w\"' -]{{2,40}}?) {_IS_HE} ?"
            rf"{_NOW_HE}(?P<value>.+)",
        ),
    )
)
# What begins another fact inside a value.
_MORE = re.compile(
    r"[,;:()?!]|\.\s|\b(?:and|but|or|who|which|where|while|because|since|with|until|till|if|when|"
    r"near|so|then)\b|(?<!\w)(?:ו?עם|אבל|או|כי|אשר|שבו|שבה|ליד|עד|אם|כאשר|בזמן|מאז|וגם|ואז)(?!\w)"
)

# States that a thing or a person is in, and what is said of a name: no values.
_STATES = frozenset(words_of("states"))
# "On vacation", "in the garage", "to work": a place or a time, where no time is asked for.
_CIRCUMSTANCE = re.compile(
    r"(?:on|in|at|to|from|with|without|for|off|out|away|around|every|very|too|so|being|not|still)\b"
    r"|ב(?:חופשה|חופש|מוסך|דרך|תיקון|בית)(?!\w)"
)
_TIMES = re.compile(r"\b(?:birthday|date|deadline|time|flight)\b|מועד|תאריך|דדליין|יום הולדת|טיסה")
_OF_NAME = re.compile(r"(?:hard|easy|difficult|very|too|so|not|pronounced|spel(?:led|t)|common)\b")
# "In a rented flat", "at night": by slot, what no home or employer is called.
_NO_PLACE: dict[str, re.Pattern[str]] = {
    "home": re.compile(
        r"(?:a|an|the|my|his|her|our|your|their|fear|peace)\b.*|home"
        r"|(?:דירה|דירת|שכירות|פחד|מעונות|יחידת|וילה)(?!\w).*|בית|שקט"
        r"|(?:קומה|רחוב|סמטת|שכונה|פרברים|מרכז|צפון|דרום|זוגיות|נפרד|גפי|בדידות|עוני)(?!\w).*"
        r"|שדרות .+|\d.*|(?:apartment|apt|flat|room|floor|unit|poverty|luxury)\b.*"
        r"|בית (?:פרטי|שכור|גדול|קטן|משותף|של|ההורים|הוריי?)(?!\w).*"
    ),
    "work": re.compile(
        r"(?:a|an|my|his|her|our|your|their)\b.*|(?:the )?(?:nights?|days?|weekends?|home|free|noon"
        r"|least|moment|office|computer|christmas|easter|fun|money|pleasure|summer|winter)"
        r"(?: shifts?| times?)?"
        r"|(?:לילה|לילות|שבת|שבתות|שישי|חגים|חג|קיץ|חורף|צהריים|ימי|יום|ראשון(?! לציון)"
        r"|שני|שלישי|רביעי|חמישי|חוץ|משרה|משמרת|משמרות|קבלנות|התנדבות)(?!\w).*"
        r"|בית|יום|ימים|בוקר|ערב|ערבים|שקט|חצי משרה|סופי? שבוע"
    ),
}
_COUNTED = re.compile(
    r"\b(?:phone|mobile|code|pin|price|rent|salary|budget|port|weight|height|shoe size|age|"
    r"טלפון|נייד|קוד|מחיר|שכירות|שכר|משכורת|תקציב|פורט|משקל|גובה|גיל)\b"
)
# A country does not replace the city in it.
_COUNTRIES = frozenset(
    (*words_of("countries"), "united states", "united kingdom", "new zealand", "south africa",
     "ארצות הברית", "ניו זילנד", "דרום אפריקה")
)  # fmt: skip


def _is_value(name: str, value: str) -> bool:
    """Whether it can be what the slot holds."""
    if value in _STATES or (name == "name" and _OF_NAME.match(value)):
        return False
    place = _NO_PLACE.get(name)
    if place is not None:
        return place.fullmatch(value) is None
    if _CIRCUMSTANCE.match(value) and not _TIMES.search(name):
        return False
    return not _COUNTED.search(name) or any(map(str.isdigit, value))


# Every search reads its short hits.
@reading
def slot_of(text: str) -> Slot | None:
    """The slot that a fact fills; None when it is no such fact, or more than one."""
    if len(text) > MAX_CHARS:
        return None
    plain = " ".join(normalize(text).split()).rstrip(" .!").casefold().replace("’", "'")
    for name, pattern in _PATTERNS:
        found = pattern.fullmatch(plain)
        if found is None:
            continue
        value = found["value"].strip()
        if _MORE.search(value) or not 1 <= len(value.split()) <= MAX_VALUE_WORDS:
            return None
        groups = found.groupdict()
        if not _is_value(name or groups["thing"], value):
            return None
        # Few texts come so far, and this takes longer than all patterns.
        if signature(text).negations:
            return None
        who = groups.get("who") or ME
        if who.split()[0] in NOBODY:
            return None
        return Slot(_subject(who), _name(name or groups["thing"]), canonical(value))
    return None


def replaces(new: str, old: str) -> bool:
    """Whether `new` fills the slot of `old` with something else: the same said more exactly, or in
    the other language, is not."""
    one, other = slot_of(new), slot_of(old)
    return one is not None and other is not None and takes_place_of(one, other)


def takes_place_of(new: Slot, old: Slot) -> bool:
    """As `replaces`, of what was read already."""
    if (new.subject, new.name) != (old.subject, old.name):
        return False
    if bool(HAS_HEBREW.search(new.value)) != bool(HAS_HEBREW.search(old.value)):
        return False
    countries = [one.value in _COUNTRIES for one in (new, old)]
    if new.name == "home" and countries[0] != countries[1]:
        return False
    mine, theirs = new.value.split(), old.value.split()
    return not _holds(mine, theirs) and not _holds(theirs, mine)


def _holds(words: Sequence[str], part: Sequence[str]) -> bool:
    return set(part) <= set(words)


def _subject(who: str) -> str:
    plain = who.strip().removesuffix("'s").removeprefix("של ").strip()
    return ME if plain in _ME else canonical(plain.removeprefix("the "))


def _name(thing: str) -> str:
    return canonical(thing)
