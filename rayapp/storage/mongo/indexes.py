"""Every collection and index with all its options. `MongoDatabase.ensure_schema` reads it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pymongo import ASCENDING, DESCENDING, TEXT, IndexModel

from rayapp.assistant.ports import EXCHANGE_TTL_S
from rayapp.memory.item import Status, SyncState
from rayapp.memory.rules.lifecycle import PREFIX, PREFIX_END
from rayapp.memory.tiers import Tier

ITEMS = "memory_items"
VERSIONS = "memory_versions"
RECEIPTS = "receipts"
EVENTS = "events"
LEASES = "leases"
API_KEYS = "api_keys"
IDEMPOTENCY = "idempotency"
OUTCOMES = "memory_outcomes"
SOLUTIONS = "known_solutions"
ROUTING = "kg_routing"
NODES = "kg_nodes"
EDGES = "kg_edges"
ACTIONS = "kg_actions"
BOOKS = "books"
JOBS = "jobs"
PARTITIONS = "job_partitions"
QUARANTINE = "quarantine"
EXCHANGES = "exchanges"
PERSONALITY = "personality"
SESSIONS = "sessions"
MODEL_USAGE = "model_usage"
DELETIONS = "memory_deletions"

EVENT_TTL_S = 90 * 86_400  # our choice: events are kept 90 days
JOB_TTL_S = 90 * 86_400  # as long as events: a report is looked up weeks later, hardly after months
# The field of a job, and of its partitions, that the 90 days count from; none while it may go on.
EXPIRES_FROM = "finished_at"
MODEL_USAGE_TTL_S = 90 * 86_400  # a quarter, in which costs are asked about
QUARANTINE_TTL_S = 30 * 86_400  # long enough to notice, short enough to be forgotten
IDEMPOTENCY_TTL_S = 24 * 3_600  # our choice: a key is remembered for 24 hours

# A field that no document has: an item's `lang` must never choose a stemmer, because the server
# refuses documents whose language it does not know ("he", "mixed").
LANGUAGE_OVERRIDE = "text_index_language"
TEXT_INDEX_VERSION = 3

PENDING_ONLY = {"index.sync_state": SyncState.PENDING.value}
# `follow_up_at` is a date only while a follow-up is owed.
FOLLOW_UP_ONLY = {"follow_up_at": {"$type": "date"}}
# What a person hid: archived, with a reason that starts with the prefix.
HIDDEN_ONLY: Mapping[str, Any] = {
    "status": Status.ARCHIVED.value,
    "archived_reason": {"$gte": PREFIX, "$lt": PREFIX_END},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSpec:
    """One index. `keys` are (path, direction); `weights` only for text keys."""

    name: str
    keys: tuple[tuple[str, int | str], ...]
    unique: bool = False
    only: Mapping[str, Any] | None = None
    ttl_s: int | None = None
    weights: Mapping[str, int] = field(default_factory=dict)

    def model(self) -> IndexModel:
        options = {k: v for k, v in self._options().items() if v is not None}
        return IndexModel(list(self.keys), name=self.name, **options)

    def _options(self) -> dict[str, Any]:
        text = bool(self.weights)
        return {
            "unique": self.unique or None,
            "partialFilterExpression": dict(self.only) if self.only else None,
            "expireAfterSeconds": self.ttl_s,
            "weights": dict(self.weights) if text else None,
            "default_language": "none" if text else None,
            "language_override": LANGUAGE_OVERRIDE if text else None,
            "textIndexVersion": TEXT_INDEX_VERSION if text else None,
        }

    def as_stored(self) -> dict[str, Any]:
        """The same options in the shape that `stored_options` makes of the server's answer."""
        keys = [(path, kind) for path, kind in self.keys if kind != TEXT]
        if self.weights:
            keys += [("_fts", TEXT), ("_ftsx", ASCENDING)]
        return {"key": keys, **self._options()}


def stored_options(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What `list_indexes` says about one index, as `IndexSpec.as_stored` says it."""
    plain = (int(kind) if isinstance(kind, float) else kind for kind in raw["key"].values())
    names = IndexSpec(name="", keys=())._options()
    options = {name: raw.get(name) for name in names}
    weights = options["weights"]
    return {
        "key": list(zip(raw["key"], plain, strict=True)),
        **options,
        "unique": options["unique"] or None,
        "weights": None if weights is None else dict(weights),
    }


USER_TIER_STATUS = IndexSpec(
    name="user_tier_status",
    keys=(("user_id", ASCENDING), ("tier", ASCENDING), ("status", ASCENDING)),
)
USER_MEMORY = IndexSpec(
    name="user_memory", keys=(("user_id", ASCENDING), ("memory_id", ASCENDING)), unique=True
)
POINT = IndexSpec(name="point", keys=(("point_id", ASCENDING),), unique=True)
ACTIVE_TEXT = IndexSpec(
    name="active_text",
    keys=(
        ("user_id", ASCENDING),
        ("tier", ASCENDING),
        ("dedup_scope", ASCENDING),
        ("content_hash", ASCENDING),
    ),
    unique=True,
    only={"status": Status.ACTIVE.value},
)
# A fair claim needs the users that wait, and the due items of each,
# without touching documents. It holds pending items only, so it is small in the steady state.
PENDING_BY_USER = IndexSpec(
    name="pending_by_user",
    keys=(
        ("index.sync_state", ASCENDING),
        ("user_id", ASCENDING),
        ("index.next_attempt_at", ASCENDING),
    ),
    only=PENDING_ONLY,
)
# The age of the oldest pending item, for the alarm on it.
PENDING_SINCE = IndexSpec(
    name="pending_since",
    keys=(("index.sync_state", ASCENDING), ("index.pending_since", ASCENDING)),
    only=PENDING_ONLY,
)
# What the index owes one user, counted from keys alone. It holds
# only what gave up, so it is about empty.
FAILED_BY_USER = IndexSpec(
    name="failed_by_user",
    keys=(("index.sync_state", ASCENDING), ("user_id", ASCENDING)),
    only={"index.sync_state": SyncState.FAILED.value},
)
SYNC_DUE = IndexSpec(
    name="sync_due", keys=(("index.sync_state", ASCENDING), ("index.next_attempt_at", ASCENDING))
)
TEXT_SEARCH = IndexSpec(
    name="text_search",
    keys=(("user_id", ASCENDING), ("text", TEXT), ("summary", TEXT), ("tags", TEXT)),
    weights={"text": 10, "summary": 5, "tags": 3},
)

FOLLOW_UP = IndexSpec(name="follow_up", keys=(("follow_up_at", ASCENDING),), only=FOLLOW_UP_ONLY)
# What a promotion cycle must look at, without reading every item.
# In the order of its pages, so that each page goes on where the last one ended.
JUDGED = IndexSpec(
    name="judged",
    keys=(("user_id", ASCENDING), ("point_id", ASCENDING)),
    only={"status": Status.ACTIVE.value, "stats.uses": {"$gt": 0}},
)
# The active items that have an expiry and that nobody judged, in
# the order of a cycle. (tier, expires_at) goes on holding every item that was ever archived.
EXPIRING = IndexSpec(
    name="expiring",
    keys=(("user_id", ASCENDING), ("point_id", ASCENDING), ("expires_at", ASCENDING)),
    only={"status": Status.ACTIVE.value, "stats.uses": 0, "expires_at": {"$type": "date"}},
)
# Who stored exchanges lately, answered from the index alone.
WORKING_STORED = IndexSpec(
    name="working_stored",
    keys=(
        ("tier", ASCENDING),
        ("stored_at", ASCENDING),
        ("user_id", ASCENDING),
        ("source.conversation_id", ASCENDING),
    ),
    only={"tier": Tier.WORKING.value},
)
# The ids that were merged into one, to point them at its winner.
MERGED = IndexSpec(
    name="merged",
    keys=(("user_id", ASCENDING), ("merged_into", ASCENDING)),
    only={"merged_into": {"$type": "string"}},
)
OWES_GRAPH = IndexSpec(name="owes_graph", keys=(("at", ASCENDING),), only={"effects.graph": True})
OWES_PROMOTION = IndexSpec(
    name="owes_promotion", keys=(("at", ASCENDING),), only={"effects.promotion": True}
)

# What was written to the index since a moment, for a reindex.
INDEXED = IndexSpec(
    name="indexed",
    keys=(("index.indexed_at", ASCENDING), ("point_id", ASCENDING)),
    only={"status": Status.ACTIVE.value, "index.indexed_at": {"$type": "date"}},
)

# The newest patterns of a user, read for every prefetch. In the order
# of the pages by time, so that no more rows are read than are shown.
PATTERNS_NEWEST = IndexSpec(
    name="patterns_newest",
    keys=(
        ("user_id", ASCENDING),
        ("created_at", DESCENDING),
        ("stats.score", DESCENDING),
        ("updated_at", DESCENDING),
        ("point_id", DESCENDING),
    ),
    only={"tier": Tier.PATTERNS.value, "status": Status.ACTIVE.value},
)

# What a person hid, newest first; about empty for most users.
HIDDEN = IndexSpec(
    name="hidden",
    keys=(("user_id", ASCENDING), ("archived_at", DESCENDING), ("point_id", DESCENDING)),
    only=HIDDEN_ONLY,
)

# What is still to be learned from; empty while nothing waits. By user and time, because a claim
# passes over a user of whom a turn is being worked on.
EXCHANGES_BY_USER = IndexSpec(
    name="exchanges_by_user",
    keys=(("state", ASCENDING), ("user_id", ASCENDING), ("due_at", ASCENDING)),
    only={"state": "waiting"},
)

# The first turn of each user who waits, from keys alone: a user's turns are learned in their order.
EXCHANGES_IN_ORDER = IndexSpec(
    name="exchanges_in_order",
    keys=(
        ("state", ASCENDING),
        ("user_id", ASCENDING),
        ("at", ASCENDING),
        ("message_id", ASCENDING),
        ("due_at", ASCENDING),
    ),
    only={"state": "waiting"},
)
# Whether anything is due at all: a look that finds nothing reads one key.
EXCHANGES_DUE = IndexSpec(
    name="exchanges_due",
    keys=(("state", ASCENDING), ("due_at", ASCENDING)),
    only={"state": "waiting"},
)

# Newest first, and one order among equal times.
NEWEST_JOB = (("created_at", DESCENDING), ("job_id", DESCENDING))

INDEXES: dict[str, tuple[IndexSpec, ...]] = {
    ITEMS: (
        USER_MEMORY,
        POINT,
        USER_TIER_STATUS,
        IndexSpec(
            name="user_status_updated",
            keys=(("user_id", ASCENDING), ("status", ASCENDING), ("updated_at", DESCENDING)),
        ),
        ACTIVE_TEXT,
        IndexSpec(name="user_tags", keys=(("user_id", ASCENDING), ("tags", ASCENDING))),
        IndexSpec(name="user_entities", keys=(("user_id", ASCENDING), ("entities", ASCENDING))),
        IndexSpec(
            name="user_pinned",
            keys=(("user_id", ASCENDING), ("always_inject", ASCENDING), ("status", ASCENDING)),
        ),
        IndexSpec(name="tier_expiry", keys=(("tier", ASCENDING), ("expires_at", ASCENDING))),
        SYNC_DUE,
        IndexSpec(
            name="user_pending_stored",
            keys=(("user_id", ASCENDING), ("stored_at", ASCENDING)),
            only=PENDING_ONLY,
        ),
        PENDING_BY_USER,
        PENDING_SINCE,
        FAILED_BY_USER,
        FOLLOW_UP,
        JUDGED,
        EXPIRING,
        WORKING_STORED,
        MERGED,
        INDEXED,
        PATTERNS_NEWEST,
        HIDDEN,
        TEXT_SEARCH,
    ),
    VERSIONS: (
        IndexSpec(
            name="user_memory_version",
            keys=(("user_id", ASCENDING), ("memory_id", ASCENDING), ("version", DESCENDING)),
            unique=True,
        ),
    ),
    DELETIONS: (
        IndexSpec(
            name="user_tier", keys=(("user_id", ASCENDING), ("tier", ASCENDING)), unique=True
        ),
    ),
    RECEIPTS: (
        IndexSpec(name="receipt", keys=(("receipt_id", ASCENDING),), unique=True),
        IndexSpec(name="receipt_expiry", keys=(("expires_at", ASCENDING),), ttl_s=0),
        IndexSpec(
            name="conversation_receipts",
            keys=(
                ("user_id", ASCENDING),
                ("conversation_id", ASCENDING),
                ("at", DESCENDING),
                ("receipt_id", DESCENDING),  # newest first, and one order among equal times
            ),
            only={"conversation_id": {"$type": "string"}},
        ),
    ),
    EVENTS: (
        IndexSpec(name="event", keys=(("event_id", ASCENDING),), unique=True),
        IndexSpec(name="user_events", keys=(("user_id", ASCENDING), ("at", DESCENDING))),
        IndexSpec(name="event_expiry", keys=(("at", ASCENDING),), ttl_s=EVENT_TTL_S),
    ),
    OUTCOMES: (
        IndexSpec(
            name="user_key",
            keys=(("user_id", ASCENDING), ("idempotency_key", ASCENDING)),
            unique=True,
        ),
        IndexSpec(
            name="user_principal_at",
            keys=(("user_id", ASCENDING), ("principal", ASCENDING), ("at", DESCENDING)),
        ),
        IndexSpec(
            name="user_applied",
            keys=(
                ("user_id", ASCENDING),
                ("applied.point_id", ASCENDING),
                ("outcome", ASCENDING),
                ("at", DESCENDING),
            ),
        ),
        OWES_GRAPH,
        OWES_PROMOTION,
    ),
    SOLUTIONS: (
        IndexSpec(
            name="user_problem_memory",
            keys=(("user_id", ASCENDING), ("problem_hash", ASCENDING), ("memory_id", ASCENDING)),
            unique=True,
        ),
        IndexSpec(name="user_point", keys=(("user_id", ASCENDING), ("point_id", ASCENDING))),
    ),
    ROUTING: (
        IndexSpec(
            name="user_concept", keys=(("user_id", ASCENDING), ("concept", ASCENDING)), unique=True
        ),
        IndexSpec(name="user_seen", keys=(("user_id", ASCENDING), ("last_seen_at", DESCENDING))),
    ),
    NODES: (
        IndexSpec(
            name="user_node", keys=(("user_id", ASCENDING), ("node_id", ASCENDING)), unique=True
        ),
    ),
    EDGES: (
        IndexSpec(
            name="user_edge",
            keys=(
                ("user_id", ASCENDING),
                ("source", ASCENDING),
                ("target", ASCENDING),
                ("relation", ASCENDING),
            ),
            unique=True,
        ),
        IndexSpec(name="user_target", keys=(("user_id", ASCENDING), ("target", ASCENDING))),
    ),
    ACTIONS: (
        IndexSpec(
            name="user_context_action_tier",
            keys=(
                ("user_id", ASCENDING),
                ("context_type", ASCENDING),
                ("action", ASCENDING),
                ("tier", ASCENDING),
            ),
            unique=True,
        ),
    ),
    BOOKS: (
        IndexSpec(
            name="user_doc", keys=(("user_id", ASCENDING), ("doc_id", ASCENDING)), unique=True
        ),
    ),
    JOBS: (
        IndexSpec(name="job", keys=(("job_id", ASCENDING),), unique=True),
        IndexSpec(name="kind_created", keys=(("kind", ASCENDING), *NEWEST_JOB)),
        IndexSpec(name="created", keys=NEWEST_JOB),
        IndexSpec(name="state_updated", keys=(("state", ASCENDING), ("updated_at", DESCENDING))),
        IndexSpec(name="job_expiry", keys=((EXPIRES_FROM, ASCENDING),), ttl_s=JOB_TTL_S),
    ),
    PARTITIONS: (
        IndexSpec(
            name="job_partition", keys=(("job_id", ASCENDING), ("index", ASCENDING)), unique=True
        ),
        IndexSpec(name="partition_expiry", keys=((EXPIRES_FROM, ASCENDING),), ttl_s=JOB_TTL_S),
    ),
    QUARANTINE: (
        IndexSpec(
            name="quarantined", keys=(("point_id", ASCENDING), ("rev", ASCENDING)), unique=True
        ),
        IndexSpec(name="quarantine_home", keys=(("home", ASCENDING),)),
        IndexSpec(name="quarantine_expiry", keys=(("at", ASCENDING),), ttl_s=QUARANTINE_TTL_S),
    ),
    SESSIONS: (
        IndexSpec(
            name="user_conversation",
            keys=(("user_id", ASCENDING), ("conversation_id", ASCENDING)),
            unique=True,
        ),
        IndexSpec(name="user_turn", keys=(("user_id", ASCENDING), ("turns.message_id", ASCENDING))),
        # A score by receipt alone; about as many rows as there are turns without a score.
        IndexSpec(
            name="user_owed",
            keys=(("user_id", ASCENDING), ("owed_receipt", ASCENDING)),
            only={"owed_receipt": {"$type": "string"}},
        ),
        IndexSpec(name="session_expiry", keys=(("expires_at", ASCENDING),), ttl_s=0),
    ),
    PERSONALITY: (IndexSpec(name="user", keys=(("user_id", ASCENDING),), unique=True),),
    EXCHANGES: (
        IndexSpec(
            name="user_exchange",
            keys=(
                ("user_id", ASCENDING),
                ("conversation_id", ASCENDING),
                ("message_id", ASCENDING),
            ),
            unique=True,
        ),
        IndexSpec(
            name="conversation_exchanges",
            keys=(
                ("user_id", ASCENDING),
                ("conversation_id", ASCENDING),
                ("at", DESCENDING),
                ("message_id", DESCENDING),
            ),
        ),
        EXCHANGES_BY_USER,
        EXCHANGES_IN_ORDER,
        EXCHANGES_DUE,
        # Finds the texts of a memory that is deleted.
        IndexSpec(
            name="exchange_point",
            keys=(("point_id", ASCENDING),),
            only={"point_id": {"$type": "string"}},
        ),
        IndexSpec(name="exchange_expiry", keys=(("at", ASCENDING),), ttl_s=EXCHANGE_TTL_S),
    ),
    MODEL_USAGE: (
        IndexSpec(name="user_usage", keys=(("user_id", ASCENDING), ("at", DESCENDING))),
        IndexSpec(name="usage_expiry", keys=(("at", ASCENDING),), ttl_s=MODEL_USAGE_TTL_S),
    ),
    LEASES: (),  # one row per name: `_id`
    API_KEYS: (
        IndexSpec(name="key_hash", keys=(("key_hash", ASCENDING),), unique=True),
        IndexSpec(name="principal", keys=(("principal", ASCENDING),)),
    ),
    IDEMPOTENCY: (
        IndexSpec(
            name="user_route_key",
            keys=(("user_id", ASCENDING), ("route", ASCENDING), ("key", ASCENDING)),
            unique=True,
        ),
        IndexSpec(name="idempotency_expiry", keys=(("at", ASCENDING),), ttl_s=IDEMPOTENCY_TTL_S),
    ),
}

_NAME_BY_PATHS = {
    frozenset(path for path, _ in spec.keys): spec.name
    for specs in INDEXES.values()
    for spec in specs
    if spec.unique
}


def violated_index(details: Mapping[str, Any]) -> str | None:
    """Name of the unique index that a duplicate key error is about, None when it is not ours."""
    pattern = details.get("keyPattern")
    return _NAME_BY_PATHS.get(frozenset(pattern)) if pattern else None
