"""Which answers are no advice of a physician, an adviser or a lawyer, and what says so. Pure.

A word of the trade alone is not enough: "when is my doctor's appointment?" asks memory. A sentence
counts that names the subject and asks what to do, or an answer that says what to do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rayapp.assistant.gating.rules.intents import intents_pattern
from rayapp.graphs.rules.directives import Side, side_of
from rayapp.text.language import detect_language
from rayapp.text.normalize import normalize
from rayapp.text.utterance import beginning

Topic = Literal["medical", "financial", "legal"]

# Characters that are looked through, of a question and of an answer.
LOOKED_AT = 8_000


@dataclass(frozen=True, slots=True)
class Disclaimer:
    """`text`: one sentence for the person, in their language."""

    topic: Topic
    text: str


_TOPICS: Mapping[Topic, re.Pattern[str]] = {
    "medical": intents_pattern(
        r"doctors?(?! who\b)|physicians?|symptoms?|diagnos(?:e|ed|is)|dos(?:e|es|age)|medications?"
        r"|medicines?"
        r"|pills?|antibiotics?|painkillers?|ibuprofen|paracetamol|acetaminophen|aspirin|insulin"
        r"|antidepressants?|chest pains?|blood pressure|(?:high )?fever|rash(?:es)?|side effects?"
        r"|pregnan(?:t|cy)|vaccin(?:e|es|ated|ation)|my health|(?:medical|drug) treatments?"
        r"|treatments? for|migraines?|diabetes|cancer|infections?|allerg(?:y|ies|ic reaction)"
        r"|\d+ ?mg",
        r"רופא|רופאה|תסמינים|תסמין|סימפטומים|אבחנה|מינון|תרופה|תרופות|כדורים נגד|אנטיביוטיקה|אקמול"
        r"|נורופן|אופטלגין|אספירין|אינסולין|משכך כאבים|משככי כאבים|כאבים בחזה|כאב בחזה|לחץ (?:ה)?דם"
        r"|חום גבוה|פריחה|תופעות (?:ה)?לוואי|ב?היריון|חיסון|בריאות(?:י| שלי)|טיפול רפואי|טיפול ב\w+"
        r"|מיגרנה|סוכרת|סרטן|זיהום|אלרגיה|מ\"ג",
    ),
    "financial": intents_pattern(
        r"invest(?:ing|ments?)?(?! (?:(?:my|more|some|the|your|a lot of) )?(?:time|effort|energy"
        r"|hours))|stocks|shares of|stock market|stock in|bitcoins?|crypto(?:currenc(?:y|ies))?"
        r"|ethereum|etfs?|index funds?|mortgages?|loans?|pensions?|retirement (?:fund|savings"
        r"|account)"
        r"|portfolio of|day trading|bonds|savings account",
        r"להשקיע(?! (?:\w+ )?(?:זמן|מאמץ|אנרגיה|שעות))|השקעה(?! של זמן)|השקעות|מניות|מניית|ביטקוין"
        r"|קריפטו|מטבעות דיגיטליים|קרן מחקה|קרנות|תעודת סל|משכנתא|הלוואה|פנסיה|קרן השתלמות"
        r"|תיק השקעות|בורסה|אגרות חוב|אג\"ח",
    ),
    "legal": intents_pattern(
        r"lawyers?|attorneys?|contracts?(?! (?:the|a|an) (?:disease|virus|infection|muscle))"
        r"|sue (?:my|the|him|her|them|a|an|for|over|someone|somebody|this|that|us)|suing|lawsuits?"
        r"|(?:in|to|small claims) court|custody|divorce|my will|evict(?:ed|ion)?|lease|legal(?:ly)?"
        r"|my (?:legal )?rights|liable|liability|plead|copyright",
        r"עורך (?:ה)?דין|עורכת (?:ה)?דין|עו\"ד|חוזה|חוזים|לתבוע|תביעה|תביעות|בית (?:ה)?משפט|משמורת"
        r"|גירושין|גירושים|צוואה|פינוי מ?דירה|חוקי(?:ת)?|הזכויות שלי|זכויותיי|פיצויי פיטורים|שימוע"
        r"|זכויות יוצרים",
    ),
}
_ASKS = intents_pattern(
    r"(?:should|can|could|may|must|shall) (?:i|we|my \w+|he|she|one|you)|do (?:i|we) (?:need"
    r"|have to"
    r"|really need)|is (?:it|this|that) (?:\w+ )?(?:safe|ok(?:ay)?|dangerous|bad|normal|legal"
    r"|illegal|worth|wise|smart|allowed|binding|serious)|what (?:should|can|do|would) (?:i|we|you)"
    r"|how (?:do|can|should|much \w+ (?:should|can)|many \w+ (?:should|can)) (?:i|we)"
    r"|how (?:much|many|often)(?: \w+){0,3} (?:should|can|may) (?:i|we|my \w+)|am i (?:allowed"
    r"|liable|entitled)|would you (?:recommend|advise|suggest)|(?:recommend|advise|advice|suggest)"
    r"(?:ation|ations)?|which \w+ (?:should|is best|is better|do you)|good idea|worth it",
    r"האם (?:אני|אנחנו|אפשר|מותר|כדאי|בטוח|מסוכן|חוקי|צריך|לי|זה|זו|יש|עדיף)|(?:כדאי|מותר|אסור"
    r"|עדיף)"
    r" (?:לי|לנו|לקחת|להשקיע|לקנות|למכור|לתבוע|לחתום|ל\w+)|אפשר (?:לקחת|לתבוע|לבטל|לקבל|להשקיע"
    r"|ל\w+)"
    r"|(?:מה|כמה|איזו|איזה|איזו תרופה) (?:\w+ )?(?:לקחת|לעשות|אפשר|כדאי|מותר)|איך (?:לטפל|מטפלים"
    r"|להשקיע|משקיעים|לתבוע|תובעים|לבטל|מבטלים)|(?:אני )?(?:צריך|צריכה|חייב|חייבת) (?:ל\w+|רופא"
    r"|עורך)|מומלץ|תמליץ|תמליצי|המלצה|ייעוץ|עצה|זה (?:מסוכן|בטוח|חוקי|נורמלי|משתלם)",
)
_ADVISES = intents_pattern(
    r"you (?:should|can|could|may|must|need to|ought to)(?: \w+)?|i(?:['’]d| would)? (?:recommend"
    r"|suggest|advise)|(?:take|try|use|apply) (?:\d|a|an|one|two|the|some)|consider(?: \w+ing)?"
    r"|it is (?:safe|legal|best|wise)|it['’]s (?:safe|legal|best|wise)",
    r"כדאי(?: לך)?|מומלץ|אני (?:ממליץ|ממליצה|מציע|מציעה)|(?:קח|קחי|תיקח|תיקחי)|עליך|מותר לך|אפשר"
    r" ל\w+|ניתן ל\w+|אתה (?:צריך|יכול|רשאי)|את (?:צריכה|יכולה|רשאית)",
)
_SENTENCE = re.compile(r"[^.!?\n]+")
_TEXTS: Mapping[Topic, Mapping[Side, str]] = {
    "medical": {
        "en": "This is general information and no medical advice; ask a doctor or a pharmacist.",
        "he": "זהו מידע כללי ולא ייעוץ רפואי; יש לפנות לרופא או לרוקח.",
    },
    "financial": {
        "en": "This is general information and no financial advice; ask a licensed adviser.",
        "he": "זהו מידע כללי ולא ייעוץ פיננסי; יש לפנות ליועץ מורשה.",
    },
    "legal": {
        "en": "This is general information and no legal advice; ask a lawyer.",
        "he": "זהו מידע כללי ולא ייעוץ משפטי; יש לפנות לעורך דין.",
    },
}


def disclaimers_of(question: str, answer: str = "") -> tuple[Disclaimer, ...]:
    """What the answer to a question must say of itself, in the language of the question, or of the
    answer where there is none."""
    asked = _topics(question, _ASKS, whole=True)
    said = asked | _topics(answer, _ADVISES, whole=False)
    side = side_of(detect_language(normalize(question or answer)))
    return tuple(Disclaimer(topic, _TEXTS[topic][side]) for topic in _TOPICS if topic in said)


def _topics(text: str, what: re.Pattern[str], *, whole: bool) -> set[Topic]:
    """`whole`: a person tells in one sentence and asks in the next."""
    plain = normalize(beginning(text, LOOKED_AT))
    if not plain or not what.search(plain):
        return set()
    pieces = [plain] if whole else [one for one in _SENTENCE.findall(plain) if what.search(one)]
    return {topic for topic, named in _TOPICS.items() if any(named.search(one) for one in pieces)}
