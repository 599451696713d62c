"""What is asked of the typed graph, and what it answers."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from rayapp.understanding.statements.records import Entity, Merge, Relationship

Direction = Literal["outgoing", "incoming", "both"]


class Knowing(StrEnum):
    """What is known of a question. NO_LONGER: it was, and it ended or is in doubt."""

    KNOWN = "known"
    NO_LONGER = "no_longer_known"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEnd:
    """Which nodes may stand at an end; nothing named: any."""

    type: str | None = None
    name: str | None = None
    node_id: str | None = None

    @property
    def is_named(self) -> bool:
        return self.name is not None or self.node_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeQuestion:
    """A typed question.

    Attributes:
        label: of HAS, which detail; of RELATED_TO, what the text calls it.
        holder: who feels it.
        past: also what ended or is in doubt.
        fallback: a name that no node has is looked for by meaning.
    """

    source: NodeEnd = NodeEnd()
    relation: str | None = None
    target: NodeEnd = NodeEnd()
    label: str | None = None
    holder: NodeEnd = NodeEnd()
    perspective: str | None = None
    as_of: datetime | None = None
    past: bool = False
    fallback: bool = True
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Linked:
    """A relationship with its ends; of a value there is no target."""

    relationship: Relationship
    source: Entity
    target: Entity | None


@dataclass(frozen=True, slots=True)
class KnowledgeAnswer:
    """`nearest`: the names by which a name that nothing has was understood."""

    knowing: Knowing
    found: tuple[Linked, ...]
    nearest: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNode:
    """A node that a person makes."""

    type: str
    name: str
    synonyms: tuple[str, ...] = ()
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLink:
    """A relation that a person makes; one that the registry lacks is kept as its label."""

    from_id: str
    relation: str
    to_id: str
    valid_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Nodes, and the links among them."""

    nodes: tuple[Entity, ...]
    links: tuple[Relationship, ...]


class MergeDecision(StrEnum):
    """What is decided of a merge. UNDO: of what was decided before."""

    ACCEPT = "accept"
    DECLINE = "decline"
    UNDO = "undo"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMerge:
    """Two nodes that are one. `by`: who says so, where it is not who asks."""

    kept_id: str
    gone_id: str
    dry_run: bool = False
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSplit:
    """Memories that mean another node than the one that they were taken for."""

    node_id: str
    memory_ids: tuple[str, ...]
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class MergePreview:
    """The two nodes of a row, each as its own sources make it."""

    kept: Entity
    gone: Entity

    @property
    def node_ids(self) -> frozenset[str]:
        """Of the two, and of what they are shown under."""
        return frozenset(
            node for one in (self.kept, self.gone) for node in (one.entity_id, one.root_id)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEdit:
    """What a person changes of a node; None: as it is. `synonyms` are all of them."""

    name: str | None = None
    synonyms: tuple[str, ...] | None = None
    attributes: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge, a split or its undoing did.

    Attributes:
        node: the node that is kept, with all that is a part of it.
        moved: statements that read otherwise.
        ended: facts that held and do not hold any more.
        dry_run: it is only told.
    """

    merge: Merge
    node: Entity
    pair: MergePreview
    moved: int = 0
    ended: tuple[str, ...] = ()
    dry_run: bool = False
