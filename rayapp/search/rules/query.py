"""What a search is about to do, decided from the query alone: its tiers, and whether it asks for
news.
"""

import re
from dataclasses import dataclass

from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import CORE_TIERS, DATAGOV_ANSWERS, DATAGOV_TIERS, Tier
from rayapp.search.requests import DatagovUse, SearchQuery, SortMode
from rayapp.search.rules.datagov_intent import datagov_intent
from rayapp.search.rules.latest_words import LatestWords
from rayapp.text.expansions import Expansion, Expansions
from rayapp.text.language import Language, detect_language
from rayapp.text.normalize import normalize
from rayapp.text.phrases import phrases_in

# Does a question ask for the newest items? Whole words and phrases of both languages.

# Times that "last" can count back to; "last name" and "last supper" are not among them.
_SPAN = (
    r"(?:night|evening|morning|weekend|week|month|year|quarter|summer|winter|spring|autumn|fall|"
    r"monday|tuesday|wednesday|thursday|friday|saturday|sunday|time|few|couple|\d+|two|three|"
    r"several)s?"
)
_EVENT = (
    r"(?:meeting|session|conversation|chat|message|talk|call|visit|trip|order|purchase|"
    r"change|thing|one|question|answer|appointment|email|note|memory)s?"
)
_ENGLISH = re.compile(
    rf"""\b(?:
      yesterday | today | tonight | lately | recently | recent | nowadays | just\ now | these\ days
    | (?:this|past)\ (?:morning|afternoon|evening|week|month)
    | the\ past\ (?:few|couple|\d+)
    | last\ {_SPAN} | last\ {_EVENT}
    | (?:i|we|you|he|she|they)\ last\ (?!(?:long|until|till|for|through|in|names?)\b)\w+
    | (?:a\ (?:moment|minute|while)|moments|minutes)\ ago
    | (?:an|one|\d+|two|three|few)\ (?:hours?|days?)\ ago
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_PREFIX = r"(?:ו?(?:כש|מש|ש)?[בכלמה]?)"
_HEBREW = re.compile(
    rf"""(?<![\w"'])(?:
      {_PREFIX}(?:אתמול|שלשום|אמש|לאחרונה)
    | ו?(?:מ|ש|ב|ל|כש)?ה(?:יום|ערב|בוקר|לילה|שבוע|חודש|אחרון|אחרונה|אחרונים|אחרונות)
    | ו?(?:ל|ב|מ)אחרונה
    | לפני\ (?:רגע|דקה|שעה|שעתיים|יום|יומיים|כמה\ (?:דקות|שעות|ימים))
    )(?![\w"'])""",
    re.VERBOSE,
)
# Phrases in which such a word does not ask for what is new.
_NOT_TEMPORAL = re.compile(
    r"""\b(?:from\ now\ on|last\ names?|last\ resort|last\ supper|at\ last|last\ but\ not\ least
      |last\ (?:few|couple\ of|\d+|two|three|several)
       \ (?:digits|numbers|letters|characters|words|lines|pages)
       (?!\ (?:that\ )?(?:i|we|you|he|she|they)\b))\b
    | (?<!\w)(?:בסופו\ של\ היום | הסעודה\ האחרונה | סדר\ היום | שעות\ היום | בשעות\ היום
    | (?:באמצע|במשך|כל)\ (?:היום|הלילה) | (?:המילה|המלה)\ האחרונה | השם\ האחרון
    # Breakfast, the night shift: what is named by a time of the day is not of this one. With an
    # article it is: "the medicines, this morning"; so may be a bus or a pill, which look the same.
    | [ובלמכש]{0,3}(?:ארוח(?:ת|ות)|משמר(?:ת|ות)|תורנו(?:ת|יות)|תפיל(?:ת|ות)|שגרת|שעות|חיי|שומר
      |עיתון|מהדורת|מועדו(?:ן|ני)|תרופת|כדורי|קרם|מנורת|שמל(?:ת|ות)|לימודי)
      \ ה(?:בוקר|ערב|לילה)
    | [ובלמכש]{0,3}(?:ימי\ השבוע
      | ה(?:ספרות|אותיות|שורות|מילים|מלים)\ האחרונ(?:ות|ים)(?!\ ש(?!ל)))
    | [ובלמכש]{0,3}היום\ (?:הולדת|ה(?:ראשון|שני|שלישי|רביעי|חמישי
      |שישי|שביעי)) )(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)


def prefers_recency(query: str) -> bool:
    """True when the question is about what happened recently; how a thing stands now asks
    `LatestWords`."""
    plain = _NOT_TEMPORAL.sub(" ", normalize(query))
    return bool(_ENGLISH.search(plain) or _HEBREW.search(plain))


# Which tiers a search looks into: named ones, the core tiers, and open data when it is meant.


@dataclass(frozen=True, slots=True)
class TierChoice:
    tiers: tuple[Tier, ...]
    datagov: DatagovUse


def choose_tiers(query: SearchQuery, plain: str, *, shared: bool, intent: bool) -> TierChoice:
    """Named tiers stay as they are named; `include_datagov` decides over filters and words.

    Args:
        plain: the question, normalised.
        shared: the caller may read the shared tenant.
        intent: the words of the question may ask for open data.
    """
    named = query.tiers if query.tiers is not None else query.where.tiers
    tiers = tuple(dict.fromkeys(CORE_TIERS if named is None else named))
    use = DatagovUse()
    if query.include_datagov or any(tier in DATAGOV_TIERS for tier in tiers):
        use = DatagovUse(searched=True, reason="asked")
    elif named is None and query.include_datagov is None and shared:
        use = _unasked(query.where, plain, intent=intent)
    if use.searched and (query.include_datagov or named is None):
        tiers = tuple(dict.fromkeys((*tiers, *DATAGOV_ANSWERS)))
    return TierChoice(tiers, use)


def _unasked(where: ItemFilter, plain: str, *, intent: bool) -> DatagovUse:
    """Conditions that only catalogue items meet ask for them; else the question may."""
    conditions = (where.categories, where.formats, where.organizations, where.flags)
    if any(values is not None for values in conditions):
        return DatagovUse(searched=True, reason="filter")
    found = datagov_intent(plain) if intent else None
    if found is None or not found.wanted:
        return DatagovUse()
    return DatagovUse(searched=True, guessed=True, reason=found.reason, categories=found.categories)


# Hits for a question without a limit, by its kind; the values of the first client.
BROAD_LIMIT = 20
HOW_TO_LIMIT = 12
IDENTITY_LIMIT = 5
DEFAULT_LIMIT = 10

# The first kind of which `configs/language/limits.yaml` has a phrase. An identity is what someone
# is called, or where they live: a fact or two answers it.
_LIMITS = (("identity", IDENTITY_LIMIT), ("broad", BROAD_LIMIT), ("how_to", HOW_TO_LIMIT))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """`text` is the normalised query, `limit` the number of hits, `expansions` heaviest first.

    `latest`: it asks how a thing stands now, and nobody named an order.
    """

    text: str
    language: Language
    expansions: tuple[Expansion, ...]
    limit: int
    sort_by: SortMode
    latest: bool


def plan_query(
    text: str,
    *,
    limit: int | None,
    sort_by: SortMode | None,
    expansions: Expansions,
    latest: LatestWords,
) -> QueryPlan:
    """Prepare a query. `limit` and `sort_by` None mean "decide for me"; given ones are kept."""
    plain = normalize(text)
    return QueryPlan(
        text=plain,
        language=detect_language(plain),
        expansions=tuple(expansions.expand(plain)),
        limit=estimate_context_limit(plain) if limit is None else limit,
        sort_by=sort_by or ("recency" if prefers_recency(plain) else "relevance"),
        latest=sort_by is None and latest.asked(plain),
    )


def estimate_context_limit(query: str) -> int:
    """Hits worth fetching: identity 5, broad 20, how-to 12, else 10; the first kind that fits."""
    said = phrases_in(query)
    return next((most for kind, most in _LIMITS if f"limits.{kind}" in said), DEFAULT_LIMIT)
