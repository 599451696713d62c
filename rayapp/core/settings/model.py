"""Every setting with its bounds. `load.py` reads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, model_validator

from rayapp.core.disk_space import DiskLimits
from rayapp.core.settings import rules as settings_rules
from rayapp.core.settings.access import (
    AuditSettings,
    AuthSettings,
    HttpSettings,
    RateLimitSettings,
    SettingsSection,
    Share,
    setting,
)


class ContextSettings(SettingsSection):
    timeout_s: float = setting(0.8, "End-to-end limit of a prefetch.", gt=0, le=10)
    token_budget: int = setting(
        2_000, "Tokens of the text block when none are named.", ge=50, le=100_000
    )
    stable_share: float = setting(
        0.5, "Share of the budget that the stable part may take.", ge=0, le=0.9
    )
    always_inject: int = setting(20, "Pinned memories in the block.", ge=0, le=100)
    identity: int = setting(10, "Memories tagged identity in the block.", ge=0, le=100)
    preferences: int = setting(10, "Memories tagged preference in the block.", ge=0, le=100)
    patterns: int = setting(5, "Proven patterns in the stable part.", ge=0, le=50)
    instructions: int = setting(
        20, "Instructions and preferences that messages told.", ge=0, le=100
    )
    min_relevance: float | None = setting(
        None,
        "Relevance of the best hit below which none is shown; null: the recipe's, by "
        "calibration; 0: off.",
        ge=0,
        le=1,
    )
    min_knowledge: float | None = setting(
        None,
        "Probability that memory knows anything of a question below which nothing is shown; null: "
        "that of the weights (`configs/knowledge`); 0: off.",
        ge=0,
        le=1,
    )
    min_share: Share = setting(
        0.53, "Share of the best hit's strength that a shown hit has; 0: off."
    )
    share_rise: Share = setting(
        0.225, "What that share grows by until the last hit that the question asks for."
    )
    small_store: int = setting(5, "Up to so many memories, all of them are context.", ge=0, le=50)
    recent: int = setting(10, "Newest memories shown when nothing is found.", ge=0, le=50)
    hints: int = setting(
        0, "Hints about the user in the block, as decision 0101 makes them; 0: off.", ge=0, le=20
    )
    cold_start: int = setting(10, "Memories of a cold start.", ge=1, le=50)
    receipt_ttl_days: float = setting(30.0, "Lifetime of the receipt of a prefetch, days.", gt=0)


# A stream looks at its end once a second, and says goodbye before anybody cuts it, seconds.
STREAM_END_S = 5.0


class EventSettings(SettingsSection):
    stream_s: float = setting(
        55.0, "The server ends a stream then; the client reconnects.", gt=0, le=600
    )
    heartbeat_s: float = setting(
        10.0, "Between two signs of life; proxies end silent streams.", gt=0, le=60
    )
    max_streams: int = setting(
        32, "Open streams per replica; each holds one connection.", ge=1, le=1_000
    )


class WebhookSettings(SettingsSection):
    allow_private: bool = setting(
        False,
        "Send to addresses in private networks and of this machine: for a service of one's own.",
    )
    timeout_s: float = setting(10.0, "How long a program may take to answer.", gt=0, le=30)


class HooksSettings(SettingsSection):
    session_ttl_days: float = setting(
        30.0,
        "Lifetime of what a conversation was shown when no turn of it was kept, days.",
        gt=0,
        le=3_650,
    )
    attribution: bool = setting(
        True, "Ask the assistant to mark which memories helped, in the context block."
    )
    reaction_timeout_s: float = setting(
        1.5,
        "What a model may take to judge the last answer by the next question, before "
        "the context of that is read.",
        gt=0,
        le=10,
    )


class HelperFlags(SettingsSection):
    outcome_detection: bool = setting(True, "Judge an answer by what the user says next.")
    fact_extraction: bool = setting(True, "Learn one fact from an exchange.")
    contextual_prefix: bool = setting(
        False, "Say what a text is about before it is embedded: a call per memory."
    )
    profile_detection: bool = setting(True, "Learn what users say of themselves.")
    history_summary: bool = setting(True, "Sum up long conversations.")
    conversation_title: bool = setting(True, "Name a conversation after its first turn.")
    merge_duplicates: bool = setting(True, "Word what merged memories say together.")
    tool_result_summary: bool = setting(True, "Sum up long answers of tools.")
    answer_reading: bool = setting(
        True, "Read whether a search found an answer, where a request asks for it."
    )
    document_notes: bool = setting(
        True, "Sum up documents in the background: a call per six passages."
    )
    document_summary: bool = setting(True, "Make one summary of those of the passages.")


class ModelsSettings(SettingsSection):
    base_url: Annotated[str, AfterValidator(settings_rules.endpoint)] = setting(
        "", "OpenAI-compatible endpoint, up to `/v1`; empty: helpers are off."
    )
    model: str = setting("", "Name of the model there.")
    # Plain text, because settings travel to other processes as JSON; never shown, never logged.
    api_key: str = setting("", "Bearer token.", repr=False)
    timeout_s: float = setting(10.0, "Limit of one answer.", gt=0, le=120)
    prefix_timeout_s: float = setting(5.0, "The same for the contextual prefix.", gt=0, le=60)
    chain_depth: int = setting(
        3, "Rounds of tools before a chat must answer; 0: no limit.", ge=0, le=100
    )
    chat_timeout_s: float = setting(
        120.0, "Longest silence of the model in `/v1/chat/completions`.", gt=0, le=3_600
    )
    concurrency: int = setting(5, "Calls in flight per process.", ge=1, le=256)
    price_prompt: float = setting(0.0, "Price of a million tokens asked.", ge=0)
    price_completion: float = setting(0.0, "Price of a million tokens answered.", ge=0)
    calls_per_day: int = setting(2_000, "Per user and UTC day; 0 = no limit.", ge=0)
    tokens_per_day: int = setting(2_000_000, "Per user and UTC day; 0 = no limit.", ge=0)
    cost_per_day: float = setting(0.0, "Per user and UTC day; 0 = no limit.", ge=0)
    raw_log_share: Share = setting(0.0, "Share of answers logged, redacted and cut; 0 = none.")
    helpers: HelperFlags = setting(HelperFlags(), "Which helpers may use the model.")

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.base_url and not self.model:
            raise ValueError("models.base_url is set: set models.model too")
        return self

    @property
    def on(self) -> bool:
        return bool(self.base_url)


class ToolResultSettings(SettingsSection):
    min_chars: int = setting(
        100, "Shorter answers of tools are not kept, characters.", ge=1, le=10_000
    )
    max_chars: int = setting(
        10_000, "Longer answers of tools are cut, characters.", ge=200, le=50_000
    )
    per_conversation: int = setting(
        500, "Active tool results of one conversation (decision 0030).", ge=1
    )
    batch_limit_items: int = setting(20, "Most results in one request.", ge=1, le=100)


LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
Profile = Literal["local", "gpu", "prod"]
MongoUri = Annotated[str, AfterValidator(settings_rules.mongo_uri)]
QdrantUrl = Annotated[str, AfterValidator(settings_rules.qdrant_url)]
RedisUrl = Annotated[str, AfterValidator(settings_rules.redis_url)]
RayAddress = Annotated[str, AfterValidator(settings_rules.ray_address)]


class DataSettings(SettingsSection):
    dir: Path = setting(Path(".rayapp"), "Directory of everything the local stack keeps.")
    warn_free_bytes: int = setting(
        5 << 30, "Below that, diagnostics, status and doctor warn of its disk.", ge=0
    )
    bulk_free_bytes: int = setting(
        1 << 30, "Below that, jobs, imports and uploads are refused with 507.", ge=0
    )
    min_free_bytes: int = setting(
        500 << 20, "Below that, writes are refused with 507; 0 never refuses.", ge=0
    )
    holds_store: bool = setting(
        False, "Filled in by the local stack: its MongoDB keeps its files here."
    )

    @property
    def disk_limits(self) -> DiskLimits:
        return DiskLimits(
            warn_bytes=self.warn_free_bytes,
            bulk_bytes=self.bulk_free_bytes,
            min_bytes=self.min_free_bytes,
        )


class MongoSettings(SettingsSection):
    uri: MongoUri = setting("", "Connection URI; empty: the local stack starts a mongod.")
    database: str = setting("rayapp", "Database name.", min_length=1)
    pool_size: int = setting(32, "Connections per process.", ge=1, le=500)
    timeout_s: float = setting(5.0, "Limit of one operation.", gt=0, le=120)
    server_selection_s: float = setting(2.0, "Wait for a primary.", gt=0, le=60)
    text_timeout_s: float = setting(1.5, "Limit of a `$text` search.", gt=0, le=60)
    wired_tiger_cache_gb: float = setting(
        0.25, "Cache of the mongod that the local stack starts.", ge=0.25, le=64
    )


class QdrantSettings(SettingsSection):
    url: QdrantUrl = setting("", "Server URL; empty: the embedded engine.")
    api_key: str = setting("", "Server API key.")
    grpc_port: int = setting(6334, "Server gRPC port.", ge=1, le=65535)
    prefer_grpc: bool = setting(True, "gRPC instead of REST.")
    alias: str = setting("memories", "Alias that search reads.", min_length=1)
    timeout_s: float = setting(1.5, "Limit of a read.", gt=0, le=60)
    write_timeout_s: float = setting(30.0, "Limit of a write.", gt=0, le=600)
    hnsw_m: int = setting(0, "HNSW links on a server; 0 = exact search.", ge=0, le=64)
    shards: int = setting(1, "Server: parts of a new collection, spread over peers.", ge=1, le=512)
    copies: int = setting(1, "Server: copies of each part; 2: a peer may be away.", ge=1, le=16)
    copies_written: int = setting(
        1, "Server: copies that a write waits for; the others catch up.", ge=1, le=16
    )
    flush_interval_s: float = setting(5.0, "Embedded engine: flush period.", gt=0, le=60)
    upsert_batch: int = setting(256, "Points per upsert call.", ge=1, le=4096)


class RedisSettings(SettingsSection):
    url: RedisUrl = setting("", "Redis or Valkey URL; empty: only the in-process LRU.")
    timeout_s: float = setting(0.05, "Limit of one cache call.", gt=0, le=5)


class RaySettings(SettingsSection):
    address: RayAddress = setting("", "Cluster to join; empty: a local head is started.")
    num_cpus: int = setting(0, "CPUs of a local head for admission; 0 = detected.", ge=0)
    object_store_mb: int = setting(150, "Object store of a local head.", ge=80, le=65536)
    dashboard: bool = setting(True, "Start the dashboard with a local head.")
    token_auth: bool = setting(True, "Token authentication on a local head.")


class DeploymentSettings(SettingsSection):
    replicas: int = setting(1, "Replicas.", ge=1, le=128)
    max_replicas: int = setting(0, "Above 0: autoscale up to this many.", ge=0, le=512)
    num_cpus: float = setting(0.1, "CPUs reserved per replica.", ge=0, le=128)
    num_gpus: float = setting(0.0, "GPUs reserved per replica.", ge=0, le=16)
    max_ongoing_requests: int = setting(64, "Requests in a replica.", ge=1, le=4096)
    max_queued_requests: int = setting(256, "Requests queued for it.", ge=1, le=100_000)
    graceful_shutdown_s: float = setting(10.0, "Drain time at shutdown.", ge=0, le=600)
    target_requests: float = setting(
        2.0, "Autoscaling: requests in work for each replica.", gt=0, le=4096
    )
    upscale_delay_s: float = setting(
        15.0, "Autoscaling: more is asked for so long before a replica is added.", ge=0, le=3600
    )
    downscale_delay_s: float = setting(
        600.0, "Autoscaling: less is asked for so long before one goes.", ge=0, le=86_400
    )
    surge_percent: int = setting(
        0, "Replicas of a new release beside the old ones, of the wanted number.", ge=0, le=100
    )
    max_per_node: int = setting(0, "Replicas on one node; 0: any number.", ge=0, le=100)


class IngressSettings(DeploymentSettings):
    """A class of its own: its defaults must survive a profile that sets only the replicas."""

    max_ongoing_requests: int = setting(
        1_024, "Requests in a replica, held refusals included.", ge=1, le=4096
    )
    target_requests: float = setting(
        20.0,
        "Autoscaling: requests in work for each replica; open event streams do not count.",
        gt=0,
        le=4096,
    )


class EmbeddingDeploymentSettings(DeploymentSettings):
    target_requests: float = setting(
        32.0, "Autoscaling: texts in work for each replica, half a batch.", gt=0, le=4096
    )


class ServeSettings(SettingsSection):
    search: IngressSettings = setting(IngressSettings(), "Ingress: API and search.")
    embedding: EmbeddingDeploymentSettings = setting(
        EmbeddingDeploymentSettings(), "Embedding gateway."
    )
    reranker: DeploymentSettings = setting(DeploymentSettings(), "Reranker.")
    indexer: DeploymentSettings = setting(DeploymentSettings(), "Indexer.")
    maintenance: DeploymentSettings = setting(
        DeploymentSettings(), "Owner of promotion and of the outbox."
    )
    background_together: bool = setting(
        False, "Maintenance in the processes of the indexer: one less on a laptop."
    )
    request_timeout_s: float = setting(30.0, "Limit of one HTTP request.", gt=0, le=600)


class BatchSettings(SettingsSection):
    max_size: int = setting(64, "Texts per backend call.", ge=1, le=4096)
    wait_s: float = setting(0.001, "Time a batch waits for company.", ge=0, le=0.1)
    max_tokens: int = setting(16_384, "Token budget of a batch on a CPU.", ge=64)
    tokens_per_free_gib: int = setting(
        8_192, "Token budget of a batch per GiB of free GPU memory.", ge=64
    )


class EncoderSettings(SettingsSection):
    enabled: bool = setting(True, "Texts are read by the encoder too, 26 MB of the package.")
    model: str = setting("", "Name or folder of another one; empty: the bundled one.")
    max_text_chars: int = setting(8_000, "Longest text given to it.", ge=100)
    lru_items: int = setting(2_000, "Texts kept in process, 3 KB each.", ge=0)
    batch: BatchSettings = setting(
        BatchSettings(max_size=16, max_tokens=4_096, wait_s=0.0), "Batching."
    )


class EmbeddingSettings(SettingsSection):
    backend: Literal["static", "http", "local"] = setting("static", "Which backend.")
    model: str = setting("bilingual-static-1", "Model name or folder.", min_length=1)
    url: str = setting("", "http: base URL of the server.")
    api: Literal["dicta", "tei", "openai"] = setting("dicta", "http: request shape.")
    api_key: str = setting("", "http: bearer token.")
    dims: int = setting(0, "Size; 0 = ask the backend, which must be up then.", ge=0, le=65536)
    precision: Literal["auto", "float32", "float16", "bfloat16"] = setting(
        "auto", "local, torch: auto = float16 on a GPU, float32 on a CPU."
    )
    query_prefix: str = setting("", "Put before every query text.")
    passage_prefix: str = setting("", "Put before every stored text.")
    query_timeout_s: float = setting(2.0, "Limit for a query.", gt=0, le=60)
    batch_timeout_s: float = setting(10.0, "Limit for a batch.", gt=0, le=600)
    cache_ttl_s: int = setting(7 * 86_400, "Cache lifetime of a vector.", ge=60)
    lru_items: int = setting(20_000, "Vectors kept in process.", ge=0)
    max_text_chars: int = setting(20_000, "Longest text given to a model.", ge=100)
    batch: BatchSettings = setting(BatchSettings(), "Batching.")
    encoder: EncoderSettings = setting(EncoderSettings(), "The encoder beside the embedder.")


class RerankerSettings(SettingsSection):
    backend: Literal["none", "features", "http", "local"] = setting("features", "Which backend.")
    model: str = setting("", "Model name or folder; features: its static model, empty = its own.")
    url: str = setting("", "http: base URL of the server.")
    api: Literal["rerank", "tei"] = setting("rerank", "http: request shape.")
    api_key: str = setting("", "http: bearer token.")
    precision: Literal["auto", "float32", "float16", "bfloat16"] = setting(
        "auto", "local, torch: auto = float16 on a GPU, float32 on a CPU."
    )
    timeout_s: float = setting(2.0, "Limit of one call.", gt=0, le=60)
    max_candidates: int = setting(30, "Candidates reranked.", ge=1, le=200)
    max_chars: int = setting(4_000, "Characters of a document given to it.", ge=100)
    batch: BatchSettings = setting(BatchSettings(max_size=32), "Batching.")


class SearchSettings(SettingsSection):
    timeout_s: float = setting(15.0, "End-to-end limit of a search.", gt=0, le=60)
    recipe: str = setting("default", "Recipe used when none is named.", min_length=1)
    depth_factor: int = setting(3, "Candidates per tier = limit x this.", ge=1, le=20)
    min_depth: int = setting(60, "Fewest candidates per tier and retriever.", ge=1, le=500)
    max_limit: int = setting(50, "Largest `limit`.", ge=1, le=200)
    pending_limit: int = setting(200, "Pending items scored per search.", ge=0, le=2_000)
    receipt_ttl_h: float = setting(24.0, "Lifetime of an unscored receipt, hours.", gt=0)
    receipt_window_s: float = setting(
        0.02, "Receipts of so long are written together; 0 = each alone.", ge=0, le=1
    )
    resident_bytes: int = setting(
        400_000_000, "Memory per replica for users held as columns; 0 = none.", ge=0
    )
    resident_max_items: int = setting(
        20_000, "Memories of a user beyond which the index is searched.", ge=0
    )


class IndexerSettings(SettingsSection):
    batch_size: int = setting(256, "Items claimed at once.", ge=1, le=2_000)
    poll_s: float = setting(0.1, "Pause when nothing is due.", gt=0, le=60)
    claim_s: float = setting(60.0, "Lifetime of a claim.", gt=1, le=3_600)
    max_attempts: int = setting(20, "Tries before `failed`.", ge=1, le=1_000)
    backoff_min_s: float = setting(1.0, "First pause after a failure.", gt=0)
    backoff_max_s: float = setting(600.0, "Longest pause after a failure.", gt=0)


class MemoryBankSettings(SettingsSection):
    capacity: int = setting(1_000, "Active items per user; the worst leave first.", ge=1)
    text_limit_chars: int = setting(5_000, "Longest memory_bank text.", ge=1)


class LearningSettings(SettingsSection):
    implicit_confidence: Share = setting(0.7, "Least confidence of an implicit signal that counts.")
    scored_receipt_ttl_days: float = setting(30.0, "Lifetime of a scored receipt, days.", gt=0)
    guest_outcomes_per_hour: int = setting(
        200, "Memories per hour that a key may judge which it did not store.", ge=1
    )
    effects_poll_s: float = setting(
        0.5, "Pause between two looks at the outbox of outcomes.", gt=0, le=1.5
    )
    effects_batch: int = setting(200, "Events or items per look.", ge=1, le=5_000)


class PromotionSettings(SettingsSection):
    policy: Literal["score", "wilson"] = setting(
        "score", "What gates a promotion; wilson is 0.7 after nine straight successes."
    )
    interval_s: float = setting(1_800.0, "Pause between two cycles over all users.", ge=1)
    settle_s: float = setting(60.0, "Age of an outcome before its items are looked at.", ge=0)
    exchanges: int = setting(20, "Stored exchanges of a user after which a cycle runs.", ge=1)
    batch_size: int = setting(500, "Items read at once by a cycle.", ge=1, le=10_000)
    lease_s: float = setting(60.0, "Lifetime of the owner's lease.", gt=1)


class DedupSettings(SettingsSection):
    enabled: bool = setting(True, "Look for near-duplicates of facts and patterns.")
    similarity: float = setting(
        0.95, "Least cosine of a transformer's vectors (its own scale).", gt=0, le=1
    )
    # The words decide (decision 0068); a cosine only keeps apart what has nothing in common.
    static_similarity: Share = setting(0.8, "The same for the static embedder; 0 = off.")
    neighbours: int = setting(5, "Nearest items compared with a new one.", ge=1, le=50)


class GraphSettings(SettingsSection):
    max_nodes: int = setting(5_000, "Content graph nodes of one user at most.", ge=1)
    max_edges: int = setting(20_000, "Content graph edges of one user at most.", ge=1)
    max_concepts: int = setting(5_000, "Routing concepts of one user at most.", ge=1)
    priors_timeout_s: float = setting(0.25, "Time that a search gives the graphs.", gt=0, le=5)
    empty_cache_s: float = setting(2.0, "How long a user is known to have no graph.", ge=0, le=60)


class JobsSettings(SettingsSection):
    concurrency: int = setting(2, "Workers of a bulk job.", ge=1, le=256)
    worker_cpus: float = setting(0.2, "CPUs that Ray sets aside per worker.", ge=0, le=64)
    worker_gpus: float = setting(0.0, "GPUs per worker that embeds.", ge=0, le=8)
    lease_s: float = setting(30.0, "Lifetime of a driver's lease.", gt=2, le=600)
    attempts: int = setting(
        5, "Deaths of workers at one step, or of drivers, that fail it.", ge=1, le=100
    )


class ReindexSettings(SettingsSection):
    partitions: int = setting(32, "Ranges of point ids.", ge=1, le=4_096)
    batch_size: int = setting(256, "Items per step.", ge=1, le=2_000)
    sample: int = setting(200, "Vectors compared before the switch.", ge=1, le=10_000)
    receipts: int = setting(50, "Last searches replayed before it.", ge=0, le=1_000)
    min_overlap: Share = setting(0.9, "Least mean overlap of their top 10, for the same model.")
    rollback_h: float = setting(
        24.0, "How long the old collection is kept, hours.", ge=0, le=24 * 365
    )


class ConsistencySettings(SettingsSection):
    interval_s: float = setting(900.0, "Pause between two sampled sweeps.", ge=1)
    sample: int = setting(1_000, "Points looked at by a sampled sweep.", ge=1, le=100_000)
    repair: bool = setting(True, "Sampled sweeps repair what they find.")
    grace_s: float = setting(2.0, "Pause before a difference is looked at again.", ge=0, le=60)
    partitions: int = setting(32, "Ranges of point ids of a full sweep.", ge=1, le=4_096)
    batch_size: int = setting(500, "Points per step.", ge=1, le=5_000)


class DatagovSettings(SettingsSection):
    preload: bool = setting(False, "Fill the DataGov tiers in the background at start.")
    source: Path | None = setting(None, "Folder of the catalogue; empty = live CKAN.")
    ckan_url: str = setting("https://data.gov.il", "CKAN site.", min_length=1)
    graph_datasets: int = setting(5, "Datasets per category in the graph.", ge=0, le=50)
    graph_nodes: int = setting(150, "Nodes of the DataGov graph at most.", ge=22, le=5_000)
    intent: bool = setting(True, "A question about open data also searches its tiers.")


class DocumentSettings(SettingsSection):
    max_bytes: int = setting(
        50 * 1024 * 1024, "Size of a file at most, bytes.", ge=1_024, le=1024**3
    )
    max_pages: int = setting(5_000, "Pages of a file at most.", ge=1)
    max_characters: int = setting(
        10_000_000, "Text of a file at most, characters.", ge=1_000, le=50_000_000
    )
    read_s: float = setting(60.0, "Time that reading a file may take.", gt=0, le=3_600)
    read_memory_mb: int = setting(500, "Memory of the process that reads, MiB.", ge=128)
    keep_original: bool = setting(False, "Keep the file after it was read.")
    uploads: int = setting(2, "Files that arrive at once, per replica.", ge=1, le=64)
    upload_s: float = setting(60.0, "Time that a file may take to come.", gt=0, le=3_600)


def _kept(what: str) -> float:
    said = f"{what} go so many days after their last change; 0 = never."
    return setting(0.0, said, ge=0, le=36_500)


class BackupSettings(SettingsSection):
    dir: Path | None = setting(
        None, "Folder of archives, one for all hosts; empty: `backups` in data.dir."
    )
    max_upload_bytes: int = setting(
        64 << 20, "Largest archive that an upload takes; each is in memory.", ge=1024
    )
    max_unpacked_bytes: int = setting(
        20 << 30, "Largest archive, unpacked, that an import reads.", ge=1024
    )
    every_h: float = setting(
        0.0, "Pause between backups of the whole store, hours; 0 = none.", ge=0
    )
    keep: int = setting(7, "Newest backups that stay after one is made.", ge=1, le=1_000)
    url: str = setting(
        "",
        "Where backups of the whole store lie: a folder, or an address such as "
        "s3://bucket/path (fsspec; its keys from the environment); empty: the folder of archives.",
    )
    recipient: str = setting(
        "", "Public key of age (age1…) that backups are encrypted for; empty: none."
    )
    key_file: Path | None = setting(
        None, "Secret key of age that reads them; without `recipient`, also for which."
    )
    user_keys: str = setting(
        "",
        "Folder or address, away from the data and the backups, of the keys under "
        "which a backup seals the rows of each user; an erased user's key goes. Empty: not sealed.",
    )

    def is_local_to(self, data: Path) -> bool:
        """Whether archives lie in the data directory, which every host has for itself."""
        return self.folder_in(data).resolve().is_relative_to(data.resolve())

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
    documents_days: float = setting(
        0.0, "Documents go so many days after their upload; 0 = never.", ge=0, le=36_500
    )
    pinned: bool = setting(False, "Pinned memories go too.")
    every_h: float = setting(24.0, "Pause between two looks, hours.", gt=0)

    @property
    def days(self) -> Mapping[str, float]:
        """By kind, those that are limited."""
        end, found = "_days", {name: getattr(self, name) for name in type(self).model_fields}
        return {name.removesuffix(end): n for name, n in found.items() if name.endswith(end) and n}


class TenantUnderstanding(SettingsSection):
    """What one tenant has otherwise; null: as the service."""

    enabled: bool | None = setting(None, "Whether it is on for this tenant.")
    threshold: Share | None = setting(None, "Its threshold.")
    gate: Literal["off", "derive", "archive"] | None = setting(None, "Its gate.")


class UnderstandingSettings(SettingsSection):
    enabled: bool = setting(
        False, "Feelings, goals, traits and relations are derived of what people say."
    )
    threshold: Share = setting(
        0.44, "Importance up to which a text is not derived from, and raw data is archived."
    )
    gate: Literal["off", "derive", "archive"] = setting(
        "archive",
        "What the threshold decides: nothing, what is derived from, or also which raw data is "
        "archived.",
    )
    tenants: dict[str, TenantUnderstanding] = setting(
        {}, "By tenant, what is otherwise there; the empty name is whoever has no tenant."
    )
    heads: bool = setting(True, "The heads of the encoder are asked too, where it is on.")
    poll_s: float = setting(0.5, "Pause between two looks for what is new.", gt=0, le=60)
    settle_s: float = setting(
        0.5, "What comes within this time is understood together.", ge=0, le=10
    )
    batch: int = setting(32, "Memories of one look.", ge=1, le=1_000)
    claim_s: float = setting(60.0, "Lifetime of a claim.", gt=1, le=3_600)
    tries: int = setting(5, "Failed tries until one is given up on.", ge=1, le=100)
    test_topics: tuple[str, ...] = setting(
        (), "Topics that always matter, to try the pipeline; not in the profile prod."
    )

    def of_tenant(self, org_id: str | None) -> "UnderstandingSettings":
        """With what the tenant has otherwise."""
        own = self.tenants.get(org_id or "")
        if own is None:
            return self
        return self.model_copy(update=own.model_dump(exclude_none=True))


class BreakerSettings(SettingsSection):
    failures: int = setting(3, "Failures in a row that open it.", ge=1)
    embedder_failures: int = setting(2, "The same for the embedder.", ge=1)
    open_s: float = setting(30.0, "Pause before one probe.", gt=0)
    embedder_open_s: float = setting(60.0, "The same for the embedder.", gt=0)
    successes: int = setting(2, "Successes in a row that close it.", ge=1)


class CompatSettings(SettingsSection):
    tier_documents: bool = setting(True, "Every answer says `documents` for books.")
    first_client: bool = setting(
        False,
        "As the first client has it: the search repeats `debug` as `retrievalDebug`, "
        "its routes that clear ask for no `confirm`.",
    )


class LoggingSettings(SettingsSection):
    level: Literal["debug", "info", "warning", "error"] = setting("info", "Level.")
    json_lines: bool = setting(True, "JSON lines instead of text.")


class Settings(SettingsSection):
    """The root. Build it with `load_settings`."""

    profile: Profile = setting("local", "Which YAML profile these settings came from.")
    data: DataSettings = setting(DataSettings(), "Files.")
    http: HttpSettings = setting(HttpSettings(), "HTTP.")
    auth: AuthSettings = setting(AuthSettings(), "Authentication.")
    audit: AuditSettings = setting(AuditSettings(), "Who did what.")
    rate_limit: RateLimitSettings = setting(RateLimitSettings(), "Rate limit per key.")
    mongo: MongoSettings = setting(MongoSettings(), "MongoDB, the truth.")
    qdrant: QdrantSettings = setting(QdrantSettings(), "Qdrant, the index.")
    redis: RedisSettings = setting(RedisSettings(), "Redis, the cache.")
    ray: RaySettings = setting(RaySettings(), "Ray.")
    serve: ServeSettings = setting(ServeSettings(), "Deployments.")
    embedding: EmbeddingSettings = setting(EmbeddingSettings(), "Embedding gateway.")
    reranker: RerankerSettings = setting(RerankerSettings(), "Reranker.")
    search: SearchSettings = setting(SearchSettings(), "Search.")
    indexer: IndexerSettings = setting(IndexerSettings(), "Indexer.")
    memory_bank: MemoryBankSettings = setting(MemoryBankSettings(), "memory_bank.")
    learning: LearningSettings = setting(LearningSettings(), "Outcomes.")
    promotion: PromotionSettings = setting(PromotionSettings(), "Promotion.")
    dedup: DedupSettings = setting(DedupSettings(), "Near-duplicates.")
    graph: GraphSettings = setting(GraphSettings(), "The three graphs.")
    context: ContextSettings = setting(ContextSettings(), "Context of an assistant.")
    hooks: HooksSettings = setting(HooksSettings(), "Hooks around a turn of a chat.")
    tool_results: ToolResultSettings = setting(ToolResultSettings(), "Remembered answers of tools.")
    events: EventSettings = setting(EventSettings(), "Event stream.")
    webhooks: WebhookSettings = setting(WebhookSettings(), "Events told to programs.")
    models: ModelsSettings = setting(ModelsSettings(), "Language model of the helpers.")
    jobs: JobsSettings = setting(JobsSettings(), "Bulk jobs.")
    reindex: ReindexSettings = setting(ReindexSettings(), "Reindex.")
    consistency: ConsistencySettings = setting(ConsistencySettings(), "Sweeps.")
    datagov: DatagovSettings = setting(DatagovSettings(), "Open-data catalogue.")
    documents: DocumentSettings = setting(DocumentSettings(), "Documents of users.")
    backup: BackupSettings = setting(BackupSettings(), "Exports, imports, backups.")
    retention: RetentionSettings = setting(RetentionSettings(), "What goes by itself, and when.")
    understanding: UnderstandingSettings = setting(UnderstandingSettings(), "What memories mean.")
    breaker: BreakerSettings = setting(BreakerSettings(), "Circuit breakers.")
    compat: CompatSettings = setting(CompatSettings(), "First client's habits.")
    logging: LoggingSettings = setting(LoggingSettings(), "Logs.")

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
