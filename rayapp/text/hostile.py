"""Lines that must never become a memory or command a reader: orders, forged
frames, secrets. Pure.
"""

import re

from rayapp.text.normalize import find_forbidden, normalize

# Sentences by which a text tries to command a model or its reader, in both languages.
#
# A finding is a warning: people quote such sentences. Nothing is removed because of one.

_HE_IGNORE = "(?:התעלמו|התעלמי|התעלם|שכחו|שכחי|שכח|אל תתייחסו|אל תתייחסי|אל תתייחס)"
_HE_RULES = "(?:ההוראות|הנחיות|ההנחיות|הוראות|הכללים|ההודעות)"
_EN_RULES = "(?:instructions?|prompts?|rules|messages|directions|guidelines)"

INJECTIONS: tuple[tuple[str, str], ...] = (
    (
        "ignore_instructions",
        rf"\b(?:ignore|disregard|forget|override)\b[^.\n]{{0,40}}\b(?:previous|prior|above|earlier|"
        rf"all|your|system)\b[^.\n]{{0,30}}\b{_EN_RULES}\b"
        rf"|{_HE_IGNORE}[^.\n]{{0,30}}{_HE_RULES}",
    ),
    (
        "new_role",
        r"\byou are now\b|\bfrom now on,? you\b|\bact as (?:the )?(?:system|developer|admin)\b"
        r"|\bnew system prompt\b"
        r"|(?:אתה|את) (?:עכשיו|מעכשיו|כעת)\b|מעכשיו (?:אתה|את)\b|התנהג כ(?:מערכת|מנהל|מפתח)",
    ),
    (
        "reveal_prompt",
        r"\b(?:reveal|print|repeat|show|output)\b[^.\n]{0,30}\b(?:system prompt|hidden prompt|"
        r"initial instructions)\b"
        r"|(?:חשוף|חשפי|הדפס|הדפיסי|הצג|הציגי|גלה|גלי)[^.\n]{0,30}(?:הנחיות המערכת|הוראות המערכת|"
        r"פרומפט)",
    ),
    (
        "hide_from_user",
        r"\b(?:do not|don't|never) (?:tell|inform|mention (?:this )?to|show) the user\b"
        r"|(?:אל|לא) (?:תספר|תספרי|תגלה|תגלי|תגיד|תגידי|לספר|לגלות)[^.\n]{0,15}למשתמש",
    ),
    (
        "chat_token",
        r"<\|[a-z_]{2,30}\|>|\[/?INST\]|<</?SYS>>"
        r"|^[^\S\n]*+#{2,}+[^\S\n]*+(?:system|instruction)s?[^\S\n]*+:?[^\S\n]*+$",
    ),
    (
        "hidden_channel",
        # A picture whose address carries data to its host.
        r"!\[[^\]\n]{0,200}+\]\(https?://(?=[^)\s]{0,2000}+\))"
        r"[^)\s]{0,500}[?&][^)\s=]{1,50}+=[^)\s]{8}",
    ),
    ("hidden_text", "[\u202a-\u202e\u2066-\u2069]|[\U000e0000-\U000e007f]{2,}"),
)
_COMPILED = tuple(
    (kind, re.compile(pattern, re.IGNORECASE | re.MULTILINE)) for kind, pattern in INJECTIONS
)


def injection_kinds(text: str) -> list[str]:
    """Names of the patterns that occur, each once, in the order of the table."""
    return [kind for kind, pattern in _COMPILED if pattern.search(text)]


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
      </?[a-zA-Z_][^<>]*+> | <!-- | <\| | \|> | \[/?INST\]
    | (?:^|[.:;!?])[^\S\n]*+(?:system|assistant|user|tool|developer|מערכת|עוזר|משתמש)\s*:
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
