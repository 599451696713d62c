"""Lines that must never become a memory: orders to a model, forged frames, secrets. Pure.

A memory is read to the assistant in every later conversation, so a line that gives orders would
give them for ever. Leaving out a harmless line costs one fact.
"""

from __future__ import annotations

import re

from rayapp.text.injection import injection_kinds
from rayapp.text.normalize import find_forbidden, normalize

# Whole words, either language. What tells a model what to do, not what is so.
_ORDERS = re.compile(
    r"""
      \b(?:ignore|disregard|forget|override|bypass)\b.{0,40}
        \b(?:previous|prior|above|earlier|all|any|your|instructions?|rules?|prompts?|memor(?:y|ies))\b
    | \b(?:system|developer)\s+(?:prompt|message|instructions?)\b
    | \bfrom\s+now\s+on\b.{0,40}\b(?:you|assistant|always|never|answer|reply|respond)\b
    | \b(?:you|the\s+assistant|assistants?)\s+(?:must|shall|should|are\s+to|has\s+to|have\s+to)\b
    | \b(?:the\s+)?assistant\s+(?:always|never)\b
    | \b(?:jailbreak|prompt\s+injection|do\s+anything\s+now)\b
    | \b(?:execute|run|call)\s+(?:the\s+)?(?:tool|command|function|script)\b
    | (?:^|\s)[ולשכ]?(?:התעלם|התעלמי|תתעלם|להתעלם|שכח|שכחי|תשכח|לשכוח|עקוף)\s+(?:\S+\s+){0,2}?
        (?:מ?ה?הוראות|ההנחיות|מההוראות|מההנחיות|הקודמות|מכל|הכללים|מהכללים|כל)
    | (?:הוראות|הנחיות|הודעת)\s+ה?מערכת
    | מעכשיו\s+(?:\S+\s+){0,3}?(?:תמיד|לעולם|ענה|תענה|עליך|אתה)
    | (?:אתה|את|העוזר|על\s+העוזר)\s+(?:חייב|חייבת|צריך\s+לענות|מוכרח)
    | עליך\s+(?:\S+\s+){0,1}?(?:לענות|להגיד|לומר|להשיב|להתעלם|להפעיל)
    """,
    re.VERBOSE | re.IGNORECASE,
)
# What only a frame, a chat transcript or markup writes: a memory that holds it forges one.
_FRAMES = re.compile(
    r"""
      </?[a-zA-Z_][\w:-]*[^<>]*> | <!-- | <\| | \|> | \[/?INST\]
    | (?:^|[.:;!?])\s*(?:system|assistant|user|tool|developer|מערכת|עוזר|משתמש)\s*:
    | [═]{2,} | ^[^\S\n]*+\#{1,6}\s | ``` | \[\d+\]\s*\[\w+:
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_SECRETS = re.compile(
    r"""
      \b(?:pass(?:word|phrase|code)|pin\s*code|api[\s_-]?key|secret\s+key|access\s+token
         |private\s+key|cvv)\b
    | \b(?:sk|pk|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{12,} | \bAKIA[A-Z0-9]{12,}
    | \beyJ[A-Za-z0-9_-]{16,}\. | \b[0-9a-fA-F]{32,}\b | -----BEGIN
    | (?:ה?סיסמה|ה?סיסמא|סיסמתי|קוד\s+ה?סודי|מפתח\s+ה?API|מפתח\s+ה?פרטי)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CARD = re.compile(r"(?<!\d)(?:\d[ -]?){13,19}(?!\d)")


def hostile(text: str) -> str | None:
    """`control`, `frame`, `order` or `secret`; None when nothing of it is there."""
    if find_forbidden(text):
        return "control"
    if _FRAMES.search(text):
        return "frame"
    plain = normalize(text)
    if _ORDERS.search(plain) or injection_kinds(text):
        return "order"
    return "secret" if _SECRETS.search(plain) or _CARD.search(plain) else None
