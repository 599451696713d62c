"""The three graphs as people and panels look at them; references to items that are gone."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import pairwise

from rayapp.core.errors import NotFound, RayappError
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.runtime import Runtime
from rayapp.graphs.ports import GraphMode, GraphStore
from rayapp.graphs.records import (
    ActionRow,
    ConceptDefinition,
    ContentEdge,
    ContentNode,
    ContentStats,
    Example,
    GraphListing,
    GraphQuestion,
    GraphView,
    PathView,
    RoutingRow,
)
from rayapp.graphs.rules import views
from rayapp.graphs.rules.content import happened_to, shortest_path
from rayapp.graphs.rules.question import named_concept
from rayapp.memory.item import MemoryItem, point_id_of
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import ItemQuery
from rayapp.memory.rules.filtering import matches
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.search.rules.recipes import Texts
from rayapp.text.concept import Concept

log = logging.getLogger("rayapp.dead_references")


async def forget_dead(
    graphs: GraphStore, limit: int, after: str | None
) -> tuple[int, int, str | None]:
    """Look at `limit` rows from `after` on.

    Returns (dead references, rows that lost some, where to go on; None ends the round).
    """
    dead, following = await graphs.dead_references(limit, after)
    points: dict[str, list[str]] = {}
    for user_id, point_id in dead:
        points.setdefault(user_id, []).append(point_id)
    cleaned = 0
    for user_id, point_ids in points.items():
        try:
            cleaned += await graphs.forget(WriteScope(user_id), point_ids)
        except RayappError as error:
            log.warning("references of one user stay for another round: %s", error.message)
    return len(dead), cleaned, following


# Routing rows read for a picture of contents: they say how well its nodes did (our choice).
KNOWN_ROUTING = 200
# Edges read for a picture; twice what it shows, because some leave it.
PICTURE_EDGES = 2 * views.MAX_EDGES
# Action rows are per tier, nodes of a picture are not.
PICTURE_ACTIONS = views.MAX_ACTIONS * len(Tier)
# What a definition shows (client contract), and the candidates it is chosen from.
DEFINITION_EDGES = 25
DEFINITION_MEMORIES = 10
DEFINITION_CANDIDATES = 40
DEFINITION_ACTIONS = 200
# Reads of edges for a path: with both ends searched at once, paths of at most 6 edges. The two
# other reads of the five that a call has are for the names and for the nodes on the way.
PATH_READS = 3
# Per read; a user has 20,000 edges at most (`graph.max_edges`).
PATH_EDGES = 5_000
PATH_FRONTIER = 2_000
# Patterns are read by score and shown by Wilson: more are read than shown.
PATTERNS_READ = 200
# A definition by name asks for no context: actions are asked for by their own ids.
NO_CONTEXT = ""

Contents = tuple[list[ContentNode], list[ContentEdge]]


@dataclass(eq=False)
class GraphsService:
    """Reads of the three graphs; at most five reads of the truth per call."""

    graphs: GraphStore
    items: MemoryStore
    _: KW_ONLY
    texts: Texts
    runtime: Runtime

    async def picture(self, scope: ReadScope, mode: GraphMode) -> GraphView:
        if mode == "routing":
            return views.graph_view(routing=await self.concepts(scope, views.MAX_ROUTING))
        known, contents, actions = await asyncio.gather(
            self.graphs.top_routing(scope, KNOWN_ROUTING),
            self._contents(scope),
            self._picture_actions(scope, mode),
        )
        return _picture(mode, known, contents, actions)

    async def catalogue(self) -> GraphView:
        """The shared tenant holds nothing but the catalogue, so its whole graph may be shown."""
        nodes, edges = await self._contents(ReadScope(SYSTEM_USER))
        return views.graph_view(nodes=nodes, edges=edges)

    async def listing(
        self, scope: ReadScope, mode: GraphMode, *, concepts: int, actions: int
    ) -> GraphListing:
        """The picture is made of the listed rows, so that no collection is read twice."""
        known, contents, used = await asyncio.gather(
            self.graphs.top_routing(scope, max(concepts, KNOWN_ROUTING)),
            self._contents(scope, wanted=mode != "routing"),
            self.graphs.actions(scope, context_type=None, limit=max(actions, PICTURE_ACTIONS)),
        )
        return GraphListing(
            concepts=tuple(known[:concepts]),
            picture=_picture(mode, known[:KNOWN_ROUTING], contents, used[:PICTURE_ACTIONS]),
            actions=tuple(used[:actions]),
        )

    async def concepts(self, scope: ReadScope, limit: int) -> tuple[RoutingRow, ...]:
        return tuple(await self.graphs.top_routing(scope, limit))

    async def actions(
        self, scope: ReadScope, *, context_type: str | None, limit: int
    ) -> tuple[ActionRow, ...]:
        return tuple(await self.graphs.actions(scope, context_type=context_type, limit=limit))

    async def definition(self, scope: ReadScope, concept_id: str) -> ConceptDefinition:
        """A name may be a key, an id of a picture, or a label; the first that is known counts."""
        named = named_concept(concept_id, self.texts.expansions)
        if named.action is not None:
            found = await self._action_definition(scope, *named.action)
            if found is not None:
                return found
        question = GraphQuestion(concepts=named.keys, context_type=NO_CONTEXT)
        priors = await self.graphs.priors(scope, question)
        routing = {row.concept: row for row in priors.routing}
        nodes = {node.node_id: node for node in priors.nodes}
        key = next((key for key in named.keys if key in routing or key in nodes), None)
        if key is None:
            raise NotFound(
                "No graph knows this concept: take an id or a label from the graph's nodes."
            )
        return await self._definition(scope, key, routing.get(key), nodes.get(key))

    async def path(self, scope: ReadScope, source: str, target: str) -> PathView:
        """Shortest while no read is cut; none is found beyond six edges."""
        names = [named_concept(name, self.texts.expansions).keys for name in (source, target)]
        known = await self._nodes(scope, [key for keys in names for key in keys])
        ends = [next((key for key in keys if key in known), None) for keys in names]
        if ends[0] is None or ends[1] is None:
            return PathView(nodes=(), edges=())
        reach = views.BidirectionalSearch(ends[0], ends[1])
        for _ in range(PATH_READS):
            if reach.met or not reach.frontier:
                break
            edges = await self.graphs.edges_of(scope, reach.frontier, PATH_EDGES)
            reach.step(edges, PATH_FRONTIER)
        corridor = reach.corridor()
        keys = shortest_path(corridor, ends[0], ends[1])
        missing = [key for key in keys if key not in known]
        if missing:
            known |= await self._nodes(scope, missing)
        if not keys or any(key not in known for key in keys):
            return PathView(nodes=(), edges=())  # a node went away between two reads
        return PathView(nodes=tuple(known[key] for key in keys), edges=_edges_on(keys, corridor))

    async def stats(self, scope: ReadScope) -> ContentStats:
        return await self.graphs.stats(scope)

    async def backfill(self, scope: WriteScope, limit: int, *, dry_run: bool) -> int:
        """Ask for items to be looked at again, how many; the outbox adds them to the graph later.

        So no node or edge has been touched when this answers.
        """
        return await self.graphs.ask_follow_up(scope, limit, dry_run=dry_run)

    async def patterns(self, scope: ReadScope, limit: int) -> tuple[MemoryItem, ...]:
        """Active patterns by Wilson score, best first."""
        where = ItemFilter(tiers=(Tier.PATTERNS,), now=self.runtime.clock.now())
        query = ItemQuery(sort="score", limit=max(limit, PATTERNS_READ))
        page = await self.items.page(scope, where, query)
        best = sorted(
            page.items,
            key=lambda one: (one.stats.wilson_score, one.stats.uses, one.memory_id),
            reverse=True,
        )
        return tuple(best[: max(0, limit)])

    async def _contents(self, scope: ReadScope, *, wanted: bool = True) -> Contents:
        nodes = await self.graphs.top_nodes(scope, views.MAX_CONTENT) if wanted else []
        if not nodes:
            return [], []
        ids = [node.node_id for node in nodes]
        return nodes, await self.graphs.edges_of(scope, ids, PICTURE_EDGES)

    async def _picture_actions(self, scope: ReadScope, mode: GraphMode) -> list[ActionRow]:
        if mode != "both":
            return []
        return await self.graphs.actions(scope, context_type=None, limit=PICTURE_ACTIONS)

    async def _nodes(self, scope: ReadScope, keys: Sequence[str]) -> dict[str, ContentNode]:
        return {node.node_id: node for node in await self.graphs.nodes(scope, keys)}

    async def _action_definition(
        self, scope: ReadScope, context_type: str, action: str
    ) -> ConceptDefinition | None:
        rows = await self.graphs.actions(scope, context_type=context_type, limit=DEFINITION_ACTIONS)
        rows = [row for row in rows if row.action == action]
        if not rows:
            return None
        return ConceptDefinition(
            concept=Concept(key=f"{context_type}_{action}", label=f"{action}@{context_type}"),
            routing=None,
            node=None,
            actions=tuple(rows),
            edges=(),
            memories=await self._memories(scope, (), views.examples_of(rows)),
        )

    async def _definition(
        self, scope: ReadScope, key: str, routing: RoutingRow | None, node: ContentNode | None
    ) -> ConceptDefinition:
        held = node.memory_ids if node else ()
        held_points = [point_id_of(scope.user_id, memory_id) for memory_id in held]
        examples = views.examples_of([routing] if routing else [])
        (edges, neighbours), memories = await asyncio.gather(
            self._around(scope, node), self._memories(scope, held_points, examples)
        )
        return ConceptDefinition(
            concept=_concept(key, routing, node),
            routing=routing,
            node=node,
            actions=(),
            edges=tuple(edges),
            memories=memories,
            neighbours=tuple(neighbours),
        )

    async def _around(
        self, scope: ReadScope, node: ContentNode | None
    ) -> tuple[list[ContentEdge], list[ContentNode]]:
        """The heaviest edges of a node, and the nodes at their other ends."""
        if node is None:
            return [], []
        edges = await self.graphs.edges_of(scope, [node.node_id], DEFINITION_EDGES)
        ends = {end for edge in edges for end in (edge.source, edge.target)} - {node.node_id}
        return edges, await self.graphs.nodes(scope, sorted(ends)) if ends else []

    async def _memories(
        self, scope: ReadScope, held: Sequence[str], examples: Sequence[Example]
    ) -> tuple[MemoryItem, ...]:
        """Active memories that hold the concept or were judged with it, changed last first."""
        # The newest example of an id tells whether its present memory was judged.
        judged = {example.point_id: example.at for example in reversed(examples)}
        newest_first = [example.point_id for example in examples]
        wanted = list(dict.fromkeys([*held, *newest_first]))[:DEFINITION_CANDIDATES]
        if not wanted:
            return ()
        living = partial(matches, where=ItemFilter(now=self.runtime.clock.now()))
        found = [
            item
            for item in await self.items.by_points(scope, wanted)
            if living(item) and (item.point_id in held or happened_to(item, judged[item.point_id]))
        ]
        found.sort(key=lambda item: (item.updated_at, item.memory_id), reverse=True)
        return tuple(found[:DEFINITION_MEMORIES])


def _picture(
    mode: GraphMode, known: Sequence[RoutingRow], contents: Contents, actions: Sequence[ActionRow]
) -> GraphView:
    nodes, edges = contents
    return views.graph_view(
        routing=known[: views.MAX_ROUTING] if mode != "content" else (),
        known=known,
        nodes=nodes,
        edges=edges,
        actions=actions if mode == "both" else (),
    )


def _concept(key: str, routing: RoutingRow | None, node: ContentNode | None) -> Concept:
    if node is not None:
        return Concept(key=key, label=node.label, type=node.type)
    return Concept(key=key, label=routing.label if routing else key)


def _edges_on(keys: Sequence[str], edges: Iterable[ContentEdge]) -> tuple[ContentEdge, ...]:
    """The heaviest edge of each step."""
    steps = [tuple(sorted(step)) for step in pairwise(keys)]
    best: dict[tuple[str, ...], ContentEdge] = {}
    for edge in edges:
        ends = tuple(sorted((edge.source, edge.target)))
        if ends not in best or edge.weight > best[ends].weight:
            best[ends] = edge
    return tuple(best[step] for step in steps)
