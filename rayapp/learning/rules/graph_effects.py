"""What recorded outcomes add to the graphs, as increments with one row each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from rayapp.graphs import records
from rayapp.graphs.rules.problem import problem_hash
from rayapp.graphs.rules.routing import added, counters_of, negative
from rayapp.learning.records import AppliedOutcome, OutcomeEvent
from rayapp.learning.rules.verdicts import standing
from rayapp.memory.item import Outcome
from rayapp.memory.tiers import TIER_POLICY, Tier
from rayapp.text.concept import Concept
from rayapp.text.concepts import extract_concepts
from rayapp.text.expansions import Expansions

# Examples that a row keeps (learning design, action graph).
MAX_EXAMPLES = 5

_Key = TypeVar("_Key")


@dataclass(slots=True)
class _Row:
    at: datetime
    counters: records.Counters = field(default_factory=records.Counters)
    examples: list[records.Example] = field(default_factory=list)
    count: int = 0

    @property
    def gain(self) -> dict[str, Any]:
        """What it adds to its row of a graph, with the newest examples."""
        found = self.examples
        if self.count >= 1:
            found = sorted(found, key=lambda one: one.memory_id)
            found = sorted(found, key=lambda one: one.at, reverse=True)[:MAX_EXAMPLES]
        return {"counters": self.counters, "at": self.at, "examples": tuple(found)}


class _Rows(Generic[_Key]):
    """Rows in the order in which they were first met."""

    def __init__(self) -> None:
        self.rows: dict[_Key, _Row] = {}

    def count(
        self,
        key: _Key,
        event: OutcomeEvent,
        examples: Iterable[records.Example] = (),
        *,
        times: int = 1,
    ) -> None:
        """`times` -1: what a row counted of `event` goes; 0: only examples of it go."""
        row = self.rows.setdefault(key, _Row(event.at))
        row.examples.extend(examples)
        row.count += times
        gain = counters_of(event.outcome)
        if times > 0:
            row.at = max(row.at, event.at)
            row.counters = added(row.counters, gain)
        elif times < 0:
            row.counters = added(row.counters, negative(gain))


@dataclass(slots=True)
class _Changes:
    """Rows of all graphs, and the concepts behind their keys."""

    routing: _Rows[tuple[str, Tier]] = field(default_factory=_Rows)
    actions: _Rows[tuple[str, str, Tier | None]] = field(default_factory=_Rows)
    solutions: _Rows[tuple[str, str, str]] = field(default_factory=_Rows)
    documents: _Rows[str] = field(default_factory=_Rows)


def outcome_changes(
    events: Sequence[OutcomeEvent], expansions: Expansions | None = None
) -> records.OutcomeChanges:
    """The increments of one user's events, aggregated: a row occurs once.

    An event counts once for each tier that it judged, however many items of it: one verdict over
    a list says no more about a tier than a verdict over one item. A judged book counts for the
    books tier. An event without concepts still counts for its action. A tool counts as an action
    without a tier.

    Verdicts of a guest count nowhere: graph rows speak for memories that it was never shown
    (decision 0013).

    An event of which a part was withdrawn counts with the rest. Where the graphs counted that
    part, rows with negative counters follow, which take it back.
    """
    gained, lost = _Changes(), _Changes()
    concepts: dict[str, Concept] = {}
    for event in events:
        if not event.owner:
            continue
        found = _concepts(event, expansions)
        keys = [concepts.setdefault(one.key, one).key for one in found]
        now = standing(event, event.withdrawn)
        if event.counted is None:
            _gain(gained, now, keys, expansions)
        else:
            _lose(lost, standing(event, event.counted), now, keys, expansions)
    one, other = _increments(gained, concepts), _increments(lost, concepts)
    return records.OutcomeChanges(
        routing=one.routing + other.routing,
        actions=one.actions + other.actions,
        solutions=one.solutions + other.solutions,
        documents=one.documents + other.documents,
    )


def _gain(
    changes: _Changes, event: OutcomeEvent, keys: Sequence[str], expansions: Expansions | None
) -> None:
    for tier, examples in _judged(event).items():
        for key in keys:
            changes.routing.count((key, tier), event, examples)
        changes.actions.count((event.context_type, event.action, tier), event, examples)
    for tool in event.tools:
        changes.actions.count((event.context_type, tool, None), event)
    for doc_id in dict.fromkeys(event.documents):
        changes.documents.count(doc_id, event)
    for problem, item in _solved(event, expansions):
        changes.solutions.count((problem, item.memory_id, item.point_id), event)


def _lose(
    changes: _Changes,
    before: OutcomeEvent,
    after: OutcomeEvent,
    keys: Sequence[str],
    expansions: Expansions | None,
) -> None:
    """`after` is what is left of `before`: a tier loses its count with the last item of it."""
    left = _judged(after)
    for tier, examples in _judged(before).items():
        gone = [one for one in examples if one not in left.get(tier, ())]
        times = -1 if tier not in left else 0
        for key in keys:
            changes.routing.count((key, tier), before, gone, times=times)
        action = (before.context_type, before.action, tier)
        changes.actions.count(action, before, gone, times=times)
    for tool in (tool for tool in before.tools if tool not in after.tools):
        changes.actions.count((before.context_type, tool, None), before, times=-1)
    for doc_id in dict.fromkeys(doc for doc in before.documents if doc not in after.documents):
        changes.documents.count(doc_id, before, times=-1)
    kept = set(after.applied)
    for problem, item in _solved(before, expansions):
        if item not in kept:
            changes.solutions.count((problem, item.memory_id, item.point_id), before, times=-1)


def _increments(changes: _Changes, concepts: dict[str, Concept]) -> records.OutcomeChanges:
    return records.OutcomeChanges(
        routing=tuple(
            records.RoutingIncrement(concept=concepts[key], tier=tier, **row.gain)
            for (key, tier), row in changes.routing.rows.items()
        ),
        actions=tuple(
            records.ActionIncrement(context_type=context_type, action=action, tier=tier, **row.gain)
            for (context_type, action, tier), row in changes.actions.rows.items()
        ),
        solutions=tuple(
            records.SolutionIncrement(
                problem_hash=problem, memory_id=memory, point_id=point, at=row.at, count=row.count
            )
            for (problem, memory, point), row in changes.solutions.rows.items()
        ),
        documents=tuple(
            records.DocumentIncrement(doc_id=doc_id, counters=row.counters, at=row.at)
            for doc_id, row in changes.documents.rows.items()
        ),
    )


def _concepts(event: OutcomeEvent, expansions: Expansions | None) -> list[Concept]:
    """The event's concepts, with the label and type that its query gives them."""
    if not event.concepts:
        return []
    written = {one.key: one for one in extract_concepts(event.query, expansions=expansions)}
    return [written.get(key) or Concept(key, key) for key in dict.fromkeys(event.concepts) if key]


def _judged(event: OutcomeEvent) -> dict[Tier, list[records.Example]]:
    """The tiers that the event judged, each with its items; books are counted, not listed."""
    tiers: dict[Tier, list[records.Example]] = {}
    for item in event.applied:
        tiers.setdefault(item.tier, []).append(
            records.Example(
                memory_id=item.memory_id,
                point_id=item.point_id,
                tier=item.tier,
                outcome=event.outcome,
                at=event.at,
            )
        )
    if event.documents:
        tiers.setdefault(Tier.BOOKS, [])
    return tiers


def _solved(
    event: OutcomeEvent, expansions: Expansions | None
) -> Iterable[tuple[str, AppliedOutcome]]:
    """Items that worked for a question which is specific enough to be met again."""
    if event.outcome is not Outcome.WORKED:
        return
    problem = problem_hash(event.query, expansions)
    if problem is None:
        return
    for item in event.applied:
        if TIER_POLICY[item.tier].scored:
            yield problem, item
