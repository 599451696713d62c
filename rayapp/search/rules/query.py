"""What a search is about to do, decided from the query alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rayapp.search.requests import SortMode
from rayapp.text.expansions import Expansion, Expansions
from rayapp.text.language import Language, detect_language
from rayapp.text.normalize import normalize
from rayapp.text.temporal import prefers_recency

# Hits for a question without a limit, by its kind; the values of the first client.
BROAD_LIMIT = 20
HOW_TO_LIMIT = 12
IDENTITY_LIMIT = 5
DEFAULT_LIMIT = 10

_BROAD = re.compile(
    r"""\b(?:everything|anything|all\ (?:of\ )?(?:my|our|the|about)|list|overview|recap
    |summar(?:y|ies|ize|ise)|tell\ me\ about|what\ do\ you\ (?:know|remember)|compare|history\ of)\b
    | (?<!\w)(?:הכול|הכל|כל\ ה\w+|כל\ מה|רשימת|רשימה|סכם|סכמי|תסכם|תסכמי|סיכום|סקירה|ספר\ לי
    |ספרי\ לי|תספר\ לי|תספרי\ לי|מה\ (?:אתה|את)\ (?:יודע|יודעת|זוכר|זוכרת)|השווה|השוואה)(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)
_HOW_TO = re.compile(
    r"""\bhow\ (?:do|does|did|can|could|should|would|to)\b
    | \b(?:steps?\ to|guide|tutorial|walk\ me|instructions|fix
    |troubleshoot|debug|configure|install|set\ up)\b
    | (?<!\w)(?:ו?(?:איך|כיצד)|מדריך|הוראות|שלבים|צעדים|להתקין|להגדיר|לתקן)(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)
# What someone is called, or where they live: a fact or two answers it.
_IDENTITY = re.compile(
    r"""\bwho\ (?:am|is|are|was)\b
    | \b(?:what|where|when)(?:\ is|'s|\ are)\ (?:my|his|her|their|your)\b
    | \bmy\ (?:name|birthday|age|address|phone|email|job)\b | \bwhere\ do\ i\ (?:live|work)\b
    | (?<!\w)(?:מי\ (?:אני|אתה|את|הוא|היא)|מיהו|מיהי|מה\ השם|איך\ קוראים|שמי|השם\ שלי|הגיל\ שלי
    |הכתובת\ שלי|הטלפון\ שלי|המייל\ שלי|איפה\ אני\ (?:גר|גרה|עובד|עובדת)
    |בן\ כמה\ אני|בת\ כמה\ אני)(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """`text` is the normalised query, `limit` the number of hits, `expansions` heaviest first."""

    text: str
    language: Language
    expansions: tuple[Expansion, ...]
    limit: int
    sort_by: SortMode


def plan_query(
    text: str, *, limit: int | None, sort_by: SortMode | None, expansions: Expansions
) -> QueryPlan:
    """Prepare a query. `limit` and `sort_by` None mean "decide for me"; given ones are kept."""
    plain = normalize(text)
    return QueryPlan(
        text=plain,
        language=detect_language(plain),
        expansions=tuple(expansions.expand(plain)),
        limit=estimate_context_limit(plain) if limit is None else limit,
        sort_by=sort_by or ("recency" if prefers_recency(plain) else "relevance"),
    )


def estimate_context_limit(query: str) -> int:
    """Hits worth fetching: identity 5, broad 20, how-to 12, else 10; the first kind that fits."""
    if _IDENTITY.search(query):
        return IDENTITY_LIMIT
    if _BROAD.search(query):
        return BROAD_LIMIT
    return HOW_TO_LIMIT if _HOW_TO.search(query) else DEFAULT_LIMIT
