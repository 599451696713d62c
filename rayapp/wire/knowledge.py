"""The typed graph over HTTP: nodes, what is said of them, questions, and what a person adds."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field

from rayapp.understanding.statements.records import Entity, Level, Premise, Standing
from rayapp.understanding.statements.requests import (
    Direction,
    Knowing,
    KnowledgeAnswer,
    KnowledgeQuestion,
    Linked,
    NewLink,
    NewNode,
    NodeEnd,
    Snapshot,
)
from rayapp.wire import bases

MAX_NODES = 1_000
MAX_SYNONYMS, MAX_ATTRIBUTES = 20, 20

TypeName = Annotated[str, Field(min_length=1, max_length=40)]
NodeName = Annotated[str, Field(min_length=1, max_length=200)]
FOUND = "At most so many."


def _names(value: object) -> object:
    """Entities of a memory keep names with counts; a list of names is shown."""
    return tuple(getattr(one, "name", one) for one in value) if isinstance(value, tuple) else value


def _facts(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    return tuple(one.fact_id if isinstance(one, Premise) else one for one in value)


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
FactIds = Annotated[tuple[str, ...], BeforeValidator(_facts)]


class NodesQuery(bases.Lenient):
    """Which nodes."""

    type: TypeName | None = bases.optional("Only this type of the registry.")
    limit: int = Field(50, ge=1, le=bases.MAX_PAGE, description=FOUND)


class NodeRelationshipsQuery(bases.Lenient):
    """Which relations of a node."""

    direction: Direction = Field("both", description="From the node, to it, or both.")
    as_of: bases.UtcTime | None = bases.optional("As it stood then; now by default.")
    limit: int = Field(50, ge=1, le=bases.MAX_PAGE, description=FOUND)


class SnapshotQuery(bases.Lenient):
    """How much of the graph."""

    as_of: bases.UtcTime | None = bases.optional("As it stood then; now by default.")
    limit: int = Field(200, ge=1, le=MAX_NODES, description="Nodes, those named most first.")


class EntityBody(bases.Strict, bases.Keyed):
    """A node that a person vouches for: it outlives the memories that name it."""

    type: TypeName = Field(description="A type of the registry, such as Person.")
    name: NodeName
    synonyms: tuple[NodeName, ...] = Field(
        (), max_length=MAX_SYNONYMS, description="Other names of it, in any language."
    )
    attributes: dict[NodeName, NodeName] = Field(
        default_factory=dict, max_length=MAX_ATTRIBUTES, description="Anything else to keep."
    )

    def new(self) -> NewNode:
        return NewNode(
            type=self.type, name=self.name, synonyms=self.synonyms, attributes=dict(self.attributes)
        )


class RelationshipBody(bases.Strict, bases.Keyed):
    """A relation between two nodes that a person vouches for."""

    from_id: bases.Name = Field(description="The node that it is said of.")
    type: TypeName = Field(
        description="A relation of the registry; another one is kept as RELATED_TO with this label."
    )
    to_id: bases.Name = Field(description="The other node.")
    valid_from: bases.UtcTime | None = bases.optional("Since when; from now on by default.")

    def new(self) -> NewLink:
        return NewLink(
            from_id=self.from_id, relation=self.type, to_id=self.to_id, valid_from=self.valid_from
        )


class EndBody(bases.Strict):
    """Which nodes may stand at an end; without anything, any."""

    type: TypeName | None = bases.optional("A type of the registry.")
    name: NodeName | None = bases.optional("A name, a role of the user's (`boss`), or `I`.")
    node_id: bases.Name | None = bases.optional("One node.")

    def end(self) -> NodeEnd:
        return NodeEnd(type=self.type, name=self.name, node_id=self.node_id)


ANY_END = EndBody()


class KnowledgeQueryBody(bases.Strict):
    """A typed question: "every moment I felt proud" is from an Event by FELT to an Emotion."""

    source: EndBody = Field(ANY_END, description="Of what it is said.")
    relation: TypeName | None = bases.optional("A relation of the registry, with those under it.")
    target: EndBody = Field(ANY_END, description="What is said of it.")
    label: NodeName | None = bases.optional("Of HAS: which detail; of RELATED_TO: its label.")
    holder: EndBody = Field(ANY_END, description="Of FELT: who feels it.")
    perspective_owner_id: bases.Name | None = bases.optional("Only what this person told.")
    as_of: bases.UtcTime | None = bases.optional("As it stood then; now by default.")
    include_past: bases.Flag = Field(
        False, description="Also what ended, and what is in doubt because what it rested on ended."
    )
    fallback: bases.Flag = Field(
        True, description="A name that no node has is looked for by meaning."
    )
    limit: int = Field(50, ge=1, le=bases.MAX_PAGE, strict=True, description=FOUND)

    def question(self) -> KnowledgeQuestion:
        return KnowledgeQuestion(
            source=self.source.end(),
            relation=self.relation,
            target=self.target.end(),
            label=self.label,
            holder=self.holder.end(),
            perspective=self.perspective_owner_id,
            as_of=self.as_of,
            past=self.include_past,
            fallback=self.fallback,
            limit=self.limit,
        )


class KnowledgeNodeView(bases.Answer):
    """A node. `mentions`: memories that name it; `verified`: a person vouches for it."""

    id: str = bases.path("entity_id", alias="id")
    type: str
    name: str
    names: Names
    synonyms: tuple[str, ...]
    attributes: dict[str, str]
    mentions: int
    verified: bool
    first_seen_at: bases.UtcTime
    last_seen_at: bases.UtcTime

    @classmethod
    def from_entity(cls, entity: Entity) -> Self:
        return cls.of(entity)


class RelationshipView(bases.Answer):
    """What is said of a node, by all memories that say it.

    `standing`: `in_doubt` where what it rests on (`premises`) does not hold any more. `value`: of
    a detail, which has no other node. `holder_id`: who feels it; `target_id`: about whom.
    """

    id: str = bases.path("fact_id", alias="id")
    from_id: str = bases.path("subject_id", alias="from_id")
    type: str = bases.path("relation", alias="type")
    to_id: str | None = bases.path("object_id", alias="to_id")
    label: str | None
    value: str | None
    standing: Standing
    level: Level
    valid_from: bases.UtcTime | None
    valid_to: bases.UtcTime | None
    recorded_at: bases.UtcTime
    holder_id: str | None
    target_id: str | None
    intensity: str | None
    premises: FactIds
    contexts: tuple[str, ...]
    mentions: int
    verified: bool
    memory_ids: tuple[str, ...] = bases.path("evidence", alias="memory_ids")


class LinkedView(bases.Answer):
    """A relation with its ends; of a detail there is no `target`."""

    relationship: RelationshipView
    source: KnowledgeNodeView
    target: KnowledgeNodeView | None

    @classmethod
    def from_linked(cls, one: Linked) -> Self:
        return cls.of(one)


class KnowledgeNodesAnswer(bases.Success):
    """Nodes."""

    nodes: tuple[KnowledgeNodeView, ...]


class KnowledgeNodeAnswer(bases.Success):
    """One node, and the latest memories that speak of it."""

    node: KnowledgeNodeView
    memory_ids: tuple[str, ...]


class EntityAnswer(bases.Written):
    """The node as it is now."""

    node: KnowledgeNodeView


class NodeGoneAnswer(bases.Success):
    """The node that went, with all that was said of it."""

    node_id: str


class LinkAnswer(bases.Written):
    """The relation as it stands. `warning`: the registry does not have it."""

    link: LinkedView
    warning: str | None


class RelationshipsAnswer(bases.Success):
    """Relations, the latest first."""

    relationships: tuple[LinkedView, ...]


class KnowledgeQueryAnswer(bases.Success):
    """What a question finds.

    `knowing`: `no_longer_known` where something was known that ended or is in doubt. `nearest`: the
    names by which a name was understood that no node has.
    """

    knowing: Knowing
    found: tuple[LinkedView, ...]
    nearest: tuple[str, ...]

    @classmethod
    def from_answer(cls, one: KnowledgeAnswer) -> Self:
        return cls.of(one)


class SnapshotAnswer(bases.Success):
    """The graph as nodes and the links among them."""

    nodes: tuple[KnowledgeNodeView, ...]
    links: tuple[RelationshipView, ...]

    @classmethod
    def from_snapshot(cls, one: Snapshot) -> Self:
        return cls.of(one)
