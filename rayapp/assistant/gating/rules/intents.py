"""What a question asks of tools: research, open data, today's facts, a tool by name. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rayapp.assistant.tools.rules.definitions import own_name
from rayapp.graphs.rules.question import MAX_CONTEXT_CHARS
from rayapp.search.rules.datagov_intent import datagov_intent, words
from rayapp.text.normalize import normalize
from rayapp.text.utterance import beginning

# Requests for what a tool does, by its verb: "שלח מייל לדנה" asks for `send_email`.
#
# A question names a tool in its own language, and the tools are named in English. The verb alone is
# read, and only where somebody is told or asked to do it: "he sent a mail" asks for nothing.

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
        rf"|{_REFUSED_HE}(?<!\w)[וש]?(?:{future})(?![\w\"'])"
        rf"|{_ASKED_HE}(?:{infinitive})(?![\w\"'])",
        re.IGNORECASE,
    )


_PATTERNS = {stems: _pattern(*both) for stems, both in VERBS.items()}


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


def intents_pattern(english: str, hebrew: str) -> re.Pattern[str]:
    """Whole words of either language."""
    return re.compile(words(english, hebrew), re.IGNORECASE)


# --- what takes a wish back ----------------------------------------------------------------------

# "Don't search the web", "בלי לחפש באינטרנט": the words stand there, and ask for the opposite. It
# holds to the end of the clause: "not in memory but on the web" asks for the web.
_CLAUSE = r"(?:(?! but\b| instead\b| אלא\b| אבל\b)[^.,;:!?])*"
_REFUSED_WORDS = words(
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
# What I did and what we said: memory is asked, not the world.
_DONE = intents_pattern(
    r"(?:did|had|was|were) (?:i|we)|(?:did|have|had) you|you (?:said|told|found)"
    r"|have (?:i|we)|(?:i|we)(?:['’]ve| had| was| were| did)|(?:i|we) (?:(?!need)\w+ed|said|told"
    r"|went|bought|met|saw|made|took|got|wrote|began|left|came|ate|paid|found|kept|read|sold|sent)",
    r"אמרתי|אמרת|סיפרתי|סיפרת|דיברנו|דיברתי|הייתי|היינו|קבענו|קבעתי|החלטנו|החלטתי|עשיתי|עשינו"
    r"|כתבתי|קניתי|קנינו|שמרתי|נסעתי|נסענו|נפגשתי|נפגשנו|פגשתי|פגשנו|התחלתי|התחלנו|סיימתי|סיימנו"
    r"|עברתי|עברנו|ראיתי|ראינו|הלכתי|הלכנו|שילמתי|שילמנו|קיבלתי|קיבלנו|הזמנתי|הזמנו|ביקרתי|ביקרנו"
    r"|טסתי|טסנו|למדתי|עבדתי|גרתי|אכלתי|אכלנו|לקחתי|שלחתי|מכרתי|הגעתי|הגענו|חזרתי|חזרנו|תכננתי"
    r"|תכננו|סיכמנו|סיכמתי|נולדתי|התחתנתי|התחתנו",
)
# What is mine: memory knows it, unless the question is about prices and the like.
_MINE = intents_pattern(
    r"my|mine|our|ours|(?:do|did) (?:i|we) have",
    r"שלי|שלנו|אצלי|אצלנו|יש לי|יש לנו|אשתי|אחותי|הוריי|ילדיי",
)
_WORLD = intents_pattern(
    r"prices?|costs?|rates?|fees?|stocks?|bitcoin|news|weather|rain|traffic|releases?"
    r"|versions?|visas?",
    r"(?:ה)?(?:מחיר|מחירי|מחירים|עלות|שער|שערי|ריבית|אגרה|מניה|מניות|מניית|ביטקוין|חדשות|גשם"
    r"|פקקים|גרסה|גרסת|גירסה|ויזה)",
)
_MEMORY = intents_pattern(
    r"(?:in |through |from )?(?:my|your|our|the|saved|stored)? ?(?:memor(?:y|ies)|memory bank"
    r"|notes|conversations?|chats?|history)",
    r"(?:ה)?(?:זיכרון|זכרון|זיכרונות|זכרונות)(?: שלי| שלך| שלנו)?|בנק (?:ה)?זיכרון|הערות שלי"
    r"|שיחות(?: (?:ה)?(?:קודמות|שלנו))?|היסטוריה",
)

# --- research ------------------------------------------------------------------------------------

_RESEARCH = intents_pattern(
    r"research(?:es|ed|ing)?|deep dives?|deep search|in depth (?:review|analysis|look|survey)"
    r"|investigat(?:e|es|ed|ing|ion)|literature review|market survey|explore the (?:topic|subject)"
    r"|look into|dig into|find out more",
    r"מחקר(?:ים|י)?|חקור|חקרי|חקרו|תחקור|תחקרי|תחקרו|לחקור|נחקור|חקירה(?: מעמיקה)?|תחקיר(?:ים)?"
    r"|צלילה לעומק|להעמיק|תעמיק(?:י)?|העמק|ניתוח (?:ה)?(?:מעמיק|לעומק)|סקירה (?:ה)?(?:מקיפה|מעמיקה)"
    r"|סקר (?:ה)?(?:שוק|ספרות)|בדיקה (?:ה)?(?:מעמיקה|לעומק)",
)
# The trade of research, and research that was done: nobody asks for it to be done now.
_NOT_RESEARCH = intents_pattern(
    r"research (?:assistants?|associates?|fellows?|groups?|teams?|labs?|laborator(?:y|ies)"
    r"|institutes?|cent(?:er|re)s?|departments?|jobs?|positions?|proposals?|grants?)"
    r"|(?:my|our|his|her|their|your|\w+'s) (?:\w+ )?research|(?:i|we|you) (?:have )?researched"
    r"|(?:i|we|you) investigated|police investigation",
    r"(?:מכון|מכוני|קבוצת|צוות|עוזר|עוזרת|מעבדת|תקציב|מענק|מענקי|כתב|מרכז|תחום) (?:ה)?מחקר"
    r"|מחקר(?:ים)? (?:\w+ )?(?:שלי|שלנו|שלך|שלו|שלה|שעשיתי|שעשינו|שכתבתי)|חוקר פרטי"
    r"|חקירה (?:ה)?משטרתית",
)

# --- search --------------------------------------------------------------------------------------

_SEARCH = intents_pattern(
    r"search(?:es|ing)?"
    r"|(?:please|can you|could you|(?:want|like|need) (?:you )?to|go and) (?:find|look up|look for)"
    r"|look (?:it|this|that|them|him|her)? ?up|find (?:me|out|us)|google (?:it|this|that|for)"
    r"|googl(?:e|ing)|web ?search",
    r"חפש|חפשי|חפשו|תחפש|תחפשי|תחפשו|לחפש|נחפש|חיפוש|מצא לי|מצאי לי|תמצא|תמצאי|תמצאו|לגגל"
    r"|גגל|גגלי|תגגל|תגגלי|אתר לי|תאתר(?:י)?|תבדוק לי|תבדקי לי",
)
_NOT_SEARCH = intents_pattern(
    r"search(?:es)? (?:and rescue|engines?|part(?:y|ies)|warrants?|results?|history|terms?)"
    r"|job search|(?:i|we|he|she|they|i['’]?m|we['’]?re) (?:\w+ )?(?:search(?:ed|ing)?|found"
    r"|googled)|in search of|(?:was|were|been|still) searching"
    r"|(?:binary|linear|vector|semantic|tree|grid) search|search (?:function|method|index|bar"
    r"|box|field|page|algorithms?)",
    r"מנוע(?:י)? (?:ה)?חיפוש|חיפוש (?:ה)?(?:עבודה|דירה|בינארי|ליניארי|וקטורי|סמנטי)|צו (?:ה)?חיפוש"
    r"|(?:שורת|תיבת|תוצאות|אלגוריתם|פונקציית|היסטוריית) (?:ה)?חיפוש|מחפש(?:ת|ים|ות)? עבודה",
)

# --- a tool is asked for ---------------------------------------------------------------------

_WEB = intents_pattern(
    r"(?:search|browse|check|look|find|surf|scan|consult|use|go)"
    r" (?:(?!not\b)\w+ ){0,6}?(?:the )?(?:web|internet|online|google|bing|wikipedia|duckduckgo)"
    r"|web ?search(?:es)?|google (?:it|this|that|for)"
    r"|googling|visit (?:the )?(?:web)?(?:site|page)|open (?:the |this )?(?:link|url|website)"
    r"|browse to|fetch (?:the |this )?(?:page|url|link|site)|https?",
    r"(?:חפש|חפשי|חפשו|תחפש|תחפשי|תחפשו|לחפש|נחפש|חיפוש|מצא|מצאי|תמצא|תמצאי|למצוא|בדוק|בדקי"
    r"|תבדוק|תבדקי|לבדוק|הסתכל|תסתכל|תסתכלי|גלוש|תגלוש|תגלשי|לגלוש) (?:\w+ ){0,5}?"
    r"(?:אינטרנט|רשת|גוגל|ויקיפדיה|אונליין|און ליין)"
    r"|לגגל|גגל|גגלי|תגגל|תגגלי|חיפוש (?:ה)?(?:אינטרנט|רשת|מקוון)"
    r"|(?:היכנס|תיכנס|תיכנסי|כנס|פתח|תפתח|תפתחי) (?:ל|את ה)(?:אתר|קישור|לינק|דף)(?: \w+)?",
)
# Said of an order or a friend as well, so one's own life takes it back.
_ONLINE = intents_pattern(
    r"(?:on|from|over) the (?:web|internet)|online",
    r"(?<=[במ])אינטרנט|(?<=מה)אינטרנט|אונליין|און ליין",
)
_TOOL_WORDS = intents_pattern(
    r"(?:use|using|call|run|invoke|try|with) (?:the |a |an |your |any |some )?(?:\w+ ){0,3}?"
    r"(?:tools?|functions?|plug-?ins?|api)",
    r"(?:השתמש|השתמשי|תשתמש|תשתמשי|להשתמש|הפעל|הפעילי|תפעיל|תפעילי|להפעיל|הרץ|תריץ|תריצי|קרא|תקרא)"
    r" (?:את )?(?:\w+ ){0,2}?(?:[בל]?ה?)?(?:כלי|כלים|תוסף|תוספים|פונקציה|פונקציית)(?: \w+)?",
)
# Names made of such words alone ("search", "get_data") would be found in every second question.
_PLAIN_NAMES = """
    a an the to in of on for and or get set do run make use call tool tools data info item items
    list find search query read write new add update delete time date memory file web text
"""
_PLAIN_WORDS = frozenset(_PLAIN_NAMES.split())
# Words that may stand between the parts of a tool's name in a sentence: "send an email".
_BETWEEN = r"(?:[ _-]+(?:a|an|the|my|this|that|some|any|our))?[ _-]+"

# --- the present ---------------------------------------------------------------------------------

_NEWS = intents_pattern(
    r"latest (?:news|headlines|version|release|update|updates|prices?|figures|results|score"
    r"|standings|developments|research)|breaking news|news (?:about|on|today|from)|headlines"
    r"|weather|forecasts?|(?:exchange|interest|inflation|unemployment) rates?|stock prices?"
    r"|share prices?|up to date|(?:current|today['’]?s|live|real time)"
    r" (?:\w+ )?(?:news|prices?|rates?|scores?|time|date|version|status|traffic|index)"
    r"|as of (?:now|today)|state of the art|newest|most recent (?:version|release|news)",
    r"חדשות|מבזק(?:ים)?|כותרות|מזג (?:ה)?אוויר|תחזית(?: מזג (?:ה)?אוויר)?"
    r"|שער (?:ה)?(?:דולר|יורו|אירו|מטבע|חליפין|יציג)|(?:מחיר|שער) (?:ה)?(?:מניה|מניית|ביטקוין)"
    r"|(?:הכי|מידע|נתונים|נתון|מחיר|מחירים|גרסה|מצב) (?:ה)?(?:עדכני|עדכנית|עדכניים|עדכניות|מעודכן"
    r"|מעודכנת|מעודכנים|חדש|חדשה|נוכחי|נוכחית)|ריבית (?:במשק|בנק ישראל)|(?:ה)?עדכנ(?:י|ית|יים|יות)"
    r" ביותר|(?:גרסה|מהדורה) (?:ה)?אחרונה|בזמן אמת",
)
_CLOCK = intents_pattern(
    r"what(?:['’]?s| is)? (?:the )?(?:time|date|day|year|month)(?: is it)?(?: (?:now|today))?"
    r"|what (?:time|day|date|year) is it|(?:today|tomorrow|yesterday)['’]?s date|current (?:time"
    r"|date|year|day)|how (?:many|long) (?:days |weeks |months |hours )?(?:until|till|since|left)",
    r"(?:מה|איזה|איזו) (?:ה)?(?:שעה|תאריך|יום|שנה)(?: (?:היום|עכשיו|כרגע|בשבוע))?(?: זה)?"
    r"|תאריך (?:של )?(?:היום|הנוכחי)|(?:מה|באיזה) (?:ה)?תאריך|תאריך (?:ה)?(?:עברי|לועזי)"
    r"|כמה (?:ימים|שבועות|חודשים|זמן|שעות) (?:נשארו|נותרו|נשאר|עד|עברו|עבר)",
)
_WHEN = intents_pattern(
    r"(?:on |in |at )?(?:what|which) (?:exact )?(?:date|day|month|year)|date of"
    r"|when (?:is|are|was|were|will|does|do|did|has|have|had|can|should)",
    r"מתי|(?:איזה|איזו) (?:תאריך|יום|שנה|חודש)|תאריך (?:ה\w+|של|ב\w+|מ\w+)|תאריכי",
)
_NOW = intents_pattern(
    r"today|tonight|right now|currently|nowadays|these days|at the moment|latest|now|this (?:week"
    r"|month|year)|recent(?:ly)?|so far this year|what(?:['’]?s| is) new",
    r"היום|הערב|הלילה|כרגע|עכשיו|כעת|לאחרונה|בימים אלו|בימים אלה|השבוע|החודש|(?<!לוח )השנה"
    r"|נכון לעכשיו|נכון להיום|עדכני(?:ת|ים|ות)?|אחרון|אחרונה|אחרונים|אחרונות|מה (?:ה)?חדש",
)
# --- the state of the world ----------------------------------------------------------------------

# What costs, what the news say and what the weather is: nobody remembers that.
_FACTS = intents_pattern(
    r"(?:price|prices|cost|stock price|share price|market price) of|(?:latest|today['’]?s|current"
    r"|recent|breaking|local|world) (?:\w+ )?news|news (?:about|on|from|today)|weather"
    r"|how much (?:does|do|is|are) (?:\w+ ){1,5}?(?:cost|worth)|how much (?:is|are) (?:the |a "
    r"|an )?"
    r"(?:dollar|euro|pound|shekel|bitcoin|ethereum|gold|silver|oil|gas|petrol)s?",
    r"(?:ה)?מחיר (?:של|ה\w+|ל\w+|\w+)|כמה (?:עולה|עולים|עולות|שווה)|שער (?:ה)?(?:דולר|יורו|אירו"
    r"|מטבע"
    r"|יציג|ביטקוין)|(?:מה|אילו|יש|את|לי) (?:ה)?חדשות|חדשות (?:היום|אחרונות|בעולם|בארץ|(?:ה)?ספורט"
    r"|על)|החדשות|כותרות (?:היום|העיתונים)|מזג (?:ה)?אוויר",
)
_NO_FACTS = intents_pattern(
    r"(?:good|great|bad|sad|exciting|fake|big) news|news(?:paper|letter)s?|(?:weather"
    r"|news) (?:apps?"
    r"|api|widgets?|stations?|channels?|feeds?|sites?|readers?|vanes?|proof|patterns?|function)"
    r"|under the weather|(?:weather|news) (?:was|were)|at (?:the|any) price of|price of (?:success"
    r"|fame|freedom|admission|love|anarchy|failure|progress)|cost of (?:living|capital|goods sold)",
    r"חדשות (?:טובות|רעות|משמחות|עצובות)|אתר (?:ה)?חדשות|ערוץ (?:ה)?חדשות|בכל מחיר"
    r"|(?:ה)?מחיר (?:של )?"
    r"(?:ה)?(?:הצלחה|תהילה|חירות|אהבה|כישלון)|(?:אפליקציית|יישומון|תחנת) מזג (?:ה)?אוויר"
    r"|מזג (?:ה)?אוויר היה",
)


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
    return any(
        _FACTS.search(_NO_FACTS.sub(" ", sentence))
        and not _DONE.search(sentence)
        and not _MINE.search(sentence)
        for sentence in _SENTENCE.split(plain)
    )


def tool_needs(question: str, tools: Sequence[str] = ()) -> ToolNeeds:
    """Read one question; `tools` are the names that are offered and may be asked for by name."""
    plain = normalize(beginning(question, MAX_CONTEXT_CHARS))
    if not plain:
        return NO_NEEDS
    wished = _requested(plain)
    search = _asks_search(wished)
    return ToolNeeds(
        explicit=_explicit(wished, search, tools),
        research=bool(_RESEARCH.search(_NOT_RESEARCH.sub(" ", wished))),
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
    if _NEWS.search(plain) or _CLOCK.search(plain):
        return True
    return any(_asks_present(sentence) for sentence in _SENTENCE.split(plain))


def _asks_present(sentence: str) -> bool:
    if not _WHEN.search(sentence) and not _NOW.search(sentence):
        return False
    if _DONE.search(sentence):
        return False
    return not _MINE.search(sentence) or bool(_WORLD.search(sentence))


def _requested(plain: str) -> str:
    """The words without what takes a wish back; a polite question becomes the request it is."""
    return _REFUSED.sub(" ", _KIND.sub(".", _PRESENT.sub(_future, plain)))


def _future(found: re.Match[str]) -> str:
    return f"{found['polite']} {_DOING[found['doing']]}"


def _asks_search(wished: str) -> str | None:
    found = _SEARCH.search(_NOT_SEARCH.sub(" ", wished))
    return found.group().strip() if found else None


def _explicit(wished: str, search: str | None, tools: Sequence[str]) -> str | None:
    """The web, a tool by word, name or verb, or a search that is not one of the memory itself."""
    for pattern in (_WEB, _TOOL_WORDS, _ONLINE):
        if pattern is _ONLINE and (_DONE.search(wished) or _MINE.search(wished)):
            continue
        if found := pattern.search(wished):
            return found.group().strip()
    low = wished.lower()
    said = frozenset(_WORD.findall(low))
    for tool in tools:
        if _names_tool(low, said, tool):
            return tool
    if search is not None and not _MEMORY.search(wished):
        return search
    # The English verbs that the question asks for, whatever its language.
    verbs = frozenset(
        stem for stems, pattern in _PATTERNS.items() if pattern.search(low) for stem in stems
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


_SENTENCE = re.compile(r"[.;!?]")
_WORD = re.compile(r"[a-z]+|\d+|[א-ת]+")
_WORDS_OF_A_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[א-ת]+")


def tool_words(tool: str) -> tuple[str, ...]:
    """The words of a tool's own name, lower-case: `mcp__mail__sendEmail` gives send, email."""
    return tuple(word.lower() for word in _WORDS_OF_A_NAME.findall(own_name(tool)))
