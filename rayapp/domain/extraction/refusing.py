"""Answers by which a model says that it does not answer. Pure.

A refusal is written politely and in the right language, so nothing else tells it from an answer.
"""

from __future__ import annotations

import re

from rayapp.domain.text.normalize import normalize

# How refusals begin, either language. Texts about people who are sorry speak of them by name, and
# one that is left out by mistake costs a convenience.
_REFUSALS = re.compile(
    r"""
    ^\W*(?:
      (?:(?:i\s+am|i['’]?m)\s+)?(?:so\s+|very\s+|really\s+)?sorry\b
    | (?:i\s+)?apologi[sz]e\b | (?:my\s+)?apologies\b
    | unfortunately,?\s+(?:i|we)\b
    | (?:i|we)\s+(?:can\s*not|can['’]?t|could\s*n['’]?t|could\s+not|won['’]?t|will\s+not)\b
    | (?:i|we)(?:\s+am|\s+are|['’]?m|['’]?re)\s+(?:not\s+able|unable|not\s+allowed)\b
    | (?:i\s+am|i['’]m)\s+(?:just\s+|only\s+)?an?\s+(?:ai|language\s+model|assistant)\b
    | as\s+an?\s+(?:ai|(?:\w+\s+)?language\s+model|(?:\w+\s+)?assistant)\b
    | (?:אני\s+)?(?:ממש\s+|מאוד\s+|מאד\s+)?(?:מצטער(?:ת|ים)?|מתנצל(?:ת|ים)?)\b
    | לצערי\b | סליחה,?\s+(?:אבל|אך|אני|אינני|לא)\b
    | (?:אינני|איני|אני\s+לא|אין\s+אני)\s+(?:יכולה?|מסוגלת?|רשאית?|מורשי?ת?)\b
    | אין\s+(?:באפשרותי|ביכולתי)\b | לא\s+(?:אוכל|ניתן\s+לי)\b
    | כ(?:מודל\s+שפה|בינה\s+מלאכותית|עוזרת?\s+(?:דיגיטלית?|וירטואלית?|אישית?))\b
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)


def refuses(answer: str) -> bool:
    """True for "I'm sorry, but I can't help with that." and its like."""
    return _REFUSALS.search(normalize(answer)) is not None
