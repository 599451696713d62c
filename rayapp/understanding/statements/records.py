"""Statements and entities as values: what a source gave, and the graph that it makes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Level(StrEnum):
    """How a statement is known: said outright, following from others, seen again and again, or said
    against another one."""

    EXPLICIT = "explicit"
    DEDUCTIVE = "deductive"
    INDUCTIVE = "inductive"
    CONTRADICTION = "contradiction"


class Span(StrEnum):
    """What is said of time: it holds, or it does not hold any more."""

    HOLDS = "holds"
    ENDS = "ends"


class Standing(StrEnum):
    """How a statement stands at a moment. IN_DOUBT: what it rests on does not hold any more."""

    KNOWN = "known"
    IN_DOUBT = "in_doubt"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A name, a key or a perspective, and how many sources say it."""

    name: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A node.

    Attributes:
        name: how it is shown: what a person called it, or its commonest name.
        keys: the normal forms under which it is found, and what it is to whom.
        mentions: sources that name it.
        verified_by: who made it by hand; it outlives its sources.
        merged_into: the node that it is a part of; then it is not shown by itself.
        joined: others are parts of it, so whoever reads it reads them too.
    """

    entity_id: str
    type: str
    name: str
    keys: tuple[Counted, ...]
    names: tuple[Counted, ...] = ()
    perspectives: tuple[Counted, ...] = ()
    synonyms: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)
    mentions: int = 0
    verified_by: str | None = None
    first_seen_at: datetime
    last_seen_at: datetime
    ontology: int
    merged_into: str | None = None
    joined: bool = False

    @property
    def root_id(self) -> str:
        """The node under which it is shown."""
        return self.merged_into or self.entity_id

    @property
    def verified(self) -> bool:
        return self.verified_by is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """An entity as one source names it."""

    entity_id: str
    type: str
    names: tuple[str, ...]
    keys: tuple[str, ...]
    perspective: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one source gave: taking it back is the difference to nothing. `about_id`: whom its text
    is about."""

    source_id: str
    conversation_id: str | None
    about_id: str | None
    text_hash: str
    said_at: datetime
    recorded_at: datetime
    mentions: tuple[Mention, ...]
    entity_ids: tuple[str, ...]
    ontology: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Premise:
    """A fact that another one rests on, by its relation, which is known when the fact is gone."""

    relation: str
    fact_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """The ends of a statement as its text means them, where one of them was merged since."""

    subject_id: str
    object_id: str | None
    holder_id: str | None
    target_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What one source says: a subject, a relation, and an entity or a value.

    Attributes:
        fact_id: of the same said by any source.
        slot: of what excludes it: all objects of a functional relation, else this object alone.
        label: what the text calls a relation that the registry does not know.
        confirmed_at: up to when the text speaks for it: when it was said; of a change that is told
            of, its own time. Of two objects of one slot the later one counts.
        valid_to: the first moment at which it does not hold; settled from all that the slot has.
        premises: facts that it rests on.
        evidence: sources that say it: its own; of what was deduced, those of its premises.
        holder_id: who feels it; `target_id`: whom or what it is aimed at.
        verified_by: who said it by hand; then it has no source.
        meant: its ends before a merge.
    """

    statement_id: str
    fact_id: str
    slot: str
    subject_id: str
    relation: str
    object_id: str | None = None
    value: str | None = None
    label: str | None = None
    span: Span = Span.HOLDS
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    confirmed_at: datetime
    recorded_at: datetime
    level: Level = Level.EXPLICIT
    premises: tuple[Premise, ...] = ()
    source_id: str | None
    evidence: tuple[str, ...] = ()
    quote: str = ""
    holder_id: str | None = None
    target_id: str | None = None
    intensity: str | None = None
    verified_by: str | None = None
    ontology: int
    meant: Meant | None = None

    def holds_at(self, at: datetime) -> bool:
        begun = self.valid_from is None or self.valid_from <= at
        return begun and (self.valid_to is None or at < self.valid_to)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationship:
    """A fact as it is read: what all its sources say together, and how it stands."""

    fact_id: str
    subject_id: str
    relation: str
    object_id: str | None
    value: str | None
    label: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    recorded_at: datetime
    level: Level
    standing: Standing
    premises: tuple[Premise, ...]
    evidence: tuple[str, ...]
    contexts: tuple[str, ...]
    holder_id: str | None
    target_id: str | None
    intensity: str | None
    verified: bool
    mentions: int


@dataclass(frozen=True, slots=True)
class Graph:
    """What one source gave to the typed graph."""

    statements: tuple[Statement, ...] = ()
    entities: Mapping[str, Entity] | None = None

    def node(self, entity_id: str | None) -> Entity | None:
        return (self.entities or {}).get(entity_id or "")


class MergeKind(StrEnum):
    """MERGE: two nodes are one. SPLIT: texts of a node mean another one."""

    MERGE = "merge"
    SPLIT = "split"


class MergeState(StrEnum):
    """How far a merge is. PENDING: proposed, and nothing is changed yet."""

    PENDING = "pending"
    DONE = "done"
    DECLINED = "declined"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A row of the ledger. It holds ids alone: names stand in the nodes.

    Attributes:
        kept_id: the node that stays; of a split the one whose texts were taken.
        gone_id: the one that is a part of it; of a split the new one.
        score, reasons: of what was proposed.
        decided_by: who did, declined or undid it; the resolver by its own name.
    """

    merge_id: str
    kind: MergeKind = MergeKind.MERGE
    state: MergeState
    kept_id: str
    gone_id: str
    score: float | None = None
    reasons: tuple[str, ...] = ()
    created_at: datetime
    decided_at: datetime | None = None
    decided_by: str | None = None

    @property
    def can_undo(self) -> bool:
        return self.state in (MergeState.DONE, MergeState.DECLINED)

    @property
    def joins(self) -> bool:
        """Whether the two are one now: merged, or split and put together again."""
        merged = MergeState.DONE if self.kind is MergeKind.MERGE else MergeState.UNDONE
        return self.state is merged
