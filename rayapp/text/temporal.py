"""Does a question ask for the newest items? Whole words and phrases of both languages."""

from __future__ import annotations

import re

from rayapp.text.normalize import normalize

# Times that "last" can count back to; "last name" and "last supper" are not among them.
_SPAN = (
    r"(?:night|evening|morning|weekend|week|month|year|quarter|summer|winter|spring|autumn|fall|"
    r"monday|tuesday|wednesday|thursday|friday|saturday|sunday|time|few|couple|\d+|two|three|"
    r"several)s?"
)
_EVENT = (
    r"(?:meeting|session|conversation|chat|message|talk|call|visit|trip|order|purchase|update|"
    r"change|version|release|thing|one|question|answer|decision|appointment|email|note|memory)s?"
)
_ENGLISH = re.compile(
    rf"""\b(?:
      yesterday | today | tonight | lately | recently | recent | latest | newest | nowadays
    | currently | (?:just|right|as\ of)\ now | these\ days | most\ up[- ]to[- ]date
    | so\ far\ today | (?:this|past)\ (?:morning|afternoon|evening|week|month)
    | the\ past\ (?:few|couple|\d+)
    | last\ {_SPAN} | last\ {_EVENT}
    | (?:i|we|you|he|she|they)\ last\ (?!(?:long|until|till|for|through|in|names?)\b)\w+
    | (?:a\ (?:moment|minute|while)|moments|minutes)\ ago
    | (?:an|one|\d+|two|three|few)\ (?:hours?|days?)\ ago
    )\b
    | \bnow\s*[?.!]*$""",
    re.VERBOSE | re.IGNORECASE,
)
_PREFIX = r"(?:ו?(?:כש|מש|ש)?[בכלמה]?)"
_HEBREW = re.compile(
    rf"""(?<![\w"'])(?:
      {_PREFIX}(?:אתמול|שלשום|אמש|לאחרונה|עכשיו|כרגע|כעת|עדכני(?:ת|ים|ות)?)
    | ו?(?:מ|ש|ב|ל|כש)?ה(?:יום|ערב|בוקר|לילה|שבוע|חודש|אחרון|אחרונה|אחרונים|אחרונות)
    | ו?(?:ל|ב|מ)אחרונה
    | לפני\ (?:רגע|דקה|שעה|שעתיים|יום|יומיים|כמה\ (?:דקות|שעות|ימים))
    )(?![\w"'])""",
    re.VERBOSE,
)
# Phrases in which such a word does not ask for what is new.
_NOT_TEMPORAL = re.compile(
    r"""\b(?:from\ now\ on|last\ names?|last\ resort|last\ supper|at\ last|last\ but\ not\ least)\b
    | (?<!\w)(?:בסופו\ של\ היום | הסעודה\ האחרונה | סדר\ היום | שעות\ היום | בשעות\ היום
    | (?:באמצע|במשך|כל)\ (?:היום|הלילה) | (?:המילה|המלה)\ האחרונה | השם\ האחרון )(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)


def prefers_recency(query: str) -> bool:
    """True when the question is about what happened or held most recently."""
    plain = _NOT_TEMPORAL.sub(" ", normalize(query))
    return bool(_ENGLISH.search(plain) or _HEBREW.search(plain))
