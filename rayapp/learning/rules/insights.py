"""What the graphs say about a question before any search: rows and items in, insights out. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from rayapp.assistant.tools.rules.definitions import MEMORY_TOOLS
from rayapp.graphs import records
from rayapp.graphs.rules import directives
from rayapp.graphs.rules.content import happened_to
from rayapp.graphs.rules.question import Question, by_success, fingerprint, nodes_of, rows_of
from rayapp.graphs.rules.routing import action_success_rate, judged_uses, tier_advice, wilson_of
from rayapp.learning.records import OutcomeEvent
from rayapp.learning.rules.promotion import buried
from rayapp.memory.item import MemoryItem, Outcome, Stats
from rayapp.memory.rules.filtering import matches
from rayapp.memory.scope import ItemFilter
from rayapp.text.concept import Concept
from rayapp.text.expansions import Expansions

# A search so young belongs to the question itself: it was made in the same turn.
SAME_TURN = timedelta(seconds=30)
# Past experiences of each kind that are shown; all of them in full text.
MAX_EXPERIENCES = 5
# Judged uses before an action is advised, and the rates from which it is advised (client contract).
ACTION_MIN_USES = 3
PREFER_RATE = 0.7
AVOID_RATE = 0.4
MAX_ACTIONS = 10

# What a past outcome says; `unknown` and `partial` neither recommend nor warn.
_TELLING = frozenset({Outcome.WORKED, Outcome.PARTIAL, Outcome.FAILED})

# The memory that solved this very problem, if there is one.
Known = tuple[MemoryItem, records.KnownSolution] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTurn:
    """An earlier search of the conversation."""

    query: str
    at: datetime
    concepts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was read for a question.

    Attributes:
        turns: newest first.
        failures: newest first, at most one per item.
    """

    priors: records.GraphPriors = field(default_factory=records.GraphPriors)
    turns: tuple[PastTurn, ...] = ()
    items: tuple[MemoryItem, ...] = ()
    failures: tuple[OutcomeEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class _Seen:
    """The newest telling outcome of an item with the concepts of the question."""

    item: MemoryItem
    outcome: Outcome
    concept: str
    at: datetime
    asked: str = ""


def insights_of(
    question: Question,
    evidence: Evidence,
    now: datetime,
    expansions: Expansions | None = None,
    *,
    documents: bool = False,
    priority: Callable[[str], int] = lambda _: 0,
) -> records.ContextInsights:
    """Everything but `built_ms`. Only items that are active, not over and not replaced are shown.

    `documents`: what the reader calls the books tier (`tier_name`). `priority`: of an action, where
    two did equally well.
    """
    rows = rows_of(question, evidence.priors)
    shown = {i.point_id: i for i in evidence.items if matches(i, ItemFilter(now=now, valid_at=now))}
    failed = {i.point_id: i for i in evidence.items if buried(i)}
    seen = _seen(question, evidence, {**failed, **shown}, expansions)
    # What the rules archived is no help any more, but that it failed must not be forgotten.
    seen = {p: one for p, one in seen.items() if p in shown or one.outcome is Outcome.FAILED}
    known = _known_solution(evidence.priors.solutions, shown, seen)
    # What failed when it was last tried, the most often failed first.
    failures = _told(question.side, seen, Outcome.FAILED, known, lambda s: s.failed_count)
    tiers, actions = tier_advice(rows), _action_advice(evidence.priors.actions, priority)
    earlier = [turn for turn in evidence.turns if turn.at <= now - SAME_TURN]
    # What was solved is asked again because it works.
    repeated = None if known else _repeated(question, earlier, expansions)
    continuity = _continuity(question, evidence.turns)
    return records.ContextInsights(
        query=question.text,
        language=question.language,
        context_type=question.context_type,
        concepts=question.concepts,
        matched=_match(question, evidence.priors),
        tiers=tiers,
        patterns=_patterns(question, seen, known),
        failures=failures,
        actions=actions,
        continuity=continuity,
        repeated=repeated,
        directives=directives.directives_of(
            question.side,
            solution=(known[0], known[1].success_count) if known else None,
            failures=failures,
            tiers=directives.advised_tiers(question.side, tiers, documents),
            actions=actions,
            repeated=repeated,
            continuity=continuity,
        ),
        known_solution=known[0] if known else None,
        best_tiers={row.concept: best for row in rows for best in tier_advice([row])[:1]},
    )


def _match(question: Question, priors: records.GraphPriors) -> tuple[Concept, ...]:
    known = {row.concept for row in priors.routing} | {node.node_id for node in priors.nodes}
    return tuple(concept for concept in question.focus if concept.key in known)


def _seen(
    question: Question,
    evidence: Evidence,
    shown: dict[str, MemoryItem],
    expansions: Expansions | None,
) -> dict[str, _Seen]:
    """One entry per item: from its examples, from a later failure, else from its own counters. The
    graphs follow an outcome with a delay; the failure events are the truth of now."""
    labels = question.labels
    seen: dict[str, _Seen] = {}
    for row in rows_of(question, evidence.priors):
        for example in row.examples:
            _add_example(seen, shown, example, labels[row.concept])
    for node in nodes_of(question, evidence.priors):
        _add_counted(seen, shown, node, labels[node.node_id])
    for event in evidence.failures:
        _add_failure(seen, shown, event, _topic_of(question, event, expansions))
    return seen


def _add_example(
    seen: dict[str, _Seen], shown: dict[str, MemoryItem], example: records.Example, concept: str
) -> None:
    item, before = shown.get(example.point_id), seen.get(example.point_id)
    if item is None or not happened_to(item, example.at):
        return
    newer = before is None or example.at > before.at
    if newer and example.outcome in _TELLING:
        seen[example.point_id] = _Seen(item, example.outcome, concept, example.at)


def _add_counted(
    seen: dict[str, _Seen], shown: dict[str, MemoryItem], node: records.ContentNode, concept: str
) -> None:
    """A memory that holds the concept and was judged, if only with other questions."""
    held = set(node.memory_ids)
    for point_id, item in shown.items():
        outcome, at = item.stats.last_outcome, item.stats.last_outcome_at
        if outcome is None or at is None or outcome not in _TELLING:
            continue
        if item.memory_id in held and point_id not in seen:
            seen[point_id] = _Seen(item, outcome, concept, at)


def _add_failure(
    seen: dict[str, _Seen], shown: dict[str, MemoryItem], event: OutcomeEvent, topic: str | None
) -> None:
    """`topic` None: a failure about something else, unless it is the outcome seen already."""
    for applied in event.applied:
        item, before = shown.get(applied.point_id), seen.get(applied.point_id)
        if item is None or not happened_to(item, event.at):
            continue
        if before is not None and event.at < before.at:
            continue
        concept = topic
        if before is not None and (event.at, Outcome.FAILED) == (before.at, before.outcome):
            concept = before.concept
        if concept is not None:
            seen[applied.point_id] = _Seen(
                item, Outcome.FAILED, concept, event.at, asked=event.query
            )


def _topic_of(question: Question, event: OutcomeEvent, expansions: Expansions | None) -> str | None:
    """What of the question the event was about; None when it was about something else."""
    labels = question.labels
    concept = next((labels[key] for key in event.concepts if key in labels), None)
    if concept is None and question.problem is not None:
        asked = fingerprint(event.query, expansions).problem
        return question.topic if asked == question.problem else None
    return concept


def _known_solution(
    solutions: Sequence[records.KnownSolution], shown: dict[str, MemoryItem], seen: dict[str, _Seen]
) -> Known:
    """The memory that solved this problem most often, unless it failed since."""
    for solution in by_success(solutions):
        item, last = shown.get(solution.point_id), seen.get(solution.point_id)
        if item is None or not happened_to(item, solution.last_used_at):
            continue
        if last is None or last.outcome is not Outcome.FAILED or last.at <= solution.last_used_at:
            return item, solution
    return None


def _patterns(
    question: Question, seen: dict[str, _Seen], known: Known
) -> tuple[records.PastExperience, ...]:
    """What worked, the known solution first, then by Wilson score."""
    side, first = question.side, []
    if known is not None:
        item, solution = known
        at = solution.last_used_at
        reason = directives.solved_reason(side, solution.success_count, at)
        first.append(_experience(_Seen(item, Outcome.WORKED, question.topic, at), reason))
    rest = _told(side, seen, Outcome.WORKED, known, lambda s: s.wilson_score)
    return (*first, *rest)[:MAX_EXPERIENCES]


def _told(
    side: directives.Side,
    seen: dict[str, _Seen],
    outcome: Outcome,
    known: Known,
    weight: Callable[[Stats], float],
) -> tuple[records.PastExperience, ...]:
    """Those with this outcome but the known solution, the heaviest first."""
    solved = known[0].point_id if known else None
    found = [one for one in seen.values() if one.outcome is outcome and one.item.point_id != solved]
    found.sort(key=lambda one: (weight(one.item.stats), one.at, one.item.memory_id), reverse=True)
    return tuple(_experience(one, _reason(side, one)) for one in found[:MAX_EXPERIENCES])


def _experience(one: _Seen, reason: str) -> records.PastExperience:
    return records.PastExperience(
        item=one.item, outcome=one.outcome, concept=one.concept, at=one.at, reason=reason
    )


def _reason(side: directives.Side, one: _Seen) -> str:
    return directives.counted_reason(side, one.item, one.outcome, one.concept, one.at, one.asked)


def _action_advice(
    rows: Sequence[records.ActionRow], priority: Callable[[str], int]
) -> tuple[records.ActionAdvice, ...]:
    """Actions of the context that were judged often enough, the most reliable first."""
    found = []
    for row in _telling(rows):
        judged = judged_uses(row.counters)
        if judged >= ACTION_MIN_USES:
            rate = action_success_rate(row.counters)
            found.append(
                records.ActionAdvice(
                    action=row.action,
                    context_type=row.context_type,
                    uses=judged,
                    worked=row.counters.worked,
                    failed=row.counters.failed,
                    success_rate=rate,
                    wilson=wilson_of(row.counters),
                    advice=_advice(row.action, rate),
                )
            )
    found.sort(key=lambda one: (-one.wilson, -one.uses, -priority(one.action), one.action))
    return tuple(found[:MAX_ACTIONS])


def _telling(rows: Sequence[records.ActionRow]) -> list[records.ActionRow]:
    """One row of each action: that of its own outcomes, else that of the tier where it was judged
    most often. One outcome counts in every tier that it judged, so a sum would count it several
    times. Of two that were judged alike the worse one speaks: nothing is praised by chance."""
    best: dict[tuple[str, str], records.ActionRow] = {}
    for row in sorted(rows, key=_weight):
        best[row.context_type, row.action] = row
    return list(best.values())


def _weight(row: records.ActionRow) -> tuple[bool, int, float, str]:
    judged = judged_uses(row.counters)
    own = row.tier is None and judged >= ACTION_MIN_USES
    return own, judged, -wilson_of(row.counters), row.tier or ""


def _advice(action: str, rate: float) -> str:
    # Their outcomes are those of the memories they found: counted, neither advised nor warned of.
    if action in MEMORY_TOOLS:
        return "neutral"
    if rate > PREFER_RATE:
        return "prefer"
    return "avoid" if rate < AVOID_RATE else "neutral"


def _repeated(
    question: Question, turns: Sequence[PastTurn], expansions: Expansions | None
) -> str | None:
    for turn in turns:
        if fingerprint(turn.query, expansions).same(question.fingerprint):
            return turn.query
    return None


def _continuity(question: Question, turns: Sequence[PastTurn]) -> tuple[str, ...]:
    """Labels of the question's concepts that came up before in the conversation."""
    before = {key for turn in turns for key in turn.concepts} | {c.key for c in question.recent}
    return tuple(concept.label for concept in question.concepts if concept.key in before)
