"""Looks for nodes that may be one: what is sure is merged, the rest is proposed."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from rayapp.core.errors import Conflict, NotFound
from rayapp.core.runtime import Clock
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.understanding.statements.merging import MOST_MERGES, RESOLVER, MergeService
from rayapp.understanding.statements.ports import KnowledgeRows, KnowledgeStore, StatementsWanted
from rayapp.understanding.statements.records import Entity, Merge
from rayapp.understanding.statements.requests import NewMerge
from rayapp.understanding.statements.rules.alike import Alike, alike, told_of
from rayapp.understanding.statements.rules.identity import names_node, whole
from rayapp.understanding.statements.rules.registry import PERSON, Ontology
from rayapp.understanding.statements.settlement import with_parts

log = logging.getLogger("rayapp.understanding")
# Types whose nodes are named by proper names, and nodes of a type that are compared.
RESOLVED_TYPES = (PERSON, "Organization", "Place")
COMPARED = 300


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a look did."""

    merged: int = 0
    proposed: int = 0


@dataclass(eq=False)
class Resolver:
    """One user at a time."""

    store: KnowledgeStore
    merges: MergeService
    ontology: Ontology
    clock: Clock

    async def look(self, user_id: str, new_ids: Sequence[str] | None = None) -> Resolved:
        """Compare nodes with all others of their type. `new_ids`: these alone with the others.

        What a person has decided on, also against it, is not decided again.
        """
        scope = ReadScope(user_id)
        reads, new = self.store.reads(scope), None if new_ids is None else frozenset(new_ids)
        found: list[tuple[Merge, Alike]] = []
        seen = {one.merge_id for one in await reads.merges(None, MOST_MERGES)}
        for type_ in RESOLVED_TYPES:
            nodes = [one for one in await reads.of_type(type_, COMPARED) if names_node(one)]
            if len(nodes) < 2 or not (new_ids is None or _any_of(nodes, new_ids)):
                continue
            wholes = [whole(*one) for one in (await with_parts(reads, nodes)).values()]
            ids = tuple(one.entity_id for one in wholes)
            told = told_of(wholes, await reads.statements(StatementsWanted(touching=ids)))
            degrees = Counter(
                end for one in told for row in one.statements
                for end in {row.subject_id, row.object_id} if end is not None
            )  # fmt: skip
            for one, other in combinations(told, 2):
                pair = (one.node.entity_id, other.node.entity_id)
                if new is not None and new.isdisjoint(pair):
                    continue
                like = alike(one, other, degrees, self.ontology)
                if like is None:
                    continue
                row = self.merges.row_of(user_id, *_kept_first(one.node, other.node))
                if row.merge_id not in seen:
                    found.append((row, like))
        return await self._settle(user_id, found)

    async def _settle(self, user_id: str, found: Sequence[tuple[Merge, Alike]]) -> Resolved:
        scope, merged = WriteScope(user_id), 0
        # Who looks like two others may be either: nobody is sure of that.
        counts = Counter(node for row, _ in found for node in (row.kept_id, row.gone_id))
        pending = []
        for row, like in found:
            alone = max(counts[row.kept_id], counts[row.gone_id]) == 1
            if like.sure and alone:
                new = NewMerge(kept_id=row.kept_id, gone_id=row.gone_id, by=RESOLVER)
                try:
                    await self.merges.merge(scope, new)
                    merged += 1
                except (Conflict, NotFound):  # somebody changed them meanwhile
                    log.info("two nodes that look alike are not there any more")
                continue
            score = round(like.score, 3)
            pending.append(replace(row, score=score, reasons=like.reasons))

        async def work(rows: KnowledgeRows) -> int:
            new = [one for one in pending if await rows.merge(one.merge_id) is None]
            await rows.put_merges(new)
            return len(new)

        proposed = await self.store.change(scope, work) if pending else 0
        return Resolved(merged, proposed)


def _any_of(nodes: Sequence[Entity], ids: Sequence[str]) -> bool:
    return any(one.entity_id in ids for one in nodes)


def _kept_first(one: Entity, other: Entity) -> tuple[str, str]:
    """The one that a person made or that more texts name is kept."""
    first, second = sorted(
        (one, other), key=lambda each: (not each.verified, -each.mentions, each.entity_id)
    )
    return first.entity_id, second.entity_id
