"""Words as the rules of concepts see them: names, words without a topic, keys and readings."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from simplemma import is_known

from rayapp.text.hebrew import (
    GERSHAYIM,
    HEBREW_LETTER,
    STOP_WORDS,
    is_hebrew,
    unify_finals,
    without_prefixes,
)
from rayapp.text.lemmas import MIN_STEM_LETTERS, lemmas
from rayapp.text.utterance import word_reading

# Hebrew given names that the dictionary of words does not hold, or reads as other words.
#
# Written by us. A name that is an everyday word as well (שיר, הגר, חיים) is left out, and so is one
# that makes an everyday word behind ל (גבי, לגבי).

_NAMES = """
    אביטל אהרון אוריאל אורנה אחמד איילה אילנה אירנה אלונה אלירן אלכס אלנה אמיר אמילי אנסטסיה
    אולגה אפרת אריק בוריס ברוריה בתיה גלית דותן דליה דמיטרי דנה דניאלה דקלה ולדימיר חגית חנה
    חננאל טליה יאיר יבגני יוליה יוסוף יותם יפית יפעת כרמית כרמלה ליאל ליאם ליאן ליאת לידור לילך
    לימור לינוי ליעד לירון לירז מאיה מחמוד מיטל מרינה נופר נטלי נטשה נירית נתנאל סבטלנה סיגלית
    סרגיי עופרה עידו עינב עינת עמיחי עמליה עמרי ענת פאולינה פאטמה פיליפ צביקה צחי צילה קובי רונה
    רוני רונית רותי שגיא שגיב שגית שיראל שירית שירלי שירן שלומית שרית תומר תמי תמרה
"""
NAMES = frozenset(_NAMES.split())


def name_in(word: str, *, known: bool) -> str | None:
    """The name that `word` is, alone or behind particles; None when it is none.

    Args:
        known: the dictionary holds `word` as it stands. Behind ל it is the name all the same
            (לדנה); other particles make everyday words of names (מנועה).
    """
    if word in NAMES:
        return word
    if known and word[0] != "ל":
        return None
    return next((rest for rest in without_prefixes(word, MIN_STEM_LETTERS) if rest in NAMES), None)


# Words that carry meaning in a sentence but name no topic: concepts leave them out.
#
# Stop words of `text.hebrew` are function words; these are verbs, nouns and adjectives that fit any
# topic, and the words of dates. Written by us, normalised spelling; matched as written and as
# lemma.

_ENGLISH = """
    able actually add ago almost already always another anyone anything anyway ask bad bit bring
    came care change check come common correct couple current currently different discuss easy
    else end enough especially etc even ever every everyone everything exactly example explain fact
    far feel find fine first follow found full general generally get give given go goes going gone
    good got great guess hard hear help hello hi hey high hope idea important instead issue item
    keep kind knew know known large last late later least less let like likely list little long
    look lot low made main make many matter may maybe mean mention might mind mine move much must
    need never new next nice nothing number ok okay old one part perhaps place please point
    possible prefer pretty probably problem put quality question quick quickly quite rather read
    ready real really reason recent recently regarding remember remind right said say see seem
    seen sent set several shall short show similar simple simply since small someone something
    sometimes soon sorry sort start started still stuff suggest sure take talk tell thank thanks
    thing think thought time today together told tomorrow tonight took top try turn two type
    understand use used useful user using usual usually various want way well went whatever
    whether whole within without wonder word work works worked working wrong yesterday yet
    three four five six seven eight nine ten hundred thousand million second third day week month
    year hour minute morning evening night weekend date am pm id ids
    detail details fully allow allows include includes contain contains
    monday tuesday wednesday thursday friday saturday sunday january february march april june july
    august september october november december jan feb mar apr jun jul aug sep sept oct nov dec
    favorite favourite love enjoy hate per via vs
"""
# רע, עובד and עבד are what a thing does or is as often as a topic; their other forms stay.
_HEBREW = """
    דבר דברים רוצה רוצים רוצות רצה רציתי לרצות צריך צריכה צריכים צריכות יודע יודעת יודעים לדעת ידע
    ידעתי חושב חושבת חשב חשבתי לחשוב אומר אומרת אומרים אמר אמרה אמרו אמרתי לומר להגיד הגיד הגיע
    הודיע הודיעה מסר מסרה טען טענה הוסיף הוסיפה קבע קבעה כתב כתבה דיווח דיווחה
    יכול יכולה יכולים יכולות אפשר ניתן אפשרי חייב חייבת חייבים מבקש מבקשת בקשה בבקשה תודה סליחה
    שלום היי הי טוב טובה טובים טובות רע רעה נכון נכונה בסדר אוקיי ממש כנראה אולי בערך בדיוק בטח
    עושה עושים לעשות עשה עשתה עשיתי הולך הולכת ללכת הלך בא באה לבוא נותן לתת נתן תן תני לקחת לקח
    לוקח שם לשים משתמש משתמשת להשתמש השתמש שימוש עזרה לעזור עזור עזר מתחיל להתחיל התחיל מוצא למצוא
    מצא מצאתי ראה ראיתי רואה לראות מראה להראות תראה הראה תגיד תגידי תן תני הסבר תסביר להסביר
    הסביר מסביר שואל לשאול שאל שאלתי שאלה שאלות בעיה בעיות עניין ענין נושא משהו מישהו שום כלום
    הכול הכל כולם חלק סוג דרך אופן צורה מקום סיבה דוגמה דוגמא למשל פרט נקודה מספר רשימה סוף התחלה
    גדול גדולה גדולים גדולות קטן קטנה חדש חדשה חדשים חדשות ישן ישנה אחר אחרת אחרים אחרון אחרונה
    אחרונים אחרונות ראשון ראשונה שני שנייה שנית שלישי שלישית רביעי חמישי שישי שביעי קודם קודמת
    הבא הבאה הבאים נוסף נוספת נוספים שונה שונים דומה רב רבים רבות הרבה מעט קצת חשוב חשובה פשוט
    פשוטה קל קלה קשה מהיר מהר לאט שוב תמיד לפעמים פעם פעמים עכשיו כרגע היום אתמול מחר שלשום
    הערב הלילה הבוקר השבוע השנה החודש יום ימים שבוע שבועות חודש חודשים שנה שנים שעה שעות דקה דקות
    בוקר ערב לילה תאריך זמן אחד אחת שתיים שניים שלוש שלושה ארבע ארבעה חמש חמישה שש שישה שבע שבעה
    שמונה תשע תשעה עשר עשרה מאה אלף מיליון
    ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר
    אוהב אוהבת לאהוב אהב מעדיף מעדיפה להעדיף העדיף זוכר זוכרת לזכור זכר תזכור תזכיר זוכרים
    מדבר לדבר דיבר מבין להבין הבין נראה כלומר בעצם עצמו עצמה עצמי לבד ביחד יחד דווקא עדיין אפילו
    הינו הינה הנה עובד עובדת עבד קיים קיימת נמצא נמצאת אחראי הביתה החוצה פנימה משתנה
    לכן לפיכך אמור אמורה כדאי רגיל רגילה כללי כללית מיוחד עיקרי עיקרית נוכחי נוכחית אלינו אליו
    אליה אליי אליך ממני ממנו ממנה ממך עליו עליה עלי עליי עליך איתי איתו איתה איתך איתנו אצלי אצלו
    אצלנו מאז מאוחר מוקדם האחת ההוא ההיא ההם הזה הזאת הזו האלה האלו הללו
"""
CONCEPT_STOP_WORDS = STOP_WORDS | frozenset(_ENGLISH.split()) | frozenset(_HEBREW.split())
# Words that open a request: capital letters there name nothing ("Deploy Kubernetes").
_OPENERS = """
    add ask avoid build call change check clear close configure connect convert create debug delete
    deploy disable download edit enable explain export find fix generate get give help import
    improve install keep list load make migrate move open optimize prefer query read remember
    remind remove rename replace restart run save search send set setup show start stop summarize
    tell test translate try update upgrade upload use using write dear hello hi hey thanks please
    good also yes no ok okay today tomorrow yesterday last next every
"""
OPENERS = frozenset(_OPENERS.split())
# After a Hebrew noun these describe it: "במשרד הגדול" is no construct pair.
_ADJECTIVES = """
    הישראלי הישראלית הציבורי הציבורית הלאומי הלאומית המקומי המקומית הפרטי הפרטית הטוב הטובה
    הגדול הגדולה הגדולים הגדולות הקטן הקטנה הקטנים החדש החדשה החדשים החדשות הישן הישנה הישנים
    הראשון הראשונה השני השנייה השלישי השלישית האחרון האחרונה הקודם הקודמת הנוכחי הנוכחית
    החשוב החשובה הנכון הנכונה האחר האחרת הבא הבאה הראשי הראשית המרכזי המרכזית העיקרי העיקרית
    הצפוני הדרומי המזרחי המערבי הלבן השחור האדום הכחול הירוק היפה הארוך הקצר הגבוה הנמוך
"""
HEBREW_ADJECTIVES = frozenset(_ADJECTIVES.split())


MAX_KEY_CHARS = 64
# A shorter acronym without its mark is another word (תא, ת"א).
MIN_BARE_ACRONYM_CHARS = 4
MIN_WORD_CHARS = 2
# Up to this length a Latin word ending in s is taken for an abbreviation.
MAX_ABBREVIATION_CHARS = 3
# From this length on a token with many digits is an id, not a name such as ipv6 or log4j.
MIN_ID_CHARS = 8
ID_DIGIT_SHARE = 0.25

# Numbers are matched, without a group, so that no word is found inside them.
_SCAN = re.compile(
    rf"""
      (?P<hebrew> [{HEBREW_LETTER}]+(?:['"][{HEBREW_LETTER}]+)* )
    | \d+(?:[.,:/-]\d+)*(?!\w)
    | (?P<word> [^\W{HEBREW_LETTER}]+(?:['’.+#/-][^\W{HEBREW_LETTER}]+)*[+#]* )
    """,
    re.VERBOSE,
)
_ADDRESS = re.compile(
    rf"""
      \b (?: [a-z]+:// | www\. ) [^\s<>"']+
    | (?<![\w.%+-]) [A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+
    | (?<![\w/]) (?: [~.]{{0,2}}/ | [A-Za-z]:\\ ) [^\s"'<>{HEBREW_LETTER}]+
    """,
    re.VERBOSE,
)
_ACRONYM = re.compile(r"(?=.{2,8}$)[A-Z][A-Z0-9]{0,5}(?:[/&-][A-Z0-9]{1,5})?s?")
_NAME_WITH_VERSION = re.compile(r"[a-z]+[-_]?\d{1,2}(?:\.\d+){0,2}")
_HEX = re.compile(r"(?=[a-f]*\d)[0-9a-f-]{8,}")
_ENDING = re.compile(r"(?:['’]s|['’.])$")
_COMPOUND = re.compile(r"[^\W\d_]{3,}(?:[-_][^\W\d_]{3,})+")


class ConceptWord(NamedTuple):
    """One word as the rules see it.

    Attributes:
        lower: as written, in lower case.
        key: empty when it can never be a concept.
        stop: names no topic; `function`: carries no meaning at all.
        capital: written with a capital letter, which means little at the start of a sentence
            when the word is also a `common` one of the dictionary.
    """

    lower: str
    readings: tuple[str, ...]
    key: str
    hebrew: bool = False
    stop: bool = False
    function: bool = False
    capital: bool = False
    acronym: bool = False
    common: bool = False


# Longer than any name: what a machine wrote. Looking it up in the dictionaries would cost.
_NO_WORD = ConceptWord(lower="", readings=("",), key="", stop=True, function=True)


class Scanned(NamedTuple):
    """The words of a text and where each one starts and ends."""

    words: list[ConceptWord]
    spans: list[tuple[int, int]]


def scan(text: str, vocabulary: frozenset[str]) -> Scanned:
    """The words of a normalised text with their places.

    There are none inside addresses, paths and numbers.
    """
    if "/" in text or "@" in text or "\\" in text or "www." in text:
        # Places must stay, and a blank would join the words on both sides to a phrase.
        text = _ADDRESS.sub(lambda match: "|" * len(match.group()), text)
    found = [match for match in _SCAN.finditer(text) if match.lastgroup]
    return Scanned(
        [_word(match.group(), vocabulary) for match in found], [match.span() for match in found]
    )


def key_of(lemma_forms: Sequence[str]) -> str:
    """One spelling for lemmas: plain final letters, no marks in longer acronyms, bounded."""
    return cut(" ".join(_spelled(form) for form in lemma_forms), MAX_KEY_CHARS)


def phrase_key(words: Sequence[ConceptWord]) -> str:
    """Keys of the words without function words; with them when there is nothing else."""
    keys = [word.key for word in words if word.key]
    content = [word.key for word in words if word.key and not word.function]
    return cut(" ".join(content or keys), MAX_KEY_CHARS)


def cut(text: str, size: int) -> str:
    """At most `size` characters, without blanks at the ends."""
    return text[:size].strip()


def readings_of(word: str, vocabulary: frozenset[str]) -> tuple[str, ...]:
    """The readings of `lemmas`, with what the rules of concepts know better put first."""
    readings = lemmas(word, vocabulary)
    if is_hebrew(word):
        name = name_in(word, known=is_known(word, lang="he"))
        if name is not None:
            # Alone: through another reading it would be a term of the dictionary (לדנה, ילד).
            return (name,)
        # A term of the dictionary behind an article or ב is that term (השרת), not a rare verb.
        # Other particles make common verbs of it (לספר, לחבר).
        rest = word[1:]
        if word[0] in "הב" and rest in vocabulary and word not in vocabulary:
            return tuple(dict.fromkeys((*lemmas(rest, vocabulary), *readings)))
    elif len(word) <= MAX_ABBREVIATION_CHARS and readings[0] == word[:-1]:
        # The s of aws is no plural.
        return (word,)
    return readings


def is_generic(word: str, lemma_form: str) -> bool:
    """True for words that fit any topic."""
    if word in CONCEPT_STOP_WORDS or lemma_form in CONCEPT_STOP_WORDS:
        return True
    # מ, ש and כ are more often the first letter of another noun (מערב).
    return word[0] in "בהול" and any(
        rest in CONCEPT_STOP_WORDS for rest in without_prefixes(word, MIN_STEM_LETTERS)
    )


def is_definite(word: ConceptWord) -> bool:
    """A Hebrew word behind its article, not one that starts with ה."""
    return word.lower[0] == "ה" and len(word.lower) > 3 and word.readings[0][0] != "ה"


def is_feminine_construct(word: ConceptWord) -> bool:
    """קופת is of קופה. A verb of the past (ראית) ends alike, after a י."""
    return (
        len(word.lower) > 3
        and word.lower[-1] == "ת"
        and word.lower[-2] != "י"
        and word.readings[0][-1] == "ה"
    )


def is_noun(word: ConceptWord) -> bool:
    """Not behind a preposition: חברת בירושלים is no pair."""
    return word.lower[0] not in "בלכמשוה" or word.readings[0][0] == word.lower[0]


@word_reading
def _word(raw: str, vocabulary: frozenset[str]) -> ConceptWord:
    if len(raw) > MAX_KEY_CHARS:
        return _NO_WORD
    if is_hebrew(raw):
        return _hebrew_word(raw, vocabulary)
    raw = _ENDING.sub("", raw.replace("’", "'"))
    acronym = _ACRONYM.fullmatch(raw) is not None
    lower = (raw[:-1] if acronym and raw[-1] == "s" else raw).lower()
    readings = readings_of(lower, vocabulary)
    key = _latin_key(lower, readings)
    capital = raw[:1].isupper()
    return ConceptWord(
        lower=lower,
        readings=readings,
        key=key,
        stop=not key or is_generic(lower, readings[0]),
        function=lower in STOP_WORDS,
        capital=capital and bool(key),
        acronym=acronym,
        common=capital and lower.isalpha() and not acronym and is_known(lower, lang="en"),
    )


def _hebrew_word(raw: str, vocabulary: frozenset[str]) -> ConceptWord:
    readings = readings_of(raw, vocabulary)
    key = key_of(readings[:1]) if len(raw) >= MIN_WORD_CHARS else ""
    function = raw in STOP_WORDS or any(
        rest in STOP_WORDS for rest in without_prefixes(raw, MIN_STEM_LETTERS)
    )
    return ConceptWord(
        lower=raw,
        readings=readings,
        key=key,
        hebrew=True,
        stop=not key or function or is_generic(raw, readings[0]),
        function=function,
        acronym=GERSHAYIM in raw,
    )


def _latin_key(lower: str, readings: tuple[str, ...]) -> str:
    if _COMPOUND.fullmatch(lower):
        return key_of([form for part in re.split("[-_]", lower) for form in lemmas(part)[:1]])
    if len(lower) < MIN_WORD_CHARS or not lower[0].isalpha() or _is_id(lower):
        return ""
    return key_of(readings[:1])


def _is_id(lower: str) -> bool:
    """A machine's name for something: many digits, a hexadecimal number, or a path."""
    if lower.count("/") > 1 or _HEX.fullmatch(lower):
        return True
    if len(lower) < MIN_ID_CHARS or _NAME_WITH_VERSION.fullmatch(lower):
        return False
    return sum(one.isdigit() for one in lower) >= ID_DIGIT_SHARE * len(lower)


def _spelled(form: str) -> str:
    if GERSHAYIM in form and len(form) >= MIN_BARE_ACRONYM_CHARS:
        form = form.replace(GERSHAYIM, "")
    return unify_finals(form)
