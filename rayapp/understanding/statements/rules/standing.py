"""How facts stand at a moment: known, ended, or in doubt because what they rest on ended. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from rayapp.understanding.statements.records import Premise, Relationship, Span, Standing, Statement
from rayapp.understanding.statements.rules.registry import Ontology

# Premises of premises are followed so far; a circle ends there.
DEPTH = 4
CONTEXTS = 5
EVIDENCE = 20

ByFact = Mapping[str, Sequence[Statement]]


def by_fact(statements: Iterable[Statement]) -> dict[str, list[Statement]]:
    """Statements by the fact that they say."""
    found: dict[str, list[Statement]] = defaultdict(list)
    for one in {each.statement_id: each for each in statements}.values():
        found[one.fact_id].append(one)
    return found


def missing_premises(facts: ByFact) -> tuple[str, ...]:
    """Facts that others rest on, and that were not read yet."""
    named = {one.fact_id for rows in facts.values() for row in rows for one in row.premises}
    return tuple(sorted(named - facts.keys()))


def relationship(fact: Sequence[Statement], facts: ByFact, at: datetime) -> Relationship:
    """What all sources of a fact say together, as it stands at a moment."""
    said = [one for one in fact if one.span is Span.HOLDS] or list(fact)
    holding = [one for one in said if one.span is Span.HOLDS and one.holds_at(at)]
    rows = sorted(holding or said, key=lambda one: (one.confirmed_at, one.statement_id))
    # Who says it last knows what it rests on.
    last = rows[-1]
    firm = bool(holding) and _is_firm(last, facts, at, DEPTH)
    unsure = Standing.IN_DOUBT if holding else Standing.ENDED
    begun = [one.valid_from for one in rows]
    ended = [one.valid_to for one in rows]
    sources = dict.fromkeys(source for one in rows for source in one.evidence)
    quotes = dict.fromkeys(one.quote for one in reversed(rows) if one.quote)
    return Relationship(
        fact_id=last.fact_id,
        subject_id=last.subject_id,
        relation=last.relation,
        object_id=last.object_id,
        value=last.value,
        label=last.label,
        valid_from=None if None in begun else min(filter(None, begun)),
        valid_to=None if None in ended else max(filter(None, ended)),
        recorded_at=max(one.recorded_at for one in rows),
        level=last.level,
        standing=Standing.KNOWN if firm else unsure,
        premises=last.premises,
        evidence=tuple(sources)[-EVIDENCE:],
        contexts=tuple(quotes)[:CONTEXTS],
        holder_id=last.holder_id,
        target_id=last.target_id,
        intensity=last.intensity,
        verified=any(one.verified_by for one in rows),
        mentions=len(sources),
    )


def with_premises(
    dependents: Sequence[Statement], slot: Sequence[Statement], ontology: Ontology
) -> list[Statement]:
    """Those whose premise changes: what rests on a relation rests on the fact of it that held when
    it was said. One that is gone stays its premise, until another takes its place."""
    changed = []
    for one in dependents:
        relations = ontology.rests_on(one.relation, one.label)
        held = {
            row.relation: row.fact_id
            for row in sorted(slot, key=lambda row: row.confirmed_at)
            if row.span is Span.HOLDS and row.relation in relations
            if row.subject_id == one.subject_id and row.holds_at(one.confirmed_at)
        }
        kept = [premise for premise in one.premises if premise.relation not in held]
        new = (*kept, *(Premise(relation=name, fact_id=fact) for name, fact in held.items()))
        if set(new) != set(one.premises):
            changed.append(replace(one, premises=new))
    return changed


def _is_firm(one: Statement, facts: ByFact, at: datetime, depth: int) -> bool:
    return all(
        depth > 0
        and any(
            row.span is Span.HOLDS and row.holds_at(at) and _is_firm(row, facts, at, depth - 1)
            for row in facts.get(premise.fact_id, ())
        )
        for premise in one.premises
    )
