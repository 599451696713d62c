"""What the HTTP layer is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.audit import AuditLog
from rayapp.admin.event_stream import EventStreamService
from rayapp.admin.health import HealthService
from rayapp.admin.ports import ApiKeyStore, IdempotencyStore
from rayapp.admin.retention import LegalHolds, RetentionService
from rayapp.admin.session_tokens import SessionTokenService
from rayapp.admin.statistics import StatisticsService
from rayapp.admin.storage_report import StorageReport
from rayapp.admin.tenants import TenantsService
from rayapp.admin.upkeep import UpkeepService
from rayapp.admin.webhooks.service import WebhooksService
from rayapp.assistant.completions.service import CompletionsService
from rayapp.assistant.context.service import ContextService
from rayapp.assistant.conversations.service import HooksService
from rayapp.assistant.history.service import ConversationsService
from rayapp.assistant.personality.service import PersonalityService
from rayapp.assistant.prompt.service import PromptService
from rayapp.assistant.tool_results.service import ToolResultService
from rayapp.assistant.tools.service import ToolsService
from rayapp.bulk.service import JobsService
from rayapp.core.disk_space import DiskSpace
from rayapp.core.runtime import Clock, Metrics
from rayapp.core.settings.model import Settings
from rayapp.documents.service import BooksService
from rayapp.graphs.service import GraphsService
from rayapp.index.consistency.service import ConsistencyService
from rayapp.index.deferred import DeferredService
from rayapp.inference.chat.service import ModelCalls
from rayapp.inference.ports import Embedder
from rayapp.learning.insights import InsightsService
from rayapp.learning.outcomes import OutcomesService
from rayapp.learning.promotion import PromotionService
from rayapp.memory.bank import MemoryBankService
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import Tier
from rayapp.memory.user_data import UserDataService
from rayapp.portability.erasure import ErasureService
from rayapp.portability.exports import ExportService
from rayapp.portability.foreign import ForeignImportService
from rayapp.portability.imports import ImportService
from rayapp.search.explain import Explainer
from rayapp.search.service import SearchService
from rayapp.search.vectors import VectorsService
from rayapp.understanding.derived.hints import HintsService
from rayapp.understanding.derived.reading import DerivedService, ReviewService
from rayapp.understanding.raw_data import RawDataService
from rayapp.understanding.statements.growth import GrowthService
from rayapp.understanding.statements.knowledge import KnowledgeService
from rayapp.understanding.statements.merging import MergeService
from rayapp.understanding.statements.pages import PagesService


class Starting(Protocol):
    """Why the services do not exist yet. `blocked`: waiting alone will not help."""

    @property
    def problems(self) -> Sequence[str]: ...

    @property
    def blocked(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything the HTTP layer needs, by the names of `rayapp.container.services.Container`."""

    settings: Settings
    clock: Clock
    metrics: Metrics
    memories: MemoriesService
    books: BooksService
    bank: MemoryBankService
    raw_data: RawDataService
    derived: DerivedService
    review: ReviewService
    growth: GrowthService
    hints: HintsService
    search: SearchService
    explainer: Explainer
    outcomes: OutcomesService
    promotion: PromotionService
    graphs: GraphsService
    knowledge: KnowledgeService
    merges: MergeService
    pages: PagesService
    insights: InsightsService
    context: ContextService
    hooks: HooksService
    completions: CompletionsService
    embedder: Embedder
    conversations: ConversationsService
    tools: ToolsService
    tool_results: ToolResultService
    events: EventStreamService
    webhooks: WebhooksService
    vectors: VectorsService
    models: ModelCalls
    jobs: JobsService
    consistency: ConsistencyService
    deferred: DeferredService
    health: HealthService
    statistics: StatisticsService
    personality: PersonalityService
    prompt: PromptService
    user_data: UserDataService
    upkeep: UpkeepService
    exports: ExportService
    imports: ImportService
    foreign_imports: ForeignImportService
    erasure: ErasureService
    holds: LegalHolds
    retention: RetentionService
    storage_report: StorageReport
    tenants: TenantsService
    session_tokens: SessionTokenService
    keys: ApiKeyService
    audit: AuditLog
    api_keys: ApiKeyStore
    idempotency: IdempotencyStore
    tiers_default: tuple[Tier, ...]
    disk: DiskSpace
