"""A question read once: its concepts, kind of work, problem, and what to ask of it. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
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
from rayapp.text.utterance import beginning, reading

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
MAX_CONTEXT_CHARS = 1_000
# Particles that may be written together with a word in Hebrew, up to three of them (וכשה, בDocker).
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
            rf"(?<![\w.])(?:{_PARTICLES})(?:{latin})(?!\w)"
            rf"|(?<![\w\"'])(?:{_PARTICLES})(?:{letters})(?![\w\"'])",
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
            r"containers? (?:keeps? )?(?:exit(?:s|ed|ing)?|crash\w*|(?:re)?start(?:s|ing)?)",
            r"containers? (?:stops?|fails?|logs?)",
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
            r"(?:מחקי?|תמחקי?|למחוק|עדכן|תעדכני?|לעדכן|שמור|שמרי|תשמור|תשמרי|לשמור|הצג|הציגי"
            r"|תציגי?|הוסף|הוסיפי|תוסיפי?) (?:לי )?(?:את )?(?:[בהלמ]|מה)?(?:זיכרון|זכרון)",
            r"(?:אתה|את) (?:זוכר|זוכרת|(?:יודע|יודעת) עליי?)",
        ),
    ),
    _rule(
        "debugging",
        (
            r"debug(?:s|ged|ging|ger)?|stack ?traces?|tracebacks?|exceptions?|segfaults?",
            r"error(?:s|ed)?|bugs?|buggy|crash(?:es|ed|ing)?|troubleshoot(?:s|ing)?|memory leaks?",
            r"fail(?:s|ed|ing|ure|ures)?|broken|not (?:working|responding)|root cause",
            r"breakpoints?|core dumps?",
            r"(?:doesn't|does not|won't|isn't|didn't|did not|stopped|no longer)"
            r" (?:work|start|run|load|compile|build|respond)(?:s|ing)?",
            r"(?:timed?|times|timing) ?out|freezes|stuck|returns? (?:an? )?[45]\d\d",
        ),
        (
            r"דיבאג(?:ינג)?|לדבג|מדבג(?:ת|ים)?|ניפוי (?:שגיאות|באגים|תקלות)|באג(?:ים)?",
            r"(?:שגיא|תקל|קריס)(?:ה|ות|ת)|קורסת|קרס(?:ה|ו)?|נתקע(?:ת|ים|ות|ה|ו)?",
            r"נכשל(?:ת|ים|ות|ה|ו)?|כישלון|כשל(?:ים)?|דליפת זיכרון|שבור(?:ה|ים|ות)?",
            # Who does not work on Fridays is not out of order.
            r"(?<!אני )(?<!אנחנו )(?<!אנו )לא (?:עובד(?:ת|ים|ות)?|עבד(?:ה|ו)?|רץ|רצ(?:ה|ים|ות)|עולה"
            r"|נטענ?(?:[ןת]|ים|ות)?|מתקמפל(?:ת|ים|ות)?|מגיב(?:ה|ים|ות)?|פועל(?:ת|ים|ות)?)",
            r"לאתר (?:את )?(?:ה)?(?:בעיה|תקלה)",
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
            r"pytest|apis?|json|yaml|regex(?:es)?|algorithms?|unit tests?|compil(?:e|es|er|ing)",
            r"git|github|pull requests?|syntax|async|decorators?|rust (?:code|crates?|compiler)",
        ),
        (
            r"קוד(?:ים)?|לקודד|תכנות|לתכנת|מתכנת(?:ת|ים|ות)?|סקריפט(?:ים)?|פונקצי(?:ה|ות|ית)",
            r"פייתון|פיתון|ג'אווה(?:סקריפט)?|טייפסקריפט|ריאקט",
            r"אלגורית(?:ם|מים)|ביטוי(?:ים)? רגולרי(?:ים)?|רפקטורינג|לקמפל|קומפיילר|גיט|גיטהאב",
            r"בדיקות יחידה|לולא(?:ה|ות|ת)|שאילת(?:ה|ות|ת)|מחרוז(?:ת|ות)|מתודה|מתודות",
        ),
    ),
)


def context_type_of(text: str) -> str:
    """The first rule that finds one of its words; `general` when none does."""
    return _context_type(beginning(text, MAX_CONTEXT_CHARS))


@reading
def _context_type(text: str) -> str:
    # Phones write ’ for the apostrophe of "doesn't".
    plain = normalize(text).replace("’", "'")
    for context_type, pattern in RULES:
        if pattern.search(plain):
            return context_type
    return GENERAL


# A message of the past only adds to the question: its beginning is enough (characters).
RECENT_CHARS = 400
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
    text = beginning(request.query, MAX_READ_CHARS)
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
    return _fingerprint(beginning(text, MAX_READ_CHARS), expansions)


@reading
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
        for concept in extract_concepts(beginning(message, RECENT_CHARS), expansions=expansions):
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
