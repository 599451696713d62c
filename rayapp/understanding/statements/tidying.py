"""Takes away what nothing stands behind: statements without their source, nodes that nothing names.

A change keeps them together, so there are none but by a restored backup or a bug.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rayapp.core.scope import WriteScope
from rayapp.understanding.statements.growth import GrowthService
from rayapp.understanding.statements.ports import KnowledgeRows, KnowledgeStore, StatementsWanted
from rayapp.understanding.statements.resolving import Resolver
from rayapp.understanding.statements.rules.registry import Ontology
from rayapp.understanding.statements.settlement import settle_slots

# Looked at in one change.
MOST_ROWS = 20_000


@dataclass(eq=False)
class Tidying:
    """What is done of a user when all of their memories were understood."""

    store: KnowledgeStore
    resolver: Resolver
    growth: GrowthService
    ontology: Ontology

    async def look(self, user_id: str) -> Mapping[str, int]:
        """What went, and which nodes may be one, by name."""
        orphans = await self.store.change(WriteScope(user_id), self._orphans)
        found = await self.resolver.look(user_id)
        named = await self.growth.look(user_id)
        counts = Counter(merged=found.merged, proposed=found.proposed, orphans=orphans, named=named)
        return {name: count for name, count in counts.items() if count}

    async def _orphans(self, rows: KnowledgeRows) -> int:
        said = await rows.statements(StatementsWanted(), MOST_ROWS)
        sources = sorted({one.source_id for one in said if one.source_id is not None})
        there = await rows.gave(sources)
        gone = [one for one in said if one.source_id is not None and one.source_id not in there]
        if gone:
            await rows.delete_statements([one.statement_id for one in gone])
            await settle_slots(rows, [], gone, self.ontology)
        nodes = await rows.unnamed(MOST_ROWS)
        roots = {one.root_id for one in await rows.parts([one.entity_id for one in nodes])}
        dead = [one.entity_id for one in nodes if one.entity_id not in roots]
        await rows.delete_entities(dead)
        return len(gone) + len(dead)
