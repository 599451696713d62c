"""A standing page of a node: what is known of it, a facet a line, each with its evidence. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from rayapp.understanding.statements.records import Entity, Span, Statement
from rayapp.understanding.statements.requests import Linked
from rayapp.understanding.statements.rules.registry import ANY, DETAIL, Ontology

# Of the Open Knowledge Format, https://github.com/GoogleCloudPlatform/knowledge-catalog.
OKF = "0.2"
# A page that nothing has confirmed for so long may be out of date.
STALE_AFTER = timedelta(days=180)
# The last days, and those before them that they are compared with.
RECENT, BEFORE = timedelta(days=30), timedelta(days=90)
STRONGER, WEAKER = 1.5, 0.5
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>#|"})


class Trend(StrEnum):
    """How often something is said lately, against before. STALE: it is not said any more."""

    NEW = "new"
    STRENGTHENING = "strengthening"
    STEADY = "steady"
    WEAKENING = "weakening"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Facet:
    """One line of a page. `checked_on`: when a text last said it."""

    fact_id: str
    relation: str
    text: str
    memory_ids: tuple[str, ...]
    since: datetime | None
    checked_on: datetime
    trend: Trend
    verified: bool


@dataclass(frozen=True, slots=True)
class Page:
    """What is known of a node."""

    node: Entity
    facets: tuple[Facet, ...]

    @property
    def checked_on(self) -> datetime:
        return max((one.checked_on for one in self.facets), default=self.node.last_seen_at)

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one for facet in self.facets for one in facet.memory_ids))


def trend_of(said: Sequence[datetime], now: datetime) -> Trend:
    """By the density of the last days over that of those before."""
    recent = sum(now - RECENT <= at <= now for at in said)
    before = sum(now - RECENT - BEFORE <= at < now - RECENT for at in said)
    if not recent:
        return Trend.WEAKENING if before else Trend.STALE
    if recent == len(said):
        return Trend.NEW
    if not before:
        return Trend.STRENGTHENING
    share = (recent / RECENT.days) / (before / BEFORE.days)
    if share > STRONGER:
        return Trend.STRENGTHENING
    return Trend.WEAKENING if share < WEAKER else Trend.STEADY


def page_of(
    node: Entity,
    links: Sequence[Linked],
    said: Mapping[str, Sequence[Statement]],
    ontology: Ontology,
    language: str,
    now: datetime,
) -> Page:
    """What is known of the node, what was confirmed last first. `said`: statements by fact."""
    facets = []
    for one in links:
        fact = one.relationship
        rows = [row for row in said.get(fact.fact_id, ()) if row.span is Span.HOLDS]
        times = [row.confirmed_at for row in rows] or [fact.recorded_at]
        facets.append(
            Facet(
                fact.fact_id,
                fact.relation,
                _line(one, ontology, language),
                fact.evidence,
                fact.valid_from,
                max(times),
                trend_of(times, now),
                fact.verified,
            )
        )
    facets.sort(key=lambda one: (one.checked_on, one.fact_id), reverse=True)
    return Page(node, tuple(facets))


def _line(one: Linked, ontology: Ontology, language: str) -> str:
    fact = one.relationship
    row = ontology.row_of(fact.relation)
    said = row.he if language == "he" else row.en
    if fact.relation == ANY and fact.label:
        said = fact.label
    what = one.target.name if one.target else fact.value or ""
    if fact.relation == DETAIL and fact.label:
        what = f"{fact.label}: {what}"
    # A Hebrew preposition stands at its noun.
    joined = said.endswith(("ב", "ל")) and said != what
    return f"{one.source.name} {said}{'' if joined else ' '}{what}"


def markdown(page: Page) -> str:
    """The page in the Open Knowledge Format. What stands in names is no Markdown."""
    node = page.node
    checked = page.checked_on
    lines = [
        "---",
        f'okf: "{OKF}"',
        f"type: {node.type}",
        f"id: {node.entity_id}",
        f"title: {_quoted(node.name)}",
        f"aliases: [{', '.join(_quoted(one) for one in _aliases(node))}]",
        f"verified: {checked.date().isoformat()}",
        f"stale_after: {(checked + STALE_AFTER).date().isoformat()}",
        f"sources: [{', '.join(_quoted(one) for one in page.sources)}]",
        "---",
        "",
        f"# {_plain(node.name)}",
        "",
    ]
    for one in page.facets:
        notes = f"{one.checked_on.date().isoformat()}, {one.trend.value}"
        sources = " ".join(f"`{each}`" for each in one.memory_ids)
        lines.append(f"- {_plain(one.text)} ({notes}) {sources}".rstrip())
    return "\n".join(lines) + "\n"


def _aliases(node: Entity) -> list[str]:
    names = dict.fromkeys((*(one.name for one in node.names), *node.synonyms))
    return [name for name in names if name != node.name]


def _quoted(text: str) -> str:
    plain = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def _plain(text: str) -> str:
    return " ".join(text.split()).translate(_MARKS)
