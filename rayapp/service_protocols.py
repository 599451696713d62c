"""What the HTTP layer, the tools and the jobs ask of the services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeVar

from rayapp.context_protocols import UsageTotal
from rayapp.data_service_protocols import Personalities, Upkeep, UserData
from rayapp.domain.consistency import SweepReport
from rayapp.domain.context.records import (
    AssistantContext,
    ColdStart,
    ContextRequest,
    ExchangeAnswer,
    ExchangeRequest,
)
from rayapp.domain.context.scores import OwedScore, ScoreAnswer, ScoreRequest, ScoreState
from rayapp.domain.graphs.records import ActionRow, ContentStats, RoutingRow
from rayapp.domain.jobs import Job, JobWish, PartitionRow
from rayapp.domain.learning_requests import (
    BackfillReport,
    ConceptDefinition,
    ContextInsights,
    FeedbackRequest,
    GraphListing,
    GraphView,
    InsightsRequest,
    OutcomeAnswer,
    OutcomeRequest,
    PathView,
    PromotionReport,
    PromotionSchedule,
    ResponseAnswer,
    ResponseRequest,
)
from rayapp.domain.memory import MemoryItem, MemoryVersion, Status
from rayapp.domain.models.asking import HelperName, ModelQuestion, ModelReply
from rayapp.domain.requests import (
    BankStats,
    BulkResult,
    Component,
    Explanation,
    GrowthDay,
    ItemList,
    ItemQuery,
    MemoryEdit,
    NewMemory,
    Rates,
    SearchAnswer,
    SearchQuery,
    StoreResult,
    TierStats,
)
from rayapp.domain.scope import ItemFilter, ReadScope, WriteScope
from rayapp.domain.stream_events import Frame, StreamRequest
from rayapp.domain.tiers import Tier
from rayapp.domain.tool_results.preparing import Ingested, ToolResult
from rayapp.domain.tools.records import ToolAnswer, ToolCall, ToolDefinition
from rayapp.protocols import ApiKeyStore, Clock, IdempotencyStore, Metrics, Receipt
from rayapp.resilience.disk_space import ELSEWHERE, DiskSpace
from rayapp.settings import Settings

T = TypeVar("T")


class Memories(Protocol):
    """Store and edit. Raises InvalidInput, TooLarge, NotFound, Conflict, StoreDown."""

    async def store(self, scope: WriteScope, new: NewMemory) -> StoreResult:
        """`stored` or `duplicate`; same id with another text raises DuplicateMemory."""
        ...

    async def store_batch(
        self, scope: WriteScope, new: Sequence[NewMemory | StoreResult]
    ) -> list[StoreResult]:
        """Order kept; an entry that is a StoreResult already (rejected) passes through."""
        ...

    async def get(self, scope: ReadScope, memory_id: str) -> MemoryItem: ...
    async def page(self, scope: ReadScope, where: ItemFilter, query: ItemQuery) -> ItemList: ...

    async def edit(self, scope: WriteScope, memory_id: str, edit: MemoryEdit) -> MemoryItem: ...
    async def archive(
        self,
        scope: WriteScope,
        memory_id: str,
        *,
        reason: str | None = None,
        expected_version: int | None = None,
    ) -> MemoryItem: ...

    async def restore(
        self, scope: WriteScope, memory_id: str, *, expected_version: int | None = None
    ) -> MemoryItem: ...

    async def delete(self, scope: WriteScope, memory_id: str) -> None: ...
    async def versions(
        self, scope: ReadScope, memory_id: str, limit: int = 50
    ) -> list[MemoryVersion]: ...


class MemoryBank(Protocol):
    """memory_bank with its write guard and capacity."""

    async def add(self, scope: WriteScope, new: NewMemory) -> StoreResult: ...
    async def pin(self, scope: WriteScope, memory_id: str, new: NewMemory) -> StoreResult:
        """Keep what memory `memory_id` says, with its provenance; that memory stays as it is.

        An empty text in `new` stands for the text of the memory. An unknown id with a text is a
        plain fact, without one it raises NotFound.
        """
        ...

    async def fact(self, scope: ReadScope, memory_id: str) -> MemoryItem:
        """The fact of that id; NotFound when there is none, or a memory of another tier."""
        ...

    async def listed(self, scope: ReadScope, tag: str, limit: int) -> ItemList:
        """The active facts of one list (`goal`, `value`), newest first, with their total."""
        ...

    async def unlist(self, scope: WriteScope, tag: str, memory_id: str) -> None:
        """Archive a fact of that list; NotFound when it is not on it."""
        ...

    async def stats(self, scope: ReadScope) -> BankStats: ...
    async def page(
        self, scope: ReadScope, *, status: Status, tag: str | None, limit: int, offset: int
    ) -> ItemList: ...

    async def archive_many(
        self, scope: WriteScope, memory_ids: Sequence[str], reason: str | None
    ) -> list[BulkResult]:
        """What became of each id, in order, named twice once."""
        ...

    async def delete_many(self, scope: WriteScope, memory_ids: Sequence[str]) -> list[BulkResult]:
        """As `archive_many`."""
        ...


class Search(Protocol):
    async def search(self, scope: ReadScope, query: SearchQuery) -> SearchAnswer: ...
    async def explain(
        self, scope: ReadScope, memory_id: str, query: SearchQuery
    ) -> Explanation: ...


class Starting(Protocol):
    """Why the services do not exist yet. `blocked`: waiting alone will not help."""

    @property
    def problems(self) -> Sequence[str]: ...

    @property
    def blocked(self) -> bool: ...


class Health(Protocol):
    async def not_ready(self) -> list[str]:
        """Reasons why the service cannot serve; empty when it can."""
        ...

    async def components(self) -> list[Component]: ...
    async def breakers(self) -> dict[str, dict[str, Any]]:
        """By dependency: those of this process and of every replica of a model."""
        ...

    async def reset_breakers(self) -> list[str]:
        """Close them by hand; the names of those that were not closed."""
        ...

    async def diagnostics(self, *, metrics: bool = False) -> dict[str, Any]:
        """The body of `GET /api/memory/diagnostics`, contract fields included."""
        ...


class Statistics(Protocol):
    async def tiers(self, scope: ReadScope) -> list[TierStats]:
        """All seven tiers, empty ones included."""
        ...

    async def rates(self, scope: ReadScope, active: int, window: timedelta) -> Rates:
        """`active`: items of working and history, as `tiers` counts them."""
        ...

    async def growth(self, scope: ReadScope, days: int) -> list[GrowthDay]:
        """One row per UTC day, gaps filled, oldest first."""
        ...


class Outcomes(Protocol):
    """Raises InvalidInput, NotFound, Conflict, StoreDown; then nothing was recorded."""

    async def record(self, scope: WriteScope, request: OutcomeRequest) -> OutcomeAnswer: ...
    async def shown(self, scope: WriteScope, request: OutcomeRequest) -> Receipt | None:
        """The receipt that positions of this request mean; None when there is none (any more)."""
        ...

    async def record_response(
        self, scope: WriteScope, request: ResponseRequest
    ) -> ResponseAnswer: ...

    async def feedback(self, scope: WriteScope, request: FeedbackRequest) -> OutcomeAnswer: ...


class Promotion(Protocol):
    async def run(self, user_id: str | None) -> PromotionReport:
        """One cycle for a user, or for all. Conflict, code `busy`, when another one goes on."""
        ...

    async def schedule(self, user_id: str | None = None) -> PromotionSchedule:
        """Of the cycles over all users, and of those over this user alone."""
        ...


GraphMode = Literal["routing", "content", "both"]


class Graphs(Protocol):
    """Reads of the three graphs; at most five reads of the truth per call."""

    async def picture(self, scope: ReadScope, mode: GraphMode) -> GraphView: ...
    async def catalogue(self) -> GraphView:
        """The open-data catalogue of the shared tenant: root, categories, largest datasets."""
        ...

    async def listing(
        self, scope: ReadScope, mode: GraphMode, *, concepts: int, actions: int
    ) -> GraphListing:
        """The picture with at most so many rows of concepts and of actions."""
        ...

    async def concepts(self, scope: ReadScope, limit: int) -> tuple[RoutingRow, ...]: ...
    async def actions(
        self, scope: ReadScope, *, context_type: str | None, limit: int
    ) -> tuple[ActionRow, ...]: ...

    async def definition(self, scope: ReadScope, concept_id: str) -> ConceptDefinition:
        """`concept_id` with or without its prefix; NotFound when no graph knows it."""
        ...

    async def path(self, scope: ReadScope, source: str, target: str) -> PathView: ...
    async def stats(self, scope: ReadScope) -> ContentStats: ...
    async def backfill(self, scope: WriteScope, limit: int, *, dry_run: bool) -> BackfillReport: ...
    async def patterns(self, scope: ReadScope, limit: int) -> tuple[MemoryItem, ...]:
        """Active patterns by Wilson score, best first."""
        ...


class Jobs(Protocol):
    """Bulk jobs as operators see them. Raises InvalidInput, NotFound, Conflict, JobsDown."""

    async def submit(self, kind: str, params: Mapping[str, Any], *, requested_by: str) -> Job:
        """Store a job and start its driver; Conflict, code `busy`, while one of its kind runs."""
        ...

    async def get(self, job_id: str) -> Job: ...
    async def partitions(self, job_id: str) -> list[PartitionRow]: ...
    async def recent(self, kind: str | None, limit: int) -> list[Job]:
        """Newest first."""
        ...

    async def wish(self, job_id: str, wish: JobWish) -> Job:
        """Pause, go on, or cancel. Going on with a job that lost its driver starts a new one."""
        ...


class Consistency(Protocol):
    """Compares index and truth in both directions."""

    async def check(self, *, sample: int, repair: bool) -> SweepReport:
        """A look at `sample` points from a place that changes with every call."""
        ...


class Deferred(Protocol):
    """Items that the index does not hold yet, of one user or of all (None)."""

    async def waiting(self, user_id: str | None) -> int: ...
    async def hasten(self, user_id: str | None) -> int:
        """Make waiting and failed items due now; how many there were."""
        ...


class Insights(Protocol):
    async def insights(self, scope: ReadScope, request: InsightsRequest) -> ContextInsights: ...


class Context(Protocol):
    """What an assistant is told. Never raises for what is merely away: it says `degraded`."""

    async def prefetch(self, scope: ReadScope, request: ContextRequest) -> AssistantContext:
        """Everything about one question, within the deadline of the settings."""
        ...

    async def cold_start(self, scope: ReadScope, conversation_id: str | None) -> ColdStart:
        """What is known of the user before the first question."""
        ...


class Tools(Protocol):
    """The tools of an assistant. Raises what the services behind them raise."""

    def listed(self) -> tuple[ToolDefinition, ...]: ...
    async def call(self, scope: WriteScope, call: ToolCall) -> ToolAnswer:
        """NotFound, code `unknown_tool`; InvalidInput names the argument; Forbidden when the
        caller may not write."""
        ...


class Hooks(Protocol):
    """What a chat program calls around each turn."""

    async def exchange(self, scope: WriteScope, request: ExchangeRequest) -> ExchangeAnswer:
        """Enrich the messages; when they end with an answer, keep that turn, once per message."""
        ...

    async def owed(self, scope: ReadScope, conversation_id: str) -> OwedScore | None:
        """The answer of this conversation that still waits for its score."""
        ...

    async def score(self, scope: WriteScope, request: ScoreRequest) -> ScoreAnswer: ...
    async def state(
        self, scope: ReadScope, message_id: str, conversation_id: str | None
    ) -> ScoreState: ...


class ToolResults(Protocol):
    """Remembers what tools answered. Raises InvalidInput, Conflict, StoreDown."""

    async def ingest(self, scope: WriteScope, results: Sequence[ToolResult]) -> list[Ingested]:
        """One answer per result, in order; each is durable before the next one is looked at."""
        ...


class Following(Protocol):
    """One open event stream, closed by whoever opened it."""

    @property
    def frames(self) -> AsyncIterator[Frame]: ...
    async def close(self) -> None: ...


class Events(Protocol):
    async def follow(self, scope: ReadScope, request: StreamRequest) -> Following:
        """Raises Overloaded when as many streams are open as may be, and StoreDown."""
        ...


class Models(Protocol):
    """The language model of the helpers. It never raises for what is away: a reply says why."""

    def enabled(self, helper: HelperName) -> bool:
        """True when there is an endpoint and this helper may use it."""
        ...

    async def ask(self, user_id: str, question: ModelQuestion[T]) -> ModelReply[T]: ...
    async def usage(self, scope: ReadScope, since: datetime) -> UsageTotal:
        """Raises StoreDown."""
        ...

    async def health(self) -> dict[str, Any]:
        """`healthy` is true when there is no endpoint: helpers are optional."""
        ...

    async def close(self) -> None:
        """End the connections of the endpoint; nobody asks afterwards."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything the HTTP layer needs, built by `rayapp.bootstrap`."""

    settings: Settings
    clock: Clock
    metrics: Metrics
    memories: Memories
    bank: MemoryBank
    search: Search
    outcomes: Outcomes
    promotion: Promotion
    graphs: Graphs
    insights: Insights
    context: Context
    hooks: Hooks
    tools: Tools
    tool_results: ToolResults
    events: Events
    models: Models
    jobs: Jobs
    consistency: Consistency
    deferred: Deferred
    health: Health
    statistics: Statistics
    personality: Personalities
    user_data: UserData
    upkeep: Upkeep
    api_keys: ApiKeyStore
    idempotency: IdempotencyStore
    tiers_default: tuple[Tier, ...]
    disk: DiskSpace = ELSEWHERE
