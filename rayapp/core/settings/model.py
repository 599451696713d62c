"""Every setting with its bounds. `load.py` reads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from rayapp.core.disk_space import DiskLimits
from rayapp.core.settings import rules as settings_rules
from rayapp.core.settings.access import (
    AuthSettings,
    HttpSettings,
    RateLimitSettings,
    SettingsSection,
)


class ContextSettings(SettingsSection):
    timeout_s: float = Field(0.8, gt=0, le=10, description="End-to-end limit of a prefetch.")
    token_budget: int = Field(
        2_000, ge=50, le=100_000, description="Tokens of the text block when none are named."
    )
    stable_share: float = Field(
        0.5, ge=0, le=0.9, description="Share of the budget that the stable part may take."
    )
    always_inject: int = Field(20, ge=0, le=100, description="Pinned memories in the block.")
    identity: int = Field(10, ge=0, le=100, description="Memories tagged identity in the block.")
    preferences: int = Field(
        10, ge=0, le=100, description="Memories tagged preference in the block."
    )
    patterns: int = Field(5, ge=0, le=50, description="Proven patterns in the stable part.")
    instructions: int = Field(
        20, ge=0, le=100, description="Instructions and preferences that messages told."
    )
    min_relevance: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Relevance of the best hit below which none is shown; null: the recipe's, by "
        "calibration; 0: off.",
    )
    min_share: float = Field(
        0.53,
        ge=0,
        le=1,
        description="Share of the best hit's strength that a shown hit has; 0: off.",
    )
    share_rise: float = Field(
        0.225,
        ge=0,
        le=1,
        description="What that share grows by until the last hit that the question asks for.",
    )
    small_store: int = Field(
        5, ge=0, le=50, description="Up to so many memories, all of them are context."
    )
    recent: int = Field(10, ge=0, le=50, description="Newest memories shown when nothing is found.")
    cold_start: int = Field(10, ge=1, le=50, description="Memories of a cold start.")
    receipt_ttl_days: float = Field(
        30.0, gt=0, description="Lifetime of the receipt of a prefetch, days."
    )


# A stream looks at its end once a second, and says goodbye before anybody cuts it, seconds.
STREAM_END_S = 5.0


class EventSettings(SettingsSection):
    stream_s: float = Field(
        55.0, gt=0, le=600, description="The server ends a stream then; the client reconnects."
    )
    heartbeat_s: float = Field(
        10.0, gt=0, le=60, description="Between two signs of life; proxies end silent streams."
    )
    max_streams: int = Field(
        32, ge=1, le=1_000, description="Open streams per replica; each holds one connection."
    )


class HooksSettings(SettingsSection):
    session_ttl_days: float = Field(
        30.0,
        gt=0,
        le=3_650,
        description="Lifetime of what a conversation was shown when no turn of it was kept, days.",
    )
    attribution: bool = Field(
        True, description="Ask the assistant to mark which memories helped, in the context block."
    )
    reaction_timeout_s: float = Field(
        1.5,
        gt=0,
        le=10,
        description="What a model may take to judge the last answer by the next question, before "
        "the context of that is read.",
    )


def _endpoint(value: str) -> str:
    """Empty, or an http address. The value is not repeated: it may hold a password."""
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = None
    if value and (parts is None or parts.scheme not in ("http", "https") or not parts.netloc):
        raise ValueError("start it with http:// or https://, for example http://host:8080/v1")
    return value


class HelperFlags(SettingsSection):
    outcome_detection: bool = Field(True, description="Judge an answer by what the user says next.")
    fact_extraction: bool = Field(True, description="Learn one fact from an exchange.")
    contextual_prefix: bool = Field(
        False, description="Say what a text is about before it is embedded: a call per memory."
    )
    profile_detection: bool = Field(True, description="Learn what users say of themselves.")
    history_summary: bool = Field(True, description="Sum up long conversations.")
    conversation_title: bool = Field(True, description="Name a conversation after its first turn.")
    merge_duplicates: bool = Field(True, description="Word what merged memories say together.")
    tool_result_summary: bool = Field(True, description="Sum up long answers of tools.")
    answer_reading: bool = Field(
        True, description="Read whether a search found an answer, where a request asks for it."
    )
    document_notes: bool = Field(
        True, description="Sum up documents in the background: a call per six passages."
    )
    document_summary: bool = Field(True, description="Make one summary of those of the passages.")


class ModelsSettings(SettingsSection):
    base_url: Annotated[str, AfterValidator(_endpoint)] = Field(
        "", description="OpenAI-compatible endpoint, up to `/v1`; empty: helpers are off."
    )
    model: str = Field("", description="Name of the model there.")
    # Plain text, because settings travel to other processes as JSON; never shown, never logged.
    api_key: str = Field("", repr=False, description="Bearer token.")
    timeout_s: float = Field(10.0, gt=0, le=120, description="Limit of one answer.")
    prefix_timeout_s: float = Field(
        5.0, gt=0, le=60, description="The same for the contextual prefix."
    )
    chain_depth: int = Field(
        3, ge=0, le=100, description="Rounds of tools before a chat must answer; 0: no limit."
    )
    chat_timeout_s: float = Field(
        120.0, gt=0, le=3_600, description="Longest silence of the model in `/v1/chat/completions`."
    )
    concurrency: int = Field(5, ge=1, le=256, description="Calls in flight per process.")
    price_prompt: float = Field(0.0, ge=0, description="Price of a million tokens asked.")
    price_completion: float = Field(0.0, ge=0, description="Price of a million tokens answered.")
    calls_per_day: int = Field(2_000, ge=0, description="Per user and UTC day; 0 = no limit.")
    tokens_per_day: int = Field(2_000_000, ge=0, description="Per user and UTC day; 0 = no limit.")
    cost_per_day: float = Field(0.0, ge=0, description="Per user and UTC day; 0 = no limit.")
    raw_log_share: float = Field(
        0.0, ge=0, le=1, description="Share of answers logged, redacted and cut; 0 = none."
    )
    helpers: HelperFlags = Field(HelperFlags(), description="Which helpers may use the model.")

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.base_url and not self.model:
            raise ValueError("models.base_url is set: set models.model too")
        return self

    @property
    def on(self) -> bool:
        """True when there is an endpoint."""
        return bool(self.base_url)


class ToolResultSettings(SettingsSection):
    min_chars: int = Field(
        100, ge=1, le=10_000, description="Shorter answers of tools are not kept, characters."
    )
    max_chars: int = Field(
        10_000, ge=200, le=50_000, description="Longer answers of tools are cut, characters."
    )
    per_conversation: int = Field(
        500, ge=1, description="Active tool results of one conversation (decision 0030)."
    )
    batch_limit_items: int = Field(20, ge=1, le=100, description="Most results in one request.")


LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
Profile = Literal["local", "gpu", "prod"]
MongoUri = Annotated[str, AfterValidator(settings_rules.mongo_uri)]
QdrantUrl = Annotated[str, AfterValidator(settings_rules.qdrant_url)]
RedisUrl = Annotated[str, AfterValidator(settings_rules.redis_url)]
RayAddress = Annotated[str, AfterValidator(settings_rules.ray_address)]


class DataSettings(SettingsSection):
    dir: Path = Field(Path(".rayapp"), description="Directory of everything the local stack keeps.")
    warn_free_bytes: int = Field(
        5 << 30, ge=0, description="Below that, diagnostics, status and doctor warn of its disk."
    )
    bulk_free_bytes: int = Field(
        1 << 30, ge=0, description="Below that, jobs, imports and uploads are refused with 507."
    )
    min_free_bytes: int = Field(
        500 << 20, ge=0, description="Below that, writes are refused with 507; 0 never refuses."
    )
    holds_store: bool = Field(
        False, description="Filled in by the local stack: its MongoDB keeps its files here."
    )

    @property
    def disk_limits(self) -> DiskLimits:
        return DiskLimits(
            warn_bytes=self.warn_free_bytes,
            bulk_bytes=self.bulk_free_bytes,
            min_bytes=self.min_free_bytes,
        )


class MongoSettings(SettingsSection):
    uri: MongoUri = Field("", description="Connection URI; empty: the local stack starts a mongod.")
    database: str = Field("rayapp", min_length=1, description="Database name.")
    pool_size: int = Field(32, ge=1, le=500, description="Connections per process.")
    timeout_s: float = Field(5.0, gt=0, le=120, description="Limit of one operation.")
    server_selection_s: float = Field(2.0, gt=0, le=60, description="Wait for a primary.")
    text_timeout_s: float = Field(1.5, gt=0, le=60, description="Limit of a `$text` search.")
    wired_tiger_cache_gb: float = Field(
        0.25, ge=0.25, le=64, description="Cache of the mongod that the local stack starts."
    )


class QdrantSettings(SettingsSection):
    url: QdrantUrl = Field("", description="Server URL; empty: the embedded engine.")
    api_key: str = Field("", description="Server API key.")
    grpc_port: int = Field(6334, ge=1, le=65535, description="Server gRPC port.")
    prefer_grpc: bool = Field(True, description="gRPC instead of REST.")
    alias: str = Field("memories", min_length=1, description="Alias that search reads.")
    timeout_s: float = Field(1.5, gt=0, le=60, description="Limit of a read.")
    write_timeout_s: float = Field(30.0, gt=0, le=600, description="Limit of a write.")
    hnsw_m: int = Field(0, ge=0, le=64, description="HNSW links on a server; 0 = exact search.")
    flush_interval_s: float = Field(5.0, gt=0, le=60, description="Embedded engine: flush period.")
    upsert_batch: int = Field(256, ge=1, le=4096, description="Points per upsert call.")


class RedisSettings(SettingsSection):
    url: RedisUrl = Field("", description="Redis or Valkey URL; empty: only the in-process LRU.")
    timeout_s: float = Field(0.05, gt=0, le=5, description="Limit of one cache call.")


class RaySettings(SettingsSection):
    address: RayAddress = Field("", description="Cluster to join; empty: a local head is started.")
    num_cpus: int = Field(0, ge=0, description="CPUs of a local head for admission; 0 = detected.")
    object_store_mb: int = Field(150, ge=80, le=65536, description="Object store of a local head.")
    dashboard: bool = Field(True, description="Start the dashboard with a local head.")
    token_auth: bool = Field(True, description="Token authentication on a local head.")


class DeploymentSettings(SettingsSection):
    replicas: int = Field(1, ge=1, le=128, description="Replicas.")
    max_replicas: int = Field(0, ge=0, le=512, description="Above 0: autoscale up to this many.")
    num_cpus: float = Field(0.1, ge=0, le=128, description="CPUs reserved per replica.")
    num_gpus: float = Field(0.0, ge=0, le=16, description="GPUs reserved per replica.")
    max_ongoing_requests: int = Field(64, ge=1, le=4096, description="Requests in a replica.")
    max_queued_requests: int = Field(256, ge=1, le=100_000, description="Requests queued for it.")
    graceful_shutdown_s: float = Field(10.0, ge=0, le=600, description="Drain time at shutdown.")


class IngressSettings(DeploymentSettings):
    """A class of its own: its default must survive a profile that sets only the replicas."""

    max_ongoing_requests: int = Field(
        1_024, ge=1, le=4096, description="Requests in a replica, held refusals included."
    )


class ServeSettings(SettingsSection):
    search: IngressSettings = Field(IngressSettings(), description="Ingress: API and search.")
    embedding: DeploymentSettings = Field(DeploymentSettings(), description="Embedding gateway.")
    reranker: DeploymentSettings = Field(DeploymentSettings(), description="Reranker.")
    indexer: DeploymentSettings = Field(DeploymentSettings(), description="Indexer.")
    maintenance: DeploymentSettings = Field(
        DeploymentSettings(), description="Owner of promotion and of the outbox."
    )
    background_together: bool = Field(
        False, description="Maintenance in the processes of the indexer: one less on a laptop."
    )
    request_timeout_s: float = Field(30.0, gt=0, le=600, description="Limit of one HTTP request.")


class BatchSettings(SettingsSection):
    max_size: int = Field(64, ge=1, le=4096, description="Texts per backend call.")
    wait_s: float = Field(0.001, ge=0, le=0.1, description="Time a batch waits for company.")
    max_tokens: int = Field(16_384, ge=64, description="Token budget of a batch on a CPU.")
    tokens_per_free_gib: int = Field(
        8_192, ge=64, description="Token budget of a batch per GiB of free GPU memory."
    )


class EmbeddingSettings(SettingsSection):
    backend: Literal["static", "http", "local"] = Field("static", description="Which backend.")
    model: str = Field("bilingual-static-1", min_length=1, description="Model name or folder.")
    url: str = Field("", description="http: base URL of the server.")
    api: Literal["dicta", "tei", "openai"] = Field("dicta", description="http: request shape.")
    api_key: str = Field("", description="http: bearer token.")
    dims: int = Field(
        0, ge=0, le=65536, description="Size; 0 = ask the backend, which must be up then."
    )
    precision: Literal["auto", "float32", "float16", "bfloat16"] = Field(
        "auto", description="local, torch: auto = float16 on a GPU, float32 on a CPU."
    )
    query_prefix: str = Field("", description="Put before every query text.")
    passage_prefix: str = Field("", description="Put before every stored text.")
    query_timeout_s: float = Field(2.0, gt=0, le=60, description="Limit for a query.")
    batch_timeout_s: float = Field(10.0, gt=0, le=600, description="Limit for a batch.")
    cache_ttl_s: int = Field(7 * 86_400, ge=60, description="Cache lifetime of a vector.")
    lru_items: int = Field(20_000, ge=0, description="Vectors kept in process.")
    max_text_chars: int = Field(20_000, ge=100, description="Longest text given to a model.")
    batch: BatchSettings = Field(BatchSettings(), description="Batching.")


class RerankerSettings(SettingsSection):
    backend: Literal["none", "features", "http", "local"] = Field(
        "features", description="Which backend."
    )
    model: str = Field(
        "", description="Model name or folder; features: its static model, empty = its own."
    )
    url: str = Field("", description="http: base URL of the server.")
    api: Literal["rerank", "tei"] = Field("rerank", description="http: request shape.")
    api_key: str = Field("", description="http: bearer token.")
    precision: Literal["auto", "float32", "float16", "bfloat16"] = Field(
        "auto", description="local, torch: auto = float16 on a GPU, float32 on a CPU."
    )
    timeout_s: float = Field(2.0, gt=0, le=60, description="Limit of one call.")
    max_candidates: int = Field(30, ge=1, le=200, description="Candidates reranked.")
    max_chars: int = Field(4_000, ge=100, description="Characters of a document given to it.")
    batch: BatchSettings = Field(BatchSettings(max_size=32), description="Batching.")


class SearchSettings(SettingsSection):
    timeout_s: float = Field(15.0, gt=0, le=60, description="End-to-end limit of a search.")
    recipe: str = Field("default", min_length=1, description="Recipe used when none is named.")
    depth_factor: int = Field(3, ge=1, le=20, description="Candidates per tier = limit x this.")
    min_depth: int = Field(
        60, ge=1, le=500, description="Fewest candidates per tier and retriever."
    )
    max_limit: int = Field(50, ge=1, le=200, description="Largest `limit`.")
    pending_limit: int = Field(200, ge=0, le=2_000, description="Pending items scored per search.")
    receipt_ttl_h: float = Field(24.0, gt=0, description="Lifetime of an unscored receipt, hours.")
    receipt_window_s: float = Field(
        0.02, ge=0, le=1, description="Receipts of so long are written together; 0 = each alone."
    )
    resident_bytes: int = Field(
        400_000_000, ge=0, description="Memory per replica for users held as columns; 0 = none."
    )
    resident_max_items: int = Field(
        20_000, ge=0, description="Memories of a user beyond which the index is searched."
    )


class IndexerSettings(SettingsSection):
    batch_size: int = Field(256, ge=1, le=2_000, description="Items claimed at once.")
    poll_s: float = Field(0.1, gt=0, le=60, description="Pause when nothing is due.")
    claim_s: float = Field(60.0, gt=1, le=3_600, description="Lifetime of a claim.")
    max_attempts: int = Field(20, ge=1, le=1_000, description="Tries before `failed`.")
    backoff_min_s: float = Field(1.0, gt=0, description="First pause after a failure.")
    backoff_max_s: float = Field(600.0, gt=0, description="Longest pause after a failure.")


class MemoryBankSettings(SettingsSection):
    capacity: int = Field(1_000, ge=1, description="Active items per user; the worst leave first.")
    text_limit_chars: int = Field(5_000, ge=1, description="Longest memory_bank text.")


class LearningSettings(SettingsSection):
    implicit_confidence: float = Field(
        0.7, ge=0, le=1, description="Least confidence of an implicit signal that counts."
    )
    scored_receipt_ttl_days: float = Field(
        30.0, gt=0, description="Lifetime of a scored receipt, days."
    )
    guest_outcomes_per_hour: int = Field(
        200, ge=1, description="Memories per hour that a key may judge which it did not store."
    )
    effects_poll_s: float = Field(
        0.5, gt=0, le=1.5, description="Pause between two looks at the outbox of outcomes."
    )
    effects_batch: int = Field(200, ge=1, le=5_000, description="Events or items per look.")


class PromotionSettings(SettingsSection):
    policy: Literal["score", "wilson"] = Field(
        "score", description="What gates a promotion; wilson is 0.7 after nine straight successes."
    )
    interval_s: float = Field(1_800.0, ge=1, description="Pause between two cycles over all users.")
    settle_s: float = Field(
        60.0, ge=0, description="Age of an outcome before its items are looked at."
    )
    exchanges: int = Field(
        20, ge=1, description="Stored exchanges of a user after which a cycle runs."
    )
    batch_size: int = Field(500, ge=1, le=10_000, description="Items read at once by a cycle.")
    lease_s: float = Field(60.0, gt=1, description="Lifetime of the owner's lease.")


class DedupSettings(SettingsSection):
    enabled: bool = Field(True, description="Look for near-duplicates of facts and patterns.")
    similarity: float = Field(
        0.95, gt=0, le=1, description="Least cosine of a transformer's vectors (its own scale)."
    )
    # The words decide (decision 0068); a cosine only keeps apart what has nothing in common.
    static_similarity: float = Field(
        0.8, ge=0, le=1, description="The same for the static embedder; 0 = off."
    )
    neighbours: int = Field(5, ge=1, le=50, description="Nearest items compared with a new one.")


class GraphSettings(SettingsSection):
    max_nodes: int = Field(5_000, ge=1, description="Content graph nodes of one user at most.")
    max_edges: int = Field(20_000, ge=1, description="Content graph edges of one user at most.")
    max_concepts: int = Field(5_000, ge=1, description="Routing concepts of one user at most.")
    priors_timeout_s: float = Field(
        0.25, gt=0, le=5, description="Time that a search gives the graphs."
    )
    empty_cache_s: float = Field(
        2.0, ge=0, le=60, description="How long a user is known to have no graph."
    )


class JobsSettings(SettingsSection):
    concurrency: int = Field(2, ge=1, le=256, description="Workers of a bulk job.")
    worker_cpus: float = Field(0.2, ge=0, le=64, description="CPUs that Ray sets aside per worker.")
    worker_gpus: float = Field(0.0, ge=0, le=8, description="GPUs per worker that embeds.")
    lease_s: float = Field(30.0, gt=2, le=600, description="Lifetime of a driver's lease.")
    attempts: int = Field(
        5, ge=1, le=100, description="Deaths of workers at one step, or of drivers, that fail it."
    )


class ReindexSettings(SettingsSection):
    partitions: int = Field(32, ge=1, le=4_096, description="Ranges of point ids.")
    batch_size: int = Field(256, ge=1, le=2_000, description="Items per step.")
    sample: int = Field(200, ge=1, le=10_000, description="Vectors compared before the switch.")
    receipts: int = Field(50, ge=0, le=1_000, description="Last searches replayed before it.")
    min_overlap: float = Field(
        0.9, ge=0, le=1, description="Least mean overlap of their top 10, for the same model."
    )
    rollback_h: float = Field(
        24.0, ge=0, le=24 * 365, description="How long the old collection is kept, hours."
    )


class ConsistencySettings(SettingsSection):
    interval_s: float = Field(900.0, ge=1, description="Pause between two sampled sweeps.")
    sample: int = Field(1_000, ge=1, le=100_000, description="Points looked at by a sampled sweep.")
    repair: bool = Field(True, description="Sampled sweeps repair what they find.")
    grace_s: float = Field(
        2.0, ge=0, le=60, description="Pause before a difference is looked at again."
    )
    partitions: int = Field(32, ge=1, le=4_096, description="Ranges of point ids of a full sweep.")
    batch_size: int = Field(500, ge=1, le=5_000, description="Points per step.")


class DatagovSettings(SettingsSection):
    preload: bool = Field(False, description="Fill the DataGov tiers in the background at start.")
    source: Path | None = Field(None, description="Folder of the catalogue; empty = live CKAN.")
    ckan_url: str = Field("https://data.gov.il", min_length=1, description="CKAN site.")
    graph_datasets: int = Field(5, ge=0, le=50, description="Datasets per category in the graph.")
    graph_nodes: int = Field(
        150, ge=22, le=5_000, description="Nodes of the DataGov graph at most."
    )
    intent: bool = Field(True, description="A question about open data also searches its tiers.")


class DocumentSettings(SettingsSection):
    max_bytes: int = Field(
        50 * 1024 * 1024, ge=1_024, le=1024**3, description="Size of a file at most, bytes."
    )
    max_pages: int = Field(5_000, ge=1, description="Pages of a file at most.")
    max_characters: int = Field(
        10_000_000, ge=1_000, le=50_000_000, description="Text of a file at most, characters."
    )
    read_s: float = Field(60.0, gt=0, le=3_600, description="Time that reading a file may take.")
    read_memory_mb: int = Field(500, ge=128, description="Memory of the process that reads, MiB.")
    keep_original: bool = Field(False, description="Keep the file after it was read.")
    uploads: int = Field(2, ge=1, le=64, description="Files that arrive at once, per replica.")
    upload_s: float = Field(60.0, gt=0, le=3_600, description="Time that a file may take to come.")


def _kept(what: str) -> Any:
    said = f"{what} go so many days after their last change; 0 = never."
    return Field(0.0, ge=0, le=36_500, description=said)


class BackupSettings(SettingsSection):
    dir: Path | None = Field(None, description="Folder of archives; empty: `backups` in data.dir.")
    max_upload_bytes: int = Field(
        64 << 20, ge=1024, description="Largest archive that an upload takes; each is in memory."
    )
    max_unpacked_bytes: int = Field(
        20 << 30, ge=1024, description="Largest archive, unpacked, that an import reads."
    )
    every_h: float = Field(
        0.0, ge=0, description="Pause between backups of the whole store, hours; 0 = none."
    )
    keep: int = Field(7, ge=1, le=1_000, description="Newest backups that stay after one is made.")
    url: str = Field(
        "",
        description="Where backups of the whole store lie: a folder, or an address such as "
        "s3://bucket/path (fsspec; its keys from the environment); empty: the folder of archives.",
    )
    recipient: str = Field(
        "", description="Public key of age (age1…) that backups are encrypted for; empty: none."
    )
    key_file: Path | None = Field(
        None, description="Secret key of age that reads them; without `recipient`, also for which."
    )
    user_keys: str = Field(
        "",
        description="Folder or address, away from the data and the backups, of the keys under "
        "which a backup seals the rows of each user; an erased user's key goes. Empty: not sealed.",
    )

    def folder_in(self, data: Path) -> Path:
        """Of archives and backups, for this data directory."""
        return self.dir or data / "backups"

    def place_in(self, data: Path) -> str | Path:
        """Of backups of the whole store."""
        return self.url or self.folder_in(data)


class RetentionSettings(SettingsSection):
    """How long what people keep may stay; 0 = as long as it is not deleted."""

    working_days: float = _kept("Working memories")
    history_days: float = _kept("Memories of history")
    patterns_days: float = _kept("Patterns")
    memory_bank_days: float = _kept("Facts of the memory bank")
    tool_results_days: float = _kept("Results of tools, whatever their tier,")
    conversations_days: float = _kept("Conversations with all that they taught")
    documents_days: float = Field(
        0.0, ge=0, le=36_500, description="Documents go so many days after their upload; 0 = never."
    )
    pinned: bool = Field(False, description="Pinned memories go too.")
    every_h: float = Field(24.0, gt=0, description="Pause between two looks, hours.")

    @property
    def days(self) -> Mapping[str, float]:
        """By kind, those that are limited."""
        end, found = "_days", {name: getattr(self, name) for name in type(self).model_fields}
        return {name.removesuffix(end): n for name, n in found.items() if name.endswith(end) and n}


class BreakerSettings(SettingsSection):
    failures: int = Field(3, ge=1, description="Failures in a row that open it.")
    embedder_failures: int = Field(2, ge=1, description="The same for the embedder.")
    open_s: float = Field(30.0, gt=0, description="Pause before one probe.")
    embedder_open_s: float = Field(60.0, gt=0, description="The same for the embedder.")
    successes: int = Field(2, ge=1, description="Successes in a row that close it.")


class CompatSettings(SettingsSection):
    tier_documents: bool = Field(True, description="Every answer says `documents` for books.")
    first_client: bool = Field(
        False,
        description="As the first client has it: the search repeats `debug` as `retrievalDebug`, "
        "its routes that clear ask for no `confirm`.",
    )


class LoggingSettings(SettingsSection):
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Level.")
    json_lines: bool = Field(True, description="JSON lines instead of text.")


class Settings(SettingsSection):
    """The root. Build it with `load_settings`."""

    profile: Profile = Field("local", description="Which YAML profile these settings came from.")
    data: DataSettings = Field(DataSettings(), description="Files.")
    http: HttpSettings = Field(HttpSettings(), description="HTTP.")
    auth: AuthSettings = Field(AuthSettings(), description="Authentication.")
    rate_limit: RateLimitSettings = Field(RateLimitSettings(), description="Rate limit per key.")
    mongo: MongoSettings = Field(MongoSettings(), description="MongoDB, the truth.")
    qdrant: QdrantSettings = Field(QdrantSettings(), description="Qdrant, the index.")
    redis: RedisSettings = Field(RedisSettings(), description="Redis, the cache.")
    ray: RaySettings = Field(RaySettings(), description="Ray.")
    serve: ServeSettings = Field(ServeSettings(), description="Deployments.")
    embedding: EmbeddingSettings = Field(EmbeddingSettings(), description="Embedding gateway.")
    reranker: RerankerSettings = Field(RerankerSettings(), description="Reranker.")
    search: SearchSettings = Field(SearchSettings(), description="Search.")
    indexer: IndexerSettings = Field(IndexerSettings(), description="Indexer.")
    memory_bank: MemoryBankSettings = Field(MemoryBankSettings(), description="memory_bank.")
    learning: LearningSettings = Field(LearningSettings(), description="Outcomes.")
    promotion: PromotionSettings = Field(PromotionSettings(), description="Promotion.")
    dedup: DedupSettings = Field(DedupSettings(), description="Near-duplicates.")
    graph: GraphSettings = Field(GraphSettings(), description="The three graphs.")
    context: ContextSettings = Field(ContextSettings(), description="Context of an assistant.")
    hooks: HooksSettings = Field(HooksSettings(), description="Hooks around a turn of a chat.")
    tool_results: ToolResultSettings = Field(
        ToolResultSettings(), description="Remembered answers of tools."
    )
    events: EventSettings = Field(EventSettings(), description="Event stream.")
    models: ModelsSettings = Field(ModelsSettings(), description="Language model of the helpers.")
    jobs: JobsSettings = Field(JobsSettings(), description="Bulk jobs.")
    reindex: ReindexSettings = Field(ReindexSettings(), description="Reindex.")
    consistency: ConsistencySettings = Field(ConsistencySettings(), description="Sweeps.")
    datagov: DatagovSettings = Field(DatagovSettings(), description="Open-data catalogue.")
    documents: DocumentSettings = Field(DocumentSettings(), description="Documents of users.")
    backup: BackupSettings = Field(BackupSettings(), description="Exports, imports, backups.")
    retention: RetentionSettings = Field(
        RetentionSettings(), description="What goes by itself, and when."
    )
    breaker: BreakerSettings = Field(BreakerSettings(), description="Circuit breakers.")
    compat: CompatSettings = Field(CompatSettings(), description="First client's habits.")
    logging: LoggingSettings = Field(LoggingSettings(), description="Logs.")

    @model_validator(mode="after")
    def _refuse_dangerous(self) -> Self:
        if reason := settings_rules.refusal(self):
            raise ValueError(reason)
        return self

    @property
    def on_loopback(self) -> bool:
        """True when only this machine reaches the HTTP port."""
        return self.http.host in LOOPBACK_HOSTS

    @property
    def stream_limit_s(self) -> float:
        """The longest that any answer takes: an event stream, ended by itself before that."""
        return max(self.serve.request_timeout_s, self.events.stream_s + STREAM_END_S)

    @property
    def keys_required(self) -> bool:
        """True when a request needs an API key."""
        if self.auth.mode != "auto":
            return self.auth.mode == "keys"
        return not self.on_loopback
