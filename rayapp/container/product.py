"""The services of memory, search, learning and the assistant, each built when first asked for.

Nothing here waits for a server: constructors assign and connect lazily.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from rayapp.assistant.commands.ledger import OrderLedger
from rayapp.assistant.commands.service import CommandsService
from rayapp.assistant.completions.service import CompletionsService
from rayapp.assistant.context.service import ContextReceipts, ContextService
from rayapp.assistant.conversations.reactions import Reactions
from rayapp.assistant.conversations.service import HooksService
from rayapp.assistant.conversations.sessions import DeferredSessions
from rayapp.assistant.extraction.executor import ExtractionExecutor
from rayapp.assistant.extraction.policies import ExtractionPolicies, KnownMemories
from rayapp.assistant.extraction.service import ExchangeLearning
from rayapp.assistant.history.service import ConversationsService, KeptTurnTools
from rayapp.assistant.history.unlearning import Unlearning
from rayapp.assistant.personality.service import PersonalityService
from rayapp.assistant.prompt.service import PromptService
from rayapp.assistant.tool_results.service import ToolResultService
from rayapp.assistant.tools.known import KnownTools
from rayapp.assistant.tools.rules.table import row_of
from rayapp.assistant.tools.service import ToolsService
from rayapp.bulk.ports import JobLauncher
from rayapp.bulk.service import JobsService
from rayapp.container import shipped
from rayapp.container.bootstrap import Stores, load_texts, memories_service, schema_of, text_limits
from rayapp.container.inference import breaker, rerank_service
from rayapp.container.understanding import (
    deciding_service,
    derived_service,
    growth_service,
    hints_service,
    knowledge_service,
    merge_service,
    registries_of,
    resolver_of,
    review_service,
    understander,
)
from rayapp.core.runtime import Runtime
from rayapp.documents.digest import BookDigests
from rayapp.documents.reading import read_document
from rayapp.documents.service import BooksService, BookWork
from rayapp.graphs.service import GraphsService
from rayapp.index.consistency.comparison import Comparison
from rayapp.index.consistency.service import ConsistencyService, SweepLog
from rayapp.index.deferred import DeferredService
from rayapp.index.encoding import EncodingService, PassageEncoder
from rayapp.index.point_builder import ModelPrefixing, PointBuilder
from rayapp.index.ports import VectorIndex
from rayapp.index.service import IndexingService
from rayapp.index.write_barrier import IndexMonitor
from rayapp.inference.backends.chat_model import ChatEndpoint, HttpChatModel
from rayapp.inference.chat.service import ModelCalls
from rayapp.inference.ports import Embedder, Encoder, Opened, Reranker
from rayapp.inference.prompts.loader import load_prompts
from rayapp.learning.dedup import DedupService
from rayapp.learning.insights import InsightsService
from rayapp.learning.outbox import GraphEffects, OutboxService
from rayapp.learning.outcomes import OutcomesService
from rayapp.learning.promotion import PromotionService
from rayapp.learning.tools import ToolVerdicts
from rayapp.memory.bank import MemoryBankService
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import CORE_TIERS
from rayapp.memory.user_data import UserDataService
from rayapp.search.explain import Explainer
from rayapp.search.newest import NewestMemories
from rayapp.search.priors import PriorsService
from rayapp.search.reader import AnswerReader, HitReaders
from rayapp.search.receipts import GroupedReceipts
from rayapp.search.resident import ResidentViews
from rayapp.search.retrievers import Retrievers
from rayapp.search.rules.confidence import Calibrated, calibrated
from rayapp.search.service import SearchService
from rayapp.search.vectors import VectorsService
from rayapp.understanding.deciding import Deciding
from rayapp.understanding.derived.hints import HintsService
from rayapp.understanding.derived.reading import DerivedService, ReviewService
from rayapp.understanding.ports import Understander
from rayapp.understanding.raw_data import RawDataService
from rayapp.understanding.service import UnderstandingService
from rayapp.understanding.statements.growth import GrowthService
from rayapp.understanding.statements.knowledge import KnowledgeService
from rayapp.understanding.statements.merging import MergeService
from rayapp.understanding.statements.pages import PagesService
from rayapp.understanding.statements.registries import Registries

log = logging.getLogger("rayapp.container")


class ProductContainer:
    """What requests and the background work of one process are made of.

    Args:
        reranker: None: that of the settings, in this process.
        encoder: None: it is off.

    Attributes:
        notices: sentences for the operator, which diagnostics show.
    """

    def __init__(
        self,
        runtime: Runtime,
        stores: Stores,
        *,
        index: VectorIndex,
        embedder: Opened[Embedder],
        launcher: JobLauncher,
        reranker: Reranker | None = None,
        encoder: Opened[Encoder] | None = None,
    ) -> None:
        self.runtime = runtime
        self.settings = runtime.settings
        self.clock = runtime.clock
        self.metrics = runtime.metrics
        self.disk = runtime.disk
        self.stores = stores
        self.api_keys = stores.api_keys
        self.idempotency = stores.idempotency
        self.index = index
        self.embedder = embedder.model
        self.texts = replace(load_texts(), langs=frozenset(embedder.info.langs))
        self.encoder = None if encoder is None else encoder.model
        read = None if encoder is None else encoder.info
        self.schema = schema_of(embedder.info, self.texts.analyser, read)
        self.watch = IndexMonitor(breaker("qdrant", self.settings))
        self.tiers_default = CORE_TIERS
        self.notices: list[str] = []
        self._launcher = launcher
        self._reranker = reranker

    # --- memories

    @cached_property
    def text_limits(self) -> TextLimits:
        return text_limits(self.settings)

    @cached_property
    def memories(self) -> MemoriesService:
        return memories_service(self.stores, self.runtime)

    @cached_property
    def bank(self) -> MemoryBankService:
        return MemoryBankService(self.memories, self.stores.items)

    @cached_property
    def user_data(self) -> UserDataService:
        stores = self.stores
        return UserDataService(
            self.memories, stores.items, stores.user_rows, settle=self.settle, runtime=self.runtime
        )

    @cached_property
    def books(self) -> BooksService:
        return BooksService(self.stores.books, self.stores.items, runtime=self.runtime)

    @cached_property
    def book_work(self) -> BookWork:
        """The worker of the queue of uploads."""
        return BookWork(self.stores.books, self.memories, read_document, runtime=self.runtime)

    @cached_property
    def book_digests(self) -> BookDigests:
        """The worker of documents that a language model is to read."""
        return BookDigests(
            self.stores.books, self.books, self.memories, self.models, runtime=self.runtime
        )

    # --- models

    @cached_property
    def models(self) -> ModelCalls:
        """The calls of this process, which counts what is in flight; off without an endpoint."""
        settings, chat = self.settings.models, None
        if settings.on:
            chat = HttpChatModel(settings.base_url, model=settings.model, api_key=settings.api_key)
        return ModelCalls(
            chat,
            self.stores.usage,
            load_prompts(),
            breaker=breaker("models", self.settings),
            runtime=self.runtime,
        )

    @cached_property
    def reranker(self) -> Reranker:
        return self._reranker or rerank_service(self.settings, self.metrics)

    @cached_property
    def prefixing(self) -> ModelPrefixing | None:
        """What the indexer asks before it embeds; None while no model may be asked."""
        settings = self.settings.models
        if not (settings.on and settings.helpers.contextual_prefix):
            return None
        return ModelPrefixing(self.models, self.stores.items, runtime=self.runtime)

    # --- search

    @cached_property
    def calibrated(self) -> Calibrated:
        """Recipes that know how sure this embedder may be, and what is missing for it."""
        model = self.schema.model
        found = calibrated(self.texts.recipes, shipped.calibration_of(model), model)
        if found.notice is not None:
            log.warning("%s", found.notice)
        return found

    @cached_property
    def receipts(self) -> GroupedReceipts:
        window_s = self.settings.search.receipt_window_s
        return GroupedReceipts(self.stores.receipts, window_s, self.clock, self.metrics)

    @cached_property
    def sessions(self) -> DeferredSessions:
        # Neither waits for its write where the other does.
        deferring = self.settings.search.receipt_window_s > 0.0
        return DeferredSessions(self.stores.sessions, deferring, self.metrics)

    async def settle(self, user_id: str) -> None:
        """Until what the answers to this user leave behind is written."""
        await asyncio.gather(self.receipts.settle(user_id), self.sessions.settle(user_id))

    async def flush(self) -> None:
        """The same for all users."""
        await asyncio.gather(self.receipts.flush(), self.sessions.flush())

    @cached_property
    def views(self) -> ResidentViews:
        return ResidentViews(
            self.stores.items,
            self.stores.changes,
            self.stores.graphs,
            self.index,
            self.texts.analyser,
            schema=self.schema,
            runtime=self.runtime,
        )

    @cached_property
    def search(self) -> SearchService:
        retrievers = Retrievers(
            self.stores.items,
            self.index,
            self.embedder,
            self.texts.analyser,
            watch=self.watch,
            views=self.views,
            runtime=self.runtime,
            encoder=self.encoder,
            heads=shipped.heads_of(self.schema.encoder, self.schema.model)
            if self.schema.encoder
            else None,
        )
        return SearchService(
            retrievers,
            HitReaders(self.reranker, AnswerReader(self.models, self.settings.models.timeout_s)),
            self.receipts,
            replace(self.texts, recipes=self.calibrated.recipes),
            priors=PriorsService(self.stores.graphs, self.texts, runtime=self.runtime),
            on_empty=self.deferred.check_missing,
            runtime=self.runtime,
            knowledge=shipped.knowledge_rule_of(self.schema.model, self.schema.encoder),
        )

    @cached_property
    def vectors(self) -> VectorsService:
        return VectorsService(
            self.stores.items, self.index, schema=self.schema, runtime=self.runtime
        )

    @cached_property
    def explainer(self) -> Explainer:
        return Explainer(self.search, self.stores.items, self.runtime)

    @cached_property
    def graphs(self) -> GraphsService:
        stores = self.stores
        return GraphsService(stores.graphs, stores.items, texts=self.texts, runtime=self.runtime)

    @cached_property
    def registries(self) -> Registries:
        return registries_of(self.stores, self.runtime)

    @cached_property
    def growth(self) -> GrowthService:
        """How the registries of tenants grow."""
        return growth_service(self.stores, self.registries, self.runtime)

    @cached_property
    def knowledge(self) -> KnowledgeService:
        return knowledge_service(
            self.stores, self.registries, self.texts, self.embedder, self.runtime
        )

    @cached_property
    def pages(self) -> PagesService:
        return PagesService(self.stores.knowledge, self.knowledge, self.clock)

    @cached_property
    def merges(self) -> MergeService:
        return merge_service(self.stores, self.runtime)

    @cached_property
    def understander(self) -> Understander:
        resolver = resolver_of(self.stores, self.runtime)
        return understander(
            self.stores,
            self.registries,
            self.texts,
            self.embedder,
            self.runtime,
            resolver=resolver,
            growth=self.growth,
        )

    # --- index

    @cached_property
    def deferred(self) -> DeferredService:
        """What waits for the index, and the look after an empty search."""
        stores = self.stores
        return DeferredService(stores.items, self.index, stores.scan, runtime=self.runtime)

    @cached_property
    def indexing(self) -> IndexingService:
        """The indexer; it asks for prefixes, and forgets what is gone."""
        maker = PointBuilder(
            self.embedder,
            self.texts.analyser,
            schema=self.schema,
            timeout_s=self.settings.embedding.batch_timeout_s,
            prefixing=self.prefixing,
        )
        return IndexingService(
            self.stores.items,
            self.index,
            maker,
            self.stores.leases,
            on_deleted=self._forget,
            # Nothing is learned of a turn that a person put away, and its texts lie there too.
            on_hidden=self.stores.exchanges.purge,
            on_written=None if self.encoding is None else self.encoding.note,
            runtime=self.runtime,
        )

    @cached_property
    def encoding(self) -> EncodingService | None:
        """What gives points the encoder's vectors; None where it is off."""
        if self.encoder is None:
            return None
        limit_s = self.settings.embedding.batch_timeout_s
        return EncodingService(
            self.stores.scan,
            self.index,
            PassageEncoder(self.encoder, limit_s),
            self.stores.changes,
            self.stores.leases,
            schema=self.schema,
            runtime=self.runtime,
        )

    async def _forget(self, point_ids: Sequence[str]) -> None:
        """Nothing else may hold the texts of memories that were deleted."""
        await self.stores.conversations.purge(point_ids)
        await self.stores.quarantine.purge(point_ids)
        await self.stores.exchanges.purge(point_ids)

    @cached_property
    def comparison(self) -> Comparison:
        """Truth and index side by side."""
        return Comparison(self.stores.scan, self.index, self.stores.quarantine)

    @cached_property
    def consistency(self) -> ConsistencyService:
        """Sampled sweeps, for operators and for the owner of maintenance."""
        kept = SweepLog(self.stores.events, "sampled_sweep", self.runtime)
        return ConsistencyService(self.comparison, kept, runtime=self.runtime)

    # --- learning

    @cached_property
    def effects(self) -> GraphEffects:
        return GraphEffects(self.stores.graphs, self.texts.expansions, runtime=self.runtime)

    @cached_property
    def tool_verdicts(self) -> ToolVerdicts:
        stores = self.stores
        return ToolVerdicts(
            stores.outcomes,
            KeptTurnTools(self.sessions, stores.conversations),
            on_recorded=self.effects.at_once,
            runtime=self.runtime,
        )

    @cached_property
    def outcomes(self) -> OutcomesService:
        """What is recorded is in the graphs before it is answered, if that is quick."""
        stores = self.stores
        return OutcomesService(
            stores.outcomes,
            self.receipts,
            self.memories,
            self.sessions,
            tools=self.tool_verdicts,
            on_recorded=self.effects.at_once,
            runtime=self.runtime,
        )

    @cached_property
    def promotion(self) -> PromotionService:
        """The only code that changes a tier by rule."""
        return PromotionService(self.stores.lifecycle, self.stores.leases, runtime=self.runtime)

    @cached_property
    def dedup(self) -> DedupService:
        """The static embedder has its own scale: its threshold is off until it was measured."""
        settings = self.settings.dedup
        static = self.settings.embedding.backend == "static"
        similarity = settings.static_similarity if static else settings.similarity
        return DedupService(
            self.stores.lifecycle,
            self.stores.items,
            self.index,
            similarity=similarity if settings.enabled else 0.0,
            runtime=self.runtime,
        )

    @cached_property
    def outbox(self) -> OutboxService:
        return OutboxService(
            self.stores.outcomes,
            self.stores.graphs,
            self.promotion,
            self.dedup,
            texts=self.texts,
            runtime=self.runtime,
        )

    @cached_property
    def insights(self) -> InsightsService:
        """What the graphs say before any search."""
        stores = self.stores
        return InsightsService(
            stores.graphs,
            stores.items,
            stores.outcomes,
            self.receipts,
            texts=self.texts,
            runtime=self.runtime,
            priority=lambda tool: row_of(tool, shipped.tool_table()).priority,
        )

    @cached_property
    def jobs(self) -> JobsService:
        """Bulk jobs as operators, and the owner of maintenance, see them."""
        stores = self.stores
        return JobsService(stores.jobs, stores.leases, self._launcher, runtime=self.runtime)

    # --- understanding

    @cached_property
    def deciding(self) -> Deciding:
        """How much memories matter."""
        return deciding_service(
            self.stores, self.embedder, self.encoder, schema=self.schema, runtime=self.runtime
        )

    @cached_property
    def understanding(self) -> UnderstandingService:
        """The worker of the queue of sources."""
        return UnderstandingService(
            self.stores.understandings,
            self.stores.items,
            self.deciding,
            self.understander,
            runtime=self.runtime,
        )

    @cached_property
    def raw_data(self) -> RawDataService:
        return RawDataService(
            self.memories, self.stores.understandings, self.deciding, runtime=self.runtime
        )

    @cached_property
    def derived(self) -> DerivedService:
        """Episodes and thoughts."""
        return derived_service(self.stores, self.memories, self.deciding, self.runtime)

    @cached_property
    def review(self) -> ReviewService:
        return review_service(self.stores, self.merges, self.growth, self.runtime)

    @cached_property
    def hints(self) -> HintsService:
        return hints_service(self.stores, self.runtime)

    # --- the assistant

    @cached_property
    def context(self) -> ContextService:
        return ContextService(
            self.search,
            self.insights,
            NewestMemories(self.stores.items, self.views),
            ContextReceipts(self.receipts, self.texts, self.runtime),
            self.sessions,
            Reactions(self.policies, self.executor, self.stores.exchanges, runtime=self.runtime),
            CommandsService(
                self.memories,
                self.bank,
                self.search,
                self.texts.analyser,
                OrderLedger(self.memories, self.stores.events, clock=self.clock),
                runtime=self.runtime,
            ),
            self.hints,
            runtime=self.runtime,
        )

    @cached_property
    def hooks(self) -> HooksService:
        return HooksService(
            self.context,
            self.memories,
            self.outcomes,
            sessions=self.sessions,
            receipts=self.receipts,
            exchanges=self.stores.exchanges,
            conversations=self.stores.conversations,
            unlearning=self.unlearning,
            tools=self.tool_verdicts,
            prompts=self.prompt,
            runtime=self.runtime,
        )

    @cached_property
    def unlearning(self) -> Unlearning:
        stores = self.stores
        return Unlearning(
            self.memories,
            stores.items,
            stores.user_rows,
            stores.outcomes,
            stores.events,
            settle=self.effects.settle,
            clock=self.clock,
        )

    @cached_property
    def conversations(self) -> ConversationsService:
        stores = self.stores
        return ConversationsService(
            stores.conversations,
            self.sessions,
            stores.items,
            self.books,
            self.unlearning,
            self.promotion,
            settle=self.settle,
            clock=self.clock,
        )

    @cached_property
    def tools(self) -> ToolsService:
        return ToolsService(
            self.memories,
            self.bank,
            self.search,
            self.outcomes,
            self.insights,
            self.books,
            KnownTools(self.hints, self.knowledge, self.derived),
            sessions=self.sessions,
            table=shipped.tool_table(),
            runtime=self.runtime,
        )

    @cached_property
    def tool_results(self) -> ToolResultService:
        return ToolResultService(
            self.memories, self.stores.items, self.models, runtime=self.runtime
        )

    @cached_property
    def policies(self) -> ExtractionPolicies:
        """What is asked about an exchange, and which answers the rules let through."""
        stores, prompts = self.stores, load_prompts()
        limit_s = self.settings.embedding.batch_timeout_s
        return ExtractionPolicies(
            models=self.models,
            queue=stores.exchanges,
            receipts=stores.receipts,
            known=KnownMemories(
                stores.items, self.index, self.embedder, self.books, timeout_s=limit_s
            ),
            conversations=stores.conversations,
            versions=lambda helper, language: f"{language}{prompts.get(helper, language).version}",
            judged=self.executor.judged,
        )

    @cached_property
    def executor(self) -> ExtractionExecutor:
        stores = self.stores
        return ExtractionExecutor(
            self.memories,
            self.outcomes,
            stores.events,
            stores.conversations,
            tools=self.tool_verdicts,
            runtime=self.runtime,
        )

    @cached_property
    def learning(self) -> ExchangeLearning:
        """The worker of the queue of exchanges; it skips them while no model may be asked."""
        return ExchangeLearning(
            self.stores.exchanges, self.policies, self.executor, runtime=self.runtime
        )

    @cached_property
    def personality(self) -> PersonalityService:
        return PersonalityService(self.stores.personality, shipped.presets(), clock=self.clock)

    @cached_property
    def completions(self) -> CompletionsService:
        """Memory around the model for programs that speak its protocol."""
        settings, endpoint = self.settings.models, None
        if settings.on:
            endpoint = ChatEndpoint(
                settings.base_url,
                model=settings.model,
                api_key=settings.api_key,
                timeout_s=settings.chat_timeout_s,
            )
        return CompletionsService(
            self.hooks, endpoint, self.models, table=shipped.tool_table(), runtime=self.runtime
        )

    @cached_property
    def prompt(self) -> PromptService:
        stores = self.stores
        return PromptService(
            self.context,
            self.personality,
            stores.conversations,
            stores.windows,
            shipped.model_windows(),
            self.clock,
            table=shipped.tool_table(),
        )
