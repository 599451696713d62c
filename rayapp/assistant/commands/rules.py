"""What a person orders of their memory in a message: goals, values, "remember that". Pure.

Only a sentence that orders counts: it begins with the verb, stands outside code and quotations, and
is no question, so "do you remember that trip?" and "add value to the product" order nothing. Words
that a person pastes would command in their name, so a long message orders nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rayapp.graphs.rules.directives import Side
from rayapp.memory.item import MemoryItem
from rayapp.memory.rules.instructions import own_words
from rayapp.text.hebrew import POINTS, STOP_WORDS
from rayapp.text.normalize import normalize, without_marks
from rayapp.text.signature import difference
from rayapp.text.tokens import tokens

Kind = Literal[
    "add_goal", "list_goals", "remove_goal", "add_value", "remember", "forget", "save_learning"
]
Status = Literal["stored", "known", "removed", "listed", "not_found", "ambiguous", "refused"]

# Characters of a message that may hold orders, and orders of one message: more is pasted material.
LONGEST = 600
MOST = 5
# Characters of what is kept: a goal or a fact is a sentence.
LONGEST_TEXT = 500
# Share of the content words that two texts must have in common, either way, to say the same where
# neither holds the other: one word of five may differ (as for facts that are known already).
SAME_WORDS = 0.8
# What the words of two texts may not differ in, however few they are.
OTHER_FACTS = frozenset({"numbers", "polarity"})


@dataclass(frozen=True, slots=True)
class Command:
    """One order. `text`: what it is about; empty where it needs nothing."""

    kind: Kind
    text: str = ""


@dataclass(frozen=True, slots=True)
class Performed:
    """What became of an order. `items`: what was kept, removed, listed, or fits equally."""

    command: Command
    status: Status
    items: tuple[MemoryItem, ...] = ()

    @property
    def memory_ids(self) -> tuple[str, ...]:
        return tuple(one.memory_id for one in self.items)


# A point inside a number or a name ends no sentence, nor does that of a title or a shortened word.
# "Main St. What now?": what begins a sentence of its own, or an order, is no name.
_TITLES = ("Dr", "Mr", "Mrs", "Ms", "Prof", "St", "Mt")
_NAMED = (
    r"(?=\s+(?-i:[A-Z])\w)(?!\s+(?:add|put|set|save|note|record|create|new|another|remember|always"
    r"|forget|don|do|does|did|is|are|remove|delete|drop|cancel|take|list|show|tell|give|please|ok"
    r"|okay|hey|hi|hello|thanks|thank|great|also|and|now|so|just|but|what|where|when|who|why|how"
    r"|can|could|would|will|should|i|we|it|he|she|they|my|the|this|that)\b)"
)
_SHORT = ("vs", "רח", "פרופ")
# These may be the last word.
_SHORT_INSIDE = ("a.m", "p.m", "e.g", "i.e", "etc", "approx", "no")
_ABBREVIATED = "|".join(
    [rf"(?<=\b{one})\.{_NAMED}" for one in _TITLES]
    + [rf"(?<=\b{one})\.(?=\s)" for one in _SHORT]
    + [rf"(?<=\b{re.escape(one)})\.(?=\s+(?-i:[a-z\d]))" for one in _SHORT_INSIDE]
    # "In the street", or "ran away": an address goes on with a number.
    + [r"(?<=\bברח)\.(?=\s+(?:\S+\s+){1,3}\d)"]
)
_SENTENCE = re.compile(rf"(?:[^.!?\n]|[.!?](?=[^\s.!?])|{_ABBREVIATED})+[.!?]*", re.IGNORECASE)
_KIND_WORD_EN = (
    r"(?:(?:please|ok(?:ay)?|hey|hi|hello|thanks|great|also|and|now|so|just)[,!]?\s+"
    r"|(?:can|could|would|will) you )"
)
_KIND_WORD_HE = r"(?:(?:בבקשה|אנא|נא|אז|גם|וגם|היי|שלום|אוקיי|טוב)[,!]?\s+|(?:תוכלי?|אפשר) )"
# All of them: what comes next is none.
_POLITE_EN = rf"(?:{_KIND_WORD_EN})*(?!{_KIND_WORD_EN})"
_POLITE_HE = rf"(?:{_KIND_WORD_HE})*(?!{_KIND_WORD_HE})"
_ASKED_KINDLY = re.compile(
    r"(?:please |hey |hi )*(?:can|could|would|will) you|(?:היי |שלום )*(?:תוכלי?|אפשר) ",
    re.IGNORECASE,
)
_SEP = r"\s*(?::|\s[–—-])\s*"
_OF_GOAL = r"(?:(?:a|an|another|one more|this|my|new)\s+)*(?:personal )?goal"
# What "goal" heads in other trades, and what something is added to.
_NO_GOAL = (
    r"(?!(?:scorers?|keepers?|posts?|lines?|kicks?|difference|tracking|setting|fields?|columns?"
    r"|buttons?|pages?|tables?|cards?|charts?|templates?|sections?|for|in|on|into|from|by|with|and"
    r"|is|was|of)\b)"
)
_TO_DO = (
    r"to\s+(?!(?:the|a|an|my|our|your|his|her|their|this|that|it|each|every|all|\w+ (?:list|board"
    r"|table|page|plan|sheet|app|project|database))\b)"
)
_ADD_HE = (
    r"(?:הוסף|הוסיפי|הוסיפו|תוסיף|תוסיפי|תוסיפו|להוסיף|רשום|רשמי|תרשום|תרשמי|שמור|שמרי|תשמור|תשמרי)"
)
_DROP_HE = r"(?:הסר|הסירי|תסירי?|להסיר|מחק|מחקי|תמחקי?|תמחק|למחוק|בטל|בטלי|תבטלי?)"
_REMEMBER_HE = (
    r"(?:תזכו?ר|תזכרי|תזכרו|זכור|זכרי|זכרו|לזכור|(?:אל|לא) (?:תשכח|תשכחי|תשכחו|לשכוח))"
    r"(?: (?:לי|בבקשה|תמיד|נא))*"
)
_FORGET_HE = r"(?<!אל )(?<!לא )(?:תשכח|תשכחי|תשכחו|שכח|שכחי|שכחו|לשכוח)(?: בבקשה)?"
# A noun that begins with this letter, which is no "that" there: a thing to buy, a time, a number.
_THAT_HE = (
    r"(?!ש(?:מן|מנת|מפו|מלה|מלות|מיכה|מש|בוע|בועות|בועיים|בת|בתות|לום|עה|עות|עתיים|עון|עועית|יר|ירים"
    r"|ולחן|ולחנות|וקולד|וקו|וק|ום|ניצל|זיפים|קדים|קית|קיות|קלים|טויות|מועות|מות|ם|יעור|יעורים|יעורי"
    r"|יחה|יחות|לט|לג|טיח|ני|תי|תיים|ניים|לוש|לושה|בע|בעה|מונה|ישה|נה|נים|נתיים|ירות|ירותים|אלות"
    r"|כונה|ער|ערים|רשרת|מירה|ינה|תייה|פות|עת|נייה|מעתי|אלת|יטה|יטת|ורת|כר"
    r"|אלה(?= (?:קודמת|אחרונה|אחת))|(?:ורה|ניה)(?= (?:אחת|ראשונה|של)|$))(?![א-ת]))"
)
# After "remember that": a thing that both know is recalled, and nothing is told.
_RECALLED = (
    r"(?!(?:time|day|night|evening|morning|summer|winter|trip|guy|girl|man|woman|place|movie|film"
    r"|song|one|party|feeling|moment|conversation|thing|episode|scene)\b)"
    # "That book I told you about": a thing that is pointed at, which no verb says anything of.
    r"(?!(?:book|restaurant|cafe|hotel|beach|shop|dog|cat|article|video|joke|story|recipe|photo"
    r"|picture|email|meeting|game|show|series|teacher|friend|client|project|bug|issue|error|course"
    r"|idea)"
    r"(?:$| (?:i|we|you|he|she|they|in|at|from|with|about)\b"
    r"(?!.* (?:is|are|was|has|have|will|must|needs?|costs?|pays?|belongs?|starts?|ends?)\b)))"
)
# After "forget that": what is being talked of is dropped, and no memory is meant.
_DROPPED = (
    r"(?!(?:(?:last )?(?:question|idea|plan|thought|message|request|one|part|stuff|noise|bit|line)"
    r"(?:$|[,;.!])|(?:(?-i:and|or|then)|instead|for now|please|let['’]?s)\b))"
)
# What is only said, and names nothing that is kept.
_VAGUE = re.compile(
    r"(?:(?:i|we|you)(?: ever| just| even)? (?:said|asked|told|mentioned|wrote|was|were|did)\b.*"
    r"|it|this|that|these|those|everything|anything|all|all of (?:it|this|that)"
    r"|ו?(?:אמרתי|שאלתי|ביקשתי|כתבתי|דיברנו)(?!\w).*|את? ?(?:זה|הכול|הכל)|(?:זה|הכול|הכל))",
    re.IGNORECASE,
)

# The first pattern that is the whole sentence decides; `text` is what it is about.
_ORDERS: tuple[tuple[Kind, str], ...] = (
    ("save_learning", r"/save[_-]learnings?(?:\s*:)?(?:\s+(?P<text>.+))?"),
    ("list_goals", rf"{_POLITE_EN}(?:/goals|(?:list|show)(?: me)?(?: all)? goals)"),
    (
        "list_goals",
        rf"{_POLITE_EN}(?:list|show|tell|give|what(?: are| is|['’]s|['’]re)?)(?: me)?(?: what)?"
        r"(?: all)?(?: of)? my (?:current |own |personal |saved )*goals?(?: are)?"
        r"(?: (?:again|now|please|so far|right now|today|for [\w ]{2,20}))?",
    ),
    (
        "list_goals",
        rf"{_POLITE_HE}(?:(?:הצג|הציגי|תציגי?|הראה|הראי|תראה|תראי|תן|תני|פרט|פרטי)(?: לי)?"
        r"|מה|מהן|מהם|אילו|רשימת)(?: את)?(?: כל)?(?: רשימת)?"
        r" (?:המטרות|מטרות|היעדים|יעדים)(?: שלי)?"
        r"(?: (?:עכשיו|כרגע|בבקשה|שוב|ל[\w ]{2,20}))?",
    ),
    (
        "add_goal",
        rf"{_POLITE_EN}(?:(?:add|set|save|note|create|record) {_OF_GOAL}(?:{_SEP}|\s+(?:{_TO_DO}))"
        rf"|add goal\s+{_NO_GOAL}(?=\w+ \w)(?!to\b)|(?:new|another) goal{_SEP})(?P<text>.+)",
    ),
    (
        "add_goal",
        rf"{_POLITE_EN}(?:add|put)\s+(?P<text>.+?)\s+(?:to|on) my (?:list of )?(?:personal )?goals"
        r"(?: list)?",
    ),
    (
        "add_goal",
        rf"{_POLITE_HE}(?:{_ADD_HE}(?: לי)? (?:את ה)?(?:מטרה|יעד)(?: חדשה?)?(?: שלי)?"
        rf"(?:{_SEP}|\s+(?=ל[א-ת]{{3,}}\s)(?!ל(?:רשימה|טבלה|לוח|דף|אתר|תוכנית|שער)))"
        rf"|(?:מטרה חדשה|יעד חדש){_SEP})(?P<text>.+)",
    ),
    (
        "add_goal",
        rf"{_POLITE_HE}{_ADD_HE}(?: את)? (?P<text>.+?) ל(?:רשימת )?(?:ה?מטרות|ה?יעדים) שלי",
    ),
    (
        "remove_goal",
        rf"{_POLITE_EN}(?:remove|delete|drop|cancel) (?:the |my |this )?goal(?:{_SEP}|\s+(?:of|to)"
        rf"\s+|\s+{_NO_GOAL})(?P<text>.+)",
    ),
    (
        "remove_goal",
        rf"{_POLITE_EN}(?:remove|delete|drop|take)\s+(?P<text>.+?)\s+(?:from|off) my (?:list of )?"
        r"(?:personal )?goals(?: list)?",
    ),
    (
        "remove_goal",
        rf"{_POLITE_HE}{_DROP_HE}(?: את)? ה?(?:מטרה|יעד)(?: שלי)?(?:{_SEP}"
        rf"|\s+(?:של )?)(?P<text>.+)",
    ),
    (
        "remove_goal",
        rf"{_POLITE_HE}{_DROP_HE}(?: את)? (?P<text>.+?) מ(?:רשימת )?(?:ה?מטרות|ה?יעדים) שלי",
    ),
    (
        "add_value",
        rf"{_POLITE_EN}(?:add|save|note|record) (?:(?:a|another|this|my|new|core|personal)\s+)*"
        rf"value{_SEP}(?P<text>.+)",
    ),
    (
        "add_value",
        rf"{_POLITE_EN}(?:add|put)\s+(?P<text>.+?)\s+(?:to|on) my (?:list of )?"
        r"(?:core |personal )*values(?: list)?",
    ),
    ("add_value", rf"{_POLITE_HE}{_ADD_HE}(?: לי)? ערך(?: חדש| אישי)*{_SEP}(?P<text>.+)"),
    ("add_value", rf"{_POLITE_HE}{_ADD_HE}(?: את)? (?P<text>.+?) ל(?:רשימת )?(?:ה?ערכים) שלי"),
    (
        "remember",
        rf"{_POLITE_EN}(?:always )?(?:remember|don['’]?t forget|do not forget)(?: for me)?"
        rf"(?: that\s+{_RECALLED}|{_SEP}|\s+(?=my .+ (?:is|are) ))(?P<text>.+)",
    ),
    (
        "remember",
        rf"{_POLITE_HE}{_REMEMBER_HE}(?:{_SEP}| ?,? ?{_THAT_HE}ש(?:[-–־]?(?=\w)|\s))(?P<text>.+)",
    ),
    # "Forget that, I live in Haifa" tells what holds.
    (
        "forget",
        rf"{_POLITE_EN}forget(?: that(?:\s+{_DROPPED}(?=[\"'“”„«]?\w)|\s*:\s*)|{_SEP}"
        r"|\s+(?=my .+ (?:is|are) ))(?P<text>.+)",
    ),
    ("forget", rf"{_POLITE_HE}{_FORGET_HE}(?:{_SEP}| {_THAT_HE}ש[-–־]?(?=\w))(?P<text>.+)"),
)
_PATTERNS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _ORDERS)
# A message without any of these orders nothing: looking for them takes microseconds.
_SIGNS = ("goal", "value", "remember", "forget", "/save", "מטר", "יעד", "ערך", "ערכים", "זכ", "שכח")
# Around what is kept. A hyphen belongs to "-5" and "O-"; quotation marks belong to words within it.
_BEFORE = re.compile(r"\A(?:[ \t.,;:!—]|[–-](?!\d))+")
_BEHIND = re.compile(r"(?:[ \t.,;:!—]|(?<=\s)[–-]+)+\Z")
_DECKED = re.compile(r"(?:[ *•]|(?<=\s)-+)+\Z")
# In marks as a whole, of which the other may stand in another sentence; 27" is a size.
_WORDS = r"[^\"“”„«»`]"
_QUOTED = re.compile(
    rf"\A(?:[\"“”„«`]((?:{_WORDS}|(?<=\w)\"(?=\w))+?)[\"“”»`]?"
    rf"|({_WORDS}+)(?<!\d)[\"”»`]|'({_WORDS}+)')\Z"
)


def commands_of(message: str) -> tuple[Command, ...]:
    """The orders of a message in their order, each once."""
    if len(message) > LONGEST:
        return ()
    plain = POINTS.sub("", without_marks(message))
    if not any(sign in plain.casefold() for sign in _SIGNS):
        return ()
    found = dict.fromkeys(_found(own_words(plain)))
    return tuple(found)[:MOST]


def _found(said: str) -> Iterator[Command]:
    for line in said.splitlines():
        if line.lstrip().startswith((">", "|")):
            continue
        for match in _SENTENCE.finditer(line):
            command = _command(match[0].strip())
            if command is not None:
                yield command


def _command(sentence: str) -> Command | None:
    plain = _DECKED.sub("", sentence.rstrip(" .!?").lstrip(" -*•"))
    for kind, pattern in _PATTERNS:
        found = pattern.fullmatch(plain)
        if found is None:
            continue
        if kind == "list_goals":
            return Command(kind)
        # "Could you remember that …?" asks for it; "remember that time …?" only asks.
        if sentence.endswith("?") and not _ASKED_KINDLY.match(sentence):
            return None
        text = _bare(_QUOTED.sub(r"\1\2\3", _bare(found["text"] or "")))
        if kind == "save_learning":
            return Command(kind, text[:LONGEST_TEXT])
        told = 1 < len(text) <= LONGEST_TEXT and not _VAGUE.fullmatch(text)
        return Command(kind, text) if told else None
    return None


def _bare(text: str) -> str:
    return _BEHIND.sub("", _BEFORE.sub("", text))


def takes_back(message: str) -> bool:
    """Whether it names something that is no longer to be known: nothing is learned from that."""
    return any(one.kind in ("forget", "remove_goal") for one in commands_of(message))


# A goal of few words that was learned says what it is.
_LABEL = re.compile(r"\A(?:goal|value|מטרה|ערך):\s*", re.IGNORECASE)


def meant(
    items: Iterable[MemoryItem], words: str, coverage: Callable[[str, str], float]
) -> list[MemoryItem]:
    """Memories that say what the words say: exactly, else with nearly the same content words either
    way. `coverage(one, other)`: the share of the words of `one` that `other` holds."""
    wanted = _content(words)
    if not wanted:
        return []
    # "Not" and "no" are no content words, and one number of a few words is a fifth of them.
    candidates = [one for one in items if difference(words, one.text) not in OTHER_FACTS]
    exact = [one for one in candidates if _content(_LABEL.sub("", one.text)) == wanted]
    if exact:
        return exact
    return [
        one
        for one in candidates
        if min(coverage(words, one.text), coverage(one.text, words)) >= SAME_WORDS
    ]


def _content(text: str) -> tuple[str, ...]:
    """Content words; a text that has none is all of its words."""
    found = tuple(token.text for token in tokens(normalize(text)))
    return tuple(one for one in found if one not in STOP_WORDS) or found


def takeaway_of(text: str, answers: Sequence[str]) -> str:
    """What `/save_learning` keeps: the words after it, else how the last answer begins."""
    if text or not answers:
        return text
    plain = " ".join(answers[-1].split())
    if len(plain) <= LONGEST_TEXT:
        return plain
    return plain[: LONGEST_TEXT - 1].rsplit(" ", 1)[0] + "…"


_GOAL, _VALUE, _FACT = ("המטרה", "the goal"), ("הערך", "the value"), ("העובדה", "the fact")
_WHAT: Mapping[Kind, tuple[str, str]] = {
    "add_goal": _GOAL,
    "list_goals": ("המטרות", "the goals"),
    "remove_goal": _GOAL,
    "add_value": _VALUE,
    "remember": _FACT,
    "forget": _FACT,
    "save_learning": ("הלקח", "the takeaway"),
}
_SAID: Mapping[Status, tuple[str, str]] = {
    "stored": ('נוספה רשומה לזיכרון ({what}): "{text}".', 'Kept {what} in memory: "{text}".'),
    "known": ('הרשומה כבר בזיכרון ({what}): "{text}".', 'Memory holds {what} already: "{text}".'),
    "removed": (
        'הוסרה רשומה מהזיכרון ({what}): "{text}".',
        'Memory no longer holds {what}: "{text}".',
    ),
    "listed": ("המטרות השמורות מופיעות למטה: {count}.", "Known goals, shown below: {count}."),
    "not_found": (
        'שום רשומה בזיכרון אינה אומרת "{text}"; דבר לא הוסר.',
        'Nothing in memory says "{text}"; nothing was removed.',
    ),
    "ambiguous": (
        'כמה רשומות מתאימות ל"{text}" ודבר לא הוסר: יש לשאול לאיזו הכוונה.',
        'Several memories fit "{text}" and nothing was removed: ask which one is meant.',
    ),
    "refused": ('הפעולה על {what} לא בוצעה: "{text}".', 'Could not do this with {what}: "{text}".'),
}
_NO_GOALS = ("אין מטרות שמורות.", "No goals are known.")


def told(one: Performed, side: Side) -> str:
    """What became of an order, in one sentence for the assistant."""
    place = 0 if side == "he" else 1
    if one.status == "listed" and not one.items:
        return _NO_GOALS[place]
    return _SAID[one.status][place].format(
        what=_WHAT[one.command.kind][place], text=one.command.text, count=len(one.items)
    )
