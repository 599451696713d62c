"""The services of a process, each built once, when it is first asked for.

Nothing here waits for a server: constructors assign and connect lazily.
"""

from dataclasses import fields
from functools import cached_property, partial

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.audit import AuditLog
from rayapp.admin.event_stream import EventStreamService
from rayapp.admin.health import HealthService, ProcessBreakers
from rayapp.admin.legacy_bank import LegacyMove
from rayapp.admin.retention import LegalHolds, RetentionService
from rayapp.admin.sanitizing import Sanitizing
from rayapp.admin.session_tokens import SessionTokenService
from rayapp.admin.statistics import StatisticsService
from rayapp.admin.storage_report import StorageReport
from rayapp.admin.tenants import TenantsService
from rayapp.admin.upkeep import UpkeepService
from rayapp.admin.webhooks.delivery import WebhookDeliveries, WebhookFeed
from rayapp.admin.webhooks.ports import WebhookSender
from rayapp.admin.webhooks.service import WebhooksService
from rayapp.api.services import Services
from rayapp.container import leader_tasks
from rayapp.container.bootstrap import remote_cache
from rayapp.container.product import ProductContainer
from rayapp.datagov.service import DatagovPreload
from rayapp.index.reindex.switch import ReindexCleanup
from rayapp.learning.leader import MaintenanceService
from rayapp.portability.backup import stored_in
from rayapp.portability.erasure import ErasureService
from rayapp.portability.exports import ExportService
from rayapp.portability.files import ArchiveFiles
from rayapp.portability.foreign import ForeignImportService
from rayapp.portability.imports import ImportService
from rayapp.storage.backup_files import open_backups
from rayapp.storage.files import kept_secret
from rayapp.storage.webhook_sender import HttpWebhookSender


class Container(ProductContainer):
    """What requests and the background work of one process are made of: the product's services, and
    those that look after it."""

    def services(self) -> Services:
        """What the HTTP layer asks for, built now, so that no request pays for it."""
        return Services(**{one.name: getattr(self, one.name) for one in fields(Services)})

    @cached_property
    def maintenance(self) -> MaintenanceService:
        """The tasks of the owner of tiers, and what every replica does beside it."""
        cleanup = ReindexCleanup(self.index, self.stores.jobs, runtime=self.runtime)
        return MaintenanceService(
            self.promotion,
            self.outbox,
            self.stores.leases,
            tasks=[
                leader_tasks.sweep_task(self.consistency, self.settings.consistency),
                leader_tasks.drift_task(self.stores.events, self.runtime),
                leader_tasks.resume_task(self.jobs),
                leader_tasks.cleanup_task(cleanup.run),
                leader_tasks.daily_task(self.storage_report),
                leader_tasks.preload_task(DatagovPreload(self.jobs, self.settings.datagov)),
                *leader_tasks.backup_tasks(self.settings, self.clock, self.disk),
                *leader_tasks.user_keys_tasks(self.settings, self.clock),
                *leader_tasks.retention_tasks(self.retention, self.settings.retention),
            ],
            learning=self.learning,
            runtime=self.runtime,
        )

    # --- administration

    @cached_property
    def events(self) -> EventStreamService:
        return EventStreamService(self.stores.stream, runtime=self.runtime)

    @cached_property
    def webhook_sender(self) -> WebhookSender:
        settings = self.settings.webhooks
        return HttpWebhookSender(allow_private=settings.allow_private, timeout_s=settings.timeout_s)

    @cached_property
    def webhooks(self) -> WebhooksService:
        kept, stream = self.stores.webhooks, self.stores.stream
        return WebhooksService(kept, self.webhook_sender, stream, runtime=self.runtime)

    @cached_property
    def webhook_feed(self) -> WebhookFeed:
        stores = self.stores
        return WebhookFeed(stores.webhooks, stores.stream, stores.leases, runtime=self.runtime)

    @cached_property
    def webhook_deliveries(self) -> WebhookDeliveries:
        return WebhookDeliveries(self.stores.webhooks, self.webhook_sender, runtime=self.runtime)

    @cached_property
    def health(self) -> HealthService:
        """With the clients that requests use."""
        cache = remote_cache(self.settings)
        checks = {"embedding": self.embedder.health, "reranking": self.reranker.health}
        breakers = [self.watch.breaker, self.models.breaker]
        notice = self.calibrated.notice
        return HealthService(
            self.stores,
            self.index,
            schema=self.schema,
            checks={
                **checks,
                **({"cache": cache.ping} if cache is not None else {}),
                **({"encoder": self.encoder.health} if self.encoder is not None else {}),
                "models": self.models.health,
            },
            breaker_owners={
                "process": ProcessBreakers(breakers, self.clock),
                "embedding": self.embedder,
                "reranker": self.reranker,
                **({"encoder": self.encoder} if self.encoder is not None else {}),
            },
            notices=[*self.notices, *([notice] if notice else [])],
            runtime=self.runtime,
        )

    @cached_property
    def statistics(self) -> StatisticsService:
        return StatisticsService(self.stores.items, self.stores.events, runtime=self.runtime)

    @cached_property
    def exports(self) -> ExportService:
        folder = self.settings.backup.folder_in(self.settings.data.dir)
        return ExportService(self.stores.archive, ArchiveFiles(folder), self.index, self.clock)

    @cached_property
    def erasure(self) -> ErasureService:
        return ErasureService(
            self.stores.archive,
            self.exports.files,
            self.index,
            settle=self.settle,
            take_back=self.understanding.take_back_waiting,
            runtime=self.runtime,
        )

    @cached_property
    def holds(self) -> LegalHolds:
        return LegalHolds(self.stores.holds, self.stores.events, runtime=self.runtime)

    @cached_property
    def storage_report(self) -> StorageReport:
        files = open_backups(self.settings.backup.place_in(self.settings.data.dir))
        return StorageReport(
            self.stores, self.index, partial(stored_in, files), runtime=self.runtime
        )

    @cached_property
    def retention(self) -> RetentionService:
        return RetentionService(
            self.stores,
            self.holds,
            self.user_data,
            self.conversations,
            self.books,
            runtime=self.runtime,
        )

    @cached_property
    def session_tokens(self) -> SessionTokenService:
        settings = self.runtime.settings
        given, file = settings.auth.session_secret, settings.data.dir / "session.secret"
        secret = (lambda: given) if given else partial(kept_secret, file)
        return SessionTokenService(self.stores.api_keys, secret, runtime=self.runtime)

    @cached_property
    def keys(self) -> ApiKeyService:
        return ApiKeyService(
            self.stores.api_keys, clock=self.clock, cache_s=self.settings.auth.cache_s
        )

    @cached_property
    def audit(self) -> AuditLog:
        keep_days = self.settings.audit.keep_days
        return AuditLog(self.stores.audit_log, clock=self.clock, keep_days=keep_days)

    @cached_property
    def tenants(self) -> TenantsService:
        return TenantsService(
            self.stores, self.holds, self.erasure, self.exports.files, runtime=self.runtime
        )

    @cached_property
    def imports(self) -> ImportService:
        return ImportService(
            self.stores.archive, self.exports, limits=self.text_limits, runtime=self.runtime
        )

    @cached_property
    def foreign_imports(self) -> ForeignImportService:
        return ForeignImportService(
            self.imports, self.stores.items, limits=self.text_limits, runtime=self.runtime
        )

    @cached_property
    def upkeep(self) -> UpkeepService:
        stores = self.stores
        return UpkeepService(
            stores,
            self.index,
            self.user_data,
            LegacyMove(
                stores.legacy,
                self.memories,
                stores.items,
                limits=self.text_limits,
                runtime=self.runtime,
            ),
            Sanitizing(self.memories, stores.items, runtime=self.runtime),
            self.holds,
            self.exports.files,
            runtime=self.runtime,
        )
