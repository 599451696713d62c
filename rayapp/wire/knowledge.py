"""The typed graph over HTTP: nodes, what is said of them, questions, and what a person adds."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field

from rayapp.understanding.statements.records import (
    Entity,
    Level,
    Merge,
    MergeKind,
    MergeState,
    Premise,
    Standing,
)
from rayapp.understanding.statements.requests import (
    Direction,
    Knowing,
    KnowledgeAnswer,
    KnowledgeQuestion,
    Linked,
    Merged,
    MergeDecision,
    MergePreview,
    NewLink,
    NewMerge,
    NewNode,
    NewSplit,
    NodeEdit,
    NodeEnd,
    Snapshot,
)
from rayapp.understanding.statements.rules.additions import (
    AddedKind,
    NewProposal,
    Proposal,
    TenantRegistry,
)
from rayapp.understanding.statements.rules.pages import Page, Trend, markdown
from rayapp.wire import bases

MAX_NODES = 1_000
MAX_PAGES = 50
MAX_SYNONYMS, MAX_ATTRIBUTES, MAX_WORDS = 20, 20, 200

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


class NodeEditBody(bases.Strict):
    """What a person changes of a node; what is left out stays."""

    name: NodeName | None = bases.optional("How it is called.")
    synonyms: tuple[NodeName, ...] | None = bases.optional(
        "All its other names; one that is left out goes.", max_length=MAX_SYNONYMS
    )
    attributes: dict[NodeName, NodeName] | None = bases.optional(
        "All its attributes.", max_length=MAX_ATTRIBUTES
    )

    def edit(self) -> NodeEdit:
        return NodeEdit(name=self.name, synonyms=self.synonyms, attributes=self.attributes)


class MergeBody(bases.Strict, bases.Keyed):
    """Two nodes that are one."""

    kept_id: bases.Name = Field(description="The node that stays.")
    gone_id: bases.Name = Field(description="The node that becomes a part of it.")
    dry_run: bases.Flag = Field(False, description="Only tell what it would do.")

    def new(self) -> NewMerge:
        return NewMerge(kept_id=self.kept_id, gone_id=self.gone_id, dry_run=self.dry_run)


class SplitBody(bases.Strict, bases.Keyed):
    """Memories that mean another node than the one that they were taken for."""

    node_id: bases.Name = Field(description="The node that is two.")
    memory_ids: tuple[bases.Name, ...] = Field(
        min_length=1, max_length=bases.MAX_FILTER_VALUES, description="Those of the other one."
    )
    dry_run: bases.Flag = Field(False, description="Only tell what it would do.")

    def new(self) -> NewSplit:
        memory_ids = tuple(dict.fromkeys(self.memory_ids))
        return NewSplit(node_id=self.node_id, memory_ids=memory_ids, dry_run=self.dry_run)


class MergeDecisionBody(bases.Strict):
    """What is decided of a merge."""

    decision: MergeDecision = Field(
        description="`accept` or `decline` what is proposed, or `undo` what was decided."
    )


class MergesQuery(bases.Lenient):
    """Which merges."""

    state: MergeState | None = bases.optional("Only those; `pending` are proposals.")
    node_id: bases.Name | None = bases.optional("Only those of this node and its parts.")
    limit: int = Field(50, ge=1, le=bases.MAX_PAGE, description=FOUND)


class PageQuery(bases.Lenient):
    """How a page is written."""

    language: Literal["en", "he"] = Field("en", description="Of the relations; names stay.")


class PagesQuery(PageQuery):
    """Which pages."""

    type: TypeName | None = bases.optional("Only of this type; people, goals and organizations.")
    limit: int = Field(20, ge=1, le=MAX_PAGES, description="Nodes named most, at most so many.")


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


class TypeView(bases.Answer):
    """A type of nodes, and what people call it."""

    name: str
    en: str
    he: str


class RelationView(bases.Answer):
    """A relation: between which types it holds (any, where none is named), and how it reads.

    `functional`: a node has one at a time, so a newer one ends the older. `rests_on`: it is in
    doubt when the node's own relation of that name ends.
    """

    name: str
    en: str
    he: str
    is_a: str | None
    source: tuple[str, ...]
    target: tuple[str, ...]
    functional: bool
    symmetric: bool
    inverse: str | None
    rests_on: tuple[str, ...]


class AdditionView(bases.Answer):
    """A type or a relation that the tenant has added.

    `words`: labels that mean it, or, of one with a `parent`, names of its things; `since`: the
    version that brought it.
    """

    kind: AddedKind
    name: str
    en: str
    he: str
    words: tuple[str, ...]
    since: int
    parent: str | None


class OntologyQuery(bases.Lenient):
    """Which version."""

    version: int | None = bases.optional("An earlier one; the latest by default.", ge=1)


class OntologyAnswer(bases.Success):
    """The registry of types and relations. `added`: what the tenant has beside the shipped ones;
    `made_at`, `made_by`: of this version, none of the shipped one."""

    version: int
    types: tuple[TypeView, ...]
    relations: tuple[RelationView, ...]
    added: tuple[AdditionView, ...]
    made_at: bases.UtcTime | None
    made_by: str | None

    @classmethod
    def from_registry(cls, found: TenantRegistry) -> Self:
        one, row = found.ontology, found.row
        return cls(
            version=one.version,
            added=() if row is None else tuple(map(AdditionView.of, row.additions)),
            made_at=None if row is None else row.at,
            made_by=None if row is None else row.by,
            types=tuple(
                TypeView(name=name, en=row.en, he=row.he) for name, row in one.types.items()
            ),
            relations=tuple(
                RelationView(
                    name=name, **row.model_dump(include=set(RelationView.model_fields) - {"name"})
                )
                for name, row in one.relations.items()
            ),
        )


class ProposalBody(bases.Strict, bases.Keyed):
    """What the registry is to have."""

    kind: AddedKind = Field(description="A type of nodes, or a relation.")
    name: TypeName = Field(description="What it is called, in a word or two.")
    words: Annotated[tuple[TypeName, ...], Field(min_length=1, max_length=MAX_WORDS)] = Field(
        description="Labels that mean it; with `parent`, names of the things that are of it."
    )
    parent: TypeName | None = bases.optional("The type that it is a narrower one of.")

    def new(self) -> NewProposal:
        return NewProposal(kind=self.kind, name=self.name, words=self.words, parent=self.parent)


class ProposalAnswer(bases.Written):
    """What waits now. `id`: of the review; `name`: what the registry will call it."""

    id: str
    kind: AddedKind
    name: str

    @classmethod
    def from_proposal(cls, one: Proposal) -> Self:
        return cls(id=one.proposal_id, kind=one.kind, name=one.name)


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


class MergeView(bases.Answer):
    """A merge or a split, and how far it is.

    `score`, `reasons`: of what looked alike. `decided_by`: `resolver` where the names and the
    company were sure. `can_undo`: something was decided that can be taken back.
    """

    id: str
    kind: MergeKind
    state: MergeState
    kept: KnowledgeNodeView
    gone: KnowledgeNodeView
    score: float | None
    reasons: tuple[str, ...]
    created_at: bases.UtcTime
    decided_at: bases.UtcTime | None
    decided_by: str | None
    can_undo: bool

    @classmethod
    def from_row(cls, row: Merge, pair: MergePreview) -> Self:
        return cls(
            id=row.merge_id,
            kind=row.kind,
            state=row.state,
            kept=KnowledgeNodeView.from_entity(pair.kept),
            gone=KnowledgeNodeView.from_entity(pair.gone),
            score=row.score,
            reasons=row.reasons,
            created_at=row.created_at,
            decided_at=row.decided_at,
            decided_by=row.decided_by,
            can_undo=row.can_undo,
        )


class MergesAnswer(bases.Success):
    """The ledger, the latest first."""

    merges: tuple[MergeView, ...]


class MergedAnswer(bases.Written):
    """What it did, or would do where `dry_run` is true.

    `node`: the one that stays, with all that is a part of it; `moved`: statements that read
    otherwise; `ended`: relations that held and end, since the one node has a later value.
    """

    merge: MergeView
    node: KnowledgeNodeView
    moved: int
    ended: tuple[str, ...]
    dry_run: bool

    @classmethod
    def from_merged(cls, one: Merged) -> Self:
        return cls(
            merge=MergeView.from_row(one.merge, one.pair),
            node=KnowledgeNodeView.from_entity(one.node),
            moved=one.moved,
            ended=one.ended,
            dry_run=one.dry_run,
        )


class FacetView(bases.Answer):
    """One line of a page: what is known, which memories say it, and since when.

    `checked_on`: when a memory last said it; `trend`: how often it is said lately.
    """

    id: str = bases.path("fact_id", alias="id")
    type: str = bases.path("relation", alias="type")
    text: str
    memory_ids: tuple[str, ...]
    since: bases.UtcTime | None
    checked_on: bases.UtcTime
    trend: Trend
    verified: bool


class PageView(bases.Answer):
    """What is known of a node. `markdown`: the page in the Open Knowledge Format."""

    node: KnowledgeNodeView
    facets: tuple[FacetView, ...]
    checked_on: bases.UtcTime
    markdown: str

    @classmethod
    def from_page(cls, page: Page) -> Self:
        return cls(
            node=KnowledgeNodeView.from_entity(page.node),
            facets=tuple(FacetView.of(one) for one in page.facets),
            checked_on=page.checked_on,
            markdown=markdown(page),
        )


class PageAnswer(bases.Success):
    """One page."""

    page: PageView


class PagesAnswer(bases.Success):
    """Pages."""

    pages: tuple[PageView, ...]
