"""What a person asks of every answer to come, and what they prefer, in their own words. Pure.

"Always answer in metric" shares no word with the question that it is about, so no search finds it:
it is recognised when a text is stored, and stands before every question. Rules alone decide, in
English and Hebrew. Only what the person said counts: not an answer, not what a tool returned, not a
page, not what the person quotes or pastes, because whoever wrote those would command the assistant.
"""

import re
from collections.abc import Iterator

from rayapp.memory.item import SourceType
from rayapp.memory.tiers import Tier

# Characters of a text that are looked through: what asks stands near its start.
LOOKED_AT = 4_000
# Characters of one instruction: of a longer sentence the clause is kept, cut at a word.
LONGEST = 240
# Instructions of one text.
MOST = 3

_SPEAKERS = {SourceType.USER, SourceType.ASSISTANT}
# The person's part of an exchange, and where it ends.
_ASKED = re.compile(r"\s*(?:user|human|me|משתמש|המשתמש)\s*:\s*", re.IGNORECASE)
_ANSWERED = re.compile(
    r"^[ \t]*(?:assistant|ai|bot|model|system|tool|עוזר|העוזר)[ \t]*:", re.IGNORECASE | re.MULTILINE
)
# Who else speaks in a line; a few labels head what the person says.
_LABEL = re.compile(
    r"(?!(?:user|human|me|note|reminder|rules?|preferences?|instructions?|important|משתמש|הערה|"
    r"תזכורת|כלל|העדפה|הנחיה|חשוב)\b)[^\W\d_][^:\n?!.,]{0,39}:(?=\s)",
    re.IGNORECASE,
)
# What is not the person's own: code, quotations, and the lines after one that ends in a colon.
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED = re.compile(r"(?<!\w)[\"“«„][^\"“”«»„\n]{40,}[\"”»](?!\w)")
_MATERIAL = re.compile(r":[ \t]*\n.*", re.DOTALL)
# A point inside a number or a name ends no sentence.
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=[^\s.!?]))+[.!?]*")

_VERBS = (
    "use|write|answer|reply|respond|give|show|include|add|provide|keep|format|start|end|begin|call|"
    "address|speak|talk|explain|list|cite|mention|quote|state|report|avoid|don['’]?t|do not|stop|"
    "put|return|send|present|convert|translate|summari[sz]e|be|skip|leave|make|tell|stick|limit|"
    "round|refer|ask|check|suggest|recommend|offer|focus|highlight|remind|assume|spell|sign|book"
)
# What "always" and "never" begin where nothing is asked.
_TOLD = (
    "mind|heard|been|had|seen|was|is|were|are|thought|knew|wanted?|good|nice|great|happy|glad|love|"
    "like|again|ever|before|a|an|the|i|we|he|she|they|it|in|on|at|too|more|less|so|as|"
    "here|there|up|down|out|saw|came|went|did|got|took|made|felt|said|told|found|give up|say never|"
    r"(?!need|feed|bring|proceed)\w+(?:ed|ing)"
)
_REPLIES = (
    "answers|replies|responses|explanations|messages|summaries|code|examples|dates|units|"
    "numbers|emails|recipes|recommendations|suggestions"
)
_WHEN = (
    r"(?:when(?:ever)?|every time|each time|any ?time|if) i(?:['’]?m| am)? "
    r"(?:ask|request|want|need)"
)
_FROM_NOW = (
    r"(?:from (?:now|here|this point) on(?:wards?)?|going forward|moving forward|henceforth|"
    r"in (?:the )?future|for (?:all )?future \w+)"
)
_OPENER = (
    r"(?:ok(?:ay)?|so|and|also|hey|hi|hello|thanks|thank you|great|please|note|reminder|rules?|"
    r"preferences?|instructions?|important|by the way|btw|in general|just|but)[,:!]?\s+"
)
# All of them: what comes next is none, so that none is read as a word of the rule itself.
_OPENING = rf"^(?:{_OPENER})*(?!{_OPENER})"
# Where a clause begins inside a sentence.
_CLAUSE = (
    r"(?:^|[,;()–—]\s*|\b(?:and|but|so|because|as|since|also|although|though|while|that|where|"
    r"actually|personally|honestly|however|well|ok|note|preferences?)[,:]?\s+)"
)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in patterns), re.IGNORECASE)


_INSTRUCTION = _any(
    rf"{_OPENING}(?:always|never)\s+(?!(?:{_TOLD})\b)\w",
    rf"{_CLAUSE}(?:please )?{_FROM_NOW}\b,?\s*(?:(?:please|always|never|just|only|you)\b,?\s*)*"
    rf"(?:(?:{_VERBS})\b|i(?:['’]d| would)? (?:want|like|need|prefer) (?:you|your|all|every|my)\b)",
    rf"{_OPENING}(?:only )?(?:{_VERBS})\b.*\b(?:{_FROM_NOW}|{_WHEN}|every time|each time)\b",
    rf"{_OPENING}{_WHEN}\w*\b[^,]*,\s*(?:(?:please|always|never|you|should|must)\s+)*"
    rf"(?:{_VERBS})\b",
    rf"{_OPENING}(?:make sure|be sure|try|remember|don['’]?t forget)"
    r"(?: to| that you| you)? (?:always|never)\b",
    rf"{_OPENING}you (?:should|must|need to|have to) (?:always|never)\b",
    r"\bi(?:['’]d| would)? (?:want|need|like|expect|ask) (?:that )?you (?:to )?(?:always|never)\b",
    rf"{_OPENING}(?:don['’]?t|do not) ever\b",
    rf"{_OPENING}(?:stop|quit|no more) (?:apologi[sz]|us|add|call|giv|send|ask|suggest|includ|"
    r"repeat)ing\b",
    rf"{_OPENING}(?:only )?(?:answer|reply|respond|speak|talk|write)(?: to)?(?: me)?(?: back)? "
    r"(?:only |always )?in (?:hebrew|english|arabic|russian|french|spanish|german|metric|imperial|"
    r"short|plain|simple|bullet|full|one|two|three)\b",
    rf"{_OPENING}(?:keep|make) (?:all )?(?:your|my|the) (?:{_REPLIES})\b",
    rf"{_OPENING}(?:use|stick (?:to|with)|switch (?:back )?to) (?:only |the )?(?:metric|imperial|"
    r"celsius|fahrenheit|kilomet|miles|24[- ]hour|12[- ]hour|british|american|iso)\b",
    r"\bi (?:hate|dislike|don['’]?t like|can['’]?t stand) (?:it )?when you\b",
    r"\bi (?:no longer (?:want|need) you to|don['’]?t want you to)\b",
)
_PREFERENCE = _any(
    rf"{_CLAUSE}i(?:['’]d| would)?(?: \w+ly| much| also| still| always| just| do| now)* prefer\b"
    r"(?! not to (?:say|answer|talk))",
    rf"{_CLAUSE}i(?:['’]d| would)(?: much| really)? rather\b(?! not (?:say|talk|answer))",
    r"\bmy (?:\w+ )?preferences? (?:is|are|for|would be|to)\b",
    r"\bmy favou?rite (?:\w+ ){1,4}?(?:is|are)\b",
    rf"{_CLAUSE}i (?:like|want|need) (?:all )?(?:my|your) (?:{_REPLIES})\b",
)

# A word of two letters and more, with the prefixes that join it to what came before.
_HE_VERBS = (
    "כתוב|כתבי|כתבו|ענה|עני|ענו|השב|השיבי|השתמש|השתמשי|השתמשו|הוסף|הוסיפי|כלול|כללי|הצג|הציגי|"
    "תן|תני|תנו|דבר|דברי|הסבר|הסבירי|ציין|צייני|הקפד|הקפידי|הימנע|הימנעי|ספק|ספקי|הראה|הראי|"
    "תענה|תעני|תכתוב|תכתבי|תשתמש|תשתמשי|תוסיף|תוסיפי|תציג|תציגי|תדבר|תדברי|תסביר|תסבירי|תציין|"
    "תצייני|תשמור|תשמרי|תזכיר|תזכירי|תקבע|תקבעי|תשלח|תשלחי|תראה|תראי|תיתן|תיתני|תכלול|תכללי|"
    "תפנה|תפני|תחשב|תחשבי|תציע|תציעי|תמליץ|תמליצי|תבדוק|תבדקי|תשאל|תשאלי|תקצר|תקצרי|תתרגם|"
    "תתרגמי|תזמין|תזמיני|תקפיד|תקפידי|תימנע|תימנעי|אל ת[א-ת]+"
)
# After a word that says "always", more is surely a verb in the second person.
# Not "תמיד תכננתי" (I always planned) and "תמיד תודה".
_HE_NEXT = (
    rf"(?:{_HE_VERBS}|ת(?!(?!אמתי|שתי|שרתי)[א-ת]*תי\b|ודה\b(?! ב)|ירוצ)[א-ת]{{2,}}"
    rf"|(?:רק|בלי|תמיד|בבקשה) (?:{_HE_VERBS}|ת[א-ת]{{2,}}|ב[א-ת]+|ל[א-ת]+)|אל ת[א-ת]+)"
)
# What opens a remark, not a request: "look, he is always late", "don't worry, I always manage".
_HE_REMARK = (
    r"(?:תראה|תראי|ראה|ראי|כללי|דבר)(?=,| ה[א-ת]| (?:כזה|זה|אחד|ש)"
    r"| (?!(?:לי|לנו|איתי|אליי|אלי) )[א-ת]+ (?:הוא|היא|תמיד|אף))|"
    r"אל ת(?:דאג|שאל|חשוב|תרגש|פחד|גיד|צחיק)(?:י|ו)?(?= ?[,!])"
)
_HE_OPENER = (
    r"(?:בבקשה|אז|וגם|גם|אגב|שלום|היי|תודה|אוקיי|טוב|הערה|כלל|חשוב|תזכרי?|זכור|זכרי)[,:!]?\s+"
)
_HE_OPENING = rf"^(?:{_HE_OPENER})*(?!{_HE_OPENER})"
_HE_CLAUSE = (
    r"(?:^|[,;()–—]\s*|(?:כי|אבל|אז|וגם|גם|כן|האמת|בגלל|מכיוון|אגב|העדפה|תזכור|תזכרי|זכור|זכרי|לב|"
    r"בחשבון)[,:]?\s+)ו?ש?"
)
_HE_NOW = r"(?:מעכשיו(?: והלאה)?|מהיום(?: והלאה)?|מכאן והלאה|מעתה(?: והלאה)?|להבא|מהרגע)"
_HE_WHEN = r"(?:(?:ב?כל פעם ש|כאשר |כש|מתי ש)אני (?:שואל|מבקש|רוצה|צריכ?)[א-ת]*)"
_HE_WITHIN = (
    rf"(?:(?![,;:–—.](?=\s)(?!\s(?:תמיד|לעולם|אף פעם|{_HE_NOW}))"
    r"|\b(?:אני|הוא|היא|הם|הן|אנחנו)\b).)*"
)
_HE_INSTRUCTION = _any(
    rf"{_HE_OPENING}תמיד,?\s+{_HE_NEXT}\b",
    rf"{_HE_OPENING}(?:לעולם|אף פעם|בשום אופן) (?:אל|לא) ת[א-ת]+",
    rf"{_HE_OPENING}(?!{_HE_REMARK})(?:{_HE_VERBS})\b{_HE_WITHIN}\b"
    rf"(?:תמיד|לעולם|אף פעם|{_HE_NOW}|{_HE_WHEN})",
    rf"{_HE_CLAUSE}{_HE_NOW},?\s+(?:אני (?:רוצה|מבקש|מבקשת|מעדיף|מעדיפה)|{_HE_NEXT}|רק|בלי)\b",
    rf"{_HE_OPENING}{_HE_WHEN}[^,]*,\s*{_HE_NEXT}\b",
    r"\b(?:אני (?:רוצה|מבקש|מבקשת)|חשוב לי) ש?(?:תמיד|לא|אף פעם)\s+ש?ת[א-ת]{2,}",
    r"\b(?:חשוב לי|אני כבר לא רוצה) שת[א-ת]{2,}",
    rf"{_HE_OPENING}(?:(?:תפסיקי?|הפסיקי?|הפסק) ל[א-ת]{{3,}}"
    r"|די (?:להתנצל|להוסיף|לשאול|להציע|לשלוח|לחזור|להשתמש|להמציא|לענות|לדבר|לכתוב|לסכם|לתרגם))\b",
    rf"{_HE_OPENING}(?:תענ[הי]|ענ[הי]|תכתבי?|תכתוב|כתוב|כתבי|תדברי?|דברי?)(?: לי| אליי| איתי)? "
    r"(?:רק )?ב(?:עברית|אנגלית|ערבית|רוסית|קצרה|קיצור|תמציתיות|נקודות|לשון)",
)
_HE_PREFERENCE = _any(
    rf"{_HE_CLAUSE}אני (?:(?:ממש|מאוד|מאד|תמיד|בדרך כלל|יותר|גם|עדיין|אישית|כן)\s+)*מעדיפ?[ףה]\b",
    rf"{_HE_CLAUSE}(?:אעדיף|הייתי מעדיפ?[ףה]|עדיף לי|נוח לי יותר)\b",
    r"\bה?העדפ(?:ה שלי|תי|ות שלי|ותיי)\b",
    r"\b[א-ת]+ (?:ה?אהוב[הים]*|המועדפ[הים]*|המועדף) (?:עליי|עלי)\b",
)
# What joins a clause to the one before it.
_JOINED = re.compile(
    r"[\s,;()–—]*(?:(?:and|but|so|because|as|since|also|although|though|while|that|where)\s+)?",
    re.IGNORECASE,
)
# A line without any of these asks nothing: looking for them takes microseconds.
_SIGN = (
    "always|never|prefer|rather|favo|from now|from here|from this|forward|henceforth|future|when|"
    "every time|each time|any time|anytime|if i| ever|stop |quit |no more|answer|reply|replies|"
    "respon|speak|talk|write |keep |make all|make my|make your|make the|like my|like your|want my|"
    "want your|need my|need your|like all|want all|metric|imperial|celsius|fahrenheit|kilomet|"
    "miles|24|12|british|american|iso|no longer|want you|תמיד|לעולם|אף פעם|בשום אופן|מעכשיו|מהיום|"
    "מכאן|מעתה|להבא|מהרגע|אני ש|אני מב|אני רוצ|אני צר|חשוב לי|לא רוצה|פסיק|הפסק|די ל|ענה|עני|"
    "כתב|כתוב|דבר|מעדי|עדיף|עדפ|נוח לי|אהוב|מועדפ|מועדף"
)
_SIGNS = _SIGN.split("|")
# Where a clause goes over into a question or its grounds.
_OVER = re.compile(
    r"(?:[,;]|\s[–—-])\s*(?:and |so |but |then )?(?:(?:can|could|would|will) you|how|what|which|"
    r"where|why|can i|could i|should i|is there|do you|(?:also )?(?:please )?(?:help|provide|show)|"
    r"considering|given|any |so i|i(?:['’](?:m|ve)| am| have| want| need)\b|"
    r"ו?(?:איך|מה|האם|אפשר|תוכלי?|אתה יכול|את יכולה|כמה|איפה|למה))\b.*",
    re.IGNORECASE | re.DOTALL,
)


def instruction_of(
    text: str, tier: Tier, source: SourceType, *, is_turn: bool = False
) -> str | None:
    """What the text asks of all answers to come, or says to be preferred; None = nothing.

    Whole sentences where they are short, at most `MOST` of them. An assistant's text counts where
    it is an exchange, and of that only what the person said. `is_turn`: of a message of a
    conversation, of whose answer nothing may have been kept.
    """
    said = _said(text, tier, source, is_turn)
    found = list(dict.fromkeys(_found(said)))[:MOST] if said else []
    return " ".join(found) or None


def is_instruction(text: str) -> bool:
    """Whether it asks for something; a preference only says what is liked."""
    return bool(_INSTRUCTION.search(text) or _HE_INSTRUCTION.search(text))


def _said(text: str, tier: Tier, source: SourceType, is_turn: bool) -> str:
    """What is the person's own; empty where nothing is."""
    if source not in _SPEAKERS or tier is Tier.BOOKS:
        return ""
    start, end = _ASKED.match(text), _ANSWERED.search(text)
    exchange = start and (end or is_turn)
    if source is SourceType.ASSISTANT and (tier is Tier.MEMORY_BANK or not exchange):
        return ""
    return own_words(text[start.end() if start else 0 : end.start() if end else len(text)])


def own_words(text: str) -> str:
    """What a person says of their own, without code, quotations and what they bring with them."""
    return _QUOTED.sub("…", _MATERIAL.sub("", _CODE.sub("\n", text[:LOOKED_AT])))


def _found(said: str) -> Iterator[str]:
    for line in said.splitlines():
        lower, own = line.casefold(), line.lstrip()
        if not any(sign in lower for sign in _SIGNS):
            continue
        if own.startswith((">", "|")) or _LABEL.match(own):
            continue
        for match in _SENTENCE.finditer(line):
            sentence = match[0].strip().lstrip("-*•# ")
            asked = (
                None if sentence.endswith("?") else _first(sentence, _INSTRUCTION, _HE_INSTRUCTION)
            )
            begins = asked or _first(sentence, _PREFERENCE, _HE_PREFERENCE)
            if begins:
                yield _clause(sentence, begins.start())


def _first(sentence: str, *patterns: re.Pattern[str]) -> re.Match[str] | None:
    return next((match for one in patterns if (match := one.search(sentence))), None)


def _clause(sentence: str, begins: int) -> str:
    """The sentence up to where it asks something else; without its beginning where that is long."""
    over = _OVER.search(sentence, begins)
    whole = sentence[: over.start()] if over else sentence
    if len(whole) > LONGEST:
        whole = _JOINED.sub("", whole[begins:], count=1)
    if len(whole) > LONGEST:
        whole = whole[: LONGEST - 1].rsplit(" ", 1)[0] + "…"
    return whole
