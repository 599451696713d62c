"""A question read once: its concepts, kind of work, problem, and what to ask of it. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple, Self

from rayapp.graphs import records
from rayapp.graphs.rules.directives import MAX_NAME, Side, side_of
from rayapp.graphs.rules.problem import problem_hash
from rayapp.graphs.rules.views import ACTION_PREFIX, CONTENT_PREFIX, ROUTING_PREFIX
from rayapp.memory.item import point_id_of
from rayapp.text.concept import Concept
from rayapp.text.concepts import MAX_READ_CHARS, extract_concepts
from rayapp.text.expansions import Expansions
from rayapp.text.hebrew import STOP_WORDS
from rayapp.text.language import detect_language
from rayapp.text.lemmas import lemma
from rayapp.text.normalize import normalize
from rayapp.text.signature import turns_of
from rayapp.text.tokens import tokens

# What no rule claims.
GENERAL = "general"
# Row keys of the action graph (learning design, "Graphs").
CONTEXT_TYPES: tuple[str, ...] = (
    "docker",
    "debugging",
    "datagov_query",
    "doc_rag",
    "coding_help",
    "web_search",
    "memory_management",
    GENERAL,
)
# The kind of a text shows in its beginning; a search must not pay for the rest. Measured: about a
# millisecond for this many, under 10 ms where every word is one that needs company.
MAX_CONTEXT_CHARS = 1_000
# Particles that may be written together with a word in Hebrew, up to three of them (וכשה, בDocker).
_PARTICLES = "[הבלוכמש]{0,3}"
# Words on each side of an everyday word among which its company is looked for: the rest of a short
# sentence. Our choice; a farther word is about something else.
NEAR_WORDS = 6
# Where a clause ends: company does not reach across.
_CLAUSE_END = re.compile(r"[.,;!?]+(?=\s|$)|[()\n]| - ")


class Everyday(NamedTuple):
    """Words of a kind of work that people say of their life as well, and what near them decides.

    "Stuck" is debugging beside an app and traffic without one; מחרוזת is code beside Python. Where
    `beside` is false the company speaks against it: who does not work is a person or has a day.
    """

    words: re.Pattern[str]
    company: re.Pattern[str]
    beside: bool = True

    def finds(self, clause: str) -> bool:
        return any(
            self._accompanied(clause, found) is self.beside for found in self.words.finditer(clause)
        )

    def _accompanied(self, clause: str, found: re.Match[str]) -> bool:
        before = clause[: found.start()].split()[-NEAR_WORDS:]
        after = clause[found.end() :].split()[:NEAR_WORDS]
        return bool(self.company.search(" ".join((*before, "|", *after))))


class ContextRule(NamedTuple):
    """`pattern` finds any word or phrase that says it alone, `everyday` what does in company."""

    context_type: str
    pattern: re.Pattern[str]
    everyday: tuple[Everyday, ...] = ()

    def finds(self, plain: str, clauses: Sequence[str]) -> bool:
        if self.pattern.search(plain):
            return True
        return any(one.finds(clause) for one in self.everyday for clause in clauses)


# Expressions of each language.
_Words = tuple[str, ...]


def _whole(english: _Words, hebrew: _Words) -> re.Pattern[str]:
    """Whole words only. A blank in a phrase stands for blanks or a hyphen."""
    latin = "|".join(english).replace(" ", "[ -]")
    letters = "|".join(hebrew).replace(" ", "[ -]")
    return re.compile(
        rf"(?<![\w.])(?:{_PARTICLES})(?:{latin})(?!\w)"
        rf"|(?<![\w\"'])(?:{_PARTICLES})(?:{letters})(?![\w\"'])",
        re.IGNORECASE,
    )


def _rule(context_type: str, english: _Words, hebrew: _Words, *everyday: Everyday) -> ContextRule:
    return ContextRule(context_type, _whole(english, hebrew), everyday)


# The same in English and in Hebrew.
_Both = tuple[_Words, _Words]


def _near(words: _Both, company: _Both, *, beside: bool = True) -> Everyday:
    return Everyday(_whole(*words), _whole(*company), beside)


# What a person does, and not what an assistant is told to do: "I remember that summer".
_NOT_I = "".join(
    rf"(?<!\b{words} )"
    for words in ("i", "we", "he", "she", "they", "to", "will", "'ll", "never", "cannot", "can't")
) + "".join(
    rf"(?<!\b{words} )"
    for words in ("couldn't", "won't", "didn't", "doesn't", "i don't", "we don't")
)
_REFUSES = r"(?:doesn't|does not|won't|isn't|didn't|did not|stopped|no longer)"
_RUNS = r"(?:work|start|run|build|respond)(?:s|ing)?"
_NOT_RUNNING = (
    r"לא (?:עובד(?:ת|ים|ות)?|עבד(?:ה|ו)?|רץ|רצ(?:ה|ים|ות)|עולה|עולים|עולות|מגיב(?:ה|ים|ות)?"
    r"|פועל(?:ת|ים|ות)?)"
)

# What happens to machines, and to people, hearts and talks.
_BREAKS: _Both = (
    (
        r"errors?|errored|exceptions?|crash(?:es|ed|ing)?|freezes|(?:times?|timed|timing) ?out",
        r"fail(?:s|ed|ing|ure|ures)?|broken|stuck|not (?:working|responding|starting|loading)",
        rf"{_REFUSES} {_RUNS}",
    ),
    (
        r"(?:שגיא|קריס)(?:ה|ות|ת)|קורסת|קרס(?:ה|ו)?|נתקע(?:ת|ים|ות|ה|ו)?|כישלון|כשל(?:ים)?",
        r"נכשל(?:ת|ים|ות|ה|ו)?|שבור(?:ה|ים|ות)?",
        rf"(?<!אני )(?<!אנחנו ){_NOT_RUNNING}",
    ),
)
# Machines, programs and their parts.
_MACHINES: _Both = (
    (
        r"apps?|applications?|programs?|software|codes?|scripts?|functions?|tests|query|queries",
        r"servers?|services?|nginx|kafka|redis|postgres\w*|mysql|mongo\w*|kubernetes|linux|windows",
        r"endpoints?|apis?|databases?|requests?|connections?|network|wi ?fi|internet",
        r"router|web ?sites?|web ?pages?|browsers?|links?|buttons?|builds?|deploy(?:s|ments?)?",
        r"pipelines?|install(?:s|ation|er)?|updates?|upgrades?|log ?in|sign ?in|logs?|threads?",
        r"commands?|files?|folders?|drivers?|python|java(?:script)?|sql|games?|zoom|excel|video",
        r"screens?|computers?|laptops?|pc|phones?|iphones?|android|printers?|keyboards?|mouse",
        r"cameras?|monitors?|tv|remote|batter(?:y|ies)|chargers?|engines?|machines?|speakers?",
        r"features?|tablets?|ipad|chrome|microphone|headphones|bluetooth",
        r"dishwashers?|fridge|oven|boiler|heater|dryer|microwave",
    ),
    (
        r"אפליקצי(?:ה|ות|ית)|אתר(?:ים)?|דפדפן|שרת(?:ים)?|מסד(?:י)?|שאילת(?:ה|ות|ת)|קוד|בוט|תוסף",
        r"תוכנ(?:ה|ות|ת)|(?<=ה)מערכת|סקריפט(?:ים)?|פונקצי(?:ה|ות|ית)|בדיקות|בילד|דיפלוי|עדכון",
        r"התקנ(?:ה|ת)|גרס(?:ה|ת)|התחברות|לוג(?:ים)?|קובץ|קבצים|תיקיי?ה|דף|דפים|פייתון|פיתון",
        r"כפתור(?:ים)?|קישור(?:ים)?|לינק(?:ים)?|משחק|זום|אקסל|סרטון|אינטרנט|רשת|ראוטר|נתב",
        r"מסך|מחשב(?:ים)?|לפטופ|טלפון|נייד|פלאפון|אייפון|מדפסת|מקלדת|מצלמ(?:ה|ת)|טלוויזיה|שלט",
        r"סולל(?:ה|ת)|מטען|מיקרופון|רמקול(?:ים)?|אוזניות|בלוטות'|מנוע|מכונת \w+|מדיח|מקרר|תנור",
        r"מזגן|מיקרוגל|טאבלט|סמארטפון|וידאו",
    ),
)
_NOT_WORKING: _Both = (
    (
        r"(?<!\bi am )(?<!\bi'm )(?<!\bwe are )(?<!\bwe're )not working",
        rf"(?<!\bi )(?<!\bwe ){_REFUSES} work(?:s|ing)?",
    ),
    (r"(?<!אני )(?<!אנחנו )לא (?:עובד(?:ת|ים|ות)?|עבד(?:ה|ו)?)",),
)
_PEOPLE_AND_DAYS: _Both = (
    (
        r"he|she|they|m[ou]ms?|dads?|mother|father|parents|husband|wife|brothers?",
        r"sisters?|sons?|daughters?|grand\w+|aunt|uncle|cousin|friends?|boss|man|woman|people",
        r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekends?|holidays?|summer|winter|today",
        r"tomorrow|this (?:week|month|year)|full time|part time|retired|shifts?|for me|for us",
    ),
    (
        r"אימא|אמא|אבא|הורים|סבא|סבתא|בעל(?:י|ה)|אישה|אשת(?:י|ו)|אח",
        r"אח(?:י|ות|ותי)|בן|בני|בת|בתי|ילד(?:ה|ים|ות)?|דוד|דודה|חבר(?:ה|ים|ות|י|תי)?|שכ(?:ן|נה)",
        r"יום \w+|שבת|סוף השבוע|חג(?:ים)?|קיץ|חורף|חופש(?:ה)?|פנסיה|משמרת|משרה|היום|מחר|אתמול",
        r"השבוע|החודש|השנה",
    ),
)

_BUGS: _Both = ((r"bugs?|crash(?:es|ing)",), (r"באג(?:ים)?",))
_NATURE_AND_ROADS: _Both = (
    (
        r"gardens?|plants?|trees?|kitchen|salad|soup|insects?|bit|bites?|bitten|sprays?|stomach|bed",
        r"travel|cars?|planes?|trains?|bikes?|roads?|markets?|stocks?|waves?|party|accidents?|flu",
    ),
    (r"חרק(?:ים)?",),
)

# Most specific first: a named tool before an activity, an activity before a field. A word that
# everyday life has too counts in the company of a word of the work: a failing exam is no failing
# test, and who does not work on Fridays is not broken.
RULES: tuple[ContextRule, ...] = (
    _rule(
        "datagov_query",
        (
            r"data ?gov(?:\.il)?|data\.gov(?:\.\w+)*|ckan|open data",
            r"(?:government|public|national|municipal) (?:open )?(?:data ?sets?|data|statistics)",
            r"data ?sets? (?:of|from|by) (?:the )?(?:government|ministry|state|municipality)",
            r"bureau of statistics|cbs (?:data|statistics|figures)",
        ),
        (
            r"דאטה ?גוב|דאטאגוב|דטה גוב|(?:מידע|נתונים) (?:ה)?(?:פתוח|פתוחים)",
            r"מאגר(?:י|ים)? (?:(?:ה)?(?:מידע|נתונים) )?(?:ה)?(?:ממשלתי|ציבורי)(?:ים)?",
            r"(?:נתונים|מידע) (?:ה)?(?:ממשלתי|ציבורי|רשמי)(?:ים)?",
            r"נתוני (?:ה)?(?:ממשלה|למ\"ס|לשכה|משרד \w+)|למ\"ס|לשכה המרכזית לסטטיסטיקה",
        ),
    ),
    _rule(
        "docker",
        (
            r"docker(?:s|file|files|hub|ized?|ised?|izing|ising)?|compose (?:file|stack|yaml)",
            r"podman|containerd|containeri[sz](?:e|ed|ation)",
        ),
        (r"דוקר|דוקרפייל|קומפוז|דוקרהאב|פודמן",),
        _near(
            ((r"containers?",), (r"קונטיינר(?:ים)?",)),
            (
                (
                    r"images?|registry|runtime|logs?|network|volumes?|servers?|hosts?|cpu|code",
                    r"(?:re)?(?:start|build)(?:s|ing)?|restarted|runs?|running|stops?|stopping",
                    r"exit(?:s|ed|ing)?|crash\w*|fail(?:s|ed|ing)?|kubernetes|pods?",
                ),
                (
                    r"שרת(?:ים)?|לוג(?:ים)?|אימג'(?:ים)?|קוברנטיס|פורט(?:ים)?|שגיא(?:ה|ות|ת)|גרסה",
                    r"נפל(?:ו)?|נופל(?:ים)?|קרס(?:ו)?|קורס(?:ים)?|רץ|רצים|עלה|עלו|עולה|עולים",
                    r"מריצ(?:ה|ים|ות)|מריץ|להריץ|תריצי?|הר(?:ץ|יצי)|לבנות|בונ(?:ה|ים)|להרים",
                ),
            ),
        ),
    ),
    _rule(
        "memory_management",
        (
            r"memory bank|keep in mind|you to (?:remember|forget)",
            rf"{_NOT_I}remember (?:that|this|it|me|my|to|i|for)",
            r"(?:delete|remove|archive|update|edit|clear|list|show|forget|restore|save|store|merge"
            r"|manage|clean up) (?:(?:me|my|your|the|all|this|that|these|those|old|a|an|new"
            r"|from|of|to|in) ){0,4}memor(?:y|ies)"
            r"(?! (?:leak|usage|card|limit|error|allocation|cache))",
            r"(?:your|saved|stored) memor(?:y|ies)",
            rf"{_NOT_I}forget (?:that|this|everything|what|about) ?(?:i|you|my|me|it)?",
            r"(?:do|can|did) you (?:still )?remember",
            r"what do you (?:remember|know) about (?:me|my|us)",
        ),
        (
            r"(?<!היא )(?<!היא לא )(?<!ל)(?:תזכור|תזכרי|זכור|זכרי) (?:ש\w+|את|לי|בשבילי|כי)",
            r"בנק (?:ה)?זיכרון",
            r"(?<!היא )(?<!היא לא )(?:תשכח|תשכחי|שכח|שכחי) (?:מה|את|כל|ש\w+|מ\w+)",
            r"(?:תוכלי?|אתה יכול|את יכולה|נא|בבקשה|ממך|עליך) (?:לזכור|לשכוח)",
            r"(?:מחקי?|תמחקי?|למחוק|עדכ(?:ן|ני)|תעדכ(?:ן|ני)|לעדכן|שמור|שמרי|תשמור|תשמרי|לשמור|הצג|הציגי"
            r"|תציגי?|הוסף|הוסיפי|תוסיפי?) (?:לי )?(?:את )?(?:[בהלמ]|מה)?(?:זיכרון|זכרון)",
            r"(?:אתה|את) (?:זוכר|זוכרת|(?:יודע|יודעת) עליי?)",
        ),
        _near(
            ((r"memories",), (r"(?:זיכרונות|זכרונות)(?:יי|יו|יך|ייך)?",)),
            (
                (
                    r"show|list|delete|remove|clear|update|export|search|how many|which|what|you"
                    r"|about me",
                ),
                (
                    r"מחקי?|תמחקי?|למחוק|עדכ(?:ן|ני)|תעדכ(?:ן|ני)|לעדכן|הציגי?|הצג|תציגי?|הראה|הראי|תרא(?:ה|י)",
                    r"חפשי?|תחפשי?|לחפש|נקה|נקי|תנק(?:ה|י)|לנקות|ייצאי?|שמור(?:ים|ות)|ששמרת|לך|שלך"
                    r"|כמה|אילו|איזה|עליי?|שכחי?|תשכחי?",
                ),
            ),
        ),
    ),
    _rule(
        "debugging",
        (
            r"debug(?:s|ged|ging|ger)?|stack ?traces?|tracebacks?|segfaults?|buggy|bug (?:fix"
            r"(?:es)?|reports?)|troubleshoot(?:s|ing)?|memory leaks?|root cause|breakpoints?",
            r"core dumps?|errors? (?:messages?|codes?|logs?|\d+)|(?:runtime|fatal|type) errors?",
            r"(?:null pointer|unhandled|uncaught) exceptions?|(?:denied|refused) errors?",
            r"returns? (?:an? )?[45]\d\d",
            r"(?:gets?|getting|got|throws?|raises?|returns?|shows?|fix|this|these)"
            r" (?:(?:an?|the|this|that|weird|strange|same) ){0,2}(?:errors?|exceptions?|bugs?)",
            rf"{_REFUSES} (?:load|compile)(?:s|ing)?",
            r"keeps? (?:crashing|freezing|failing)|failing (?:unit )?(?:tests?|builds?)",
            r"(?:tests?|builds?|jobs?)"
            r" (?:(?:is|are|still|keeps?|always|all|just|suddenly) ){0,2}fail(?:s|ed|ing)?",
            r"(?:it|this|that|nothing|everything)(?:'s)?"
            r" (?:(?:is|was|has|just|still|keeps?|always|suddenly) ){0,2}"
            rf"(?:broken|crash(?:es|ed|ing)|stuck|fail(?:s|ed|ing)|not working|{_REFUSES} {_RUNS})",
        ),
        (
            r"דיבאג(?:ינג)?|לדבג|מדבג(?:ת|ים)?|ניפוי (?:שגיאות|באגים|תקלות)",
            r"תקל(?:ה|ות|ת)|דליפת זיכרון|לאתר (?:את )?(?:ה)?(?:בעיה|תקלה)",
            r"הודע(?:ת|ות) (?:ה)?שגיאה|שגיא(?:ה|ות) (?:הזאת|הזו|האלה|\d+)",
            r"(?:קיבלתי|קיבלנו|מקבל(?:ת|ים)?|קופצת|זורק(?:ת)?|מחזיר(?:ה)?) (?:לי )?שגיא(?:ה|ות|ת)",
            r"לא (?:נטענ?(?:[ןת]|ים|ות)?|מתקמפל(?:ת|ים|ות)?)|(?:בדיקה|בנייה|ריצה) נכשל(?:ת|ה)",
            r"(?:זה|זאת|כלום|שום דבר|הכו?ל) (?:(?:כבר|עדיין|פשוט|שוב|תמיד) ){0,2}"
            r"(?:לא (?:עובד|עבד|רץ|מגיב|פועל)|נתקע|קרס|נכשל|שבור)",
        ),
        _near(_BREAKS, _MACHINES),
        _near(_NOT_WORKING, _PEOPLE_AND_DAYS, beside=False),
        _near(_BUGS, _NATURE_AND_ROADS, beside=False),
    ),
    _rule(
        "doc_rag",
        (
            r"pdfs?|docx|attachments?|attached (?:files?|documents?)|documents?|whitepapers?",
            r"(?:chapters?|pages?) \d+|which chapters?|uploaded (?:files?|books?|papers?)",
            r"handbooks?|user manuals?",
            r"according to the (?:text|manual|guide|paper|report|book|contract|article)",
        ),
        (
            r"pdf|מסמכ(?:ים|י)|מסמך|מצורף|מצורפ(?:ת|ים|ות)|צרופה|עמוד(?:ים)? \d+"
            r"|מדריך למשתמש|(?:קובץ|קבצים|ספר) שהעליתי",
            r"לפי ה(?:ספר|מאמר|מדריך|חוזה|דו\"ח)|כתוב (?:ב)(?:ספר|מאמר|חוזה|מדריך|דו\"ח)",
        ),
        _near(
            (
                (
                    r"chapters?|attached",
                    r"(?:the|this|that|my|our|these|which) (?:docs?|books?|manuals?|contracts?"
                    r"|articles?)",
                ),
                (r"פרק(?:ים)?|חובר(?:ת|ות)|ספר (?:הזה|שלי)|(?<!בית ה)(?<=ה)ספר",),
            ),
            # What is asked of a text.
            (
                (
                    r"say|says|said|writ(?:es|ten)|mentions?|explain(?:s|ed)?|describes?|defines?"
                    r"|discuss(?:es)?|covers?|about|summar(?:y|i[sz]e\w*)|quotes?|look|find|search",
                    r"clauses?|sections?|paragraphs?|authors?|argues?|books?|files?|pdf",
                ),
                (
                    r"אומר(?:ת|ים)?|כתוב(?:ה|ים|ות)?|נאמר|מדבר(?:ת|ים)?|עוסק(?:ת|ים)?|מסביר(?:ה|ים)?"
                    r"|מתואר(?:ת|ים)?|מוזכר(?:ת|ים)?|ספר|מאמר|סעיף|סיכום",
                    r"סכ(?:ם|מי)|תסכ(?:ם|מי)|לסכם|תסבירי?|הסבר|הסבירי|להסביר|צטטי?|תצטטי?|לצטט|ציטוט|חפשי?"
                    r"|תחפשי?|מצאי?|תמצאי?",
                ),
            ),
        ),
    ),
    _rule(
        "web_search",
        (
            r"(?:search|browse|look|find|check) (?:\w+ ){0,5}(?:web|internet|online|google)",
            r"web ?search|google (?:it|this|for)|googl(?:ed|ing)|search engines?",
            r"latest news|news (?:about|on|today)|exchange rate",
            r"(?:today's|current|latest) (?:news|price|headlines|exchange rate)",
        ),
        (
            r"לגגל|תגגל|תגגלי|גגל|גגלי|מנוע(?:י)? (?:ה)?חיפוש",
            r"(?:חפש|חפשי|תחפש|תחפשי|לחפש|מצא|תמצא) (?:\w+ ){0,4}ברשת",
            r"חדשות (?:היום|אחרונות|האחרונות|על)|שער (?:ה)?(?:דולר|יורו|אירו|מטבע|חליפין)",
        ),
        _near(
            (
                (r"weather|websites?|(?:on|from) the (?:web|internet)",),
                (r"אינטרנט|אונליין|גוגל|מזג (?:ה)?אוויר",),
            ),
            # What is asked of the world.
            (
                (
                    r"what|what's|how|how's|which|where|will|is|today|tomorrow|tonight|now|forecast"
                    r"|weekend|week|search|find|look|check|visit|open|browse|fetch|download|read",
                ),
                (
                    r"מה|איך|איזה|יהיה|צפוי|היום|מחר|מחרתיים|הלילה|הערב|עכשיו|סוף השבוע|תחזית"
                    r"|כתוב|אומרים",
                    r"חפשי?|תחפשי?|לחפש|נחפש|מחפש(?:ת|ים)?|חיפוש|מצאי?|תמצאי?|למצוא|בדוק|בדקי|תבדוק"
                    r"|תבדקי|לבדוק|הסתכלי?|תסתכלי?|להסתכל|גלוש|לגלוש|תגלוש|תגלשי",
                ),
            ),
        ),
    ),
    _rule(
        "coding_help",
        (
            r"coding|programming|refactor(?:s|ed|ing)?|(?:my|this|your|our|source) code",
            r"(?:this|your) (?:script|function)",
            r"javascript|typescript|golang|kotlin|c\+\+|c#|php|sql|html|css",
            r"django|fastapi|reactjs|react (?:app|components?|hooks?)|node\.?js|numpy|pandas",
            r"pytest|apis?|json|yaml|regex(?:es)?|algorithms?|unit tests?|compiler|git|github",
            r"pull requests?|syntax|async|rust (?:code|crates?|compiler)",
        ),
        (
            r"לקודד|תכנות|לתכנת|סקריפט(?:ים)?|פונקצי(?:ה|ות|ית)|קוד (?:הזה|שלי|שלנו|שלך|שכתבתי)",
            r"פייתון|פיתון|ג'אווה(?:סקריפט)?|טייפסקריפט|ריאקט",
            r"אלגורית(?:ם|מים)|ביטוי(?:ים)? רגולרי(?:ים)?|רפקטורינג|לקמפל|קומפיילר|גיט|גיטהאב",
            r"בדיקות יחידה|שאילת(?:ה|ות|ת)|מתודה|מתודות",
        ),
        _near(
            (
                (
                    r"codes?|scripts?|functions?|python|java|bash|compil(?:e|es|ing)|decorators?"
                    r"|programmers?",
                ),
                (r"קוד(?:ים)?|מתכנת(?:ת|ים|ות)?|לולא(?:ה|ות|ת)|מחרוז(?:ת|ות)",),
            ),
            # Parts of programs, and what is done with them.
            (
                (
                    r"codes?|scripts?|functions?|python|java|bash|strings?|variables?|arrays?|loops?"
                    r"|class(?:es)?|lists?|trees?|library|libraries|packages?|modules?|files?|apps?",
                    r"games?|website|numbers?|data",
                    r"write|review|explain|optimi[sz]e|improve|structure|test|run|runs|running|call"
                    r"|calls|returns?|sorts?|import|install|slow|faster",
                ),
                (
                    r"קוד|מחרוז(?:ת|ות)|לולא(?:ה|ות)|משתנ(?:ה|ים)|מערך|מערכים|רשימ(?:ה|ת|ות)|תווים"
                    r"|שורות|אינסופית|מחלק(?:ה|ת)|ספריי?ה|אפליקציה|אתר|משחק|מספר(?:ים)?|אורך|ריק(?:ה)?",
                    r"לחשב|חישוב|למיין|מיון|לבדוק|בודק(?:ת|ים)",
                    r"כתבי|תכתוב|תכתבי|לכתוב|כותב(?:ת|ים)?|כתבתי|תסבירי?|הסבר|הסבירי|להסביר|לשפר"
                    r"|לייעל|איטי|לאט|רץ|להריץ|להמיר|ממירים|להפוך|הופכים|לפצל|מפצלים|לשרשר|ממיין",
                ),
            ),
        ),
    ),
)


def context_type_of(text: str) -> str:
    """The first rule that finds one of its words; `general` when none does."""
    # Phones write ’ for the apostrophe of "doesn't".
    plain = normalize(text[:MAX_CONTEXT_CHARS]).replace("’", "'")
    clauses = _CLAUSE_END.split(plain)
    return next((rule.context_type for rule in RULES if rule.finds(plain, clauses)), GENERAL)


# A message of the past only adds to the question: its beginning is enough (characters).
RECENT_CHARS = 400
# Questions whose fingerprint is kept: every turn meets those of the turns before it again. At
# most 4,000 characters each are read.
CACHE_QUESTIONS = 2_048
# Newest messages looked at, and concepts taken from them.
RECENT_MESSAGES = 6
RECENT_CONCEPTS = 6
# Memories read for one answer, and how many of one node: the newest ones
# stand first and say the most.
MAX_POINTS = 40
NODE_MEMORIES = 5


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What two questions that ask the same share: the problem, or all their content words.

    A question with one content word has no problem; one without any is never the same.
    """

    problem: str | None
    words: frozenset[str]

    def same(self, other: Self) -> bool:
        if self.problem is not None and self.problem == other.problem:
            return True
        return bool(self.words) and self.words == other.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request, read once. `concepts` are its own, `recent` those of the last messages."""

    text: str
    language: str
    context_type: str
    fingerprint: Fingerprint
    concepts: tuple[Concept, ...] = ()
    recent: tuple[Concept, ...] = ()

    @property
    def problem(self) -> str | None:
        return self.fingerprint.problem

    @property
    def focus(self) -> tuple[Concept, ...]:
        """A question without concepts ("and now?") is about what was said before.

        One with concepts that no graph knows is not: advice about another topic misleads.
        """
        return self.concepts or self.recent

    @property
    def of_graphs(self) -> records.GraphQuestion:
        """What the graphs are asked for."""
        keys = tuple(concept.key for concept in self.focus)
        return records.GraphQuestion(
            concepts=keys, context_type=self.context_type, problem=self.problem
        )

    @property
    def labels(self) -> dict[str, str]:
        return {concept.key: concept.label for concept in self.focus}

    @property
    def topic(self) -> str:
        """A short name of what it is about."""
        return self.focus[0].label if self.focus else self.text[:MAX_NAME]

    @property
    def side(self) -> Side:
        return side_of(self.language)


def read_question(
    request: records.InsightsRequest, expansions: Expansions | None = None
) -> Question:
    text = request.query[:MAX_READ_CHARS]
    return Question(
        text=request.query,
        language=detect_language(text),
        context_type=context_type_of(text),
        fingerprint=fingerprint(text, expansions),
        concepts=extract_concepts(text, expansions=expansions),
        recent=_recent_concepts(request.recent, expansions),
    )


def fingerprint(text: str, expansions: Expansions | None = None) -> Fingerprint:
    """Of the beginning of a text; cheap for one that was read before."""
    return _fingerprint(text[:MAX_READ_CHARS], expansions)


@lru_cache(maxsize=CACHE_QUESTIONS)
def _fingerprint(text: str, expansions: Expansions | None) -> Fingerprint:
    found = tokens(normalize(text))
    words = frozenset(lemma(token.text) for token in found if token.text not in STOP_WORDS)
    return Fingerprint(problem_hash(text, expansions), words | turns_of(text) if words else words)


def wanted_points(question: Question, priors: records.GraphPriors, user_id: str) -> tuple[str, ...]:
    """The items that an answer may show, the most telling ones first."""
    points = [one.point_id for one in by_success(priors.solutions)]
    points += [e.point_id for row in rows_of(question, priors) for e in row.examples]
    for node in nodes_of(question, priors):
        points += [point_id_of(user_id, one) for one in node.memory_ids[:NODE_MEMORIES]]
    return tuple(dict.fromkeys(points))[:MAX_POINTS]


def _recent_concepts(messages: Sequence[str], expansions: Expansions | None) -> tuple[Concept, ...]:
    found: dict[str, Concept] = {}
    for message in reversed(messages[-RECENT_MESSAGES:]):
        if len(found) >= RECENT_CONCEPTS:
            break
        for concept in extract_concepts(message[:RECENT_CHARS], expansions=expansions):
            found.setdefault(concept.key, concept)
    return tuple(found.values())[:RECENT_CONCEPTS]


def rows_of(question: Question, priors: records.GraphPriors) -> list[records.RoutingRow]:
    """Routing rows of the question's concepts, in their order."""
    by_concept = {row.concept: row for row in priors.routing}
    return [by_concept[c.key] for c in question.focus if c.key in by_concept]


def nodes_of(question: Question, priors: records.GraphPriors) -> list[records.ContentNode]:
    by_id = {node.node_id: node for node in priors.nodes}
    return [by_id[c.key] for c in question.focus if c.key in by_id]


def by_success(solutions: Iterable[records.KnownSolution]) -> list[records.KnownSolution]:
    return sorted(
        solutions, key=lambda s: (s.success_count, s.last_used_at, s.memory_id), reverse=True
    )


# Spellings tried for one name; the first ones are the likeliest.
MAX_KEYS = 8
# A longer name is no concept; the text is cut before it is analysed (characters).
MAX_NAMED = 300


@dataclass(frozen=True, slots=True)
class NamedConcept:
    """What an id of a picture, or a name, may stand for: an action, else one of the keys."""

    action: tuple[str, str] | None
    keys: tuple[str, ...]


def named_concept(name: str, expansions: Expansions | None = None) -> NamedConcept:
    """What an id with its prefix, a key without one, or a label as a person writes it means.

    The keys are ordered: the id without its prefix, the name as it is, then its lemma form.
    """
    name = name.strip()[:MAX_NAMED]
    bare = next(
        (name.removeprefix(p) for p in (ROUTING_PREFIX, CONTENT_PREFIX) if name.startswith(p)), name
    )
    # A tag is one concept as a whole: a phrase gets the key of a phrase, not of its words.
    concepts = extract_concepts(bare, tags=(bare,), expansions=expansions, limit=MAX_KEYS)
    keys = dict.fromkeys([bare, name, *(concept.key for concept in concepts)])
    return NamedConcept(_action_of(name), tuple(key for key in keys if key)[:MAX_KEYS])


def _action_of(name: str) -> tuple[str, str] | None:
    """Context types hold underscores themselves, so they are matched as a whole."""
    if not name.startswith(ACTION_PREFIX):
        return None
    rest = name.removeprefix(ACTION_PREFIX)
    for context_type in sorted(CONTEXT_TYPES, key=len, reverse=True):
        action = rest.removeprefix(context_type + "_")
        if action and action != rest:
            return context_type, action
    return None


# What may have been meant, where a question found nothing: names the user's memories know.

# Letters of a word that is compared, and how alike the two must be (0..1, `difflib`): one letter of
# four may differ. Suggestions of one question.
LEAST_LETTERS, ALIKE, MOST_SUGGESTIONS = 4, 0.7, 3
# Longer words are no names, and of more unknown ones the question is not in what is known: a word
# is compared with 500 labels, 6 ms of the caller's turn.
MOST_LETTERS, MOST_UNKNOWN = 30, 12
_PREFIXES = "בהולמשכ"


def suggestions_of(query: str, labels: Iterable[str]) -> tuple[str, ...]:
    """The question with a word in the spelling that is known, most alike first; empty: all of its
    words are known, or none is like one. `labels`: of the user's concepts, the best known first."""
    known = list(
        dict.fromkeys(
            word
            for label in labels
            for word in _NAME.findall(label.casefold())
            if LEAST_LETTERS <= len(word) <= MOST_LETTERS
        )
    )
    seen = {*known, *STOP_WORDS}
    found: dict[str, None] = {}
    looked = 0
    for match in _NAME.finditer(query[:MAX_CONTEXT_CHARS]):
        word = match[0].casefold()
        if not LEAST_LETTERS <= len(word) <= MOST_LETTERS or word in seen:
            continue
        if looked == MOST_UNKNOWN or len(found) >= MOST_SUGGESTIONS:
            break
        looked += 1
        seen.add(word)
        for meant in _meant(word, known):
            found[f"{query[: match.start()]}{meant}{query[match.end() :]}"] = None
    return tuple(found)[:MOST_SUGGESTIONS]


def _meant(word: str, known: list[str]) -> list[str]:
    """Known words like this one; a Hebrew particle stays before them."""
    rest = word[1:]
    if word[0] in _PREFIXES and len(rest) >= LEAST_LETTERS:
        if rest in known:
            return []
        if near := get_close_matches(rest, known, n=1, cutoff=ALIKE):
            return [f"{word[0]}{one}" for one in near]
    return get_close_matches(word, known, n=2, cutoff=ALIKE)


_NAME = re.compile(r"[^\W\d_]+(?:['\"][^\W\d_]+)*")
