"""Standing pages of people and goals, made by rule from what is known now."""

from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.core.runtime import Clock
from rayapp.core.scope import ReadScope
from rayapp.understanding.statements.knowledge import KnowledgeService
from rayapp.understanding.statements.ports import KnowledgeStore, StatementsWanted
from rayapp.understanding.statements.records import Entity, Standing
from rayapp.understanding.statements.requests import Linked
from rayapp.understanding.statements.rules.pages import Page, page_of
from rayapp.understanding.statements.rules.registry import EVENT
from rayapp.understanding.statements.rules.standing import by_fact

# Types that have a page of their own, and lines of one.
PAGE_TYPES = ("Person", "Goal", "Organization")
MOST_FACETS = 200


@dataclass(eq=False)
class PagesService:
    """Reads alone: a page is as new as the graph."""

    store: KnowledgeStore
    knowledge: KnowledgeService
    clock: Clock

    async def page(self, scope: ReadScope, node_id: str, language: str) -> Page:
        """Raises NotFound."""
        node, _ = await self.knowledge.node(scope, node_id)
        return await self._page(scope, node, language)

    async def pages(
        self, scope: ReadScope, type_: str | None, limit: int, language: str
    ) -> list[Page]:
        """Of the nodes that most memories name. Raises InvalidInput: no such type."""
        nodes: Sequence[Entity] = await self.knowledge.of_type(scope, type_, limit)
        if type_ is None:
            nodes = [one for one in nodes if one.type in PAGE_TYPES]
        return [await self._page(scope, one, language) for one in nodes]

    async def _page(self, scope: ReadScope, node: Entity, language: str) -> Page:
        links = await self.knowledge.relationships(scope, node.entity_id, "both", None, MOST_FACETS)
        known = [one for one in links if _stands(one)]
        facts = tuple(one.relationship.fact_id for one in known)
        said = await self.store.reads(scope).statements(StatementsWanted(fact_ids=facts))
        ontology = await self.knowledge.ontology(scope)
        return page_of(node, known, by_fact(said), ontology, language, self.clock.now())


def _stands(one: Linked) -> bool:
    """Whether it is known now, and no moment that is over."""
    moment = EVENT in (one.source.type, one.target.type if one.target else None)
    return one.relationship.standing is Standing.KNOWN and not moment
