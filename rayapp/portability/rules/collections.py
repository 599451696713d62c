"""The one table of collections: whose each is, how it is exported and how it is erased. Pure.

A store with a collection that is not named here fails a test: say what an export, an import and an
erasure do with it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from rayapp.assistant.extraction.rules.facts import LearnedExchange
from rayapp.assistant.ports import Conversation, KeptTurn, OwnWindow, Session, TitledBy
from rayapp.documents.ports import Book
from rayapp.graphs import records as graphs
from rayapp.learning.records import OutcomeEvent, Withdrawn
from rayapp.memory.item import MemoryItem, MemoryVersion
from rayapp.memory.ports import Event
from rayapp.memory.tiers import Tier
from rayapp.portability.rules.kinds import Kind, Part
from rayapp.search.ports import Receipt
from rayapp.text.normalize import spellings
from rayapp.understanding.derived.records import Derived
from rayapp.understanding.statements.records import Entity, Given, Merge, Statement

ITEMS = "memory_items"
OUTCOMES = "memory_outcomes"
BACKUP_KEYS = "backup_keys"
LEGACY_BANK = "memoryBank"  # client contract: the first client's old collection of facts


class Owner(StrEnum):
    """Whose the rows of a collection are."""

    USER = "user"
    SERVICE = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConcept:
    key: str
    label: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContribution:
    """What a memory added to the content graph, as its row keeps it. What is read of it later must
    be there: it could be taken back from no graph."""

    concepts: tuple[StoredConcept, ...]
    quality: float
    refused_nodes: tuple[str, ...] = ()
    refused_edges: tuple[tuple[str, str], ...] = ()


class Erasing(StrEnum):
    """What an erasure of a user does with a collection.

    MEMORIES: each row becomes a tombstone, which the indexer takes away with the point. ROWS: its
    rows of the user are deleted. POINTS: its rows of the user's points are. EXPIRES: rows that
    name nobody and hold no text go by themselves. KEPT: nothing.
    """

    MEMORIES = "memories"
    ROWS = "rows"
    POINTS = "points"
    EXPIRES = "expires"
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOutcome(OutcomeEvent):
    """An event of which nothing was withdrawn says so by null."""

    withdrawn: Withdrawn | None = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTemplate:
    name: str
    content: str
    description: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPersonality:
    templates: dict[str, StoredTemplate] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    active: str | None = None
    activated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredUpload:
    """A part of a file."""

    upload_id: str
    part: int
    data: bytes
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDeletions:
    """How many memories of a tier were ever deleted."""

    tier: Tier
    count: int


@dataclass(frozen=True, slots=True)
class Collection:
    """One collection.

    Attributes:
        kind: what of an export it belongs to; None = it is not exported, and `why` says so.
        key: fields that name a row among those of its user.
        row: the shape of a row; `extra`: fields that rows have beside it, with their shapes.
        also: shapes that a row has too once it has this field.
        renewed: fields that an export leaves out, because an import makes them anew.
        restarted: times that an export holds and an import sets to its own: work is due then.
        schema: of its rows, as they stand in an archive; raised when older rows must be changed.
        owner_fields: the field that names the user, or each of those that may.
        sparse: its rows hold only the fields that were set; others lack none.
        backed_up: a backup of the whole store holds it.
        mapped: its rows may become another user's; others hold ids that belong to one alone.
        by_hand: rows that a person made are added also where the others are learned anew.
    """

    name: str
    kind: Kind | None = None
    key: tuple[str, ...] = ()
    row: type[Any] | None = None
    _: KW_ONLY
    owner: Owner = Owner.USER
    extra: Mapping[str, Any] = field(default_factory=dict)
    also: Mapping[str, type[Any]] = field(default_factory=dict)
    renewed: frozenset[str] = frozenset()
    restarted: frozenset[str] = frozenset()
    schema: int = 1
    erasing: Erasing = Erasing.ROWS
    owner_fields: tuple[str, ...] = ("user_id",)
    sparse: bool = False
    backed_up: bool = True
    mapped: bool = True
    by_hand: bool = False
    why: str = ""


# In the order in which an import writes them: what refers to memories comes after them. They are
# cleared the other way round: deleting memories counts in the first.
COLLECTIONS: tuple[Collection, ...] = (
    Collection("memory_deletions", Kind.TOMBSTONES, ("tier",), StoredDeletions),
    Collection(
        ITEMS,
        Kind.MEMORIES,
        ("memory_id",),
        MemoryItem,
        extra={
            "contribution": StoredContribution | None,
            "follow_up_at": datetime | None,
            "followed_at": datetime,
            "flags": tuple[str, ...],
        },
        renewed=frozenset({"index", "veiled_words", "understand_at"}),
        erasing=Erasing.MEMORIES,
    ),
    Collection("memory_versions", Kind.VERSIONS, ("memory_id", "version"), MemoryVersion),
    Collection(
        OUTCOMES,
        Kind.OUTCOMES,
        ("idempotency_key",),
        StoredOutcome,
        extra={"effects": dict[str, bool], "token": str, "judgements": int, "taken": str},
    ),
    Collection("kg_nodes", Kind.GRAPHS, ("node_id",), graphs.ContentNode),
    Collection("kg_edges", Kind.GRAPHS, ("source", "target", "relation"), graphs.ContentEdge),
    Collection("kg_routing", Kind.GRAPHS, ("concept",), graphs.RoutingRow, sparse=True),
    Collection(
        "kg_actions", Kind.GRAPHS, ("context_type", "action", "tier"), graphs.ActionRow, sparse=True
    ),
    Collection("known_solutions", Kind.GRAPHS, ("problem_hash", "memory_id"), graphs.KnownSolution),
    Collection(
        "books",
        Kind.GRAPHS,
        ("doc_id",),
        graphs.DocumentEffect,
        sparse=True,
        extra={"last_judged_at": datetime},
    ),
    Collection("kg_given", Kind.GRAPHS, ("source_id",), Given),
    Collection("kg_entities", Kind.GRAPHS, ("entity_id",), Entity, by_hand=True),
    Collection("kg_statements", Kind.GRAPHS, ("statement_id",), Statement, by_hand=True),
    Collection("derived", Kind.GRAPHS, ("derived_id",), Derived),
    Collection("kg_merges", Kind.GRAPHS, ("merge_id",), Merge),
    Collection(
        "documents",
        Kind.DOCUMENTS,
        ("book_id",),
        Book,
        sparse=True,
        extra={
            "title_key": str | None,
            "pages_stored": int,
            "due_at": datetime | None,
            "digest_due_at": datetime | None,
        },
        renewed=frozenset({"claim", "digest_claim"}),
        restarted=frozenset({"due_at", "digest_due_at"}),
    ),
    Collection("document_uploads", Kind.DOCUMENTS, ("upload_id", "part"), StoredUpload),
    Collection(
        "sessions",
        Kind.CONVERSATIONS,
        ("conversation_id",),
        Session,
        sparse=True,
        extra={
            "expires_at": datetime | None,
            "title": str,
            "titled_by": TitledBy,
            "created_at": datetime,
            "last_at": datetime,
            "active_at": datetime,
            "bullets": tuple[str, ...],
            "summed": int,
        },
        also={"last_at": Conversation},
    ),
    Collection(
        "turns",
        Kind.CONVERSATIONS,
        ("conversation_id", "message_id"),
        KeptTurn,
        extra={"point_id": str, "words": tuple[int, ...]},
    ),
    Collection(
        "exchanges",
        Kind.CONVERSATIONS,
        ("conversation_id", "message_id"),
        LearnedExchange,
        extra={
            "point_id": str | None,
            "state": str,
            "attempts": int,
            "due_at": datetime,
            "plan": dict[str, Any],
            "notes": dict[str, str],
            "error": str | None,
            "finished_at": datetime,
            "said_at": datetime,
        },
        renewed=frozenset({"claim"}),
        restarted=frozenset({"due_at"}),
    ),
    Collection("personality", Kind.PERSONALITY, row=StoredPersonality, sparse=True),
    Collection("model_windows", Kind.PERSONALITY, ("model",), OwnWindow),
    Collection("events", Kind.EVENTS, ("event_id",), Event, mapped=False),
    Collection(
        "receipts",
        Kind.RECEIPTS,
        ("receipt_id",),
        Receipt,
        extra={"judged": tuple[str, ...], "judgements": int},
        mapped=False,
    ),
    Collection(
        "quarantine",
        erasing=Erasing.POINTS,
        owner_fields=("payload.user_id",),
        why="points that were taken out of the index; an import makes them anew",
    ),
    Collection(
        "understandings",
        why="how much memories matter and how far they are understood; an import makes it anew",
    ),
    Collection("imports", why="how far imports have come"),
    Collection("idempotency", backed_up=False, why="answers to requests that are over in a day"),
    Collection("webhooks", why="addresses and secrets of programs; who moves sets them up anew"),
    Collection("webhook_deliveries", why="what was told to programs, for thirty days"),
    Collection("model_usage", why="the operator's ledger of what models cost"),
    Collection(
        LEGACY_BANK,
        owner_fields=("userId", "user_id"),
        why="the first client's old collection, which moves in by a route of its own",
    ),
    # The last one of users: an erasure counts it after those whose rows a key is made for.
    Collection(
        BACKUP_KEYS,
        backed_up=False,
        why="the key that seals the rows of a user in backups; without it nobody reads them there",
    ),
    Collection(
        "memory_changes",
        owner=Owner.SERVICE,
        backed_up=False,
        erasing=Erasing.EXPIRES,
        why="which points changed within the last hour, under a hash of the user",
    ),
    *(
        Collection(
            name, owner=Owner.SERVICE, backed_up=name != "leases", erasing=Erasing.KEPT, why=why
        )
        for name, why in (
            ("api_keys", "hashes of keys; whoever runs the service revokes them"),
            ("audit_log", "who did what, without texts, until audit.keep_days are over"),
            ("daily_metrics", "counts of the whole service, a row per day"),
            ("legal_holds", "whose data an operator keeps: a held user is not erased"),
            ("ended_tokens", "ids of session tokens that were revoked, until they have expired"),
            ("jobs", "work of the operator, without texts of users"),
            ("job_partitions", "as jobs"),
            ("leases", "names of processes"),
            ("ontology", "types and relations that a tenant has added to the registry"),
            ("ontology_rulings", "what a tenant has decided of names that the registry lacks"),
            ("webhook_feed", "how far the event stream was read"),
        )
    ),
)

BY_NAME: Mapping[str, Collection] = MappingProxyType({one.name: one for one in COLLECTIONS})
EXPORTED: tuple[Collection, ...] = tuple(one for one in COLLECTIONS if one.kind is not None)
# What processes, keys and backups stand on: a reset of everything leaves it.
KEPT_IN_RESET: tuple[str, ...] = tuple(
    sorted([BACKUP_KEYS, *(one.name for one in COLLECTIONS if one.erasing is Erasing.KEPT)])
)


def exported(kinds: Iterable[Kind]) -> tuple[Collection, ...]:
    """The collections of these kinds, in the order of an import."""
    wanted = set(kinds)
    return tuple(one for one in EXPORTED if one.kind in wanted)


def of_user(*erasing: Erasing) -> tuple[Collection, ...]:
    """The collections with rows of users that an erasure handles in one of these ways."""
    return tuple(one for one in COLLECTIONS if one.owner is Owner.USER and one.erasing in erasing)


# By collection, the field that names the part; a row of another collection names none.
PARTS: Mapping[Part, Mapping[str, str]] = MappingProxyType(
    {
        Part.CONVERSATION: {
            ITEMS: "source.conversation_id",
            "documents": "attached_to",
            "events": "data.conversation_id",
            "derived": "sources.conversation_id",
            "kg_given": "conversation_id",
            **dict.fromkeys(
                ("exchanges", "receipts", "sessions", "turns", "understandings", OUTCOMES),
                "conversation_id",
            ),
        },
        Part.DOCUMENT: {
            ITEMS: "source.doc_id",
            "derived": "sources.doc_id",
            "documents": "book_id",
            "understandings": "doc_id",
        },
        Part.SUBJECT: {
            **dict.fromkeys((ITEMS, "derived", "understandings"), "subject_id"),
            "kg_given": "about_id",
        },
        Part.MEMORY: {
            **dict.fromkeys((ITEMS, "memory_versions", "understandings"), "memory_id"),
            "derived": "sources.source_id",
            **dict.fromkeys(("kg_given", "kg_statements"), "source_id"),
        },
    }
)


def names_of(part: Part, part_id: str) -> tuple[str, ...]:
    """How rows may spell what names a part: ids are opaque, a subject is a name."""
    return spellings(part_id) if part is Part.SUBJECT else (part_id,)
