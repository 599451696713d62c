"""Hebrew letters, points and joined particles; function words of both languages."""

import re

# Function words of both languages: they carry no topic. Written by us, normalised spelling.

# "like" is left out: what someone likes is what a memory is about.
_ENGLISH = """
    a about after again all also am an and any are as at be because been before being both but by
    can could did do does doing done during each few for from further get got had has have having
    he her here hers him his how i if in into is it its just me more most my no nor not now of off
    on once only or other our out over she should so some such than that the their them then there
    these they this those through to too under until up us very was we were what when where which
    while who whom why will with would yes you your yours
    don't doesn't didn't isn't aren't wasn't weren't won't can't couldn't wouldn't shouldn't
    haven't hasn't hadn't i'm i've i'll i'd you're you've you'll it's that's what's there's he's
    she's we're we've they're they've let's
"""
# שם (name, there) and בנו (his son, in us) are left out: they are topics as often as not.
_HEBREW = """
    את אל על של עם מן כי אם או גם רק אך אבל אלא לא אין יש זה זו זאת אלה אלו הוא היא הם הן אני
    אתה אנחנו אתם אתן שלי שלך שלו שלה שלנו שלכם שלהם לי לך לו לה לנו לכם להם להן בי בך בו בה בהם
    בהן אותי אותך אותו אותה אותנו אותם אותן מה מי איפה היכן מתי איך כיצד למה מדוע כמה איזה איזו
    אילו האם מהו מהי מהם מיהו מיהי כל כמו כן כך כאן פה עוד מאוד יותר פחות אחרי לפני בין תחת מול
    אצל ליד לפי בלי ללא עד אז כבר היה היתה הייתה היו להיות יהיה תהיה יהיו אשר כאשר כש ש ה ו ב ל
    מ כ בשל אודות לגבי בגלל כדי שבו שבה שהוא שהיא שהם שלא ולא שזה וגם ואת ועל
"""
STOP_WORDS = frozenset(_ENGLISH.split()) | frozenset(_HEBREW.split())


GERESH = "'"
GERSHAYIM = '"'
MAQAF = "\u05be"
HEBREW_LETTER = "א-ת"

# Niqqud and cantillation marks; maqaf, paseq, sof pasuq and nun hafukha are punctuation.
POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]")
HAS_HEBREW = re.compile(f"[{HEBREW_LETTER}]")

# Acronyms of everyday Hebrew that no dictionary of words holds; with a prefix they are still
# these. Adding one changes what is indexed: raise SCHEMA in analyser.py.
_ACRONYM_LIST = """
    צה"ל ארה"ב ת"א ב"ש ר"ג פ"ת כ"ס דו"ח חו"ל או"ם מנכ"ל סמנכ"ל יו"ר ח"כ רה"מ בי"ס ביה"ס בי"ח
    ביה"ח קופ"ח ד"ר עו"ד רו"ח מע"מ ת"ז ת"ד בע"מ נדל"ן תנ"ך חז"ל רמב"ם רש"י שב"כ מו"מ הנ"ל ע"י
    ע"פ ע"ש ע"ג ב"כ כ"כ בד"כ סה"כ אח"כ אחה"צ לפנה"ס לפנה"צ מ"מ ס"מ ק"מ ק"ג מ"ר קמ"ש של"ט נט"ן
    חמ"ל מד"א אצ"ל לח"י פלמ"ח ש"ח מט"ח ביהמ"ש בג"ץ למ"ס רמ"י תב"ע מל"ג תח"צ נתב"ג בי"ד ביה"ד
    רמטכ"ל מג"ב יס"מ ימ"מ חי"ר אל"מ סא"ל רס"ן סמ"ר מ"פ מ"כ ז"ל
"""
ACRONYMS = frozenset(_ACRONYM_LIST.split())

_FINALS = str.maketrans("ךםןףץ", "כמנפצ")

# ו, then a subordinator, then a preposition or מ, then the article. The article is not written
# after ב, כ and ל (it merges with them), so those pairs are not legal.
_PREFIXES = frozenset(
    conjunction + subordinator + preposition + article
    for conjunction in ("", "ו")
    for subordinator in ("", "ש", "כש", "מש", "לכש", "בש")
    for preposition in ("", "ב", "כ", "ל", "מ")
    for article in ("", "ה")
    if not (article and preposition and preposition in "בכל")
) - {""}
LONGEST_PREFIX = max(len(prefix) for prefix in _PREFIXES)


def unify_finals(word: str) -> str:
    """Write the five final letters as their plain form, so that a term has one spelling."""
    return word.translate(_FINALS)


def is_hebrew(word: str) -> bool:
    """True when the first character is a Hebrew letter."""
    return "א" <= word[:1] <= "ת"


def without_prefixes(word: str, min_letters: int) -> list[str]:
    """What is left of `word` after each legal prefix, the shortest prefix first."""
    longest = min(LONGEST_PREFIX, len(word) - min_letters)
    return [word[size:] for size in range(1, longest + 1) if word[:size] in _PREFIXES]
