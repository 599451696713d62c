"""Requests for what a tool does, by its verb: "שלח מייל לדנה" asks for `send_email`. Pure.

A question names a tool in its own language, and the tools are named in English. The verb alone is
read, and only where somebody is told or asked to do it: "he sent a mail" asks for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# What tools are called for an action -> the verb in English, and in Hebrew as it is told (שלח), in
# the future (תשלח) and in the infinitive.
VERBS: Mapping[tuple[str, ...], tuple[str, str, str, str]] = {
    ("send",): ("send", "שלח(?:י|ו)?", "תשלח(?:י|ו)?", "לשלוח"),
    ("book", "reserve", "order"): (
        "book|reserve|order",
        "הזמן|הזמיני|הזמינו",
        "תזמין|תזמיני|תזמינו",
        "להזמין",
    ),
    ("schedule", "book", "create"): (
        "schedule",
        "קבע(?:י|ו)?|תזמן|תזמני",
        "תקבע(?:י|ו)?|תתזמן|תתזמני",
        "לקבוע|לתזמן",
    ),
    ("create",): ("create", "צור|צרי|צרו", "תיצור|תיצרי|תיצרו|תצור|תצרי", "ליצור"),
    ("open",): ("open", "פתח(?:י|ו)?", "תפתח(?:י|ו)?", "לפתוח"),
    ("buy", "purchase", "order"): ("buy|purchase", "קנה|קני|קנו", "תקנה|תקני|תקנו", "לקנות"),
    ("cancel",): ("cancel", "בטל(?:י|ו)?", "תבטל(?:י|ו)?", "לבטל"),
    ("delete", "remove"): ("delete|remove", "מחק(?:י|ו)?", "תמחק(?:י|ו)?", "למחוק"),
    ("update",): ("update", "עדכן|עדכני|עדכנו", "תעדכן|תעדכני|תעדכנו", "לעדכן"),
    ("add",): ("add", "הוסף|הוסיפי|הוסיפו", "תוסיף|תוסיפי|תוסיפו", "להוסיף"),
    ("play",): ("play", "נגן|נגני|השמע|השמיעי", "תנגן|תנגני|תשמיע|תשמיעי", "לנגן|להשמיע"),
    ("call",): ("call", "התקשר|התקשרי|התקשרו", "תתקשר|תתקשרי|תתקשרו", "להתקשר"),
    ("translate",): ("translate", "תרגם|תרגמי|תרגמו", "תתרגם|תתרגמי|תתרגמו", "לתרגם"),
}
# Tools of memory itself: a wish to add or delete a memory opens no other tool.
_OF_MEMORY = frozenset({"memory", "memories"})
# A tool's word is the verb, or the verb with one of these.
_ENDINGS = ("", "s", "r", "er", "or", "ing", "ings", "ion")

# Where a verb is a request: at the start of a clause, or after words that ask for it.
_START_EN = (
    r"(?:(?:^|[.,;:!?])\s*|\b(?:and|then|please|(?:can|could|would|will) (?:you|we)|let['’]?s"
    r"|help me|(?:want|need|like) (?:you )?to) )(?:please |also |just |to )?"
)
_START_HE = r"(?:(?:^|[.,;:!?])\s*|(?<!\w)(?:בבקשה|אנא|נא|אז|גם) )ו?"
_ASKED_HE = (
    r"(?<!\w)(?:רוצה|רוצים|צריך|צריכה|צריכים|אפשר|תוכל|תוכלי|יכול|יכולה|מבקש|מבקשת|אשמח|בא לי"
    r"|נא|בבקשה) (?:\w+ )?"
)
_REFUSED_HE = r"(?<!אל )(?<!לא )(?<!בלי )"


def _pattern(english: str, told: str, future: str, infinitive: str) -> re.Pattern[str]:
    return re.compile(
        rf"{_START_EN}(?:{english})(?!\w)|{_START_HE}(?:{told})(?![\w\"'])"
        rf"|{_REFUSED_HE}(?<!\w)[וש]?(?:{future})(?![\w\"'])|{_ASKED_HE}(?:{infinitive})(?![\w\"'])",
        re.IGNORECASE,
    )


_PATTERNS = {stems: _pattern(*both) for stems, both in VERBS.items()}


def asked_verbs(wished: str) -> frozenset[str]:
    """The English verbs that a normalised question asks for, whatever its language."""
    return frozenset(
        stem for stems, pattern in _PATTERNS.items() if pattern.search(wished) for stem in stems
    )


def does(words: Sequence[str], verbs: frozenset[str]) -> bool:
    """Whether a tool whose name has these words does what one of the verbs says."""
    if not _OF_MEMORY.isdisjoint(words):
        return False
    return any(_is_form(word, verb) for word in words for verb in verbs)


def _is_form(word: str, verb: str) -> bool:
    return any(word in (verb + end, verb.removesuffix("e") + end) for end in _ENDINGS)
