"""Answers by which a model says that it does not answer. Pure.

A refusal is written politely and in the right language, so nothing else tells it from an answer.
"""

from __future__ import annotations

import re

from rayapp.text.normalize import normalize

# Texts speak of people who are sorry, cannot sleep or eat no meat ("לא אוכל בשר"), so a beginning
# that anybody may use counts only with a word of what a model does or lacks. Both languages.
_WORDS = {
    # What a model says that it will not do.
    "does": r"""(?:help|assist|answer|respond|comply|provide|say|tell|determine|identify|place
        |situate|summari[sz]e|comment|describe|explain|discuss|process|access|do|fulfill?|complete
        |generate|give|offer|share|infer)\b""",
    # What it says that it lacks, and what it says that of.
    "lacks": r"(?:information|context|details?|data|background|surroundings)\b",
    "given": r"(?:text|passage|excerpt|snippet|context|message|input|question|request|memory)\b",
    "much": r"(?:enough|sufficient|adequate|any|additional|further|more|other|the|necessary)",
    "was": r"""(?:(?:was|is|were|has\s+been)\s+)?
        (?:given|provided|available|supplied|found|specified|known)\b""",
    "hdoes": r"""ל(?:עזור|סייע|ענות|השיב|ומר|תת|ספק|קבוע|זהות|מקם|סכם|תאר|הסביר|דעת|הגיב|התייחס
        |בצע|מלא|הסיק)\b""",
    "hlacks": r"ה?(?:מידע|הקשר|פרטים|נתונים|רקע)\b",
    "hgiven": r"(?:ה?(?:טקסט|קטע|הקשר|הודעה|פסקה)|מאיפה|מהיכן|מאין|לאן)\b",
    "hmuch": r"(?:מספיק|די|מספקי?ם?|כל|שום|עוד)",
}
_PATTERN = r"""
    ^\W*(?:
      # "I'm sorry, but ...", "Sorry, no."
      (?:i\s+am|i'?m)\s+(?:so\s+|very\s+|really\s+|truly\s+)?sorry\b
    | (?:so\s+|very\s+|really\s+)?sorry\W+(?:but|no|i|we|this|that|there|it)\b
    | sorry\W*$ | i\s+apologi[sz]e\b | apologi[sz]ing\b | my\s+apologies\b
    | apologies\W+(?:but|i|we|there|this)\b | apologies\W*$
    | (?:unfortunately\W+)?(?:%(i)s)
    | unfortunately\W+(?:i|we)\s+(?:know|have|lack|can|could|do|am|are)\b
    # "As a model, I ..."
    | (?:i\s+am|i'?m)\s+(?:just\s+|only\s+)?an?\s+(?:ai|language\s+model|assistant)\b
    | as\s+an?\s+(?:ai|(?:\w+\s+){0,2}language\s+model)\b
    | as\s+an?\s+(?:\w+\s+)?assistant\W+(?:i|my)\s+
        (?:do\s+not|don'?t|can\s*not|can'?t|am|will|won'?t|have\s+no|could)\b
    | (?:n\s*/\s*a|none|unknown|unclear|not\s+(?:known|available|applicable))\W*$
    | (?:no|not\s+%(much)s|insufficient)\s+(?:%(much)s\s+)?%(lacks)s\W*$
    # Hebrew
    | (?:אני\s+)?(?:ממש\s+|מאוד\s+|מאד\s+)?(?:מצטער(?:ת|ים)?|מתנצל(?:ת|ים)?)\b
    | סליחה,?\s+(?:אבל|אך|אני|אינני|לא)\b
    | (?:לצערי(?:\s+הרב)?,?\s+)?(?:%(h)s)
    | לצערי(?:\s+הרב)?,?\s+(?:אין\s+לי|אני\s+לא|איני|אינני|לא\s+(?:אוכל|ניתן|נוכל)\s+ל)
    | כ(?:מודל\s+שפה|בינה\s+מלאכותית)\b
    | כעוזרת?\s+(?:דיגיטלית?|וירטואלית?|אישית?),?\s+(?:איני|אינני|אני|אין\s+לי|לא\s+אוכל)\b
    | (?:לא\s+(?:ידוע|זמין|רלוונטי|ברור)|אין(?:\s+%(hmuch)s)?\s+%(hlacks)s)\W*$
    )
"""
_ENGLISH = r"""
      (?:i|we)\s+(?:can\s*not|can'?t|could\s*n'?t|could\s+not|won'?t|will\s+not)\s+(?:\w+\s+)?%(does)s
    | (?:i|we)(?:\s+am|\s+are|'?m|'?re)\s+(?:not\s+able|unable|not\s+allowed)\s+to\b
    | (?:i|we)\s+(?:do\s+not|don'?t)\s+have\s+(?:access\s+to\s+)?(?:%(much)s\s+){0,2}
        (?:%(lacks)s|%(given)s)
    | (?:i|we)\s+(?:have\s+no|lack)\s+(?:%(much)s\s+)?(?:access\s+to\s+)?(?:%(much)s\s+)?%(lacks)s
    | (?:i|we)\s+(?:do\s+not|don'?t)\s+know\s+
        (?:where|what|which|who)\s+(?:the|this|it|is)\s+(?:is\s+)?(?:the\s+|this\s+)?
        (?:%(given)s|%(lacks)s|comes?\b|from\b)
    | there\s+(?:is|are|was)(?:\s+not|n'?t)\s+(?:%(much)s\s+){0,2}%(lacks)s
    | there\s+(?:is|are|was)\s+(?:no|insufficient)\s+(?:%(much)s\s+)?%(lacks)s
    | (?:no|not\s+%(much)s|insufficient)\s+(?:%(much)s\s+)?%(lacks)s\s+
        (?:%(was)s|to\s+%(does)s|in\s+the\s+%(given)s)
    | (?:the|this)\s+(?:provided\s+|given\s+)?%(given)s\s+(?:itself\s+|alone\s+)?
        (?:(?:does\s+not|doesn'?t)\s+(?:contain|provide|give|include|have|offer)
          |lacks|contains\s+no|provides\s+no|gives\s+no)\s+(?:%(much)s\s+){0,2}%(lacks)s
    | the\s+(?:%(lacks)s|source|origin)\s+(?:of\s+(?:the|this)\s+%(given)s\s+)?
        (?:can\s*not|can'?t|could\s+not)\s+be\s+(?:determined|identified|known|inferred)\b
    | it(?:\s+is|'?s)\s+(?:not\s+possible|impossible)\s+to\s+%(does)s
    | it(?:\s+is|'?s)\s+(?:unclear|not\s+clear|unknown)\s+(?:where|what|which)\s+
        (?:(?:the|this)\s+)?(?:%(given)s|%(lacks)s)
"""
_HEBREW = r"""
      (?:אינני|איני|אני\s+לא|אין\s+אני)\s+(?:יכולה?|מסוגלת?|רשאית?|מורשי?ת?)\s+%(hdoes)s
    | אין\s+(?:באפשרותי|ביכולתי)\b | לא\s+(?:אוכל|נוכל|ניתן\s+לי)\s+%(hdoes)s
    | אין(?:\s+לי)?\s+(?:%(hmuch)s\s+)?(?:גישה\s+ל)%(hlacks)s
    | אין\s+לי\s+(?:%(hmuch)s\s+){0,2}%(hlacks)s
    | אין\s+%(hmuch)s\s+%(hlacks)s
    | (?:אינני|איני|אני\s+לא)\s+יודעת?\s+(?:מה\s+|את\s+|מי\s+)?%(hgiven)s
    | (?:לא\s+ניתן|אי\s+אפשר|לא\s+אפשרי|בלתי\s+אפשרי)\s+%(hdoes)s\s+(?:מה\s+|את\s+)?%(hgiven)s
    | לא\s+(?:נמסרו?|סופקו?|ניתנו?|צוינו?|נמצאו?|התקבלו?)\s+(?:%(hmuch)s\s+)?%(hlacks)s
    | ה(?:טקסט|קטע|הודעה)\s+(?:אינו|אינה|לא)\s+(?:מכילה?|כוללת?|מספקת?|נותנת?)\s+
        (?:%(hmuch)s\s+)?%(hlacks)s
"""
_REFUSALS = re.compile(
    _PATTERN % {**_WORDS, "i": _ENGLISH % _WORDS, "h": _HEBREW % _WORDS},
    re.VERBOSE | re.IGNORECASE,
)


def refuses(answer: str) -> bool:
    """True for "I'm sorry, but I can't help with that." and its like."""
    return _REFUSALS.search(normalize(answer).replace("’", "'")) is not None
