"""What kind of work a question belongs to, by whole words of both languages."""

from __future__ import annotations

import re
from typing import NamedTuple

from rayapp.text.normalize import normalize

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
# The kind of a text shows in its beginning; a search must not pay for the rest. Measured: under
# a millisecond for this many.
MAX_READ_CHARS = 1_000
# Particles that may be written together with a Hebrew word, up to three of them (וכשה).
_PARTICLES = "[הבלוכמש]{0,3}"


class ContextRule(NamedTuple):
    """`pattern` finds any word or phrase of the rule."""

    context_type: str
    pattern: re.Pattern[str]


def _rule(context_type: str, english: tuple[str, ...], hebrew: tuple[str, ...]) -> ContextRule:
    """Whole words only. A blank in a phrase stands for blanks or a hyphen."""
    latin = "|".join(english).replace(" ", "[ -]")
    letters = "|".join(hebrew).replace(" ", "[ -]")
    return ContextRule(
        context_type,
        re.compile(
            rf"(?<![\w.])(?:{latin})(?!\w)|(?<![\w\"'])(?:{_PARTICLES})(?:{letters})(?![\w\"'])",
            re.IGNORECASE,
        ),
    )


# Most specific first: a named tool before an activity, an activity before a field. A phrase that
# needs two words to be clear is written as two.
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
            r"container (?:image|images|registry|runtime|logs?|network|volume)",
            r"(?:(?:re)?(?:start|build)(?:s|ing)?|runs?|running|stops?|stopping)"
            r" (?:(?:the|a|my|our|this) )?containers?",
            r"containers? (?:exits?|exited|crash\w*|(?:re)?starts?|stops?|fails?|logs?)",
            r"podman|containerd|containeri[sz](?:e|ed|ation)",
        ),
        (r"דוקר|דוקרפייל|קונטיינר(?:ים)?|קומפוז|דוקרהאב|פודמן",),
    ),
    _rule(
        "memory_management",
        (
            r"memory bank|keep in mind|remember (?:that|this|it|me|my|to|i|for)",
            r"(?:delete|remove|archive|update|edit|clear|list|show|forget|restore|save|store|merge"
            r"|manage|clean up) (?:(?:me|my|your|the|all|this|that|these|those|old|a|an|new"
            r"|from|of|to|in) ){0,4}memor(?:y|ies)"
            r"(?! (?:leak|usage|card|limit|error|allocation|cache))",
            r"(?:my|your|these|those|saved|stored) memor(?:y|ies)",
            r"forget (?:that|this|everything|what|about) ?(?:i|you|my|me|it)?",
            r"(?:do|can|did) you (?:still )?remember",
            r"what do you (?:remember|know) about (?:me|my|us)",
        ),
        (
            r"(?:תזכור|תזכרי|זכור|זכרי|לזכור) (?:ש\w+|את|לי|בשבילי|כי)|בנק (?:ה)?זיכרון",
            r"(?:זיכרונות|זכרונות)(?:יי|יו|יך|ייך)?",
            r"(?:תשכח|תשכחי|שכח|שכחי|לשכוח) (?:מה|את|כל|ש\w+|מ\w+)",
            r"(?:מחק|מחקי|תמחק|תמחקי|למחוק|עדכן|תעדכן|לעדכן|שמור|שמרי|תשמור|לשמור|הצג|תציג"
            r"|הוסף|תוסיף) (?:לי )?(?:את )?(?:[בהלמ]|מה)?(?:זיכרון|זכרון)",
            r"(?:אתה|את) (?:זוכר|זוכרת|(?:יודע|יודעת) עליי?)",
        ),
    ),
    _rule(
        "debugging",
        (
            r"debug(?:s|ged|ging|ger)?|stack ?traces?|tracebacks?|exceptions?|segfaults?",
            r"error(?:s|ed)?|bugs?|buggy|crash(?:es|ed|ing)?|troubleshoot(?:s|ing)?|memory leaks?",
            r"fail(?:s|ed|ing|ure|ures)?|broken|not working|root cause|breakpoints?|core dumps?",
            r"(?:doesn't|does not|won't|isn't|didn't|did not|stopped|no longer)"
            r" (?:work|start|run|load|compile|build|respond)(?:s|ing)?",
            r"timed? ?out|freezes|stuck",
        ),
        (
            r"דיבאג(?:ינג)?|לדבג|מדבג(?:ת|ים)?|ניפוי (?:שגיאות|באגים|תקלות)|באג(?:ים)?",
            r"(?:שגיא|תקל|קריס)(?:ה|ות|ת)|קורסת|קרס(?:ה|ו)?|נתקע(?:ת|ים|ה)?",
            r"נכשל(?:ת|ים|ות|ה|ו)?|כישלון|כשל(?:ים)?|דליפת זיכרון|שבור(?:ה|ים)?",
            r"לא (?:עובד(?:ת|ים|ות)?|עבד(?:ה|ו)?|רץ|רצה|עולה|נטענ?[ןת]?|מתקמפל|מגיב(?:ה)?"
            r"|פועל(?:ת)?)|לאתר (?:את )?(?:ה)?(?:בעיה|תקלה)",
        ),
    ),
    _rule(
        "doc_rag",
        (
            r"pdfs?|docx|attach(?:ed|ments?)|documents?|chapters?|pages? \d+|whitepapers?",
            r"uploaded (?:files?|books?|papers?)|handbooks?|user manuals?",
            r"(?:the|this|that|my|our|these|which) (?:docs?|books?|manuals?|contracts?|articles?)",
            r"according to the (?:text|manual|guide|paper|report)",
        ),
        (
            r"pdf|מסמכ(?:ים|י)|מסמך|מצורף|צרופה|(?:קובץ|קבצים|ספר) שהעליתי|חוברת",
            r"פרק(?:ים)?|עמוד(?:ים)? \d+|ספר (?:הזה|שלי)|מדריך למשתמש",
            r"לפי ה(?:ספר|מאמר|מדריך|חוזה|דו\"ח)|כתוב (?:ב)(?:ספר|מאמר|חוזה|מדריך|דו\"ח)",
        ),
    ),
    _rule(
        "web_search",
        (
            r"(?:search|browse|look|find|check) (?:\w+ ){0,5}(?:web|internet|online|google)",
            r"web ?search|google (?:it|this|for)|googl(?:ed|ing)|(?:on|from) the (?:web|internet)",
            r"websites?|search engines?|latest news|news (?:about|on|today)|weather",
            r"(?:today's|current|latest) (?:news|price|headlines|exchange rate)|exchange rate",
        ),
        (
            r"אינטרנט|גוגל|לגגל|תגגל|תגגלי|אונליין|מנוע(?:י)? (?:ה)?חיפוש",
            r"(?:חפש|חפשי|תחפש|תחפשי|לחפש|מצא|תמצא) (?:\w+ ){0,4}ברשת",
            r"חדשות (?:היום|אחרונות|האחרונות|על)|מזג (?:ה)?אוויר",
            r"שער (?:ה)?(?:דולר|יורו|אירו|מטבע|חליפין)",
        ),
    ),
    _rule(
        "coding_help",
        (
            r"cod(?:e|es|ing)|programming|programmers?|scripts?|functions?|refactor(?:s|ed|ing)?",
            r"python|javascript|typescript|java|golang|kotlin|c\+\+|c#|php|sql|html|css|bash",
            r"django|fastapi|reactjs|react (?:app|components?|hooks?)|node\.?js|numpy|pandas",
            r"pytest|apis?|regex(?:es)?|algorithms?|unit tests?|compil(?:e|es|er|ing)|git|github",
            r"pull requests?|syntax|async|decorators?|rust (?:code|crates?|compiler)",
        ),
        (
            r"קוד(?:ים)?|לקודד|תכנות|לתכנת|מתכנת(?:ת|ים)?|סקריפט(?:ים)?|פונקצי(?:ה|ות|ית)",
            r"פייתון|פיתון|ג'אווה(?:סקריפט)?|טייפסקריפט|ריאקט",
            r"אלגורית(?:ם|מים)|ביטוי(?:ים)? רגולרי(?:ים)?|רפקטורינג|לקמפל|קומפיילר|גיט|גיטהאב",
            r"בדיקות יחידה|לולא(?:ה|ות|ת)|שאילת(?:ה|ות|ת)|מחרוז(?:ת|ות)|מתודה|מתודות",
        ),
    ),
)


def context_type_of(text: str) -> str:
    """The first rule that finds one of its words; `general` when none does."""
    plain = normalize(text[:MAX_READ_CHARS])
    for context_type, pattern in RULES:
        if pattern.search(plain):
            return context_type
    return GENERAL
