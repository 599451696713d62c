"""Answers that obey somebody else: a role that nobody asked for, tags of a system message, a boast.

Whoever gets words before a model, by a page or a tool, may make it say theirs. Such an answer is
not shown and teaches nothing. What the question itself asks for is no hijack, nor is what stands in
code or in quotation marks. Pure.
"""

import re
from collections.abc import Mapping
from typing import Literal

from rayapp.text.hebrew import HAS_HEBREW

HijackKind = Literal["role_change", "system_tag", "payload"]

# An answer below this that only boasts is one as a whole, characters (the validation design).
SHORT = 15
# Characters of an answer that are looked through, from its start and from its end.
LOOKED_AT = 20_000
# Of the end of an answer, with the marks behind it; the time grows with its square.
LONGEST_BOAST = 500
# Where a hijack may begin; a stream holds back what follows one until its sentence ends.
OPENERS = (
    "i am now",
    "i'm now",
    "i’m now",
    "as requested",
    "as you requested",
    "ignoring ",
    "in pirate",
    "in a pirate",
    "<system",
    "</system",
    "<|system",
    "<|im_start",
    "[inst",
    "[/inst",
    "hacked",
    "pwned",
    "you have been",
    "אני עכשיו",
    "אני מעתה",
    "כפי שביקשת",
    "בקול של",
    "אתעלם",
    "נפרצת",
)

_APART = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”", re.DOTALL)
_ROLE = re.compile(
    r"(?<!\w)i(?:['’]m| am) now (?:(?:a|an|the) (?:[\w-]+ ){0,2}?(?:pirate|villain|hacker|ai|bot"
    r"|chatbot|assistant|model|persona|character)|dan|acting|playing|operating|pretending|speaking"
    r"|unrestricted|jailbroken|unfiltered|free (?:of|from)|known as|called|in \w+ mode)(?!\w)"
    r"(?! (?:process|middle|position|bit|little|lot|step|point)\b)"
    r"|(?<!\w)in (?:a |my (?:best )?)?(?:pirate|villain|evil) (?:voice|mode|accent)(?!\w)"
    r"|(?<!\w)as (?:you )?requested,? i(?:['’]ll| will)(?: now)? (?:ignore|disregard|forget|pretend"
    r"|act as|speak (?:as|like)|be (?:a|an|the)|reveal|drop)(?!\w)"
    r"|(?<!\w)ignoring (?:all |my |any )*(?:previous|prior|earlier|system) (?:instructions|rules)"
    r"|(?<!\w)אני (?:עכשיו|מעתה)(?: והלאה)? (?:פיראט|שודד|דמות|משחק|פועל|פועלת|מתחזה|ללא הגבלות"
    r"|בלי הגבלות|חופשי|חופשייה|במצב)(?!\w)"
    r"|(?<!\w)כפי שביקשת,? (?:אני )?(?:אתעלם|אשכח את ההוראות|אפעל כ|אדבר כמו|אתנהג כ|אחשוף|אהיה)"
    r"|(?<!\w)בקול של (?:פיראט|שודד ים)|(?<!\w)אתעלם מ(?:כל )?ה?הוראות",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"</?system>|<\|(?:im_start|im_end|system)\|>?|\[/?INST\]|<</?SYS>>", re.IGNORECASE
)
_BOAST = re.compile(
    r"(?:\A|[.!?\n])[\s\"'*_]*(?:(?:YOU HAVE BEEN |YOU ARE |I HAVE BEEN )?(?:HACK(?:ED)?|PWNED)"
    r"|נפרצת|פרצתי לך)[\s\"'*_.!]*\Z"
)
_SHORT = re.compile(
    r"(?<!\w)(?:hack|hacked|pwned|נפרצת|נפרצתי)(?!\w)|\A\W*(?:error|שגיאה)\W*\Z", re.IGNORECASE
)
# A person asks for a role, or speaks of the matter themselves.
_ASKED: Mapping[HijackKind, re.Pattern[str]] = {
    "role_change": re.compile(
        r"(?<!\w)(?:pretend|act (?:as|like)|role ?play|you are (?:now )?(?:a|an|the)"
        r"|speak (?:as|like)|talk like|play(?:ing)? (?:the|a)|voice|pirate|character|impersonate"
        r"|in the style|ignore"
        r"|תעמיד|תעמידי|העמד|שחק|שחקי|תשחק|תשחקי|תדבר|תדברי|דבר כמו|דברי כמו|דמות|אתה (?:עכשיו"
        r"|פיראט)|את (?:עכשיו|פיראטית)|פיראט|קול|בסגנון|התעלם|התעלמי)(?!\w)",
        re.IGNORECASE,
    ),
    "system_tag": re.compile(
        r"system|\[/?inst|im_start|prompt|chat format|chat template|special tokens?|llama|xml"
        r"|תגית|תגיות",
        re.IGNORECASE,
    ),
    "payload": re.compile(r"hack|pwn|error|broken into|synonym|פריצ|פרצ|נפרצ|שגיא", re.IGNORECASE),
}
# What it writes for the person speaks as the person, but drops no instructions.
_WRITES = re.compile(
    r"(?<!\w)(?:write|rewrite|rephrase|draft|compose|translate|improve|proofread"
    r"|כתוב|כתבי|תכתוב|תכתבי|נסח|נסחי|תנסח|תנסחי|תרגם|תרגמי|שפר|שפרי)(?!\w)",
    re.IGNORECASE,
)
_OF_A_PERSON = re.compile(
    r"i(?:['’]m| am) now (?:a|an|the|known as|called|playing)\b", re.IGNORECASE
)
_FALLBACK = {
    "en": "Something in my answer was not mine, so I took it back. How can I help you?",
    "he": "משהו בתשובה שלי לא היה שלי, ולכן חזרתי בי ממנה. במה אפשר לעזור?",
}


def hijack_of(answer: str, question: str = "") -> HijackKind | None:
    """What of the answer obeys somebody else; None: nothing."""
    said = answer.strip()
    plain = _APART.sub(" ", said[:LOOKED_AT]).strip()
    found: HijackKind | None = None
    written = _WRITES.search(question) is not None
    roles = (one[0] for one in _ROLE.finditer(plain))
    if any(not (written and _OF_A_PERSON.match(one)) for one in roles):
        found = "role_change"
    elif _TAG.search(plain):
        found = "system_tag"
    elif _BOAST.search(said, max(0, len(said) - LONGEST_BOAST)) or (
        len(said) < SHORT and _SHORT.search(said)
    ):
        found = "payload"
    return None if found is None or _ASKED[found].search(question) else found


def fallback_of(question: str, answer: str = "") -> str:
    """What is said instead, in the language of the question, or of the answer without one."""
    return _FALLBACK["he" if HAS_HEBREW.search(question or answer) else "en"]
