"""What a question asks of tools: research, open data, today's facts, a tool by name. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rayapp.assistant.tools.rules.definitions import own_name
from rayapp.graphs.rules.question import MAX_CONTEXT_CHARS
from rayapp.search.rules.datagov_intent import datagov_intent
from rayapp.text.normalize import normalize
from rayapp.text.phrases import PARTICLE, Phrases, phrases_in, tables_of
from rayapp.text.utterance import beginning
from rayapp.text.word_lists import words_of

# Requests for what a tool does, by its verb: "שלח מייל לדנה" asks for `send_email`.
#
# A question names a tool in its own language, and the tools are named in English. The verb alone is
# read, and only where somebody is told or asked to do it: "he sent a mail" asks for nothing. The
# tables of `configs/language/verbs.yaml` are named by what tools are called for the action.
# Tools of memory itself: a wish to add or delete a memory opens no other tool.
_OF_MEMORY = frozenset({"memory", "memories"})
# A tool's word is the verb, or the verb with one of these.
_ENDINGS = ("", "s", "r", "er", "or", "ing", "ings", "ion")


def does(words: Sequence[str], verbs: frozenset[str]) -> bool:
    """Whether a tool whose name has these words does what one of the verbs says."""
    if not _OF_MEMORY.isdisjoint(words):
        return False
    stems = {stem for verb in verbs for stem in (verb, verb.removesuffix("e"))}
    return any(stem + end in words for stem in stems for end in _ENDINGS)


IntentName = Literal["official_data", "research", "search", "general"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNeeds:
    """What the words of one question ask for.

    Attributes:
        explicit: the words that ask for a tool outright, or the tool's name; None = nobody did.
        research: the user wants the matter looked into, not only recalled.
        search: the user wants something searched for, anywhere.
        official_data: the question is about open government data.
        current: it needs a date or the latest state of the world.
    """

    explicit: str | None = None
    research: bool = False
    search: bool = False
    official_data: bool = False
    current: bool = False

    @property
    def name(self) -> IntentName:
        """The one intent that a single word can carry, the most specific first."""
        if self.official_data:
            return "official_data"
        if self.research:
            return "research"
        return "search" if self.search else "general"


NO_NEEDS = ToolNeeds()


def _words(english: str, hebrew: str) -> str:
    """A pattern of whole words of both languages, without compiling it."""
    latin, letters = english.replace(" ", "[ -]"), hebrew.replace(" ", "[ -]")
    return (
        rf"(?:(?<![\w.])(?:{latin})(?!\w)"
        rf"|(?<![\w\"'])[{PARTICLE}]{{0,3}}(?:{letters})(?![\w\"']))"
    )


# --- what takes a wish back ----------------------------------------------------------------------

# "Don't search the web", "בלי לחפש באינטרנט": the words stand there, and ask for the opposite. It
# holds to the end of the clause: "not in memory but on the web" asks for the web.
_CLAUSE = r"(?:(?! but\b| instead\b| אלא\b| אבל\b)[^.,;:!?])*"
_REFUSED_WORDS = _words(
    r"(?:do not|don['’]?t|never|no need to|needn['’]?t|without|stop|instead of|rather than"
    r"|(?:did|do|does) not|(?:did|does|should|must)n['’]?t)"
    r" (?:\w+ ){0,2}?(?:search\w*|google|googling|brows\w+|look\w*|research\w*|us(?:e|ing)|call\w*"
    r"|check\w*|find\w*|investigat\w+|study\w*|run\w*)",
    r"(?:אל|בלי|לא|ללא|מבלי|אין צורך|אין טעם|במקום|חבל|להפסיק|תפסיק(?:י)?) (?:\w+ ){0,2}?"
    r"(?:ת|ל|נ|מ|י)?(?:חפש(?:י|ו)?|חיפוש(?:ים)?|חיפשת|חיפשתי|גגל(?:י)?|חקור|חקרי|חקר|מחקר(?:ים)?"
    r"|גלוש|השתמש(?:י)?|שתמש(?:י)?|הפעיל(?:י)?|פעיל(?:י)?|בדוק|בדקי|מצוא|מצאי)",
)
_REFUSED = re.compile(_REFUSED_WORDS + _CLAUSE, re.IGNORECASE)
# "Why don't you search the web" asks for it. What is left of it is a request.
_KIND_EN = (
    r"(?<!\w)(?:why|how come) (?:(?:do|did|would|could) not|(?:do|did|would|could)n['’]?t)"
    r" (?:you|we|i)(?!\w)|(?<!\w)(?:why|how come) (?:you|we) (?:do not|don['’]?t)(?!\w)"
    r"|(?<!\w)(?:why|how come) (?:do|did) (?:you|we) not(?!\w)"
)
_KIND_HE = (
    r"(?<!\w)ו?(?:למה|מדוע|איך זה)(?: ש?(?:אתה|את|אתם|אתן|אנחנו))? ש?לא"
    r"(?: (?:אתה|את|אתם|אתן))?(?!\w)"
)
_KIND = re.compile(rf"{_KIND_EN}|{_KIND_HE}", re.IGNORECASE)
# "למה אתה לא מחפש" says in the present what a request says in the future.
_DOING = {
    **dict.fromkeys(("מחפש", "מחפשת", "מחפשים"), "תחפש"),
    **dict.fromkeys(("מגגל", "מגגלת", "מגגלים"), "תגגל"),
    **dict.fromkeys(("בודק", "בודקת", "בודקים"), "תבדוק"),
    **dict.fromkeys(("מסתכל", "מסתכלת", "מסתכלים"), "תסתכל"),
    **dict.fromkeys(("גולש", "גולשת", "גולשים"), "תגלוש"),
    **dict.fromkeys(("משתמש", "משתמשת", "משתמשים"), "תשתמש"),
    **dict.fromkeys(("מפעיל", "מפעילה", "מפעילים"), "תפעיל"),
    **dict.fromkeys(("חוקר", "חוקרת", "חוקרים"), "תחקור"),
    **dict.fromkeys(("שולח", "שולחת", "שולחים"), "תשלח"),
    **dict.fromkeys(("מזמין", "מזמינה", "מזמינים"), "תזמין"),
    **dict.fromkeys(("קובע", "קובעת", "קובעים"), "תקבע"),
    **dict.fromkeys(("פותח", "פותחת", "פותחים"), "תפתח"),
}
_PRESENT = re.compile(rf"(?P<polite>{_KIND_HE}) (?P<doing>{'|'.join(_DOING)})(?!\w)")
# Names made of such words alone ("search", "get_data") would be found in every second question.
_PLAIN_WORDS = frozenset(words_of("plain_tool_names"))
# Words that may stand between the parts of a tool's name in a sentence: "send an email".
_BETWEEN = r"(?:[ _-]+(?:a|an|the|my|this|that|some|any|our))?[ _-]+"

# Words of a person about a picture that comes with the message, or of a program that describes it.
_IMAGE = re.compile(
    r"(?<!\w)(?:analy[sz]e|describe|explain|caption|transcribe|read|look at|see|identify"
    r"|what(?:['’]s| is| does| do you see)?(?: \w+){0,2}? (?:in|on)) (?:this|the|that|my|attached)"
    r" (?:attached |uploaded )?(?:image|picture|photo|photograph|screenshot|drawing|diagram|chart)"
    r"(?!\w)|^\s*\[?(?:image|picture|photo) (?:content|context|description)\s*:"
    r"|(?<!\w)(?:נתח|נתחי|תנתח|תנתחי|תאר|תארי|תתאר|תתארי|הסבר|הסבירי|תסביר|תסבירי|קרא|קראי|תקרא"
    r"|הסתכל|הסתכלי|תסתכל|תסתכלי|מה|רואים|זהה|תזהה)(?: \w+){0,3}? (?:את |על |ב)?ה?(?:תמונה|צילום"
    r"|תצלום|צילום מסך|ציור|תרשים)(?!\w)|^\s*\[?(?:תוכן|תיאור) ה?תמונה\s*:",
    re.IGNORECASE | re.MULTILINE,
)


def shows_image(message: str) -> bool:
    """Whether the message is about a picture that comes with it: the world is not asked for."""
    return bool(_IMAGE.search(beginning(message, MAX_CONTEXT_CHARS)))


def is_about_world(plain: str) -> bool:
    """Whether a normalised question asks for a price, the news or the weather of the world."""
    said = phrases_in(plain)
    return "intents.facts" in said and any(
        said.within("intents.facts", start, end)
        and not said.within("intents.done", start, end)
        and not said.within("intents.mine", start, end)
        for start, end in _sentences(plain)
    )


def tool_needs(question: str, tools: Sequence[str] = ()) -> ToolNeeds:
    """Read one question; `tools` are the names that are offered and may be asked for by name."""
    plain = normalize(beginning(question, MAX_CONTEXT_CHARS))
    if not plain:
        return NO_NEEDS
    wished = _requested(plain)
    said = phrases_in(wished)
    search = _first_of("intents.search", wished, said)
    return ToolNeeds(
        explicit=_explicit(wished, said, search, tools),
        research="intents.research" in said,
        search=search is not None,
        official_data=datagov_intent(plain).wanted,
        current=_asks_today(question, plain),
    )


def _asks_today(question: str, plain: str) -> bool:
    """Of a picture that comes with the message, nobody asks the world."""
    return (needs_current(plain) or is_about_world(plain)) and not shows_image(question)


def needs_current(plain: str) -> bool:
    """Whether a normalised question needs a date or the latest state of the world.

    The clock and the news always do; "when", "today" and "latest" only where their sentence is not
    about what one did or has, which memory answers. "I" alone says nothing: "what should I wear
    today?" is about the weather.
    """
    said = phrases_in(plain)
    if "intents.news" in said or "intents.clock" in said:
        return True
    if "intents.when" not in said and "intents.now" not in said:
        return False
    return any(_asks_present(said, *span) for span in _sentences(plain))


def _asks_present(said: Phrases, start: int, end: int) -> bool:
    """`start`, `end`: of a sentence."""

    def says(label: str) -> bool:
        return said.within(f"intents.{label}", start, end)

    if not (says("when") or says("now")) or says("done"):
        return False
    return not says("mine") or says("world")


def _sentences(plain: str) -> Iterator[tuple[int, int]]:
    return (one.span() for one in _SENTENCE.finditer(plain))


def _first_of(label: str, text: str, said: Phrases) -> str | None:
    """The words of the first phrase of a table."""
    places = said.of(label)
    return text[places[0][0] : places[0][1]] if places else None


def _requested(plain: str) -> str:
    """The words without what takes a wish back; a polite question becomes the request it is."""
    wished = _REFUSED.sub(" ", _KIND.sub(".", _PRESENT.sub(_future, plain)))
    return plain if wished == plain else wished


def _future(found: re.Match[str]) -> str:
    return f"{found['polite']} {_DOING[found['doing']]}"


def _explicit(
    wished: str, phrases: Phrases, search: str | None, tools: Sequence[str]
) -> str | None:
    """The web, a tool by word, name or verb, or a search that is not one of the memory itself."""
    for label in ("intents.web", "intents.tool_words"):
        if found := _first_of(label, wished, phrases):
            return found
    # Said of an order or a friend as well, so one's own life takes it back.
    online = _first_of("intents.online", wished, phrases)
    if online and "intents.done" not in phrases and "intents.mine" not in phrases:
        return online
    low = wished.lower()
    said = frozenset(_WORD.findall(low))
    for tool in tools:
        if _names_tool(low, said, tool):
            return tool
    if search is not None and "intents.memory" not in phrases:
        return search
    # The English verbs that the question asks for, whatever its language.
    verbs = frozenset(
        stem
        for stems in tables_of("verbs")
        if f"verbs.{stems}" in phrases
        for stem in stems.split("/")
    )
    return next((tool for tool in tools if does(tool_words(tool), verbs)), None) if verbs else None


def _names_tool(low: str, said: frozenset[str], tool: str) -> bool:
    """The tool's name as it is, or its words in a row: `send_email` in "send an email". `said`: the
    words of `low`. Hundreds of tools may be offered, so patterns are made for those alone whose
    words are all there."""
    name = tool.lower()
    if not any(letter.isalnum() for letter in name):
        return False
    if name in low and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", low):
        return not tool.isalpha() or name not in _PLAIN_WORDS
    parts = tool_words(tool)
    if len(parts) < 2 or not said.issuperset(parts) or _PLAIN_WORDS.issuperset(parts):
        return False
    row = _BETWEEN.join(re.escape(part) for part in parts)
    return bool(re.search(rf"(?<!\w){row}(?!\w)", low))


_SENTENCE = re.compile(r"[^.;!?]+")
_WORD = re.compile(r"[a-z]+|\d+|[א-ת]+")
_WORDS_OF_A_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[א-ת]+")


def tool_words(tool: str) -> tuple[str, ...]:
    """The words of a tool's own name, lower-case: `mcp__mail__sendEmail` gives send, email."""
    return tuple(word.lower() for word in _WORDS_OF_A_NAME.findall(own_name(tool)))
