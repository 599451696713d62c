"""Every collection and index with all its options. `MongoDatabase.ensure_schema` reads it back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pymongo import ASCENDING, DESCENDING, TEXT, IndexModel

from rayapp.assistant.ports import EXCHANGE_TTL_S
from rayapp.memory.item import Status, SyncState
from rayapp.memory.rules.hiding import PREFIX, PREFIX_END
from rayapp.memory.tiers import Tier

ITEMS = "memory_items"
VERSIONS = "memory_versions"
RECEIPTS = "receipts"
EVENTS = "events"
LEASES = "leases"
API_KEYS = "api_keys"
AUDIT_LOG = "audit_log"
ENDED_TOKENS = "ended_tokens"
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
CHANGES = "memory_changes"
DOCUMENTS = "documents"
UPLOADS = "document_uploads"
IMPORTS = "imports"
TURNS = "turns"
MODEL_WINDOWS = "model_windows"
HOLDS = "legal_holds"
DAYS = "daily_metrics"
BACKUP_KEYS = "backup_keys"
WEBHOOKS = "webhooks"
WEBHOOK_DELIVERIES = "webhook_deliveries"
WEBHOOK_FEED = "webhook_feed"
UNDERSTANDINGS = "understandings"
GIVEN = "kg_given"
KNOWN_ENTITIES = "kg_entities"
STATEMENTS = "kg_statements"
DERIVED = "derived"
MERGES = "kg_merges"
ONTOLOGY, RULINGS = "ontology", "ontology_rulings"

EVENT_TTL_S = 90 * 86_400  # our choice: events are kept 90 days
JOB_TTL_S = 90 * 86_400  # as long as events: a report is looked up weeks later, hardly after months
# The field of a job, and of its partitions, that the 90 days count from; none while it may go on.
EXPIRES_FROM = "finished_at"
MODEL_USAGE_TTL_S = 90 * 86_400  # a quarter, in which costs are asked about
QUARANTINE_TTL_S = 30 * 86_400  # long enough to notice, short enough to be forgotten
CHANGE_TTL_S = 3_600  # longer than a process keeps what it does not look at
IMPORT_TTL_S = 30 * 86_400  # an import that was cut short is not taken up again after a month
DAYS_TTL_S = 400 * 86_400  # a year can be compared with the one before it
IDEMPOTENCY_TTL_S = 24 * 3_600  # our choice: a key is remembered for 24 hours

# A field that no document has: an item's `lang` must never choose a stemmer, because the server
# refuses documents whose language it does not know ("he", "mixed").
LANGUAGE_OVERRIDE = "text_index_language"
TEXT_INDEX_VERSION = 3

ACTIVE_ONLY: Mapping[str, Any] = {"status": Status.ACTIVE.value}
PENDING_ONLY = {"index.sync_state": SyncState.PENDING.value}
IS_DATE, IS_TEXT = {"$type": "date"}, {"$type": "string"}
# `follow_up_at` is a date only while a follow-up is owed.
FOLLOW_UP_ONLY = {"follow_up_at": IS_DATE}
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


def index(name: str, paths: str, **options: Any) -> IndexSpec:
    """An index over these paths in their order; one that begins with `-` descends."""
    keys = ((p.lstrip("-"), DESCENDING if p.startswith("-") else ASCENDING) for p in paths.split())
    return IndexSpec(name=name, keys=tuple(keys), **options)


USER_TIER_STATUS = index("user_tier_status", "user_id tier status")
USER_MEMORY = index("user_memory", "user_id memory_id", unique=True)
POINT = index("point", "point_id", unique=True)
ACTIVE_TEXT = index(
    "active_text", "user_id tier dedup_scope content_hash", unique=True, only=ACTIVE_ONLY
)
# A fair claim needs the users that wait, and the due items of each,
# without touching documents. It holds pending items only, so it is small in the steady state.
PENDING_BY_USER = index(
    "pending_by_user", "index.sync_state user_id index.next_attempt_at", only=PENDING_ONLY
)
# What a search reads of what the index has not taken up, without the chunks of a document that is
# coming: those are told by keys alone, a book has a thousand.
WAITING = index(
    "user_waiting", "user_id stored_at source.chunk_id index.vector_hash", only=PENDING_ONLY
)
# The age of the oldest pending item, for the alarm on it.
PENDING_SINCE = index("pending_since", "index.sync_state index.pending_since", only=PENDING_ONLY)
# What the index owes one user, counted from keys alone. It holds
# only what gave up, so it is about empty.
FAILED_BY_USER = index(
    "failed_by_user", "index.sync_state user_id", only={"index.sync_state": SyncState.FAILED.value}
)
SYNC_DUE = index("sync_due", "index.sync_state index.next_attempt_at")
TEXT_SEARCH = IndexSpec(
    name="text_search",
    keys=(("user_id", ASCENDING), ("text", TEXT), ("summary", TEXT), ("tags", TEXT)),
    weights={"text": 10, "summary": 5, "tags": 3},
)
# Words that the index of texts does not see. Few rows have the field; who writes one writes both.
VEILED_WORDS = index("veiled_words", "user_id veiled_words", only={"veiled_words": IS_TEXT})

FOLLOW_UP = index("follow_up", "follow_up_at", only=FOLLOW_UP_ONLY)
# What was written and is to be looked at for what may be derived from it.
UNDERSTAND = index("understand", "understand_at", only={"understand_at": IS_DATE})
# What a promotion cycle must look at, without reading every item.
# In the order of its pages, so that each page goes on where the last one ended.
JUDGED = index("judged", "user_id point_id", only={**ACTIVE_ONLY, "stats.uses": {"$gt": 0}})
# The active items that have an expiry and that nobody judged, in
# the order of a cycle. (tier, expires_at) goes on holding every item that was ever archived.
EXPIRING = index(
    "expiring",
    "user_id point_id expires_at",
    only={**ACTIVE_ONLY, "stats.uses": 0, "expires_at": IS_DATE},
)
# Who stored exchanges lately, answered from the index alone.
WORKING_STORED = index(
    "working_stored",
    "tier stored_at user_id source.conversation_id",
    only={"tier": Tier.WORKING.value},
)
# The ids that were merged into one, to point them at its winner.
MERGED = index("merged", "user_id merged_into", only={"merged_into": IS_TEXT})
OWES_GRAPH = index("owes_graph", "at", only={"effects.graph": True})
OWES_PROMOTION = index("owes_promotion", "at", only={"effects.promotion": True})

# What was written to the index since a moment, for a reindex.
INDEXED = index(
    "indexed", "index.indexed_at point_id", only={**ACTIVE_ONLY, "index.indexed_at": IS_DATE}
)

# The newest patterns of a user, read for every prefetch. In the order
# of the pages by time, so that no more rows are read than are shown.
PATTERNS_NEWEST = index(
    "patterns_newest",
    "user_id -created_at -stats.score -updated_at -point_id",
    only={"tier": Tier.PATTERNS.value, **ACTIVE_ONLY},
)

# The same of what asks something of every answer; about empty for most users.
INSTRUCTIONS_NEWEST = index(
    "instructions_newest",
    "user_id -created_at -stats.score -updated_at -point_id",
    only={"instruction": IS_TEXT, **ACTIVE_ONLY},
)

# What a person hid, newest first; about empty for most users.
HIDDEN = index("hidden", "user_id -archived_at -point_id", only=HIDDEN_ONLY)

# What is still to be learned from; empty while nothing waits. By user and time, because a claim
# passes over a user of whom a turn is being worked on.
EXCHANGES_BY_USER = index("exchanges_by_user", "state user_id due_at", only={"state": "waiting"})

# The first turn of each user who waits, from keys alone: a user's turns are learned in their order.
EXCHANGES_IN_ORDER = index(
    "exchanges_in_order", "state user_id at message_id due_at", only={"state": "waiting"}
)
# Whether anything is due at all: a look that finds nothing reads one key.
EXCHANGES_DUE = index("exchanges_due", "state due_at", only={"state": "waiting"})

# What may be claimed, of any collection that is a `ClaimQueue`: about empty while nothing waits.
CLAIM_DUE = index(
    "claim_due", "work.state work.priority work.due_at", only={"work.state": "waiting"}
)

# What waits for a person, counted over all users from keys alone.
WAITS = {"state": "pending"}

# Newest first, and one order among equal times.
NEWEST_JOB = "-created_at -job_id"

# Of earlier versions.
RETIRED = ((ITEMS, "user_pending_stored"),)

INDEXES: dict[str, tuple[IndexSpec, ...]] = {
    ITEMS: (
        USER_MEMORY,
        POINT,
        USER_TIER_STATUS,
        index("user_status_updated", "user_id status -updated_at"),
        ACTIVE_TEXT,
        index("user_tags", "user_id tags"),
        index("user_entities", "user_id entities"),
        index("user_pinned", "user_id always_inject status"),
        index("tier_expiry", "tier expires_at"),
        SYNC_DUE,
        WAITING,
        PENDING_BY_USER,
        PENDING_SINCE,
        FAILED_BY_USER,
        FOLLOW_UP,
        UNDERSTAND,
        JUDGED,
        EXPIRING,
        WORKING_STORED,
        MERGED,
        INDEXED,
        PATTERNS_NEWEST,
        INSTRUCTIONS_NEWEST,
        HIDDEN,
        # What was stored and learned in a conversation.
        index(
            "conversation_items",
            "user_id source.conversation_id",
            only={"source.conversation_id": IS_TEXT},
        ),
        TEXT_SEARCH,
        VEILED_WORDS,
    ),
    VERSIONS: (index("user_memory_version", "user_id memory_id -version", unique=True),),
    CHANGES: (
        index("owner_at", "owner -at"),
        index("change_expiry", "noted_at", ttl_s=CHANGE_TTL_S),
    ),
    DELETIONS: (index("user_tier", "user_id tier", unique=True),),
    RECEIPTS: (
        index("receipt", "receipt_id", unique=True),
        index("receipt_expiry", "expires_at", ttl_s=0),
        index(
            "conversation_receipts",
            "user_id conversation_id -at -receipt_id",
            only={"conversation_id": IS_TEXT},
        ),
    ),
    EVENTS: (
        index("event", "event_id", unique=True),
        index("user_events", "user_id -at"),
        index(
            "conversation_events",
            "user_id data.conversation_id",
            only={"data.conversation_id": IS_TEXT},
        ),
        index("event_expiry", "at", ttl_s=EVENT_TTL_S),
    ),
    OUTCOMES: (
        index("user_key", "user_id idempotency_key", unique=True),
        index("user_principal_at", "user_id principal -at"),
        index("user_applied", "user_id applied.point_id outcome -at"),
        index(
            "conversation_outcomes",
            "user_id conversation_id -at",
            only={"conversation_id": IS_TEXT},
        ),
        OWES_GRAPH,
        OWES_PROMOTION,
    ),
    SOLUTIONS: (
        index("user_problem_memory", "user_id problem_hash memory_id", unique=True),
        index("user_point", "user_id point_id"),
    ),
    ROUTING: (
        index("user_concept", "user_id concept", unique=True),
        index("user_seen", "user_id -last_seen_at"),
    ),
    NODES: (index("user_node", "user_id node_id", unique=True),),
    EDGES: (
        index("user_edge", "user_id source target relation", unique=True),
        index("user_target", "user_id target"),
    ),
    ACTIONS: (index("user_context_action_tier", "user_id context_type action tier", unique=True),),
    BOOKS: (index("user_doc", "user_id doc_id", unique=True),),
    DOCUMENTS: (
        index("user_book", "user_id book_id", unique=True),
        index("user_uploaded", "user_id -uploaded_at -book_id"),
        index("user_text", "user_id text_hash"),
        index("user_title", "user_id title"),
        index("title_once", "user_id title_key", unique=True, only={"title_key": IS_TEXT}),
        # What somebody is to work on: about empty.
        index("document_due", "due_at", only={"due_at": IS_DATE}),
        # What a language model is to read: about empty where there is one.
        index("digest_due", "digest_due_at", only={"digest_due_at": IS_DATE}),
    ),
    UPLOADS: (
        index("user_upload", "user_id upload_id part", unique=True),
        index("upload_expiry", "expires_at", ttl_s=0),
    ),
    JOBS: (
        index("job", "job_id", unique=True),
        index("kind_created", f"kind {NEWEST_JOB}"),
        index("created", NEWEST_JOB),
        index("state_updated", "state -updated_at"),
        index("job_expiry", EXPIRES_FROM, ttl_s=JOB_TTL_S),
    ),
    PARTITIONS: (
        index("job_partition", "job_id index", unique=True),
        index("partition_expiry", EXPIRES_FROM, ttl_s=JOB_TTL_S),
    ),
    QUARANTINE: (
        index("quarantined", "point_id rev", unique=True),
        index("quarantine_home", "home"),
        index("quarantine_expiry", "at", ttl_s=QUARANTINE_TTL_S),
    ),
    SESSIONS: (
        index("user_conversation", "user_id conversation_id", unique=True),
        index("user_turn", "user_id turns.message_id"),
        # A score by receipt alone; about as many rows as there are turns without a score.
        index("user_owed", "user_id owed_receipt", only={"owed_receipt": IS_TEXT}),
        index("session_expiry", "expires_at", ttl_s=0),
        # Conversations as a list shows them, and the one that a user is in.
        index(
            "conversations_newest", "user_id -last_at -conversation_id", only={"last_at": IS_DATE}
        ),
        index("user_active", "user_id -active_at", only={"active_at": IS_DATE}),
    ),
    TURNS: (
        index("user_turn_message", "user_id conversation_id message_id", unique=True),
        index("conversation_turns", "user_id conversation_id -at -message_id"),
        index("turn_words", "user_id words"),
        index("turn_point", "point_id"),
    ),
    MODEL_WINDOWS: (index("user_model", "user_id model", unique=True),),
    PERSONALITY: (index("user", "user_id", unique=True),),
    WEBHOOKS: (index("user_webhook", "user_id webhook_id", unique=True),),
    WEBHOOK_FEED: (),
    WEBHOOK_DELIVERIES: (
        CLAIM_DUE,
        index("user_delivery", "user_id delivery_id", unique=True),
        index("webhook_log", "user_id webhook_id -at"),
        index("delivery_expiry", "expires_at", ttl_s=0),
    ),
    UNDERSTANDINGS: (
        CLAIM_DUE,
        USER_MEMORY,
        index("user_text", "user_id source_hash"),
        index("user_topics", "user_id topics -said_at"),
    ),
    GIVEN: (index("user_source", "user_id source_id", unique=True),),
    KNOWN_ENTITIES: (
        index("user_entity", "user_id entity_id", unique=True),
        index("user_entity_keys", "user_id keys.name"),
        index("user_type_mentions", "user_id type -mentions entity_id"),
        index("user_mentions", "user_id -mentions entity_id"),
        index("user_parts", "user_id merged_into", only={"merged_into": {"$type": "string"}}),
    ),
    MERGES: (
        index("user_merge", "user_id merge_id", unique=True),
        index("user_merges_newest", "user_id -created_at merge_id"),
        index("pending_merges", "state", only=WAITS),
    ),
    STATEMENTS: (
        index("user_statement", "user_id statement_id", unique=True),
        index("user_given_by", "user_id source_id"),
        index("user_slot", "user_id slot"),
        index("user_fact", "user_id fact_id"),
        index("user_subject_relation", "user_id subject_id relation -confirmed_at"),
        index("user_object_relation", "user_id object_id relation -confirmed_at"),
        index("user_relation", "user_id relation -confirmed_at"),
        # Who said something that the registry has no name for.
        index("labelled", "label user_id", only={"label": IS_TEXT}),
    ),
    ONTOLOGY: (index("tenant_version", "tenant version", unique=True),),
    RULINGS: (index("tenant_proposal", "tenant proposal_id", unique=True),),
    DERIVED: (
        index("user_derived", "user_id derived_id", unique=True),
        index("user_rests_on", "user_id sources.source_id"),
        index("user_kind_state", "user_id kind state -last_at derived_id"),
        index("pending_derived", "state kind", only=WAITS),
    ),
    EXCHANGES: (
        index("user_exchange", "user_id conversation_id message_id", unique=True),
        index("conversation_exchanges", "user_id conversation_id -at -message_id"),
        EXCHANGES_BY_USER,
        EXCHANGES_IN_ORDER,
        EXCHANGES_DUE,
        # Finds the texts of a memory that is deleted.
        index("exchange_point", "point_id", only={"point_id": IS_TEXT}),
        index("exchange_expiry", "at", ttl_s=EXCHANGE_TTL_S),
    ),
    MODEL_USAGE: (
        index("user_usage", "user_id -at"),
        index("usage_expiry", "at", ttl_s=MODEL_USAGE_TTL_S),
    ),
    IMPORTS: (
        index("user_archive", "user_id archive", unique=True),
        index("import_expiry", "at", ttl_s=IMPORT_TTL_S),
    ),
    LEASES: (),  # one row per name: `_id`
    API_KEYS: (index("key_hash", "key_hash", unique=True), index("principal", "principal")),
    AUDIT_LOG: (
        index("audit_entry", "entry_id", unique=True),
        index("audit_expiry", "expires_at", ttl_s=0),
    ),
    DAYS: (index("day", "day", unique=True), index("day_expiry", "at", ttl_s=DAYS_TTL_S)),
    HOLDS: (index("held_user", "user_id", unique=True),),
    BACKUP_KEYS: (index("sealed_user", "user_id"),),
    ENDED_TOKENS: (index("token_expiry", "expires_at", ttl_s=0),),
    IDEMPOTENCY: (
        index("user_route_key", "user_id route key", unique=True),
        index("idempotency_expiry", "at", ttl_s=IDEMPOTENCY_TTL_S),
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
