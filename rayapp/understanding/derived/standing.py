"""Whether what thoughts rest on still holds: premises that ended take them along."""

from collections.abc import Sequence
from datetime import datetime

from rayapp.core.scope import ReadScope
from rayapp.understanding.derived.records import Derived
from rayapp.understanding.statements.ports import KnowledgeStore, StatementsWanted
from rayapp.understanding.statements.records import Level, Standing
from rayapp.understanding.statements.rules.standing import (
    DEPTH,
    by_fact,
    missing_premises,
    relationship,
)


async def fallen(
    knowledge: KnowledgeStore, scope: ReadScope, rows: Sequence[Derived], at: datetime
) -> frozenset[str]:
    """Ids of rows that say outright what ended, is in doubt, or that nobody says any more."""
    said = [one for one in rows if one.level is Level.EXPLICIT and one.fact_ids]
    if not said:
        return frozenset()
    wanted = {fact for one in said for fact in one.fact_ids}
    reads = knowledge.reads(scope)
    statements = await reads.statements(StatementsWanted(fact_ids=tuple(sorted(wanted))))
    facts = by_fact(statements)
    for _ in range(DEPTH):
        missing = missing_premises(facts)
        if not missing:
            break
        more = by_fact(await reads.statements(StatementsWanted(fact_ids=missing)))
        if not more:
            break
        facts = {**facts, **more}
    known = {
        fact
        for fact in wanted & facts.keys()
        if relationship(facts[fact], facts, at).standing is Standing.KNOWN
    }
    return frozenset(one.derived_id for one in said if known.isdisjoint(one.fact_ids))
