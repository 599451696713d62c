"""The typed graph: people, events, feelings, goals and what is said of them."""

from rayapp.api.auth import KNOWLEDGE
from rayapp.api.paths import MergePart, NodePart
from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.core.errors import Conflict, NotFound
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


@routes.patch(f"{KNOWLEDGE}/nodes/{{node_id}}", summary="Rename a node", **writes(NotFound))
async def edit_node(
    call: CurrentCall, node_id: NodePart, body: wire.NodeEditBody
) -> wire.EntityAnswer:
    """What texts call it stays a name of it; names that a person gave can be taken away."""
    node = await call.services.knowledge.edit(call.writes, node_id, body.edit())
    return wire.EntityAnswer(node=wire.KnowledgeNodeView.from_entity(node))


@routes.get(f"{KNOWLEDGE}/ontology", summary="Types and relations", responses=raises(NotFound))
async def ontology(call: CurrentCall, query: InQuery[wire.OntologyQuery]) -> wire.OntologyAnswer:
    """The registry that nodes and relations are of, with their names in both languages. A tenant
    adds to it by the review, kind `ontology`; each addition makes a version."""
    found = await call.services.knowledge.registry(call.reads, query.version)
    return wire.OntologyAnswer.from_registry(found)


@routes.post(
    f"{KNOWLEDGE}/ontology/proposals", summary="Propose a type or a relation", **writes(Conflict)
)
async def propose(call: CurrentCall, body: wire.ProposalBody) -> wire.ProposalAnswer:
    """It waits in the review, kind `ontology`, beside what texts needed. With `parent` it tells
    apart things of that type; they keep their ids."""
    made = await call.services.growth.propose(call.writes, body.new())
    return wire.ProposalAnswer.from_proposal(made)


@routes.get(f"{KNOWLEDGE}/merges", summary="Merges, splits and proposals")
async def merges(call: CurrentCall, query: InQuery[wire.MergesQuery]) -> wire.MergesAnswer:
    """The latest first. A proposal changes nothing until somebody accepts it."""
    found = await call.services.merges.listed(call.reads, query.state, query.limit, query.node_id)
    return wire.MergesAnswer(merges=tuple(wire.MergeView.from_row(*one) for one in found))


@routes.post(f"{KNOWLEDGE}/merges", summary="Merge two nodes", **writes(NotFound, Conflict))
async def merge(call: CurrentCall, body: wire.MergeBody) -> wire.MergedAnswer:
    """Both of one type. It can be taken back by its id."""
    done = await call.services.merges.merge(call.writes, body.new())
    return wire.MergedAnswer.from_merged(done)


@routes.post(
    f"{KNOWLEDGE}/merges/{{merge_id}}", summary="Decide on a merge", **writes(NotFound, Conflict)
)
async def decide_merge(
    call: CurrentCall, merge_id: MergePart, body: wire.MergeDecisionBody
) -> wire.MergedAnswer:
    """Accept or decline a proposal; undo a merge, a split or a refusal."""
    done = await call.services.merges.decide(call.writes, merge_id, body.decision)
    return wire.MergedAnswer.from_merged(done)


@routes.post(f"{KNOWLEDGE}/splits", summary="Split a node", **writes(NotFound, Conflict))
async def split(call: CurrentCall, body: wire.SplitBody) -> wire.MergedAnswer:
    """What some memories say of it is said of a new node of the same name."""
    done = await call.services.merges.split(call.writes, body.new())
    return wire.MergedAnswer.from_merged(done)


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


@routes.get(f"{KNOWLEDGE}/pages", summary="Standing pages")
async def pages(call: CurrentCall, query: InQuery[wire.PagesQuery]) -> wire.PagesAnswer:
    """A page of each person, goal and organization: what is known now, with its evidence."""
    found = await call.services.pages.pages(call.reads, query.type, query.limit, query.language)
    return wire.PagesAnswer(pages=tuple(map(wire.PageView.from_page, found)))


@routes.get(
    f"{KNOWLEDGE}/pages/{{node_id}}", summary="The page of a node", responses=raises(NotFound)
)
async def page(
    call: CurrentCall, node_id: NodePart, query: InQuery[wire.PageQuery]
) -> wire.PageAnswer:
    """Also as Markdown in the Open Knowledge Format, with sources and the date of each line."""
    found = await call.services.pages.page(call.reads, node_id, query.language)
    return wire.PageAnswer(page=wire.PageView.from_page(found))
