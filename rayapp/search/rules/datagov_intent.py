"""Does a question ask for open government data? Whole words of both languages, no model. Pure."""

import re
from dataclasses import dataclass

from rayapp.graphs.rules.question import MAX_CONTEXT_CHARS
from rayapp.text.phrases import Phrases, phrases_in, tables_of
from rayapp.text.utterance import beginning


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """`reason` names the rule; empty when nothing spoke for it or against it.

    `categories`: slugs of the topics in the question, only when it is wanted.
    """

    wanted: bool
    reason: str = ""
    categories: tuple[str, ...] = ()


NO_INTENT = Intent(wanted=False)

# Somebody's own life; "in my city" and "I am looking for" are not.
_PERSONAL = re.compile(
    r"""\b(?:my|our)\b(?!\ (?:city|town|area|region|street|neighbou?rhood|district|village|country
    |county)\b)
    | \b(?:mine|i've|we've|i'd|we'd)\b
    | (?<!can\ )(?<!could\ )(?<!should\ )\b(?:i'm|i|we're|we)\b
      (?!\ (?:need|want|(?:am\ |are\ )?looking|(?:am\ |are\ )?searching|would\ like|can|could)\b)
    | (?<!אזור\ )(?<!עיר\ )(?<!שכונה\ )(?<!יישוב\ )(?<!ישוב\ )(?<!מחוז\ )(?<!סביבה\ )
      (?<!\w)(?:שלי|שלנו)(?!\w)
    | (?<!\w)(?:אני|אנחנו)(?!\w)(?!\ (?:מחפש|צריכ|צריך|רוצ))
    | (?<!\w)(?:(?:יש|היו|היה|הייתה)\ ל(?:י|נו)|קניתי|הייתי|היינו)(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)


def topics_of(plain: str) -> tuple[str, ...]:
    """Slugs of the categories that a normalised text names, in the order of the table."""
    said = phrases_in(plain)
    return tuple(slug for slug in tables_of("topics") if f"topics.{slug}" in said)


def datagov_intent(plain: str) -> Intent:
    """Whether a question that `normalize` has seen is about open government data.

    Measured on the questions of three open sets: it fires for none of 2,721.
    """
    plain = beginning(plain, MAX_CONTEXT_CHARS)
    said = phrases_in(plain)
    if "datagov.own" in said:
        return Intent(wanted=False, reason="own_data")
    reason = "named_source" if "datagov.state" in said else ""
    if not reason:
        if "datagov.technical" in said:
            return Intent(wanted=False, reason="technical")
        reason = _official(said) or _likely(plain, said)
    return Intent(wanted=True, reason=reason, categories=topics_of(plain)) if reason else NO_INTENT


def _official(said: Phrases) -> str:
    """A public source by name, or the data of a public body."""
    if "work.datagov_query" in said or "datagov.information" in said:
        return "public_data"
    return "data_of_a_body" if "datagov.body" in said and "datagov.source" in said else ""


def _likely(plain: str, said: Phrases) -> str:
    """Two signs at once, and nothing of somebody's own life."""
    if _PERSONAL.search(plain):
        return ""
    found = "datagov.find" in said
    datasets = "datagov.datasets" in said
    if datasets and found:
        return "datasets"
    data_on = datasets or "datagov.data_on" in said or (found and "datagov.source" in said)
    count, a_list = "datagov.how_many" in said, "datagov.list" in said
    if count and "datagov.nation" in said:
        return "count"
    parts = "datagov.breakdown" in said
    if not (data_on or count or a_list or parts) or not topics_of(plain):
        return ""
    if data_on:
        return "datasets" if datasets else "data_on_a_topic"
    if parts or (count and "datagov.place" in said):
        return "breakdown" if parts else "count"
    narrowed = any(f"datagov.{one}" in said for one in ("nation", "place", "licensed"))
    return "list" if a_list and narrowed else ""
