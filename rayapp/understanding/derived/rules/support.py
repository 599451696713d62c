"""What rests on what: support, confidence, trend, and what is left of a row that loses some."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from rayapp.understanding.derived.records import (
    MOST_REVISIONS,
    MOST_SOURCES,
    Derived,
    DerivedKind,
    Evidence,
    Revision,
    State,
    Trend,
)
from rayapp.understanding.statements.records import Level

# Sources, and days on which they were said, below which there is no thought.
LEAST_SOURCES, LEAST_DAYS = 3, 2
# The time that is looked at, the time before it, and between which ratios a trend is steady.
RECENT, BEFORE = timedelta(days=30), timedelta(days=90)
WEAKER, STRONGER = 0.5, 1.5


def is_supported(row: Derived) -> bool:
    """Whether enough sources on enough days say so. A scene needs one."""
    if row.kind is DerivedKind.EPISODE:
        return bool(row.sources)
    return row.support >= LEAST_SOURCES and row.days >= LEAST_DAYS


def with_evidence(row: Derived, new: Evidence) -> Derived:
    """With what a source says, in the place of what the same source said before."""
    others = [one for one in row.sources if one.source_id != new.source_id]
    ordered = sorted([*others, new], key=lambda one: (one.said_at, one.source_id))
    return _spanned(replace(row, sources=tuple(ordered[-MOST_SOURCES:])))


def without_source(row: Derived, source_id: str) -> Derived:
    """Without what a source said. What the rules worded before may hold its words, and goes."""
    kept = tuple(one for one in row.sources if one.source_id != source_id)
    said = tuple(one for one in row.revisions if one.worded_by is not None)
    return _spanned(replace(row, sources=kept, revisions=said))


def settled(row: Derived) -> Derived | None:
    """The row in the state that its support gives it; None: it is gone."""
    if not row.sources:
        if row.state is State.DECLINED:
            # Of what was declined stays that it was, without a word.
            return replace(row, title="", text="", pattern=None, revisions=(), worded_by=None)
        return None
    enough = is_supported(row)
    match row.state:
        case State.FORMING if enough:
            said = row.level is Level.EXPLICIT
            return replace(row, state=State.ACCEPTED if said else State.PENDING)
        case State.PENDING if not enough:
            return replace(row, state=State.FORMING)
        case State.ACCEPTED if not enough:
            by_hand = row.decided_by is not None
            return replace(row, state=State.IN_DOUBT if by_hand else State.FORMING)
        case State.IN_DOUBT if enough:
            return replace(row, state=State.ACCEPTED)
        case _:
            return row


def revised(row: Derived, changed: Derived, at: datetime, by: str | None) -> Derived:
    """The changed row, which remembers how it stood; not the words of a source that it lost."""
    lost = {one.source_id for one in row.sources} - {one.source_id for one in changed.sources}
    if lost and row.worded_by is None:
        return replace(changed, version=row.version + 1, updated_at=at)
    stood = Revision(
        version=row.version,
        title=row.title,
        text=row.text,
        state=row.state,
        worded_by=row.worded_by,
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        at=at,
        by=by,
    )
    kept = (*changed.revisions, stood)[-MOST_REVISIONS:]
    return replace(changed, revisions=kept, version=row.version + 1, updated_at=at)


def confidence_of(row: Derived) -> float:
    """More sources make surer; those that deny it less sure."""
    if not row.sources:
        return 0.0
    return round((1 - 1 / (1 + row.support)) * len(row.agreeing) / len(row.sources), 3)


def trend_of(row: Derived, now: datetime) -> Trend:
    """How often it is said now, against before."""
    times = [one.said_at for one in row.agreeing]
    recent = _density(times, now - RECENT, now)
    before = _density(times, now - RECENT - BEFORE, now - RECENT)
    if not recent and not before:
        return Trend.STALE
    if not before:
        older = any(one < now - RECENT - BEFORE for one in times)
        return Trend.STRENGTHENING if older else Trend.NEW
    ratio = recent / before
    if ratio > STRONGER:
        return Trend.STRENGTHENING
    return Trend.WEAKENING if ratio < WEAKER else Trend.STEADY


def _density(times: Iterable[datetime], begins: datetime, ends: datetime) -> float:
    """Times a day, from after `begins` until `ends`."""
    within = sum(begins < one <= ends for one in times)
    return within / ((ends - begins) / timedelta(days=1))


def _spanned(row: Derived) -> Derived:
    if not row.sources:
        return row
    times = [one.happened_at for one in row.sources]
    return replace(row, first_at=min(times), last_at=max(times))
