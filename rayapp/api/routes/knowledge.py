"""The typed graph: people, events, feelings, goals and what is said of them."""

from rayapp.api.auth import KNOWLEDGE
from rayapp.api.paths import NodePart
from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.core.errors import NotFound
from rayapp.wire import knowledge as wire

routes = router("knowledge")


@routes.get(f"{KNOWLEDGE}/nodes", summary="List nodes")
async def nodes(call: CurrentCall, query: InQuery[wire.NodesQuery]) -> wire.KnowledgeNodesAnswer:
    """Those that most memories name first."""
    found = await call.services.knowledge.of_type(call.reads, query.type, query.limit)
    return wire.KnowledgeNodesAnswer(nodes=tuple(map(wire.KnowledgeNodeView.from_entity, found)))


@routes.get(f"{KNOWLEDGE}/nodes/{{node_id}}", summary="One node", responses=raises(NotFound))
async def node(call: CurrentCall, node_id: NodePart) -> wire.KnowledgeNodeAnswer:
    found, sources = await call.services.knowledge.node(call.reads, node_id)
    return wire.KnowledgeNodeAnswer(
        node=wire.KnowledgeNodeView.from_entity(found), memory_ids=sources
    )


@routes.delete(
    f"{KNOWLEDGE}/nodes/{{node_id}}", summary="Delete a node", responses=raises(NotFound)
)
async def delete_node(call: CurrentCall, node_id: NodePart) -> wire.NodeGoneAnswer:
    """With all that is said of it. It comes back when another memory names it."""
    await call.services.knowledge.delete(call.writes, node_id)
    return wire.NodeGoneAnswer(node_id=node_id)


@routes.get(
    f"{KNOWLEDGE}/nodes/{{node_id}}/relationships",
    summary="What is said of a node",
    responses=raises(NotFound),
)
async def relationships(
    call: CurrentCall, node_id: NodePart, query: InQuery[wire.NodeRelationshipsQuery]
) -> wire.RelationshipsAnswer:
    """Also what ended and what is in doubt; `standing` says so."""
    found = await call.services.knowledge.relationships(
        call.reads, node_id, query.direction, query.as_of, query.limit
    )
    return wire.RelationshipsAnswer(relationships=tuple(map(wire.LinkedView.from_linked, found)))


@routes.post(f"{KNOWLEDGE}/entity", summary="Add or vouch for a node", **writes())
async def entity(call: CurrentCall, body: wire.EntityBody) -> wire.EntityAnswer:
    """One of this type and name that is there is changed. Its other names meet from now on."""
    made = await call.services.knowledge.create(call.writes, body.new())
    return wire.EntityAnswer(node=wire.KnowledgeNodeView.from_entity(made))


@routes.post(f"{KNOWLEDGE}/relationships", summary="Link two nodes", **writes(NotFound))
async def link(call: CurrentCall, body: wire.RelationshipBody) -> wire.LinkAnswer:
    """Both ends are vouched for as well."""
    made, warning = await call.services.knowledge.link(call.writes, body.new())
    return wire.LinkAnswer(link=wire.LinkedView.from_linked(made), warning=warning)


@routes.post(f"{KNOWLEDGE}/query", summary="Ask the typed graph")
async def query(call: CurrentCall, body: wire.KnowledgeQueryBody) -> wire.KnowledgeQueryAnswer:
    """Names are found by their normal form, by the synonyms of the tables, and then by meaning.
    Nothing known any more is an answer of its own."""
    found = await call.services.knowledge.query(call.reads, body.question())
    return wire.KnowledgeQueryAnswer.from_answer(found)


@routes.get(f"{KNOWLEDGE}/snapshot", summary="The typed graph as a whole")
async def snapshot(call: CurrentCall, query: InQuery[wire.SnapshotQuery]) -> wire.SnapshotAnswer:
    """What is known at a moment, without what is in doubt."""
    found = await call.services.knowledge.snapshot(call.reads, query.as_of, query.limit)
    return wire.SnapshotAnswer.from_snapshot(found)
